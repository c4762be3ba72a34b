"""Exports of OpenTelemetry are recognized by their columns, and their spans collected by trace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from agent_eval_schema import eval_set_from_traces, validate_eval_set
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.io import source
from agent_eval_schema.validation.report import summary_of
from tests.conftest import DATA, SAMPLES

CHAT = {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}


def span(trace: int, number: int) -> dict[str, Any]:
    text = json.dumps([{"role": "user", "content": f"Question {trace}"}])
    asked = {"key": "gen_ai.input.messages", "value": {"stringValue": text}}
    answered = {"key": "gen_ai.output.messages", "value": {"stringValue": '[{"role": "assistant", "content": "Yes"}]'}}
    ids = {"traceId": f"{trace:032x}", "spanId": f"{number:016x}", "name": f"chat {number}"}
    return {**ids, "startTimeUnixNano": str(10**18 + number), "attributes": [CHAT, asked, answered]}


def document(*spans: Any) -> dict[str, Any]:
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "s"}, "spans": list(spans)}]}]}


def spans_per_row(data: Any) -> list[int]:
    lists = [json.loads(cell) for batch in open_source(data).batches() for cell in batch.column(0).to_pylist()]
    return [sum(len(scope["spans"]) for group in one for scope in group["scopeSpans"]) for one in lists]


def test_traces_are_in_the_order_in_which_they_end() -> None:
    documents = [document(span(1, 1), span(2, 2)), document(span(3, 3)), document(span(2, 4)), document(span(1, 5))]
    rows = eval_set_from_traces(documents)
    assert list(rows["request_id"]) == [f"{trace:032x}" for trace in (3, 2, 1)]
    assert spans_per_row(documents) == [1, 2, 2]


def test_spans_without_an_id_of_their_trace_stay_apart_from_those_with_one_of_another_spelling() -> None:
    snake = {"trace_id": "d6", "span_id": "1", "name": "chat"}
    documents = [document([]), document(snake)]
    assert spans_per_row(documents) == spans_per_row(json.loads(json.dumps(documents))) == [1, 1]
    assert spans_per_row(pd.DataFrame({"resourceSpans": [json.dumps(d["resourceSpans"]) for d in documents]})) == [1, 1]


def twice(span: dict[str, Any]) -> str:
    return json.dumps(span).replace('"name": ', '"name": "first", "name": ', 1)


@pytest.mark.parametrize(
    ("lines", "rows"),
    [
        ([twice(span(1, 1)), json.dumps(span(2, 2)), json.dumps(span(1, 3))], {1: "line 1"}),  # trace 2 ends first
        ([twice(span(1, 1)), "{", json.dumps(span(1, 3))], {1: "line 1"}),
        ([json.dumps(span(2, 2)), json.dumps(span(1, 1)), twice(span(1, 3))], {1: "line 3"}),
        (
            [twice(document(span(1, 1), span(2, 2))), twice(span(2, 3))],
            {0: "expected `name` once, got it several times", 1: "line 2"},
        ),
    ],
)
def test_a_key_that_is_repeated_in_a_span_is_an_issue_of_its_trace(
    lines: list[str], rows: dict[int, str], tmp_path: Path
) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    found = [i for i in validate_eval_set(path).iter_issues() if i.code == "AE114"]
    assert {i.row: i.message.partition(":")[0] for i in found} == rows


def test_an_export_without_spans_has_no_row() -> None:
    report = validate_eval_set({"resourceSpans": []})
    assert (report.format, report.row_count, list(report.counts)) == ("otel", 0, ["AE101"])


@pytest.mark.parametrize("rows", [1, 2, 100])
def test_how_many_traces_lack_content_does_not_depend_on_the_batches(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "MAX_BATCH_ROWS", rows)
    silent = {**span(3, 3), "attributes": [CHAT]}
    report = validate_eval_set([document(span(1, 1)), document(span(2, 2)), document(silent)])
    assert [i.message for i in report.iter_issues() if i.code == "AE612" and i.row is None] == [
        "expected prompts and responses in the spans, got none in 1 of the first 3 traces"
    ]


def test_spans_share_their_resource_however_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    first, second = json.dumps(document(span(1, 1))), json.dumps(document(span(1, 2)), separators=(",", ":"))
    path.write_text(f"{first}\n{second}\n", encoding="utf-8")
    (trace,) = (cell for batch in open_source(path).batches() for cell in batch.column(0).to_pylist())
    assert [len(scope["spans"]) for group in json.loads(trace) for scope in group["scopeSpans"]] == [2]


def test_a_line_with_one_whole_trace_passes_through_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    texts = [json.dumps(document(span(trace, trace)), indent=None, separators=(" ,", ": ")) for trace in (1, 2)]
    path.write_text("\n".join(texts), encoding="utf-8")
    traces = next(batch.column(0).to_pylist() for batch in open_source(path).batches())
    assert [f'{{"resourceSpans": {trace}}}' for trace in traces] == texts


def test_lines_that_are_no_rows_stay_in_their_place(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    lines = [json.dumps(document(span(1, 1))), '{"resourceSpans": [', json.dumps(document(span(2, 2)))]
    path.write_text("\n".join(lines), encoding="utf-8")
    report = validate_eval_set(path)
    assert [(i.code, i.row) for i in report.iter_issues()] == [("AE007", 1)]
    assert (report.row_count, report.valid_count) == (3, 2)
    assert "line 2" in next(report.iter_issues()).message


@pytest.mark.parametrize("rows", [1, 100])
@pytest.mark.parametrize("between", ["", '{"resourceSpans": ['])
def test_what_is_noted_of_a_line_is_an_issue_of_its_first_trace(
    between: str, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "MAX_BATCH_ROWS", rows)
    first = json.dumps(document(span(1, 1), span(2, 2))).replace("{", '{"resourceSpans": [], ', 1)
    lines = [first, between, json.dumps(document(span(3, 3))), json.dumps(document(span(1, 4)))]
    path = tmp_path / "traces.jsonl"
    path.write_text("\n".join(filter(None, lines)), encoding="utf-8")
    report = validate_eval_set(path)
    broken = [("AE007", 1)] if between else []
    assert [(i.code, i.row) for i in report.iter_issues()] == [*broken, ("AE114", report.row_count - 1)]
    assert report.row_count == 3 + len(broken)


@pytest.mark.parametrize("kind", ["csv", "parquet", "frame", "json text"])
def test_documents_in_other_containers(kind: str, tmp_path: Path) -> None:
    frame = pd.DataFrame([{"resourceSpans": json.dumps(document(span(t, t))["resourceSpans"])} for t in (1, 2)])
    data: Any = frame
    if kind in ("csv", "parquet"):
        data = tmp_path / f"traces.{kind}"
        getattr(frame, f"to_{kind}")(data, index=False)
    elif kind == "json text":
        data = [json.dumps(document(span(t, t))) for t in (1, 2)]
    assert list(eval_set_from_traces(data)["response"]) == ["Yes", "Yes"]


def test_spans_of_a_trace_may_be_in_several_files(tmp_path: Path) -> None:
    for number in (1, 2):
        text = json.dumps(document(span(7, number), span(number, number)))
        (tmp_path / f"{number}.jsonl").write_text(text, encoding="utf-8")
    assert sorted(spans_per_row(tmp_path)) == [1, 1, 2]


def test_invalid_traces_can_be_written_and_read_again(tmp_path: Path) -> None:
    report = validate_eval_set(DATA / "otel" / "google_adk_without_content.json")
    path = tmp_path / "invalid.jsonl"
    report.invalid.to_json(path, orient="records", lines=True)
    again = validate_eval_set(path)
    assert (again.format, again.counts) == (report.format, report.counts)


@pytest.mark.parametrize(("groups", "count"), [([], 0), ([{"scopeSpans": []}], 0), ([{"spans": 3}], 1), ([17], 1)])
def test_empty_requests_are_no_rows_and_others_are_reported(groups: Any, count: int) -> None:
    report = validate_eval_set([document(span(1, 1)), {"resourceSpans": groups}])
    assert (report.row_count, report.counts.get("AE602", 0)) == (1 + count, count)


@pytest.mark.parametrize(
    "row",
    [
        {"request": "Hi", "response": "Hello", "trace_id": "a", "span_id": "b", "attributes": {}},
        {"inputs": {"q": "Hi"}, "context": {"trace_id": "a", "span_id": "b"}, "attributes": {}},
        {"expected_output": "Hello", "trace_id": "a", "span_id": "b", "attributes": {}},
        {"expected_trajectory": ["search"], "trace_id": "a", "span_id": "b", "attributes": {}},
        {"data": [{"input": "Hi"}], "meta": {}},
        {"trace_id": "a", "request": "Hi", "response": "Hello"},
        {"batches": [1, 2]},
    ],
)
def test_other_rows_are_no_traces(row: dict[str, Any]) -> None:
    assert validate_eval_set([row]).format != "otel"


def test_the_format_is_named_with_its_reason() -> None:
    report = validate_eval_set(SAMPLES / "otel_traces.jsonl")
    assert report.format == "otel"
    assert "resourceSpans" in summary_of(report).format_reason
