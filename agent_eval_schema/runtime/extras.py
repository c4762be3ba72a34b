"""Packages that only an extra installs: imported where they are used, and missed in one line."""

from __future__ import annotations

from agent_eval_schema.issues import EvalSetError


def missing(extra: str, needs: str, error: ImportError) -> EvalSetError:
    """What to raise for an import that failed; `needs` says what must be installed (`"mlflow 3.3"`)."""
    return EvalSetError(f"this needs {needs} or newer ({error}): pip install -U 'agent-eval-schema[{extra}]'")
