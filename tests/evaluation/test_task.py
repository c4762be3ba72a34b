"""EvalTask end to end: the example of Vertex AI's page, the documented columns and keys, and rows that go wrong."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from agent_eval_schema import (
    CustomMetric,
    EvalSetError,
    EvalTask,
    MetricInfo,
    PointwiseMetric,
    ToolUseMetric,
    convert_eval_set,
    eval_set_from_traces,
    load_result,
    score_trajectories,
)
from agent_eval_schema.evaluation import task_metrics
from agent_eval_schema.evaluation.score import input_parts
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.io.locks import open_locked
from agent_eval_schema.metrics.trajectory import TRAJECTORY_METRICS
from tests.conftest import KINDS, SAMPLES, Row
from tests.helpers.scores import reasons_of

DEVICE_2 = {"tool_name": "set_device_info", "tool_input": {"device_id": "device_2", "updates": {"status": "OFF"}}}
DEVICE_3 = {"tool_name": "set_device_info", "tool_input": {"device_id": "device_3", "updates": {"status": "OFF"}}}
WARM = {"tool_name": "set_temperature", "tool_input": {"location": "Living Room", "temperature": 23}}
USER_Y = {"tool_name": "get_user_preferences", "tool_input": {"user_id": "user_y"}}
USER_Z = {"tool_name": "get_user_preferences", "tool_input": {"user_id": "user_z"}}

SEED: list[Row] = [
    {"predicted_trajectory": [DEVICE_3], "reference_trajectory": [DEVICE_2]},
    {"predicted_trajectory": [USER_Z, WARM], "reference_trajectory": [USER_Y, WARM]},
]
PROMPTS: list[Row] = [
    {"prompt": "Turn device 2 off", "reference_trajectory": [DEVICE_2], "reference": "It is off."},
    {"prompt": "Make it warm", "reference_trajectory": [USER_Y, WARM], "reference": "It is warm now."},
    {"prompt": "Sing", "reference_trajectory": [WARM], "reference": "La la"},
]


def agent(prompt: str) -> dict[str, Any]:
    if prompt == "Sing":
        raise ValueError("no voice")
    if "warm" in prompt:
        return {"response": "It is warm now.", "predicted_trajectory": [USER_Z, WARM]}
    return {"response": "Off.", "predicted_trajectory": json.dumps([DEVICE_2])}


def same(found: list[Any], expected: list[Any]) -> bool:
    return found == pytest.approx(expected, nan_ok=True)


NAN = math.nan


# ---------------------------------------------------------------------------------------------------------------------
# what is documented


def test_the_examples_of_the_seed(every_input: Any) -> None:
    found = EvalTask(every_input(SEED), list(TRAJECTORY_METRICS)).evaluate()
    assert list(found.metrics_table.columns) == [
        "predicted_trajectory",
        "reference_trajectory",
        *(f"{m}/score" for m in TRAJECTORY_METRICS),
    ]
    scores = found.metrics_table[[f"{m}/score" for m in TRAJECTORY_METRICS]].to_numpy().tolist()
    assert scores == [[0, 0, 0, 0, 0, 0], [0, 0, 0, 0.5, 0.5, 0.5]]
    assert found.summary_metrics == {
        "row_count": 2,
        **{f"{m}/{what}": 0 for m in list(TRAJECTORY_METRICS)[:3] for what in ("mean", "std")},
        **{f"{m}/mean": 0.25 for m in list(TRAJECTORY_METRICS)[3:]},
        **{f"{m}/std": pytest.approx(np.std([0, 0.5], ddof=1)) for m in list(TRAJECTORY_METRICS)[3:]},
    }


def test_the_columns_and_keys_of_a_run(every_input: Any) -> None:
    metrics = ["exact_match", ToolUseMetric(tool_name="set_temperature"), "trajectory_exact_match"]
    found = EvalTask(every_input(PROMPTS), metrics).evaluate(runnable=agent)
    table = found.metrics_table
    assert list(table.columns) == [
        *("prompt", "reference_trajectory", "reference"),
        *("response", "latency_in_seconds", "failure", "predicted_trajectory", "error"),
        *("exact_match/score", "trajectory_single_tool_use/score", "trajectory_exact_match/score"),
    ]
    assert table["response"].tolist() == ["Off.", "It is warm now.", None]
    assert table["failure"].tolist() == [0, 0, 1]
    assert table["predicted_trajectory"].tolist() == [[DEVICE_2], [USER_Z, WARM], None]
    assert table["error"].tolist() == [None, None, "ValueError: no voice"]
    assert table["latency_in_seconds"].isna().tolist() == [False, False, True]
    assert same(table["exact_match/score"].tolist(), [0, 1, NAN])
    assert same(table["trajectory_single_tool_use/score"].tolist(), [0, 1, NAN])
    assert same(table["trajectory_exact_match/score"].tolist(), [1, 0, NAN])
    keys = [f"{m}/{what}" for m in found.tallies for what in ("mean", "std")]
    assert list(found.summary_metrics) == ["row_count", *keys]
    assert keys[:4] == ["latency_in_seconds/mean", "latency_in_seconds/std", "failure/mean", "failure/std"]
    assert found.summary_metrics["failure/mean"] == pytest.approx(1 / 3)
    assert found.summary_metrics["trajectory_exact_match/mean"] == 0.5
    assert reasons_of(found) == {(name, "the call failed"): 1 for name in found.metrics}


def test_the_std_of_one_row_is_nan() -> None:
    found = EvalTask(SEED[:1], ["trajectory_recall"]).evaluate()
    assert found.summary_metrics["trajectory_recall/mean"] == 0
    assert math.isnan(found.summary_metrics["trajectory_recall/std"])


@pytest.mark.parametrize(
    ("value", "score", "reason"),
    [
        (0.5, 0.5, "short\\x1b"),
        (True, 1, "short\\x1b"),
        ("yes", math.nan, "the judge returned no number"),
        (None, math.nan, "the judge returned no number"),
        (math.nan, math.nan, "the judge returned no number"),
        (math.inf, math.nan, "the judge returned no number"),
        (ValueError("boom"), math.nan, "the judge raised an exception: ValueError: boom"),
        ({"error_message": "limit\nlater"}, math.nan, "the judge raised an exception: limit"),
    ],
    ids=repr,
)
def test_a_row_has_the_score_of_its_judge_or_a_reason(
    value: Any, score: float, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []

    def judge(inputs: dict[str, Any]) -> SimpleNamespace:
        asked.append(inputs)
        if isinstance(value, Exception):
            raise value
        error = SimpleNamespace(**value) if isinstance(value, dict) else None
        return SimpleNamespace(value=None if error else value, rationale="short\x1b", error=error)

    monkeypatch.setattr(task_metrics, "_judge", lambda _: judge)
    rows = [{"prompt": "q", "response": "a", "predicted_trajectory": [WARM]}, {"prompt": "q"}]
    found = EvalTask(rows, [PointwiseMetric("own", "{response} {predicted_trajectory}", model="m")]).evaluate()
    assert asked == [{"response": "a", "predicted_trajectory": [WARM]}]
    assert found.scores["own"].tolist() == pytest.approx([score, math.nan], nan_ok=True)
    assert found.reasons["own"].tolist() == [reason, "the row lacks response"]
    assert found.metrics_table["own/explanation"].tolist() == [None if math.isnan(score) else reason, None]


def test_two_runs_do_not_write_one_checkpoint_file(tmp_path: Path) -> None:
    path = str(tmp_path / "run.jsonl")
    with open_locked(path), pytest.raises(EvalSetError, match=r"jsonl: another run is writing this checkpoint file$"):
        EvalTask([{"prompt": "q"}], []).evaluate(str, journal=path)


def test_the_result_of_a_run_does_not_take_the_place_of_its_answers(tmp_path: Path) -> None:
    path, calls = str(tmp_path / "run.jsonl"), list[str]()
    task = EvalTask([{"prompt": text, "reference": text} for text in "abcd"], ["exact_match"])
    agent = lambda text: calls.append(text) or text  # noqa: E731
    with pytest.raises(EvalSetError, match="is the checkpoint file of a run, whose answers would be lost"):
        task.evaluate(agent, journal=path, max_workers=1).write(path)
    (dataset := tmp_path / "papers.jsonl").write_text('{"journal":1,"prompt":"a"}\n')  # a column of this name is none
    EvalTask([{"prompt": "a"}], []).evaluate().write(dataset)
    lines = Path(path).read_bytes().splitlines(keepends=True)
    Path(path).write_bytes(b"".join([*lines[:2], b"damaged\n", *lines[3:]]))
    assert task.evaluate(agent, journal=path, max_workers=1).scores["exact_match"].tolist() == [1] * 4
    assert calls == [*"abcd", "b"]


def test_a_judge_needs_a_model_and_columns_of_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EvalSetError, match=r"^own: name the judge, such as model='openai:/gpt-4o'$"):
        PointwiseMetric("own", "{response}")
    with pytest.raises(
        EvalSetError, match=r"^own: give a template with {response} or so, or criteria and input_variables"
    ):
        PointwiseMetric("own", "Rate the response.", model="m")
    monkeypatch.setattr(task_metrics, "_judge", lambda _: None)
    with pytest.raises(EvalSetError, match=r"^own: no column 'answer' in the data: there are prompt, "):
        EvalTask([{"prompt": "q"}], [PointwiseMetric("own", "{answer}", model="m")]).evaluate()


@pytest.mark.parametrize(
    "kind",
    [
        partial(ToolUseMetric, "exact_match"),
        partial(CustomMetric, "words", len),
        partial(PointwiseMetric, "polite", "Rate {response}.", model="openai:/gpt-4o"),
        partial(MetricInfo, "words"),
    ],
    ids=lambda kind: kind.func.__name__,
)
def test_a_metric_that_was_checked_is_not_changed(kind: Callable[[], Any]) -> None:
    metric = kind()
    for name in metric.__struct_fields__:
        with pytest.raises(AttributeError):
            setattr(metric, name, "other")


def test_all_metrics_of_the_seed_at_once() -> None:
    pytest.importorskip("sacrebleu")
    pytest.importorskip("rouge_score")
    words = CustomMetric("words", lambda row: {"words": len(row["response"].split()), "explanation": row["prompt"]})
    metrics = ["rouge_l_sum", "rouge_1", "rouge_l", "bleu", words, *TRAJECTORY_METRICS]
    found = EvalTask(PROMPTS, metrics).evaluate(agent).metrics_table
    for name in ("rouge_l_sum", "rouge_1", "rouge_l", "bleu"):
        assert 0 <= found[f"{name}/score"][0] < 0.7
        assert found[f"{name}/score"][1] == 1
    assert same(found["words/score"].tolist(), [1, 4, NAN])
    assert found["words/explanation"].tolist() == ["Turn device 2 off", "Make it warm", None]


def test_rouge_and_bleu_by_hand() -> None:
    pytest.importorskip("sacrebleu")
    pytest.importorskip("rouge_score")
    rows = [{"response": "the cat sat", "reference": "the cat slept"}]
    found = EvalTask(rows, ["rouge_1", "rouge_2", "rouge_l", "bleu"]).evaluate().summary_metrics
    assert found["rouge_1/mean"] == found["rouge_l/mean"] == pytest.approx(2 / 3)
    assert found["rouge_2/mean"] == pytest.approx(1 / 2)  # "the cat" of two pairs
    # sacrebleu: 2 of 3 words, 1 of 2 pairs, no triple (smoothed: half of one in one)
    assert found["bleu/mean"] == pytest.approx((2 / 3 * 1 / 2 * 1 / 2) ** (1 / 3))


# ---------------------------------------------------------------------------------------------------------------------
# the agent's side


RETURNS: dict[str, Any] = {
    "none": None,
    "number": 7,
    "text": "Just text",
    "bad call": {"response": "Done", "predicted_trajectory": [WARM, {"tool_input": {}}]},
    "no trajectory": {"response": "Done"},
    "as text": {"response": "Done", "predicted_trajectory": json.dumps([WARM])},
    "surrogate": {"response": "half \ud800", "predicted_trajectory": [WARM]},
}


def test_whatever_an_agent_returns_costs_its_own_row_only() -> None:
    rows = [{"prompt": name, "reference_trajectory": [WARM]} for name in RETURNS]
    table = EvalTask(rows, ["trajectory_exact_match"]).evaluate(RETURNS.__getitem__).metrics_table.set_index("prompt")
    assert table["failure"].to_dict() == {name: int(name in ("none", "number")) for name in RETURNS}
    assert same(table["trajectory_exact_match/score"].tolist(), [NAN, NAN, NAN, NAN, NAN, 1, 1])
    assert "got null" in table.at["none", "error"]
    assert "got the number 7" in table.at["number", "error"]
    assert table.at["bad call", "error"].startswith("predicted_trajectory[1]: `tool_name` is missing")
    assert table.at["bad call", "response"] == "Done"
    assert table.at["text", "error"] is None
    assert table.at["surrogate", "response"] == "half ?"


def test_rows_without_a_prompt_are_not_called() -> None:
    called = []
    rows = [{"prompt": "a", "x": 1}, {"prompt": None, "x": 2}, {"x": 3}]
    table = EvalTask(rows, []).evaluate(lambda prompt: called.append(prompt) or "yes").metrics_table
    assert called == ["a"]
    assert table["error"].tolist() == [None, "the row has no prompt", "the row has no prompt"]
    assert table["x"].tolist() == [1, 2, 3]


def test_the_order_of_the_rows_is_kept() -> None:
    import time

    rows = [{"prompt": str(i)} for i in range(12)]

    def slow_at_first(prompt: str) -> str:
        time.sleep(0.05 if int(prompt) % 4 == 0 else 0)
        return prompt

    table = EvalTask(rows, []).evaluate(slow_at_first, max_workers=4).metrics_table
    assert table["response"].tolist() == [row["prompt"] for row in rows]


def test_a_run_takes_the_place_of_outputs_in_the_data() -> None:
    rows = [
        {"prompt": "a", "response": "old", "predicted_trajectory": [{"nothing": 1}], "reference_trajectory": [WARM]}
    ]
    found = EvalTask(rows, ["trajectory_recall"]).evaluate(
        lambda _: {"response": "new", "predicted_trajectory": [WARM]}
    )
    assert found.metrics_table["response"].tolist() == ["new"]
    assert found.summary_metrics["trajectory_recall/mean"] == 1
    assert found.issue_counts == {}


def test_requests_of_other_formats_are_prompts() -> None:
    chat = {"messages": [{"role": "system", "content": "Be kind"}, {"role": "user", "content": "b"}]}
    rows = [{"request": "a", "reference_trajectory": [WARM]}, {"request": chat, "reference_trajectory": [WARM]}]
    question = [{"role": "user", "content": "a"}]
    expected = {
        "text": ["a", "b"],
        "messages": [question, chat["messages"]],
        "request": [{"messages": question}, chat],
    }
    seen: list[Any] = []
    task = EvalTask(rows, ["trajectory_recall"])
    by_name = {
        "text": lambda prompt: seen.append(prompt) or "yes",
        "messages": lambda messages: seen.append(messages) or "yes",
        "request": lambda inputs: seen.append(inputs) or "yes",
    }
    for name, agent in by_name.items():
        assert not task.evaluate(agent, max_workers=1).failures
        assert seen == expected[name]
        seen.clear()
        assert not task.evaluate(by_name["text"], max_workers=1, make_input=name).failures  # type: ignore[arg-type]
        assert seen == expected[name]
        seen.clear()
    with pytest.raises(EvalSetError, match="make_input"):
        task.evaluate(by_name["text"], make_input="message")  # type: ignore[arg-type]


def test_the_errors_of_calls_are_counted_and_listed() -> None:
    rows = [{"prompt": str(number), "reference": "1"} for number in range(12)]
    found = EvalTask(rows, ["exact_match"]).evaluate(lambda prompt: str(12 // (int(prompt) // 6)), max_workers=1)
    assert found.failures == dict.fromkeys(range(6), "ZeroDivisionError: integer division or modulo by zero")
    assert "6 × ZeroDivisionError: integer division or modulo by zero" in str(found)
    assert found.scores["exact_match"].isna().tolist() == [True] * 6 + [False] * 6
    assert not EvalTask(rows, ["exact_match"]).evaluate().failures


def test_the_samples_can_be_evaluated_as_they_are() -> None:
    found = EvalTask(SAMPLES / "good.jsonl", ["document_recall", "document_precision", "tool_invocation"]).evaluate()
    assert found.row_count == 12
    assert found.tallies["document_recall"].scored > 0


def test_trajectories_of_traces() -> None:
    found = EvalTask(SAMPLES / "search_traces.jsonl", [ToolUseMetric("book_desk")]).evaluate()
    used = found.metrics_table["trajectory_single_tool_use/score"]
    rows = eval_set_from_traces(SAMPLES / "search_traces.jsonl").predicted_trajectory.tolist()
    assert used.sum() == sum(any(c["tool_name"] == "book_desk" for c in calls or ()) for calls in rows) > 0


def test_a_reference_that_cannot_be_read_is_told() -> None:
    rows = [{"prompt": "a", "reference_trajectory": [{"tool_name": ""}]}, {"prompt": "b", "reference_trajectory": []}]
    task = EvalTask(rows, ["trajectory_recall"], empty="nan")
    found = task.evaluate(lambda _: {"response": "x", "predicted_trajectory": [WARM]})
    assert found.issue_counts == {"AE502": 1, "AE505": 1}
    assert found.issues["row"].tolist() == [0, 1]
    assert reasons_of(found) == {
        ("trajectory_recall", "reference_trajectory cannot be read"): 1,
        ("trajectory_recall", "reference_trajectory is empty"): 1,
    }


# ---------------------------------------------------------------------------------------------------------------------
# the data's side


def test_a_file_is_scored_as_it_streams_by(tmp_path: Path) -> None:
    rows = [{"response": str(i % 3), "reference": "0", "prompt": f"p{i}"} for i in range(20_000)]
    path = KINDS["parquet"](rows, tmp_path)
    called: list[str] = []

    def note(row: Row) -> dict[str, Any]:
        called.append(row["prompt"])
        last = {"note": "the last"} if row["prompt"] == "p19999" else {}
        return {"own": int(row["response"]), **last}

    parts = list(input_parts(open_source(path), ["response", "reference"]))
    assert len(parts) > 1
    found = EvalTask(path, ["exact_match", CustomMetric("own", note)]).evaluate()
    table = found.metrics_table
    assert called == [row["prompt"] for row in rows]  # once a row, in order, though the table is read again
    assert table["prompt"].tolist() == called
    assert table["own/score"].tolist() == [i % 3 for i in range(20_000)]
    assert table["own/note"].tolist() == [None] * 19_999 + ["the last"]
    assert table.index.tolist() == list(range(20_000))
    assert found.summary_metrics["exact_match/mean"] == pytest.approx(6_667 / 20_000)


def test_trajectories_by_themselves_are_scored_as_score_trajectories_does(every_input: Any) -> None:
    rows = [*SEED, {"predicted_trajectory": "no JSON", "reference_trajectory": [WARM]}, {"reference_trajectory": []}]
    data = every_input(rows)
    alone, direct = EvalTask(data, ["trajectory_recall"]).evaluate(), score_trajectories(data, ["trajectory_recall"])
    beside = EvalTask(data, ["trajectory_recall", "exact_match"]).evaluate()
    for found in (alone, beside):
        np.testing.assert_equal(*(of.tallies["trajectory_recall"].by_row for of in (found, direct)))
        assert {k: v for k, v in reasons_of(found).items() if k[0] == "trajectory_recall"} == reasons_of(direct)
        assert found.issue_counts == direct.issue_counts


def test_only_what_metrics_read_is_judged() -> None:
    rows = [{"prompt": "a", "response": "x", "expected_response": "x", "expected_facts": 7, "predicted_trajectory": 7}]
    assert EvalTask(rows, ["exact_match"]).evaluate().issue_counts == {}
    assert EvalTask(rows, ["exact_match", ToolUseMetric("t")]).evaluate().issue_counts == {"AE501": 1}


@pytest.mark.parametrize("name", ["golden.csv", "evaluation.json"])
def test_turns_of_ces_are_rows(name: str) -> None:
    turns = convert_eval_set(SAMPLES / name, "databricks").data
    found = EvalTask(SAMPLES / name, ["exact_match", "trajectory_recall"]).evaluate(lambda _: "12 days")
    assert found.row_count == len(turns)
    assert found.metrics_table["failure"].tolist() == [0] * len(turns)
    assert found.tallies["exact_match"].scored == turns["expected_response"].notna().sum() > 0
    assert found.name == str(SAMPLES / name)


def test_invalid_evaluations_of_ces_are_told() -> None:
    found = EvalTask(SAMPLES / "golden_broken.csv", ["exact_match"]).evaluate()
    assert found.issues["code"].unique().tolist() == ["AE814"]
    assert found.issues["row"].isna().all()
    with pytest.raises(EvalSetError, match="invalid evaluations were excluded"):
        EvalTask(SAMPLES / "golden_broken.csv", ["exact_match"]).evaluate(agent)


# ---------------------------------------------------------------------------------------------------------------------
# metrics


def test_a_custom_metric_that_breaks_costs_its_row_only() -> None:
    def picky(row: Row) -> Any:
        return {"a": 1 / row["x"], "b": {"c": None}.get("c"), "c": "text", "d": 7}[row["prompt"]]

    rows = [{"prompt": p, "x": x} for p, x in zip("aabcd", (1, 0, 1, 1, 1), strict=True)]
    found = EvalTask(rows, [CustomMetric("picky", picky)]).evaluate()
    assert same(found.metrics_table["picky/score"].tolist(), [1, NAN, NAN, NAN, 7])
    assert {reason.partition(":")[0] for _, reason in reasons_of(found)} == {
        "the metric raised an exception",
        "the metric gave no score",
    }


@pytest.mark.parametrize("deep", [3, 300, 3_000])
def test_further_values_of_a_metric_can_be_shown_and_written(deep: int, tmp_path: Path) -> None:
    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError("no text")

    nested: Any = "\ud83d"
    for _ in range(deep):
        nested = [nested]
    further = {"why": "cut \ud83d", "tree": nested, "odd": Broken(), "at": date(2026, 1, 2), "\ud83d": 1}
    further["n"] = np.int64(3)
    found = EvalTask([{"response": "a"}], [CustomMetric("m", lambda _: {"m": 1, **further})]).evaluate()
    assert found.metrics_table["m/why"].tolist() == ["cut ?"]
    assert found.metrics_table["m/n"].tolist() == [3]
    assert len(found.to_html()) > len(found.to_json()) > 0
    for name in ("rows.jsonl", "rows.csv", "rows.parquet"):
        found.write(tmp_path / name)
        assert load_result(tmp_path / name).summary_metrics == found.summary_metrics


def test_a_custom_metric_with_two_scores_has_none() -> None:
    found = EvalTask([{"response": "a"}], [CustomMetric("m", lambda _: {"m": 1, "score": 0.1})]).evaluate()
    assert same(found.metrics_table["m/score"].tolist(), [NAN])
    assert [reason for _, reason in reasons_of(found)] == ["the metric gave two scores: under 'm' and under 'score'"]


@pytest.mark.parametrize("name", ["failure", "latency_in_seconds"])
def test_a_metric_has_no_name_of_what_is_measured_of_a_run(name: str) -> None:
    with pytest.raises(EvalSetError, match=f"^metrics: '{name}' is measured of each run: give the metric another name"):
        EvalTask([{"response": "a"}], [CustomMetric(name, lambda _: 0.5)])


def test_the_row_of_a_custom_metric_holds_what_metrics_read() -> None:
    seen: list[Row] = []
    rows = [{"request": "a", "response": "b", "expected_response": "c", "extra": NAN}]
    EvalTask(rows, [CustomMetric("see", lambda row: seen.append(row) or 1)]).evaluate()
    assert (seen[0]["prompt"], seen[0]["response"], seen[0]["reference"]) == ("a", "b", "c")
    assert seen[0]["extra"] is None


def test_retrieval_and_tool_call_metrics() -> None:
    rows = [
        {
            "retrieved_context": [{"doc_uri": "a"}, {"doc_uri": "b"}],
            "expected_retrieved_context": [{"doc_uri": "a"}],
            "predicted_trajectory": [WARM],
            "reference_trajectory": [WARM, USER_Y],
        }
    ]
    names = ["document_recall", "document_precision", "tool_invocation", "tool_ordered_invocation"]
    found = EvalTask(rows, [*names, "parameter_correctness", "tool_calls_pass"]).evaluate().metrics_table
    assert found.filter(like="/score").iloc[0].tolist() == [1, 0.5, 0.5, 0.5, 0.5, 0]


def test_options_are_said() -> None:
    rows = [
        {"predicted_trajectory": [WARM, WARM, USER_Y], "reference_trajectory": [WARM]},
        {"predicted_trajectory": [], "reference_trajectory": []},
    ]
    metrics = ["trajectory_precision", ToolUseMetric("set_temperature")]
    by_default = EvalTask(rows, metrics).evaluate()
    assert by_default.metrics_table["trajectory_precision/score"].tolist() == [2 / 3, 1]
    assert by_default.metrics_table["trajectory_single_tool_use/score"].tolist() == [1, 0]
    assert by_default.options == {"duplicates": "membership", "empty": "define"}
    like_the_service = EvalTask(rows, metrics, duplicates="one_to_one", empty="nan").evaluate()
    assert same(like_the_service.metrics_table["trajectory_precision/score"].tolist(), [1 / 3, NAN])
    assert same(like_the_service.metrics_table["trajectory_single_tool_use/score"].tolist(), [1, NAN])
    assert like_the_service.options == {"duplicates": "one_to_one", "empty": "nan"}


def test_an_agent_that_calls_no_tool_fails_every_metric() -> None:
    """In the data, and as the answer of an agent: 0, and no row without a score."""
    row = {"prompt": "Warm the hall", "predicted_trajectory": [], "reference_trajectory": [WARM]}
    metrics = [*TRAJECTORY_METRICS, ToolUseMetric("set_temperature")]

    def silent(_: str) -> Row:
        return {"response": "Done.", "predicted_trajectory": []}

    for task in (EvalTask([row], metrics).evaluate(), EvalTask([row], metrics).evaluate(silent)):
        assert [task.summary_metrics[f"{name}/mean"] for name in task.metrics] == [0] * 7
        assert task.unscored.empty


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((SEED, ["trajectory_f2"]), "metrics: expected names .*; got 'trajectory_f2'"),
        ((SEED, ["trajectory_single_tool_use"]), r"use ToolUseMetric\(tool_name="),
        ((SEED, [len]), r"^metrics: .*; got the function len; use CustomMetric\("),
        ((SEED, [ToolUseMetric("a"), ToolUseMetric("b")]), "several metrics are called"),
        (("no/such/file.jsonl", ["bleu"]), "no such file"),
    ],
)
def test_a_task_that_cannot_be(arguments: Any, message: str) -> None:
    with pytest.raises(EvalSetError, match=message):
        EvalTask(*arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"runnable": agent}, "the agent cannot run"),
        ({"runnable": agent, "timeout": 0}, "above 0"),
        ({"runnable": agent, "max_workers": 0}, "above 0"),
        ({"journal": "x"}, "require a runnable"),
        ({"runnable": 7}, "cannot run"),
    ],
)
def test_an_evaluation_that_cannot_be(options: Any, message: str) -> None:
    with pytest.raises(EvalSetError, match=message):
        EvalTask(SEED, ["trajectory_recall"]).evaluate(**options)


def test_two_tools_under_names_of_their_own() -> None:
    tools = [ToolUseMetric("set_temperature", name="warms"), ToolUseMetric("sing", name="sings")]
    found = EvalTask(SEED, tools).evaluate()
    assert (found.summary_metrics["warms/mean"], found.summary_metrics["sings/mean"]) == (0.5, 0)


def test_nothing_edits_the_data(tmp_path: Path) -> None:
    frame = KINDS["pandas"](PROMPTS, tmp_path)
    frame.index = pd.Index([5, 7, 9])
    before = frame.copy(deep=True)
    EvalTask(frame, ["trajectory_recall"]).evaluate(agent)
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize("kind", ["list", "jsonl"])
@pytest.mark.parametrize("metrics", [["trajectory_recall"], ["trajectory_recall", "exact_match"]])
def test_the_id_of_a_row_is_in_the_table_under_whatever_name_it_came(
    kind: str, metrics: list[str], tmp_path: Path
) -> None:
    rows = [{"id": id, "dataset_id": "d", "inputs": {"q": "Hi"}, "outputs": {"answer": "x"}} for id in "ab"]
    task = EvalTask(KINDS[kind](rows, tmp_path), metrics)
    for found in (task.evaluate(), task.evaluate(str)):
        assert found.metrics_table["request_id"].tolist() == ["a", "b"]
        assert found.metrics_table.columns[0] == "request_id"
    without = [{k: v for k, v in row.items() if k != "id"} for row in rows]
    assert "request_id" not in EvalTask(KINDS[kind](without, tmp_path), metrics).evaluate().metrics_table


def test_differing_scores_name_the_row() -> None:
    rows = [{"request_id": id, "prompt": "p", "response": "x", "reference": "x"} for id in "ab"]
    old, new = (EvalTask(data, ["exact_match"]).evaluate() for data in (rows, [rows[0], {**rows[1], "response": "y"}]))
    assert old.compare(new).rows.to_dict("records")[0]["request_id"] == "b"


def test_no_rows() -> None:
    found = EvalTask(
        pd.DataFrame({"predicted_trajectory": [], "reference_trajectory": []}), ["trajectory_recall"]
    ).evaluate()
    assert found.row_count == 0
    assert math.isnan(found.summary_metrics["trajectory_recall/mean"])
    assert "0 rows" in found.to_html()


@pytest.mark.parametrize(
    "row",
    [
        {"inputs": {"question": "Hi"}, "outputs": "x", "expectations": {"expected_tool_calls": [{"arguments": {}}]}},
        {"id": "1", "dataset_id": "d", "inputs": {"q": "Hi"}, "outputs": {"expected_tool_calls": [{"arguments": {}}]}},
    ],
    ids=["mlflow", "langsmith"],
)
def test_an_issue_is_of_the_column_that_its_path_names(row: Row) -> None:
    for metrics in (["trajectory_recall"], ["trajectory_recall", "exact_match"]):
        (issue,) = EvalTask([row], metrics).evaluate().issues.to_dict("records")
        assert (issue["code"], issue["column"]) == ("AE502", "reference_trajectory")
