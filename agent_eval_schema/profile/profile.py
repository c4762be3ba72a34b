"""A dataset → its profile: what can be shown with it, before anything is run.

    data ──gather──▶ Facts ──find_repeats──▶ Repeats ──▶ power, duplicates, leaks, coverage, cost ──▶ ProfileSummary
         fact_batch: where the rows are                                       text │ JSON │ HTML ◀──┘

Of each row a few numbers and hashes are kept; examples are read again when it is known which rows they are.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from msgspec.structs import asdict, replace

from agent_eval_schema.cells.notes import own_columns
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.formats.column_names import ColumnNames
from agent_eval_schema.formats.nested import require_one_format
from agent_eval_schema.formats.opening import EvalSetLike, open_source
from agent_eval_schema.formats.registry import InputFormat
from agent_eval_schema.io.outputs import settle
from agent_eval_schema.io.source import rows_where, schema_of
from agent_eval_schema.io.texts import read_bytes
from agent_eval_schema.io.write import write_batches
from agent_eval_schema.metrics.support import System
from agent_eval_schema.profile.coverage import Other, find_leaks, find_repeats, open_others
from agent_eval_schema.profile.facts import Facts, gather
from agent_eval_schema.profile.options import ANSWER_TOKENS, INSTRUCTION_TOKENS, Options, tokenizer_at_hand
from agent_eval_schema.profile.profile_blocks import ProfileSummary, profile_view, rows_with_reasons
from agent_eval_schema.profile.size import read_past
from agent_eval_schema.profile.summarize import summarize
from agent_eval_schema.render.blocks import View
from agent_eval_schema.render.document import summary_json
from agent_eval_schema.render.phrases import plural
from agent_eval_schema.render.printable import Savable, as_inline
from agent_eval_schema.text.choices import path_of
from agent_eval_schema.validation.ces_turns import CES_FORMATS, turns_of
from agent_eval_schema.validation.plan import Outputs, make_plan
from agent_eval_schema.validation.shown import rows_at


def profile_eval_set(
    data: EvalSetLike,
    *,
    against: Any = (),
    past: Any = None,
    documents: Any = None,
    price: Mapping[str, float] | None = None,
    calls_per_minute: float | None = None,
    tokenizer: str | None = None,
    instruction_tokens: int = INSTRUCTION_TOKENS,
    answer_tokens: int = ANSWER_TOKENS,
    system: System = "auto",
    near: float = 0.7,
    format: InputFormat = "auto",
    outputs: Outputs = "auto",
    columns: ColumnNames = None,
    show_values: bool = True,
) -> Profile:
    """Profile an evaluation dataset: size, duplicates, leakage, coverage and cost.

    A profile reports what the dataset can show before an evaluation is run. Invalid rows are excluded and counted.

    Parameters
    ----------
    data : EvalSetLike
        Any input of `validate_eval_set`. The data is not changed.
    against : EvalSetLike, path, or sequence of these, default ()
        Datasets, prompts and texts in which the questions and the ground truth should not be. Files with the extension
        `.txt`, `.md`, `.prompt`, `.jinja` or `.j2` are read as text, all others as datasets.
    past : result, DataFrame, path, sequence of these, or None, default None
        Earlier results on this dataset: an `EvalResult`, a file that one of them wrote or saved
        as JSON, or a table with columns such as `document_recall/value`. Mean, spread and correlations are measured
        from them; None assumes them.
    documents : iterable of str, path, or None, default None
        The `doc_uri` of every document that exists, or a text file with one per line.
    price : mapping of str to float or None, default None
        The price of a judge in any currency per million tokens: `{"input": 2.5, "output": 10}`.
    calls_per_minute : float or None, default None
        The rate at which judges and agent are called.
    tokenizer : str or None, default None
        The encoding of tiktoken that counts the tokens of the rows, such as `"o200k_base"`; tiktoken fetches it once if
        it is not on this machine. None uses `"o200k_base"` if tiktoken has it in its cache and the data are local and
        smaller than 64 MB, and else estimates 4 bytes per token; nothing is fetched.
    instruction_tokens : int, default 400
        The tokens of a judge's instructions, per call.
    answer_tokens : int, default 150
        The tokens of a judge's answer, per call.
    system : str, default "auto"
        The system whose metrics are profiled, as in `metric_support`. `"auto"` is the system of the data's format.
    near : float, default 0.7
        The Jaccard similarity of word pairs from which two questions count as near duplicates, from 0 (exclusive) to 1.
    format : FormatName or "auto", default "auto"
        The format of the data. `"auto"` detects it from the column names.
    outputs : {"auto", "provided", "generated"}, default "auto"
        Whether the agent's outputs are in the data, as in `validate_eval_set`.
    columns : mapping of str to str, {"auto"} or None, default None
        Canonical names of columns of the data, as in `validate_eval_set`.
    show_values : bool, default True
        If False, omit cell values and request IDs from the profile.

    Returns
    -------
    Profile
        The numbers, examples and next steps.

    Raises
    ------
    MissingExtraError
        A tokenizer is given and tiktoken is not installed.
    EvalSetError
        The data cannot be read as a table, or an option is not one of the allowed values.

    See Also
    --------
    validate_eval_set : Validate every row.
    metric_support : Return the metrics that each row supports.

    Notes
    -----
    Intervals have a level of 95 %, as those of a result; differences a power of 80 %, with the test of
    `EvalResult.compare`. The effective number of rows is the number of distinct questions divided by the design effect
    of their independent units (Kish 1965; Miller, "Adding Error Bars to Evals", 2024).

    Examples
    --------
    >>> from agent_eval_schema import profile_eval_set
    >>> profile = profile_eval_set("sample_data/good.jsonl")
    >>> profile
    <Profile: 12 of 12 rows valid, 12 distinct questions, 3 next steps>
    >>> correctness = profile.metrics.set_index("metric").loc["response/llm_judged/correctness/rating"]
    >>> int(correctness["rows"]), round(float(correctness["half_width"]), 2)
    (12, 0.28)

    Questions that are in a prompt:

    >>> with open("few_shot.txt", "w") as file:
    ...     _ = file.write("Q: How many days of parental leave do I get?")
    >>> profile_eval_set("sample_data/good.jsonl", against="few_shot.txt").leaks[["kind", "rows"]]
                    kind  rows
    0  the same question     1
    """
    options = Options(**{name: value for name, value in locals().items() if name in Options.__struct_fields__})
    source = open_source(data, "data", columns, format=format, outputs=outputs, show_values=show_values)
    options.require_valid()
    others = open_others(against)
    source = source.advising(documents=documents if isinstance(documents, str) else None, **options.changed())
    plan = make_plan(source)
    form = plan.format
    if plan.format in CES_FORMATS:
        source = turns_of(source, plan.format)
        plan = make_plan(source)
    if options.tokenizer is None:
        options = replace(options, tokenizer=tokenizer_at_hand(source))
    texts = tuple(other.text for other in others if other.text is not None)
    facts = gather(source, plan, texts, _documents(documents), options.tokenizer)
    facts.format = form
    return Profile(facts, options, others, past)


def _documents(documents: Any) -> frozenset[str] | None:
    if not isinstance(documents, str | os.PathLike):
        return None if documents is None else frozenset(map(str, documents))
    name = path_of(documents)
    try:
        text = read_bytes(name).decode()
    except (EvalSetError, UnicodeDecodeError) as error:
        raise EvalSetError(f"documents: {name} cannot be read as text: {error}") from None
    return frozenset(line.strip() for line in text.splitlines() if line.strip())


NUMBERS = ("design_effect", "effective_rows", "mean", "deviation", "half_width", "paired", "paired_8")
NEEDED = ("rows_for_5", "rows_for_3", "rows_for_1")


class Profile(Savable):  # numpydoc ignore=PR01
    """What an evaluation dataset can show: size, duplicates, leakage, coverage and cost.

    `print(profile)` shows it as text; a notebook shows it as HTML.

    Attributes
    ----------
    report : Report
        The validation report of the dataset; of files of Google Customer Engagement Suite, of their turns.
    summary : ProfileSummary
        All numbers and examples, as plain values; the reports are drawn from it.

    See Also
    --------
    profile_eval_set : The function that returns a profile.

    Examples
    --------
    >>> from agent_eval_schema import profile_eval_set
    >>> profile = profile_eval_set([{"request": "What is Delta Lake?"}, {"request": "What is delta lake"}])
    >>> profile.counts["distinct"]
    1
    """

    def __init__(self, facts: Facts, options: Options, others: Sequence[Other], past: Any) -> None:
        self._facts, self._repeats = facts, find_repeats(facts, options.near)
        self._leaks = list(find_leaks(facts, self._repeats, others, options.near))
        scores, compared = read_past(past, facts), tuple(other.name for other in others)
        self._compared = [*compared, *(past if isinstance(past, list | tuple) else [past])]
        self.report = facts.report
        self.summary: ProfileSummary = summarize(facts, options, self._repeats, self._leaks, compared, scores)

    @property
    def counts(self) -> dict[str, int]:
        """The number of rows per kind.

        Returns
        -------
        dict of str to int
            The keys are `rows`, `valid`, `invalid`, `distinct` (questions), `exact_duplicates`, `near_duplicates`,
            `conflicts` (AE902: same request, other ground truth) and `leaked` (rows with a leak).

        Examples
        --------
        >>> from agent_eval_schema import profile_eval_set
        >>> counts = profile_eval_set([{"request": "Hi"}, {"request": "hi!"}]).counts
        >>> counts["valid"], counts["exact_duplicates"]
        (2, 1)
        """
        summary, duplicates = self.summary, self.summary.duplicates
        leaked = {row for leak in self._leaks for row in leak.rows}
        return {
            "rows": summary.rows,
            "valid": summary.valid,
            "invalid": summary.invalid,
            "distinct": duplicates.distinct,
            "exact_duplicates": duplicates.exact,
            "near_duplicates": duplicates.near,
            "conflicts": duplicates.conflict_count,
            "leaked": len(leaked),
        }

    @property
    def metrics(self) -> pd.DataFrame:
        """The size and power per metric.

        Returns
        -------
        pandas.DataFrame
            One row per metric, with a RangeIndex and the columns `system`, `metric` and `unit` (str; `"points"` for
            scores from 0 to 1, `"steps"` for those of another `scale`, otherwise `"value"`), `scale` (object; the
            lowest and the highest score), `rows`, `distinct` and `units` (int64; rows, different questions and
            independent units), `design_effect` and `effective_rows` (float64), `mean`, `deviation` and `half_width`
            (float64; NaN if unknown), `paired` and `paired_8` (float64; the smallest difference between two versions on
            these rows, and on eight times as many, NaN if the test shows none), `measured` (bool; from past results),
            `rows_for_5`, `rows_for_3` and `rows_for_1` (Int64; rows for a paired difference of so many points, or
            percent of the scale), and `note` (str).

        Examples
        --------
        >>> from agent_eval_schema import profile_eval_set
        >>> metrics = profile_eval_set([{"request": "Hi", "response": "Hello!"}] * 3).metrics
        >>> metrics.loc[metrics["metric"].str.contains("safety"), "note"].item()
        'no interval: 1 independent unit, at least 5 are needed'
        """
        rows = []
        for power in self.summary.power:
            row = asdict(power)
            needed, note = row.pop("rows_needed") or (None, None, None), row.pop("note")
            rows.append({**row, **dict(zip(NEEDED, needed, strict=True)), "note": note})
        return pd.DataFrame(rows).astype({**dict.fromkeys(NUMBERS, "float64"), **dict.fromkeys(NEEDED, "Int64")})

    @property
    def duplicates(self) -> pd.DataFrame:
        """The rows that repeat an earlier question.

        Returns
        -------
        pandas.DataFrame
            One row per row, with a RangeIndex and the columns `row` and `first` (int64; 0-based positions of the row
            and of the first row of its group) and `kind` (str; `"exact"` or `"near"`).

        Examples
        --------
        >>> from agent_eval_schema import profile_eval_set
        >>> profile_eval_set([{"request": "Where is my order?"}, {"request": "where is my order"}]).duplicates
           row  first   kind
        0    1      0  exact
        """
        repeats = self._repeats
        rows = np.sort(np.concatenate([repeats.exact_rows, repeats.near_rows]))
        exact = repeats.exact[rows] != rows
        kinds = pd.Series(np.where(exact, "exact", "near").tolist(), dtype="object")
        return pd.DataFrame({"row": rows, "first": repeats.near[rows], "kind": kinds})

    @property
    def leaks(self) -> pd.DataFrame:
        """The rows that are in another place, counted per place.

        Returns
        -------
        pandas.DataFrame
            One row per place and kind, with a RangeIndex and the columns `source` and `kind` (str), `rows` (int64) and
            `positions` (object; list of int, the 0-based positions of the rows).

        Examples
        --------
        >>> from agent_eval_schema import profile_eval_set
        >>> train = [{"request": "Where is my order?"}]
        >>> profile_eval_set([{"request": "Where is my order?"}], against=[train]).leaks["rows"].tolist()
        [1]
        """
        rows = [(leak.source, leak.kind, len(leak.rows), leak.rows) for leak in self._leaks]
        return pd.DataFrame(rows, columns=["source", "kind", "rows", "positions"]).astype({"rows": "int64"})

    @property
    def next_steps(self) -> list[str]:
        """What to do next: first invalid rows, then the step that gains most.

        Returns
        -------
        list of str
            At most seven sentences, each with a command.

        Examples
        --------
        >>> from agent_eval_schema import profile_eval_set
        >>> print(profile_eval_set([{"request": "Where is my order?"}] * 4).next_steps[0].partition(" → ")[0])
        75% of the rows repeat an earlier question: 1 of 4 are distinct.
        """
        return [f"{step.text} → {step.command}" for step in self.summary.next_steps]

    def _json(self) -> str:
        return summary_json(self.summary)

    def _view(self) -> View:
        return profile_view(self.summary)

    def _repr_html_(self) -> str:
        steps = tuple(replace(step, command=step.code) for step in self.summary.next_steps)
        return as_inline(profile_view(replace(self.summary, next_steps=steps)))

    def _page(self) -> str:
        from agent_eval_schema.render.block_html import view_page

        rows = rows_at(self._facts.run, sorted(rows_with_reasons(self.summary)))
        return view_page(profile_view(self.summary, rows))

    @property
    def overruled(self) -> int:
        """The rows that `write` excludes although their ground truth differs from that of the row that is kept.

        Returns
        -------
        int
            The number of rows.

        Examples
        --------
        >>> from agent_eval_schema import profile_eval_set
        >>> rows = [{"request": "Where is it?", "expected_response": text} for text in ("Here.", "There.")]
        >>> profile_eval_set(rows).overruled
        1
        """
        near, truths = self._repeats.near, self._facts.array("truth")
        own, other = truths, truths[near]
        return int(np.count_nonzero((own != other) & (own != 0) & (other != 0)))

    def write(self, path: str | os.PathLike[str]) -> int:
        """Write the distinct rows to a file.

        Parameters
        ----------
        path : str or os.PathLike
            The path of the file. The file extension selects the kind: `.jsonl`, `.json`, `.csv`, `.parquet`, or a Delta
            folder.

        Returns
        -------
        int
            The number of rows that were written, with their original cells: all rows except those that repeat an
            earlier question, exactly or as a near duplicate.

        Raises
        ------
        EvalSetError
            The file extension is not supported, the file cannot be written, or the data has documents of two formats.

        Examples
        --------
        >>> from agent_eval_schema import profile_eval_set
        >>> profile_eval_set([{"request": "Where is my order?"}] * 4).write("distinct.jsonl")
        1
        """
        source, near = self._facts.source, self._repeats.near
        settle({"": path_of(path)}, {"the data": self._inputs()})
        require_one_format(source, path_of(path))
        rows = rows_where(source.batches(), near == np.arange(len(near)))
        batches = (batch.select(own_columns(batch.schema)) for batch in rows)
        return write_batches(path_of(path), batches, schema_of(source))

    def _inputs(self) -> object:
        return [self._facts.source, *self._compared]

    def __repr__(self) -> str:
        summary = self.summary
        rows = f"{summary.valid:,} of {summary.rows:,} rows valid, {summary.duplicates.distinct:,} distinct questions"
        return f"<Profile: {rows}, {plural(len(summary.next_steps), 'next step')}>"
