"""google-adk's own loaders, as oracles."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

NOISE = ("title", "description", "default", "enum")
"""What pydantic writes beside the types; an enum of google-genai takes any text."""


def evalset_schema() -> dict[str, Any]:
    """The JSON Schema of google-adk's EvalSet."""
    from google.adk.evaluation.eval_set import EvalSet
    from google.adk.evaluation.simulation.pre_built_personas import get_default_persona_registry

    schema = _plain(EvalSet.model_json_schema())
    personas = [persona.id for persona in get_default_persona_registry().get_registered_personas()]
    # a validator of its own takes the id of a persona
    schema["$defs"]["ConversationScenario"]["properties"]["userPersona"]["anyOf"] += [
        {"type": "string", "const": name} for name in personas
    ]
    schema["$defs"] |= _criteria()
    comment = f"google-adk {version('google-adk')}, google-genai {version('google-genai')} (Apache-2.0)"
    return {"$comment": comment, **schema}


def _criteria() -> dict[str, Any]:
    """The models of the values in `test_config.json`."""
    from google.adk.evaluation import eval_metrics
    from google.adk.evaluation.eval_config import CustomMetricConfig

    names = ("BaseCriterion", "ToolTrajectoryCriterion", "LlmAsAJudgeCriterion", "RubricsBasedCriterion")
    names = (*names, "HallucinationsCriterion", "LlmBackedUserSimulatorCriterion")
    found: dict[str, Any] = {}
    for model in (CustomMetricConfig, *(getattr(eval_metrics, name) for name in names)):
        schema = _plain(model.model_json_schema())
        found |= schema.pop("$defs", {}) | {model.__name__: schema}
    found["MatchType"] = {"type": "string", "enum": list(eval_metrics.ToolTrajectoryCriterion.MatchType.__members__)}
    found["JudgeModelOptions"]["properties"]["judgeModelConfig"] = {}  # which it keeps out of its schema
    return found


def _plain(schema: Any, of_names: bool = False) -> Any:
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {k: v for k, v in schema.items() if of_names or k not in NOISE}
    return {k: _plain(v, k in ("properties", "$defs") and not of_names) for k, v in kept.items()}


def load_evalset(path: str) -> Any:
    """The EvalSet that google-adk loads from a file; whatever it raises if it refuses the file."""
    from google.adk.evaluation.local_eval_sets_manager import load_eval_set_from_file

    return load_eval_set_from_file(path, "loaded")


def accepts(document: Any, folder: Path) -> bool:
    """Whether google-adk loads a document from a file."""
    path = folder / "loaded.evalset.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    try:
        load_evalset(str(path))
    except Exception:
        return False
    return True


def _case(turn: dict[str, Any]) -> dict[str, Any]:
    return {"eval_set_id": "s", "eval_cases": [{"eval_id": "c", "conversation": [turn]}]}


_HI = {"role": "user", "parts": [{"text": "Hi"}]}

NOT_RUN: dict[str, dict[str, Any]] = {
    "a turn without parts": _case({"user_content": {"role": "user"}}),
    "a turn of nothing": _case({"user_content": {"parts": [{"text": None}]}}),
    "a blank turn": _case({"user_content": {"parts": [{"text": " "}]}}),
    "a conversation without turns": {"eval_set_id": "s", "eval_cases": [{"eval_id": "c", "conversation": []}]},
    "a call without a name": _case({"user_content": _HI, "intermediate_data": {"tool_uses": [{"args": {}}]}}),
}
"""What google-adk loads, and no agent can be asked or scored with."""
