"""The report as HTML, as text: a golden page, and cells that would rather be markup."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from agent_eval_schema import diff_eval_sets, eval_set_from_inference_table, validate_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.rules import RULES
from agent_eval_schema.runtime.version import __version__
from tests.conftest import ROOT, SAMPLES
from tests.render.report.test_text import GOLDEN, compare, report_on

HOSTILE = [
    "<script>window.pwned = 1</script>",
    "<img src=x onerror='window.pwned = 1'>",
    '"><svg onload=window.pwned=1>',
    "' onfocus='window.pwned=1' autofocus='",
    "[a](javascript:window.pwned=1) <a href='javascript:window.pwned=1'>",
    "</details></table></div></main></body>after",
    "</style><style>* { display: none }</style>",
    "<link rel=stylesheet href=http://example.invalid/x.css><iframe src=http://example.invalid>",
    "{{ 7 * 7 }} {% raw %} ${7*7} `a` &lt;b&gt; &#60;",
    "right \u202e to left \u2066 and \x00 \x1b[31m \x9b \u2028 \ud83d\ude00",
]


class Tags(HTMLParser):
    """The tags and attributes of a page, and whether every tag that opens is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "input", "wbr"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def hostile_rows() -> list[dict[str, Any]]:
    """Every hostile text in every place of a row that a report may show, well-formed and not."""
    rows = []
    for text in HOSTILE:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16")
        rows += [
            {"request_id": f"id {text}", "request": {"messages": [{"role": text, "content": text}]}, "response": text},
            {"request_id": text, "request": {text: text}, "response": text, "expected_facts": text},
            {"request": text, "response": text, "retrieved_context": [{"doc_uri": 1, text: text}], text: text},
            {"request": text, "response": text, "trace": "{" + text, "guidelines": {text: 1}},
            {"request": {"messages": text, "query": text}, "response": 1, "expected_retrieved_context": [text]},
        ]
    return rows


@pytest.mark.parametrize("name", ["good.jsonl", "broken.jsonl"])
def test_page(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (
        report_on(name, monkeypatch).to_html().replace(f"agent-eval-schema {__version__}", "agent-eval-schema VERSION")
    )
    compare(GOLDEN / f"{name}.html", page)


@pytest.mark.parametrize("form", ["to_html", "_repr_html_"])
def test_hostile_cells_stay_text(form: str) -> None:
    report = validate_eval_set(hostile_rows())
    assert report.invalid_count > 30
    text = getattr(report, form)()
    tags = Tags(text)
    assert tags.open == []
    assert {t for t, _ in tags.seen} <= ALLOWED
    for _, attributes in tags.seen:
        assert not [n for n in attributes if n.startswith("on") or n in ("src", "action")]
        address = attributes.get("href") or "#x"
        assert re.fullmatch(r"#[\w-]+|data:text/csv;charset=utf-8,[\w%.-]*", address) or address in PAGES
    assert text.count("<script") == (2 if form == "to_html" else 0)  # the rows and ours
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]", text)


_DOCUMENT = "html head meta title style body main header nav section footer h1 h2 h3 p a span br div code mark"
_PARTS = "wbr details summary table thead tbody tr th td svg rect line text figure figcaption dl dt dd b ul li"
_TOOLS = "button input select option script"
ALLOWED = set(f"{_DOCUMENT} {_PARTS} {_TOOLS}".split(" "))
PAGES = {rule.url for rule in RULES.values()}


def test_a_hostile_file_name_stays_text(tmp_path: Path) -> None:
    path = tmp_path / "<script>alert(1)</script>".replace("/", "∕")
    path = path.with_name(path.name + ".jsonl")
    path.write_text('{"request": "a", "response": "b"}\n')
    assert "<script>alert" not in validate_eval_set(path).to_html()


def test_counts_are_exact_and_examples_are_twenty() -> None:
    page = validate_eval_set([{"request": " ", "response": "x"}] * 1234).to_html()
    assert page.count('data-label="row"') == 20
    assert "1,234\N{NO-BREAK SPACE}×" in page
    assert "… and 1,214 more." in page


def test_all_codes_at_once_stay_small() -> None:
    of_rows = [rule for rule in RULES.values() if validate_eval_set(list(rule.bad)).format == "databricks"]
    rows = [row for rule in of_rows for row in rule.bad for _ in range(20)]
    report = validate_eval_set(rows)
    assert len(report.counts) > 40
    assert len(report.to_html().encode()) < 3 << 19


