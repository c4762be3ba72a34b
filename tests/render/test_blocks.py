"""Blocks in each form: one text and one HTML renderer, which escape whatever they draw."""

from __future__ import annotations

import re
from typing import Any

import pytest

from agent_eval_schema.metrics.alignment import CallPair, ShownCall
from agent_eval_schema.render.block_html import view_page
from agent_eval_schema.render.block_text import MOST_ROWS, view_markdown
from agent_eval_schema.render.blocks import (
    Block,
    Cell,
    Change,
    Changes,
    Column,
    Detail,
    Download,
    Effect,
    Example,
    Examples,
    Fold,
    Found,
    FoundIssue,
    Group,
    Heading,
    Issues,
    Line,
    Meter,
    Only,
    OpenRows,
    Part,
    Section,
    Several,
    Table,
    Terms,
    Trend,
    Trends,
    View,
)
from agent_eval_schema.render.page import with_code
from agent_eval_schema.render.phrases import NextCommand
from agent_eval_schema.render.printable import as_inline, as_text
from agent_eval_schema.render.rows import RowContent, ShownIssue, ShownRow, ShownScore, ShownSpan, ShownTurn
from agent_eval_schema.text.edits import edits
from tests.render.report.test_html import ALLOWED, HOSTILE, Tags


def document(*blocks: Block, **values: Any) -> View:
    return View(**{"title": "t", "verdict": "v", "blocks": blocks, **values})


def text(*blocks: Block, width: int = 60) -> list[str]:
    """The lines of a text before its verdict."""
    return as_text(document(*blocks), width=width).splitlines()[:-2]


def body(html: str) -> str:
    return html[html.index("</header>") : html.index("<footer>")]


def test_a_block_for_one_form_is_in_no_other() -> None:
    blocks = [Only(form, [Line(f"for {form}")]) for form in ("text", "html", "page", "notebook")]
    drawn = document(*blocks)
    forms = {"text": as_text(drawn), "page": view_page(drawn), "notebook": as_inline(drawn)}
    shown = {form: re.findall(r"for (\w+)", found) for form, found in forms.items()}
    assert shown == {"text": ["text"], "page": ["html", "page"], "notebook": ["html", "notebook"]}


def test_what_holds_nothing_is_in_no_form() -> None:
    empty = [Line(""), Terms([]), Table(["a"], []), OpenRows([], [], 0), Only("text", []), Issues([], [], 0)]
    blocks = [Section("s", "Title", empty), Section("t", "On a page", [Only("page", [Line("x")])]), Fold("More", empty)]
    assert text(*blocks) == []
    page, notebook = view_page(document(*blocks)), as_inline(document(*blocks))
    assert re.findall(r"<h2[^>]*>([^<]*)", page) == ["On a page"]
    assert re.findall(r"<a href=\"#(\w)\"", page) == ["t"]
    assert not re.search("Title|On a page|More|<table", notebook)
    assert view_markdown(document(*blocks)) == "### v\n\n\n"


def test_the_rest_of_several_blocks_is_counted_in_a_text_and_folded_in_a_notebook() -> None:
    block = Several([Line(f"n{i}") for i in range(4)], "more lines", total=9, in_text=1, at_once=2)
    assert text(block) == ["n0", "… and 8 more"]
    page, notebook = view_page(document(block)), as_inline(document(block))
    assert "<details" not in page
    assert "… and 5 more lines." in page
    before, _, folded = notebook.partition("<summary>2 more lines</summary>")
    assert re.findall(r"n\d", before) == ["n0", "n1"]
    assert re.findall(r"n\d", folded) == ["n2", "n3"]


def test_markdown_folds_a_long_table_and_counts_its_other_rows() -> None:
    table = Table(["Row", "#Score"], [[f"r{i}", Cell("0", "error")] for i in range(MOST_ROWS + 1)], "Rows", total=7_000)
    markdown = view_markdown(document(Line("A *line*"), Fold("More", [Heading("Title"), Line("inside")]), table))
    assert "A &#42;line&#42;\n\n<details><summary>More</summary>\n\n#### Title\n\ninside\n\n</details>" in markdown
    assert "<details><summary>Rows (7,000)</summary>\n\n| Row | Score |\n| --- | ---: |\n| r0 | **0** |" in markdown
    assert f"\n\n… and {7_000 - MOST_ROWS:,} more\n\n</details>" in markdown
    assert "more" not in view_markdown(document(Table(["Row"], [["r0"]], "Rows")))


