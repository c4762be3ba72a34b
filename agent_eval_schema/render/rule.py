"""A rule as `explain` prints it: what it means, why it matters, how to mend it, with examples."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agent_eval_schema.issues import Rule


def rule_text(rule: Rule, fixes: Sequence[str]) -> str:
    """The text of a rule; `fixes`: what --fix can do about its issues, in a few words each."""
    summary, _, why = rule.doc.partition("\n\n")
    lines = [f"{rule.code} {rule.name} ({rule.severity})", "", summary]
    lines += ["", f"Why: {' '.join(why.split())}"] if why else []
    lines += ["", f"Fix: {rule.hint}"] if rule.hint else []
    fits = f"`validate --fix` repairs this where one reading fits ({'; '.join(fixes)})"
    lines += ["", f"Repair: {fits}"] if fixes else []
    lines += _example("Bad", rule.bad) + _example("Good", rule.good)
    return "\n".join(lines) + "\n"


def _example(label: str, rows: Sequence[dict[str, Any]]) -> list[str]:
    texts = [
        json.dumps(row, ensure_ascii=False, default=str).encode("utf-8", "backslashreplace").decode() for row in rows
    ]
    return ["", f"{label}:", *(f"  {t if len(t) < 500 else t[:200] + ' …'}" for t in texts)] if rows else []
