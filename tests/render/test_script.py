"""The script of the pages, in Chromium from `file://`: search, filters, sort, metric → rows, row → cells and trace;
the rows of a result; and what it never does: run what is in a cell, or load anything."""

import csv
import io
import json
import math
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from agent_eval_schema import CustomMetric, EvalTask, validate_eval_set
from agent_eval_schema.render.page import LONGEST_LINK, _csv_cell, csv_link
from agent_eval_schema.validation.row_content import CELL
from agent_eval_schema.validation.shown import BUDGET, ROWS, ROWS_IN_CSV
from tests.conftest import SAMPLES
from tests.evaluation.test_task import PROMPTS, agent
from tests.render.report.test_html import HOSTILE, hostile_rows
from tests.render.test_page import SCRIPT, Visit, saved


def embedded(page: str) -> dict[str, Any]:
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, flags=re.DOTALL)
    found: dict[str, Any] = json.loads(text)
    return found


def test_the_script_is_small() -> None:
    assert len(SCRIPT.encode()) <= 18_432
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval|fetch|import\b", SCRIPT)


def test_invalid_rows_come_first_and_no_more_than_a_page_can_hold() -> None:
    size = ROWS + 300
    rows = [{"request": " " if i % 3 == 0 else "x"} for i in range(size)]
    page = validate_eval_set(rows, outputs="generated").to_html()
    found = embedded(page)
    assert found["total"] == size
    invalid = list(range(0, size, 3))
    assert [r["row"] for r in found["rows"]][: len(invalid)] == invalid
    assert len(found["rows"]) == ROWS
    for r in found["rows"][: len(invalid)]:
        assert (r["codes"], r["valid"], found["sets"][r["metrics"]]) == (["AE202"], False, [])
    assert f"{ROWS:,} of {size:,} rows are in this page, invalid ones first." in page


def test_large_cells_are_cut_and_the_page_stays_small() -> None:
    rows = [{"request": "x" * 10_000, "response": f"{i}"} for i in range(1_000)]
    page = validate_eval_set(rows).to_html()
    found = embedded(page)
    assert len(page) < BUDGET + (1 << 19)
    assert 0 < BUDGET - len(found["rows"]) * CELL < BUDGET // 10
    for row in (found["rows"][0], found["rows"][-1]):
        assert row["turns"][0] == ["request", "user", "x" * CELL + f"… ({10_000 - CELL:,} more characters)", []]


def test_without_values_there_are_rows_without_cells() -> None:
    rows = [{"request_id": "secret-1", "request": "secret-2", "response": "secret-3", "trace": "secret-4"}] * 2
    page = validate_eval_set(rows, show_values=False).to_html()
    assert "secret" not in page
    assert [
        {"id", "turns", "cells", "spans", "edits"} & {k for k, v in r.items() if v} for r in embedded(page)["rows"]
    ] == [set()] * 2


def test_nothing_in_the_data_can_end_the_script_element() -> None:
    text = "</script><script>window.pwned=1</script><!--<script> \u2028 ]]> &lt; ' \u202e"
    page = validate_eval_set([{"request": text, "response": "x"}]).to_html()
    assert page.count("<script") == page.count("</script") == 2
    assert embedded(page)["rows"][0]["turns"][0][2] == text


def csv_of(page: str, code: str) -> list[dict[str, str]]:
    (address,) = re.findall(rf'href="data:text/csv;charset=utf-8,([^"]*)" download="{code}.csv"', page)
    return list(csv.DictReader(io.StringIO(unquote(address))))


def test_a_csv_has_no_formula_and_nothing_for_null() -> None:
    assert unquote(csv_link([["=1+1", None, 5, "a"]])[0]) == "data:text/csv;charset=utf-8,'=1+1,,5,a\n"


def test_the_issues_of_a_code_are_a_csv() -> None:
    report = validate_eval_set(SAMPLES / "broken.jsonl")
    found = csv_of(report.to_html(), "AE404")
    assert [(issue["row"], issue["line"]) for issue in found] == [("20", "21"), ("22", "23")]
    issues = report.issues[report.issues["code"] == "AE404"]
    columns = ["column", "path", "message"]
    assert [[issue[name] for name in columns] for issue in found] == issues[columns].to_numpy().tolist()
    (role,) = csv_of(report.to_html(), "AE206")
    assert (role["path"], role["value"]) == ("request.messages[0].role", '"usr"')


