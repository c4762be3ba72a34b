"""Results in notebooks as they are: nbconvert's own JupyterLab page in Chromium, trusted, and with `<style>` stripped
as in an untrusted notebook and in GitHub's viewer. What is measured: alignment, stripes, colors, bars."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent_eval_schema import (
    convert_eval_set,
    diff_eval_sets,
    eval_set_from_inference_table,
    profile_eval_set,
    supported_scorers,
    validate_eval_set,
)
from agent_eval_schema.integrations.mlflow.datasets import Excluded, WrittenDataset
from tests.conftest import ROOT, SAMPLES
from tests.render.report.test_html import ALLOWED, HOSTILE, Tags
from tests.render.results import comparison, task
from tests.render.test_page import AXE, CONTRAST
from tests.render.test_saved_forms import scored

RESULTS: dict[str, Callable[[], Any]] = {
    "report": lambda: validate_eval_set(SAMPLES / "broken.jsonl"),
    "diff": lambda: diff_eval_sets(SAMPLES / "good.jsonl", SAMPLES / "edited_broken.jsonl"),
    "conversion": lambda: convert_eval_set(SAMPLES / "broken.jsonl", "ragas"),
    "scores": lambda: scored(["a", "b"]),
    "result": lambda: task(["a", "b"]).evaluate(),
    "comparison": lambda: comparison(["a", "b"]),
    "supported scorers": lambda: supported_scorers(SAMPLES / "good.jsonl"),
    "written dataset": lambda: WrittenDataset(
        SimpleNamespace(name="sums"), 3, 1, (), (), (Excluded(1, "b", ("AE201 missing-request",)),), {"team": 1}
    ),
    "profile": lambda: profile_eval_set(SAMPLES / "good.jsonl"),
    "build": lambda: eval_set_from_inference_table(SAMPLES / "inference_table.jsonl", sample=9),
}


def lab_page(html: str, theme: str) -> str:
    """The page that nbconvert makes of a notebook with this output."""
    nbformat, nbconvert = pytest.importorskip("nbformat"), pytest.importorskip("nbconvert")
    v4 = nbformat.v4
    output = v4.new_output("display_data", {"text/html": html, "text/plain": "x"})
    book = v4.new_notebook(cells=[v4.new_code_cell("report", outputs=[output], id="a")])
    with pytest.MonkeyPatch.context() as patch:  # where its templates are, if it is not in this environment
        patch.setenv("JUPYTER_PATH", str(Path(nbconvert.__file__).parents[4] / "share" / "jupyter"))
        page: str = nbconvert.HTMLExporter(template_name="lab", theme=theme).from_notebook_node(book)[0]
    return page


def opened(browser: Any, folder: Path, page: str, **options: Any) -> Any:
    path = folder / "notebook.html"
    path.write_text(page, encoding="utf-8")
    shown = browser.new_page(**options)
    shown.route("http*://**", lambda route: route.abort())
    shown.goto(path.as_uri(), wait_until="domcontentloaded")
    shown.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    return shown


MEASURED = """() => {
  const of = (e, name) => getComputedStyle(e)[name];
  const cells = [...document.querySelectorAll('.aes th, .aes td')];
  const wrong = cells.filter(e => of(e, 'textAlign') !== (e.classList.contains('n') ? 'right' : 'left'));
  const rows = [...document.querySelectorAll('.aes tr')];
  const striped = rows.filter(e => of(e, 'backgroundColor') !== 'rgba(0, 0, 0, 0)');
  const bars = [...document.querySelectorAll('.aes .meter')].map(e => {
    const [own, inner] = [e.getBoundingClientRect(), e.firstElementChild.getBoundingClientRect()];
    return [own.width > 20 && own.height > 4, inner.height > 4, of(e.firstElementChild, 'background')];
  });
  return {cells: cells.length, wrong: wrong.map(e => e.outerHTML.slice(0, 200)), striped: striped.length, bars};
}"""


def check(page: Any) -> dict[str, Any]:
    found: dict[str, Any] = page.evaluate(MEASURED)
    assert found["cells"] > 1
    assert found["wrong"] == []
    assert found["striped"] == 0
    for wide, high, color in found["bars"]:
        assert wide
        assert high
        assert not color.startswith("rgba(0, 0, 0, 0) none")
    return found


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("kind", RESULTS)
def test_jupyterlab_aligns_and_stripes_nothing(browser: Any, tmp_path: Path, kind: str, theme: str) -> None:
    page = opened(browser, tmp_path, lab_page(RESULTS[kind]()._repr_html_(), theme), color_scheme="light")
    check(page)
    page.evaluate("document.querySelectorAll('body > *').forEach(e => { e.querySelector('.aes') || e.remove() })")
    page.evaluate("document.querySelectorAll('.jp-Cell-inputWrapper, .jp-OutputPrompt').forEach(e => e.remove())")
    assert page.evaluate(CONTRAST)["poor"] == []
    page.evaluate(AXE)
    violations = page.evaluate("axe.run('.aes', {resultTypes: ['violations'], preload: false})")["violations"]
    assert [(v["id"], [n["html"][:200] for n in v["nodes"][:3]]) for v in violations] == []


@pytest.mark.browser
@pytest.mark.parametrize("kind", RESULTS)
def test_without_style_the_colors_and_bars_stay(browser: Any, tmp_path: Path, kind: str) -> None:
    html = RESULTS[kind]()._repr_html_()
    stripped = re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
    page = opened(browser, tmp_path, lab_page(stripped, "light"))
    check(page)
    if kind == "report":
        colors = page.evaluate(
            "['error', 'warning', 'info'].map(c => getComputedStyle(document.querySelector('.aes .' + c)).color)"
        )
        assert len(set(colors)) == 3
        assert len(page.evaluate(MEASURED)["bars"]) > 5


@pytest.mark.parametrize("kind", ["result", "comparison", "scores"])
def test_hostile_text_stays_text_in_a_notebook(kind: str) -> None:
    texts = [text.encode("utf-8", "replace").decode() for text in HOSTILE]
    made = {"result": lambda t: task(t).evaluate(), "comparison": comparison, "scores": scored}[kind](texts)
    tags = Tags(made._repr_html_())
    assert tags.open == []
    assert {t for t, _ in tags.seen} <= ALLOWED
    for _, attributes in tags.seen:
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "action")]
        assert re.fullmatch(r"[\w:;#%.,() -]*", attributes.get("style") or "")
    assert "window.pwned" in made._repr_html_()


def test_the_inline_form_shows_five_issues_and_folds_the_rest() -> None:
    html = validate_eval_set(SAMPLES / "broken.jsonl")._repr_html_()
    assert html.index("kinds of issue</summary>") > html.index("AE003")
    before = html[: html.index("kinds of issue</summary>")]
    assert len(re.findall(r'<details class="issue"', before)) == 5
    assert html.index("Metric coverage") < html.index("Field coverage, distributions and source</summary>")


SHOWN: dict[str, tuple[str, str, int]] = {
    "diff": ('<tr class="told"', "Rows, changes and issues", 5),
    "conversion": ('<details class="issue"', "2 more", 5),
    "supported scorers": ("<tr", "More rows", 6),  # with the headings
    "profile": ("<li", "Size and power, repeated questions", 7),
    "build": ("<li", "Excluded rows, labels and sample", 7),
    "result": ("<tr class", "Scores by row and by group", 3),
}
"""What a notebook shows at once, the title of what it folds, and how many it shows at most."""


@pytest.mark.mlflow  # for the supported scorers
@pytest.mark.parametrize("kind", SHOWN)
def test_every_inline_form_shows_a_few_and_folds_the_rest(kind: str) -> None:
    if kind == "build":
        pytest.importorskip("duckdb")
    html = RESULTS[kind]()._repr_html_()
    what, title, most = SHOWN[kind]
    shown, _, folded = html.partition('<details class="more">')
    assert 0 < len(re.findall(what, shown)) <= most
    assert title in folded[: folded.index("</summary>")]
    assert not re.search('<details class="more" open', html)


def test_the_inline_profile_has_its_key_numbers() -> None:
    shown = RESULTS["profile"]()._repr_html_().partition('<details class="more">')[0]
    for number in (
        "12 distinct questions",
        "none: 12 rows show",
        "0 of 12 rows",
        "1 of 2",
        "86 calls of judges",
    ):
        assert number in shown
    assert "Size and power" not in shown


@pytest.mark.parametrize("kind", [kind for kind in RESULTS if kind not in ("supported scorers", "written dataset")])
def test_every_class_of_a_page_has_a_style(kind: str) -> None:
    """A mood that is misspelled has no color."""
    folder = ROOT / "agent_eval_schema" / "render" / "templates"
    styled = {
        name for file in folder.glob("*.css") for name in re.findall(r"\.([A-Za-z][\w-]*)", file.read_text("utf-8"))
    }
    used = {word for file in folder.glob("*.js") for word in re.findall(r"[A-Za-z][\w-]*", file.read_text("utf-8"))}
    tags = Tags(RESULTS[kind]().to_html())
    classes = {name for _, attributes in tags.seen for name in (attributes.get("class") or "").split()}
    assert classes - styled - used <= {"none", "cost", "power"}  # parts without a color, tables like any other
