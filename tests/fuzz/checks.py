"""What must hold for every input: a function per part of the package, which raises what is a finding.

An `EvalSetError` is an answer, any other exception is a finding; so are an internal error (AE001), a row that is in no
count, two verdicts on the same rows, and a second normalization or fix that changes something.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import random
import re
import warnings
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

import agent_eval_schema as aes
from agent_eval_schema import ces
from agent_eval_schema.api import UnreadableTraceWarning
from agent_eval_schema.cli import main
from agent_eval_schema.conversion.convert import convert_file
from agent_eval_schema.evaluation.task_metrics import NAMES
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.formats.registry import FORMATS
from agent_eval_schema.render.report.github import github_text
from agent_eval_schema.render.report.junit import junit_xml
from agent_eval_schema.render.report.sarif import sarif_text
from agent_eval_schema.review.labels import EXAMPLES
from agent_eval_schema.review.review import open_session
from agent_eval_schema.review.server import MINE, Answers
from agent_eval_schema.text.jsontext import structured
from agent_eval_schema.validation.report import Report, run_of, summary_of
from tests.conftest import KINDS, columns_of
from tests.fuzz.containers import BYTES, CONTAINERS, EXTENSIONS, FILES
from tests.fuzz.documents import documents_of, what_is_lost
from tests.fuzz.inputs import SMALL, Case, in_python
from tests.helpers.language import is_hint
from tests.helpers.own_files import FILES as OWN_FILES
from tests.helpers.own_files import prepare
from tests.validation.test_normalize_again import AGAIN, require_same_again, rows_of
from tests.validation.test_one_verdict import NESTED, QUICK, flat, require_one_verdict, typed, verdict

Check = Callable[[Case, Path], None]

TARGETS = tuple(f.name for f in FORMATS if f.writer is not None)
NAMES_OF_FORMATS = tuple(f.name for f in FORMATS)


class Broken(AssertionError):
    """What must hold does not."""


def require(holds: bool, what: str) -> None:
    if not holds:
        raise Broken(what)


# ---------------------------------------------------------------------------------------------------------------------
# reading
def validate(case: Case, folder: Path) -> None:
    """Every row has its verdict, in a list and in a frame; so has every entry of a document."""
    rows = in_python(case.rows)
    report = aes.validate_eval_set(KINDS[case.chance.choice(("list", "pandas"))](rows, folder))
    require_counted(report, frame=case.chance.random() < 0.2)
    source = open_source(rows)
    count = sum(batch.num_rows for batch in source.batches()) if source.in_order else len(rows)
    require(report.row_count == count, f"{report.row_count} rows of {count}")
    if not case.is_python:
        require_all_entries(case.part(SMALL))


def require_all_entries(case: Case) -> None:
    """No row of a document is lost: of the rows as they are, and of documents whose entries they are."""
    for documents in (case.rows, *documents_of(case)):
        lost = next(what_is_lost(documents, case.chance, 3 if case.seed else 100), None)
        require(lost is None, lost or "")


def reports(case: Case, folder: Path) -> None:
    """A report can be shown in all forms, of a list and of a frame."""
    rows = in_python(case.rows)
    for make in (KINDS["list"], KINDS["pandas"]):
        require_sound(aes.validate_eval_set(make(rows, folder)))


def require_counted(report: Report, *, frame: bool = True) -> list[aes.Issue]:
    """The counts add up, and no rule failed. The rows are counted in a frame, or as they come."""
    issues = list(report.iter_issues())
    require_none_failed(issues)
    require(report.valid_count + report.invalid_count == report.row_count, "valid + invalid are not all rows")
    count = len(report.rows) if frame else sum(batch.num_rows for batch in run_of(report).normalized())
    require(count == report.row_count == len(report.valid_mask), "rows are missing")
    require(len(issues) == sum(report.counts.values()), "issues are missing")
    require(all(i.row is None or i.row < report.row_count for i in issues), "an issue of no row")
    wrong = {i.row for i in issues if i.severity is aes.Severity.ERROR and i.row is not None}
    require(wrong == {i for i, valid in enumerate(report.valid_mask.tolist()) if not valid}, "an error of a valid row")
    return issues


def require_sound(report: Report) -> None:
    """Every form of a report can be made, and holds nothing hostile."""
    issues = require_counted(report)
    require_shown(report)
    ElementTree.fromstring(junit_xml([summary_of(report)], failing=frozenset()))
    json.loads(sarif_text([(summary_of(report), issues, run_of(report).lines(issues))], root="."))
    require(
        HOSTILE_LINE not in github_text({summary_of(report): run_of(report).lines_of}, root=".", command="x"),
        "a command of CI",
    )
    require(
        len(report.metric_support) in (0, report.row_count) or not summary_of(report).has_metrics,
        "metrics of other rows",
    )


def require_no_defect(report: Report) -> None:
    require_none_failed(report.iter_issues())


def require_none_failed(issues: Iterable[aes.Issue]) -> None:
    issues = list(issues)
    found = next((issue for issue in issues if issue.code == "AE001"), None)
    require(found is None, f"AE001 {found and found.message.replace(chr(39), '')}")
    odd = next((issue.code for issue in issues if not is_hint(issue.hint)), None)
    require(odd is None, f"the hint of {odd} is no sentence")


HOSTILE_LINE = "\n::error::x"


def require_shown(result: Any) -> None:
    """Every form of a result, without anything of a cell that a page or a terminal takes as its own."""
    text = result.to_text()
    require("\x1b" not in text, "an escape sequence in a text")
    require("<script>alert(1)" not in result.to_html(), "a script in a page")
    if hasattr(result, "to_json"):
        json.loads(result.to_json(), parse_constant=_refused)
    repr(result)


def _refused(literal: str) -> None:
    raise Broken(f"{literal} in JSON")


def every_format(case: Case, _: Path) -> None:
    """Rows that are said to be of a format that they are not of."""
    rows = in_python(case.rows)
    for name in case.some(NAMES_OF_FORMATS, 4):
        with contextlib.suppress(aes.EvalSetError):
            require_sound(aes.validate_eval_set(rows, format=name, outputs=case.chance.choice(("auto", "generated"))))


def one_verdict(case: Case, folder: Path) -> None:
    """The same issues and rows from every container, in batches of any size."""
    rows = case.part(6).rows
    with pytest.MonkeyPatch.context() as patch:
        require_one_verdict(rows, NESTED, folder, patch, "nested")
        require_one_verdict(flat(rows), QUICK, folder, patch, "flat")
        if (table := typed(rows)) is not None:
            require_one_verdict(table.to_pylist(), {"arrow": lambda *_: table}, folder, patch, "typed")


def arrow_types(case: Case, _: Path) -> None:
    """Columns in the types that Arrow has for the same cells."""
    table = typed(case.rows)
    if table is None:
        return
    expected = verdict(table)
    for change in (_large, _views, _dictionaries, _in_chunks, _as_binary):
        try:
            changed = change(table)
        except (pa.ArrowException, TypeError):
            continue
        if change is _as_binary:
            require_sound(aes.validate_eval_set(changed))
        else:
            require(verdict(changed) == expected, f"another verdict of {change.__name__}")


def _retyped(table: pa.Table, types: Callable[[pa.DataType], pa.DataType]) -> pa.Table:
    return table.cast(pa.schema([pa.field(f.name, types(f.type)) for f in table.schema]))


def _large(table: pa.Table) -> pa.Table:
    return _retyped(table, lambda t: pa.large_string() if pa.types.is_string(t) else t)


def _views(table: pa.Table) -> pa.Table:
    return _retyped(table, lambda t: pa.string_view() if pa.types.is_string(t) else t)


def _dictionaries(table: pa.Table) -> pa.Table:
    for i, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            table = table.set_column(i, field.name, table.column(i).dictionary_encode())
    return table


def _in_chunks(table: pa.Table) -> pa.Table:
    size = 1 + table.num_rows // SMALL
    return pa.concat_tables([table.slice(i, size) for i in range(0, table.num_rows, size)])


def _as_binary(table: pa.Table) -> pa.Table:
    return _retyped(table, lambda t: pa.binary() if pa.types.is_string(t) else t)


def damaged_bytes(case: Case, folder: Path) -> None:
    """A file with wrong bytes: a report, or one line that says why there is none."""
    chance = case.chance
    name = chance.choice(("jsonl", "json", "csv", "parquet"))
    path = Path(KINDS[name](case.rows, folder))
    data = path.read_bytes()
    for _ in range(3):
        broken = with_wrong_bytes(data, chance)
        packed = chance.random() < 0.1 and name != "parquet"
        written = path.with_name(path.name + ".gz") if packed else path
        written.write_bytes(gzip.compress(broken) if packed else broken)
        command(["validate", str(written), *chance.choice(_OPTIONS)])
        if chance.random() < 0.3:
            out = str(folder / f"out{path.suffix}")
            command(["validate", str(written), "--fix", out])
            command(["convert", str(written), str(folder / "made.jsonl"), "--to", chance.choice(TARGETS)])


def with_wrong_bytes(data: bytes, chance: random.Random) -> bytes:
    broken = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 8))):
        at = chance.randrange(len(broken) + 1)
        broken[at : at + chance.choice((0, 1, 1, 9))] = chance.choice(_BYTES) or bytes([chance.randrange(256)])
    if chance.random() < 0.2:
        del broken[chance.randrange(len(broken) + 1) :]
    return bytes(broken)


def own_files(case: Case, folder: Path) -> None:
    """A file that the tool reads of itself, damaged: a result without it, or one line that names the problem."""
    chance, before = case.chance, os.getcwd()
    name = chance.choice(sorted(OWN_FILES))
    make, words = OWN_FILES[name]
    prepare(folder)
    make(folder)
    path = folder / name
    data = with_wrong_bytes(path.read_bytes(), chance)
    if chance.random() < 0.3:
        at = chance.randrange(len(data) + 1)
        data = data[:at] + chance.choice((b"[" * 100_000, b'{"a":' * 50_000, b"1" + b"0" * 400, data)) + data[at:]
    path.write_bytes(data)
    os.chdir(folder)
    try:
        with contextlib.suppress(SystemExit):  # of an argument, which has been one line
            command(words)
    finally:
        os.chdir(before)


_OPTIONS = ([], [], ["--output", "json"], ["--output", "github"], ["--no-values"], ["--output", "sarif"])
_BYTES = (
    b"",
    b"",
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b'"',
    b"\n",
    b"\r",
    b"{",
    b"]",
    b"\\u",
    b",",
    b"\xc0\x80",
)


def command(arguments: list[str]) -> tuple[int, str, str]:
    """Run a command: it ends with 0, 1 or 2, and says in one line why it could not run."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    told = err.getvalue()
    require("internal error" not in told, told)
    require(code in (0, 1) or told.count("\n") == 1, f"code {code} and {told!r}")
    require("\x1b" not in out.getvalue() + told, "an escape sequence in the output")
    return code, out.getvalue(), told


