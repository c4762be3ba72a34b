"""The tokens that a trace used: every rule by example."""

from __future__ import annotations

import json

import pytest

from tests.helpers.traces import ROOT, Row, completion, row, span, tokens, trace, usage


def openai(given: int, made: int) -> Row:
    return {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}


def used(given: int, made: int) -> Row:
    return {"usage": openai(given, made)}


METADATA = {"trace_metadata": {"mlflow.trace.tokenUsage": json.dumps(usage(3, 4))}}


TOKENS = {
    "mlflow.chat.tokenUsage": trace(ROOT, span("2", "1", "CHAT_MODEL", usage=usage(3, 4))),
    "it beats the output": trace(ROOT, span("2", "1", "LLM", usage=usage(3, 4), outputs=used(9, 9))),
    "usage of the output": trace(ROOT, span("2", "1", "LLM", outputs=used(3, 4))),
    "in other words": trace(ROOT, span("2", "1", "LLM", outputs={"usage": usage(3, 4)})),
    "the total is the sum": trace(ROOT, span("2", "1", "LLM", usage={"input_tokens": 3, "output_tokens": 4})),
    "two models": trace(
        ROOT, span("2", "1", "LLM", usage=usage(1, 2)), span("3", "1", "CHAT_MODEL", outputs=used(2, 2))
    ),
    "a wrapper and what it wraps": trace(
        ROOT, span("2", "1", "LLM", usage=usage(3, 4)), span("3", "2", "CHAT_MODEL", usage=usage(3, 4))
    ),
    "a wrapper, with a span between": trace(
        ROOT,
        span("2", "1", "LLM", outputs=used(3, 4)),
        span("3", "2", "CHAIN"),
        span("4", "3", "CHAT_MODEL", outputs=used(3, 4)),
    ),
    "a wrapper that is the root": trace(
        span("1", None, "LLM", inputs="Hi", outputs=used(3, 4)), span("2", "1", "CHAT_MODEL", outputs=used(3, 4))
    ),
    "a wrapper that does not say": trace(
        ROOT,
        span("2", "1", "LLM"),
        span("3", "2", "CHAT_MODEL", usage=usage(1, 2)),
        span("4", "2", "CHAT_MODEL", usage=usage(2, 2)),
    ),
    "other spans are not counted": trace(
        ROOT, span("2", "1", "LLM", usage=usage(3, 4)), span("3", "1", "EMBEDDING", usage=usage(9, 9))
    ),
    "spans beat the trace's metadata": trace(
        ROOT,
        span("2", "1", "LLM", usage=usage(3, 4)),
        trace_metadata={"mlflow.trace.tokenUsage": json.dumps(usage(9, 9))},
    ),
    "metadata": trace(ROOT, span("2", "1", "LLM", outputs="Hello"), **METADATA),
    "metadata of v2": trace(ROOT, request_metadata=METADATA["trace_metadata"]),
    "metadata beats the root's output": trace(span(kind="AGENT", inputs="Hi", outputs=used(9, 9)), **METADATA),
    "the root's output": trace(span(kind="AGENT", inputs="Hi", outputs={**completion("Hello"), **used(3, 4)})),
    "NaN beside the usage": trace(ROOT, span("2", "1", "LLM", outputs={"score": float("nan"), **used(3, 4)})),
    "half of a character beside the usage": trace(
        ROOT, span("2", "1", "LLM", outputs={**completion("\ud800"), **used(3, 4)})
    ),
}


@pytest.mark.parametrize("case", TOKENS)
def test_tokens(case: str) -> None:
    found = row(json.dumps(TOKENS[case]))
    assert {k: v for k, v in found.items() if k.endswith("_token_count")} == tokens(3, 4, 7)


def test_no_usage_is_no_count() -> None:
    assert not [k for k in row(trace(ROOT, span("2", "1", "LLM", outputs={"usage": None}))) if "token" in k]
