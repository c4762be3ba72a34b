"""What does not come through a conversion is named, and what comes through keeps its meaning."""

import datetime
import decimal
import json
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema import convert_eval_set, validate_eval_set
from agent_eval_schema.conversion import losses as module
from agent_eval_schema.conversion.losses import (
    PRESENCE,
    REPORTED,
    Lists,
    Losses,
    _difference,
    _missing,
    _shape,
    first_alike,
)
from agent_eval_schema.conversion.work import plan_of
from agent_eval_schema.formats.format import POSITION, Written
from agent_eval_schema.formats.names import TARGETS
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.metrics.catalog import SUPPORT_FIELDS
from agent_eval_schema.rule import Severity
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.validation.checked_batch import COLUMNS_OF_FIELD
from agent_eval_schema.validation.kernel import check_batch
from tests.conftest import DATA, ROOT
from tests.helpers.traces import span, trace

Row = dict[str, Any]
ROW = {"request": "Hi", "response": "Hello"}


def losses(rows: list[Row] | Path, target: str, source: str = "auto") -> list[tuple[str, str]]:
    found = convert_eval_set(rows, format=source, to=target).losses
    return sorted(zip(found["code"], found["path"], strict=True))


def test_a_second_column_of_a_name_is_a_loss(tmp_path: Path) -> None:
    (path := tmp_path / "rows.csv").write_text("request,response,response,note,note\nHi,Hello,Bye,a,b\n")
    assert losses(path, "mlflow") == [("AE813", "note"), ("AE813", "response"), ("AE817", "note")]


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("reference", "ragas"),
        ("reference", "vertex"),
        ("expected_output", "deepeval"),
        ("outputs_of_mine", "mlflow"),
        ("session", "mlflow"),
        ("metadata", "langsmith"),
        ("item", "openai"),
        ("prompt", "vertex"),
    ],
)
def test_a_column_that_is_passed_through_takes_no_place_in_the_target(name: str, target: str) -> None:
    row = {**ROW, name: "ticket #4711"}
    made = convert_eval_set([row], target)
    (written,) = made.data.to_dict("records")
    is_renamed = name != "outputs_of_mine"
    assert written[f"passed_through.{name}" if is_renamed else name] == "ticket #4711"
    dropped = [("AE817", f"passed_through.{name}" if is_renamed else name)] * (target != "vertex")
    found = [loss for loss in losses([row], target) if "response" not in loss]
    assert found == [*[("AE815", name)] * is_renamed, *dropped]
    (report,) = convert_eval_set(made.data, format=target, to="databricks").data.to_dict("records")
    assert report[name] == "ticket #4711"
    assert "expected_response" not in report


@pytest.mark.parametrize(
    ("row", "source", "target", "expected"),
    [
        (
            {"inputs": {"question": "a", "k": 3}, "dataset_id": "d"},
            "langsmith",
            "ragas",
            [("AE811", "inputs.k"), ("AE817", "dataset_id")],
        ),
        ({"inputs": {"question": "a", "k": 3}}, "mlflow", "deepeval", [("AE811", "inputs.k")]),
        (
            {"inputs": {"question": "a"}, "outputs": {"answer": "b", "n": 1}},
            "mlflow",
            "ragas",
            [("AE811", "outputs.n")],
        ),
        ({"inputs": {"question": "a"}, "outputs": 42}, "mlflow", "ragas", [("AE812", "outputs")]),
        (
            {"request": {"messages": [{"role": "user", "content": "a"}], "tools": [{"type": "x"}]}},
            "databricks",
            "ragas",
            [("AE811", "request.tools")],
        ),
        (
            {**ROW, "retrieved_context": [{"doc_uri": "a", "content": "b", "score": 0.5}]},
            "databricks",
            "ragas",
            [("AE812", "retrieved_context[0].score")],
        ),
        (
            {"prompt": "a", "predicted_trajectory": [{"tool_name": "f", "tool_input": {}, "id": 7}]},
            "vertex",
            "ragas",
            [("AE812", "predicted_trajectory[0].id")],
        ),
    ],
)
def test_a_path_of_the_source_that_the_target_cannot_hold_is_named(
    row: Row, source: str, target: str, expected: list[tuple[str, str]]
) -> None:
    assert losses([row], target, source) == expected


