"""Evaluations → the requests that store them, without sending them (integrations/ces/client.py).

update_request(new, old=stored)   the JSON-RPC body of the MCP tool `update_evaluation`
rest_path(name, updateMask=…)     where its twin of REST is: PATCH …/v1beta/{name}?updateMask=…
import_request(csv)               the body of POST …/v1beta/{app}:importEvaluations
"""

from __future__ import annotations

import base64
import csv as csv_module
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args
from urllib.parse import urlencode

from msgspec import Struct

from agent_eval_schema.errors import EvalSetError, reading_file
from agent_eval_schema.formats.ces import schema
from agent_eval_schema.formats.ces.evaluation import Evaluation, is_result, read_evaluations, validate_evaluation
from agent_eval_schema.formats.ces.golden import REQUIRED
from agent_eval_schema.formats.ces.rows import Object
from agent_eval_schema.issues import Issue
from agent_eval_schema.rule import Severity
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.choices import require_kind
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.edits import Edit, edits
from agent_eval_schema.text.jsontext import value_key
from agent_eval_schema.text.spelling import match_names
from agent_eval_schema.text.visible import visible

# --- the fields that an update writes: paths below the Evaluation, found by comparison, or as the caller has them
#
#     stored   displayName: A   golden: {turns: [1, 2]}
#     new      displayName: B   golden: {turns: [1, 2, 3]}   tags: [x]
#     mask     displayName,golden.turns,tags
#
# A path names a field by its JSON names and ends at the first list, map or free-form object: these are written whole.
# A field that the mask names and the new evaluation lacks is cleared. Without a mask the server overwrites every field,
# so a mask is never empty. Sources: the API reference of Customer Engagement Suite (`updateMask`), AIP-134
# (google.aip.dev/134), and the wire table (schema.py).
EVERYTHING = "*"
"""The mask of a full replacement: fields that the new evaluation does not have are cleared."""


def with_json_names(value: Any, kind: str = schema.EVALUATION) -> Any:
    """The message with JSON names, unknown keys kept. Raises EvalSetError for a field under both names."""

    def refuse(name: str, key: str) -> None:
        raise EvalSetError(f"the field {visible(name)} is given twice, as {visible(name)} and as {visible(key)}")

    return schema.with_json_names(value, kind, refuse)


def stated(value: Any, kind: str = schema.EVALUATION) -> Any:
    """The content of a message: without nulls, and without defaults (`""`, `[]`, false, 0) where the API does not
    distinguish them from absence; an enum by its name. Two messages that are the same for the server are then equal."""
    if not isinstance(value, Mapping) or kind not in schema.table().messages:
        return value
    fields = schema.message(kind).fields
    parts = {k: schema.each(v, fields[k], _stated_one) if k in fields else v for k, v in value.items() if v is not None}
    return {k: v for k, v in parts.items() if k not in fields or not fields[k].is_default(v)}


def _stated_one(value: Any, field: schema.FieldType) -> Any:
    if field.enum and isinstance(value, int) and not isinstance(value, bool):
        return next((name for name, number in schema.table().enums[field.enum].items() if number == value), value)
    return stated(value, field.message)


def difference(old: Object, new: Object) -> tuple[str, ...]:
    """The paths where two evaluations (with JSON names) differ, as narrow as a mask may be, in the order of the API.

    What only the server sets is not compared. A switch from `golden` to `scenario` names both. Raises EvalSetError if
    an unknown field differs: whether a mask may name it is not defined.
    """
    paths = tuple(_differing(stated(old), stated(new), schema.EVALUATION, ""))
    unknown = [path for path in paths if not schema.field_at(path)]
    if unknown:
        raise EvalSetError(
            f"the field {visible(unknown[0])} differs, and the known API has none of that name: take it out of the new "
            "evaluation, or name the fields to update with mask="
        )
    return paths


def _differing(old: Object, new: Object, kind: str, prefix: str) -> Iterator[str]:
    table = schema.message(kind)
    for name in dict.fromkeys([*table.fields, *old, *new]):
        field, path = table.fields.get(name), f"{prefix}{name}"
        if value_key(old.get(name)) == value_key(new.get(name)) or (field and not _is_written(field)):
            continue
        if field and _is_open(field) and isinstance(old.get(name), Mapping) and isinstance(new.get(name), Mapping):
            yield from _differing(old[name], new[name], field.message, f"{path}.")
        else:
            yield path


