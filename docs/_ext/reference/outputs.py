"""The documents that commands print with `--output`: what each command prints for the samples, as it is printed now."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from agent_eval_schema.cli import main
from reference.markdown import Pages, code, fence, json_lines, shortened, table

JSON_OUTPUTS = (
    ("Validation report", "validate", "validate sample_data/broken_mlflow.jsonl --output json"),
    ("Diff", "diff", "diff sample_data/good.jsonl sample_data/edited_broken.jsonl --output json"),
    ("Profile", "profile", "profile sample_data/good.jsonl --output json"),
    (
        "Row counts of a build",
        "from-inference-table",
        "from-inference-table sample_data/inference_table.jsonl OUT --output json",
    ),
    ("Scores", "score", "score sample_data/vertex.jsonl --output json"),
    ("Comparison of scores", "compare", "compare sample_data/vertex.jsonl sample_data/vertex.jsonl --output json"),
    ("Rules", "rules", "rules --output json"),
)
CI_OUTPUTS = (
    ("GitHub annotations", "validate sample_data/broken_mlflow.jsonl --output github"),
    ("SARIF 2.1.0", "validate sample_data/broken_mlflow.jsonl --output sarif"),
    ("JUnit XML", "validate sample_data/broken_mlflow.jsonl --output junit"),
)


def pages(root: Path) -> Pages:
    """What follows the introduction of reference/output-formats.md."""
    parts = []
    for title, page, command in JSON_OUTPUTS:
        document = json.loads(printed(root, command))
        keys = [(code(key), _kind(value)) for key, value in document.items()]
        parts += [
            f"## {title}\n",
            f"[{code('agent-eval-schema ' + command)}](cli/{page}.md)\n",
            table(("Key", "Type"), keys),
            "```{dropdown} Example\n"
            + fence(json_lines(_few(shortened(document, 100))), "json").replace("```", "~~~")
            + "```\n",
        ]
    for title, command in CI_OUTPUTS:
        lines = printed(root, command).splitlines()
        shown = "\n".join(line[:160] + (" …" if len(line) > 160 else "") for line in lines[:12])
        parts += [f"## {title}\n", f"{code('agent-eval-schema ' + command)}\n", fence(shown + "\n…", "text")]
    return {"reference/generated/output-formats.inc": "\n".join(parts)}


def printed(root: Path, command: str) -> str:
    """What a command prints on stdout, run beside the sample data."""
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as out:
        (Path(folder) / "sample_data").symlink_to(root / "sample_data")
        os.chdir(folder)
        try:
            with contextlib.redirect_stderr(io.StringIO()) as err:
                status = main(command.replace("OUT", "out.jsonl").split())
        except SystemExit as stopped:
            status = 2
            err.write(str(stopped))
        finally:
            os.chdir(here)
    if status == 2:
        raise RuntimeError(f"{command}: {err.getvalue()}")
    return out.getvalue()


def _kind(value: Any) -> str:
    if value is None:
        return "string or null"
    for kind, name in ((bool, "boolean"), (int, "number"), (float, "number"), (str, "string"), (dict, "object")):
        if isinstance(value, kind):
            return name
    return "array of objects" if value and isinstance(value[0], dict) else "array"


def _few(value: Any, limit: int = 2) -> Any:
    """A document with the first entries of each list."""
    if isinstance(value, dict):
        entries = list(value.items())
        return {k: _few(v) for k, v in entries[:20]}
    return [_few(v) for v in value[:limit]] if isinstance(value, list) else value
