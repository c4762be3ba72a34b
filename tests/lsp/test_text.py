"""The text of an open file, as an editor changes it and counts it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_eval_schema.lsp.text import Place, Text, split, width

TEXTS = st.text(st.sampled_from("aé😀\r\n\u2028\x0c"), max_size=14)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("a\nb", ["a\n", "b"]),
        ("a\r\nb\rc\n", ["a\r\n", "b\r", "c\n", ""]),
        ("a\u2028b\x0cc\x85d", ["a\u2028b\x0cc\x85d"]),  # which end no line for an editor
    ],
)
def test_the_lines_of_an_editor(text: str, lines: list[str]) -> None:
    assert split(text) == lines


@pytest.mark.parametrize(("units", "column"), [("utf-8", 6), ("utf-16", 4), ("utf-32", 3)])
def test_columns_are_counted_in_the_units_of_the_editor(units: str, column: int) -> None:
    text = Text.of("x\na😀b é", units)
    assert text.place(5) == Place(1, column)
    assert text.offset(Place(1, column)) == 5
    assert width("a😀b", units) == column


def test_a_column_in_a_character_is_before_it_and_one_behind_the_line_at_its_end() -> None:
    text = Text.of("a😀b\r\nc")
    assert text.offset(Place(0, 2)) == 1
    assert text.offset(Place(0, 99)) == 3
    assert text.offset(Place(9, 0)) == 6


@given(TEXTS, TEXTS, st.data())
def test_a_change_gives_the_text_that_the_editor_has(before: str, new: str, data: st.DataObject) -> None:
    text = Text.of(before)
    ends = st.integers(0, len(before)).map(text.place)
    start, end = sorted((data.draw(ends), data.draw(ends)))
    changed, head, tail = text.edited(start, end, new)
    assert changed.whole == before[: text.offset(start)] + new + before[text.offset(end) :]
    assert changed.lines == split(changed.whole)
    assert changed.lines[:head] == text.lines[:head]
    assert changed.lines[len(changed.lines) - tail :] == text.lines[len(text.lines) - tail :]
