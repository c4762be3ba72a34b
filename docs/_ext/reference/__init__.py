"""The part of the site that is generated from the package: nothing in the reference is written twice.

When a build starts, the pages are written below `docs/` (where git ignores them), only those that changed, so that a
second build reads no more than it must.
"""

from __future__ import annotations

import shutil
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
    settings.pages,
    api.pages,
)

FOLDERS = ("reference/rules", "reference/formats", "reference/cli", "reference/api", "reference/generated")
"""Generated as a whole: whatever else is in them is of an older build."""


def write_pages(app: Sphinx) -> None:
    """Write the generated pages, and copy the notebooks and the picture of a report."""
    docs = Path(app.srcdir)
    root = docs.parent
    made = {path: text for generate in GENERATORS for path, text in generate(root).items()}
    for path, text in made.items():
        target = docs / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")
    for folder in FOLDERS:
        for file in (docs / folder).rglob("*.*"):
            if str(file.relative_to(docs)) not in made:
                file.unlink()
    copies = {notebook: docs / "tutorials" / notebook.name for notebook in (root / "notebooks").glob("*.ipynb")}
    for source, target in {**copies, root / ".github" / "report.svg": docs / "_static" / "report.svg"}.items():
        if not target.exists() or target.read_bytes() != source.read_bytes():
            shutil.copyfile(source, target)


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the steps of a build."""
    app.connect("builder-inited", write_pages)
    app.connect("build-finished", llms.write)
    app.add_role("public", api.PublicRole())
    app.connect("missing-reference", api.resolve_public)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