def changed_file(case: Case, folder: Path) -> None:
    """After a file has changed, a report of it hands out no row."""
    chance = case.chance
    path = Path(KINDS[chance.choice(("jsonl", "json", "csv", "parquet"))](case.rows, folder))
    with contextlib.suppress(aes.EvalSetError):
        report = aes.validate_eval_set(path)
        data = path.read_bytes()
        at = chance.randrange(len(data))
        path.write_bytes(chance.choice((data[:at], data + data, data[:at] + b"x" + data[at + 1 :], data + b"\n")))
        if path.read_bytes() == data:
            return
        for read in (lambda: report.valid, lambda: report.rows, lambda: list(report.iter_rows())):
            try:
                read()
            except aes.EvalSetError as error:
                require("changed since it was read" in str(error), f"another reason: {error}")
            else:
                raise Broken("a row of a file that has changed")


def as_yaml(case: Case, folder: Path) -> None:
    """Rows in YAML, damaged by what only YAML has, end as a report or as one line."""
    chance, path, rows = case.chance, folder / "rows.yaml", case.part(4).rows
    text = yaml.safe_dump(rows, allow_unicode=chance.random() < 0.5, default_flow_style=chance.random() < 0.5)
    for _ in range(chance.choice((0, 1, 2, 4))):
        at = chance.randrange(len(text) + 1)
        text = text[:at] + chance.choice(_OF_YAML) + text[at + chance.choice((0, 0, 1, 9)) :]
    path.write_text(text, "utf-8", "replace")
    command(["validate", str(path), *chance.choice(_OPTIONS)])


