"""What the pages of scores have in common: the texts of a row, cut, and its calls side by side with their marks."""

from __future__ import annotations

from typing import Any

from agent_eval_schema.metrics.alignment import EXTRA, MATCHED, MISSING, MOVED, CallPair, ShownCall

LONGEST_CELL = 600
"""Characters of a cell that are shown."""

LONGEST_TITLE = 90
"""Characters of the text by which a row is known in a list."""

MARKS = {
    MATCHED: ("=", "matched", ""),
    MOVED: ("↕", "in another place", "info"),
    EXTRA: ("+", "extra", "warning"),
    MISSING: ("−", "missing", "error"),
}
"""What is shown of a call, and said of it: a sign, words, the color."""

CALL_LEGEND = [MARKS[mark] for mark in (MATCHED, MOVED, EXTRA, MISSING)]


def call_lines(pairs: list[CallPair] | None) -> list[list[dict[str, Any] | None]] | None:
    """The calls of both trajectories, a line per pair; None if a row does not have both."""
    return None if pairs is None else [_sides(pair) for pair in pairs]


def _sides(line: CallPair) -> list[dict[str, Any] | None]:
    return [None if side is None else _side(side) for side in (line.predicted, line.reference)]


def _side(side: ShownCall) -> dict[str, Any]:
    sign, words, mood = MARKS[side.mark]
    return {"sign": sign, "words": words, "mood": mood, "tool": side.tool, "input": cut(side.input)}


def cut(text: str, longest: int = LONGEST_CELL) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
