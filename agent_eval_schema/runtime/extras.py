"""Packages that only an extra installs: imported where they are used, and missed in one line."""

from __future__ import annotations

from agent_eval_schema.issues import MissingExtraError


def missing(extra: str, needs: str, error: ImportError) -> MissingExtraError:
    """The exception for an import that failed; `needs` names the required package (`"mlflow 3.3"`)."""
    return MissingExtraError(f"this needs {needs} or newer ({error}): pip install -U 'agent-eval-schema[{extra}]'")
