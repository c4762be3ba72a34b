"""What a report advises: the verdict in one sentence, the next commands, what is left for a person to decide."""

from collections.abc import Mapping

from agent_eval_schema.render.phrases import SIGNS, Call, NextCommand, plural, share
from agent_eval_schema.render.report.summary import FixPreview, ReportSummary
from agent_eval_schema.rule import Severity
from agent_eval_schema.rules import RULES
from agent_eval_schema.rules.columns import UNREAD_TRUTH

CODES_NAMED = 3
"""Selected rules whose codes a verdict names; of more it gives the number."""

NO_ACTION = "No action needed"
"""With what the hint of a rule begins if nothing is to be done."""


def report_headline(report: ReportSummary) -> str:
    """The verdict in a line of its own."""
    return SIGNS[report_mood(report)] + report_verdict(report)


def report_verdict(report: ReportSummary) -> str:
    """One sentence: can this data set be evaluated? If rules were selected, only what they say."""
    errors, warnings, rows = report.count(Severity.ERROR), report.count(Severity.WARNING), report.row_count
    if not rows:
        return "The dataset has no rows."
    counts = f"{plural(errors, 'error')}, {plural(warnings, 'warning')}"
    if report.invalid_count:
        part = share(report.invalid_count, rows)
        head = f"{report.invalid_count:,} of {rows:,} rows cannot be evaluated ({part}): {counts}"
    elif errors:
        head = f"All {rows:,} rows are valid, but the dataset is not: {counts}"
    elif report.unselected:
        names = " or ".join(report.codes) if len(report.codes) <= CODES_NAMED else ""
        issues = f"{names} issues" if names else "issues of the selected rules"
        head = f"{counts if warnings else f'No {issues}'} in {plural(rows, 'row')}"
    else:
        head = f"All {rows:,} rows are valid" if rows > 1 else "The row is valid"
        head += f", and {report.unscored}" if report.unscored else ""
        head += f": {counts}" if warnings else ""
    if report.unselected:
        head += f"; {plural(report.unselected, 'rule')} {'was' if report.unselected == 1 else 'were'} not run"
    return f"{head}."


def report_mood(report: ReportSummary) -> str:
    if not (report.ok and report.row_count):
        return "error"
    return "" if report.unselected else "warning" if report.unscored else "good"


def effect(fixes: FixPreview, report: ReportSummary) -> str:
    """What the fixes would do: `fixes 8 cells in 8 rows and 1 column name → 21 of 37 rows valid`."""
    if fixes.valid_count is None:
        return f"may fix issues of {plural(len(fixes.codes), 'code')}; --diff shows which"
    rules = " by the selected rules" if report.unselected else ""
    return f"fixes {fixes.changes} → {fixes.valid_count:,} of {report.row_count:,} rows valid{rules}"


def next_commands(report: ReportSummary, fixes: FixPreview | None, out: str | None = None) -> list[NextCommand]:
    """What to type next; nothing if there is nothing to do. If the rows were written, people review those of `out`."""
    codes = [code for s in (Severity.ERROR, Severity.WARNING) for code in report.codes_of(s)]
    if renames_columns(report):
        has_truth = UNREAD_TRUTH.code in codes
        read = "the ground truth by its likely name" if has_truth else "the columns by their likely names"
        return [NextCommand(report.call.naming(report.suggested).validation(), f"reads {read}")]
    if fixes is not None:
        return [NextCommand(fixes.command, effect(fixes, report))]
    if not report.row_count:
        return []
    commands, count = [], report.count(Severity.ERROR) + report.count(Severity.WARNING)
    listed = report.call.command("validate", "--output", "concise") if report.is_fixed else ""
    if codes and listed:
        commands += [NextCommand(listed, f"lists what is left for a person to decide, {plural(count, 'issue')}")]
    elif codes:
        explained = f"agent-eval-schema explain {codes[0]}"
        commands += [NextCommand(explained, "shows the documentation of the first issue")]
    return [*commands, *review_command(report, report.call if out is None else Call(out))]


def review_command(report: ReportSummary, call: Call, fixes: FixPreview | None = None) -> list[NextCommand]:
    """The page on which people decide what no rule can."""
    count, queue = _rows_to_review(report, fixes)
    command = call.command("review", "--queue", queue) if count else ""
    task = f"decide about {plural(count, 'row')}" if queue == "errors" else f"give {plural(count, 'row')} ground truth"
    return [NextCommand(command, f"opens a page to {task}")] if command else []


def _rows_to_review(report: ReportSummary, fixes: FixPreview | None) -> tuple[int, str]:
    """How many rows a person has to decide about, and the queue that has them: those with errors that no fix resolves,
    or else those without ground truth."""
    if not report.has_metrics or report.format == "unknown" or renames_columns(report):
        return 0, ""
    fixed = report.valid_count if fixes is None or fixes.valid_count is None else fixes.valid_count
    bad = report.row_count - fixed
    return (bad, "errors") if bad else (report.unlabeled_count, "truth")


def renames_columns(report: ReportSummary) -> bool:
    """Whether the first thing to do is to read the columns by their likely names: without, nothing can be evaluated, or
    people would be asked for the ground truth that the data has."""
    named = {name.partition(".")[0] for name in report.suggested.values()}
    if report.suggested and UNREAD_TRUTH.code in report.counts and report.unlabeled_count:
        return True
    return report.invalid_count == report.row_count and not named.isdisjoint(("request", "inputs"))


def left_codes(report: ReportSummary, fixes: FixPreview | None) -> list[tuple[str, int]]:
    """The codes that no fix resolves, with the number of issues: errors first, then those with the most issues."""
    counts: Mapping[str, int] = report.counts
    if fixes is not None:
        unfixed = {code: n for code, n in counts.items() if code not in fixes.codes}
        counts = unfixed if fixes.left is None else fixes.left
    most_first = sorted(counts, key=lambda code: (-counts[code], code))
    both = (Severity.ERROR, Severity.WARNING)
    return [(code, counts[code]) for severity in both for code in most_first if RULES[code].severity is severity]


def needs_no_action(report: ReportSummary, code: str) -> bool:
    """Whether nothing is to be done about the issues of a code."""
    return all(asks_for_nothing(code, kind.hint) for kind in report.occurrences[code].kinds)


def asks_for_nothing(code: str, hint: str) -> bool:
    """Whether an issue is a note about which nothing is to be done."""
    return RULES[code].severity is Severity.INFO and hint.startswith(NO_ACTION + ":")


def no_action_line(report: ReportSummary) -> str:
    """The codes about which nothing is to be done, in one line."""
    codes = [code for code in report.codes_of(Severity.INFO) if needs_no_action(report, code)]
    counts = ", ".join(f"{code} {RULES[code].name} {report.counts[code]:,}" for code in codes)
    return f"{NO_ACTION}: {counts}" if codes else ""
