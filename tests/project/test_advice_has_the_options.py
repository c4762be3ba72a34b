"""The advice of a run repeats the options by which its data are read: no verb plans with others than its source has."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import agent_eval_schema as package
from agent_eval_schema import EvalSetError
from agent_eval_schema.cli import main
from agent_eval_schema.validation import checked_run

OPTIONS: dict[str, Any] = {"format": "ragas", "outputs": "provided"}
ROWS = '{"user_input": "How long?", "response": "30", "request": "How?"}\n{"user_input": " ", "response": "x"}\n'
VERBS: dict[str, Callable[..., Any]] = {
    "validate_eval_set": package.validate_eval_set,
    "normalize_eval_set": package.normalize_eval_set,
    "assert_valid": package.assert_valid,
    "metric_support": package.metric_support,
    "profile_eval_set": package.profile_eval_set,
    "diff_eval_sets": lambda path, **options: package.diff_eval_sets(path, path, **options),
    "review_eval_set": lambda path, **options: package.review_eval_set(path, **options).stop(),
    "prepare_for_evaluate": lambda path, **options: package.prepare_for_evaluate(path, on_invalid="raise", **options),
    "convert_eval_set": lambda path, **options: package.convert_eval_set(path, "databricks", **options),
}
WITH_MLFLOW: dict[str, Callable[..., Any]] = {
    "evaluate_eval_set": lambda path, **options: package.evaluate_eval_set(path, scorers=[], **options),
    "to_mlflow_dataset": lambda path, **options: package.to_mlflow_dataset(path, "name", **options),
}
UNCHECKED = {
    "EvalTask": "scores rows, and validates none",
    "score_trajectories": "scores rows, and validates none",
    "load_result": "reads scores",
    "eval_set_from_traces": "has no option of this test",
    "import_eval_set": "has no option of this test",
    "EvalSetImport": "is a result",
    "eval_set_from_inference_table": "reads logged calls, whose formats are others",
    "supported_scorers": "has no option of this test",
    "spark_validate": "reads a Spark DataFrame, as validate_eval_set does",
    "BuildSummary": "is a result",
    "Source": "is an input",
    "json_schema": "reads no data",
}


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Each run that is made while a test runs."""
    found, make = list[Any](), checked_run.CheckedRun.__init__

    def noted(self: Any, *given: Any, **options: Any) -> None:
        make(self, *given, **options)
        found.append(self)

    monkeypatch.setattr(checked_run.CheckedRun, "__init__", noted)
    return found


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text(ROWS)
    return "rows.jsonl"


def test_every_function_on_rows_is_in_this_test() -> None:
    functions = {name: getattr(package, name) for name in package.__all__ if callable(getattr(package, name))}
    reading = {"format", "outputs", "columns", "select"}
    found = {name for name, one in functions.items() if reading & parameters(one)}
    assert found == {*VERBS, *WITH_MLFLOW, *UNCHECKED}


def parameters(one: Any) -> set[str]:
    try:
        return set(inspect.signature(one).parameters)
    except ValueError:
        return set()


@pytest.mark.parametrize("verb", WITH_MLFLOW)
@pytest.mark.usefixtures("tracking_store")
def test_every_run_with_mlflow_has_the_options_of_the_call(verb: str, path: str, runs: list[Any]) -> None:
    require_options(verb, path, runs)


@pytest.mark.parametrize("verb", VERBS)
def test_every_run_of_a_function_has_the_options_of_the_call(verb: str, path: str, runs: list[Any]) -> None:
    require_options(verb, path, runs)


def require_options(verb: str, path: str, runs: list[Any]) -> None:
    options = {k: v for k, v in OPTIONS.items() if k in parameters(getattr(package, verb))}
    with suppress(EvalSetError, AssertionError):
        {**VERBS, **WITH_MLFLOW}[verb](path, **options)
    assert runs
    for run in runs:
        if run.source.name is not None:  # data that a verb makes is in no advice
            assert {name: run.call.options.get(name) for name in options} == options


COMMANDS = {
    "validate rows.jsonl": ("format", "outputs", "select", "ignore", "max_cell_bytes"),
    "metrics rows.jsonl": ("format", "outputs", "select", "ignore"),
    "profile rows.jsonl": ("format", "outputs"),
    "diff rows.jsonl rows.jsonl": ("format", "outputs"),
    "convert rows.jsonl out.jsonl": ("format",),
    "review rows.jsonl --bundle out.html": ("format", "outputs"),
    "from-traces rows.jsonl out.jsonl": ("select", "ignore"),
}
TYPED: dict[str, Any] = {**OPTIONS, "select": ("AE2", "AE3"), "ignore": ("AE223",), "max_cell_bytes": 1_000_000}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_run_of_a_command_has_the_options_that_were_typed(command: str, path: str, runs: list[Any]) -> None:
    del path
    typed = {name: TYPED[name] for name in COMMANDS[command]}
    words = command.split()
    for name, value in typed.items():
        words += [f"--{name.replace('_', '-')}", ",".join(value) if isinstance(value, tuple) else str(value)]
    with suppress(SystemExit):
        main(words)
    assert runs
    for run in runs:
        if run.source.name is not None:
            assert {name: run.call.options.get(name) for name in typed} == typed
