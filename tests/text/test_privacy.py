"""Without values, nothing that stands in a cell leaves it: in no form of the report, by no rule, from no kind of input.

Two checks, both over an example of every rule. Every word and number of the cells is put into another alphabet, so that
none of them is a word of ours; then none may show up. And the output may not depend on what the cells say at all: the
same cells in a third alphabet, letter for letter, give the same report, character for character.
"""

import json
import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pyarrow as pa
import pytest

from agent_eval_schema import EvalSetError, InvalidEvalSetError, Report, validate_eval_set
from agent_eval_schema import schema as canonical
from agent_eval_schema.cli import main
from agent_eval_schema.formats import adk_schema
from agent_eval_schema.formats.ces import golden, schema
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.io.atomic import replacing
from agent_eval_schema.io.source import Share, units_of
from agent_eval_schema.render.report.github import github_text
from agent_eval_schema.render.report.junit import junit_xml
from agent_eval_schema.rules import RULES
from agent_eval_schema.text.privacy import quoting
from agent_eval_schema.text.spelling import ALIASES
from agent_eval_schema.traces import decode, derive, documents, reading
from agent_eval_schema.validation import kernel, report_builder
from agent_eval_schema.validation.checked_run import CheckedRun, check_with_workers
from agent_eval_schema.validation.plan import make_plan
from agent_eval_schema.validation.report import run_of, summary_of
from agent_eval_schema.validation.steps import Step
from agent_eval_schema.validation.validate import check_source
from tests.conftest import CONTAINERS, KINDS, ROOT, SAMPLES

Rows = list[dict[str, Any]]

# ---------------------------------------------------------------------------------------------------------------------
# cells in another alphabet


def _names_in(module: Any) -> Iterable[str]:
    for kind in vars(module).values():
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            yield from kind.__struct_encode_fields__


NAMES = {
    *canonical.COLUMNS,
    *ALIASES,
    *(word for words in ALIASES.values() for word in words),
    *(name for module in (canonical, decode, derive, documents, reading) for name in _names_in(module)),
    *(*documents.TEXT_KEYS, *documents.GUESSED_URI_KEYS, *documents.DOCUMENT_LIST_KEYS),
    *(name for message in schema.table().messages.values() for name in message.fields),
    *adk_schema.known_keys(),
    *(field.proto_name for message in schema.table().messages.values() for field in message.fields.values()),
    *("events", "exception.message", "expectation", "value", "valid", "metadata", "choices", "message"),
}
MEANINGFUL = {
    # what a rule looks for; it is not our vocabulary, and is looked for below where it could be shown
    *("system", "user", "assistant", "tool", "function", "NaN", "Infinity", "null", "true", "false", "True"),
    *("RETRIEVER", "RETRIEVAL", "TOOL", "LLM", "CHAT", "MODEL", "AGENT", "STATUS", "CODE", "OK", "ERROR"),
    *(*golden.ACTIONS, *golden.IMAGE_TYPES),
    *("Hello", "hope", "this", "helps", "dbfs", "Volumes", "respones", "team", "TBD", "todo"),
}
KEPT = {word for name in (*NAMES, *MEANINGFUL) for word in re.findall(r"[A-Za-z]+", name)}

PART = re.compile(r"\\u[0-9a-fA-F]{4}|\\.|[A-Za-z]+|\d+")
SHORT = 12
"""Longer numbers are times; in another alphabet the spans of a trace would start in another order."""


def in_alphabet(shift: int, value: Any) -> Any:
    """The value with every letter and digit of its texts, keys and numbers moved on, but for names of the schema."""
    move = partial(in_alphabet, shift)
    if isinstance(value, dict):
        return {move(k): move(v) for k, v in value.items()}
    if isinstance(value, list):
        return [move(v) for v in value]
    if isinstance(value, str):
        return PART.sub(lambda found: _moved(found.group(), shift), value)
    if isinstance(value, int | float) and re.fullmatch(r"-?[\d.]{1,11}", str(value)):
        return type(value)(move(str(value)))
    return value


def _moved(part: str, shift: int) -> str:
    if part in KEPT or part.startswith("\\") or (part.isdigit() and len(part) >= SHORT):
        return part
    return "".join(_letter(c, shift) for c in part)


