"""What a validation report shows, as blocks: its issues by code, what can be measured, what next.

    AE206 message-role  64 ×  A message's role is not in the OpenAI chat schema.
        sample_data/broken.jsonl:6  row 5 (hr-006)  request.messages[0].role
          expected one of assistant, developer, …, got the text 'usr'
          {"messages": [{"role": "usr", "content": "Which …
                                 ^^^^^
          → did you mean 'user'?

Computes nothing: every number is the summary's.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from agent_eval_schema.issues import Issue, file_of
from agent_eval_schema.metrics.support import Support, all_metrics, systems_of_packages
from agent_eval_schema.render.blocks import (
    Block,
    Cell,
    Column,
    Download,
    Fold,
    Form,
    Found,
    FoundIssue,
    Group,
    Histograms,
    Issues,
    Line,
    Meter,
    OpenRows,
    Part,
    Section,
    Strip,
    Table,
    Terms,
    View,
    Words,
    issue_words,
)
from agent_eval_schema.render.console import TITLES
from agent_eval_schema.render.figures import FEWEST, FIGURES, per_step
from agent_eval_schema.render.page import csv_link, heat, percent, plot, runs
from agent_eval_schema.render.phrases import EXAMPLES_SHOWN, NextCommand, plural, share
from agent_eval_schema.render.printable import as_text
from agent_eval_schema.render.report.advice import (
    left_codes,
    needs_no_action,
    next_commands,
    no_action_line,
    renames_columns,
    report_headline,
    report_mood,
    report_verdict,
    review_command,
)
from agent_eval_schema.render.report.summary import ReportSummary, Shown, concise_text
from agent_eval_schema.rule import Severity
from agent_eval_schema.rules import RULES
from agent_eval_schema.runtime.groups import by_key
from agent_eval_schema.runtime.version import __version__

EXAMPLES_ON_A_PAGE = 600
"""Examples that a page shows in all, so that it opens at once however many codes there are."""

MOST_EXAMPLES = {"page": 20, "notebook": 3}
"""Examples of a code; a notebook's file holds every output."""

ISSUES_INLINE = 5
"""Codes that a notebook shows at once; the others are folded."""

KINDS_SHOWN = 20
"""Different messages of a code that are shown."""

ROWS_NAMED = 3
"""Rows of a code that are named beside it; if there are more, they are only counted."""

CODES_LEFT = 6
"""Codes that are named of those that no fix resolves."""


def report_view(report: ReportSummary, shown: Shown, form: Form = "text", system: str = "") -> View:
    """The report in one of its forms; a text has the metric coverage of the `system`, or that of its format."""
    name = os.path.basename(report.name or "")
    following = next_commands(report, shown.fixes, shown.out)
    named = {step.command for step in following}
    then = [step for step in review_command(report, report.call, shown.fixes) if step.command not in named]
    if form == "text":
        about, notes, blocks = _about(report), list[Block](), list(_in_text(report, shown, system or report.system))
    else:
        facts = " · ".join(filter(None, (name, plural(report.row_count, "row"), report.format)))
        about, notes = [Line(facts, "muted")], list(_notes(report, shown))
        blocks = list(_on_page(report, shown, form))
    verdict, valid = report_verdict(report), f"{report.valid_count:,} of {report.row_count:,} rows"
    has_meter = report.row_count and not (report.ok and report.unselected)
    return View(
        title=f"{name or 'evaluation set'}: {verdict if report.unselected else f'{valid} valid'}",
        verdict=verdict,
        mood=report_mood(report),
        meter=Meter(percent(report.valid_count, report.row_count), f"{valid} are valid") if has_meter else None,
        about=about,
        notes=notes,
        following=following,
        then=then,
        blocks=blocks,
        kind="report",
        footer=". Row numbers are zero-based. Run `agent-eval-schema explain CODE` for details.",
    )


def report_text(report: ReportSummary, shown: Shown, *, color: bool, width: int | None, system: str = "") -> str:
    """The report for a terminal; of data without rows, its issues in one line each."""
    issues = () if report.row_count else (issue for code in report.counts for issue in report.examples[code])
    view = report_view(report, shown, system=system)
    return concise_text(report, issues, {}) + as_text(view, color=color, width=width)