def _is_written(field: schema.FieldType) -> bool:
    return not field.output_only and field.behavior != "IDENTIFIER"


def _is_open(field: schema.FieldType) -> bool:
    """Whether a path may lead through the field."""
    return bool(field.message) and not field.repeated


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
        if not path:
            raise EvalSetError(
                'the mask has an empty path; without a mask every field is overwritten: request that with mask="*"'
            )
        if EVERYTHING in path:
            raise EvalSetError(f'{_quoted(path)} in a mask: use "*" alone, for a full replacement')
        at, walked = schema.EVALUATION, list[str]()
        for name in path.split("."):
            if not at:
                is_list = schema.field_at(".".join(walked))[-1].repeated
                why = "a list, which is written whole" if is_list else "a field without subfields"
                raise EvalSetError(f"{_quoted(path)} in a mask: a mask ends at {'.'.join(walked)}, {why}")
            field = schema.message(at).fields.get(name) or _refuse_name(path, name, schema.message(at))
            walked.append(name)
            if not _is_written(field):
                why = _ELSEWHERE.get(".".join(walked), "only the server sets it")
                raise EvalSetError(f"{_quoted(path)} in a mask: {why}")
            at = field.message if _is_open(field) else ""
    return tuple(p for p in paths if not any(p.startswith(f"{wider}.") for wider in paths))


def _refuse_name(path: str, name: str, table: schema.MessageType) -> schema.FieldType:
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


def _check_inputs(paths: tuple[str, ...], inputs: set[str], old: Object | None) -> None:
    """Setting one input clears the other, by the rules of a oneof; so the new one must be written whole."""
    kinds = schema.message(schema.EVALUATION).oneofs["inputs"]
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


TOOL = "update_evaluation"
API_VERSION = "v1beta"
"""The version of the REST API that has evaluations."""

Conflict = Literal["OVERWRITE", "SKIP", "DUPLICATE"]
"""What an import does with an evaluation that is there already (`conflictResolutionStrategy`)."""

CONFLICTS: tuple[Conflict, ...] = get_args(Conflict)


class Update(NamedTuple):
    """What an update writes: the evaluation as it is sent, and the paths of the mask (`("*",)` replaces all)."""

    evaluation: dict[str, Any]
    paths: tuple[str, ...]


def update_request(new: object, old: object | None = None, mask: str | None = None) -> dict[str, Any]:
    """Return a request that updates a stored evaluation.

    It is the JSON-RPC body that calls the MCP tool `update_evaluation`.

    Parameters
    ----------
    new : mapping or str
        The desired state of the evaluation: a dict or JSON text, with JSON names or snake_case. Its `name` (of `old` if
        it has none) identifies the evaluation.
    old : mapping, str or None, default None
        The stored evaluation. The fields that differ are updated, and its `etag` is sent, so that the service rejects
        the update if the evaluation was changed in between. None requires `mask`.
    mask : str or None, default None
        The fields to update, such as `"displayName,golden.turns"`, in place of the difference. `"*"` replaces all
        fields; those that `new` does not have are cleared. None requires `old`.

    Returns
    -------
    dict
        `{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "update_evaluation", "arguments":
        {"evaluation": {...}, "updateMask": "..."}}}`. The evaluation has JSON names, and no output-only field except
        `etag`.

    Raises
    ------
    EvalSetError
        Neither `old` nor `mask` is given; the service would reject the mask; the mask would clear a required field;
        nothing differs; or the evaluations are different ones.

    See Also
    --------
    update_evaluation : Send the request.

    Examples
    --------
    >>> from agent_eval_schema import ces
    >>> name = "projects/p/locations/us/apps/a/evaluations/e"
    >>> request = ces.update_request(
    ...     {"name": name, "displayName": "Refunds"}, old={"name": name, "displayName": "Refund", "etag": "1"}
    ... )
    >>> request["params"]["arguments"]["updateMask"]
    'displayName'
    """
    update = plan_update(new, old, mask)
    if not update.paths:
        raise EvalSetError("no changes: the stored evaluation is up to date")
    return request_of(update)


def request_of(update: Update) -> dict[str, Any]:
    """The JSON-RPC body of an update that has paths."""
    arguments = {"evaluation": update.evaluation, "updateMask": ",".join(update.paths)}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": TOOL, "arguments": arguments}}


