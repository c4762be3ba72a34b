"""A plugin for pytest: `--agent-eval-schema-conformance` tests what other packages declare.

    giskard::detection PASSED
    giskard::round trip FAILED

pytest loads it in every project in which the package is installed: what is heavy is imported with the option only.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

OPTION = "--agent-eval-schema-conformance"


def pytest_addoption(parser: pytest.Parser) -> None:
    help = "test the formats, rules and metrics that other packages declare for agent-eval-schema"
    parser.getgroup("agent-eval-schema").addoption(OPTION, action="store_true", help=help)


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add a test per promise of each format, rule and metric."""
    if config.getoption(OPTION):
        from agent_eval_schema.conformance.checks import checks

        items += [Promise.of(session, name, check) for name, check in checks()]


class Promise(pytest.Item):
    """A promise that a format, rule or metric keeps, or not."""

    check: Callable[[], None]

    @classmethod
    def of(cls, session: pytest.Session, name: str, check: Callable[[], None]) -> Promise:
        item: Promise = cls.from_parent(session, name=name)
        item.check = check
        return item

    def runtest(self) -> None:
        self.check()

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        return self.path, None, f"conformance of {self.name}"
