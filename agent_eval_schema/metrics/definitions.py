"""DEFINITIONS: every metric of one row, each once, for EvalTask and for the scorers of mlflow.

    name              reads                                   needs                        measure          undefined
    document_recall   retrieved_context,                      retrieved_uri, expected_uri  their doc_uris   why NaN
                      expected_retrieved_context                                           → 0 to 1

`reads` are columns (METRIC_INPUTS of evaluation/score.py: the question is `prompt`, the expected response `reference`),
`needs` the same in the terms of the catalog (metrics/fields.json). Values come in the types of schema.py, in the order
of `reads`, and options by name.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from msgspec import Struct

from agent_eval_schema.metrics import answers, tool_calls
from agent_eval_schema.metrics.catalog import FAILURE, METRICS, TOOL_CALL_NEEDS, Direction, Need
from agent_eval_schema.metrics.metric_info import SHARE, MetricInfo
from agent_eval_schema.metrics.trajectory import TRAJECTORY_METRICS, score_trajectory, single_tool_use
from agent_eval_schema.runtime.extensions import Extension, extensions

SINGLE_TOOL_USE = "trajectory_single_tool_use"


class Definition(NamedTuple):
    """A metric of a row: columns, required fields, the function (a score or NaN), why a row may have no score; and what
    the scores mean, where it is not more of a share."""

    reads: tuple[str, ...]
    needs: tuple[Need, ...]
    measure: Callable[..., float]
    undefined: str = "the metric is not defined for this row"
    direction: Direction = "higher"
    scale: tuple[float, float | None] = SHARE
    unit: str = ""

    def info(self, name: str) -> MetricInfo:
        return MetricInfo(name, self.direction, self.scale, unit=self.unit)


def _amount(column: str, field: str, unit: str) -> Definition:
    """A figure that the row contains: less is better."""
    return Definition((column,), (field,), float, direction="lower", scale=(0.0, None), unit=unit)


_TEXTS = (("response", "reference"), ("response", "expected_response"))
_DOCUMENTS = (("retrieved_context", "expected_retrieved_context"), ("retrieved_uri", "expected_uri"))
_BOTH = ("predicted_trajectory", "reference_trajectory")

_NO_RECALL = "expected_retrieved_context is empty, or no retrieved document has a doc_uri"
_NO_PRECISION = "expected_retrieved_context is empty, or no document with a doc_uri was retrieved"
_NO_TRAJECTORY = 'a trajectory is empty, which has no score with empty="nan"'
_NO_CALL_IN_TEXT = "the reference is no JSON text with tool_calls"
_NO_WORD = "the reference has no word of ASCII letters or digits, the only ones that ROUGE compares"
_TOKENS = ("input", "output", "total")
_NO_CALL = "reference_trajectory is empty: no call is expected"

DEFINITIONS: dict[str, Definition] = {
    "exact_match": Definition(*_TEXTS, answers.exact_match),
    "bleu": Definition(*_TEXTS, answers.bleu),
    **{name: Definition(*_TEXTS, partial(answers.rouge, kind), _NO_WORD) for name, kind in answers.ROUGE.items()},
    "document_recall": Definition(*_DOCUMENTS, answers.document_recall, _NO_RECALL),
    "document_precision": Definition(*_DOCUMENTS, answers.document_precision, _NO_PRECISION),
    **{name: Definition(_BOTH, _BOTH, partial(score_trajectory, name), _NO_TRAJECTORY) for name in TRAJECTORY_METRICS},
    SINGLE_TOOL_USE: Definition(_BOTH[:1], _BOTH[:1], single_tool_use, _NO_TRAJECTORY),
    "tool_invocation": Definition(_BOTH, TOOL_CALL_NEEDS, tool_calls.tool_invocation, _NO_CALL),
    "tool_ordered_invocation": Definition(_BOTH, TOOL_CALL_NEEDS, tool_calls.tool_ordered_invocation, _NO_CALL),
    "parameter_correctness": Definition(_BOTH, TOOL_CALL_NEEDS, tool_calls.parameter_correctness, _NO_CALL),
    "tool_calls_pass": Definition(_BOTH, TOOL_CALL_NEEDS, tool_calls.tool_calls_pass, _NO_CALL),
    "tool_call_valid": Definition(("response",), ("response",), tool_calls.tool_call_valid),
    "tool_name_match": Definition(*_TEXTS, tool_calls.tool_name_match, _NO_CALL_IN_TEXT),
    "tool_parameter_key_match": Definition(*_TEXTS, tool_calls.tool_parameter_key_match, _NO_CALL_IN_TEXT),
    "tool_parameter_kv_match": Definition(*_TEXTS, tool_calls.tool_parameter_kv_match, _NO_CALL_IN_TEXT),
    **{f"{kind}_token_count": _amount(f"{kind}_token_count", f"{kind}_tokens", "tokens") for kind in _TOKENS},
    "latency_seconds": _amount("latency_seconds", "latency", "s"),
    FAILURE: Definition((FAILURE,), ("failure",), float, direction="lower"),
}

NAMES = frozenset([*DEFINITIONS, *(metric.name for metric in METRICS)])
"""The metrics that this package computes, or knows."""


# --- metrics of other packages
FIELD_OF_INPUT = {
    "prompt": "request",
    "response": "response",
    "reference": "expected_response",
    "retrieved_context": "retrieved_content",
    "expected_retrieved_context": "expected_uri",
    "predicted_trajectory": "predicted_trajectory",
    "reference_trajectory": "reference_trajectory",
}
"""The columns that a metric can read, and the field of the catalog that a row must have for each."""


class RowMetric(Struct, frozen=True, kw_only=True):
    """A metric that another package computes for each row.

    `measure` is called with the values of `reads`, in this order, if the row has all: texts, lists of `Document` and
    of `ToolCall`. It returns a score, or NaN, for which `undefined` is the reason. `better` and `worse` are the values
    of a row that scores better than another one: the conformance suite computes both.
    """

    info: MetricInfo
    reads: tuple[str, ...]
    measure: Callable[..., float]
    better: Mapping[str, Any]
    worse: Mapping[str, Any]
    undefined: str = "the metric is not defined for this row"

    def __post_init__(self) -> None:
        if not self.reads or not FIELD_OF_INPUT.keys() >= set(self.reads):
            raise ValueError(f"reads: expected columns among {', '.join(FIELD_OF_INPUT)}; got {self.reads!r}")

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def needs(self) -> tuple[Need, ...]:
        """The fields of a row that the metric requires, in the terms of the catalog."""
        return tuple(FIELD_OF_INPUT[name] for name in self.reads)


def metrics_of_packages() -> dict[str, Extension[RowMetric]]:
    """The metrics that other packages declare (entry point `agent_eval_schema.metrics`), by name."""
    return extensions("metrics", RowMetric, NAMES)
