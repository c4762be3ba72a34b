"""The judgments of users on answers: feedback calls, assessment logs, a trace's assessments → `Feedback`.

    feedback call     {"dataframe_records": [{request_id, source, text_assessments, retrieval_assessments}]}
    assessment log    a row: request_id, source, timestamp, text_assessment | retrieval_assessment
    trace             info.assessments[].feedback of people

One row is one click. Source:
https://docs.databricks.com/gcp/en/generative-ai/agent-framework/request-assessment-logs.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.issues import Finding
from agent_eval_schema.rules import production as rules
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.jsontext import structured
from agent_eval_schema.text.moments import micros_of

ANSWER_CORRECT = "answer_correct"
"""The name under which an answer as a whole is judged."""

ASSESSMENT_KEYS = ("text_assessments", "retrieval_assessments")


class Feedback(Struct, frozen=True):
    """One judgment of an answer ("text") or of a retrieved document ("retrieval"). `value` is the thumb: True is
    positive. `position` is the 0-based rank of the document among those of its step. `time` is in us since 1970 UTC."""

    request_id: str | None = None
    source: str | None = None
    step_id: str | None = None
    position: int | None = None
    time: int | None = None
    kind: Literal["text", "retrieval"] = "text"
    value: bool | None = None
    suggested_output: str | None = None
    rationale: str | None = None
    comment: str | None = None


def is_feedback(record: Any) -> bool:
    """Whether a record of a call is feedback on another call."""
    return isinstance(record, dict) and "request_id" in record and any([k in record for k in ASSESSMENT_KEYS])


def read_feedback(records: Iterable[Any], time: int | None) -> tuple[list[Feedback], list[Finding]]:
    """The judgments of the records of a feedback call, and what of it could not be read."""
    entries: list[Feedback] = []
    notes: list[Finding] = []
    for i, record in enumerate(records):
        path = f"request.dataframe_records[{i}]"
        request_id = record.get("request_id")
        if not isinstance(request_id, str) or not request_id:
            message = f"expected the ID of the rated call, got {describe(request_id)}"
            notes.append(_odd(f"{path}.request_id", message))
        about = Feedback(_string(request_id), _source(record.get("source")), _string(record.get("step_id")), time=time)
        for key, kind in zip(ASSESSMENT_KEYS, ("text", "retrieval"), strict=True):
            items = _value(record.get(key))
            items = items if isinstance(items, list) else [] if items in (None, "") else [items]
            for j, item in enumerate(items):
                _read_assessment(item, kind, about, f"{path}.{key}[{j}]", entries, notes)
    return entries, notes


def read_assessment_row(
    cells: Mapping[str, Any], request_id: str | None, time: int | None
) -> tuple[list[Feedback], list[Finding]]:
    """The judgments of a row of an assessment log: `source`, `step_id`, `text_assessment`, `retrieval_assessment`."""
    entries: list[Feedback] = []
    notes: list[Finding] = []
    about = Feedback(request_id, _source(cells.get("source")), _string(cells.get("step_id")), time=time)
    for key, kind in (("text_assessment", "text"), ("retrieval_assessment", "retrieval")):
        item = _value(cells.get(key))
        if item is not None:
            _read_assessment(item, kind, about, key, entries, notes)
    return entries, notes


def read_trace_feedback(assessments: Any, request_id: str | None, time: int | None) -> list[Feedback]:
    """The judgments of people among a trace's assessments; those of judges are scores, not labels. If a person judged
    under several names, `answer_correct` is the judgment of the answer. `time` is that of assessments without a time of
    their own."""
    items = _value(assessments)
    thumbs = [a for a in items if _is_thumb(a)] if isinstance(items, list) else []
    names: dict[str | None, set[Any]] = {}
    for item in thumbs:
        names.setdefault(_source(item["source"]), set()).add(_name(item))
    return [
        Feedback(
            request_id,
            source,
            time=_time_of(item, time),
            value=_thumb(item["feedback"].get("value")),
            rationale=_string(item.get("rationale")),
        )
        for item in thumbs
        if len(names[source := _source(item["source"])]) == 1 or _name(item) == ANSWER_CORRECT
    ]


def _is_thumb(item: Any) -> bool:
    """Whether an assessment is a person's yes or no (one that was overridden is marked as not valid)."""
    if not isinstance(item, dict) or item.get("valid") is False:
        return False
    source, feedback = item.get("source"), item.get("feedback")
    by_person = isinstance(source, dict) and source.get("source_type") == "HUMAN"
    return by_person and isinstance(feedback, dict) and _thumb(feedback.get("value")) is not None


def _name(item: dict[str, Any]) -> str | None:
    return _string(item.get("assessment_name")) or _string(item.get("name"))


def _time_of(item: dict[str, Any], otherwise: int | None) -> int | None:
    """When an assessment was last changed: ISO text, or milliseconds in a dict of MLflow."""
    for key in ("last_update_time", "last_update_time_ms", "create_time", "create_time_ms"):
        if (moment := item.get(key)) is not None and (time := micros_of(moment)) is not None:
            return time
    return otherwise


def _read_assessment(
    item: Any, kind: str, about: Feedback, path: str, entries: list[Feedback], notes: list[Finding]
) -> None:
    item = _value(item)
    if not isinstance(item, dict):
        notes.append(_odd(path, f"expected an assessment (an object), got {describe(item)}"))
        return
    value, rationale = _rating(item.get("ratings"), path, notes)
    position = item.get("position")
    is_position = isinstance(position, int) and not isinstance(position, bool) and 0 <= position < 1 << 31
    if kind == "retrieval" and not is_position:
        notes.append(_odd(f"{path}.position", f"expected a position, got {describe(position)}"))
        position = None
    texts = {n: _string(item.get(k)) for n, k in (("suggested_output",) * 2, ("comment", "free_text_comment"))}
    own: dict[str, Any] = {"kind": kind, "step_id": _string(item.get("step_id")) or about.step_id, **texts}
    position = position if kind == "retrieval" else None
    entries.append(replace(about, position=position, value=value, rationale=rationale, **own))


def _rating(ratings: Any, path: str, notes: list[Finding]) -> tuple[bool | None, str | None]:
    """The thumb and its rationale: of `answer_correct`, or of the only rating."""
    rating = _value(ratings)
    if isinstance(rating, dict) and rating:
        name = ANSWER_CORRECT if ANSWER_CORRECT in rating or len(rating) > 1 else next(iter(rating))
        rating = rating.get(name)
    rating = rating if isinstance(rating, dict) else {"value": rating}
    rated = next((v for k in ("value", "bool_value") if (v := rating.get(k)) is not None), None)
    value = _thumb(rated)
    if value is None and rated is not None:
        notes.append(_odd(f"{path}.ratings", f"expected positive or negative, got {describe(rated)}"))
    return value, _string(rating.get("rationale"))


_THUMBS = {"positive": True, "true": True, "yes": True, "negative": False, "false": False, "no": False}


def _thumb(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    return _THUMBS.get(value.strip().lower()) if isinstance(value, str) else None


def _source(value: Any) -> str | None:
    """Who judged: the id of the source, which is an object or its JSON text."""
    value = _value(value)
    if isinstance(value, dict):
        return _string(value.get("id")) or _string(value.get("source_id")) or _string(value.get("type"))
    return _string(value)


def _value(value: Any) -> Any:
    """Objects and lists, also where they are written as JSON text."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    value = structured(value)
    return None if value == "null" else value


def _string(value: Any) -> str | None:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value.strip() else None


def _odd(path: str, message: str) -> Finding:
    return Finding(rules.ODD_FEEDBACK, message, "request", path)
