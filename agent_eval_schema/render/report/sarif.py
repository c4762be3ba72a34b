"""Reports as SARIF 2.1.0, for code scanning: all files are one run, a rule of ours is a reportingDescriptor, an issue a
result.

    sarifLog
    └─ run                        one: GitHub rejects a second run of the same tool in an upload
       ├─ tool.driver.rules       every rule that found something, with its help
       ├─ results                 ruleId, level, message, the file and the line, the path in the cell
       └─ properties.files        name, rows, valid rows, format

Source of the structure: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0".
"""

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from agent_eval_schema.issues import Issue, file_of
from agent_eval_schema.render.document import json_text
from agent_eval_schema.render.report.advice import asks_for_nothing, needs_no_action
from agent_eval_schema.render.report.github import path_from
from agent_eval_schema.render.report.summary import ReportSummary
from agent_eval_schema.rule import Rule, Severity
from agent_eval_schema.rules import RULES
from agent_eval_schema.runtime.version import __version__
from agent_eval_schema.text.visible import visible

LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

Found = tuple[ReportSummary, Sequence[Issue], Mapping[int, int]]
"""A report, its issues, and the lines of their rows."""


def sarif_text(reports: Sequence[Found], *, root: str = ".") -> str:
    """The document of a run, without notes that need no action. Files are named as seen from the folder `root`."""
    codes = {code: None for report, _, _ in reports for code in report.counts if not needs_no_action(report, code)}
    index = {code: number for number, code in enumerate(codes)}
    driver = {
        "name": "agent-eval-schema",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [_rule(RULES[code]) for code in codes],
    }
    files = []
    for report, _, _ in reports:
        rows = {"total": report.row_count, "valid": report.valid_count, "invalid": report.invalid_count}
        uri = {"uri": _uri(report.name, root)} if report.name else {}
        files.append({**uri, "rows": rows, "format": report.format, "outputs": report.outputs})
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [
            _result(report, issue, index[issue.code], lines, root)
            for report, issues, lines in reports
            for issue in issues
            if not asks_for_nothing(issue.code, issue.hint)
        ],
        "properties": {"files": files},
    }
    return json_text({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.why},
        "help": {"text": rule.hint},
        **({"helpUri": rule.url} if rule.url else {}),
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
    }


def _result(report: ReportSummary, issue: Issue, index: int, lines: Mapping[int, int], root: str) -> dict[str, Any]:
    line = None if issue.row is None else lines.get(issue.row)
    physical: dict[str, Any] = {}
    if report.name:
        physical = {"artifactLocation": {"uri": _uri(file_of(line, report.name), root)}}
    if physical and line:
        physical["region"] = {"startLine": int(line)}
    logical = {"fullyQualifiedName": visible(issue.path), "kind": "member"} if issue.path else {}
    location = {
        **({"physicalLocation": physical} if physical else {}),
        **({"logicalLocations": [logical]} if logical else {}),
    }
    message = visible(issue.message) + (f" → {visible(issue.hint)}" if issue.hint else "")
    place = {"row": issue.row, "request_id": None if issue.request_id is None else visible(issue.request_id)}
    return {
        "ruleId": issue.code,
        "ruleIndex": index,
        "level": LEVELS[issue.severity],
        "message": {"text": message},
        **({"locations": [location]} if location else {}),
        "properties": {name: value for name, value in place.items() if value is not None},
    }


def _uri(name: str, root: str) -> str:
    """A relative reference, or a file URI; every character that an URI does not have is escaped."""
    path = path_from(name, root)
    return PurePath(path).as_uri() if PurePath(path).is_absolute() else quote(path, safe="/@+,;=~!$&'()*")
