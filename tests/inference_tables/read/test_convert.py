"""The conversion as a whole: facts in any type, families and mappings, and what must hold for any cell."""

from __future__ import annotations

import copy
import json
import pickle
from datetime import date, datetime, timezone
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_eval_schema import EvalSetError
from agent_eval_schema.formats.inference_tables import TABLE_FAMILIES, detect_family, fields_of, find_family, locate
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.inference_tables.plan import REASONS, BuildPlan
from agent_eval_schema.inference_tables.read.convert import CONVERTED, convert_batch, converted_schema
from tests.helpers.inference_tables import (
    ANSWER,
    ANSWERED,
    ASKED,
    QUESTION,
    batch_of,
    codes,
    convert,
    convert_one,
    logged,
)

MOMENT = datetime(2025, 11, 3, 9, 1, 11, 204000, tzinfo=timezone.utc)
MICROS = 1_762_160_471_204_000


# ---------------------------------------------------------------------------------------------------------------------
# facts


@pytest.mark.parametrize(
    "cell",
    [
        "2025-11-03T09:01:11.204Z",
        "2025-11-03T09:01:11.204000+00:00",
        "2025-11-03 10:01:11.204+01:00",
        "2025-11-03 10:01:11.204 UTC",
        "2025-11-03T09:01:11.204",
        MICROS // 1000,
        str(MICROS // 1000),
        MICROS,
        MICROS * 1000,
        MICROS / 1_000_000,
        MOMENT,
        pd.Timestamp(MOMENT).tz_convert("Asia/Tokyo"),
        pd.Timestamp(MOMENT).tz_localize(None),
    ],
    ids=str,
)
def test_a_time_in_any_type(cell: Any) -> None:
    expected = MOMENT.replace(hour=10) if "10:01:11.204 UTC" in str(cell) else MOMENT
    rows = open_source(pd.DataFrame([logged(request_time=cell)]))
    (record,) = convert(next(iter(rows.batches())))
    assert (record["time"], record["day"], codes(record)) == (expected, date(2025, 11, 3), [])


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_arrow_times_of_any_unit_and_zone(unit: str, zone: str | None) -> None:
    cell = pa.array([MICROS // 1_000_000], pa.int64()).cast(pa.timestamp("s", zone)).cast(pa.timestamp(unit, zone))
    batch = batch_of([logged()])
    batch = batch.set_column(batch.schema.get_field_index("request_time"), "request_time", cell)
    assert convert(batch)[0]["time"] == MOMENT.replace(microsecond=0)


@pytest.mark.parametrize(
    ("unit", "far"), [("s", 10**15), ("s", 10**12), ("ms", 10**18), ("us", 10**18), ("us", -(10**17))]
)
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_an_arrow_time_outside_of_the_years_that_are_written_costs_itself_only(
    unit: str, far: int, zone: str | None
) -> None:
    second = MICROS // 1_000_000 * {"s": 1, "ms": 1_000, "us": 1_000_000}[unit]
    batch = batch_of([logged() for _ in range(3)])
    cells = pa.array([far, None, second], pa.timestamp(unit, zone))
    records = convert(batch.set_column(batch.schema.get_field_index("request_time"), "request_time", cells))
    assert [record["time"] for record in records] == [None, None, MOMENT.replace(microsecond=0)]
    assert [codes(record) for record in records] == [["AE703"], [], []]


@pytest.mark.parametrize(
    "cell", ["yesterday", "2025-13-45", "9" * 30, -5, 10**30, 1e300, {"a": 1}, "2025-11-03T25:00:00"]
)
def test_an_unreadable_time_is_told(cell: Any) -> None:
    record = convert_one(logged(request_time=cell))
    assert (record["reason"], record["time"], codes(record)) == (None, None, ["AE703"])


def test_a_clock_in_the_future_is_told() -> None:
    assert codes(convert_one(logged(), now=MICROS - 3600 * 1_000_000)) == ["AE704"]
    assert codes(convert_one(logged(), now=MICROS)) == []


@pytest.mark.parametrize(
    ("window", "reason"),
    [
        ({"since": MICROS}, None),
        ({"since": MICROS + 1}, "outside_window"),
        ({"until": MICROS}, "outside_window"),
        ({"until": MICROS + 1}, None),
        ({"since": MICROS + 1, "kept": frozenset({"outside_window"})}, None),
    ],
)
def test_the_window_is_half_open(window: Any, reason: str | None) -> None:
    assert convert_one(logged(), **window)["reason"] == reason


def test_a_row_without_time_is_in_no_window() -> None:
    assert convert_one(logged(request_time=None), since=0)["reason"] == "outside_window"


@pytest.mark.parametrize(
    "metadata", [{"model_name": "m", "model_version": "4"}, '{"model_name": "m", "model_version": 4}']
)
def test_request_metadata_as_map_or_text(metadata: Any) -> None:
    row = {"databricks_request_id": "r", "timestamp_ms": 1, "request": json.dumps(ASKED), "request_metadata": metadata}
    assert convert_one(row)["served_entity"] == "m/4"


@pytest.mark.parametrize(
    ("metadata", "served"), [({"endpoint_name": "e"}, "e"), ({"endpoint_name": 3}, None), ('["e"]', None), ("{", None)]
)
def test_without_a_model_the_endpoint_is_the_served_entity(metadata: Any, served: str | None) -> None:
    row = {"databricks_request_id": "r", "timestamp_ms": 1, "request": "{}", "request_metadata": metadata}
    assert convert_one(row)["served_entity"] == served


def test_request_metadata_as_an_arrow_map() -> None:
    metadata = pa.array([[("model_name", "m"), ("model_version", "4")], None], pa.map_(pa.string(), pa.string()))
    columns = {"databricks_request_id": ["a", "b"], "timestamp_ms": [1, 2], "request": ["{}", "{}"]}
    batch = pa.RecordBatch.from_pydict({**columns, "request_metadata": metadata})
    assert [r["served_entity"] for r in convert(batch)] == ["m/4", None]


@pytest.mark.parametrize("cell", ["fine", -1, "20O", {"code": 200}])
def test_an_odd_status_is_told(cell: Any) -> None:
    record = convert_one(logged(status_code=cell))
    assert (record["reason"], record["status_code"], codes(record)) == (None, None, ["AE702"])


@pytest.mark.parametrize("cell", [2311, "2311", 2311.0])
def test_latency_in_seconds(cell: Any) -> None:
    assert convert_one(logged(execution_duration_ms=cell))["latency_seconds"] == 2.311


def test_latency_as_an_arrow_duration() -> None:
    batch = batch_of([logged()])
    cell = pa.array([2_311_000_000], pa.duration("ns"))
    batch = batch.set_column(batch.schema.get_field_index("execution_duration_ms"), "execution_duration_ms", cell)
    assert convert(batch)[0]["latency_seconds"] == 2.311


@pytest.mark.parametrize("cell", [-1, "slow", None, float("inf")])
def test_no_latency(cell: Any) -> None:
    assert convert_one(logged(execution_duration_ms=cell))["latency_seconds"] is None


def test_a_row_without_id_gets_a_hash_of_its_content() -> None:
    one, same, other = convert(
        [logged(databricks_request_id=i, response=r) for i, r in ((None, ANSWERED), ("", ANSWERED), (None, "other"))]
    )
    assert one["request_id"] == same["request_id"] != other["request_id"]
    assert one["request_id"].startswith("row-")
    assert len(one["request_id"]) == 20
    assert codes(one) == ["AE701"]


def test_columns_are_carried_as_text() -> None:
    row = {**logged(), "team": "blue", "size": 7, "tags": {"a": 1}}
    records = convert([row, {**row, "team": None}], carried=("team", "size", "tags", "missing"))
    names = [f"column_{n}" for n in ("team", "size", "tags", "missing")]
    assert [records[0][n] for n in names] == ["blue", "7", '{"a":1}', None]
    assert records[1]["column_team"] is None


# ---------------------------------------------------------------------------------------------------------------------
# families and mappings


def test_families_are_told_apart_by_their_signs() -> None:
    for family in TABLE_FAMILIES:
        columns = [group[0] for group in family.signs]
        assert detect_family(columns)[0].name == family.name


def test_an_unknown_table_says_what_to_do() -> None:
    with pytest.raises(
        EvalSetError,
        match=r"columns: a, b; set the format, or name the columns, for example columns=\{'body.input': 'request'",
    ):
        detect_family(["a", "b"])
    with pytest.raises(EvalSetError, match="format: expected one of"):
        find_family("x")


@pytest.mark.parametrize("columns", [{"a": "reqest"}, {"a": ""}, {"a": None}, ["a=request"], "a=request"])
def test_a_wrong_mapping_is_refused(columns: Any) -> None:
    with pytest.raises(EvalSetError, match="columns: expected"):
        fields_of(columns)


OTHER_LOGS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "bedrock": (
        {
            "requestId": "r-1",
            "timestamp": "2025-11-03T09:01:11.204Z",
            "input": {"inputBodyJson": {"anthropic_version": "x", "messages": [{"role": "user", "content": QUESTION}]}},
            "output": {"outputBodyJson": {"content": [{"type": "text", "text": ANSWER}]}},
        },
        {
            "requestId": "request_id",
            "timestamp": "time",
            "input.inputBodyJson": "request",
            "output.outputBodyJson": "response",
        },
    ),
    "sagemaker": (
        {
            "captureData": {
                "endpointInput": {"data": json.dumps({"inputs": QUESTION})},
                "endpointOutput": {"data": json.dumps([{"content": ANSWER}])},
            },
            "eventMetadata": {"eventId": "r-1", "inferenceTime": "2025-11-03T09:01:11.204Z"},
        },
        {
            "eventMetadata.eventId": "request_id",
            "eventMetadata.inferenceTime": "time",
            "captureData.endpointInput.data": "request",
            "captureData.endpointOutput.data": "response",
        },
    ),
    "litellm": (
        {
            "request_id": "r-1",
            "startTime": "2025-11-03T09:01:11.204Z",
            "messages": json.dumps([{"role": "user", "content": QUESTION}]),
            "response": json.dumps(ANSWERED),
        },
        {"request_id": "request_id", "startTime": "time", "messages": "request", "response": "response"},
    ),
    "text": (
        {"id": "r-1", "when": MICROS, "a.b": QUESTION, "said": ANSWER},
        {"id": "request_id", "when": "time", "a.b": "request", "said": "response"},
    ),
    "vertex": (
        {
            "request_id": "r-1",
            "logging_time": "2025-11-03T09:01:11.204Z",
            "full_request": {"contents": [{"text": QUESTION}]},
            "full_response": {"candidates": [{"text": ANSWER}]},
        },
        {
            "request_id": "request_id",
            "logging_time": "time",
            "full_request.contents.0.text": "request",
            "full_response.candidates.0.text": "response",
        },
    ),
}


@pytest.mark.parametrize("name", OTHER_LOGS)
def test_other_logs_are_readable_with_a_mapping(name: str) -> None:
    row, mapping = OTHER_LOGS[name]
    (record,) = convert([row], fields=fields_of(mapping))
    assert (record["logged_id"], record["time"], record["reason"]) == ("r-1", MOMENT, None)
    assert json.loads(record["request"])["messages"][-1]["content"] == QUESTION
    assert record["response"] == ANSWER


def test_without_the_mapping_it_is_no_table_of_calls() -> None:
    for name in ("bedrock", "sagemaker", "text", "vertex"):
        with pytest.raises(EvalSetError):
            detect_family(list(OTHER_LOGS[name][0]))


def test_a_mapping_wins_over_the_family() -> None:
    family = find_family("ai_gateway")
    assert locate("request", family, (("request", "body.input"),), ["request", "body"]) == ("body", ("input",))
    assert locate("request", family, (("request", "body.input"),), ["body.input", "body"]) == ("body.input", ())
    assert locate("request", family, (), ["request"]) == ("request", ())
    assert locate("request", family, (), ["x"]) is None


def test_a_trace_is_put_together_from_an_archived_view() -> None:
    """The previews are cut short: never content."""
    span = {"span_id": "1", "attributes": {"mlflow.spanInputs": json.dumps(QUESTION), "mlflow.spanOutputs": '"x"'}}
    row = {
        "trace_id": "tr-1",
        "client_request_id": "r-1",
        "request_time": "2025-11-03T09:01:11.204Z",
        "state": "OK",
        "execution_duration_ms": 5,
        "request_preview": "How many",
        "response_preview": "Full",
        "request": "How many",
        "response": "Full",
        "spans": [span],
        "assessments": [],
    }
    record = convert_one(row, by_question=True)
    assert (record["request"], record["response"], record["request_id"]) == (None, None, "r-1")
    trace = json.loads(record["trace"])
    assert (trace["info"]["trace_id"], trace["data"]["spans"]) == ("tr-1", [span])
    assert "How many" not in json.dumps(trace["info"])
    assert record["question_hash"] == convert_one(logged(), by_question=True)["question_hash"] is not None


def test_a_batch_of_an_archived_view_without_spans_has_no_traces() -> None:
    row = {"trace_id": "tr-1", "client_request_id": "r-1", "request_time": 1, "state": "OK", "assessments": []}
    assert convert_batch(batch_of([row]), BuildPlan(family="archived_traces"))["trace"].to_pylist() == [None]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"turns": ["Hi", {"text": QUESTION}]}, QUESTION),
        ({"turns": json.dumps(["Hi", {"text": QUESTION}])}, QUESTION),
        ({"turns": ["Hi"]}, None),
        ({"turns": ["Hi", {"text": None}]}, None),
        ({"turns": ["Hi", "text"]}, None),
        ("turns", None),
    ],
    ids=["object", "JSON text", "too short", "null", "text in place of an object", "text"],
)
def test_a_field_is_read_at_its_path_in_a_column(body: Any, text: str | None) -> None:
    fields = (("request_id", "id"), ("request", "body.turns.1.text"), ("response", "answer"))
    record = convert_one({"id": "r", "body": body, "answer": ANSWER}, family="mapped", fields=fields)
    assert record["reason"] == (None if text else "no_request")
    assert text is None or json.loads(record["request"]) == ASKED


