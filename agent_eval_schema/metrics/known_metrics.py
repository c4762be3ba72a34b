"""What is known of each metric: scale, direction and unit, by its name.

a catalog (PLATFORMS), DEFINITIONS ─────────────▶ CATALOG, _BY_WORD ──┐
metrics of other packages ────────────────────────────────────────────┤
CustomMetric, settings, options, a saved result ─────────────────────▶ metric_info(name, known) ──▶ MetricInfo
"""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from agent_eval_schema.metrics.catalog import LATENCY, METRICS, PLATFORMS, Metric
from agent_eval_schema.metrics.definitions import DEFINITIONS, NAMES, metrics_of_packages
from agent_eval_schema.metrics.metric_info import COUNTED, SHARE, STEPS, MetricInfo, word_of, words_in
from agent_eval_schema.runtime.groups import by_key


def metric_info(name: str, known: Mapping[str, MetricInfo] = {}) -> MetricInfo:
    """The information on a metric: the one that the user stated, else the one that all platforms agree on for its name,
    else the one that the name suggests."""
    if name in known:
        return known[name]
    if name in (others := metrics_of_packages()):
        return others[name].value.info
    if name in _OF_PLATFORM:
        return _OF_PLATFORM[name]
    info, is_amount = MetricInfo(name), bool(COUNTED.intersection(words_in(name)))
    found = _BY_WORD.get(word_of(name))
    if found is not None and (not is_amount or found.ends != SHARE or name in NAMES):
        # Some judges give their best score where nothing bad was found; a column of that name may count what was found.
        is_certain = name in NAMES or not (info.suggests_lower and found.direction == "higher")
        return replace(found, name=name, direction=found.direction if is_certain else "unknown")
    return MetricInfo(name, "none") if is_amount and not info.suggests_lower else info


# --- the catalogs
_TOKENS = {"input_tokens", "output_tokens", "total_tokens"}


def _unit_of_amount(metric: Metric) -> str:
    """The unit of a metric that is an amount without a limit; "" of others, as of limits that were kept."""
    if metric.system == "promptfoo":
        return ""
    if "latency" in metric.fields:
        return "s"
    if _TOKENS.intersection(metric.fields):
        return "tokens"
    return "calls" if "call_count" in metric.name else ""


def _of_catalog(metric: Metric) -> MetricInfo:
    line = PLATFORMS[metric.system][metric.name.removeprefix(f"{metric.system}/")]
    if unit := _unit_of_amount(metric):
        return MetricInfo(metric.name, line.direction or "lower", (0.0, None), unit=unit)
    scale = SHARE if line.scale is UNSET else line.scale
    step, unit = (0.0, "") if scale in (SHARE, None) else (1.0, STEPS)
    return MetricInfo(metric.name, line.direction or "higher", scale, step, unit)


CATALOG: dict[Metric, MetricInfo] = {metric: _of_catalog(metric) for metric in METRICS}
"""What is known of each metric of each platform."""


def _by_word() -> dict[str, MetricInfo]:
    """By the name of a metric, in any spelling: the information that all platforms agree on; else it is unknown. An
    amount keeps its name: what a platform scores from 0 to 1 under it, such as a limit that was kept, is not asked."""
    own = [definition.info(name) for name, definition in DEFINITIONS.items()]
    every = (*CATALOG.values(), *own, DEFINITIONS["latency_seconds"].info(LATENCY))
    groups = by_key((word_of(info.name), info) for info in every)
    amounts = {word: [i for i in infos if i.scale is not None and i.scale[1] is None] for word, infos in groups.items()}
    return {word: _common(word, amounts[word] or infos) for word, infos in groups.items()}


def _common(word: str, infos: Iterable[MetricInfo]) -> MetricInfo:
    known = map(set[Any], zip(*((i.direction, i.scale, i.step, i.unit) for i in infos), strict=True))
    others: tuple[Any, ...] = "unknown", None, 0.0, ""
    return MetricInfo(word, *(of.pop() if len(of) == 1 else other for of, other in zip(known, others, strict=True)))


_BY_WORD = _by_word()

_OF_PLATFORM = {info.name: info for metric, info in CATALOG.items() if info.name.startswith(f"{metric.system}/")}
"""By the name of a metric that is written with its platform."""
