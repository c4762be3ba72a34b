"""What a conversion lost, as HTML and as JSON; computes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_eval_schema.issues import Issue
from agent_eval_schema.render.document import json_text, versioned
from agent_eval_schema.render.losses import grouped, next_commands
from agent_eval_schema.render.page import inline, page

LISTED = 20
"""Losses of a kind that are drawn; the JSON and the DataFrame have them all."""

KINDS_INLINE = 5
"""Kinds of loss that a notebook shows at once; the others are folded."""


def losses_page(head: str, issues: Sequence[Issue], source: str | None = None) -> str:
    """The losses as a standalone HTML page."""
    return page(head, "losses.html", **_drawn(head, issues, source))


def losses_inline(head: str, issues: Sequence[Issue], source: str | None = None) -> str:
    """The losses for the output cell of a notebook."""
    return inline("losses.html", **_drawn(head, issues, source, KINDS_INLINE))


def losses_json(numbers: Mapping[str, Any], issues: Sequence[Issue]) -> str:
    """The numbers and every loss, for other programs."""
    return json_text(versioned({**numbers, "losses": issues}))


def _drawn(head: str, issues: Sequence[Issue], source: str | None, shown: int | None = None) -> dict[str, Any]:
    groups = [
        {
            "first": found[0],
            "count": len(found),
            "found": found[:LISTED],
            "has_rows": any(i.row is not None for i in found[:LISTED]),
            "has_ids": any(i.request_id for i in found[:LISTED]),
            "has_paths": any(i.path for i in found[:LISTED]),
            "more": max(len(found) - LISTED, 0),
        }
        for found in grouped(issues)
    ]
    following = next_commands(issues, source)
    return {
        "head": head,
        "mood": "good" if not issues else "error" if following else "",
        "following": following,
        "parts": [("losses", "Losses")] if groups else [],
        "groups": groups[:shown],
        "folded": groups[shown:] if shown else [],
    }
