"""A report is data: every function that takes data takes a report, and reads its data as the report did."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import agent_eval_schema as package
from agent_eval_schema import EvalSetError, Report, validate_eval_set
from agent_eval_schema.validation import checked_run
from tests.conftest import SAMPLES

OWN = [
    {"q": "What is Delta Lake?", "a": "A table format.", "truth": "A format.", "team": "docs"},
    {"q": "  ", "a": "Hello", "truth": "Hello", "team": "docs"},
    {"q": "Who made it?", "a": "Databricks.", "truth": "Databricks", "team": "web"},
]
NAMES = {"q": "request", "a": "response", "truth": "expected_response"}


def frames(*found: Any) -> str:
    """What a person sees of results, and all cells of tables."""
    return "\n".join(one.to_json() if isinstance(one, pd.DataFrame) else str(one) for one in found)


VERBS: dict[str, Callable[..., str]] = {
    "validate": lambda data, **options: validate_eval_set(data, **options).to_json(),
    "normalize": lambda data, **options: str(package.normalize_eval_set(data, on_invalid="keep", **options)),
    "normalize and fix": lambda data, **o: str(package.normalize_eval_set(data, on_invalid="keep", fix=True, **o)),
    "metric_support": lambda data, **options: frames(package.metric_support(data, **options)),
    "profile": lambda data, **options: package.profile_eval_set(data, **options).to_json(),
    "diff": lambda data, **options: package.diff_eval_sets(data, data, **options).to_json(),
    "prepare": lambda data, **options: frames(
        package.prepare_for_evaluate(data, **options).drop(columns="trace", errors="ignore")
    ),
}


def review_of(data: Any) -> str:
    """What a page gets of the data under review."""
    review = package.review_eval_set(data, reviewer="ana")
    try:
        return frames(review.rows, review.progress)
    finally:
        review.stop()


OF_ALL: dict[str, Callable[..., str]] = {
    "convert": lambda data: frames((made := package.convert_eval_set(data, "mlflow")).data, made.losses.to_dict()),
    "score trajectories": lambda data: package.score_trajectories(data).to_json(),
    "evaluate": lambda data: package.EvalTask(data, ["exact_match"]).evaluate().to_json(),
    "scorers": lambda data: str(package.supported_scorers(data)),
    "from traces": lambda data: str(package.eval_set_from_traces(data)),
    "review": review_of,
}
"""The other verbs, whose options are their own."""


@pytest.mark.parametrize("kind", ["list", "frame", "arrow"])
@pytest.mark.parametrize("verb", VERBS)
def test_a_report_gives_the_result_of_the_data_with_its_options(verb: str, kind: str) -> None:
    data: Any = {"list": lambda: OWN, "frame": lambda: pd.DataFrame(OWN), "arrow": lambda: pa.Table.from_pylist(OWN)}[
        kind
    ]()
    options: dict[str, Any] = {"columns": NAMES, "format": "databricks"}
    report = validate_eval_set(data, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", package.InvalidRowsWarning)
        assert VERBS[verb](report) == VERBS[verb](data, **options)


@pytest.mark.property
@pytest.mark.parametrize("verb", [*VERBS, *OF_ALL])
@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.[jc]s*")), ids=lambda path: path.name)
def test_a_report_on_a_sample_gives_the_result_of_the_file(path: Path, verb: str) -> None:
    def result(data: Any) -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            try:
                return (VERBS | OF_ALL)[verb](data)
            except EvalSetError as error:
                return f"{type(error).__name__}: {error}"

    assert result(validate_eval_set(str(path))) == result(str(path))


def test_conversion_and_writing_take_a_report(tmp_path: Path) -> None:
    report = validate_eval_set(pd.DataFrame(OWN), columns=NAMES)
    ours, theirs = package.convert_eval_set(report, "vertex"), package.convert_eval_set(OWN, "vertex", columns=NAMES)
    assert frames(ours.data) == frames(theirs.data)
    assert ours.losses.to_dict() == theirs.losses.to_dict()
    package.write_eval_set(report, tmp_path / "out.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["request"] for row in rows] == [row["q"] for row in OWN]


def test_what_was_checked_is_not_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    report, runs = validate_eval_set(OWN, columns=NAMES), list[Any]()
    make = checked_run.CheckedRun.__init__

    def noted(self: Any, *given: Any, **options: Any) -> None:
        make(self, *given, **options)
        runs.append(self)

    monkeypatch.setattr(checked_run.CheckedRun, "__init__", noted)
    assert validate_eval_set(report) is report
    package.metric_support(report)
    package.normalize_eval_set(report, on_invalid="keep")
    with pytest.raises(AssertionError):
        package.assert_valid(report)
    assert not runs


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"format": "mlflow"}, "format: the report was made with format='databricks', this call asks for 'mlflow'"),
        ({"outputs": "generated"}, "outputs: the report was made with outputs='auto', this call asks for 'generated'"),
        ({"columns": {"q": "response"}}, "columns: the report was made with columns={'q': 'request'"),
    ],
)
def test_an_option_that_differs_is_an_error_that_names_both(option: dict[str, Any], message: str) -> None:
    report = validate_eval_set(OWN, columns=NAMES, format="databricks")
    for verb in (validate_eval_set, package.normalize_eval_set, package.metric_support, package.profile_eval_set):
        with pytest.raises(EvalSetError, match=message.replace("{", r"\{")):
            verb(report, **option)


def test_the_same_option_again_is_no_contradiction() -> None:
    report = validate_eval_set(OWN, columns="auto", format="databricks")
    assert isinstance(validate_eval_set(report, columns="auto", format="databricks"), Report)


def test_a_file_that_changed_since_is_the_error_of_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"request": "Hi", "response": "Hello"}\n')
    report = validate_eval_set(path)
    path.write_text('{"request": "Hi", "response": "Hello"}\n' * 2)
    with pytest.raises(EvalSetError, match="changed since it was read: validate it again"):
        _ = report.rows
    for verb in VERBS.keys() - {"validate", "metric_support"}:  # which need the counts only
        with pytest.raises(EvalSetError, match="changed since it was read: validate it again"):
            VERBS[verb](report)
