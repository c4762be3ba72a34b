"""Text of strangers does nothing: neither in a terminal, nor to what reads the log of a CI run."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest

from agent_eval_schema import diff_eval_sets, validate_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.render import console
from agent_eval_schema.render.printable import as_text
from agent_eval_schema.render.report.junit import junit_xml
from agent_eval_schema.render.report.report_blocks import metrics_view
from agent_eval_schema.text.visible import XML_ESCAPE, escape_ci_commands, shell_words, visible
from agent_eval_schema.validation.report import summary_of
from tests.conftest import Row
from tests.helpers.scores import scores_view

COMMANDS = ("::error::owned", "##[error]owned", "##vso[task.complete result=Succeeded;]")


def obeys(line: str) -> bool:
    """Whether GitHub's or Azure's runner takes a line for a command (actions/runner: ActionCommand.TryParse)."""
    return line.strip().startswith("::") or "##[" in line or "##vso[" in line


@pytest.mark.parametrize(
    ("line", "harmless"),
    [
        ("::error::x", r"\x3a:error::x"),
        ("\u2003 ::x", "\u2003 \\x3a:x"),
        ("\x1b[1;32m  ::x\x1b[0m", "\x1b[1;32m  \\x3a:x\x1b[0m"),
        ("a ##[group]b ##[endgroup]", r"a ##\x5bgroup]b ##\x5bendgroup]"),
        ("a ##vso[x]", r"a ##vso\x5bx]"),
        ("std::vector: a::b", "std::vector: a::b"),
        (": :", ": :"),
        ("## [1] #[2]", "## [1] #[2]"),
        ("", ""),
    ],
)
def test_a_line(line: str, harmless: str) -> None:
    assert escape_ci_commands(line) == harmless


def hostile(command: str, before: int) -> list[Row]:
    """Cells with the command in many places: at each width some of them begins a line."""
    text = f"{'x ' * before} {command} {command}"
    return [
        {"request": "Hi", "response": "x", "expected_facts": text, f"col {command}": 1},
        {"request": {command: text}, "response": "x", "request_id": text},
        {"request": {"messages": [{"role": text, "content": text}]}, "response": "x", "tags": text},
        {"request": "Hi", "response": "y" * 90, "expected_response": "y" * 90, "retrieved_context": [{command: text}]},
    ]


def texts(rows: list[Row]) -> dict[str, Callable[[int], str]]:
    """What shows these rows, given a width."""
    report, diff = validate_eval_set(rows), diff_eval_sets([{"request": "a", "response": "x"}], rows)
    column = pd.Series([str(r["request"]) for r in rows], dtype="object")
    scores = pd.DataFrame({str(rows[0]["expected_facts"]): column, "b": [None] * len(rows)}, dtype="object")
    reasons = pd.DataFrame(dict.fromkeys(scores.columns, column))
    return {
        "report": lambda width: report.to_text(width=width),
        "report in colour": lambda width: re.sub(r"\x1b\[[\d;]*m", "", report.to_text(width=width, color=True)),
        "metrics": lambda width: as_text(metrics_view(summary_of(report)), width=width),
        "diff": lambda _: diff.to_text(),
        "scores": lambda width: as_text(scores_view(scores, reasons), width=width),
        "json": lambda _: report.to_json(),
        "junit": lambda _: junit_xml([summary_of(report)]),
        "diff as json": lambda _: diff.to_json(),
    }


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("before", [0, 3, 11, 25])
def test_no_text_gives_a_ci_runner_a_command(command: str, before: int) -> None:
    for name, text in texts(hostile(command, before)).items():
        for width in (40, 67, 100):
            assert not [line for line in text(width).splitlines() if obeys(line)], name


@pytest.mark.parametrize("command", COMMANDS)
def test_to_a_reader_of_json_or_xml_the_command_is_as_it_was(command: str) -> None:
    report = validate_eval_set(hostile(command, 0))
    wanted = [i.message for i in report.iter_issues() if command in i.message]
    assert wanted
    issues = json.loads(report.to_json())["issues"]
    assert {i["message"] for i in issues} >= set(wanted)
    told = "".join(ElementTree.fromstring(junit_xml([summary_of(report)])).itertext())
    assert all(message in told for message in wanted)


def test_a_line_of_xml_that_begins_with_a_command() -> None:
    assert escape_ci_commands("  ::error::x ##[group]", XML_ESCAPE) == "  &#58;:error::x ##&#91;group]"


def test_the_test_would_see_one() -> None:
    """Without the escape some line of these reports is a command."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(console, "escape_ci_commands", lambda line: line)
        for command in COMMANDS:
            made = [texts(hostile(command, n))["report"](w) for n in (0, 3, 11, 25) for w in (40, 67, 100)]
            assert any(obeys(line) for each in made for line in each.splitlines())


