"""What users said of answers: feedback calls, assessment logs, a trace's assessments → `Feedback`, and → labels.

    feedback call     {"dataframe_records": [{request_id, source, text_assessments, retrieval_assessments}]}
    assessment log    a row: request_id, source, timestamp, text_assessment | retrieval_assessment
    trace             info.assessments[].feedback of people

    an edited answer                  → expected_response
    positive without an edit          → expected_response is a copy of the response (said so)
    negative without an edit          → none
    documents rated positive          → expected_retrieved_context, by step and position
    what the trace expects            → wins over a copy and over rated documents, not over an edited answer (said so)

One row is one click, so only the latest judgement per source, step and position counts. Source: inference_tables.md.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct

from agent_eval_schema.inference_tables.read.times import micros_of
from agent_eval_schema.issues import Rule
from agent_eval_schema.rules import production as rules
from agent_eval_schema.schema import Document
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.jsontext import structured
from agent_eval_schema.traces.decode import Trace, decode_trace
from agent_eval_schema.traces.documents import documents_of_span

ANSWER_CORRECT = "answer_correct"
"""The name under which an answer as a whole is judged."""

ASSESSMENT_KEYS = ("text_assessments", "retrieval_assessments")

FeedbackKind = Literal["text", "retrieval"]


class Feedback(Struct, frozen=True):
    """One judgement of an answer ("text") or of a retrieved document ("retrieval"). `value` is the thumb: True is
    positive. `position` is the 0-based rank of the document among those of its step. `time` is in us since 1970 UTC."""

    request_id: str | None = None
    source: str | None = None
    step_id: str | None = None
    position: int | None = None
    time: int | None = None
    kind: FeedbackKind = "text"
    value: bool | None = None
    suggested_output: str | None = None
    rationale: str | None = None
    comment: str | None = None


FeedbackNote = tuple[Rule, str, str]
"""A rule, a path, and the message."""


# ---------------------------------------------------------------------------------------------------------------------
# reading
def is_feedback(record: Any) -> bool:
    """Whether a record of a call is feedback on another call."""
    return isinstance(record, dict) and "request_id" in record and any([k in record for k in ASSESSMENT_KEYS])


def read_feedback(records: Iterable[Any], time: int | None) -> tuple[list[Feedback], list[FeedbackNote]]:
    """The judgements of the records of a feedback call, and what of it could not be read."""
    found: list[Feedback] = []
    notes: list[FeedbackNote] = []
    for i, record in enumerate(records):
        path = f"request.dataframe_records[{i}]"
        request_id = record.get("request_id")
        if not isinstance(request_id, str) or not request_id:
            message = f"expected the id of the judged call, got {describe(request_id)}"
            notes.append((rules.ODD_FEEDBACK, f"{path}.request_id", message))
        about = Feedback(_text(request_id), _source(record.get("source")), _text(record.get("step_id")), time=time)
        for key, kind in zip(ASSESSMENT_KEYS, ("text", "retrieval"), strict=True):
            given = _value(record.get(key))
            given = given if isinstance(given, list) else [] if given in (None, "") else [given]
            for j, item in enumerate(given):
                _read_assessment(item, kind, about, f"{path}.{key}[{j}]", found, notes)
    return found, notes


def read_assessment_row(
    cells: Mapping[str, Any], request_id: str | None, time: int | None
) -> tuple[list[Feedback], list[FeedbackNote]]:
    """The judgements of a row of an assessment log: `source`, `step_id`, `text_assessment`, `retrieval_assessment`."""
    found: list[Feedback] = []
    notes: list[FeedbackNote] = []
    about = Feedback(request_id, _source(cells.get("source")), _text(cells.get("step_id")), time=time)
    for key, kind in (("text_assessment", "text"), ("retrieval_assessment", "retrieval")):
        item = _value(cells.get(key))
        if item is not None:
            _read_assessment(item, kind, about, key, found, notes)
    return found, notes


def read_trace_feedback(assessments: Any, request_id: str | None, time: int | None) -> list[Feedback]:
    """The judgements of people among a trace's assessments; those of judges are scores, not labels. Of what a person
    judged under several names, `answer_correct` is the judgement of the answer. `time` is that of assessments which
    do not say when they were made."""
    items = _value(assessments)
    given = [a for a in items if _is_thumb(a)] if isinstance(items, list) else []
    names: dict[str | None, set[Any]] = {}
    for item in given:
        names.setdefault(_source(item["source"]), set()).add(_name(item))
    return [
        Feedback(
            request_id,
            source,
            time=_made_at(item, time),
            value=_thumb(item["feedback"].get("value")),
            rationale=_text(item.get("rationale")),
        )
        for item in given
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
    return _text(item.get("assessment_name")) or _text(item.get("name"))


def _made_at(item: dict[str, Any], otherwise: int | None) -> int | None:
    """When an assessment was last changed: ISO text, or milliseconds in a dict of MLflow."""
    for key in ("last_update_time", "last_update_time_ms", "create_time", "create_time_ms"):
        if (given := item.get(key)) is not None and (time := micros_of(given)) is not None:
            return time
    return otherwise


def _read_assessment(
    item: Any, kind: str, about: Feedback, path: str, found: list[Feedback], notes: list[FeedbackNote]
) -> None:
    item = _value(item)
    if not isinstance(item, dict):
        notes.append((rules.ODD_FEEDBACK, path, f"expected an assessment (an object), got {describe(item)}"))
        return
    value, rationale = _rating(item.get("ratings"), path, notes)
    position = item.get("position")
    if kind == "retrieval" and not _is_position(position):
        notes.append((rules.ODD_FEEDBACK, f"{path}.position", f"expected a position, got {describe(position)}"))
        position = None
    found.append(
        Feedback(
            about.request_id,
            about.source,
            _text(item.get("step_id")) or about.step_id,
            position if kind == "retrieval" else None,
            about.time,
            "retrieval" if kind == "retrieval" else "text",
            value,
            _text(item.get("suggested_output")),
            rationale,
            _text(item.get("free_text_comment")),
        )
    )


def _is_position(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31


def _rating(ratings: Any, path: str, notes: list[FeedbackNote]) -> tuple[bool | None, str | None]:
    """The thumb and its rationale: of `answer_correct`, or of the only rating that there is."""
    ratings = _value(ratings)
    if not isinstance(ratings, dict) or not ratings:
        return None, None
    name = ANSWER_CORRECT if ANSWER_CORRECT in ratings or len(ratings) > 1 else next(iter(ratings))
    rating = ratings.get(name)
    if not isinstance(rating, dict):
        return _thumb(rating), None
    given = next((v for k in ("value", "bool_value") if (v := rating.get(k)) is not None), None)
    value = _thumb(given)
    if value is None and given is not None:
        notes.append((rules.ODD_FEEDBACK, f"{path}.ratings", f"expected positive or negative, got {describe(given)}"))
    return value, _text(rating.get("rationale"))


_THUMBS = {"positive": True, "true": True, "yes": True, "negative": False, "false": False, "no": False}


def _thumb(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    return _THUMBS.get(value.strip().lower()) if isinstance(value, str) else None


def _source(value: Any) -> str | None:
    """Who judged: the id of the source, which is an object or its JSON text."""
    value = _value(value)
    if isinstance(value, dict):
        return _text(value.get("id")) or _text(value.get("source_id")) or _text(value.get("type"))
    return _text(value)


def _value(value: Any) -> Any:
    """Objects and lists, also where they are written as JSON text."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    value = structured(value)
    return None if value == "null" else value


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value.strip() else None


