"""A trace that was downloaded from Langfuse → spans with the attributes that Langfuse's SDK writes.

{"trace": {"id", "input", "output", "sessionId"}, "observations": [...]}     up to Langfuse 3
{"observations": [...], "scores": [...]}                                     Langfuse 4
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agent_eval_schema.text import jsontext

_ATTRIBUTES = {
    "input": "langfuse.observation.input",
    "output": "langfuse.observation.output",
    "usageDetails": "langfuse.observation.usage_details",
    "level": "langfuse.observation.level",
    "statusMessage": "langfuse.observation.status_message",
}
_OF_TRACE = {"input": "langfuse.trace.input", "output": "langfuse.trace.output", "sessionId": "session.id"}


def spans_of_download(document: dict[str, Any]) -> Iterator[Any]:
    """The observations as spans; what the trace itself has belongs to those without a parent."""
    trace = document["trace"] if isinstance(document.get("trace"), dict) else {}
    of_trace = {name: _read(trace[key]) for key, name in _OF_TRACE.items() if trace.get(key) is not None}
    for observation in document["observations"]:
        if not isinstance(observation, dict):
            yield observation
            continue
        given = {name: observation[key] for key, name in _ATTRIBUTES.items() if observation.get(key) is not None}
        kind = observation.get("type")
        parent = observation.get("parentObservationId")
        yield {
            "trace_id": observation.get("traceId") or trace.get("id"),
            "span_id": observation.get("id"),
            "parent_id": parent,
            "name": observation.get("name"),
            "start_time": observation.get("startTime"),
            "end_time": observation.get("endTime"),
            "attributes": {
                **({} if parent else of_trace),
                **given,
                **({"langfuse.observation.type": kind.lower()} if isinstance(kind, str) else {}),
                **({"session.id": of_trace["session.id"]} if "session.id" in of_trace else {}),
            },
        }


def _read(value: Any) -> Any:
    """The input and the output of a trace are JSON text inside of JSON text."""
    if isinstance(value, str) and value[:1] == '"':
        return jsontext.parse_leniently(value)
    return value
