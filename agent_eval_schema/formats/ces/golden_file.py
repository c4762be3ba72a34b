"""Golden CSV files: read into evaluations, made from evaluations, and an empty template.

Reading never raises on invalid content: `GoldenFile.issues` reports each problem with the line of the file, and the
evaluations contain the parts that could be read. Writing (`golden_writer.py`) reports every value that the CSV cannot
represent as a loss."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.formats.ces.evaluation import Evaluation
from agent_eval_schema.formats.ces.golden_reader import GoldenReader
from agent_eval_schema.formats.ces.names import Names, with_names
from agent_eval_schema.io.csv import Record, csv_records, record_problem, text_records, wrong_byte, wrong_separator
from agent_eval_schema.issues import EvalSetError, EvalSetNotFoundError, Finding, Issue, Severity
from agent_eval_schema.rules import columns
from agent_eval_schema.runtime.gc_pause import gc_paused
from agent_eval_schema.text.choices import require_bool, require_kind
from agent_eval_schema.text.visible import visible


class GoldenFile(Struct, frozen=True):  # numpydoc ignore=PR01
    """The content of a golden CSV file.

    Attributes
    ----------
    evaluations : list of Evaluation
        The evaluations, in the order of the file.
    groups : dict of str to list of str
        The evaluation groups by the display name of the evaluation; an Evaluation has no field for them.
    issues : list of Issue
        The issues, with the 0-based row; the message contains the line of the file.
    starts : list of int
        The 0-based row on which each evaluation begins.

    See Also
    --------
    read_golden_csv : The function that returns the content.

    Examples
    --------
    >>> from agent_eval_schema import ces
    >>> file = ces.read_golden_csv("sample_data/golden.csv")
    >>> file.starts, file.groups["Leave balance"]
    ([0, 8, 14], ['Regression'])
    """

    evaluations: list[Evaluation]
    groups: dict[str, list[str]]
    issues: list[Issue]
    starts: list[int] = []

    @property
    def ok(self) -> bool:
        """Whether the file has no error.

        Returns
        -------
        bool
            True if no issue has the severity error.

        Examples
        --------
        >>> from agent_eval_schema import ces
        >>> ces.read_golden_csv("sample_data/golden_broken.csv").ok
        False
        """
        return not any(issue.severity is Severity.ERROR for issue in self.issues)


def read_golden_csv(
    source: str | bytes | os.PathLike[str], *, strict: bool = False, parent: str = "", names: Names | None = None
) -> GoldenFile:
    """Read the evaluations of a golden CSV file.

    Parameters
    ----------
    source : str, bytes or os.PathLike
        The path of the file, or its text.
    strict : bool, default False
        If True, raise EvalSetError for the first error of the content.
    parent : str, default ""
        The resource name of the app (`projects/.../apps/...`); evaluation IDs become resource names with it. The empty
        string keeps the IDs.
    names : mapping of str to str or None, default None
        Resource names of tools and agents by display name. None keeps the names of the file.

    Returns
    -------
    GoldenFile
        The evaluations and the issues of the file.

    Raises
    ------
    EvalSetNotFoundError
        The file does not exist.
    EvalSetError
        The file has no header in UTF-8; or it has an error and `strict` is True.

    See Also
    --------
    write_golden_csv : Write evaluations to a golden CSV file.

    Examples
    --------
    >>> from agent_eval_schema import ces
    >>> file = ces.read_golden_csv("sample_data/golden.csv")
    >>> [evaluation["displayName"] for evaluation in file.evaluations]
    ['Leave balance', 'Desk booking', 'Badge photo']
    """
    require_bool("strict", strict)
    with gc_paused():
        found = _read(_records_of(source), parent, names)
    if strict and not found.ok:
        first = next(issue for issue in found.issues if issue.severity is Severity.ERROR)
        raise EvalSetError(f"the golden CSV has errors, the first one: {first.code} {first.message}")
    return found


def _read(records: Iterator[Record], parent: str, names: Names | None) -> GoldenFile:
    header = [name.strip() for name in next(records, Record(1, [], "", "")).fields]
    reader = GoldenReader(header, parent=parent)
    lines: list[int] = []
    for row, record in enumerate(records):
        lines.append(record.line)
        problem = record_problem(header, record)
        if problem is not None:
            reader.note(row, problem)
            reader.skip(row)
        elif reader.is_readable:
            reader.read(row, record.fields)
    reader.finish()
    evaluations = [Evaluation(e if names is None else with_names(e, names)) for e in reader.evaluations]
    return GoldenFile(evaluations, reader.groups, _issues(reader, header, lines), reader.starts)


def _records_of(source: str | bytes | os.PathLike[str]) -> Iterator[Record]:
    """The records of a file, or of a text, which contains a line break."""
    if isinstance(source, str) and ("\n" in source or "\r" in source):
        source = source.encode("utf-8", "surrogatepass")
    if isinstance(source, bytes):
        return _with_header(text_records(source), "the text")
    expected = "a path (str or os.PathLike), or the text of a file (str or bytes)"
    require_kind("source", source, (str, os.PathLike), expected)
    path = os.fspath(source)
    if not os.path.isfile(path):
        raise EvalSetNotFoundError(f"{visible(path)}: no such file")
    return _with_header(csv_records(path), visible(path), path)


def _with_header(records: Iterator[Record], where: str, path: str = "") -> Iterator[Record]:
    """The same records; the first one must be readable, as it names the columns of the others."""
    head = next(records, None)
    problem = "an empty file" if head is None else head.error or wrong_byte(head.text)
    if head is None or problem:
        raise EvalSetError(f"{where}: line 1: expected a header row in UTF-8, got {problem}")
    wrong = wrong_separator(head.fields, path)
    if wrong:
        raise EvalSetError(f"{where}: line 1: {wrong}")
    return chain([head], records)


def _issues(reader: GoldenReader, header: list[str], lines: list[int]) -> list[Issue]:
    repeated = [name for i, name in enumerate(header) if name in header[:i]]
    doubled = [
        Finding(columns.DUPLICATE_COLUMN, f"expected one column `{name}`, got several", name)
        for name in dict.fromkeys(repeated)
    ]
    empty = [] if lines else [Finding(columns.NO_ROWS, "expected at least one row, got none")]
    of_rows = sorted(reader.findings.items())
    return [
        *(_on_line(finding, 1).issue() for finding in (*doubled, *reader.of_header)),
        *(_on_line(finding, lines[row]).issue(row) for row, findings in of_rows for finding in findings),
        *(_on_line(finding, 1).issue() for finding in empty),
    ]


def _on_line(finding: Finding, line: int) -> Finding:
    message = finding.message
    return finding if message.startswith("line ") else replace(finding, message=f"line {line}: {message}")
