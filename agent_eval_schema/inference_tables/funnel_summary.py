"""The row counts of a build, step by step, as plain values: renderers draw them and compute nothing.

1,000,000 logged → 962,114 calls → 958,020 readable → 957,998 distinct → 500 sampled → 498 rows
"""

from __future__ import annotations

from msgspec import Struct


class Removed(Struct, frozen=True):
    """How many rows were excluded for a reason (rules/exclusions.py)."""

    reason: str
    rows: int


class FunnelStep(Struct, frozen=True):
    """One step: what the rows that are left are called, how many they are, and which went, most frequent reason in the
    order of the funnel."""

    name: str
    left: int
    removed: tuple[Removed, ...]


class Stratum(Struct, frozen=True):
    """A part of the calls that the sample was shared over: how many calls it has, how many were drawn."""

    stratum: str
    calls: int
    sampled: int


class FunnelSummary(Struct, frozen=True, kw_only=True):
    """What became of a table.

    table
        The path of the table, if it was a file or folder.
    format, format_reason
        The kind of table (formats/inference_tables.py), and why it was taken for one.
    logged
        Rows of the table.
    records
        The same, with the records of batch calls counted one by one: rows + excluded.
    steps
        The funnel.
    rows
        Rows of the evaluation set.
    feedback
        Judgments in the table by what became of them: `given` in all; those that are `latest` (the last click of each
        kind) are `attached` to rows of the set, `elsewhere` (on a row that was excluded, or a whole batch), or
        `unknown` (the table has no such id: AE717). Those inside traces are not counted here.
    labels
        How many rows got which label from it: `expected_response` (`copied`: of these, the response itself),
        `expected_retrieved_context`.
    redacted
        How much was replaced in the rows of the set, by kind (`hook`: texts that a function of the user changed).
    traces_joined
        Rows that got their trace from the traces table.
    existing
        The dataset that was extended, if there is one: its `rows`, how many of them later feedback `updated`, and the
        labels that it set (`expected_response`, `expected_retrieved_context`) or took away (`withdrawn`).
    strata
        The largest strata (at most 100) of a sample that is shared over strata.
    issues
        How many issues of each code the rows have, those that were excluded as invalid too, and the feedback (AE717).
    sample, seed
        As asked.
    notes
        What the numbers do not show, as sentences.
    engine
        Which engine built the set.
    seconds
        How long it took.
    """

    table: str | None
    format: str
    format_reason: str
    logged: int
    records: int
    steps: tuple[FunnelStep, ...]
    rows: int
    feedback: dict[str, int]
    labels: dict[str, int]
    redacted: dict[str, int]
    traces_joined: int
    strata: tuple[Stratum, ...]
    issues: dict[str, int]
    sample: int | float | None
    seed: int
    redaction: str | None = None
    existing: dict[str, int] = {}
    notes: tuple[str, ...] = ()
    engine: str = "embedded"
    seconds: float = 0.0

    @property
    def excluded(self) -> dict[str, int]:
        """The number of excluded rows per reason, in the order of the steps.

        Returns
        -------
        dict of str to int
            Reasons without a row are not in it.

        Examples
        --------
        >>> from agent_eval_schema import eval_set_from_inference_table
        >>> eval_set_from_inference_table("sample_data/inference_table.jsonl").summary.excluded["status"]
        2
        """
        return {gone.reason: gone.rows for step in self.steps for gone in step.removed}
