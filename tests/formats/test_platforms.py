"""What platforms write themselves is valid, and what we write their own loaders accept.

The files are recorded (tests/recorders/platforms.py): the packages are too heavy for the tests. `theirs*` were
written by the platform, `ours*` by us; `accepted.json` says how the platform's loader read ours.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema import convert_eval_set, validate_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.conversion.convert import convert_file
from agent_eval_schema.validation.report import summary_of
from tests.conftest import DATA
from tests.recorders.platforms import digest

PLATFORMS = DATA / "platforms"
THEIRS = sorted(PLATFORMS.glob("*/theirs*"))
OURS = {
    "deepeval": [".json", ".jsonl", ".csv"],
    "ragas": [".jsonl"],
    "langsmith": [".jsonl", ".json"],
    "openai": [".jsonl"],
    "vertex": [".jsonl", ".csv"],
    "vertex-genai": [".jsonl", ".json"],
    "inspect": [".jsonl", ".json", ".csv"],
    "strands": [".json"],
    "azure": [".jsonl"],
}
"""The kinds of files that a platform's loader reads."""

CALL = {"tool_name": "get_balance", "tool_input": {"employee": "E1042", "days": [1, 2]}}
DOCUMENTS = [{"doc_uri": "leave.pdf", "content": "Leave is paid."}, {"doc_uri": "b.md", "content": "You have 12 days."}]
ROWS: list[dict[str, Any]] = [
    {
        "request_id": "case 1",
        "request": "How many days?",
        "response": "You have 12.",
        "expected_response": "12 days.",
        "retrieved_context": DOCUMENTS,
        "expected_retrieved_context": DOCUMENTS[:1],
        "reference_trajectory": [CALL],
        "latency_seconds": 1.5,
        "tags": {"team": "hr", "level": "2"},
    },
    {"request_id": "case 2", "request": "Who decides?"},
    {"request_id": "case 3", "request": "Grüße, \"you\"\n— 'x'", "response": "", "expected_response": "a, b; c"},
]
CHATS: list[dict[str, Any]] = [
    {
        "request_id": "chat 1",
        "request": {
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": "Hello!"},
                {"role": "user", "content": "How many days?"},
            ]
        },
        "response": "You have 12.",
        "predicted_trajectory": [CALL],
        "reference_trajectory": [CALL, CALL],
    },
    {"request_id": "chat 2", "request": "Who decides?", "response": "Ann.", "predicted_trajectory": []},
]


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


@pytest.mark.parametrize("path", THEIRS, ids=name_of)
def test_what_a_platform_writes_is_known_and_valid(path: Path) -> None:
    report = validate_eval_set(str(path))
    assert report.format == path.parent.name, summary_of(report).format_reason
    if path.parent.name == "ragas" and path.suffix == ".csv":  # which ragas itself cannot read again
        assert set(report.counts) == {"AE182" if "single" in path.name else "AE002"}  # a list of texts, of objects
    else:
        assert report.ok, report.to_text()
        unknown = {issue.column for issue in report.iter_issues() if issue.code in ("AE102", "AE103")}
        assert unknown <= {"trajectory_exact_match/score"}, report.to_text()


@pytest.mark.parametrize("path", THEIRS, ids=name_of)
def test_every_form_of_a_file_of_theirs_holds_the_same_rows(path: Path, tmp_path: Path) -> None:
    """The same data in another kind of file is read as the same rows, those in CSV after a repair if need be."""
    other = path.with_suffix(".jsonl")
    if not other.exists() or path.parent.name == "vertex":
        return
    mended = tmp_path / path.name
    if path.parent.name == "ragas" and path.suffix == ".csv":
        assert main(["validate", str(path), "--fix", str(mended), "-q"]) == 0
        path = mended
    rows, others = (list(validate_eval_set(str(p)).iter_rows()) for p in (path, other))
    names = set(rows[0]) & set(others[0]) - {"rubrics", "reference_topics", "turns"}
    for one, two in zip(rows, others, strict=True):
        assert {n: one[n] for n in names if not _is_text_of(one[n], two[n])} == {
            n: two[n] for n in names if not _is_text_of(one[n], two[n])
        }


def _is_text_of(one: Any, two: Any) -> bool:
    """A column that is passed through is text in a CSV file."""
    return isinstance(one, str) and not isinstance(two, str) and two is not None


@pytest.mark.parametrize("path", THEIRS, ids=name_of)
def test_a_file_of_theirs_is_written_again_without_a_loss(path: Path) -> None:
    if path.suffix == ".csv" and path.parent.name == "ragas":
        return
    made = convert_eval_set(str(path), path.parent.name)
    lost = set(made.losses["code"])
    lost -= {"AE816"} if path.stem in ("theirs_prompts", "theirs_dataset") else set()  # one of its rows has a response
    assert lost <= ({"AE811", "AE813"} if "result" in path.stem else {"AE813"}), made.losses["message"].tolist()
    assert made.converted == made.given


TURNS: list[dict[str, Any]] = [
    {
        "request_id": f"order#{turn}",
        "session_id": "order",
        "request": {
            "messages": [
                *(
                    message
                    for before in range(1, turn)
                    for message in (
                        {"role": "user", "content": f"Question {before}"},
                        {"role": "assistant", "content": f"Answer {before}"},
                    )
                ),
                {"role": "user", "content": f"Question {turn}"},
            ]
        },
        "response": f"Answer {turn}",
        "predicted_trajectory": [CALL],
        **({"expected_response": "Answer 3", "reference_trajectory": [CALL]} if turn == 3 else {}),
    }
    for turn in (1, 2, 3)
]
"""A session of three turns, the last of which has ground truth: one case of Vertex AI with its agent data."""

DATA_OF = {"rows": ROWS, "chats": CHATS, "turns": TURNS}
WRITTEN = [(p, e, n) for p, es in OURS.items() for e in es for n in ("rows", "chats")]


@pytest.mark.parametrize(("platform", "extension", "name"), [*WRITTEN, ("vertex-genai", ".json", "turns")])
def test_what_we_write_is_what_a_platform_has_accepted(
    platform: str, extension: str, name: str, tmp_path: Path
) -> None:
    rows = DATA_OF[name]
    given, made = tmp_path / "rows.json", tmp_path / f"made{extension}"
    given.write_text(json.dumps(rows), encoding="utf-8")
    convert_file(str(given), str(made), platform, on_invalid="keep")
    recorded = PLATFORMS / platform / f"ours_{name}{extension}"
    if os.environ.get("UPDATE_GOLDEN"):
        recorded.write_bytes(made.read_bytes())
    assert made.read_bytes() == recorded.read_bytes()
    accepted = json.loads((PLATFORMS / platform / "accepted.json").read_text(encoding="utf-8"))
    found = accepted["files"].get(recorded.name)
    assert found is not None, f"let {platform} read it: tests/recorders/platforms.py"
    assert found["digest"] == digest(recorded), f"let {platform} read it again: tests/recorders/platforms.py"
