"""An excerpt shows the very part of the cell that an issue is about."""

import json
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_eval_schema import validate_eval_set
from agent_eval_schema.cells.notes import is_own
from agent_eval_schema.render.report.summary import Excerpt
from agent_eval_schema.text.jsontext import is_structured
from agent_eval_schema.validation import excerpts as module
from agent_eval_schema.validation.excerpts import AFTER, BEFORE, MARKED, _Cell
from agent_eval_schema.validation.report import run_of, summary_of
from tests.conftest import Row


def marked(data: Any, code: str, **options: Any) -> list[Excerpt | None]:
    report = validate_eval_set(data, **options)
    examples = summary_of(report).examples[code]
    excerpts = run_of(report).excerpts(examples)
    return [excerpts.get((i.row, i.column, i.path)) for i in examples]  # type: ignore[arg-type]


CHAT = {"messages": [{"role": "user", "content": "Hi"}, {"role": "usr", "content": "Where?"}]}


def test_the_offending_value_is_marked(every_input: Callable[[list[Row]], Any]) -> None:
    (excerpt,) = marked(every_input([{"request": CHAT, "response": "x"}]), "AE206")
    assert excerpt is not None
    assert excerpt.marked == '"usr"'
    assert excerpt.before.replace(" ", "").endswith('{"role":"user","content":"Hi"},{"role":')
    assert excerpt.after.replace(" ", "") == ',"content":"Where?"}]}'


@pytest.mark.parametrize(
    ("row", "code", "expected"),
    [
        ({"request": "a", "response": "b", "expected_facts": "one"}, "AE303", "one"),
        ({"request": {"mesages": []}, "response": "b"}, "AE205", "[]"),
        ({"request": "a", "retrieved_context": [{"content": "c"}], "response": "b"}, "AE403", '{"content":"c"}'),
        ({"request": "a", "response": "b", "trace": '{"info": {'}, "AE601", "{"),
    ],
)
def test_by_example(row: Row, code: str, expected: str) -> None:
    (excerpt,) = marked([row], code)
    assert excerpt is not None
    assert excerpt.marked == expected


def test_a_line_that_is_no_row_shows_where_it_ends(tmp_path: Any) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"request": "a", "response": "b"}\n{"request": "c", nonsense}\n')
    (excerpt,) = marked(str(path), "AE007")
    assert excerpt == Excerpt('{"request": "c", ', "nonsense", "}")


def test_an_absent_cell_has_no_excerpt() -> None:
    assert marked([{"request": None, "response": "x"}], "AE201") == [None]


def test_a_long_cell_is_cut_on_both_sides() -> None:
    messages = [{"role": "user", "content": "x" * 500}, {"role": "usr", "content": "y" * 500}]
    (excerpt,) = marked([{"request": {"messages": messages}, "response": "r"}], "AE206")
    assert excerpt is not None
    assert excerpt.before.startswith("…")
    assert excerpt.after.endswith("…")
    assert len(excerpt.before) == BEFORE + 1
    assert len(excerpt.after) == AFTER + 1
    (excerpt,) = marked([{"request": "a", "response": "r", "expected_facts": "z" * 5000}], "AE303")
    assert excerpt is not None
    assert len(excerpt.marked) == MARKED + 1


def test_a_cell_too_deep_to_read_is_shown_as_it_begins() -> None:
    (excerpt,) = marked([{"request": "a", "trace": "[" * 100_000 + "]" * 100_000}], "AE004")
    assert excerpt is not None
    assert excerpt.marked.startswith("[[[")


keys = st.text(max_size=5)
trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=20,
)


@given(
    trees.filter(lambda tree: not (isinstance(tree, str) and is_structured(tree))),  # the place is one in that JSON
    st.data(),
    st.sampled_from([None, 2]),
)
def test_a_path_leads_to_its_value(tree: Any, data: st.DataObject, indent: int | None) -> None:
    value, steps = tree, []
    while isinstance(value, dict | list) and value and data.draw(st.booleans()):
        step = data.draw(st.sampled_from(sorted(value) if isinstance(value, dict) else range(len(value))))
        steps.append(step)
        value = value[step]
    text = json.dumps(tree, indent=indent, ensure_ascii=data.draw(st.booleans()))
    assert json.loads(text[slice(*_Cell(text, True, None).place_of(steps))]) == value


def calls_of_a_page(messages: int) -> int:
    """The calls that the page of one cell with this many bad messages takes."""
    report = validate_eval_set([{"request": {"messages": [{"role": "usr"}] * messages}, "response": "x"}])
    counts = Counter[str]()
    sys.setprofile(lambda _frame, event, _argument: counts.update([event]))
    try:
        report.to_html()
    finally:
        sys.setprofile(None)
    return counts["call"] + counts["c_call"]


def test_a_cell_with_many_issues_is_parsed_once() -> None:
    calls_of_a_page(1)  # imports, caches
    few, many = calls_of_a_page(200), calls_of_a_page(800)
    assert many - few < 600 * 1_500


def test_the_columns_of_a_wide_table_are_not_searched_for_each_issue(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = []
    monkeypatch.setattr(module, "is_own", lambda field: looked_at.append(field.name) or is_own(field))
    wide = {f"column {i}": i for i in range(300)}
    rows = [{"request": "", "response": "x", **wide} for _ in range(10)]
    assert [e and e.marked for e in marked(rows, "AE202")]
    assert 0 < len(looked_at) <= 2 * len(rows)
