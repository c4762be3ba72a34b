"""DeepEval: goldens and test cases."""

from __future__ import annotations

from collections.abc import Sequence

from agent_eval_schema.formats.layout import Field, Layout, as_tags, calls_from, calls_to, question
from agent_eval_schema.formats.text_documents import read_texts, write_texts

# ---------------------------------------------------------------------------------------------------------------------
# DeepEval
_CALLS = (calls_from("name", "input_parameters"), calls_to("name", "input_parameters"))

DEEPEVAL = Layout(
    (
        Field(("name",), "request_id"),
        Field(("input",), "request", write=question),
        Field(("actual_output",), "response"),
        Field(("expected_output",), "expected_response"),
        Field(("context",), "expected_retrieved_context", read_texts, write_texts),
        Field(("retrieval_context",), "retrieved_context", read_texts, write_texts),
        Field(("tools_called",), "predicted_trajectory", *_CALLS),
        Field(("expected_tools",), "reference_trajectory", *_CALLS),
        Field(("completion_time",), "latency_seconds"),
        Field(("additional_metadata",), "tags", as_tags),
    )
)


def detect_deepeval(names: Sequence[str]) -> str | None:
    signs = [n for n in ("actual_output", "expected_output", "expected_tools") if n in names]
    return f"the columns input, {', '.join(signs)} of DeepEval" if signs and "input" in names else None
