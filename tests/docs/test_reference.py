"""The generated pages that are in git are those that the package makes today.

`UPDATE_GOLDEN=1 python -m pytest tests/docs/test_reference.py` writes them, and so does a build of the site.
"""

from __future__ import annotations

import sys

import pytest

from tests.conftest import ROOT
from tests.render.report.test_text import compare

pytest.importorskip("sphinx")
sys.path.append(str(ROOT / "docs" / "_ext"))

from reference import COMMITTED

pytestmark = pytest.mark.docs


@pytest.mark.parametrize("path", COMMITTED)
def test_a_generated_page_is_not_older_than_the_package(path: str) -> None:
    compare(ROOT / "docs" / path, COMMITTED[path]())
