"""No output overwrites what a call reads or what is kept for it, and there is one way to write a file."""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import agent_eval_schema
from agent_eval_schema import (
    EvalSetError,
    EvalTask,
    ces,
    convert_eval_set,
    diff_eval_sets,
    eval_set_from_inference_table,
    import_eval_set,
    load_result,
    profile_eval_set,
    review_eval_set,
    validate_eval_set,
    write_eval_set,
)
from agent_eval_schema.cli import argument_parser, main
from agent_eval_schema.cli.options import Parser
from agent_eval_schema.io import outputs
from agent_eval_schema.io.outputs import settle
from tests.conftest import ROOT, SAMPLES

OUT = "<out>"
COMMANDS: dict[tuple[str, str], list[str]] = {
    **{
        ("validate", option): ["validate", "in.jsonl", "--columns", "names.json", option, OUT]
        for option in ("--write-normalized", "--write-invalid", "--fix", "--html")
    },
    **{
        ("profile", option): ["profile", "in.jsonl", "--against", "other.jsonl", "--past", "past.jsonl",
                              "--documents", "list.txt", option, OUT]
        for option in ("--write-distinct", "--html")
    },
    ("diff", "--html"): ["diff", "in.jsonl", "other.jsonl", "--html", OUT],
    ("review", "--out"): ["review", "in.jsonl", "--merge", "a.jsonl", "b.jsonl", "--out", OUT],
    ("review", "--bundle"): ["review", "in.jsonl", "--guide", "list.txt", "--bundle", OUT],
    **{
        ("score", option): ["score", "in.jsonl", "--against", "other.jsonl", option, OUT]
        for option in ("--write-scores", "--html")
    },
    ("compare", "--html"): ["compare", "in.jsonl", "other.jsonl", "past.jsonl", "--html", OUT],
    ("convert", "OUT"): ["convert", "in.jsonl", OUT],
    ("convert", "--html"): ["convert", "in.jsonl", "rows.jsonl", "--html", OUT],
    ("import", "OUT"): ["import", "in.jsonl", OUT, "--columns", "names.json"],
    ("import", "--mapping"): ["import", "in.jsonl", "new.jsonl", "--mapping", OUT],
    ("from-traces", "OUT"): ["from-traces", "in.jsonl", OUT, "--extend", "other.jsonl", "--dedupe", "question"],
    **{
        ("from-inference-table", option): [
            "from-inference-table", "in.jsonl", *([OUT] if option == "OUT" else ["new.jsonl", option, OUT]),
            "--extend", "other.jsonl", "--labels", "past.jsonl",
        ]
        for option in ("OUT", "--excluded", "--html")
    },
    ("ces template", "OUT"): ["ces", "template", OUT],
    ("ces get", "OUT"): ["ces", "get", "projects/p/locations/us/apps/a/evaluations/e", OUT],
    ("ces list", "OUT"): ["ces", "list", "projects/p/locations/us/apps/a", OUT],
}  # fmt: skip
"""Every option of a command that names a file to be written, with all that the command can read."""

KINDS = ("itself", "a hard link", "a link") if os.name == "posix" else ("itself", "a hard link")
"""What an output may be of an input; elsewhere not everybody may make links."""

JOURNAL = "in.jsonl.ana.review.jsonl"