def _letter(c: str, shift: int) -> str:
    for first, size in (("a", 26), ("A", 26), ("1", 9)):
        if 0 <= ord(c) - ord(first) < size:
            return chr((ord(c) - ord(first) + shift) % size + ord(first))
    return c


def secrets(value: Any) -> set[str]:
    """The words and numbers of cells that nothing but the cells can hold."""
    if isinstance(value, dict):
        return secrets([*value.keys(), *value.values()])
    if isinstance(value, list):
        return set[str]().union(*map(secrets, value))
    parts = re.findall(r"[A-Za-z]{4,}|\d{6,}", "" if value is None else str(value))
    return {p for p in parts if p not in KEPT}


# ---------------------------------------------------------------------------------------------------------------------
# an example of every rule


def traced(*spans: Any, state: str = "OK", **info: Any) -> dict[str, Any]:
    return {"trace": {"info": {"trace_id": "trace number one", "state": state, **info}, "data": {"spans": list(spans)}}}


def span(number: int, inputs: Any = None, outputs: Any = None, **more: Any) -> dict[str, Any]:
    """The first is the root. What it took and gave stands in it as JSON text."""
    attributes = {f"mlflow.span{k}": json.dumps(v) for k, v in (("Inputs", inputs), ("Outputs", outputs)) if v}
    kind = more.pop("kind", None)
    return {
        "name": f"secret span {number}",
        "span_id": str(number),
        "parent_span_id": "1" if number > 1 else None,
        "start_time_unix_nano": 1_700_000_000_000_000_000 + number,
        "attributes": {**attributes, **({"mlflow.spanType": kind} if kind else {})},
        **more,
    }


ROOT_SPAN = span(1, "What do I earn?", "You earn 123456.")
PLAIN = {"request": "What do I earn?", "response": "You earn 123456."}
RETRIEVED = [
    {"page_content": "Salaries are secret", "metadata": {"source": "file:///private/salaries.pdf"}},
    {"page_content": "Bonuses are secret"},
    {"unknown": "stuff"},
    4711471147,
]
EXPECTATIONS = [
    {"name": name, "expectation": {"value": value}}
    for name, value in (("expected_facts", "wrong secret"), ("expected_response", "truth"), ("private", "matter"))
]

