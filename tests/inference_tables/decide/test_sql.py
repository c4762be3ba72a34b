"""The decisions as SQL against the same rules in plain Python; and that they depend on nothing but the rows."""

from __future__ import annotations

import random
import zlib
from collections import Counter, defaultdict
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_eval_schema.cells.hashing import seeded_hashes
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.inference_tables.decide.sql import LOWEST, RANGE, below
from agent_eval_schema.inference_tables.make_plan import sample_of, seed_of
from agent_eval_schema.inference_tables.plan import BuildPlan

duck = pytest.importorskip("agent_eval_schema.inference_tables.decide.duckdb")
pytest.importorskip("duckdb")

NOON = datetime(2025, 11, 3, 12, tzinfo=timezone.utc)
Row = dict[str, Any]

CALLS = pa.schema(
    [
        ("part", pa.int64()),
        ("place", pa.int64()),
        ("logged_id", pa.string()),
        ("request_id", pa.string()),
        ("label_id", pa.string()),
        ("without_trace", pa.bool_()),
        ("record", pa.int32()),
        ("reason", pa.string()),
        ("time", pa.timestamp("us", "UTC")),
        ("content_hash", pa.int64()),
        ("question_hash", pa.int64()),
        ("sample_hash", pa.int64()),
        ("stratum", pa.string()),
    ]
)
ENTRIES = pa.schema(
    [
        ("part", pa.int64()),
        ("place", pa.int64()),
        ("request_id", pa.string()),
        ("source", pa.string()),
        ("step_id", pa.string()),
        ("position", pa.int32()),
        ("time", pa.timestamp("us", "UTC")),
        ("kind", pa.string()),
        ("value", pa.bool_()),
        ("suggested_output", pa.string()),
        ("rationale", pa.string()),
        ("comment", pa.string()),
    ]
)


def call(request_id: str, **more: Any) -> Row:
    own = {
        "logged_id": request_id,
        "label_id": request_id,
        "record": None,
        "reason": None,
        "time": NOON,
        "content_hash": 0,
        "stratum": None,
    }
    asked = int(np.frombuffer(request_id.encode().ljust(8)[:8], np.int64)[0])
    hashed = int(seeded_hashes([request_id], 0)[0])
    return {"request_id": request_id, "question_hash": asked, "sample_hash": hashed, **own, **more}


def entry(request_id: str, **more: Any) -> Row:
    own = {"source": "ana", "step_id": None, "position": None, "time": NOON, "kind": "text", "value": True}
    return {"request_id": request_id, "suggested_output": None, "rationale": None, "comment": None, **own, **more}


def decide(folder: Path, calls: list[Row], entries: list[Row] = [], parts: int = 2, **options: Any) -> Any:  # noqa: B006
    """Decide about the rows, dealt to so many index files: ({request_id: [reasons, sorted]}, attached, tallies)."""
    files: dict[str, list[str]] = {"calls": [], "entries": []}
    ids: dict[tuple[int, int], str] = {}
    folder.mkdir(exist_ok=True, parents=True)
    for part in range(parts):
        own = calls[part::parts]
        ids |= {(part, place): row["request_id"] for place, row in enumerate(own)}
        placed = [{"part": part, "place": place, **row} for place, row in enumerate(own)]
        said = [{"part": part, "place": 0, **row} for row in entries[part::parts]]
        for name, rows, schema in (("calls", placed, CALLS), ("entries", said, ENTRIES)):
            path = folder / f"{name}-{part}.parquet"
            pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)
            files[name].append(str(path))
    decided = folder / "decided.parquet"
    found = duck.decide(files, BuildPlan("legacy", **options), 0, decided, folder / "spill", None)
    lines = pq.read_table(decided).to_pylist()
    assert [(line["part"], line["place"]) for line in lines] == sorted(ids)
    reasons = defaultdict(list)
    attached = {}
    for line in lines:
        name = ids[line["part"], line["place"]]
        reasons[name].append(line["reason"] or "")
        if line["entries"]:
            attached[name] = line["entries"]
    return {k: sorted(v) for k, v in reasons.items()}, attached, dict(found["feedback"]), sorted(found["strata"])


def kept(reasons: dict[str, list[str]]) -> set[str]:
    return {name for name, said in reasons.items() if "" in said}


def test_the_earliest_of_repeated_ids_is_the_call(tmp_path: Path) -> None:
    rows = [call("a", time=NOON + timedelta(hours=h), question_hash=h) for h in (2, 0, 1)] + [call("b", time=None)]
    reasons, *_ = decide(tmp_path, rows, by_question=True)
    assert reasons == {"a": ["", "repeated", "repeated"], "b": [""]}


