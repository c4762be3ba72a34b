"""What `rules`, `explain` and `formats` print: lines of styled text, one below the other; and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any

from agent_eval_schema.formats.overview import FormatOverview
from agent_eval_schema.render.phrases import STYLES
from agent_eval_schema.rule import Rule
from agent_eval_schema.rules import FAMILIES, RULES, rules_of_packages
from agent_eval_schema.text.visible import escape_ci_commands, wrapped


def rule_text(rule: Rule, fixes: Sequence[str], *, color: bool = False, width: int | None = None) -> str:
    """The text of a rule; `fixes`: what --fix does about its issues, in a few words each."""
    fixable = f"yes, by `--fix` if exactly one interpretation is valid ({'; '.join(fixes)})" if fixes else "no"
    lines = ["", rule.summary, "", f"Why: {rule.why}", "", f"Fix: {rule.hint}", "", f"Fixable: {fixable}"]
    lines += _example("Bad", rule.bad) + _example("Good", rule.good)
    lines += ["", f"Example: none. {rule.no_example}"] if rule.no_example else []
    lines += ["", f"See: {rule.url}"] if rule.url else []
    lines += [] if rule.code in RULES else ["", f"From the package {family_of(rule)}"]
    head = (f"{rule.code} {rule.name}", "bold"), " (", (str(rule.severity), STYLES[rule.severity]), ")"
    labels = [(line, _LABEL(line)) for line in lines]  # `Why:`
    styled = [((found[0], "bold"), line[found.end() :]) if found else (line,) for line, found in labels]
    return drawn_lines([head, *styled], color, width)


def family_of(rule: Rule) -> str:
    """The title of the family of a rule; one of another package has the package in its place."""
    return FAMILIES[rule.code[2]] if rule.code in RULES else rules_of_packages()[rule.code].package


def rules_text(rules: Sequence[Rule], *, color: bool = False, width: int | None = None) -> str:
    """One line per rule, below the names of their families."""
    lines: list[Line] = []
    families: dict[str, list[Rule]] = {title: [] for title in FAMILIES.values()}
    for rule in rules:
        families.setdefault(family_of(rule), []).append(rule)
    for title, of_family in families.items():
        start = next((f" ({rule.code[:3]})" for rule in of_family if rule.code in RULES), "")
        lines += [("",)] * bool(lines) + [((f"{title}{start}", "bold"),)]
        for rule in of_family:
            severity = (f"{rule.severity!s:7}", STYLES[rule.severity])
            lines.append((f"  {rule.code}  ", severity, f"  {rule.name:30}  ", rule.summary))
    return drawn_lines(lines, color, width)


def rules_json(rules: Sequence[Rule], fixable: Container[str]) -> str:
    """The rules as JSON; `fixable`: the codes whose issues --fix may fix."""
    from agent_eval_schema.render.document import json_text

    documents = [
        {
            "code": rule.code,
            "name": rule.name,
            "severity": rule.severity,
            "family": family_of(rule),
            "summary": rule.summary,
            "why": rule.why,
            "hint": rule.hint,
            "fixable": rule.code in fixable,
            "url": rule.url or None,
            "examples": {"bad": _plain(rule.bad), "good": _plain(rule.good)},
            "no_example": rule.no_example or None,
        }
        for rule in rules
    ]
    return json_text({"schema_version": 1, "rules": documents})


def _plain(rows: Sequence[dict[str, Any]]) -> Any:
    """Rows as JSON values. A lone surrogate, which no JSON file can contain, is written as `explain` prints it."""
    text = json.dumps(rows, ensure_ascii=False, default=str)
    return json.loads(_SURROGATE.sub(lambda found: f"\\\\u{ord(found[0]):04x}", text))


_SURROGATE = re.compile("[\ud800-\udfff]")


_LABEL = re.compile("(Why|Fix|Fixable|Bad|Good|Example|See):").match


def _example(label: str, rows: Sequence[dict[str, Any]]) -> list[str]:
    written = (json.dumps(row, ensure_ascii=False, default=str) for row in rows)
    texts = [text.encode("utf-8", "backslashreplace").decode() for text in written]
    return ["", f"{label}:", *(f"  {t if len(t) < 500 else t[:200] + ' …'}" for t in texts)] if rows else []


Part = str | tuple[str, str]
"""Text, or text and its style."""
Line = tuple[Part, ...]


def drawn_lines(lines: Iterable[Line], color: bool, width: int | None = None) -> str:
    """Lines as text, broken at words if there is a width. Without color nothing is drawn, so rich is loaded for a
    terminal only: a command in a script starts in half the time."""
    lines = [part for line in lines for part in _broken(line, width)]
    if not color:
        text = "\n".join("".join(part if isinstance(part, str) else part[0] for part in line) for line in lines)
        return escape_ci_commands("\n".join(line.rstrip() for line in text.splitlines())) + "\n"
    from rich.console import Console
    from rich.text import Text

    from agent_eval_schema.render.console import drawn

    def draw(console: Console) -> None:
        for line in lines:
            console.print(Text.assemble(*line), soft_wrap=True)

    return drawn(draw, color, None)


def _broken(line: Line, width: int | None) -> Iterator[Line]:
    """A line in as many as its last part needs, which are aligned with its beginning where that is a column."""
    *before, last = line
    start = "".join(part if isinstance(part, str) else part[0] for part in before)
    if width is None or not isinstance(last, str) or width - len(start) < NARROWEST:
        yield line
        return
    text = start + last
    column = len(start) if start.strip() and start.endswith(" ") else len(text) - len(text.lstrip())
    first, *more = wrapped(text, width, " " * column)
    yield (*before, first[len(start) :])
    yield from ((part,) for part in more)


NARROWEST = 20
"""Columns beside the beginning of a line in which its rest is broken."""


# --- formats
SHOWN = 3
"""Groups of columns that a list shows of each format."""


def formats_text(formats: Sequence[FormatOverview], *, color: bool = False, width: int | None = None) -> str:
    """Two lines per format: its content, and the columns by which it is known."""
    longest = max(len(entry.name) for entry in formats)
    lines: list[Line] = []
    for entry in formats:
        use = "read, written" if entry.written else "read"
        origin = f" (of {entry.package})" if entry.package else ""
        lines.append(((f"{entry.name:{longest}}", "bold"), f"  {use:13}  ", entry.summary + origin))
        signs = " | ".join(", ".join(group) for group in entry.signs[:SHOWN])
        signs += " | …" if len(entry.signs) > SHOWN else ""
        lines.append((f"{'':{longest}}  known by       ", signs))
    return drawn_lines(lines, color, width)


def format_text(entry: FormatOverview, *, color: bool = False, width: int | None = None) -> str:
    """One format, with all signs and an example."""
    use = "read and written" if entry.written else "read"
    lines: list[Line] = [((entry.name, "bold"), f" ({use})"), ("",), (f"{entry.summary}.",), ("",)]
    lines.append((("Known by all columns of a group:", "bold"),))
    lines += [(f"  {', '.join(group)}",) for group in entry.signs]
    lines += [("",), (f"Metrics: --system {entry.system}",)]
    lines += [(f"From the package {entry.package}",)] if entry.package else []
    if entry.example is not None:
        lines += [("",), (("Example:", "bold"),)]
        example = entry.example
        text = example if isinstance(example, str) else json.dumps(example, indent=2, ensure_ascii=False)
        lines += [(f"  {line}",) for line in text.splitlines()]
    return drawn_lines(lines, color, width)


def formats_json(formats: Sequence[FormatOverview]) -> str:
    from agent_eval_schema.render.document import json_text

    return json_text({"schema_version": 1, "formats": [entry._asdict() for entry in formats]})
