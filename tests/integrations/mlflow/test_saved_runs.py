"""Scores in runs of the real MLflow, read back and compared with files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from agent_eval_schema import EvalResult, EvalSetError, EvalTask, evaluate_eval_set, load_result
from agent_eval_schema.cli import main
from tests.helpers.mlflow_store import mlflow_store, without_its_warnings

ANSWERS = ["yes", "maybe", "yes", "no", "yes", "no", "yes"]
ROWS = [{"request": f"question {i}", "response": answer} for i, answer in enumerate(ANSWERS)]


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory: pytest.TempPathFactory, no_runs: Path) -> Iterator[Any]:
    with mlflow_store(tmp_path_factory.mktemp("mlflow"), no_runs, "saved runs") as found:
        yield found


def scorer(function: Callable[..., Any]) -> Any:
    with without_its_warnings():
        from mlflow.genai.scorers import scorer

        return scorer(function)


def exact_match(outputs: Any) -> bool:
    return bool(outputs == "yes")


def fragile(outputs: Any) -> float:
    return 1 / (len(outputs) - 5)


@pytest.fixture(scope="module")
def evaluated(mlflow: Any) -> EvalResult:
    with without_its_warnings():
        mlflow.set_experiment("saved runs")
        return evaluate_eval_set(ROWS, [scorer(exact_match), scorer(fragile)])


def loaded(place: str) -> EvalResult:
    with without_its_warnings():
        return load_result(place)


def test_a_run_is_the_result_that_made_it(evaluated: EvalResult) -> None:
    read = loaded(f"runs:/{evaluated.run_id}")
    for name in ("exact_match", "fragile"):
        assert read.scores[name].tolist() == evaluated.scores[name].tolist()
        assert read.reasons[name].tolist() == evaluated.reasons[name].tolist()
    assert (read.run_id, read.row_count, read.scored) == (evaluated.run_id, 7, {"exact_match": 7, "fragile": 6})
    assert read.summary_metrics["exact_match/mean"] == 4 / 7
    assert evaluated.compare(f"runs:/{evaluated.run_id}").rows.empty


def test_a_run_of_mlflow_alone(mlflow: Any) -> None:
    data = pd.DataFrame({"inputs": [{"question": row["request"]} for row in ROWS], "outputs": ANSWERS})
    with without_its_warnings():
        run = mlflow.genai.evaluate(data=data, scorers=[scorer(exact_match)])
    read = loaded(f"runs:/{run.run_id}")
    assert sorted(read.scores["exact_match"].tolist()) == [False] * 3 + [True] * 4
    by_question = EvalTask(
        [{"prompt": row["request"], "response": row["response"], "reference": "yes"} for row in ROWS], ["exact_match"]
    ).evaluate()
    found = by_question.compare(read)
    assert (found.lines[0].rows, found.rows.empty) == (7, True)


def test_a_run_of_today_and_a_file_of_last_week(
    evaluated: EvalResult, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One in MLflow, one by EvalTask, with other rows and in another order."""
    rows = [{"prompt": f"question {i}", "response": "yes", "reference": "yes"} for i in range(8)]
    EvalTask(rows[::-1], ["exact_match"]).evaluate().write(tmp_path / "last.parquet")
    page = tmp_path / "page.html"
    words = ["compare", str(tmp_path / "last.parquet"), f"runs:/{evaluated.run_id}", "--html", str(page)]
    with without_its_warnings():
        assert main([*words, "--fail-on", "any"]) == 1
        said = " ".join(capsys.readouterr().out.split())
        assert main(words) == 0  # McNemar: 3 of 3 lower, p = 0.25
    assert "Rows are matched by question. Metrics only after: fragile. 1 row only before" in said
    assert "3 scores lower, 0 higher" in page.read_text()


def test_a_result_that_was_logged_is_read_from_its_artifact(mlflow: Any) -> None:
    with without_its_warnings():
        mlflow.set_experiment("saved runs")
        result = EvalTask([{"prompt": "a", "response": "4", "reference": "4"}], ["exact_match"]).evaluate()
        run_id = result.log_to_mlflow()
    for place in (f"runs:/{run_id}", f"runs:/{run_id}/eval_result/metrics_table.parquet"):
        read = loaded(place)
        assert read.provenance["data_hash"] == result.provenance["data_hash"]
        assert read.compare(result).rows.empty


def test_runs_without_scores(mlflow: Any) -> None:
    with without_its_warnings():
        mlflow.set_experiment("saved runs")
        with mlflow.start_run() as run:
            pass
    with pytest.raises(EvalSetError, match="the run has no scores"):
        loaded(f"runs:/{run.info.run_id}")
    with pytest.raises(EvalSetError, match=r"runs:/none: .*not found"):
        loaded("runs:/none")
