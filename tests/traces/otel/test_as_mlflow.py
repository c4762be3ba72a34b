"""Agreement with the translators of MLflow (`mlflow.tracing.otel.translation`), span by span, and where we deliberately
read more than they do."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_eval_schema import eval_set_from_traces
from agent_eval_schema.traces.documents import output_of
from agent_eval_schema.traces.otel.envelopes import parts_of
from agent_eval_schema.traces.otel.spans import OtelSpan, pairs_of
from agent_eval_schema.traces.otel.translate import translate
from agent_eval_schema.traces.otel.values import content_of, decoded
from agent_eval_schema.traces.spans import Attributes, value_of
from tests.conftest import DATA, SAMPLES

translation = pytest.importorskip("mlflow.tracing.otel.translation")

OTEL = DATA / "otel"
FILES = [
    *("genai", "genai_events", "google_adk", "google_adk_without_content", "openinference", "openllmetry"),
    *(
        "openllmetry_prompts",
        "vercel_ai",
        "langfuse",
        "tempo",
        "strands_adk",
        "strands_pydantic_ai",
        "variant_enum_names",
    ),
]

BETTER_TYPES = {
    ("retrieval", None): "RETRIEVER",  # mlflow knows no retrieval
    ("invoke_workflow", None): "AGENT",
    ("call_llm", None): "LLM",  # schema 1 of the ADK has no kind
    ("vector_db_retrieve", "TASK"): "RETRIEVER",  # since OpenLLMetry 0.53
}
"""The type that mlflow gives to spans whose name begins like this, and ours."""

FLATTENED = ("llm.input_messages.0", "llm.output_messages.0", "gen_ai.prompt.0", "gen_ai.completion.0")
"""Lists that mlflow does not read, or of which it reads the first text: ours are whole messages."""

DOCUMENTS = ("retrieval.documents.0", "gen_ai.retrieval.documents")
WRAPPED = ("traceloop.entity.input", "traceloop.entity.output")
OF_ADK = ("gcp.vertex.agent.tool_call_args",)


def _spans(name: str) -> list[OtelSpan]:
    text = _file(name).read_text(encoding="utf-8")
    documents = map(json.loads, text.splitlines() if name.endswith(".jsonl") else [text])
    return [
        msgspec.json.decode(json.dumps(part.span), type=OtelSpan)
        for document in documents
        for part in parts_of(document)
    ]


def _file(name: str) -> Path:
    folder = SAMPLES if name == "otel_traces.jsonl" else OTEL
    return folder / (name if name.endswith(".jsonl") else f"{name}.json")


def _values(span: OtelSpan) -> dict[str, Any]:
    """The attributes as mlflow keeps them: each as JSON text."""
    pairs = {key: json.loads(bytes(content_of(raw))) for key, raw in pairs_of(span.attributes or span.tags)}
    return {key: json.dumps(value) for key, value in pairs.items()}


def _plain(value: Any) -> Any:
    for _ in range(2):
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except ValueError:
                break
    return value


@pytest.mark.parametrize("name", FILES)
def test_types_inputs_outputs_and_tokens_are_those_of_mlflow(name: str) -> None:
    for span in _spans(name):
        notes: list[Any] = []
        translated = translate(span, 0, notes)
        given = _values(span)
        theirs = translation.translate_span_type_from_otel(given)
        title = span.outline()[0] or ""
        if translated is None:
            assert title.startswith("execute_tool (merged"), "mlflow counts it as a call"
            continue
        ours = translated.attributes
        better = next(
            (new for (start, old), new in BETTER_TYPES.items() if title.startswith(start) and old == theirs), None
        )
        if ours.type == "RETRIEVER" and theirs != "RETRIEVER":
            assert (title.split(" ")[0], theirs) in BETTER_TYPES
        assert ours.type == (better or theirs or "UNKNOWN"), title

        usage = translation._get_token_usage(given)
        if usage:  # they read neither `usage_details` of Langfuse nor `ai.usage` of Vercel
            assert _counts(value_of(ours.token_usage)) == _counts(usage), title

        for raw, theirs_raw in (
            (ours.inputs, translation._get_input_value(given)),
            (ours.outputs, translation._get_output_value(given)),
        ):
            if theirs_raw is None or any(key.startswith((*FLATTENED, *DOCUMENTS)) for key in given):
                continue  # they say nothing, or we say more
            if any(key in given for key in (*WRAPPED, *OF_ADK)):
                continue  # unwrapped below; `{}` of llm_request is nothing
            theirs_value = _plain(theirs_raw)
            if isinstance(theirs_value, dict) and theirs_value.keys() == {"messages"}:  # which mlflow adds for Vercel's
                theirs_value = theirs_value["messages"]
            if title.endswith(".doGenerate") and isinstance(theirs_value, dict):  # the calls, and why it ended
                theirs_value = theirs_value["toolCalls"] if "toolCalls" in theirs_value else theirs_value["text"]
            assert decoded(raw) == theirs_value, title


def _counts(usage: Any) -> dict[str, int] | None:
    names = ("input_tokens", "output_tokens", "total_tokens")
    found = {k: v for k, v in usage.items() if k in names}
    if "total_tokens" not in found and len(found) == 2:
        found["total_tokens"] = sum(found.values())
    return found or None


def _by_name(name: str, start: str) -> tuple[Attributes, dict[str, Any]]:
    span = next(s for s in _spans(name) if (s.outline()[0] or "").startswith(start))
    translated = translate(span, 0, [])
    assert translated is not None
    return translated.attributes, _values(span)


@pytest.mark.parametrize(
    ("name", "span", "ours", "theirs"),
    [
        ("google_adk", "execute_tool shop_hours", {}, {}),
        ("openllmetry", "execute_tool lookup_order", {"order_id": "A-1187", "verbose": True}, None),
        ("openllmetry_prompts", "list_charges.tool", {"customer": "C-7", "limit": 2}, None),
        ("openllmetry", "support_agent.workflow", {"question": "Where is order A-1187 and when is it refunded?"}, None),
    ],
)
def test_wrapped_arguments_are_unwrapped(name: str, span: str, ours: Any, theirs: Any) -> None:
    attributes, given = _by_name(name, span)
    assert value_of(attributes.inputs) == ours
    assert _plain(translation._get_input_value(given)) != ours or theirs == ours


def test_the_request_is_not_the_system_prompt() -> None:
    attributes, given = _by_name("openllmetry_prompts", "openai.chat")
    assert _plain(translation._get_input_value(given)) == "You help with billing."
    messages = value_of(attributes.inputs)["messages"]
    assert [m["role"] for m in messages] == ["system", "user"]


def test_documents_of_retrievers_are_read() -> None:
    attributes, given = _by_name("genai", "retrieval")
    assert translation._get_output_value(given) is None
    assert [d["metadata"]["doc_uri"] for d in output_of(attributes)] == ["kb/refunds.md", "kb/shipping.md"]


# --- the same run in both readers: exported to OpenTelemetry, and as MLflow stores the spans that it gets by OTLP
COMPARED = (
    "request",
    "response",
    "predicted_trajectory",
    "retrieved_context",
    *(f"{n}_token_count" for n in ("input", "output")),
)


def _as_stored(name: str) -> list[dict[str, Any]]:
    """The traces, each with its spans as MLflow stores them."""
    from mlflow.entities.span import Span

    def encoded(text: str | None, size: int = 8) -> str:
        digest = hashlib.blake2b((text or "").encode(), digest_size=size).digest()  # as not all IDs are hexadecimal
        return base64.b64encode(digest).decode() if text else ""

    stored: dict[str | None, list[Any]] = {}
    for span in _spans(name):
        title, own, parent, start, end, events = span.outline()
        found = {
            "name": title,
            "start_time_unix_nano": start,
            "end_time_unix_nano": end,
            "status": {"code": "STATUS_CODE_OK"},
        }
        ids = {"trace_id": encoded(span.trace, 16), "span_id": encoded(own), "parent_span_id": encoded(parent)}
        attributes = {"mlflow.traceRequestId": '"tr-1"', **_values(span)}
        of_events = [
            {"name": e.name, "time_unix_nano": start, "attributes": {k: json.loads(v) for k, v in _of_event(e).items()}}
            for e in events
        ]
        given = {**found, **ids, "attributes": attributes, "events": of_events}
        stored.setdefault(span.trace, []).append(translation.translate_span_when_storing(Span.from_dict(given)))
    return [{"info": {"trace_id": "tr-1"}, "data": {"spans": spans}} for spans in stored.values()]


def _of_event(event: Any) -> dict[str, str]:
    return {key: json.dumps(json.loads(bytes(content_of(raw)))) for key, raw in pairs_of(event.attributes)}


RUNS = [*sorted(path.stem for path in OTEL.glob("*.json")), "collector.jsonl", "otel_traces.jsonl"]
"""`phoenix_spans.jsonl` is of Phoenix's own form, in which attributes of OTLP are fields."""


@pytest.mark.parametrize("name", RUNS)
def test_both_readers_read_the_same_run_alike(name: str) -> None:
    exported, stored = (eval_set_from_traces(given).to_dict("records") for given in (_file(name), _as_stored(name)))
    ours, theirs = ([{n: row.get(n) for n in COMPARED} for row in rows] for rows in (exported, stored))
    assert sorted(theirs, key=str) == sorted(ours, key=str)
