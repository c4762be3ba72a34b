"""inputs, outputs and expectations: what the source has, where the other columns contain less."""

from pathlib import Path
from typing import Any

import hypothesis
import pyarrow.parquet as pq
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from agent_eval_schema import (
    convert_eval_set,
    diff_eval_sets,
    normalize_eval_set,
    prepare_for_evaluate,
    validate_eval_set,
)
from tests.conftest import as_arrow

ORIGINALS = ("inputs", "outputs", "expectations")
CHAT = {"messages": [{"role": "user", "content": "Hi"}]}


def originals(row: dict[str, Any]) -> dict[str, Any]:
    """The originals that the normalized row has."""
    (found,) = validate_eval_set([row], outputs="generated").iter_rows()
    return {name: found[name] for name in ORIGINALS if found[name] is not None}


@pytest.mark.parametrize(
    "row",
    [
        {"inputs": CHAT, "outputs": "Hello"},
        {"inputs": CHAT, "outputs": "42"},
        {"inputs": CHAT, "outputs": None, "expectations": {"expected_response": "Hello"}},
        {"inputs": CHAT, "expectations": {"expected_facts": ["a", "b"], "mine": {"a": 1}}},
        {"inputs": CHAT, "expectations": {"guidelines": ["Be brief."], "expected_response": None}},
        {"inputs": CHAT, "expectations": {"expected_tool_calls": [{"name": "f", "arguments": {"a": 1}}]}},
        {"request": "Hi", "response": "Hello"},
        {"request": CHAT, "response": "Hello"},
        {"request": {"query": "Hi", "history": [{"role": "assistant", "content": "Yes?"}]}, "response": "Hello"},
    ],
    ids=str,
)
def test_an_original_is_null_where_the_other_columns_contain_all_of_it(row: dict[str, Any]) -> None:
    assert originals(row) == {}


@pytest.mark.parametrize(
    "row",
    [
        {"inputs": {"question": "Hi", "k": 3}},
        {"inputs": {"question": "Hi"}},
        {"inputs": {"query": "Hi", "history": []}},
        {"inputs": {**CHAT, "temperature": 0.2}},
        {"inputs": {**CHAT, "temperature": None}},
        {"inputs": CHAT, "outputs": {"answer": "a", "confidence": 0.9}},
        {"inputs": CHAT, "outputs": 42},
        {"inputs": CHAT, "outputs": True},
        {"inputs": CHAT, "outputs": [1, 2]},
        {"inputs": CHAT, "outputs": {}},
        {"inputs": CHAT, "expectations": {"expected_response": 42}},
        {"inputs": CHAT, "expectations": {"expected_tool_calls": [{"name": "f"}]}},
        {"inputs": CHAT, "expectations": {"guidelines": {"tone": ["Be brief."]}}},
    ],
    ids=str,
)
def test_an_original_that_says_more_is_kept(row: dict[str, Any]) -> None:
    assert originals(row) == {name: value for name, value in row.items() if value != CHAT}


def test_a_request_with_other_keys_and_a_response_that_is_a_chat_object_are_kept() -> None:
    answer = {"choices": [{"message": {"role": "assistant", "content": "Hello"}}], "usage": {"total_tokens": 3}}
    row = {"request": {**CHAT, "temperature": 0.2}, "response": answer}
    assert originals(row) == {"inputs": row["request"], "outputs": answer}
    assert convert_eval_set([row], "databricks").data.to_dict("records") == [row]


def test_text_that_is_not_json_is_the_same_beside_text_and_beside_objects() -> None:
    """Beside an object, the cells of a file are JSON: there the text is a JSON string."""
    row = {"request": "Hi", "response": "Hello", "inputs": "{not JSON"}
    other = {**row, "inputs": {"k": 3}}
    (alone,) = validate_eval_set([row], format="databricks").iter_rows()
    beside, _ = validate_eval_set([row, other], format="databricks").iter_rows()
    assert alone["inputs"] == beside["inputs"] == "{not JSON"


def test_the_text_null_in_a_file_of_text_is_no_original(tmp_path: Path) -> None:
    (path := tmp_path / "rows.csv").write_text(
        "request,response,inputs,outputs,expectations\nHi,Hello,null,null,null\n"
    )
    validate_eval_set(path, format="databricks").write(tmp_path / "rows.parquet")
    assert pq.read_table(tmp_path / "rows.parquet", columns=list(ORIGINALS)).to_pylist() == [dict.fromkeys(ORIGINALS)]