def test_every_issue_of_the_embedded_rows_is_in_a_csv() -> None:
    report = validate_eval_set(SAMPLES / "broken.jsonl")
    page = report.to_html()
    for code, issues in report.issues.dropna(subset="row").groupby("code"):
        if f'download="{code}.csv"' in page:
            assert sorted(int(i["row"]) for i in csv_of(page, str(code))) == sorted(issues["row"])
    rows = [{"request_id": "x", "request": "a", "response": "b"}] * (ROWS_IN_CSV + 10)
    page = validate_eval_set(rows).to_html()  # a rule that compares rows
    assert [int(i["row"]) for i in csv_of(page, "AE901")] == list(range(1, ROWS_IN_CSV + 1))
    assert f"({ROWS_IN_CSV} of {ROWS_IN_CSV + 9})" in page


def test_no_cell_of_a_csv_is_a_formula() -> None:
    for text in ("=1+1", "+1", "-1", "@x", "=cmd|' /C calc'!A0", "\t=1", "\r=1"):
        rows = [{"request": {"messages": [{"role": text, "content": "a"}]}, "response": "b", text: 1}]
        page = validate_eval_set(rows).to_html()
        cells = [cell for code in ("AE206",) for issue in csv_of(page, code) for cell in issue.values()]
        assert not [cell for cell in cells if re.match(r"\s*[=+@-]", cell)]
    assert _csv_cell("-1") == "'-1"
    assert _csv_cell(-1) == -1


def test_a_csv_without_values_has_none_and_a_long_one_is_cut() -> None:
    rows = [{"request_id": "secret-1", "request": {"messages": [{"role": "secret-2", "content": "a"}]}}]
    (issue,) = csv_of(validate_eval_set(rows, show_values=False).to_html(), "AE206")
    assert set(issue) == {"row", "line", "column", "path", "message"}
    assert "secret" not in str(issue)
    link, lines = csv_link([("x" * 1_000, i) for i in range(100)])
    assert (lines, len(link) <= LONGEST_LINK + 30) == (59, True)