EXAMPLES: dict[str, Rows] = {
    **{rule.code: list(rule.bad) for rule in RULES.values() if rule.bad and rule.code[2] != "7"},
    "AE411 AE410 AE412": [{**PLAIN, **traced(ROOT_SPAN, span(2, "query", RETRIEVED, kind="RETRIEVER"))}],
    "AE607 AE608": [traced(span(1, {"alpha": "secret", "beta": 1}, {"gamma": "secret", "delta": 2}))],
    "AE609": [{**PLAIN, **traced(ROOT_SPAN, trace_metadata={"is_truncated": "true"})}],
    "AE610": [{**PLAIN, **traced(ROOT_SPAN, span(2, name="raise_salary", status={"code": "ERROR"}))}],
    "AE611": [{**PLAIN, "trace": json.dumps(traced(ROOT_SPAN, thing=float("nan"))["trace"])}],
    "AE603 expectations": [{**PLAIN, **traced(ROOT_SPAN, assessments=EXPECTATIONS)}],
    "AE603 parts": [
        {**PLAIN, **traced(span(1, "a", "b", name=4711471147, status={"code": ["secret"]}), "no span", ["secret"])},
        {**PLAIN, **traced(ROOT_SPAN, request_id={"key": "secret"}, state="ODDSTATE", client_request_id=["secret"])},
        {**PLAIN, "trace": {"info": "secret info", "data": {"spans": "secret spans"}}},
        {**PLAIN, "trace": {"spans": [{"span_id": "1", "attributes": '"secret attributes"'}]}},
        {**PLAIN, "trace": {"steps": ["secret step", {"name": "secret", "type": "RETRIEVAL"}]}},
        {**PLAIN, "trace": "no trace but a secret"},
        {**PLAIN, "trace": json.dumps("no trace but a secret in quotes")},
        {**PLAIN, "trace": [{"secret": "list"}]},
    ],
    "AE605 all": [
        {
            "request": "Another question",
            "response": "Another answer",
            "retrieved_context": [{"doc_uri": "another/document.pdf"}],
            **traced(ROOT_SPAN, span(2, "query", RETRIEVED[:1], kind="RETRIEVER")),
        }
    ],
    "failure": [
        traced(
            span(1, "What?", events=[{"name": "exception", "attributes": {"exception.message": "secret exception"}}]),
            state="ERROR",
        )
    ],
    "keys": [
        {
            **PLAIN,
            "guidelines": {"secret tone": "polite", "salary 123456": [1234567]},
            "tags": {"secret tag": ["secret"], "cost center": {"a secret": 1}},
            "custom_expected": ["secret custom"],
            "retrieved_context": [{"doc_urii": "secret.pdf", "confidential": 1}, {"doc_uri": "a", "page_contnt": "b"}],
            "predicted_trajectory": [{"toolname": "fire_person"}, {"tool_name": ["fire"], "reason": "secret"}],
            "reference_trajectory": [{"tool_name": "x", "tool_input": "secret input"}],
            "expected_facts": [123456789, {"fact": "secret"}],
            "latency_seconds": "very secret",
            "input_token_count": -1234567,
            "session_id": {"a": "secret"},
            "error": ["secret error"],
            "failure": "secretly",
        },
        {"request": {"mesagges": [{"role": "user"}], "secret key": 1}, "response": {"confidential": "secret"}},
        {"request": {"query": "a secret", "private key": 1, "other secret": 2}, "response": {"output": [{"a": 1}]}},
        {
            "request": {
                "messages": [
                    {"role": "secretary", "content": [{"type": 123456789, "text": ["secret"]}, "secret part"]},
                    {"role": "user", "content": {"secret": 1}, "name": 123456789, "tool_calls": [{"function": "fire"}]},
                    {"rolle": "user", "secret": "x"},
                    1234567,
                ]
            },
            "response": 123456789,
        },
        {"request_id": 123456789, "request": '{"private": "secret", "question": 1}', "response": "x"},
        {"request_id": ["secret id"], "request": "A long secret question " * 9, "response": " "},
    ],
    "near misses": [
        {**PLAIN, "expected_retrieved_context": [{"doc_uri": a}], "retrieved_context": [{"doc_uri": b}]}
        for a, b in (("secret/Paper.pdf", "secret/paper.PDF"), ("other.pdf", "https://other.pdf"))
    ],
    "rewritten": [
        {
            **PLAIN,
            "expected_retrieved_context": [{"doc_uri": "https://private.example/paper.pdf"}],
            "retrieved_context": [{"doc_uri": "dbfs:/private.example/paper.pdf"}],
        }
    ],
    "prefix": [
        {**PLAIN, "expected_retrieved_context": [{"doc_uri": a}], "retrieved_context": [{"doc_uri": b}]}
        for a, b in (("area/plan.pdf", "vault://area/plan.pdf"), ("other", "elsewhere"))
    ],
    "prefix of the other": [
        {**PLAIN, "expected_retrieved_context": [{"doc_uri": a}], "retrieved_context": [{"doc_uri": b}]}
        for a, b in (("vault://area/plan.pdf", "area/plan.pdf"), ("other", "elsewhere"))
    ],
    "repeated": [{**PLAIN, "request_id": "patient 123456"}] * 2,
    "real traces": [{"trace": path.read_text()} for path in sorted((ROOT / "tests/data/traces").glob("*.json"))],
}

IN_MEMORY_ONLY = {"AE006", "AE009"}
"""What no file can hold: half of a character, a complex number."""


def cases() -> Iterator[Any]:
    """Every example in two kinds of input: `test_one_verdict` shows that the others have the same issues."""
    for name, kind in product(EXAMPLES, CONTAINERS):
        if name[:5] not in IN_MEMORY_ONLY or kind in ("list", "pandas"):
            yield name, kind


# ---------------------------------------------------------------------------------------------------------------------
# everything that a report can say