def plan_update(new: object, old: object | None = None, mask: str | None = None) -> Update:
    """What `update_request` would send; no paths if nothing differs."""
    if old is None and mask is None:
        raise EvalSetError(
            "without a mask every field is overwritten: give the stored evaluation (old=, --against) or the fields "
            'to update (mask=, --mask); mask="*" is a full replace'
        )
    wanted = with_json_names(_object(new, "the new evaluation"))
    stored = None if old is None else with_json_names(_object(old, "the stored evaluation"))
    if is_result(wanted) or (stored is not None and is_result(stored)):
        raise EvalSetError("this is the result of an evaluation, which only the server writes: give the evaluation")
    paths = difference(stored or {}, wanted) if mask is None else check_mask(mask)
    # reject an update whose result the service does not accept: without a required field, without inputs, or with
    # parts of one input where the stored evaluation has the other
    content = stated(wanted)
    inputs = {name for name in schema.message(schema.EVALUATION).oneofs["inputs"] if name in content}
    if len(inputs) > 1:
        raise EvalSetError(f"the evaluation has {' and '.join(sorted(inputs))}: expected only one of them")
    for path in list(schema.message(schema.EVALUATION).fields) if tuple(paths) == (EVERYTHING,) else paths:
        at: Any = content  # a field that the mask names and that is absent is cleared
        for name, field in zip(path.split("."), schema.field_at(path), strict=True):
            at = at.get(name) if isinstance(at, Mapping) else None
            if at is None and field.required:
                raise EvalSetError(f"the mask would clear {name} ({path}), which the service requires: give it a value")
    _check_inputs(tuple(paths), inputs, stored)
    own, etag = wanted.get("etag"), (stored or {}).get("etag")
    if own and etag and own != etag:
        raise EvalSetError(
            "the stored evaluation has changed since the new one was made from it (their etags differ): bring the "
            "change into the new one, or take its etag out to overwrite it"
        )
    names = [side["name"] for side in (wanted, stored) if side and side.get("name")]
    if names and names[0] != names[-1]:
        raise EvalSetError(f"{visible(names[0])} is not the stored evaluation, {visible(names[-1])}")
    identity = {"name": checked_name(names[0] if names else None, EVALUATION_NAME), "etag": own or etag}
    of_server = {name for name, field in schema.message(schema.EVALUATION).fields.items() if field.output_only}
    written = {k: v for k, v in wanted.items() if k not in of_server | identity.keys()}
    return Update({k: v for k, v in identity.items() if v} | written, paths)


def plan_updates(
    new: str | os.PathLike[str], old: str | os.PathLike[str] | None, mask: str | None, app: str | None = None
) -> tuple[list[tuple[Update, Evaluation | None]], list[Evaluation]]:
    """For each evaluation of the file `new` what would be sent, and the one of that name in the file `old`; then those
    that are new in the `app`, if it is given: then stored ones are found by display name, too.

    Raises EvalSetError as `update_request` does, and if `old` has none of that name.
    """
    if app is not None:
        checked_name(app, APP_NAME)
        if old is None:
            raise EvalSetError("an app (--app) requires its stored evaluations (--against): `ces list APP` writes them")
    for path in (new, old):
        if path is not None and os.fspath(path).lower().endswith((".csv", ".tsv")):
            hint = "`convert IN OUT --to ces-evaluation` makes it of a golden CSV"
            raise EvalSetError(f"{os.fspath(path)}: expected Evaluation JSON: {hint}")
    wanted = read_evaluations(Path(new))
    if not wanted:
        raise EvalSetError(f"{os.fspath(new)}: expected an evaluation, got none")
    if old is None:
        return [(plan_update(evaluation, None, mask), None) for evaluation in wanted], []
    stored = read_evaluations(Path(old))
    if app is not None:
        found = [(evaluation, _stored_in(app, evaluation, stored)) for evaluation in wanted]
        names = [match["name"] for _, match in found if match is not None]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise EvalSetError(f"two evaluations are the stored {visible(twice)}: rename one of them")
        planned = [(plan_update(_over(match, e, app), match, mask), match) for e, match in found if match is not None]
        return [*planned], [e for e, match in found if match is None]
    # One against one needs no name to be found by; plan_update rejects two that differ.
    pairs = enumerate(wanted, start=1)
    matches = stored if len(wanted) == len(stored) == 1 else [_same(e, n, stored, os.fspath(old)) for n, e in pairs]
    return [(plan_update(e, match, mask), match) for e, match in zip(wanted, matches, strict=True)], []


