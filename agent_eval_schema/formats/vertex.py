"""Vertex AI: datasets of trajectory evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_eval_schema.formats.layout import Field, Layout, question
from agent_eval_schema.text.jsontext import structured


# ---------------------------------------------------------------------------------------------------------------------
# Vertex AI: data sets of trajectory evaluation
def _flag(value: Any) -> Any:
    """The vendor's result tables write failure as 0 or 1."""
    return _FLAGS.get(str(value), value)


_FLAGS = {"0": False, "1": True, "0.0": False, "1.0": True}

VERTEX = Layout(
    (
        Field(("prompt",), "request", structured, question),
        Field(("response",), "response"),
        Field(("reference",), "expected_response"),
        Field(("predicted_trajectory",), "predicted_trajectory"),
        Field(("reference_trajectory",), "reference_trajectory"),
        Field(("latency_in_seconds",), "latency_seconds"),
        Field(("failure",), "failure", _flag, int),
    )
)


def detect_vertex(names: Sequence[str]) -> str | None:
    signs = [n for n in ("prompt", "latency_in_seconds") if n in names]
    return f"the column {signs[0]} of Vertex AI evaluation" if signs and "request" not in names else None
