"""Tickets: what our help desk exports, one ticket per line.

ticket                 request_id
problem                request
solution               expected_response
articles               expected_retrieved_context, a list of texts
queue                  tags

A rule and a metric of ours are below the format.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from agent_eval_schema.extend import (
    Field,
    Format,
    MetricInfo,
    RowMetric,
    RowRule,
    Rule,
    Severity,
    Signs,
    as_text,
    describe,
    question,
    read_texts,
    write_texts,
)


def queue_as_tag(queue: Any) -> Any:
    return {"queue": queue} if isinstance(queue, str) else queue


def tag_as_queue(tags: Any) -> Any:
    return tags.get("queue")


TICKETS = Format(
    name="tickets",
    title="Help desk tickets",
    summary="tickets of our help desk: ticket, problem, solution, articles",
    page="https://help-desk.example.com/export",
    signs=Signs(sure=(("problem", "solution"), ("ticket", "problem"))),
    fields=(
        Field("ticket", "request_id", as_text),
        Field("problem", "request", write=question),
        Field("solution", "expected_response"),
        Field("articles", "expected_retrieved_context", read_texts, write_texts),
        Field("queue", "tags", queue_as_tag, tag_as_queue),
    ),
)


def links_in(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    answer = row["expected_response"]
    if answer is not None and "http://" in answer:
        yield "expected_response", f"expected links with https, got {describe(answer)}"


INSECURE_LINK = RowRule(
    Rule(
        code="HD001",
        name="insecure-link",
        severity=Severity.WARNING,
        summary="The expected answer has a link without https.",
        why="Our agent must not send such links.",
        hint="Replace `http://` with `https://`.",
        bad=({"request": "How?", "response": "So.", "expected_response": "See http://help.example.com"},),
        good=({"request": "How?", "response": "So.", "expected_response": "See https://help.example.com"},),
    ),
    columns=("expected_response",),
    check=links_in,
)


def brevity(answer: str, expected: str) -> float:
    """1 for an answer that is no longer than the expected one."""
    return min(1.0, len(expected) / len(answer)) if answer else float("nan")


BREVITY = RowMetric(
    info=MetricInfo("brevity", direction="higher", scale=(0, 1)),
    reads=("response", "reference"),
    measure=brevity,
    undefined="the response is empty",
    better={"response": "Renew it.", "reference": "Renew it."},
    worse={"response": "Please be so kind as to renew it.", "reference": "Renew it."},
)
