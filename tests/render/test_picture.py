"""The moving picture at the top of README and of the docs home, light and dark: broken file → report → fix → metrics
gained → review.

`UPDATE_GOLDEN=1 python -m pytest tests/render/test_picture.py` makes it, with the Chromium of the machine and Pillow: a
screenshot per step. What is compared is the report, as two versions of Chromium draw it differently.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from html import escape
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema import review_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.runtime.version import __version__
from tests.conftest import ROOT, SAMPLES
from tests.render.report.test_text import report_on
from tests.render.test_picture_of_review import Film

PICTURES = {scheme: ROOT / ".github" / f"tour-{scheme}.webp" for scheme in ("light", "dark")}
STAMP = ROOT / ".github" / "tour.sha256"

WIDTH, HEIGHT = 1080, 640
MOST_BYTES = 400_000
SECONDS = 20
LINES = 26
"""Lines of a terminal that fit."""

TERMINAL = (
    "<style>body {{ margin: 20px; background: {}; color: {}; font: 15px/1.5 monospace }} b {{ color: {} }}</style>"
    "<pre><b>$ {}</b>\n{}"
)
COLORS = {"light": ("#ffffff", "#1b2026", "#0b5cad"), "dark": ("#14171c", "#e6e8eb", "#79b8ff")}


@pytest.fixture
def page_text(monkeypatch: pytest.MonkeyPatch) -> str:
    return report_on("broken.jsonl", monkeypatch).to_html().replace(__version__, "VERSION")


@pytest.mark.skipif(not os.environ.get("UPDATE_GOLDEN"), reason="only made when asked for")
@pytest.mark.parametrize("scheme", PICTURES)
def test_make_the_picture(
    browser: Any,
    page_text: str,
    scheme: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "104")
    shutil.copy(SAMPLES / "broken.jsonl", "support.jsonl")
    film = Film(browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme))

    def run(milliseconds: int, *command: str, code: int) -> None:
        assert main(list(command)) == code
        lines = capsys.readouterr().out.rstrip().splitlines()
        shown = "\n".join(lines if len(lines) <= LINES else ["…", *lines[1 - LINES :]])
        film.page.goto("about:blank")
        typed = f"agent-eval-schema {' '.join(command)}"
        film.page.set_content(TERMINAL.format(*COLORS[scheme], escape(typed), escape(shown)))
        film.show(milliseconds)

    run(3_000, "validate", "support.jsonl", "--html", "report.html", code=1)
    film.page.goto((tmp_path / "report.html").as_uri())
    film.show(3_500)
    film.page.evaluate("scrollTo(0, document.querySelector('#rows').offsetTop - 20)")
    film.page.evaluate("location.hash = document.querySelector('#rowlist tbody a').hash")
    film.page.wait_for_selector("#row:not([hidden])")
    film.show(2_500)
    run(3_500, "validate", "support.jsonl", "--fix", "fixed.jsonl", code=1)
    run(3_000, "metrics", "fixed.jsonl", code=0)
    review = review_eval_set("fixed.jsonl", reviewer="maria", queue="errors")
    try:
        film.page.goto(review.url)
        film.show(2_500, until=lambda: film.page.wait_for_selector("#form h2"))
        film.page.keyboard.press("j")
        film.show(2_000)
    finally:
        review.stop()
    film.page.close()
    film.save(PICTURES[scheme])
    assert sum(milliseconds for _, milliseconds in film.frames) == SECONDS * 1_000
    STAMP.write_text(_stamp(page_text))


def test_the_pictures_show_the_report_of_today(page_text: str) -> None:
    assert STAMP.read_text() == _stamp(page_text), "run UPDATE_GOLDEN=1 python -m pytest tests/render/test_picture.py"
    for picture in PICTURES.values():
        content = picture.read_bytes()
        assert (content[:4], content[8:12], b"ANIM" in content[:64]) == (b"RIFF", b"WEBP", True)
        assert len(content) < MOST_BYTES
    assert len({picture.read_bytes() for picture in PICTURES.values()}) == 2


@pytest.mark.parametrize("path", ["README.md", "docs/index.md"])
def test_the_pages_begin_with_the_picture_and_its_text_is_in_the_report(path: str, page_text: str) -> None:
    page = (ROOT / path).read_text(encoding="utf-8")
    assert 0 <= page.index("tour-light.webp") < page.index("\n## ")
    assert "tour-dark.webp" in page
    found = re.search(r"alt(?:=\"|: )[^\"]*?(\d+ of \d+ rows cannot be evaluated)", page)
    assert found
    assert found[1] in re.sub(r"<[^>]+>", "", page_text)


def _stamp(page_text: str) -> str:
    return hashlib.sha256(page_text.encode()).hexdigest() + "\n"
