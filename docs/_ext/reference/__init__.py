"""The part of the site that is generated from the package: nothing in the reference is written twice.

When a build starts, the pages are written below `docs/`, only those that changed, so that a second build reads no more
than it must. Git ignores them, except those that a reader of the repository needs (`COMMITTED`). There, a link to a
rule leads to its row in the index of the rules; a build leads it to the page of the rule:

    ../rules/index.md#message-role    →  ../rules/message-role.md
    ../../notebooks/01_validate.ipynb →  01_validate.ipynb
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from reference import api, commands, formats, llms, outputs, rules, settings, tables
from reference.markdown import Pages

GENERATORS: tuple[Callable[[Path], Pages], ...] = (
    rules.pages,
    formats.pages,
    tables.pages,
    commands.pages,
    outputs.pages,
    api.pages,
)

COMMITTED: dict[str, Callable[[], str]] = {
    "reference/rules/index.md": rules.index,
    "reference/formats/index.md": formats.index,
    "reference/cli/index.md": commands.index,
    "reference/api/index.md": api.index,
    "reference/configuration.md": settings.page,
    "reference/schema/columns.md": tables.columns,
    "reference/schema/json-schemas.md": tables.json_schemas,
    "reference/schema/traces.md": tables.derivations,
    "reference/metrics/coverage.md": tables.metrics,
    "reference/production/table-families.md": tables.families,
    "reference/production/exclusion-reasons.md": tables.reasons,
}
"""Generated pages that git has too, for readers of the repository; `tests/generated` compares them."""

FOLDERS = ("reference/rules", "reference/formats", "reference/cli", "reference/api", "reference/generated")
"""Generated as a whole: whatever else is in them is of an older build."""


def write_pages(app: Sphinx) -> None:
    """Write the generated pages, and copy the notebooks."""
    docs = Path(app.srcdir)
    root = docs.parent
    made = {path: text for generate in GENERATORS for path, text in generate(root).items()}
    made |= {path: make() for path, make in COMMITTED.items()}
    for notebook in (root / "notebooks").glob("*.ipynb"):
        made[f"tutorials/{notebook.name}"] = notebook.read_text(encoding="utf-8").replace("](../docs/", "](../")
    for path, text in made.items():
        target = docs / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")
    for folder in FOLDERS:
        for file in (docs / folder).rglob("*.*"):
            if str(file.relative_to(docs)) not in made:
                file.unlink()


def lead_to_pages(app: Sphinx, docname: str, source: list[str]) -> None:
    """Replace links to sources by links to the pages that a build makes of them."""
    here = posixpath.dirname(docname) or "."

    def to_page(link: re.Match[str]) -> str:
        index = posixpath.normpath(posixpath.join(here, link["path"] or posixpath.basename(docname) + ".md"))
        if posixpath.basename(index) == "index.md":
            for page in (f"{posixpath.dirname(index)}/{link['name']}{suffix}" for suffix in (".md", ".rst")):
                if (Path(app.srcdir) / page).exists():
                    return f"]({posixpath.relpath(page, here)})"
        return link[0]

    text = re.sub(r"\]\((?P<path>[\w./-]*)#(?P<name>[\w.-]+)\)", to_page, source[0])
    source[0] = re.sub(r"\]\((\.\./)+notebooks/", f"]({posixpath.relpath('tutorials', here)}/", text)


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the steps of a build."""
    app.connect("builder-inited", write_pages)
    app.connect("source-read", lead_to_pages)
    app.connect("build-finished", llms.write)
    app.add_role("public", api.PublicRole())
    app.connect("missing-reference", api.resolve_public)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