def commands(parser: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, Parser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb, command in action.choices.items():
                yield from commands(command, f"{name} {verb}".strip())
            return
    assert isinstance(parser, Parser)
    yield name, parser


def test_every_option_that_names_an_output_is_in_the_table_and_declared() -> None:
    found = set()
    for name, parser in commands(argument_parser()):
        for action in parser._actions:
            read = (*(parser.get_default("reads") or ()), "config")
            if action.metavar in ("PATH", "OUT") and action.dest not in read:
                found.add((name, str((*action.option_strings, action.metavar)[0])))
                declared = (*(parser.get_default("writes") or ()), "html", "bundle")
                assert action.dest in declared, f"{name} {action.dest}: not declared in reads_and_writes"
    assert found == set(COMMANDS)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with all that commands read, and what is kept for it."""
    monkeypatch.chdir(tmp_path)
    for name in ("in.jsonl", "other.jsonl", "past.jsonl", "a.jsonl", "b.jsonl", JOURNAL):
        shutil.copy(SAMPLES / "good.jsonl", name)
    Path("names.json").write_text('{"question": "request"}')
    Path("list.txt").write_text("a\n")
    Path("agent-eval-schema.toml").write_text('fail-on = "never"\n')
    Path("in.jsonl.manifest.json").write_text("{}\n")
    return tmp_path


def state(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(("command", "option"), COMMANDS, ids=lambda value: value.removeprefix("--"))
def test_no_command_overwrites_what_it_reads_or_what_is_kept(
    command: str, option: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = COMMANDS[command, option]
    read = [word for word in words if (folder / word).is_file()]
    kept = [JOURNAL] if command.startswith("ces") else [JOURNAL, "agent-eval-schema.toml", "in.jsonl.manifest.json"]
    for target in [*read, *kept]:
        if (option, target) == ("--fix", "in.jsonl"):  # which may be fixed in place
            continue
        for kind in ("itself",) if command.startswith("ces") else KINDS:
            name = target if kind == "itself" else f"linked-{target}"
            if kind != "itself":
                (os.link if kind == "a hard link" else os.symlink)(target, name)
            before = state(folder)
            assert main([word if word != OUT else name for word in words]) == 2, (target, kind)
            error = capsys.readouterr().err
            assert any(why in error for why in WHY), error
            assert state(folder) == before
            if kind != "itself":
                os.unlink(name)


@pytest.mark.parametrize("document", ["in.json#hard", "book.xlsx#Hard"])
def test_a_part_of_a_file_is_read_from_the_whole_file(
    document: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is overwritten by no output, nor is a list fixed in place: the others would be lost. A sheet is."""
    rows = [{"request": "Hi", "expected_response": "Hello", "expected_facts": "one"}]
    path = folder / document.partition("#")[0]
    if path.suffix == ".json":
        path.write_text(json.dumps({"easy": rows, "hard": rows}))
    else:
        pytest.importorskip("openpyxl")
        with pd.ExcelWriter(path) as book:
            for sheet in ("Easy", "Hard"):
                pd.DataFrame(rows).to_excel(book, sheet_name=sheet, index=False)
    assert validate_eval_set(document).row_count == 1
    before = state(folder)
    for words in (["validate", "--html"], ["validate", "--fix"], ["validate", "--write-normalized"], ["convert"],
                  ["score", "--write-scores"], ["review", "--bundle"], ["profile", "--write-distinct"]):  # fmt: skip
        verb, *option = words
        if option == ["--fix"] and path.suffix == ".xlsx":
            continue
        assert main([verb, document, *option, path.name]) == 2, words
        error = capsys.readouterr().err
        assert "would overwrite the whole file of" in error or any(why in error for why in WHY), error
        assert state(folder) == before
    with pytest.raises(EvalSetError, match=r"would overwrite"):
        write_eval_set(document, path)
    assert state(folder) == before


WHY = ("would overwrite", "is the name of a review journal", "unknown file extension", "Spark writes a folder")
"""A form that does not exist is refused before the place is."""


@pytest.mark.usefixtures("folder")
def test_a_file_may_be_fixed_in_place() -> None:
    assert main(["validate", "in.jsonl", "--fix", "in.jsonl", "-q"]) in (0, 1)
    assert main(["validate", "in.jsonl", "--fix", "in.jsonl", "--html", "in.jsonl", "-q"]) == 2


@pytest.mark.usefixtures("folder")
def test_an_output_is_not_another_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "in.jsonl", "--write-normalized", "x.jsonl", "--html", "x.jsonl"]) == 2
    assert "x.jsonl: --html would overwrite --write-normalized" in capsys.readouterr().err


def test_names_that_differ_in_case_are_one_file_where_names_have_no_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "has_no_case", lambda _: False)
    settle({"--html": "A.html", "--excluded": "a.html"}, {"IN": "a.jsonl"})
    monkeypatch.setattr(outputs, "has_no_case", lambda _: True)
    with pytest.raises(EvalSetError, match=r"a\.html: --excluded would overwrite --html"):
        settle({"--html": "A.html", "--excluded": "a.html"}, {"IN": "a.jsonl"})
    with pytest.raises(EvalSetError, match=r"A\.jsonl: OUT would overwrite IN"):
        settle({"OUT": "A.jsonl"}, {"IN": "a.jsonl"})


# --- public functions
def _scores(path: str) -> Any:
    return load_result(path, metrics=["a/score"])


