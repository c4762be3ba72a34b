"""Where issues occur: exact counts whatever the batches, in memory that does not grow."""

import json
from pathlib import Path

import numpy as np
import pytest

from agent_eval_schema import validate_eval_set
from agent_eval_schema.render.figures import KINDS, STEPS, Occurrences
from agent_eval_schema.validation.report import summary_of


@pytest.mark.parametrize("total", [1, 7, 120, 121, 1_000, 123_457])
def test_the_steps_add_up_to_the_rows(total: int) -> None:
    rows = np.flatnonzero(np.random.default_rng(total).random(total) < 0.3)
    found = Occurrences()
    for part in np.array_split(rows, 5):
        found.add_rows(part)
    shares = found.shares(total)
    assert found.rows == len(rows)
    assert len(shares) <= STEPS
    assert all(0 <= share <= 1 for share in shares)
    width = next(w for w in (2**i for i in range(30)) if -(-total // w) == len(shares))
    expected = [
        round(float(np.isin(np.arange(i, min(i + width, total)), rows).mean()), 3) for i in range(0, total, width)
    ]
    assert shares == expected


def test_equal_messages_are_counted_together_and_others_in_all() -> None:
    found = Occurrences()
    for i in range(KINDS + 10):
        found.add_kind(f"request.messages[{i}].role", f"got {i % (KINDS + 5)}", "")
    assert len(found.kinds) == KINDS
    assert found.others == 5
    assert found.kinds["request.messages[*].role", "got 0", ""] == 2  # type: ignore[index]


def test_a_report_counts_rows_and_messages(tmp_path: Path) -> None:
    chats = [{"messages": [{"role": role, "content": "x"}] * 2} for role in ["usr"] * 6 + ["bot"] * 3 + ["user"]]
    path = tmp_path / "rows.jsonl"
    rows = [
        {"request": chat, "response": "x", "expected_respones": "y" if i < 4 else None} for i, chat in enumerate(chats)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    summary = summary_of(validate_eval_set(path))
    roles = summary.occurrences["AE206"]
    assert (summary.counts["AE206"], roles.rows) == (18, 9)
    assert [count for _, count in roles.kinds.most_common()] == [12, 6]
    assert roles.shares(10) == [1.0] * 9 + [0.0]
    assert summary.occurrences["AE102"].rows == 4  # the rows that a misspelled column costs