def test_the_first_generation_of_request_logs() -> None:
    """Texts without the payload, and a trace of steps as a struct."""
    row = {
        "databricks_request_id": "r-1",
        "timestamp_ms": MICROS // 1000,
        "status_code": 200,
        "request": QUESTION,
        "response": ANSWER,
        "request_raw": None,
        "response_raw": None,
        "trace": {"app_version_id": "a", "steps": [{"step_id": "1", "type": "LLM_GENERATION"}]},
    }
    record = convert_one(row)
    assert (json.loads(record["request"]), record["response"]) == (ASKED, ANSWER)
    assert json.loads(record["trace"])["app_version_id"] == "a"


def test_drifted_files_of_one_table_read_alike() -> None:
    """A column that is new, gone or of another type in a later file."""
    now = logged()
    gone = {k: v for k, v in now.items() if k not in ("execution_duration_ms", "logging_error_codes")}
    other = {**now, "status_code": "200", "execution_duration_ms": "2311", "new": 1}
    plan = BuildPlan("ai_gateway")
    records = [convert_batch(batch_of([r]), plan).to_pylist()[0] for r in (now, gone, other)]
    assert records[0] == records[2]
    assert records[1] == {**records[0], "latency_seconds": None}


# ---------------------------------------------------------------------------------------------------------------------
# what must hold for any cell

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(
    [
        *("messages", "input", "query", "history", "dataframe_records", "dataframe_split", "inputs", "instances"),
        *("columns", "data", "choices", "message", "content", "role", "output", "predictions", "usage", "trace"),
        *("databricks_output", "info", "spans", "delta", "type", "text_assessments", "request_id", "error", "context"),
        *("tool_calls", "function", "custom_inputs", "steps", "retrieval_assessments", "source", "ratings", "item"),
    ]
)
SHAPED = st.recursive(
    JSON,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
TEXTS = SHAPED.map(json.dumps) | st.text() | SHAPED.map(lambda v: f"data: {json.dumps(v)}\n\n")
CELLS = TEXTS | st.none()
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "databricks_request_id": st.sampled_from(["a", "b", None]) | st.text(),
            "request_time": CELLS,
            "status_code": st.sampled_from(["200", None, "429"]) | st.text(),
            "execution_duration_ms": CELLS,
            "request": CELLS,
            "response": CELLS,
            "logging_error_codes": CELLS,
            "trace": CELLS,
        }
    ),
    min_size=1,
    max_size=6,
)


