"""The gates of a comparison, for `compare` and `score --against`: what fails them, a line each."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from agent_eval_schema.cli.options import EXIT
from agent_eval_schema.errors import EvalSetError

if TYPE_CHECKING:
    from agent_eval_schema.cli.options import Parser
    from agent_eval_schema.evaluation.comparison import ScoreComparison


def add_min_effect(command: Parser, help: str) -> None:
    command.group(EXIT).add_argument(
        "--min-effect", metavar="[METRIC=]X", type=_effect, action="append", default=[], help=help
    )


def _effect(text: str) -> tuple[str, float]:
    metric, _, bound = text.rpartition("=")
    with suppress(ValueError):
        if math.isfinite(effect := float(bound)) and effect >= 0:
            return metric, effect
    raise argparse.ArgumentTypeError(f"expected X or METRIC=X, such as 0.02 or recall=0.02; got {text!r}")


def _min_effect(arguments: argparse.Namespace) -> float | Mapping[str, float]:
    effects: dict[str, float] = dict(arguments.min_effect)
    if "" in effects and len(effects) > 1:
        raise EvalSetError("--min-effect: set one number for all metrics, or one per metric, not both")
    return effects.get("", effects or 0.0)


def failures_of(comparison: ScoreComparison, fail_on: str, arguments: argparse.Namespace) -> list[str]:
    """Why a comparison fails `--fail-on significant` or `any`; metrics whose direction must be stated come first, and
    nothing is judged before."""
    from agent_eval_schema.evaluation.result_blocks import SESSIONS_UNKNOWN
    from agent_eval_schema.render.phrases import signed

    if undecided := comparison._undecided:
        return [
            f"{one.name}: the direction is not known, and the name suggests that lower is better: set "
            f"{one.option('lower')} or {one.option('higher')}"
            for one in undecided
        ]
    alpha = getattr(arguments, "alpha", 0.05)
    worse = comparison.regressions(significant=fail_on == "significant", min_effect=_min_effect(arguments), alpha=alpha)
    note = " (sessions unknown: each row counts as independent)" if SESSIONS_UNKNOWN in comparison.remarks else ""
    found = [f"{metric}: the mean changed by {signed(difference)}{note}" for metric, difference in worse.items()]
    if comparison._lost and not arguments.allow_unscored:
        found.append(f"{comparison._lost:,} rows that had a score have none in NEW; --allow-unscored accepts them")
    return found
