"""An issue in one line, as linters write it."""

from collections.abc import Iterable, Mapping

from agent_eval_schema.issues import Issue, file_of
from agent_eval_schema.render.phrases import plural
from agent_eval_schema.render.report.summary import ReportSummary
from agent_eval_schema.text.visible import visible


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
