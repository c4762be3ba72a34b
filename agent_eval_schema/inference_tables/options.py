"""The options of a build → a BuildPlan; an invalid option is reported before anything is read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Any, Literal, TypedDict

from msgspec import Struct

from agent_eval_schema.formats.inference_tables import (
    Aliases,
    Family,
    detect_family,
    find_family,
    locate,
    parse_aliases,
)
from agent_eval_schema.formats.opening import EvalSetLike
from agent_eval_schema.inference_tables.decide.sampling import number_of, sample_of, seed_of
from agent_eval_schema.inference_tables.finish.redact import DEFAULT, Hook, find_hook
from agent_eval_schema.inference_tables.read.plan import BuildPlan, carried_column
from agent_eval_schema.io.records import is_absent
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.rules.exclusions import REASONS
from agent_eval_schema.similarity.near import NEAR
from agent_eval_schema.text.choices import require_bool, require_choice
from agent_eval_schema.text.describe import names
from agent_eval_schema.text.moments import micros_since_epoch, read_iso
from agent_eval_schema.text.visible import visible

FEEDBACK = "feedback"
"""The labels that the table itself holds."""

THUMBS = "thumbs"
STRATA = ("day", "served_entity", "failed")
"""Columns of converted rows that `stratify` may name, if the table has no column of that name."""

KEEPABLE = tuple(r.name for r in REASONS if r.switchable)
"""The reasons that `include` may name: their steps can be switched off."""


class BuildKeywords(TypedDict, total=False):
    """The options of a build, for type checkers."""

    sample: int | float | None
    seed: int
    stratify: str | None
    balance_by: str | None
    dedupe: Literal["id", "question", "near"] | None
    near: float
    extend: EvalSetLike | None
    labels: EvalSetLike | None
    redact: str | Hook | None
    traces: EvalSetLike | None
    since: str | date | None
    until: str | date | None
    where: str | None
    family: str
    column_map: Mapping[str, str] | Iterable[str] | None
    include: Iterable[str]
    show_values: bool


class BuildOptions(Struct, frozen=True, kw_only=True, eq=False):
    """The options of a build; `eval_set_from_inference_table` documents each. Nothing is validated here."""

    sample: int | float | str | None = None
    seed: int = 0
    stratify: str | None = None
    balance_by: str | None = None
    dedupe: str | None = "id"
    near: float = NEAR
    extend: Any = None
    labels: Any = FEEDBACK
    redact: str | Hook | None = None
    traces: Any = None
    since: Any = None
    until: Any = None
    where: str | None = None
    family: str = "auto"
    column_map: Mapping[str, str] | Iterable[str] | None = None
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
        given = {"labels": labels, "traces": self.traces, "extend": self.extend}
        return {name: table for name, table in given.items() if table is not None}

    @property
    def hook(self) -> Hook | None:
        """The redaction, if it is a function."""
        return self.redact if callable(self.redact) else None


def plan_of(columns: list[str], options: BuildOptions) -> tuple[BuildPlan, str]:
    """The plan for a table with these columns, and why it was taken for its family. Raises EvalSetError for an option
    that has no meaning."""
    aliases = aliases_of(options.column_map)
    found, reason = (
        detect_family(columns, aliases) if options.family == "auto" else (find_family(options.family), "as asked")
    )
    _require_places(aliases, found, columns)
    since, until = instant_of(options.since, "since"), instant_of(options.until, "until")
    if since is not None and until is not None and since >= until:
        raise EvalSetError("since must be before until: the interval is empty")
    require_choice("dedupe", options.dedupe, DEDUPE)
    kept = _included(options.include) | (frozenset({"repeated"}) if options.dedupe is None else frozenset[str]())
    if options.extend is not None and "repeated" in kept:
        raise EvalSetError("extend: needs dedupe: id, question or near determines which calls the dataset has")
    sample = sample_of(options.sample)
    _require_balance(options, sample)
    strata = strata_of(options.stratify, columns) or strata_of(options.balance_by, columns, "balance_by")
    sql = f"{options.where or ''} {strata.get('stratum_sql', '')}".lower()
    require_bool("show_values", options.show_values)
    plan = BuildPlan(
        family=found.name,
        map=aliases,
        kept=kept,
        since=since,
        until=until,
        seed=seed_of(options.seed),
        joins_traces=options.traces is not None,
        values=options.show_values,
        where=_sql(options.where, "where"),
        sql_columns=tuple(n for n in columns if n.lower() in sql),
        by_question=options.dedupe in ("question", "near"),
        near=_near(options.near) if options.dedupe == "near" else None,
        extends=options.extend is not None,
        sample=sample,
        balanced=options.balance_by is not None,
        labeled=options.labels is not None,
        trace_feedback=options.reads_feedback,
        redact=redaction_of(options.redact),
        **strata,
    )
    return plan, reason


def aliases_of(given: Mapping[str, str] | Iterable[str] | None) -> Aliases:
    """`{"request": "body.input"}` or `["request=body.input"]` as pairs."""
    if given is None:
        return ()
    if isinstance(given, str):
        given = [given]
    return parse_aliases([f"{k}={v}" for k, v in given.items()] if isinstance(given, Mapping) else given)


def _require_places(aliases: Aliases, family: Family, columns: list[str]) -> None:
    """A mapping that leads nowhere would set every row aside."""
    for target, path in aliases:
        if locate(target, family, aliases, columns) is None:
            raise EvalSetError(
                f"column_map: the table has no column for {_said(path)} ({target}); it has {names(columns[:30])}"
            )


DEDUPE = ("id", "question", "near", None)
"""What `dedupe` may be: each but the last also excludes what those before it exclude."""


def _near(given: Any) -> float:
    given = number_of(given)
    if isinstance(given, int | float) and not isinstance(given, bool) and 0 < given <= 1:
        return float(given)
    raise EvalSetError(f"near: expected a similarity above 0, at most 1, got {_said(given)}")


def _require_balance(options: BuildOptions, sample: int | float | None) -> None:
    if options.balance_by is None:
        return
    if options.stratify is not None:
        raise EvalSetError("balance_by: expected no stratify: a sample has the shares of the table or equal ones")
    if sample is None or isinstance(sample, float):
        raise EvalSetError("balance_by: needs a sample that is a number of rows, such as 200")


def _included(given: Iterable[str]) -> frozenset[str]:
    found = frozenset((given,) if isinstance(given, str) else given)
    for name in found:
        require_choice("include", name, KEEPABLE)
    return found


def strata_of(given: str | None, columns: list[str], name: str = "stratify") -> dict[str, Any]:
    """What `stratify` or `balance_by` means for a table: a column of it, one of ours, the feedback, or SQL over its
    columns."""
    if given is None:
        return {}
    if not isinstance(given, str) or not given.strip():
        raise EvalSetError(f"{name}: expected a column or an SQL expression, got {_said(given)}")
    if given in columns:
        return {"carried": (given,), "stratum_column": carried_column(given)}
    if given == THUMBS:
        return {"by_thumbs": True}
    if given in STRATA:
        return {"stratum_column": given}
    if re.fullmatch(r"\w+", given):
        known = ", ".join((*STRATA, THUMBS))
        raise EvalSetError(
            f"{name}: the table has no column {_said(given)}; in addition to its columns there are {known}"
        )
    return {"stratum_sql": given}


def _sql(given: str | None, name: str) -> str | None:
    if given is None or (isinstance(given, str) and given.strip()):
        return given
    raise EvalSetError(f"{name}: expected an SQL expression, got {_said(given)}")


def redaction_of(given: str | Hook | None) -> str | None:
    """The name by which every process finds the redaction; None for a function that has none (or no redaction)."""
    if given is None or given == "none" or (callable(given) and not isinstance(given, str)):
        return None
    if not isinstance(given, str):
        raise EvalSetError(f"redact: expected default, None, MODULE:FUNCTION or a function, got {_said(given)}")
    if given != DEFAULT:
        find_hook(given)
    return given


def instant_of(given: Any, name: str) -> int | None:
    """A point in time in microseconds since 1970 UTC: ISO text, a date (its first moment) or a datetime; what has no
    zone is in UTC."""
    if given is None:
        return None
    try:
        found = _datetime(given)
    except (ValueError, TypeError, OverflowError) as error:
        expected = "a date or time such as 2025-11-03 or 2025-11-03T09:00:00Z"
        raise EvalSetError(f"{name}: expected {expected}, got {_said(given)}") from error
    return micros_since_epoch(found)


def _datetime(given: Any) -> datetime:
    if isinstance(given, str):
        return read_iso(given)
    if is_absent(given):
        raise ValueError("no time")
    if isinstance(given, datetime):
        exact = getattr(given, "to_pydatetime", None)  # of a Timestamp of pandas, which has nanoseconds
        found: datetime = given if exact is None else exact(warn=False)
        return found
    if isinstance(given, date):
        return datetime(given.year, given.month, given.day)
    raise TypeError(f"a {type(given).__name__} is not a time")


def _said(given: Any) -> str:
    return visible(repr(given))[:80]
