"""The rows on which an agent failed: counted, and the first of them named."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from agent_eval_schema.evaluation.score_stats import Numbers
from agent_eval_schema.render.coverage import NAMED


class FailedCalls(Struct):
    """How many rows failed, and the first of them by their request_id or position."""

    count: int = 0
    names: list[str] = []

    def add(self, failed: Numbers, start: int, ids: Sequence[str | None]) -> None:
        """Take in the rows of a part, the first of which is row `start`."""
        rows: list[int] = np.flatnonzero(failed > 0).tolist()
        self.count += len(rows)
        self.names += [ids[row] or str(start + row) for row in rows[: NAMED - len(self.names)]]
