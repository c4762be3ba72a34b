"""The list of long tests names tests that exist."""

from __future__ import annotations

import re

from tests.conftest import LONG, ROOT


def test_the_long_tests_exist() -> None:
    defined = {
        f"{path.relative_to(ROOT).as_posix()}::{name}"
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert LONG - defined == set(), "run `python -m tests.durations` again"
