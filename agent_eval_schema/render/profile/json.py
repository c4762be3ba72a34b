"""A profile as JSON, for other programs: the ProfileSummary as it is.

`schema_version` changes when a key changes its meaning or goes; new keys may come at any time.
"""

from __future__ import annotations

import msgspec

from agent_eval_schema.render.document import json_text
from agent_eval_schema.render.profile.summary import ProfileSummary
from agent_eval_schema.runtime.version import __version__

SCHEMA_VERSION = 1


def profile_json(summary: ProfileSummary) -> str:
    """The profile as a JSON document."""
    tool = {"name": "agent-eval-schema", "version": __version__}
    return json_text({"schema_version": SCHEMA_VERSION, "tool": tool, **msgspec.structs.asdict(summary)})