def _stored_in(app: str, wanted: Evaluation, stored: list[Evaluation]) -> Evaluation | None:
    """The stored evaluation of an app by the name of another one, which may be only its ID, or by its display name."""
    name, label = wanted.get("name"), wanted.get("displayName")
    if name and "/" in name and not name.startswith(f"{app}/evaluations/"):
        raise EvalSetError(f"{visible(name)} is no evaluation of the app {app}")
    full = name if not name or "/" in name else f"{app}/evaluations/{name}"
    own = [evaluation for evaluation in stored if str(evaluation.get("name")).startswith(f"{app}/evaluations/")]
    by_name = [evaluation for evaluation in own if full and evaluation["name"] == full]
    matches = by_name or [evaluation for evaluation in own if label and evaluation.get("displayName") == label]
    if len(matches) > 1:
        names = ", ".join(visible(evaluation["name"]) for evaluation in matches)
        raise EvalSetError(f"{describe(label)} is the display name of several stored evaluations, {names}: set `name`")
    return matches[0] if matches else None


def _over(stored: Evaluation, wanted: Evaluation, app: str) -> Evaluation:
    """The stored evaluation with the fields of another one, which may be from a golden CSV: fields that it does not
    have, such as thresholds, stay as they are stored, and names are those of resources of the app."""
    names = schema.message(schema.EVALUATION)

    def named(name: str, kind: str) -> str:
        is_id = name and "/" not in name and kind in ("tools", "agents")  # all that a golden CSV has of the name
        return f"{app}/{kind}/{name}" if is_id else name

    new, old = schema.with_references(with_json_names(wanted), schema.EVALUATION, named), with_json_names(stored)
    others = {n: v for n, v in old.items() if n not in names.oneofs["inputs"] or n in new}
    golden = {"golden": {**old["golden"], **new["golden"]}} if "golden" in new and "golden" in others else {}
    return Evaluation({**others, **new, **golden, "name": stored["name"]})


def _same(wanted: Evaluation, number: int, stored: list[Evaluation], where: str) -> Evaluation:
    name = wanted.get("name")
    if not name:
        shown = f" ({describe(wanted['displayName'])})" if wanted.get("displayName") else ""
        raise EvalSetError(
            f"evaluation {number}{shown}: `name` is missing: it identifies the stored evaluation in {where}"
        )
    match = next((e for e in stored if e.get("name") == name), None)
    if match is None:
        raise EvalSetError(f"{where}: no evaluation has the `name` of evaluation {number}: {describe(name, 120)}")
    return match


def faults_of(update: Update) -> list[Issue]:
    """The errors of the evaluation in the fields that the mask names: the service would reject them."""
    errors = [issue for issue in validate_evaluation(update.evaluation) if issue.severity is Severity.ERROR]
    if update.paths == (EVERYTHING,):
        return errors
    plain_paths = [re.sub(r"\[[^\]]*\]", "", issue.path or "") for issue in errors]
    prefixes = tuple(f"{path}." for path in update.paths)
    return [issue for issue, path in zip(errors, plain_paths, strict=True) if f"{path}.".startswith(prefixes)]


def _object(source: object, what: str) -> dict[str, Any]:
    """The value as plain data of its own."""
    try:
        text = source if isinstance(source, str) else jsontext.write_exactly(source)
    except (TypeError, ValueError) as error:
        raise EvalSetError(f"{what}: expected an object or its JSON text, got data that JSON cannot hold") from error
    value = jsontext.parse_exactly(text)
    if isinstance(value, jsontext.Malformed):
        raise EvalSetError(f"{what}: {value.message}")
    if not isinstance(value, dict):
        raise EvalSetError(f"{what}: expected an object or its JSON text, got {describe(value)}")
    return value


APP_NAME = "projects/{project}/locations/{location}/apps/{app}"
EVALUATION_NAME = APP_NAME + "/evaluations/{evaluation}"
OPERATION_NAME = "projects/{project}/locations/{location}/operations/{operation}"


def checked_name(name: object, form: str) -> str:
    """The resource name if it has that form, else EvalSetError: it is a part of an address, too."""
    pattern = re.sub(r"\{\w+\}", lambda _: r"(?!\.+(?:/|$))[\w.~:-]+", form)
    if name is None or name == "":
        raise EvalSetError(f"`name` is missing: expected {form}")
    if not isinstance(name, str) or not re.fullmatch(pattern, name, re.ASCII):
        raise EvalSetError(
            f"expected the name as {form}, got {visible(name) if isinstance(name, str) else describe(name)}"
        )
    return name


