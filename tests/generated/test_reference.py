"""The generated pages that are in git are those that the package makes today. A build of the site writes them, too."""

from __future__ import annotations

import sys

import pytest

from tests.conftest import ROOT
from tests.render.report.test_text import compare

pytest.importorskip("sphinx")
sys.path.append(str(ROOT / "docs" / "_ext"))

from reference import COMMITTED


@pytest.mark.parametrize("path", COMMITTED)
def test_a_generated_page_is_not_older_than_the_package(path: str) -> None:
    compare(ROOT / "docs" / path, COMMITTED[path]())
