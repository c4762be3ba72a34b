"""The first line of a result: how many of the rows that were given its means cover."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent_eval_schema.render.phrases import plural

NAMED = 10
"""Rows that are named."""

NAMED_METRICS = 2
"""Metrics with the same number of scored rows that are named."""


def headline(rows: int, scored: Mapping[str, int], failed: int, names: Sequence[str], left_out: int = 0) -> str:
    """What is missing of the rows that were given; "" if every metric has a score on every row. `scored` are the rows
    with a score by metric, `names` the first of those on which a call failed."""
    parts = []
    if failed:
        more = ", …" if failed > len(names) else ""
        which = f"row{'' if failed == 1 else 's'} {', '.join(names)}{more}"
        parts.append(f"{failed:,} of {plural(rows, 'call')} failed ({which})")
    counts = set(scored.values())
    if not rows or counts == {0}:
        parts.append("no row was scored" if rows else "no row to score")
    elif counts and min(counts) < rows:
        if len(counts) == 1:
            parts.append(f"{min(counts):,} of {plural(rows, 'row')} scored")
        else:
            fewer: dict[int, list[str]] = {}
            for name, count in scored.items():
                fewer.setdefault(count, []).append(name)
            parts.append(_fewer({count: names for count, names in fewer.items() if count < rows}, rows, len(scored)))
    if left_out:
        parts.append(f"{plural(left_out, 'invalid evaluation')} left out")
    return "; ".join(parts)


def _fewer(names: Mapping[int, Sequence[str]], rows: int, metrics: int) -> str:
    """The rows that metrics scored, by that number; many metrics are counted, not named."""
    if len(names) == 1:
        ((count, found),) = names.items()
        if len(found) > NAMED_METRICS:
            return f"{count:,} of {plural(rows, 'row')} scored by {len(found)} of {metrics} metrics"
    told = (
        [f"{len(found)} metrics {count:,}"] if len(found) > NAMED_METRICS else [f"{name} {count:,}" for name in found]
        for count, found in names.items()
    )
    return f"fewer than {plural(rows, 'row')} scored: {', '.join(part for parts in told for part in parts)}"
