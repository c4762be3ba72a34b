"""The page of a diff: one story per row, nothing empty, and a large diff that opens at once."""

import re

from agent_eval_schema import diff_eval_sets, validate_eval_set
from agent_eval_schema.diff.diff_blocks import EXAMPLES_KEPT, METRICS_NAMED
from tests.conftest import SAMPLES
from tests.render.test_script import embedded


def row(number: int, role: str = "user") -> dict[str, object]:
    chat = {"messages": [{"role": role, "content": f"question {number}"}]}
    return {"request_id": f"q{number}", "request": chat, "response": "x"}


def test_a_row_has_its_change_its_issue_and_its_metrics() -> None:
    (found,) = embedded(diff_eval_sets([row(0), row(1)], [row(0), row(1, "usr")]).to_html())["rows"]
    assert (found["row"], found["id"], found["valid"]) == (1, "q1", False)
    assert found["columns"][0][0].startswith("request.messages[0].role, +AE206, −")
    assert found["columns"][0][1] == "error"
    assert found["edits"] == [["request.messages[0].role", [["old", "user"], ["new", "usr"]]]]
    assert found["turns"][0][1:3] == ["usr", "question 1"]
    assert found["cells"][0][0] == "− metrics"
    assert re.search(r"RelevanceToQuery.*: is invalid now", found["cells"][0][1])


def test_rows_that_came_and_went_open_as_what_they_are_or_were() -> None:
    found = embedded(diff_eval_sets([row(0), row(1)], [row(1), row(2)]).to_html())["rows"]
    assert [(r["row"], r["id"], r["columns"][0][:2]) for r in found] == [
        (0, "q0", ["removed", "error"]),
        (1, "q2", ["added", "good"]),
    ]
    assert [r["turns"][0][2] for r in found] == ["question 0", "question 2"]


def test_an_issue_of_the_dataset_belongs_to_no_row() -> None:
    misspelled = row(2) | {"expected_respones": "x"}
    old, new = [row(0), row(1)], [misspelled]
    for pair, signs in (((old, new), ("removed", "added")), ((new, old), ("removed", "added"))):
        rows = embedded(diff_eval_sets(*pair).to_html())["rows"]
        assert {r["columns"][0][0] for r in rows} == set(signs)


def test_a_row_is_the_same_on_the_page_of_a_diff_and_of_a_report() -> None:
    rows = [row(0) | {"retrieved_context": [{"doc_uri": "a", "content": "b"}], "expected_response": "c"}]
    (of_diff,) = embedded(diff_eval_sets([row(0)], rows).to_html())["rows"]
    (of_report,) = embedded(validate_eval_set(rows).to_html())["rows"]
    for part in ("turns", "answers", "expected", "documents"):
        assert of_diff[part] == of_report[part] != []


def test_columns_without_a_cell_are_left_out() -> None:
    rows = [{"request": f"question {i}", "response": "x"} for i in range(3)]
    page = diff_eval_sets(rows, rows[:2]).to_html()
    removed = page[page.index('<span class="tag error">Removed') :]
    assert re.findall(r"<th[^>]*>([^<]*)</th>", removed[: removed.index("</table>")]) == ["Row", "Asks"]


def test_sections_of_many_rows_are_closed_and_the_page_stays_small() -> None:
    size = 5_000
    page = diff_eval_sets([row(i) for i in range(size)], [row(i, "usr") for i in range(size)]).to_html()
    assert f"{size:,} of {size:,} matched rows changed" in page
    assert len(page) < 1 << 20
    sections = re.findall(r'<details class="issue"( open)?>\n<summary>(.*)', page)
    assert [told for is_open, told in sections if is_open and f"{size:,}" in told] == []
    assert len(embedded(page)["rows"]) == EXAMPLES_KEPT
    few = diff_eval_sets([row(0)], [row(0, "usr")]).to_html()
    assert re.search(r'<details class="issue" open>\n<summary><span class="tag path">request</span> 1 row', few)


def test_a_story_names_a_few_metrics_and_counts_the_others() -> None:
    page = diff_eval_sets(SAMPLES / "good.jsonl", SAMPLES / "edited_broken.jsonl").to_html()
    cells = [cell for r in embedded(page)["rows"] for cell in r.get("cells", ())]
    (lost,) = [text.removesuffix(": is invalid now") for name, text in cells if name == "− metrics"]
    names, _, more = lost.partition(" and ")
    assert names.count(", ") == METRICS_NAMED - 1
    assert re.fullmatch(r"\d+ more", more)
