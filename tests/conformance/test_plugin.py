"""The plug-in: a test per promise, with the option only."""

from __future__ import annotations

import pytest

from agent_eval_schema.conformance import checks
from agent_eval_schema.conformance.plugin import OPTION


def broken() -> None:
    raise AssertionError("the row is another one")


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project with a test of its own, in which another package keeps one promise of two."""
    monkeypatch.setattr(checks, "checks", lambda: [("a::detection", lambda: None), ("a::round trip", broken)])
    pytester.makepyfile("def test_of_the_project(): pass")
    return pytester


PLUGIN = ("-p", "agent_eval_schema.conformance.plugin", "-p", "no:cacheprovider")


def test_a_promise_is_a_test_that_names_it(project: pytest.Pytester) -> None:
    run = project.inline_run(*PLUGIN, OPTION)
    passed, _, failed = run.listoutcomes()
    assert [report.nodeid for report in passed][1:] == ["::a::detection"]
    assert [report.nodeid for report in failed] == ["::a::round trip"]
    assert failed[0].location[2] == "conformance of a::round trip"
    assert "the row is another one" in failed[0].longreprtext


def test_without_the_option_a_project_has_its_own_tests(project: pytest.Pytester) -> None:
    project.inline_run(*PLUGIN).assertoutcome(passed=1)
