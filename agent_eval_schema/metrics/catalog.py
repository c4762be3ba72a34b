"""METRICS: every metric that an evaluation platform computes, and the fields that a row must have for it.

A need is a field; a tuple of fields means that any one of them suffices.
"""

from collections import Counter
from typing import NamedTuple

from msgspec import Struct

from agent_eval_schema.metrics.platforms import PLATFORMS, Need
from agent_eval_schema.runtime.tables import packaged


class _Field(Struct, frozen=True, forbid_unknown_fields=True):
    """A field of a row: how a report names one that a user should add, if not by the name of its column; if it will
    exist after the agent has run, the condition that a report adds; and whether people give it."""

    words: str = ""
    made_by_the_app: str | None = None
    is_truth: bool = False


_FIELDS = packaged(__package__, "fields.json", dict[str, _Field])

SUPPORT_FIELDS = tuple(_FIELDS)
"""The fields of a row that metrics read: one bit each, in this order, in the presence mask of a checked batch."""

BIT = {name: 1 << i for i, name in enumerate(SUPPORT_FIELDS)}

GROUND_TRUTH = sum(BIT[name] for name, field in _FIELDS.items() if field.is_truth)
"""The mask of the fields that people give a row: a row with none of them has no ground truth."""

FIELD_WORDS = {name: field.words for name, field in _FIELDS.items() if field.words}

MADE_BY_THE_APP = {name: field.made_by_the_app for name, field in _FIELDS.items() if field.made_by_the_app is not None}


class Metric(NamedTuple):
    """A metric of a system (databricks, mlflow, vertex, …), its needs, and whether a judge model is asked."""

    system: str
    name: str
    needs: tuple[Need, ...]
    judged: bool = False

    @property
    def fields(self) -> list[str]:
        return [field for need in self.needs for field in ((need,) if isinstance(need, str) else need)]


COMMON = ("databricks", "mlflow", "vertex", "ces")
"""The systems that every report shows; one of another platform is shown for its own formats, and where it is named."""

_TAKEN = Counter(name for metrics in PLATFORMS.values() for name in metrics)

METRICS: tuple[Metric, ...] = tuple(
    Metric(
        system,
        name if system in COMMON or _TAKEN[name] == 1 else f"{system}/{name}",
        line.fields,
        bool(line.judged),
    )
    for system, metrics in PLATFORMS.items()
    for name, line in metrics.items()
)
"""A metric of another platform whose name a second system has, too, has the name of its system before it."""

SYSTEMS = tuple(PLATFORMS)

LATENCY, FAILURE = "latency_in_seconds", "failure"
