"""The cells of a column that are nested too deep, wherever in the column's bytes they begin and end."""

import random

import pyarrow as pa
import pytest

from agent_eval_schema.cells.arrow import deep_cells, depths
from agent_eval_schema.rules.reading import MAX_DEPTH

DEEP = "[" * (MAX_DEPTH + 1)


@pytest.mark.parametrize("before", range(9))
@pytest.mark.parametrize("after", range(9))
def test_a_cell_is_found_at_any_place(before: int, after: int) -> None:
    long = "x" * (MAX_DEPTH + 1 + after)
    cells = ["x" * before, DEEP, None, long, " " * after + DEEP, "[" * MAX_DEPTH, "", long + DEEP]
    assert deep_cells(pa.array(cells, pa.large_string())) == [1, 4, 7]
    assert deep_cells(pa.array([*cells, "x" * after], pa.string()).slice(1)) == [0, 3, 6]


def test_cells_are_found_in_each_part_of_a_large_column() -> None:
    cells = [f"{'y' * 40_000}{DEEP if row % 3 == 0 else ''}" for row in range(30)]
    assert deep_cells(pa.array(cells)) == list(range(0, 30, 3))


def test_no_more_brackets_open_than_counted() -> None:
    """The count of a lone cell is exact; next to others, a few thousand bytes before and behind may be counted."""
    rng = random.Random(1)
    cells = ["".join(rng.choices('[{]}"x', k=rng.choice((5, 300, 2_040, 50_000)))) for _ in range(40)]
    opening = [cell.count("[") + cell.count("{") for cell in cells]
    counted = depths(pa.array(cells))[1].tolist()
    assert all(least <= count <= len(cell) for least, count, cell in zip(opening, counted, cells, strict=True))
    assert [depths(pa.array([cell]))[1].tolist() for cell in cells if len(cell) > MAX_DEPTH] == [
        [least] for least, cell in zip(opening, cells, strict=True) if len(cell) > MAX_DEPTH
    ]
    assert [row for row, count in enumerate(counted) if count > opening[row] + 4_080] == []
