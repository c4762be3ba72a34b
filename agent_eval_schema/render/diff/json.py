"""A comparison as JSON, for other programs: the DiffSummary as it is.

`schema_version` changes when a key changes its meaning or goes; new keys may come at any time. Numbers are exact; of
each kind of change at most 20 examples are listed, and of a cell what differs with a little context. `Diff.changed`
and the other frames have all of it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from agent_eval_schema.render.diff.summary import DiffSummary
from agent_eval_schema.render.document import json_text
from agent_eval_schema.runtime.version import __version__

SCHEMA_VERSION = 1


def diff_document(summary: DiffSummary) -> dict[str, Any]:
    """The comparison as JSON-like data."""
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "agent-eval-schema", "version": __version__},
        **msgspec.structs.asdict(summary),
    }


def diff_json(summary: DiffSummary) -> str:
    return json_text(diff_document(summary))
