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


def _evaluations(rows: Sequence[CanonicalRow]) -> Written:
    return _written(rows, evaluations_by(rows), with_groups=False)


def _golden_csv(rows: Sequence[CanonicalRow]) -> Written:
    made = evaluations_by(rows)
    # A name refers to its first evaluation.
    groups = {str(one.evaluation["displayName"]): one.groups for one in reversed(made)}
    text, losses = golden_csv_text([one.evaluation for one in made], groups=groups)
    of_rows = [replace(loss, row=min(made[loss.row or 0].turns)) for loss in losses]
    return replace(_written(rows, made, with_groups=True), data=text, losses=of_rows)


def _written(rows: Sequence[CanonicalRow], made: Sequence[Assembled], *, with_groups: bool) -> Written:
    """The evaluations, and the rows that are read back from them: for each row the one of its turn."""
    back: list[CanonicalRow] = []
    places: list[int | None] = [None] * len(rows)
    for one in made:
        found = rows_of(one.evaluation, one.groups if with_groups else ())
        at = {_turn(row): i for i, row in enumerate(found, start=len(back))}
        for place, turn in one.turns.items():  # a scenario has one row
            places[place] = at.get(turn) if turn else len(back)
        back += found
    return Written([one.evaluation for one in made], back, "databricks", places)


def _turn(row: CanonicalRow) -> int:
    number = str(row["request_id"]).rpartition("#")[2]
    return int(number) if number.isdecimal() else 0


EVALUATION_WRITER = Writer(document=_evaluations, save=write_evaluations)
GOLDEN_WRITER = Writer(document=_golden_csv, save=lambda text, path: write_text(path, text))
