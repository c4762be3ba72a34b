"""The picture of issues that occur together, on a validation page. Computes nothing but shares."""

from __future__ import annotations

from collections import Counter
from typing import Any

from agent_eval_schema.render.numbers import share
from agent_eval_schema.render.page import heat
from agent_eval_schema.render.phrases import plural
from agent_eval_schema.render.report.summary import ReportSummary
from agent_eval_schema.rules import RULES

CODES = 12
"""Codes of the table of issues that occur together, at most."""


def together(report: ReportSummary) -> dict[str, Any] | None:
    """A line and a column per code; None if no row has issues of two codes."""
    rows = Counter[str]()
    for (one, other), count in report.together.items():
        rows[one] += count
        rows[other] += count
    if not rows:
        return None
    codes = sorted(code for code, _ in rows.most_common(CODES))
    return {"codes": codes, "lines": [_line(report, code, codes) for code in codes], "more": len(rows) - len(codes)}


def _line(report: ReportSummary, code: str, codes: list[str]) -> dict[str, Any]:
    """The rows of a code, then of those the rows that have each of the codes."""
    own = report.occurrences[code].rows
    counts = [report.together.get((min(code, c), max(code, c)), 0) if c != code else None for c in codes]
    return {
        "code": code,
        "name": RULES[code].name,
        "rows": own,
        "cells": [
            {"text": "·" if count is None else f"{count:,}" if count else "", "mood": heat((count or 0) / max(own, 1))}
            | {"title": f"{code} and {other}: {plural(count, 'row')}, {share(count, own)} of {code}" if count else ""}
            for other, count in zip(codes, counts, strict=True)
        ],
    }
