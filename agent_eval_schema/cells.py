"""A column of a record batch → its cells, as text or as JSON.

    text   Arrow strings: what stands in the cell is what the user wrote; it may happen to hold JSON
    json   the JSON text of a native value: a Python object, a JSON file's value, an Arrow list, struct or number

The readers (frames.py, engines/files.py) mark a column of JSON texts in its field's metadata; everything else follows
from the Arrow type. What a reader could not read travels with the rows, in the column READING.
"""

import itertools
import json
import math
import re
from collections.abc import Callable, Container, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema import jsontext
from agent_eval_schema.quoting import byte_name

READING = "__reading_problems__"
"""list<struct<column, code, message>> a row; a problem without a column concerns the whole row."""

LINE = "__line__"
"""The original text of a line that is no row: handed back with the invalid rows, never part of a normalised one."""

REPAIRS = "__repairs__"
"""list<struct<column, path, message>> a row: which of its cells were repaired, where, and what they were."""

FINDINGS = "__findings__"
"""list<struct<code, column, path, message, hint>> a row: what a format that looks across rows found in each."""

_ROLE_FINDINGS = {b"cells": b"findings"}
_ROLE_READING = {b"cells": b"reading"}
_ROLE_LINE = {b"cells": b"line"}
_ROLE_REPAIRS = {b"cells": b"repairs"}
_ROLE_PLAIN = {b"cells": b"plain"}

_OF_READERS = (_ROLE_READING, _ROLE_REPAIRS, _ROLE_FINDINGS, _ROLE_PLAIN)
"""Columns that readers add to those of the user."""

READING_TYPE = pa.list_(pa.struct([("column", pa.string()), ("code", pa.string()), ("message", pa.string())]))
REPAIRS_TYPE = pa.list_(pa.struct([("column", pa.string()), ("path", pa.string()), ("message", pa.string())]))

FINDINGS_TYPE = pa.list_(pa.struct([(name, pa.string()) for name in ("code", "column", "path", "message", "hint")]))

JSON_CELLS = {b"cells": b"json"}
"""Metadata of a column whose cells are JSON texts of native values."""

PLAIN = "__plain_requests__"
"""bool: which requests are plain chats as this package writes them (request.py), so that they need not be read again,
nor written anew."""

CANONICAL_CELLS = {b"cells": b"canonical"}
"""Metadata of a normalised column whose Arrow form differs from its Python form (tool_input is JSON text in a "
"struct)."""

Problem = tuple[str | None, str, str]
"""What a reader says of a row: the column (None: the whole row), the code of the rule, the message."""

FindingNote = tuple[str, str | None, str | None, str, str]
"""A finding of a format: the code of the rule, the column, the path, the message, the hint."""

RepairNote = tuple[str, str, str]
"""What is said of a repaired cell: its column, the path of what changed in it, the message."""


class Cells:
    """The cells of one column: texts, or JSON texts. A cell is None where it is absent.

    `nul` says that some text holds a NUL character, `unreadable` which cells are there but are not UTF-8 and why.
    `array` is there if every cell can be read; the Python texts are only made when they are asked for.
    """

    def __init__(
        self,
        texts: Sequence[str | None] | None,
        json: bool,
        nul: bool = False,
        array: pa.Array | None = None,
        unreadable: dict[int, str] | None = None,
    ) -> None:
        self.json = json
        self.nul = nul
        self.array = array
        self.unreadable = unreadable or {}
        self._texts = texts

    @property
    def texts(self) -> Sequence[str | None]:
        if self._texts is None:
            self._texts = self.array.to_pylist() if self.array is not None else []
        return self._texts

    def suspects(self) -> list[int]:
        """The rows of a text column that may be blank or JSON, by their first character: few need a closer look."""
        if self.array is None:
            return [row for row, t in enumerate(self.texts) if t is not None and t[:1] in "{[ \t\r\n"]
        return np.flatnonzero(np.asarray(pc.match_substring_regex(self.array, _SUSPECT).fill_null(False))).tolist()


_SUSPECT = r"^([\s{\[\p{Z}]|$)"


