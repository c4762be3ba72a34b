"""JSON Lines, one object per line → batches; each cell keeps its JSON text: nothing is parsed twice."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
from msgspec import Raw

from agent_eval_schema.cells.arrow import deep_texts
from agent_eval_schema.cells.batch import is_json_column, make_batch
from agent_eval_schema.cells.notes import Notes
from agent_eval_schema.io.arrow import canonical_values
from agent_eval_schema.io.source import grouped
from agent_eval_schema.io.streams import DROPPED, Edits, Position, Renames, creating, require_bounded, text_chunks
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules import columns, reading
from agent_eval_schema.rules.reading import MAX_DEPTH
from agent_eval_schema.schema import are_canonical
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.depth import TooDeep, is_too_deep
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.jsontext import repeated_keys
from agent_eval_schema.text.privacy import byte_at

# ---------------------------------------------------------------------------------------------------------------------
# the text of an object → the same text with some of its values and keys replaced, the rest to the byte
#
# A value that is replaced looks like the one before: in ASCII where that was, on as many lines.
REMOVED: Any = object()
"""The placeholder for a cell that is removed with its key. A key that the object lacks takes the first place of such a
one, or that behind its last."""


class _Pair(NamedTuple):
    """A key of an object and its value: their places in the text."""

    key: str
    start: int
    key_end: int
    value: int
    end: int


def replaced_cells(text: bytes, renames: dict[str, str], cells: dict[str, Any]) -> bytes:
    """The text with other keys and other values in their cells; a text that is not an object is returned unchanged."""
    if not cells and not any(wrong.encode() in text or b"\\" in text for wrong in renames):
        return text
    try:
        line = text.decode()
        if is_too_deep(line, MAX_DEPTH + 1):
            return text
        pairs = _pairs(line)
    except ValueError:
        return text  # no row
    for start, end, new in sorted(_splices(line, pairs, renames, cells), reverse=True):
        line = line[:start] + new + line[end:]
    return line.encode()


_decode_pairs = json.JSONDecoder(object_pairs_hook=list).decode


def _pairs(text: str) -> list[_Pair]:
    """The pairs of the object in the text. Raises ValueError if it is not an object."""
    pairs, at = [], _skip(text, 0, "{")
    while text[at : at + 1] != "}":
        key, key_end = _decode(text, at)
        value = _skip(text, key_end, ":")
        end = _decode(text, value)[1]
        pairs.append(_Pair(key, at, key_end, value, end))
        at = _skip(text, end)
        if text[at : at + 1] != "}":
            at = _skip(text, at, ",")
    return pairs


_decode = json.JSONDecoder().raw_decode


def _skip(text: str, at: int, sign: str = "") -> int:
    """The place behind blanks, the sign, and blanks."""
    while text[at : at + 1] in (" ", "\t", "\r", "\n"):
        at += 1
    if not sign:
        return at
    if text[at : at + 1] != sign:
        raise ValueError(f"expected {sign} at {at}")
    return _skip(text, at + 1)


def _splices(
    text: str, pairs: list[_Pair], renames: dict[str, str], cells: dict[str, Any]
) -> list[tuple[int, int, str]]:
    place = {p.key: i for i, p in enumerate(pairs)}  # of a repeated key the last one was read
    splices, removed = [], []
    values = {pairs[i].key: text[pairs[i].value : pairs[i].end] for i in place.values()}
    if len(place) < len(pairs):  # an invalid row, which another name of one of its keys would make valid
        renames = {}
    for wrong, right in renames.items():
        if wrong in place and right in place:  # one of the two is null
            values[right] = values[wrong] if values[right] == "null" else values[right]
            removed.append(place.pop(wrong))
        elif wrong in place:
            pair = pairs[place[wrong]]
            splices.append((pair.start, pair.key_end, json.dumps(right, ensure_ascii=False)))
            place[right], values[right] = place.pop(wrong), values.pop(wrong)
    removed += [place.pop(k) for k, v in cells.items() if v is REMOVED and k in place]
    cells = {k: v for k, v in cells.items() if v is not REMOVED}
    style = (", ", ": ") if any(text[p.key_end : p.value] != ":" for p in pairs) else (",", ":")
    values |= {k: _in_the_form_of(values[k], v, style) for k, v in cells.items() if k in values}
    changed = {k: i for k, i in place.items() if values[k] != text[pairs[i].value : pairs[i].end]}
    new = [key for key in cells if key not in values]
    for key in new[: len(removed)]:
        pair = pairs[removed.pop(0)]
        value = _in_the_form_of(text[pair.value : pair.end], cells[key], style)
        splices.append((pair.start, pair.end, f"{json.dumps(key)}{style[1]}{value}"))
        new = new[1:]
    if new:  # between them and the others is what is between the last two of those
        end = pairs[-1].end if pairs else _skip(text, 0, "{")
        comma = text[pairs[-2].end : pairs[-1].start] if len(pairs) > 1 else style[0]
        added = [
            json.dumps(k) + style[1] + json.dumps(cells[k], ensure_ascii=text.isascii(), separators=style) for k in new
        ]
        splices.append((end, end, (comma if pairs else "") + comma.join(added)))
    for i in removed:  # with a comma: the one before the pair, if any pair stays before it
        leads = all(before in removed for before in range(i))
        start, end = (pairs[i].start, pairs[i + 1].start) if leads else (pairs[i - 1].end, pairs[i].end)
        splices.append((start, end, ""))
    return splices + [(pairs[i].value, pairs[i].end, values[k]) for k, i in changed.items()]


def _in_the_form_of(old: str, value: Any, style: tuple[str, str]) -> str:
    """The JSON text of a value that takes the place of another one: if that was in ASCII, escapes stay escapes (above
    all those of characters that reorder a line), and if it was on several lines, so is this one."""
    head, *inner = old.splitlines()
    base, step = (_indent(inner[-1]), _indent(inner[0])) if inner else ("", "")
    if not step.startswith(base) or step == base:
        return json.dumps(value, ensure_ascii=old.isascii(), separators=style)
    text = json.dumps(value, ensure_ascii=old.isascii(), indent=step[len(base) :])
    return text.replace("\n", old[len(head) : old.index(inner[0], len(head))] + base)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


# ---------------------------------------------------------------------------------------------------------------------
# lines
_decode_object = msgspec.json.Decoder(dict[str, Raw]).decode


def jsonl_batches(path: str, position: Position | None = None) -> Iterator[pa.RecordBatch]:
    return cell_batches((line, f"line {number}", "") for number, line in _numbered(path, position))


_Object = tuple[bytes, str, str]
"""The JSON text of an object, its place in the file and, if the text is not a row, the reason."""


def cell_batches(objects: Iterable[_Object]) -> Iterator[pa.RecordBatch]:
    """Batches whose cells are the JSON texts of the values of objects."""
    return map(_batch_of, grouped(objects, lambda entry: len(entry[0])))


def _batch_of(objects: Sequence[_Object]) -> pa.RecordBatch:
    cells: dict[str, list[bytes | None]] = {}
    problems: Notes = {}
    lines: dict[int, str] = {}
    styles = set[tuple[int, int]]()
    deep = frozenset(deep_texts([text for text, _, _ in objects], MAX_DEPTH + 1))  # a row is one level above its cells
    for at, (text, where, problem) in enumerate(objects):
        row: dict[str, Raw] = {}
        try:
            if problem:
                raise ValueError
            if at in deep:
                raise TooDeep
            text.isascii() or text.decode()
            row = _decode_object(text)
            style = len(row), len(text) - len(jsontext.encode(row))  # what the text has beside its keys and values
            if style not in styles:  # else rows of as many keys that are written alike had none twice
                counts = Counter(key for key, _ in _decode_pairs(text.decode()))
                if len(counts) < counts.total():
                    lines[at] = text.decode()
                    problems[at] = [
                        Finding(columns.REPEATED_KEY, f"{where}: expected `{key}` once, got it {times} times", key)
                        for key, times in counts.items()
                        if times > 1
                    ]
                else:
                    styles.add(style)
        except ValueError as error:
            problems[at] = [_row_problem(text, where, problem, error)]
            lines[at] = text.decode("utf-8", "replace")
        for name, raw in row.items():
            column = cells.get(name)
            if column is None:
                column = cells[name] = []
            if len(column) < at:
                column.extend([None] * (at - len(column)))
            cell = bytes(raw)  # not a memoryview: pyarrow 25 never releases one that it made an array of
            column.append(None if cell == b"null" else cell)
            if cell[0] in b"{[" and name != "trace" and (twice := repeated_keys(cell, name)):
                problems.setdefault(at, []).extend(twice)
                lines[at] = text.decode()
    arrays = {}
    for name, column in cells.items():
        column.extend([None] * (len(objects) - len(column)))
        arrays[name] = pa.array(column, pa.binary()).cast(pa.string()), True
        column.clear()  # rows that all have keys of their own would take eight bytes for each cell of each
    return make_batch(arrays, problems, len(objects), lines)


def jsonl_line_numbers(path: str) -> Iterator[int]:
    return (number for number, _ in _numbered(path))


def _numbered(path: str, position: Position | None = None) -> Iterator[tuple[int, bytes]]:
    """The lines that are rows, each with its number in the file: blank lines are not rows."""
    return ((n, line) for n, line in enumerate(jsonl_lines(path, position), start=1) if line and not line.isspace())


def jsonl_lines(path: str, position: Position | None = None) -> Iterator[bytes]:
    """The text between the line ends of a file, joined by them the file again: the last line is empty where the file
    ends with one. A BOM is not part of a line."""
    rest, size = [b""], 0
    for chunk in text_chunks(path, position):
        head, newline, tail = chunk.rpartition(b"\n")
        if newline:
            rest.append(head)
            yield from b"".join(rest).split(b"\n")
            rest, size = [tail], len(tail)
        else:
            rest.append(chunk)
            size += len(chunk)
            require_bounded(path, size)
    yield b"".join(rest)


def _row_problem(text: bytes, where: str, problem: str, error: Exception) -> Finding:
    """Why a line is not a row, with its number (and the byte in it)."""
    if problem:
        return Finding(reading.MALFORMED_ROW, f"{where}: {problem}")
    if isinstance(error, UnicodeDecodeError):
        return Finding(reading.NOT_UTF8, f"{where}: expected UTF-8, got {byte_at(error)}")
    if isinstance(error, TooDeep):
        message = f"{where}: expected cells of at most {MAX_DEPTH} levels, got one nested too deep to read"
        return Finding(reading.TOO_DEEP, message)
    value = jsontext.parse(text)
    if isinstance(value, jsontext.Malformed):
        rule = reading.MALFORMED_ROW if value.rule is reading.MALFORMED_JSON else value.rule
        return Finding(rule, f"{where}: {value.message}")
    return Finding(reading.NOT_A_ROW, f"{where}: expected an object with columns, got {describe(value)}")


def write_jsonl(path: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> int:
    """Write one row per line. Returns the number of rows."""
    count = 0
    with creating(path) as file:
        for text in row_texts(batches, schema):
            file.write(text + b"\n")
            count += 1
    return count


def row_texts(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[bytes]:
    """Each row as JSON, without absent cells; the first canonical row has all keys, with the marker."""
    whole = are_canonical(schema.names, schema.metadata)
    for batch in batches:
        names = [n for n in schema.names if n in batch.schema.names]
        keys = [jsontext.encode(n) + b":" for n in names]
        for cells in zip(*[_json_texts(batch, n) for n in names], strict=True):
            pairs = [k + (c or b"null") for k, c in zip(keys, cells, strict=True) if c is not None or whole]
            yield b"{" + b",".join(pairs) + b"}"
            whole = False


def _json_texts(batch: pa.RecordBatch, name: str) -> list[bytes | None]:
    """Each cell as JSON; a cell that is JSON already goes out as it came in."""
    at = batch.schema.get_field_index(name)
    if is_json_column(batch.schema.field(at)):
        # An indented JSON file has line ends between the parts of a value (never inside of a text); a line must not.
        return [None if v is None else _finite(_ENDS.sub(" ", v)).encode() for v in batch.column(at).to_pylist()]
    values = canonical_values(batch.column(at), batch.schema.field(at))
    return [None if v is None else encode_json(v) for v in values]


def _finite(text: str) -> str:
    """A JSON text with null for the infinite numbers of Python objects, as of every other column."""
    if "Infinity" in text and isinstance(value := jsontext.parse(text), jsontext.Malformed):
        return jsontext.encode_text(jsontext.parse_leniently(text)) if value.rule is reading.NAN_LITERAL else text
    return text


encode_json = msgspec.json.Encoder(enc_hook=str).encode
_ENDS = re.compile(r"[\r\n]+")


def rewrite_jsonl(path: str, renames: Renames, edits: Edits) -> Iterator[bytes]:
    """The text of the file with other cells (`edits`, row by row) and other names of columns; the rest to the byte."""
    between = b""
    for line in jsonl_lines(path):
        blank = not line or line.isspace()
        cells = {} if blank else next(edits)
        if cells is not DROPPED:
            yield between + (line if blank else replaced_cells(line, renames, cells))
            between = b"\n"