def test_a_part_of_a_message_is_code_only_between_two_signs() -> None:
    assert with_code("set `a<b>` or `c`") == "set <code>a&lt;b&gt;</code> or <code>c</code>"
    assert with_code("set `a<b> or `c` too") == "set `a&lt;b&gt; or `c` too"


def test_a_fold_is_folded_only_in_a_notebook() -> None:
    block = Fold("More", [Line("inside")])
    assert text(block) == ["inside"]
    assert "<summary>" not in view_page(document(block))
    assert '<details class="more"><summary>More</summary>' in as_inline(document(block))


def test_a_column_for_pages_is_in_no_text_and_shares_its_name() -> None:
    row = ["a", Cell(picture=Meter(50.0, "half")), "0.5", "1"]
    table = Table(["name", "%mean", "#", "%#interval"], [row])
    assert text(table) == ["name  mean", "a      0.5"]
    html = body(view_page(document(table)))
    assert re.findall(r"<th scope=\"col\"[^>]*>([^<]*)", html) == ["name", "mean", "interval"]
    assert '<th scope="col" colspan="2">mean' in html
    assert 'aria-label="half"' in html


def test_texts_beside_each_other_wrap_only_in_the_last_column() -> None:
    assert text(Terms([("Run", "a")])) == ["Run  a"]
    assert text(Terms([("Run", "a b c"), ("Longest", "d e")]), width=12) == [
        "Run      a b",
        "         c",
        "Longest  d e",
    ]
    assert text(Table(["#", "", ""], [["7", "a", "why"]])) == ["7  a  why"]
    rows = [["7", "a b", "why it is so"], ["10", "c", "no"], ["8", "d", "no"]]
    assert text(Table(["#", "", ""], rows, in_text=2), width=16) == [
        *(" 7  a b  why it", "         is so", "10  c    no"),
        "… and 1 more",
    ]


def test_a_name_of_the_data_keeps_its_signs() -> None:
    table = Table([Column("#hash"), Column("%share", is_number=True)], [["a", "1"]])
    assert text(table) == ["#hash  %share", "a           1"]
    assert "#hash</th>" in body(view_page(document(table)))


def test_a_note_is_below_the_rows_that_share_it() -> None:
    rows = [("a", "1", "why"), ("bb", "10", "why"), ("c", "2", "other")]
    assert text(Table(["", "#", ""], rows, notes=True)) == ["a    1", "bb  10", "  ↳ why", "c    2", "  ↳ other"]


def test_examples_without_a_cell_in_a_column_have_no_such_column() -> None:
    rows = [Example(str(i), None, ["", f"said {i}"], sign) for i, sign in enumerate("+++-")]
    block = Examples([Detail("Where", "path"), Detail("What")], rows, total=7, in_text=2)
    assert text(block) == ["+ row 0  said 0", "+ row 1  said 1", "- row 3  said 3", "… and 4 more"]
    assert re.findall(r"<th scope[^>]*>([^<]*)", view_page(document(block))) == ["Row", "What"]


def test_changes_name_the_path_only_where_it_is_not_the_field() -> None:
    found = [Change("0", "a", *edits("f", "x", "y")), Change("1", None, *edits("f", {"k": 1}, {"k": 2}))]
    block = Changes("f", found, total=5)
    assert text(block) == ["row 0 (a)", "  - x", "  + y", "row 1", "  f.k", "  - 1", "  + 2", "… and 3 more"]
    html = view_page(document(block))
    assert "<del>x</del><ins>y</ins>" in html
    assert html.count("f.k") == 1
    assert "… and 3 more." in html


@pytest.mark.parametrize(
    ("mood", "last", "head"),
    [
        ("good", "✓ v", '<h1 class="good">✓ v'),
        ("error", "✗ v", '<h1 class="error">✗ v'),
        ("warning", "⚠ v", '<h1 class="warning">⚠ v'),
        ("", "v", "<h1>v"),
    ],
)
def test_the_verdict_is_last_in_a_text_and_first_on_a_page(mood: str, last: str, head: str) -> None:
    found = document(Section("s", "First", [Line("x")]), mood=mood)
    assert as_text(found, width=60).splitlines() == ["First", "  x", "", last]
    assert head in view_page(found)


def test_a_page_leads_to_what_is_to_be_read_first() -> None:
    text = "<b>which</b>"
    found = document(first=(Part("row 2", "#rows"), text), following=[NextCommand("run a", "One.")])
    assert as_text(found, width=60).splitlines() == ["v", "One.:", "  run a"]
    page = view_page(found)
    assert '<b>Start here:</b> <a href="#rows">row 2</a>&lt;b&gt;which&lt;/b&gt;</p>' in page
    assert "run a" not in page
    assert "run <code>run a</code>" in as_inline(found)


