"""GitHub's annotations: at the right line of the right file, the ten that say most, and no command but ours."""

import gzip
import json
import os
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agent_eval_schema import Report, validate_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.render.report.github import Lines, github_text
from agent_eval_schema.render.report.summary import ReportSummary
from agent_eval_schema.validation.report import run_of, summary_of
from tests.conftest import SAMPLES, as_csv, as_json, as_jsonl, as_parquet
from tests.render.report.test_text import GOLDEN, compare, report_on

BAD = {"request": "Hi", "response": 42}
GOOD = {"request": "Hi", "response": "Hello"}


class Command(NamedTuple):
    """What the runner makes of a line."""

    name: str
    properties: dict[str, str]
    text: str


def with_lines(*reports: Report) -> dict[ReportSummary, Lines]:
    return {summary_of(report): run_of(report).lines_of for report in reports}


def commands(output: str) -> list[Command]:
    """What a runner finds: `::name key=value,…::text` at the beginning of a line, or `##[name …]` anywhere in it."""
    found = []
    for line in re.split(r"[\r\n]+", output):
        old = re.search(r"##\[(.*?)\]", line)
        assert old is None, line
        new = re.match(r"\s*::([^ :]+) ?(.*?)::(.*)$", line)
        if new:
            pairs = (p.split("=", 1) for p in new[2].split(",") if p)
            found.append(Command(new[1], {k: unescaped(v) for k, v in pairs}, unescaped(new[3])))
    return found


def unescaped(text: str) -> str:
    for escape, character in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(escape, character)
    return text


def annotations(data: Any, **options: Any) -> list[Command]:
    return commands(github_text(with_lines(validate_eval_set(data)), **options))


def lines_of(data: Any) -> list[str | None]:
    return [c.properties.get("line") for c in annotations(data)]


def test_the_broken_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    report = report_on("broken.jsonl", monkeypatch)
    compare(GOLDEN / "broken.github.txt", github_text(with_lines(report), command="THIS COMMAND"))


def test_a_line_of_jsonl_is_the_line_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    good, bad = json.dumps(GOOD), json.dumps(BAD)
    path.write_bytes(f"\ufeff\r\n{good}\r\n \t\r\n\n{bad}\r\n\r\n{{broken\n{bad}".encode())
    assert lines_of(str(path)) == ["5", "7", "8"]


def test_a_line_of_csv_is_where_the_record_begins(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    good, bad, short = '"Hi\nthere\n\nyou",Hello\n', '"a\nb", \n', "alone\n"
    path.write_text(f'request,"response"\n{good}\n{bad}{good}{short}"x\ny",\n')
    found = {c.properties["title"]: c.properties["line"] for c in annotations(str(path))}
    assert found == {"AE221 blank-response": "7", "AE169 short-line": "13", "AE223 missing-output": "14"}


@pytest.mark.parametrize("kind", [as_json, as_parquet], ids=lambda f: f.__name__)
def test_forms_without_lines_name_the_row(kind: Callable[..., str], tmp_path: Path) -> None:
    path = kind([GOOD, {"request": " ", "response": "a"}], tmp_path)
    (found,) = annotations(path, root=str(tmp_path))
    assert found.properties == {"file": Path(path).name, "title": "AE202 blank-request"}
    assert found.text.startswith("row 1, request: expected a question, got blank text\n→ ")


def test_a_packed_file_has_no_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(BAD).encode()))
    (found,) = annotations(str(path))
    assert "line" not in found.properties
    assert found.text.startswith("row 0, response: ")


def test_where_there_is_a_line_the_row_is_not_told_too(tmp_path: Path) -> None:
    (found,) = annotations(as_jsonl([{"request_id": "7a", **BAD}], tmp_path))
    assert found.text.startswith("7a, response: expected text or a chat object")


def test_levels_are_the_severities(tmp_path: Path) -> None:
    path = as_jsonl([{"request": '{"a": 1}', "response": "", "guidelines": 1, "team": "x"}], tmp_path)
    assert [(c.name, c.properties["title"][:5]) for c in annotations(path)] == [  # and none of the unknown column
        ("error", "AE304"),
        ("warning", "AE221"),
        ("notice", "AE215"),
    ]


def many(count: int) -> list[dict[str, Any]]:
    """So many errors of one code, then one each of three more, as many warnings, and as many notes."""
    rows: list[dict[str, Any]] = [
        {"request": json.dumps({"a": i}), "response": "", "guidelines": 1, "team": "x"} for i in range(count)
    ]
    return [*rows, {"request": 1, "response": "a"}, {"request": "a", "response": 1}, {**GOOD, "expected_facts": "x"}]


def test_no_more_than_github_shows_and_every_code_is_seen(tmp_path: Path) -> None:
    found = annotations(as_jsonl(many(30), tmp_path), command="list everything")
    assert Counter(c.name for c in found) == {"error": 10, "warning": 10, "notice": 10}
    assert {c.properties["title"][:5] for c in found if c.name == "error"} == {"AE304", "AE204", "AE220", "AE303"}
    assert found[-1].text == (
        "64 more: 23 errors, 20 warnings, 21 notes. GitHub shows 10 of each level. All of them: list everything"
    )