def test_a_row_that_is_excluded_already_is_no_copy(tmp_path: Path) -> None:
    """The first delivery was cut short, the second was not: the second is the call."""
    rows = [call("a", reason="malformed"), call("a", time=NOON + timedelta(seconds=1))]
    assert decide(tmp_path, rows)[0] == {"a": ["", "malformed"]}


def test_the_latest_call_stands_for_a_question(tmp_path: Path) -> None:
    rows = [
        call("old", question_hash=1),
        call("new", question_hash=1, time=NOON + timedelta(days=1)),
        call("x", question_hash=None),
        call("y", question_hash=None),
    ]
    reasons, *_ = decide(tmp_path, rows, by_question=True)
    assert reasons == {"old": ["duplicate_question"], "new": [""], "x": [""], "y": [""]}


def test_a_number_of_rows_takes_the_smallest_hashes(tmp_path: Path) -> None:
    rows = [call(f"id{i}") for i in range(100)]
    reasons, *_ = decide(tmp_path, rows, sample=7)
    assert kept(reasons) == {r["request_id"] for r in sorted(rows, key=lambda r: r["sample_hash"])[:7]}


def test_a_fraction_takes_that_part_of_the_range(tmp_path: Path) -> None:
    rows = [call(f"id{i}") for i in range(2000)]
    reasons, *_ = decide(tmp_path, rows, sample=0.25)
    assert kept(reasons) == {r["request_id"] for r in rows if r["sample_hash"] < -(1 << 62)}
    assert 400 < len(kept(reasons)) < 600


def test_a_larger_sample_holds_the_smaller_one(tmp_path: Path) -> None:
    rows = [call(f"id{i}") for i in range(60)]
    small, large = (kept(decide(tmp_path, rows, sample=n)[0]) for n in (10, 20))
    assert small < large


