"""Every command and call that a result prints runs as it is printed, on the data that provoked it."""

import json
import re
import shlex
import sys
from collections.abc import Callable
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import agent_eval_schema
from agent_eval_schema import (
    EvalSetError,
    convert_eval_set,
    diff_eval_sets,
    normalize_eval_set,
    profile_eval_set,
    score_trajectories,
    validate_eval_set,
)
from agent_eval_schema.cli import main
from tests.conftest import SAMPLES

OWN = [
    {"q": "Hi?", "a": "Hello", "guidelines": "be nice", "predicted_trajectory": 1},
    {"q": "Hi?", "a": "Good day", "guidelines": ["brief"], "expected_respones": "Hello"},
]
"""Rows with names of their own: one can be fixed, one has a misspelled column; the question repeats."""

FILES: dict[str, Callable[[], str]] = {
    "own.jsonl": lambda: "".join(json.dumps(row) + "\n" for row in OWN),
    "my rows.jsonl": lambda: "".join(json.dumps(row) + "\n" for row in OWN),
    "-own.jsonl": lambda: "".join(json.dumps(row) + "\n" for row in OWN),
    "settings.toml": lambda: '[columns]\nq = "request"\na = "response"\n',
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with the samples and the files of this test, as the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "1000")
    for path in SAMPLES.iterdir():
        (tmp_path / path.name).symlink_to(path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text())
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "part.jsonl").write_text(FILES["own.jsonl"]())
    return tmp_path


def run(words: list[str], capsys: pytest.CaptureFixture[str], stdin: bytes = b"") -> tuple[int, str]:
    """The exit code and all text of a command."""
    before, sys.stdin = sys.stdin, TextIOWrapper(BytesIO(stdin))
    try:
        code = main(words)
    except SystemExit as end:  # of `--help`
        code = int(end.code or 0)
    finally:
        sys.stdin = before
    found = capsys.readouterr()
    return code, found.out + found.err


def commands_in(text: str) -> list[str]:
    """The commands on lines of their own, in quotes, and in a note of GitHub."""
    pattern = r"^ *(agent-eval-schema .*)$|`(agent-eval-schema [^`]+)`|All of them: (agent-eval-schema .*)$"
    return ["".join(found) for found in re.findall(pattern, text, re.MULTILINE)]