@pytest.mark.browser
class TestInBrowser:
    @pytest.fixture
    def broken(self, browser: Any, tmp_path: Path) -> Any:
        visit = Visit(browser, saved(tmp_path, validate_eval_set(SAMPLES / "broken.jsonl").to_html()))
        assert visit.trouble == []
        return visit.page

    def codes(self, page: Any) -> list[str]:
        return [str(e.get_attribute("id")) for e in page.locator(".issues > details:visible").all()]

    def rows(self, page: Any) -> list[int]:
        return [int(e.inner_text()) for e in page.locator("#rowlist tbody th").all()]

    def test_it_filters_searches_and_sorts(self, broken: Any) -> None:
        everything = self.codes(broken)
        for chip in broken.locator("[data-filter]").all():  # its number is that of the codes that it leaves
            chip.click()
            assert chip.inner_text().split()[-1] == str(len(self.codes(broken)))
        broken.click("[data-filter=fixable]")
        assert set(self.codes(broken)) == {"AE102", "AE204", "AE205", "AE206", "AE303", "AE304"} | {
            *("AE401", "AE404", "AE406")
        }
        broken.click("[data-filter=warning]")
        assert "AE102" in self.codes(broken)
        assert "AE206" not in self.codes(broken)
        broken.click("[data-filter='']")
        broken.fill("#search", "HR-006")
        assert self.codes(broken) == ["AE206"]
        assert broken.inner_text("#found") == f"1 of {len(everything)} codes; rows below: 1"
        assert (broken.input_value("#rowsearch"), self.rows(broken)) == ("HR-006", [5])
        broken.fill("#rowsearch", "in no cell")
        assert broken.inner_text("#found").startswith(f"0 of {len(everything)} codes, all of whose text was searched")
        assert broken.inner_text("#rowcount").startswith("No row has “in no cell”. Searched: the numbers, IDs, codes")
        assert "all texts of 37 rows" in broken.inner_text("#rowcount")
        broken.fill("#search", "")
        broken.select_option("#sort", "code")
        assert self.codes(broken) == sorted(everything)
        broken.select_option("#sort", "rows")
        assert self.codes(broken)[0] == "AE102"
        broken.select_option("#sort", "")
        assert self.codes(broken) == everything

    def test_a_metric_leads_to_its_rows_and_a_row_to_its_cells(self, broken: Any) -> None:
        report = validate_eval_set(SAMPLES / "broken.jsonl")
        name = "response/llm_judged/groundedness/rating"
        broken.locator("[data-metric] button", has_text=name).click()
        supported = report.metric_support[name].to_numpy().nonzero()[0].tolist()
        assert self.rows(broken) == supported
        assert broken.inner_text("#rowcount") == f"{len(supported)} of 37 rows that support {name}"
        broken.click("#AE206 td a")
        broken.wait_for_selector("#row dd")
        assert "Which form do I need" in broken.inner_text("#row")
        assert broken.inner_text("#rowcount") == "37 of 37 rows"
        assert broken.locator("#all").is_hidden()

    def test_a_row_shows_turns_its_issues_at_their_place_and_its_fix(self, broken: Any) -> None:
        broken.locator("#rowlist a", has_text="5").first.click()
        broken.wait_for_selector("#row .turn")
        turn, expected, answer = broken.locator("#row .turn").all()
        assert turn.inner_text().startswith(
            "usr\n\nWhich form do I need for parental leave?\n\nAE206 request.messages[0].role"
        )
        assert "AE206" not in answer.inner_text()
        assert answer.inner_text().startswith("response\n\nThe leave form")
        assert expected.inner_text().startswith("expected_response\n\nThe form for leave")
        assert expected.locator("mark").all_inner_texts() == ["for"]
        assert [broken.inner_text(f"#row {tag}") for tag in ("del", "ins")] == ['"usr"', '"user"']
        broken.evaluate("location.hash = 'row-20'")
        broken.wait_for_selector("#row dd .found")  # below its cell
        assert "AE404 expected_retrieved_context[0].doc_uri" in broken.inner_text("#row dd .found >> nth=0")

    def test_the_address_leads_to_a_row_and_back_from_it(self, broken: Any) -> None:
        home = broken.url
        broken.locator("#rowlist a", has_text="5").first.click()
        assert broken.url == home + "#row-5"
        for key, row in (("j", 6), ("j", 8), ("k", 6)):
            broken.keyboard.press(key)
            broken.wait_for_selector(f"#row b:text-is('Row {row}')")
            assert broken.url == f"{home}#row-{row}"
        assert broken.inner_text("#rowlist tr.open th") == "6"
        rows = self.rows(broken)
        broken.evaluate("for (const key of 'jj') dispatchEvent(new KeyboardEvent('keydown', {key}))")  # at once
        assert broken.url == f"{home}#row-{rows[rows.index(6) + 2]}"
        broken.go_back()
        broken.wait_for_selector("#row", state="hidden")
        assert broken.url == home
        broken.fill("#rowsearch", "jk")  # are letters there
        assert broken.locator("#row").is_hidden()
        broken.fill("#rowsearch", "")
        broken.goto(home + "#row-20")
        broken.wait_for_selector("#row b:text-is('Row 20')")

    def test_columns_are_chosen(self, broken: Any) -> None:
        heads = broken.locator("#rowlist thead th")
        assert heads.all_inner_texts() == ["Row", "Status", "Question"]
        broken.get_by_label("expected_response", exact=True).check()
        broken.get_by_label("response", exact=True).check()
        assert heads.all_inner_texts() == ["Row", "Status", "Question", "expected_response", "response"]
        cells = broken.locator("#rowlist tr:has(a[href='#row-5']) td").all_inner_texts()
        assert cells[1:] == [
            *(
                "Which form do I need for parental leave?",
                "The form for leave.",
                "The leave form of the HR service desk.",
            )
        ]
        broken.get_by_label("expected_response", exact=True).uncheck()
        assert heads.count() == 4

    def test_ten_thousand_rows_are_drawn_as_they_are_scrolled_to(self, browser: Any, tmp_path: Path) -> None:
        data = [{"request": f"question {i}"} for i in range(ROWS + 500)]
        visit = Visit(browser, saved(tmp_path, validate_eval_set(data, outputs="generated").to_html()))
        page = visit.page
        assert page.inner_text("#rowcount") == "10,000 of 10,000 rows in this page"
        assert "10,000 of 10,500 rows are in this page, invalid ones first." in page.inner_text("body")
        assert len(self.rows(page)) <= 80
        page.evaluate("document.querySelector('#rowlist').scrollTop = 1e9")
        page.wait_for_selector("#rowlist a[href='#row-9999']")
        assert len(self.rows(page)) <= 80
        page.fill("#rowsearch", "question 7777")
        assert self.rows(page) == [7777]
        page.locator("[data-metric]:visible button").first.click()
        supported = page.inner_text("#rowcount")
        assert re.fullmatch(r"[\d,]+ of 10,000 rows in this page that support \S+, of [\d,]+ in the dataset", supported)
        page.evaluate("location.hash = 'row-6000'")
        page.wait_for_selector("#rowlist tr.open")
        assert page.inner_text("#rowlist tr.open th") == "6000"
        assert visit.trouble == []

    def test_rows_of_a_result_are_sorted_searched_and_opened(self, browser: Any, tmp_path: Path) -> None:
        rows: list[dict[str, Any]] = [{"prompt": f"prompt {i}", "score": s} for i, s in enumerate([1, 0.25, None, 0.5])]
        metrics = [CustomMetric("the_score", lambda row: math.nan if row["score"] is None else row["score"])]
        visit = Visit(browser, saved(tmp_path, EvalTask(rows, metrics).evaluate().to_html()))
        page = visit.page

        def shown() -> list[str]:
            return [e.inner_text() for e in page.locator("#rowlist tbody th").all()]

        assert shown() == ["1", "3", "2", "0"]
        assert page.inner_text("#row b:has-text('Row')") == "Row 1"  # the worst one is open
        for heading, order, rows_shown in (
            ("Row", "ascending", ["0", "1", "2", "3"]),
            ("Row", "descending", ["3", "2", "1", "0"]),
            ("the_score", "ascending", ["2", "1", "3", "0"]),
            ("the_score", "descending", ["0", "3", "1", "2"]),
        ):
            page.get_by_role("button", name=heading, exact=True).click()
            assert shown() == rows_shown
            assert page.locator("[aria-sort]").count() == 1
            assert page.locator(f"[aria-sort={order}]").inner_text() == heading
        page.fill("#rowsearch", "prompt 3")
        assert shown() == ["3"]
        assert page.inner_text("#rowcount") == "1 of 4 rows"
        assert (visit.trouble, visit.at_home) == ([], True)

    def test_scores_that_differ_are_sorted_and_searched_alike(self, browser: Any, tmp_path: Path) -> None:
        size = CustomMetric("size", lambda row: len(row["response"]), lower_is_better=False)
        sides = [[{"response": text} for text in texts] for texts in (["xx", "x", "y"], ["y", "x", "yyyy"])]
        old, new = (EvalTask(rows, [size]).evaluate() for rows in sides)
        visit = Visit(browser, saved(tmp_path, old.compare(new).to_html()))
        page = visit.page

        def shown() -> list[str]:
            return [e.inner_text() for e in page.locator("#rowlist tbody th").all()]

        assert shown() == ["0", "2"]  # regressions first
        page.get_by_role("button", name="difference").click()
        page.get_by_role("button", name="difference").click()
        assert shown() == ["2", "0"]
        page.get_by_role("button", name="Row", exact=True).click()
        assert shown() == ["0", "2"]
        page.fill("#rowsearch", "+3")
        assert shown() == ["2"]
        assert page.inner_text("#rowcount") == "1 of 2 scores"
        page.click("#rowlist a")
        assert page.locator("#row .side .turn.answer").all_inner_texts() == [
            "response, before\n\ny",
            "response, after\n\nyyyy",
        ]
        assert page.locator("#row mark").all_inner_texts() == ["y", "yyyy"]
        assert page.locator("#means button").count() == 0
        assert (visit.trouble, visit.at_home) == ([], True)

    def test_rows_of_a_result_can_be_read_without_script(self, browser: Any, tmp_path: Path) -> None:
        path = saved(tmp_path, EvalTask(PROMPTS, ["trajectory_recall"]).evaluate(agent).to_html())
        page = browser.new_context(java_script_enabled=False).new_page()
        page.goto(path.as_uri())
        assert page.locator("button:visible, input:visible, select:visible").count() == 0
        page.click(".rows details:not([open]) summary >> nth=0")
        assert page.locator(".rows details[open] dl:visible").count() == 2

    def test_keys_step_through_the_rows_of_a_result(self, browser: Any, tmp_path: Path) -> None:
        page = Visit(browser, saved(tmp_path, EvalTask(PROMPTS, ["trajectory_recall"]).evaluate(agent).to_html())).page
        rows = [e.inner_text() for e in page.locator("#rowlist tbody th").all()]
        assert page.inner_text("#row b:has-text('Row')") == f"Row {rows[0]}"  # open, without an address
        for key, at in (("j", 1), ("j", 2), ("j", 2), ("k", 1)):
            page.keyboard.press(key)
            page.wait_for_selector(f"#row b:text-is('Row {rows[at]}')")
            assert page.evaluate("location.hash") == f"#row-{rows[at]}"
            assert page.evaluate("document.activeElement.id") == "row"
        page.go_back()
        page.wait_for_selector(f"#row b:text-is('Row {rows[0]}')")

    def test_only_the_headings_of_the_rows_sort(self, browser: Any, tmp_path: Path) -> None:
        found = EvalTask(PROMPTS, ["trajectory_recall"]).evaluate(agent)
        page = Visit(browser, saved(tmp_path, found.to_html())).page
        assert page.locator("th button").count() == len(found.metrics) + 3  # row, question, latency
        page.keyboard.press("j")
        page.wait_for_selector("#row .calls th")

    def test_a_page_without_issues_has_a_search_for_its_rows(self, browser: Any, tmp_path: Path) -> None:
        data = [{"request": text, "response": "x"} for text in ("one", "two")]
        visit = Visit(browser, saved(tmp_path, validate_eval_set(data).to_html()))
        visit.page.fill("#rowsearch", "two")
        assert visit.page.inner_text("#rowcount") == "1 of 2 rows"
        assert visit.trouble == []

    def test_an_anchor_opens_its_code(self, browser: Any, tmp_path: Path) -> None:
        path = saved(tmp_path, validate_eval_set(SAMPLES / "broken.jsonl").to_html())
        page = browser.new_page()
        page.goto(path.as_uri() + "#AE404")
        assert page.locator("#AE404").get_attribute("open") is not None
        assert page.locator("#AE402").get_attribute("open") is None

    def test_the_first_command_is_copied(self, browser: Any, tmp_path: Path) -> None:
        text = validate_eval_set(SAMPLES / "broken.jsonl").to_html()
        page = browser.new_context(permissions=["clipboard-read", "clipboard-write"]).new_page()
        page.goto(saved(tmp_path, text).as_uri())
        page.click(".copy")
        page.wait_for_selector("text=Copied")
        assert page.evaluate("navigator.clipboard.readText()") == page.inner_text(".start code")

    def test_what_is_left_by_hand_leads_to_its_issues(self, broken: Any) -> None:
        broken.evaluate("document.querySelectorAll('details').forEach(d => { d.open = false })")
        broken.click(".left a >> nth=0")
        broken.wait_for_selector(".issues > details[open]")
        assert self.codes(broken)[0] == broken.locator(".issues > details[open]").get_attribute("id")

    def test_a_trace_is_a_waterfall(self, browser: Any, tmp_path: Path) -> None:
        page = Visit(browser, saved(tmp_path, validate_eval_set(SAMPLES / "good.jsonl").to_html())).page
        page.evaluate("location.hash = 'row-10'")
        page.wait_for_selector("#row .span")
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
        spans = page.locator("#row .span").all()
        assert "helpdesk_agent AGENT ok 0.507" in spans[0].inner_text()
        bars = [span.locator(".meter > span").bounding_box() for span in spans]
        assert [bar["x"] for bar in bars] == sorted(bar["x"] for bar in bars)
        assert bars[0]["width"] == max(bar["width"] for bar in bars)
        assert page.locator("#row .span .meter > .error").count() == 1

    def test_hostile_rows_can_be_opened(self, browser: Any, tmp_path: Path) -> None:
        spans = [{"name": t, "span_id": f"{i}", "start_time_unix_nano": i} for i, t in enumerate(HOSTILE[:9])]
        traced = {"request": "x", "trace": json.dumps({"info": {}, "data": {"spans": spans}})}
        visit = Visit(browser, saved(tmp_path, validate_eval_set([traced, *hostile_rows()]).to_html()))
        page, texts, spans = visit.page, "", 0
        for box in page.locator("#columns input").all():
            box.check()
        count = len(hostile_rows()) + 1
        for row in range(count):
            page.evaluate(f"location.hash = 'row-{row}'")
            page.wait_for_selector(f"#row b:text-is('Row {row}')")
            texts += page.inner_text("#row")
            spans += page.locator(".span").count()
        assert spans == 9
        assert HOSTILE[0] in texts
        assert HOSTILE[0] in page.inner_text("#rowlist")
        assert (visit.trouble, visit.at_home) == ([], True)
        assert page.evaluate("window.pwned") is None
        assert page.locator("#rowlist, #row, #columns").locator("script, img, svg, iframe").count() == 0
        links = page.locator("#rowlist a, #row a").all()
        assert all(re.fullmatch(r"#(row-\d+|[A-Z]+\d+)", str(link.get_attribute("href"))) for link in links)

    def test_without_script_the_page_reads(self, browser: Any, tmp_path: Path) -> None:
        path = saved(tmp_path, validate_eval_set(SAMPLES / "broken.jsonl").to_html())
        page = browser.new_context(java_script_enabled=False).new_page()
        page.goto(path.as_uri())
        text = page.inner_text("body")
        assert "Did you mean 'user'?" in text
        assert "With scripts enabled" in text
        assert page.locator("button:visible, input:visible, select:visible").count() == 0
