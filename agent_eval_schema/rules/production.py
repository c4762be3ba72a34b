"""AE7: inference tables: values that are guessed, fixed or skipped when a logged request becomes a row.

The examples are logged rows. An issue that the finished row has too (a truncated trace, a hidden failure, a duplicated
user message) has its rule in the family of its subject.
"""

import json
from typing import Any

from agent_eval_schema.rules.pages import AGENT_FEEDBACK, INFERENCE_TABLES, Page

_ASKED = '{"messages": [{"role": "user", "content": "Hi"}]}'
_ANSWERED = '{"choices": [{"message": {"role": "assistant", "content": "Hello"}}]}'


def _logged(**cells: Any) -> tuple[dict[str, Any], ...]:
    """A row of an inference table of the AI Gateway."""
    row = {"databricks_request_id": "r-1", "request_time": "2025-11-03T09:01:11Z", "status_code": 200}
    return ({**row, "request": _ASKED, "response": _ANSWERED, "logging_error_codes": [], **cells},)


def _traced(client_request_id: str, **info: Any) -> str:
    trace = {"info": {"trace_id": "tr-1", "client_request_id": client_request_id, **info}, "data": {"spans": []}}
    return json.dumps({"choices": [{"message": {"content": "Hello"}}], "databricks_output": {"trace": trace}})


def _sent(record: dict[str, Any]) -> str:
    return json.dumps({"dataframe_records": [record]})


def _feedback(request_id: str, value: str = "positive", user: str = "ana", **more: Any) -> tuple[dict[str, Any], ...]:
    """The logged feedback of a user on the answer to a request."""
    text = [{"ratings": {"answer_correct": {"value": value}}}]
    record = {"request_id": request_id, "source": {"id": user, "type": "human"}, "text_assessments": text}
    record |= {"retrieval_assessments": [], **more}
    return _logged(databricks_request_id=f"feedback-{user}", request=_sent(record), response="")


_GOOD = _logged()

_RATED = {"step_id": "search", "position": 0, "ratings": {"answer_correct": {"value": "positive"}}}

_EXPECTED = {
    "assessment_name": "expected_response",
    "source": {"source_type": "HUMAN", "source_id": "ana"},
    "expectation": {"value": "Hi!"},
}

_logged_page = Page(INFERENCE_TABLES, good=_GOOD)
_feedback_page = Page(AGENT_FEEDBACK, good=(*_GOOD, *_feedback("r-1")))

NO_ID = _logged_page.info(
    "AE701 logged-without-id",
    "A logged request has no ID; a hash of its content is used.",
    why="The same content that is logged twice gets the same ID, and counts as a duplicate.",
    hint="No action needed; if a column contains the ID, map it: `--map request_id=COLUMN`.",
    bad=_logged(databricks_request_id=None),
)

ODD_STATUS = _logged_page.warning(
    "AE702 odd-status",
    "The status of a logged request is not a number.",
    why="The request is treated as successful, so a failed one may be scored.",
    hint="Check the `status_code` column: a number such as 200, or its text, is expected.",
    bad=_logged(status_code="fine"),
    good=_logged(status_code="200"),
)

ODD_TIME = _logged_page.warning(
    "AE703 odd-time",
    "The request timestamp cannot be parsed and is treated as missing.",
    why="Time windows and the choice of the earliest duplicate depend on the timestamp.",
    hint="Check the timestamp column: a timestamp, an ISO 8601 string or a number since 1970 is expected.",
    bad=_logged(request_time="yesterday"),
)

FUTURE_CLOCK = _logged_page.warning(
    "AE704 clock-in-future",
    "The request timestamp is in the future.",
    why="Time windows and the choice of the earliest duplicate depend on the timestamp.",
    hint="Check the clock of the machine that logged the request.",
    bad=_logged(request_time="2999-01-01T00:00:00Z"),
)

NONSTANDARD_JSON = _logged_page.warning(
    "AE705 nonstandard-json-payload",
    "A logged payload is not strict JSON (NaN, Infinity or a lone surrogate).",
    why="Strict parsers reject what Python writes. The numbers are read as null, a lone surrogate as a question mark.",
    hint="Check the client that wrote the payload; no action needed if the part in the message is irrelevant.",
    bad=_logged(response=_ANSWERED[:-1] + ', "score": NaN}'),
)

ODD_REQUEST = _logged_page.info(
    "AE706 logged-request-as-json",
    "A logged request has no known format.",
    why="Its JSON text is used as the request, which judges read.",
    hint="No action needed if the user sent this JSON; otherwise convert the request first.",
    bad=_logged(request='{"alpha": 1, "beta": 2}'),
)

ODD_RESPONSE = _logged_page.info(
    "AE707 logged-response-as-text",
    "A logged response has no known format.",
    why="Its text is used as the response, which judges read.",
    hint="No action needed if the user received this text; otherwise convert the response first.",
    bad=_logged(response='{"alpha": 1, "beta": 2}'),
)