@pytest.mark.parametrize(
    "row",
    [
        {"request": {"messages": [{"role": "user", "content": "a"}], "temperature": 0.2, "tools": [{"type": "x"}]}},
        {**ROW, "response": {"choices": [{"message": {"role": "assistant", "content": "b"}}], "usage": {"n": 3}}},
        {**ROW, "retrieved_context": [{"doc_uri": "a", "content": "b", "score": 0.5}]},
        {**ROW, "predicted_trajectory": [{"tool_name": "f", "tool_input": {"a": 1}, "id": 7}]},
    ],
    ids=str,
)
def test_a_row_of_the_databricks_form_comes_through_as_it_came(row: Row) -> None:
    made = convert_eval_set([row], "databricks")
    request = {"messages": [{"role": "user", "content": "Hi"}]} if row["request"] == "Hi" else row["request"]
    assert made.data.to_dict("records") == [{**row, "request": request}]
    assert made.lossless


def test_of_a_trace_the_canonical_columns_are_compared() -> None:
    """No conversion writes a trace, so nothing of the source is compared."""
    reported = losses([trace(span(inputs={"question": "Hi"}, outputs="Hello"))], "ragas")
    assert reported == [("AE811", name) for name in ("failure", "inputs", "latency_seconds", "request_id", "trace")]


def test_a_trace_that_holds_a_session_says_nothing_of_the_run() -> None:
    """mlflow reads a session in a trace only; the trace made for it needs a state, times and an id."""
    row = {"request": "Hi", "response": "Hello", "session_id": "s"}
    made = convert_eval_set([row], "mlflow").data
    (back,) = validate_eval_set(made).iter_rows()
    assert {n: v for n, v in back.items() if v is not None} == {
        "request": {"messages": [{"role": "user", "content": "Hi"}]},
        "response": "Hello",
        "session_id": "s",
        "trace": back["trace"],
    }


@pytest.mark.parametrize("extra", [{"R": False, "r": 0}, {"a_b": 1, "ab": 2, "aB": 3}])
def test_keys_that_differ_in_spelling_only_are_different_keys(extra: dict[str, Any]) -> None:
    call = {"tool_name": "f", "tool_input": {"x": [extra]}}
    row = {"request": "Hi", "response": "Hello", "reference_trajectory": [call]}
    made = convert_eval_set([row], "vertex")
    assert made.losses["path"].tolist() == []
    assert validate_eval_set(made.data).rows["reference_trajectory"][0] == [call]
    for key in extra:
        given = {"keys": extra}
        back = {"keys": {k: v for k, v in extra.items() if k != key}}
        assert [found.path for found in _missing(0, (), given, back, Lists())] == [("keys", key)]


@pytest.mark.parametrize(
    "labels", [(1.0, 0.0), (1, 0), (1.5, 0.0), (30.0, 0.0), (0.5, 0.0), (12, -12), (2.0, -1.0), (1e300, 0.0)], ids=str
)
def test_rows_whose_numbers_are_read_differently_have_losses_of_their_own(labels: tuple[float, float]) -> None:
    """Azure's reader takes a document for relevant whose label is above 0: of the others nothing is read."""
    rows: list[Row] = [
        {
            "query": "Hi",
            "response": "Hello",
            "retrieval_ground_truth": [{"document_id": name, "query_relevance_label": label} for name in ("a", "b")],
        }
        for label in labels
    ]
    alone = sorted(loss for row in rows for loss in losses([row], "adk", "azure"))
    assert losses(rows, "adk", "azure") == losses(rows[::-1], "adk", "azure") == alone


def test_what_a_library_writes_by_default_is_no_loss() -> None:
    turn = {
        "invocation_id": "",
        "user_content": {"role": "user", "parts": [{"text": "Hi?"}]},
        "final_response": {"role": "model", "parts": [{"text": "Hello"}]},
        "intermediate_data": {"tool_uses": [], "tool_responses": [], "intermediate_responses": []},
        "creation_timestamp": 0.0,
        "app_details": {},
    }
    case = {"eval_id": "a", "conversation": [turn], "session_input": None, "creation_timestamp": 0.0, "rubrics": []}
    evalset = {"eval_set_id": "s", "name": "s", "eval_cases": [case], "creation_timestamp": 0.0}
    lost = convert_eval_set(evalset, "ragas").losses
    assert not {"creation_timestamp", "app_details", "rubrics"} & {
        str(path).rpartition(".")[2] for path in lost["path"]
    }
    assert not any("an empty" in message or "the number 0" in message for message in lost["message"])


