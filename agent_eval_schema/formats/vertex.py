"""Vertex AI: datasets of trajectory evaluation.

    {"prompt": …, "response": …, "reference": …}                               model-based and text metrics
    {"predicted_trajectory": [call, …], "reference_trajectory": [call, …]}     computed metrics, which need no prompt

Source: google-cloud-aiplatform 2.7 (`vertexai.preview.evaluation`): `build_trajectory` reads a call by its two keys, of
which the input may be anything that JSON holds; without one it drops the whole trajectory.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from agent_eval_schema.decoding.chat import LONE_ARGUMENT
from agent_eval_schema.formats.detection import Signs
from agent_eval_schema.formats.format import Field, Format, Row
from agent_eval_schema.formats.roles import role_of
from agent_eval_schema.formats.shapes import all_of, question, request_or_text
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules.pages import VERTEX_AGENTS
from agent_eval_schema.rules.tools import TOOL_INPUT

_FLAGS = {"0": False, "1": True, "0.0": False, "1.0": True}
"""How the vendor's result tables write failure."""

_TRAJECTORIES = ("predicted_trajectory", "reference_trajectory")
_INPUT = "tool_input"


def _write_calls(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Calls with a lone argument as it was."""
    return [{**c, _INPUT: c[_INPUT][LONE_ARGUMENT]} if list(c[_INPUT]) == [LONE_ARGUMENT] else c for c in calls]


def _inspect_inputs(source: Row) -> Iterator[Finding]:
    for name in _TRAJECTORIES:
        for i, call in enumerate(all_of(source.get(name))):
            if isinstance(call, dict) and set(call) == {"tool_name"} and call["tool_name"]:
                message = "expected `tool_input`, got none: Vertex AI drops the trajectory"
                hint = "Add `tool_input`: `{}` if there are no arguments."
                yield Finding(TOOL_INPUT, message, name, f"{name}[{i}]", hint)


_OF_DATABRICKS = (
    *("expected_response", "expected_facts", "guidelines", "retrieved_context", "expected_retrieved_context"),
)
"""Columns of the Databricks schema, which has no trajectories: a table with both is ours."""

_OWN = frozenset({*_TRAJECTORIES, "reference", "latency_in_seconds"})


def _is_known(names: Sequence[str]) -> bool:
    """Whether a `prompt` is that of Vertex AI: not beside an answer, given or expected, that nothing here reads."""
    unread = ("expected_response", "expected_facts", *(() if "response" in names else ("response",)))
    return not _OWN.isdisjoint(names) or not any(role_of(name).column in unread for name in names)


VERTEX = Format(
    name="vertex",
    title="Vertex AI trajectories",
    summary="trajectory datasets of Vertex AI: prompt, reference_trajectory",
    page=VERTEX_AGENTS,
    signs=Signs(
        sure=(("prompt", "reference"), *((name,) for name in ("latency_in_seconds", *_TRAJECTORIES))),
        likely=(("response", "reference"), ("prompt",)),
        never=frozenset({"request", "inputs", "trace", *_OF_DATABRICKS}),
        test=_is_known,
    ),
    fields=(
        Field("prompt", "request", request_or_text, question),
        Field("response", "response"),
        Field("reference", "expected_response"),
        Field("predicted_trajectory", "predicted_trajectory", write=_write_calls),
        Field("reference_trajectory", "reference_trajectory", write=_write_calls),
        Field("latency_in_seconds", "latency_seconds"),
        Field("failure", "failure", lambda v: _FLAGS.get(str(v), v), int),
    ),
    originals=(),
    inspect_row=_inspect_inputs,
    # metrics that are computed of trajectories, or of a response and a reference, need no prompt
    instead_of_request=("predicted_trajectory", "reference_trajectory", "expected_response"),
    instead_of_response=("request", "predicted_trajectory", "reference_trajectory"),
    one_kind=("response", "answered row", "unanswered row"),
    outputs=("response", "trace", "predicted_trajectory"),
)
