"""The report as text: the issues by code, what can be measured, and last the verdict and the next command.

    AE206 message-role  64 ×  A message's role is not in the OpenAI chat schema.
        sample_data/broken.jsonl:6  row 5 (hr-006)  request.messages[0].role
          expected one of assistant, developer, …, got the text 'usr'
          {"messages": [{"role": "usr", "content": "Which …
                                 ^^^^^
          → did you mean 'user'?

Computes nothing: every number is the summary's. All text from cells goes through `visible`, and no markup is read.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, zip_longest

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from agent_eval_schema.issues import Issue, file_of
from agent_eval_schema.metrics.support import Support, systems_of_packages
from agent_eval_schema.render.console import TITLES, drawn, print_columns, print_verdict
from agent_eval_schema.render.phrases import EXAMPLES_SHOWN, STYLES, Call, NextCommand, plural, share
from agent_eval_schema.render.report.summary import Excerpt, FixPreview, ReportSummary, Shown
from agent_eval_schema.rule import Severity
from agent_eval_schema.rules import RULES
from agent_eval_schema.rules.columns import UNREAD_TRUTH
from agent_eval_schema.text.visible import visible
from agent_eval_schema.text.wrap import wrapped

BAR = 10

INDENT = 4
"""Of the examples of a code."""

CODES_NAMED = 3
"""Selected rules whose codes a verdict names; of more it gives the number."""

NO_ACTION = "No action needed"
"""With what the hint of a rule begins if nothing is to be done."""


def report_text(
    report: ReportSummary, shown: Shown | None = None, *, color: bool, width: int | None, system: str
) -> str:
    """The whole report for a terminal of the given width (that of the terminal, or 100, if not given)."""
    shown = shown or Shown()

    def draw(console: Console) -> None:
        if report.row_count:
            _print_source(console, report)
        for severity in Severity:
            _print_issues(console, report, shown, severity)
        if report.has_metrics and shown.metrics and report.row_count:
            _print_metrics(console, report, system)
        if report.row_count:
            console.print()
        style = (
            "red"
            if not (report.ok and report.row_count)
            else ""
            if report.unselected
            else "yellow"
            if report.unscored
            else "green"
        )
        print_verdict(console, report_headline(report), style, next_commands(report, shown.fixes, shown.out))

    return drawn(draw, color, width)


def metrics_text(
    report: ReportSummary,
    *,
    color: bool,
    width: int | None = None,
    system: str | None = None,
    following: Iterable[NextCommand] = (),
) -> str:
    """The part of the report on metrics, a block per system; then the number of metrics, and the next command."""
    systems = report.systems if system == "all" else (system,) if system else (report.system, *systems_of_packages())

    def draw(console: Console) -> None:
        for name in systems:
            _print_metrics(console, report, name)
        console.print()
        lines = [line for name in systems for line in report.support(name)]
        print_verdict(console, enabled(lines), "", following)

    return drawn(draw, color, width).lstrip("\n")


def _print_source(console: Console, report: ReportSummary) -> None:
    where = f"{visible(report.name)}: " if report.name else ""
    outputs = f", outputs {report.outputs}" if report.has_metrics else ""
    console.print(f"{where}{report.format} format ({visible(report.format_reason)}){outputs}", style="dim")
    if report.ignored:
        console.print(report.ignored, style="yellow")
    if not report.values:
        console.print("Cell values are hidden.", style="dim")
    for title, fields in report.derivation():
        console.print(f"{title}: {fields}", style="dim")


# --- the verdict and the next command
def report_headline(report: ReportSummary) -> str:
    """One sentence: can this data set be evaluated? If rules were selected, only what they say."""
    errors, warnings, rows = report.count(Severity.ERROR), report.count(Severity.WARNING), report.row_count
    if not rows:
        return "✗ The dataset has no rows."
    found = f"{plural(errors, 'error')}, {plural(warnings, 'warning')}"
    if report.invalid_count:
        part = share(report.invalid_count, rows)
        head = f"✗ {report.invalid_count:,} of {rows:,} rows cannot be evaluated ({part}): {found}"
    elif errors:
        head = f"✗ All {rows:,} rows are valid, but the dataset is not: {found}"
    elif report.unselected:
        names = " or ".join(report.codes) if len(report.codes) <= CODES_NAMED else ""
        issues = f"{names} issues" if names else "issues of the selected rules"
        head = f"{found if warnings else f'No {issues}'} in {plural(rows, 'row')}"
    else:
        head = f"✓ All {rows:,} rows are valid" if rows > 1 else "✓ The row is valid"
        if report.unscored:
            head = f"{head.removeprefix('✓ ')}, and {report.unscored}"
        head += f": {found}" if warnings else ""
    if report.unselected:
        head += f"; {plural(report.unselected, 'rule')} {'was' if report.unselected == 1 else 'were'} not run"
    return f"{head}."


def effect(fixes: FixPreview, report: ReportSummary) -> str:
    """What the fixes would do: `fixes 8 cells in 8 rows and 1 column name → 21 of 37 rows valid`."""
    if fixes.valid_count is None:
        return f"may fix issues of {plural(len(fixes.codes), 'code')}; --diff shows which"
    rules = " by the selected rules" if report.unselected else ""
    return f"fixes {fixes.changes} → {fixes.valid_count:,} of {report.row_count:,} rows valid{rules}"


def next_commands(report: ReportSummary, fixes: FixPreview | None, out: str | None = None) -> list[NextCommand]:
    """What to type next; nothing if there is nothing to do. If the rows were written, people review those of `out`."""
    found = [code for s in (Severity.ERROR, Severity.WARNING) for code in report.codes_of(s)]
    if renames_columns(report):
        read = (
            "the ground truth by its likely name" if UNREAD_TRUTH.code in found else "the columns by their likely names"
        )
        return [NextCommand(report.call.naming(report.suggested).validation(), f"reads {read}")]
    if fixes is not None:
        return [NextCommand(fixes.command, effect(fixes, report))]
    if not report.row_count:
        return []
    commands, left = [], report.count(Severity.ERROR) + report.count(Severity.WARNING)
    listed = report.call.command("validate", "--output", "concise") if report.is_fixed else ""
    if found and listed:
        commands += [NextCommand(listed, f"lists what is left for a person to decide, {plural(left, 'issue')}")]
    elif found:
        explained = f"agent-eval-schema explain {found[0]}"
        commands += [NextCommand(explained, "shows the documentation of the first issue")]
    return [*commands, *_review(report, report.call if out is None else Call(out))]


def _review(report: ReportSummary, call: Call) -> list[NextCommand]:
    """The page on which people decide what no rule can."""
    count, queue = rows_to_review(report)
    command = call.command("review", "--queue", queue) if count else ""
    task = f"decide about {plural(count, 'row')}" if queue == "errors" else f"give {plural(count, 'row')} ground truth"
    return [NextCommand(command, f"opens a page to {task}")] if command else []


def rows_to_review(report: ReportSummary, fixes: FixPreview | None = None) -> tuple[int, str]:
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
        counts = (
            {code: n for code, n in counts.items() if code not in fixes.codes} if fixes.left is None else fixes.left
        )
    most_first = sorted(counts, key=lambda code: (-counts[code], code))
    both = (Severity.ERROR, Severity.WARNING)
    return [(code, counts[code]) for severity in both for code in most_first if RULES[code].severity is severity]


# --- issues
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


def _print_issues(console: Console, report: ReportSummary, shown: Shown, severity: Severity) -> None:
    codes = [code for code in report.codes_of(severity) if not needs_no_action(report, code)]
    if codes and report.row_count:
        console.print()
        console.print(Text(f"{TITLES[severity]} ({report.count(severity):,})", style=STYLES[severity]))
    for code in codes:
        if report.row_count:
            _print_code(console, report, shown, code, severity)
        else:
            for issue in report.examples[code]:
                console.print(Text(concise_line(issue, report.name, None)), soft_wrap=True)
    line = no_action_line(report) if severity is Severity.INFO else ""
    if line and report.row_count:
        console.print()
        console.print(Text(line, style="dim"))


def _print_code(console: Console, report: ReportSummary, shown: Shown, code: str, severity: Severity) -> None:
    rule, count = RULES[code], report.counts[code]
    title = Text.assemble((f"{code} {rule.name}", STYLES[severity]), f"  {count:,} ×  " if count > 1 else "  ")
    title.append(rule.summary)
    console.print(title)
    examples = report.examples.get(code, [])[:EXAMPLES_SHOWN]
    alike = [list(found) for _, found in groupby(examples, key=lambda issue: (issue.path, issue.message, issue.hint))]
    for found, following in zip_longest(alike, alike[1:]):
        same_follows = following is not None and following[0].hint == found[0].hint
        _print_alike(console, report, shown, found, with_hint=not same_follows)
    if count > len(examples):
        console.print(Padding(Text(f"… and {count - len(examples):,} more", style="dim"), (0, 0, 0, INDENT)))


def _print_alike(console: Console, report: ReportSummary, shown: Shown, alike: list[Issue], *, with_hint: bool) -> None:
    """Issues that differ in their row only: where each is, then what they report."""
    issue = alike[0]
    for one in alike:
        _print_place(console, report, one, shown.lines.get(-1 if one.row is None else one.row))
    message = Text(visible(issue.message))
    if issue.row is None and issue.path:
        message = Text.assemble((f"{visible(issue.path)}: ", "cyan"), message)
    console.print(Padding(message, (0, 0, 0, INDENT + 2)))
    excerpt = None if issue.row is None else shown.excerpts.get((issue.row, issue.column, issue.path))
    if excerpt is not None:
        _print_excerpt(console, excerpt)
    if with_hint and issue.hint:
        for line in wrapped(f"→ {visible(issue.hint)}", console.width - INDENT - 2):
            console.print(Padding(Text(line, style="green"), (0, 0, 0, INDENT + 2)))


def _print_place(console: Console, report: ReportSummary, issue: Issue, line: int | None) -> None:
    """`broken.jsonl:6  row 5 (hr-006)  request.messages[0].role`; the first part stays whole, to be clicked."""
    if issue.row is None:
        return
    where = Text(f"{visible(file_of(line, report.name))}:{line}" if line and report.name else "", style="underline")
    rest = Text(f"row {issue.row:,}", style="bold")
    rest.append(f" ({visible(issue.request_id)})" if issue.request_id else "", style="not bold")
    rest.append(f"  {visible(issue.path)}" if issue.path else "", style="not bold cyan")
    both = Text.assemble(" " * INDENT, where, "  ", rest) if where else Text.assemble(" " * INDENT, rest)
    if both.cell_len <= console.width:
        console.print(both, soft_wrap=True)
        return
    if where:
        console.print(Text.assemble(" " * INDENT, where), soft_wrap=True)
    console.print(Padding(rest, (0, 0, 0, INDENT)))


def _print_excerpt(console: Console, excerpt: Excerpt) -> None:
    """A line of the cell with `^^^` below the part that the issue is about; none if that part is the whole cell."""
    before, marked, after = map(visible, excerpt)
    if not (before or after) or not marked:
        return
    room = console.width - INDENT - 3
    marked = _clipped(marked, room // 2)
    if cell_len(before) > room // 3:
        before = _clipped(before[::-1], room // 3)[::-1]
    after = _clipped(after, room - cell_len(before) - cell_len(marked))
    indent = " " * (INDENT + 2)
    line = Text.assemble(indent, (before, "dim"), (marked, "bold"), (after, "dim"))
    console.print(line, soft_wrap=True)
    marks = " " * cell_len(before) + "^" * cell_len(marked)
    console.print(Text(indent + marks, style="bold red"), soft_wrap=True)


def _clipped(text: str, cells: int) -> str:
    if cell_len(text) <= cells:
        return text
    kept = ""
    for character in text:
        if cell_len(kept + character) > max(cells - 1, 0):
            break
        kept += character
    return kept + "…"


def concise_text(report: ReportSummary, issues: Iterable[Issue], lines: Mapping[int, int]) -> str:
    """One line per issue, never wrapped: `broken.jsonl:6: error AE206 message-role: request…: expected … (…)`."""
    found = (concise_line(i, report.name, None if i.row is None else lines.get(i.row)) for i in issues)
    return "".join(f"{line}\n" for line in found)


def concise_line(issue: Issue, name: str | None, line: int | None) -> str:
    """An issue in one line, as linters write it."""
    at = f":{line}" if line else "" if issue.row is None else f": row {issue.row}"
    place = visible(file_of(line, name or "data")) + at
    where = f"{visible(issue.path)}: " if issue.path else ""
    hint = f" ({visible(issue.hint)})" if issue.hint else ""
    return f"{place}: {issue.severity} {issue.code} {issue.name}: {where}{visible(issue.message)}{hint}"


def files_line(failed: int, files: int) -> str:
    """The last line of a run on several files."""
    return f"✗ {failed:,} of {plural(files, 'file')} failed." if failed else f"✓ All {files:,} files passed."


# --- metrics
def _print_metrics(console: Console, report: ReportSummary, system: str) -> None:
    support = report.support(system)
    title = f"Metric coverage ({system})" + (", after outputs are generated" if report.outputs == "generated" else "")
    console.print()
    console.print(Text(title, style="bold"))
    by_advice: dict[tuple[bool, str], list[Support]] = {}
    for line in sorted(support, key=lambda line: not line.supported):  # those without rows are last
        by_advice.setdefault((bool(line.supported), support_advice(line)), []).append(line)
    lines = [(line, Text(advice)) for (_, advice), lines in by_advice.items() for line in lines]
    rows = [[Text(line.metric), _bar(line), Text(f"{line.supported:,} of {line.total:,}")] for line, _ in lines]
    print_columns(console, None, rows, 2, [advice for _, advice in lines])
    if report.usable_count < report.row_count and support:
        console.print(Padding(Text(invalid_advice(report), style="dim"), (0, 0, 0, 2)))


def enabled(lines: Sequence[Support]) -> str:
    """`9 of 12 metrics can score at least one row`."""
    return f"{sum(line.supported > 0 for line in lines)} of {plural(len(lines), 'metric')} can score at least one row"


def invalid_advice(report: ReportSummary) -> str:
    """What all metrics have in common: an invalid row supports none."""
    return f"All metrics: up to +{report.row_count - report.usable_count:,} by fixing invalid rows"


def _bar(line: Support) -> Text:
    filled = -(-line.supported * BAR // line.total) if line.total else 0
    if line.supported < line.total:
        filled = min(filled, BAR - 1)
    bar = Text("█" * filled, style="green")
    bar.append("░" * (BAR - filled), style="dim")
    return bar


def support_advice(line: Support) -> str:
    """What the support of a metric depends on, and what would give it more rows."""
    parts = [line.condition] if line.condition and line.supported else []
    if line.unlock:
        parts.append(f"+{line.unlock_rows:,} with {line.unlock}")
    return "; ".join(parts)
