"""What people see of a profile, as golden files: read the difference before you accept it (UPDATE_GOLDEN=1)."""

import ast
import json
from pathlib import Path

import pytest

import agent_eval_schema
from agent_eval_schema import Profile, profile_eval_set
from tests.conftest import DATA
from tests.render.report.test_text import compare
from tests.render.test_script import embedded

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


def test_the_rows_that_repeat_contradict_or_leak_open_on_the_page(profile: Profile) -> None:
    page = profile.to_html()
    rows = {r["id"]: r for r in embedded(page)["rows"]}
    assert rows.keys() == {"a1", "a2", "a3"}
    why = "another ground truth than row 0; the same question in few_shot.txt; repeats row 0 (near)"
    assert rows["a3"]["columns"] == [[why, "", None]]
    assert rows["a1"]["documents"] == [["retrieved_context[0]", "leave.pdf", "Parental leave lasts 16 weeks."]]
    assert '<a href="#row-2">2</a></td>' in page
    assert "#row-" not in profile._repr_html_()


def test_without_values_the_rows_have_no_cells() -> None:
    found = embedded(profile_eval_set([{"request": LEAVE}] * 2, show_values=False).to_html())["rows"]
    assert [r["row"] for r in found] == [0, 1]
    assert not {"turns", "cells", "id", "title"} & {key for r in found for key in r}


def test_the_next_steps_in_a_notebook_are_python(profile: Profile) -> None:
    shown = profile._repr_html_()
    assert "agent-eval-schema " not in shown.partition('<details class="more">')[0]
    assert "agent-eval-schema review rows.jsonl --queue conflicts" in profile.to_html()
    assert "review_eval_set(&#34;rows.jsonl&#34;, queue=&#34;conflicts&#34;)" in shown
    for step in profile.summary.next_steps:
        tree = ast.parse(step.code, mode="eval")
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        assert names <= {*agent_eval_schema.__all__, "help", "profile"}
