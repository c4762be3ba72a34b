"""The report in a real browser: nothing runs but the one script of ours, nothing is loaded, everything can be read,
reached and printed.
"""

import json
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema import (
    CustomMetric,
    EvalTask,
    convert_eval_set,
    diff_eval_sets,
    eval_set_from_inference_table,
    profile_eval_set,
    score_trajectories,
    validate_eval_set,
)
from agent_eval_schema.rules import RULES
from tests.conftest import DATA, PATIENCE, ROOT, SAMPLES
from tests.evaluation.test_result import hostile_result
from tests.evaluation.test_task import PROMPTS, agent
from tests.render.report.test_html import HOSTILE, hostile_rows
from tests.render.results import comparison
from tests.render.test_saved_forms import RESULTS

WHITE, BLACK = "rgb(255, 255, 255)", "rgb(15, 20, 25)"

TEMPLATES = ROOT / "agent_eval_schema" / "render" / "templates"
SCRIPT = "".join((TEMPLATES / name).read_text(encoding="utf-8") for name in ("row.js", "page.js"))

AXE = (DATA / "axe" / "axe.min.js").read_text(encoding="utf-8")

ELSEWHERE = tempfile.TemporaryDirectory()
LONG = Path(ELSEWHERE.name) / ("samples_in_a_folder_whose_name_fits_into_no_line_" * 3)
"""The samples: a page names its data in words of any length, also where the folder of the tests has a short name."""
LONG.symlink_to(SAMPLES)


