"""The settings of a repository: where they are found, what they do, and that the command line wins."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from agent_eval_schema.cli import argument_parser, main
from agent_eval_schema.validation.settings import Settings, find_settings, schema

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

GOOD = {"request": "How many days?", "response": "12 days."}
TYPO = {"request": {"messages": [{"role": "usr", "content": "Hi"}]}, "response": "Hello"}
WARNING = {**GOOD, "expected_facts": []}


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a good set, one with an error and one with a warning; the working directory is a folder in it."""
    for name, rows in {"good": [GOOD], "typo": [GOOD, TYPO], "warning": [WARNING]}.items():
        (tmp_path / "evals" / name).mkdir(parents=True)
        path = tmp_path / "evals" / name / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def write(folder: Path, text: str, name: str = "agent-eval-schema.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def run(*argv: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main(["validate", *argv])
    return code, *capsys.readouterr()


def test_the_files_of_the_settings_are_validated(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(repository, '[tool.agent-eval-schema]\nfiles = ["evals/**/*.jsonl"]\noutput = "concise"', "pyproject.toml")
    code, out, _ = run(capsys=capsys)
    place = os.path.join("..", "evals")
    assert code == 1
    assert [line.split(": ")[0] for line in out.splitlines()] == [
        f"{place}/typo/typo.jsonl:2",
        f"{place}/warning/warning.jsonl:1",
    ]


@pytest.mark.parametrize(
    ("settings", "argv", "code"),
    [
        ("", ["typo"], 1),
        ('ignore = ["AE206"]', ["typo"], 0),
        ('select = ["AE3"]', ["typo"], 0),
        ('select = ["AE3"]', ["typo", "--select", "AE2"], 1),
        ('ignore = ["AE206"]', ["typo", "--ignore", "AE3"], 1),
        ('per-file-ignores = {"evals/typo/*" = ["AE2"]}', ["typo"], 0),
        ('per-file-ignores = {"typo.jsonl" = ["message-role"]}', ["typo"], 0),
        ('per-file-ignores = {"evals/good/*" = ["AE2"]}', ["typo"], 1),
        ("", ["warning"], 0),
        ('fail-on = "warning"', ["warning"], 1),
        ('fail-on = "warning"', ["warning", "--fail-on", "error"], 0),
        ('fail-on = "never"', ["typo"], 0),
        ('format = "nothing"', ["good"], 2),
        ('format = "nothing"', ["good", "--format", "databricks"], 0),
        ('outputs = "generated"', ["good"], 0),
        ('columns = {"response" = "expected_response", "request" = "response"}', ["good", "--outputs", "generated"], 1),
    ],
)
def test_a_setting_is_the_default_of_an_option(
    settings: str, argv: list[str], code: int, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(repository, settings)
    name, *options = argv
    assert run(f"../evals/{name}/{name}.jsonl", *options, capsys=capsys)[0] == code


def test_the_nearest_settings_decide(repository: Path) -> None:
    assert find_settings(None).path is None
    write(repository, '[tool.agent-eval-schema]\nignore = ["AE1"]', "pyproject.toml")
    assert find_settings(None).settings.ignore == ("AE1",)
    write(repository / "work", "[tool.ruff]\n", "pyproject.toml")  # has no settings of ours
    assert find_settings(None).settings.ignore == ("AE1",)
    nearest = write(repository / "work", 'ignore = ["AE2"]')
    assert (find_settings(None).path, find_settings(None).settings.ignore) == (nearest, ("AE2",))
    assert find_settings(str(repository / "pyproject.toml")).settings.ignore == ("AE1",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("failon = 1", "unknown setting: expected one of files, format, outputs, columns, select, ignore, "),
        ("failon = 1", "got 'failon'; did you mean 'fail-on'?"),
        ('fail-on = "errors"', "Invalid enum value 'errors' - at `fail-on`"),
        ("select = 3", "Expected `array`, got `int` - at `select`"),
        ("select = [", "malformed TOML: "),
        ('files = ["*.nothing"]', 'no file matches files = ["*.nothing"]'),
        ('ignore = ["AE999"]', "AE999"),
        ("", "expected FILE, or `files` in [tool.agent-eval-schema] of pyproject.toml"),
    ],
)
def test_settings_that_cannot_be_used_are_one_line(
    text: str, said: str, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(repository, text)
    files = ["../evals/good/good.jsonl"] if "AE999" in text else []
    code, out, err = run(*files, capsys=capsys)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert said in err


def test_a_file_without_settings_cannot_be_asked_for(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("pyproject.toml", "missing.toml"):
        if name == "pyproject.toml":
            write(repository, "[tool.ruff]\n", name)
        code, _, err = run("--config", str(repository / name), capsys=capsys)
        assert (code, len(err.splitlines())) == (2, 1)
        assert name in err


def test_the_settings_of_a_run_can_be_shown_and_read_again(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        'files = ["evals/good/*"]',
        'fail-on = "warning"',
        'per-file-ignores = {"a \\"b\\"" = ["AE1"]}',
        'columns = {"x.y" = "request"}',
    ]
    write(repository, "\n".join(lines))
    code, out, _ = run("--show-settings", "--ignore", "AE2,AE3", "--columns", "z=response", capsys=capsys)
    assert code == 0
    assert out.startswith(f"# from {os.path.join('..', 'agent-eval-schema.toml')}, and the command line\n")
    shown = msgspec.convert(tomllib.loads(out), Settings)
    assert shown == Settings(
        files=(os.path.join("..", "evals", "good", "good.jsonl"),),
        fail_on="warning",
        ignore=("AE2,AE3",),
        columns={"x.y": "request", "z": "response"},
        per_file_ignores={'a "b"': ("AE1",)},
    )


def test_the_schema_accepts_what_is_accepted() -> None:
    check = jsonschema.Draft202012Validator(schema())
    assert check.is_valid({"files": ["*.jsonl"], "fail-on": "never", "per-file-ignores": {"a": ["AE1"]}})
    for wrong in ({"failon": "never"}, {"fail-on": "errors"}, {"select": "AE1"}, {"columns": {"a": 1}}):
        assert not check.is_valid(wrong)
    assert all(p["description"] for p in schema()["$defs"]["Settings"]["properties"].values())


def test_the_choices_are_those_of_the_options() -> None:
    validate = next(a for a in argument_parser()._actions if a.metavar == "COMMAND").choices["validate"]  # type: ignore[index, call-overload]
    options = {a.dest: a for a in validate._actions}
    properties = schema()["$defs"]["Settings"]["properties"]
    for name in ("outputs", "fail-on", "output"):
        assert set(properties[name]["enum"]) == set(options[name.replace("-", "_")].choices)
    others = {"per_file_ignores", "diff_fail_on", "profile_fail_on", "metrics"}
    assert {n.replace("-", "_") for n in properties} - others <= set(options)
    assert set(properties["diff-fail-on"]["enum"]) == set(_option("diff", "diff_fail_on").choices)
    assert set(properties["profile-fail-on"]["items"]["enum"]) == set(_option("profile", "profile_fail_on").choices)


def _option(command: str, name: str) -> Any:
    commands = next(a for a in argument_parser()._actions if a.metavar == "COMMAND").choices
    return next(a for a in commands[command]._actions if a.dest == name)  # type: ignore[index, call-overload]


TOLD = {"openinference.span.kind": "AGENT", "input.value": "How many days?", "output.value": "12 days."}
SPAN = {
    "traceId": "a",
    "spanId": "b",
    "name": "agent",
    "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in TOLD.items()],
}
TRACE = {"resourceSpans": [{"scopeSpans": [{"spans": [SPAN]}]}]}


@pytest.mark.parametrize(
    ("settings", "argv", "code"),
    [
        ("", ["convert", "LOSS", "out.jsonl", "--to", "vertex"], 0),
        ('fail-on = "warning"', ["convert", "LOSS", "out.jsonl", "--to", "vertex"], 1),
        ('fail-on = "warning"', ["convert", "LOSS", "out.jsonl", "--to", "vertex", "--fail-on", "error"], 0),
        ("", ["score", "BAD"], 1),
        ('fail-on = "never"', ["score", "BAD"], 0),
        ("", ["diff", "GOOD", "TYPO"], 1),
        ('fail-on = "never"', ["diff", "GOOD", "TYPO"], 1),
        ('diff-fail-on = "never"', ["diff", "GOOD", "TYPO"], 0),
        ('diff-fail-on = "loss"', ["diff", "GOOD", "TYPO"], 0),
        ('diff-fail-on = "never"', ["diff", "GOOD", "TYPO", "--fail-on", "any"], 1),
        ("", ["profile", "TYPO"], 0),
        ('profile-fail-on = ["invalid"]', ["profile", "TYPO"], 1),
        ('profile-fail-on = ["leaks"]', ["profile", "TYPO"], 0),
        ("", ["from-traces", "BAD_TRACE", "out.jsonl"], 1),
        ('fail-on = "never"', ["from-traces", "BAD_TRACE", "out.jsonl"], 0),
        ('ignore = ["AE6", "AE2"]', ["from-traces", "BAD_TRACE", "out.jsonl"], 0),
        ('per-file-ignores = {"bad_trace.jsonl" = ["AE6", "AE2"]}', ["from-traces", "BAD_TRACE", "out.jsonl"], 0),
        ('columns = {"payload" = "trace"}', ["from-traces", "PAYLOAD", "out.jsonl"], 0),
    ],
)
def test_settings_decide_how_every_command_ends(
    settings: str, argv: list[str], code: int, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(repository, settings)
    for name, row in {
        "bad": {**GOOD, "predicted_trajectory": 3},
        "bad_trace": {"trace": {"foo": 1}},
        "payload": {"payload": TRACE},
        "loss": {**GOOD, "guidelines": ["Be kind."]},
    }.items():
        (repository / "work" / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    files = {name.upper(): f"../evals/{name}/{name}.jsonl" for name in ("good", "typo", "warning")}
    files |= {name.upper(): f"{name}.jsonl" for name in ("bad", "bad_trace", "payload", "loss")}
    found = main([files.get(word, word) for word in argv])
    assert (found, capsys.readouterr().err.count("Traceback")) == (code, 0)


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("validate x", ["format", "outputs", "columns", "select", "ignore", "per-file-ignores", "fail-on", "output"]),
        ("metrics x", ["format", "outputs", "columns", "select", "ignore", "per-file-ignores", "output"]),
        ("convert x y", ["format", "columns", "fail-on"]),
        ("score x", ["format", "columns", "fail-on", "output"]),
        ("diff x y", ["format", "outputs", "columns", "diff-fail-on", "output"]),
        ("profile x", ["format", "outputs", "columns", "profile-fail-on", "output"]),
        ("from-traces x y", ["columns", "select", "ignore", "per-file-ignores", "fail-on"]),
        ("from-inference-table x y", ["output"]),
    ],
)
def test_every_command_shows_its_settings(command: str, names: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command.split(), "--show-settings"]) == 0
    shown = tomllib.loads(capsys.readouterr().out)
    assert sorted({*shown} - {"files"}) == sorted(names)


def test_columns_of_the_command_line(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = repository / "rows.jsonl"
    path.write_text(json.dumps({"ticket": {"text": "How many days?"}, "reply": "12"}) + "\n")
    assert run(str(path), capsys=capsys)[0] == 1
    named = ["--columns", "ticket.text=request", "--columns", "reply=response"]
    code, out, _ = run(str(path), *named, "--output", "json", capsys=capsys)
    assert (code, json.loads(out)["rows"]["valid"]) == (0, 1)
    code, _, err = run(str(path), *named, "--diff", capsys=capsys)
    assert code == 0
    assert "no safe fixes available" in err
