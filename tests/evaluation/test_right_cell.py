"""An agent gets the question of a row, and its answer is compared with the row's ground truth, in every format and
container, whatever its columns are called."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from agent_eval_schema import CustomMetric, EvalTask, convert_eval_set, validate_eval_set, write_eval_set
from agent_eval_schema.evaluation.task_metrics import NAMES
from agent_eval_schema.formats.registry import FORMATS
from agent_eval_schema.metrics.definitions import DEFINITIONS

TRUTH = {
    "How long is parental leave?": "It is 16 weeks long",
    "Where is my order?": "It is on its way",
    "Who made it?": "It was made by Databricks",
}
Row = dict[str, Any]


def call(question: str) -> Row:
    return {"tool_name": f"find_{len(question)}", "tool_input": {}}


ROWS: list[Row] = [
    {
        "request_id": f"r{i}",
        "request": question,
        "expected_response": answer,
        "reference_trajectory": [call(question)],
    }
    for i, (question, answer) in enumerate(TRUTH.items())
]
OF_ROWS = [
    form.name
    for form in FORMATS
    if form.writer is not None and form.is_rows and any(field.column == "expected_response" for field in form.fields)
] + ["databricks", "mlflow", "adk", "adk-legacy"]

NEED_OPTIONS_OR_CALLS_IN_TEXT = {"tool_call_valid", "tool_name_match", "tool_parameter_key_match"} | {
    "tool_parameter_kv_match"
}
OF_DOCUMENTS = {"document_recall", "document_precision"}
"""Metrics of what was retrieved, which an agent does not return."""

METRICS = [name for name in NAMES if name not in NEED_OPTIONS_OR_CALLS_IN_TEXT | OF_DOCUMENTS]
OF_CALLS = [name for name in METRICS if "reference_trajectory" in DEFINITIONS[name].reads]
AGENTS: dict[str, tuple[Callable[[str], Row], float]] = {
    "perfect": (lambda prompt: {"response": TRUTH[prompt], "predicted_trajectory": [call(prompt)]}, 1.0),
    "empty": (lambda _: {"response": "", "predicted_trajectory": []}, 0.0),
    "wrong": (lambda _: {"response": "Nonsense!", "predicted_trajectory": [{"tool_name": "x", "tool_input": {}}]}, 0.0),
}


def data_in(name: str, container: str, folder: Path) -> Any:
    found = convert_eval_set(ROWS, name, format="databricks").data  # type: ignore[arg-type]
    rows = found.to_dict("records") if isinstance(found, pd.DataFrame) else found
    if isinstance(rows, list) and container == "frame":
        return pd.DataFrame(rows)
    if container != "file":
        return rows
    if isinstance(rows, list):
        write_eval_set(rows, folder / "rows.jsonl")
        return str(folder / "rows.jsonl")
    (folder / "rows.json").write_text(json.dumps(rows), encoding="utf-8")  # a document of all rows
    return str(folder / "rows.json")


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("container", ["list", "frame", "file"])
@pytest.mark.parametrize("name", dict.fromkeys(OF_ROWS))
def test_an_agent_gets_the_text_and_its_answer_meets_the_truth(
    name: str, container: str, agent: str, tmp_path: Path
) -> None:
    pytest.importorskip("sacrebleu")
    pytest.importorskip("rouge_score")
    seen: list[Any] = []
    answer, expected = AGENTS[agent]

    def noted(prompt: Any) -> Row:
        seen.append(prompt)
        return answer(prompt)

    data = data_in(name, container, tmp_path)
    rows = list(validate_eval_set(data, format=name).iter_rows())  # type: ignore[arg-type]
    result = EvalTask(data, METRICS, format=name, match="tool_name").evaluate(  # type: ignore[arg-type]
        noted, max_workers=1
    )
    assert seen == list(TRUTH)
    assert result.failures == {}
    with_calls = [row["reference_trajectory"] is not None for row in rows]
    for metric in METRICS:
        has_truth = with_calls if metric in OF_CALLS else [True] * len(rows)
        scores = [None if score != score else round(score, 6) for score in result.scores[metric]]
        assert scores == [expected if has else None for has in has_truth], metric


def test_most_formats_have_the_expected_calls() -> None:
    """The test above compares calls where a format has a place for them."""
    of_calls = [form.name for form in FORMATS if any(f.column == "reference_trajectory" for f in form.fields)]
    assert len(set(of_calls) & set(OF_ROWS)) > 8


@pytest.mark.parametrize("answer", ["perfect", "empty", "wrong"])
def test_documents_that_were_retrieved_meet_those_that_are_expected(answer: str) -> None:
    wanted = [{"doc_uri": "a.md"}, {"doc_uri": "b.md"}]
    found = {"perfect": wanted, "empty": [], "wrong": [{"doc_uri": "c.md"}]}[answer]
    rows = [{"request": "q", "response": "a", "retrieved_context": found, "expected_retrieved_context": wanted}]
    for name in ("databricks", "ragas"):  # others have no place for the URI of a document without content
        data = convert_eval_set(rows, name, format="databricks").data  # type: ignore[arg-type]
        result = EvalTask(data, sorted(OF_DOCUMENTS), format=name).evaluate()  # type: ignore[arg-type]
        assert result.scores["document_recall"].fillna(0).tolist() == [float(answer == "perfect")], name


def test_a_metric_of_ones_own_gets_the_text_of_a_case() -> None:
    cases = [{"prompt": {"role": "user", "parts": [{"text": q}]}, "reference": {"response": {"parts": [{"text": a}]}},
              "response": a} for q, a in TRUTH.items()]  # fmt: skip
    seen: list[Any] = []

    def own(row: Row) -> float:
        seen.append((row["prompt"], row["reference"], row["response"]))
        return 1.0

    EvalTask(cases, [CustomMetric("own", own)], format="vertex-genai").evaluate()
    assert seen == [(q, a, a) for q, a in TRUTH.items()]


def test_a_native_column_does_not_win_over_the_canonical_one() -> None:
    """A case of Vertex' Gen AI evaluation has its question as a content of Gemini."""
    cases = [{"prompt": {"role": "user", "parts": [{"text": q}]}, "reference": {"response": {"parts": [{"text": a}]}}}
             for q, a in TRUTH.items()]  # fmt: skip
    seen: list[Any] = []

    def agent(prompt: Any) -> str:
        seen.append(prompt)
        return TRUTH[prompt]

    result = EvalTask(cases, ["exact_match"], format="vertex-genai").evaluate(agent, max_workers=1)
    assert seen == list(TRUTH)
    assert result.scores["exact_match"].tolist() == [1.0, 1.0, 1.0]


def test_a_cell_that_the_format_cannot_read_is_passed_on_as_it_came() -> None:
    messages = [{"role": "user", "content": "3 + 3"}]
    result = EvalTask([{"prompt": messages, "reference": "6"}], ["exact_match"]).evaluate(
        lambda prompt: str(len(prompt) + 5)
    )
    assert result.scores["exact_match"].tolist() == [1.0]