def read_cells(batch: pa.RecordBatch, name: str) -> Cells | None:
    """The cells of a column, or None if the batch does not have it."""
    at = batch.schema.get_field_index(name)
    if at < 0:
        return None
    array = simplified(batch.column(at))
    if is_json_column(batch.schema.field(at)):
        return Cells(array.to_pylist(), True, _holds(array, rb"\u0000"))
    if is_text(array.type):
        nul = _has_nul(array)
        texts, unreadable = _decoded(array)
        return Cells(texts, False, nul, None if unreadable else array, unreadable)
    texts = _as_json(array)
    return Cells(texts, True, any(t is not None and "\\u0000" in t for t in texts))


def is_valid_text(array: pa.Array) -> bool:
    """Whether it is a column of texts that are all UTF-8: Arrow does not check what it is given."""
    if not is_text(array.type):
        return False
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _decoded(array: pa.Array) -> tuple[list[str | None] | None, dict[int, str]]:
    """The texts, and what is wrong with those that are not UTF-8: Arrow does not check what it is given. Where all is
    well there are no texts yet."""
    if is_valid_text(array):
        return None, {}
    texts: list[str | None] = []
    unreadable: dict[int, str] = {}
    for row, cell in enumerate(text_views(array)):
        try:
            texts.append(None if cell is None else bytes(cell).decode())
        except UnicodeDecodeError as error:
            texts.append(None)
            byte = byte_name(error.object[error.start])
            unreadable[row] = f"expected UTF-8, got {byte} at byte {error.start}"
    return texts, unreadable


def _holds(array: pa.Array, what: bytes) -> bool:
    """Whether any of the strings holds these bytes: one search over what they share."""
    return text_bytes(array)[0].find(what) >= 0


def _has_nul(array: pa.Array) -> bool:
    """Whether any of the strings holds a NUL character: the least of all bytes tells, without a copy of them."""
    bounds, data = _offsets(array), array.buffers()[2]
    start, size = int(bounds[0]), int(bounds[-1] - bounds[0])
    return data is not None and size > 0 and int(np.frombuffer(data, np.uint8, size, start).min()) == 0


def text_bytes(array: pa.Array) -> tuple[bytes, list[int]]:
    """The UTF-8 of all strings in one piece, and where each begins (and the last ends)."""
    bounds = _offsets(array)
    data = array.buffers()[2]
    if data is None or not len(array):
        return b"", [0] * (len(array) + 1)
    piece = data.slice(int(bounds[0]), int(bounds[-1] - bounds[0]))  # of a slice of a large array, only its part
    return piece.to_pybytes(), (bounds - bounds[0]).tolist()


def text_array(cells: Sequence[str | bytes | None]) -> pa.Array:
    """Texts, or the UTF-8 of texts, as an Arrow array. Large ones are copied once: `pa.array` copies each of them
    several times, into a buffer that grows. Raises ArrowInvalid for bytes that are not UTF-8."""
    pieces = [b"" if c is None else c if c.__class__ is bytes else c.encode() for c in cells]  # type: ignore[union-attr]
    ends = np.cumsum(np.fromiter(map(len, pieces), np.int64, len(pieces)))
    if len(ends) and ends[-1] > np.iinfo(np.int32).max:
        return pa.array(cells, pa.string())
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    given = np.array([c is not None for c in cells], bool)
    bits = None if given.all() else pa.py_buffer(np.packbits(given, bitorder="little"))
    data = pa.py_buffer(b"".join(pieces))
    array = pa.Array.from_buffers(pa.string(), len(pieces), [bits, pa.py_buffer(offsets), data])
    array.validate(full=True)
    return array


def _offsets(array: pa.Array) -> np.ndarray[Any, Any]:
    wide = pa.types.is_large_string(array.type)
    offsets = array.buffers()[1]
    if offsets is None or not len(array):
        return np.zeros(len(array) + 1, np.int64)
    return np.frombuffer(offsets, np.int64 if wide else np.int32, len(array) + 1, array.offset * (8 if wide else 4))