def test_losses_of_ground_truth_come_first_and_a_field_has_one_line() -> None:
    row = {"request": "Hi?", "response": "Hello", "custom_expected": {"a": 1}, "guidelines": ["b"], "agent": "x"}
    rows = [{**row, "expected_retrieved_context": [{"doc_uri": "a"}], "latency_seconds": 1.5}] * 2
    text = convert_eval_set(rows, "adk").to_text()
    lines = [line.split()[0] for line in text.splitlines() if line.startswith("  ") and " 2 rows  AE" in line]
    truths = {"custom_expected", "expected_retrieved_context"}
    assert set(lines[: len(truths)]) == truths
    assert len(lines) == len(set(lines)) > len(truths)


def test_each_field_of_a_metric_has_the_columns_that_can_hold_it() -> None:
    """Else a conversion that loses it could not name what was lost."""
    assert set(SUPPORT_FIELDS) == set(COLUMNS_OF_FIELD)


OBJECTS = [('{"x": 1, "y": 2}', {"x": 1, "y": 3}), ({"x": 1, "y": 2}, '{"x":1,"y":3}')]


@pytest.mark.parametrize(("given", "came"), OBJECTS)
def test_of_an_object_that_comes_back_as_text_only_what_differs_is_missing(given: Any, came: Any) -> None:
    assert [(found.path, found.value, found.back) for found in _missing(0, ("a",), given, came, Lists())] == [
        (("a", "y"), 2, 3)
    ]


@pytest.mark.parametrize(
    ("value", "came", "message", "path"),
    [
        ("a", "b", "`a` would be read back as `b`", "tags"),
        ({"a": "1", "b": "2"}, {"a": "1", "b": "3"}, "`2` would be read back as `3`", "tags.b"),
        ({"a": "1", "b": "2"}, {"a": "1"}, "`2` would not be read back", "tags.b"),
        ({"a": "1"}, {"a": "1", "b": "2"}, "`2` would be read back besides", "tags.b"),
        *(
            (dict.fromkeys(keys, 1), dict.fromkeys(keys, 2), f"`1` would be read back as `2` ({more})", "tags.a")
            for keys, more in (
                ("ab", "and in 1 more place"),
                ("abc", "and in 2 more places"),
                ("abcdefgh", "and in 7 more places"),
            )
        ),
    ],
)
def test_a_difference_is_its_first_place_and_the_number_of_others(
    value: Any, came: Any, message: str, path: str
) -> None:
    assert _difference("tags", value, came) == (message, path)


@pytest.mark.parametrize("known", [True, False])
def test_an_error_that_the_target_reports_is_a_loss(known: bool) -> None:
    """A writer that writes what the rules of its format reject; an error of the source is reported there."""
    row = {**dict.fromkeys(COLUMNS), POSITION: 7, PRESENCE: 0, REPORTED: ["AE220"] if known else []}
    found = Losses("azure", plan_of(open_source([{"query": "Hi", "response": "Hello"}], format="azure"), "azure"))
    back = [{"query": "Hi", "response": {"unknown": 1}}]
    found.compare([row], Written(back, back, "azure", [0]))
    errors = [issue for issue in found.issues if issue.severity is Severity.ERROR]
    assert [(issue.row, issue.code) for issue in errors] == ([] if known else [(7, "AE220")])


DEMANDING: list[dict[str, Any]] = [
    {"request": "Hi", "reference_trajectory": [{"tool_name": "f", "tool_input": {"n": 2**60 + 1}}]},
    {
        "request": {"messages": [{"role": r, "content": r} for r in ("system", "user")]},
        "response": "",
        "tags": {"a": "b"},
    },
    {"request": "Hi", "response": "x", "retrieved_context": [{"doc_uri": "a"}], "expected_facts": ["b"]},
    {"request": "Hi", "expected_response": "a", "guidelines": {"tone": ["Be brief."]}, "request_id": "x"},
]
"""Rows with values of which some target demands something else."""


@pytest.mark.property
@pytest.mark.parametrize("target", sorted(set(TARGETS) - {"ces-csv"}))
def test_what_the_rules_of_the_target_report_of_its_rows_is_a_loss(target: Any) -> None:
    for row in DEMANDING:
        made = convert_eval_set([row], target)
        report = validate_eval_set(made.data, format=target, outputs="generated")
        serious = {i.code for i in report.issues.itertuples() if i.severity != "info"}
        assert serious <= {*validate_eval_set([row], outputs="generated").counts, *made.losses["code"]}


