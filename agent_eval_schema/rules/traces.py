"""AE6: traces of MLflow and OpenTelemetry: parts that cannot be parsed, and fields whose derivation is uncertain."""

import json
from typing import Any

from agent_eval_schema.rules.pages import MLFLOW_TRACES, OTEL_GENAI, Page


def _trace(*spans: Any, **info: Any) -> dict[str, Any]:
    return {"trace": {"info": {"trace_id": "t", **info}, "data": {"spans": list(spans)}}}


def _root(inputs: Any, outputs: Any) -> dict[str, Any]:
    attributes = {"mlflow.spanInputs": json.dumps(inputs), "mlflow.spanOutputs": json.dumps(outputs)}
    return {"name": "agent", "span_id": "1", "attributes": attributes}


def _child(status: str) -> dict[str, Any]:
    return {"name": "search", "span_id": "2", "parent_id": "1", "status": {"code": status}}


_SPAN = _root("Hi", "Hello")
_RETRIEVER = {"mlflow.spanType": '"RETRIEVER"'}
_ANSWER = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}

_trace_page = Page(MLFLOW_TRACES, good=({"request": "Hi", "response": "Hello"},))

MALFORMED_TRACE = _trace_page.error(
    "AE601 malformed-trace",
    "A trace is not JSON, most often because it was truncated.",
    why="The platform cannot load it, and one such row aborts the run.",
    hint="Export the whole trace again with `trace.to_json()`; a fixed column width or a log limit truncates it.",
    bad=({"request": "Hi", "response": "Hello", "trace": '{"info": {"trace_id": "tr-1"'},),
    good=({"request": "Hi", "response": "Hello", "trace": None},),
)

NOT_A_TRACE = _trace_page.error(
    "AE602 not-a-trace",
    "The trace cell does not contain a trace of MLflow or OpenTelemetry.",
    why="MLflow cannot load the value, and no field can be derived from it.",
    hint="Set the output of `trace.to_json()`, an object with `info` and `data`, or the `resourceSpans` of one trace.",
    bad=({"request": "Hi", "response": "Hello", "trace": {"foo": 1}},),
    good=({"request": "Hi", "response": "Hello", "trace": None},),
)

ODD_TRACE = _trace_page.warning(
    "AE603 odd-trace",
    "A part of a trace cannot be parsed and is skipped.",
    why="Fields that are derived from this part are missing or incomplete.",
    hint="Export the trace again; no action needed if the rest of the row is correct.",
    bad=(_trace(_SPAN, 17),),
)

EMPTY_TRACE = _trace_page.warning(
    "AE604 trace-without-spans",
    "A trace has no spans from which to derive fields.",
    why="The previews in the info of a trace are truncated and are never read as content.",
    hint="Download the whole trace with `mlflow.get_trace`, not only its info.",
    bad=({"request": "Hi", "response": "Hello", **_trace()},),
)

TRACE_DISAGREES = _trace_page.warning(
    "AE605 trace-disagrees",
    "A column value conflicts with the row's trace.",
    why="The column takes precedence. A trace that was joined to the wrong row is scored without an error.",
    hint="Check that the trace belongs to this row.",
    bad=({"request": "Hi", "response": "Goodbye", **_trace(_SPAN)},),
)

REQUEST_DERIVED = _trace_page.info(
    "AE606 request-from-trace",
    "The request is missing and was derived from the trace.",
    why="The inputs of the trace's root span are used as the request.",
    hint="No action needed: the inputs of the root span are the request.",
    bad=(_trace(_SPAN),),
)

REQUEST_AS_JSON = _trace_page.info(
    "AE607 derived-request-as-json",
    "The inputs of a trace's root span have no known request format.",
    why="Their JSON text is used as the request, which judges read.",
    hint="No action needed if the user sent this JSON; otherwise fill the `request` column.",
    bad=(_trace(_root({"city": "Paris", "days": 2}, "Hello")),),
    good=(_trace(_root({"question": "Hi"}, "Hello")),),
)

RESPONSE_AS_JSON = _trace_page.info(
    "AE608 derived-response-as-json",
    "The outputs of a trace's root span have no known response format.",
    why="Their JSON text is used as the response, which judges read.",
    hint="No action needed if the user received this JSON; otherwise fill the `response` column.",
    bad=(_trace(_root("Hi", {"city": "Paris", "days": 2})),),
    good=(_trace(_root("Hi", {"response": "Hello"})),),
)