class Visit:
    """A page that was opened, with what it asked for, wrote to the console and popped up."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.page = browser.new_page(**options)
        self.requests: list[str] = []
        self.trouble: list[str] = []
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.refused: list[str] = []
        self.page.on("requestfailed", lambda r: self.refused.append(r.failure))
        self.page.on("console", lambda m: self.trouble.append(m.text))
        self.page.on("pageerror", lambda e: self.trouble.append(str(e)))
        self.page.on("dialog", lambda d: (self.trouble.append(d.message), d.dismiss()))
        self.page.goto(path.as_uri())
        self.page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
        self.page.wait_for_timeout(50)
        self.at_home = self.requests == [path.as_uri()]


def saved(folder: Path, text: str) -> Path:
    path = folder / "report.html"
    path.write_text(text, encoding="utf-8")
    return path


def together() -> list[dict[str, Any]]:
    """Rows that have several issues each."""
    messages = {"messages": [{"role": "usr", "content": "a"}]}
    return [{"request_id": "same", "request": messages, "expected_facts": "b"} for _ in range(10)]


def large_diff() -> Any:
    sides = ([{"request_id": f"{i}", "request": f"q{i}", "response": end} for i in range(5_000)] for end in "xy")
    return diff_eval_sets(*sides)


def build() -> Any:
    pytest.importorskip("duckdb")
    path = LONG / "inference_table.jsonl"
    return eval_set_from_inference_table(path, sample=9, stratify="day", redact="default")


def history() -> Any:
    """Three runs of a metric with a long name, of which the last is significantly better."""
    metric = CustomMetric("answers_in_the_language_of_the_question", lambda row: row["score"], scale=(0.0, 1.0))
    runs = [[float(i % 3 == 0) for i in range(30)], [float(i % 3 == 1) for i in range(30)], [1.0] * 30]
    rows = [[{"prompt": f"question {i}", "score": score} for i, score in enumerate(scores)] for scores in runs]
    first, *others = (EvalTask(of, [metric]).evaluate() for of in rows)
    return first.compare(*others)


def repeated() -> Any:
    """Questions that repeat, contradict each other, and are enough for the curve of a metric with a long name."""
    documents = [{"doc_uri": "a.md", "content": "b"}]
    rows = [
        {"request_id": f"{i}", "request": f"Where is number {i % 40}?", "retrieved_context": documents, "response": "a"}
        | ({"expected_response": f"{i}"} if i % 2 else {})
        for i in range(60)
    ]
    return profile_eval_set(rows, near=1)


PAGES: dict[str, Callable[[], str]] = {
    "broken": lambda: validate_eval_set(LONG / "broken.jsonl").to_html(),
    "good": lambda: validate_eval_set(LONG / "good.jsonl").to_html(),
    "hostile": lambda: validate_eval_set(hostile_rows()).to_html(),
    "issues that occur together": lambda: validate_eval_set(together()).to_html(),
    "no rows": lambda: validate_eval_set([]).to_html(),
    "diff": lambda: diff_eval_sets(LONG / "good.jsonl", LONG / "edited_broken.jsonl").to_html(),
    "diff of 5,000 rows": lambda: large_diff().to_html(),
    "build": lambda: build().to_html(),
    "conversion": lambda: convert_eval_set(LONG / "broken.jsonl", "ragas").to_html(),
    "profile": lambda: profile_eval_set(LONG / "good.jsonl").to_html(),
    "profile of repeated questions": lambda: repeated().to_html(),
    "profile of invalid rows": lambda: profile_eval_set(LONG / "broken.jsonl").to_html(),
    "result": lambda: EvalTask(PROMPTS * 3, ["trajectory_recall", "trajectory_precision"]).evaluate(agent).to_html(),
    "result with gaps": lambda: score_trajectories(LONG / "vertex_broken.jsonl").to_html(),
    "comparison": lambda: comparison([text.encode("utf-8", "replace").decode() for text in HOSTILE]).to_html(),
    "history": lambda: history().to_html(),
    "hostile result": lambda: hostile_result().to_html(),
    "hostile diff": lambda: diff_eval_sets(hostile_rows()[:30], hostile_rows()[8:]).to_html(),
    "hostile conversion": lambda: RESULTS["Conversion"]().to_html(),
    "hostile profile": lambda: RESULTS["Profile"]().to_html(),
    "hostile scores": lambda: RESULTS["EvalResult of MLflow"]().to_html(),
}


@cache
def page_text(kind: str) -> str:
    return PAGES[kind]()


@pytest.fixture(params=PAGES)
def report_path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return saved(tmp_path, page_text(request.param))


def test_nothing_runs_and_nothing_is_loaded(browser: Any, report_path: Path) -> None:
    visit = Visit(browser, report_path)
    assert visit.trouble == []
    assert visit.at_home
    assert visit.page.evaluate("window.pwned") is None
    assert visit.page.locator("img, iframe, link, object, form, script[src]").count() == 0
    scripts = visit.page.locator("script").all_text_contents()
    assert len(scripts) in (0, 1, 2)
    assert not scripts or scripts[-1] == SCRIPT
    assert all(json.loads(text) for text in scripts[:-1])
    documented = {rule.url for rule in RULES.values()}  # followed only by a click
    links = visit.page.locator("a:not([href^='#'], [download])").all()
    assert {link.get_attribute("href") for link in links} <= documented
    assert visit.page.locator("main").count() == 1
    assert visit.page.locator("footer").is_visible()  # no cell closed the page early, and no style hid it


def test_a_page_that_did_not_escape_would_be_noticed(browser: Any, tmp_path: Path) -> None:
    unsafe = "<!doctype html><body>" + "".join(HOSTILE[:-1])
    visit = Visit(browser, saved(tmp_path, unsafe.encode("utf-8", "replace").decode()))
    assert visit.page.evaluate("window.pwned") == 1
    assert not visit.at_home


def test_the_policy_of_the_page_stops_what_slips_through(browser: Any, tmp_path: Path) -> None:
    page = validate_eval_set([{"request": "a", "response": "b"}]).to_html()
    injected = page.replace("</main>", "".join(HOSTILE[:3]) + "<img src='http://example.invalid/x'></main>")
    visit = Visit(browser, saved(tmp_path, injected))
    assert visit.page.evaluate("window.pwned") is None
    tried = [r for r in visit.requests if r.startswith("http")]
    assert tried
    assert visit.refused == ["csp"] * len(visit.refused)
    assert len(visit.refused) >= len(tried)


def test_hostile_text_is_shown_as_it_is(browser: Any, tmp_path: Path) -> None:
    row = {"request": "a", "response": "b", "expected_facts": HOSTILE[0]}
    visit = Visit(browser, saved(tmp_path, validate_eval_set([row]).to_html()))
    assert visit.page.locator("mark").first.inner_text() == HOSTILE[0]


def test_it_has_a_title_landmarks_and_named_pictures(browser: Any, report_path: Path) -> None:
    page = Visit(browser, report_path).page
    assert page.title()
    assert page.locator("html").get_attribute("lang") == "en"
    for role in ("main", "region", "heading"):
        assert page.get_by_role(role).count() >= 1
    assert page.get_by_role("navigation", name="Parts of this").count() == 1
    assert page.locator("h1").count() == 1
    assert page.locator("svg:not([aria-label]), [role=img]:not([aria-label])").count() == 0
    assert page.locator("th:not([scope])").count() == 0
    for link in page.locator("nav a").all():
        assert page.locator(str(link.get_attribute("href"))).count() == 1


CONTRAST = """() => {
  const channel = c => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4 };
  const parse = s => s.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const ground = e => {
    const own = e && parse(getComputedStyle(e).backgroundColor);
    return !e ? [255, 255, 255] : own.length === 3 || own[3] === 1 ? own : ground(e.parentElement);
  };
  const poor = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || ['STYLE', 'TITLE', 'SCRIPT', 'title'].includes(e.tagName)) continue;
    const style = getComputedStyle(e);
    const [a, b] = [light(parse(e.closest('svg') ? style.fill : style.color)), light(ground(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    seen++;
    if (ratio < 4.5) poor.push([e.tagName, e.className, walker.currentNode.data.trim().slice(0, 30), ratio.toFixed(2)]);
  }
  return {seen, poor};
}"""


LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "media": "screen"},
    "dark": {"color_scheme": "dark", "media": "screen"},
    "print": {"color_scheme": "dark", "media": "print"},  # by somebody who reads in dark
}


AXE_FINDS = """() => axe.run(document, {resultTypes: ['violations'], preload: false}).then(found => ({
  passes: found.passes.length,
  violations: found.violations.map(v => [v.id, v.nodes.slice(0, 3).map(n => n.html.slice(0, 200))]),
}))"""


def test_everything_can_be_read(browser: Any, report_path: Path) -> None:
    """At every width nothing sticks out, and in each look the contrast is enough; axe finds nothing."""
    page = Visit(browser, report_path, bypass_csp=True).page
    page.evaluate("const row = document.querySelector('#rowlist a'); if (row) location.hash = row.hash")
    page.evaluate(AXE)
    for width in (1440, 768, 390):
        page.set_viewport_size({"width": width, "height": 800})
        for look, media in LOOKS.items():
            page.emulate_media(**media)
            try:  # a loaded machine lays the page out a moment later
                page.wait_for_function(f"document.documentElement.scrollWidth <= {width}", timeout=1000 * PATIENCE)
            except Exception:
                pytest.fail(f"{page.evaluate('document.documentElement.scrollWidth')} wide at {width}, {look}")
            found = page.evaluate(CONTRAST)
            assert found["seen"] > 10
            assert found["poor"] == [], (width, look)
        page.emulate_media(**LOOKS["light"])
        found = page.evaluate(AXE_FINDS)
        assert found["passes"] > 10
        assert found["violations"] == [], width


def test_dark_is_dark(browser: Any, tmp_path: Path) -> None:
    path = saved(tmp_path, validate_eval_set([{"request": "a", "response": "b"}]).to_html())
    shades = [
        Visit(browser, path, color_scheme=s).page.evaluate("getComputedStyle(document.body).backgroundColor")
        for s in ("light", "dark")
    ]
    assert shades == [WHITE, BLACK]


NAMED: dict[str, Callable[[Path, Path], str]] = {
    "report": lambda one, other: validate_eval_set(one).to_html(),  # noqa: ARG005
    "diff": lambda one, other: diff_eval_sets(one, other).to_html(),
}


@pytest.mark.parametrize("page", NAMED)
def test_a_long_path_is_broken(browser: Any, tmp_path: Path, page: str) -> None:
    folder = tmp_path / ("W" * 80)
    folder.mkdir()
    files = [Path(shutil.copy(LONG / name, folder)) for name in ("good.jsonl", "edited_broken.jsonl")]
    shown = Visit(browser, saved(tmp_path, NAMED[page](*files)), viewport={"width": 390, "height": 800}).page
    assert "W" * 80 in shown.locator("main").text_content()
    assert shown.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_keyboard_reaches_and_opens_everything(browser: Any, report_path: Path) -> None:
    page = Visit(browser, report_path).page
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = false })")
    reached = 0
    for stops in range(1000):  # noqa: B007
        page.keyboard.press("Tab")
        at = page.evaluate("document.activeElement.tagName")
        if at == "BODY":
            break
        if at == "SUMMARY":
            reached += 1
            page.keyboard.press("Enter")
            assert page.evaluate("document.activeElement.parentElement.open")
    assert reached == page.locator("summary:visible").count()
    assert stops > 1


def test_print_shows_what_is_folded(browser: Any, tmp_path: Path) -> None:
    page = Visit(browser, saved(tmp_path, validate_eval_set(LONG / "broken.jsonl").to_html())).page
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = false })")
    page.emulate_media(media="print")
    heights = [e.bounding_box()["height"] for e in page.locator("details:not(.columns) > div").all()]
    assert len(heights) > 20
    assert min(heights) > 10


@pytest.mark.parametrize(("theme", "system", "ground"), [("true", "dark", WHITE), ("false", "light", BLACK)])
def test_inline_follows_the_theme_of_the_notebook(
    browser: Any, tmp_path: Path, theme: str, system: str, ground: str
) -> None:
    inline = validate_eval_set(LONG / "broken.jsonl")._repr_html_()
    notebook = f'<!doctype html><body data-jp-theme-light="{theme}"><p id="other">x</p>{inline}{inline}'
    visit = Visit(browser, saved(tmp_path, notebook), color_scheme=system)
    assert visit.trouble == []
    assert visit.page.evaluate("getComputedStyle(document.querySelector('.aes')).backgroundColor") == ground
    assert visit.page.evaluate(CONTRAST)["poor"] == []
    # its style is its own: the rest of the notebook looks as before
    assert visit.page.evaluate("getComputedStyle(document.getElementById('other')).fontSize") == "16px"


def test_the_page_of_a_build(browser: Any, tmp_path: Path) -> None:
    """The funnel and the report on the rows, in one page."""
    text = Visit(browser, saved(tmp_path, page_text("build"))).page.inner_text("body")
    for said in (build().summary.funnel, "feedback request for another row", "2026-11-17", "9 with seed 0"):
        assert said in text


FIRST_SCREEN: dict[str, tuple[str, str]] = {
    "build": ("✓ 9 rows of 27 logged: 9 valid, 3 with expected_response", "review_eval_set(build.rows)"),
    "result": ("⚠ 3 of 9 calls failed (rows 2, 5, 8); 6 of 9 rows scored: trajectory_recall 0.75", "row 2"),
    "result with gaps": (
        "⚠ 2 of 4 rows scored; 2 unreadable: trajectory_exact_match 0.5",
        "agent-eval-schema validate",
    ),
    "hostile scores": ("⚠", "row 0"),
    "comparison": (
        "⚠ 2 scores lower, 0 higher",
        "row <script>",
    ),
    "history": ("✓ 3 runs of 30 rows: answers_in_the_language_of_the_question significantly higher", "row 0"),
    "conversion": (
        "10 of 37 rows converted, 47 losses; ground truth lost or changed: expected_facts, guidelines",
        "validate",
    ),
    "profile": ("12 distinct questions in 12 valid rows", "agent-eval-schema from-inference-table --help"),
    "profile of invalid rows": ("⚠ 14 distinct questions in 14 valid rows; 23 invalid", "agent-eval-schema validate"),
    "broken": ("✗ 23 of 37 rows cannot be evaluated (62%)", "agent-eval-schema validate"),
}
"""Per page its verdict, and the first thing to do."""


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("kind", FIRST_SCREEN)
def test_the_first_screen_has_the_verdict_and_the_first_action(
    browser: Any, tmp_path: Path, kind: str, width: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(saved(tmp_path, page_text(kind)).as_uri())
    verdict, action = FIRST_SCREEN[kind]
    title, first = page.locator("h1"), page.locator(".start code, .start a, #next ~ ol li").first
    assert verdict in title.inner_text()
    assert action in first.inner_text()
    for shown in (title, first):
        box = shown.bounding_box()
        assert box["y"] + box["height"] <= 900


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("kind", ["broken", "diff", "comparison", "history", "result", "profile of repeated questions"])
def test_a_row_opens_alike_on_every_page(browser: Any, tmp_path: Path, kind: str, width: int) -> None:
    """The address opens it, J and K step, Back returns, and its parts are those of the one component."""
    visit = Visit(browser, saved(tmp_path, page_text(kind)), viewport={"width": width, "height": 900})
    page = visit.page
    page.locator("#rowlist tbody a").first.dispatch_event("click")  # the list of columns is over it
    page.wait_for_selector("#row:not([hidden]) .tools")
    opened = page.evaluate("location.hash")
    first = page.locator("#row .tools b").inner_text()
    page.locator("#row").press("j")
    page.wait_for_function(
        "was => document.querySelector('#row .tools b').innerText + location.hash !== was", arg=first + opened
    )
    page.locator("#row").press("k")
    page.wait_for_function(
        "was => document.querySelector('#row .tools b').innerText + location.hash === was", arg=first + opened
    )
    assert page.locator("#row .turn").count() >= 1 or page.locator("#row .found").count() >= 1
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.go_back()
    page.wait_for_function("location.hash === ''")
    page.goto(page.url.partition("#")[0] + opened)
    page.wait_for_selector("#row:not([hidden])")
    assert page.locator("#row .tools b").inner_text() == first
    assert visit.trouble == []


def test_the_rules_of_the_documentation_fit_a_phone(browser: Any, tmp_path: Path) -> None:
    """With the style of the site, whose theme is not loaded: each rule is a block, and a filter hides it."""
    style = (ROOT / "docs" / "_static" / "site.css").read_text(encoding="utf-8")
    rows = "".join(
        f"<tr{hidden}><td><p>{rule.code}</p></td><td><p><code>{rule.name}</code></p></td><td><p>{rule.severity}</p></td>"
        f"<td><p>yes</p></td><td><p>{rule.summary}</p></td></tr>"
        for rule, hidden in zip(list(RULES.values())[:3], ("", "", " hidden"), strict=True)
    )
    text = f'<style>{style}</style><div class="filterable"><table class="table"><tbody>{rows}</tbody></table></div>'
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(saved(tmp_path, f"<!doctype html>{text}").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    shown = page.locator("tr:visible")
    assert shown.count() == 2
    for row in shown.all():
        assert row.locator("td").last.bounding_box()["width"] > 300  # the summary has the whole width
        assert len({cell.bounding_box()["y"] for cell in row.locator("td").all()}) <= 3
