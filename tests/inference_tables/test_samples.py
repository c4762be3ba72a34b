"""Every sample of a logged table, with the row or the reason that the documentation of its format requires.

The expected values are written by hand from that page and the sample's own text; none is recorded.
"""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

import pytest

from agent_eval_schema.formats.inference_tables import detect_family
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.traces.feedback import Feedback
from agent_eval_schema.traces.labels import chunks_of, labels_of
from agent_eval_schema.validation.validate import check_source
from tests.helpers.inference_tables import ANSWER, ASKED, QUESTION, SAMPLES, Row, convert, sample

USER = [{"role": "user", "content": QUESTION}]
NOTHING_ELSE = {"reason": None, "detail": None, "record": None, "feedback": None, "predicted_trajectory": None}


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


EXPECTED: dict[str, list[Row]] = {
    # A chat completion without a trace: session from extra_params, tokens from usage, latency in seconds.
    "01": [
        {
            **NOTHING_ELSE,
            "request_id": "0b6f6c1e-0000-4000-8000-000000000001",
            "request": {"messages": USER},
            "response": ANSWER,
            "trace": None,
            "session_id": "s-1",
            "time": at("2025-11-03T09:01:11.204000"),
            "status_code": 200,
            "failed": False,
            "latency_seconds": 2.311,
            "served_entity": "5d0a1c9be1f24b7c8e55b1f4a9f20c77",
            "requester": "svc-helpdesk@example.com",
            "input_token_count": 27,
            "output_token_count": 41,
            "total_token_count": 68,
            "notes": [],
        }
    ],
    # ChatAgent: tool messages interleave, the answer is the last assistant message with content; the trace tells the
    # tool calls. Its client_request_id is another row's (…0004).
    "02": [
        {
            **NOTHING_ELSE,
            "request_id": "0b6f6c1e-0000-4000-8000-000000000002",
            "request": {"messages": USER},
            "response": ANSWER,
            "trace id": "tr-917d2af1b9a642ee9b6f2cb59bda77c4",
            "session_id": "c-9",
            "tags": [("user_id", "u-4"), ("custom_inputs.region", "DE")],
            "failed": False,
            "latency_seconds": 2.312,
            "notes": ["AE708"],
        }
    ],
    # A legacy table: time in milliseconds, the model from request_metadata, a trace of MLflow 2.
    "03": [
        {
            **NOTHING_ELSE,
            "request_id": "9f3d2a10-0000-4000-8000-000000000003",
            "request": {"messages": USER},
            "response": ANSWER,
            "trace id": "9f3d2a10-0000-4000-8000-000000000003",
            "session_id": "123456",
            "time": at("2024-09-12T09:00:03"),
            "latency_seconds": 0.848,
            "served_entity": "main.rag.hr_bot/4",
            "total_token_count": 68,
            "notes": [],
        }
    ],
    # query and history: the history, then the query as a user message. [{content}] is the answer.
    "05": [
        {
            **NOTHING_ELSE,
            "request_id": "9f3d2a10-0000-4000-8000-000000000005",
            "request": {
                "messages": [
                    {"role": "user", "content": "Hi"},
                    {"role": "assistant", "content": "Hello!"},
                    {"role": "user", "content": QUESTION},
                ]
            },
            "response": ANSWER,
            "trace": None,
            "input_token_count": None,
            "notes": [],
        }
    ],
    # The status is the text "200", there is no metadata, and the trace is one of steps (v1).
    "06": [
        {
            **NOTHING_ELSE,
            "request_id": "9f3d2a10-0000-4000-8000-000000000006",
            "request": {"messages": USER},
            "response": ANSWER,
            "trace steps": ["Retriever", "LLM"],
            "status_code": 200,
            "served_entity": None,
            "failed": False,
            "notes": [],
        }
    ],
    # Two records in one call: two rows, zipped with the predictions; the latency is the whole call's.
    "08": [
        {
            "reason": None,
            "logged_id": "0b6f6c1e-0000-4000-8000-000000000008",
            "record": 0,
            "request_id": "0b6f6c1e-0000-4000-8000-000000000008#0",
            "request": {"messages": USER},
            "response": ANSWER,
            "latency_seconds": None,
            "notes": ["AE710"],
        },
        {
            "reason": None,
            "logged_id": "0b6f6c1e-0000-4000-8000-000000000008",
            "record": 1,
            "request_id": "0b6f6c1e-0000-4000-8000-000000000008#1",
            "request": {"messages": [{"role": "user", "content": "And for part-time?"}]},
            "response": "Pro rata.",
            "latency_seconds": None,
            "notes": ["AE710"],
        },
    ],
    # `inputs` as columns (a list of one chat), beside params; one record, one prediction. Feedback names the call's id.
    "10": [
        {
            "reason": None,
            "record": 0,
            "request_id": "0b6f6c1e-0000-4000-8000-000000000010#0",
            "label_id": "0b6f6c1e-0000-4000-8000-000000000010",
            "request": {"messages": USER},
            "response": ANSWER,
            "latency_seconds": 2.32,
            "notes": [],
        }
    ],
    # A stream of the Responses API as SSE text: the final item repeats the deltas; the trace is in the last event.
    "12": [
        {
            **NOTHING_ELSE,
            "request_id": "0b6f6c1e-0000-4000-8000-000000000012",
            "request": {"messages": USER},
            "response": ANSWER,
            "trace id": "tr-917d2af1b9a642ee9b6f2cb59bda77c4",
            "notes": ["AE709", "AE708"],
        }
    ],
    # A stream as an array of chunks.
    "13": [{**NOTHING_ELSE, "request": {"messages": USER}, "response": ANSWER, "trace": None, "notes": ["AE709"]}],
    "16": [{"reason": "status", "status_code": 429, "failed": True, "request as logged": ASKED, "notes": []}],
    "18": [{"reason": "oversize", "detail": "logging_error_codes: MAX_REQUEST_SIZE_EXCEEDED", "request": None}],
    # Status 200 hides a failed model call: the row stays and counts as failed.
    "20": [
        {
            **NOTHING_ELSE,
            "request": {"messages": USER},
            "response": "This question has been flagged",
            "status_code": 200,
            "failed": True,
            "notes": ["AE708"],
        }
    ],
    # The last user message twice: reported (by the check: AE2), not removed.
    "23": [{**NOTHING_ELSE, "request": {"messages": USER * 2}, "response": ANSWER, "notes": []}],
    "25": [{"reason": "feedback", "notes": [], "request_id": "9f3d2a10-0000-4000-8000-000000000025"}],
    # A derived row: the payload beside the texts holds the whole chat, the trace stands in a column.
    "27": [
        {
            **NOTHING_ELSE,
            "request_id": "9f3d2a10-0000-4000-8000-000000000003",
            "request": {"messages": USER},
            "response": ANSWER,
            "trace id": "9f3d2a10-0000-4000-8000-000000000003",
            "session_id": "123456",
            "latency_seconds": 0.848,
            "total_token_count": 68,
            "notes": [],
        }
    ],
    "28": [{"reason": "feedback", "request_id": "9f3d2a10-0000-4000-8000-000000000003", "notes": []}] * 3,
    # A search_traces row: the trace is everything; request and response come from its root span (by the check).
    "29": [
        {
            "reason": None,
            "request_id": "0b6f6c1e-0000-4000-8000-000000000004",
            "request": None,
            "response": None,
            "trace id": "tr-917d2af1b9a642ee9b6f2cb59bda77c4",
            "time": at("2025-11-03T09:01:11.204000"),
            "latency_seconds": 2.31,
            "notes": [],
        }
    ],
    "31": [
        {
            **NOTHING_ELSE,
            "request_id": "inv-1",
            "request": {"messages": USER},
            "response": ANSWER,
            "time": at("2026-03-01T10:00:00"),
            "latency_seconds": 0.812,
            "served_entity": "databricks-claude",
            "requester": "svc@example.com",
            "total_token_count": 68,
            "notes": [],
        }
    ],
}

