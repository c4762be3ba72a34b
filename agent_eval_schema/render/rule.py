"""Rules as `explain` and `rules` print them: what is wrong, why it matters, what to do, examples and a link."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Mapping, Sequence
from typing import Any

from agent_eval_schema.issues import Rule
from agent_eval_schema.render.lines import Line, drawn_lines
from agent_eval_schema.render.phrases import STYLES


def rule_text(rule: Rule, fixes: Sequence[str], *, color: bool = False) -> str:
    """The text of a rule; `fixes`: what --fix does about its issues, in a few words each."""
    fixable = f"yes, by `--fix` if exactly one interpretation is valid ({'; '.join(fixes)})" if fixes else "no"
    lines = ["", rule.summary, "", f"Why: {rule.why}", "", f"Fix: {rule.hint}", "", f"Fixable: {fixable}"]
    lines += _example("Bad", rule.bad) + _example("Good", rule.good)
    lines += ["", f"Example: none. {rule.no_example}"] if rule.no_example else []
    lines += ["", f"See: {rule.url}"] if rule.url else []
    head = (f"{rule.code} {rule.name}", "bold"), " (", (str(rule.severity), STYLES[rule.severity]), ")"
    return drawn_lines([head, *(_with_label(line) for line in lines)], color)


def rules_text(families: Mapping[str, str], rules: Sequence[Rule], *, color: bool = False) -> str:
    """One line per rule, below the names of their families."""
    lines: list[Line] = []
    for number, title in families.items():
        of_family = [rule for rule in rules if rule.code[2] == number]
        lines += [("",)] * bool(lines) + [((f"{title} (AE{number})", "bold"),)]
        for rule in of_family:
            severity = (f"{rule.severity!s:7}", STYLES[rule.severity])
            lines.append((f"  {rule.code}  ", severity, f"  {rule.name:30}  {rule.summary}"))
    return drawn_lines(lines, color)


def rules_json(families: Mapping[str, str], rules: Sequence[Rule], fixable: Container[str]) -> str:
    """The rules as JSON; `fixable`: the codes whose issues --fix may fix."""
    from agent_eval_schema.render.document import json_text

    return json_text(
        {"schema_version": 1, "rules": [_document(rule, families, rule.code in fixable) for rule in rules]}
    )


def _document(rule: Rule, families: Mapping[str, str], fixable: bool) -> dict[str, Any]:
    return {
        "code": rule.code,
        "name": rule.name,
        "severity": rule.severity,
        "family": families[rule.code[2]],
        "summary": rule.summary,
        "why": rule.why,
        "hint": rule.hint,
        "fixable": fixable,
        "url": rule.url or None,
        "examples": {"bad": _plain(rule.bad), "good": _plain(rule.good)},
        "no_example": rule.no_example or None,
    }


def _plain(rows: Sequence[dict[str, Any]]) -> Any:
    """Rows as JSON values. A lone surrogate, which no JSON file can contain, is written as `explain` prints it."""
    text = json.dumps(rows, ensure_ascii=False, default=str)
    return json.loads(_SURROGATE.sub(lambda found: f"\\\\u{ord(found[0]):04x}", text))


_SURROGATE = re.compile("[\ud800-\udfff]")


def _with_label(line: str) -> Line:
    """A line whose label (`Why:`) is bold."""
    found = _LABEL(line)
    return (line,) if found is None else ((found[0], "bold"), line[found.end() :])


_LABEL = re.compile("(Why|Fix|Fixable|Bad|Good|Example|See):").match


def _example(label: str, rows: Sequence[dict[str, Any]]) -> list[str]:
    texts = [
        json.dumps(row, ensure_ascii=False, default=str).encode("utf-8", "backslashreplace").decode() for row in rows
    ]
    return ["", f"{label}:", *(f"  {t if len(t) < 500 else t[:200] + ' …'}" for t in texts)] if rows else []
