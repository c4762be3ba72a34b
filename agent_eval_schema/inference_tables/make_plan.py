"""The options of a build → a BuildPlan for one table; an invalid option is reported before anything is read."""

import re
from contextlib import suppress
from datetime import date, datetime
from typing import Any

import numpy as np

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.formats.inference_tables import detect_family, fields_of, find_family, locate
from agent_eval_schema.inference_tables.finish.redact import DEFAULT, find_hook, libraries_at_hand, regions_of
from agent_eval_schema.inference_tables.plan import REASONS, BuildOptions, BuildPlan, carried_column
from agent_eval_schema.io.records import is_absent
from agent_eval_schema.text.choices import require_bool, require_choice, shown
from agent_eval_schema.text.describe import names
from agent_eval_schema.text.moments import micros_since_epoch, read_iso
from agent_eval_schema.text.visible import visible

THUMBS = "thumbs"
STRATA = ("day", "served_entity", "failed")
"""Columns of converted rows that `stratify` may name, if the table has no column of that name."""

KEEPABLE = tuple(r.name for r in REASONS.values() if r.switchable)
"""The reasons that `include` may name: their steps can be switched off."""


def plan_of(table_columns: list[str], options: BuildOptions) -> tuple[BuildPlan, str]:
    """The plan for a table with these columns, and the reason for its format. Raises EvalSetError."""
    fields = fields_of(options.columns)
    automatic = options.format == "auto"
    family, reason = detect_family(table_columns, fields) if automatic else (find_family(options.format), "as set")
    for field, path in fields:  # a path that leads nowhere would exclude every row
        if locate(field, family, fields, table_columns) is None:
            columns = names(table_columns[:30])
            raise EvalSetError(f"columns: the table has no column for {shown(path)} ({field}); it has {columns}")
    since, until = instant_of(options.since, "since"), instant_of(options.until, "until")
    if since is not None and until is not None and since >= until:
        raise EvalSetError("since must be before until: the interval is empty")
    # each but None also excludes what those before it exclude
    require_choice("dedupe", options.dedupe, ("id", "question", "near", None))
    include = frozenset((options.include,) if isinstance(options.include, str) else options.include)
    for name in include:
        require_choice("include", name, KEEPABLE)
    reasons = include | (frozenset({"repeated"}) if options.dedupe is None else frozenset[str]())
    if options.extend is not None and "repeated" in reasons:
        raise EvalSetError("extend: needs dedupe: id, question or near determines which calls the dataset has")
    sample = sample_of(options.sample)
    if options.balance_by is not None:
        if options.stratify is not None:
            raise EvalSetError("balance_by: expected no stratify: a sample has the shares of the table or equal ones")
        if sample is None or isinstance(sample, float):
            raise EvalSetError("balance_by: needs a sample that is a number of rows, such as 200")
    strata = strata_of(options.stratify, table_columns) or strata_of(options.balance_by, table_columns, "balance_by")
    if options.where is not None and not (isinstance(options.where, str) and options.where.strip()):
        raise EvalSetError(f"where: expected an SQL expression, got {shown(options.where)}")
    sql = f"{options.where or ''} {strata.get('stratum_sql', '')}".lower()
    require_bool("show_values", options.show_values)
    redact: Any = options.redact if options.hook is None else None  # a function that every process finds by its name
    if redact == "none":
        redact = None
    elif redact is not None and not isinstance(redact, str):
        raise EvalSetError(f"redact: expected default, None, MODULE:FUNCTION or a function, got {shown(redact)}")
    elif redact not in (None, DEFAULT):
        find_hook(redact)
    regions = regions_of(options.redact_region, redact)
    near = _number(options.near) if options.dedupe == "near" else None
    if near is not None and (isinstance(near, bool) or not isinstance(near, int | float) or not 0 < near <= 1):
        raise EvalSetError(f"near: expected a similarity above 0, at most 1, got {shown(near)}")
    plan = BuildPlan(
        family=family.name,
        fields=fields,
        kept=reasons,
        since=since,
        until=until,
        seed=seed_of(options.seed),
        joins_traces=options.traces is not None,
        values=options.show_values,
        where=options.where,
        sql_columns=tuple(n for n in table_columns if n.lower() in sql),
        by_question=options.dedupe in ("question", "near"),
        near=None if near is None else float(near),
        extends=options.extend is not None,
        sample=sample,
        balanced=options.balance_by is not None,
        labeled=options.labels is not None,
        trace_feedback=options.reads_feedback,
        redact=redact,
        redact_region=regions,
        redact_with=libraries_at_hand(regions) if redact == DEFAULT else (),
        **strata,
    )
    return plan, reason


# --- numbers, which are strings on a command line
def sample_of(sample: Any) -> int | float | None:
    """A number of rows, a fraction between 0 and 1, or None for all rows. Raises EvalSetError for anything else."""
    number = _number(sample)
    is_count = isinstance(number, int | np.integer) and not isinstance(number, bool) and 1 <= number < 1 << 63
    if number is None or is_count or (isinstance(number, float) and 0 < number < 1):
        return number  # type: ignore[no-any-return]
    raise EvalSetError(
        f"sample: expected a number of rows (such as 500) or a fraction below 1 (0.1), got {shown(sample)}"
    )


def seed_of(seed: Any) -> int:
    if isinstance(seed, int | np.integer) and not isinstance(seed, bool):
        return int(seed)
    raise EvalSetError(f"seed: expected a whole number, got {shown(seed)}")


def _number(value: Any) -> Any:
    """The number in a string; anything else as it is."""
    for read in (int, float) if isinstance(value, str) else ():
        with suppress(ValueError):
            return read(value)
    return value


# --- strata, redaction, time
def strata_of(expression: str | None, columns: list[str], option: str = "stratify") -> dict[str, Any]:
    """The plan's fields for `stratify` or `balance_by`: a column of either table, the feedback, or SQL over columns."""
    if expression is None:
        return {}
    if not isinstance(expression, str) or not (expression.strip() or expression in columns):
        raise EvalSetError(f"{option}: expected a column or an SQL expression, got {shown(expression)}")
    if expression in columns:
        return {"carried": (expression,), "stratum_column": carried_column(expression)}
    if expression == THUMBS:
        return {"by_thumbs": True}
    if expression in STRATA:
        return {"stratum_column": expression}
    if re.fullmatch(r"\w+", expression):
        known = ", ".join((*STRATA, THUMBS))
        raise EvalSetError(
            f"{option}: the table has no column {shown(expression)}; in addition to its columns there are {known}"
        )
    return {"stratum_sql": expression}


def instant_of(moment: Any, option: str) -> int | None:
    """A time, in microseconds since 1970 UTC; one without a zone is in UTC, a date is its first moment."""
    if moment is None:
        return None
    try:
        return micros_since_epoch(_datetime(moment))
    except (ValueError, TypeError, OverflowError) as error:
        expected = "a date or time such as 2025-11-03 or 2025-11-03T09:00:00Z"
        raise EvalSetError(f"{option}: expected {expected}, got {visible(repr(moment))[:80]}") from error


def _datetime(moment: Any) -> datetime:
    if isinstance(moment, str):
        return read_iso(moment)
    if is_absent(moment):
        raise ValueError("no time")
    if isinstance(moment, datetime):
        exact = getattr(moment, "to_pydatetime", None)  # of a Timestamp of pandas, which has nanoseconds
        value: datetime = moment if exact is None else exact(warn=False)
        return value
    if isinstance(moment, date):
        return datetime(moment.year, moment.month, moment.day)
    raise TypeError(f"a {type(moment).__name__} is not a time")
