"""Feedback on an answer → the labels of its row.

    an edited answer                  → expected_response
    positive without an edit          → expected_response is a copy of the response, and an issue reports it
    negative without an edit          → none
    documents rated positive          → expected_retrieved_context, by step and position
    expectations of the trace         → take precedence over a copy and rated documents, not over an edited answer

One row is one click, so only the latest judgment per source, step and position counts.
"""

import base64
from collections.abc import Collection, Iterable, Mapping
from operator import attrgetter
from typing import Any

from msgspec import Struct

from agent_eval_schema.issues import Finding
from agent_eval_schema.rules import production as rules
from agent_eval_schema.schema import Document
from agent_eval_schema.text.describe import describe
from agent_eval_schema.traces.decode import decode_trace
from agent_eval_schema.traces.documents import documents_of_span
from agent_eval_schema.traces.feedback import Feedback
from agent_eval_schema.traces.spans import Trace

TAG, EDITED, COPIED = "expected_response_source", "feedback: edited", "feedback: copied from the response"
"""The tag with the source of an expected_response."""

Chunks = Mapping[tuple[str, int], tuple[str | None, str | None]]
"""The retrieved documents (doc_uri, content) by step id (see `step_key`) and position."""


class Labels(Struct, frozen=True):
    """The feedback on a row. `thumb` is the judgment that all who judged the answer agree on; None: there is none, or
    they disagree; `judged`: there is one. `copied` is true if expected_response is the response itself."""

    expected_response: str | None = None
    copied: bool = False
    expected_retrieved_context: list[Document] | None = None
    thumb: bool | None = None
    notes: tuple[Finding, ...] = ()
    judged: bool = False


def latest(entries: Iterable[Feedback]) -> list[Feedback]:
    """The last judgment of each source, per kind, step and position, in the order of time."""
    judgments: dict[Any, Feedback] = {}
    for entry in sorted(entries, key=_order):
        step = entry.step_id and step_key(entry.step_id)
        judgments[entry.request_id, entry.source, entry.kind, step, entry.position] = entry
    return sorted(judgments.values(), key=_order)


def _order(entry: Feedback) -> tuple[Any, ...]:
    """By time; entries of the same time, or of no time, in an order that does not depend on the engine."""
    return (-1 if entry.time is None else entry.time, *[(v is not None, str(v)) for v in _AFTER_TIME(entry)])


_AFTER_TIME = attrgetter("source", "step_id", "position", "suggested_output", "value", "rationale", "comment")


def labels_of(
    entries: Iterable[Feedback],
    *,
    response: str | None = None,
    chunks: Chunks | None = None,
    expected: Collection[str] = (),
) -> Labels:
    """The labels of the row that the entries, all its judgments in any order, judge; of each source the latest counts.
    `chunks` are the documents that the row's trace retrieved (`chunks_of`), `expected` the columns of ground truth that
    it states.

    The newest edited answer takes precedence over any thumb. Without one, all thumbs must be up for the response to be
    copied; where they disagree there is no expected_response, and a note. Expectations of the trace were written as
    ground truth, so they take precedence over a copy and rated documents; an edited answer takes precedence over them.
    Both are reported.
    """
    current, notes = latest(entries), list[Finding]()
    texts = [e for e in current if e.kind == "text"]
    edits = [e.suggested_output for e in texts if e.suggested_output is not None]
    thumbs = {e.value for e in texts if e.value is not None}
    thumb = thumbs.pop() if len(thumbs) == 1 else None
    if thumbs and thumb is None:
        notes.append(Finding(rules.FEEDBACK_DISAGREES, "users rate the answer up and down", "expected_response"))
    truth = next((n for n in ("expected_response", "expected_facts") if n in expected), None)
    copied = not edits and thumb is True and bool(response)
    if copied and truth:
        copied = False
        message = f"users were content, but the trace states {truth}"
        notes.append(Finding(rules.LABEL_YIELDS, message, "expected_response"))
    elif copied:
        notes.append(Finding(rules.COPIED_LABEL, "users were content: the response is taken", "expected_response"))
    elif edits and truth:
        message = f"the edited answer is taken, the {truth} of the trace is not"
        notes.append(Finding(rules.FEEDBACK_DISAGREES, message, "expected_response"))
    context = _context([e for e in current if e.kind == "retrieval"], chunks or {}, notes)
    if context and "expected_retrieved_context" in expected:
        message = "users rate documents, but the trace states expected_retrieved_context"
        notes.append(Finding(rules.LABEL_YIELDS, message, "expected_retrieved_context"))
        context = None
    answer = edits[-1] if edits else response if copied else None
    return Labels(answer, copied, context, thumb, tuple(notes), any(e.value is not None for e in texts))


def _context(entries: list[Feedback], chunks: Chunks, notes: list[Finding]) -> list[Document] | None:
    """The documents that were rated positive, in the order in which they were retrieved."""
    votes: dict[Any, set[bool]] = {}
    steps = {step for step, _ in chunks}
    only = next(iter(steps)) if len(steps) == 1 else None  # which a judgment means that names no step
    for entry in entries:
        place = (only if entry.step_id is None else step_key(entry.step_id), entry.position)
        if entry.value is not None and place in chunks:
            votes.setdefault(place, set()).add(entry.value)
        elif entry.value:
            position = "no position" if entry.position is None else f"position {entry.position}"
            message = f"{position} of step {describe(entry.step_id)} is not among the retrieved documents"
            notes.append(Finding(rules.UNMATCHED_CHUNK, message, "expected_retrieved_context"))
    documents = []
    for place in chunks:
        thumbs = votes.get(place, set())
        if len(thumbs) > 1:
            message = f"users rate the document at position {place[1]} up and down"
            notes.append(Finding(rules.FEEDBACK_DISAGREES, message, "expected_retrieved_context"))
        elif True in thumbs:
            uri, content = chunks[place]
            if uri is None:
                message = f"the document at position {place[1]} has no doc_uri"
                notes.append(Finding(rules.UNMATCHED_CHUNK, message, "expected_retrieved_context"))
            else:
                documents.append(Document(uri, content))
    return documents or None


def step_key(step_id: str) -> str:
    """The id of a step or span, whether it is written in hex, with 0x, or in base64 as by MLflow 3."""
    if step_id.endswith("=") and len(step_id) == 12:
        try:
            return base64.b64decode(step_id, validate=True).hex()
        except ValueError:
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
