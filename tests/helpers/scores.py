"""Results of evaluations in tests."""

from __future__ import annotations

from agent_eval_schema import EvalResult


def reasons_of(result: EvalResult) -> dict[tuple[str, str], int]:
    """The number of rows without a score, by metric and reason."""
    return {(metric, reason): rows for metric, reason, rows in result.unscored.itertuples(index=False)}
