"""An evaluation dataset in any format → exactly the DataFrame that an evaluator reads (frames.py), of the rows that are
valid."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, get_args, overload

import numpy as np
import pandas as pd
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.cells.sizes import one_batch
from agent_eval_schema.errors import EvalSetError, warn_caller
from agent_eval_schema.evaluation.mlflow_run import KEYS_TAG, ROW_TAG
from agent_eval_schema.evaluation.row_keys import keys_as_text, row_keys
from agent_eval_schema.formats.column_names import ColumnNames
from agent_eval_schema.formats.mlflow import is_test_case
from agent_eval_schema.formats.opening import EvalSetLike, LocalEvalSet, SparkFrame, is_spark, open_source
from agent_eval_schema.formats.registry import InputFormat, find_format, require_rows
from agent_eval_schema.formats.shapes import expects_calls_of_session
from agent_eval_schema.integrations.mlflow.frames import (
    EVALUATORS,
    FRAMES,
    INPUTS,
    TRACE_STATE,
    Columns,
    Evaluator,
    Inputs,
    Omitted,
    cells_of,
    columns_of,
    excluded,
    of_two_kinds,
    omitted,
    read_by_frames,
    reduced,
)
from agent_eval_schema.io.source import Source
from agent_eval_schema.rule import Severity
from agent_eval_schema.rules import RULES
from agent_eval_schema.runtime.gc_pause import gc_paused
from agent_eval_schema.text.choices import require_choice
from agent_eval_schema.text.describe import first_names
from agent_eval_schema.validation.checked_run import CheckedRun
from agent_eval_schema.validation.fill_from_traces import trace_texts
from agent_eval_schema.validation.plan import OnInvalid, Outputs, make_plan
from agent_eval_schema.validation.report import InvalidEvalSetError, Report, run_of
from agent_eval_schema.validation.validate import check_source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from typing_extensions import Unpack


class ReducedInputsWarning(UserWarning):
    """The inputs of a prepared DataFrame omit a part of some requests.

    The message names the rows and the option that preserves the whole request.

    See Also
    --------
    prepare_for_evaluate : The function that emits the warning.

    Examples
    --------
    >>> import warnings
    >>> from agent_eval_schema import ReducedInputsWarning, prepare_for_evaluate
    >>> chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", ReducedInputsWarning)
    ...     frame = prepare_for_evaluate([{"request": {"messages": chat}, "response": "Hello!"}], inputs="question")
    >>> frame["inputs"][0]
    {'question': 'Hi'}
    """


class InvalidRowsWarning(UserWarning):
    """A prepared DataFrame excludes invalid rows, keeps them with missing cells, or has rows of two kinds.

    See Also
    --------
    prepare_for_evaluate : The function that emits the warning.

    Examples
    --------
    >>> import warnings
    >>> from agent_eval_schema import InvalidRowsWarning, prepare_for_evaluate
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", InvalidRowsWarning)
    ...     frame = prepare_for_evaluate([{"request": "Hi", "response": "Hello!"}, {"request": " ", "response": "?"}])
    >>> len(frame)
    1
    """


class Prepared(Struct, frozen=True):
    """A frame for an evaluator; the report on all of the input; the request_id of each row of the input; and the
    0-based positions in the input of the rows that are in the frame; what its inputs lack of the requests; whether
    they are of two kinds; and the canonical rows of the frame."""

    frame: pd.DataFrame
    report: Report
    request_ids: list[str | None]
    positions: list[int]
    reduced: str
    mixed: str
    rows: pa.Table

    def tag_rows(self) -> None:
        """Add the tags by which a run of MLflow is the same rows: their positions, and what makes them depend on
        others."""
        keys = row_keys(one_batch(self.rows.to_batches()))
        texts = keys_as_text(keys) if keys is not None else []
        own: Iterable[dict[str, str]] = self.frame["tags"] if "tags" in self.frame else [{}] * len(self.frame)
        rows = zip(own, self.positions, texts, strict=True)
        tags = [{**tags, ROW_TAG: str(row), KEYS_TAG: key} for tags, row, key in rows]
        self.frame["tags"] = pd.Series(tags, self.frame.index, dtype="object")


class _Preparing(TypedDict, total=False):
    """The options of the overloads; the function has their defaults."""

    evaluator: Evaluator
    inputs: Inputs
    on_invalid: OnInvalid
    format: InputFormat
    outputs: Outputs
    columns: ColumnNames


@overload
def prepare_for_evaluate(data: LocalEvalSet, **options: Unpack[_Preparing]) -> pd.DataFrame: ...
@overload
def prepare_for_evaluate(data: SparkFrame, **options: Unpack[_Preparing]) -> DataFrame: ...
@overload
def prepare_for_evaluate(data: EvalSetLike, **options: Unpack[_Preparing]) -> Any: ...
def prepare_for_evaluate(
    data: EvalSetLike,
    *,
    evaluator: Evaluator = "mlflow.genai",
    inputs: Inputs = "auto",
    on_invalid: OnInvalid = "drop",
    format: InputFormat = "auto",
    outputs: Outputs = "auto",
    columns: ColumnNames = None,
) -> Any:
    """Return the rows of an evaluation dataset as the DataFrame that an evaluator reads.

    Parameters
    ----------
    data : EvalSetLike
        Any input of `validate_eval_set`, except files of Google Customer Engagement Suite (use
        `convert_eval_set(data, "databricks").data`). The data is not changed.
    evaluator : {"mlflow.genai", "databricks-agent", "mlflow.evaluate", "vertex"}, default "mlflow.genai"
        The reader of the DataFrame: `mlflow.genai.evaluate`; `mlflow.evaluate(model_type="databricks-agent")`;
        `mlflow.models.evaluate` with `mlflow_metrics`; or `EvalTask` and the Vertex AI trajectory metrics.
    inputs : {"auto", "messages", "query", "question"}, default "auto"
        The form of the column `inputs` for `"mlflow.genai"`, and therefore the arguments of `predict_fn`. `"messages"`:
        `{"messages": [...]}`. `"query"`: `{"query": ..., "history": [...]}`. `"question"`: `{"question": ...}`.
        `"auto"` preserves the objects of data that has `inputs`, and requests with other keys such as `temperature`;
        all other requests become messages.
    on_invalid : {"drop", "keep", "raise"}, default "drop"
        What to do with invalid rows. `"drop"` excludes them. `"keep"` keeps them; cells that cannot be read are None.
        `"raise"` raises InvalidEvalSetError.
    format : FormatName or "auto", default "auto"
        The format of the data. `"auto"` detects it from the column names.
    outputs : {"auto", "provided", "generated"}, default "auto"
        Whether the agent's outputs are in the data, as in `validate_eval_set`. With `"generated"` the DataFrame has
        neither outputs nor traces.
    columns : mapping of str to str, {"auto"} or None, default None
        Canonical names of columns of the data, as in `validate_eval_set`.

    Returns
    -------
    pandas.DataFrame or pyspark.sql.DataFrame
        One row per row that is not excluded, in order. The index is that of the data if it is a DataFrame, otherwise
        the 0-based positions. For `"mlflow.genai"` the columns are `inputs`, and as far as the data has them `outputs`,
        `expectations`, `trace`, `tags` and `request_id`; their dtype is object, and their cells are plain Python
        values. Data with sessions has tags by which a comparison of runs finds its independent units. Of a Spark
        DataFrame, a lazy one, whose objects and lists are JSON text, as MLflow reads them there.

    Raises
    ------
    InvalidEvalSetError
        There are invalid rows, or test cases of a simulated user beside other rows, and `on_invalid="raise"`.
    EvalSetError
        An option is not one of the allowed values, the data cannot be read, or there is no row to evaluate.

    Warns
    -----
    InvalidRowsWarning
        Invalid rows were excluded, or kept with `on_invalid="keep"`; or test cases of a simulated user are beside other
        rows.
    ReducedInputsWarning
        The form of `inputs` omits a part of some requests.

    See Also
    --------
    evaluate_eval_set : Prepare, evaluate, and join the scores to the rows.
    write_eval_set : Write the DataFrame to a file, with lists and objects as JSON text.

    Examples
    --------
    >>> from agent_eval_schema import prepare_for_evaluate
    >>> data = [{"request": "What is Delta Lake?", "response": "A table format.", "expected_facts": ["It is a format"]}]
    >>> frame = prepare_for_evaluate(data, inputs="question")
    >>> frame.columns.tolist()
    ['inputs', 'outputs', 'expectations']
    >>> frame["inputs"][0], frame["expectations"][0]
    ({'question': 'What is Delta Lake?'}, {'expected_facts': ['It is a format']})
    """
    require_choice("on_invalid", on_invalid, get_args(OnInvalid))
    source = open_source(data, "data", columns, format=format, outputs=outputs)
    if is_spark(source.data):
        from agent_eval_schema.integrations.mlflow.prepare_spark import prepare_frame

        require_choice("evaluator", evaluator, EVALUATORS)
        require_choice("inputs", inputs, INPUTS)
        frame, invalid, mixed, reduced = prepare_frame(source, evaluator, inputs, on_invalid)
        _warn(invalid, mixed, reduced)
        return frame
    try:
        prepared = prepare(
            source, evaluator=evaluator, inputs=inputs, keep=on_invalid == "keep", figures=evaluator != "mlflow.genai"
        )
    except InvalidEvalSetError:  # no row is valid
        if on_invalid == "raise":
            raise InvalidEvalSetError(check_source(source, complete=True)) from None
        raise
    if on_invalid == "raise" and not (prepared.report.ok and not prepared.mixed):
        report = check_source(source, complete=True)
        raise InvalidEvalSetError(report, prepared.mixed if report.ok else "")
    invalid = ""
    if not prepared.report.ok:
        first, call = np.flatnonzero(~prepared.report.valid_mask)[0], run_of(prepared.report).call
        counts = prepared.report.invalid_count, prepared.report.row_count
        invalid = excluded(*counts, on_invalid, f", the first at position {first}: see {call.validation()}")
    _warn(invalid, prepared.mixed, prepared.reduced)
    return prepared.frame


def _warn(invalid: str, mixed: str, reduced: str) -> None:
    """Warn the caller of `prepare_for_evaluate`, if there is something to warn of."""
    for what in filter(None, (invalid, mixed)):
        warn_caller(what, InvalidRowsWarning)
    if reduced:
        warn_caller(reduced, ReducedInputsWarning)


def prepare(
    data: Any,
    *,
    evaluator: Evaluator = "mlflow.genai",
    inputs: Inputs = "auto",
    keep: bool = False,
    figures: bool = True,
) -> Prepared:
    """As `prepare_for_evaluate`, with the report and the positions of the excluded rows. `keep` keeps invalid rows;
    without `figures` the report lacks those of traces."""
    source = open_source(data)
    require_choice("evaluator", evaluator, EVALUATORS)
    require_choice("inputs", inputs, INPUTS)
    plan = make_plan(source, complete=True)
    require_rows(plan.format)
    beside = evaluator == "mlflow.genai"  # which reads the traces itself
    run = CheckedRun(source, replace(plan, columns=True, beside_traces=beside, figures=figures))
    with gc_paused():
        batches = [read_by_frames(checked) for checked in run.batches()]
        report = Report(run)
        valid = np.ones_like(report.valid_mask) if keep else report.valid_mask
        if not valid.any():
            if not report.row_count:
                raise EvalSetError("no row to evaluate: the data has none")
            errors = {code: n for code, n in report.counts.items() if RULES[code].severity is Severity.ERROR}
            code = max(errors, key=errors.__getitem__)
            why = f"{report.invalid_count:,} of {report.row_count:,} are invalid"
            why += f" (most often {code} {RULES[code].name}): see {run.call.validation()}"
            raise InvalidEvalSetError(report, f"no row to evaluate: {why}")
        # the valid rows as Python values; a canonical column without any value is not there
        rows = pa.Table.from_batches(batches)
        rows = rows if valid.all() else rows.filter(pa.array(valid))
        columns = columns_of(rows)
    positions = np.flatnonzero(valid).tolist()
    is_of_session = find_format(plan.format).calls_of == "session"
    of_sessions = _without_calls_of_sessions(columns, positions) if is_of_session else ""
    if beside and any(state is not None for state in columns[TRACE_STATE]):
        plain = all(columns[TRACE_STATE])
        columns["trace"] = _trace_cells(run.source, find_format(plan.format).read, valid, plain)
    frame = FRAMES[evaluator](columns, plan.outputs, inputs)
    frame.index = run.index[valid]
    ids = [id for batch in batches for id in batch.column("request_id").to_pylist()]
    chats, others = omitted(columns, positions)
    keys = dict.fromkeys(key for keys in others.values() for key in keys)
    both = Omitted(len(chats), chats), Omitted(len(others), list(others), keys)
    less = "; ".join(filter(None, [reduced(*both, len(positions), evaluator, inputs), of_sessions]))
    generates = plan.outputs == "generated" and inputs == "auto"
    cases = [p for p, cell in zip(positions, cells_of(columns, "inputs"), strict=True) if is_test_case(cell)]
    mixed = of_two_kinds(len(cases), len(positions), cases) if beside and generates else ""
    prepared = Prepared(frame, report, ids, positions, less, mixed, rows)
    if beside and "session_id" in columns and "inputs" in frame:  # which MLflow keeps for no call of an agent
        prepared.tag_rows()
    return prepared


def _without_calls_of_sessions(columns: Columns, positions: Sequence[int]) -> str:
    """Take out the expected calls that are those of several turns, as an evaluator compares them with the calls of one;
    returns the text of the warning, "" if there are none."""
    names = "request", "reference_trajectory"
    rows = (dict(zip(names, row, strict=True)) for row in zip(*(cells_of(columns, n) for n in names), strict=True))
    places = [i for i, row in enumerate(rows) if expects_calls_of_session(row)]
    for i in places:
        columns["reference_trajectory"][i] = None
    where = first_names([positions[i] for i in places], 10)
    return f"expected calls of whole sessions are omitted (at the positions {where}): use EvalTask" if places else ""


def _trace_cells(
    source: Source, read: Callable[[pa.RecordBatch], pa.RecordBatch], valid: np.ndarray[Any, Any], plain: bool
) -> Any:
    """The JSON texts of the traces; those of a DataFrame are not copied.

    A text column of `plain` traces of the current MLflow is not converted into Python texts: data from Parquet stays in
    Arrow.
    """
    original = source.original("trace") if source.original is not None and source.kind == "pandas" else None
    if plain and original is not None and isinstance(original.dtype, pd.StringDtype):
        return original[valid].reset_index(drop=True)
    texts = original.tolist() if original is not None else []
    if set(map(type, texts)) != {str}:
        texts = [t for b in source.batches() for t in trace_texts(read(b))]
    return texts if valid.all() else list(itertools.compress(texts, valid))
