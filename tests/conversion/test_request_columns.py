"""What a platform gives the agent with the request, and another one hides from it, is a loss of its row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema import convert_eval_set
from agent_eval_schema.conversion.convert import convert_file
from agent_eval_schema.formats.registry import FORMATS
from agent_eval_schema.rules.conversion import RENAMED

TARGETS = [form.name for form in FORMATS if form.writer is not None]

SAMPLES: dict[tuple[str, str], dict[str, Any]] = {
    ("inspect", "choices"): {"input": "Which one?", "target": "B", "choices": ["20 days", "30 days"]},
    ("inspect", "files"): {"input": "Which one?", "target": "B", "files": {"a.csv": "1,2"}},
    ("agent-skills", "files"): {"prompt": "Which one?", "expected_output": "B", "skill_name": "s", "files": ["a.csv"]},
    ("langsmith", "attachments"): {
        "inputs": {"question": "Which one?"},
        "outputs": {"answer": "B"},
        "attachments": {"a": {"mime_type": "text/plain", "data": "MQ=="}},
    },
}


def losses_of(data: Any, target: str, column: str, **options: Any) -> list[tuple[int | None, str]]:
    """The losses of rows in a column, and of no others."""
    losses = convert_eval_set(data, target, **options).losses
    return [
        (loss.row, loss.code) for loss in losses.itertuples() if loss.column == column and loss.code != RENAMED.code
    ]


def test_each_asked_column_has_a_sample() -> None:
    assert set(SAMPLES) == {(form.name, column) for form in FORMATS for column in form.request_columns}


@pytest.mark.parametrize(("source", "column"), SAMPLES)
@pytest.mark.parametrize("target", TARGETS)
def test_a_column_that_the_agent_is_given_is_lost_in_every_other_format(source: str, column: str, target: str) -> None:
    row = SAMPLES[source, column]
    rows = [{n: v for n, v in row.items() if n != column}, row]
    expected = [] if target == source else [(1, "AE811")]
    assert losses_of(rows, target, column, format=source) == expected


@pytest.mark.parametrize("name", ["out.jsonl", "out.json", "out.csv", "out.parquet"])
def test_the_loss_is_that_of_a_file(name: str, tmp_path: Path) -> None:
    rows = [{"input": "Hi", "target": "Hello", "choices": None}, SAMPLES["inspect", "choices"]]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = convert_file(str(tmp_path / "in.jsonl"), str(tmp_path / name), "databricks")
    assert [(loss.row, loss.code, loss.column) for loss in made.losses.itertuples()] == [(1, "AE811", "choices")]
    assert convert_eval_set(str(tmp_path / name), "mlflow").losses["code"].tolist() == ["AE817"]  # the owner's own


def test_a_column_of_the_same_name_and_another_meaning_is_passed_through_apart() -> None:
    """The class of Inspect rejects a list of paths as `files`."""
    row = SAMPLES["agent-skills", "files"]
    made = convert_eval_set([row], "inspect").data.to_dict("records")
    assert [r["passed_through.files"] for r in made] == [["a.csv"]]
    assert "files" not in made[0]