def containers(case: Case, folder: Path) -> None:
    """The rows in any container have the verdict of a list; a damaged file is read, or one line names it."""
    rows, chance = flat(case.part(6).rows), case.chance
    names = [name for name in columns_of(rows) if name.strip() == name != ""]
    rows = [{name: row[name] for name in names if name in row} for row in rows]
    if not all(rows) or not rows:  # an empty line of a table is no row
        return
    expected = verdict_in_a_file(rows)
    for name in case.some([name for name in CONTAINERS if not name.startswith(_OF_EXCEL)], 2):
        require(verdict_in_a_file(CONTAINERS[name](rows, folder)) == expected, f"another verdict of {name}")
    path = Path(FILES[chance.choice(_FILES)](rows, folder))
    data = path.read_bytes()
    for damage in case.some(list(BYTES), 2):
        path.write_bytes(BYTES[damage](data, chance))
        require_read_or_named(str(path))
    path = path.rename(folder / f"other{chance.choice(EXTENSIONS)}")
    path.write_bytes(data)
    require_read_or_named(str(path))


def verdict_in_a_file(data: Any) -> dict[str, Any]:
    """A verdict without the file of several that an issue names."""
    found = verdict(data)
    issues = [(*i[:5], re.sub(r"^(?:rows|part-\d)\.\w+: ", "", i[5]), i[6]) for i in found["issues"]]
    return found | {"issues": issues}


