"""CSV after RFC 4180 → batches; every cell is text, a blank one is absent. Problems name the line of the file."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, takewhile
from typing import IO, Any, NamedTuple

import msgspec
import pyarrow as pa

from agent_eval_schema.cells.batch import is_json_column, make_batch
from agent_eval_schema.cells.notes import Notes
from agent_eval_schema.cells.numbers import infinity
from agent_eval_schema.errors import EvalSetError, FormulaWarning, warn_caller
from agent_eval_schema.io.arrow import as_text, canonical_values
from agent_eval_schema.io.jsonl import encode_json
from agent_eval_schema.io.source import grouped
from agent_eval_schema.io.streams import (
    CHUNK,
    DROPPED,
    Edits,
    Position,
    Renames,
    creating,
    most_unpacked,
    opened,
    too_large,
)
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules import reading
from agent_eval_schema.rules.columns import LINES_ABOVE_HEADER, SHORT_LINE
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.privacy import byte_name

# --- where the header is in a table that people made: below a title, and the blank lines that set it off
#
#     Test cases of the help desk                title: one cell, above lines of more
#
#     No.   Question          Answer             header
#     1     How do I …?       With …
LOOKED_AT = 20
"""The lines among which the header is."""


def header_at(lines: Sequence[Sequence[Any]]) -> int:
    """The place of the header in the first lines of a table, each with its filled cells: below lines of one cell,
    if most lines below it have more and its cells are names; else 0."""
    at = next((i for i, line in enumerate(lines) if len(line) > 1), 0)
    below = [line for line in lines[at + 1 :] if line]
    are_wide = 2 * sum(len(line) > 1 for line in below) > len(below)
    is_wide = 2 * len(lines[at]) > max(map(len, below), default=0) if at else False
    return at if is_wide and are_wide and all(map(_is_name, lines[at])) else 0


def _is_name(cell: Any) -> bool:
    """Whether a cell can be the name of a column: a short text that is no sentence, and no part of one."""
    is_short = isinstance(cell, str) and len(cell) <= _LONGEST
    return is_short and cell[:1] != " " and not (" " in cell and cell.endswith((".", "?", "!")))


_LONGEST = 60


def above_header(count: int) -> tuple[Finding, ...]:
    """The issue of the lines above the header."""
    message = "1 line above the header is no row" if count == 1 else f"{count} lines above the header are no rows"
    return (Finding(LINES_ABOVE_HEADER, message),) if count else ()


# --- records
class Record(NamedTuple):
    """One record of a CSV file: the line where it starts, its fields, its text, and its problem."""

    line: int
    fields: list[str]
    text: str
    error: str


def csv_batches(path: str, position: Position | None = None) -> Iterator[pa.RecordBatch]:
    return (csv_batch(header, records) for header, records in csv_chunks(path, position))


def csv_chunks(path: str, position: Position | None = None) -> Iterator[tuple[list[str], list[Record]]]:
    """The header with the records of each batch."""
    records = csv_records(path, position=position)
    header = _header(path, records)
    yield from ((header, rows) for rows in grouped(records, lambda record: len(record.text)))


def text_records(text: bytes) -> Iterator[Record]:
    """All records of the text of a CSV file, the header first."""
    return _records(io.BytesIO(text), "", comma=",")


def csv_records(
    path: str, *, blanks: bool = False, comma: str = "", position: Position | None = None
) -> Iterator[Record]:
    """All records, the header first; with `blanks` the blank lines too, which have no fields. Without a `comma` the
    delimiter is that of the header."""
    with opened(path, position) as stream:
        yield from _records(stream, path, blanks, comma)


def csv_lines(path: str) -> Iterator[int]:
    """The line of the file on which each row begins: a quoted field may hold newlines."""
    return (record.line for record in islice(csv_records(path), 1, None))


def csv_above(path: str) -> int:
    """The number of lines with text above the header."""
    above = takewhile(lambda record: not record.fields, csv_records(path, blanks=True))
    return sum(_NAMED.fullmatch(record.text) is None and record.text.strip(" \t\r\n,;|") != "" for record in above)


def csv_columns(path: str) -> list[str]:
    return _header(path, csv_records(path))


def _header(path: str, records: Iterator[Record]) -> list[str]:
    first = next(records, Record(1, [], "", ""))
    if first.error:
        raise EvalSetError(f"{path}: line 1: the header cannot be read: {first.error}")
    if wrong := wrong_byte(first.text):
        raise EvalSetError(f"{path}: line 1: expected UTF-8 in the header, got {wrong}: save the file as UTF-8")
    return [n.strip() for n in first.fields]


def _delimiter(header: str, path: str) -> str:
    """The delimiter: that of the file's name, or another that separates the header into names, as in some countries."""
    usual = "\t" if ".tsv" in path.lower() else ","
    found = None if usual in _QUOTED.sub("", header) else _SEPARATED.fullmatch(header.strip())
    return usual if found is None else found[1]