FUNCTIONS: dict[str, Callable[[str], Callable[[str], Any]]] = {
    "Report.write": lambda path: validate_eval_set(path).write,
    "Report.write_invalid": lambda path: validate_eval_set(path).write_invalid,
    "Report.save": lambda path: validate_eval_set(path).save,
    "Conversion.write": lambda path: convert_eval_set(path, "mlflow").write,
    "EvalSetImport.write": lambda path: import_eval_set(path).write,
    "EvalSetImport.write_columns": lambda path: import_eval_set(path).write_columns,
    "Conversion.save": lambda path: convert_eval_set(path, "mlflow").save,
    "Diff.save": lambda path: diff_eval_sets(path, "other.json").save,
    "Profile.write": lambda path: profile_eval_set(path).write,
    "Profile.save": lambda path: profile_eval_set("other.json", against=[path]).save,
    "EvalResult.write": lambda path: _scores(path).write,
    "EvalResult.save": lambda path: _scores(path).save,
    "ScoreComparison.save": lambda path: _scores("other.json").compare(_scores(path)).save,
    "ScoreHistory.save": lambda path: _scores("other.json").compare(_scores("other.json"), _scores(path)).save,
    "EvalSetBuild.write": lambda path: eval_set_from_inference_table("log.json", extend=path).write,
    "EvalSetBuild.write_excluded": lambda path: eval_set_from_inference_table("log.json", extend=path).write_excluded,
    "EvalSetBuild.save": lambda path: eval_set_from_inference_table("log.json", extend=path).save,
    "Review.write": lambda path: _reviewed(path),
    "write_eval_set": lambda path: lambda out: write_eval_set(path, out),
    "EvalTask.evaluate": lambda path: lambda out: EvalTask(path, ["exact_match"]).evaluate(journal=out),
}
"""Every public function that writes a file, of a result that was made of the file at a path."""

READ_NOTHING = {"ces.write_evaluation", "ces.write_evaluations", "ces.write_golden_csv"}
"""They get values: which file these are from is not known."""


def _reviewed(path: str) -> Callable[[str], None]:
    def write(out: str) -> None:
        review = review_eval_set(path, reviewer="ana")
        try:
            review.write(out)
        finally:
            review.stop()

    return write