TYPED = {
    "--columns": "validate own.jsonl --columns q=request --columns a=response",
    "a path with a blank": "validate 'my rows.jsonl' --columns q=request --columns a=response",
    "a path that looks like an option": "validate ./-own.jsonl --columns q=request --columns a=response",
    "--config": "validate own.jsonl --config settings.toml",
    "--no-values": "validate broken.jsonl --no-values",
    "--select": "validate broken.jsonl --select AE2,AE4 --ignore AE206",
    "--format": "validate broken_mlflow.jsonl --format mlflow --outputs provided",
    "stdin": "validate - --columns q=request --columns a=response",
    "a folder": "validate own --columns q=request --columns a=response",
    "a glob": "validate 'own/*.jsonl' --columns q=request --columns a=response",
    "--diff": "validate own.jsonl --columns q=request --columns a=response --diff",
    "--fix": "validate broken.jsonl --fix fixed.jsonl",
    "--fix with names": "validate own.jsonl --columns q=request --columns a=response --fix fixed.jsonl",
    "names of others": "validate own.jsonl",
    "metrics": "metrics own.jsonl --columns q=request --columns a=response --select AE1,AE5",
    "profile": "profile own.jsonl --columns q=request --columns a=response --near 0.9 --price input=1,output=2",
    "profile of valid rows": "profile good.jsonl --against good.csv --calls-per-minute 60",
    "score": "score own.jsonl --columns q=request --columns a=response --config settings.toml",
    "score of Vertex AI": "score vertex_broken.jsonl --format vertex",
    "convert": "convert own.jsonl out.jsonl --to mlflow --columns q=request --columns a=response",
    "diff": "diff good.jsonl edited_broken.jsonl --format databricks",
    "diff by names": "diff good.jsonl own.jsonl --columns q=request --columns a=response",
    "an inference table": "validate inference_table.jsonl",
    "a profile of an inference table": "profile inference_table.jsonl",
    "github": "validate broken.jsonl --output github --outputs provided",
    "from-traces": "from-traces otel_traces_broken.jsonl out.jsonl",
    "from-inference-table": "from-inference-table inference_table.jsonl out.jsonl",
}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("typed", TYPED.values(), ids=TYPED)
def test_a_printed_command_runs_as_printed(typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    if "inference-table" in typed:
        pytest.importorskip("duckdb")
    rows = FILES["own.jsonl"]().encode()
    code, text = run(shlex.split(typed), capsys, rows)
    assert code in (0, 1), text
    printed = commands_in(text)
    assert printed
    reading = [w for w in re.findall(r"--(?:columns|config|format|near) \S+", typed) if "-traces" not in typed]
    for command in printed:
        code, answer = run(shlex.split(command)[1:], capsys, rows)
        assert code in (0, 1), (command, answer)
        again = command.split()[1] in ("validate", "profile", "metrics") and "fixed.jsonl " not in f"{command} "
        kept = [option for option in reading if again and not option.startswith("--near")]
        assert all(option in command for option in kept), command
        if again and typed.startswith("profile") and command.split()[1] == "profile":
            assert all(option in command for option in reading)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("verb", ["validate", "profile"])
@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.iterdir() if path.suffix != ".txt"))
def test_what_a_sample_provokes_runs(verb: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = run([verb, name], capsys)
    if code == 2:
        return
    for command in commands_in(text):
        words = shlex.split(command)[1:]
        if words[0] == "from-inference-table":
            pytest.importorskip("duckdb")
        code, answer = run(words, capsys)
        assert code in (0, 1), (command, answer)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", ["broken.jsonl", "broken_mlflow.jsonl", "edited_broken.jsonl", "vertex_broken.jsonl"])
def test_a_fix_makes_as_many_rows_valid_as_it_promises(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The rows are validated as the fixed file will be: "auto" requires less of them than "provided"."""
    _, text = run(["validate", name], capsys)
    (promised,) = re.findall(r"^Fixes .* → ([\d,]+) of", text, re.MULTILINE)
    run(["validate", name, "--fix", "fixed.jsonl"], capsys)
    assert validate_eval_set("fixed.jsonl").valid_count == int(promised)


@pytest.mark.usefixtures("here")
def test_what_is_left_after_a_fix_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    _, text = run(["validate", "broken.jsonl", "--fix", "fixed.jsonl"], capsys)
    assert commands_in(text)[-2:] == [
        "agent-eval-schema validate fixed.jsonl --output concise",
        "agent-eval-schema review fixed.jsonl --queue errors",
    ]
    _, listed = run(["validate", "fixed.jsonl", "--output", "concise"], capsys)
    assert f"{len([line for line in listed.splitlines() if ': info ' not in line])} issues" in text


@pytest.mark.usefixtures("here")
def test_rows_under_names_are_written_under_them_when_they_are_fixed(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["validate", "own.jsonl", "--columns", "q=request", "--columns", "a=response", "--fix"]
    assert run([*words, "fixed.jsonl"], capsys)[0] == 1  # a trajectory is left
    first = json.loads(Path("fixed.jsonl").read_text().splitlines()[0])
    assert [first["request"], first["guidelines"]] == ["Hi?", ["be nice"]]
    assert run([*words, "own.jsonl"], capsys)[0] == 2  # whose columns have other names


@pytest.mark.usefixtures("here")
def test_values_stay_hidden_when_rows_are_fixed(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["validate", "own.jsonl", "--columns", "q=request", "--columns", "a=response", "--no-values"]
    code, text = run([*words, "--fix", "fixed.jsonl"], capsys)
    assert [code, "AE108" in text, "nice" in text] == [1, True, False]


# ---------------------------------------------------------------------------------------------------------------------
# data in memory
NAMES = {"q": "request", "a": "response"}


def call_in(text: str) -> str:
    """The last line, which is the call."""
    return text.rstrip().splitlines()[-1].strip()


def test_a_printed_call_returns_the_rows_that_can_be_fixed() -> None:
    report = validate_eval_set(OWN, columns=NAMES, format="databricks")
    call = call_in(report.to_text())
    assert call == 'normalize_eval_set(report, fix=True, on_invalid="keep")'
    rows = eval(call, {"normalize_eval_set": normalize_eval_set, "report": report})
    assert rows[0]["guidelines"] == {"guidelines": ["be nice"]}


def test_a_call_that_fixes_all_rows_keeps_raising_for_others() -> None:
    report = validate_eval_set([{"request": "Hi", "response": "Hello", "guidelines": "be nice"}])
    assert call_in(report.to_text()) == "normalize_eval_set(report, fix=True)"


RESULTS: dict[str, Callable[[Any], Any]] = {
    "validate": lambda data: validate_eval_set(data, columns=NAMES, select=["AE1", "AE5"]),
    "names of others": lambda _: validate_eval_set([{"q": "Hi?", "a": "Hello"}]),
    "convert": lambda data: convert_eval_set(data, "mlflow", columns=NAMES),
    "diff": lambda data: diff_eval_sets([{"request": "Hi?", "response": "Hello"}], data, columns=NAMES),
    "profile": lambda data: profile_eval_set(data, columns=NAMES, near=0.9),
    "profile of valid rows": lambda _: profile_eval_set([{"request": "Hi?", "response": "Hello"}] * 9),
    "convert of valid rows": lambda _: convert_eval_set([{"request": "Hi?", "response": "Hello"}], "ragas"),
    "score": lambda data: score_trajectories(data, ["trajectory_recall"], columns=NAMES),
}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("kind", [list, pd.DataFrame], ids=["a list", "a DataFrame"])
def test_a_printed_call_runs_as_printed(
    name: str, kind: Callable[[Any], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    data = kind(OWN)
    result = RESULTS[name](data)
    text = result.to_text(width=1000)
    calls = [line.strip() for line in text.splitlines() if re.fullmatch(r" *[\w.]+\(.*\)(\.\w+(\(.*\))?)?", line)]
    assert calls or "agent-eval-schema " in text
    for call in calls:
        names = {n: getattr(agent_eval_schema, n) for n in agent_eval_schema.__all__}
        named = f"result{call}" if call.startswith(".") else call
        eval(named, names, {"data": data, "new": data, "profile": result, "report": result, "result": result})
    for command in commands_in(text):
        assert run(shlex.split(command)[1:], capsys)[0] in (0, 1)


def test_the_hint_for_a_column_can_be_added() -> None:
    issue = validate_eval_set([{"request": "Hi?", "reply": "Hello"}]).issues.query("column == 'reply'")
    hint = issue["hint"].iloc[0]
    assert "--columns reply=response" in hint
    columns = json.loads(re.search(r"columns=(\{.*?\})", hint)[1])  # type: ignore[index]
    assert validate_eval_set([{"request": "Hi?", "reply": "Hello"}], columns=columns).ok


ROWS = [{"request": "Hi?", "response": "Hello"}]


@pytest.mark.parametrize(
    ("data", "instead"),
    [
        ({"question": "Hi?", "data": ROWS}, "data['data']"),
        (pd.Series(ROWS), "data.tolist()"),
        (pd.Series(["Hi?"]), "data.to_frame('request')"),
        (dict.fromkeys("a", ROWS[0]).values(), "list(data)"),
        ((row for row in ROWS), "list(data)"),
    ],
)
def test_the_expression_that_is_named_in_place_of_data_can_be_validated(data: Any, instead: str) -> None:
    with pytest.raises(EvalSetError, match=re.escape(f"; use {instead}")):
        validate_eval_set(data)
    assert validate_eval_set(eval(instead)).row_count == 1


def test_the_lists_of_rows_in_a_file_are_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(f"{json.dumps({'data': ROWS})}\n" * 2)
    assert validate_eval_set(str(path)).issues["hint"].iloc[0] == 'Pass the list of rows itself: `data["data"]`.'


@pytest.mark.usefixtures("here")
def test_a_file_handle_is_answered_with_its_path() -> None:
    with open("good.jsonl") as file, pytest.raises(EvalSetError, match=r"; use its path: 'good.jsonl'$"):
        validate_eval_set(file)  # type: ignore[arg-type]
