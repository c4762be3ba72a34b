"""llms.txt and llms-full.txt: the site for coding agents, as a list of pages and as one text."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx

import agent_eval_schema
from reference import api

SKIPPED = ("reference/rules/", "tutorials/0")
"""Pages that one page of the list stands for."""


def write(app: Sphinx, exception: Exception | None) -> None:
    """Write both files beside the pages."""
    if exception is not None or app.builder.format != "html":
        return
    out, docs = Path(app.outdir), Path(app.srcdir)
    names = [
        name
        for name in _in_order(app, app.config.root_doc)
        if (docs / f"{name}.md").exists() or (docs / f"{name}.rst").exists()
    ]
    head = f"# {app.config.project}\n\n> {agent_eval_schema.__doc__.strip().splitlines()[0]}\n"
    lines = []
    for name in names:
        if not name.startswith(SKIPPED) or name.endswith("/index"):
            title = app.env.titles[name].astext()
            lines.append(f"- [{title}]({name}.html)")
    (out / "llms.txt").write_text(
        f"{head}\nThe whole documentation as one text: [llms-full.txt](llms-full.txt)\n\n## Pages\n\n"
        + "\n".join(lines)
        + "\n",
        encoding="utf-8",
    )
    texts = [_text(docs, name) for name in names if not name.startswith("tutorials/0")]
    (out / "llms-full.txt").write_text("\n\n".join([head, *texts]) + "\n", encoding="utf-8")


def _in_order(app: Sphinx, name: str, seen: set[str] | None = None) -> Iterator[str]:
    """The pages in the order of the tables of contents."""
    seen = set() if seen is None else seen
    if name in seen:
        return
    seen.add(name)
    yield name
    for child in app.env.toctree_includes.get(name, ()):
        yield from _in_order(app, child, seen)


def _text(docs: Path, name: str) -> str:
    """The source of a page; of a public name its docstring."""
    path = name.removeprefix("reference/api/")
    if path in api.public():
        value = api.public()[path]
        parts = [f"# {path}", inspect.getdoc(value) or ""]
        parts += [
            f"## {path}.{m}\n\n{inspect.getdoc(inspect.getattr_static(value, m)) or ''}" for m in api.members(value)
        ]
        return "\n\n".join(parts)
    file = docs / f"{name}.md"
    file = file if file.exists() else docs / f"{name}.rst"
    source = re.sub(
        r"^```\{include\} (\S+)\n```$",
        lambda include: (file.parent / include[1]).read_text(encoding="utf-8"),
        file.read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
    return re.sub(r"^```\{toctree\}.*?^```\n", "", source, flags=re.DOTALL | re.MULTILINE).strip()
