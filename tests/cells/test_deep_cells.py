"""The cells of a column that are nested too deep, wherever in the column's bytes they begin and end."""

import pyarrow as pa
import pytest

from agent_eval_schema.cells.arrow import deep_cells
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
