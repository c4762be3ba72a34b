"""The pictures of README and of the docs home show the HTML report on the broken sample as it is today, light and dark.

`UPDATE_GOLDEN=1 python -m pytest tests/render/test_picture.py` makes them, with the Chromium of the machine. What is
compared is the page, as two versions of Chromium draw it differently.
"""

import hashlib
import os
import re
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema.runtime.version import __version__
from tests.conftest import ROOT
from tests.render.report.test_text import report_on

PICTURES = {scheme: ROOT / ".github" / f"report-{scheme}.png" for scheme in ("light", "dark")}
STAMP = ROOT / ".github" / "report.sha256"

WIDTH, HEIGHT = 1080, 720


@pytest.fixture
def page_text(monkeypatch: pytest.MonkeyPatch) -> str:
    return report_on("broken.jsonl", monkeypatch).to_html().replace(__version__, "VERSION")


@pytest.mark.skipif(not os.environ.get("UPDATE_GOLDEN"), reason="only made when asked for")
def test_make_the_pictures(browser: Any, page_text: str, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(page_text, encoding="utf-8")
    for scheme, picture in PICTURES.items():
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme)
        page.goto(path.as_uri())
        picture.write_bytes(page.screenshot())
    STAMP.write_text(_stamp(page_text))


def test_the_pictures_show_the_report_of_today(page_text: str) -> None:
    assert STAMP.read_text() == _stamp(page_text), "run UPDATE_GOLDEN=1 python -m pytest tests/render/test_picture.py"
    for picture in PICTURES.values():
        content = picture.read_bytes()
        assert content[:8] == b"\x89PNG\r\n\x1a\n"
        assert (int.from_bytes(content[16:20], "big"), int.from_bytes(content[20:24], "big")) == (WIDTH, HEIGHT)
        assert len(content) < 300_000
    assert len({picture.read_bytes() for picture in PICTURES.values()}) == 2


@pytest.mark.parametrize("path", ["README.md", "docs/index.md"])
def test_the_texts_of_the_pictures_are_in_the_report(path: str, page_text: str) -> None:
    page = (ROOT / path).read_text(encoding="utf-8")
    found = re.search(r"The HTML report on (sample_data/broken\.jsonl): ([^]\"]+)", page)
    assert found
    assert found[1] in page_text
    assert found[2] in re.sub(r"<[^>]+>", "", page_text)


def _stamp(page_text: str) -> str:
    return hashlib.sha256(page_text.encode()).hexdigest() + "\n"
