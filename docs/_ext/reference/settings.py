"""The page of the settings, from the class that reads them."""

from __future__ import annotations

import json
from typing import Any

from agent_eval_schema.validation.settings import schema
from reference.markdown import code, fence, prose, table

EXAMPLE = """[tool.agent-eval-schema]
files = ["evals/**/*.jsonl"]
fail-on = "warning"
per-file-ignores = { "evals/legacy/*" = ["AE5"] }
columns = { "item.ticket_text" = "request" }
"""


def page() -> str:
    """The page of all settings."""
    found = schema()["$defs"]["Settings"]["properties"]
    rows = [
        (code(name), prose(about["description"]), _choices(about), code(json.dumps(about["default"])))
        for name, about in found.items()
    ]
    parts = [
        "# Configuration\n",
        "A repository keeps its options in `[tool.agent-eval-schema]` of `pyproject.toml`, or without that table in "
        "`agent-eval-schema.toml`. The commands that read rows (`validate`, `metrics`, `profile`, `diff`, `score`, "
        "`convert`, `from-traces`) read the file in the working directory or in the nearest folder above it; an option "
        "of the command line takes precedence, and `--config PATH` names another file. A command takes the settings "
        "that it has as options; the choices of `--fail-on` differ for `diff` and `profile`, which have a setting "
        "each.\n",
        fence(EXAMPLE, "toml"),
        "With `files`, `agent-eval-schema validate` needs no argument.\n",
        "## Settings\n",
        table(("Setting", "Meaning", "Values", "Default"), rows),
        "A glob of `per-file-ignores` without a folder matches the name of a file in any folder.\n",
        "`--show-settings`, as in `agent-eval-schema validate --show-settings`, prints the settings of a run. For "
        "completion in an editor, `agent-eval-schema schema settings` prints their JSON Schema.\n",
    ]
    return "\n".join(parts)


def _choices(about: dict[str, Any]) -> str:
    choices = about.get("enum")
    if isinstance(choices, list):
        return ", ".join(map(code, choices))
    kinds = [str(kind["type"]) for kind in about.get("anyOf", [about])]
    return ", ".join({"array": "list of strings", "object": "table"}.get(k, k) for k in kinds if k != "null")