def after_build(build: View, report: ReportSummary, shown: Shown) -> View:
    """The page of a build with the report on its rows. It begins with one action: that of the report if rows are
    invalid."""
    view = report_view(report, shown, "page")
    title, about = report_headline(report), [*view.about, *view.notes]
    verdict = Section("validation", title, about, "Validation", mood=view.mood, meter=view.meter)
    following = view.following if not report.ok or not build.following else build.following
    return replace(build, following=following, blocks=[*build.blocks, verdict, *view.blocks], footer=view.footer)


def metrics_view(report: ReportSummary, system: str | None = None, following: Sequence[NextCommand] = ()) -> View:
    """The part of the report on metrics, a block per system; then the number of metrics, and the next command."""
    systems = report.systems if system == "all" else (system,) if system else (report.system, *systems_of_packages())
    lines = [line for name in systems for line in report.support(name)]
    blocks = [_coverage(report, name) for name in systems]
    return View(title="Metric coverage", verdict=enabled(lines), blocks=blocks, following=following)


# --- as text
def _about(report: ReportSummary) -> list[Block]:
    where = f"{report.name}: " if report.name else ""
    outputs = f", outputs {report.outputs}" if report.has_metrics else ""
    lines: list[Block] = [
        Line(f"{where}{report.format} format ({report.format_reason}){outputs}", "muted"),
        Line(report.ignored, "warning"),
        Line("" if report.values else "Cell values are hidden.", "muted"),
        *(Line(f"{title}: {fields}", "muted") for title, fields in report.derivation()),
    ]
    return lines if report.row_count else []


def _in_text(report: ReportSummary, shown: Shown, system: str) -> Iterator[Block]:
    if not report.row_count:
        return
    for severity in Severity:
        groups = []
        for code in (code for code in report.codes_of(severity) if not needs_no_action(report, code)):
            rule, times = RULES[code], [f"{report.counts[code]:,} ×"] if report.counts[code] > 1 else []
            block = _found(report, shown, report.examples.get(code, [])[:EXAMPLES_SHOWN])
            groups.append(Group([Part(f"{code} {rule.name}", f"bold {severity}"), *times, rule.summary], [block]))
        title = f"{TITLES[severity]} ({report.count(severity):,})"
        yield Section(str(severity), title, groups, indent=0, mood=str(severity))
    yield Section("notes", "", [Line(no_action_line(report), "muted")], indent=0)
    if report.has_metrics and shown.metrics:
        yield _coverage(report, system)


def _found(report: ReportSummary, shown: Shown, issues: Sequence[Issue], hint: str = "") -> Found:
    opened, entries = {row.row for row in shown.rows}, []
    for issue in issues:
        row = -1 if issue.row is None else issue.row
        line = shown.lines.get(row)
        place = f"{file_of(line, report.name)}:{line}" if line and report.name else ""
        excerpt = shown.excerpts.get((row, issue.column, issue.path))
        name, path = "" if issue.row is None else f"{row:,}", issue.path or ""
        texts = (name, issue.request_id, place, path, issue.message, issue.hint)
        entries.append(FoundIssue(*texts, excerpt, row in opened))
    return Found(entries, report.counts[issues[0].code], hint) if issues else Found([], 0)


def _coverage(report: ReportSummary, system: str) -> Section:
    title = f"Metric coverage ({system}){_after_outputs(report)}"
    advice = invalid_advice(report) if report.support(system) else ""
    return Section("metrics", title, [_supported(report, system), Line(advice, "muted")])


def _supported(report: ReportSummary, system: str, form: Form = "text") -> Table:
    """The metrics of a system, those without rows last, with their advice."""
    lines = sorted(report.support(system), key=lambda line: not line.supported)
    by_advice = by_key(((bool(line.supported), support_advice(line)), line) for line in lines)
    numbers = {metric.name: number for number, metric in enumerate(all_metrics())}
    rows: list[list[Words | Cell]] = []
    for of, advice in ((line, advice) for (_, advice), lines in by_advice.items() for line in lines):
        label = f"{of.supported} of {of.total} rows"
        shares = report.support_shares.get(of.metric, []) if form == "page" else []
        picture = _strip(shares, f"{of.metric}: {label}") if shares else Meter(percent(of.supported, of.total), label)
        name = Cell(Part(of.metric, "name"), data={"metric": numbers[of.metric], "rows": f"{of.supported:,}"})
        more = Cell(Part(advice, "message"), "muted" * (form != "text"))
        rows.append([name, Cell(picture=picture), f"{of.supported:,} of {of.total:,}", more])
    return Table(["Metric", "Rows", "#supported", "To score more"], rows, kind="metrics", notes=True)


