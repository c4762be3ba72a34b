"""AE7: rows of production tables: what was guessed, mended or left out on the way from a logged call to a row.

The examples are logged rows. What is found in the finished row as well (a truncated trace, a hidden failure, the last
user message twice) has its rule in the family of what it concerns.
"""

from __future__ import annotations

import json
from typing import Any

from agent_eval_schema.issues import Rule, Severity

_ASKED = '{"messages": [{"role": "user", "content": "Hi"}]}'
_ANSWERED = '{"choices": [{"message": {"role": "assistant", "content": "Hello"}}]}'


def _logged(**cells: Any) -> tuple[dict[str, Any], ...]:
    """A row of an AI Gateway payload table."""
    row = {"databricks_request_id": "r-1", "request_time": "2025-11-03T09:01:11Z", "status_code": 200}
    return ({**row, "request": _ASKED, "response": _ANSWERED, "logging_error_codes": [], **cells},)


def _traced(client_request_id: str) -> str:
    trace = {"info": {"trace_id": "tr-1", "client_request_id": client_request_id}, "data": {"spans": []}}
    return json.dumps({"choices": [{"message": {"content": "Hello"}}], "databricks_output": {"trace": trace}})


_GOOD = _logged()

NO_ID = Rule(
    "AE701",
    "logged-without-id",
    Severity.INFO,
    "nothing to do; name the column that holds the id (map) if there is one",
    "A logged row has no id; a hash of its content stands for it.\n\nThe same content logged twice gets the same id "
    "and counts as repeated.",
    bad=_logged(databricks_request_id=None),
    good=_GOOD,
)

ODD_STATUS = Rule(
    "AE702",
    "odd-status",
    Severity.WARNING,
    "look at the status_code column: a number such as 200, or its text, was expected",
    "The status of a logged call is no number; the call is taken for one that succeeded.",
    bad=_logged(status_code="fine"),
    good=_logged(status_code="200"),
)

ODD_TIME = Rule(
    "AE703",
    "odd-time",
    Severity.WARNING,
    "look at the column of the time: a timestamp, ISO 8601 text or a number since 1970 was expected",
    "The time of a logged call cannot be read; it counts as unknown.",
    bad=_logged(request_time="yesterday"),
    good=_GOOD,
)

FUTURE_CLOCK = Rule(
    "AE704",
    "clock-in-future",
    Severity.WARNING,
    "look at the clock of the machine that logged the call; time windows and 'the earliest' go by it",
    "A call was logged at a time that has not come yet.",
    bad=_logged(request_time="2999-01-01T00:00:00Z"),
    good=_GOOD,
)

MENDED_JSON = Rule(
    "AE705",
    "mended-payload",
    Severity.WARNING,
    "nothing to do if the part that is named does not matter; else look at what wrote it",
    "A logged request or response is JSON but for NaN, Infinity or half of a character.\n\nPython writes them, strict "
    "parsers refuse them. Such numbers are read as null, half a character as a question mark.",
    bad=_logged(response=_ANSWERED[:-1] + ', "score": NaN}'),
    good=_GOOD,
)

ODD_REQUEST = Rule(
    "AE706",
    "logged-request-as-json",
    Severity.INFO,
    "convert the request yourself if its JSON text is not what the user asked",
    "A logged request has no known format; its JSON text is the request.",
    bad=_logged(request='{"alpha": 1, "beta": 2}'),
    good=_GOOD,
)

ODD_RESPONSE = Rule(
    "AE707",
    "logged-response-as-text",
    Severity.INFO,
    "convert the response yourself if this text is not what the user saw",
    "A logged response has no known format; its text is the response.",
    bad=_logged(response='{"alpha": 1, "beta": 2}'),
    good=_GOOD,
)

