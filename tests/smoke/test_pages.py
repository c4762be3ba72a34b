"""Each page opens in a browser, without an error and without a request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.render.test_page import PAGES, Visit, page_text, saved

pytestmark = pytest.mark.smoke


@pytest.mark.parametrize("kind", PAGES)
def test_a_page_opens(browser: Any, kind: str, tmp_path: Path) -> None:
    visit = Visit(browser, saved(tmp_path, page_text(kind)))
    assert visit.trouble == []
    assert visit.at_home
    assert visit.page.locator("h1").count() == 1
