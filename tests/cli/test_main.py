"""The command line as a user types it: what goes to stdout, what to stderr, and the exit code."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from agent_eval_schema.cli import main
from agent_eval_schema.rules import RULES


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(a) for a in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_clean_data_exits_0(capsys: pytest.CaptureFixture[str], samples: Path) -> None:
    code, out, err = run(capsys, "validate", samples / "good.jsonl")
    assert (code, err) == (0, "")
    assert "✓ All 12 rows are valid" in out
    assert "response/llm_judged/correctness/rating" in out


@pytest.mark.parametrize(
    ("command", "what"),
    [
        (["validate", "good.jsonl"], "report"),
        (["profile", "good.jsonl"], "profile"),
        (["diff", "good.jsonl", "good.jsonl"], "comparison"),
        (["convert", "good.jsonl", "out.jsonl", "--to", "ragas"], "report of losses"),
        (["score", "good.jsonl", "--metrics", "exact_match"], "report of scores"),
    ],
    ids=lambda part: part if isinstance(part, str) else part[0],
)
def test_a_page_is_named_when_it_is_written(
    command: list[str],
    what: str,
    capsys: pytest.CaptureFixture[str],
    samples: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [str(samples / word) if (samples / word).is_file() else word for word in command]
    _code, _output, notes = run(capsys, *words, "--html", "page.html")
    assert f"HTML {what} written to page.html\n" in notes
    assert Path("page.html").read_text("utf-8").startswith("<!doctype html>")


def test_errors_exit_1(capsys: pytest.CaptureFixture[str], samples: Path) -> None:
    code, out, _ = run(capsys, "validate", samples / "broken.jsonl")
    assert code == 1
    assert "AE206 message-role" in out
    assert "Did you mean 'user'?" in out


@pytest.mark.parametrize(
    ("level", "row", "code"),
    [
        ("error", {"request": "a", "response": ""}, 0),
        ("warning", {"request": "a", "response": ""}, 1),
        ("warning", {"request": "a", "response": "b", "x": 1}, 0),
        ("never", {"request": "", "response": "b"}, 0),
    ],
)
def test_fail_on(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, level: str, row: dict[str, str], code: int
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(row))
    assert run(capsys, "validate", path, "--fail-on", level)[0] == code


def test_select_and_ignore(capsys: pytest.CaptureFixture[str], samples: Path) -> None:
    code, out, _ = run(capsys, "validate", samples / "broken.jsonl", "--select", "AE206,AE4", "--ignore", "AE406")
    assert code == 1
    assert "AE206" in out
    assert "AE402" in out
    assert "AE201" not in out
    assert "AE406 " not in out.partition("✗")[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["validate", "no-such-file.jsonl"], "no-such-file.jsonl: no such file"),
        (["validate", "."], "is a directory"),
        (["validate", "README.md"], "unknown file extension"),
        (["validate", "sample_data/good.jsonl", "--format", "excel"], "format: expected one of"),
        (["validate", "sample_data/good.jsonl", "--select", "AE77"], "select: expected codes"),
        (["validate", "sample_data/good.jsonl", "--write-normalized", "x.docx"], "expected .jsonl or"),
        (["validate", "sample_data/good.jsonl", "sample_data/good.csv", "--write-invalid", "x.jsonl"], "one FILE"),
        (["metrics", "sample_data/good.jsonl", "--system", "excel"], "system: expected one of"),
        (["explain", "AE999"], "code: expected a code (AE206) or a name"),
        (["schema", "excel"], "format: expected one of canonical,"),
        (["from-traces", "sample_data/good.csv", "no-folder/x.jsonl"], "cannot be written"),
    ],
)
def test_what_cannot_run_exits_2_with_one_line(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    samples: Path,
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(samples.parent)
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("output", ["text", "json", "github", "junit"])
def test_a_file_that_cannot_be_read_does_not_silence_the_others(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path, output: str
) -> None:
    empty = tmp_path / "empty.parquet"
    empty.touch()
    code, out, err = run(
        capsys, "validate", samples / "good.jsonl", "no-such.jsonl", empty, samples / "broken.jsonl", "--output", output
    )
    assert code == 2
    assert "AE206" in out
    assert [line.split(": ")[1] for line in err.splitlines()] == ["no-such.jsonl", str(empty)]


def test_none_of_several_files_can_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "validate", "a.jsonl", "b.jsonl", "--output", "json")
    assert (code, out, err.count("no such file")) == (2, "", 2)


@pytest.mark.parametrize("arguments", [["--select", "AE77"], ["--format", "excel"]])
def test_a_wrong_option_is_told_once(capsys: pytest.CaptureFixture[str], samples: Path, arguments: list[str]) -> None:
    code, out, err = run(capsys, "validate", samples / "good.jsonl", samples / "good.csv", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)


@pytest.mark.process
def test_closed_streams_do_not_change_what_is_found(samples: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "agent_eval_schema"]
    written = ["validate", str(samples / "broken.jsonl"), "--write-invalid", str(tmp_path / "i.jsonl")]
    for arguments, code in ((["explain", "AE206"], 0), (written, 1), (["validate", "no-such.jsonl"], 2)):
        shell = f"{shlex.join([*command, *arguments])} >&-"
        done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True)
        assert (done.returncode, "Traceback" in done.stderr) == (code, False)
    shell = f"{shlex.join([*command, *written, '--output', 'json'])} 2>&-"
    done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True)
    assert json.loads(done.stdout)["ok"] is False, "a note came between"


def test_json_of_one_file_and_of_several(capsys: pytest.CaptureFixture[str], samples: Path) -> None:
    _, out, _ = run(capsys, "validate", samples / "good.jsonl", "--output", "json")
    assert json.loads(out)["rows"]["total"] == 12
    _, out, _ = run(capsys, "validate", samples / "good.jsonl", samples / "good.csv", "--output", "json")
    assert [r["rows"]["total"] for r in json.loads(out)] == [12, 6]


def test_normalized_and_invalid_rows_are_written(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path
) -> None:
    normal, invalid = tmp_path / "n.parquet", tmp_path / "i.jsonl"
    _, _, err = run(
        capsys, "validate", samples / "broken.jsonl", "--write-normalized", normal, "--write-invalid", invalid
    )
    assert pq.read_table(normal).num_rows == 37
    lines = [json.loads(line) for line in invalid.read_text().splitlines()]
    assert len(lines) == 23
    assert all(line["_issues"] for line in lines)
    assert err.count("written to") == 2
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


def test_a_run_that_could_be_resumed_leaves_only_its_rows(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path
) -> None:
    out = tmp_path / "rows.jsonl"
    code, _, _ = run(capsys, "validate", samples / "good.jsonl", "--write-normalized", out, "--resume")
    assert code == 0
    assert [p.name for p in tmp_path.iterdir()] == ["rows.jsonl"]
    assert len(out.read_text().splitlines()) == 12


def test_normalized_rows_that_lack_something_are_told(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path
) -> None:
    out = tmp_path / "n.jsonl"
    _, _, err = run(capsys, "validate", samples / "broken.jsonl", "--write-normalized", out)
    assert err == (
        f"37 normalized rows written to {out}; 23 of them are invalid: cells that could not be parsed are null\n"
    )
    assert run(capsys, "validate", samples / "good.jsonl", "--write-normalized", out)[2] == (
        f"12 normalized rows written to {out}\n"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["validate", "in.jsonl", "--write-normalized", "in.jsonl"],
        ["validate", "in.jsonl", "--write-invalid", "./in.jsonl"],
        ["validate", "in.jsonl", "--html", "link.jsonl"],
        ["validate", "in.jsonl", "--write-normalized", "out.jsonl", "--write-invalid", "out.jsonl"],
        ["validate", "in.jsonl", "--fix", "out.jsonl", "--write-invalid", "out.jsonl"],
        ["validate", "in.jsonl", "--fix", "in.jsonl", "--html", "in.jsonl"],
        ["diff", "in.jsonl", "good.jsonl", "--html", "in.jsonl"],
        ["diff", "good.jsonl", "in.jsonl", "--html", "in.jsonl"],
        ["convert", "in.jsonl", "in.jsonl", "--to", "ragas"],
        ["from-traces", "in.jsonl", "in.jsonl"],
        ["score", "in.jsonl", "--html", "in.jsonl"],
        ["score", "in.jsonl", "--write-scores", "out.csv", "--html", "out.csv"],
    ],
)
def test_nothing_is_written_over_what_is_read_or_written(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    samples: Path,
    tmp_path: Path,
    arguments: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    given = (samples / "broken.jsonl").read_bytes()
    Path("in.jsonl").write_bytes(given)
    Path("good.jsonl").write_bytes((samples / "good.jsonl").read_bytes())
    Path("link.jsonl").symlink_to("in.jsonl")
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert "would overwrite" in err
    assert Path("in.jsonl").read_bytes() == given
    assert sorted(p.name for p in tmp_path.iterdir()) == ["good.jsonl", "in.jsonl", "link.jsonl"]


def test_a_file_that_is_replaced_keeps_its_permissions_and_its_link(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path
) -> None:
    target, link = tmp_path / "set.jsonl", tmp_path / "latest.jsonl"
    given = (samples / "broken.jsonl").read_bytes()
    target.write_bytes(given)
    target.chmod(0o600)
    link.symlink_to(target.name)
    run(capsys, "validate", link, "--fix", link)
    assert link.is_symlink()
    assert target.read_bytes() != given
    assert target.stat().st_mode & 0o777 == 0o600


def test_a_device_is_not_replaced(capsys: pytest.CaptureFixture[str], samples: Path) -> None:
    code, _, err = run(capsys, "validate", samples / "good.jsonl", "--html", "/dev/null")
    assert (code, Path("/dev/null").is_char_device()) == (2, True)
    assert err == "agent-eval-schema: /dev/null: cannot be written: it is not a file\n"


def test_metrics(capsys: pytest.CaptureFixture[str], samples: Path) -> None:
    code, out, _ = run(capsys, "metrics", samples / "good.jsonl", "--system", "all")
    assert code == 0
    for name in ("(databricks)", "(mlflow)", "(vertex)", "trajectory_recall", "RetrievalGroundedness"):
        assert name in out
    _, out, _ = run(capsys, "metrics", samples / "good.jsonl", "--system", "vertex", "--output", "json")
    assert json.loads(out)[0]["system"] == "vertex"


def test_from_traces(capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path) -> None:
    target = tmp_path / "rows.jsonl"
    code, _, err = run(capsys, "from-traces", samples / "search_traces.jsonl", target)
    assert (code, err) == (0, f"6 rows written to {target}\n")
    rows = [json.loads(line) for line in target.read_text().splitlines()]
    assert rows[0]["request"]["messages"][-1]["role"] == "user"
    assert run(capsys, "validate", target)[0] == 0


@pytest.mark.parametrize("options", [(), ("--dedupe", "question")])
def test_from_traces_reports_what_it_read_derived_and_could_not(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    if options:
        pytest.importorskip("duckdb")
    code, out, _ = run(capsys, "from-traces", samples / "otel_traces.jsonl", tmp_path / "rows.jsonl", *options)
    assert code == 0
    text = " ".join(out.split())
    assert ("Traces otel (one row per trace)" if options else "otel format (the column resourceSpans") in text
    assert "search_traces" not in text
    assert re.search(r"Derived .*request 3, response 2, retrieved_context 1, predicted_trajectory 2, ", text)
    assert re.search(r"Missing .*response 1, retrieved_context 2, expected_response 3, ", text)


def test_from_traces_refuses_a_file_without_traces(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    source = tmp_path / "a.jsonl"
    source.write_text('{"request": "a"}\n')
    code, _, err = run(capsys, "from-traces", source, tmp_path / "b.jsonl")
    assert code == 2
    assert "expected a `trace` column" in err


def test_schema_explain_and_rules(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "schema", "databricks")
    assert json.loads(out)["type"] == "object"
    _, out, _ = run(capsys, "explain", "message-role")
    assert out.startswith("AE206 message-role (error)")
    _, out, _ = run(capsys, "rules")
    assert "Reading (AE0)" in out
    assert "AE903" in out
    _, out, _ = run(capsys, "rules", "--output", "json")
    assert [rule["code"] for rule in json.loads(out)["rules"]] == list(RULES)


@pytest.mark.process
def test_several_processes_give_the_same_report(samples: Path, tmp_path: Path) -> None:
    """In a process of its own: the pool's workers are spawned from it."""
    path = tmp_path / "big.jsonl"
    path.write_text((samples / "broken.jsonl").read_text() * 300)
    command = [sys.executable, "-m", "agent_eval_schema", "validate", str(path), "--output", "json"]
    one = subprocess.run(command, capture_output=True, text=True, check=False)
    two = subprocess.run([*command, "--jobs", "2"], capture_output=True, text=True, check=False)
    assert (one.returncode, one.stdout) == (two.returncode, two.stdout)
    assert json.loads(one.stdout)["rows"]["total"] == 37 * 300