def require_read_or_named(path: str, *words: str) -> None:
    """The file is read, whatever of it is wrong, or rejected in one line with its name; with words only that."""
    code, _, told = command(["validate", path, "--output", "json"])
    require(not words or code == 2, f"code {code} and no word about {words}")
    require(code != 2 or path in told, f"no file in {told!r}")
    require(all(word in told for word in words), f"{words} are not in {told!r}")


_BOMB = "a0: &a0 []\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 9))
_OF_YAML = (
    *("&a ", "*a ", "!!python/object:os.system ", "!!binary x", "!!set {a}", "!!timestamp 1", "? ", "- ", ": ", "<<: "),
    *("|\n", ">-\n ", "---\n", "...\n", "%YAML 9.9\n", "#", "'", '"', "\t", "\x00", "\ufeff", "\u0085", "@", "`"),
    *("0x" + "f" * 6_000, "0o" + "7" * 6_000, "1" * 6_000, "190:20:30", "1e999", ".nan", "-.inf", "=", "~", "yes"),
    *("[" * 300, "[" * 40_000, "{a: " * 300, "- " * 300, "? " * 300, _BOMB, "&a [*a]", "*b", "2001-13-45", "<<: *a"),
)


# ---------------------------------------------------------------------------------------------------------------------
# private data
CANARY = "Qzx7canary"


def no_values(case: Case, folder: Path) -> None:
    """With values left out, no text of a cell is in any form of the report, nor in what a command prints and writes."""
    rows = [{name: _with_canaries(value, case.chance) for name, value in row.items()} for row in case.rows]
    report = aes.validate_eval_set(rows, show_values=False)
    issues = [json.dumps([i.message, i.hint, i.path, i.request_id]) for i in report.iter_issues()]
    require_without({"report": f"{report.to_text()}{report.to_html()}{report.to_json()}{report!r}{issues}"}, CANARY)
    path = KINDS["jsonl"](rows, folder)
    for verb, forms in (("validate", FORMS), ("profile", ("text", "json")), ("from-traces", ())):
        shown = ["--output", case.chance.choice(forms), "--html", f"{folder}/page.html"] if forms else []
        code, printed, said = command([verb, path, *shown, "--no-values"])
        require_without({f"{verb} {shown} ({code})": printed + said}, CANARY)
        require_without(written(folder, path) if shown else {}, CANARY)