def test_the_shape_of_a_row_has_what_its_reading_may_depend_on() -> None:
    """Words, kinds of numbers and keys, in JSON text, too; not which text or moment is in a place."""

    def shape(value: Any) -> bytes:
        return _shape({"a": value})

    now = datetime.datetime(2026, 11, 28, tzinfo=datetime.timezone.utc)
    alike = [("The long text", "Another one"), (12, 99), ('{"a":12}', '{"a":99}'), (now, now.replace(day=1))]
    alike.append((decimal.Decimal("1.5"), decimal.Decimal("1.7")))
    assert all(shape(one) == shape(other) for one, other in alike)
    apart = [("user", "tool"), (1, 1.0), (1.0, 1.5), (7, 8), (-1, 1), (True, 1), (None, ""), ('{"a":1}', '{"a":1.0}')]
    apart += [({"k": "some text"}, {"l": "some text"}), ("The long text", "[ ] long text")]
    assert all(shape(one) != shape(other) for one, other in apart)
    assert shape(float("nan")) == shape(float("nan"))


def test_the_parts_of_a_trace_are_not_tried_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A column holds all of them."""
    tried: list[Any] = []
    altered = module._altered_at

    def recorded(value: Any, paths: Any) -> Any:
        tried.extend(paths)
        return altered(value, paths)

    monkeypatch.setattr(module, "_altered_at", recorded)
    document = json.loads((DATA / "otel" / "openllmetry.json").read_text("utf-8"))
    converted = convert_eval_set([document], "openai")
    assert len(convert_eval_set(converted.data, "mlflow", format="openai").losses) < 5
    assert 0 < len([path for path in tried if path[:1] == ("item",)]) < 5


def test_a_session_of_many_turns_is_read_as_often_as_it_has_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not again for each of the turns before a turn, which are rows of their own."""
    rows_read = 0

    def counted(batch: Any, plan: Any) -> Any:
        nonlocal rows_read
        rows_read += batch.num_rows
        return check_batch(batch, plan)

    monkeypatch.setattr(module, "check_batch", counted)
    path, turn = tmp_path / "session.test.json", {"query": "Hi", "expected_tool_use": [], "reference": "Hello!"}
    path.write_text(json.dumps([turn] * 20))
    reported = convert_eval_set(path, "ragas").losses
    assert set(reported["path"].dropna()) == {"turn"}
    assert 20 <= rows_read <= 3 * 20


def test_items_of_a_list_are_read_alike_if_they_and_their_neighbors_are() -> None:
    """The first two and the last two of them are read for themselves, as a reader may take the first or the last."""
    documents = [{"content": f"The text number {i}", "score": 0.9} for i in range(6)]
    assert first_alike(documents) == [0, 1, 2, 3, 4, 5]
    assert first_alike([*documents, *documents]) == [0, 1, 2, 3, *[3] * 5, 9, 10, 11]
    user, agent, tool = ({"role": role} for role in ("user", "assistant", "tool"))
    chat = [user, agent] * 5
    assert first_alike(chat) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    chat = [user, agent] * 8
    assert first_alike([*chat[:8], tool, *chat[8:]])[7:10] == [7, 8, 9]


@pytest.mark.parametrize("target", ["adk", "bedrock", "mlflow", "ragas"])
def test_values_that_are_altered_at_once_have_the_losses_of_those_altered_alone(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [path for path in (ROOT / "sample_data").glob("*.json*") if path.stat().st_size < 20_000]
    keys: Row = {f"key {n}": f"text {n}" for n in range(9)}
    sources: list[Any] = [*files, [{"request": {"messages": [{"role": "user", "content": "Hi", **keys}], **keys}}]]
    found = []
    for most in (0, 1_000):
        monkeypatch.setattr(module, "MOST_ALONE", most)
        found.append([list(map(str, convert_eval_set(one, target).losses.to_dict("records"))) for one in sources])
    assert found[0] == found[1]
    assert sum(map(len, found[0])) > 100


def test_what_is_lost_of_a_conversation_is_named_by_what_it_is() -> None:
    """Its file has no such key."""
    turns = [{"user_content": {"parts": [{"text": text}]}} for text in ("One?", "Two?")]
    evalset = {"eval_set_id": "s", "eval_cases": [{"eval_id": "a", "conversation": turns}]}
    losses = convert_eval_set(evalset, "bedrock", format="adk").losses
    assert set(losses[losses["path"] == "turns"]["message"]) == {
        "the number of turns of its conversation, 2, has no column"
    }
