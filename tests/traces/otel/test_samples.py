"""Traces of every convention and every envelope → one row; the expected values were read off the files by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from agent_eval_schema import eval_set_from_traces, validate_eval_set
from agent_eval_schema.decoding.requests import last_user_text
from agent_eval_schema.rules.traces import TRACE_WITHOUT_CONTENT
from tests.conftest import DATA

OTEL = DATA / "otel"
Calls = list[tuple[str, dict[str, Any]]]

ORDER = "Where is order A-1187 and when is it refunded?"
SHIPPED = "Your order A-1187 has shipped; refunds take 14 days."
CHARGED = "Why was I charged twice?"
LOOKUP: Calls = [("lookup_order", {"order_id": "A-1187"})]
OF_LANGCHAIN: Calls = [("lookup_order", {"order_id": "A-1187", "verbose": True}), ("fail", {"x": 1})]
CHARGES: Calls = [("list_charges", {"customer": "C-7", "limit": 2})]
KB = ["kb/refunds.md", "kb/shipping.md"]

LANGCHAIN = (ORDER, SHIPPED, KB, OF_LANGCHAIN, (140, 23, 163), "s-42")
REFUND_WINDOW = ("What is the refund window?", "30 days.", ["policy-7", "policy-9"], [], (30, 4, 34), "s-46")

ROWS: dict[str, tuple[str | None, str | None, list[str], Calls, tuple[int, int, int] | None, str | None]] = {
    "genai": (
        *(ORDER, "Order A-1187 has shipped.", KB),
        *([*LOOKUP, ("refund_status", {"order_id": "A-1187"})], (140, 23, 163), "s-42"),
    ),
    "genai_events": (CHARGED, "A second card was used.", [], [("list_charges", {})], (121, 22, 143), None),
    "google_adk": (
        *("Where is order A-1187?", "Order A-1187 has shipped.", []),
        *([*LOOKUP, ("shop_hours", {})], (140, 23, 163), "2fed7a82-d251-4c77-a580-bcef2577811c"),
    ),
    "google_adk_without_content": (
        *(None, None, [], [("lookup_order", {}), ("shop_hours", {})], (140, 23, 163)),
        "884d8744-c63a-4fbc-9e8e-ba1aaca14abb",
    ),
    "openinference": LANGCHAIN,
    "openllmetry": LANGCHAIN,
    "openllmetry_prompts": (
        *(CHARGED, "A second card was used. It is refunded in 5 days.", [], CHARGES, (121, 27, 148), "s-44"),
    ),
    "vercel_ai": (CHARGED, "A second card was used.", [], CHARGES, (121, 22, 143), "s-45"),
    "langfuse": (
        *("Where is order A-1187?", "Shipped.", ["kb/refunds.md"]),
        *([*LOOKUP, ("refund_status", {"order_id": "A-1187"})], (88, 14, 102), "s-42"),
    ),
    "variant_enum_names": REFUND_WINDOW,
    "variant_base64_ids": REFUND_WINDOW,
    "tempo": (
        *("list all helm releases\n", "There are two Helm releases currently deployed:", []),
        *([("helm_list_releases", {})], (4648, 129, 4777), "ctx-eff35888-55ab-4eb0-b90d-7b21f711f91f"),
    ),
    "jaeger": (
        *("list all Helm releases", "To list all Helm releases, I would typically use Helm CLI commands", []),
        *([], (2203, 139, 2342), "ctx-d8251ac3-6289-464a-8404-0fc4e312e823"),
    ),
    "strands_adk": (
        *("What is 15 multiplied by 37?", "15 multiplied by 37 is 555.", []),
        *([("calculator", {"expression": "15 * 37"})], (379, 84, 463), "b4866a2a-a3d4-4d2f-8f40-6bb0d03d135c"),
    ),
    "strands_openinference": (
        "What is the weather difference between Taipei and Seattle?",
        *("Taipei is warmer than Seattle overall.", [], [("finish", {"answer": "Taipei is warmer"})], None, None),
    ),
    "strands_pydantic_ai": (
        "What's the weather like in Seattle right now?",
        "The current weather in Seattle is 62°F and cloudy with light rain. Pretty typical Seattle weather!",
        *([], [("get_weather", {"city": "Seattle"})], (1251, 78, 1329), "019f8b0c-5147-74b5-b1e4-f9b086da98e0"),
    ),
    "phoenix_spans": LANGCHAIN,
    "phoenix_otlp": LANGCHAIN,
    "langfuse_download": (
        "What's the weather in Tokyo?",
        "Current conditions in Tokyo, Japan: stormy, high around 23°C.",
        *([], [("get_weather", {"location": "Tokyo, Japan"})], (293, 106, 399), None),
    ),
    "langfuse_download_adk": ("hi", "Hello Langfuse 👋!\n", [], [("say_hello", {})], (67, 9, 76), "demo-session"),
}
"""Question, (the beginning of the) answer, documents, calls, tokens and session of each file with one trace."""

GUESSED, FAILED_TOOL = "AE411", "AE610"
OF_DOCUMENTS = ("openinference", "openllmetry", "langfuse", "phoenix_spans", "phoenix_otlp")
NOTES = {
    **{name: {GUESSED, FAILED_TOOL} for name in OF_DOCUMENTS},
    "genai": {FAILED_TOOL},
    "google_adk_without_content": {TRACE_WITHOUT_CONTENT.code, "AE201"},
}


def path_of(name: str) -> Path:
    return next(path for path in OTEL.iterdir() if path.stem == name)


def test_every_file_has_its_expectation() -> None:
    assert {*ROWS, "collector", "README"} == {path.stem for path in OTEL.iterdir()}


@pytest.mark.parametrize("name", ROWS)
def test_a_file_is_one_row(name: str) -> None:
    report = validate_eval_set(path_of(name))
    assert (report.format, report.row_count) == ("otel", 1)
    assert set(report.counts) == NOTES.get(name, set())
    row = report.rows.iloc[0]
    question, answer, documents, calls, tokens, session = ROWS[name]
    assert question == (None if row["request"] is None else last_user_text(row["request"]["messages"]))
    assert (row["response"] or "").startswith(answer or "")
    assert (row["response"] is None) == (answer is None)
    assert [d["doc_uri"] for d in row["retrieved_context"] or []] == documents
    assert [(c["tool_name"], c["tool_input"]) for c in row["predicted_trajectory"] or []] == calls
    counts = [row[f"{side}_token_count"] for side in ("input", "output", "total")]
    assert [None if pd.isna(count) else int(count) for count in counts] == list(tokens or [None] * 3)
    assert row["session_id"] == session
    assert row["latency_seconds"] > 0
    assert not row["failure"]


@pytest.mark.parametrize("name", ROWS)
def test_a_file_is_read_by_each_way_alike(name: str) -> None:
    path = path_of(name)
    text = path.read_text(encoding="utf-8")
    of_path = eval_set_from_traces(path)
    value = [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else json.loads(text)
    as_text = text if path.suffix == ".json" else json.dumps(value)
    in_column = validate_eval_set([{"trace": value}]).rows
    for rows in (eval_set_from_traces(value), eval_set_from_traces(as_text), in_column):
        for column in ("request_id", "response", "session_id", "predicted_trajectory", "total_token_count"):
            assert [str(v) for v in rows[column]] == [str(v) for v in of_path[column]], column


def test_the_traces_of_a_collector_lie_over_its_lines() -> None:
    rows = eval_set_from_traces(OTEL / "collector.jsonl").set_index("request_id")
    whole = rows.loc["ba48a5bb75f18107742e85c3c1cefac7"]
    assert (whole["response"], int(whole["total_token_count"])) == ("Order A-1187 has shipped.", 163)
    assert len(rows) == 2


def test_failures_are_those_of_the_agent() -> None:
    document = json.loads((OTEL / "genai.json").read_text(encoding="utf-8"))
    spans = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    agent = next(span for span in spans if span["name"].startswith("invoke_agent"))
    server = {**agent, "name": "POST /chat", "spanId": "a" * 16, "attributes": []}
    agent["parentSpanId"], agent["status"] = "a" * 16, {"code": 2, "message": "out of tokens"}
    spans.append(server)
    row = eval_set_from_traces(document).iloc[0]
    assert (bool(row["failure"]), row["error"], row["response"]) == (True, "out of tokens", "Order A-1187 has shipped.")
    exception = {"key": "exception.message", "value": {"stringValue": "no tokens are left"}}
    agent["events"] = [{"name": "exception", "attributes": [exception]}]
    assert eval_set_from_traces(document)["error"][0] == "no tokens are left"


def test_a_file_without_texts_has_one_issue_that_names_the_switch(tmp_path: Path) -> None:
    text = (OTEL / "google_adk_without_content.json").read_text(encoding="utf-8")
    lines = [json.dumps(json.loads(text.replace("474a0d39", f"{number:08x}"))) for number in range(5)]
    path = tmp_path / "traces.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    report = validate_eval_set(path)
    issues = [issue for issue in report.iter_issues() if issue.code == TRACE_WITHOUT_CONTENT.code]
    assert (report.row_count, len(issues), issues[0].row) == (5, 1, None)
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" in issues[0].hint
    assert "in 5 of the first 5 traces" in issues[0].message