FORMS = ("text", "concise", "json", "github", "junit", "sarif")


def written(folder: Path, *sources: str) -> dict[str, str]:
    """What the commands have written into a folder beside the files that they read."""
    return {p.name: p.read_text(errors="replace") for p in folder.rglob("*") if p.is_file() and str(p) not in sources}


def require_without(forms: dict[str, str], *private: str) -> None:
    for form, text in forms.items():
        found = next((text.find(p) for p in private if p in text), None)
        require(found is None, f"a private text in {form}: {text[max(0, (found or 0) - 90) : (found or 0) + 60]!r}")


def _with_canaries(value: Any, chance: random.Random) -> Any:
    if isinstance(value, dict):
        return {key: _with_canaries(inner, chance) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_canaries(inner, chance) for inner in value]
    if isinstance(value, str) and chance.random() < 0.3:
        return chance.choice((CANARY, value + CANARY, CANARY + value, f"{value} {CANARY}"))
    return value


def redacted(case: Case, folder: Path) -> None:
    """A private text, wherever it is put in a row, is in no form of a build or of a page for reviewers that redacts."""
    rows = [_with_private(row, case.chance) for row in case.rows]
    with contextlib.suppress(aes.EvalSetError):
        made = aes.eval_set_from_inference_table(rows, redact="default")
        forms = {"rows": made.rows.to_json(default_handler=str), "excluded": made.excluded.to_json(default_handler=str)}
        require_without(forms | {"build": f"{made.to_text()}{made.to_html()}{made.summary!r}"}, *_PRIVATE)
    path, few = KINDS["jsonl"](rows, folder), folder / "few.jsonl"
    few.write_bytes(b"".join(Path(path).read_bytes().splitlines(keepends=True)[:5]))  # a page takes 30 ms for a row
    output = ["--output", case.chance.choice(("text", "json")), "--html", f"{folder}/build.html"]
    build = ["from-inference-table", path, f"{folder}/rows.jsonl", *output]
    for arguments in (build, ["review", str(few), "--reviewer", "ana", "--bundle", f"{folder}/review.html"]):
        code, printed, said = command([*arguments, "--redact", "default"])
        require_without({f"{arguments[0]} ({code})": printed + said, **written(folder, path, str(few))}, *_PRIVATE)


_PRIVATE = ("ana.canary@example.com", "4111 1111 1111 1111", "+44 20 7946 0958", "DE89 3704 0044 0532 0130 00")


def _with_private(value: Any, chance: random.Random) -> Any:
    """The value with private texts in its strings, in text and in the strings of JSON text."""
    if isinstance(value, dict):
        found = {key: _with_private(inner, chance) for key, inner in value.items()}
        return found | ({f"{chance.choice(_PRIVATE)} as a key": "x"} if chance.random() < 0.05 else {})
    if isinstance(value, list):
        return [_with_private(inner, chance) for inner in value]
    if isinstance(value, str) and chance.random() < 0.3:
        private = chance.choice(_PRIVATE)
        with contextlib.suppress(ValueError, RecursionError):
            if value[:1] in ("{", "["):
                return json.dumps(_with_private(json.loads(value), chance))
        # pieces of a stream are put together: behind a digit no number begins
        return chance.choice((f" {private} ", f"{value} {private} ", f" {private}; {value}", f"({private})"))
    return value


# ---------------------------------------------------------------------------------------------------------------------
# changing
def normalize(case: Case, folder: Path) -> None:
    """What is normalized is the same when it is normalized again; rows that cannot be read stay."""
    rows = in_python(case.rows)
    kept = aes.normalize_eval_set(rows, on_invalid="keep")
    report = aes.validate_eval_set(rows)
    require(len(kept) == report.row_count, "a row is missing")
    with contextlib.suppress(aes.InvalidEvalSetError):
        aes.normalize_eval_set(rows)
    if not case.is_python:
        kind = case.chance.choice(("list", "pandas", "arrow", "jsonl", "csv"))
        data = KINDS[kind](rows, folder)
        drop = rows_of(aes.normalize_eval_set(data, on_invalid="drop"))
        of_csv = any(v == "" for row in drop for v in row.values())  # which has no empty text
        ways = {name: way for name, way in AGAIN.items() if not (of_csv and name == ".csv")}
        try:
            require_same_again(data, folder, ways)
        except AssertionError as error:
            raise Broken(f"another row when it is normalized again: {str(error)[:600]}") from error