def wrong_separator(header: list[str]) -> str:
    """The problem of a header with another separator than commas."""
    used = _delimiter(header[0], "") if len(header) == 1 else ","
    if used == ",":
        return ""
    return f"expected commas between the columns, got {_SEPARATORS[used]}: save the file with commas"


_QUOTED = re.compile(r'"[^"]*"')
_NAMED = re.compile(r'"?sep=([,;|\t])"?[\r\n]*')
"""The first line by which a spreadsheet names the separator of a file: no row, and no header."""
_NAME = r'(?:"[^"]*"|\w[^;,|\t"]*)'
_SEPARATED = re.compile(rf"{_NAME}([;,|\t]){_NAME}(?:\1(?:{_NAME})?)*")
_SEPARATORS = {";": "semicolons", "|": "bars", "\t": "tabs"}


def _records(stream: IO[bytes], path: str, blanks: bool = False, comma: str = "") -> Iterator[Record]:
    """The records one by one. Blank lines are not records."""
    csv.field_size_limit(1 << 30)
    lines = _TextLines(stream, path)
    may_have_title, above = comma == "", list[str]()
    if (named := _NAMED.fullmatch(lines.first())) and comma in ("", named[1]):
        comma = named[1]
        above.append(next(lines))
    above += [next(lines) for _ in range(_above_header(lines, comma, path) if may_have_title else 0)]
    yield from (Record(number, [], text, "") for number, text in enumerate(above, 1) if blanks)
    reader = csv.reader(lines, delimiter=comma or _delimiter(lines.first(), path), strict=True)
    while True:
        lines.taken.clear()
        start = lines.number + 1
        try:
            fields = next(reader, None)
        except csv.Error as error:
            yield Record(start, [], "".join(lines.taken), str(error))
            continue
        if fields is None:
            return
        if lines.nul and fields:
            fields = [f.replace(_NUL, "\0") for f in fields]
        if fields or blanks:
            yield Record(start, fields, "".join(lines.taken), "")


def _above_header(lines: _TextLines, comma: str, path: str) -> int:
    """The number of lines above the header, which is the first line unless that is a title of one cell."""
    first = lines.first()
    if len(_filled(first, comma or _delimiter(first, path))) > 1:
        return 0
    texts = lines.ahead
    if first.strip().isidentifier() and "".join(texts[texts.index(first) + 1 :][:1]).strip():
        return 0  # the name of the one column
    comma = comma or next((c for c in (_delimiter(text, path) for text in texts) if any(c in t for t in texts)), ",")
    rows = {i: cells for i, text in enumerate(texts) if (cells := _filled(text, comma))}
    return list(rows)[header_at(list(rows.values()))] if rows else 0


def _filled(text: str, comma: str) -> list[str]:
    """The cells of a line that are not blank; none of a line with NUL, which the csv module of Python 3.10 rejects."""
    lines = [text.rstrip("\r\n").replace("\0", "")]
    return [cell for cell in next(csv.reader(lines, delimiter=comma), []) if cell.strip()]


class _TextLines:
    """The lines of a byte stream as text, remembered for error messages; a wrong byte stays visible as a surrogate."""

    def __init__(self, stream: IO[bytes], path: str = "") -> None:
        # newline="": a quoted newline stays as it is, and only \n, \r and \r\n end a line
        self._lines = io.TextIOWrapper(stream, "utf-8-sig", "surrogateescape", newline="")
        self._path, self._most = path, most_unpacked(path)
        self._size = self.number = 0
        self.nul = False
        self.taken: list[str] = []
        self.ahead: list[str] = []
        """The first lines, which are read again."""
        while len(self.ahead) < LOOKED_AT and sum(map(len, self.ahead)) < CHUNK:
            if not (line := self._lines.readline(self._most)):
                break
            self.ahead.append(line)

    def first(self) -> str:
        """The first line that is not blank."""
        return next((line for line in self.ahead if line.strip()), "")

    def __iter__(self) -> _TextLines:
        return self

    def __next__(self) -> str:
        line = self.ahead.pop(0) if self.ahead else self._lines.readline(self._most)
        if not line:
            raise StopIteration
        self._size = self._size + len(line) if self.taken else len(line)
        if self._size >= self._most > 0:
            raise too_large(self._path)
        self.number += 1
        self.taken.append(line)
        if "\0" in line:  # which the csv module of Python 3.10 rejects
            self.nul = True
            return line.replace("\0", _NUL)
        return line


