"""However Arrow stores a text, it is the same text: what we cut and build of buffers is held against `to_pylist`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_eval_schema import validate_eval_set
from agent_eval_schema.cells.arrow import simplified, text_array, text_bytes, text_views, to_values
from agent_eval_schema.cells.cells import read_cells
from agent_eval_schema.cells.sizes import batch_bytes, cell_bytes, joined, one_batch, split_batches
from agent_eval_schema.io.parquet import parquet_batches
from agent_eval_schema.io.source import BATCH_BYTES

Texts = list[str | None]


def _stored(kind: pa.DataType) -> Callable[[Texts], pa.Array]:
    return lambda texts: pa.array(texts, kind)


def _dictionary(values: pa.DataType, spare: Texts) -> Callable[[Texts], pa.Array]:
    """Texts by their place in a dictionary, which also has entries that nobody uses, and perhaps null."""

    def encode(texts: Texts) -> pa.Array:
        entries = [*spare, *dict.fromkeys(t for t in texts if t is not None)]
        places = [None if t is None and None not in entries else entries.index(t) for t in texts]
        return pa.DictionaryArray.from_arrays(pa.array(places, pa.int16()), pa.array(entries, values))

    return encode


def _extension(texts: Texts) -> pa.Array:
    kind = type("Note", (pa.ExtensionType,), {"__arrow_ext_serialize__": lambda _: b""})(pa.string(), "test.note")
    return pa.ExtensionArray.from_storage(kind, pa.array(texts, pa.string()))


ENCODINGS: dict[str, Callable[[Texts], pa.Array]] = {
    "string": _stored(pa.string()),
    "large_string": _stored(pa.large_string()),
    "string_view": _stored(pa.string_view()),
    "binary": _stored(pa.binary()),
    "large_binary": _stored(pa.large_binary()),
    "binary_view": _stored(pa.binary_view()),
    "dictionary": _dictionary(pa.string(), ["spare"]),
    "dictionary with null": _dictionary(pa.large_string(), [None]),
    "dictionary of bytes": _dictionary(pa.binary(), []),
    "runs": lambda texts: pc.run_end_encode(pa.array(texts, pa.string())),
    "runs of large": lambda texts: pc.run_end_encode(pa.array(texts, pa.large_string())),
    "extension": _extension,
    "built": text_array,
}


in_every_encoding = pytest.mark.parametrize("encode", ENCODINGS.values(), ids=ENCODINGS)
TEXTS = st.lists(
    st.one_of(st.none(), st.text(max_size=30), st.sampled_from(["", "same", "é", "NaN", '{"messages": []}']))
)


@st.composite
def slices(draw: st.DrawFn) -> tuple[Texts, int, int]:
    """Texts, and a part of them: an array is often a slice of a larger one."""
    texts = draw(TEXTS)
    start = draw(st.integers(0, len(texts)))
    return texts, start, draw(st.integers(0, len(texts) - start))


@in_every_encoding
@given(part=slices())
def test_every_encoding_holds_the_same_texts(encode: Callable[[Texts], pa.Array], part: tuple[Texts, int, int]) -> None:
    texts, start, count = part
    array, wanted = encode(texts).slice(start, count), texts[start : start + count]
    plain = simplified(array)
    plain.validate(full=True)
    assert plain.to_pylist() == to_values(plain) == wanted
    data, bounds = text_bytes(plain)
    assert [data[a:b].decode() for a, b in pairwise(bounds)] == [t or "" for t in wanted]
    assert [v if v is None else bytes(v).decode() for v in text_views(plain)] == wanted
    cells = read_cells(pa.RecordBatch.from_arrays([array], names=["response"]), "response")
    assert cells is not None
    assert not cells.json
    assert list(cells.texts) == wanted
    assert cells.nul == any("\0" in t for t in wanted if t is not None)
    assert cell_bytes(array).tolist() == [len((t or "").encode()) for t in wanted]


@in_every_encoding
@given(part=slices(), size=st.integers(1, 60))
def test_batches_are_cut_and_joined_by_the_bytes_of_their_texts(
    encode: Callable[[Texts], pa.Array], part: tuple[Texts, int, int], size: int
) -> None:
    texts, start, count = part
    column = encode(texts).slice(start, count)
    batch = pa.RecordBatch.from_arrays([column, pa.array(range(count), pa.int8())], names=["text", "place"])
    pieces = list(split_batches([batch], size, size))
    assert [row for piece in pieces for row in _rows(piece)] == _rows(batch)
    assert all(batch_bytes(piece) <= size or piece.num_rows == 1 for piece in pieces)
    plain = [
        pa.RecordBatch.from_arrays([simplified(p.column(0)), p.column(1)], names=batch.schema.names) for p in pieces
    ]
    whole = list(joined(plain, 5, size))
    assert [row for piece in whole for row in _rows(piece)] == _rows(batch)
    assert all(piece.num_rows >= 5 or piece.nbytes >= size for piece in whole[:-1])


def _rows(batch: pa.RecordBatch) -> list[tuple[Any, int]]:
    return list(zip(simplified(batch.column(0)).to_pylist(), batch.column(1).to_pylist(), strict=True))


@in_every_encoding
@settings(max_examples=30)
@given(texts=TEXTS)
def test_a_table_is_judged_alike_however_its_texts_are_stored(
    encode: Callable[[Texts], pa.Array], texts: Texts
) -> None:
    columns = {"request": ["q"] * len(texts), "response": texts, "expected_response": texts[::-1]}
    encoded = {name: encode(values).slice(0) for name, values in columns.items()}
    plain = {name: pa.array(values, pa.string()) for name, values in columns.items()}
    found, wanted = validate_eval_set(pa.table(encoded)), validate_eval_set(pa.table(plain))
    assert list(found.iter_issues()) == list(wanted.iter_issues())
    assert found.rows[list(columns)].to_dict("records") == wanted.rows[list(columns)].to_dict("records")


NESTED: list[tuple[pa.Array, list[int]]] = [
    (pa.array([["ab", "c"], None, [], ["xyz"]], kind), [3, 0, 0, 3])
    for kind in (
        pa.list_(pa.string()),
        pa.large_list(pa.large_string()),
        pa.list_(pa.string_view()),
        pa.list_view(pa.string()),
        pa.large_list_view(pa.string()),
    )
]
NESTED += [
    (pa.array([["ab", "c"], None, ["", "xyz"]], pa.list_(pa.string(), 2)), [3, 0, 3]),
    (pa.array([[("k", "vw")], None, [("kk", "")]], pa.map_(pa.string(), pa.string())), [3, 0, 2]),
    (pa.array([{"a": "x", "b": 1}, None, {"a": None, "b": 2}]), [9, 8, 8]),
    (pa.ListArray.from_arrays([0, 2, 2, 3], pa.array(["ab", "ab", "c"]).dictionary_encode()), [4, 0, 1]),
    (pa.array([1.5, None]), [8, 8]),
    (pa.array([True, None]), [1, 1]),
    (pa.nulls(2), [0, 0]),
    (pa.array([b"abc", None], pa.binary(3)), [3, 3]),
    (pa.array([[], None], pa.list_(pa.string(), 0)), [0, 0]),
]


def test_the_cells_of_a_union_have_their_share_of_its_bytes() -> None:
    array = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])])
    assert cell_bytes(array).tolist() == [array.nbytes // 2] * 2


def test_a_batch_is_cut_between_rows_and_a_row_that_is_too_large_is_alone() -> None:
    batch = pa.record_batch({"text": ["xx", "yyyy", "z" * 10, "w"]})
    assert [piece.column(0).to_pylist() for piece in split_batches([batch], 6, 8)] == [
        *(["xx", "yyyy"], ["z" * 10], ["w"])
    ]


def test_runs_of_a_text_are_its_cells() -> None:
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["a", "b"])).slice(1)
    report = validate_eval_set(pa.table({"request": runs, "response": runs}))
    assert [row["response"] for row in report.iter_rows()] == ["a", "b"]


@pytest.mark.parametrize(("array", "sizes"), NESTED, ids=lambda value: str(getattr(value, "type", "")))
def test_the_size_of_a_cell_is_that_of_all_texts_in_it(array: pa.Array, sizes: list[int]) -> None:
    for start in range(len(array) + 1):
        assert cell_bytes(array.slice(start)).tolist() == sizes[start:]


@pytest.mark.parametrize("offsets", [[0, 9, 3], [0, -1, 3], [0, 2**31 - 1, 3], [2, 1, 3]])
def test_offsets_beyond_the_data_are_an_error_and_no_crash(offsets: list[int]) -> None:
    buffers = [None, pa.array(offsets, pa.int32()).buffers()[1], pa.py_buffer(b"abc")]
    array = pa.Array.from_buffers(pa.string(), 2, buffers)
    for read in (text_bytes, text_views):
        with pytest.raises(ValueError, match="offsets"):
            read(array)
    report = validate_eval_set(pa.table({"request": array}))
    assert report.invalid_count >= 1


def test_a_batch_of_a_table_has_all_its_rows() -> None:
    rows = pa.table({"a": pa.chunked_array([["x"], [], ["y", None]])}, metadata={"b": "c"})
    assert one_batch(rows).to_pylist() == rows.to_pylist()
    assert one_batch(rows.slice(0, 0)).to_pylist() == []


@pytest.mark.parametrize("small", [True, False])
def test_parquet_pages_that_repeat_texts_are_read_a_few_rows_at_once(tmp_path: Path, small: bool) -> None:
    path = tmp_path / "rows.parquet"
    text = "x" * (10 if small else 20_000)
    columns = {"request": [f"q{i}" for i in range(3000)], "response": [text] * 3000}
    contexts = [[{"doc_uri": "u", "content": text}]] * 3000
    pq.write_table(pa.table({**columns, "retrieved_context": contexts}), path, row_group_size=2000)
    batches = list(parquet_batches(str(path)))
    assert [r for b in batches for r in b.column("request").to_pylist()] == columns["request"]
    assert max(batch_bytes(b) for b in batches) < 2 * BATCH_BYTES + 256 * 2 * len(text)
    assert len(batches) == (1 if small else pytest.approx(3000 * 40_000 / BATCH_BYTES, rel=0.7))
