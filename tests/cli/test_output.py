"""What every command prints, whatever is in the data and whatever goes wrong: nothing that a CI runner obeys, one line
for an error, and the exit code."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import shlex
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agent_eval_schema import FormulaWarning, cli
from agent_eval_schema.cli import argument_parser, main
from agent_eval_schema.cli.options import Parser
from agent_eval_schema.cli.output import noting_warnings, print_text
from agent_eval_schema.runtime import extensions
from tests.cli.test_options import parsers
from tests.conftest import SAMPLES

SIGNS = ("::error::owned", "::set-output name=owned::1", "##[error]owned", "##vso[task.complete]owned")


def obeys(line: str) -> bool:
    """Whether GitHub's or Azure's runner takes a line for a command."""
    return line.strip().startswith("::") or "##[" in line or "##vso[" in line


def lines_of(text: str) -> list[str]:
    """As the runners read them."""
    return io.StringIO(text, newline=None).read().split("\n")


ARGUMENTS: dict[str, list[str]] = {
    "validate": ["validate rows.jsonl", "validate rows.jsonl --output json", "validate rows.jsonl --output junit"],
    "validate --fix": ["validate rows.jsonl --diff", "validate rows.jsonl --fix fixed.jsonl", "validate SIGN.jsonl"],
    "metrics": ["metrics rows.jsonl --system all", "metrics rows.jsonl --output json", "metrics SIGN.jsonl"],
    "profile": ["profile rows.jsonl", "profile rows.jsonl --output json"],
    "diff": ["diff other.jsonl rows.jsonl", "diff rows.jsonl other.jsonl --output json"],
    "review": ["review rows.jsonl --bundle page.html --redact SIGN:f", "review rows.jsonl --queue SIGN"],
    "score": ["score calls.jsonl --tool-name SIGN", "score calls.jsonl --output json --min SIGN=0.5"],
    "compare": ["compare scores.jsonl scores.jsonl --key SIGN", "compare scores.jsonl SIGN.jsonl --metrics SIGN"],
    "from-traces": ["from-traces traces.jsonl out.jsonl", "from-traces rows.jsonl SIGN.jsonl"],
    "from-inference-table": [
        "from-inference-table inference_table.jsonl out.jsonl --sample 3 --stratify 'SIGN'",
        "from-inference-table inference_table.jsonl out.jsonl --sample 3 --stratify 'SIGN' --output json",
        "from-inference-table inference_table.jsonl out.jsonl --where SIGN",
        "from-inference-table inference_table.jsonl out.jsonl --redact SIGN:f",
    ],
    "convert": [f"convert rows.jsonl out.json --to {target}" for target in ("ragas", "mlflow", "openai", "adk")],
    "convert --format": ["convert rows.jsonl out.jsonl --format SIGN", "convert rows.jsonl out.jsonl --to SIGN"],
    "import": ["import rows.jsonl --prefer expected_facts", "import rows.jsonl SIGN.jsonl", "import SIGN.jsonl"],
    "schema": ["schema databricks", "schema canonical", "schema SIGN"],
    "explain": ["explain AE206", "explain SIGN"],
    "formats": ["formats", "formats ragas", "formats SIGN"],
    "rules": ["rules"],
    "completion": ["completion SIGN"],
    "server": ["server SIGN"],
    "ces template": ["ces template"],
    "ces update": [
        "ces update evaluation.json --mask displayName --dry-run",
        "ces update SIGN.json --mask displayName",
    ],
    "ces import": ["ces import SIGN.csv projects/p/locations/us/apps/a", "ces import evaluation.json SIGN"],
    "ces get": ["ces get SIGN", "ces get projects/p/locations/us/apps/a/evaluations/e SIGN.json"],
    "ces list": ["ces list SIGN", "ces list projects/p/locations/us/apps/a SIGN.json"],
}
"""Command lines that print what the files hold, by command. SIGN stands for a command of a runner."""


@pytest.fixture(params=SIGNS)
def hostile(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Files with a command of a runner in every place: the command."""
    sign: str = request.param
    text = f"{sign} x\n{sign}\r{sign} {'x ' * 30}{sign} {'y ' * 17}{sign}"
    rows: list[dict[str, Any]] = [
        {"request": "Hi", "response": text, "expected_facts": text, f"col {sign}": text, sign: 1},
        {"request": {text: 1}, "response": "x", "request_id": text},
        {"request": {"messages": [{"role": text, "content": text}]}, "response": "x", "tags": text},
        {"request": text, "response": text, "custom_expected": {text: text}, "tags": {text: text}, "request_id": sign},
        {"request": "a", "response": "b", "retrieved_context": [{text: text, "doc_uri": text}]},
    ]
    calls = [{"tool_name": text, "tool_input": {text: text}}]
    logged = [json.loads(line) for line in (SAMPLES / "inference_table.jsonl").read_text().splitlines()]
    logged += [{**row, "databricks_request_id": f"{sign}{i}", "request": text} for i, row in enumerate(logged)]
    evaluation = json.loads((SAMPLES / "evaluation_edited.json").read_text())
    files = {
        "rows": rows,
        "other": [{"request": "a", "response": text}],
        "calls": [{"prompt": text, "predicted_trajectory": calls, "reference_trajectory": calls, sign: text}, *rows],
        "traces": [{"trace": text}, {"trace": {"info": {"trace_id": text}, "data": {"spans": [{text: text}]}}}],
        "scores": [{"request_id": text, "prompt": text, f"{text}/score": 1, sign: text}, {"prompt": "a", sign: "b"}],
        "inference_table": logged,
    }
    monkeypatch.chdir(tmp_path)
    for name, entries in files.items():
        Path(f"{name}.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    Path("evaluation.json").write_text(json.dumps({**evaluation, "displayName": text, "description": text}))
    return sign


def commands() -> set[str]:
    """The commands and verbs that the parser knows."""

    def under(parser: argparse.ArgumentParser, words: tuple[str, ...]) -> set[str]:
        groups = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
        return {name for g in groups for verb, p in g.choices.items() for name in under(p, (*words, verb))} or {
            " ".join(words)
        }

    return under(argument_parser(), ())


def test_every_command_is_tried() -> None:
    assert commands() <= ARGUMENTS.keys()


@pytest.mark.parametrize("command", ARGUMENTS)
def test_no_command_prints_what_a_ci_runner_obeys(
    command: str, hostile: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = 0
    for words in ARGUMENTS[command]:
        with contextlib.suppress(SystemExit):  # argparse's
            main([word.strip("'").replace("SIGN", hostile) for word in words.split(" ")])
        said = capsys.readouterr()
        assert "internal error" not in said.err
        shown += "owned" in said.out + said.err
        assert [line for line in lines_of(said.out + said.err) if obeys(line)] == [], words
    assert shown or command in ("ces template", "rules", "server")


@pytest.mark.parametrize("sign", SIGNS)
def test_nor_does_a_wrong_option(sign: str, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (
        ["validate", "a", f"--jobs=\n{sign}", f"--{sign}"],
        ["metrics", "a", "--output", f"x\n{sign}"],
        [sign],
    ):
        with pytest.raises(SystemExit):
            main(words)
        said = capsys.readouterr().err
        assert "owned" in said
        assert [line for line in lines_of(said) if obeys(line)] == []


@pytest.mark.parametrize(
    ("form", "shown"),
    [
        *[(form, "::error::owned") for form in ("github", "script")],
        *[(form, r"\u003a:error::owned") for form in ("json", "sarif")],
        ("junit", "&#58;:error::owned"),
        *[(form, r"\x3a:error::owned") for form in ("text", "table", "markdown")],
    ],
)
def test_a_command_is_printed_only_in_the_form_of_commands_or_for_a_shell(
    form: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_text("::error::owned\n", form)
    assert capsys.readouterr().out == f"{shown}\n"


def test_github_obeys_what_a_validation_prints_for_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(SAMPLES / "broken.jsonl"), "--output", "github"]) == 1
    assert capsys.readouterr().out.startswith("::error ")


# ---------------------------------------------------------------------------------------------------------------------
# color
COLORED = {
    "validate": f"validate {SAMPLES / 'broken.jsonl'}",
    "validate --diff": f"validate {SAMPLES / 'broken.jsonl'} --diff",
    "metrics": f"metrics {SAMPLES / 'good.jsonl'}",
    "diff": f"diff {SAMPLES / 'good.jsonl'} {SAMPLES / 'edited_broken.jsonl'}",
    "score": f"score {SAMPLES / 'vertex.jsonl'}",
    "compare": f"compare {SAMPLES / 'vertex.jsonl'} {SAMPLES / 'vertex.jsonl'}",
    "convert": f"convert {SAMPLES / 'broken.jsonl'} out.jsonl --to ragas",
    "convert, lossless": f"convert {SAMPLES / 'good.csv'} out.jsonl --to databricks",
    "from-traces": "from-traces traces.jsonl out.jsonl",
    "from-inference-table": f"from-inference-table {SAMPLES / 'inference_table.jsonl'} out.jsonl",
    "ces update": f"ces update {SAMPLES / 'evaluation_edited.json'} --against {SAMPLES / 'evaluation.json'} --dry-run",
    "explain": "explain AE206",
    "formats": "formats",
    "rules": "rules",
}
"""A run of each command that prints text of ours (not JSON, a script, or a file)."""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    @property
    def encoding(self) -> str:
        return "utf-8"


ENVIRONMENTS: list[tuple[bool, dict[str, str], bool]] = [
    (True, {}, True),
    (False, {}, False),
    (False, {"FORCE_COLOR": "1"}, True),
    (True, {"NO_COLOR": "1"}, False),
    (True, {"NO_COLOR": ""}, True),
    (True, {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
    (True, {"TERM": "dumb"}, False),
]


@pytest.mark.parametrize("command", COLORED)
def test_a_command_has_color_on_a_terminal_or_when_it_is_asked_for(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "inference" in command:
        pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)
    Path("traces.jsonl").write_text('{"trace": "no trace"}')
    plain = set()
    for terminal, variables, colored in ENVIRONMENTS:
        with monkeypatch.context() as patch:
            for name in ("NO_COLOR", "FORCE_COLOR"):
                patch.delenv(name, raising=False)
            for name, value in {"TERM": "xterm", "COLUMNS": "100", **variables}.items():
                patch.setenv(name, value)
            patch.setattr(sys, "stdout", out := Terminal() if terminal else io.StringIO())
            assert main([*COLORED[command].split(), *(["--quiet"] if "from" in command else [])]) in (0, 1)
        assert ("\x1b[" in out.getvalue()) is colored, variables
        plain.add(re.sub(r"\x1b\[[\d;]*m|\s|[\d.]+s\b", "", out.getvalue()))  # lines are broken on a terminal only
    assert len(plain) == 1, "color changes nothing else"


# ---------------------------------------------------------------------------------------------------------------------
# what nobody expected
SECRET = "::error::my number is 4711\nand more"


def fail_in_commands(fail: Callable[[argparse.Namespace], int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Instead of its work, each command calls `fail`."""

    def failing(command: str | None = None) -> Parser:
        parser = argument_parser(command)
        for inner in parsers(parser):
            inner.set_defaults(run=fail)
        return parser

    monkeypatch.setattr(cli, "argument_parser", failing)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyError("x"), "internal error: KeyError: 'x': please report it with the output of: agent-eval-schema"),
        (ValueError(SECRET), "internal error: ValueError: ::error::my number is 4711: please report it"),
        (RecursionError(), "internal error: RecursionError: RecursionError"),
        (OSError("no file has to do with it"), "internal error: OSError: no file has to do with it"),
        (FileNotFoundError(2, "No such file", "a.jsonl"), "agent-eval-schema: a.jsonl: No such file"),
        (MemoryError(), "there is not enough memory"),
        (pa.ArrowInvalid("Unexpected end"), "internal error: ArrowInvalid: Unexpected end"),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("name", [name for name in cli._COMMANDS if name not in ("ces", "completion")])
def test_an_error_that_nobody_expected_is_one_line(
    name: str, error: Exception, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: argparse.Namespace) -> int:
        raise error

    fail_in_commands(fail, monkeypatch)
    of_two = ("diff", "compare", "convert", "import", "from-traces", "from-inference-table")
    files = ["a b.jsonl", "a c.jsonl"][: {**dict.fromkeys(of_two, 2), "rules": 0, "server": 0}.get(name, 1)]
    command = [name, *files]
    assert main(command) == 2
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert said in told.err
    if "report it" in said:
        assert told.err.endswith(f"{shlex.join(['agent-eval-schema', *command])} --debug\n")
    assert main([*command, "--debug"]) == 2
    told = capsys.readouterr()
    assert "in fail" in told.err
    assert [line for line in lines_of(told.err) if obeys(line)] == []


def test_an_error_in_another_package_names_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: argparse.Namespace) -> int:
        raise ValueError("no\nline")

    fail_in_commands(fail, monkeypatch)
    monkeypatch.setitem(extensions.MODULES, "tests", "help-desk 2.0")
    assert main(["rules"]) == 2
    why = "help-desk 2.0 raised an exception: ValueError: no: report it to its authors, or uninstall it"
    assert capsys.readouterr().err == f"agent-eval-schema: {why}\n"


def test_a_warning_of_another_package_stays_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    with noting_warnings(argparse.Namespace(quiet=False)):
        warnings.warn("ours", FormulaWarning, stacklevel=1)
        with pytest.warns(UserWarning, match="^theirs$"):
            warnings.showwarning(UserWarning("theirs"), UserWarning, __file__, 1)
    assert capsys.readouterr().err == "ours\n"


def test_the_server_for_editors_is_not_run_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal())
    assert main(["server"]) == 2
    assert "server: expected an editor on stdin, got a terminal: name the command in its" in capsys.readouterr().err


def test_of_private_data_an_error_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: argparse.Namespace) -> int:
        raise ValueError(SECRET)

    fail_in_commands(fail, monkeypatch)
    assert main(["validate", "a.jsonl", "--no-values"]) == 2
    told = capsys.readouterr().err
    assert "internal error: ValueError: (a ValueError, its text may quote cells)" in told
    assert "4711" not in told


@pytest.mark.process
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("command", ["validate broken.jsonl", "rules", "explain AE206", "diff good.jsonl broken.jsonl"])
def test_a_full_disk_is_told(command: str) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "agent_eval_schema", *command.split()],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=SAMPLES,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == "agent-eval-schema: the report cannot be written: No space left on device\n"


# ---------------------------------------------------------------------------------------------------------------------
# files that are broken
def test_a_page_of_parquet_that_cannot_be_decoded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.parquet"
    text = "".join(chr(97 + i * i % 23) for i in range(4000))
    pq.write_table(pa.table({"request": [text[i:] for i in range(99)], "response": ["a"] * 99}), path)
    data = bytearray(path.read_bytes())
    data[len(data) // 4 : len(data) // 4 + 64] = bytes(64)
    path.write_bytes(data)
    for jobs in ("1", "2"):
        assert main(["validate", str(path), "--jobs", jobs]) == 2
        told = capsys.readouterr().err
        assert told.startswith(f"agent-eval-schema: {path}: cannot be read as Parquet: ")
        assert told.count("\n") == 1
