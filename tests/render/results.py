"""Results of two evaluations with texts wherever a text can be."""

from typing import Any

from agent_eval_schema import EvalTask

METRICS = ["trajectory_exact_match", "trajectory_precision"]


def rows_of(texts: list[str]) -> list[dict[str, Any]]:
    calls = [{"tool_name": "a", "tool_input": {}}]
    return [
        {"request_id": text, "prompt": text, "predicted_trajectory": calls * n, "reference_trajectory": calls}
        for n, text in enumerate(texts, 1)
    ]


def task(texts: list[str]) -> EvalTask:
    return EvalTask(rows_of(texts), METRICS)


def comparison(texts: list[str]) -> Any:
    other = rows_of(texts)
    other[0]["predicted_trajectory"] = []
    return task(texts).evaluate().compare(EvalTask(other, METRICS).evaluate())