def test_numbered_commands_are_a_list_on_a_page() -> None:
    found = document(following=[NextCommand("run a", "One."), NextCommand("run b", "Two.")], numbered=True)
    assert as_text(found, width=60).splitlines() == ["v", "1. One:", "  run a", "2. Two:", "  run b"]
    assert re.findall(r"<li>(.*?) <code>(.*?)</code>", view_page(found)) == [("One.", "run a"), ("Two.", "run b")]
    assert "Start here" not in view_page(found)


def test_a_page_has_a_script_only_if_it_has_rows_to_search_or_a_command_to_copy() -> None:
    plain, sortable = (Table(["a"], [["x"]], sortable=is_sortable) for is_sortable in (False, True))
    assert "<script>" not in view_page(document(plain))
    assert "<script>" in view_page(document(Section("s", "S", [sortable])))
    assert "<script>" in view_page(document(following=[NextCommand("run a", "one")]))
    assert "<script>" not in view_page(document(Only("text", [sortable])))


def issue(row: int, message: str = "expected text", **more: Any) -> FoundIssue:
    return FoundIssue(f"{row:,}", None, f"f.jsonl:{row + 1}", "request", message, "Write it as text.", **more)


def test_equal_issues_are_together_in_a_text_and_a_hint_is_not_repeated() -> None:
    block = Found([issue(0), issue(1), issue(2, "expected more"), issue(3)], total=9)
    assert text(block) == [
        *("f.jsonl:1  row 0  request", "f.jsonl:2  row 1  request", "  expected text"),
        *("f.jsonl:3  row 2  request", "  expected more", "  → Write it as text."),
        "… and 6 more",
    ]


def test_the_marks_of_an_issue_are_below_what_it_is_about() -> None:
    long, whole = issue(0, excerpt=("a" * 50, "bad", "c" * 50)), issue(1, "other", excerpt=("", "all", ""))
    lines = text(Found([long, whole], total=2))
    assert lines[2].index("bad") == lines[3].index("^^^")
    assert len(lines[2]) <= 60
    assert not any("all" in line for line in lines)


def test_a_page_leads_to_the_row_of_an_issue_and_does_not_repeat_the_hint_of_its_group() -> None:
    found = [issue(1_000, opens=True, excerpt=("a", "bad", "")), issue(2)]
    page = body(view_page(document(Found(found, 2, "Write it as text."))))
    assert '<td class="n" data-label="row"><a href="#row-1000">1,000</a></td>' in page
    assert '<td class="n" data-label="line">1001</td>' in page
    assert '<td class="cell">a<mark>bad</mark></td>' in page
    assert "#row-2" not in page
    assert "Write it" not in page
    assert body(view_page(document(Found(found, 2)))).count("→ Write it as text.") == 2


def test_issues_are_filtered_on_a_page_and_folded_in_a_notebook() -> None:
    groups = [
        Group([Part(f"AE{i}", "tag")], [Line("x")], id=f"AE{i}", data={"severity": severity, "fixable": fixable})
        for i, (severity, fixable) in enumerate([("error", 1), ("error", None), ("warning", None)])
    ]
    block = Issues(groups, [("error", "Errors"), ("warning", "Warnings")], at_once=1)
    page, notebook = body(view_page(document(block))), as_inline(document(block))
    assert re.findall(r">(\w+ \d)</button>", page) == ["All 3", "Errors 2", "Warnings 1", "Fixable 1"]
    assert '<details class="issue" id="AE0" data-severity="error" data-fixable="1">' in page
    assert "<summary>2 more kinds of issue</summary>" in notebook
    assert 'id="' not in notebook
    assert "data-severity" not in notebook
    assert text(block) == [line for i in range(3) for line in (f"AE{i}", "    x")]


def test_a_link_is_a_link_where_it_leads() -> None:
    link = Line((Part("part", "#part error"), Part("page", "https://example.invalid/"), Part("no", "javascript:x")))
    page, notebook = view_page(document(link)), as_inline(document(link))
    assert '<a href="#part">part</a>' in page
    assert "<a" not in notebook.replace('<a href="https://example.invalid/"', "")
    assert re.search(r'<span class="error"[^>]*>part</span>', notebook)
    assert '<span class="javascript:x">no</span>' in page


def test_a_command_is_copied_only_on_a_page() -> None:
    command = document(Line(Part("run `a`", "command")))
    assert "<code>run `a`</code> <button" in view_page(command)
    assert "<button" not in as_inline(command)


