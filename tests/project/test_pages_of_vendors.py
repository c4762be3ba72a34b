"""The table of CONTRIBUTING: each test that it names for a section of a vendor's page exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_tests_that_show_a_page_exist() -> None:
    _, _, table = (ROOT / "CONTRIBUTING.md").read_text().partition("### Which tests show which page")
    rows = [line for line in table.partition("\n## ")[0].splitlines() if line.startswith("| ")][1:]
    for row in rows:
        path = ""
        tests = re.findall(r"`([\w/.]*)::(\w+)`", row)
        assert tests, row
        for file, name in tests:
            path = file or path
            assert f"def {name}(" in (ROOT / "tests" / path).read_text(), f"{path}::{name}"
