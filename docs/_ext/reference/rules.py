"""A page per rule, and the index of all."""

from __future__ import annotations

from pathlib import Path

from agent_eval_schema import validate_eval_set
from agent_eval_schema.fix.effects import FIXABLE
from agent_eval_schema.formats.registry import FORMATS
from agent_eval_schema.rule import Rule
from agent_eval_schema.rules import FAMILIES, RULES, adk, ces, conversion, golden, production
from reference.markdown import CONTENTS, Pages, code, entry, json_rows, prose, table, toctree

_ROWS = tuple(form.name for form in FORMATS if form.is_rows)
_OF_MODULE = ((golden, ("ces-csv",)), (ces, ("ces-evaluation",)), (adk, ("adk", "adk-legacy")))


def formats_of(rule: Rule) -> tuple[str, ...]:
    """The formats whose rows can raise the rule."""
    if rule.code.startswith("AE0"):
        return tuple(form.name for form in FORMATS)
    return next((names for module, names in _OF_MODULE if rule in vars(module).values()), _ROWS)


def pages(_: Path) -> Pages:
    """The pages below reference/rules, and their order."""
    made = {f"reference/rules/{rule.name}.md": _page(rule) for rule in RULES.values()}
    contents = toctree((rule.name for rule in RULES.values()), "maxdepth: 1")
    return {**made, "reference/rules/pages.inc": contents}


def index() -> str:
    """The table of all rules."""
    parts = [
        "# Rules\n",
        "Each issue has a code and a name; `--select`, `--ignore` and `agent-eval-schema explain` accept both, and "
        "`--select` accepts prefixes such as `AE2`. `agent-eval-schema explain AE206` prints why a rule exists, with "
        "examples. A code is never reused. "
        "*Fix*: [`validate --fix`](../../how-to/validate/fix-a-file.md) can fix the issue if exactly one "
        "interpretation is valid.\n",
        '<div class="filterable">\n',
    ]
    for number, title in FAMILIES.items():
        rows = [
            (
                entry(rule.name, rule.code),
                f"[{code(rule.name)}](#{rule.name})",
                str(rule.severity),
                "yes" if rule.code in FIXABLE else "",
                prose(rule.summary),
            )
            for rule in RULES.values()
            if rule.code[2] == number
        ]
        heads = ("Code", "Name", "Severity", "Fix", "Summary")
        parts += [f"**{title} (AE{number})**\n", table(heads, rows)]
    parts += ["</div>\n", CONTENTS]
    return "\n".join(parts)


def _page(rule: Rule) -> str:
    parts = [
        f"({rule.code})=\n# {rule.name} ({rule.code})\n",
        f"{{bdg-{_COLORS[str(rule.severity)]}}}`{rule.severity}`"
        + (" {bdg-success}`fixable`" if rule.code in FIXABLE else "")
        + f" {{bdg-secondary-line}}`{FAMILIES[rule.code[2]]}`\n",
        "## What it is\n",
        prose(rule.summary) + "\n",
        "## Why is this a problem?\n",
        prose(rule.why) + "\n",
        "## How to fix it\n",
        prose(rule.hint) + "\n",
    ]
    if rule.bad:
        parts += ["## Example\n", json_rows(rule.bad)]
        parts += _reported(rule)
    if rule.good:
        parts += ["Use instead:\n", json_rows(rule.good)]
    if rule.no_example:
        parts += ["## Example\n", f"None. {prose(rule.no_example)}\n"]
    if rule.code in FIXABLE:
        done = "; ".join(prose(fix) for fix in FIXABLE[rule.code])
        parts += [
            "## Fixable\n",
            f"Yes: `validate --fix` and `normalize_eval_set(fix=True)` fix it ({done}) if exactly one interpretation "
            "is valid.\n",
        ]
    if rule.code[2] == "7" and rule in vars(production).values():
        parts += ["## Applies to\n", "[Inference tables](../production/table-families.md), when they are converted.\n"]
    elif rule in vars(conversion).values():
        parts += ["## Applies to\n", "Conversions: `convert` and `convert_eval_set`.\n"]
    else:
        links = ", ".join(f"[{code(name)}](../formats/{name}.md)" for name in formats_of(rule))
        parts += ["## Applies to\n", f"{links}\n"]
    if rule.url:
        parts += ["## Reference\n", f"[{prose(rule.url)}]({rule.url})\n"]
    return "\n".join(parts)


_COLORS = {"error": "danger", "warning": "warning", "info": "info"}


def _reported(rule: Rule) -> list[str]:
    """What the example reports, as it really does; logged rows are examples of a conversion, not of a validation."""
    if rule.code[2] == "7":
        return []
    issues = [issue for issue in validate_eval_set(list(rule.bad)).iter_issues() if issue.code == rule.code]
    if not issues:
        return []
    lines = [f"{issue.path or 'row'}: {issue.message}" if issue.path else issue.message for issue in issues[:3]]
    return ["reports\n", "```{code-block} text\n:class: wrapped\n\n" + "\n".join(lines) + "\n```\n"]
