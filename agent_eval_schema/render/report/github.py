"""Reports as GitHub workflow commands: findings beside the lines of a pull request, then one plain line a file.

    ::error file=eval/set.jsonl,line=6,title=AE206 message-role::hr-006, request.messages[0].role: expected …

GitHub shows ten annotations of each level a step and drops the rest without a word, so no more are written: of every
code one before any code has two. Cells are hostile text that the runner reads. It takes a line for a command that
begins with `::` or holds `##[`, and no text of a cell comes to stand so.
Source: docs.github.com, "Workflow commands for GitHub Actions"; the escapes are those of actions/toolkit.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import PurePath
from typing import TypeVar

from agent_eval_schema.issues import Issue, file_of
from agent_eval_schema.render.console import finding
from agent_eval_schema.render.phrases import plural
from agent_eval_schema.render.report.advice import asks_for_nothing, needs_no_action, report_headline
from agent_eval_schema.render.report.summary import ReportSummary
from agent_eval_schema.rule import Severity
from agent_eval_schema.rules import RULES
from agent_eval_schema.text.visible import visible

_T = TypeVar("_T")

ANNOTATIONS_SHOWN = 10
"""Annotations of one level that GitHub shows a step."""

COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


Chosen = tuple[ReportSummary, Issue]
"""An issue that is shown, and its report."""

Lines = Callable[[Iterable[int]], Mapping[int, int]]
"""The rows of a file → the line on which each begins, as far as they have one."""


def github_text(lines_of: Mapping[ReportSummary, Lines], *, root: str = ".", command: str = "") -> str:
    """The annotations of a run: reports with the lines of their files, as seen from `root`; `command` lists all."""
    reports = list(lines_of)
    codes = [(r, code) for r in reports for code in r.counts if not needs_no_action(r, code)]
    counts = {s: sum(r.counts[code] for r, code in codes if RULES[code].severity is s) for s in Severity}
    is_cut = any(count > ANNOTATIONS_SHOWN for count in counts.values())
    shown = {s: _spread(reports, s, ANNOTATIONS_SHOWN) for s in Severity}
    if is_cut:
        del shown[Severity.INFO][ANNOTATIONS_SHOWN - 1 :]  # the closing note is a notice too
    lines = [line for s in Severity for line in _annotations(shown[s], lines_of, root)]
    if is_cut:
        rest = {s: counts[s] - len(shown[s]) for s in Severity}
        parts = ", ".join(plural(n, "note" if s is Severity.INFO else str(s)) for s, n in rest.items() if n)
        more = f"{sum(rest.values()):,} more: {parts}. GitHub shows {ANNOTATIONS_SHOWN} of each level."
        more += f" All of them: {visible(command)}" if command else ""
        lines.append(_command("notice", more, title="agent-eval-schema"))
    for report in reports:
        line = (f"{path_from(report.name, root)}: " if report.name else "") + report_headline(report)
        lines.append(f"./{line}" if line.lstrip().startswith("::") else line)  # it does not begin as a command does
    return "".join(line.replace("##[", r"##\x5b") + "\n" for line in lines)


def _spread(reports: Sequence[ReportSummary], severity: Severity, most: int) -> list[Chosen]:
    """The findings that say most, without notes that need no action: each code in turn, and of a code each file."""
    codes = sorted({c for r in reports for c in r.counts if RULES[c].severity is severity})
    by_code = [
        _in_turn([(r, i) for i in r.examples.get(c, ()) if not asks_for_nothing(c, i.hint)] for r in reports)
        for c in codes
    ]
    return list(_in_turn(by_code))[:most]


def _in_turn(groups: Iterable[Iterable[_T]]) -> Iterator[_T]:
    """The first of each group, then the second of each, and so on."""
    return (item for turn in zip_longest(*groups) for item in turn if item is not None)


def _annotations(chosen: Sequence[Chosen], lines_of: Mapping[ReportSummary, Lines], root: str) -> Iterator[str]:
    for report in dict.fromkeys(report for report, _ in chosen):
        issues = [issue for own, issue in chosen if own is report]
        lines = lines_of[report](i.row for i in issues if i.row is not None)
        for issue in sorted(issues, key=lambda i: (i.row is None, i.row or 0)):
            line = None if issue.row is None else lines.get(issue.row)
            text = finding(issue, with_row=line is None) + (f"\n→ {visible(issue.hint)}" if issue.hint else "")
            where = {"file": path_from(file_of(line, report.name), root) if report.name else None, "line": line}
            yield _command(COMMANDS[issue.severity], text, **where, title=f"{issue.code} {issue.name}")


def _command(name: str, text: str, **properties: object) -> str:
    texts = {k: _data(str(v)).replace(":", "%3A").replace(",", "%2C") for k, v in properties.items() if v is not None}
    return f"::{name} {','.join(f'{k}={text}' for k, text in texts.items())}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def path_from(name: str, root: str) -> str:
    """The path from `root`, or from the working directory if it lies elsewhere, as GitHub writes paths."""
    try:
        path = os.path.relpath(name, root)
        path = os.path.relpath(name) if path.startswith("..") else path
    except ValueError:  # on another drive
        path = name
    return visible(PurePath(path).as_posix())