PARTIAL_STREAM = _trace_page.warning(
    "AE620 partial-stream",
    "The streamed outputs of a trace's root span are incomplete.",
    why="The stream has no end, or a piece that cannot be read: the response is what had come until then.",
    hint="Record the trace again, or fill the `response` column.",
    bad=(_trace(_root("Hi", [{"object": "chat.completion.chunk", "choices": [{"delta": {"content": "He"}}]}])),),
    good=(_trace(_root("Hi", [{"type": "response.completed", "response": {"output": [_ANSWER]}}])),),
)

NO_OUTPUTS = _trace_page.warning(
    "AE621 root-without-outputs",
    "The root span of a trace has no outputs, and the row no response.",
    why="No response can be derived, so no metric of responses has a score.",
    hint="Return the answer from the traced function, or fill the `response` column.",
    bad=(_trace({"name": "agent", "span_id": "1", "attributes": {"mlflow.spanInputs": '"Hi"'}}),),
    good=(_trace(_SPAN),),
)

NO_DOCUMENTS = _trace_page.warning(
    "AE622 retriever-without-outputs",
    "The last retriever of a trace has no outputs.",
    why="No documents can be derived, so no metric of retrieval has a score.",
    hint="Return the documents from the traced function, or fill the `retrieved_context` column.",
    bad=(_trace(_SPAN, {**_child("OK"), "attributes": _RETRIEVER}),),
    good=(_trace(_SPAN, {**_child("OK"), "attributes": {**_RETRIEVER, "mlflow.spanOutputs": "[]"}}),),
)

TRUNCATED_TRACE = _trace_page.warning(
    "AE609 truncated-trace",
    "The trace is marked as truncated (is_truncated).",
    why="Spans may be missing: the derived documents and tool calls are a lower bound.",
    hint="Increase the limit of the endpoint, or join the full trace from the traces table.",
    bad=(_trace(_SPAN, trace_metadata={"is_truncated": "true"}),),
    good=(_trace(_SPAN),),
)

HIDDEN_FAILURE = _trace_page.info(
    "AE610 hidden-failure",
    "A span has status ERROR although the trace state is OK.",
    why=("The agent continued after the failure: its response may be an error message that is scored as an answer."),
    hint="No action needed if the agent recovered; otherwise inspect the failed span.",
    bad=(_trace(_SPAN, _child("STATUS_CODE_ERROR"), state="OK"),),
    good=(_trace(_SPAN, _child("STATUS_CODE_OK"), state="OK"),),
)

TRACE_NAN = _trace_page.info(
    "AE611 nan-in-trace",
    "A trace contains NaN or Infinity, which are not JSON.",
    why="Python writes these literals and MLflow reads them; strict parsers reject the trace.",
    hint="No action needed: the value is treated as missing.",
    bad=({"trace": json.dumps(_trace(_SPAN, score=float("nan"))["trace"])},),
    good=({"trace": json.dumps(_trace(_SPAN, score=None)["trace"])},),
)


_CALL = {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}
_TEXTS = {"key": "gen_ai.input.messages", "value": {"stringValue": '[{"role": "user", "content": "Hi"}]'}}
_IDS = {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174", "name": "chat gpt-x"}


def _of_otel(*attributes: Any) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": [{**_IDS, "attributes": list(attributes)}]}]}]}


TRACE_WITHOUT_CONTENT = Page(OTEL_GENAI).warning(
    "AE612 trace-without-content",
    "The spans of an OpenTelemetry trace contain no prompts, responses or tool calls.",
    why="Instrumentations do not capture content by default, so no request and no response can be derived.",
    hint=(
        "Set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY (`true` for older instrumentations) in the "
        "environment of the agent and record the traces again."
    ),
    bad=({"request": "Hi", "response": "Hello", "trace": _of_otel(_CALL)},),
    good=({"request": "Hi", "response": "Hello", "trace": _of_otel(_CALL, _TEXTS)},),
)

EVALUATION_TRACE = Page(MLFLOW_TRACES).info(
    "AE613 evaluation-trace",
    "Traces of a tracking store that an evaluation logged were excluded.",
    why="A dataset that is made of all traces would grow by the questions of its own evaluations.",
    hint="No action needed: `evaluations=True` or `--evaluations` includes them.",
    no_example="The rule concerns a tracking store: MLflow tags these traces with `mlflow.eval.requestId`.",
)