def table(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    names = list(rows[0])
    texts = {n: [None if r[n] is None else r[n].encode("utf-8", "replace").decode() for r in rows] for n in names}
    return pa.RecordBatch.from_pydict({n: pa.array(t, pa.string()) for n, t in texts.items()})


PLAN = BuildPlan("ai_gateway", carried=("trace",), now=MICROS)


@settings(max_examples=300)
@given(ROWS)
def test_nothing_is_raised_and_every_row_is_accounted_for(rows: list[dict[str, Any]]) -> None:
    batch = table(rows)
    out = convert_batch(batch, PLAN)
    out.validate(full=True)
    assert out.schema == converted_schema(PLAN)
    records = out.to_pylist()
    assert "defect" not in {r["reason"] for r in records}
    assert {r["reason"] for r in records} <= {None, *REASONS}
    assert all((r["reason"] is None) == (r["detail"] is None) for r in records)
    parts = [convert_batch(batch.slice(i, 1), PLAN).to_pylist() for i in range(batch.num_rows)]
    assert all(parts)  # every logged row has a record
    assert [r for part in parts for r in part] == records  # however the rows are cut into batches
    for part in parts:
        numbers = [r["record"] for r in part]
        assert numbers in ([None], list(range(len(part))))


@settings(max_examples=100)
@given(
    st.lists(
        st.fixed_dictionaries({"request": SHAPED, "response": SHAPED, "status_code": JSON}), min_size=1, max_size=3
    )
)
def test_objects_in_cells_are_read_and_not_changed(rows: list[dict[str, Any]]) -> None:
    given_rows = [{"databricks_request_id": "a", "request_time": 1, **r} for r in rows]
    before = copy.deepcopy(given_rows)
    convert(given_rows)
    np.testing.assert_equal(given_rows, before)


def test_the_input_batch_is_not_changed() -> None:
    batch = batch_of([logged(), logged(None)])
    before = batch.to_pylist()
    convert(batch)
    assert batch.to_pylist() == before


@settings(max_examples=200)
@given(SHAPED)
def test_the_fast_reading_of_a_response_is_the_generic_one(value: Any) -> None:
    """A key in front that no reader knows cannot matter; a list of numbers in `usage` forces the generic decode."""
    if not isinstance(value, dict) or "usage" in value:
        return
    fast, generic = (
        convert_one(logged(ASKED, json.dumps(v))) for v in ({**value, "usage": None}, {**value, "usage": [1]})
    )
    same = {k for k in fast if k not in ("content_hash", "notes", "detail", "response", "trace")}
    for record in (fast, generic):
        body = json.loads(record["outputs"] or "null")
        record["outputs"] = {**body, "usage": None} if isinstance(body, dict) else body  # in which alone they differ
    assert {k: fast[k] for k in same} == {k: generic[k] for k in same}
    assert [c for c in codes(fast) if c != "AE705"] == [c for c in codes(generic) if c != "AE705"]


@settings(max_examples=50)
@given(st.integers(0, 9), st.integers(0, 9))
def test_records_out_are_records_in(count: int, predicted: int) -> None:
    body = {"inputs": [{"query": f"q{i}"} for i in range(count)]}
    records = convert([logged(body, {"predictions": [f"a{i}" for i in range(predicted)]})])
    if count == 0 or count != predicted:
        assert [r["reason"] for r in records] == ["no_request" if count == 0 else "batch_mismatch"]
    else:
        assert [r["response"] for r in records] == [f"a{i}" for i in range(count)]


def test_a_seed_decides_on_the_sample_and_nothing_else() -> None:
    rows = [logged(databricks_request_id=f"r-{i}") for i in range(50)]
    one, again, other = (convert(rows, seed=s) for s in (1, 1, 2))
    assert one == again
    orders = [[r["request_id"] for r in sorted(x, key=lambda r: r["sample_hash"])] for x in (one, other)]
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])


