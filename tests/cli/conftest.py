"""What tests of commands share."""

import pytest


@pytest.fixture(autouse=True)
def a_review_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A review that a test begins starts its server, and does not wait for the user."""
    monkeypatch.setattr("agent_eval_schema.review.server.ReviewServer.wait", lambda server: server.stop())
    monkeypatch.setattr("webbrowser.open", lambda _: True)
