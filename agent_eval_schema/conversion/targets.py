"""The formats that a conversion writes: how canonical rows become each target's rows or document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.conversion import ces
from agent_eval_schema.formats.adk import evalset, one_session
from agent_eval_schema.formats.ces.evaluation import write_evaluations
from agent_eval_schema.formats.ces.from_rows import groups_of
from agent_eval_schema.formats.ces.golden_writer import golden_csv_text
from agent_eval_schema.formats.deepeval import DEEPEVAL
from agent_eval_schema.formats.langsmith import LANGSMITH
from agent_eval_schema.formats.layout import Layout
from agent_eval_schema.formats.mlflow import MLFLOW_ROW, write_mlflow
from agent_eval_schema.formats.openai import OPENAI
from agent_eval_schema.formats.ragas import RAGAS
from agent_eval_schema.formats.vertex import VERTEX
from agent_eval_schema.io.atomic import write_text
from agent_eval_schema.issues import EvalSetError, Issue
from agent_eval_schema.schema import COLUMNS, ROW_SCHEMA
from agent_eval_schema.text import jsontext
from agent_eval_schema.validation import ces_turns

Row = Mapping[str, Any]

POSITION = "__position__"
"""The key under which a canonical row knows its place in the source while it is converted."""


class Document(Struct, frozen=True):
    """A target that is made of all rows at once. `back` is what a check reads to see what became of them, in `format`;
    `places` says which of the rows there is which (None: it is not there); `losses` are those that its writer knows."""

    data: Any
    back: Any
    format: str
    places: Sequence[int | None]
    losses: Sequence[Issue] = ()


class Target(Struct, frozen=True):
    """A format that can be written: row by row into the columns it names, or as one document that `save` writes."""

    name: str
    write: Callable[[Row], dict[str, Any]] | None = None
    columns: tuple[str, ...] = ()
    document: Callable[[Sequence[Row]], Document] | None = None
    save: Callable[[Any, str], Any] | None = None


def _canonical(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in COLUMNS if row[name] is not None}


def _layout(name: str, layout: Layout) -> Target:
    return Target(name, layout.write, layout.written)


def _evalset(rows: Sequence[Row]) -> Document:
    made, places = evalset(rows)
    return Document(made, made, "adk", places)


def _test_list(rows: Sequence[Row]) -> Document:
    made, places = one_session(rows)
    return Document(made, made, "adk-legacy", places)


def _evaluations(rows: Sequence[Row]) -> Document:
    made, places = ces.made_of_rows(rows)
    groups = [groups_of(row) for row in rows]
    return Document(made, ces.rows_back(made, groups), "databricks", places)


def _golden_csv(rows: Sequence[Row]) -> Document:
    found = _evaluations(rows)
    text, losses = golden_csv_text(found.data, groups=ces.groups_by_name(rows, found.data))
    moved = [replace(loss, row=rows[loss.row or 0][POSITION]) for loss in losses]
    return replace(found, data=text, losses=moved)


def _save_json(made: Any, path: str) -> None:
    write_text(path, msgspec.json.format(jsontext.encode(made), indent=2).decode() + "\n")


def _save_text(made: Any, path: str) -> None:
    write_text(path, made)


TARGETS: dict[str, Target] = {
    t.name: t
    for t in (
        Target("databricks", _canonical, COLUMNS),
        Target("mlflow", write_mlflow, MLFLOW_ROW),
        _layout("vertex", VERTEX),
        Target("adk", document=_evalset, save=_save_json),
        Target("adk-legacy", document=_test_list, save=_save_json),
        _layout("openai", OPENAI),
        _layout("langsmith", LANGSMITH),
        _layout("ragas", RAGAS),
        _layout("deepeval", DEEPEVAL),
        Target(ces_turns.JSON, document=_evaluations, save=write_evaluations),
        Target(ces_turns.CSV, document=_golden_csv, save=_save_text),
    )
}
"""What can be written, by name."""

NUMBERS = {
    **{f.name: f.type for f in ROW_SCHEMA if f.name != "failure" and pa.types.is_primitive(f.type)},
    **dict.fromkeys(("latency_in_seconds", "completion_time"), pa.float64()),
}
"""The columns of the targets that hold numbers."""


def find_target(name: str) -> Target:
    """The target of that name. Raises EvalSetError if there is none."""
    if name not in TARGETS:
        raise EvalSetError(f"cannot convert to {name!r}: use one of {', '.join(TARGETS)}")
    return TARGETS[name]
