"""Golden CSV files: read into evaluations, made from evaluations, and an empty template.

Reading never raises for what the file holds: `GoldenFile.issues` says with the file's line what is wrong, and the
evaluations are what could be read. Writing (`golden_writer.py`) never drops anything silently: what the CSV cannot say
is a loss.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain

from msgspec import Struct

from agent_eval_schema.formats.ces.evaluation import Evaluation
from agent_eval_schema.formats.ces.golden_reader import CellFinding, GoldenReader
from agent_eval_schema.formats.ces.names import Names, in_full, with_names
from agent_eval_schema.io.csv import Record, csv_records, record_problem, text_records, wrong_byte, wrong_separator
from agent_eval_schema.issues import EvalSetError, Issue, Severity
from agent_eval_schema.rules import columns
from agent_eval_schema.runtime.gc_pause import gc_paused
from agent_eval_schema.text.visible import visible


class GoldenFile(Struct, frozen=True):
    """What a golden CSV holds: its evaluations in the order of the file, the groups of each (by its display name, as
    an Evaluation cannot say them), what is wrong, by row and line of the file, and the row on which each evaluation
    begins."""

    evaluations: list[Evaluation]
    groups: dict[str, list[str]]
    issues: list[Issue]
    starts: list[int] = []

    @property
    def ok(self) -> bool:
        """Whether there is no error."""
        return not any(issue.severity is Severity.ERROR for issue in self.issues)


def read_golden_csv(
    source: str | bytes | os.PathLike[str], *, strict: bool = False, parent: str = "", names: Names | None = None
) -> GoldenFile:
    """The evaluations of a golden CSV (a path, or the text of one), and everything that is wrong with it.

    `parent` (`projects/…/apps/…`) makes resource names of evaluation ids; `names` maps display names to resource names
    of tools and agents. Without them names stay as they stand in the file, which is how app packages write them.

    Raises EvalSetError if there is no such file or no header in UTF-8; with `strict`, for the first error too.
    """
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
    broken: list[CellFinding] = []
    for row, record in enumerate(records):
        lines.append(record.line)
        problem = record_problem(header, record)
        if problem is not None:
            broken.append(CellFinding(row, problem.column, problem.rule, problem.message))
            reader.skip(row)
        elif reader.is_readable:
            reader.read(row, record.fields)
    reader.finish()
    return GoldenFile(
        _made(reader, names), reader.groups, _issues([*broken, *reader.findings], header, lines), reader.starts
    )


def _records_of(source: str | bytes | os.PathLike[str]) -> Iterator[Record]:
    """The records of a file or of a text, which a line break tells."""
    if isinstance(source, str) and ("\n" in source or "\r" in source):
        source = source.encode("utf-8", "surrogatepass")
    if isinstance(source, bytes):
        return _with_header(text_records(source), "the text")
    path = os.fspath(source)
    if not os.path.isfile(path):
        raise EvalSetError(f"{visible(path)}: no such file")
    return _with_header(csv_records(path), visible(path), path)


def _with_header(records: Iterator[Record], where: str, path: str = "") -> Iterator[Record]:
    """The same records; the first one must be readable, as it says what the others are."""
    head = next(records, None)
    problem = "an empty file" if head is None else head.error or wrong_byte(head.text)
    if head is None or problem:
        raise EvalSetError(f"{where}: line 1: expected a header row in UTF-8, got {problem}")
    wrong = wrong_separator(head.fields, path)
    if wrong:
        raise EvalSetError(f"{where}: line 1: {wrong}")
    return chain([head], records)


def _made(reader: GoldenReader, names: Names | None) -> list[Evaluation]:
    if names is None:
        return [Evaluation(made) for made in reader.evaluations]
    given = names
    return [
        Evaluation(with_names(made, lambda name, kind: in_full(name, kind, given) or name))
        for made in reader.evaluations
    ]


def _issues(findings: list[CellFinding], header: list[str], lines: list[int]) -> list[Issue]:
    repeated = [name for i, name in enumerate(header) if name in header[:i]]
    doubled = [
        CellFinding(None, name, columns.DUPLICATE_COLUMN, f"expected one column `{name}`, got several")
        for name in dict.fromkeys(repeated)
    ]
    ordered = sorted([*doubled, *findings], key=lambda f: -1 if f.row is None else f.row)
    if not lines:
        ordered.append(CellFinding(None, None, columns.NO_ROWS, "expected at least one row, got none"))
    return [_issue(finding, lines) for finding in ordered]


def _issue(finding: CellFinding, lines: list[int]) -> Issue:
    row, column, rule, message, hint, path = finding
    line = 1 if row is None else lines[row]
    said = message if message.startswith("line ") else f"line {line}: {message}"
    return Issue(row, None, column, path or column, rule.code, rule.name, rule.severity, said, hint or rule.hint)
