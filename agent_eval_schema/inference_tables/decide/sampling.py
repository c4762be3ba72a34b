"""Sampling by a seeded hash of the id: the same rows whatever the order, the batches, the processes or the engine.

    int        the N rows with the smallest hashes; of each stratum its share of N, by largest remainder (sql.py)
    fraction   the rows whose hash lies below that part of its range; of strata the share that this makes of all rows

A row that is chosen for a sample is chosen for every larger one too (without strata), so a set can grow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.text.visible import visible

LOWEST, RANGE = -(1 << 63), 1 << 64
"""The range of the hashes (`seeded_hashes`): signed, since Spark has no unsigned integers."""


def below(fraction: float) -> int:
    """The hash below which this fraction of all hashes is."""
    return LOWEST + int(fraction * RANGE)


def sample_of(given: Any) -> int | float | None:
    """A number of rows (from 1 on), a fraction between 0 and 1, or None for all rows. Text, as on a command line, is
    read as one of these. Raises EvalSetError for anything else."""
    number = number_of(given)
    if number is None or _is_count(number) or (isinstance(number, float) and 0 < number < 1):
        return number  # type: ignore[no-any-return]
    raise EvalSetError(
        f"sample: expected a number of rows (such as 500) or a fraction below 1 (0.1), got {visible(repr(given))[:60]}"
    )


def seed_of(given: Any) -> int:
    """A whole number. Raises EvalSetError for anything else."""
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        return int(given)
    raise EvalSetError(f"seed: expected a whole number, got {visible(repr(given))[:60]}")


def _is_count(number: Any) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool) and bool(1 <= number < 1 << 63)


def number_of(given: Any) -> Any:
    """The number that a text on a command line states; anything else as it is."""
    for read in (int, float) if isinstance(given, str) else ():
        try:
            return read(given)
        except ValueError:
            continue
    return given
