"""The same data have the same issues, whoever validates them: each result has the report of `validate_eval_set`.

What differs is declared here. A row that is passed on needs a request and an output, whatever its format requires
(REQUIRED), and is rewritten, without what mlflow would ignore in it (WRITTEN_ANEW). A conversion does not require
outputs. A file of Google Customer Engagement Suite is profiled by its turns.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema import (
    Report,
    convert_eval_set,
    diff_eval_sets,
    eval_set_from_inference_table,
    evaluate_eval_set,
    profile_eval_set,
    validate_eval_set,
)
from agent_eval_schema.formats.mlflow import WRITTEN_ANEW
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.integrations.mlflow.prepare import prepare
from agent_eval_schema.rules import requests
from agent_eval_schema.validation.ces_turns import CES_FORMATS, turns_of
from tests.conftest import ROOT, SAMPLES, as_jsonl, as_parquet
from tests.helpers.mutations import samples

REQUIRED = frozenset({requests.MISSING_REQUEST.code, requests.MISSING_OUTPUT.code})

FILES = sorted(path.name for path in SAMPLES.iterdir() if path.suffix != ".md")

CONTAINERS: dict[str, Callable[[str, Path], Any]] = {
    "file": lambda name, _: str(SAMPLES / name),
    "list": lambda name, _: samples()[f"sample_data/{name}"],
    "jsonl": lambda name, folder: as_jsonl(samples()[f"sample_data/{name}"], folder),
    "parquet": lambda name, folder: as_parquet(samples()[f"sample_data/{name}"], folder),
}


ALWAYS = ("file", "list")


@pytest.fixture(params=[pytest.param(k, marks=() if k in ALWAYS else pytest.mark.containers) for k in CONTAINERS])
def container(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Any]:
    """The rows of a sample in one kind of container."""

    def made(name: str) -> Any:
        if request.param != "file" and f"sample_data/{name}" not in samples():
            pytest.skip("large: it is read as a file")
        return CONTAINERS[request.param](name, tmp_path)

    return made


def issues(report: Report, without: Collection[str] = ()) -> list[tuple[Any, ...]]:
    return [
        (i.row, i.request_id, i.code, i.column, i.path, i.message, i.hint)
        for i in report.iter_issues()
        if i.code not in without
    ]


@pytest.mark.parametrize("name", FILES)
def test_every_result_has_the_report_of_the_validation(name: str, container: Callable[[str], Any]) -> None:
    data = container(name)
    report = validate_eval_set(data)
    expected = issues(report)

    diff = diff_eval_sets(data, data)
    assert issues(diff.old) == issues(diff.new) == expected

    profiled = issues(profile_eval_set(data).report)
    if report.format in CES_FORMATS:
        turns = turns_of(open_source(data), report.format)
        assert profiled == issues(validate_eval_set(turns, format="databricks"))
    else:
        assert profiled == expected
        passed_on = {*REQUIRED, *WRITTEN_ANEW}
        assert issues(prepare(data, keep=True).report, passed_on) == issues(report, passed_on)

    for target in ("databricks", "vertex"):
        converted = convert_eval_set(data, target).report
        undeclared = {*REQUIRED, *WRITTEN_ANEW} if report.format not in CES_FORMATS else set[str]()
        assert issues(converted, undeclared) == issues(report, undeclared), target


def test_the_exceptions_are_few() -> None:
    """Of what is declared above, the samples have these."""
    report = validate_eval_set(SAMPLES / "broken_mlflow.jsonl")
    prepared = prepare(SAMPLES / "broken_mlflow.jsonl").report
    differing = {i[2] for i in {*issues(report)} ^ {*issues(prepared)}}
    assert differing == {"AE223", "AE310"}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # mlflow uses deprecated parts of SQLAlchemy
@pytest.mark.parametrize("name", ["good.jsonl", "otel_traces_broken.jsonl"])
def test_an_evaluation_has_the_report_of_the_validation(name: str, tracking_store: str) -> None:
    from agent_eval_schema.scorers import DocumentRecall

    assert tracking_store
    evaluated = evaluate_eval_set(SAMPLES / name, [DocumentRecall()]).report
    assert issues(evaluated) == issues(validate_eval_set(SAMPLES / name, outputs="provided"))


LOGGED = (
    *("sample_data/inference_table.jsonl", "sample_data/search_traces.jsonl"),
    *(f"tests/data/inference_tables/{n}.json" for n in ("02_gw_chatagent_tool_calls", "03_legacy_chat_trace_v2")),
)


@pytest.mark.parametrize("name", LOGGED)
def test_the_rows_of_a_build_have_the_issues_that_its_report_has(name: str) -> None:
    """The report of a build also has the issues of logging (AE7) and of the traces before they were read (AE606), and
    expects the columns of the log (AE103)."""
    build = eval_set_from_inference_table(ROOT / name)
    of_build = [i[:3] for i in issues(build.report) if i[2] != "AE606" and not i[2].startswith("AE7")]
    of_rows = issues(validate_eval_set(build.rows, outputs="provided"), {"AE103"})
    assert of_build == [i[:3] for i in of_rows]


def test_only_a_checked_run_builds_a_report() -> None:
    """A second place that assembles a validation would give other issues for the same data."""
    for path in sorted((ROOT / "agent_eval_schema").rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} | {
            alias.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for alias in n.names
        }
        if path.name not in ("checked_run.py", "report_builder.py"):
            assert "ReportBuilder" not in names, path
