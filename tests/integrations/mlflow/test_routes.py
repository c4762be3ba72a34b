"""No route changes a p value: the scores of the same rows in memory, in a file, and in a run of MLflow are the same
independent units, whatever made the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema import EvalResult, EvalTask, evaluate_eval_set, load_result, prepare_for_evaluate
from agent_eval_schema.cli import main
from tests.helpers.mlflow_store import mlflow_store, without_its_warnings

Row = dict[str, Any]
ROWS: list[Row] = [
    {
        "request_id": f"r{i}",
        "request": f"question {i}",
        "expected_response": f"answer {i}",
        "session_id": f"session {i // 2}",
    }
    for i in range(12)
]
"""Six sessions of two turns: the test has six units, not twelve."""

BEFORE, AFTER = frozenset(range(12)), frozenset[int]()
"""The rows that an agent answers right, before and after a change."""


def agent_right_on(right: frozenset[int]) -> Callable[[Any], str]:
    def support_agent(prompt: Any) -> str:
        number = int(str(prompt).rpartition(" ")[2])
        return f"answer {number}" if number in right else "?"

    return support_agent


def answered(right: frozenset[int]) -> list[Row]:
    return [{**row, "response": row["expected_response"] if i in right else "?"} for i, row in enumerate(ROWS)]


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory: pytest.TempPathFactory, no_runs: Path) -> Iterator[Any]:
    with mlflow_store(tmp_path_factory.mktemp("mlflow"), no_runs, "routes", MLFLOW_GENAI_EVAL_MAX_WORKERS="2") as found:
        yield found


def scorer() -> Any:
    with without_its_warnings():
        from mlflow.genai.scorers import scorer

        def exact_match(outputs: Any, expectations: Row) -> bool:
            return bool(outputs == expectations["expected_response"])

        return scorer(exact_match)


def by_task(right: frozenset[int]) -> EvalResult:
    return EvalTask(ROWS, ["exact_match"]).evaluate(agent_right_on(right), max_workers=1)


def in_file(right: frozenset[int], folder: Path, kind: str) -> str:
    path = folder / f"{len(right)}.{kind}"
    by_task(right).write(path)
    return str(path)


def app(right: frozenset[int]) -> Callable[..., str]:
    def support_agent(messages: list[Row]) -> str:
        return agent_right_on(right)(messages[-1]["content"])

    return support_agent


def of_mlflow_alone(mlflow: Any, right: frozenset[int], ran: bool) -> str:
    if ran:
        data, agent = prepare_for_evaluate(ROWS, outputs="generated"), app(right)
    else:
        data, agent = prepare_for_evaluate(answered(right)), None
    return f"runs:/{mlflow.genai.evaluate(data=data, scorers=[scorer()], predict_fn=agent).run_id}"


@pytest.fixture(scope="module")
def results(mlflow: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """The results before and after, by the route on which they come; most are read again where they are compared."""
    folder = tmp_path_factory.mktemp("files")
    found: dict[str, list[Any]] = {}
    with without_its_warnings():
        for right in (BEFORE, AFTER):
            evaluated = evaluate_eval_set(answered(right), [scorer()])
            made = {
                "memory": by_task(right),
                "parquet": in_file(right, folder, "parquet"),
                "jsonl": in_file(right, folder, "jsonl"),
                "csv": in_file(right, folder, "csv"),
                "logged": f"runs:/{by_task(right).log_to_mlflow()}",
                "evaluate_eval_set": evaluated,
                "its run": f"runs:/{evaluated.run_id}",
                "its run of an agent": f"runs:/{evaluate_eval_set(ROWS, [scorer()], app(right)).run_id}",
                "mlflow": of_mlflow_alone(mlflow, right, ran=False),
                "mlflow runs an agent": of_mlflow_alone(mlflow, right, ran=True),
            }
            for route, result in made.items():
                found.setdefault(route, []).append(load_result(result) if isinstance(result, str) else result)
    return found


def test_no_route_changes_the_units_or_the_p_value(results: dict[str, list[EvalResult]]) -> None:
    found = {}
    for old, new in product(results, results):
        comparison = results[old][0].compare(results[new][1], metrics=["exact_match"])
        (line,) = comparison.lines
        found[old, new] = (line.rows, line.units, line.p_value, line.difference, comparison.remarks)
    expected = (12, 6, 0.03125, -1.0)  # all 6 sessions lower: 2 of 64 sign patterns
    assert {pair: numbers[:4] for pair, numbers in found.items()} == dict.fromkeys(found, expected)
    assert not [remark for *_, remarks in found.values() for remark in remarks if "independent" in remark]


@pytest.mark.parametrize("route", ["its run", "mlflow", "mlflow runs an agent"])
def test_a_result_on_any_route_has_the_same_interval(route: str, results: dict[str, list[EvalResult]]) -> None:
    low, high = results["memory"][1].confidence_interval("exact_match")
    assert results[route][1].confidence_interval("exact_match") == (low, high)


def test_a_run_that_lost_its_sessions_says_so(
    mlflow: Any, results: dict[str, list[EvalResult]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def unknown(right: frozenset[int]) -> str:
        data = [{"inputs": {"question": r["request"]}, "outputs": r["response"], "expectations":
                 {"expected_response": r["expected_response"]}} for r in answered(right)]  # fmt: skip
        return f"runs:/{mlflow.genai.evaluate(data=data, scorers=[scorer()]).run_id}"

    with without_its_warnings():
        mlflow.set_experiment("routes")
        before, after = unknown(BEFORE), unknown(AFTER)
        assert main(["compare", before, after]) == 1
    printed = " ".join("".join(capsys.readouterr()).split())
    assert "Sessions unknown: each row counts as independent." in printed
    assert "exact_match: the mean changed by −1 (sessions unknown: each row counts as independent)" in printed
    with without_its_warnings():
        lost = load_result(before)
        for known in (results["memory"][1], results["its run"][1]):  # the other one has the sessions
            line = lost.compare(known, metrics=["exact_match"]).lines[0]
            assert (line.units, line.p_value) == (6, 0.03125)
        assert "Sessions unknown: each row counts as independent." in str(lost)
        lost.write(tmp_path / "lost.parquet")
    remarks = load_result(tmp_path / "lost.parquet").compare(load_result(tmp_path / "lost.parquet")).remarks
    assert remarks == ["Sessions unknown: each row counts as independent."]


@pytest.mark.parametrize("route", ["logged", "its run of an agent"])
def test_a_run_has_its_data_its_agent_and_its_parameters(mlflow: Any, route: str) -> None:
    with without_its_warnings():
        mlflow.set_experiment("routes")
        if route == "logged":
            run = mlflow.get_run(by_task(AFTER).log_to_mlflow())
        else:
            run = mlflow.get_run(evaluate_eval_set(ROWS, [scorer()], app(AFTER)).run_id)
        (dataset,) = [one.dataset for one in run.inputs.dataset_inputs]
        read = load_result(f"runs:/{run.info.run_id}")
    assert run.data.params["agent"] == "support_agent"
    assert read.provenance["agent"] == "support_agent"
    assert len(run.data.params["data_hash"]) == 32
    if route == "logged":
        assert (dataset.name, dataset.digest) == ("data", run.data.params["data_hash"])
        assert run.data.params["metrics"] == "exact_match"
        assert read.provenance["data_hash"] == run.data.params["data_hash"]


def test_a_second_result_in_a_run_changes_no_parameter(mlflow: Any) -> None:
    other = EvalTask([{"prompt": "a", "response": "4", "reference": "4"}], ["exact_match"]).evaluate()
    with without_its_warnings():
        mlflow.set_experiment("routes")
        with mlflow.start_run() as run:
            first = by_task(AFTER)
            first.log_to_mlflow()
            other.log_to_mlflow()
        found = mlflow.get_run(run.info.run_id).data
    assert found.params["data_hash"] == first.provenance["data_hash"]
    assert found.tags["data_hash"] == other.provenance["data_hash"]
