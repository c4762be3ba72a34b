"""Tickets: what our help desk exports, one ticket per line.

ticket                 request_id
problem                request
solution               expected_response
articles               expected_retrieved_context, a list of texts
queue                  tags
"""

from typing import Any

from agent_eval_schema.extend import Field, Format, Signs, as_text, question, read_texts, write_texts


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
