"""Presence masks → which metric each row supports, and which field would enable the others.

A row's mask has one bit per field of the catalog. There are few different masks in a dataset, so the metric coverage of
a report follows from a count per mask. An invalid row supports no metric: the platform rejects it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
from msgspec import Struct

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.metrics.catalog import BIT, COMMON, FIELD_WORDS, MADE_BY_THE_APP, METRICS, SYSTEMS, Metric, Need
from agent_eval_schema.metrics.definitions import metrics_of_packages
from agent_eval_schema.text.choices import meant, require_choice, shown

System = Literal[
    "auto", "databricks", "mlflow", "vertex", "ces", "adk", "azure", "bedrock", "bedrock-rag", "agentcore",
    "vertex-genai", "m365-copilot", "strands", "braintrust", "phoenix", "inspect", "promptfoo", "ragas", "deepeval",
    "langsmith", "langfuse", "openai", "mlflow-third-party", "all",
]  # fmt: skip
Masks = np.ndarray[Any, Any]


class Support(Struct, frozen=True):
    """How many rows support a metric, and the field that would enable the most additional rows.

    `unlock` names the field to add ("" if there is none) and `unlock_rows` the number of additional rows; `condition`
    is the requirement on the agent when outputs are generated.
    """

    system: str
    metric: str
    supported: int
    total: int
    unlock: str
    unlock_rows: int
    condition: str
    judged: bool


def all_metrics() -> tuple[Metric, ...]:
    """The catalog, and the metrics of other packages: the system of each is the name of its package."""
    others = metrics_of_packages().values()
    return (*METRICS, *(Metric(other.project, other.value.name, other.value.needs) for other in others))


def systems() -> tuple[str, ...]:
    """The systems of all metrics."""
    return (*SYSTEMS, *systems_of_packages())


def systems_of_packages() -> tuple[str, ...]:
    """The packages that have metrics, without those that are called like a system."""
    return tuple(dict.fromkeys(m.project for m in metrics_of_packages().values() if m.project not in SYSTEMS))


def metrics_of(system: str) -> tuple[Metric, ...]:
    """The metrics of a system, or of all. Raises EvalSetError for an unknown system."""
    require_choice("system", system, (*systems(), "all"))
    return tuple(m for m in all_metrics() if system in ("all", m.system))


def shown_systems(own: str) -> tuple[str, ...]:
    """The systems that a report shows on rows whose format belongs to this one; metrics of packages were installed to
    be seen."""
    return (*(COMMON if own in COMMON else (own, *COMMON)), *systems_of_packages())


def find_metric(name: str) -> Metric:
    """The metric of that name; the last parts of a long name suffice if they name one metric only."""
    metrics = all_metrics()
    hits = [m for m in metrics if m.name == name] or [m for m in metrics if name in m.name.split("/")]
    if len(hits) != 1:
        lists = "a name that `agent-eval-schema metrics FILE --system all` lists"
        parts = dict.fromkeys(part for m in metrics for part in (m.name, *m.name.split("/")))
        raise EvalSetError(f"metric: expected {lists}; got {shown(name)}{meant(name, parts)}")
    return hits[0]


def missing_needs(metric: Metric, mask: int, outputs: str) -> tuple[Need, ...]:
    """The needs that a row with this mask does not meet."""
    generated = MADE_BY_THE_APP if outputs == "generated" else ()
    return tuple(n for n in metric.needs if not any(f in generated or mask & BIT[f] for f in _fields(n)))


def fields_of(needs: Iterable[Need]) -> set[str]:
    """The fields that some needs name."""
    return {field for need in needs for field in _fields(need)}


def why_supported(metric: Metric, mask: int, outputs: str) -> str:
    """Why a valid row with this mask supports the metric, or the fields that it lacks."""
    missing = missing_needs(metric, mask, outputs)
    if missing:
        return f"does not support {metric.name}: it lacks {', and '.join(need_words(n) for n in missing)}"
    condition = _condition(metric, outputs)
    return f"supports {metric.name}" + (f", {condition}" if condition else "")


def supports(metric: Metric, masks: Masks, valid: Masks, outputs: str) -> Masks:
    """For each row whether it supports the metric."""
    answer = valid.copy()
    generated = MADE_BY_THE_APP if outputs == "generated" else ()
    for need in metric.needs:
        if not any(f in generated for f in _fields(need)):
            answer &= (masks & sum(BIT[f] for f in _fields(need))) != 0
    return answer


def support_of(metric: Metric, valid_masks: Mapping[int, int], total: int, outputs: str) -> Support:
    """The `Support` of a metric, from the number of valid rows with each mask and the number of all rows."""
    lacking: Counter[tuple[Need, ...]] = Counter()
    for mask, rows in valid_masks.items():
        lacking[missing_needs(metric, mask, outputs)] += rows
    supported = lacking.pop((), 0)
    unlock: tuple[Need, ...] = ()
    if lacking:
        # The single field that enables most rows; only if no single field enables any, the most common combination.
        singles = {k: v for k, v in lacking.items() if len(k) == 1}
        unlock = max(singles or lacking, key=lambda k: lacking[k])
    gained = sum(rows for needs, rows in lacking.items() if set(needs) <= set(unlock))
    words, condition = ", and ".join(map(need_words, unlock)), _condition(metric, outputs)
    return Support(metric.system, metric.name, supported, total, words, gained, condition, metric.judged)


def _condition(metric: Metric, outputs: str) -> str:
    if outputs != "generated":
        return ""
    met = [[MADE_BY_THE_APP.get(f, "") for f in _fields(n)] for n in metric.needs]
    return " and ".join(dict.fromkeys(c for conditions in met if all(conditions) for c in conditions))


def need_words(need: Need) -> str:
    """A need as a report names it: `expected_response or expected_facts`."""
    return " or ".join(dict.fromkeys(FIELD_WORDS.get(f, f) for f in _fields(need)))


def _fields(need: Need) -> Iterable[str]:
    return (need,) if isinstance(need, str) else need
