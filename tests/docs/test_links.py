"""Links lead somewhere in a clone and on a code host, before anything is published and without a build."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.helpers.pages import dead_links, in_git

PAGES = in_git()


def test_the_pages_are_found() -> None:
    names = {path.relative_to(ROOT).as_posix() for path in PAGES}
    assert {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "sample_data/README.md"} <= names
    assert {"docs/index.md", "docs/reference/rules/index.md", "notebooks/01_validate.ipynb"} <= names
    assert "docs/reference/rules/message-role.md" not in names


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_link_is_dead(path: Path) -> None:
    assert dead_links(path) == []


@pytest.mark.parametrize(
    "link",
    [
        "[a](absent.md)",
        "[a](other.md#absent)",
        "[a](#absent)",
        "[![a](absent.png)](other.md)",
        '<img src="absent.png">',
        "[a]: absent.md",
        "https://agent-eval-schema.github.io/agent-eval-schema/",
        "[a](https://github.com/agent-eval-schema/agent-eval-schema/issues)",
        "<https://pypi.org/project/agent-eval-schema/>",
    ],
)
def test_a_dead_link_is_found(link: str, tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# A heading\n")
    page = tmp_path / "page.md"
    page.write_text(f"[alive](other.md#a-heading) and https://example.org\n\n{link}\n")
    assert len(dead_links(page)) == 1


def test_code_has_no_links(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```yaml\nrepo: https://github.com/agent-eval-schema/agent-eval-schema  # [a](absent.md)\n```\n")
    assert dead_links(page) == []
