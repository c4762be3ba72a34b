"""The moving picture of README and of the guide: validate → review → metrics gained, on rows without ground truth.

`UPDATE_GOLDEN=1 python -m pytest tests/render/test_picture_of_review.py` makes it, with the Chromium of the machine and
Pillow: a screenshot per step. What is compared is the page, as two versions of Chromium draw it differently.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema import review_eval_set
from agent_eval_schema.cli import main
from tests.conftest import ROOT, SAMPLES

PICTURE = ROOT / ".github" / "review.webp"
STAMP = ROOT / ".github" / "review.sha256"
TEMPLATES = ROOT / "agent_eval_schema" / "render" / "templates"

WIDTH, HEIGHT = 1080, 680
MOST_BYTES = 400_000

TERMINAL = (
    """<style>body {{ margin: 20px; background: #14171c; color: #e6e8eb; font: 14px/1.45 monospace }}</style><pre>{}"""
)

SELECT = """(() => {
  const text = document.querySelector('#answer p').firstChild, range = document.createRange();
  range.setStart(text, 0);
  range.setEnd(text, text.data.indexOf('.'));
  getSelection().removeAllRanges();
  getSelection().addRange(range);
})()"""
"""Selects the first sentence of the answer, which the reviewer has read and found to be right."""


def _stamp() -> str:
    texts = [(TEMPLATES / f"review.{kind}").read_bytes() for kind in ("html", "css", "js")]
    return hashlib.sha256(b"".join(texts)).hexdigest() + "\n"


class Film:
    """Screenshots of a page, each with the milliseconds for which it is shown."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.frames: list[tuple[bytes, int]] = []

    def show(self, milliseconds: int, *, until: Callable[[], object] = lambda: None) -> None:
        until()
        self.page.wait_for_timeout(150)
        self.frames.append((self.page.screenshot(), milliseconds))

    def save(self, path: Path) -> None:
        image = pytest.importorskip("PIL.Image")
        first, *others = [image.open(io.BytesIO(frame)).convert("RGB") for frame, _ in self.frames]
        durations = [milliseconds for _, milliseconds in self.frames]
        first.save(path, save_all=True, append_images=others, duration=durations, loop=0, quality=60, method=6)


@pytest.mark.skipif(not os.environ.get("UPDATE_GOLDEN"), reason="only made when asked for")
def test_make_the_picture(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    lines = (SAMPLES / "good.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [{k: row[k] for k in ("request", "response")} for row in map(json.loads, lines) if "response" in row]
    Path("support.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    film = Film(browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light"))

    def run(*command: str) -> None:
        assert main(list(command)) == 0
        shown = f"$ agent-eval-schema {' '.join(command)}\n{capsys.readouterr().out}"
        film.page.goto("about:blank")
        film.page.set_content(TERMINAL.format(escape(shown)))
        film.show(4_000)

    run("validate", "support.jsonl")
    review = review_eval_set("support.jsonl", reviewer="maria")
    try:
        _label(film, review.url, len(rows))
    finally:
        review.stop()
    run("metrics", "support.maria.reviewed.jsonl")
    film.page.close()
    film.save(PICTURE)
    STAMP.write_text(_stamp())


def _label(film: Film, url: str, count: int) -> None:
    page = film.page
    page.goto(url)
    film.show(1_800, until=lambda: page.wait_for_selector("#form h2"))
    page.evaluate(SELECT)
    film.show(1_200)
    page.keyboard.press("f")
    film.show(2_000, until=lambda: page.wait_for_selector("#live .gained"))
    page.keyboard.press("Control+Enter")
    film.show(800)
    for row in range(1, count):
        page.evaluate(SELECT)
        page.keyboard.press("f")
        page.wait_for_selector("#live .gained")
        page.keyboard.press("Control+Enter")
        page.wait_for_timeout(100)
        if row in (2, count - 1):
            film.show(800)
    page.keyboard.press("w")
    film.show(1_800, until=lambda: page.wait_for_selector("#out"))
    page.get_by_role("button", name="Write", exact=True).click()
    film.show(4_000, until=lambda: page.wait_for_selector("dialog .good"))


def test_the_picture_shows_the_page_of_today() -> None:
    again = "run UPDATE_GOLDEN=1 python -m pytest tests/render/test_picture_of_review.py"
    assert STAMP.read_text() == _stamp(), again
    content = PICTURE.read_bytes()
    assert (content[:4], content[8:12], b"ANIM" in content[:64]) == (b"RIFF", b"WEBP", True)
    assert len(content) < MOST_BYTES


@pytest.mark.parametrize("path", ["README.md", "docs/how-to/validate/review.md"])
def test_the_pages_show_the_picture(path: str) -> None:
    assert ".github/review.webp" in (ROOT / path).read_text(encoding="utf-8")
