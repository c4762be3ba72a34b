"""The comparison with other commits is a part of the page about performance, and of a release."""

from __future__ import annotations

from tests.benchmarks.against import BEGIN, END, PAGE, with_table
from tests.conftest import ROOT


def test_the_table_takes_the_place_of_the_last_one() -> None:
    page = f"# Page\n\n{BEGIN}{END}\nMore.\n"
    rows = [["", "ms", "bb5980e"], ["validate a list", "9.0", "0.90 ×"]]
    once = with_table(page, "Commit x", rows)
    assert "Commit x:\n\n|  | ms | bb5980e |\n|---|---|---|\n| validate a list | 9.0 | 0.90 × |\n" in once
    assert with_table(once, "Commit x", rows) == once
    assert once.endswith("\nMore.\n")


def test_the_page_has_a_place_for_it_and_a_release_runs_it() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.index(BEGIN) < page.index(END)
    assert "python -m tests.benchmarks --against" in (ROOT / ".github/workflows/release.yml").read_text()
