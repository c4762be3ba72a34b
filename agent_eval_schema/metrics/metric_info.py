"""What a score is: its number; and what its metric means: scale, direction and unit.

Intervals, tests, gates, colors and words ask a MetricInfo and nothing else. A direction that was never stated is
`unknown`: it is judged by the `sign` that its name suggests, and the judgment is printed with this `assumption`.
"""

import math
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import numpy as np
from msgspec import Struct

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.metrics.catalog import Direction, Scale
from agent_eval_schema.metrics.intervals import Numbers
from agent_eval_schema.text.choices import choice_problem
from agent_eval_schema.text.visible import shell_words

WORDS = {"yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0, "pass": 1.0, "fail": 0.0}


def numbers_of(values: Iterable[Any]) -> Numbers:
    """Scores as numbers: words of judges as 0 and 1, several scores of a row as their mean, NaN where there is none."""
    return np.array([_number(value) for value in values], np.float64)


def _number(value: Any) -> float:
    if isinstance(value, list | tuple | np.ndarray):
        numbers = [n for n in map(_number, value) if n == n]
        return sum(numbers) / len(numbers) if numbers else math.nan
    if isinstance(value, str):
        word = value.strip('" ').lower()
        # what Python alone reads as a number: `1_000`, digits of other scripts
        value = WORDS.get(word, word) if word.isascii() and "_" not in word else None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan


# --- what is known of a metric
class MetricInfo(Struct, frozen=True):  # numpydoc ignore=PR01
    """What the scores of a metric mean.

    Parameters
    ----------
    name : str
        The name of the metric.
    direction : {"unknown", "higher", "lower", "none"}, default "unknown"
        Which scores are better. `"none"`: neither; the metric is shown and never judged.
    scale : tuple of float and float or None, or None, default None
        The lowest and the highest score; a highest of None has no limit. None: the scale is not known.
    step : float, default 0
        The distance between the scores that a judge can give, such as 1 of 1 to 5. 0: any score of the scale.
    unit : str, default ""
        The unit, such as `"s"` or `"tokens"`; empty for points.

    Raises
    ------
    EvalSetError
        The direction is not one of the four, or the scale has no lowest score below its highest.

    See Also
    --------
    load_result : Read scores; takes what is known of their metrics.

    Examples
    --------
    >>> from agent_eval_schema import MetricInfo
    >>> MetricInfo("toxicity", direction="lower", scale=(0, 1)).sign
    -1
    >>> MetricInfo("toxicity").sign, MetricInfo("quality").sign
    (-1, 1)
    """

    name: str
    direction: Direction = "unknown"
    scale: tuple[float, float | None] | None = None
    step: float = 0.0
    unit: str = ""

    def __post_init__(self) -> None:
        if self.direction not in DIRECTIONS:
            raise EvalSetError(f"direction: {choice_problem(str(self.direction), DIRECTIONS)}")
        if self.scale is not None and not _is_scale(self.scale):
            raise EvalSetError(f"scale: expected the lowest and the highest score, such as (0, 1); got {self.scale!r}")

    @property
    def ends(self) -> Scale | None:
        """The lowest and the highest score.

        Returns
        -------
        tuple of float or None
            Infinity for a highest that has no limit; None if the scale is not known.

        Examples
        --------
        >>> from agent_eval_schema import MetricInfo
        >>> MetricInfo("recall", scale=(0, 1)).ends
        (0.0, 1.0)
        """
        if self.scale is None:
            return None
        low, high = self.scale
        return float(low), math.inf if high is None else float(high)

    @property
    def span(self) -> float | None:
        """The distance between the ends of the scale.

        Returns
        -------
        float or None
            None if the scale has no highest score, or is not known.

        Examples
        --------
        >>> from agent_eval_schema import MetricInfo
        >>> MetricInfo("fluency", scale=(1, 5)).span
        4.0
        """
        ends = self.ends
        return None if ends is None or ends[1] == math.inf else ends[1] - ends[0]

    @property
    def sign(self) -> int:
        """The direction of better scores.

        Returns
        -------
        int
            1 for higher, -1 for lower, 0 for neither; of an unknown direction the one that the name suggests.

        Examples
        --------
        >>> from agent_eval_schema import MetricInfo
        >>> MetricInfo("cost").sign
        -1
        """
        return {"higher": 1, "lower": -1, "none": 0}.get(self.direction, -1 if self.suggests_lower else 1)

    @property
    def known_sign(self) -> int:
        """The direction of better scores, if it is known.

        Returns
        -------
        int
            As `sign`, but 0 of an unknown direction.

        Examples
        --------
        >>> from agent_eval_schema import MetricInfo
        >>> MetricInfo("cost").known_sign
        0
        """
        return 0 if self.direction == "unknown" else self.sign

    @property
    def share_sign(self) -> int:
        """The direction of better scores from 0 to 1, if it is known.

        Returns
        -------
        int
            As `known_sign`, but 0 if the scale is another one, or not known.

        Examples
        --------
        >>> from agent_eval_schema import MetricInfo
        >>> MetricInfo("recall", "higher", (0, 1)).share_sign
        1
        """
        return self.known_sign if self.ends == SHARE else 0

    @property
    def suggests_lower(self) -> bool:
        """Whether the name contains a word such as error, cost or toxicity.

        Returns
        -------
        bool
            False if another word turns its meaning, as in `error_free`.

        Examples
        --------
        >>> from agent_eval_schema import MetricInfo
        >>> MetricInfo("error_rate").suggests_lower
        True
        """
        words = words_in(self.name)
        return any(map(_LESS.match, words)) and not _TURNED.intersection(words)

    @property
    def is_quality(self) -> bool:
        """Whether a score judges an answer.

        Returns
        -------
        bool
            False of metrics without a direction, and of amounts such as latency or tokens.

        Examples
        --------
        >>> from agent_eval_schema import MetricInfo
        >>> MetricInfo("latency_ms").is_quality
        False
        """
        if self.sign == 0 or (self.ends or SHARE)[1] == math.inf:
            return False
        return self.scale is not None or not AMOUNTS.intersection(words_in(self.name))

    @property
    def assumption(self) -> str:
        """The sentence that is printed beside a judgment by an unknown direction.

        Returns
        -------
        str
            Empty if the direction is known.

        Examples
        --------
        >>> from agent_eval_schema import MetricInfo
        >>> MetricInfo("quality").assumption
        'direction assumed: higher is better (`--lower-is-better quality`)'
        """
        if self.direction != "unknown":
            return ""
        if self.suggests_lower:
            says = f"`{self.option('lower')}` confirms it, `{self.option('higher')}` rejects it"
            return f"direction assumed from the name: lower is better ({says})"
        return f"direction assumed: higher is better (`{self.option('lower')}`)"

    def option(self, better: str) -> str:
        """Return the option of `compare` that states which scores are better.

        Parameters
        ----------
        better : {"lower", "higher"}
            Which scores are better.

        Returns
        -------
        str
            The option as a shell reads it.

        Examples
        --------
        >>> from agent_eval_schema import MetricInfo
        >>> MetricInfo("cost").option("lower")
        '--lower-is-better cost'
        """
        return f"--{better}-is-better{'=' if self.name[:1] == '-' else ' '}{shell_words([self.name])}"

    @property
    def told(self) -> str:
        """The scale or the unit, where a number alone does not show it.

        Returns
        -------
        str
            Such as `"1 to 5"` or `"tokens"`; empty if the number shows it.

        Examples
        --------
        >>> from agent_eval_schema import MetricInfo
        >>> MetricInfo("fluency", scale=(1, 5)).told
        '1 to 5'
        """
        if self.unit and self.unit != STEPS:
            return self.unit
        if self.scale is None or (self.ends == SHARE and word_of(self.name) not in _OFTEN_PERCENT):
            return ""
        low, high = self.scale
        return f"from {low:g}" if high is None else f"{low:g} to {high:g}"


DIRECTIONS: tuple[Direction, ...] = ("higher", "lower", "none", "unknown")

SHARE: Scale = (0.0, 1.0)

STEPS = "steps"
"""The unit of scores on the scale of a judge that gives steps."""

AMOUNTS = frozenset(
    ["latency", "duration", "time", "runtime", "seconds", "ms", "cost", "costs", "price", "tokens", "usd"]
)
"""Words in the names of figures: the costs of an answer, not its quality."""

_OFTEN_PERCENT = {"bleu", "bleuscore", "sacrebleu", "gleu", "chrfscore", "meteor", "gleuscore", "meteorscore"} | {
    f"rouge{kind}" for kind in ("", "1", "2", "l", "lsum", "n", "score", "-n")
}
"""Metrics that papers and packages give from 0 to 100, too."""

_LESS = re.compile(
    r"(errors?|cost|costs|price|toxic|hallucinat|latenc|duration|times?$|runtime|seconds?$|perplexit|violat|fail|harm(?!less)|bias"
    r"|stereotyp|leak|loss|tokens|wer$|cer$|mae$|mse$|rmse$|distance|unsafe|incorrect|wrong|misuse|jailbreak)"
)
"""How words begin that name amounts where less is better."""

_TURNED = {
    *("no", "non", "not", "free", "without", "avoidance", "reduction", "efficiency", "resistance", "robustness"),
    *("detection", "detected", "handling", "recovery", "safety", "savings", "saved"),
}
"""Words that turn the meaning of the others: `error_free`, `cost_efficiency`."""

COUNTED = {"num", "number", "count", "turns", "length", "len", "size", "words", "characters", "chars", "steps"}
"""Words of amounts where neither end is better."""


def _is_scale(scale: Any) -> bool:
    if not isinstance(scale, tuple | list) or len(scale) != 2:
        return False
    low, high = scale
    return all(
        isinstance(end, int | float) and math.isfinite(end) for end in (low, low if high is None else high)
    ) and (high is None or low < high)


def parse_scale(text: str) -> tuple[float, float | None]:
    """`0..1` or, without an upper end, `0..` as a scale. Raises EvalSetError for any other text."""
    low, dots, high = text.partition("..")
    with suppress(ValueError):
        scale = (float(low), float(high) if high.strip() else None)
        if dots and _is_scale(scale):
            return scale
    raise EvalSetError(f"expected a scale, such as 0..1 or 0..; got {text!r}")


def words_in(name: str) -> list[str]:
    """The words of a name, in lower case: of `numTurns`, `num_turns` and `num turns` num and turns."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return [word.lower() for word in re.split(r"[^A-Za-z]+", apart) if word]


def word_of(metric: str) -> str:
    return metric.rpartition("/")[2].replace("_", "").lower()
