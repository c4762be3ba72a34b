"""Rows → the forms of CES: a golden evaluation per row, as Evaluation JSON or as a golden CSV."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from agent_eval_schema.formats.ces.evaluation import write_evaluations
from agent_eval_schema.formats.ces.from_rows import goldens_of, groups_of
from agent_eval_schema.formats.ces.golden_writer import golden_csv_text
from agent_eval_schema.formats.ces.rows import rows_of
from agent_eval_schema.formats.writer import CanonicalRow, Writer, Written
from agent_eval_schema.io.atomic import write_text


def _evaluations(rows: Sequence[CanonicalRow]) -> Written:
    """A golden evaluation per row. Read back is the last of its turns, if it expects anything."""
    made = goldens_of(rows)
    back: list[CanonicalRow] = []
    places: list[int | None] = []
    for row, evaluation in zip(rows, made, strict=True):
        back += rows_of(evaluation, groups_of(row))
        expects = any(row.get(n) is not None for n in ("expected_response", "reference_trajectory")) or any(
            "expectation" in step for step in evaluation["golden"]["turns"][-1]["steps"]
        )
        places.append(len(back) - 1 if expects else None)
    return Written(made, back, "databricks", places)


def _golden_csv(rows: Sequence[CanonicalRow]) -> Written:
    written = _evaluations(rows)
    groups = {str(e["displayName"]): groups_of(row) for row, e in zip(rows, written.data, strict=True)}
    text, losses = golden_csv_text(written.data, groups=groups)
    return replace(written, data=text, losses=losses)


def _save_text(text: str, path: str) -> None:
    write_text(path, text)


EVALUATION_WRITER = Writer(document=_evaluations, save=write_evaluations)
GOLDEN_WRITER = Writer(document=_golden_csv, save=_save_text)
