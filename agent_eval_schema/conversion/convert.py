"""One form of evaluation data → another, and everything that is lost on the way.

    data ──validate──▶ canonical rows ──write──▶ rows of the target ──read back──▶ canonical rows
                              └───────────────── compare ──────────────────────────────┘ → losses

There is no list of the losses of each pair of formats: the output is read back by the target's own reader, and each
difference is a loss (AE811, AE812). Values of a source row that no canonical column can represent are reported too
(AE813), and so is every row that is excluded because it is invalid, or the target rejects it (AE814). Rows of two
kinds, where its platform loads one, are written once more without the fewer. Between the two forms of Customer
Engagement Suite nothing goes by way of rows: their writer reports what a golden CSV cannot represent (AE80).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar, get_args

from agent_eval_schema.conversion.conversion import Conversion, cells_writer, document_writer, find_writer, write_rows
from agent_eval_schema.conversion.work import MixedKinds, Work, plan_of
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.formats.column_names import ColumnNames
from agent_eval_schema.formats.format import save_json
from agent_eval_schema.formats.names import TargetFormat
from agent_eval_schema.formats.opening import EvalSetLike, is_spark, open_source
from agent_eval_schema.formats.registry import InputFormat
from agent_eval_schema.io.locks import sole_writer
from agent_eval_schema.io.outputs import settle
from agent_eval_schema.io.places import is_url
from agent_eval_schema.io.source import Source
from agent_eval_schema.io.streams import STDIN, STDOUT
from agent_eval_schema.io.work_folder import PartsFolder
from agent_eval_schema.io.write import keeps_types, require_document_place, require_writable
from agent_eval_schema.runtime.version import __version__
from agent_eval_schema.text.choices import require_choice
from agent_eval_schema.validation.checked_run import CheckedRun
from agent_eval_schema.validation.plan import OnInvalid


def convert_eval_set(
    data: EvalSetLike,
    to: TargetFormat,
    *,
    format: InputFormat = "auto",
    columns: ColumnNames = None,
    on_invalid: OnInvalid = "drop",
) -> Conversion:
    """Convert an evaluation dataset to another format and report data loss.

    The output is read back, and each difference from the input is recorded in `losses`. Unknown columns are passed
    through.

    Parameters
    ----------
    data : EvalSetLike
        Any input of `validate_eval_set`; an ADK evalset can also be a dict.
    to : str
        The format of the output: `"adk"`, `"adk-legacy"`, `"agent-skills"`, `"agentcore"`, `"azure"`, `"bedrock"`,
        `"bedrock-rag"`, `"braintrust"`, `"ces-csv"`, `"ces-evaluation"`, `"databricks"`, `"deepeval"`, `"inspect"`,
        `"langfuse"`, `"langsmith"`, `"m365-copilot"`, `"mlflow"`, `"openai"`, `"phoenix"`, `"promptfoo"`,
        `"pydantic-evals"`, `"ragas"`, `"strands"`, `"vertex"` or `"vertex-genai"`. `"databricks"` is the canonical row.
    format : FormatName or "auto", default "auto"
        The format of the data. `"auto"` detects it from the column names.
    columns : mapping of str to str, {"auto"} or None, default None
        Canonical names of columns of the data, as in `validate_eval_set`.
    on_invalid : {"drop", "keep", "raise"}, default "drop"
        What happens with rows that the platform of the target rejects: those with an error by its rules, and where it
        loads rows of one kind per file, those of the less frequent kind. `"drop"` excludes them with the invalid rows
        of the data, and `losses` names them. `"keep"` converts and reports them. `"raise"` raises if a row would be
        excluded.

    Returns
    -------
    Conversion
        The converted data, the losses and the validation report of the input. Of a Spark DataFrame, `data` and `losses`
        are lazy Spark DataFrames; a target that is one document of all rows (`"adk"`) is not written there.

    Raises
    ------
    InvalidEvalSetError
        A row would be excluded and `on_invalid="raise"`.
    EvalSetError
        A format is not one of the allowed values, or the data cannot be read as a table.

    See Also
    --------
    prepare_for_evaluate : Return the rows in the form that an evaluator reads.

    Examples
    --------
    >>> from agent_eval_schema import convert_eval_set
    >>> data = [{"request": "What is Delta Lake?", "response": "A table format.", "guidelines": ["Be brief"]}]
    >>> conversion = convert_eval_set(data, "vertex")
    >>> conversion.data.iloc[0].to_dict()
    {'prompt': 'What is Delta Lake?', 'response': 'A table format.'}
    >>> conversion.losses[["row", "column"]]
       row      column
    0    0  guidelines
    """
    require_choice("on_invalid", on_invalid, get_args(OnInvalid))
    source = open_source(data, "data", columns, format=format)
    if is_spark(source.data):
        from agent_eval_schema.conversion.spark import convert_frame

        return convert_frame(source, to, on_invalid)
    work, converted = _worked(source, to, on_invalid, Work.target_data)
    return work.conversion(converted)


Result = TypeVar("Result")


def _worked(source: Source, to: str, on_invalid: OnInvalid, write: Callable[[Work], Result]) -> tuple[Work, Result]:
    """A conversion that is done, and what `write` returned of it. Rows of two kinds, where the target has only one, are
    known when all are written: they are written once more, without the fewer."""
    plan = plan_of(source, to)
    try:
        work = Work(CheckedRun(source, plan), to, on_invalid=on_invalid)
        return work, write(work)
    except MixedKinds as mixed:
        work = Work(CheckedRun(source, plan), to, on_invalid=on_invalid, kind=mixed.kind)
        return work, write(work)


def convert_file(
    path: str,
    out: str,
    to: str,
    *,
    format: str = "auto",
    columns: ColumnNames = None,
    resume: bool = False,
    on_invalid: OnInvalid = "drop",
) -> Conversion:
    """As `convert_eval_set`, from a file to a file, whose kind is that of its file extension: JSONL, JSON, CSV or
    Parquet for rows. `data` is None. Rows are streamed, unless input or output is a document. With `resume`, what is
    done is kept in a work folder, and what a run of the same job has left there is not done again. Raises EvalSetError
    if `out` cannot be written."""
    require_choice("on_invalid", on_invalid, get_args(OnInvalid))
    writer = find_writer(to)
    of_rows = document_writer(writer, out)
    if resume and (writer.save is not None or of_rows is not None or out == STDOUT or is_url(out) or path == STDIN):
        raise EvalSetError(f"{out}: --resume is of a file of rows on this machine, neither of stdin nor of a document")
    settle({"OUT": out}, {"IN": path})
    if writer.save is None:
        require_writable(out)
    else:
        require_document_place(out, writer.endings)
    source = open_source(path, "IN", columns, format=format)
    if writer.save is not None:
        work, document = _worked(source, to, on_invalid, Work.target_data)
        writer.save(document, out)
    elif of_rows is not None:
        work, document = _worked(source, to, on_invalid, partial(Work.document, of_rows=of_rows))
        save_json(document, out)
    else:
        run = {"target": to, "format": format, "columns": columns, "on_invalid": on_invalid, "version": __version__}
        if not resume and not is_url(out):
            PartsFolder.forget(out)
        with sole_writer([out] if resume else ()):
            parts = PartsFolder.of(out, source.name or path, "convert", run) if resume else None
            cells = cells_writer(writer, out), () if keeps_types(out) else writer.texts, parts

            def write(work: Work) -> str:
                return write_rows(source, out, work.lines, work.batches(*cells), work.schema(), writer)

            work, out = _worked(source, to, on_invalid, write)
            if parts is not None:
                parts.remove()
    return work.conversion(None, out)
