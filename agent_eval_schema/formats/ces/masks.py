"""Which fields an update writes: paths below the Evaluation, found by comparison or checked as the caller gives them.

    stored   displayName: A   golden: {turns: [1, 2]}
    new      displayName: B   golden: {turns: [1, 2, 3]}   tags: [x]
    mask     displayName,golden.turns,tags

A path names a field by its JSON names and ends at the first list, map or free-form object: these are written whole. A
field that the mask names and the new evaluation lacks is cleared. Without a mask the server overwrites every field, so
a mask is never empty. Sources: the API reference of Customer Engagement
Suite (`updateMask`), AIP-134 (google.aip.dev/134), and the wire table (schema.py)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from agent_eval_schema.formats.ces.schema import (
    EVALUATION,
    FieldType,
    MessageType,
    enum_values,
    field_at,
    message,
    messages,
)
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.text.jsontext import value_key
from agent_eval_schema.text.spelling import match_names
from agent_eval_schema.text.visible import visible

Object = Mapping[str, Any]

EVERYTHING = "*"
"""The mask of a full replacement: fields that the new evaluation does not have are cleared."""


# ---------------------------------------------------------------------------------------------------------------------
# values as the server stores them
def with_json_names(value: Any, kind: str = EVALUATION) -> Any:
    """The message with the JSON names of its fields (`display_name` becomes `displayName`); unknown keys are kept.
    Raises EvalSetError if both names of a field occur."""
    if not isinstance(value, Mapping) or kind not in messages():
        return value
    table, found = message(kind), dict[str, Any]()
    for key, part in value.items():
        name = table.json_name(key) or key
        if name in found:
            raise EvalSetError(f"the field {visible(name)} is given twice, as {visible(name)} and as {visible(key)}")
        field = table.fields.get(name)
        found[name] = _each(part, field, lambda v, f: with_json_names(v, f.message)) if field else part
    return found


def _each(value: Any, field: FieldType, rewrite: Callable[[Any, FieldType], Any]) -> Any:
    """The value of a field, or the values in its list, rewritten."""
    if field.repeated and isinstance(value, list):
        return [rewrite(v, field) for v in value]
    return rewrite(value, field)


def stated(value: Any, kind: str = EVALUATION) -> Any:
    """The content of a message: without nulls, and without defaults (`""`, `[]`, false, 0) where the API does not
    distinguish them from absence; an enum by its name. Two messages that are the same for the server are then equal."""
    if not isinstance(value, Mapping) or kind not in messages():
        return value
    fields = message(kind).fields
    found = {k: _each(v, fields[k], _stated_one) if k in fields else v for k, v in value.items() if v is not None}
    return {k: v for k, v in found.items() if k not in fields or _is_stated(v, fields[k])}


def _stated_one(value: Any, field: FieldType) -> Any:
    if field.enum and isinstance(value, int) and not isinstance(value, bool):
        return next((name for name, number in enum_values(field.enum).items() if number == value), value)
    return stated(value, field.message)


def _is_stated(value: Any, field: FieldType) -> bool:
    if field.repeated:
        return bool(value != [])
    if field.explicit_presence or field.oneof:
        return True
    default = value in ("", 0) or (isinstance(value, str) and field.enum and enum_values(field.enum).get(value) == 0)
    return not default


# ---------------------------------------------------------------------------------------------------------------------
# by comparison
def difference(old: Object, new: Object) -> tuple[str, ...]:
    """The paths where two evaluations (with JSON names) differ, as narrow as a mask may be, in the order of the API.

    What only the server sets is not compared. A switch from `golden` to `scenario` names both. Raises EvalSetError if
    an unknown field differs: whether a mask may name it is not defined.
    """
    found = tuple(_differing(stated(old), stated(new), EVALUATION, ""))
    unknown = [path for path in found if not field_at(path)]
    if unknown:
        raise EvalSetError(
            f"the field {visible(unknown[0])} differs, and the known API has none of that name: take it out of the new "
            "evaluation, or name the fields to update with mask="
        )
    return found


def _differing(old: Object, new: Object, kind: str, prefix: str) -> Iterator[str]:
    table = message(kind)
    for name in dict.fromkeys([*table.fields, *old, *new]):
        field, path = table.fields.get(name), f"{prefix}{name}"
        if value_key(old.get(name)) == value_key(new.get(name)) or (field and not _is_written(field)):
            continue
        if field and _is_open(field) and isinstance(old.get(name), Mapping) and isinstance(new.get(name), Mapping):
            yield from _differing(old[name], new[name], field.message, f"{path}.")
        else:
            yield path


def _is_written(field: FieldType) -> bool:
    return not field.output_only and field.behavior != "IDENTIFIER"


def _is_open(field: FieldType) -> bool:
    """Whether a path may lead through the field."""
    return bool(field.message) and not field.repeated


# ---------------------------------------------------------------------------------------------------------------------
# a mask of the caller
def check_mask(mask: object) -> tuple[str, ...]:
    """The paths of a mask such as `"displayName,golden.turns"`; those below another path of the mask are omitted.

    Raises EvalSetError for what the server would reject or misread: snake_case, `{"paths": [...]}`, no path at all,
    fields that are not there or that only the server sets, a path through a list.
    """
    if not isinstance(mask, str):
        got = 'the object {"paths": [...]}, which the server rejects' if isinstance(mask, Mapping) else str(type(mask))
        raise EvalSetError(f'expected the mask as text, "displayName,golden.turns", got {got}')
    paths = tuple(dict.fromkeys(path.strip() for path in mask.split(",")))
    if paths == (EVERYTHING,):
        return paths
    for path in paths:
        _check_path(path)
    return tuple(p for p in paths if not any(p.startswith(f"{wider}.") for wider in paths))


def _check_path(path: str) -> None:
    """Walk the path through the table, and reject it where it leaves the fields that a mask may name."""
    if not path:
        raise EvalSetError(
            'the mask has an empty path; without a mask every field is overwritten: request that with mask="*"'
        )
    if EVERYTHING in path:
        raise EvalSetError(f'{_quoted(path)} in a mask: use "*" alone, for a full replacement')
    at, walked = EVALUATION, list[str]()
    for name in path.split("."):
        if not at:
            is_list = field_at(".".join(walked))[-1].repeated
            why = "a list, which is written whole" if is_list else "a field without subfields"
            raise EvalSetError(f"{_quoted(path)} in a mask: a mask ends at {'.'.join(walked)}, {why}")
        field = message(at).fields.get(name) or _refuse_name(path, name, message(at))
        walked.append(name)
        if not _is_written(field):
            why = _ELSEWHERE.get(".".join(walked), "only the server sets it")
            raise EvalSetError(f"{_quoted(path)} in a mask: {why}")
        at = field.message if _is_open(field) else ""


def _refuse_name(path: str, name: str, table: MessageType) -> FieldType:
    """Suggest the name that was probably meant by one that the message does not have."""
    plain = re.sub(r"[\W_]", "", name).lower()
    by_case = next((known for known in table.fields if known.lower() == plain), None)
    meant = table.json_name(name) or match_names([name], table.fields).get(name) or by_case
    hint = f"did you mean {_quoted(meant)}?" if meant else f"known: {', '.join(table.fields)}"
    if name == "evaluation":
        hint = "paths begin below the evaluation"
    what = "names are written in lowerCamelCase" if "_" in name else "unknown field"
    raise EvalSetError(f"{_quoted(path)} in a mask: {what}: {hint}")


_ELSEWHERE = {
    "name": "it identifies the evaluation and cannot be changed",
    "etag": "it belongs in the evaluation, where it is kept, not in the mask",
    "evaluationDatasets": "an update cannot move an evaluation into a group: import a CSV with evaluation_groups",
}
"""Why a mask may not name a field, for reasons other than that the server sets it."""


def _quoted(path: str) -> str:
    return f'"{visible(path)}"'


# ---------------------------------------------------------------------------------------------------------------------
# a mask against the evaluation that it is for
def check_effect(paths: Iterable[str], new: Object, old: Object | None) -> None:
    """Reject a mask that would result in an evaluation that the service does not accept: without a required field,
    without inputs, or with parts of one input where the stored evaluation has the other. `new` and `old` have JSON
    names."""
    content = stated(new)
    inputs = {name for name in message(EVALUATION).oneofs["inputs"] if name in content}
    if len(inputs) > 1:
        raise EvalSetError(f"the evaluation has {' and '.join(sorted(inputs))}: expected only one of them")
    for path in list(message(EVALUATION).fields) if tuple(paths) == (EVERYTHING,) else paths:
        _check_cleared(path, content)
    _check_inputs(tuple(paths), inputs, old)


def _check_cleared(path: str, content: Object) -> None:
    """A field that the mask names and that is absent is cleared: a required field must not be."""
    at: Any = content
    for name, field in zip(path.split("."), field_at(path), strict=True):
        at = at.get(name) if isinstance(at, Mapping) else None
        if at is None and field.required:
            raise EvalSetError(f"the mask would clear {name} ({path}), which the service requires: give it a value")


def _check_inputs(paths: tuple[str, ...], inputs: set[str], old: Object | None) -> None:
    """Setting one input clears the other, by the rules of a oneof; so the new one must be written whole."""
    kinds = message(EVALUATION).oneofs["inputs"]
    named = {path.partition(".")[0] for path in paths} & set(kinds)
    if paths == (EVERYTHING,) or named:
        if not inputs:
            raise EvalSetError(f"the update would leave the evaluation without inputs: it needs {' or '.join(kinds)}")
        if named and not named & inputs:
            raise EvalSetError(
                f"the mask would clear {', '.join(sorted(named))}, and does not name {', '.join(inputs)}, which is to "
                "take its place: add it to the mask"
            )
    stored = {kind for kind in kinds if kind in stated(old or {})}
    for kind in sorted(inputs - stored):
        if stored and kind in named and kind not in paths:
            raise EvalSetError(
                f"the stored evaluation has {', '.join(stored)}: a switch to {kind} writes it whole; put {kind} in the "
                "mask"
            )
