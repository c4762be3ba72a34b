"""The options of a build, the plan that is made of them, and the reasons for which it excludes a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct

from agent_eval_schema.inference_tables.options import FEEDBACK
from agent_eval_schema.runtime.tables import packaged

Hook = Callable[[str], str]
"""A function that redacts a string."""


class BuildOptions(Struct, frozen=True, kw_only=True, eq=False):
    """The options of a build; `eval_set_from_inference_table` documents each. Nothing is validated here."""

    sample: int | float | str | None = None
    seed: int = 0
    stratify: str | None = None
    balance_by: str | None = None
    dedupe: str | None = "id"
    near: float | str = 0.7
    extend: Any = None
    labels: Any = FEEDBACK
    redact: str | Hook | None = None
    redact_region: str | Iterable[str] = ()
    traces: Any = None
    since: Any = None
    until: Any = None
    where: str | None = None
    format: str = "auto"
    columns: Mapping[str, str] | None = None
    include: Iterable[str] = ()
    show_values: bool = True

    @property
    def reads_feedback(self) -> bool:
        """Whether the labels are those that the table itself holds."""
        return isinstance(self.labels, str) and self.labels == FEEDBACK

    @property
    def tables(self) -> dict[str, Any]:
        """The tables in addition to the logged one, by the names of their options."""
        labels = None if self.reads_feedback else self.labels
        tables = {"labels": labels, "traces": self.traces, "extend": self.extend}
        return {name: table for name, table in tables.items() if table is not None}

    @property
    def hook(self) -> Hook | None:
        return self.redact if callable(self.redact) else None


class BuildPlan(Struct, frozen=True):
    """How an evaluation dataset is built from a logged table: names and options only, so that it can be pickled."""

    family: str  # of the table (`TABLE_FAMILIES`), by the columns of the whole table: every batch is read alike
    fields: tuple[tuple[str, str], ...] = ()  # the columns that the user named: (("request", "body.input"), ...)
    kept: frozenset[str] = frozenset()  # names of reasons (`REASONS`) whose step is switched off: such rows stay
    since: int | None = None  # the time window in us since 1970 UTC: since <= time < until; open where None
    until: int | None = None
    now: int | None = None  # when the build began: what was logged later has a clock in the future; None: not examined
    seed: int = 0  # of the sample: the same seed selects the same rows in every engine
    carried: tuple[str, ...] = ()  # columns of the table that are passed through as `column_<name>` (text), for strata
    joins_traces: bool = False  # a traces table is joined later: a row may still get the request that it lacks
    values: bool = True  # whether messages may quote cells
    where: str | None = None  # SQL over the columns of the table, computed on every batch: which rows are wanted
    stratum_sql: str | None = None  # the same: the strata of the rows
    sql_columns: tuple[str, ...] = ()  # the columns that this SQL may mention: a file that lacks one has nulls there
    stratum_column: str | None = None  # the column of the converted rows with the strata, if they are not computed
    by_thumbs: bool = False  # the strata are the feedback: up, down or none
    by_question: bool = False  # one row per distinct question is kept
    near: float | None = None  # of questions that are at least so similar one row is kept; None: they are not compared
    extends: bool = False  # the rows of an earlier dataset stay, and calls that it has are excluded
    sample: int | float | None = None  # a number of rows, a fraction, or None: all rows
    balanced: bool = False  # each stratum gets as many rows of the sample as any other, if it has them
    labeled: bool = True  # feedback becomes labels
    trace_feedback: bool = True  # so do people's judgments in traces, unless an assessment log is given instead
    redact: str | None = None  # "default", the name of a function ("module:function"), or None: nothing is redacted
    redact_region: tuple[str, ...] = ()  # countries whose national forms the default searches for
    redact_with: tuple[str, ...] = ()  # the modules that it searches with, in every process alike

    @property
    def stratified(self) -> bool:
        """Whether there is a sample that is shared over strata."""
        return self.sample is not None and bool(self.stratum_sql or self.stratum_column or self.by_thumbs)


def carried_column(name: str) -> str:
    return f"column_{name}"


# --- why a logged row is no row of the evaluation set
class Reason(Struct, frozen=True, forbid_unknown_fields=True):
    """Why a row is excluded. `--include` takes those that are `switchable`: others have an option of their own, or such
    a row can be none of an evaluation dataset."""

    name: str
    step: str
    """Of the funnel: the name of the rows that are left."""
    sentence: str
    remedy: str
    switchable: bool = False


REASONS = {reason.name: reason for reason in packaged(__package__, "exclusions.json", list[Reason])}
"""In the order of the funnel, which `exclusions.json` has; the first that fits counts.

    logged ─ feedback ─▶ calls ─ outside_window … no_response ─▶ readable ─ repeated …
           near_duplicate ─▶ distinct ─ in_existing … near_in_existing ─▶ new ─ not_sampled ─▶ sampled ─ invalid ─▶ rows

Whatever is logged ends as a row or with exactly one of these: rows + excluded = logged (+ the records of batch calls).
"""
