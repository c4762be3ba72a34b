"""PointwiseMetric: mlflow's judge asks a small OpenAI-compatible server on loopback, and no other host."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from agent_eval_schema import EvalSetError, EvalTask, MetricInfo, PointwiseMetric
from agent_eval_schema.evaluation.result import EvalResult
from tests.helpers.mlflow_store import without_its_warnings
from tests.helpers.scores import reasons_of
from tests.integrations.mlflow.test_evaluate import store
from tests.integrations.mlflow.test_supported import MODEL, Judge, hosts, judge

__all__ = ["hosts", "judge", "store"]  # the fixtures

ROWS = [
    {"prompt": "Book a desk", "response": "Booked {{ inputs }}", "predicted_trajectory": [{"tool_name": "book"}]},
    {"prompt": "Cancel it", "response": "I cannot", "predicted_trajectory": [{"tool_name": "cancel"}]},
    {"prompt": "Say nothing", "predicted_trajectory": [{"tool_name": "wait"}]},
]

METRIC = PointwiseMetric(
    "quality",
    template='Is {response} right for {prompt}, after {predicted_trajectory}? Braces {"stay": 1}, {{ trace }} too.',
    model=MODEL,
    criteria={"politeness": "The agent is polite."},
    rating_rubric={"1": "right", "0": "wrong"},
)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with without_its_warnings():
        yield


def judged(*metrics: PointwiseMetric, rows: list[dict[str, Any]] = ROWS) -> EvalResult:
    return EvalTask(rows, metrics or (METRIC,)).evaluate(max_workers=1)


def score(result: Any, rationale: str) -> tuple[int, str]:
    return 200, json.dumps({"result": result, "rationale": rationale})


def test_scores_and_explanations(judge: Judge) -> None:
    judge.answer = lambda prompt: score(1.0 if "Book a desk" in prompt else 0.25, "Let's see")
    found = judged()
    assert found.metrics_table.columns[-2:].tolist() == ["quality/score", "quality/explanation"]
    assert found.metrics_table["quality/score"].tolist()[:2] == [1, 0.25]
    assert found.metrics_table["quality/explanation"].tolist() == ["Let's see", "Let's see", None]
    assert found.summary_metrics["quality/mean"] == 0.625
    assert reasons_of(found) == {("quality", "the row lacks response"): 1}


def test_the_scale_of_a_judge_is_that_of_its_ratings_and_its_direction_is_stated(judge: Judge) -> None:
    judge.answer = lambda _: score(1, "Fine")
    rude = PointwiseMetric("rude", template="{response}", model=MODEL, lower_is_better=True, scale=(1, 5))
    tone = PointwiseMetric("tone", template="{response}", model=MODEL, rating_rubric={"good": "", "bad": ""})
    infos = judged(METRIC, rude, tone).infos
    assert infos["quality"] == MetricInfo("quality", "unknown", (0, 1))
    assert infos["rude"] == MetricInfo("rude", "lower", (1, 5))
    assert infos["tone"] == MetricInfo("tone")  # its ratings are no numbers


def test_what_the_judge_is_told(judge: Judge) -> None:
    judge.answer = lambda _: score(1, "Fine")
    judged()
    assert len(judge.requests) == 2  # not about the row without a response
    told = judge.prompts[0]
    assert "Is `response` right for `prompt`, after `predicted_trajectory`?" in told
    for words in ("politeness: The agent is polite.", "1: right", "0: wrong", '{"stay": 1}', "book", "Book a desk"):
        assert words in told
    assert "Booked {{ inputs }}" in told  # what an agent wrote is data


def test_an_answer_that_is_no_number_costs_its_row_only(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    from mlflow.genai.judges.adapters import utils

    monkeypatch.setattr(utils, "_sleep_with_backoff", lambda _: None)
    judge.answer = lambda prompt: (500, "overloaded") if "Cancel" in prompt else score(1, "Fine")
    found = judged()
    assert found.metrics_table["quality/score"].notna().tolist() == [True, False, False]
    problems = [reason for _, reason in reasons_of(found) if reason.startswith("the judge raised an exception: ")]
    assert any("overloaded" in reason for reason in problems)


def test_input_variables_and_criteria_without_a_template(judge: Judge) -> None:
    judge.answer = lambda _: score(1, "Fine")
    metric = PointwiseMetric("polite", criteria={"polite": "Is it?"}, input_variables=("response",), model=MODEL)
    assert judged(metric).tallies["polite"].scored == 2
    assert "Is it?" in judge.prompts[0]


def test_a_column_that_there_is_not(judge: Judge) -> None:
    with pytest.raises(EvalSetError, match="no column 'mood' in the data"):
        judged(PointwiseMetric("m", template="{mood}", model=MODEL))
    assert judge.requests == []


@pytest.mark.parametrize(
    ("options", "message"),
    [({"template": "{response}"}, "name the judge"), ({"model": MODEL, "template": "Hm"}, "give a template with")],
)
def test_a_metric_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(EvalSetError, match=message):
        PointwiseMetric("m", **options)