def _after_outputs(report: ReportSummary) -> str:
    return ", after outputs are generated" if report.outputs == "generated" else ""


def enabled(lines: Sequence[Support]) -> str:
    """`9 of 12 metrics can score at least one row`."""
    return f"{sum(line.supported > 0 for line in lines)} of {plural(len(lines), 'metric')} can score at least one row"


def invalid_advice(report: ReportSummary) -> str:
    """What all metrics have in common: an invalid row supports none."""
    rows = report.row_count - report.usable_count
    return f"All metrics: up to +{rows:,} by fixing invalid rows" if rows > 0 else ""


def support_advice(line: Support) -> str:
    """What the support of a metric depends on, and what would give it more rows."""
    parts = [line.condition] if line.condition and line.supported else []
    if line.unlock:
        parts.append(f"+{line.unlock_rows:,} with {line.unlock}")
    return "; ".join(parts)


# --- on a page, and in a notebook
def _notes(report: ReportSummary, shown: Shown) -> Iterator[Block]:
    # columns that are read by their likely names change every issue
    codes = left_codes(report, shown.fixes) if report.row_count and not renames_columns(report) else []
    if codes:
        words: list[str | Part] = ["Then, by hand: " if shown.fixes else "By hand: "]
        for code, count in codes[:CODES_LEFT]:
            name = f"{code} {RULES[code].name}"
            kind = f"#{code} {RULES[code].severity}" if code in report.counts else ""
            words += [Part(name, kind), " ", Part(f"{count:,}", "count"), ", "]
        more = f", and {len(codes) - CODES_LEFT} more codes" if len(codes) > CODES_LEFT else ""
        yield Line((*words[:-1], more), "left")
    yield Line(report.ignored, "warning")


def _on_page(report: ReportSummary, shown: Shown, form: Form) -> Iterator[Block]:
    yield from _issues(report, shown, form)
    if form == "page":
        yield from _together(report)
    has_metrics = bool(report.row_count and report.has_metrics)
    if has_metrics:
        yield _metrics(report, report.systems if form == "page" else (report.system,), form)
    title = "Field coverage, distributions and source" if has_metrics else "Source"
    fields = [_fields(report)] if has_metrics else []
    yield Fold(title, [*fields, *_distributions(report, shown), _rows(report, shown), _source(report)])