def is_json_column(field: pa.Field) -> bool:
    return (field.metadata or {}).get(b"cells") == b"json"


def simplified(array: pa.Array) -> pa.Array:
    """The array without encodings that only concern storage: dictionaries, views, extensions, bytes that are text."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return simplified(array.storage)
    if pa.types.is_dictionary(kind):
        return simplified(array.dictionary_decode())
    if _is_view(kind, "string"):
        return array.cast(pa.large_string())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or _is_view(kind, "binary"):
        wide = array.cast(pa.large_binary())
        return pa.Array.from_buffers(pa.large_string(), len(wide), wide.buffers(), wide.null_count, wide.offset)
    if pa.types.is_fixed_size_binary(kind):
        return simplified(array.cast(pa.binary()))
    return array


def _is_view(kind: pa.DataType, of: str) -> bool:
    return str(kind) == f"{of}_view"


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _as_json(array: pa.Array) -> list[str | None]:
    plain = plain_values(array.type)
    return [None if v is None or v != v else _json_text(plain(v)) for v in to_values(array)]


def _json_text(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "Infinity"  # which is no JSON, and is told as such
    return infinite_told(value, _encode(_whole(value)), str).decode()


def infinite_told(value: Any, text: bytes, hook: Callable[[Any], Any]) -> bytes:
    """The JSON text of a value, with the infinite numbers in it as Python writes them: JSON does not have them, and
    they are told as such. In `text`, which msgspec has made with that hook, they are null."""
    if b"null" not in text or not _INFINITE.search(repr(value)):
        return text
    return json.dumps(_without_nan(msgspec.to_builtins(value, enc_hook=hook)), ensure_ascii=False).encode()


_INFINITE = re.compile(r"(?<![\w'\"])inf\b")


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(entry) for entry in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _whole(value: Any) -> Any:
    """A whole number in a float column as what it is: counts with gaps come like this."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_encode = msgspec.json.Encoder(enc_hook=str).encode


