"""A column of a record batch → its cells, as text or as JSON.

text   Arrow strings: the cell holds what the user wrote; it may happen to hold JSON
json   the JSON text of a native value: a Python object, a JSON file's value, an Arrow list, struct or number
"""

import math
from collections.abc import Container, Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from agent_eval_schema.cells.arrow import (
    bytes_of,
    depths,
    is_text,
    is_valid_text,
    plain_values,
    present,
    rows_beginning_with,
    rows_passing,
    simplified,
    text_views,
    to_values,
    type_depth,
)
from agent_eval_schema.cells.batch import is_json_column
from agent_eval_schema.cells.notes import column_names, is_hidden
from agent_eval_schema.cells.numbers import infinity, with_infinite
from agent_eval_schema.rules.reading import MAX_DEPTH
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.depth import STAND_IN
from agent_eval_schema.text.privacy import byte_at


class Cells(Struct, eq=False):
    """The cells of one column: texts, or JSON texts. A cell is None where it is absent.

    `nul` is true if some text may contain a NUL character; `unreadable` has the reason why cells are not UTF-8.
    `array` is there if every cell is text that can be read. `deep` is true if some text, as JSON, is nested too deep.
    """

    json: bool
    texts: Sequence[str | None]
    array: pa.Array | None = None
    nul: bool = False
    unreadable: dict[int, str] = {}
    deep: bool = False

    def suspects(self) -> list[int]:
        """The rows of a text column that may be blank or JSON, by their first character: few need a closer look."""
        if self.array is None:
            return [row for row, t in enumerate(self.texts) if t is not None and (t[:1] in "{[" or t[0].isspace())]
        return rows_passing(self.array, rows_beginning_with(self.array, _SUSPECT_BYTES, or_empty=True), _is_suspect)


class Texts(Sequence[str | None]):
    """The texts of an array, made when they are read."""

    def __init__(self, array: pa.Array) -> None:
        self.array = array

    @cached_property
    def _strings(self) -> list[str | None]:
        strings: list[str | None] = self.array.to_pylist()
        return strings

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Iterator[str | None]:
        return iter(self._strings)

    def __getitem__(self, row: Any) -> Any:
        return self._strings[row]


_is_suspect = partial(pc.match_substring_regex, pattern=r"^([\t-\r\x1c-\x1f\x{85}\p{Z}{\[]|$)")
_SUSPECT_BYTES = b"\t\n\v\f\r\x1c\x1d\x1e\x1f {[\xc2\xe1\xe2\xe3"
"""Empty, or with one of the characters first that are blank for Python, or that open JSON; the first bytes of these."""


def read_cells(batch: pa.RecordBatch, name: str) -> Cells | None:
    """The cells of a column, or None if the batch does not have it."""
    at = batch.schema.get_field_index(name)
    if at < 0:
        return None
    array = batch.column(at)
    if not is_text(array.type):
        array = simplified(array)
    is_of_text = is_text(array.type)
    deep = is_of_text and bool(depths(array)[0])
    if is_of_text and not is_json_column(batch.schema.field(at)):
        data = bytes_of(array)
        nul = bool(len(data) and data.min() == 0)  # faster than to look for one
        texts, unreadable = _decoded(array)
        return Cells(False, texts, None if unreadable else array, nul, unreadable, deep)
    if is_of_text:
        texts = array.to_pylist()
    elif type_depth(array.type) > MAX_DEPTH:  # its values are not made: each is as deep as its type
        return Cells(True, [STAND_IN if is_present else None for is_present in present(array)], deep=True)
    else:
        plain = plain_values(array.type)
        texts = [None if v is None or v != v else _json_text(plain(v)) for v in to_values(array)]
    return Cells(True, texts, nul=any([t is not None and "\\u0000" in t for t in texts]), deep=deep)


def _decoded(array: pa.Array) -> tuple[Sequence[str | None], dict[int, str]]:
    """The texts, which are not made yet if all are valid, and the problems of those that are not UTF-8."""
    if is_valid_text(array):
        return Texts(array), {}
    texts: list[str | None] = []
    unreadable: dict[int, str] = {}
    for row, cell in enumerate(text_views(array)):
        try:
            texts.append(None if cell is None else bytes(cell).decode())
        except UnicodeDecodeError as error:
            texts.append(None)
            unreadable[row] = f"expected UTF-8, got {byte_at(error)}"
    return texts, unreadable


def _json_text(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return infinity(value)  # which is not JSON, and is reported
    is_whole = isinstance(value, float) and abs(value) < 2**53 and value.is_integer()  # counts with gaps are floats
    return with_infinite(value, _encode(int(value) if is_whole else value), str).decode()


_encode = msgspec.json.Encoder(enc_hook=str).encode


_INFINITE = {infinity(value): value for value in (math.inf, -math.inf)}


def native(batch: pa.RecordBatch, at: int) -> list[Any]:
    """The cells of a column as the user's Python values."""
    values = to_values(batch.column(at))
    if is_json_column(batch.schema.field(at)):
        return [None if v is None else _INFINITE.get(v) or jsontext.parse_leniently(v) for v in values]
    plain = plain_values(batch.column(at).type)
    return [plain(v) for v in values]


def native_rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows of a batch as the user's Python values, without the cells that are absent."""
    columns = {f.name: native(batch, i) for i, f in enumerate(batch.schema) if not is_hidden(f)}
    return [{n: v[i] for n, v in columns.items() if v[i] is not None} for i in range(batch.num_rows)]


def row_texts(batch: pa.RecordBatch, nested: Container[str]) -> list[str | None]:
    """Each row as one JSON text: its columns put back together, without those that are absent. The columns that are
    `nested` hold objects or lists, which may be written as text; in all others a text is not parsed."""
    columns: list[tuple[str, list[str | None]]] = []  # the key of each, with its colon, and its cells as JSON
    for name in column_names(batch.schema):
        cells = read_cells(batch, name) or Cells(True, [None] * batch.num_rows)
        texts = [None if text is None else json_cell(text, cells.json, name in nested) for text in cells.texts]
        columns.append((jsontext.encode_text(name) + ":", texts))
    rows = (",".join([key + cell for key, texts in columns if (cell := texts[i])]) for i in range(batch.num_rows))
    return ["{" + row + "}" if row else None for row in rows]


def json_cell(text: str, is_json: bool, nested: bool) -> str:
    """The JSON text of a cell. Text is parsed only where it has to be an object or a list (`nested`)."""
    if nested and (not is_json or text[:1] == '"'):
        inner = jsontext.parse_leniently(text) if is_json else text
        if isinstance(inner, str) and jsontext.is_structured(inner) and jsontext.is_json(inner):
            return inner
    return text if is_json else jsontext.encode_text(text)