def largest_remainder(sizes: dict[str, int], wanted: int) -> dict[str, int]:
    total = sum(sizes.values())
    wanted = min(wanted, total)
    quotas = {k: wanted * n // total for k, n in sizes.items()}
    by_remainder = sorted(sizes, key=lambda k: (-(wanted * sizes[k] % total), k))
    for k in by_remainder[: wanted - sum(quotas.values())]:
        quotas[k] += 1
    return quotas


@pytest.mark.parametrize("sample", [1, 3, 10, 47, 100, 0.1, 0.5])
def test_strata_share_the_sample_by_largest_remainder(tmp_path: Path, sample: int | float) -> None:
    sizes = {"a": 61, "b": 27, "c": 9, "": 3}
    rows = [call(f"{k}{i}", stratum=k or None) for k, n in sizes.items() for i in range(n)]
    random.Random(3).shuffle(rows)
    reasons, _, _, strata = decide(tmp_path, rows, sample=sample, stratum_column="stratum")
    wanted = sample if isinstance(sample, int) else round(sample * 100)
    expected = largest_remainder(sizes, wanted)
    stratum = {r["request_id"]: r["stratum"] or "" for r in rows}
    assert Counter(stratum[name] for name in kept(reasons)) == Counter(expected)
    assert strata == sorted((k, n, expected[k]) for k, n in sizes.items())


def test_thumbs_are_strata(tmp_path: Path) -> None:
    rows = [call(f"id{i}") for i in range(30)]
    later = NOON + timedelta(hours=1)
    said = [entry(f"id{i}", value=True) for i in range(20)] + [
        entry(f"id{i}", value=False, time=later) for i in range(10)
    ]
    reasons, _, _, strata = decide(tmp_path, rows, said, sample=6, by_thumbs=True)
    assert strata == [("down", 10, 2), ("none", 10, 2), ("up", 10, 2)]
    assert Counter(int(name[2:]) // 10 for name in kept(reasons)) == {0: 2, 1: 2, 2: 2}


def test_the_latest_feedback_counts_per_source_step_and_position(tmp_path: Path) -> None:
    later = NOON + timedelta(minutes=1)
    said = [
        entry("a", rationale="new", time=later, value=False),
        entry("a", rationale="old"),
        entry("a", source="ben", rationale="other"),
        entry("a", kind="retrieval", position=0, step_id="s", rationale="first"),
        entry("a", kind="retrieval", position=1, step_id="s", rationale="second"),
        entry("a", kind="retrieval", position=1, step_id="t", rationale="step"),
        entry("gone", rationale="unknown"),
        entry("aside"),
    ]
    _, attached, tallies, _ = decide(tmp_path, [call("a"), call("aside", reason="status")], said)
    assert sorted(e["rationale"] for e in attached["a"]) == ["first", "new", "other", "second", "step"]
    assert tallies == {"given": 8, "latest": 7, "attached": 5, "unknown": 1}


def test_feedback_on_a_batch_of_one_record_means_that_record(tmp_path: Path) -> None:
    rows = [call("one#0", logged_id="one", label_id="one", record=0)]
    rows += [call(f"two#{i}", logged_id="two", record=i) for i in range(2)]
    _, attached, tallies, _ = decide(tmp_path, rows, [entry("one"), entry("two"), entry("two#1")])
    assert set(attached) == {"one#0", "two#1"}
    assert tallies["unknown"] == 0


texts = st.sampled_from("abcdefgh")
times = st.none() | st.integers(0, 3).map(lambda h: NOON + timedelta(hours=h))
calls = st.builds(
    call,
    texts,
    time=times,
    question_hash=st.none() | st.integers(-2, 2),
    stratum=st.none() | st.sampled_from("xyz"),
    reason=st.sampled_from([None, None, None, "status", "feedback"]),
).map(lambda row: {**row, "content_hash": zlib.crc32(repr(sorted(row.items())).encode())})
"""Of the same content are the same question, stratum and reason."""
options = st.fixed_dictionaries(
    {
        "sample": st.none() | st.integers(1, 12) | st.sampled_from([0.01, 0.3, 0.99]),
        "by_question": st.booleans(),
        "stratum_column": st.sampled_from([None, "stratum"]),
    }
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(calls, max_size=25), options, st.randoms(use_true_random=False))
def test_every_row_gets_one_decision_whatever_the_order_and_the_files(
    tmp_path: Path, rows: list[Row], options: dict[str, Any], shuffled: random.Random
) -> None:
    once, *_ = decide(tmp_path, rows, parts=1, **options)
    other = list(rows)
    shuffled.shuffle(other)
    again, *_ = decide(tmp_path, other, parts=3, **options)
    assert once == again
    assert sum(map(len, once.values())) == len(rows)
    assert sorted(r for said in once.values() for r in said if r in ("status", "feedback")) == sorted(
        r["reason"] for r in rows if r["reason"]
    )


def test_the_hash_depends_on_the_seed_and_the_id_only() -> None:
    ids = [f"id{i}" for i in range(1000)]
    one = seeded_hashes(ids, 7)
    assert list(one) == [int(seeded_hashes([i], 7)[0]) for i in ids]
    assert len({*one.tolist(), *seeded_hashes(ids, 8).tolist()}) == 2000
    assert 440 < int((one < 0).sum()) < 560
    # written down, so that a set can be drawn again in years to come
    assert seeded_hashes(["9f3d2a10-0000-4000-8000-000000000003", "é#0"], 42).tolist() == [
        -2792085456664476654,
        6788328348765682931,
    ]


def test_a_fraction_is_a_place_in_the_range() -> None:
    assert (below(0.5), below(0.25)) == (0, -(1 << 62))
    assert (LOWEST, LOWEST + RANGE) == (-(2**63), 2**63)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        *((500, 500), (0.1, 0.1), (None, None), ("500", 500), ("0.1", 0.1), (1, 1), ("1", 1), (np.int64(3), 3)),
        *(((1 << 63) - 1, (1 << 63) - 1), (1e-9, 1e-9)),
    ],
)
def test_samples(said: Any, meant: Any) -> None:
    assert sample_of(said) == meant


@pytest.mark.parametrize(("said", "meant"), [(0, 0), (-7, -7), (np.int64(7), 7), (1 << 80, 1 << 80)])
def test_seeds(said: Any, meant: int) -> None:
    assert (seed_of(said), type(seed_of(said))) == (meant, int)


@pytest.mark.parametrize("said", [0, -1, True, False, 1.0, 0.0, -0.5, 1.5, float("nan"), "many", "", [], 1 << 63])
def test_what_is_no_sample(said: Any) -> None:
    with pytest.raises(EvalSetError, match="sample: expected a number of rows"):
        sample_of(said)


@pytest.mark.parametrize("said", [1.0, True, "1", None])
def test_what_is_no_seed(said: Any) -> None:
    with pytest.raises(EvalSetError, match="seed: expected a whole number"):
        seed_of(said)