def test_every_public_function_that_writes_is_in_the_table() -> None:
    found = {f"ces.{name}" for name in ces.__all__ if name.startswith("write")}
    for name in agent_eval_schema.__all__:
        thing = getattr(agent_eval_schema, name)
        if inspect.isclass(thing):
            writes = [own for own in dir(thing) if own == "save" or own.startswith("write")]
            found |= {f"{name}.{own}" for own in writes if callable(getattr(thing, own))}
            journal = getattr(thing, "evaluate", None)
            found |= {f"{name}.evaluate"} if journal and "journal" in inspect.signature(journal).parameters else set()
        elif name.startswith("write"):
            found.add(name)
    assert found == {*FUNCTIONS, *READ_NOTHING}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_function_overwrites_what_it_reads(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [json.loads(line) for line in (SAMPLES / "good.jsonl").read_text().splitlines()]
    rows = [{**row, "a/score": number / 20} for number, row in enumerate(lines)]
    for file in ("in.json", "other.json"):
        Path(file).write_text(json.dumps(rows))
    logged = (SAMPLES / "inference_table.jsonl").read_text().splitlines()
    Path("log.json").write_text(json.dumps([json.loads(line) for line in logged]))
    shutil.copy("in.json", "in.json.ana.review.jsonl")
    Path("in.json.ana.review.jsonl").write_text("")
    os.link("in.json", "linked.json")
    if os.name == "posix":  # elsewhere not everybody may make links
        os.symlink("in.json", "link.json")
    before = state(tmp_path)
    write = FUNCTIONS[name]("in.json")
    for out in sorted(path for path in before if path.startswith(("in.json", "link"))):
        with pytest.raises(EvalSetError):
            write(out)
        assert state(tmp_path) == before, out


# --- one way to write
GATES = {
    "io/atomic.py": "temporary file, sync, rename, sync of the folder; appending; what killed runs left",
    "io/locks.py": "the lock files",
    "io/work_folder.py": "folders with our mark; every file in one gets its name by `committing`",
    "runtime/signals.py": "temporary names and folders, removed when nothing needs them or a signal ends the process",
}
"""The modules that write, rename and remove files."""

EXCEPTIONS = {
    ("io/streams.py", "creating", "open"): "writes into a temporary name of `replacing`, compressed",
    ("io/remote.py", "_copy", "open"): "the local copy of a URL, in a temporary folder",
    ("io/texts.py", "_copied", "open"): "the copy of stdin or a pipe, in a temporary folder",
    ("io/texts.py", "_renamed", "os.replace"): "that copy gets the file extension of its content",
    ("review/dataset.py", "put", "os.unlink"): "the name of a mapped file, in a temporary folder",
    ("conformance/checks.py", "_containers", "tempfile.TemporaryDirectory"): "the files of a check of a format",
    ("cli/__init__.py", "main", "open"): "the null device, for a stream that was closed",
    ("cli/output.py", "close_stdout", "os.open"): "the null device, for a reader that has gone",
}
"""(module, function, call) elsewhere, with the reason; one that is not needed any more fails."""

_OS = {"replace", "rename", "renames", "remove", "unlink", "rmdir", "removedirs", "truncate", "link", "symlink", "open"}
_PATH = {"write_text", "write_bytes", "unlink", "rmdir", "touch", "hardlink_to", "symlink_to"}


def forbidden(call: ast.Call) -> str | None:
    """The name of what a call does that only the gates may do."""
    match call.func:
        case ast.Name("open") | ast.Attribute(ast.Name("io" | "codecs"), "open"):
            return "open" if _writes(call, 1) else None
        case ast.Attribute(ast.Name("os"), name) if name in _OS:
            return f"os.{name}"
        case ast.Attribute(ast.Name("shutil"), "rmtree" | "move" | "copy" | "copy2" | "copyfile" | "copytree" as name):
            return f"shutil.{name}"
        case ast.Attribute(ast.Name("tempfile"), name) if name != "gettempdir":
            return f"tempfile.{name}"
        case ast.Name("NamedTemporaryFile" | "TemporaryDirectory" | "TemporaryFile" | "mkdtemp" | "mkstemp" as name):
            return f"tempfile.{name}"
        case ast.Attribute(_, "open"):
            return "open" if _writes(call, 0) else None
        case ast.Attribute(_, name) if name in _PATH:
            return name
        case ast.Attribute(_, "replace" | "rename" as name) if len(call.args) == 1 and not call.keywords:
            return name  # of a string they have two arguments, of a DataFrame keywords
    return None


def _writes(call: ast.Call, place: int) -> bool:
    modes = [*call.args[place : place + 1], *(k.value for k in call.keywords if k.arg == "mode")]
    return any(isinstance(m, ast.Constant) and isinstance(m.value, str) and set(m.value) & set("wax+") for m in modes)


def calls_of(path: Path) -> Iterator[tuple[str, str, int]]:
    """The forbidden calls of a module: the function that they are in, what they do, and the line."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside: dict[ast.AST, str] = {}
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            inside[child] = node.name if is_function else inside.get(node, "")
        if isinstance(node, ast.Call) and (what := forbidden(node)):
            yield inside.get(node, ""), what, node.lineno


def test_only_the_gates_write_rename_and_remove_files() -> None:
    package = ROOT / "agent_eval_schema"
    found = {
        (path.relative_to(package).as_posix(), function, what): line
        for path in sorted(package.rglob("*.py"))
        if path.relative_to(package).as_posix() not in GATES
        for function, what, line in calls_of(path)
    }
    assert {place: line for place, line in found.items() if place not in EXCEPTIONS} == {}
    assert EXCEPTIONS.keys() - found.keys() == set(), "an exception that nothing needs"
    assert all((package / name).is_file() for name in GATES)


@pytest.mark.parametrize(
    "code",
    [
        'open(p, "w")', 'open(p, mode="ab")', 'Path(p).open("w")', "p.write_text(t)", "p.write_bytes(t)",
        "os.replace(a, b)", "os.rename(a, b)", "shutil.rmtree(p)", "os.remove(p)", "os.unlink(p)", "p.unlink()",
        "p.rename(q)", "p.replace(q)", "tempfile.mkstemp()", "tempfile.mkdtemp()", "TemporaryDirectory()",
        "os.open(p, 0)", 'io.open(p, "x")',
    ],
)  # fmt: skip
def test_the_ways_round_are_recognized(code: str) -> None:
    call = ast.parse(code, mode="eval").body
    assert isinstance(call, ast.Call)
    assert forbidden(call)
    for harmless in ('open(p, "rb")', "open(p)", 'text.replace("a", "b")', "replace(struct, a=1)"):
        call = ast.parse(harmless, mode="eval").body
        assert isinstance(call, ast.Call)
        assert forbidden(call) is None