def fix(case: Case, folder: Path) -> None:
    """A fix is complete at once, makes no row worse, and loses none, in memory and in a file."""
    rows = in_python(case.rows)
    before = aes.validate_eval_set(rows)
    fixed = aes.normalize_eval_set(rows, fix=True, on_invalid="keep")
    require(len(fixed) == before.row_count, "a row is missing")
    if case.is_python:
        return
    kind = case.chance.choice(("jsonl", "json", "csv", "parquet"))
    path = KINDS[kind](case.rows, folder)
    once, twice = (str(folder / f"{name}{Path(path).suffix}") for name in ("once", "twice"))
    if command(["validate", path, "--fix", once])[0] == 2:
        return
    command(["validate", once, "--fix", twice])
    same = Path(once).read_bytes() == Path(twice).read_bytes()
    if kind == "parquet":
        same = _rows_of(aes.validate_eval_set(once)) == _rows_of(aes.validate_eval_set(twice))
    require(same, f"a second fix changes {kind}: {_first_difference(once, twice)}")
    given, after = aes.validate_eval_set(path), aes.validate_eval_set(once)
    require(after.row_count == given.row_count, "a row is missing in the file")
    if after.format == given.format:
        worse = [i for i, (b, a) in enumerate(zip(given.valid_mask, after.valid_mask, strict=True)) if b and not a]
        require(not worse, f"a fix made row {worse[:1]} invalid")


def _rows_of(report: Report) -> str:
    return str(report.rows.to_json(default_handler=str))


def _first_difference(one: str, other: str) -> str:
    a, b = Path(one).read_bytes(), Path(other).read_bytes()
    at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return f"{a[max(0, at - 60) : at + 60]!r} became {b[max(0, at - 60) : at + 60]!r}"


def convert(case: Case, folder: Path) -> None:
    """Every row is converted, or there is a reason; what is written can be read again."""
    rows = in_python(case.rows)
    for target in case.some(TARGETS, 4):
        with contextlib.suppress(aes.EvalSetError):
            made = aes.convert_eval_set(rows, target)
            require_shown(made)
            require(made.converted <= made.given, "more rows than there are")
            if made.converted and (isinstance(made.data, list) or hasattr(made.data, "columns")):
                again = aes.validate_eval_set(made.data, format=target)
                require_no_defect(again)
                rejected = {i.code for i in again.iter_issues() if i.severity is aes.Severity.ERROR}
                told = not rejected - _WITHOUT_ANSWERS or len(made.losses) > 0
                require(told, f"{target} has rows that its reader rejects: {rejected}")
    if not case.is_python:
        target = case.chance.choice(TARGETS)
        path = KINDS[case.chance.choice(("jsonl", "csv", "json"))](case.rows, folder)
        ending = {"ces-csv": ".csv", "ces-evaluation": ".json", "adk": ".json", "adk-legacy": ".json"}
        out = folder / f"made{ending.get(target) or case.chance.choice(('.jsonl', '.json', '.csv', '.parquet'))}"
        with contextlib.suppress(aes.EvalSetError):
            convert_file(path, str(out), target)


def there_and_back(case: Case, _: Path) -> None:
    """Rows that go to a format, come back and go there again without a loss are there as they were."""
    rows = in_python(case.rows)
    for target in case.some(TARGETS, 3):
        home = case.chance.choice(("databricks", "mlflow"))
        with contextlib.suppress(aes.EvalSetError):
            there = aes.convert_eval_set(rows, target)
            back = aes.convert_eval_set(there.data, home, format=target)
            again = aes.convert_eval_set(back.data, target, format=home)
            losses = len(there.losses) + len(back.losses) + len(again.losses)
            if not losses and there.converted == back.converted == back.given:
                traces = [row["trace"] for row in back.data.to_dict("records") if _is_made(row.get("trace"))]
                one, other = (cells_of(written.data, without=traces) for written in (there, again))
                require(one == other, f"{target} differs after {home}: {one[:300]!r} became {other[:300]!r}")