def test_unknown_keys_of_documents_and_calls_stay_with_them(tmp_path: Path) -> None:
    row = {
        "request": "Hi",
        "response": "Hello",
        "retrieved_context": [{"doc_uri": "a", "content": "b", "score": 0.5}, {"doc_uri": "c", "content": None}],
        "predicted_trajectory": [{"tool_name": "f", "tool_input": {"a": 1}, "id": "7"}],
    }
    report = validate_eval_set([row])
    for again in (report.rows, normalize_eval_set(as_arrow([row], tmp_path)), list(report.iter_rows())):
        (found,) = validate_eval_set(again, format="databricks").iter_rows()
        assert found["retrieved_context"] == row["retrieved_context"]
        assert found["predicted_trajectory"] == row["predicted_trajectory"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(min_size=1, max_size=3), inner, max_size=2),
    max_leaves=4,
)
ROWS = st.fixed_dictionaries(
    {"inputs": st.dictionaries(st.sampled_from(["question", "k", "topic"]), JSON, min_size=1).filter(any)},
    optional={"outputs": JSON, "expectations": st.dictionaries(st.sampled_from(["expected_response", "mine"]), JSON)},
)


def given(row: dict[str, Any]) -> dict[str, Any]:
    """The originals in a row; absent is null."""
    found = {**row, "expectations": {k: v for k, v in (row.get("expectations") or {}).items() if v is not None} or None}
    return {name: found[name] for name in ORIGINALS if found.get(name) is not None}


@settings(max_examples=60)
@hypothesis.given(st.lists(ROWS, min_size=1, max_size=4))
def test_a_valid_mlflow_row_comes_out_of_every_verb_as_it_came(rows: list[dict[str, Any]]) -> None:
    report = validate_eval_set(rows, format="mlflow", outputs="generated")
    kept = [row for row, valid in zip(rows, report.valid_mask, strict=True) if valid]
    conversion = convert_eval_set(rows, format="mlflow", to="mlflow")
    assert list(map(given, conversion.data.to_dict("records"))) == list(map(given, kept))
    assert set(conversion.losses["code"]) == ({"AE814"} if len(kept) < len(rows) else set())
    answered = [row for row in kept if row.get("outputs") is not None]
    if answered:
        frame = prepare_for_evaluate(answered, format="mlflow")
        assert list(map(given, frame.to_dict("records"))) == list(map(given, answered))
    once = list(validate_eval_set(kept, format="mlflow", outputs="generated").iter_rows())
    assert list(validate_eval_set(once, format="databricks", outputs="generated").iter_rows()) == once


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"inputs": {"question": "Hi", "k": 3}}, {"inputs": {"question": "Hi", "k": 4}}),
        (
            {"inputs": CHAT, "outputs": {"answer": "a", "confidence": 0.9}},
            {"inputs": CHAT, "outputs": {"answer": "a", "confidence": 0.1}},
        ),
        ({"inputs": CHAT, "outputs": True}, {"inputs": CHAT, "outputs": "true"}),
        ({"request": {**CHAT, "temperature": 0}}, {"request": {**CHAT, "temperature": 1}}),
    ],
    ids=str,
)
def test_rows_are_the_same_only_if_their_originals_are(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert diff_eval_sets([one], [one]).same
    assert not diff_eval_sets([one], [other]).same


@pytest.mark.parametrize(("k", "codes"), [(3, {"AE902"}), (4, set())])
def test_rows_that_ask_with_other_arguments_do_not_contradict(k: int, codes: set[str]) -> None:
    rows = [
        {"inputs": {"question": "Hi", "k": 3}, "expectations": {"expected_response": "a"}},
        {"inputs": {"question": "Hi", "k": k}, "expectations": {"expected_response": "b"}},
    ]
    assert set(validate_eval_set(rows).counts) == codes


def test_a_number_as_ground_truth_is_accepted_and_kept() -> None:
    row = {"inputs": {"question": "6 * 7?"}, "outputs": 42, "expectations": {"expected_response": 42}}
    report = validate_eval_set([row])
    assert set(report.counts) == {"AE224", "AE309"}
    (found,) = report.iter_rows()
    assert (found["response"], found["expected_response"]) == ("42", "42")
    assert (found["outputs"], found["expectations"]) == (42, {"expected_response": 42})
