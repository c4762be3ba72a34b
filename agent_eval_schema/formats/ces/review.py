"""An update → what it would change, ready to be shown: its mask, and for each path from what to what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from agent_eval_schema.formats.ces.masks import EVERYTHING, difference, with_json_names
from agent_eval_schema.formats.ces.schema import EVALUATION, message
from agent_eval_schema.formats.ces.update import Update
from agent_eval_schema.text.edits import Edit, edits


class WrittenField(Struct, frozen=True):
    """A field that an update writes: the first edits, and how many there are beyond these."""

    path: str
    edits: tuple[Edit, ...]
    more_edits: int


class UpdateReview(Struct, frozen=True):
    """The effect of an update on the evaluation of that name. `compared` is false where the stored one is not known:
    then all that is written is shown as new. Fields of the mask that are equal already have no edits."""

    name: str
    mask: str
    compared: bool
    fields: tuple[WrittenField, ...]


def review_update(update: Update, old: Mapping[str, Any] | None) -> UpdateReview:
    """Compare the evaluation to be written with the stored one, if that is known."""
    stored = None if old is None else with_json_names(old)
    fields = tuple(_written(path, stored, update.evaluation) for path in _shown(update, stored))
    return UpdateReview(update.evaluation["name"], ",".join(update.paths), stored is not None, fields)


def _shown(update: Update, stored: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The paths of the mask; of a full replace those that differ, the lost ones too."""
    if update.paths != (EVERYTHING,):
        return update.paths
    if stored is not None:
        return difference(stored, update.evaluation)
    return tuple(name for name in message(EVALUATION).fields if name in update.evaluation and name not in _IDENTITY)


_IDENTITY = ("name", "etag")


def _written(path: str, stored: Mapping[str, Any] | None, new: Mapping[str, Any]) -> WrittenField:
    before, after = _at(path, stored or {}), _at(path, new)
    found, more = ((), 0) if before == after else edits(path, before, after)
    return WrittenField(path, found, more)


def _at(path: str, value: Any) -> Any:
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
