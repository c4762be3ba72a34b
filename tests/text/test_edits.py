"""Where two values differ."""

from __future__ import annotations

from agent_eval_schema.text.edits import EDITS, edits


def test_items_of_long_lists_are_compared_by_place() -> None:
    old, new = ([{"id": i} for i in range(start, start + 600)] for start in (0, 1))
    found, more = edits("facts", old, [*new, {"id": 0}])
    assert [edit.path for edit in found] == [f"facts[{i}].id" for i in range(EDITS)]
    assert [(edit.text("old"), edit.text("new")) for edit in found][:2] == [("0", "1"), ("1", "2")]
    assert more == 601 - EDITS


def test_a_text_with_many_changes_ends_with_a_sign_that_there_are_more() -> None:
    old, new = (" ".join(f"a long common passage {i} {word}" for i in range(60)) for word in ("old", "new"))
    (edit,), more = edits("response", old, new)
    assert (edit.parts[-1].side, edit.parts[-1].text, more) == ("both", "…", 0)
