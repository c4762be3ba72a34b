"""How an evaluation dataset is built from a logged table."""

from __future__ import annotations

from msgspec import Struct


class BuildPlan(Struct, frozen=True):
    """How an evaluation dataset is built from a logged table: names and options only, so that it can be pickled.

    family
        The name of the family of the table (`TABLE_FAMILIES`), detected from the columns of the whole table, so
        that every batch is read alike.
    fields
        The columns that the user named: `(("request", "body.input"), ...)`, the field (`MAPPING_TARGETS`) and a column
        or a dotted path into its JSON.
    kept
        Names of reasons (`REASONS`) whose step is switched off: such rows stay.
    since, until
        The time window in microseconds since 1970 UTC: since <= time < until. Open where None.
    now
        When the build began, in the same unit: what was logged later has a clock in the future. None: not looked at.
    seed
        Of the sample: the same seed picks the same rows in every engine.
    carried
        Columns of the table that go along, each as `column_<name>` (text), for strata.
    joins_traces
        A traces table is joined later: a row without request, or too large to be logged, may still get what it lacks.
    values
        Whether messages may quote cells.
    where, stratum_sql
        SQL over the columns of the table, computed on every batch: which rows are wanted, and their strata.
    sql_columns
        The columns that this SQL may mention: a file that lacks one has nulls there.
    stratum_column
        The column of the converted rows that holds the strata, if they are not computed.
    by_thumbs
        The strata are the feedback: up, down or none.
    by_question
        Keep one row per distinct question.
    near
        Of questions that are at least so similar only one row is kept. None: they are not compared.
    extends
        The rows of an earlier dataset stay, and calls that it has are excluded.
    sample
        A number of rows, a fraction, or None: all rows.
    balanced
        Each stratum gets as many rows of the sample as any other, if it has them.
    labeled
        Feedback becomes labels.
    trace_feedback
        So do the judgments of people in the traces of rows, joined ones too; not if an assessment log was given in
        their place.
    redact
        "default" or the name of a function ("module:function"), or None: nothing is redacted.
    """

    family: str
    fields: tuple[tuple[str, str], ...] = ()
    kept: frozenset[str] = frozenset()
    since: int | None = None
    until: int | None = None
    now: int | None = None
    seed: int = 0
    carried: tuple[str, ...] = ()
    joins_traces: bool = False
    values: bool = True
    where: str | None = None
    stratum_sql: str | None = None
    sql_columns: tuple[str, ...] = ()
    stratum_column: str | None = None
    by_thumbs: bool = False
    by_question: bool = False
    near: float | None = None
    extends: bool = False
    sample: int | float | None = None
    balanced: bool = False
    labeled: bool = True
    trace_feedback: bool = True
    redact: str | None = None

    def keeps(self, reason: str) -> bool:
        """Whether the step that sets rows aside for this reason is switched off."""
        return reason in self.kept

    @property
    def stratified(self) -> bool:
        """Whether there is a sample that is shared over strata."""
        return self.sample is not None and bool(self.stratum_sql or self.stratum_column or self.by_thumbs)


def carried_column(name: str) -> str:
    """The name under which a column of the table is passed through."""
    return f"column_{name}"
