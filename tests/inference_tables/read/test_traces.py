"""A dataset of traces, of whatever form, grows and is labeled as one of logged calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema import eval_set_from_inference_table, eval_set_from_traces
from agent_eval_schema.cli import main
from agent_eval_schema.inference_tables.options import COMMAND_LINE
from agent_eval_schema.schema import COLUMNS
from tests.helpers.logged_calls import trace

ASKED = [trace(f"id-{n}", f"How do I book flight {n} to Zurich?", f"Call desk {n}.") for n in range(4)]
AGAIN = trace("again", "How do I book flight 0 to Zurich?", "At the desk.")


def judged(asked: dict[str, Any], value: bool | str, **more: Any) -> dict[str, Any]:
    """A trace with the judgment of a person."""
    assessment = {
        "assessment_name": "answer_correct",
        "source": {"source_type": "HUMAN", "source_id": "ana"},
        "feedback": {"value": value},
        "create_time": "2026-03-01T09:00:00Z",
        **more,
    }
    return {**asked, "info": {**asked["info"], "assessments": [assessment]}}


def otel(number: int, question: str) -> dict[str, Any]:
    message = json.dumps([{"role": "user", "parts": [{"type": "text", "content": question}]}])
    answer = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "Call the desk."}]}])
    span = {
        "traceId": f"{number:032x}",
        "spanId": f"{number:016x}",
        "name": "invoke_agent",
        "startTimeUnixNano": "1772355600000000000",
        "endTimeUnixNano": "1772355601000000000",
        "attributes": [
            {"key": name, "value": {"stringValue": value}}
            for name, value in {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.input.messages": message,
                "gen_ai.output.messages": answer,
            }.items()
        ],
    }
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


FORMS: dict[str, list[Any]] = {
    "a trace per row": ASKED,
    "a column": [{"trace": each} for each in ASKED],
    "a column of texts": [{"trace": json.dumps(each), "team": "travel"} for each in ASKED],
    "texts": [json.dumps(each) for each in ASKED],
    "OpenTelemetry": [otel(n + 1, f"How do I book flight {n}?") for n in range(4)],
    "a frame of MLflow": [
        {"trace": json.dumps(each), "request_time": 1772355600000, "assessments": [], **each["info"]} for each in ASKED
    ],
}


@pytest.mark.parametrize("form", FORMS)
def test_traces_of_every_form_grow_a_dataset(form: str) -> None:
    pytest.importorskip("duckdb")
    traces = FORMS[form]
    first = eval_set_from_traces(traces[:2])
    grown = eval_set_from_traces(traces, extend=first)
    assert grown["request_id"].tolist()[:2] == first["request_id"].tolist()
    assert len(grown) == 4
    assert grown["request_id"].nunique() == 4
    assert grown["response"].notna().all()
    assert grown[["request", "response"]].to_dict("list") == (
        eval_set_from_traces(traces)[["request", "response"]].to_dict("list")
    )


def test_a_question_again_is_no_new_row() -> None:
    pytest.importorskip("duckdb")
    by_id = eval_set_from_traces([*ASKED, AGAIN], dedupe="id")
    assert by_id["request_id"].tolist() == ["id-0", "id-1", "id-2", "id-3", "again"]
    by_question = eval_set_from_traces([AGAIN], extend=by_id.iloc[:1], dedupe="question")
    assert by_question["request_id"].tolist() == ["id-0"]
    near = eval_set_from_traces(
        [ASKED[0], trace("near", "How do I book flight 0 to Zurich, please?", "At the desk.")], dedupe="near"
    )
    assert len(near) == 1


def test_feedback_on_a_trace_is_a_label_as_in_a_logged_table() -> None:
    pytest.importorskip("duckdb")
    traces = [judged(ASKED[0], True), judged(ASKED[1], "no"), ASKED[2]]
    plain = eval_set_from_traces(traces)
    build = eval_set_from_inference_table(traces)
    assert plain["expected_response"].tolist() == ["Call desk 0.", None, None]
    assert plain["tags"].tolist()[0] == {"expected_response_source": "feedback: copied from the response"}
    for column in set(COLUMNS) - {"failure", "latency_seconds"}:
        assert plain[column].tolist() == build.rows[column].tolist(), column
    assert build.report.counts["AE714"] == 1
    assert eval_set_from_traces(traces, labels=None)["expected_response"].isna().all()


def test_ground_truth_of_a_row_takes_precedence_over_feedback() -> None:
    said = {"name": "expected_response", "source": {"source_type": "HUMAN"}, "expectation": {"value": "Ring desk 0."}}
    up = judged(ASKED[0], True)
    up["info"]["assessments"].append(said)
    assert eval_set_from_traces([up])["expected_response"].tolist() == ["Ring desk 0."]
    beside = [{"trace": judged(ASKED[0], True), "expected_facts": ["desk 0"]}]
    rows = eval_set_from_traces(beside)
    assert rows["expected_response"].tolist() == [None]
    assert rows["expected_facts"].tolist() == [["desk 0"]]


def test_a_judge_gives_no_label_and_people_must_agree() -> None:
    judge = judged(ASKED[0], True, source={"source_type": "LLM_JUDGE", "source_id": "gpt"})
    assert eval_set_from_traces([judge])["expected_response"].tolist() == [None]
    up, down = judged(ASKED[0], True), judged(ASKED[0], False, source={"source_type": "HUMAN", "source_id": "bo"})
    up["info"]["assessments"] += down["info"]["assessments"]
    assert eval_set_from_traces([up])["expected_response"].tolist() == [None]


def test_later_feedback_updates_a_row_that_the_dataset_has() -> None:
    pytest.importorskip("duckdb")
    first = eval_set_from_traces(ASKED[:2])
    grown = eval_set_from_traces([judged(ASKED[0], True), ASKED[1]], extend=first)
    assert grown["expected_response"].tolist() == ["Call desk 0.", None]


def write(path: Path, traces: list[Any]) -> str:
    path.write_text("".join(json.dumps(each) + "\n" for each in traces))
    return str(path)


def test_the_command_has_the_options_of_a_build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("duckdb")
    new, out = write(tmp_path / "new.jsonl", [judged(ASKED[0], True), *ASKED[1:], AGAIN]), str(tmp_path / "out.jsonl")
    first = str(tmp_path / "first.jsonl")
    assert main(["from-traces", write(tmp_path / "old.jsonl", ASKED[:2]), first, "--labels", "none"]) == 0
    assert main(["from-traces", new, out, "--extend", first, "--dedupe", "question"]) == 0
    text = capsys.readouterr()
    assert "5 logged → 2 new" in text.out
    assert "4 rows written" in text.err
    rows = [json.loads(line) for line in Path(out).read_text().splitlines()]
    assert [row["request_id"] for row in rows] == ["id-0", "id-1", "id-2", "id-3"]
    assert [row.get("expected_response") for row in rows] == ["Call desk 0.", None, None, None]
    assert main(["from-traces", new, first, "--extend", first]) == 2
    assert "would overwrite" in capsys.readouterr().err
    assert main(["from-traces", new, out, "--extend", first, "--dedupe", "none"]) == 2
    with pytest.raises(SystemExit):
        main(["from-traces", "--help"])
    words = " ".join(capsys.readouterr().out.split())
    for title, name in (("rows", "extend"), ("rows", "near"), ("rows", "include"), ("content of the rows", "labels")):
        assert COMMAND_LINE[title][name]["help"].replace("-", "") in words.replace("- ", "").replace("-", "")


def test_a_second_run_without_new_traces_is_good(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The dataset stays as it is: a job that finds nothing new has not failed."""
    new, first, out = write(tmp_path / "t.jsonl", ASKED), str(tmp_path / "first.jsonl"), str(tmp_path / "out.jsonl")
    assert main(["from-traces", new, first]) == 0
    capsys.readouterr()
    assert main(["from-traces", new, out, "--extend", first]) == 0
    said = capsys.readouterr().out
    assert "✗" not in said
    assert "✓" in said
    assert len(Path(out).read_text("utf-8").splitlines()) == len(ASKED)


def test_an_invalid_trace_is_excluded_from_a_build_or_fails_the_command(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    new, out = write(tmp_path / "new.jsonl", [*ASKED, {"info": {"trace_id": "x"}, "data": {"spans": []}}]), "out.jsonl"
    out = str(tmp_path / out)
    assert main(["from-traces", new, out, "-q"]) == 1
    assert main(["from-traces", new, out, "--dedupe", "id", "-q"]) == 0
    assert len(Path(out).read_text().splitlines()) == 4
    assert main(["from-traces", new, out, "--dedupe", "id", "--include", "invalid", "-q"]) == 1
    assert main(["from-traces", new, out, "--include", "invalid", "-q", "--fail-on", "never"]) == 0
    assert len(Path(out).read_text().splitlines()) == 5
