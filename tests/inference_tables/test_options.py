"""The options of a build are those of BuildOptions wherever they are written out."""

from __future__ import annotations

import inspect
import json
import shlex
from pathlib import Path

import pytest

from agent_eval_schema import eval_set_from_inference_table
from agent_eval_schema.cli import main
from agent_eval_schema.inference_tables.options import COMMAND_LINE
from agent_eval_schema.inference_tables.plan import BuildOptions
from agent_eval_schema.similarity.near import NEAR

PARAMETERS = {
    name: parameter
    for name, parameter in inspect.signature(eval_set_from_inference_table).parameters.items()
    if name not in ("table", "engine", "jobs")
}


def test_the_signature_has_each_option_with_its_default() -> None:
    options = BuildOptions()
    defaults = {name: getattr(options, name) for name in BuildOptions.__struct_fields__}
    assert {name: parameter.default for name, parameter in PARAMETERS.items()} == defaults
    assert all(parameter.kind is inspect.Parameter.KEYWORD_ONLY for parameter in PARAMETERS.values())
    assert options.near == NEAR


def test_the_command_line_has_each_option() -> None:
    words = [name for options in COMMAND_LINE.values() for name in options]
    assert sorted([*words, "show_values"]) == sorted(BuildOptions.__struct_fields__)


def test_the_manifest_has_the_command_that_builds_the_dataset_again(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    (table := tmp_path / "calls.jsonl").write_text('{"id": "1", "body": {"in": "Hi?"}, "out": "Hello"}\n')
    columns = [w for pair in ("id=request_id", "body.in=request", "out=response") for w in ("--columns", pair)]
    options = [*columns, "--where", "id <> '2'", "--no-values", "--quiet"]
    out = tmp_path / "rows.jsonl"
    assert main(["from-inference-table", str(table), str(out), *options]) == 0
    command = shlex.split(json.loads((tmp_path / "rows.jsonl.manifest.json").read_text())["command"])
    rows = out.read_text()
    out.unlink()
    assert command[0] == "agent-eval-schema"
    assert "--no-values" in command
    assert main(command[1:]) == 0
    assert out.read_text() == rows
