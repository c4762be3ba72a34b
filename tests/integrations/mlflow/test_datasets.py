"""Evaluation sets in datasets of the real mlflow: what is written comes back, what would collapse is told before."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_eval_schema import (
    EvalSetError,
    convert_eval_set,
    from_mlflow_dataset,
    normalize_eval_set,
    to_mlflow_dataset,
    validate_eval_set,
)
from agent_eval_schema.integrations.mlflow.datasets import UnreadableRecordWarning
from agent_eval_schema.integrations.mlflow.records import (
    TAG_PREFIX,
    Collapsed,
    Updated,
    key_of,
    read_records,
    to_records,
)
from agent_eval_schema.schema import COLUMNS
from tests.conftest import SAMPLES
from tests.render.report.test_html import ALLOWED, Tags

mlflow = pytest.importorskip("mlflow")
NEW_ENOUGH = tuple(map(int, mlflow.__version__.split(".")[:2])) >= (3, 5)

pytestmark = [
    pytest.mark.usefixtures("tracking_store"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # mlflow uses parts of SQLAlchemy that will be removed
]
needs_datasets = pytest.mark.skipif(not NEW_ENOUGH, reason="datasets need mlflow 3.5")

Row = dict[str, Any]


def canonical(data: Any) -> list[Row]:
    """The canonical rows without what is absent, and without traces, which a dataset does not keep."""
    rows = normalize_eval_set(data, outputs="generated")
    return dicts(rows if isinstance(rows, pd.DataFrame) else pd.DataFrame({c: [r[c] for r in rows] for c in rows[0]}))


def dicts(frame: pd.DataFrame) -> list[Row]:
    columns = {c: frame[c].astype(object) for c in COLUMNS if c != "trace"}
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    return [{k: v for k, v in r.items() if not (v is None or v is pd.NA or v != v)} for r in rows]


def stored(name: str) -> list[Row]:
    return dicts(from_mlflow_dataset(name))


def records_in(name: str) -> list[Any]:
    """What mlflow itself says is in the dataset."""
    [dataset] = mlflow.MlflowClient().search_datasets(filter_string=f"name = '{name}'")
    return list(dataset.records)


FULL: Row = {
    "request_id": "r-1",
    "request": {"messages": [{"role": "user", "content": "Wie spät ist es? ⏰"}]},
    "response": '{"looks": "like JSON"}',
    "expected_facts": ["It is noon.", "Es ist Mittag."],
    "guidelines": {"tone": ["Be polite."], "language": ["Answer in German.", "No slang."]},
    "expected_retrieved_context": [{"doc_uri": "clock.md", "content": "noon"}, {"doc_uri": "sun.md"}],
    "retrieved_context": [{"doc_uri": "clock.md", "content": None}],
    "predicted_trajectory": [{"tool_name": "clock", "tool_input": {"zone": "CET"}}],
    "reference_trajectory": [
        {"tool_name": "clock", "tool_input": {"zone": "CET", "at": [1, None]}},
        {"tool_name": "b"},
    ],
    "input_token_count": 12,
    "total_token_count": 2**62,
    "latency_seconds": 0.25,
    "failure": False,
    "error": "",
    "session_id": "s-1",
    "custom_expected": {"difficulty": 3, "nested": {"a": [None, {"b": 1.0}]}, "huge": 2**70},
    "tags": {"team": "ops", "empty": ""},
}


# ---------------------------------------------------------------------------------------------------------------------
# what goes in comes out


@needs_datasets
def test_a_full_row_comes_back_as_it_was() -> None:
    written = to_mlflow_dataset([FULL], "full")

    assert (written.rows_in, written.written) == (1, 1)
    assert (written.collapsed, written.updated, written.excluded, written.not_kept) == ((), (), (), {})
    assert stored("full") == canonical([FULL])


@needs_datasets
def test_what_a_record_holds_is_what_the_scorers_read() -> None:
    to_mlflow_dataset([FULL], "scorers")

    [record] = records_in("scorers")

    assert record.inputs == FULL["request"]
    assert record.outputs == FULL["response"]
    assert record.expectations == {
        "expected_facts": FULL["expected_facts"],
        "guidelines": ["Be polite.", "Answer in German.", "No slang."],
        "expected_retrieved_context": FULL["expected_retrieved_context"],
        "expected_tool_calls": [
            {"name": "clock", "arguments": {"zone": "CET", "at": [1, None]}},
            {"name": "b", "arguments": {}},
        ],
        **FULL["custom_expected"],
    }
    assert record.tags["team"] == "ops"
    assert record.tags[f"{TAG_PREFIX}request_id"] == '"r-1"'


@needs_datasets
@pytest.mark.parametrize(
    "cells",
    [
        {"expected_facts": []},
        {"expected_facts": np.array(["a", "b"], dtype=object)},
        {"expected_response": "line\nbreak \u2028 \x00 end"},
        {"guidelines": ["plain"]},
        {"guidelines": []},
        {"guidelines": {}},
        {"guidelines": {"guidelines": ["a"], "other": []}},
        {"expected_retrieved_context": []},
        {"reference_trajectory": []},
        {"custom_expected": {}},
        {"custom_expected": {"a": None}},
        {"custom_expected": {"guidelines": "not a list", "expected_response": 7, "expected_tool_calls": []}},
        {"custom_expected": {"a": np.int64(3), "b": np.array([1.5])}},
        {"tags": {}},
        {"tags": {"mlflow.user": "mine", f"{TAG_PREFIX}request_id": "mine too"}},
        {"tags": {"none": None}},
        {"response": ""},
        {"response": '"quoted"'},
        {"request": {"messages": [{"role": "user", "content": [{"type": "text", "text": "é"}], "n": 2**65}]}},
        {"request": {"query": "q", "history": [{"role": "user", "content": "a"}]}},
        {"session_id": "s", "source": {"source_type": "trace", "source_data": {"trace_id": "tr-1"}}},
    ],
    ids=lambda c: str(c)[:50],
)
def test_awkward_cells_come_back(cells: Row) -> None:
    data = pd.DataFrame([{"request": "q", **cells}])
    name = key_of(str(cells))

    to_mlflow_dataset(data, name)

    assert stored(name) == canonical(data)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
named = st.sampled_from(["expected_response", "expected_facts", "expected_tool_calls", "reference_trajectory", "x"])
said = st.text(st.characters(exclude_categories=["Cs", "Z", "C"]), min_size=1, max_size=8)
calls = st.fixed_dictionaries({"tool_name": said, "tool_input": st.dictionaries(texts, plain, max_size=2)})
expected = st.fixed_dictionaries(
    {},
    optional={
        "response": texts,
        "expected_response": said,
        "guidelines": st.lists(said, max_size=2) | st.dictionaries(said, st.lists(said, max_size=2), max_size=2),
        "expected_retrieved_context": st.lists(st.fixed_dictionaries({"doc_uri": said, "content": texts}), max_size=2),
        "reference_trajectory": st.lists(calls, max_size=2),
        "custom_expected": st.dictionaries(named | texts, plain, max_size=3),
        "tags": st.dictionaries(said, texts, max_size=3),
        "session_id": said,
        "latency_seconds": st.floats(0, 1e6),
    },
)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.lists(expected, min_size=1, max_size=4))
def test_any_rows_come_back(given_rows: list[Row]) -> None:
    """Through JSON, as a database keeps it; the real one is above."""
    rows = [{"request": f"q {n}", **r} for n, r in enumerate(given_rows)]
    wanted = [{c: r[c] for c in COLUMNS} for r in _canonical_dicts(rows)]

    records = json.loads(json.dumps(to_records(wanted), allow_nan=False))
    for record in records:
        record["tags"]["mlflow.user"] = "added"

    for row, (read, issue) in zip(wanted, read_records(records), strict=True):
        assert {c: read[c] for c in COLUMNS if c != "trace"} == {c: row[c] for c in COLUMNS if c != "trace"}
        assert issue is None


def _canonical_dicts(rows: list[Row]) -> list[Row]:
    from agent_eval_schema import validate_eval_set

    return list(validate_eval_set(rows, outputs="generated").iter_rows())


@needs_datasets
def test_rows_come_back_in_the_order_in_which_they_were_written() -> None:
    to_mlflow_dataset([{"request": f"q {n}"} for n in range(40)], "order")
    to_mlflow_dataset([{"request": "one more"}], "order")

    assert [r["request"]["messages"][0]["content"] for r in stored("order")] == [
        *(f"q {n}" for n in range(40)),
        "one more",
    ]


@needs_datasets
def test_what_somebody_edits_in_mlflow_wins() -> None:
    to_mlflow_dataset([FULL], "edited")
    edit = {"inputs": FULL["request"], "expectations": {"guidelines": ["Be brief."]}, "tags": {"team": "dev"}}
    mlflow.genai.datasets.get_dataset(dataset_id=records_in("edited")[0].dataset_id).merge_records([edit])

    [row] = stored("edited")

    assert row["guidelines"] == {"guidelines": ["Be brief."]}
    assert row["tags"] == {"team": "dev", "empty": ""}
    assert row["expected_facts"] == FULL["expected_facts"]


# ---------------------------------------------------------------------------------------------------------------------
# sources


TRACE = {
    "info": {"trace_id": "tr-7", "state": "OK", "trace_metadata": {"mlflow.trace.session": "s-7"}},
    "data": {
        "spans": [
            {
                "name": "agent",
                "span_id": "1",
                "attributes": {"mlflow.spanInputs": '"Hi"', "mlflow.spanOutputs": '"Hello"'},
            }
        ]
    },
}


@needs_datasets
def test_a_trace_is_the_source_and_is_told_not_to_be_kept() -> None:
    written = to_mlflow_dataset([{"trace": TRACE, "expected_response": "Hello"}], "traced")

    [row] = from_mlflow_dataset("traced").to_dict("records")

    assert written.not_kept == {"trace": 1}
    assert row["source"] == {"source_type": "TRACE", "source_data": {"trace_id": "tr-7", "session_id": "s-7"}}
    assert (row["request_id"], row["response"], row["session_id"]) == ("tr-7", "Hello", "s-7")
    assert records_in("traced")[0].source_id == "tr-7"


@needs_datasets
def test_a_dataset_read_and_written_again_keeps_its_sources() -> None:
    sources = [
        {"source_type": "DOCUMENT", "source_data": {"doc_uri": "a.md", "page": 3}},
        {"source_type": "CODE", "source_data": {}},
        {"source_type": "HUMAN", "source_data": {"source_id": "h-1"}},
    ]
    first = to_mlflow_dataset([{"request": f"q {n}", "source": s} for n, s in enumerate(sources)], "sources")
    again = to_mlflow_dataset(from_mlflow_dataset(first.dataset), "sources again")

    assert again.not_kept == {}
    assert from_mlflow_dataset("sources again")["source"].tolist() == sources


@needs_datasets
def test_columns_without_a_place_are_told() -> None:
    rows = [{"request": "a", "note": "x", "source": "a wiki"}, {"request": "b", "note": None}]
    assert to_mlflow_dataset(rows, "told").not_kept == {"note": 1, "source": 1}


# ---------------------------------------------------------------------------------------------------------------------
# equal requests

TWICE = [
    {"request": "a", "request_id": "1", "expected_response": "x", "custom_expected": {"k": 1, "l": 1}},
    {"request": "b", "request_id": "2"},
    {"request": {"messages": [{"content": "a", "role": "user"}]}, "request_id": "3", "expected_facts": ["y"]},
    {"request": "a", "request_id": "4", "response": "z", "custom_expected": {"k": 2}},
]


@needs_datasets
def test_rows_that_would_collapse_are_told_before_anything_is_written() -> None:
    with pytest.raises(EvalSetError) as told:
        to_mlflow_dataset(TWICE, "refused")

    message = str(told.value)
    assert "per distinct request: row 0 (1) as row 3 (another request_id, expected_response, " in message
    assert "row 2 (3) as row 3 (another request_id)" in message
    assert "\n" not in message
    with pytest.raises(EvalSetError, match="has no dataset 'refused'"):
        from_mlflow_dataset("refused")


@needs_datasets
@pytest.mark.parametrize(
    ("on_duplicate", "kept", "collapsed"),
    [
        (
            "first",
            {"request_id": "1", "expected_response": "x", "custom_expected": {"k": 1, "l": 1}},
            [
                Collapsed(2, "3", 0, ("request_id", "expected_facts")),
                Collapsed(3, "4", 0, ("request_id", "response", "custom_expected")),
            ],
        ),
        (
            "last",
            {"request_id": "4", "response": "z", "custom_expected": {"k": 2}},
            [
                Collapsed(0, "1", 3, ("request_id", "expected_response", "custom_expected")),
                Collapsed(2, "3", 3, ("request_id", "expected_facts")),
            ],
        ),
        (
            "merge",
            {"request_id": "4", "response": "z", "expected_facts": ["y"], "custom_expected": {"k": 2, "l": 1}},
            [
                Collapsed(0, "1", 3, ("request_id", "expected_response", "custom_expected")),
                Collapsed(2, "3", 3, ("request_id",)),
            ],
        ),
    ],
)
def test_which_row_stays(on_duplicate: Any, kept: Row, collapsed: list[Collapsed]) -> None:
    name = f"stays {on_duplicate}"

    written = to_mlflow_dataset(TWICE, name, on_duplicate=on_duplicate)

    assert list(written.collapsed) == collapsed
    assert (written.rows_in, written.written) == (4, 2)
    [row] = [r for r in stored(name) if r["request"]["messages"][0]["content"] == "a"]
    assert {k: v for k, v in row.items() if k != "request"} == kept


@needs_datasets
def test_the_same_set_twice_changes_nothing() -> None:
    to_mlflow_dataset([FULL, {"request": "other"}], "same")
    before = stored("same")

    written = to_mlflow_dataset([FULL, {"request": "other"}], "same")

    assert written.written == 2
    assert [u.lost for u in written.updated] == [(), ()]
    assert stored("same") == before


@needs_datasets
def test_a_record_that_is_there_is_not_overwritten_unasked() -> None:
    old = {"request": "a", "expected_response": "old", "tags": {"t": "1"}}
    new = {"request": "a", "expected_response": "new", "tags": {"u": "2"}}
    to_mlflow_dataset([old], "there")
    [record] = records_in("there")

    with pytest.raises(
        EvalSetError, match=rf"row 0 as the stored record {record.dataset_record_id} \(another expected"
    ):
        to_mlflow_dataset([new, {"request": "b"}], "there")
    assert stored("there") == canonical([old])

    first = to_mlflow_dataset([new, {"request": "b"}], "there", on_duplicate="first")
    assert first.collapsed == (Collapsed(0, None, record.dataset_record_id, ("expected_response", "tags")),)
    assert (first.written, first.updated) == (1, ())
    assert stored("there") == canonical([old, {"request": "b"}])

    last = to_mlflow_dataset([new], "there", on_duplicate="last")
    assert last.updated == (Updated(0, record.dataset_record_id, ("expected_response",)),)
    assert stored("there") == canonical([{**new, "tags": {"t": "1", "u": "2"}}, {"request": "b"}])


@needs_datasets
def test_a_record_that_is_there_may_be_added_to() -> None:
    to_mlflow_dataset([{"request": "a", "guidelines": {"g": ["x"]}}], "added")

    written = to_mlflow_dataset([{"request": "a", "expected_response": "b"}], "added")

    assert [u.lost for u in written.updated] == [()]
    assert stored("added") == canonical([{"request": "a", "expected_response": "b", "guidelines": {"g": ["x"]}}])


@needs_datasets
def test_the_key_is_that_of_mlflow() -> None:
    """Were it another one, the two rows would collapse unseen, or be refused without need."""
    equal = [{"role": "user", "content": "ü", "n": 1}, {"content": "ü", "n": 1, "role": "user"}]
    inputs = [{"messages": [m]} for m in (*equal, {**equal[0], "n": 1.0})]
    dataset = mlflow.genai.datasets.create_dataset(name="key", experiment_id=["0"])
    dataset.merge_records([{"inputs": i} for i in inputs])

    assert len(records_in("key")) == len({key_of(i) for i in inputs}) == 2


# ---------------------------------------------------------------------------------------------------------------------
# bad rows, bad records, bad stores


@needs_datasets
def test_rows_in_are_written_collapsed_or_excluded() -> None:
    rows: list[Row] = [
        {"request": "good"},
        {"request": None, "request_id": "bad"},
        {"request": "infinite", "latency_seconds": float("inf"), "tags": 7},
        {"request": "good", "expected_facts": ["x"]},
    ]

    written = to_mlflow_dataset(rows, "sums", on_duplicate="merge")

    assert (written.rows_in, written.written, len(written.collapsed), len(written.excluded)) == (4, 1, 1, 2)
    assert [(s.row, s.request_id) for s in written.excluded] == [(1, "bad"), (2, None)]
    assert written.excluded[0].reasons[0].startswith("AE2")
    assert [reason[:5] for reason in written.excluded[1].reasons] == ["AE003", "AE107"]
    assert repr(written) == (
        "<WrittenDataset 'sums': 4 rows in, 1 written (0 into records that were there), 1 collapsed, 2 excluded>"
    )


@needs_datasets
def test_a_notebook_shows_what_was_written_and_what_was_not() -> None:
    text = "<script>alert(1)</script> \u202e"
    rows: list[Row] = [
        {"request": "good", "team": "a"},
        {"request": None, "request_id": text, "response": "x"},
        {"request": "good", "expected_facts": ["x"]},
    ]
    shown = to_mlflow_dataset(rows, "shown", on_duplicate="merge")._repr_html_()
    tags = Tags(shown)
    assert tags.open == []
    assert {tag for tag, _ in tags.seen} <= ALLOWED - {"script"}
    assert "1 of 3 rows written" in shown
    for term, value in (("Dataset", "shown"), ("Updated records", 0), ("Rows that share a record", 1), ("Excluded", 1)):
        assert f"<dt>{term}</dt><dd>{value}</dd>" in shown
    assert "AE201" in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert "\u202e" not in shown


@needs_datasets
@pytest.mark.parametrize("rows", [[], [{"request": None, "response": "x"}]])
def test_nothing_to_write(rows: list[Row]) -> None:
    with pytest.raises(EvalSetError, match="no row to write"):
        to_mlflow_dataset(rows, "nothing")


@needs_datasets
def test_conversations_of_ces_are_not_written_as_rows() -> None:
    with pytest.raises(EvalSetError, match="expected evaluation rows, got Evaluation JSON of Google CES"):
        to_mlflow_dataset(SAMPLES / "evaluation.json", "conversations", on_duplicate="first")
    with pytest.raises(EvalSetError, match="has no dataset 'conversations'"):
        from_mlflow_dataset("conversations")


@needs_datasets
def test_records_that_others_wrote() -> None:
    dataset = mlflow.genai.datasets.create_dataset(name="others", experiment_id=["0"])
    given = {
        "inputs": {"question": "What?"},
        "outputs": {"choices": [{"message": {"role": "assistant", "content": "That."}}]},
        "expectations": {"expected_facts": "only text", "score": 0.5},
    }
    dataset.merge_records(
        [
            {
                **given,
                "tags": {"n": 1},
                "source": {"source_type": "HUMAN", "source_data": {}},
            },
        ]
    )

    with pytest.warns(UnreadableRecordWarning, match="1 of 1 records could not be read whole; dr-.*: expected a list"):
        [row] = stored("others")

    assert row == {
        "request": {"messages": [{"role": "user", "content": "What?"}]},
        "response": "That.",
        "custom_expected": {"score": 0.5, "expected_facts": "only text"},
        "tags": {"n": "1"},
        **given,
    }


@needs_datasets
def test_an_empty_dataset_has_the_columns() -> None:
    mlflow.genai.datasets.create_dataset(name="empty", experiment_id=["0"])
    frame = from_mlflow_dataset("empty")
    assert (len(frame), frame.columns.tolist()) == (0, [*COLUMNS, "source"])


@needs_datasets
def test_by_name_by_id_or_itself(tracking_store: str) -> None:
    written = to_mlflow_dataset([{"request": "a"}], 'say "a"', experiment="Default")
    id = written.dataset.dataset_id

    assert len(from_mlflow_dataset('say "a"')) == len(from_mlflow_dataset(id)) == 1
    assert len(from_mlflow_dataset(written.dataset, tracking_uri=tracking_store)) == 1
    assert written.dataset.experiment_ids == ["0"]
    assert len(from_mlflow_dataset(to_mlflow_dataset([{"request": "b"}], id).dataset)) == 2


@needs_datasets
def test_a_close_name_of_a_dataset_is_suggested() -> None:
    to_mlflow_dataset([{"request": "a"}], "help desk questions")
    with pytest.raises(EvalSetError, match="has no dataset 'helpdesk questions': did you mean 'help desk questions'"):
        from_mlflow_dataset("helpdesk questions")


@needs_datasets
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: from_mlflow_dataset("nowhere"), "has no dataset 'nowhere'"),
        (lambda: from_mlflow_dataset("d-" + "0" * 32), "rejected the operation: .*not found"),
        (lambda: from_mlflow_dataset(7), "expected a dataset, its name or its id, got the number 7"),
        (lambda: from_mlflow_dataset("'both\""), "both kinds of quotes"),
        (
            lambda: to_mlflow_dataset([{"request": "a"}], "x", on_duplicate="any"),
            "on_duplicate: expected one of raise, first",
        ),
        (lambda: to_mlflow_dataset([{"request": "a"}], "x", experiment="no such"), "has no experiment 'no such'"),
        (
            lambda: to_mlflow_dataset([{"request": "a"}], "x", tracking_uri="./runs"),
            "is a file store, which does not support",
        ),
        (lambda: from_mlflow_dataset("x", tracking_uri="file:///runs"), "is a file store, which does not support"),
        (lambda: from_mlflow_dataset("x", tracking_uri="sqlite:////no/such.db"), "tracking store .* not found"),
    ],
)
def test_what_cannot_be_done(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(EvalSetError, match=message) as told:
        call()
    assert "\n" not in str(told.value)


@needs_datasets
def test_two_datasets_of_one_name() -> None:
    for _ in range(2):
        mlflow.genai.datasets.create_dataset(name="twins", experiment_id=["0"])
    with pytest.raises(EvalSetError, match="2 datasets have the name 'twins': give the id of one"):
        to_mlflow_dataset([{"request": "a"}], "twins")


@needs_datasets
def test_a_dataset_that_cannot_be_filled_is_not_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ConnectionResetError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(mlflow.genai.datasets.EvaluationDataset, "merge_records", fail)
        with pytest.raises(EvalSetError, match="cannot be reached: gone"):
            to_mlflow_dataset([{"request": "a"}], "half")
    with pytest.raises(EvalSetError, match="has no dataset"):
        from_mlflow_dataset("half")


@needs_datasets
def test_another_store_than_the_one_that_mlflow_is_set_to(tmp_path: Any, tracking_store: str) -> None:
    uri = f"sqlite:///{tmp_path}/other.db"

    to_mlflow_dataset([{"request": "elsewhere"}], "elsewhere", tracking_uri=uri)

    assert len(from_mlflow_dataset("elsewhere", tracking_uri=uri)) == 1
    assert mlflow.get_tracking_uri() == tracking_store
    with pytest.raises(EvalSetError, match="has no dataset 'elsewhere'"):
        from_mlflow_dataset("elsewhere")


@pytest.mark.skipif(NEW_ENOUGH, reason="mlflow is new enough for datasets")
def test_an_mlflow_that_has_no_datasets() -> None:
    with pytest.raises(EvalSetError, match=r"^this needs mlflow 3\.5 or newer, got 3\.[34]"):
        to_mlflow_dataset([{"request": "a"}], "x")


@needs_datasets
@needs_datasets
def test_what_a_dataset_writes_is_valid_and_it_takes_what_we_convert(tmp_path: Path) -> None:
    from mlflow.genai.datasets import create_dataset

    rows = [
        {"inputs": {"question": "Hi"}, "expectations": {"expected_response": "Hello"}, "tags": {"team": "a"}},
        {"inputs": {"messages": [{"role": "user", "content": "Who?"}]}, "expectations": {"expected_facts": ["Ann"]}},
    ]
    theirs = create_dataset(name="written by mlflow").merge_records(rows).to_df()
    path = tmp_path / "records.jsonl"
    theirs.to_json(path, orient="records", lines=True)
    for data in (theirs, str(path)):
        report = validate_eval_set(data)
        assert (report.format, report.ok) == ("mlflow", True), report.to_text()
        # its own tag mlflow.user, and {} for outputs that are not there
        assert set(report.counts) <= {"AE112", "AE224"}, report.counts
    made = convert_eval_set(str(path), "mlflow")
    again = create_dataset(name="written by us").merge_records(
        [{k: row[k] for k in ("inputs", "expectations", "tags") if k in row} for row in made.data.to_dict("records")]
    )
    assert sorted(map(str, again.to_df()["inputs"])) == sorted(map(str, theirs["inputs"]))
    assert sorted(map(str, again.to_df()["expectations"])) == sorted(map(str, theirs["expectations"]))


@needs_datasets
def test_a_dataset_is_an_input_of_every_function() -> None:
    dataset = mlflow.genai.datasets.create_dataset(name="argument", experiment_id=["0"])
    dataset.merge_records([{"inputs": {"question": "How many days?"}, "expectations": {"expected_response": "12"}}])
    report = validate_eval_set(dataset)
    assert (report.format, report.ok, report.row_count) == ("mlflow", True, 1)
    assert isinstance(report.valid, pd.DataFrame)


@needs_datasets
def test_outputs_of_every_type_are_in_one_dataset() -> None:
    outputs = ["text", {"answer": "a", "docs": [1]}, 5, {"other": True}, [1, {"a": 2}], False]
    rows = [{"inputs": {"q": i}, "outputs": o} for i, o in enumerate(outputs)]
    written = to_mlflow_dataset(rows, "every type")
    assert written.written == len(rows)
    assert [row.get("outputs", row["response"]) for row in stored("every type")] == outputs
    to_mlflow_dataset(rows[:1], "strings")
    with pytest.raises(EvalSetError, match=r"^MLflow cannot add outputs that are objects .*: use a new dataset$"):
        to_mlflow_dataset(rows, "strings")
    assert [row["response"] for row in stored("strings")] == ["text"]


@pytest.mark.usefixtures("tracking_store")
@needs_datasets
def test_a_frame_of_a_dataset_has_no_answer_where_its_records_have_none() -> None:
    """`to_df` has an empty object where a record has no outputs, and a tag of MLflow's own on every record."""
    from mlflow.genai.datasets import create_dataset

    dataset = create_dataset(name="asked", experiment_id="0")
    question = {"question": "How many days?"}
    dataset.merge_records([{"inputs": question, "expectations": {"expected_response": "12"}, "tags": {"team": "hr"}}])
    frame = dataset.to_df()
    assert (frame["outputs"][0], "mlflow.user" in frame["tags"][0]) == ({}, True)
    for data in (frame, dataset, frame.to_dict("records")):
        report = validate_eval_set(data)
        assert (report.format, report.outputs, report.counts) == ("mlflow", "generated", {})
        (row,) = report.iter_rows()
        assert (row["response"], row["outputs"], row["tags"]) == (None, None, {"team": "hr"})
    dataset.merge_records([{"inputs": {"question": "Who?"}, "outputs": "Ann."}])
    assert validate_eval_set(dataset.to_df()).outputs == "provided"