_NUL = "\U0010fffe"
"""The placeholder for NUL while the csv module reads: a code point that Unicode does not assign."""


def csv_batch(header: list[str], records: list[Record]) -> pa.RecordBatch:
    problems: Notes = {}
    rows: list[list[str]] = []
    lines: dict[int, str] = {}
    for i, record in enumerate(records):
        count, record = len(record.fields), _completed(record, len(header))
        problem = record_problem(header, record)
        if problem is None and count < len(header):
            message = f"line {record.line} has {count} fields, the header has {len(header)}"
            problems[i] = [Finding(SHORT_LINE, message)]
        elif problem is not None:
            problems[i] = [problem]
            lines[i] = record.text.rstrip("\r\n").encode("utf-8", "replace").decode()
        rows.append(record.fields if problem is None else [""] * len(header))
    places = {n: c for c, n in reversed(list(enumerate(header)))}
    columns = {
        name: (pa.array([row[places[name]] or None for row in rows], pa.string()), False)
        for name in dict.fromkeys(header)
    }
    return make_batch(columns, problems, len(rows), lines)


def _completed(record: Record, size: int) -> Record:
    """A record of fewer fields with the absent ones, unless it has several lines: then a quote may be open."""
    lacks = size - len(record.fields)
    is_line = not record.error and "\n" not in record.text.rstrip("\r\n")
    return record._replace(fields=[*record.fields, *[""] * lacks]) if lacks > 0 and is_line else record


def record_problem(header: list[str], record: Record) -> Finding | None:
    """Why a record is not a row, if it is not."""
    where = f"line {record.line}"
    if record.error:
        return Finding(reading.MALFORMED_ROW, f"{where}: expected CSV after RFC 4180, got: {record.error}")
    if len(record.fields) != len(header):
        message = f"{where} has {len(record.fields)} fields, the header has {len(header)}"
        return Finding(reading.MALFORMED_ROW, message)
    if record.text.isascii() or not _WRONG_BYTE.search(record.text):
        return None
    for name, field in zip(header, record.fields, strict=True):
        if wrong := wrong_byte(field):
            return Finding(reading.NOT_UTF8, f"{where}: expected UTF-8 in `{name}`, got {wrong}")
    return None


def wrong_byte(text: str) -> str:
    """The first byte that was not UTF-8, which Python keeps as a surrogate."""
    wrong = _WRONG_BYTE.search(text) if not text.isascii() else None
    return byte_name(ord(wrong.group()) - 0xDC00) if wrong else ""


_WRONG_BYTE = re.compile("[\udc80-\udcff]")


class Formulas:
    """The cells of a CSV file that a spreadsheet reads as formulas, counted while they are written."""

    def __init__(self) -> None:
        self.count = 0
        self._first = ""

    def count_in(self, name: str, cells: Sequence[str | None], start: int) -> None:
        """Count those of a column, whose first cell is in this row; the column's name is a cell too."""
        rows = [i for i, cell in enumerate(cells) if cell and cell[0] in _FORMULA_SIGNS and is_formula(cell)]
        if rows and not self._first:
            self._first = f"row {start + rows[0]}, column `{name}`" if start >= 0 else "the header"
        self.count += len(rows)

    def warn(self, path: str) -> None:
        """Emit FormulaWarning if there are any: how many, where the first one is, and what to do."""
        if not self.count:
            return
        what = "1 cell as a formula" if self.count == 1 else f"{self.count:,} cells as formulas"
        first = f"the first one in {self._first}: open the file as text, or write .jsonl"
        warn_caller(f"{path}: a spreadsheet reads {what}, {first}", FormulaWarning)


_FORMULA_SIGNS = frozenset("=+-@\t\r")


def is_formula(cell: str) -> bool:
    """Whether a spreadsheet runs a cell, or shows an error in its place; `-3.5` and a sign alone are no formulas."""
    return len(cell) > 1 and cell[0] in _FORMULA_SIGNS and not _NUMBER.fullmatch(cell)


