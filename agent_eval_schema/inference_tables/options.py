"""The options of a build, each declared once: its type and default, and its words on the command line.

    BuildOptions ──▶ eval_set_from_inference_table     a test compares the signature, which users and editors read
                 ──▶ COMMAND_LINE                      `--name` of each option: the arguments, a manifest's command
                 ──▶ BuildPlan                         validated for one table by make_plan.py

Nothing heavy is imported: the help of the command line reads this.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct

Hook = Callable[[str], str]
"""A function that redacts a string."""

FEEDBACK = "feedback"
"""The labels that the table itself holds."""


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


COMMAND_LINE: dict[str, dict[str, dict[str, Any]]] = {
    "input": {
        "format": {
            "metavar": "TABLE_FORMAT",
            "help": "format of the table, if its columns do not identify it: assessment_logs, request_logs, "
            "ai_gateway, legacy, unity_ai_gateway, search_traces, archived_traces, mapped",
        },
        "columns": {
            "metavar": "PATH=FIELD|FILE",
            "help": "read the column or key PATH as FIELD of a call, for other logs: body.input=request; or a FILE of "
            "them (.json, .toml); repeatable",
        },
    },
    "rows": {
        "since": {"metavar": "TIME", "help": "logged at this time or later: 2025-11-03, 2025-11-03T09:00Z"},
        "until": {"metavar": "TIME", "help": "logged before this time (UTC if it has no zone)"},
        "where": {"metavar": "SQL", "help": "rows to read: \"served_entity_id = 'a'\""},
        "dedupe": {
            "choices": ["id", "question", "near", "none"],
            "help": "keep one row per request ID (default), the latest row per distinct question, or per group of near "
            "duplicates, or every row",
        },
        "near": {"metavar": "N", "help": "similarity of near duplicates (default: 0.7)"},
        "extend": {
            "metavar": "EXISTING",
            "help": "dataset of an earlier build whose rows come first: only calls that it does not have are added (as "
            "--dedupe compares them), and later feedback updates its labels",
        },
        "include": {
            "metavar": "REASON",
            "action": "append",
            "help": "do not exclude rows for this reason: outside_window, status, partial, repeated or invalid; "
            "repeatable",
        },
        "sample": {"metavar": "N", "help": "sample size: a row count or a fraction such as 0.1 (default: all rows)"},
        "stratify": {
            "metavar": "COL",
            "help": "stratify the sample by a column, day, served_entity, failed, thumbs, or an SQL expression",
        },
        "balance_by": {
            "metavar": "COL",
            "help": "draw equally many rows of each value, of the same columns; --sample is a row count",
        },
        "seed": {"metavar": "N", "help": "seed of the sample (default: 0)"},
    },
    "content of the rows": {
        "labels": {
            "metavar": "TABLE",
            "help": "source of ground-truth labels: feedback (default), none, or an assessment-log table",
        },
        "redact": {
            "metavar": "HOW",
            "help": "replace in strings: default (e-mail, phone and card numbers, IBANs), MODULE:FUNCTION, or none "
            "(default)",
        },
        "redact_region": {
            "metavar": "COUNTRY",
            "action": "append",
            "help": "country whose national phone numbers and IDs --redact default replaces too: DE; repeatable",
        },
        "traces": {"metavar": "TABLE", "help": "table of traces, for rows that were logged without one"},
    },
}
"""The arguments of argparse for each option but `show_values`, by the group that the help shows it in."""


def flag(option: str) -> str:
    return f"--{option.replace('_', '-')}"


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