OTHER_TRACE = _logged_page.warning(
    "AE708 trace-names-another-call",
    "The trace in a response names another request ID than the logged row.",
    why="A trace that was joined to the wrong row is scored without an error.",
    hint="Check that the trace belongs to this request; AE605 reports conflicting values.",
    bad=_logged(response=_traced("r-2")),
    good=_logged(response=_traced("r-1")),
)

JOINED_STREAM = _logged_page.info(
    "AE709 stream-joined",
    "A streamed response was reassembled from its chunks.",
    why="Judges read the reassembled response, which is what the user received.",
    hint="No action needed: the chunks make up the response that the user received.",
    bad=_logged(
        response='data: {"choices": [{"delta": {"content": "Hel"}}]}\n\n'
        'data: {"choices": [{"delta": {"content": "lo"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    ),
)

BATCH_CALL = _logged_page.info(
    "AE710 batch-call",
    "Latency, token counts and trace of a batch call are excluded.",
    why="They describe the whole call; metrics of a record would count them several times.",
    hint="No action needed: latency, tokens and trace of a batch call cannot be attributed to one record.",
    bad=_logged(
        request='{"dataframe_records": [{"query": "a"}, {"query": "b"}]}', response='{"predictions": ["c", "d"]}'
    ),
    good=_logged(request='{"dataframe_records": [{"query": "a"}]}', response='{"predictions": ["c"]}'),
)

LOGGING_ERROR = _logged_page.warning(
    "AE711 logging-error",
    "The endpoint reported a logging error for this request (logging_error_codes).",
    why="The logged request or response may be missing or incomplete.",
    hint="Look up the code in the documentation of the inference table.",
    bad=_logged(logging_error_codes=["SCHEMA_ERROR"]),
)

PARTIAL_KEPT = Page(INFERENCE_TABLES).warning(
    "AE712 partial-answer",
    "A streamed response is incomplete, and the exclusion of such rows is disabled.",
    why="Judges score the incomplete response as if it were the agent's answer.",
    hint="Exclude partial responses unless you want to score incomplete answers.",
    no_example="The rule applies if the exclusion of partial responses is disabled.",
)

ODD_FEEDBACK = _feedback_page.warning(
    "AE713 odd-feedback",
    "A part of a feedback request cannot be parsed and is skipped.",
    why="Labels in this part are missing from the dataset.",
    hint="Check the client that sends the feedback; no action needed if the other parts are correct.",
    bad=_logged(request=_sent({"request_id": "r-0", "text_assessments": [17], "retrieval_assessments": []})),
    good=_logged(request=_sent({"request_id": "r-0", "text_assessments": []}), response=""),
)

COPIED_LABEL = _feedback_page.info(
    "AE714 label-copied",
    "expected_response was copied from a response with positive feedback.",
    why="A copied answer contains more than an answer must, and the row that it comes from cannot fail on it.",
    hint=("No action needed to start; later have a reviewer reduce the text to the facts that an answer must contain."),
    bad=(*_GOOD, *_feedback("r-1")),
    good=(*_GOOD, *_feedback("r-1", "negative")),
)

FEEDBACK_DISAGREES = _feedback_page.warning(
    "AE715 feedback-disagrees",
    "Feedback conflicts with other feedback or with the ground truth of the trace.",
    why=(
        "Users disagree about an answer or a document, or an edited answer replaces the ground truth of the "
        "trace. A disputed answer is not used as expected_response."
    ),
    hint="Have a reviewer decide which value is correct.",
    bad=(*_GOOD, *_feedback("r-1"), *_feedback("r-1", "negative", "bo")),
    good=(*_GOOD, *_feedback("r-1"), *_feedback("r-1", user="bo")),
)

UNMATCHED_CHUNK = _feedback_page.warning(
    "AE716 feedback-without-document",
    "Feedback rates a document that is not in the row's trace.",
    why="Documents are matched by step and position, never by the order of a list; this rating matches none.",
    hint="Inspect the trace: the step and position that the feedback names are missing, or have no doc_uri.",
    bad=(*_GOOD, *_feedback("r-1", retrieval_assessments=[_RATED])),
)

UNKNOWN_REQUEST = _feedback_page.warning(
    "AE717 feedback-for-unknown-request",
    "Feedback names a request that is not in the table.",
    why="The feedback labels no row of the dataset.",
    hint="Widen the time window, or add the table that contains the request.",
    bad=(*_GOOD, *_feedback("r-2")),
)

LABEL_YIELDS = _feedback_page.info(
    "AE718 label-yields",
    "A label from feedback is not used because the row's trace has ground truth.",
    why="Feedback only confirms an answer or a document; a row has one of expected_response and expected_facts.",
    hint="No action needed: ground truth on the trace takes precedence over user feedback.",
    bad=(*_logged(response=_traced("r-1", assessments=[_EXPECTED])), *_feedback("r-1")),
    good=(*_logged(response=_traced("r-1")), *_feedback("r-1")),
)