def cells_of(data: Any, without: Sequence[str] = ()) -> str:
    """What a conversion wrote, but for null and some texts, whatever the order of its columns; JSON text is what it is
    read as."""
    made = data.to_dict("records") if hasattr(data, "to_dict") else data
    return json.dumps(_with_values(json.loads(json.dumps(made, default=str)), without), sort_keys=True)


def _with_values(value: Any, without: Sequence[str]) -> Any:
    if isinstance(value, dict):
        return {k: _with_values(v, without) for k, v in value.items() if v is not None and v == v and v not in without}
    if isinstance(value, str) and not isinstance(read := structured(value), str):
        return _with_values(read, without)
    return [_with_values(v, without) for v in value] if isinstance(value, list) else value


def _is_made(trace: Any) -> bool:
    """Whether a trace was made of a row's columns, which only a trace can hold in MLflow: from there it goes on."""
    return isinstance(trace, str) and "of a row's columns" in trace


_WITHOUT_ANSWERS = {"AE202", "AE223"}
"""A row without an answer is converted too."""


def build(case: Case, _: Path) -> None:
    """Every logged row is in the dataset, or excluded for one reason."""
    chance = case.chance
    options: dict[str, Any] = {
        "dedupe": chance.choice(("id", "question", None)),
        "redact": chance.choice((None, "default")),
        "sample": chance.choice((None, None, 2, 0.5)),
        "show_values": chance.random() < 0.8,
    }
    with contextlib.suppress(aes.EvalSetError):
        made = aes.eval_set_from_inference_table(in_python(case.rows), **options)
        summary = made.summary
        require(summary.records == summary.rows + sum(summary.excluded.values()), "a logged row is in no count")
        require(len(made.rows) == summary.rows, "a row is missing")
        require("defect" not in summary.excluded, f"an internal error: {made.excluded.to_dict('records')[:1]}")
        require_no_defect(made.report)
        require_shown(made)


def traces(case: Case, _: Path) -> None:
    """Traces become rows, one by one."""
    values = [value for row in in_python(case.rows) for value in (row, row.get("trace")) if value is not None]
    if any(open_source([row]).in_order for row in case.rows):
        return  # a document has as many rows as it has turns
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreadableTraceWarning)
        with contextlib.suppress(aes.EvalSetError):
            found = aes.eval_set_from_traces(values)
            require(len(found) == len(values), "a trace is missing")


# ---------------------------------------------------------------------------------------------------------------------
# measuring
def score(case: Case, _: Path) -> None:
    """Every row has a score, or a reason."""
    with contextlib.suppress(aes.EvalSetError):
        result = aes.EvalTask(in_python(case.rows), NAMES).evaluate()
        require_shown(result)
        require_shown(result.compare(result)) if len(result.metrics_table) else None
        scores = result.metrics_table
        columns = [name for name in scores.columns if str(name).endswith("/score")]
        for name in columns:
            values = [v for v in scores[name] if v == v and v is not None]
            require(all(isinstance(v, int | float) for v in values), f"{name} is no number: {values[:1]!r}")
    with contextlib.suppress(aes.EvalSetError):
        aes.score_trajectories(in_python(case.rows), duplicates="one_to_one", empty="define")


def diff(case: Case, folder: Path) -> None:
    """A dataset is equal to itself; of two, every row is counted on both sides."""
    rows, others = in_python(case.rows), in_python(case.rows)[::-1][: max(1, len(case.rows) - 1)]
    found = aes.diff_eval_sets(rows, others)
    require_shown(found)
    if case.is_python:
        return
    with contextlib.suppress(aes.EvalSetError):
        same = aes.diff_eval_sets(case.rows, KINDS["jsonl"](case.rows, folder))
        require(same.same, f"a dataset differs from itself: {same.counts}")


def profile(case: Case, _: Path) -> None:
    """A profile of any rows can be shown."""
    found = aes.profile_eval_set(in_python(case.rows), show_values=case.chance.random() < 0.8)
    require_shown(found)