def test_a_large_report_is_a_small_page() -> None:
    size = 200_000
    requests = np.array([f"question {i}" for i in range(size)], object)
    requests[::20] = "   "
    latency = pa.array(np.random.default_rng(1).gamma(2, 1.5, size))
    table = pa.table({"request": pa.array(requests), "response": requests, "latency_seconds": latency})
    report = validate_eval_set(table)
    assert report.counts["AE202"] == 10_000
    assert len(report.to_html().encode()) < 2 << 20
    assert len(report._repr_html_().encode()) < 1 << 17


def test_the_inline_form_has_the_same_body() -> None:
    report = validate_eval_set("sample_data/broken.jsonl")
    inline, page = report._repr_html_(), report.to_html()
    assert "<html" not in inline
    assert " id=" not in inline  # two reports in one notebook would clash
    for part in ("Issues", "Metric coverage", "Field coverage", "AE206", "Start here", "fixes 8 cells in 8 rows"):
        assert part in inline
        assert part in page


def test_a_frame_without_rows_has_a_page() -> None:
    report = validate_eval_set([])
    assert "The dataset has no rows." in report.to_html()
    assert Tags(report.to_html()).open == []


def test_save_goes_by_the_ending(tmp_path: Path) -> None:
    report = validate_eval_set([{"request": "a", "response": "b"}])
    report.save(tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == report.to_html()


def test_the_page_of_a_diff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = diff_eval_sets("sample_data/good.jsonl", "sample_data/edited_broken.jsonl").to_html()
    compare(GOLDEN / "diff.html", page.replace(f"agent-eval-schema {__version__}", "agent-eval-schema VERSION"))


@pytest.mark.parametrize("form", ["to_html", "_repr_html_"])
def test_hostile_cells_stay_text_in_a_diff(form: str) -> None:
    found = diff_eval_sets(hostile_rows()[:30], hostile_rows()[8:])
    assert not found.same
    tags = Tags(getattr(found, form)())
    assert tags.open == []
    assert {t for t, _ in tags.seen} <= ALLOWED | {"ins", "del"}
    assert not [n for _, a in tags.seen for n in a if n.startswith("on") or n in ("src", "action")]


def test_the_page_of_two_equal_sets_says_so() -> None:
    rows = [{"request": "a", "response": "b"}]
    assert "No difference" in diff_eval_sets(rows, rows).to_html()


def test_a_page_names_the_rules_that_were_switched_off_and_where_the_data_came_from() -> None:
    report = validate_eval_set("sample_data/broken.jsonl", ignore=["AE206", "AE4"])
    page = report.to_html()
    facts = page[page.index("Source") :]
    for part in (
        "sample_data/broken.jsonl",
        "the columns request, request_id",
        f"37, {report.invalid_count} invalid",
        "AE206, AE401",
        __version__,
    ):
        assert part in facts


def test_what_is_left_by_hand_is_what_the_command_leaves(tmp_path: Path) -> None:
    report = validate_eval_set(ROOT / "sample_data" / "broken.jsonl")
    start, then, left = re.findall(r'<p class="(?:start|left)">(.*?)</p>', report.to_html())
    assert start.count("<code>") == 1  # one command, and nothing that it does anyway
    assert "<b>Then:</b> run <code>agent-eval-schema review " in then
    assert "expected_respones" not in start + left
    main(["validate", str(ROOT / "sample_data" / "broken.jsonl"), "--fix", str(tmp_path / "fixed.jsonl")])
    after = validate_eval_set(tmp_path / "fixed.jsonl").counts
    found = re.findall(r'href="#(AE\d+)">.*?<span class="count">(\d+)</span>', left)
    assert len(found) == 6
    assert all(after[code] == int(count) for code, count in found)
    assert all(RULES[code].severity == "error" for code, _ in found)


def test_errors_are_by_hand_before_warnings_and_a_column_is_renamed_once() -> None:
    rows = [{"request": "Hi", "response": "x", "expected_respones": "y"}] * 3 + [{"request": " ", "response": "x"}]
    (left,) = re.findall(r'<p class="left">(.*?)</p>', validate_eval_set(rows).to_html())
    assert re.findall(r"AE\d+(?= )", left)[0] == "AE202"
    assert "AE102" not in left


def test_codes_that_one_row_has_together_and_charts_that_are_not_drawn_have_no_heading() -> None:
    row = {"request": {"messages": [{"role": "usr", "content": "a"}]}, "expected_facts": "b"}
    once, twice = (validate_eval_set([row] * n + [{"request": "a", "response": "b"}] * 5).to_html() for n in (1, 2))
    assert 'id="together"' not in once
    assert 'id="together"' in twice
    assert '<h2 id="numbers">Request length, Response length</h2>' in once


def test_the_page_of_a_build_starts_once() -> None:
    pytest.importorskip("duckdb")
    page = eval_set_from_inference_table(SAMPLES / "inference_table.jsonl").to_html()
    assert page.count("Start here:") == 1
