"""A plugin for pytest: the datasets that `files` of the settings names are tests, one per file and failing rule.

    evals/help_desk.jsonl::AE206 FAILED
    evals/orders.jsonl::valid PASSED

pytest loads it in every project in which the package is installed: without settings it does nothing, and all that is
heavy is imported when a dataset is collected.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from agent_eval_schema.validation.report import Report
    from agent_eval_schema.validation.settings import Found

VALID = "valid"
"""The name of the one test of a dataset that nothing fails."""

_FOUND = pytest.StashKey["tuple[Found, frozenset[str]]"]()


def pytest_configure(config: pytest.Config) -> None:
    """Find the settings of the project, and its datasets."""
    from agent_eval_schema.errors import EvalSetError
    from agent_eval_schema.validation.settings import find_settings

    try:
        settings = find_settings(None, config.rootpath)
        files = frozenset(os.path.abspath(path) for path in settings.files())
    except EvalSetError as error:
        raise pytest.UsageError(str(error)) from None
    config.stash[_FOUND] = settings, files


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    settings, files = parent.config.stash[_FOUND]
    if os.path.abspath(file_path) not in files:
        return None
    collector: EvalSetFile = EvalSetFile.from_parent(parent, path=file_path)
    collector.found = settings
    return collector


class EvalSetFile(pytest.File):
    found: Found

    def collect(self) -> Iterator[pytest.Item]:
        """A test for each rule that fails, or one that passes."""
        from agent_eval_schema.errors import EvalSetError
        from agent_eval_schema.formats.opening import open_source
        from agent_eval_schema.rule import FAILING
        from agent_eval_schema.rules import RULES
        from agent_eval_schema.validation.validate import check_source

        path = os.path.relpath(self.path)
        try:
            report = check_source(open_source(path, **self.found.reading(path)))
        except EvalSetError as error:
            raise self.CollectError(str(error)) from None
        failing = [code for code in report.counts if RULES[code].severity in FAILING[self.found.settings.fail_on]]
        for name in failing or [VALID]:
            item: EvalSetItem = EvalSetItem.from_parent(self, name=name)
            item.report = report
            yield item


class EvalSetItem(pytest.Item):
    """A rule with issues in a dataset, or a dataset without any."""

    report: Report

    def runtest(self) -> None:
        from agent_eval_schema.validation.validate import failures

        if self.name != VALID:
            assert isinstance(self.parent, EvalSetFile)
            raise AssertionError("\n".join(failures(self.report, self.parent.found.settings.fail_on, self.name)))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The issues, without a traceback, which would only show this file."""
        if isinstance(excinfo.value, AssertionError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        return self.path, None, self.name
