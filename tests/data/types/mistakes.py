"""Seeded mistakes: a type checker must find one on each line that ends with `# mistake`, and nowhere else."""

import pandas as pd

import agent_eval_schema as aes
from agent_eval_schema import EvalTask, convert_eval_set, normalize_eval_set, prepare_for_evaluate, validate_eval_set
from agent_eval_schema import validate_evalset as renamed  # mistake

df = pd.DataFrame({"request": ["a"]})
report = validate_eval_set(df)
result = aes.score_trajectories(df)

aes.validat_eval_set(df)  # mistake
validate_eval_set(42)  # mistake
validate_eval_set(df, format="databrick")  # mistake
validate_eval_set(df, outputs="provide")  # mistake
validate_eval_set(df, values=False)  # mistake
validate_eval_set(df, "databricks")  # mistake
normalize_eval_set(df, on_invalid="ignore")  # mistake
normalize_eval_set(df).append_row({})  # mistake
normalize_eval_set([{"request": "a"}]).columns  # mistake
prepare_for_evaluate(df, evaluator="mlflow")  # mistake
prepare_for_evaluate(df, on_invalid="excluded")  # mistake
convert_eval_set(df, target="ragas")  # mistake
convert_eval_set(df, "raga")  # mistake
EvalTask(df, ["trajectory_recal"])  # mistake
EvalTask(df, [aes.ToolUseMetric])  # mistake
aes.metric_support(df, system="vertx")  # mistake
report.isues  # mistake
report.valid_count.upper()  # mistake
result.quantile("0.9")  # mistake
build = aes.eval_set_from_inference_table("table")
build.sumary  # mistake
aes.eval_set_from_inference_table("table", dedupe="questions")  # mistake
aes.eval_set_from_inference_table("table", since=2025)  # mistake
aes.eval_set_from_inference_table("table", strata="day")  # mistake
aes.ces.read_golden("golden.csv")  # mistake