def _issues(report: ReportSummary, shown: Shown, form: Form) -> Iterator[Block]:
    most = min(MOST_EXAMPLES[form], max(EXAMPLES_ON_A_PAGE // max(len(report.counts), 1), 1))
    codes = [code for severity in Severity for code in report.codes_of(severity) if not needs_no_action(report, code)]
    groups = [_group(report, shown, code, report.examples.get(code, [])[:most], form) for code in codes]
    filters = [(str(severity), TITLES[severity]) for severity in Severity if report.codes_of(severity)]
    yield Section("issues", "Issues", [Issues(groups, filters, ISSUES_INLINE), Line(no_action_line(report), "info")])


def _group(report: ReportSummary, shown: Shown, code: str, examples: Sequence[Issue], form: Form) -> Group:
    rule, occurrences, count = RULES[code], report.occurrences[code], report.counts[code]
    of_dataset, severity = report.is_of_dataset(code), str(rule.severity)
    kinds = occurrences.kinds.most_common(KINDS_SHOWN)
    hint = kinds[0][0].hint if len({kind.hint for kind, _ in kinds}) == 1 else rule.hint
    fixed = shown.fixes.codes.get(code, 0) if shown.fixes else 0
    fixable = "fixable" if fixed == count else "may be fixable" if fixed is None else f"{fixed:,} fixable" * (fixed > 0)
    has_rows = bool(occurrences.rows) or not of_dataset
    rows = f"{occurrences.rows:,}" if form == "page" else plural(occurrences.rows, "row")
    shares = [] if of_dataset else occurrences.shares(report.row_count)
    fullest = max(shares, default=0) or 1  # a step is the fuller the more rows of the code it has
    layer = (severity, runs([s / fullest for s in shares], 0.35, 0.65))
    strip = Strip(len(shares), [layer], f"{code}: where in the dataset")
    where = _where(report, code)
    name = (Part(rule.name, "bold"), " ", *((Part(fixable, "badge"), " ") if fixable else ()))
    head: list[str | Part | Cell] = [
        Part(code, f"tag {severity}"),
        Cell((*name, Part(where, "path"), Part(f"→ {hint}", "message fix muted")), "told"),
        Cell(rows if has_rows else "", "n count"),
        Cell(share(occurrences.rows, report.row_count) if has_rows else "", "n"),
        Cell(mood="strip", picture=None if of_dataset else strip),
    ]
    link = (" ", Part("Documentation", rule.url)) if rule.url else ()
    times = Part(f"{count:,}\N{NO-BREAK SPACE}×", "count")
    blocks: list[Block] = [Line((times, " ", Part(f"{rule.summary} {rule.why}", "message"), *link))]
    if form == "page":
        blocks.append(Line(("Explain: ", Part(f"agent-eval-schema explain {code}", "command"))))
    if len(kinds) < count:
        others = count - sum(number for _, number in kinds)
        lines: list[list[Words | Cell]] = [[issue_words(*kind, hint), f"{n:,}"] for kind, n in kinds]
        lines += [[Cell("other messages", "muted"), f"{others:,}"]] if others else []
        blocks.append(Table(["What is wrong", "#Issues"], lines))
    blocks.append(_found(report, shown, examples, hint))
    if form == "page":
        blocks += _csv(report, shown, code)
    data = {"severity": severity, "rows": occurrences.rows, "fixable": 1 if fixable else None}
    return Group(head, blocks, id=code, data=data)


def _csv(report: ReportSummary, shown: Shown, code: str) -> Iterator[Block]:
    """The issues of a code on the rows that the page can open, as a CSV file, and how many of how many it has."""
    rows: list[list[object]] = [["row", "line", "column", "path", *(["value"] if report.values else []), "message"]]
    for issue in (i for i in shown.issues if i.code == code):
        row = issue.row
        value = [shown.values.get((row, issue.column, issue.path))] if report.values and row is not None else []
        line = None if row is None else shown.lines.get(row)
        rows.append([row, line, issue.column, issue.path, *value, issue.message])
    link, lines = csv_link(rows)
    if listed := lines - 1:
        some = f"{listed:,} of {report.counts[code]:,}" if listed < report.counts[code] else ""
        yield Download(f"Issues of {code} as CSV", f"{code}.csv", link, some)


def _where(report: ReportSummary, code: str) -> str:
    """The column or path, and the rows if they are few."""
    occurrences, examples = report.occurrences[code], report.examples[code]
    paths = list(dict.fromkeys(kind.path for kind in occurrences.kinds if kind.path))
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    parts = [f"{paths[0]}{more}"] if paths else []
    if report.is_of_dataset(code):
        parts.append("whole dataset")
    elif occurrences.rows <= ROWS_NAMED:
        named = dict.fromkeys((i.row, i.request_id) for i in examples)
        parts.append(", ".join(f"row {row:,}" + (f" ({id})" if id else "") for row, id in named if row is not None))
    return " · ".join(parts)


CODES = 12
"""Codes of the table of issues that occur together, at most."""


def _together(report: ReportSummary) -> Iterator[Block]:
    """A line and a column per code; nothing if no two rows have issues of the same two codes."""
    rows = Counter[str]()
    for both, count in report.together.items():
        if count > 1:  # in one row, it is chance
            rows.update(dict.fromkeys(both, count))
    if not rows:
        return
    codes = sorted(code for code, _ in rows.most_common(CODES))
    most = f" The {len(codes)} codes with most such rows." if len(rows) > len(codes) else ""
    about = f"Rows that have both codes: the darker, the larger their share of the rows of the line.{most}"
    columns = [Column("Code"), *(Column(name, is_number=True) for name in ("rows", *codes))]
    title = "Issues that occur together"
    table = Table(columns, [_line(report, code, codes) for code in codes], title=title, kind="together")
    yield Section("together", title, [Line(about, "muted"), table])


def _line(report: ReportSummary, code: str, codes: list[str]) -> list[Words | Cell]:
    """The rows of a code, then of those the rows that have each of the codes."""
    own = report.occurrences[code].rows
    cells: list[Words | Cell] = [(Part(code, f"#{code}"), f" {RULES[code].name}"), f"{own:,}"]
    for other in codes:
        count = report.together.get((min(code, other), max(code, other)), 0)
        both = f"{code} and {other}: {plural(count, 'row')}, {share(count, own)} of {code}" if count else None
        text = "·" if other == code else f"{count:,}" if count else ""
        cells.append(Cell(text, heat(count / max(own, 1)), title=both))
    return cells


def _metrics(report: ReportSummary, systems: Iterable[str], form: Form) -> Section:
    groups = []
    for system in systems:
        lines, is_open = [_supported(report, system, form)], system == report.system
        groups.append(Group([Part(system, "tag"), enabled(report.support(system))], lines, is_open=is_open))
    about = "Rows that provide all inputs of each metric, and the field that would increase coverage most."
    advice = f" {invalid_advice(report)}.".removeprefix(" .")
    title = f"Metric coverage{_after_outputs(report)}"
    return Section("metrics", title, [Line(about + advice, "muted"), *groups], short="Metrics")


def _strip(shares: Sequence[float], label: str) -> Strip:
    return Strip(len(shares), [("fill", runs(shares))], label)


def _fields(report: ReportSummary) -> Section:
    steps = per_step(report.row_count)
    fuller = ": the fuller the color, the more of them" if steps else ""
    rows: list[list[Words | Cell]] = []
    for line in report.presence:
        field = "valid rows" if line.field == "valid" else line.field
        strip = _strip(line.shares, f"{field}: {line.rows} of {report.row_count} rows")
        rows.append([field, Cell(picture=strip), f"{line.rows:,} / {report.row_count:,}"])
    about = Line(f"From the first row (left) to the last (right){steps}{fuller}.", "muted")
    table = Table(["Field", "Rows", "#present"], rows, kind="presence")
    return Section("fields", "Field coverage", [about, table], short="Fields")


def _distributions(report: ReportSummary, shown: Shown) -> Iterator[Block]:
    plots = [plot(*FIGURES[name], d) for name, d in report.distributions.items() if d.count >= FEWEST]
    if plots:
        yield Section("numbers", ", ".join(dict.fromkeys(p["title"] for p in plots)), [Histograms(plots)])
    rows: list[list[Words | Cell]] = []
    for answer in shown.answers:
        count = f"{answer.rows:,} of {plural(answer.total, 'row')}"
        picture = Meter(percent(answer.rows, answer.total), count)
        rows.append([answer.text or "(empty)", Cell(picture=picture), count, share(answer.rows, answer.total)])
    table = Table(["Answer", "Share", "#Rows", "#"], rows, kind="answers")
    yield Section("answers", "Most frequent answers", [table])


def _rows(report: ReportSummary, shown: Shown) -> Section:
    some = f"{len(shown.rows):,} of {report.row_count:,} rows are in this page, invalid ones first."
    about = some if len(shown.rows) < report.row_count else ""
    rows = OpenRows([], shown.rows, report.row_count, about, opens=False, edits="Fix, before and after", still=False)
    return Section("rows", "Rows", [rows])


def _source(report: ReportSummary) -> Section:
    facts = {
        "File": report.name or "data in memory",
        "Rows": f"{report.row_count:,}, {report.invalid_count:,} invalid",
        "Format": f"{report.format} ({report.format_reason})",
        "Outputs": f"{report.outputs}: {_OUTPUTS[report.outputs]}" if report.has_metrics else "",
        **dict(report.derivation()),
        "Rules switched off": ", ".join(report.codes_off),
        "Checked with": f"agent-eval-schema {__version__}",
    }
    return Section("source", "Source", [Terms([(term, value) for term, value in facts.items() if value])])


_OUTPUTS = {
    "provided": "a response or a trace is expected in every row",
    "generated": "the agent will be run on the requests",
}
