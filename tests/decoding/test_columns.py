"""The columns of databricks.md: what a cell may hold, what is said of other cells, and what counts as absent."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from agent_eval_schema import EvalSetError, eval_set_from_traces, normalize_eval_set, validate_eval_set
from agent_eval_schema.formats.opening import open_source

ROW = {"request": "Hi", "response": "Hello"}
DOC = {"doc_uri": "a.md", "content": "text"}
CALL = {"tool_name": "f", "tool_input": {"x": 1}}

ACCEPTED = [
    ("response", "Hello", "Hello"),
    ("response", '{"answer": 42}', '{"answer": 42}'),
    ("expected_response", "x", "x"),
    ("expected_facts", ["a", "b"], ["a", "b"]),
    ("expected_facts", [], []),
    ("guidelines", ["a"], {"guidelines": ["a"]}),
    ("guidelines", {"tone": ["a"], "form": ["b", "c"]}, {"tone": ["a"], "form": ["b", "c"]}),
    ("expected_retrieved_context", [{"doc_uri": "a.md"}], [{"doc_uri": "a.md", "content": None}]),
    ("retrieved_context", [DOC, DOC], [DOC, DOC]),
    ("retrieved_context", [], []),
    ("retrieved_context", [{"doc_uri": "a.md", "content": None}], [{"doc_uri": "a.md", "content": None}]),
    ("predicted_trajectory", [CALL], [CALL]),
    ("reference_trajectory", [{"tool_name": "f"}], [{"tool_name": "f", "tool_input": {}}]),
    ("custom_expected", {"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}),
    ("tags", {"team": "search"}, {"team": "search"}),
    ("total_token_count", 12, 12),
    ("latency_seconds", 0.25, 0.25),
    ("failure", True, True),
    ("error", "boom", "boom"),
    ("session_id", "s-1", "s-1"),
    ("request_id", "r-1", "r-1"),
]


@pytest.mark.parametrize(("column", "cell", "normal"), ACCEPTED, ids=[f"{c}-{i}" for i, (c, *_) in enumerate(ACCEPTED)])
def test_what_a_cell_may_hold(
    column: str, cell: Any, normal: Any, every_input: Callable[[list[dict[str, Any]]], Any]
) -> None:
    report = validate_eval_set(every_input([{**ROW, column: cell}]))
    assert report.ok, report.to_text()
    assert report.rows[column][0] == normal


REFUSED = [
    ("response", 42, ["AE220"]),
    ("response", {"foo": 1}, ["AE220"]),
    ("response", {"choices": [{"message": {"role": "assistant", "content": None}}]}, ["AE220"]),
    ("expected_response", 3, ["AE302"]),
    ("expected_response", ["a"], ["AE302"]),
    ("expected_facts", "a fact", ["AE303"]),
    ("expected_facts", ["a", 3, None], ["AE303", "AE303"]),
    ("expected_facts", ["a", ""], ["AE303"]),
    ("guidelines", "be polite", ["AE304"]),
    ("guidelines", {"tone": "polite"}, ["AE304"]),
    ("guidelines", [1], ["AE304"]),
    ("custom_expected", ["a"], ["AE307"]),
    ("retrieved_context", ["a.md"], ["AE402"]),
    ("retrieved_context", [["a.md"]], ["AE402"]),
    ("retrieved_context", DOC, ["AE401"]),
    ("retrieved_context", "a.md", ["AE401"]),
    ("retrieved_context", 7, ["AE401"]),
    ("retrieved_context", [None, DOC], ["AE402"]),
    ("retrieved_context", [{"content": "x"}], ["AE403"]),
    ("retrieved_context", [{"doc_uri": None}], ["AE404"]),
    ("retrieved_context", [{"doc_uri": 17}], ["AE404"]),
    ("retrieved_context", [{"doc_uri": "  "}], ["AE404"]),
    ("retrieved_context", [{"doc_uri": "a", "content": 5}], ["AE405"]),
    ("retrieved_context", [{"doc_url": "a"}], ["AE403"]),
    ("retrieved_context", [{"doc_uri": 1, "content": 2}, "x", {"doc_uri": ""}], ["AE404", "AE405", "AE402", "AE404"]),
    ("expected_retrieved_context", ["a.md"], ["AE402"]),
    ("predicted_trajectory", CALL, ["AE501"]),
    ("predicted_trajectory", ["f"], ["AE501"]),
    ("predicted_trajectory", [CALL, {"tool_input": {}}], ["AE502"]),
    ("predicted_trajectory", [{"tool_name": 3}], ["AE502"]),
    ("predicted_trajectory", [{"tool_name": "f", "tool_input": "{"}], ["AE503"]),
    ("predicted_trajectory", [{"name": "f"}], ["AE502"]),
    ("total_token_count", "many", ["AE107"]),
    ("total_token_count", 1.5, ["AE107"]),
    ("latency_seconds", "fast", ["AE107"]),
    ("failure", "perhaps", ["AE107"]),
    ("tags", ["a"], ["AE107"]),
    ("session_id", ["a"], ["AE107"]),
]


@pytest.mark.parametrize(("column", "cell", "codes"), REFUSED, ids=[f"{c}-{i}" for i, (c, *_) in enumerate(REFUSED)])
def test_what_a_cell_may_not_hold(column: str, cell: Any, codes: list[str]) -> None:
    report = validate_eval_set([{**ROW, column: cell}, ROW])
    errors = report.issues[report.issues["severity"] == "error"]
    assert list(errors["code"]) == codes
    assert set(errors["row"]) == {0}
    assert set(errors["column"]) == {column}
    assert all(path.startswith(column) for path in errors["path"])


@pytest.mark.parametrize("key", ["page_content", "text"])
def test_an_unknown_key_of_a_document_is_a_warning_and_the_document_is_kept(key: str) -> None:
    report = validate_eval_set([{**ROW, "retrieved_context": [{"doc_uri": "a", key: "x"}]}])
    assert report.counts == {"AE406": 1}
    assert report.issues["hint"][0] == "Did you mean `content`?"
    assert report.rows["retrieved_context"][0] == [{"doc_uri": "a", "content": None, key: "x"}]


@pytest.mark.parametrize(
    "cell",
    ['[{"doc_uri": "a.md", "content": "text"}]', np.array([DOC], dtype=object), (DOC,)],
    ids=["text", "numpy", "tuple"],
)
def test_lists_may_be_json_text_or_arrays(cell: Any) -> None:
    report = validate_eval_set([{**ROW, "retrieved_context": cell}])
    assert (report.counts, report.rows["retrieved_context"][0]) == ({}, [DOC])


@pytest.mark.parametrize("absent", [None, float("nan"), pd.NA, pd.NaT, np.float64("nan"), np.datetime64("NaT", "ns")])
@pytest.mark.parametrize("column", ["expected_response", "retrieved_context", "trace", "request_id", "guidelines"])
def test_every_way_to_say_absent_is_absent(absent: Any, column: str) -> None:
    frame = pd.DataFrame({"request": ["Hi"], "response": ["Hello"], column: pd.Series([absent], dtype="object")})
    for data in (frame, [{**ROW, column: absent}]):
        report = validate_eval_set(data)
        assert report.counts == {}
        assert report.rows[column][0] is None


def test_arrow_lists_of_structs_are_read_and_judged_like_json() -> None:
    kind = pa.list_(pa.struct([("doc_uri", pa.string()), ("content", pa.string())]))
    cells = [[DOC], None, [], [{"doc_uri": None, "content": "x"}], [{"doc_uri": " ", "content": None}]]
    table = pa.table({"request": ["q"] * 5, "response": ["a"] * 5, "retrieved_context": pa.array(cells, kind)})
    report = validate_eval_set(table)
    assert list(zip(report.issues["row"], report.issues["code"], strict=True)) == [(3, "AE404"), (4, "AE404")]
    assert list(report.rows["retrieved_context"])[:3] == [[DOC], None, []]
    assert list(validate_eval_set(table.slice(1, 2)).rows["retrieved_context"]) == [None, []]


# modes


def test_with_outputs_provided_each_row_needs_a_response_or_a_trace() -> None:
    report = validate_eval_set([ROW, {"request": "Hi"}])
    assert (report.outputs, report.counts) == ("provided", {"AE223": 1})


def test_without_any_output_the_app_will_be_run() -> None:
    report = validate_eval_set([{"request": "Hi"}, {"request": "Ho", "response": None}])
    assert (report.outputs, report.counts) == ("generated", {})


def test_outputs_that_the_app_will_produce_are_ignored_with_a_warning() -> None:
    report = validate_eval_set([{**ROW, "retrieved_context": [DOC]}], outputs="generated")
    assert list(zip(report.issues["code"], report.issues["column"], strict=True)) == [
        ("AE105", "response"),
        ("AE105", "retrieved_context"),
    ]


def test_response_and_facts_are_an_error_unless_the_facts_are_empty() -> None:
    both = {**ROW, "expected_response": "a", "expected_facts": ["b"]}
    assert validate_eval_set([both]).counts == {"AE301": 1}
    report = validate_eval_set([{**both, "expected_facts": []}])
    assert (report.ok, report.counts) == (True, {"AE305": 1})


@pytest.mark.parametrize(
    ("column", "code", "noun"),
    [
        ("expected_retrieved_context", "AE407", "document"),
        ("predicted_trajectory", "AE505", "call"),
        ("reference_trajectory", "AE505", "call"),
    ],
)
def test_a_list_without_what_is_compared_is_reported(column: str, code: str, noun: str) -> None:
    issues = validate_eval_set([{**ROW, column: []}]).issues[["code", "column", "message"]]
    assert issues.to_numpy().tolist() == [[code, column, f"expected at least one {noun}, got an empty list"]]


@pytest.mark.parametrize(("column", "noun"), [("expected_facts", "fact"), ("guidelines", "guideline")])
@pytest.mark.parametrize("in_mlflow", [False, True])
def test_ground_truth_that_is_an_empty_list_is_reported(column: str, noun: str, in_mlflow: bool) -> None:
    row = {"inputs": {"question": "Hi"}, "outputs": "Hello", "expectations": {column: []}}
    report = validate_eval_set([row if in_mlflow else {**ROW, column: []}])
    path = f"expectations.{column}" if in_mlflow else column
    assert report.issues[["code", "path", "message"]].to_numpy().tolist() == [
        ["AE305", path, f"expected at least one {noun}, got an empty list"]
    ]
    assert report.rows[column][0] is not None


PLACEHOLDERS = ["NA", "N/A", "NaN", "nan", "None", "null", "NULL", "<NA>"]


@pytest.mark.parametrize("word", PLACEHOLDERS)
@pytest.mark.parametrize("names", [("request", "response"), ("inputs", "outputs"), ("user_input", "response")])
def test_a_placeholder_for_null_in_a_csv_file_is_reported(word: str, names: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"{names[0]},{names[1]}\n{word},Hello\nHi,{word}\nHi,Hello\n")
    issues = validate_eval_set(path, select=["AE115"]).issues
    assert issues[["row", "column"]].to_numpy().tolist() == [[0, names[0]], [1, names[1]]]
    assert f"got the text '{word}'" in issues["message"][0]
    assert pd.read_csv(path).isna().to_numpy().sum() == 2  # pandas agrees


@pytest.mark.parametrize("word", PLACEHOLDERS)
def test_elsewhere_an_answer_may_be_the_word_none(word: str, every_input: Callable[[list[Any]], Any]) -> None:
    data = every_input([{"request": word, "response": "Hello"}, {"request": "Hi", "response": word}])
    report = validate_eval_set(data)
    is_never_an_answer = word in ("NaN", "nan", "<NA>") or str(data).endswith(".csv")
    assert report.issues["column"].tolist() == ["request", *(["response"] if is_never_an_answer else [])]
    assert set(report.counts) == {"AE115"}


# column names


def test_a_misspelled_column_is_one_warning_with_the_suggestion() -> None:
    frame = pd.DataFrame({**{k: [v] * 3 for k, v in ROW.items()}, "expected_respones": ["a"] * 3})
    report = validate_eval_set(frame)
    assert report.counts == {"AE102": 1}
    assert report.issues["hint"][0].startswith("Did you mean `expected_response`?")
    assert report.issues["row"].isna().all()


def test_a_misspelled_request_absorbs_into_the_rows_that_lack_it() -> None:
    report = validate_eval_set([{"requst": "Hi", "response": "Hello"}])
    assert report.counts == {"AE201": 1}
    assert report.issues["hint"][0] == "Did you mean `request`? Rename the column `requst`."


@pytest.mark.parametrize("name", ["request_time", "status_code", "served_entity", "source"])
def test_columns_that_our_own_builds_write_are_known(name: str) -> None:
    assert validate_eval_set([{**ROW, name: "x"}]).counts == {}


@pytest.mark.parametrize("name", ["trace_id", "latency", "text", "id", "question"])
def test_ordinary_names_are_unknown_not_misspelled(name: str) -> None:
    report = validate_eval_set([{**ROW, name: "x"}])
    assert report.counts == {"AE103": 1}


def test_ground_truth_under_another_name_is_a_warning() -> None:
    assert validate_eval_set([{**ROW, "reference": "x"}]).counts == {"AE119": 1}


def test_unknown_columns_are_carried_along_unchanged() -> None:
    when = pd.Timestamp("2026-01-02", tz="UTC")
    frame = pd.DataFrame(
        {**{k: [v] for k, v in ROW.items()}, "when": [when], "score": [np.float32(0.5)], "any": [{"a": {1}}]}
    )
    rows = validate_eval_set(frame).rows
    assert (rows["when"].dtype, rows["score"].dtype) == (frame["when"].dtype, frame["score"].dtype)
    assert rows["any"][0] == {"a": {1}}


def test_a_frame_with_two_columns_of_a_name_is_an_error_of_the_data_set() -> None:
    frame = pd.DataFrame([["Hi", "Hello", "again"]], columns=["request", "response", "response"])
    report = validate_eval_set(frame)
    assert (report.counts, report.ok, report.rows["response"][0]) == ({"AE104": 1}, False, "Hello")


def test_numbers_as_ids_are_taken_as_text_with_a_warning() -> None:
    report = validate_eval_set(pd.DataFrame({"request_id": [1, 2], "request": ["a", "b"], "response": ["c", "d"]}))
    assert (report.counts, list(report.rows["request_id"])) == ({"AE106": 2}, ["1", "2"])


# ---------------------------------------------------------------------------------------------------------------------
# a table that is one object, a list a column


BY_COLUMNS = {"prompt": ["a", "b"], "reference_trajectory": [[CALL, CALL], None], "note": [1, None]}


@pytest.mark.parametrize("table", [BY_COLUMNS, {n: dict(enumerate(c)) for n, c in BY_COLUMNS.items()}])
def test_a_table_by_columns(tmp_path: Path, table: Any) -> None:
    path = tmp_path / "eval_dataset.json"
    path.write_text(json.dumps(table))  # which writes the numbers of rows as text, as pandas does
    for data in (json.loads(path.read_text()), path):
        report = validate_eval_set(data, outputs="generated")
        assert report.format == "vertex"
        assert report.rows["reference_trajectory"].tolist() == [[CALL, CALL], None]
        assert report.rows["note"].tolist() == [1, None]


@pytest.mark.parametrize(
    "row",
    [
        {"predicted_trajectory": [CALL, CALL], "reference_trajectory": [CALL, CALL]},
        {"prompt": "a", "reference_trajectory": [CALL]},
        {"prompt": ["a", "b"], "note": [1]},
    ],
)
def test_one_row_is_no_table_by_columns(tmp_path: Path, row: Any) -> None:
    path = tmp_path / "row.json"
    path.write_text(json.dumps(row))
    assert validate_eval_set(path).row_count == 1


def test_columns_keep_the_order_in_which_they_come_up() -> None:
    rows = [{"prompt": "a", "z": 1, "b": 2}, {"prompt": "b", "a": 3, "z": 4}]
    assert open_source(rows).take(np.ones(2, bool)) == rows
    assert next(open_source(rows).batches()).schema.names == ["prompt", "z", "b", "a"]


# ---------------------------------------------------------------------------------------------------------------------
# logs of calls


LOGGED = {"databricks_request_id": "1", "request": "{}", "response": "{}"}


def test_a_payload_table_says_what_it_is(samples: Path) -> None:
    path = samples / "inference_table.jsonl"
    report = validate_eval_set(path)
    [said] = report.issues.query("code == 'AE111'").to_dict("records")
    assert said["message"].startswith("expected an evaluation dataset, got an inference table of the AI Gateway")
    assert f"`agent-eval-schema from-inference-table {path} rows.jsonl`" in said["hint"]
    assert report.issues.query("code == 'AE103'")["column"].tolist() == ["sampling_fraction"]
    assert "requester" not in report.to_text()  # which is no misspelled request


@pytest.mark.parametrize(
    ("row", "is_log"),
    [
        ({**LOGGED, "timestamp_ms": 1}, True),
        ({**LOGGED, "request_raw": "{}"}, True),
        ({"request": "{}", "response": "{}", "invocation_id": "1", "event_time": "2026-11-16"}, True),
        ({"request_id": "1", "text_assessment": {}, "retrieval_assessment": {}}, True),
        ({"trace_id": "tr-1", "spans": [], "state": "OK", "request": "{}", "response": "{}"}, True),
        ({"trace_id": "tr-1", "spans": [], "state": "OK", "request": "{}", "trace": None}, False),
        ({"request": "Hi", "response": "Hello", "event_time": "2026-11-16"}, False),
        ({**LOGGED, "timestamp_ms": 1, "expected_response": "Hello"}, False),
        ({**LOGGED}, False),
        ({"request_id": "1", "request": "Hi", "response": "Hello", "trace": None, "status": "OK"}, False),
    ],
)
def test_which_tables_are_logs(row: dict[str, Any], is_log: bool) -> None:
    assert (validate_eval_set([row]).counts.get("AE111", 0) == 1) is is_log


def test_a_log_that_is_taken_for_traces() -> None:
    with pytest.raises(EvalSetError, match="an archived view of traces"):
        eval_set_from_traces(pd.DataFrame([{"trace_id": "tr-1", "spans": [], "state": "OK", "request": "{}"}]))


def test_a_log_can_be_checked_without_a_word(samples: Path) -> None:
    report = validate_eval_set(samples / "inference_table.jsonl", ignore="AE111")
    assert "AE111" not in report.counts
    assert report.counts["AE103"] == 8


# hints that are safe to follow


@pytest.mark.parametrize("ids", [[1.0, None, 3.0], [1, 2, 3], [7, "a", None], pd.array([1, None, 3], dtype="Int64")])
def test_following_the_hint_for_ids_gives_the_ids_that_were_read(ids: Any) -> None:
    df = pd.DataFrame({"request_id": ids, "request": "Hi", "response": "Hello"})
    before = validate_eval_set(df)
    assert set(before.counts) == {"AE106"}
    exec(before.issues["hint"][0].split("`")[1])  # as a reader would
    after = validate_eval_set(df)
    assert after.counts == {}
    assert list(after.rows["request_id"]) == list(before.rows["request_id"])


METADATA = [
    ({"page_content": "t", "metadata": {"source": "hr/leave.pdf"}, "id": "6f1e"}, "source"),
    ({"page_content": "t", "metadata": {"doc_uri": "a", "chunk_id": "1"}, "id": "6f1e"}, "doc_uri"),
    ({"id": None, "metadata": {"url": "https://x.example/a"}, "page_content": "t", "type": "Document"}, "url"),
]


@pytest.mark.parametrize(("document", "key"), METADATA)
def test_a_document_with_its_uri_in_the_metadata_is_not_to_be_known_by_its_id(document: Any, key: str) -> None:
    rows = [{**ROW, "retrieved_context": [DOC, document]}]
    issues = validate_eval_set(rows, select=["AE403"]).issues
    assert issues[["path", "message"]].to_numpy().tolist() == [
        ["retrieved_context[1]", f"`doc_uri` is missing, but metadata has `{key}`"]
    ]
    assert issues["hint"][0].startswith(f"Set `doc_uri` to `metadata.{key}`;")
    fixed = normalize_eval_set(rows, fix=True)[0]["retrieved_context"][1]
    assert fixed["doc_uri"] == document["metadata"][key]


def test_an_id_is_the_uri_if_there_is_nothing_else() -> None:
    hint = validate_eval_set([{**ROW, "retrieved_context": [{"id": "a.md", "content": "t"}]}]).issues["hint"][0]
    assert hint == "Did you mean `doc_uri`? Rename `id`."


@pytest.mark.parametrize("column", ["retrieved_context", "reference_trajectory", "custom_expected"])
def test_the_text_that_python_writes_is_named_and_not_called_cut_off(column: str, tmp_path: Path) -> None:
    cells = {
        "retrieved_context": [DOC],
        "reference_trajectory": [CALL],
        "custom_expected": {"a": None},
    }
    path = tmp_path / "rows.csv"
    pd.DataFrame([{**ROW, column: cells[column]}, {**ROW, column: str(cells[column])[:-1]}]).to_csv(path, index=False)
    issues = validate_eval_set(path).issues
    assert issues["code"].tolist() == ["AE002", "AE002"]
    assert issues["message"][0].startswith("expected JSON, got the text that Python writes of a")
    assert [("truncated" in hint, "--fix" in hint) for hint in issues["hint"]] == [(False, True), (True, False)]
    assert len(normalize_eval_set(path, fix=True, on_invalid="drop")) == 1


@pytest.mark.parametrize("cell", [r"['\ud800']", r"{'\ud800': 1}", r"[['a', '\udfff']]"])
def test_a_text_of_python_with_half_of_a_character_is_no_list(cell: str) -> None:
    report = validate_eval_set([{**ROW, "expected_facts": cell}])
    assert report.counts == {"AE002": 1}
    assert len(normalize_eval_set(report, fix=True, on_invalid="drop")) == 0


@pytest.mark.parametrize("texts", [["paid", "it's sent"], ["3"], ["a, b", '"']], ids=str)
def test_the_list_that_python_writes_is_read_with_a_warning(texts: list[str], tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    pd.DataFrame([{**ROW, "expected_facts": texts}, {**ROW, "request": "Bye", "expected_facts": None}]).to_csv(
        path, index=False
    )
    report = validate_eval_set(path)
    assert (report.ok, report.counts.get("AE182")) == (True, 1)
    assert [row["expected_facts"] for row in normalize_eval_set(path).to_dict("records")] == [texts, None]
    assert [row["expected_facts"] for row in report.iter_rows()] == [texts, None]
    fixed = validate_eval_set(normalize_eval_set(path, fix=True))
    assert (fixed.ok, "AE182" in fixed.counts) == (True, False)


def test_a_list_that_is_cut_off_or_of_numbers_is_an_error_as_in_json() -> None:
    rows = [{**ROW, "expected_facts": text} for text in ("['paid', 'se", "[1, 2]", "['a', 2]")]
    report = validate_eval_set(rows)
    assert report.invalid_count == 3
    assert (report.counts["AE002"], report.counts["AE182"]) == (1, 1)


@pytest.mark.parametrize(
    ("cell", "value"),
    [(True, True), (False, False), ("true", True), (" TRUE ", True), ("False", False), ("false", False)],
)
def test_a_flag_as_pandas_and_spreadsheets_write_it(cell: Any, value: bool) -> None:
    report = validate_eval_set([{"request": "Hi", "response": "Hello", "failure": cell}])
    assert report.ok
    assert report.rows["failure"].tolist() == [value]


@pytest.mark.parametrize("cell", ["yes", "", "1", 1, 0.0])
def test_a_flag_that_is_none(cell: Any) -> None:
    report = validate_eval_set([{"request": "Hi", "response": "Hello", "failure": cell}])
    assert [i.code for i in report.iter_issues() if i.column == "failure"] == ["AE107"]