OTHER_TRACE = Rule(
    "AE708",
    "trace-names-another-call",
    Severity.WARNING,
    "check that the trace belongs to this call; AE605 tells where the two say different things",
    "The trace inside a response names another request id than the logged row.\n\nA trace joined to the wrong row is "
    "scored without complaint.",
    bad=_logged(response=_traced("r-2")),
    good=_logged(response=_traced("r-1")),
)

JOINED_STREAM = Rule(
    "AE709",
    "stream-joined",
    Severity.INFO,
    "nothing to do: the pieces make up what the user saw",
    "A streamed response was put together from its pieces.",
    bad=_logged(
        response='data: {"choices": [{"delta": {"content": "Hel"}}]}\n\n'
        'data: {"choices": [{"delta": {"content": "lo"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    ),
    good=_GOOD,
)

BATCH_CALL = Rule(
    "AE710",
    "batch-call",
    Severity.INFO,
    "nothing to do: what the whole call took says nothing of one of its records",
    "A record of a call with several records: latency, token counts and trace are those of the whole call and are left "
    "out.",
    bad=_logged(
        request='{"dataframe_records": [{"query": "a"}, {"query": "b"}]}', response='{"predictions": ["c", "d"]}'
    ),
    good=_logged(request='{"dataframe_records": [{"query": "a"}]}', response='{"predictions": ["c"]}'),
)

LOGGING_ERROR = Rule(
    "AE711",
    "logging-error",
    Severity.WARNING,
    "look the code up in the documentation of the endpoint's inference table",
    "The endpoint had trouble to log the call and says so (logging_error_codes).",
    bad=_logged(logging_error_codes=["SCHEMA_ERROR"]),
    good=_GOOD,
)

PARTIAL_KEPT = Rule(
    "AE712",
    "partial-answer",
    Severity.WARNING,
    "set partial answers aside unless half an answer is what you want to score",
    "A streamed response broke off, and the step that sets such rows aside is switched off.",
)

ODD_FEEDBACK = Rule(
    "AE713",
    "odd-feedback",
    Severity.WARNING,
    "nothing to do if the rest of the feedback is right; the part that is named was left out",
    "A part of a feedback call could not be read and was left out.",
    bad=_logged(
        request=json.dumps(
            {"dataframe_records": [{"request_id": "r-0", "text_assessments": [17], "retrieval_assessments": []}]}
        )
    ),
    good=_logged(
        request=json.dumps({"dataframe_records": [{"request_id": "r-0", "text_assessments": []}]}), response=""
    ),
)

COPIED_LABEL = Rule(
    "AE714",
    "label-copied",
    Severity.INFO,
    "have somebody cut the text down to the facts that an answer must contain",
    "Users were content with the answer, so expected_response is a copy of it.\n\nA copied answer holds more than an "
    "answer must contain, and the row that it comes from cannot fail on it.",
)

FEEDBACK_DISAGREES = Rule(
    "AE715",
    "feedback-disagrees",
    Severity.WARNING,
    "have somebody decide; until then the answer is not taken as the expected one",
    "Users disagree about an answer or a document, or an edited answer takes the place of what the trace expects.",
)

UNMATCHED_CHUNK = Rule(
    "AE716",
    "feedback-without-document",
    Severity.WARNING,
    "look at the trace: the step and the position that the feedback names are not in it, or have no doc_uri",
    "A document was judged that the row's trace does not hold.\n\nDocuments are matched by step and position, never by "
    "the order of a list.",
)

UNKNOWN_REQUEST = Rule(
    "AE717",
    "feedback-for-unknown-request",
    Severity.WARNING,
    "widen the time window, or look for the table that holds the call",
    "Feedback names a request that is not in the table.",
)

LABEL_YIELDS = Rule(
    "AE718",
    "label-yields",
    Severity.INFO,
    "nothing to do: what somebody wrote as ground truth is better than what users were content with",
    "Feedback would make a label, but the row's trace states the ground truth already; the trace's is taken.\n\nA "
    "thumb only says that an answer, or a document that was found, is good; and a row may have one of "
    "expected_response and expected_facts.",
)