def everything_said(report: Report, folder: Path) -> str:
    run_of(report).seconds = 0.0
    parts = [report.to_text(), report.to_text(color=True, width=200), report.to_json(), repr(report)]
    summary = summary_of(report)
    parts += [
        github_text({summary: run_of(report).lines_of}, root=str(folder)),
        junit_xml([summary]),
        report.issues.to_csv(),
    ]
    parts += [getattr(report, form)() for form in ("to_html", "_repr_html_") if hasattr(report, form)]
    parts += [report.why(row, "correctness") for row in range(report.row_count)]
    parts += [
        report.metrics.to_csv(),
        str(InvalidEvalSetError(report)),
        str(list(summary_of(report).examples.values())),
    ]
    report.write_invalid(str(folder / "invalid.jsonl"))
    notes = [json.loads(line)["_issues"] for line in (folder / "invalid.jsonl").read_text().splitlines()]
    assert not report.invalid_count or all(notes)
    return "\n".join([*parts, json.dumps(notes)])


def leaks(said: str, cells: Any) -> list[str]:
    return sorted(s for s in secrets(cells) if s in said)


def silent(data: Any) -> Report:
    return validate_eval_set(data, show_values=False)


def moved_cells(shift: int, rows: Rows) -> Rows:
    """The columns' names stay: they are the schema of the table."""
    return [{column: in_alphabet(shift, cell) for column, cell in row.items()} for row in rows]


def cells_of(rows: Rows) -> list[Any]:
    return [list(row.values()) for row in rows]


@pytest.mark.parametrize(("name", "kind"), list(cases()))
def test_nothing_of_the_cells_is_said(name: str, kind: str, tmp_path: Path) -> None:
    said = []
    for shift in (3, 7):
        rows = moved_cells(shift, EXAMPLES[name])
        report = silent(KINDS[kind](rows, tmp_path))
        # What a form of the report holds of cells is in its issues: one kind of input shows it for all forms.
        said.append(everything_said(report, tmp_path) if kind == "list" else report.to_json())
        assert leaks(said[-1], cells_of(rows)) == []
        assert report.issues["request_id"].isna().all()
    assert said[0] == said[1]


def test_the_verdict_is_that_of_a_check_with_values() -> None:
    for rows in EXAMPLES.values():
        with_, without = validate_eval_set(rows), silent(rows)
        assert with_.counts == without.counts
        assert with_.valid_mask.tolist() == without.valid_mask.tolist()
        assert list(with_.issues["row"]) == list(without.issues["row"])


def test_the_examples_are_of_every_rule_and_would_leak() -> None:
    """These tests can fail: the cells are in the messages as soon as they may be."""
    told, leaking = set[str](), set[str]()
    for rows in map(partial(moved_cells, 3), EXAMPLES.values()):
        hidden = secrets(cells_of(rows))
        for issue in validate_eval_set(rows).iter_issues():
            told.add(issue.code)
            said = f"{issue.request_id} {issue.path} {issue.message} {issue.hint}"
            leaking |= {issue.code for s in hidden if s in said}
    by_request = {"AE108", "AE109"}  # a repair shows what it does: it is refused together with --no-values
    elsewhere = {
        "AE001",
        "AE013",  # of a rule that is not ours
        "AE005",
        "AE007",
        "AE008",
        "AE011",  # names the bytes of a cell
        "AE101",
        "AE104",
        "AE105",
        "AE114",
        "AE117",  # names columns
        "AE184",  # names keys of a document
        "AE168",
        "AE169",
        "AE181",
        "AE183",
        "AE120",
        "AE165",  # by the length of a conversation: no cell is in it
        "AE166",  # of a file beside the data
        "AE167",
        "AE613",  # of a tracking store
        "AE227",
        "AE909",  # counts rows of two kinds
    }
    by_words = {
        "AE102",
        "AE116",
        "AE118",
        "AE180",  # a blank
        "AE240",
        "AE314",
        "AE225",
        "AE226",
        "AE228",
        "AE612",
        "AE620",  # the name of a kind of chunk
    }  # which another alphabet replaces
    losses = {code for code in RULES if code.startswith("AE8")}  # told by a conversion, which no report shows
    logged = {code for code in RULES if code[2] == "7"}  # production/test_convert: rows that are no rows of ours yet
    assert elsewhere | by_words <= RULES.keys()
    assert sorted(RULES.keys() - told - elsewhere - by_request - by_words - losses - logged) == [], (
        "a rule finds its example by a word: add the word to MEANINGFUL; without an example: add one to EXAMPLES"
    )
    assert len(leaking) > 25


# ---------------------------------------------------------------------------------------------------------------------
# what only some ways lead to


