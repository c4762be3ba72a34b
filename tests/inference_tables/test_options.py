"""The options of a build are those of BuildOptions wherever they are written out."""

from __future__ import annotations

import inspect

from agent_eval_schema import eval_set_from_inference_table
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