def test_the_hash_of_a_sample_is_the_same_on_every_machine() -> None:
    """Written down once (pandas 2.2 and 3): with another hash the same seed would draw another sample."""
    hashes = [convert_one(logged(), seed=seed)["sample_hash"] for seed in (0, 7)]
    assert hashes == [-6156337304061529837, -3709506561648998588]


def test_a_plan_can_be_pickled() -> None:
    plan = BuildPlan("ai_gateway", fields=(("request", "a.b"),), kept=frozenset({"status"}), carried=("x",))
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert pickle.loads(pickle.dumps(convert_batch)) is convert_batch


def test_an_empty_batch_has_the_schema() -> None:
    out = convert_batch(batch_of([logged()]).slice(0, 0), BuildPlan("ai_gateway"))
    assert (out.num_rows, out.schema) == (0, CONVERTED)


def test_reasons_have_their_words() -> None:
    for reason in REASONS.values():
        assert reason.sentence
        assert reason.remedy


def test_without_values_nothing_of_a_cell_is_said() -> None:
    secret = "SECRETWORD"
    rows = [
        logged({"alpha": secret}, {"beta": secret}, request_time=secret, status_code=secret),
        logged('{"messages": ' + secret),
        logged(ASKED, {"error_code": secret, "message": secret}, status_code=400),
        logged(ASKED, f'data: {{"error": {{"message": "{secret}"}}}}\n\n'),
        logged(ASKED, ANSWERED, logging_error_codes=[secret]),
        logged({"inputs": ["a", "b"]}, {"predictions": {secret: 1}}),
        logged({"dataframe_records": [{"request_id": [secret], "text_assessments": [secret]}]}),
        logged({"dataframe_split": {secret: 1}}),
        logged(
            ASKED, {**ANSWERED, "databricks_output": {"trace": {"info": {"client_request_id": secret}, "data": {}}}}
        ),
    ]
    for row in rows:
        for values, is_said in ((True, True), (False, False)):
            said = [[r["detail"], r["notes"]] for r in convert([row], values=values)]
            assert (secret in json.dumps(said)) <= is_said
            assert any(d or n for d, n in said)
