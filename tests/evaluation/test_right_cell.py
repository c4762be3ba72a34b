"""An agent gets the question of a row, and its answer is compared with the row's ground truth, in every format and
container, whatever its columns are called."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from agent_eval_schema import EvalTask, convert_eval_set, write_eval_set
from agent_eval_schema.formats.registry import FORMATS

TRUTH = {"How long is parental leave?": "16 weeks", "Where is my order?": "On its way", "Who made it?": "Databricks"}
ROWS = [
    {"request_id": f"r{i}", "request": question, "expected_response": answer}
    for i, (question, answer) in enumerate(TRUTH.items())
]
OF_ROWS = [
    form.name
    for form in FORMATS
    if form.writer is not None
    and form.is_rows
    and (form.writer.document is None or form.name in ("pydantic-evals", "strands", "agentcore", "vertex-genai"))
    and any(field.column == "expected_response" for field in form.fields)
] + ["databricks", "mlflow"]

METRICS = ["exact_match"]
AGENTS: dict[str, tuple[Callable[[Any], str], float]] = {
    "perfect": (lambda prompt: TRUTH[prompt], 1.0),
    "empty": (lambda _: "", 0.0),
    "wrong": (lambda prompt: TRUTH[prompt] + "!", 0.0),
}


def data_in(name: str, container: str, folder: Path) -> Any:
    found = convert_eval_set(ROWS, name, format="databricks").data  # type: ignore[arg-type]
    rows = found.to_dict("records") if isinstance(found, pd.DataFrame) else found
    if not isinstance(rows, list):  # a document of all rows
        return rows
    if container == "list":
        return rows
    if container == "frame":
        return pd.DataFrame(rows)
    write_eval_set(rows, folder / "rows.jsonl")
    return str(folder / "rows.jsonl")


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("container", ["list", "frame", "file"])
@pytest.mark.parametrize("name", dict.fromkeys(OF_ROWS))
def test_an_agent_gets_the_text_and_its_answer_meets_the_truth(
    name: str, container: str, agent: str, tmp_path: Path
) -> None:
    seen: list[Any] = []
    answer, expected = AGENTS[agent]

    def noted(prompt: Any) -> str:
        seen.append(prompt)
        return answer(prompt)

    data = data_in(name, container, tmp_path)
    result = EvalTask(data, METRICS, format=name).evaluate(noted, max_workers=1)  # type: ignore[arg-type]
    assert seen == list(TRUTH)
    assert result.failures == {}
    assert result.scores["exact_match"].tolist() == [expected] * len(TRUTH)


def test_a_native_column_does_not_win_over_the_canonical_one() -> None:
    """A case of Vertex' Gen AI evaluation has its question as a content of Gemini."""
    cases = [{"prompt": {"role": "user", "parts": [{"text": q}]}, "reference": {"response": {"parts": [{"text": a}]}}}
             for q, a in TRUTH.items()]  # fmt: skip
    seen: list[Any] = []

    def agent(prompt: Any) -> str:
        seen.append(prompt)
        return TRUTH[prompt]

    result = EvalTask(cases, METRICS, format="vertex-genai").evaluate(agent, max_workers=1)
    assert seen == list(TRUTH)
    assert result.scores["exact_match"].tolist() == [1.0, 1.0, 1.0]


def test_a_cell_that_the_format_cannot_read_is_passed_on_as_it_came() -> None:
    messages = [{"role": "user", "content": "3 + 3"}]
    result = EvalTask([{"prompt": messages, "reference": "6"}], METRICS).evaluate(lambda prompt: str(len(prompt) + 5))
    assert result.scores["exact_match"].tolist() == [1.0]