_NUMBER = re.compile(r"[+-](?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def formulas_in(path: str) -> Formulas:
    """The cells of a file that a spreadsheet reads as formulas."""
    formulas, start = Formulas(), 0
    for header, records in csv_chunks(path):
        if not start:
            formulas.count_in("", header, -1)
        for c, name in enumerate(header):
            formulas.count_in(name, [r.fields[c] if c < len(r.fields) else None for r in records], start)
        start += len(records)
    return formulas


def write_csv(path: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema, formulas: Formulas | None = None) -> int:
    """Texts as they are, anything else as JSON; an absent cell is empty. What a spreadsheet would run is counted."""
    count, formulas = 0, formulas or Formulas()
    formulas.count_in("", schema.names, -1)
    with creating(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv.writer(text)
        writer.writerow(schema.names)
        for batch in batches:
            columns = [csv_cells(batch, n) for n in schema.names]
            for name, cells in zip(schema.names, columns, strict=True):
                formulas.count_in(name, cells, count)
            writer.writerows(zip(*columns, strict=True))
            count += batch.num_rows
        text.flush()
        text.detach()
    return count


def csv_cells(batch: pa.RecordBatch, name: str) -> list[str | None]:
    """The cells of a column as texts: values that are not text as JSON."""
    at = batch.schema.get_field_index(name)
    if at < 0:
        return [None] * batch.num_rows
    field, column = batch.schema.field(at), batch.column(at)
    values = as_text(column).to_pylist() if is_json_column(field) else canonical_values(column, field)
    cells = list[str | None]()
    for value in values:
        if isinstance(value, float) and not math.isfinite(value):
            value = infinity(value) if value == value else None
        if value is not None and not isinstance(value, str):
            encoded = encode_json(value)  # what JSON has only as text (a time, a date) without its quotes
            value = str(msgspec.json.decode(encoded)) if encoded[:1] == b'"' else encoded.decode()
        cells.append(value)
    return cells


def rewrite_csv(path: str, renames: Renames, edits: Edits) -> Iterator[bytes]:
    """The text of the file with other cells (`edits`, row by row) and other names of columns; the rest to the byte."""
    above, header, comma, records = _from_header(path)
    yield from (_text_bytes(record.text) for record in above)
    written = [n.strip() for n in header.fields]
    names = [renames.get(n, n) for n in written]
    # where a column moves into one that is there, its fields move too
    moves = {written.index(w): written.index(r) for w, r in renames.items() if w in written and r in written}
    columns = [i for i in range(len(names)) if i not in moves]
    place = {names[i]: i for i in reversed(columns)}
    new = {i: renames[n] for i, n in enumerate(written) if n in renames}
    yield _text_bytes(_record_text(header, new, columns, comma) if renames else header.text)
    for record in records:
        cells = next(edits) if record.fields or record.error else {}
        if cells is DROPPED:
            continue
        record = _completed(record, len(names)) if record.fields else record
        if record.error or len(record.fields) != len(names) or not (cells or moves):
            yield _text_bytes(record.text)
            continue
        fields = {r: record.fields[r] or record.fields[w] for w, r in moves.items()}
        for name, value in cells.items():
            text = value if isinstance(value, str) else jsontext.write_exactly(value)
            fields[place[name]] = "" if value is None else text
        yield _text_bytes(_record_text(record, fields, columns, comma))


def _from_header(path: str) -> tuple[list[Record], Record, str, Iterator[Record]]:
    """The lines above the header, the header, the delimiter, and the records behind it."""
    records, above, comma = csv_records(path, blanks=True), list[Record](), ""
    header = Record(1, [], "", "")
    for header in records:
        if header.fields:
            break
        comma = named[1] if (named := _NAMED.fullmatch(header.text)) else comma
        above.append(header)
    return above, header, comma or _delimiter(header.text, path), records


def placed_records(path: str) -> Iterator[tuple[Record, int, list[tuple[int, int]]]]:
    """The header and the records of a file, each with its offset and those of its fields, in characters."""
    above, header, comma, records = _from_header(path)
    at = sum(len(record.text) for record in above)
    for record in chain([header], records):
        text = record.text.rstrip("\r\n")
        places = [match.span(1) for match in _FIELDS[comma].finditer(text)] if record.fields else []
        if record.fields or record.error:
            yield record, at, [(at + start, at + end) for start, end in places]
        at += len(record.text)


def _record_text(record: Record, new: dict[int, str], columns: list[int], comma: str) -> str:
    """The text of the fields of a record in these columns, with other values in some."""
    text = record.text.rstrip("\r\n")
    texts = _FIELDS[comma].findall(text)
    texts += [""] * (len(record.fields) - len(texts))
    for i, field in new.items():
        if field != record.fields[i]:
            quote = texts[i].startswith('"') or any(sign in field for sign in (comma, '"', "\r", "\n"))
            texts[i] = '"' + field.replace('"', '""') + '"' if quote else field
    return comma.join(texts[i] for i in columns) + record.text[len(text) :]


_FIELDS = {comma: re.compile(rf'(?:^|[{comma}])("[^"]*(?:""[^"]*)*"|[^{comma}]*)') for comma in (",", *_SEPARATORS)}
"""The fields of a record as they are in its text."""


def _text_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
