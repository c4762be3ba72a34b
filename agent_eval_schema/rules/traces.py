"""AE6: MLflow traces: what could not be read, and what was derived by a guess."""

from typing import Any

from agent_eval_schema.issues import Rule, Severity

_SPAN = {
    "name": "agent",
    "span_id": "1",
    "attributes": {"mlflow.spanInputs": '"Hi"', "mlflow.spanOutputs": '"Hello"'},
}


def _trace(*spans: Any) -> dict[str, Any]:
    return {"trace": {"info": {"trace_id": "t"}, "data": {"spans": list(spans)}}}


_OK = ({"request": "Hi", "response": "Hello"},)

MALFORMED_TRACE = Rule(
    "AE601",
    "malformed-trace",
    Severity.ERROR,
    "export the whole trace again with trace.to_json(); a fixed column width or a log limit cuts it",
    "A trace is not JSON, most often because it was cut off.\n\nThe platform cannot load it, and one such row "
    "kills a run.",
    bad=({"request": "Hi", "response": "Hello", "trace": '{"info": {"trace_id": "tr-1"'},),
    good=({"request": "Hi", "response": "Hello", "trace": None},),
)

NOT_A_TRACE = Rule(
    "AE602",
    "not-a-trace",
    Severity.ERROR,
    "give what trace.to_json() writes: an object with `info` and `data`",
    "The trace cell holds something that is not an MLflow trace.",
    bad=({"request": "Hi", "response": "Hello", "trace": {"foo": 1}},),
    good=({"request": "Hi", "response": "Hello", "trace": None},),
)

ODD_TRACE = Rule(
    "AE603",
    "odd-trace",
    Severity.WARNING,
    "nothing to do if the rest of the row is right; the part that is named was left out",
    "A part of a trace could not be read and was left out.",
    bad=(_trace(_SPAN, 17),),
    good=_OK,
)

EMPTY_TRACE = Rule(
    "AE604",
    "trace-without-spans",
    Severity.WARNING,
    "download the whole trace (mlflow.get_trace), not only its info",
    "A trace has no spans, so nothing can be derived from it.\n\nThe previews in a trace's info are cut short and are "
    "never read as content.",
    bad=({"request": "Hi", "response": "Hello", **_trace()},),
    good=_OK,
)

TRACE_DISAGREES = Rule(
    "AE605",
    "trace-disagrees",
    Severity.WARNING,
    "check that the trace belongs to this row; the column wins",
    "A column says something else than the row's trace.\n\nA trace joined to the wrong row is scored without "
    "complaint.",
    bad=({"request": "Hi", "response": "Goodbye", **_trace(_SPAN)},),
    good=_OK,
)

REQUEST_DERIVED = Rule(
    "AE606",
    "request-from-trace",
    Severity.INFO,
    "nothing to do: the inputs of the trace's root span are the request",
    "The request is absent and was taken from the trace.",
    bad=(_trace(_SPAN),),
    good=_OK,
)

REQUEST_AS_JSON = Rule(
    "AE607",
    "derived-request-as-json",
    Severity.INFO,
    "fill the request column if the JSON text is not what the user asked",
    "The inputs of a trace's root span have no known request format; their JSON text is the request.",
)

RESPONSE_AS_JSON = Rule(
    "AE608",
    "derived-response-as-json",
    Severity.INFO,
    "fill the response column if the JSON text is not what the user saw",
    "The outputs of a trace's root span have no known answer format; their JSON text is the response.",
)

TRUNCATED_TRACE = Rule(
    "AE609",
    "truncated-trace",
    Severity.WARNING,
    "raise the endpoint's limit, or join the full trace from the traces table",
    "The trace says of itself that it was cut (is_truncated).\n\nSpans may be missing: documents and tool calls "
    "are a lower bound.",
)

HIDDEN_FAILURE = Rule(
    "AE610",
    "hidden-failure",
    Severity.INFO,
    "look at the span that failed; the answer may be an apology",
    "A span of the trace failed although the trace says that all went well.",
)

TRACE_NAN = Rule(
    "AE611",
    "nan-in-trace",
    Severity.INFO,
    "nothing to do: it is read as absent",
    "A trace holds NaN or Infinity, which JSON does not have; Python wrote it and mlflow reads it.",
)