def test_the_cap_holds_for_a_run_and_every_file_is_seen(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    reports = [validate_eval_set(as_jsonl(many(30), folder)) for folder in (tmp_path, tmp_path / "b")]
    output = github_text(with_lines(*reports), root=str(tmp_path))
    found = commands(output)
    assert Counter(c.name for c in found) == {"error": 10, "warning": 10, "notice": 10}
    assert {c.properties["file"] for c in found if c.name == "error"} == {"rows.jsonl", "b/rows.jsonl"}
    assert [line.partition(":")[0] for line in output.splitlines()[-2:]] == ["rows.jsonl", "b/rows.jsonl"]


def test_all_that_fits_is_shown_without_a_closing_note(tmp_path: Path) -> None:
    found = annotations(as_jsonl(many(7), tmp_path))
    assert Counter(c.name for c in found) == {"error": 10, "warning": 7, "notice": 7}
    assert not [c for c in found if "more" in c.text.split()]


def test_a_clean_file_is_one_line(tmp_path: Path) -> None:
    report = validate_eval_set(as_jsonl([GOOD, GOOD], tmp_path))
    assert github_text(with_lines(report), root=str(tmp_path)) == "rows.jsonl: ✓ All 2 rows are valid.\n"


# what the runner must not obey

HOSTILE = (
    "::add-mask::x",
    "\n::set-output name=a::b",
    "\r\n::stop-commands::c",
    "%0A::add-path::/d",
    " ##[add-mask]e",
    "\u2028::error::f",
    ",line=1,file=g::h",
    "%25%0D%3A::",
)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_cell_key_id_or_name_becomes_a_command(hostile: str, tmp_path: Path) -> None:
    folder = tmp_path / hostile.replace("/", "_")
    folder.mkdir()
    rows = [
        {"request_id": hostile, "request": {"messages": [{"role": hostile, "content": "a"}]}, "response": "b"},
        {"request_id": hostile, "request": {hostile: 1}, "response": {hostile: hostile}, hostile: hostile},
        {**GOOD, "guidelines": {hostile: hostile}, "tags": {hostile: [hostile]}, "latency_seconds": hostile},
        {**GOOD, "retrieved_context": [{hostile: hostile, "doc_uri": "a"}], "trace": hostile},
    ]
    report = validate_eval_set(as_jsonl(rows, folder))
    found = commands(github_text(with_lines(report), root=str(tmp_path)))
    issues = [i for i in report.iter_issues() if not i.hint.startswith("No action needed:")]
    levels = {"error": "error", "warning": "warning", "info": "notice"}
    assert Counter(c.name for c in found) == Counter(levels[i.severity] for i in issues)
    assert all(set(c.properties) <= {"file", "line", "title"} for c in found)
    assert {c.properties["title"] for c in found} == {f"{i.code} {i.name}" for i in issues}
    assert {c.properties.get("line") for c in found} <= {"1", "2", "3", "4", None}


def test_what_looks_like_an_escape_arrives_as_it_is_written(tmp_path: Path) -> None:
    role = "100%0A, 5%25: 3%"
    path = as_jsonl([{"request": {"messages": [{"role": role, "content": "a"}]}, "response": "b"}], tmp_path)
    (found,) = annotations(path)
    assert f"got the text '{role}'\n→ Use one of " in found.text


def test_a_hostile_file_name_is_no_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("::error file=x,line=1::##[add-mask]%0A.jsonl")
    path.write_text(json.dumps(GOOD))
    output = github_text(with_lines(validate_eval_set(str(path))))
    assert commands(output) == []
    assert output.startswith("./::error file=x")


# on the command line


def test_the_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    Path("a b.jsonl").write_text(json.dumps(GOOD) + "\n" + "\n".join([json.dumps(BAD)] * 11))
    code = main(["validate", "a b.jsonl", "--output", "github", "--ignore", "AE1,AE9", "--outputs", "provided"])
    out = capsys.readouterr().out
    assert code == 1
    assert [c.properties.get("line") for c in commands(out)] == [*map(str, range(2, 12)), None]
    assert out.splitlines()[-2].endswith(
        "agent-eval-schema validate 'a b.jsonl' --outputs provided --ignore AE1,AE9 --output json"
    )
    assert out.splitlines()[-1] == "a b.jsonl: ✗ 11 of 12 rows cannot be evaluated (92%): 11 errors, 0 warnings."
    assert main(["validate", "a b.jsonl", "--output", "github", "--fail-on", "never"]) == 0


def test_files_are_named_from_the_root_of_the_repository(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step may run in a folder of the repository; GitHub wants the path from its root."""
    folder = tmp_path / "repository" / "evals"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    as_jsonl([BAD], folder)
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path / "repository"))
    main(["validate", "rows.jsonl", "--output", "github"])
    assert commands(capsys.readouterr().out)[0].properties["file"] == "evals/rows.jsonl"
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path / "elsewhere"))
    main(["validate", str(folder / "rows.jsonl"), "--output", "github"])
    assert commands(capsys.readouterr().out)[0].properties["file"] == "rows.jsonl"


def test_lines_are_looked_up_for_the_rows_that_are_asked_for(tmp_path: Path) -> None:
    report: Report = validate_eval_set(as_csv([GOOD] * 5, tmp_path))
    assert run_of(report).lines_of([4, 0, 99]) == {0: 2, 4: 6}
    assert run_of(report).lines_of([]) == {}
    assert run_of(validate_eval_set([GOOD])).lines_of([0]) == {}
    assert run_of(validate_eval_set(os.fspath(SAMPLES / "good.csv"))).lines_of(range(6)).keys() == set(range(6))