def moved_sample(shift: int) -> str:
    """The broken sample, its malformed lines too."""
    return str(in_alphabet(shift, (SAMPLES / "broken.jsonl").read_text()))


def test_the_broken_sample(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said, path = [], tmp_path / "a.jsonl"
    for shift in (3, 7):
        path.write_text(moved_sample(shift))
        report = silent(str(path))
        said.append(everything_said(report, tmp_path) + report.to_text(system="all"))
        assert leaks(said[-1], path.read_text()) == []
        for form in ("text", "json", "github", "junit"):
            main(["validate", str(path), "--no-values", "--output", form, "--write-invalid", str(tmp_path / "b.jsonl")])
            assert leaks("".join(capsys.readouterr()), path.read_text()) == []
        assert leaks((tmp_path / "b.jsonl").read_text(), path.read_text())  # the cells, as was asked for
    assert said[0] == said[1]
    assert len(report.counts) > 20


UNREADABLE = {
    "a.jsonl": '{"request": "caf~"}\n"? one"\n{"a": 17171717}?\n{"?": "?',
    "a.json": '[{"request": "caf~"}, "? one", 17171717, {"a": ?',
    "a.csv": 'request,response\ncaf~,?\n"a"?,b\n?\n"?',
}
"""`?` stands for a word, `~` for a byte that is not UTF-8."""


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_is_not_said_either(name: str, tmp_path: Path) -> None:
    said = []
    for word, byte in ((b"confidential", b"\xe9"), (b"undisclosed!", b"\xe8")):
        (tmp_path / name).write_bytes(UNREADABLE[name].encode().replace(b"?", word).replace(b"~", byte))
        report = silent(str(tmp_path / name))
        said.append(everything_said(report, tmp_path))
        assert {"AE005", "AE007"} <= set(report.counts)
        assert not [w for w in ("confidential", "undisclosed", "0xE", "17171717") if w in said[-1]]
    assert said[0] == said[1]


def test_bytes_and_objects_of_a_frame(tmp_path: Path) -> None:
    class Person:
        def to_dict(self) -> None:
            raise ValueError("a secret salary")

    frame = pd.DataFrame({"request": [b"caf\xe9", Person(), {"secret": 1j}], "response": [b"secret \xff", "b", "c"]})
    report = silent(frame)
    assert {"AE005", "AE009"} <= set(report.counts)
    said = everything_said(report, tmp_path)
    assert not [word for word in ("0xE9", "0xFF", "salary", "secret") if word in said]


def test_arrow_text_that_is_not_utf8(tmp_path: Path) -> None:
    cells = (b"caf\xe9", b'{"info": {"trace_id": "caf\xe9"}, "data": {}}')
    wrong = [pa.Array.from_buffers(pa.string(), 1, pa.array([cell]).buffers()) for cell in cells]
    table = pa.table({"request": wrong[0], "response": ["a"], "trace": wrong[1]})
    for values in (True, False):
        report = validate_eval_set(table, show_values=values)
        assert set(report.counts) == {"AE005", "AE604", "AE611"}
        found = [i.message for i in report.iter_issues() if "0xe9" in i.message.lower()]
        assert len(found) == (2 if values else 0)
    assert "0xe9" not in everything_said(report, tmp_path).lower()


def test_a_trace_that_cannot_be_mended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(decode, "_mend_parts", lambda *_: None)
    rows = [{**PLAIN, "trace": {"info": {"trace_id": 1}, "data": {}}}]
    assert "`$.info.trace_id`" in everything_said(validate_eval_set(rows), tmp_path)
    assert "`$.info.trace_id`" not in everything_said(silent(rows), tmp_path)


def test_a_rule_that_breaks_down(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken(_: Any) -> None:
        raise ValueError("unexpected secret in a cell")

    monkeypatch.setattr(kernel, "STEPS", (Step(broken),))
    report = silent([PLAIN])
    assert report.counts == {"AE001": 1}
    said = everything_said(report, tmp_path)
    assert "`broken` raised an exception: ValueError" in said
    assert "unexpected secret" not in said


def test_a_second_reading_of_a_long_file_says_no_more(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(moved_sample(3))
    once = silent(str(path)).issues
    monkeypatch.setattr(report_builder, "ISSUES_KEPT", 1)
    again = silent(str(path))
    assert len(run_of(again).builder.take_issues()) < len(once)
    pd.testing.assert_frame_equal(again.issues, once)


@pytest.mark.process
def test_workers_say_no_more(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text((moved_sample(3) + '"confidential"\n') * 700)
    source = open_source(str(path)).quoting(False)
    plan = make_plan(source.read_as(show_values=False))
    run = CheckedRun(source, plan)
    share = Share(0, 2, 0)
    for checked in check_with_workers(units_of(source, share), share, str(path), plan):
        run.add(checked)
    report = Report(run)
    assert report.row_count == 38 * 700
    assert "confidential" not in report.to_json()
    assert report.to_json() == check_source(open_source(str(path), show_values=False), jobs=1).to_json()


def test_an_error_while_writing_does_not_say_the_cell(tmp_path: Path) -> None:
    def write() -> None:
        with replacing(str(tmp_path / "a.parquet")):
            pa.array(["a secret"]).cast(pa.int64())

    with pytest.raises(EvalSetError, match="a secret"):
        write()
    with quoting(False), pytest.raises(EvalSetError, match="cannot be written: ") as caught:
        write()
    assert "secret" not in str(caught.value)


def test_from_traces_on_the_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rows = moved_cells(3, EXAMPLES["AE603 parts"])
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"trace": row["trace"]}) + "\n" for row in rows))
    main(["from-traces", str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl"), "--no-values"])
    out, err = capsys.readouterr()
    assert "AE603" in out
    assert leaks(out + err, cells_of(rows)) == []


def test_metrics_on_the_command_line_say_nothing_of_cells(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(moved_sample(3))
    for form in ("text", "json"):
        main(["metrics", str(tmp_path / "a.jsonl"), "--system", "all", "--output", form])
        assert leaks("".join(capsys.readouterr()), moved_sample(3)) == []


# ---------------------------------------------------------------------------------------------------------------------
# what is said instead


@pytest.mark.parametrize(
    ("row", "place", "message", "hint"),
    [
        ({"response": 42}, "response", "expected text or a chat object with an answer, got a number", None),
        ({"failure": "maybe"}, "failure", "expected true or false, got a text of 5 characters", None),
        ({"tags": {"a": [1]}}, "tags.*", "expected", None),
        (
            {"guidelines": {"tone": ["x", "y", 7]}},
            "guidelines.*[2]",
            "expected text, got a number",
            "Write it as text.",
        ),
        (
            {"request": {"mesages": []}},
            "request.*",
            "expected `messages` or `query`, got an object with 1 key",
            "Did you mean `messages`? Rename `*`.",
        ),
        (
            {"request": {"messages": [{"role": "usr", "content": "x"}]}},
            "request.messages[0].role",
            "expected one of assistant, developer, function, system, tool, user, got a text of 3 characters",
            "Did you mean 'user'?",
        ),
        (
            {"retrieved_context": [{"doc_uri": "a", "page_content": "b"}, {"doc_uri": "a", "salary": 1}]},
            "retrieved_context[0].page_content",
            "unknown key `page_content` is kept, but no metric reads it",
            "Did you mean `content`?",
        ),
    ],
)
def test_the_kind_and_the_place_are_said(row: dict[str, Any], place: str, message: str, hint: str | None) -> None:
    issue = silent([{"request": "a", "response": "b", **row}]).issues.iloc[0]
    assert issue["path"] == place
    assert str(issue["message"]).startswith(message)
    assert hint is None or issue["hint"] == hint


def test_the_report_says_that_it_is_silent() -> None:
    line = "Cell values are hidden."
    assert line in silent([PLAIN]).to_text()
    assert line not in validate_eval_set([PLAIN]).to_text()
    assert (summary_of(silent([PLAIN])).values, summary_of(validate_eval_set([PLAIN])).values) == (False, True)


def test_quoting_is_back_on_when_a_check_is_done() -> None:
    silent([{"request": 42}])
    assert "the number 42" in validate_eval_set([{"request": 42}]).to_text()


def test_the_command_that_lists_all_is_silent_too(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"request": 1}) * 1 + "\n" + "\n".join([json.dumps({"request": 1})] * 20))
    main(["validate", str(path), "--no-values", "--output", "github"])
    assert "--no-values --output json" in capsys.readouterr().out
