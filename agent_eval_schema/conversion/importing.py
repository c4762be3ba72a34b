"""A spreadsheet of a team → evaluation rows: what each column is, what the rows become, and the mapping for next time.

    support.xlsx                                        rows.jsonl
    Kundenfrage   Musterantwort   Wichtige Punkte  ─▶   {"inputs": …, "expectations": {"expected_facts": […]}}
                                                        rows.columns.toml: "Kundenfrage" = "request" …

Where two readings are possible there is a question, and none is guessed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import Any, Literal

import pyarrow as pa
from msgspec import Struct

from agent_eval_schema.cells.cells import native, native_rows
from agent_eval_schema.cells.edit import with_edits
from agent_eval_schema.conversion.conversion import Conversion
from agent_eval_schema.conversion.convert import convert_eval_set
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.formats.column_names import (
    PREFERRED,
    ColumnNames,
    likely_columns,
    preferred_in,
    with_changed_cells,
    with_preferred,
    without_auto,
    without_preferred,
)
from agent_eval_schema.formats.names import TargetFormat
from agent_eval_schema.formats.opening import EvalSetLike, open_source
from agent_eval_schema.formats.registry import UNKNOWN, detect
from agent_eval_schema.formats.suggestions import SAMPLED_ROWS, ambiguities, contents_of, reason_for, without_question
from agent_eval_schema.io.excel import is_excel, sheet_names
from agent_eval_schema.io.outputs import settle
from agent_eval_schema.io.source import Source, first_rows
from agent_eval_schema.io.streams import creating
from agent_eval_schema.issues import Issue
from agent_eval_schema.render.blocks import Block, Line, Section, Table, View
from agent_eval_schema.render.phrases import plural
from agent_eval_schema.render.printable import Printable
from agent_eval_schema.rule import Severity
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text.choices import path_of, require_choice
from agent_eval_schema.text.describe import truncate
from agent_eval_schema.text.jsontext import structured
from agent_eval_schema.text.spelling import is_unwritten

Truth = Literal["expected_facts", "expected_response"]


class UndecidedError(EvalSetError):  # numpydoc ignore=PR01
    """A question about a table that only a person can answer.

    Attributes
    ----------
    question : str
        The message without the options that answer it.
    choices : dict of str to dict
        The entries of `columns` for each answer.

    See Also
    --------
    import_eval_set : The function that raises it.

    Examples
    --------
    >>> from agent_eval_schema import UndecidedError, import_eval_set
    >>> try:
    ...     import_eval_set([{"question": "When?", "answer": "Now."}])
    ... except UndecidedError as error:
    ...     print(*error.choices.values())
    {'answer': 'expected_response'} {'answer': 'response'}
    """

    def __init__(self, message: str, choices: Mapping[str, Mapping[str, str]]) -> None:
        super().__init__(message)
        self.question, self.choices = message.rpartition(": use ")[0], choices


class EvalSetImport(Struct, Printable, frozen=True):  # numpydoc ignore=PR01
    """The result of an import: the rows, and what each column of the table was read as.

    Attributes
    ----------
    columns : dict of str to str
        The names of the columns, as `columns` of every function takes them.
    conversion : Conversion
        The rows in the target format, with the losses and the validation report.
    unused : dict of str to str
        The columns that no field was made of, each with what it has.

    See Also
    --------
    import_eval_set : The function that returns an import.

    Examples
    --------
    >>> from agent_eval_schema import import_eval_set
    >>> imported = import_eval_set([{"Frage": "Wann?", "Musterantwort": "Heute.", "Thema": "a"}])
    >>> imported.columns, list(imported.unused)
    ({'Frage': 'request', 'Musterantwort': 'expected_response'}, ['Thema'])
    """

    columns: dict[str, str]
    conversion: Conversion
    unused: dict[str, str]
    _name: str | None
    _sheets: dict[str, bool]
    _absent: dict[str, int]

    def write(self, path: str | os.PathLike[str]) -> int:
        """Write the rows to a file.

        Parameters
        ----------
        path : str or os.PathLike
            The path of the file, whose file extension selects the kind, as in `Conversion.write`.

        Returns
        -------
        int
            The number of rows in the file.

        Raises
        ------
        EvalSetError
            The file extension is not supported, or the file cannot be written.

        Examples
        --------
        >>> from agent_eval_schema import import_eval_set
        >>> import_eval_set([{"Frage": "Wann?", "Musterantwort": "Heute."}]).write("rows.jsonl")
        1
        """
        return self.conversion.write(path)

    def write_columns(self, path: str | os.PathLike[str]) -> None:
        """Write the names of the columns to a TOML file, as `--columns FILE` of every command takes it.

        Parameters
        ----------
        path : str or os.PathLike
            The path of the file. A file that no import wrote, or that was changed since, is not replaced.

        Raises
        ------
        EvalSetError
            The file is not one of an import, was changed, or cannot be written.

        Examples
        --------
        >>> from agent_eval_schema import import_eval_set
        >>> import_eval_set([{"Frage": "Wann?", "Musterantwort": "Heute."}]).write_columns("rows.columns.toml")
        >>> from pathlib import Path
        >>> print(Path("rows.columns.toml").read_text(encoding="utf-8"), end="")
        # Written by agent-eval-schema import: what each column of the table is read as (bf7c29ebd7ce)
        "Frage" = "request"
        "Musterantwort" = "expected_response"
        """
        out = path_of(path)
        settle({"": out}, {"the data": self._name})
        require_own(out)
        lines = [f"{json.dumps(p, ensure_ascii=False)} = {json.dumps(n)}\n" for p, n in self.columns.items()]
        text = "".join(lines).encode("utf-8", "replace")
        with creating(out) as file:
            file.write(_mark(text) + text)

    @property
    def _ok(self) -> bool:
        """Whether every row and column was imported."""
        errors = [issue for issue in self._of_the_table if issue.severity is Severity.ERROR]
        return self.conversion.converted == self.conversion.given and not errors

    @property
    def _of_the_table(self) -> list[Issue]:
        """The issues of the table as a whole: no rows, several columns of one name, formulas without a result."""
        issues = self.conversion.report.iter_issues()
        return [issue for issue in issues if issue.row is None and issue.severity is not Severity.INFO]

    def _view(self) -> View:
        rows = [[path, name, reason_for(path, name)] for path, name in without_preferred(self.columns).items()]
        rows += [[name, "not used", what] for name, what in self.unused.items()]
        blocks: list[Block] = [Section("columns", "Columns", [Table(["Column", "Read as", "Reason"], rows)])]
        if others := [title for title, is_read in self._sheets.items() if not is_read]:
            blocks.append(Line(f"Not read: {plural(len(others), 'other sheet')} of the file: {', '.join(others)}"))
        data = self.conversion.data
        first = data.head(_SHOWN).to_dict("records") if hasattr(data, "head") else data[:_SHOWN]
        filled = [{name: value for name, value in row.items() if value is not None} for row in first]
        texts = [truncate(json.dumps(row, ensure_ascii=False, default=str), _LONGEST) for row in filled]
        blocks.append(Section("rows", f"The first {plural(len(texts), 'row')}", [Line(text) for text in texts]))
        errors = (i for i in self.conversion.report.iter_issues() if i.severity is Severity.ERROR and i.row is not None)
        if reasons := [[f"row {i.row}", i.column or "", f"{i.code}: {i.message}"] for i in islice(errors, _LISTED)]:
            table = Table(["Row", "Column", "Reason"], reasons)
            blocks.append(Section("invalid", "Rows that were not imported", [table]))
        blocks += [Line(f"{i.code}: {i.message}", str(i.severity)) for i in self._of_the_table]
        if preferred := preferred_in(self.columns):
            blocks.append(Line(f"Rows with an answer and facts keep {preferred}."))
        absent = [f"{plural(n, 'placeholder')} of {name} read as absent" for name, n in self._absent.items()]
        verdict = f"{self.conversion.converted:,} of {plural(self.conversion.given, 'row')} imported"
        return View(
            title=f"Import to {self.conversion.target}",
            about=[],
            verdict=f"{verdict}{'; ' if absent else ''}{', '.join(absent)}",
            mood="good" if self._ok else "error",
            following=[],
            blocks=blocks,
            kind="import",
        )


def require_own(path: str) -> None:
    """Raise EvalSetError if the path is taken, unless by a mapping of an import that was not changed since."""
    if not os.path.lexists(path):
        return
    if os.path.isfile(path):
        with open(path, "rb") as file:
            mark, text = file.read(len(_mark(b""))), file.read(1 << 20)
        if mark == _mark(text):
            return
    raise EvalSetError(
        f"{path}: would be overwritten, and no import wrote it as it is: choose another path, or read it (`--columns`)"
    )


def _mark(text: bytes) -> bytes:
    """The first line of a mapping: what it is, and a hash of the rest, by which a change of a person is seen."""
    digest = hashlib.blake2b(text, digest_size=6).hexdigest()
    return f"# Written by agent-eval-schema import: what each column of the table is read as ({digest})\n".encode()


_SHOWN, _LONGEST, _LISTED = 3, 600, 20
"""The rows that are shown, the characters of each, and the errors that are listed."""


def import_eval_set(
    data: EvalSetLike, to: TargetFormat = "mlflow", *, columns: ColumnNames = None, prefer: Truth | None = None
) -> EvalSetImport:
    """Make evaluation rows of a table with columns of its own, such as the spreadsheet of a team.

    The columns are recognized by the words of their names, in fifteen languages, and by their cells. Facts are split at
    lines, bullets and separators, placeholders (`TBD`, `-`) are absent, and numbers are text. Of an Excel file the
    sheet with a question is read.

    Parameters
    ----------
    data : EvalSetLike
        Any input of `validate_eval_set`.
    to : str, default "mlflow"
        The format of the rows, as in `convert_eval_set`.
    columns : mapping of str to str, {"auto"} or None, default None
        The columns that are known, as in `validate_eval_set`; the others are recognized.
    prefer : {"expected_facts", "expected_response"} or None, default None
        What rows with an answer and facts keep.

    Returns
    -------
    EvalSetImport
        The rows, the names of the columns, and the columns that were not used.

    Raises
    ------
    EvalSetError
        No column has a question, or the data leaves a question open: which of two columns is meant, whose an answer
        is, or which ground truth rows with two kinds of it keep. The message has the options that answer it.

    See Also
    --------
    convert_eval_set : Convert rows of a known format.

    Examples
    --------
    >>> from agent_eval_schema import import_eval_set
    >>> rows = [{"Frage": "Wann?", "Musterantwort": "Heute.", "Wichtige Punkte": "heute; bis 18 Uhr"}]
    >>> imported = import_eval_set(rows, prefer="expected_facts")
    >>> imported.conversion.data.iloc[0]["expectations"]
    {'expected_facts': ['heute', 'bis 18 Uhr']}
    """
    known = dict(without_auto(columns)[0] or {})
    if prefer is not None:
        require_choice("prefer", prefer, ("expected_facts", "expected_response"))
        known[prefer] = PREFERRED
    sheets: dict[str, bool] = {}
    if isinstance(data, str | os.PathLike) and is_excel(os.fspath(data)):
        data, sheets = _sheet(os.fspath(data), known)
    source = open_source(data)
    names = _recognized(source, known)
    counts: dict[str, int] = {}
    read = open_source(source, "data", without_preferred(names))
    clean = partial(_cleaned, can_hold_objects=read.can_hold_objects, counts=counts)
    cleaned = with_changed_cells(read, clean, _CLEANED)
    both, absent = _with_both(cleaned), dict(counts)
    if preferred := preferred_in(names):
        cleaned = with_preferred(cleaned, preferred)
    elif both:
        raise _undecided(both, names)
    unused = [name for name in read.column_names() if name in source.column_names() and name not in COLUMNS]
    rows = [row for batch in first_rows(read, SAMPLED_ROWS) for row in native_rows(batch)]
    contents = contents_of(unused, rows)
    return EvalSetImport(names, convert_eval_set(cleaned, to), contents, source.name, sheets, absent)


_TRUTHS = ("expected_facts", "expected_response")
_TEXTS = ("request", "response", "expected_response", "request_id", "session_id")
_CLEANED = (*_TEXTS, "expected_facts", "guidelines")


def _sheet(name: str, known: Mapping[str, str]) -> tuple[str, dict[str, bool]]:
    """The sheet of a file whose columns have a question, if it is the only one; and which sheets are read."""
    titles = sheet_names(name)
    asking = [title for title in titles if len(titles) > 1 and _asks(f"{name}#{title}", known)]
    if len(asking) != 1:
        return name, {}
    return f"{name}#{asking[0]}", {title: title in asking for title in titles}


def _asks(name: str, known: Mapping[str, str]) -> bool:
    try:
        return bool(_recognized(open_source(name), known))
    except UndecidedError:
        return True
    except EvalSetError:
        return False


def _recognized(source: Source, known: Mapping[str, str]) -> dict[str, str]:
    """The names of the columns: those that are known, and of the others what they look like."""
    named = open_source(source, "data", without_preferred(known))
    names = named.column_names()
    format = detect(names).format
    columns = {**known, **likely_columns(named, format or UNKNOWN.name).columns}
    for one in ambiguities(names):
        choices = {f"`{path}` as `{name}`": {path: name} for choice in one.choices for path, name in choice.items()}
        raise UndecidedError(one.message(columns), choices)
    if format in (None, "databricks") and (message := without_question(names, columns)):
        if not any(batch.num_rows for batch in first_rows(named, 1)):
            raise EvalSetError(f"{source.name or 'data'}: expected at least one row, got none")
        raise EvalSetError(message)
    return columns


def _with_both(source: Source) -> int:
    """The number of rows with an answer and facts."""
    count = 0
    for batch in source.batches():
        if set(_TRUTHS).issubset(batch.schema.names):
            cells = (native(batch, batch.schema.get_field_index(name)) for name in _TRUTHS)
            count += sum(all(pair) for pair in zip(*cells, strict=True))
    return count


def _undecided(both: int, names: Mapping[str, str]) -> UndecidedError:
    origins = {name.partition("[")[0]: path for path, name in names.items()}
    called = {name: f"`{name}` ({origins[name]})" if name in origins else f"`{name}`" for name in _TRUTHS}
    facts, answer = (called[name] for name in _TRUTHS)
    message = (
        f"{plural(both, 'row')} with {answer} and {facts}: expected one kind of ground truth per row: "
        'use `--prefer expected_facts` or `--prefer expected_response` (`prefer="expected_facts"` …)'
    )
    return UndecidedError(message, {called[name]: {name: PREFERRED} for name in _TRUTHS})


def _cleaned(batch: pa.RecordBatch, can_hold_objects: bool, counts: dict[str, int]) -> pa.RecordBatch:
    """The batch without placeholders of ground truth, and with numbers as text."""
    cells: dict[str, dict[int, Any]] = {}
    for name in _CLEANED:
        if (at := batch.schema.get_field_index(name)) < 0:
            continue
        for row, value in enumerate(native(batch, at)):
            if type(value) in (int, float) and name in _TEXTS:
                is_whole = isinstance(value, float) and value.is_integer()  # as pandas makes of a column with gaps
                cells.setdefault(name, {})[row] = str(int(value) if is_whole else value)
            elif name in ("response", "expected_response", "expected_facts", "guidelines"):
                written = _written(value)
                if written is not value:
                    cells.setdefault(name, {})[row] = written
                    counts[name] = counts.get(name, 0) + 1
    return with_edits(batch, cells, can_hold_objects)


def _written(value: Any) -> Any:
    """A text, or the texts of a list, that are no placeholders; the same value if there is none."""
    content = structured(value)
    if isinstance(content, str):
        return None if is_unwritten(content) and content.strip() else value
    if not isinstance(content, list):
        return value
    written = [text for text in content if not (isinstance(text, str) and is_unwritten(text))]
    return value if len(written) == len(content) else written or None