def rest_path(name: str, **query: str) -> str:
    """The path of a resource in the REST API, and the query."""
    return f"/{API_VERSION}/{name}" + (f"?{urlencode(query)}" if query else "")


def arguments_of(request: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Evaluation and mask of an `update_request`; EvalSetError else: without a mask every field is overwritten."""
    try:
        params = request["params"]
        evaluation, mask = params["arguments"]["evaluation"], params["arguments"]["updateMask"]
    except (KeyError, TypeError, IndexError):
        raise EvalSetError(
            f"expected what update_request returns: a call of {TOOL} with an evaluation and a mask"
        ) from None
    if params.get("name") != TOOL or not isinstance(evaluation, dict):
        raise EvalSetError(f"expected a call of {TOOL} with an evaluation and a mask")
    checked_name(evaluation.get("name"), EVALUATION_NAME)
    return evaluation, ",".join(check_mask(mask))


def import_request(csv: str | os.PathLike[str] | bytes, *, conflict: Conflict | None = None) -> dict[str, Any]:
    """Return the body of a request that imports a golden CSV file.

    It is the body of `POST .../v1beta/{app}:importEvaluations`.

    Parameters
    ----------
    csv : str, bytes or os.PathLike
        The path of the golden CSV file, or its text.
    conflict : {"OVERWRITE", "SKIP", "DUPLICATE"} or None, default None
        What the import does with an evaluation that exists. None uses the default of the service.

    Returns
    -------
    dict
        The body, with the file as base64 text.

    Raises
    ------
    EvalSetNotFoundError
        The file does not exist.
    EvalSetError
        The file is not a golden CSV, or `conflict` is not one of the allowed values.

    See Also
    --------
    update_request : Return a request that updates one evaluation.

    Examples
    --------
    >>> from agent_eval_schema import ces
    >>> request = ces.import_request("sample_data/golden.csv", conflict="SKIP")
    >>> list(request)
    ['csvContent', 'importOptions']
    """
    if conflict is not None and conflict not in CONFLICTS:
        raise EvalSetError(f"no conflict strategy {visible(conflict)!r}: use one of {', '.join(CONFLICTS)}")
    options = {"importOptions": {"conflictResolutionStrategy": conflict}} if conflict else {}
    if isinstance(csv, str) and csv.startswith("gs://"):
        return {"gcsUri": csv, **options}
    # the bytes of a golden CSV as they are, which the import takes in UTF-8
    if isinstance(csv, str) and "\n" in csv:
        content = csv.encode()
    elif isinstance(csv, bytes):
        content = csv
    else:
        expected = "a path (str or os.PathLike), or the text of a file (str or bytes)"
        require_kind("csv", csv, (str, os.PathLike), expected)
        with reading_file(csv):
            content = Path(csv).read_bytes()
    try:
        lines = content.decode("utf-8-sig").splitlines(keepends=True)
    except UnicodeDecodeError as error:
        raise EvalSetError(f"expected a golden CSV in UTF-8, got the byte 0x{content[error.start]:02X}") from None
    header = next(csv_module.reader(lines), [])
    if tuple(name.strip() for name in header[: len(REQUIRED)]) != REQUIRED:
        raise EvalSetError(f"expected a golden CSV, whose header begins with {','.join(REQUIRED)}")
    return {"csvContent": base64.b64encode(content).decode(), **options}


# --- what an update would change, ready to be shown
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
    paths = update.paths
    if paths == (EVERYTHING,):  # a full replacement: the paths that differ, the lost ones too
        fields_of_new = (name for name in schema.message(schema.EVALUATION).fields if name in update.evaluation)
        every = tuple(name for name in fields_of_new if name not in ("name", "etag"))
        paths = every if stored is None else difference(stored, update.evaluation)
    fields = []
    for path in paths:
        before, after = schema.part_at(stored, path), schema.part_at(update.evaluation, path)
        first, more = ((), 0) if before == after else edits(path, before, after)
        fields.append(WrittenField(path, first, more))
    return UpdateReview(update.evaluation["name"], ",".join(update.paths), stored is not None, tuple(fields))
