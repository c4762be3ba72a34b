"""The page of a diff: one story per row, nothing empty, and a large diff that opens at once."""

import re

from agent_eval_schema import diff_eval_sets
from agent_eval_schema.diff.diff_blocks import METRICS_NAMED
from tests.conftest import SAMPLES


def row(number: int, role: str = "user") -> dict[str, object]:
    chat = {"messages": [{"role": role, "content": f"question {number}"}]}
    return {"request_id": f"q{number}", "request": chat, "response": "x"}


def test_a_row_is_one_story_of_its_change_its_issue_and_its_metrics() -> None:
    page = diff_eval_sets([row(0), row(1)], [row(0), row(1, "usr")]).to_html()
    story = page[page.index("Row by row</h2>") :]
    story = story[: story.index("</details>")]
    assert '<span class="tag error">row 1</span> q1' in story
    assert "request.messages[0].role, +AE206, −" in story
    assert "<del>user</del><ins>usr</ins>" in story
    assert "+ AE206 message-role" in story
    assert re.search(r"− .*RelevanceToQuery.*: is invalid now", story)


def test_columns_without_a_cell_are_left_out() -> None:
    rows = [{"request": f"question {i}", "response": "x"} for i in range(3)]
    page = diff_eval_sets(rows, rows[:2]).to_html()
    removed = page[page.index("Removed") : page.index("</table>")]
    assert re.findall(r"<th[^>]*>([^<]*)</th>", removed) == ["Row", "Asks"]


def test_sections_of_many_rows_are_closed_and_the_page_stays_small() -> None:
    size = 5_000
    page = diff_eval_sets([row(i) for i in range(size)], [row(i, "usr") for i in range(size)]).to_html()
    assert f"{size:,} of {size:,} matched rows changed" in page
    assert len(page) < 1 << 20
    sections = re.findall(r'<details class="issue"( open)?>\n<summary>(.*)', page)
    assert [told for is_open, told in sections if is_open and f"{size:,}" in told] == []
    assert len(sections) > 20
    few = diff_eval_sets([row(0)], [row(0, "usr")]).to_html()
    assert re.search(r'<details class="issue" open>\n<summary><span class="tag path">request</span> 1 row', few)


def test_a_story_names_a_few_metrics_and_counts_the_others() -> None:
    page = diff_eval_sets(SAMPLES / "good.jsonl", SAMPLES / "edited_broken.jsonl").to_html()
    (lost,) = re.findall(r"<li class=\"error\">− (.*?): is invalid now</li>", page)
    names, _, more = lost.partition(" and ")
    assert names.count(", ") == METRICS_NAMED - 1
    assert re.fullmatch(r"\d+ more", more)
