"""What people see of a profile, as golden files: read the difference before you accept it (UPDATE_GOLDEN=1)."""

import json
from pathlib import Path

import pytest

from agent_eval_schema import Profile, profile_eval_set
from tests.conftest import DATA
from tests.render.report.test_text import compare

GOLDEN = DATA / "golden"

LEAVE = "How many days of parental leave do I get this year?"


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Profile:
    """Of a small dataset with one problem of each kind."""
    monkeypatch.chdir(tmp_path)
    leave = [{"doc_uri": "leave.pdf", "content": "Parental leave lasts 16 weeks."}]
    call = [{"tool_name": "leave_balance", "tool_input": {}}]
    rows = [
        {"request_id": "a1", "request": LEAVE, "response": "80", "expected_response": "80 days"},
        {"request_id": "a2", "request": f"Hi! {LEAVE}", "response": "80", "expected_response": "80 days"},
        {"request_id": "a3", "request": LEAVE, "response": "80", "expected_response": "60 days"},
        {"request_id": "a4", "request": "Who is my manager?", "response": "Ann", "session_id": "s1"},
        {"request_id": "a5", "request": "Is she in today?", "response": "No", "session_id": "s1", "latency_seconds": 2},
        {"request_id": "a6", "request": "", "response": "Pardon?"},
    ]
    more = [{"retrieved_context": leave, "expected_retrieved_context": [{"doc_uri": "other.pdf"}]}, {}, {}]
    more += [{"predicted_trajectory": call, "tags": {"intent": "people"}}, {"tags": {"intent": "absence"}}, {}]
    lines = [json.dumps({**a, **b}) + "\n" for a, b in zip(rows, more, strict=True)]
    Path("rows.jsonl").write_text("".join(lines), encoding="utf-8")
    Path("few_shot.txt").write_text(f"Q: {LEAVE}\n", encoding="utf-8")
    price = {"input": 2.5, "output": 10.0}
    return profile_eval_set("rows.jsonl", against="few_shot.txt", price=price, calls_per_minute=30)


def test_text(profile: Profile) -> None:
    compare(GOLDEN / "profile.txt", profile.to_text(width=100))


def test_json(profile: Profile) -> None:
    compare(GOLDEN / "profile.json", profile.to_json())


def test_html(profile: Profile) -> None:
    page = profile.to_html()
    compare(GOLDEN / "profile.html", page[page.index("<main>") : page.index("</main>")])
