"""Evaluations → the requests that store them, without sending them (integrations/ces/client.py).

update_request(new, old=stored)   the JSON-RPC body of the MCP tool `update_evaluation`
rest_request(request)             the same as PATCH …/v1beta/{name}?updateMask=…
import_request(csv)               the body of POST …/v1beta/{app}:importEvaluations
"""

from __future__ import annotations

import base64
import csv as csv_module
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec import Struct

from agent_eval_schema.formats.ces.golden import REQUIRED
from agent_eval_schema.formats.ces.masks import EVERYTHING, check_effect, check_mask, difference, with_json_names
from agent_eval_schema.formats.ces.schema import EVALUATION, field_at, message
from agent_eval_schema.issues import EvalSetError, Issue, Severity, cannot_read
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.choices import require_kind
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.edits import Edit, edits
from agent_eval_schema.text.visible import visible

if TYPE_CHECKING:
    from agent_eval_schema.formats.ces.evaluation import Evaluation


TOOL = "update_evaluation"
API_VERSION = "v1beta"
"""The version of the REST API that has evaluations."""

Conflict = Literal["OVERWRITE", "SKIP", "DUPLICATE"]
"""What an import does with an evaluation that is there already (`conflictResolutionStrategy`)."""

CONFLICTS: tuple[Conflict, ...] = ("OVERWRITE", "SKIP", "DUPLICATE")


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
    wanted, stored = _object(new, "the new evaluation"), None if old is None else _object(old, "the stored evaluation")
    return _planned(with_json_names(wanted), None if stored is None else with_json_names(stored), mask)


def _planned(wanted: dict[str, Any], stored: dict[str, Any] | None, mask: str | None) -> Update:
    from agent_eval_schema.formats.ces.evaluation import is_result

    if is_result(wanted) or (stored is not None and is_result(stored)):
        raise EvalSetError("this is the result of an evaluation, which only the server writes: give the evaluation")
    paths = difference(stored or {}, wanted) if mask is None else check_mask(mask)
    check_effect(paths, wanted, stored)
    identity = {"name": _name(wanted, stored), "etag": _etag(wanted, stored)}
    of_server = {name for name, field in message(EVALUATION).fields.items() if field.output_only}
    written = {k: v for k, v in wanted.items() if k not in of_server | identity.keys()}
    return Update({k: v for k, v in identity.items() if v} | written, paths)


def plan_updates(
    new: str | os.PathLike[str], old: str | os.PathLike[str] | None, mask: str | None
) -> list[tuple[Update, Evaluation | None]]:
    """For each evaluation of the file `new` what would be sent, and the one of that name in the file `old`.

    Raises EvalSetError as `update_request` does, and if `old` has none of that name.
    """
    from agent_eval_schema.formats.ces.evaluation import read_evaluations

    for path in (new, old):
        if path is not None and os.fspath(path).lower().endswith((".csv", ".tsv")):
            hint = "`convert IN OUT --to ces-evaluation` makes it of a golden CSV"
            raise EvalSetError(f"{os.fspath(path)}: expected Evaluation JSON: {hint}")
    wanted = read_evaluations(Path(new))
    if not wanted:
        raise EvalSetError(f"{os.fspath(new)}: expected an evaluation, got none")
    if old is None:
        return [(plan_update(evaluation, None, mask), None) for evaluation in wanted]
    stored = read_evaluations(Path(old))
    # One against one needs no name to be found by; plan_update rejects two that differ.
    matches = stored if len(wanted) == len(stored) == 1 else [_same(e, stored, os.fspath(old)) for e in wanted]
    return [(plan_update(e, match, mask), match) for e, match in zip(wanted, matches, strict=True)]


def _same(wanted: Evaluation, stored: list[Evaluation], where: str) -> Evaluation:
    """The stored evaluation of that name."""
    name = wanted.get("name")
    match = next((e for e in stored if name and e.get("name") == name), None)
    if match is None:
        raise EvalSetError(f"{where}: no evaluation has the name {describe(name)}")
    return match


def faults_of(update: Update) -> list[Issue]:
    """The errors of the evaluation in the fields that the mask names: the service would reject them."""
    from agent_eval_schema.formats.ces.evaluation import validate_evaluation

    found = validate_evaluation(update.evaluation)
    errors = [issue for issue in found if issue.severity is Severity.ERROR]
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


@lru_cache(maxsize=1)
def _name_pattern() -> re.Pattern[str]:
    """The form of a name, which is a part of an address too: nothing that has a meaning there may be in it."""
    part = r"(?!\.+(?:/|$))[\w.~:-]+"
    return re.compile(re.sub(r"\{\w+\}", lambda _: part, _form()), re.ASCII)


