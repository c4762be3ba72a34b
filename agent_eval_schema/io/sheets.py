"""Where the rows of a sheet are in its workbook."""

from __future__ import annotations

from msgspec import Struct

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.io.atomic import FileState

Merged = list[tuple[int, int, int, int]]
"""Of merged cells the first column and line, and the last ones."""


class SheetPlace(Struct, frozen=True):
    """Where the rows of a workbook are: the part with their sheet, the lines of the header and of each row, and the
    place of each column."""

    path: str
    part: str
    merged: Merged
    state: FileState | None
    header: int = 0
    lines: list[int] = []
    columns: dict[str, int] = {}

    def refused(self, where: str, got: str) -> EvalSetError:
        return EvalSetError(f"{self.path}: {where}: expected a cell that can be replaced, got {got}: write .jsonl")