def test_repairs_and_errors_give_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"request": "Hi ##[error]x", "respones": "::error::x", "expected_facts": "##[error]x"}))
    main(["validate", str(path), "--diff"])
    main(["validate", "##[error]owned.jsonl"])
    said = capsys.readouterr()
    assert "owned" in said.err
    assert "+ " in said.out
    assert not [line for line in (said.out + said.err).splitlines() if obeys(line)]


@pytest.mark.parametrize("command", COMMANDS)
def test_nor_does_an_update(tmp_path: Path, capsys: pytest.CaptureFixture[str], samples: Path, command: str) -> None:
    evaluation = json.loads((samples / "evaluation_edited.json").read_text(encoding="utf-8"))
    path = tmp_path / "evaluation.json"
    path.write_text(json.dumps({**evaluation, "displayName": command, "description": f"{command}\u202e"}))
    for form in ("json", "text"):
        assert (
            main(["ces", "update", str(path), "--mask", "displayName,description", "--dry-run", "--output", form]) == 0
        )
        said = capsys.readouterr()
        assert "owned" in said.out or "result=" in said.out
        assert not [line for line in said.out.splitlines() if obeys(line) or "\u202e" in line]
        if form == "json":
            assert json.loads(said.out)["params"]["arguments"]["evaluation"]["displayName"] == command


def test_nor_does_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, samples: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    name = "##[error]owned\x1b[2J.jsonl"
    assert main(["validate", str(samples / "good.jsonl"), "--write-normalized", name, "-q"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["convert", str(samples / "good.jsonl"), name, "--to", "databricks"]) in (0, 1)
    said = capsys.readouterr().err
    assert "owned" in said
    assert not [line for line in said.splitlines() if obeys(line) or "\x1b" in line]


def test_nor_does_a_funnel(tmp_path: Path, capsys: pytest.CaptureFixture[str], samples: Path) -> None:
    out = str(tmp_path / "rows.jsonl")
    strata = ["--sample", "3", "--stratify", "'##[error]owned'"]
    main(["from-inference-table", str(samples / "inference_table.jsonl"), out, *strata, "--output", "json"])
    said = capsys.readouterr()
    assert "##[error]owned" in str(json.loads(said.out))
    assert not [line for line in (said.out + said.err).splitlines() if obeys(line)]


@pytest.mark.parametrize("sign", ["\u200b", "\u2060", "\xad"])
def test_texts_that_differ_in_what_has_no_width_look_different(sign: str) -> None:
    old, new = ([{"request_id": "a", "request": text, "response": "c"}] for text in ("a b", f"a {sign}b"))
    changed = diff_eval_sets(old, new)
    escape = f"\\x{ord(sign):02x}" if ord(sign) < 256 else f"\\u{ord(sign):04x}"
    for text in (changed.to_text(), changed.to_html()):
        assert sign not in text
        assert escape in text


def test_joiners_of_emojis_and_scripts_are_shown_as_they_are() -> None:
    family = "👨\u200d👩\u200d👧 می\u200cخواهم"
    assert visible(family) == family


@pytest.mark.parametrize(
    "word", ["a", "a b", "it's", "a\nb", "a\\n\tb'c", "toxic \u202e", "\x1b[0m", "$HOME `x`", "", "Frage\n(Kunde)=x"]
)
def test_a_command_can_be_pasted_into_a_shell(word: str) -> None:
    command = shell_words(["printf", "%s|", word, "end"])
    assert visible(command) == command
    found = subprocess.run(["bash", "-c", command], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}).stdout
    assert found.decode() == f"{word}|end|"