FAMILY = {
    **dict.fromkeys(("01", "02", "08", "10", "12", "13", "16", "18", "20", "23"), "ai_gateway"),
    **dict.fromkeys(("03", "05", "06", "25"), "legacy"),
    "27": "request_logs",
    "28": "assessment_logs",
    "29": "search_traces",
    "31": "unity_ai_gateway",
}


def rows_of(name: str) -> list[Row]:
    rows = sample(name)
    return rows if isinstance(rows, list) else [rows]


def told(record: Row, key: str) -> Any:
    """What a record says, in the words of EXPECTED."""
    if key == "trace id":
        info = json.loads(record["trace"])["info"]
        return info.get("trace_id") or info["request_id"]
    if key == "trace steps":
        return [step["name"] for step in json.loads(record["trace"])["steps"]]
    if key == "request as logged":
        return json.loads(record["request"])
    if key == "notes":
        return [n["code"] for n in record["notes"] or ()]
    if key == "request" and record["request"] is not None and record["reason"] is None:
        return json.loads(record["request"])
    return record[key]


@pytest.mark.parametrize("name", EXPECTED)
def test_a_sample_gives_the_row_or_the_reason(name: str) -> None:
    records = convert(rows_of(name))
    assert len(records) == len(EXPECTED[name])
    for record, expected in zip(records, EXPECTED[name], strict=True):
        assert {key: told(record, key) for key in expected} == expected


