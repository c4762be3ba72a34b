"""What a validation report shows, as plain values, JSON, and a line per issue: renderers draw them, compute nothing."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from agent_eval_schema.issues import Issue, file_of
from agent_eval_schema.metrics.support import Support, metrics_of, shown_systems
from agent_eval_schema.render.document import json_text, versioned
from agent_eval_schema.render.figures import PRESENCE, Distribution, Occurrences, Presence
from agent_eval_schema.render.phrases import Call, plural
from agent_eval_schema.render.rows import ShownRow
from agent_eval_schema.rule import Severity
from agent_eval_schema.rules import RULES
from agent_eval_schema.text.visible import visible

Location = tuple[int, str | None, str | None]
"""A row, a column and a path: what an issue reports of where it is."""


class Excerpt(NamedTuple):
    """A part of a cell; `marked` is what an issue is about: all of the excerpt if no part of the cell stands out."""

    before: str
    marked: str
    after: str


class FixPreview(Struct, frozen=True):
    """What the safe fixes would change: the number of issues per code that they fix (None: not counted), the cells,
    rows and column names that they change, the valid rows and the issues per code afterwards, what applies them, and by
    row the path, the old and the new text of what changes."""

    codes: Mapping[str, int | None]
    command: str
    changes: str = ""
    valid_count: int | None = None
    left: Mapping[str, int] | None = None
    cells: Mapping[int, list[tuple[str, str, str]]] = {}


class FrequentAnswer(Struct, frozen=True):
    """An answer that more than one row has: its text, shortened, and its rows of all that have an answer."""

    text: str
    rows: int
    total: int


class Shown(Struct, frozen=True):
    """What a report shows beside the summary: the lines of rows, the cells around the examples, what the fixes would
    change, whether metric coverage is part of it, the rows that a page can open with their issues and the offending
    values, the most frequent answers, and the file to which the rows were written."""

    lines: Mapping[int, int] = {}
    excerpts: Mapping[Location, Excerpt] = {}
    fixes: FixPreview | None = None
    metrics: bool = True
    rows: list[ShownRow] = []
    issues: list[Issue] = []
    values: Mapping[Location, str] = {}
    answers: list[FrequentAnswer] = []
    out: str | None = None


TRACES = ("otel", "search_traces", "traces")
"""The formats whose rows are traces."""

NOT_OF_TRACES = ("trace", "reference_trajectory")
"""Fields that no trace contains."""


class ReportSummary(Struct, frozen=True, kw_only=True, eq=False):
    """The numbers of a report, each as the attribute of `Report` with its name, and few examples.

    `unselected` is the number of rules that were not run because others were selected (`codes_off` has them too), and
    `usable_count` that of rows which are valid by them as well, and so can support metrics
    (`unlabeled_count` of these have no ground truth). `coverage` has a line per
    metric of every system, `examples` at most 20 issues per code. Excerpts of cells, line numbers and the list of all
    issues are not in it: renderers that show them take them as arguments. A summary is equal only to itself.
    """

    name: str | None
    call: Call
    is_fixed: bool
    suggested: Mapping[str, str]
    format: str
    format_reason: str
    system: str
    has_metrics: bool
    outputs: str
    values: bool
    codes: list[str]
    codes_off: list[str]
    unselected: int
    row_count: int
    valid_count: int
    usable_count: int
    unlabeled_count: int
    counts: dict[str, int]
    examples: dict[str, list[Issue]]
    occurrences: dict[str, Occurrences]
    together: dict[tuple[str, str], int]
    derived: dict[str, int]
    coverage: list[Support]
    presence: list[Presence]
    support_shares: dict[str, list[float]]
    distributions: dict[str, Distribution]
    seconds: float

    @property
    def invalid_count(self) -> int:
        return self.row_count - self.valid_count

    @property
    def ignored(self) -> str:
        """How many rules the user switched off one by one; empty if none."""
        count = len(self.codes_off) - self.unselected
        return f"{plural(count, 'rule')} switched off" if count else ""

    @property
    def ok(self) -> bool:
        return self.count(Severity.ERROR) == 0

    def count(self, severity: Severity) -> int:
        return sum(self.counts[code] for code in self.codes_of(severity))

    def codes_of(self, severity: Severity) -> list[str]:
        """The codes of a severity that were found: those of the whole dataset first, then by the number of rows."""
        codes = [code for code in self.counts if RULES[code].severity is severity]
        return sorted(codes, key=lambda code: (not self.is_of_dataset(code), -self.occurrences[code].rows, code))

    def derivation(self, *, of_traces: bool = False) -> list[tuple[str, str]]:
        """The fields that were derived from traces and, if the rows are traces, those that some rows lack."""
        counts, lacking = self.derived, dict[str, int]()
        if of_traces or self.format in TRACES:
            present = {line.field: line.rows for line in self.presence}
            lacking = {name: self.row_count - present.get(name, 0) for name in PRESENCE if name not in NOT_OF_TRACES}
        named = {"Derived from traces": counts, "Missing in traces": lacking}
        texts = {t: ", ".join(f"{name} {rows:,}" for name, rows in of.items() if rows) for t, of in named.items()}
        return [(f"{title} (rows per field)", text) for title, text in texts.items() if text and counts]

    def is_of_dataset(self, code: str) -> bool:
        """Whether the issues of a code concern the dataset as a whole, not single rows."""
        return all(issue.row is None for issue in self.examples[code])

    def support(self, system: str) -> list[Support]:
        """The metrics of a system, or of "all" that are shown. Raises EvalSetError if there is no such system."""
        metrics_of(system)
        wanted = self.systems if system == "all" else (system,)
        return [line for line in self.coverage if line.system in wanted]

    @property
    def unscored(self) -> str:
        """What the valid rows are missing if they support no metric of their platform, and which one scores them."""
        counts = Counter(line.system for line in self.coverage if line.supported)
        if not self.coverage or not self.usable_count or counts[self.system]:
            return ""
        other = max(("mlflow", *self.systems), key=lambda system: counts[system])
        as_other = f"; as {other} {plural(counts[other], 'metric')}" if counts[other] else ""
        return f"nothing can be scored as {self.system}{as_other}"

    @property
    def systems(self) -> tuple[str, ...]:
        return shown_systems(self.system)


def report_json(report: ReportSummary, issues: Sequence[Issue]) -> str:
    """The report as JSON, with the issues to list (of a file the first 100,000); `counts` is always exact."""
    document = {
        "source": visible(report.name) if report.name else None,
        "format": report.format,
        "format_reason": report.format_reason,
        "outputs": report.outputs,
        "ok": report.ok,
        "rows": {"total": report.row_count, "valid": report.valid_count, "invalid": report.invalid_count},
        "severities": {str(s): report.count(s) for s in Severity},
        "rules_off": len(report.codes_off),
        "counts": report.counts,
        "derived": report.derived,
        "issues_listed": len(issues),
        "issues": issues,
        "metrics": report.support("all"),
    }
    return json_text(versioned(document))


def concise_text(report: ReportSummary, issues: Iterable[Issue], lines: Mapping[int, int]) -> str:
    """One line per issue, never wrapped: `broken.jsonl:6: error AE206 message-role: request…: expected … (…)`."""
    texts = (concise_line(i, report.name, None if i.row is None else lines.get(i.row)) for i in issues)
    return "".join(f"{line}\n" for line in texts)


def concise_line(issue: Issue, name: str | None, line: int | None) -> str:
    """An issue in one line, as linters write it."""
    at = f":{line}" if line else "" if issue.row is None else f": row {issue.row}"
    place = visible(file_of(line, name or "data")) + at
    where = f"{visible(issue.path)}: " if issue.path else ""
    hint = f" ({visible(issue.hint)})" if issue.hint else ""
    return f"{place}: {issue.severity} {issue.code} {issue.name}: {where}{visible(issue.message)}{hint}"
