"""--columns and the settings, in every command that reads rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema import (
    EvalSetError,
    assert_valid,
    convert_eval_set,
    diff_eval_sets,
    metric_support,
    normalize_eval_set,
    profile_eval_set,
    score_trajectories,
)
from agent_eval_schema.cli import main

CALL = {"name": "search", "args": {"q": "a"}}
ROW = {"q": "Where is my order?", "chunks": [{"text": "In the app.", "rank": 1}], "calls": [CALL], "wanted": [CALL]}
NAMES = {
    "q": "request",
    "chunks[].text": "retrieved_context[].content",
    "calls[].name": "predicted_trajectory[].tool_name",
    "calls[].args": "predicted_trajectory[].tool_input",
    "wanted[].name": "reference_trajectory[].tool_name",
    "wanted[].args": "reference_trajectory[].tool_input",
}
GIVEN = [word for path, name in NAMES.items() for word in ("--columns", f"{path}={name}")]

COMMANDS = {
    "validate": "validate rows.jsonl --output json",
    "metrics": "metrics rows.jsonl --output json",
    "profile": "profile rows.jsonl --output json",
    "score": "score rows.jsonl --output json",
    "diff": "diff rows.jsonl rows.jsonl --output json",
    "convert": "convert rows.jsonl out.jsonl --to vertex",
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROW) + "\n")
    (tmp_path / "names.json").write_text(json.dumps(NAMES))
    (tmp_path / "names.toml").write_text("".join(f"{json.dumps(k)} = {json.dumps(v)}\n" for k, v in NAMES.items()))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_verb_takes_them() -> None:
    (row,) = normalize_eval_set([ROW], columns=NAMES)
    assert row["request"] == {"messages": [{"role": "user", "content": ROW["q"]}]}
    assert [d["content"] for d in row["retrieved_context"]] == ["In the app."]
    assert row["predicted_trajectory"] == [{"tool_name": "search", "tool_input": {"q": "a"}}]
    assert row["chunks"] == [{"rank": 1}]
    support = metric_support([ROW], columns=NAMES)
    assert support["response/llm_judged/relevance_to_query/rating"].tolist() == [True]
    assert convert_eval_set([ROW], "vertex", columns=NAMES).data["prompt"].tolist() == [ROW["q"]]
    assert score_trajectories([ROW], columns=NAMES).summary_metrics["trajectory_recall/mean"] == 1.0
    assert profile_eval_set([ROW], columns=NAMES).counts["invalid"] == 0
    assert diff_eval_sets([ROW], [ROW], columns=NAMES).same
    with pytest.raises(AssertionError):
        assert_valid([ROW])
    assert_valid([ROW], columns=NAMES)


def test_a_diff_takes_names_that_one_version_has(place: Path) -> None:
    (place / "new.jsonl").write_text('{"request": "Where is my order?"}\n')
    (place / "old.jsonl").write_text('{"q": "Where is my order?"}\n')
    assert diff_eval_sets("old.jsonl", "new.jsonl", columns={"q": "request"}).same
    with pytest.raises(EvalSetError, match="expected one of q, request; got 'query'"):
        diff_eval_sets("old.jsonl", "new.jsonl", columns={"query": "request"})


@pytest.mark.parametrize("command", list(COMMANDS))
def test_every_command_takes_them(command: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def printed(*words: str) -> tuple[int, Any]:
        code = main([*COMMANDS[command].split(), *words])
        text, error = capsys.readouterr()
        assert code in (0, 1), error
        return code, _without_seconds(text)

    found = printed(*GIVEN)
    assert found == printed("--columns", "names.json") == printed("--columns", "names.toml")
    (place / "agent-eval-schema.toml").write_text("[columns]\n" + (place / "names.toml").read_text())
    assert found == printed()
    assert found != printed("--format", "mlflow", "--config", str(_empty(place)))


def _empty(place: Path) -> Path:
    (place / "empty.toml").write_text("")
    return place / "empty.toml"


def _without_seconds(text: str) -> Any:
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return {k: v for k, v in found.items() if k != "seconds"} if isinstance(found, dict) else found


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("question", "expected PATH=NAME, auto, or a file .json or .toml; got 'question'"),
        ("nothing.json", "nothing.json: No such file"),
        ("rows.jsonl.json", "expected {column of the data: our name}"),
        ("wrong.toml", "expected {column of the data: our name}: "),
        ("q[=request", "columns: expected one of q, chunks, calls, wanted; got 'q['"),
        ("chunks[]text=request", "columns: expected a path such as item.text or ctx[].text; got 'chunks[]text'"),
        ("q=request[0]", "columns: expected a path such as item.text or ctx[].text; got 'request[0]'"),
        ("q=[].content", "columns: expected one of request_id, request, "),
    ],
)
def test_what_is_no_mapping_is_told_in_one_line(
    given: str, said: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "rows.jsonl.json").write_text("[1]")
    (place / "wrong.toml").write_text("a = [1")
    try:
        code: Any = main(["validate", "rows.jsonl", "--columns", given])
    except SystemExit as stopped:
        code = stopped.code
    error = capsys.readouterr().err
    assert (code, error.count("\n")) == (2, 1)
    assert said in error


# ---------------------------------------------------------------------------------------------------------------------
# settings


@pytest.mark.parametrize("command", list(COMMANDS))
def test_settings_are_shown_by_every_command(command: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "agent-eval-schema.toml").write_text('format = "vertex"\noutput = "github"\nignore = ["AE5"]\n')
    words = COMMANDS[command].replace("--output json", "").split()
    assert main([*words, "--show-settings"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("# from agent-eval-schema.toml, and the command line\n")
    assert 'format = "vertex"' in shown
    assert ('ignore = ["AE5"]' in shown) is (command in ("validate", "metrics"))
    if command != "convert":
        assert ('output = "github"' in shown) is (command == "validate"), "others have no such form: they print text"
    assert main([*words, "--format", "ragas", "--show-settings"]) == 0
    assert 'format = "ragas"' in capsys.readouterr().out
    assert not (place / "out.jsonl").exists()


def test_rules_decide_which_rows_support_a_metric(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "rows.jsonl").write_text(
        '{"request": {"messages": [{"role": "usr", "content": "Hi"}]}, "response": "a"}\n'
    )

    def supported(*words: str) -> int:
        assert main(["metrics", "rows.jsonl", "--output", "json", *words]) == 0
        return max(line["supported"] for line in json.loads(capsys.readouterr().out))

    assert supported() == 0
    assert supported("--ignore", "AE206") == 1
    (place / "agent-eval-schema.toml").write_text('per-file-ignores = { "rows.*" = ["message-role"] }\n')
    assert supported() == 1