# ---------------------------------------------------------------------------------------------------------------------
# labels
Chunks = Mapping[tuple[str, int], tuple[str | None, str | None]]
"""The retrieved documents (doc_uri, content) by step id (see `step_key`) and position."""


class Labels(Struct, frozen=True):
    """What feedback says about a row. `thumb` is what all who judged the answer agree on; None: nobody did, or they
    disagree. `copied` says that expected_response is the response itself."""

    expected_response: str | None = None
    copied: bool = False
    expected_retrieved_context: list[Document] | None = None
    thumb: bool | None = None
    notes: tuple[FeedbackNote, ...] = ()


def latest(entries: Iterable[Feedback]) -> list[Feedback]:
    """The last judgement of each source, per kind, step and position, in the order of time."""
    kept: dict[Any, Feedback] = {}
    for entry in sorted(entries, key=_order):
        step = entry.step_id and step_key(entry.step_id)
        kept[entry.request_id, entry.source, entry.kind, step, entry.position] = entry
    return sorted(kept.values(), key=_order)


def _order(entry: Feedback) -> tuple[Any, ...]:
    """By time; what was logged at the same time, or at no time, in an order that does not depend on the engine."""
    rest = (
        entry.source,
        entry.step_id,
        entry.position,
        entry.suggested_output,
        entry.value,
        entry.rationale,
        entry.comment,
    )
    return (-1 if entry.time is None else entry.time, *[(v is not None, str(v)) for v in rest])


