"""What runs on the executors of Spark, without Spark: logged rows become lines, lines with decisions become results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("duckdb")

from agent_eval_schema import EvalSetError
from agent_eval_schema.cells.arrow import unpack
from agent_eval_schema.inference_tables.finish.finish import ROWS
from agent_eval_schema.inference_tables.make_plan import plan_of
from agent_eval_schema.inference_tables.plan import BuildOptions
from agent_eval_schema.inference_tables.read.convert import FEEDBACK_LISTS
from agent_eval_schema.inference_tables.spark import CALL_LINE, build_batches, convert_batches
from tests.helpers.logged_calls import PAYLOAD, chat, table

PLAN, _ = plan_of(PAYLOAD.names, BuildOptions())

DECISIONS = pa.list_(
    pa.struct(
        [
            ("place", pa.int64()),
            ("content_hash", pa.int64()),
            ("reason", pa.string()),
            ("entries", FEEDBACK_LISTS),
            ("trace", pa.string()),
        ]
    )
)


def lines_of(ids: str, size: int) -> list[dict[str, Any]]:
    """The lines of logged calls, which arrive in batches of a size."""
    calls = table([chat(id, f"question {id}") for id in ids])
    beside = [pa.nulls(len(ids), pa.bool_()), pa.nulls(len(ids), pa.string())]
    names = ["place", *PAYLOAD.names, "wanted", "stratum"]
    batches = pa.table([pa.array(range(len(ids))), *calls.columns, *beside], names).to_batches(max_chunksize=size)
    lines: list[dict[str, Any]] = pa.Table.from_batches(
        convert_batches(PLAN, PAYLOAD.names, batches), CALL_LINE
    ).to_pylist()
    return lines


def built(lines: list[dict[str, Any]], reasons: Mapping[str, str]) -> list[dict[str, Any]]:
    """The results of lines that have the decisions of their batch where they have the batch, as they are joined."""
    decided = [
        [
            {**other, "reason": reasons.get(other["logged_id"]), "entries": [], "trace": None}
            for other in lines
            if other["part"] == line["part"]
        ]
        if line["place"] == 0
        else None
        for line in lines
    ]
    decisions = [cell and [{f.name: d[f.name] for f in DECISIONS.value_type} for d in cell] for cell in decided]
    columns = [pa.array(decisions, DECISIONS), pa.array([line["packed"] for line in lines], pa.binary())]
    batch = pa.RecordBatch.from_arrays(columns, ["decisions", "packed"])
    results = pa.Table.from_batches(build_batches(PLAN, None, ROWS, iter([batch])))
    return [row for row in results.to_pylist() if row["rows"] is not None]


def ids(packed: bytes) -> list[str]:
    found: list[str] = unpack(packed).column("request_id").to_pylist()
    return found


@pytest.mark.parametrize(
    ("size", "rows", "excluded"),
    [
        (1, [["a"], [], ["c"], ["d"], []], [[], ["b"], [], [], ["e"]]),
        (2, [["a"], ["c", "d"], []], [["b"], [], ["e"]]),
        (9, [["a", "c", "d"]], [["b", "e"]]),
    ],
)
def test_each_batch_is_built_with_its_own_decisions(
    size: int, rows: list[list[str]], excluded: list[list[str]]
) -> None:
    results = built(lines_of("abcde", size), {"b": "repeated", "e": "not_sampled"})
    assert [ids(result["rows"]) for result in results] == rows
    assert [ids(result["excluded"]) for result in results] == excluded


def test_decisions_about_other_rows_are_an_error() -> None:
    lines = lines_of("abc", 2)
    lines[1]["content_hash"] += 1
    with pytest.raises(EvalSetError, match="the DataFrame gave other rows"):
        built(lines, {})
