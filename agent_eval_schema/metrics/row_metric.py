"""A metric of another package: what it means, the columns that it reads, and a function of their values.

[project.entry-points."agent_eval_schema.metrics"]
brevity = "help_desk_metrics:BREVITY"
"""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from agent_eval_schema.metrics.metric_info import MetricInfo
from agent_eval_schema.metrics.platforms import Need

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