def labels_of(
    entries: Iterable[Feedback],
    *,
    response: str | None = None,
    chunks: Chunks | None = None,
    expected: Collection[str] = (),
) -> Labels:
    """The labels of the row that the entries judge.

    Parameters
    ----------
    entries
        All judgements of the row, in any order; of each source the latest counts.
    response
        The row's answer, which becomes expected_response where users were content with it.
    chunks
        The documents that the row's trace retrieved (`chunks_of`).
    expected
        The columns of ground truth that the row's trace states.

    Returns
    -------
    Labels
        The newest edited answer wins over any thumb. Without one, all thumbs must be up for the response to be copied;
        where they disagree there is no expected_response, and a note. What the trace expects was written as ground
        truth, so a copy and rated documents yield to it; an edited answer takes its place. Both are told.
    """
    current, notes = latest(entries), list[FeedbackNote]()
    texts = [e for e in current if e.kind == "text"]
    edits = [e.suggested_output for e in texts if e.suggested_output is not None]
    thumbs = {e.value for e in texts if e.value is not None}
    thumb = thumbs.pop() if len(thumbs) == 1 else None
    if thumbs and thumb is None:
        notes.append((rules.FEEDBACK_DISAGREES, "expected_response", "users rate the answer up and down"))
    truth = next((n for n in ("expected_response", "expected_facts") if n in expected), None)
    copied = not edits and thumb is True and bool(response)
    if copied and truth:
        copied = False
        notes.append((rules.LABEL_YIELDS, "expected_response", f"users were content, but the trace states {truth}"))
    elif copied:
        notes.append((rules.COPIED_LABEL, "expected_response", "users were content: the response is taken"))
    elif edits and truth:
        message = f"the edited answer is taken, the {truth} of the trace is not"
        notes.append((rules.FEEDBACK_DISAGREES, "expected_response", message))
    context = _context([e for e in current if e.kind == "retrieval"], chunks or {}, notes)
    if context and "expected_retrieved_context" in expected:
        message = "users rate documents, but the trace states expected_retrieved_context"
        notes.append((rules.LABEL_YIELDS, "expected_retrieved_context", message))
        context = None
    return Labels(edits[-1] if edits else response if copied else None, copied, context, thumb, tuple(notes))


def _context(entries: list[Feedback], chunks: Chunks, notes: list[FeedbackNote]) -> list[Document] | None:
    """The documents that were rated positive, in the order in which they were retrieved."""
    votes: dict[tuple[str, int], set[bool]] = {}
    for entry in entries:
        place = _place(entry, chunks)
        if entry.value is not None and place is not None:
            votes.setdefault(place, set()).add(entry.value)
        elif entry.value:
            position = "no position" if entry.position is None else f"position {entry.position}"
            message = f"{position} of step {describe(entry.step_id)} is not among the retrieved documents"
            notes.append((rules.UNMATCHED_CHUNK, "expected_retrieved_context", message))
    found = []
    for place in chunks:
        given = votes.get(place, set())
        if len(given) > 1:
            message = f"users rate the document at position {place[1]} up and down"
            notes.append((rules.FEEDBACK_DISAGREES, "expected_retrieved_context", message))
        elif True in given:
            uri, content = chunks[place]
            if uri is None:
                message = f"the document at position {place[1]} has no doc_uri"
                notes.append((rules.UNMATCHED_CHUNK, "expected_retrieved_context", message))
            else:
                found.append(Document(uri, content))
    return found or None


def _place(entry: Feedback, chunks: Chunks) -> tuple[str, int] | None:
    """Step and position; a judgement that names no step means the only one that there is."""
    if entry.position is None:
        return None
    steps = {step for step, _ in chunks}
    step = step_key(entry.step_id) if entry.step_id is not None else steps.pop() if len(steps) == 1 else None
    return (step, entry.position) if step is not None and (step, entry.position) in chunks else None


def step_key(step_id: str) -> str:
    """The id of a step or span, whether it is written in hex, with 0x, or in base64 as by MLflow 3."""
    if step_id.endswith("=") and len(step_id) == 12:
        try:
            return base64.b64decode(step_id, validate=True).hex()
        except (binascii.Error, ValueError):
            return step_id
    return step_id.lower().removeprefix("0x")


def chunks_of(trace: str | bytes | Trace | None) -> dict[tuple[str, int], tuple[str | None, str | None]]:
    """The documents of every retrieval step of a trace, by step and position."""
    decoded = decode_trace(trace) if isinstance(trace, str | bytes) else trace
    if not isinstance(decoded, Trace):
        return {}
    return {
        (step_key(span.id or ""), position): (document.doc_uri, document.content)
        for span in decoded.spans
        for position, document in enumerate(documents_of_span(span))
    }
