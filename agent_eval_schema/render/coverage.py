"""The first line of a result: how many of the rows that were given its means cover."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent_eval_schema.render.console import plural

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
            told = ", ".join(_counted(fewer[count], count) for count in fewer if count < rows)
            parts.append(f"fewer than {plural(rows, 'row')} scored: {told}")
    if left_out:
        parts.append(f"{plural(left_out, 'invalid evaluation')} left out")
    return "; ".join(parts)


def _counted(names: Sequence[str], count: int) -> str:
    """The rows that these metrics scored; many metrics are counted, not named."""
    if len(names) > NAMED_METRICS:
        return f"{len(names)} metrics {count:,}"
    return ", ".join(f"{name} {count:,}" for name in names)