_EVALUATORS = ("mlflow.genai", "databricks-agent", "mlflow.evaluate", "vertex")


def support(case: Case, _: Path) -> None:
    """The metrics of every row, and rows in the form of an evaluator."""
    rows = in_python(case.rows)
    aes.metric_support(rows, system="all")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(aes.EvalSetError):
            aes.prepare_for_evaluate(rows, evaluator=case.chance.choice(_EVALUATORS))


# ---------------------------------------------------------------------------------------------------------------------
def review(case: Case, folder: Path) -> None:
    """Every row can be looked at and labeled, and all rows are in what is written; a document has those it can hold."""
    try:
        session = open_session(open_source(KINDS["jsonl"](case.rows, folder)), "ana")
    except aes.EvalSetError:
        return
    answers = Answers(session)
    session.overview()
    for row in range(len(session.reviewed)):
        session.detail(row, with_markdown=True)
        label, value = case.chance.choice(tuple(EXAMPLES.items()))
        session.apply([{"row": row, "path": label, "new": value}, {"row": row, "path": "status", "new": "submitted"}])
        session.check(row, session.state(row))
    session.agreement()
    answers.preview(MINE)
    is_document = session.reviewed.is_document
    out = answers.outs[MINE] if is_document else f"reviewed{case.chance.choice(('.jsonl', '.parquet', '.json'))}"
    written = answers.write({"path": str(folder / out), "what": MINE})
    require(is_document or written["rows"] == len(session.reviewed), "a row is missing in the reviewed file")


# ---------------------------------------------------------------------------------------------------------------------
# Customer Engagement Suite
def of_ces(case: Case, folder: Path) -> None:
    """Evaluations, golden CSV and updates of any object."""
    rows = in_python(case.rows)
    for evaluations in (rows, *([row] for row in rows)):  # one that cannot be read would hide the others
        with contextlib.suppress(aes.EvalSetError):
            text, _ = ces.golden_csv_text(ces.read_evaluations(evaluations))
            ces.read_golden_csv(text) if text else None
    for row in rows[:3]:
        with contextlib.suppress(aes.EvalSetError):
            ces.validate_evaluation(row)
        with contextlib.suppress(aes.EvalSetError):
            other = case.chance.choice(rows)
            ces.update_request(row, other, case.chance.choice((None, ["golden.turns"], ["displayName", "*"], "golden")))
    if not case.is_python:
        path = KINDS[case.chance.choice(("csv", "json"))](case.rows, folder)
        with contextlib.suppress(aes.EvalSetError):
            ces.read_golden_csv(path) if path.endswith(".csv") else ces.read_evaluations(path)


_OF_EXCEL = ("xlsx", "tsv", "yaml")
"""What holds fewer characters than the others: no control characters, or no blank lines; the matrix has them."""
_FILES = tuple(name for name in FILES if name not in _OF_EXCEL)

CHECKS: dict[str, tuple[Check, int]] = {
    "validate": (validate, 1),
    "reports": (reports, 4),
    "every format": (every_format, 5),
    "one verdict": (one_verdict, 8),
    "arrow types": (arrow_types, 5),
    "damaged bytes": (damaged_bytes, 4),
    "own files": (own_files, 6),
    "no values": (no_values, 3),
    "changed file": (changed_file, 5),
    "yaml": (as_yaml, 4),
    "containers": (containers, 8),
    "redacted": (redacted, 4),
    "normalize": (normalize, 4),
    "fix": (fix, 4),
    "convert": (convert, 4),
    "there and back": (there_and_back, 4),
    "build": (build, 4),
    "traces": (traces, 3),
    "score": (score, 4),
    "diff": (diff, 4),
    "profile": (profile, 6),
    "support": (support, 5),
    "review": (review, 6),
    "ces": (of_ces, 3),
}
"""Each with how seldom it is made: of so many cases, one."""

OF_JSON = frozenset(
    {
        *("one verdict", "arrow types", "damaged bytes", "no values", "changed file", "yaml", "redacted", "containers"),
        "review",
    }
)
"""The checks that write the rows, so that what only Python has cannot be in them."""