def test_every_sample_has_its_expectation() -> None:
    assert {path.name[:2] for path in SAMPLES.glob("*.json")} == set(EXPECTED) == set(FAMILY)


@pytest.mark.parametrize("name", FAMILY)
def test_the_family_is_told_by_the_columns(name: str) -> None:
    family, reason = detect_family(list(rows_of(name)[0]))
    assert family.name == FAMILY[name]
    assert reason.startswith("the columns ")


@pytest.mark.parametrize("name", ["02", "03", "06", "20"])
def test_a_trace_in_a_response_is_cut_out_as_it_stands(name: str) -> None:
    (row,) = rows_of(name)
    (record,) = convert([row])
    assert record["trace"] in row["response"]
    assert json.loads(record["trace"]) == json.loads(row["response"])["databricks_output"]["trace"]


def test_the_trace_of_a_stream_is_cut_out_too() -> None:
    (row,) = rows_of("12")
    (record,) = convert([row])
    assert record["trace"] in row["response"]


@pytest.mark.parametrize("name", [n for n in EXPECTED if EXPECTED[n][0]["reason"] is None])
def test_the_record_is_a_valid_row(name: str) -> None:
    """The check of the finished row reads what the conversion gives it, and finds no error."""
    rows = [
        {k: r[k] for k in ("request_id", "request", "response", "trace") if r[k] is not None}
        for r in convert(rows_of(name))
    ]
    report = check_source(open_source(rows))
    assert report.ok, report.to_text()
    asked = [r["messages"][-1]["content"] for r in report.rows["request"]]
    assert asked == ([QUESTION, "And for part-time?"] if name == "08" else [QUESTION])
    if name == "20":
        assert "AE610" in report.counts  # the hidden failure
    if name == "23":
        assert "repeated-user-message" in set(report.issues["name"])


def test_feedback_of_a_call() -> None:
    """Source and assessments are JSON texts inside the record."""
    (record,) = convert(rows_of("25"))
    assert record["feedback"] == [
        {
            "request_id": "9f3d2a10-0000-4000-8000-000000000003",
            "source": "ana@example.com",
            "step_id": None,
            "position": None,
            "time": at("2024-09-12T09:00:25"),
            "kind": "text",
            "value": False,
            "suggested_output": "18 weeks.",
            "rationale": "wrong number",
            "comment": "see new policy",
        }
    ]


def entries(name: str) -> list[Feedback]:
    given = [f for r in convert(rows_of(name)) for f in r["feedback"]]
    return [Feedback(**{**f, "time": int(f["time"].timestamp() * 1_000_000)}) for f in given]


def test_feedback_of_the_assessment_log_becomes_labels() -> None:
    """The later click of the same person wins: her edit is the expected answer. The second document was rated down."""
    found = entries("28")
    assert [(f.kind, f.value, f.suggested_output, f.position) for f in found] == [
        ("text", True, None, None),
        ("text", False, "18 weeks.", None),
        ("retrieval", False, None, 1),
    ]
    (row,) = convert(rows_of("03"))
    labels = labels_of(found, response=row["response"], chunks=chunks_of(row["trace"]))
    assert (labels.expected_response, labels.copied, labels.thumb) == ("18 weeks.", False, False)
    assert labels.expected_retrieved_context is None
    assert labels.notes == ()


def test_assessments_beside_a_trace_are_its_labels() -> None:
    (record,) = convert(rows_of("29"))
    report = check_source(open_source([{"trace": record["trace"]}]))
    assert report.rows["expected_response"].tolist() == ["18 weeks."]
    assert report.rows["response"].tolist() == [ANSWER]
    assert [(f["value"], f["rationale"], f["source"]) for f in record["feedback"]] == [
        (False, "outdated", "ana@example.com")
    ]


def test_the_same_question_has_the_same_hash_in_any_form() -> None:
    names = ("01", "02", "03", "10", "12", "27", "29", "31")
    plain = [convert(rows_of(n), by_question=True)[0]["question_hash"] for n in names]
    assert len(set(plain)) == 1
    assert plain[0] is not None
    assert plain[0] != convert(rows_of("05"), by_question=True)[0]["question_hash"]


def test_excluded_rows_keep_their_logged_cells() -> None:
    for name in ("16", "18", "25"):
        (row,), (record,) = rows_of(name), convert(rows_of(name))
        assert (record["request"], record["response"]) == (row["request"], row["response"])
