"""What only shows when the whole data set is seen, whatever the batches."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import agent_eval_schema
from agent_eval_schema.cells.hashing import FirstSeen
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.io import source
from agent_eval_schema.render.report.summary import FrequentAnswer
from agent_eval_schema.rules.dataset import REPEATED_REQUEST_ID
from agent_eval_schema.rules.expectations import BLANK_EXPECTATION
from agent_eval_schema.validation.doc_uris import plain_uri, rewrite
from agent_eval_schema.validation.kernel import check_batch
from agent_eval_schema.validation.plan import make_plan
from agent_eval_schema.validation.report import summary_of
from agent_eval_schema.validation.report_builder import ReportBuilder, frequent_answers

OF_ROWS = ("AE201", "AE202", "AE205", "AE221", "AE223", "AE305", "AE306", "AE402")
JUDGED = ("AE1", *OF_ROWS, "AE901", "AE902", "AE903", "AE904")
"""The rules of these tests: a new rule on their rows changes none of them."""

validate_eval_set = partial(agent_eval_schema.validate_eval_set, select=JUDGED)


def row(**cells: Any) -> dict[str, Any]:
    return {"request": "Hi", "response": "Hello", **cells}


@pytest.fixture(params=[1, 2, 100], ids=lambda n: f"batches-of-{n}")
def _batches(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MAX_BATCH_ROWS", request.param)


def codes(report: Any) -> list[tuple[Any, str]]:
    return [
        (None if pd.isna(r) else int(r), c) for r, c in zip(report.issues["row"], report.issues["code"], strict=True)
    ]


@pytest.mark.usefixtures("_batches")
def test_a_repeated_request_id_is_an_error_of_the_later_rows() -> None:
    report = validate_eval_set([row(request_id=i, request=str(n)) for n, i in enumerate("abaca")])
    assert codes(report) == [(2, "AE901"), (4, "AE901")]
    assert list(report.issues["message"]) == ["'a' is already the ID of row 0"] * 2
    assert list(report.valid_mask) == [True, True, False, True, False]


@pytest.mark.usefixtures("_batches")
def test_the_same_request_in_any_format_with_another_truth_is_a_warning() -> None:
    rows = [
        row(request="Hi", expected_response="a"),
        row(request={"messages": [{"role": "user", "content": "Hi"}]}, expected_response="a"),
        row(request={"query": "Hi"}, expected_response="b"),
        row(request="Hi"),
        row(request="Ho", expected_response="c"),
    ]
    report = validate_eval_set(rows)
    assert codes(report) == [(2, "AE902")]
    assert report.issues["message"][0] == "row 0 has the same request and a different ground truth"


@pytest.mark.parametrize(
    ("rows", "code", "place"),
    [
        ([row(expected_response=t) for t in "ab"], "AE902", "expected_response"),
        (
            [row(request=f"q{i}", response=f"a{i}", expected_response=f"a{i}") for i in range(12)],
            "AE904",
            "expected_response",
        ),
        ([row(request_id="a"), row(request_id="a", request="Ho")], "AE901", "request_id"),
        (
            [{"inputs": {"question": "q"}, "outputs": "o", "expectations": {"expected_response": t}} for t in "ab"],
            "AE902",
            "expectations.expected_response",
        ),
        ([{"prompt": "q", "response": "o", "reference": t} for t in "ab"], "AE902", "reference"),
    ],
)
def test_a_rule_on_the_dataset_names_the_column_of_the_table(rows: list[dict[str, Any]], code: str, place: str) -> None:
    issue = next(i for i in validate_eval_set(rows).iter_issues() if i.code == code)
    assert (issue.path, issue.column) == (place, place.partition(".")[0])


def contexts(expected: str, retrieved: str) -> dict[str, Any]:
    return row(
        expected_retrieved_context=[{"doc_uri": expected}], retrieved_context=[{"doc_uri": "x"}, {"doc_uri": retrieved}]
    )


NEAR = [
    ("/Volumes/main/hr/leave.pdf", "dbfs:/Volumes/main/hr/leave.pdf", "Put 'dbfs:' before"),
    ("dbfs:/Volumes/main/hr/leave.pdf", "/Volumes/main/hr/leave.pdf", "Take 'dbfs:' off the front"),
    ("https://docs.example.com/a", "http://docs.example.com/a", "Write the expected `doc_uri` as"),
    ("https://docs.example.com/a/", "https://docs.example.com/a", "Take off the trailing slash"),
    ("https://docs.example.com/a", "https://docs.example.com/a/", "Add the trailing slash"),
    ("https://Docs.Example.com/A", "https://docs.example.com/a", "Write both in the same case"),
    ("https://www.example.com/a", "https://example.com/a", "Write the expected `doc_uri` as"),
    ("/dbfs/Volumes/a.pdf", "dbfs:/Volumes/a.pdf", "Write the expected `doc_uri` as"),
    ("docs/a%20b.md", "docs/a b.md", "Write the expected `doc_uri` as"),
]


@pytest.mark.usefixtures("_batches")
@pytest.mark.parametrize(("expected", "retrieved", "words"), NEAR)
def test_uris_that_nearly_match_everywhere_are_one_warning(expected: str, retrieved: str, words: str) -> None:
    report = validate_eval_set([contexts(expected, retrieved), contexts("nothing", "alike"), row()])
    assert codes(report) == [(None, "AE903")]
    assert (
        f"in 1 of 2 rows one is a close match: expected {expected!r}, retrieved {retrieved!r}"
        in report.issues["message"][0]
    )
    assert words in report.issues["hint"][0]


@pytest.mark.usefixtures("_batches")
def test_one_row_that_matches_shows_that_the_writing_is_right() -> None:
    report = validate_eval_set([contexts("/Volumes/a", "dbfs:/Volumes/a"), contexts("b", "b")])
    assert codes(report) == []


def test_uris_of_different_documents_are_not_near() -> None:
    assert validate_eval_set([contexts("docs/a.md", "docs/b.md")]).counts == {}


@given(st.text("aB.-/ ", max_size=20))
def test_a_plain_uri_stays_as_it_is_when_made_plain_again_without_escapes(uri: str) -> None:
    if "%" not in uri and ":" not in uri:
        once = plain_uri(uri)
        assert plain_uri("/" + once + "/") == plain_uri(once)


@pytest.mark.parametrize(("expected", "retrieved"), [(e, r) for e, r, _ in NEAR])
def test_every_near_miss_has_a_remedy_in_words(expected: str, retrieved: str) -> None:
    assert rewrite(expected, retrieved)


@pytest.mark.usefixtures("_batches")
def test_ground_truth_that_is_the_response_in_most_rows_is_one_warning() -> None:
    copied = [row(request=f"q{i}", response=f"a{i}", expected_response=f"a{i}") for i in range(3)]
    own = [row(request=f"p{i}", response="a", expected_response="b") for i in range(2)]
    report = validate_eval_set(copied + own)
    assert codes(report) == [(None, "AE904")]
    assert "expected_response is identical to response in 3 of 5 rows" in report.issues["message"][0]
    assert validate_eval_set(copied + own + own[:1]).counts == {}
    assert validate_eval_set(copied).counts == {"AE904": 1}
    assert validate_eval_set(copied[:2]).counts == {}, "too few to say"


LONG = "Full-time staff get sixteen weeks of paid parental leave, which is eighty working days."


@pytest.mark.parametrize(
    ("cells", "sign"),
    [
        ({"expected_response": LONG, "response": LONG}, "identical to the response"),
        (
            {"expected_response": LONG, "retrieved_context": [{"doc_uri": "a", "content": f"Leave. {LONG} See also."}]},
            "verbatim in a retrieved document",
        ),
        ({"expected_response": LONG * 3, "response": "Sixteen weeks."}, "times as long as the response"),
        ({"expected_response": "Hello, you get sixteen weeks."}, "a greeting or a closing phrase"),
        ({"expected_response": "Sixteen weeks. Let me know if you need more!"}, "a greeting or a closing phrase"),
    ],
)
def test_signs_that_the_ground_truth_was_copied(cells: dict[str, Any], sign: str) -> None:
    report = validate_eval_set([row(**cells)])
    assert report.counts == {"AE306": 1}
    assert sign in report.issues["message"][0]
    assert report.ok


@pytest.mark.parametrize(
    "cells",
    [
        {"expected_response": "Paris", "response": "Paris"},
        {"expected_response": "16 weeks", "retrieved_context": [{"doc_uri": "a", "content": "You get 16 weeks."}]},
        {"expected_response": "High availability needs two zones."},
        {"expected_response": "Surely sixteen weeks of leave."},
        {"expected_response": LONG, "response": "You get sixteen weeks of leave, paid in full by us, as staff."},
    ],
)
def test_minimal_ground_truth_shows_no_signs(cells: dict[str, Any]) -> None:
    assert validate_eval_set([row(**cells)]).counts == {}


@pytest.mark.parametrize("data", [[], pd.DataFrame(), pd.DataFrame({"request": [], "response": []})])
def test_no_rows_is_an_error_of_the_data_set(data: Any) -> None:
    report = validate_eval_set(data)
    assert (report.counts, report.ok, report.row_count, len(report.rows)) == ({"AE101": 1}, False, 0, 0)


@given(st.lists(st.lists(st.integers(0, 12), max_size=6), max_size=8))
def test_first_seen_is_a_dict_that_forgets_nothing(batches: list[list[int]]) -> None:
    seen, known, start = FirstSeen(), dict[int, int](), 0
    for batch in batches:
        rows = np.arange(start, start + len(batch))
        firsts, payloads = seen.add(np.array(batch, np.uint64), rows, rows.astype(np.uint32) * 10)
        for key, at, first, payload in zip(batch, rows.tolist(), firsts.tolist(), payloads.tolist(), strict=True):
            assert first == known.get(key, -1)
            assert payload == 10 * known.setdefault(key, at)
        start += len(batch)


def test_the_same_verdict_from_every_kind_of_input(every_input: Callable[[list[dict[str, Any]]], Any]) -> None:
    rows = [
        row(request_id="a", expected_response="x"),
        row(request_id="a", expected_response="y"),
        row(request_id="b", request={"query": "Hi"}, expected_response="z"),
        contexts("/Volumes/a", "dbfs:/Volumes/a"),
        row(retrieved_context=["a.md"], expected_respones="w"),
    ]
    report = validate_eval_set(every_input(rows))
    assert report.counts == {"AE102": 1, "AE402": 1, "AE901": 1, "AE902": 2, "AE903": 1}
    assert codes(report) == [(1, "AE901"), (1, "AE902"), (2, "AE902"), (4, "AE402"), (None, "AE102"), (None, "AE903")]


@pytest.mark.parametrize(("validity", "counts"), [(b"\x01", {"AE306": 1}), (b"\x00", {})], ids=["content", "null"])
def test_bytes_that_arrow_keeps_behind_a_null_are_no_content(validity: bytes, counts: dict[str, int]) -> None:
    size = len(LONG.encode())
    buffers = [pa.py_buffer(validity), pa.py_buffer(np.array([0, size], np.int32)), pa.py_buffer(LONG.encode())]
    content = pa.Array.from_buffers(pa.string(), 1, buffers)
    documents = pa.StructArray.from_arrays([pa.array(["a.md"]), content], names=["doc_uri", "content"])
    contexts = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), documents)
    columns = {"request": ["Hi"], "response": ["Hello"], "expected_response": [LONG], "retrieved_context": contexts}
    report = validate_eval_set(pa.table(columns), ignore=["AE904"])
    assert report.counts == counts


# ---------------------------------------------------------------------------------------------------------------------
# what is counted, and what is kept


def built(data: Any, values: bool = True, **options: Any) -> ReportBuilder:
    """The builder of all batches of an input, not yet finished."""
    source = open_source(data)
    plan = make_plan(source.read_as(select=JUDGED, show_values=values))
    builder = ReportBuilder(source, plan, **options)
    for batch in source.batches():
        builder.add(check_batch(batch, plan))
    return builder


BAD = [
    row(request="", expected_response=" ", request_id="a"),
    row(),
    row(request=" ", response="", request_id="b"),
    row(expected_response=" "),
    row(response="", request_id="b"),
]
CODES = [(0, "AE202"), (0, "AE305"), (2, "AE202"), (2, "AE221"), (3, "AE305"), (4, "AE221"), (4, "AE901")]


@pytest.mark.usefixtures("_batches")
def test_issues_are_kept_by_their_rows() -> None:
    builder = built(BAD)
    assert [(i.row, i.code) for i in builder.take_issues()] == CODES
    for row in range(len(BAD)):
        assert [(i.row, i.code) for i in builder.issues_of({row})] == [found for found in CODES if found[0] == row]
    assert [(i.row, i.code) for i in builder.issues_of({4, 0})] == [found for found in CODES if found[0] in (0, 4)]
    assert builder.holds_all_issues
    builder.forget_issues()
    assert (builder.take_issues(), builder.issues_of({0})) == ([], [])
    assert builder.counts == {"AE202": 2, "AE305": 2, "AE221": 2, "AE901": 1}


def test_a_builder_knows_whether_it_holds_all_issues() -> None:
    assert built([row()], keep=0).holds_all_issues, "there are none"
    assert [(n, built(BAD, keep=n).holds_all_issues) for n in (1, 6, 7, 8)] == [
        *((1, False), (6, False), (7, False), (8, True))
    ]
    assert len(built(BAD, keep=0).take_issues()) == 0


def test_the_issues_of_a_batch_are_kept_together() -> None:
    first, more = built(BAD[:1], keep=1), built(BAD[:1], keep=3)
    assert [len(builder.take_issues()) for builder in (first, more)] == [2, 2]
    assert (first.holds_all_issues, more.holds_all_issues) == (False, True)


def test_a_message_begins_with_the_file_of_its_row() -> None:
    plain = open_source([row(response=""), row(), row(response="")])

    def begins(given: source.Source, **options: Any) -> list[str]:
        return [issue.message.partition("expected")[0] for issue in built(given, **options).take_issues()]

    of_rows = replace(plain, file_of=lambda at: "b.jsonl" if at == 2 else None, files=("of its texts",))
    of_texts = replace(plain, files=("a.yaml", "b.yaml"))  # may contain the name of an evaluation
    assert [begins(made) for made in (plain, of_rows, of_texts)] == [["", ""], ["", "b.jsonl: "], ["a.yaml: ", ""]]
    assert [begins(made, values=False) for made in (of_rows, of_texts)] == [["", "b.jsonl: "], ["", ""]]


@pytest.mark.usefixtures("_batches")
def test_rules_that_compare_rows_list_the_rows_and_those_of_the_dataset_themselves() -> None:
    others = [row(request=n, response=n, expected_response=n, request_id=n) for n in "no"]
    builder = built(
        [*others, *(row(request_id=i, response=t, expected_response=t) for i, t in ("ax", "ay", "az", "bx"))]
    )
    builder.finish()
    builder.finish()
    assert sorted(zip(builder.compared_rows, builder.compared_codes, strict=True)) == [
        *((3, "AE901"), (3, "AE902"), (4, "AE901"), (4, "AE902"))
    ]
    assert {i.message for i in builder.take_issues() if i.row is not None} == {
        *("'a' is already the ID of row 2", "row 2 has the same request and a different ground truth")
    }
    assert [(i.code, i.row) for i in builder.overall] == [("AE904", None)]


@pytest.mark.usefixtures("_batches")
def test_codes_of_one_row_are_counted_together() -> None:
    assert built(BAD).together == {("AE202", "AE305"): 1, ("AE202", "AE221"): 1, ("AE221", "AE901"): 1}


@pytest.mark.usefixtures("_batches")
def test_each_code_has_its_rows_and_its_messages() -> None:
    found = built(BAD).occurrences
    rows = {"AE202": [0, 2], "AE305": [0, 3], "AE221": [2, 4], "AE901": [4]}
    assert {code: o.first_rows for code, o in found.items()} == rows
    assert {code: o.rows for code, o in found.items()} == {code: len(found) for code, found in rows.items()}
    assert found["AE901"].kinds == {("request_id", "'b' is already the ID of row 2", REPEATED_REQUEST_ID.hint): 1}
    (kind,) = found["AE305"].kinds
    assert (kind.path, kind.hint) == ("expected_response", BLANK_EXPECTATION.hint)
    misspelled = built([row(request={"mesages": []})])
    ((code, (example,)),) = misspelled.examples.items()
    assert [kind.hint for kind in misspelled.occurrences[code].kinds] == [example.hint]
    assert example.hint.startswith("Did you mean `messages`?")


@pytest.mark.usefixtures("_batches")
def test_a_report_shows_the_first_20_examples_of_a_code() -> None:
    report = validate_eval_set([row(response="")] * 30)
    assert [issue.row for issue in summary_of(report).examples["AE221"]] == list(range(20))
    assert report.counts == {"AE221": 30}


@pytest.mark.usefixtures("_batches")
def test_figures_are_counted_where_there_are_any() -> None:
    builder = built([row(), row(latency_seconds=1.5, total_token_count=7), row(latency_seconds=2)])
    counts = {name: found.count for name, found in builder.distributions.items() if found.count}
    lengths = {"request_length": 3, "response_length": 3}
    assert counts == {**lengths, "latency_seconds": 2, "total_token_count": 1}
    assert dict(builder.derived) == {}, "no column has a value from a trace"


@pytest.mark.usefixtures("_batches")
def test_what_traces_provide_and_answers_that_repeat_are_counted() -> None:
    trace = {"info": {"trace_id": "t", "request_time": "2026-01-01T00:00:00Z", "execution_duration_ms": 5}}
    traced = {"trace": {**trace, "data": {"spans": SPANS}}}
    builder = built([traced, row(), row(trace=traced["trace"]), row(), row(response="Ho")])
    assert builder.derived == {"request_id": 2, "request": 1, "response": 1, "latency_seconds": 2}
    found = frequent_answers(builder.answers, ({"response": text} for text in ["a", "b"]))
    assert found == [FrequentAnswer("b", 3, 5), FrequentAnswer("a", 2, 5)]


def test_without_a_batch_there_are_no_rows() -> None:
    source = open_source([row()])
    builder = ReportBuilder(source, make_plan(source.read_as(outputs="provided", select=JUDGED)))
    assert (len(builder.masks), len(builder.valid), builder.usable_masks) == (0, 0, {})


SPANS = [{"name": "a", "span_id": "1", "attributes": {"mlflow.spanInputs": '"Hi"', "mlflow.spanOutputs": '"Ho"'}}]


def test_a_misspelled_column_is_reported_once() -> None:
    """Where rows lack what it means they have an issue each, with the hint; else it has one of its own."""
    trace = {"info": {"trace_id": "t"}, "data": {"spans": SPANS}}
    assert validate_eval_set([{"reqest": "Hi", "response": "Ho"}]).counts == {"AE201": 1}
    assert validate_eval_set([{"request": "Hi", "respnse": "Ho"}], outputs="provided").counts == {"AE223": 1}
    assert "AE102" in validate_eval_set([{"reqest": "Hi", "trace": trace}]).counts
    assert "AE102" in validate_eval_set([{"request": "Hi", "respnse": "Ho", "trace": trace}], outputs="provided").counts


@pytest.mark.usefixtures("_batches")
def test_a_misspelled_column_has_the_rows_with_a_value() -> None:
    builder = built([row(expected_respons="a"), row(), row(expected_respons="b")])
    builder.finish()
    assert builder.occurrences["AE102"].rows == 2
