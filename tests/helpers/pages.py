"""The pages of the repository, and the links that a reader of a clone or of a code host can follow."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote

from tests.conftest import ROOT

UNPUBLISHED = re.compile(
    r"https?://(?:agent-eval-schema\.github\.io|(?:github|raw\.githubusercontent)\.com/agent-eval-schema/"
    r"|pypi\.org/\S*agent-eval-schema|img\.shields\.io/\S*agent-eval-schema)\S*"
)
"""Addresses of this project that exist from the first release on."""


@cache
def in_git() -> tuple[Path, ...]:
    """The pages that a clone has: a build of the site writes others beside them."""
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    kept = [path for line in ignored if line.startswith("!") for path in ROOT.glob(line[1:])]
    made = {path for line in ignored if line.startswith("docs/") for path in ROOT.glob(line)}
    found = [
        *ROOT.glob("*.md"),
        *ROOT.glob("sample_data/*.md"),
        *ROOT.glob(".github/**/*.md"),
        *ROOT.glob("notebooks/*.ipynb"),
        *ROOT.glob("docs/**/*.md"),
    ]
    return tuple(sorted(path for path in found if path in kept or made.isdisjoint([path, *path.parents])))


def dead_links(path: Path) -> list[str]:
    """The links of a page that lead to no file, to no anchor, or to what is not published yet."""
    text = _prose(path)
    marked = re.findall(
        r"\]\(\s*<?([^)\s>]+)|^\[[^\]]+\]:\s*(\S+)|\b(?:src|srcset|href)=\"([^\"]+)\"", text, re.MULTILINE
    )
    relative = [link for groups in marked for link in groups if link and not re.match(r"[\w+.-]+:", link)]
    return UNPUBLISHED.findall(text) + [link for link in relative if not _leads_somewhere(path, link)]


def _prose(path: Path) -> str:
    """The text of a page without its code; of a notebook the cells of text."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return re.sub(r"^(```+|~~~+).*?^\1\s*?$", "", text, flags=re.DOTALL | re.MULTILINE)


def _leads_somewhere(path: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = Path(os.path.normpath(path.parent / unquote(name))) if name else path
    if target.suffix in (".md", ".ipynb") and target.is_relative_to(ROOT) and target not in in_git():
        return False
    return target.exists() and (not anchor or anchor in set(_anchors(target)))


def _anchors(path: Path) -> Iterator[str]:
    """The anchors that a code host gives to headings, and those in HTML."""
    text = _prose(path)
    yield from re.findall(r"\bid=\"([^\"]+)\"", text)
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)|`", r"\1", heading)
        yield re.sub(r"[^\w -]", "", shown.lower()).strip().replace(" ", "-")
