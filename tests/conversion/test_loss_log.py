"""Losses are counted, listed and read alike, whether they are kept in memory or in a file."""

import json
import random
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_eval_schema import convert_eval_set
from agent_eval_schema.conversion import loss_log
from agent_eval_schema.conversion.convert import convert_file
from agent_eval_schema.conversion.loss_log import LISTED, LossLog
from agent_eval_schema.issues import Finding, Issue
from agent_eval_schema.rules import conversion
from tests.conftest import SAMPLES

RULES = (conversion.NO_PLACE, conversion.CHANGED, conversion.LEFT_OUT)


def loss(row: int | None, rule: int, column: str | None, text: str = "lost") -> Issue:
    return Finding(RULES[rule], text, column).issue(row, None)


BATCHES = st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.sampled_from(["a", "b", None]))))


@given(BATCHES, st.integers(0, 5))
def test_the_log_is_that_of_all_losses_at_once(batches: list[list[tuple[int, int, str | None]]], kept: int) -> None:
    """Each batch has rows of its own, in any order."""
    losses = [[loss(4 * at + row, *more) for row, *more in batch] for at, batch in enumerate(batches)]  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loss_log, "KEPT", kept)
        log = LossLog()
        for batch in losses:
            log.extend(batch)
    every = sorted((one for batch in losses for one in batch), key=lambda one: one.row or 0)
    assert list(log) == list(log) == every
    assert len(log) == len(every) == sum(found.count for found in log.fields.values())
    whole = LossLog(every)
    for field, found in whole.fields.items():
        assert (found.row_count, found.first, found.rows) == (
            len({one.row for one in every if (one.column or "", "" if one.column else one.code) == field}),
            log.fields[field].first,
            log.fields[field].rows,
        )
        assert log.fields[field].codes.keys() == found.codes.keys()
        assert (log.fields[field].is_one, log.fields[field].worst) == (found.is_one, found.worst)
    assert (log.severities, log.hints) == (whole.severities, whole.hints)


def test_losses_of_no_row_come_first() -> None:
    log = LossLog([loss(n, 0, "a") for n in range(LISTED + 1)])
    log.extend([loss(99, 0, "a"), loss(None, 0, "a", "of all rows")])
    assert [one.row for one in log] == [None, *range(LISTED + 1), 99]
    assert [one.row for one in log.fields["a", ""].first] == [None, *range(LISTED - 1)]
    assert log.fields["a", ""].row_count == LISTED + 2


def test_memory_does_not_grow_with_the_losses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The rows after the first batches leave nothing in memory, and all that is read of the losses is the same."""
    chance = random.Random(1)
    rows = [
        {"request": f"q {n}", "response": "a", "guidelines": ["Be brief"], "tags": {"n": str(chance.random())}}
        for n in range(9_000)
    ]
    whole = convert_eval_set(rows, "vertex")
    source, out = tmp_path / "rows.jsonl", str(tmp_path / "out.jsonl")
    source.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    monkeypatch.setattr(loss_log, "KEPT", 100)
    found = convert_file(str(source), out, "vertex")
    assert (len(found._log._kept), len(found._log)) == (100, 18_000)
    pd.testing.assert_frame_equal(found.losses, whole.losses)
    assert found.to_text().splitlines()[:-2] == whole.to_text().splitlines()[:-2]
    assert found.lossless is whole.lossless is False
    assert found.severities() == whole.severities()


@pytest.mark.parametrize("name", ["broken.jsonl", "evaluation_broken.json"])
def test_what_is_shown_does_not_depend_on_where_losses_are(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    to = "databricks" if "evaluation" in name else "ragas"
    whole = convert_eval_set(SAMPLES / name, to)  # type: ignore[arg-type]
    monkeypatch.setattr(loss_log, "KEPT", 0)
    found = convert_eval_set(SAMPLES / name, to)  # type: ignore[arg-type]
    assert found.to_json() == whole.to_json()
    assert found.to_text() == whole.to_text()
    assert found.to_html() == whole.to_html()