def _name(new: Mapping[str, Any], old: Mapping[str, Any] | None) -> str:
    """The resource name that both sides agree on."""
    names = [side["name"] for side in (new, old) if side and side.get("name")]
    if not names:
        raise EvalSetError(f"the evaluation has no name to identify it: {_form()}")
    name: object = names[0]
    if name != names[-1]:
        raise EvalSetError(f"{visible(name)} is not the stored evaluation, {visible(names[-1])}")
    if not isinstance(name, str) or not _name_pattern().fullmatch(name):
        raise EvalSetError(f"expected the name as {_form()}, got {visible(name)}")
    return name


def _form() -> str:
    return field_at("name")[0].resource_format[0]


def _etag(new: Mapping[str, Any], old: Mapping[str, Any] | None) -> Any:
    """The etag of the state that the update was made from."""
    own, stored = new.get("etag"), (old or {}).get("etag")
    if own and stored and own != stored:
        raise EvalSetError(
            "the stored evaluation has changed since the new one was made from it (their etags differ): bring the "
            "change into the new one, or take its etag out to overwrite it"
        )
    return own or stored


# ---------------------------------------------------------------------------------------------------------------------
# REST
class RestRequest(NamedTuple):
    """An HTTP request without the host: `path?query`, and the body as JSON."""

    method: str
    path: str
    query: dict[str, str]
    body: dict[str, Any]


def rest_request(request: Mapping[str, Any]) -> RestRequest:
    """The REST twin of an `update_request`: `PATCH /v1beta/{evaluation.name}?updateMask=…`."""
    evaluation, mask = arguments_of(request)
    return RestRequest("PATCH", f"/{API_VERSION}/{evaluation['name']}", {"updateMask": mask}, evaluation)


def arguments_of(request: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The evaluation and the mask of an `update_request`. Raises EvalSetError for anything else: a request without a
    mask would overwrite every field."""
    try:
        params = request["params"]
        evaluation, mask = params["arguments"]["evaluation"], params["arguments"]["updateMask"]
    except (KeyError, TypeError, IndexError):
        raise EvalSetError(
            f"expected what update_request returns: a call of {TOOL} with an evaluation and a mask"
        ) from None
    if (
        params.get("name") != TOOL
        or not isinstance(evaluation, dict)
        or not _name_pattern().fullmatch(str(evaluation.get("name")))
    ):
        raise EvalSetError(f"expected a call of {TOOL} with an evaluation whose name is {_form()}")
    return evaluation, ",".join(check_mask(mask))


# ---------------------------------------------------------------------------------------------------------------------
# import
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
    return {"csvContent": base64.b64encode(_golden_bytes(csv)).decode(), **options}


def _golden_bytes(csv: str | os.PathLike[str] | bytes) -> bytes:
    """The bytes of a golden CSV as they are, which the import takes in UTF-8."""
    content = _content(csv)
    try:
        lines = content.decode("utf-8-sig").splitlines(keepends=True)
    except UnicodeDecodeError as error:
        raise EvalSetError(f"expected a golden CSV in UTF-8, got the byte 0x{content[error.start]:02X}") from None
    header = next(csv_module.reader(lines), [])
    if tuple(name.strip() for name in header[: len(REQUIRED)]) != REQUIRED:
        raise EvalSetError(f"expected a golden CSV, whose header begins with {','.join(REQUIRED)}")
    return content


def _content(csv: str | os.PathLike[str] | bytes) -> bytes:
    if isinstance(csv, bytes):
        return csv
    if isinstance(csv, str) and "\n" in csv:
        return csv.encode()
    expected = "a path (str or os.PathLike), or the text of a file (str or bytes)"
    require_kind("csv", csv, (str, os.PathLike), expected)
    try:
        return Path(csv).read_bytes()
    except OSError as error:
        raise cannot_read(csv, error) from None


# ---------------------------------------------------------------------------------------------------------------------
# what an update would change, ready to be shown
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
        fields_of_new = (name for name in message(EVALUATION).fields if name in update.evaluation)
        every = tuple(name for name in fields_of_new if name not in ("name", "etag"))
        paths = every if stored is None else difference(stored, update.evaluation)
    fields = tuple(_written(path, stored, update.evaluation) for path in paths)
    return UpdateReview(update.evaluation["name"], ",".join(update.paths), stored is not None, fields)


def _written(path: str, stored: Mapping[str, Any] | None, new: Mapping[str, Any]) -> WrittenField:
    before, after = _at(path, stored or {}), _at(path, new)
    found, more = ((), 0) if before == after else edits(path, before, after)
    return WrittenField(path, found, more)


def _at(path: str, value: Any) -> Any:
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
