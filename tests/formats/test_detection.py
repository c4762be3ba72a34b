"""Which format a table is taken for, and what is said of it: formats/detection.py and the signs of every format."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_eval_schema import convert_eval_set, metric_support, normalize_eval_set, validate_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.formats.detection import Signs
from agent_eval_schema.formats.registry import FORMATS, UNKNOWN, detect
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.validation.report import summary_of

NAMES = sorted({name for f in FORMATS for name in f.signs.known})


@pytest.mark.parametrize(
    ("columns", "format"),
    [
        ("request response expected_response", "databricks"),
        ("request_id response", "databricks"),
        ("reqest response", "databricks"),
        ("trace expected_response team", "databricks"),
        ("inputs outputs expectations", "mlflow"),
        ("inputs expected_response expected_facts guidelines", "mlflow"),
        ("request inputs", "databricks"),
        ("inputs outputs metadata id", "langsmith"),
        ("user_input response reference", "ragas"),
        ("input actual_output", "deepeval"),
        ("item sample", "openai"),
        ("input ideal", "openai"),
        ("prompt response reference", "vertex"),
        ("info data", "traces"),
        ("trace_id trace request response tags state request_time", "search_traces"),
        ("trace_id trace request response state request_time inputs", "mlflow"),
        ("display_name turn_index action_type description", "ces-csv"),
        ("displayName golden", "ces-evaluation"),
        ("eval_id turn turns history user_content", "adk"),
        ("turn turns history query reference", "adk-legacy"),
        ("trace_id spans state request_time", "databricks"),
        ("question label", None),
        ("query response context", "azure"),
        ("response context", "azure"),
        ("question response context", None),  # the question of Azure is its query
        ("input expected tags", None),
        ("id input output node_id", "phoenix"),
        ("input output tags", "phoenix"),
        ("record_id input output ts total_cost", None),  # the output of a log is no reference
        ("input output metadata latency", None),
    ],
)
def test_a_table_is_taken_for_what_its_columns_say(columns: str, format: str | None) -> None:
    assert detect(columns.split()).format == format


@pytest.mark.parametrize(
    ("beside", "format"), [("id", "phoenix"), ("latency_ms", "unknown"), ("request", "databricks")]
)
def test_columns_with_dots_are_phoenixs_unless_they_are_of_a_log(beside: str, format: str) -> None:
    assert validate_eval_set([{"input.question": "a", "output.answer": "b", beside: "c"}]).format == format


def test_a_table_without_columns_is_ours() -> None:
    assert detect([]).format == "databricks"


def test_a_guess_says_whose_the_output_is() -> None:
    assert (
        "the columns input, output, where the output is the reference answer; second"
        in detect(["input", "output"]).reason
    )
    assert "reference answer" not in detect(["input", "output", "node_id"]).reason


def test_the_reason_says_what_came_second_and_what_to_type() -> None:
    report = validate_eval_set([{"inputs": {"question": "Hi"}, "outputs": "a", "team": 1}])
    assert summary_of(report).format_reason == (
        "the columns inputs, outputs; second: langsmith (inputs, outputs); "
        'to override: `--format langsmith`, `format="langsmith"`'
    )
    assert (
        summary_of(validate_eval_set([{"request": "Hi"}])).format_reason == "the column request; no other format fits"
    )
    assert summary_of(validate_eval_set([{"reqest": "Hi"}])).format_reason == (
        "close match for the column request; second: mlflow (needs inputs); "
        'to override: `--format mlflow`, `format="mlflow"`'
    )
    assert summary_of(validate_eval_set([{"request": "Hi"}], format="ragas")).format_reason == "as asked"


def test_a_table_that_nobody_claims_is_unknown_and_the_three_nearest_are_named() -> None:
    report = validate_eval_set([{"input": "Hi", "expected": "Hello", "tags": ["a"]}] * 2)
    assert (report.format, report.counts, report.valid_count) == (UNKNOWN.name, {"AE113": 2}, 0)
    assert summary_of(report).format_reason == "no format has the columns input, expected, tags"
    assert "    row 0\n    row 1\n      expected the columns of a format" in report.to_text()
    issue = next(report.iter_issues())
    assert issue.message == (
        "expected the columns of a format, got input, expected, tags; "
        "nearest: braintrust (needs metadata), deepeval (needs actual_output), inspect (needs target)"
    )
    assert issue.hint == (
        'Name the format (`--format braintrust`, `format="braintrust"`), or the columns as they look '
        "(`--columns input=request --columns expected=expected_response`, "
        '`columns={"input": "request", "expected": "expected_response"}`): '
        "`input` like `request` by its name: certain, `expected` like `expected_response` by its name: certain. "
        "Under these names the rows are those of databricks."
    )


def test_a_report_on_an_unknown_table_shows_no_metrics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"question": "Hi", "label": "a"}\n', encoding="utf-8")
    report = validate_eval_set(str(path))
    assert not summary_of(report).has_metrics
    for shown in (report.to_text(), report.to_html()):
        assert "ragas (needs contexts)" in " ".join(shown.split())
        assert "outputs" not in re.sub("<script>.*?</script>", "", shown, flags=re.DOTALL).lower()
        assert "measured" not in shown
    assert json.loads(report.to_json())["metrics"] == []
    assert main(["metrics", str(path)]) == 0
    assert "measured" not in capsys.readouterr().out
    assert not metric_support(str(path)).any(axis=None)


def test_nothing_of_an_unknown_row_is_lost() -> None:
    row = {"question": "Hi", "tags": ["a"], "response": 7}
    (kept,) = normalize_eval_set([row], on_invalid="keep")
    assert kept["unreadable"] == '{"question":"Hi","tags":["a"],"response":7}'
    assert set(convert_eval_set([row], "ragas").losses["code"]) == {"AE814"}


def test_without_the_rule_an_unknown_table_is_read_as_ours() -> None:
    report = validate_eval_set([{"question": "Hi", "response": "Hello"}], ignore=["AE113"])
    assert (report.format, report.counts) == ("databricks", {"AE103": 1, "AE201": 1})


@pytest.mark.parametrize("format", FORMATS, ids=lambda f: f.name)
def test_the_signs_of_a_format_make_a_table_its_own(format: Any) -> None:
    for group in format.signs.sure:
        found = detect(group)
        assert found.format == format.name or not format.signs.allow(group), (group, found)


@given(st.lists(st.sampled_from([*NAMES, "team", "question"]), unique=True, max_size=12), st.randoms())
def test_the_order_of_the_columns_decides_nothing(names: list[str], random: Any) -> None:
    shuffled = list(names)
    random.shuffle(shuffled)
    assert detect(names).format == detect(shuffled).format


@given(st.lists(st.sampled_from(NAMES), min_size=1, unique=True, max_size=12))
def test_there_is_always_a_reason_and_something_to_type(names: list[str]) -> None:
    found = detect(names)
    typed = found.reason.partition("to override: `--format ")[2].partition("`")[0]
    if typed:
        assert typed in {f.name for f in FORMATS} - {found.format}
    elif found.format:
        assert found.reason.endswith("; no other format fits")


def test_a_sure_claim_wins_over_a_likely_one_and_more_columns_over_fewer() -> None:
    signs = Signs(sure=(("a", "b"),), likely=(("a",),), columns=frozenset({"c"}))
    sure, likely = signs.claim(["c", "b", "a"]), signs.claim(["a"])
    assert (sure.sure, sure.columns, likely.sure) == (True, ("b", "a", "c"), False)  # type: ignore[union-attr]
    assert signs.claim(["b", "c"]) is None
    assert set(COLUMNS) <= {name for f in FORMATS if f.name == "databricks" for name in f.signs.known}


@pytest.mark.parametrize("key", ["ideal", "tools", "functions", "parallel_tool_calls", "metadata", "id"])
def test_chats_with_keys_of_the_library_of_openai_are_of_openai(key: str) -> None:
    chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    assert validate_eval_set([{"messages": chat, key: "x"}]).format == "openai"


@pytest.mark.parametrize("name", ["[", "[]", ".", "[.]"])
def test_a_column_whose_name_is_no_path_may_be_a_likely_question(name: str) -> None:
    report = validate_eval_set([{name: "What is it?"}, {name: "What is that?"}])
    assert (report.format, report.counts) == (UNKNOWN.name, {"AE113": 2})
