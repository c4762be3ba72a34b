"""`supported_scorers`: the scorers that the rows of an evaluation dataset support, and why the others are excluded.

The requirements of a scorer are in the catalog (metrics/catalog.py) and, for ours, in the scorers; the number of
supported rows is in the report. This module only has the requirements of MLflow beyond the rows: arguments, a judge
model, a run.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from agent_eval_schema.formats.column_names import ColumnNames
from agent_eval_schema.formats.opening import EvalSetLike, open_source
from agent_eval_schema.metrics.catalog import Metric
from agent_eval_schema.metrics.support import Support, metrics_of
from agent_eval_schema.render.blocks import Section, Table, View
from agent_eval_schema.render.printable import as_inline
from agent_eval_schema.text.privacy import first_line
from agent_eval_schema.validation.ces_turns import report_on_rows
from agent_eval_schema.validation.report import run_of
from agent_eval_schema.validation.validate import report_on

if TYPE_CHECKING:
    from mlflow.genai.scorers import Scorer


ARGUMENTS = {
    "Guidelines": "guidelines",
    "ConversationalGuidelines": "guidelines",
    "RegexMatch": "pattern",
    "ResponseLength": "min_length or max_length",
    "TrajectorySingleToolUse": "tool_name",
}
"""The scorers that cannot be made without an argument that no row holds."""


class ScorerLine(NamedTuple):
    """The line of `supported_scorers` on one scorer. `rows` counts the valid rows that contain all of its inputs (an
    empty list does not count); `why_left_out` is "" if it is included."""

    scorer: str
    system: str
    rows: int
    total: int
    included: bool
    why_left_out: str


class SupportedScorers(list["Scorer"]):  # numpydoc ignore=PR01
    """A list of the MLflow scorers that the rows support.

    Attributes
    ----------
    table : pandas.DataFrame
        The support of every scorer, included or not: one row per scorer, with a RangeIndex and the columns `scorer` and
        `system` (str; `"mlflow"` or `"agent_eval_schema"`), `rows` (int64; valid rows with all fields that the scorer
        reads), `total` (int64), `included` (bool) and `why_left_out` (str; empty if it is included).
    without_judge : dict of str to int
        The scorers that are excluded only because no judge model is given, with the number of rows that each could
        score.

    See Also
    --------
    supported_scorers : The function that returns the list.

    Examples
    --------
    >>> from agent_eval_schema import scorers, supported_scorers
    >>> scorer_list = supported_scorers("sample_data/good.jsonl")
    >>> chosen = [*scorer_list, scorers.TrajectorySingleToolUse(tool_name="search")]
    >>> chosen[-1].name
    'trajectory_single_tool_use'
    >>> table = scorer_list.table.set_index("scorer")
    >>> bool(table.loc["DocumentRecall", "included"]), table.loc["DocumentRecall", "why_left_out"]
    (True, '')
    """

    def __init__(self, scorers: Iterable[Scorer] = (), lines: Iterable[ScorerLine] = ()) -> None:
        super().__init__(scorers)
        self._lines = tuple(lines)
        self.table = pd.DataFrame(self._lines, columns=list(ScorerLine._fields))
        self.without_judge = {line.scorer: line.rows for line in self._lines if line.why_left_out == NEEDS_JUDGE}

    def _repr_html_(self) -> str:
        included_first = sorted(self._lines, key=lambda line: not line.included)
        rows = [(x.scorer, x.system, f"{x.rows:,} / {x.total:,}", x.why_left_out or "included") for x in included_first]
        table = Table(["Scorer", "System", "#rows", "Included, or why not"], rows, title="Scorers", at_once=5)
        verdict = f"{len(self):,} of {len(self._lines):,} scorers are supported"
        return as_inline(View(title=verdict, verdict=verdict, blocks=[Section("scorers", "Scorers", [table])]))


NEEDS_JUDGE = "needs a judge: name one with model="


def supported_scorers(data: EvalSetLike, *, model: str | None = None, columns: ColumnNames = None) -> SupportedScorers:
    """Return the MLflow scorers that at least one row supports.

    Parameters
    ----------
    data : EvalSetLike
        Any input of `validate_eval_set`.
    model : str or None, default None
        The judge model, such as `"openai:/gpt-4o"`. None excludes scorers that need a judge.
    columns : mapping of str to str, {"auto"} or None, default None
        Canonical names of columns of the data, as in `validate_eval_set`; not for a report.

    Returns
    -------
    SupportedScorers
        A list of scorers of MLflow and of `agent_eval_schema.scorers`, for `mlflow.genai.evaluate(scorers=...)`. A row
        that does not support one of them gets no score and no error, but a rationale that names the missing field.

    Raises
    ------
    MissingExtraError
        MLflow 3.3 or newer is not installed.
    EvalSetError
        The data cannot be read as a table.

    See Also
    --------
    evaluate_eval_set : Evaluate with these scorers.

    Notes
    -----
    MLflow 3.17 calls OpenAI and compatible servers without another package (OPENAI_API_KEY, OPENAI_BASE_URL); MLflow
    3.3 to 3.5 require the package `openai`, and providers that MLflow does not support require `litellm`. MLflow 3.17
    also downloads a list of model prices unless MLFLOW_MODEL_CATALOG_URI is empty, and retries a failing server up to
    eleven times, for three minutes.

    Examples
    --------
    >>> from agent_eval_schema import supported_scorers
    >>> scorers = supported_scorers("sample_data/good.jsonl")
    >>> "document_recall" in [scorer.name for scorer in scorers]
    True
    """
    from agent_eval_schema.integrations.mlflow.scorers import SCORERS

    report = report_on_rows(report_on(data, open_source(data, "data", columns)))
    own = [(Metric("agent_eval_schema", kind.__name__, kind.needs), kind) for kind in SCORERS]
    builtin = import_module("mlflow.genai.scorers")
    of_mlflow = [(metric, getattr(builtin, metric.name, None)) for metric in metrics_of("mlflow")]
    scorers, lines = [], []
    for metric, kind in [*of_mlflow, *own]:
        support = run_of(report).coverage_of(metric)
        outcome = _scorer_or_reason(metric, kind, support, model)
        is_scorer = not isinstance(outcome, str)
        scorers += [outcome] if is_scorer else []
        why = "" if is_scorer else outcome
        lines.append(ScorerLine(metric.name, metric.system, support.supported, support.total, is_scorer, why))
    return SupportedScorers(scorers, lines)


def _scorer_or_reason(metric: Metric, kind: Any, support: Support, model: str | None) -> Any:
    """A scorer, or the reason why it is excluded."""
    from agent_eval_schema.integrations.mlflow.scorers import Guarded, RowScorer

    if kind is None:
        return f"mlflow {import_module('mlflow').__version__} does not have it"
    if metric.name in ARGUMENTS:
        return f"needs {ARGUMENTS[metric.name]}: make it yourself"
    if not support.supported:
        return f"no row has all of its inputs; most lack {support.unlock}" if support.unlock else "no row is valid"
    if metric.judged and model is None:
        return NEEDS_JUDGE
    try:
        scorer = kind(model=model) if metric.judged else kind()
    except Exception as error:  # mlflow's own conditions: a platform, a package, the form of the model's name
        return f"mlflow cannot make it: {first_line(error)}"
    # a scorer of sessions is called with the rows of one, and MLflow groups only the rows that have one
    is_called_by_row = not getattr(scorer, "is_session_level_scorer", False)
    return Guarded(scorer, metric) if is_called_by_row and not isinstance(scorer, RowScorer) else scorer
