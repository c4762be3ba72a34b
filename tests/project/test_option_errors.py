"""A wrong option is an error of one line: the parameter, what was expected, what was given, the nearest that works."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from agent_eval_schema import (
    CustomMetric,
    EvalResult,
    EvalSetError,
    EvalTask,
    ToolUseMetric,
    ces,
    convert_eval_set,
    diff_eval_sets,
    eval_set_from_inference_table,
    explain,
    json_schema,
    metric_support,
    normalize_eval_set,
    prepare_for_evaluate,
    score_trajectories,
    validate_eval_set,
    write_eval_set,
)
from tests.conftest import Row

ROWS: list[Row] = [{"request": "a", "response": "b"}]


class OfDask:
    """Has the graph by which dask's collections are known; its class has the name of that of pandas there."""

    dask = "its graph"


def first_word(row: Row) -> float:
    return float(row["response"].startswith("b"))


RECALL = "trajectory_recall"


def scored() -> EvalResult:
    return score_trajectories([{"prompt": "a", "predicted_trajectory": [], "reference_trajectory": []}])


OPTIONS: dict[str, tuple[Callable[[], Any], str, str]] = {
    "format": (lambda: validate_eval_set(ROWS, format="databrick"), "format", "did you mean 'databricks'?"),
    "format in capitals": (lambda: validate_eval_set(ROWS, format="MLflow"), "format", "did you mean 'mlflow'?"),
    "format with _": (lambda: validate_eval_set(ROWS, format="ces_csv"), "format", "did you mean 'ces-csv'?"),
    "format of a type": (lambda: validate_eval_set(ROWS, format=pd.DataFrame), "format", "got the class DataFrame"),
    "outputs": (lambda: validate_eval_set(ROWS, outputs="generate"), "outputs", "did you mean 'generated'?"),
    "on_invalid": (lambda: normalize_eval_set(ROWS, on_invalid="dropp"), "on_invalid", "did you mean 'drop'?"),
    "on_invalid of prepare": (lambda: prepare_for_evaluate(ROWS, on_invalid="rais"), "on_invalid", "mean 'raise'?"),
    "evaluator": (lambda: prepare_for_evaluate(ROWS, evaluator="mlflow-genai"), "evaluator", "mean 'mlflow.genai'?"),
    "to": (lambda: convert_eval_set(ROWS, "raga"), "to", "did you mean 'ragas'?"),
    "system": (lambda: metric_support(ROWS, system="databrick"), "system", "did you mean 'databricks'?"),
    "metrics": (lambda: EvalTask(ROWS, ["trajectory_recal"]), "metrics", "did you mean 'trajectory_recall'?"),
    "one metric": (lambda: EvalTask(ROWS, "bleuu"), "metrics", "did you mean 'bleu'?"),
    "a class": (
        lambda: EvalTask(ROWS, [ToolUseMetric]),
        "metrics",
        'got the class ToolUseMetric; use an instance: ToolUseMetric(tool_name="search")',
    ),
    "a class alone": (lambda: EvalTask(ROWS, ToolUseMetric), "metrics", "use an instance"),
    "a function": (
        lambda: EvalTask(ROWS, [first_word]),
        "metrics",
        'got the function first_word; use CustomMetric("first_word", first_word)',
    ),
    "a lambda": (lambda: EvalTask(ROWS, [lambda _: 1.0]), "metrics", 'use CustomMetric("name", function)'),
    "metrics of trajectories": (lambda: score_trajectories(ROWS, [first_word]), "metrics", "the function first_word"),
    "a name of trajectories": (
        lambda: score_trajectories(ROWS, ["trajectory_presicion"]),
        "metrics",
        "did you mean 'trajectory_precision'?",
    ),
    "duplicates": (lambda: score_trajectories(ROWS, duplicates="one-to-one"), "duplicates", "mean 'one_to_one'?"),
    "engine": (lambda: eval_set_from_inference_table(ROWS, engine="sparc"), "engine", "did you mean 'spark'?"),
    "dedupe": (
        lambda: eval_set_from_inference_table(ROWS, dedupe="questions", format="legacy"),
        "dedupe",
        "did you mean 'question'?",
    ),
    "format of a table": (
        lambda: eval_set_from_inference_table(ROWS, format="legcy"),
        "format",
        "did you mean 'legacy'?",
    ),
    "select of a type": (lambda: validate_eval_set(ROWS, select=206), "select", "got 206"),
    "select": (lambda: validate_eval_set(ROWS, select="mesage-role"), "select", "did you mean 'message-role'?"),
    "columns of a type": (lambda: validate_eval_set(ROWS, columns=["request"]), "columns", "got a list"),
    "columns": (lambda: validate_eval_set(ROWS, columns={"request": "requst"}), "columns", "did you mean 'request'?"),
    "columns of the data": (
        lambda: validate_eval_set(ROWS, columns={"requst": "request"}),
        "columns",
        "did you mean 'request'?",
    ),
    "why": (lambda: validate_eval_set(ROWS).why(0, "correctnes"), "metric", "did you mean 'correctness'?"),
    "severity": (lambda: validate_eval_set(ROWS).count("eror"), "severity", "did you mean 'error'?"),
    "schema": (lambda: json_schema("databrick"), "format", "did you mean 'databricks'?"),
    "code": (lambda: explain(206), "code", "got 206"),
    "q": (lambda: scored().quantile(90, RECALL), "q", "got 90"),
    "q of a type": (lambda: scored().quantile("0.9", RECALL), "q", "got '0.9'"),
    "metric of a quantile": (lambda: scored().quantile(0.9, "trajectory_recal"), "metric", f"did you mean '{RECALL}'?"),
    "confidence_level": (lambda: scored().confidence_interval(RECALL, 95), "confidence_level", "got 95"),
    "column": (lambda: scored().groupby("promt"), "column", "did you mean 'prompt'?"),
    "thresholds": (lambda: scored().failing([RECALL]), "thresholds", "got a list"),
    "a threshold": (lambda: scored().failing({RECALL: "high"}), "thresholds", "got a dict"),
    "a threshold of texts": (lambda: scored().failing({RECALL: ("low", "high")}), "thresholds", "got a dict"),
    "a threshold of three": (lambda: scored().failing({RECALL: (0, 0.5, 1)}), "thresholds", "got a dict"),
    "other": (lambda: scored().compare(validate_eval_set(ROWS)), "data", "got the columns request"),
    "a name alone": (lambda: score_trajectories(ROWS, "trajectory_recal"), "metrics", f"did you mean '{RECALL}'?"),
    "data": (lambda: validate_eval_set(42), "data", "got 42"),
    "data of a class": (lambda: validate_eval_set(pd.DataFrame), "data", "got the class DataFrame"),
    "a generator": (lambda: validate_eval_set(row for row in ROWS), "data", "got a generator; use list(data)"),
    "a frame of dask": (lambda: validate_eval_set(OfDask()), "data", "of dask; use data.compute()"),
    "an array": (lambda: validate_eval_set(np.array(["a"])), "data", "got a ndarray"),
    "a series": (lambda: validate_eval_set(pd.Series(["a"])), "data", "got a Series; use data.to_frame('request')"),
    "old": (lambda: diff_eval_sets(None, ROWS), "old", "got None"),
    "path": (lambda: write_eval_set(ROWS, 3), "path", "got 3"),
    "path of rows": (lambda: validate_eval_set(ROWS).write(None), "path", "got None"),
    "path of a report": (lambda: validate_eval_set(ROWS).save(["report.html"]), "path", "got a list"),
    "path of scores": (lambda: scored().write(3), "path", "got 3"),
    "path of a conversion": (lambda: convert_eval_set(ROWS, "ragas").write(3), "path", "got 3"),
    "path of an evaluation": (lambda: ces.write_evaluation({}, 3), "path", "got 3"),
    "path of a golden CSV": (lambda: ces.write_golden_csv([], 3), "path", "got 3"),
    "source of a golden CSV": (lambda: ces.read_golden_csv(42), "source", "got 42"),
    "source of an evaluation": (lambda: ces.read_evaluation(42), "source", "got 42"),
    "csv": (lambda: ces.import_request(42), "csv", "got 42"),
    "show_values": (lambda: validate_eval_set(ROWS, show_values="no"), "show_values", "got 'no'"),
    "show_values of a build": (
        lambda: eval_set_from_inference_table(ROWS, format="legacy", show_values="no"),
        "show_values",
        "got 'no'",
    ),
    "fix": (lambda: normalize_eval_set(ROWS, fix="yes"), "fix", "got 'yes'"),
    "strict": (lambda: ces.read_golden_csv("a\n", strict="yes"), "strict", "got 'yes'"),
    "metric_function": (lambda: CustomMetric("x", 3), "metric_function", "got 3"),
    "name": (lambda: CustomMetric(first_word, first_word), "name", "got the function first_word"),
    "tool_name": (lambda: ToolUseMetric(tool_name=3), "tool_name", "got 3"),
    "name of a metric": (lambda: ToolUseMetric("search", name=3), "name", "got 3"),
    "dataset": (lambda: EvalTask(3.5, ["bleu"]), "dataset", "got 3.5"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_a_wrong_option_is_reported_in_one_line(name: str) -> None:
    call, parameter, end = OPTIONS[name]
    with pytest.raises(EvalSetError) as raised:
        call()
    assert re.match(rf"{parameter}: expected .*; got ", str(raised.value))
    assert end in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("option", [True, False, np.True_, np.False_])
def test_a_flag_may_be_that_of_numpy(option: bool) -> None:
    assert validate_eval_set(ROWS, show_values=option).ok


def test_a_class_in_place_of_data_is_named_without_advice() -> None:
    with pytest.raises(EvalSetError, match=r"got the class DataFrame$"):
        validate_eval_set(pd.DataFrame)
