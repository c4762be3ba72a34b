"""The plugin, in runs of pytest on projects that have settings."""

from __future__ import annotations

import json
from importlib.metadata import entry_points

import pytest

PLUGIN = "agent_eval_schema.integrations.pytest_plugin"
GOOD = {"request": "How many days?", "response": "12 days."}
ROLE = {"request": {"messages": [{"role": "usr", "content": "::error::Hi"}]}, "response": "Hello"}
BLANK = {"request": " ", "response": "Hello"}


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    (pytester.path / "evals").mkdir()
    for name, rows in {"good": [GOOD], "bad": [GOOD, ROLE, BLANK, ROLE], "other": [BLANK]}.items():
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (pytester.path / "evals" / f"{name}.jsonl").write_text(text)
    pytester.makepyprojecttoml('[tool.agent-eval-schema]\nfiles = ["evals/[bg]*.jsonl"]\n')
    return pytester


def run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    # `-rN`: in CI, pytest's summary repeats each failure whole.
    return project.runpytest("-p", PLUGIN, "-p", "no:cacheprovider", "-p", "no:xdist", "-rN", *arguments)


def test_the_package_registers_the_plugin() -> None:
    (found,) = (e for e in entry_points(group="pytest11") if e.value == PLUGIN)
    assert found.name == PLUGIN  # as `-p` names it, so that it is not registered twice


def test_each_file_and_each_failing_rule_is_a_test(project: pytest.Pytester) -> None:
    found = run(project, "-v")
    found.assert_outcomes(passed=1, failed=2)
    lines = [line.split(" [")[0].rstrip() for line in found.outlines if ".jsonl::" in line and "%" in line]
    assert lines == [
        "evals/bad.jsonl::AE202 FAILED",
        "evals/bad.jsonl::AE206 FAILED",
        "evals/good.jsonl::valid PASSED",
    ]


def test_a_failure_shows_the_issues_of_its_rule_and_no_traceback(project: pytest.Pytester) -> None:
    found = run(project, "evals/bad.jsonl")
    shown = [line for line in found.outlines if "AE206 message-role" in line or "AE202 blank" in line]
    places = [line.partition(": error ")[0] for line in shown]
    assert places == ["evals/bad.jsonl:3", "evals/bad.jsonl:2", "evals/bad.jsonl:4"]
    assert "<Report: 1 of 4 rows valid, 3 errors, 0 warnings>" in found.outlines
    assert not [line for line in found.outlines if "pytest_plugin.py" in line]
    assert not [line for line in found.outlines if line.startswith("::error")]


def test_the_summary_has_the_place_and_the_message_of_each_failure(project: pytest.Pytester) -> None:
    found = run(project, "-rf", "evals/bad.jsonl")
    lines = [line for line in found.outlines if line.startswith("FAILED")]
    assert [line.partition(" - ")[2].partition(": error ")[0] for line in lines] == [
        "evals/bad.jsonl:3",
        "evals/bad.jsonl:2",
    ]
    assert len(set(lines)) == 2


def test_the_settings_decide(project: pytest.Pytester) -> None:
    project.makepyprojecttoml(
        '[tool.agent-eval-schema]\nfiles = ["evals/*"]\nignore = ["AE206"]\n'
        'per-file-ignores = {"other.jsonl" = ["AE202"]}'
    )
    run(project).assert_outcomes(passed=2, failed=1)


def test_a_cell_is_as_large_as_the_settings_allow(project: pytest.Pytester) -> None:
    project.makepyprojecttoml('[tool.agent-eval-schema]\nfiles = ["evals/good.jsonl"]\nmax-cell-bytes = 5')
    found = run(project)
    found.assert_outcomes(failed=1)
    assert any("AE011" in line for line in found.outlines)


def test_a_file_that_cannot_be_read_is_an_error_of_its_own(project: pytest.Pytester) -> None:
    (project.path / "evals" / "broken.jsonl").write_bytes(b"PAR1")
    (project.path / "evals" / "b.parquet").write_bytes(b"nothing")
    project.makepyprojecttoml('[tool.agent-eval-schema]\nfiles = ["evals/good.jsonl", "evals/b.parquet"]')
    found = run(project, "--continue-on-collection-errors")
    found.assert_outcomes(passed=1, errors=1)
    assert [line for line in found.outlines if line.startswith("evals/b.parquet: ")]


def test_without_settings_nothing_is_collected(project: pytest.Pytester) -> None:
    project.makepyprojecttoml("[tool.other]\n")
    found = run(project, "evals")
    assert found.ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_wrong_settings_end_the_run(project: pytest.Pytester) -> None:
    project.makepyprojecttoml("[tool.agent-eval-schema]\nfail = 1\n")
    found = run(project)
    assert found.ret == pytest.ExitCode.USAGE_ERROR
    assert "unknown setting" in "\n".join(found.errlines)
