"""Rows → the forms of CES, as Evaluation JSON or as a golden CSV (which rows are one evaluation: from_rows.py)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from agent_eval_schema.formats.ces.evaluation import write_evaluations
from agent_eval_schema.formats.ces.from_rows import Assembled, evaluations_by
from agent_eval_schema.formats.ces.golden_writer import golden_csv_text
from agent_eval_schema.formats.ces.rows import rows_of
from agent_eval_schema.formats.writer import CanonicalRow, Writer, Written
from agent_eval_schema.io.atomic import write_text


def _golden_csv(rows: Sequence[CanonicalRow]) -> Written:
    assembled = evaluations_by(rows)
    # A name refers to its first evaluation.
    groups = {str(one.evaluation["displayName"]): one.groups for one in reversed(assembled)}
    text, losses = golden_csv_text([one.evaluation for one in assembled], groups=groups)
    of_rows = [replace(loss, row=min(assembled[loss.row or 0].turns)) for loss in losses]
    return replace(_written(rows, assembled, with_groups=True), data=text, losses=of_rows)


def _written(rows: Sequence[CanonicalRow], assembled: Sequence[Assembled], *, with_groups: bool) -> Written:
    """The evaluations, and the rows that are read back from them: for each row the one of its turn."""
    back: list[CanonicalRow] = []
    places: list[int | None] = [None] * len(rows)
    for one in assembled:
        found = rows_of(one.evaluation, one.groups if with_groups else ())
        numbers = [str(row["request_id"]).rpartition("#")[2] for row in found]
        at = {int(n) if n.isdecimal() else 0: i for i, n in enumerate(numbers, start=len(back))}
        for place, turn in one.turns.items():  # a scenario has one row
            places[place] = at.get(turn) if turn else len(back)
        back += found
    return Written([one.evaluation for one in assembled], back, "databricks", places)


EVALUATION_WRITER = Writer(
    document=lambda rows: _written(rows, evaluations_by(rows), with_groups=False), save=write_evaluations
)
GOLDEN_WRITER = Writer(document=_golden_csv, save=lambda text, path: write_text(path, text))