@pytest.mark.parametrize(
    ("share", "bar"), [(0.0, "░" * 10), (0.5, "█" + "░" * 9), (99.5, "█" * 9 + "░"), (100.0, "█" * 10)]
)
def test_a_bar_is_full_or_empty_only_if_that_is_exactly_so(share: float, bar: str) -> None:
    assert text(Table(["name", "bar"], [["a", Cell(picture=Meter(share, "x"))]])) == [
        "name" + " " * 9 + "bar",
        f"a     {bar}",
    ]


def test_a_section_has_the_mood_and_the_picture_of_its_title() -> None:
    section = Section("s", "1 of 2 rows", [Line("x")], mood="error", meter=Meter(50.0, "half"))
    page = body(view_page(document(section)))
    assert '<h2 id="s" class="error">1 of 2 rows</h2>' in page
    assert 'aria-label="half"' in page
    assert "\x1b[1;31m1 of 2 rows" in as_text(document(section), color=True)


def every_block(hostile: str) -> list[Block]:
    """Each kind of block, with the text wherever one can be."""
    cell = Cell((hostile, Part(hostile, "path"), Part(hostile, "message"), Part(hostile, "name")), hostile)
    meter = Meter(1.0, hostile)
    table = Table(
        [Column(hostile), Column(hostile, is_number=True)],
        [[hostile, Cell(hostile, picture=meter)], [hostile, Cell(picture=Effect(9, (1, 9), hostile))]],
        hostile,
    )
    example = Example(hostile, hostile, [hostile])
    issue = FoundIssue(hostile, hostile, hostile, hostile, hostile, hostile, (hostile, hostile, hostile))
    call, pair = ShownCall(hostile, hostile, "extra"), (hostile, hostile)
    content = RowContent(
        turns=[ShownTurn(hostile, hostile, hostile, [pair])],
        answers=[pair],
        expected=[pair],
        scores=[ShownScore(hostile, hostile, hostile, hostile)],
        documents=[(hostile, hostile, hostile)],
        calls=[(hostile, [CallPair(call, call)])],
        spans=[ShownSpan(hostile, hostile, hostile, 1, 2, 3, hostile, hostile, hostile, hostile)],
        cells=[pair],
        issues=[ShownIssue(hostile, hostile, hostile, hostile, hostile, hostile)],
        edits=[(hostile, [("old", hostile), ("both", hostile), ("new", hostile)])],
    )
    opened = ShownRow(hostile, id=hostile, title=hostile, columns=[(hostile, hostile, None)], content=content)
    points = [(0.0, 1.0), (1.0, 2.0), None]
    return [
        Section("id", hostile, [Line(hostile), Heading(hostile), Terms([(hostile, hostile)])], short=hostile),
        table,
        Table(["", "#"], [[cell, hostile]], kind="examples", sortable=True),
        Examples([Detail(hostile)], [example]),
        Changes("f", [Change(hostile, hostile, *edits(hostile, hostile, ""))], 1),
        Group([Part(hostile, "tag"), hostile, Cell(hostile, picture=meter)], [Line(hostile)]),
        Issues([Group([hostile], [Found([issue], 2)], id="AE1", data={"severity": "error", "fixable": None})], [], 0),
        Download(hostile, "a.csv", hostile, hostile),
        Several([Line(hostile)] * 2, hostile, at_once=1),
        Fold(hostile, [Line(hostile)]),
        OpenRows([hostile], [opened], 1, hostile, hostile),
        Trends([Trend(hostile, hostile, points, ["", "good", ""], "0,1", [hostile] * 3, pair, (9, 9), hostile)]),
    ]


@pytest.mark.parametrize("hostile", [t.encode("utf-8", "replace").decode() for t in HOSTILE])
def test_hostile_text_is_escaped_in_every_block(hostile: str) -> None:
    found = document(*every_block(hostile), about=[Line(hostile)], verdict=hostile, title=hostile)
    for html in (view_page(found), as_inline(found)):
        tags = Tags(html)
        assert tags.open == []
        assert {tag for tag, _ in tags.seen} <= ALLOWED | {"del", "ins", "ul", "li", "circle", "polygon", "polyline"}
        assert not [name for _, attributes in tags.seen for name in attributes if name.startswith("on")]
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]", as_text(found, width=80)
    )


@pytest.mark.parametrize(("mood", "sign"), [("good", "✓"), ("warning", "⚠"), ("error", "✗")])
def test_a_verdict_has_the_same_sign_in_every_text(mood: str, sign: str) -> None:
    view = document(verdict="2 rows", mood=mood)
    assert as_text(view).splitlines()[-1] == f"{sign} 2 rows"
    assert view_markdown(view).splitlines()[0] == f"### {sign} 2 rows"