def to_values(array: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The Python values of an array; as text where Python has no value (a date in the year 100,000)."""
    try:
        found: list[Any] = array.to_pylist()
        return found
    except UnicodeDecodeError:
        return [
            v.decode("utf-8", "replace") if v is not None else None for v in array.cast(pa.large_binary()).to_pylist()
        ]
    except (ValueError, OverflowError, pa.ArrowException):
        return [_as_words(array[i]) for i in range(len(array))]


def _as_words(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py()
    except (ValueError, OverflowError, pa.ArrowException):
        try:
            return scalar.cast(pa.string()).as_py()
        except pa.ArrowException:
            return str(getattr(scalar, "value", scalar.type))


def plain_values(kind: pa.DataType) -> Callable[[Any], Any]:
    """The function that makes the Python values of an Arrow type JSON-like: a map is a list of pairs in Python."""
    if pa.types.is_map(kind):
        item = plain_values(kind.item_type)
        return lambda v: None if v is None else {str(k): item(x) for k, x in v}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        item = plain_values(kind.value_type)
        return item if item is _same else lambda v: None if v is None else [item(x) for x in v]
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or _is_view(kind, "binary"):
        return lambda v: v.decode("utf-8", "replace") if isinstance(v, bytes) else v
    if pa.types.is_struct(kind):
        fields = {f.name: plain_values(f.type) for f in kind}
        if all(f is _same for f in fields.values()):
            return _same
        return lambda v: None if v is None else {k: fields[k](x) for k, x in v.items()}
    return _same


def _same(value: Any) -> Any:
    return value


def text_views(array: pa.Array) -> list[memoryview | None]:
    """The UTF-8 bytes of each string, without copying them: traces are large, and most of one is skipped."""
    if len(array) == 0:
        return []
    data = array.buffers()[2]
    view, bounds = memoryview(data) if data is not None else memoryview(b""), _offsets(array).tolist()
    slices: list[memoryview | None] = [view[a:b] for a, b in itertools.pairwise(bounds)]
    if array.null_count:
        for i in np.flatnonzero(np.asarray(array.is_null())):
            slices[i] = None
    return slices


def native(batch: pa.RecordBatch, at: int) -> list[Any]:
    """The cells of a column as the Python values that the user gave."""
    values = to_values(batch.column(at))
    if is_json_column(batch.schema.field(at)):
        return [None if v is None else jsontext.parse_leniently(v) for v in values]
    plain = plain_values(batch.column(at).type)
    return [plain(v) for v in values]


def filtered(rows: Any, mask: np.ndarray[Any, Any]) -> Any:
    """The rows of a table or batch where the mask is true; by slices for types that Arrow cannot filter (views)."""
    try:
        return rows.filter(pa.array(mask))
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
        return pa.concat_tables([table.slice(0, 0), *(table.slice(i, 1) for i in np.flatnonzero(mask).tolist())])


def reading_problems(batch: pa.RecordBatch) -> list[list[Problem]]:
    """What the reader said of each row (nothing at all if all was well)."""
    at = _with_role(batch.schema, _ROLE_READING)
    rows = batch.column(at).to_pylist() if at is not None else []
    return [[(p["column"], p["code"], p["message"]) for p in row or ()] for row in rows]


def with_repairs(batch: pa.RecordBatch, notes: dict[int, list[RepairNote]]) -> pa.RecordBatch:
    """The batch with what is said of its repaired cells."""
    if not notes:
        return batch
    rows = [
        [{"column": c, "path": path, "message": m} for c, path, m in notes.get(i, ())] or None
        for i in range(batch.num_rows)
    ]
    field = pa.field(free(REPAIRS, batch.schema.names), REPAIRS_TYPE, metadata=_ROLE_REPAIRS)
    arrays = [*batch.columns, pa.array(rows, REPAIRS_TYPE)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([*batch.schema, field]))


def repair_notes(batch: pa.RecordBatch) -> list[list[RepairNote]]:
    """What is said of the repaired cells of each row (nothing at all if there are none)."""
    at = _with_role(batch.schema, _ROLE_REPAIRS)
    rows = batch.column(at).to_pylist() if at is not None else []
    return [[(n["column"], n["path"], n["message"]) for n in row or ()] for row in rows]


def with_findings(batch: pa.RecordBatch, notes: dict[int, list[FindingNote]]) -> pa.RecordBatch:
    """The batch with what its format found in its rows."""
    if not notes:
        return batch
    keys = [field.name for field in FINDINGS_TYPE.value_type]
    rows = [[dict(zip(keys, n, strict=True)) for n in notes.get(i, ())] or None for i in range(batch.num_rows)]
    field = pa.field(free(FINDINGS, batch.schema.names), FINDINGS_TYPE, metadata=_ROLE_FINDINGS)
    arrays = [*batch.columns, pa.array(rows, FINDINGS_TYPE)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([*batch.schema, field]))


def findings_in(batch: pa.RecordBatch) -> list[list[FindingNote]]:
    """What the format found in each row (nothing at all if all was well)."""
    at = _with_role(batch.schema, _ROLE_FINDINGS)
    rows = batch.column(at).to_pylist() if at is not None else []
    return [[(n["code"], n["column"], n["path"], n["message"], n["hint"]) for n in row or ()] for row in rows]


def with_plain_requests(batch: pa.RecordBatch, plain: pa.Array) -> pa.RecordBatch:
    """The batch with the knowledge which of its requests are plain chats."""
    field = pa.field(free(PLAIN, batch.schema.names), pa.bool_(), metadata=_ROLE_PLAIN)
    return batch.append_column(field, plain)


def plain_requests(batch: pa.RecordBatch) -> list[bool]:
    """For each row whether its request is known to be a plain chat."""
    at = _with_role(batch.schema, _ROLE_PLAIN)
    return [False] * batch.num_rows if at is None else [v is True for v in batch.column(at).to_pylist()]


def lines(batch: pa.RecordBatch) -> pa.Array | None:
    """The original texts of the lines that are no rows, if there are any."""
    at = _with_role(batch.schema, _ROLE_LINE)
    return None if at is None else batch.column(at)


def row_texts(batch: pa.RecordBatch) -> list[str | None]:
    """Each row as one JSON text: its columns put back together, without those that are absent."""
    own = [f.name for f in batch.schema if not is_hidden(f)]
    columns = {n: read_cells(batch, n) or Cells([], True) for n in own}
    return [_object_text({n: cell_json(c, i) for n, c in columns.items()}) for i in range(batch.num_rows)]


def cell_json(cells: Cells, row: int) -> str | None:
    """The JSON text of a cell: a text that holds an object or a list stands for that."""
    text = cells.texts[row]
    if text is None or cells.json or text[:1] in ("{", "["):
        return text
    return jsontext.encode(text).decode()


def _object_text(parts: dict[str, str | None]) -> str | None:
    given = {k: v for k, v in parts.items() if v is not None}
    return "{" + ",".join(f"{jsontext.encode(k).decode()}:{v}" for k, v in given.items()) + "}" if given else None


def filled_rows(batch: pa.RecordBatch, name: str) -> np.ndarray[Any, Any]:
    """The rows where there is something in the column, readable or not."""
    at = batch.schema.get_field_index(name)
    filled = np.zeros(batch.num_rows, bool) if at < 0 else np.asarray(batch.column(at).is_valid()).astype(bool)
    for row, problems in enumerate(reading_problems(batch)):
        filled[row] |= any(column == name for column, _, _ in problems)
    return filled


def _with_role(schema: pa.Schema, role: dict[bytes, bytes]) -> int | None:
    return next((i for i, field in enumerate(schema) if field.metadata == role), None)


def original_lines(batch: pa.RecordBatch) -> pa.Array | None:
    """The original text of each line that is no row (null for the others), if there is one in the batch."""
    at = _with_role(batch.schema, _ROLE_LINE)
    return None if at is None else batch.column(at)


def is_hidden(field: pa.Field) -> bool:
    """Whether a column is the reader's, not the user's: only readers mark fields, what users give is stripped."""
    return field.metadata in (*_OF_READERS, _ROLE_LINE)


def own_columns(schema: pa.Schema) -> list[int]:
    """The places of the user's columns, and of the original lines."""
    return [i for i, field in enumerate(schema) if field.metadata not in _OF_READERS]


def without_marks(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A user's batch without field metadata, which only our readers may set, and without repeated columns."""
    names = batch.schema.names
    kept = [i for i, n in enumerate(names) if n not in names[:i]]
    if not kept:  # Arrow forgets the number of rows of a batch without columns
        return make_batch({}, {}, batch.num_rows)
    fields = [batch.schema.field(i).remove_metadata() for i in kept]
    return pa.RecordBatch.from_arrays([batch.column(i) for i in kept], schema=pa.schema(fields))


def repeated(names: Sequence[str]) -> tuple[str, ...]:
    """The column names that stand more than once."""
    return tuple(dict.fromkeys(n for i, n in enumerate(names) if n in names[:i]))


def make_batch(
    columns: dict[str, tuple[pa.Array, bool]],
    problems: dict[int, list[Problem]],
    size: int,
    lines: dict[int, str] | None = None,
) -> pa.RecordBatch:
    """A record batch of cells: per column an array and whether it holds JSON texts; the reader's problems; and the
    original text of the rows that are none."""
    arrays = [array for array, _ in columns.values()]
    fields = [pa.field(n, a.type, metadata=JSON_CELLS if j else None) for n, (a, j) in columns.items()]
    if lines:
        arrays.append(pa.array([lines.get(i) for i in range(size)], pa.string()))
        fields.append(pa.field(free(LINE, columns), pa.string(), metadata=_ROLE_LINE))
    if problems or not columns:
        rows = [
            [{"column": c, "code": code, "message": m} for c, code, m in problems.get(i, ())] or None
            for i in range(size)
        ]
        arrays.append(pa.array(rows, READING_TYPE))
        fields.append(pa.field(free(READING, columns), READING_TYPE, metadata=_ROLE_READING))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def free(name: str, taken: Container[str]) -> str:
    """A column's name that is not taken, as near to this one as can be."""
    while name in taken:
        name += "_"
    return name
