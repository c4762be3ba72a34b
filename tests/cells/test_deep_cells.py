"""The cells of a column that are nested too deep, wherever in the column's bytes they begin and end."""

import json
import random

import pyarrow as pa
import pytest
from msgspec import DecodeError
from msgspec.json import decode

from agent_eval_schema.cells.arrow import deep_cells, depths
from agent_eval_schema.rules.reading import MAX_DEPTH
from agent_eval_schema.text.depth import is_too_deep
from agent_eval_schema.text.jsontext import python_value

DEEP = "[" * (MAX_DEPTH + 1)


@pytest.mark.parametrize("before", range(9))
@pytest.mark.parametrize("after", range(9))
def test_a_cell_is_found_at_any_place(before: int, after: int) -> None:
    long = "[" + "x" * (MAX_DEPTH + after)
    cells = ["x" * before, DEEP, None, long, " " * after + DEEP, "[" * MAX_DEPTH, "x" + DEEP, long + DEEP]
    assert deep_cells(pa.array(cells, pa.large_string())) == [1, 4, 7]
    assert deep_cells(pa.array([*cells, "x" * after], pa.string()).slice(1)) == [0, 3, 6]


def test_cells_are_found_in_each_part_of_a_large_column() -> None:
    cells = [f"[{'y' * 40_000}{DEEP if row % 3 == 0 else ''}" for row in range(30)]
    assert deep_cells(pa.array(cells)) == list(range(0, 30, 3))


def test_no_more_brackets_open_than_counted() -> None:
    """The count of a lone cell is exact; next to others, a few thousand bytes before and behind may be counted."""
    rng = random.Random(1)
    cells = ["[" + "".join(rng.choices('[{]}"x', k=rng.choice((5, 300, 2_040, 50_000)))) for _ in range(40)]
    opening = [cell.count("[") + cell.count("{") for cell in cells]
    counted = depths(pa.array(cells))[1].tolist()
    assert all(least <= count <= len(cell) for least, count, cell in zip(opening, counted, cells, strict=True))
    assert [depths(pa.array([cell]))[1].tolist() for cell in cells if len(cell) > MAX_DEPTH] == [
        [least] for least, cell in zip(opening, cells, strict=True) if len(cell) > MAX_DEPTH
    ]
    assert [row for row, count in enumerate(counted) if count > opening[row] + 4_080] == []


@pytest.mark.parametrize("first", [chr(code) for code in range(128)] + ["\x85", "\xa0", "\u3000", "\ufeff", "é"])
def test_only_what_no_parser_reads_as_json_is_not_measured(first: str) -> None:
    """As one column and as one text: behind a first letter, brackets are text."""
    text = first + DEEP
    assert (deep_cells(pa.array([text])) == [0]) == is_too_deep(text) == is_too_deep(text.encode())
    assert is_too_deep(text) or (first.isascii() and not first.isspace() and first not in "[{")
    if not is_too_deep(text):
        for parse, error in ((json.loads, ValueError), (decode, DecodeError)):
            with pytest.raises(error, match=r"char|malformed|truncated|invalid"):
                parse(text)
    assert python_value(text) is None