def test_a_reader_that_has_seen_enough_is_no_error(samples: Path) -> None:
    command = f"{sys.executable} -m agent_eval_schema validate {samples / 'broken.jsonl'} | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1


def test_a_console_without_unicode_gets_escapes(samples: Path) -> None:
    command = [sys.executable, "-m", "agent_eval_schema", "validate", str(samples / "good.jsonl")]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.isascii()


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import agent_eval_schema", ("pandas", "pyarrow", "msgspec", "rich")),
        ("from agent_eval_schema import ces, scorers", ("pandas", "pyarrow", "msgspec", "rich")),
        (
            "from agent_eval_schema.cli import argument_parser as p; p().format_help()",
            ("pandas", "pyarrow", "msgspec", "rich"),
        ),
    ],
)
def test_importing_the_package_and_asking_for_help_load_nothing_heavy(code: str, heavy: tuple[str, ...]) -> None:
    code += f"; import sys; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_preview_of_fixes_shows_cells_so_it_does_not_go_without_values(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, said = run(capsys, "validate", samples / "broken.jsonl", "--diff", "--no-values")
    assert (code, said.count("\n")) == (2, 1)
    assert not list(tmp_path.iterdir())


def test_the_help_of_a_build_names_every_family_and_reason(capsys: pytest.CaptureFixture[str]) -> None:
    from agent_eval_schema.formats.inference_tables import TABLE_FAMILIES
    from agent_eval_schema.inference_tables.make_plan import KEEPABLE

    with pytest.raises(SystemExit):
        main(["from-inference-table", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert [n for n in (*(f.name for f in TABLE_FAMILIES), *KEEPABLE) if n not in said] == []


@pytest.mark.parametrize(
    "arguments",
    [
        "validate IN --html IN",
        "validate IN --write-normalized IN",
        "validate IN --write-invalid ./sub/../IN",
        "validate IN --write-invalid OUT.jsonl --write-normalized OUT.jsonl",
        "validate IN --fix OUT.jsonl --html OUT.jsonl",
        "convert IN IN --to mlflow",
        "score IN --html IN",
        "score IN --write-scores IN",
        "diff OLD IN --html IN",
        "from-traces IN IN",
        "from-inference-table OLD IN --traces IN",
    ],
)
def test_nothing_is_written_over_what_is_read(
    arguments: str, tmp_path: Path, samples: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    given = {
        "in.jsonl": (samples / "good.jsonl").read_bytes(),
        "old.jsonl": (samples / "edited_broken.jsonl").read_bytes(),
    }
    for name, data in given.items():
        (tmp_path / name).write_bytes(data)
    assert main(arguments.replace("IN", "in.jsonl").replace("OLD", "old.jsonl").split()) == 2
    assert "would overwrite" in capsys.readouterr().err
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.is_file()} == given


@pytest.mark.parametrize("bound", ["nan", "inf", "-inf", "", "much"])
def test_a_bound_is_a_number(bound: str, samples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["score", str(samples / "vertex.jsonl"), f"--min=trajectory_recall={bound}"])
    assert stopped.value.code == 2
    assert "expected METRIC=MEAN" in capsys.readouterr().err