ASKED, CASE = {"inputs": {"question": "Hi"}}, {"inputs": {"goal": "Book a day"}}
REFUSED: list[tuple[list[Row], str]] = [
    ([ASKED, CASE, {"inputs": {"question": "Ho"}}], "1 test case of a simulated user beside 2 other rows"),
    ([ASKED, {"inputs": {"goal": "Book a day", "question": "When?"}}], "rows 1: expected `goal` beside keys of a test"),
]


@needs_datasets
@pytest.mark.parametrize(("rows", "message"), REFUSED)
def test_rows_that_mlflow_rejects_together_are_named_before_it_is_called(rows: list[Row], message: str) -> None:
    with pytest.raises(EvalSetError, match=message):
        to_mlflow_dataset(rows, "of two kinds")
    assert mlflow.MlflowClient().search_datasets(filter_string="name = 'of two kinds'") == []
    dataset = mlflow.genai.datasets.create_dataset(name="rejected by mlflow", experiment_id="0")
    with pytest.raises(mlflow.exceptions.MlflowException, match=r"granularity|cannot mix"):
        dataset.merge_records(rows)


@needs_datasets
@pytest.mark.parametrize(("first", "second"), [(ASKED, CASE), (CASE, ASKED)])
def test_rows_of_another_kind_than_the_records_are_an_error(first: Row, second: Row) -> None:
    to_mlflow_dataset([first], name := f"of {'cases' if first is CASE else 'questions'}")
    with pytest.raises(EvalSetError, match="as in the dataset, got"):
        to_mlflow_dataset([second], name)
    assert to_mlflow_dataset([first], name).written == 1


@needs_datasets
@pytest.mark.parametrize("export", ["to_dict", "mlflow-export-import"])
def test_an_exported_dataset_is_read(export: str, tmp_path: Path) -> None:
    rows = [
        {"inputs": {"question": "How many days?"}, "expectations": {"expected_response": "12 days"}},
        {"inputs": {"goal": "Book a day", "persona": "In a hurry"}},
    ]
    for number, row in enumerate(rows):
        name = f"exported {export} {number}"
        to_mlflow_dataset([row], name)
        [dataset] = mlflow.MlflowClient().search_datasets(filter_string=f"name = '{name}'")
        document = dataset.to_dict()
        if export != "to_dict":
            document = {"system": {"package_version": "1"}, "mlflow": {"evaluation_dataset": document}}
        path = tmp_path / "evaluation_dataset.json"
        path.write_text(json.dumps(document))
        report = validate_eval_set(str(path))
        assert (report.format, [issue.code for issue in report.iter_issues()]) == ("mlflow", [])
        assert [{k: v for k, v in r.items() if k != "tags"} for r in canonical(str(path))] == canonical([row])
