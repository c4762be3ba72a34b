"""The page in a real browser: everything by keyboard, nothing lost, nothing runs but its own script."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema import review_eval_set, validate_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.review.journal import Change, Journal, RowKey
from agent_eval_schema.review.review import Review
from agent_eval_schema.review.write import Reviewing
from agent_eval_schema.runtime.progress import progress
from tests.conftest import DATA, PATIENCE, ROOT, SAMPLES
from tests.helpers.traces import span, trace
from tests.review.test_session import ROWS, labeled, written

AXE = (DATA / "axe" / "axe.min.js").read_text(encoding="utf-8")

CALLS = [{"tool_name": "search", "tool_input": {"q": "leave"}}]
ALL: list[dict[str, Any]] = [
    *ROWS,
    {"request_id": "8", "request": "With a call?", "response": "It is 16 weeks.", "predicted_trajectory": CALLS},
]


class Tab:
    """A page of a review, with what it wrote to the console and asked for."""

    def __init__(self, browser: Any, url: str, **options: Any) -> None:
        self.page = browser.new_page(**options)
        self.trouble: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda m: self.trouble.append(m.text))
        self.page.on("pageerror", lambda e: self.trouble.append(str(e)))
        self.page.on("dialog", lambda d: (self.trouble.append(d.message), d.accept()))
        self.page.on("request", lambda r: self.asked.append(r.url))
        self.page.goto(url)
        self.page.wait_for_selector("#form h2, #row p")

    def keys(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def type(self, text: str) -> None:
        self.page.keyboard.type(text)

    def saved(self) -> None:
        self.until("document.getElementById('saved').textContent.startsWith('✓ Saved')")

    def until(self, test: str) -> None:
        """Wait until JavaScript is true. (Playwright's own waiting evaluates text in the page, which a policy bars.)"""
        end = time.monotonic() + PATIENCE
        while not self.page.evaluate(test):
            assert time.monotonic() < end, (test, self.text("body")[:2_000], self.trouble)
            self.page.wait_for_timeout(10)

    def text(self, selector: str) -> str:
        found: str = self.page.inner_text(selector)
        return found

    def row(self) -> int:
        found: str = self.page.evaluate("new URLSearchParams(location.hash.slice(1)).get('row')")
        return int(found)

    def at(self, row: int) -> None:
        self.until(f"new URLSearchParams(location.hash.slice(1)).get('row') === '{row}'")


@pytest.fixture
def open_tab(browser: Any) -> Iterator[Callable[..., Tab]]:
    tabs: list[Tab] = []

    def opened(url: str, **options: Any) -> Tab:
        tabs.append(Tab(browser, url, **options))
        return tabs[-1]

    yield opened
    for tab in tabs:
        tab.page.close()


@pytest.fixture
def reviewing(tmp_path: Path) -> Iterator[Callable[..., Review]]:
    running: list[Review] = []

    def started(rows: list[dict[str, Any]] | None = None, **options: Any) -> Review:
        path = written(tmp_path, ALL if rows is None else rows)
        running.append(review_eval_set(path, **{"reviewer": "maria", **options}))
        return running[-1]

    yield started
    for review in running:
        review.stop()


def states(review: Review) -> dict[int, Any]:
    return review._session.states


def test_50_rows_by_keyboard_alone(
    reviewing: Callable[..., Review], open_tab: Callable[..., Tab], tmp_path: Path
) -> None:
    rows = [{"request_id": f"{i}", "request": f"Question {i}?", "response": f"Answer {i}"} for i in range(50)]
    tab = open_tab(reviewing(rows).url)
    for i in range(50):
        tab.at(i)
        tab.keys("f")
        tab.type(f"fact {i}")
        tab.keys("Control+Enter")
    tab.saved()
    assert tab.text("#done") == "50 of 50"
    tab.keys("Escape", "w")
    tab.page.wait_for_selector("#out")
    out = tmp_path / "reviewed.jsonl"
    tab.page.fill("#out", str(out))
    tab.page.keyboard.press("Tab")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector("dialog .good")
    assert "correctness/rating: 0 → 50 rows" in tab.text("dialog")
    assert [json.loads(line)["expected_facts"] for line in out.read_text().splitlines()] == [
        [f"fact {i}"] for i in range(50)
    ]
    assert tab.trouble == []


def test_each_key_does_what_its_badge_promises(reviewing: Callable[..., Review], open_tab: Callable[..., Tab]) -> None:
    review = reviewing(queue="all")
    tab = open_tab(review.url)
    tab.at(0)
    tab.keys("j")
    tab.at(1)
    tab.keys("1", "2", "2")
    tab.saved()
    assert states(review)[1]["documents"] == {"a": True, "b": False}
    tab.keys("2")
    tab.saved()
    assert states(review)[1]["documents"] == {"a": True}
    tab.keys("g")
    tab.type("Be kind")
    tab.keys("Enter", "Escape", "t")
    tab.type("topic: hr")
    tab.keys("Enter", "Escape", "n")
    tab.type("look again")
    tab.keys("Escape", "d")
    tab.saved()
    expected = {"documents": {"a": True}, "guidelines": ["Be kind"], "tags": {"topic": "hr"}, "note": "look again"}
    assert states(review)[1] == {**expected, "dropped": True}
    tab.keys("u")
    tab.until("!document.querySelector('#row h2').textContent.includes('dropped')")
    assert states(review)[1] == expected
    tab.keys("r", "Escape", "r")  # write a response; take over the answer
    tab.saved()
    assert states(review)[1]["expected_response"] == "x"
    assert "AE904" in tab.text("#live")
    tab.keys("Escape", "s")
    tab.at(2)
    tab.keys("!")
    tab.at(3)
    tab.keys("k")
    tab.at(2)
    tab.saved()
    assert (states(review)[1]["status"], states(review)[2]["status"]) == ("skipped", "flagged")
    for _ in range(6):
        tab.keys("j")
    tab.at(8)
    tab.keys("c")
    tab.saved()
    assert states(review)[8]["reference_trajectory"] == CALLS
    tab.page.evaluate("getSelection().selectAllChildren(document.querySelector('#answer p'))")
    tab.keys("f")
    tab.saved()
    assert states(review)[8]["expected_facts"] == ["It is 16 weeks."]
    tab.keys("?")
    shown = {k for k in tab.text("dialog").split("\n") if k}
    badges = set(tab.page.eval_on_selector_all("main kbd, footer kbd, header kbd", "e => e.map(k => k.textContent)"))
    assert {badge for badge in badges if not badge.isdigit()} <= {part for line in shown for part in line.split("\t")}
    assert tab.trouble == []


def test_keys_are_off_while_one_types(reviewing: Callable[..., Review], open_tab: Callable[..., Tab]) -> None:
    tab = open_tab(reviewing().url)
    row = tab.row()
    tab.keys("f")
    tab.type("just a fact! U?")
    assert tab.row() == row
    assert tab.page.input_value("[data-new=expected_facts]") == "just a fact! U?"


def test_fixes_one_by_one_and_all_of_a_kind(reviewing: Callable[..., Review], open_tab: Callable[..., Tab]) -> None:
    review = reviewing(queue="fixes")
    tab = open_tab(review.url)
    tab.at(5)
    assert '"human"' in tab.text("#row")
    tab.keys("a")
    tab.at(6)
    tab.keys("u")
    tab.at(5)
    tab.keys("Shift+A")
    tab.until("document.getElementById('done').textContent === '2 of 2'")
    assert [states(review)[row]["fix:request"] for row in (5, 6)] == ["accept", "accept"]
    assert review.progress["done"]["fixes"] == 2


def test_conflicts_are_decided_side_by_side(reviewing: Callable[..., Review], open_tab: Callable[..., Tab]) -> None:
    review = reviewing(queue="conflicts")
    tab = open_tab(review.url)
    tab.at(2)
    assert tab.page.locator(".side .box").count() == 2
    tab.keys("2")
    tab.saved()
    assert review.rows()["expected_facts"].tolist()[2:4] == [["g"], ["g"]]
    tab.keys("u")
    tab.until("!document.getElementById('row').textContent.includes('Decided')")
    tab.keys("b")
    tab.saved()
    assert review.rows()["expected_facts"].tolist()[2:4] == [["f", "g"], ["f", "g"]]


def test_the_rules_answer_while_one_types(reviewing: Callable[..., Review], open_tab: Callable[..., Tab]) -> None:
    review = reviewing()
    tab = open_tab(review.url + "&q=all&row=2")
    tab.at(2)
    tab.keys("r")
    tab.type("A response too")
    tab.page.wait_for_selector("#live .issue.error")
    assert "AE301" in tab.text("#live")
    assert "+ " not in tab.text("#live")
    tab.page.fill("#response", "")
    tab.until("!document.querySelector('#live .issue.error')")
    tab.page.goto(review.url + "&q=all&row=0")
    tab.page.reload()
    tab.page.wait_for_selector("#form h2")
    tab.keys("f")
    tab.type("f")
    tab.keys("Enter")
    tab.page.wait_for_selector("#live .gained")
    assert "+ correctness" in tab.text("#live")
    tab.until("/correctness: 3 rows/.test(document.getElementById('live').textContent)")


def test_two_tabs_do_not_overwrite_each_other(reviewing: Callable[..., Review], open_tab: Callable[..., Tab]) -> None:
    review = reviewing()
    url = review.url + "&q=all&row=0"
    one, other = open_tab(url), open_tab(url)
    one.keys("f")
    one.type("first")
    one.keys("Enter")
    one.saved()
    other.keys("f")
    other.type("second")
    other.keys("Enter")
    other.until("document.getElementById('saved').textContent.includes('another window')")
    assert states(review)[0]["expected_facts"] == ["first"]
    assert [text in other.text("#form .issue") for text in ("first", "second")] == [True, True]
    other.page.reload()
    other.page.wait_for_selector("#form .issue")
    other.page.get_by_role("button", name="Keep both").click()
    other.saved()
    assert states(review)[0] == {"expected_facts": ["first", "second"]}
    assert other.page.locator("#form .issue[role=group]").count() == 0


def test_two_tabs_of_one_browser_show_the_same(reviewing: Callable[..., Review], browser: Any) -> None:
    url = reviewing().url + "&q=all&row=0"
    context = browser.new_context()
    try:
        one, other = Tab(context, url), Tab(context, url)
        one.keys("f")
        one.type("half a fa")
        other.until("document.querySelector('[data-new=expected_facts]').value === 'half a fa'")
        other.keys("f", "End")
        other.type("ct")
        other.keys("Enter")
        one.until("document.querySelector('[data-new=expected_facts]').value === ''")
        assert one.page.input_value("#form input >> nth=0") == "half a fact"
    finally:
        context.close()


LEAVE: dict[str, Callable[[Tab], Any]] = {
    "Esc and J": lambda tab: tab.keys("Escape", "j"),
    "another row": lambda tab: tab.page.locator("#list .item >> nth=3").click(),
    "Next": lambda tab: tab.page.get_by_role("button", name="Next", exact=True).click(),
    "another queue": lambda tab: tab.page.get_by_role("button", name="Duplicates").click(),
    "a search": lambda tab: (tab.page.fill("#find", "documents"), tab.at(1)),
    "reload": lambda tab: tab.page.reload(),
    "another page": lambda tab: tab.page.goto("about:blank"),
}
FIELDS = {
    "expected_facts": "one fact, then Enter", "guidelines": "a guideline, then Enter", "tags": "tag, or name: value",
    "reference_trajectory": "the name of a tool, then Enter",
}  # fmt: skip


@pytest.mark.parametrize("how", LEAVE)
def test_what_is_typed_and_not_entered_is_found_again(
    how: str, reviewing: Callable[..., Review], open_tab: Callable[..., Tab]
) -> None:
    review = reviewing()
    url = review.url + "&q=all&row=0"
    tab = open_tab(url)
    for name, field in FIELDS.items():
        tab.page.get_by_label(field).focus()
        tab.type(f"half a {name}")
    LEAVE[how](tab)
    tab.page.goto("about:blank")
    tab.page.goto(url)
    tab.at(0)
    tab.page.wait_for_selector("#form h2")
    assert {name: tab.page.get_by_label(field).input_value() for name, field in FIELDS.items()} == {
        name: f"half a {name}" for name in FIELDS
    }
    assert states(review)[0] == {f"draft:{name}": f"half a {name}" for name in FIELDS}
    tab.keys("Control+Enter")
    tab.at(1)
    tab.saved()
    assert states(review)[0] == {
        "expected_facts": ["half a expected_facts"], "guidelines": ["half a guidelines"], "status": "submitted",
        "tags": {"half a tags": "true"},
        "reference_trajectory": [{"tool_name": "half a reference_trajectory", "tool_input": {}}],
    }  # fmt: skip


def test_arguments_that_are_no_json_yet_are_a_draft(
    reviewing: Callable[..., Review], open_tab: Callable[..., Tab]
) -> None:
    review = reviewing()
    tab = open_tab(review.url + "&q=all&row=8")
    tab.at(8)
    tab.keys("c")
    tab.page.fill("[aria-label='arguments of call 1']", '{"q": "lea')
    tab.keys("Escape", "k")
    tab.at(7)
    tab.keys("j")
    tab.at(8)
    assert tab.page.input_value("[aria-label='arguments of call 1']") == '{"q": "lea'
    for number in ("1e400", "12345678901234567891"):  # null and another number to a browser
        tab.page.fill("[aria-label='arguments of call 1']", f'{{"q": {number}}}')
        tab.saved()
        assert states(review)[8]["draft:arguments 1"] == f'{{"q": {number}}}'
        assert tab.page.get_by_text(f"{number}: expected a number of at most 15 digits").is_visible()
    tab.page.fill("[aria-label='arguments of call 1']", '{"q": "leave it"}')
    tab.saved()
    assert states(review)[8] == {"reference_trajectory": [{"tool_name": "search", "tool_input": {"q": "leave it"}}]}


def test_no_key_is_lost_at_15_ms_per_key(reviewing: Callable[..., Review], open_tab: Callable[..., Tab]) -> None:
    rows = [{"request_id": f"{i}", "request": f"Question {i}?", "response": f"Answer {i}"} for i in range(30)]
    review = reviewing(rows)
    tab = open_tab(review.url + "&q=all&row=0")
    for i in range(30):
        for key in ("f", *f"fact {i}", "Control+Enter"):
            tab.page.keyboard.press(key)
            tab.page.wait_for_timeout(15)
    tab.saved()
    assert [states(review)[i] for i in range(30)] == [
        {"expected_facts": [f"fact {i}"], "status": "submitted"} for i in range(30)
    ]
    for key in ("k", "s", "k", "k", "d") * 4:  # back and forth over rows whose steps may be on their way
        tab.page.keyboard.press(key)
    tab.saved()
    assert tab.trouble == []


def test_a_search_and_a_link_to_a_row(reviewing: Callable[..., Review], open_tab: Callable[..., Tab]) -> None:
    review = reviewing()
    tab = open_tab(review.url)
    tab.keys("/")
    tab.type("WHICH documents")
    tab.until("document.getElementById('queues').textContent.endsWith('Search 1')")
    tab.at(1)
    link = tab.page.url
    assert open_tab(link.replace("q=search", "q=all")).row() == 1


SCRIPT = "<img src=x onerror=alert(1)><script>alert(2)</script>\u202e'\"</textarea>{{7*7}}"


def test_hostile_cells_are_only_text(reviewing: Callable[..., Review], open_tab: Callable[..., Tab]) -> None:
    call = [{"tool_name": SCRIPT, "tool_input": {SCRIPT: SCRIPT}}]
    row = {
        "request_id": SCRIPT, "request": {"messages": [{"role": "user", "content": SCRIPT}]}, "response": SCRIPT,
        "expected_facts": [SCRIPT], "guidelines": [SCRIPT], "tags": {SCRIPT: SCRIPT}, SCRIPT: SCRIPT,
        "retrieved_context": [{"doc_uri": "javascript:alert(3)", "content": SCRIPT}],
        "predicted_trajectory": call, "reference_trajectory": call,
    }  # fmt: skip
    other = {**row, "request_id": "x", "expected_facts": [SCRIPT, SCRIPT]}
    review = reviewing([row, other, {"request": {SCRIPT: 1}, "response": SCRIPT, "expected_facts": SCRIPT}])
    tab = open_tab(review.url)
    for queue in ("all", "conflicts", "errors"):
        tab.page.goto("about:blank")
        tab.page.goto(f"{review.url}&q={queue}")
        tab.page.wait_for_selector("#row h2")
        assert "<img src=x onerror=alert(1)>" in tab.text("#row")
        assert "\u202e" not in tab.text("body")
        tab.keys("w")
        tab.page.wait_for_selector("#out")
        tab.page.wait_for_timeout(50)
    assert tab.page.locator("main img, main script, dialog img").count() == 0
    assert tab.trouble == []
    assert {url.split("/")[2] for url in tab.asked if "://" in url} == {f"127.0.0.1:{review._server.port}"}


LOOKS: list[dict[str, Any]] = [
    {"color_scheme": scheme, "viewport": {"width": width, "height": 844}}
    for scheme in ("light", "dark")
    for width in (1440, 390)
]


@pytest.mark.parametrize("look", LOOKS, ids=lambda o: f"{o['color_scheme']}-{o['viewport']['width']}")
def test_every_state_can_be_read_and_reached(
    look: dict[str, Any], reviewing: Callable[..., Review], open_tab: Callable[..., Tab], tmp_path: Path
) -> None:
    (tmp_path / "rows.jsonl.jonas.review.jsonl").write_bytes(_lines(labeled("jonas", {1: {"a": True}})))
    review = reviewing(overlap=2)
    tab = open_tab(review.url, **look)
    tab.page.evaluate(AXE)
    places = [("all", row) for row in (0, 1, 2, 5, 7, 8)] + [("conflicts", 2), ("fixes", 5)]
    for queue, row in places:
        tab.page.evaluate(f"location.hash = location.hash.replace(/&q=.*/, '') + '&q={queue}&row={row}'")
        tab.at(row)
        _is_fine(tab)
    tab.page.evaluate("location.hash = location.hash.replace(/&q=.*/, '') + '&q=all&row=1'")
    tab.at(1)
    tab.keys("1", "r")
    tab.type("x")
    tab.keys("Escape", "h")
    tab.saved()
    _is_fine(tab)
    tab.keys("Control+Enter", "k", "k")  # the labels of the other reviewer
    tab.page.wait_for_timeout(100)
    _is_fine(tab)
    for key in ("?", "w"):
        tab.keys(key)
        tab.page.wait_for_selector("dialog[open] button")
        _is_fine(tab)
        tab.keys("Escape")
    assert tab.trouble == []


@pytest.mark.parametrize("look", LOOKS, ids=lambda o: f"{o['color_scheme']}-{o['viewport']['width']}")
def test_what_is_typed_decided_and_not_saved_can_be_read_and_reached(
    look: dict[str, Any], reviewing: Callable[..., Review], open_tab: Callable[..., Tab], tmp_path: Path
) -> None:
    (tmp_path / "rows.jsonl.jonas.review.jsonl").write_bytes(_lines(labeled("jonas", {1: {"a": True}, 4: {"a": True}})))
    (tmp_path / "guide.md").write_text("# How\n\nOne **fact** per line.", encoding="utf-8")
    wrong = {"request_id": "9", "request": "Wrong?", "response": LONG, "expected_facts": ["16 weeks", {"a": 1}]}
    before = reviewing([*ALL, wrong])
    before._session.apply([{"row": 0, "path": "expected_facts", "new": ["f"]}])
    before.stop()
    review = reviewing([{**ALL[0], "response": "It is 18 weeks."}, *ALL[1:], wrong], guide=tmp_path / "guide.md")
    url = f"{review.url}&q=all&row=0"
    tab, other = open_tab(url, **look), open_tab(url)
    tab.page.evaluate(AXE)

    def to(queue: str, row: int) -> None:
        tab.page.evaluate(f"location.hash = location.hash.replace(/&q=.*/, '') + '&q={queue}&row={row}'")
        tab.until(f"document.getElementById('row').innerText.includes('· row {row} ·')")

    def fine(selector: str) -> None:
        tab.page.wait_for_selector(selector)
        _is_fine(tab)

    to("changed", 0)
    fine(".question ins")
    to("errors", 9)
    fine(".question mark")
    tab.page.get_by_role("button", name="partly").click()
    tab.page.get_by_label("reason of the rating").fill("half of it")
    fine("[aria-label='rating of the answer'] [aria-pressed=true]")
    tab.page.get_by_label("a guideline, then Enter").fill("half a guideline")
    tab.saved()
    fine("[data-new=guidelines]")
    for one, row in ((tab, 1), (tab, 4)):
        to("all", row)
        one.keys("2", "Control+Enter")
        one.saved()
    tab.keys(".")
    tab.page.get_by_role("button", name="Decide together").click()
    tab.page.wait_for_selector(".question h3")
    fine(".question h3")
    tab.keys("w")
    tab.page.wait_for_selector("#out")
    tab.page.get_by_role("button", name="What all 2 reviewers agree on").click()
    tab.page.wait_for_selector("dialog [aria-pressed=true]:has-text('What all')")
    fine("#out")
    (tmp_path / "out.jsonl").write_text("there", encoding="utf-8")
    tab.page.fill("#out", str(tmp_path / "out.jsonl"))
    tab.page.get_by_role("button", name="Write", exact=True).click()
    fine("dialog button:has-text('Replace it')")
    tab.page.get_by_role("button", name="Replace it").click()
    tab.page.wait_for_selector("dialog .good")
    fine("dialog pre")
    tab.keys("Escape")
    to("all", 3)
    other.page.goto(url.replace("row=0", "row=3"))
    other.until("document.getElementById('row').innerText.includes('· row 3 ·')")
    for one, text in ((other, "theirs"), (tab, "mine")):
        one.keys("n")
        one.type(text)
        one.keys("Escape")
        one.until("!document.getElementById('saved').textContent.startsWith('Saving')")
    fine("#form [role=group].issue.error")
    tab.page.get_by_role("button", name="Keep yours").click()
    tab.saved()
    review.stop()
    tab.keys("d")
    tab.page.wait_for_selector("#saved.bad")
    fine("#saved button")


def _lines(journal: Journal) -> bytes:
    import msgspec

    return b"".join(msgspec.json.encode(event) + b"\n" for event in journal.events)


def _is_fine(tab: Tab) -> None:
    found = tab.page.evaluate("axe.run(document, {resultTypes: ['violations'], preload: false})")
    assert [(v["id"], [n["html"][:200] for n in v["nodes"]]) for v in found["violations"]] == []
    width = tab.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width[0] <= width[1]
    out = tab.page.evaluate(
        """[...document.querySelectorAll('main input, main textarea, main .box, footer button')].filter(e => {
        const end = e.closest('section, footer').getBoundingClientRect().right;
        return e.offsetParent && e.getBoundingClientRect().right > end + 1}).length"""
    )
    assert out == 0


# --- nothing is lost
def _served(path: Path) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-m", "agent_eval_schema", "review", str(path), "--reviewer", "maria", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT)
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def test_a_killed_server_has_lost_nothing_that_was_saved(open_tab: Callable[..., Tab], tmp_path: Path) -> None:
    path = Path(written(tmp_path, ALL))
    process, url = _served(path)
    try:
        tab = open_tab(url + "&q=all&row=0")
        tab.keys("f")
        tab.type("kept")
        tab.keys("Control+Enter")
        tab.at(1)
        tab.saved()
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    tab.keys("1", "f")
    tab.type("typed while it was gone")
    tab.page.wait_for_selector("#saved.bad")
    assert "Not saved" in tab.text("#saved")
    assert "kept in this browser" in tab.text("#saved")
    process, again = _served(path)  # at the same address
    try:
        assert again == url
        tab.saved()
        tab.page.reload()
        tab.page.wait_for_selector("#form h2")
        assert tab.page.get_by_label("one fact, then Enter").input_value() == "typed while it was gone"
        journal = Journal("maria", f"{path}.maria.review.jsonl")
        assert sorted(journal.states().values(), key=len)[1] == {
            "documents": {"a": True}, "draft:expected_facts": "typed while it was gone",
        }  # fmt: skip
        for row in (1, 0, 0):
            tab.keys("u")
            tab.at(row)
            tab.saved()
        tab.until("document.querySelector('#form input').value === ''")
    finally:
        process.terminate()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def test_steps_of_a_tab_that_was_closed_are_sent_by_the_next(browser: Any, tmp_path: Path) -> None:
    path = Path(written(tmp_path, ALL))
    process, url = _served(path)
    context = browser.new_context()
    try:
        tab = Tab(context, url + "&q=all&row=0")
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
        tab.keys("n")
        tab.type("a note")
        tab.page.wait_for_selector("#saved.bad")
        tab.page.close()
        process, url = _served(path)
        tab = Tab(context, url + "&q=all&row=0")
        tab.saved()
        assert tab.page.input_value("#note") == "a note"
        assert [*Journal("maria", f"{path}.maria.review.jsonl").states().values()] == [{"note": "a note"}]
    finally:
        context.close()
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def test_a_server_that_is_killed_among_random_keys_has_what_the_page_called_saved(browser: Any, tmp_path: Path) -> None:
    """Someone labels some rows and the server is killed among the keys that follow; `AGENT_EVAL_SCHEMA_KILLS=100` does
    so 100 times."""
    path, chance = Path(written(tmp_path, ALL)), random.Random(44)
    saved: list[str] = []
    for kill in range(int(os.environ.get("AGENT_EVAL_SCHEMA_KILLS", "2"))):
        process, url = _served(path)
        try:
            tab = Tab(browser, f"{url}&q=all&row=0")
            for row in range(chance.randrange(1, 5)):
                tab.at(row)
                tab.keys("f")
                tab.type(f"{kill} {row}")
                tab.keys("Control+Enter")
                tab.at(row + 1)
                tab.saved()
                saved.append(f"{kill} {row}")
            for key in chance.choices(("f", "a", "b", "Escape", "j", "k", "s", "d", "Control+Enter"), k=8):
                tab.keys(key)
            tab.page.wait_for_timeout(chance.choice((0, 2, 5, 20)))
        finally:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
        tab.page.close()
        journal = Journal("maria", f"{path}.maria.review.jsonl")
        assert [event.seq for event in journal.events] == list(range(1, len(journal.events) + 1))
        told = " ".join(json.dumps(event.new) for event in journal.events)
        assert [text for text in saved if json.dumps(text) not in told] == []


def test_two_servers_of_which_one_is_killed_have_all_that_they_acknowledged(tmp_path: Path) -> None:
    """Two servers of one reviewer take changes at once; one is killed in between, and the other goes on.
    `AGENT_EVAL_SCHEMA_KILLS=100` does so 100 times."""
    rows = [{"request_id": f"{i}", "request": f"Question {i}?", "response": "x"} for i in range(40)]
    path, told = Path(written(tmp_path, rows)), list[str]()

    def work(url: str, kill: int, start: int) -> None:
        token = url.partition("#t=")[2]
        for row in range(start, len(rows), 2):
            new = f"{kill} {row}"
            change = {"row": row, "path": f"draft:{kill}", "old": None, "new": new}
            body = json.dumps({"steps": [{"id": new, "changes": [change]}]}).encode()
            asked = urllib.request.Request(
                url.partition("#")[0] + "api/change",
                body,
                {"X-Review-Token": token, "Content-Type": "application/json"},
            )
            try:
                with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
                    assert answer.status == 200
            except OSError:  # the server is gone
                return
            told.append(new)

    for kill in range(int(os.environ.get("AGENT_EVAL_SCHEMA_KILLS", "2"))):
        servers = [_served(path), _served(path)]
        threads = [threading.Thread(target=work, args=(url, kill, i)) for i, (_, url) in enumerate(servers)]
        for thread in threads:
            thread.start()
        time.sleep(random.Random(kill).uniform(0.02, 0.2))
        servers[0][0].kill()
        for thread in threads:
            thread.join()
        for process, _ in servers:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
        journal = Journal("maria", f"{path}.maria.review.jsonl")
        assert [event.seq for event in journal.events] == list(range(1, len(journal.events) + 1))
        assert set(told) <= {event.new for event in journal.events}
    assert len(told) >= 20 * (kill + 1)  # the other server took all of its changes


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_that_is_killed_100_times_loses_no_line(tmp_path: Path) -> None:
    """Each process makes random changes and tells each that was saved; it is killed at a random moment."""
    path, seed = str(tmp_path / "rows.jsonl.maria.review.jsonl"), random.Random(43)
    told = 0
    for _ in range(100):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                _change_for_ever(path, writing)
            finally:
                os._exit(1)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            told += len(pipe.read(seed.choice((0, 1, 1, 2))))  # so it has begun, however busy the machine is
            time.sleep(seed.uniform(0, 0.02))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            told += len(pipe.read())
        journal = Journal("maria", path)
        assert len(journal.events) >= told
        assert [event.seq for event in journal.events] == list(range(1, len(journal.events) + 1))
        told = len(journal.events)
    assert told > 100


def _change_for_ever(path: str, writing: int) -> None:
    journal, i = Journal("maria", path), 0
    while True:
        i += 1
        row = RowKey(hash=f"{i % 7}", n=i % 7)
        old = journal.states().get(row, {}).get("note")
        journal.append([Change(row, "note", old, f"{os.getpid()} {i} {'x' * (i % 50)}")])
        os.write(writing, b".")


# --- without a server
def test_a_bundle_keeps_its_journal_in_the_browser(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path, [*ALL, {"request": SCRIPT, "response": "**Write** to ana@example.com"}])
    page = tmp_path / "review.html"
    command = ["review", path, "--reviewer", "maria", "--bundle", str(page), "--redact", "default", "--quiet"]
    assert main(command) == 0
    assert "ana@example.com" not in page.read_text(encoding="utf-8")
    context = browser.new_context(accept_downloads=True)
    try:
        tab = Tab(context, page.as_uri() + "#q=all&row=1")
        tab.keys("1")
        tab.keys("f")
        tab.type("a fact")
        tab.keys("Control+Enter")
        tab.at(2)
        tab.saved()
        assert "in this browser" in tab.text("#saved")
        tab.until("JSON.stringify(localStorage).includes('a fact')")
        tab.page.reload()
        tab.page.wait_for_selector("#form h2")
        tab.until("JSON.stringify(localStorage).includes('a fact')")
        tab.keys("k")
        tab.at(1)
        tab.until("document.querySelector('#form input').value === 'a fact'")
        assert "+ correctness" in tab.text("#live")
        tab.keys("j", "u")
        tab.at(1)
        tab.keys("Control+Enter")
        tab.at(2)
        tab.page.evaluate("location.hash = '#q=all&row=9'")
        tab.at(9)
        assert tab.page.locator("#answer strong").inner_text() == "Write"
        with tab.page.expect_download() as waiting:
            tab.keys("w")
        journal = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(journal)
        tab.page.evaluate(AXE)
        _is_fine(tab)
        assert tab.trouble == []
        assert {url.split(":")[0] for url in tab.asked} <= {"file", "blob"}
    finally:
        context.close()
    assert journal.name == "rows.jsonl.maria.review.jsonl"
    out = tmp_path / "out.jsonl"
    assert main(["review", path, "--merge", str(journal), "--out", str(out), "--quiet"]) == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert rows[1]["expected_facts"] == ["a fact"]
    assert rows[1]["expected_retrieved_context"] == [{"doc_uri": "a"}]


def test_two_tabs_of_a_bundle_do_not_overwrite_each_other(browser: Any, tmp_path: Path) -> None:
    path = written(tmp_path, ALL)
    page = tmp_path / "review.html"
    assert main(["review", path, "--reviewer", "maria", "--bundle", str(page), "--quiet"]) == 0
    context = browser.new_context(accept_downloads=True)
    try:
        # a tab may be told what another one wrote after its own text was typed
        context.add_init_script("addEventListener('storage', e => window.deaf && e.stopImmediatePropagation())")
        one, other = (Tab(context, page.as_uri() + f"#q=all&row={row}") for row in (0, 1))
        for tab, text in ((one, "said in one"), (other, "said in the other")):
            tab.keys("f")
            tab.type(text)
            tab.keys("Enter")
            tab.saved()
        for tab in (one, other):
            tab.keys("Escape")
        other.keys("k")
        other.at(0)
        other.until("document.querySelector('#form input').value === 'said in one'")
        other.page.evaluate("window.deaf = true")
        for tab, text in ((one, "one"), (other, "other")):
            tab.keys("n")
            tab.type(text)
            tab.keys("Escape")
            other.until("""JSON.stringify(localStorage).includes(String.raw`"new\\":\\"one\\"`)""")
        other.until("document.getElementById('saved').textContent.includes('another window')")
        assert [text in other.text("#form .issue") for text in ("one", "other")] == [True, True]
        other.page.get_by_role("button", name="Keep yours").click()
        other.saved()
        with other.page.expect_download() as waiting:
            other.keys("Escape", "w")
        states = Journal("maria", str(waiting.value.path())).states()
    finally:
        context.close()
    assert sorted(states.values(), key=str) == [
        {"expected_facts": ["said in one"], "note": "other"},
        {"expected_facts": ["said in the other"]},
    ]


def test_what_others_do_to_the_storage_of_a_bundle_loses_nothing(browser: Any, tmp_path: Path) -> None:
    path = written(tmp_path, ALL)
    page = tmp_path / "review.html"
    assert main(["review", path, "--reviewer", "maria", "--bundle", str(page), "--quiet"]) == 0
    context = browser.new_context()
    try:
        tab = Tab(context, page.as_uri() + "#q=all&row=0")
        for key, text in (("f", "a fact"), ("n", "a note")):
            tab.keys(key)
            tab.type(text)
            tab.keys("Enter", "Escape")
            tab.saved()
            tab.page.evaluate("if (!window.cleared) { window.cleared = true; localStorage.clear() }")
        tab.page.reload()
        tab.page.wait_for_selector("#form h2")
        tab.until("document.querySelector('#form input').value === 'a fact'")
        assert tab.page.input_value("#note").strip() == "a note"
        tab.page.evaluate("for (const key of Object.keys(localStorage)) localStorage.setItem(key, '{}')")
        tab.page.reload()
        tab.page.wait_for_selector("#form h2")
        tab.keys("f")
        tab.type("another")
        tab.keys("Enter")
        tab.until("document.getElementById('saved').textContent.includes('keeps nothing for this page')")
        assert not [line for line in tab.trouble if "Error" in line]
    finally:
        context.close()


# --- the whole path of a newcomer
def test_a_newcomer_labels_20_rows_of_the_sample_and_sees_what_it_bought(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [json.loads(line) for line in (SAMPLES / "good.jsonl").read_text(encoding="utf-8").splitlines()]
    asked = [{k: row[k] for k in ("request", "response")} for row in rows if "request" in row and "response" in row]
    plain = [{"request_id": f"{i}", **row} for i, row in enumerate((*asked, *asked, *asked))][:20]
    path = Path(written(tmp_path, plain))
    before = validate_eval_set(str(path))
    process, url = _served(path)
    context = browser.new_context()
    context.tracing.start(screenshots=True)
    try:
        tab = Tab(context, url)
        for _ in range(20):
            row = tab.row()
            tab.page.evaluate("getSelection().selectAllChildren(document.querySelector('#row .turn.asks .text'))")
            tab.keys("f", "Control+Enter")
            tab.until(
                f"!location.hash.endsWith('&row={row}') || /^20 of/.test(document.getElementById('done').innerText)"
            )
        tab.saved()
        tab.keys("w")
        tab.page.wait_for_selector("#out")
        tab.page.get_by_role("button", name="Write", exact=True).click()
        tab.page.wait_for_selector("dialog .good")
        told = tab.text("dialog")
        context.tracing.stop(path=str(tmp_path / "recording.zip"))
    finally:
        context.close()
        process.terminate()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    commands = re.findall(r"^agent-eval-schema (validate|metrics) (\S+)$", told, re.MULTILINE)
    assert [verb for verb, _ in commands] == ["validate", "metrics"]
    out = ROOT / commands[0][1]
    try:
        after = validate_eval_set(str(out))
        assert main(["metrics", str(out)]) == 0
    finally:
        out.unlink()
    shown = capsys.readouterr().out
    assert re.search(r"correctness/rating\W+20 of 20", shown), shown
    names = ("response/llm_judged/correctness/rating",)
    rows_of = [r.metrics.set_index("metric")["supported"][names[0]] for r in (before, after)]
    assert rows_of == [0, 20]
    assert (tmp_path / "recording.zip").stat().st_size  # `playwright show-trace` plays it


# --- each queue asks its question first
def test_a_second_choice_replaces_the_first(reviewing: Callable[..., Review], open_tab: Callable[..., Tab]) -> None:
    rows = [{"request": "Who?", "response": "x", "expected_facts": [f"fact {i}"]} for i in range(12)]
    review = reviewing(rows, queue="conflicts")
    tab = open_tab(review.url)
    assert tab.page.locator(".side .box").count() == 12
    assert tab.page.locator(".side mark").all_inner_texts() == [f"{i}" for i in range(12)]
    tab.keys("1")
    tab.until("document.getElementById('done').textContent === '1 of 1'")
    assert review.rows()["expected_facts"].tolist() == [["fact 0"]] * 12
    tab.keys("2")
    tab.saved()
    assert review.rows()["expected_facts"].tolist() == [["fact 1"]] * 12
    tab.keys("b")
    tab.saved()
    assert review.rows()["expected_facts"].tolist() == [[f"fact {i}" for i in range(12)]] * 12
    tab.keys("u", "u", "u")
    tab.until("document.getElementById('done').textContent === '0 of 1'")
    assert review.rows()["expected_facts"].tolist() == [[f"fact {i}"] for i in range(12)]


LONG = "# Fees\n\n" + "\n\n".join(f"Paragraph **{i}**" for i in range(80))


def test_what_is_to_be_decided_is_on_the_screen(
    reviewing: Callable[..., Review], open_tab: Callable[..., Tab], tmp_path: Path
) -> None:
    (tmp_path / "guide.md").write_text("One **fact** per line.", encoding="utf-8")
    fix = {"request": {"messages": [{"role": "human", "content": "A"}]}, "response": LONG}
    wrong = {"request": "B", "response": LONG, "expected_facts": {"a": "16 weeks"}}
    review = reviewing([fix, wrong], guide=tmp_path / "guide.md")
    tab = open_tab(review.url + "&q=fixes&row=0", viewport={"width": 1440, "height": 700})
    tab.at(0)
    assert tab.page.locator("#guide strong").inner_text() == "fact"
    assert tab.page.get_by_role("button", name="Accept", exact=True).bounding_box()["y"] < 400
    tab.page.evaluate("location.hash = location.hash.replace(/&q=.*/, '') + '&q=errors&row=1'")
    tab.until("document.querySelector('.question').textContent.includes('AE303')")
    assert tab.page.get_by_label("one fact, then Enter").input_value() == '{"a":"16 weeks"}'
    assert tab.page.locator("#answer strong").count() == 80
    tab.keys("End")
    tab.until("document.getElementById('row').scrollTop > 500")
    tab.keys("m")
    tab.until("document.getElementById('answer').textContent.startsWith('# Fees')")
    tab.page.get_by_role("button", name="wrong").click()
    tab.page.get_by_label("reason of the rating").fill("nobody asked")
    tab.page.get_by_label("one fact, then Enter").fill("16 weeks")
    tab.keys("Control+Enter")
    tab.until("document.getElementById('done').textContent === '1 of 1'")
    tab.saved()
    assert states(review)[1] == {
        "rating": "wrong", "reason": "nobody asked", "expected_facts": ["16 weeks"], "status": "submitted",
    }  # fmt: skip
    assert tab.trouble == []


def test_30_rows_by_touch_on_a_phone(reviewing: Callable[..., Review], browser: Any) -> None:
    rows = [{"request_id": f"{i}", "request": f"Question {i}?", "response": LONG} for i in range(30)]
    review = reviewing(rows)
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    try:
        tab = Tab(context, review.url)
        for i in range(30):
            tab.at(i)
            tab.until("(b => b.top >= 0 && b.bottom < 400)(document.querySelector('.asks').getBoundingClientRect())")
            tab.page.get_by_label("one fact, then Enter").fill(f"fact {i}")
            tab.page.get_by_role("button", name="Submit, next").tap()
        tab.saved()
        assert [states(review)[i] for i in range(30)] == [
            {"expected_facts": [f"fact {i}"], "status": "submitted"} for i in range(30)
        ]
        tab.page.get_by_role("button", name="Rows", exact=True).tap()
        tab.page.locator("#list .item >> nth=1").tap()
        tab.until("!document.body.classList.contains('rows')")
        tab.page.get_by_role("button", name="all keys").tap()
        tab.page.get_by_role("button", name="undo the last step").tap()
        tab.until("document.getElementById('done').textContent === '29 of 30'")
        assert tab.trouble == []
    finally:
        context.close()


def test_a_document_with_any_name_can_be_marked(reviewing: Callable[..., Review], open_tab: Callable[..., Tab]) -> None:
    documents = [{"doc_uri": uri, "content": "A"} for uri in ("__proto__", "constructor")]
    review = reviewing([{"request": "Which?", "response": "x", "retrieved_context": documents}])
    tab = open_tab(review.url)
    tab.keys("1", "2", "2")
    tab.saved()
    assert states(review)[0] == {"documents": {"__proto__": True, "constructor": False}}
    tab.keys("1", "1", "2")
    tab.saved()
    assert states(review)[0] == {"documents": {}}


def test_a_document_without_a_uri_is_shown_and_cannot_be_marked(
    reviewing: Callable[..., Review], open_tab: Callable[..., Tab]
) -> None:
    """As the retrievers of many applications return documents: it could not be expected by any name."""
    documents = [{"page_content": "A"}, {"page_content": "B"}, {"page_content": "C", "metadata": {"doc_uri": "c"}}]
    spans = span(inputs={"query": "Hi"}, outputs="Ho"), span("2", "1", "RETRIEVER", outputs=documents)
    review = reviewing([{"request_id": "1", "trace": trace(*spans)}])
    tab = open_tab(review.url)
    assert tab.text("#row").count("no doc_uri: it cannot be expected") == 2
    tab.keys("1", "2")
    tab.saved()
    assert states(review)[0] == {"documents": {"c": True}}
    assert tab.trouble == []


def test_a_wrong_value_is_marked_and_corrected_in_its_own_field(
    reviewing: Callable[..., Review], open_tab: Callable[..., Tab]
) -> None:
    rows = [
        {"request": "A", "response": "x", "expected_facts": ["16 weeks", {"a": 3}], "guidelines": ["Be kind"]},
        {"request": "B", "response": "x", "expected_response": {"a": "It is paid"}},
        {"request": "C", "response": "x", "expected_facts": ["kept", {"a": 4}]},
        {"request": "D", "response": "x", "expected_facts": {"a": "not looked at"}},
    ]
    review = reviewing(rows, queue="errors")
    tab = open_tab(review.url)
    assert tab.text(".question mark") == '{"a": 3}'
    values = "[...document.querySelectorAll('#form input')].map(e => e.value)"
    assert tab.page.evaluate(values) == ["16 weeks", '{"a":3}', "Be kind", "", "", ""]
    tab.page.get_by_label("one fact, then Enter").fill("paid in full")
    tab.keys("Control+Enter")
    tab.at(1)
    assert tab.page.input_value("#response") == '{"a":"It is paid"}'
    tab.page.fill("#response", "It is paid")
    tab.keys("Control+Enter")
    tab.at(2)
    tab.page.get_by_label("one fact, then Enter").fill("")
    tab.keys("Control+Enter")
    tab.at(3)
    tab.keys("Control+Enter")  # an object is taken for a fact only if a person enters it
    tab.until("document.getElementById('done').textContent === '3 of 4'")
    tab.saved()
    assert [{k: v for k, v in states(review)[i].items() if k != "status"} for i in range(4)] == [
        {"expected_facts": ["16 weeks", "paid in full"]}, {"expected_response": "It is paid"},
        {"expected_facts": ["kept"]}, {},
    ]  # fmt: skip
    assert tab.trouble == []


def test_a_row_that_changed_shows_what_changed(reviewing: Callable[..., Review], open_tab: Callable[..., Tab]) -> None:
    first = reviewing()
    steps = [{"row": 1, "path": "expected_facts", "new": ["f"]}, {"row": 1, "path": "status", "new": "submitted"}]
    first._session.apply(steps)
    first.stop()
    review = reviewing([ALL[0], {**ALL[1], "response": "It is 18 weeks."}], queue="changed")
    tab = open_tab(review.url)
    tab.at(1)
    assert tab.text(".question").split("\n")[1:4] == ["response", "x", "It is 18 weeks."]
    assert tab.page.locator(".question del, .question ins").count() == 2
    assert tab.text("#done") == "0 of 1"
    tab.keys("Control+Enter")
    tab.until("document.getElementById('done').textContent === '1 of 1'")
    tab.saved()
    assert states(review)[1] == {"expected_facts": ["f"], "status": "submitted"}
    tab.keys(".")
    tab.until("document.getElementById('queues').textContent.includes('Changed since your label 0')")


def test_together_shows_the_labels_of_others_first(
    reviewing: Callable[..., Review], open_tab: Callable[..., Tab], tmp_path: Path
) -> None:
    (tmp_path / "rows.jsonl.jonas.review.jsonl").write_bytes(_lines(labeled("jonas", {1: {"a": True}})))
    review = reviewing()
    tab = open_tab(review.url + "&q=all&row=1")
    assert "jonas" not in tab.text("#row")
    tab.keys("2", "Control+Enter")
    tab.at(2)
    tab.saved()
    tab.keys(".")
    tab.page.get_by_role("button", name="Decide together").click()
    tab.at(1)
    assert tab.text(".question").split("\n")[:2] == ["What others decided", "jonas"]
    assert tab.text("#done") == "0 of 1"
    tab.page.get_by_role("button", name="Take over").click()
    tab.keys("y")
    tab.saved()
    assert (states(review)[1]["documents"], states(review)[1]["decided"]) == ({"a": True}, True)
    assert tab.text("#done") == "1 of 1"


def test_writing_shows_how_far_it_is(
    reviewing: Callable[..., Review], open_tab: Callable[..., Tab], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen = threading.Event()

    def slow(self: Reviewing, path: str) -> None:
        monkeypatch.setattr("agent_eval_schema.runtime.progress.PATIENCE", 0)
        with progress(lambda _: 0.4) as so_far:
            so_far.add(4)
            assert seen.wait(20)
        write(self, path)

    write = Reviewing.write
    monkeypatch.setattr(Reviewing, "write", slow)
    tab = open_tab(reviewing().url)
    tab.keys("w")
    tab.page.wait_for_selector("#out")
    tab.page.fill("#out", str(tmp_path / "out.jsonl"))
    tab.page.get_by_role("button", name="Write", exact=True).click()
    tab.until("document.querySelector('dialog progress')?.value === 0.4")
    assert "Writing … 40%, 4 rows" in tab.text("dialog")
    seen.set()
    tab.page.wait_for_selector("dialog .good")
    assert tab.page.locator("dialog progress").count() == 0
    assert tab.trouble == []


def test_facts_and_guidelines_of_other_rows_are_offered(
    reviewing: Callable[..., Review], open_tab: Callable[..., Tab]
) -> None:
    tab = open_tab(reviewing().url + "&q=all&row=0")
    options = "[...document.querySelectorAll('#facts option')].map(e => e.value).sort()"
    assert tab.page.evaluate(options) == ["f", "g"]  # of the file
    tab.keys("f")
    tab.type("16 weeks")
    tab.keys("Enter", "Escape", "g")
    tab.type("Be kind")
    tab.keys("Enter", "Control+Enter")
    tab.at(1)
    assert tab.page.evaluate(options) == ["16 weeks", "f", "g"]
    tab.page.get_by_role("button", name="Be kind").click()
    tab.saved()
    tab.page.reload()
    tab.page.wait_for_selector("#form h2")
    assert tab.page.input_value("[aria-label='guidelines 1']") == "Be kind"
    assert tab.page.evaluate(options) == ["16 weeks", "f", "g"]


# --- for the expert
def test_an_expert_sees_everything_of_a_row(reviewing: Callable[..., Review], open_tab: Callable[..., Tab]) -> None:
    pixel = "data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=="
    content = [{"type": "text", "text": "And *this*?"}, {"type": "image_url", "image_url": {"url": pixel}}]
    said = [("user", "Hello"), ("assistant", "- one\n- two"), ("user", content)]
    deep = {"filters": [{"field": f"f{i}", "value": "x" * 90} for i in range(30)]}
    row = {
        "request": {"messages": [{"role": role, "content": text} for role, text in said]},
        "response": "| a | b |\n|---|---|\n| 1 | 2 |\n\nfirst line\nsecond line",
        "predicted_trajectory": [{"tool_name": "search", "tool_input": deep}],
    }
    review = reviewing([row, ALL[0]])
    tab = open_tab(f"{review.url}&q=all&row=0", viewport={"width": 1440, "height": 500})
    assert tab.text("#list .item >> nth=0").startswith("And *this*?")
    assert tab.text("#row .turn li >> nth=1") == "two"
    assert tab.page.locator("#answer td").all_inner_texts() == ["1", "2"]
    assert tab.page.evaluate("document.querySelector('#row .turn img').naturalWidth") == 1
    for key, test in (
        ("PageDown", "> 100"),
        ("End", "> 1000"),
        ("Home", "=== 0"),
        ("Space", "> 100"),
        ("ArrowUp", "> 0"),
    ):
        tab.keys(key)
        tab.until(f"document.getElementById('row').scrollTop {test}")
    tab.keys("c")
    given = tab.page.get_by_label("arguments of call 1")
    assert json.loads(given.input_value()) == deep
    font, hidden = "e => getComputedStyle(e).fontFamily", "e => e.scrollHeight - e.clientHeight"
    assert "monospace" in given.evaluate(font)
    assert given.evaluate(hidden) <= 2
    tab.page.fill("#note", "a line\n" * 20)
    assert tab.page.locator("#note").evaluate(hidden) <= 2
    tab.keys("Escape")
    tab.page.evaluate("getSelection().selectAllChildren(document.querySelector('#answer p'))")
    tab.keys("f")
    tab.saved()
    assert states(review)[0]["expected_facts"] == ["first line\nsecond line"]
    assert tab.page.input_value("#form textarea >> nth=0") == "first line\nsecond line"
    assert tab.trouble == []


def test_the_error_of_a_step_that_failed_is_shown(open_tab: Callable[..., Tab], tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_bytes((SAMPLES / "search_traces.jsonl").read_bytes())
    review = review_eval_set(path, reviewer="maria")
    try:
        found = [review._session.detail(row) for row in range(6)]
        row, error = next((d["n"], step[-1]) for d in found for step in d["steps"] if step[-1])
        tab = open_tab(f"{review.url}&q=all&row={row}")
        assert error in tab.text("#row .span[open] .error.text")
    finally:
        review.stop()


def test_what_each_key_does_has_a_button(reviewing: Callable[..., Review], browser: Any, tmp_path: Path) -> None:
    """On a phone, in the sheet of the keys; marks of documents and choices have buttons of their own."""
    (tmp_path / "rows.jsonl.jonas.review.jsonl").write_bytes(_lines(labeled("jonas", {1: {"a": True}, 5: {"a": True}})))
    review = reviewing()
    review._session.apply([{"row": 5, "path": "status", "new": "submitted"}])
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    without: list[set[str]] = []
    try:
        for place in ("q=all&row=1", "q=all&row=5", "q=conflicts&row=2", "q=all&row=8"):
            tab = Tab(context, f"{review.url}&{place}")
            tab.page.get_by_role("button", name="all keys").tap()
            lines = tab.page.locator("dialog tr").filter(has_not=tab.page.locator("button"))
            without.append({line.split("\t")[0] for line in lines.all_inner_texts()})
            tab.page.close()
    finally:
        context.close()
    assert set.intersection(*without) <= {"1–9", "M"}


# --- two people on one file, and rows that are the same
def _write_with(tab: Tab, out: Path) -> None:
    tab.keys("Escape", "w")
    tab.page.wait_for_selector("#out")
    tab.page.fill("#out", str(out))
    tab.page.get_by_role("button", name="Write", exact=True).click()
    tab.page.wait_for_selector("dialog .good")


def test_two_reviewers_in_one_folder_each_get_what_they_were_promised(
    open_tab: Callable[..., Tab], tmp_path: Path
) -> None:
    path, names = written(tmp_path, ALL), ("ana@example.com", "bob@example.com")
    running = [review_eval_set(path, reviewer=name) for name in names]
    tabs = [open_tab(review.url + "&q=all&row=0") for review in running]
    for tab, name in zip(tabs, names, strict=True):
        tab.keys("f")
        tab.type(f"said by {name}")
        tab.keys("Enter")
        tab.saved()
    ana, bob = tabs
    ana.page.reload()
    ana.page.wait_for_selector("#form h2")
    assert "said by bob" not in ana.text("body")  # nor before it is submitted
    for tab in tabs:
        tab.keys("Control+Enter")
        tab.at(1)
        tab.saved()
    ana.keys("k")
    ana.at(0)
    ana.until("document.getElementById('row').textContent.includes('said by bob')")
    for tab, name in zip(tabs, names, strict=True):
        _write_with(tab, tmp_path / f"{name}.jsonl")
        rows = [json.loads(line) for line in (tmp_path / f"{name}.jsonl").read_text().splitlines()]
        assert (len(rows), rows[0]["expected_facts"]) == (len(ALL), [f"said by {name}"])
        tab.keys("Escape")
    bob.keys("w")
    bob.page.wait_for_selector("#out")
    bob.page.get_by_role("button", name="What all 2 reviewers agree on").click()
    bob.until("document.querySelector('dialog').textContent.includes('1 row excluded: the reviewers differ')")
    assert [tab.trouble for tab in tabs] == [[], []]
    for review in running:
        review.stop()


def test_exact_copies_are_labeled_and_dropped_one_by_one(
    reviewing: Callable[..., Review], open_tab: Callable[..., Tab], tmp_path: Path
) -> None:
    copy = {"request": "The same?", "response": "x"}
    tab = open_tab(reviewing([copy, copy, {"request": "Another?", "response": "x"}, copy]).url + "&q=all&row=0")
    tab.keys("f")
    tab.type("of the first")
    tab.keys("Control+Enter")
    tab.at(1)
    tab.keys("d", "j", "j")
    tab.at(3)
    tab.keys("f")
    tab.type("of the last")
    tab.keys("Control+Enter")
    tab.saved()
    _write_with(tab, tmp_path / "out.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    facts = {"expected_facts": ["of the first"]}, {"expected_facts": ["of the last"]}
    assert rows == [{**copy, **facts[0]}, {"request": "Another?", "response": "x"}, {**copy, **facts[1]}]
