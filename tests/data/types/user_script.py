"""A user's script: it must pass `mypy --strict` and pyright in strict mode."""

import warnings
from pathlib import Path
from typing import Any

import pandas as pd

import agent_eval_schema as aes
from agent_eval_schema import (
    CustomMetric,
    EvalResult,
    EvalSetError,
    EvalTask,
    InvalidEvalSetError,
    Report,
    ToolUseMetric,
    ces,
    convert_eval_set,
    diff_eval_sets,
    eval_set_from_inference_table,
    normalize_eval_set,
    prepare_for_evaluate,
    validate_eval_set,
)

df = pd.DataFrame({"request": ["What is RAG?"], "response": ["Retrieval first."]})
rows: list[dict[str, str]] = [{"request": "What is RAG?", "response": "Retrieval first."}]


def validated(data: aes.EvalSetLike, format: aes.FormatName = "databricks") -> Report:
    report = validate_eval_set(data, format=format, outputs="provided", select=["AE2"], show_values=False)
    if not report.ok:
        report.save(Path("report.html"))
        print(report.issues["code"].unique(), report.invalid_count + 1, report.counts.get("AE206", 0))
    return report


def normalized() -> tuple[pd.DataFrame, list[dict[str, Any]], pd.DataFrame]:
    try:
        frame = normalize_eval_set(df, on_invalid="raise")
    except InvalidEvalSetError as error:
        print(error.report.row_count)
        raise
    return frame, normalize_eval_set(rows, fix=True), normalize_eval_set(Path("rows.jsonl"), on_invalid="keep")


def agent(prompt: str) -> dict[str, Any]:
    return {"response": prompt, "predicted_trajectory": []}


def scored(name: aes.MetricName) -> EvalResult:
    length = CustomMetric("length", lambda row: float(len(row["response"])))
    task = EvalTask(df, [name, "bleu", ToolUseMetric(tool_name="search"), length])
    result = task.evaluate(agent, max_workers=2)
    low, high = result.confidence_interval("bleu", confidence_level=0.9)
    print(result.quantile(0.9) + low + high, result.quantile([0.5, 0.9]).max(), result.groupby("kind").shape)
    print(result.failing({"bleu": 0.5}).items(), result.write("scores.parquet") + 1)
    return result


with warnings.catch_warnings():
    warnings.simplefilter("ignore", aes.InvalidRowsWarning)
    frame = prepare_for_evaluate(df, evaluator="mlflow.genai", inputs="question", on_invalid="drop")
print(frame.columns, aes.metric_support(df, system="auto").sum())
made = convert_eval_set(rows, "ragas", format="databricks")
print(made.lossless, made.losses.shape, diff_eval_sets("old.jsonl", df).same)
build = eval_set_from_inference_table("table", include=["status"], columns={"body.input": "request"})
print(build.rows["request_id"].nunique(), build.summary.rows + 1, build.report.ok, build.write("rows.jsonl") + 1)
try:
    print(ces.read_golden_csv("golden.csv").ok, aes.explain("AE206").upper(), aes.json_schema("databricks")["type"])
except (EvalSetError, FileNotFoundError) as problem:
    print(problem.args)
