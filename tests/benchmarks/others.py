"""What other packages do with the same data, to compare with: each is imported where it is measured."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any


def mlflow_fields(texts: Sequence[str]) -> None:
    """MLflow's own extraction of what a validation derives from a trace, by its functions for scorers."""
    from mlflow.entities import Trace
    from mlflow.genai.utils import trace_utils

    for text in texts:
        trace = Trace.from_json(text)
        trace_utils.extract_request_from_trace(trace)
        trace_utils.extract_response_from_trace(trace)
        trace_utils.extract_retrieval_context_from_trace(trace)
        trace_utils.extract_tools_called_from_trace(trace)
        trace_utils.extract_expectations_from_trace(trace)
        _ = trace.info.token_usage


def adk_scores(rows: Sequence[dict[str, str]]) -> None:
    """google-adk's evaluator from the same cells, in the three kinds of match that it has."""
    from google.adk.evaluation.eval_case import IntermediateData, Invocation
    from google.adk.evaluation.eval_metrics import EvalMetric, ToolTrajectoryCriterion
    from google.adk.evaluation.trajectory_evaluator import TrajectoryEvaluator
    from google.genai import types

    def invocation(cell: str) -> Any:
        uses = [types.FunctionCall(name=call["tool_name"], args=call["tool_input"]) for call in json.loads(cell)]
        return Invocation(user_content=types.Content(), intermediate_data=IntermediateData(tool_uses=uses))

    sides = [[invocation(row[f"{side}_trajectory"]) for row in rows] for side in ("predicted", "reference")]
    for kind in ("EXACT", "IN_ORDER", "ANY_ORDER"):
        criterion = ToolTrajectoryCriterion(threshold=1, match_type=ToolTrajectoryCriterion.MatchType[kind])
        metric = EvalMetric(metric_name="m", threshold=1, criterion=criterion)
        TrajectoryEvaluator(eval_metric=metric).evaluate_invocations(*sides)


def vendor_parse(texts: Sequence[str]) -> None:
    """The reader of google-cloud-ces."""
    from google.cloud.ces_v1beta.types import Evaluation
    from google.protobuf import json_format

    for text in texts:
        json_format.Parse(text, Evaluation.pb(Evaluation()))


@contextmanager
def mlflow_on_sqlite() -> Iterator[Any]:
    """MLflow with a fresh store; what it prints is not the result of a measurement."""
    settings = {"MLFLOW_GENAI_EVAL_MAX_WORKERS": "4", "MLFLOW_ENABLE_ASYNC_TRACE_LOGGING": "false"}
    os.environ.update(settings, MLFLOW_DISABLE_TELEMETRY="true", DO_NOT_TRACK="true")
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(sys.stderr):
        import mlflow.genai

        mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
        mlflow.set_experiment(experiment_id=mlflow.create_experiment("benchmark", artifact_location=f"file://{folder}"))
        yield mlflow


def on_mlflow(run: Callable[[Any, list[Any]], object]) -> None:
    """Run an evaluation with two scorers that need no model."""
    with mlflow_on_sqlite() as mlflow:
        from mlflow.genai.scorers import scorer

        from agent_eval_schema.integrations.mlflow.scorers import DocumentRecall

        @scorer  # type: ignore[untyped-decorator]
        def length(outputs: Any) -> int:
            return len(outputs)

        run(mlflow, [length, DocumentRecall()])


KEYS = 50
_NEXT_ROWS = """async count => {
  const times = [], row = document.getElementById("row");
  for (let i = 0; i < count; i++) {
    const before = row.textContent, start = performance.now();
    document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "j", bubbles: true}));
    while (row.textContent === before || !row.querySelector("p")) await new Promise(done => {
      const channel = new MessageChannel(); channel.port1.onmessage = done; channel.port2.postMessage(0);
    });
    times.push(performance.now() - start);
    await new Promise(done => setTimeout(done, 300));  // a person takes longer to decide about a row
  }
  return times;
}"""


def review_times(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """The review in Chromium: seconds until the first paint, and from a key until the next row is there, the median."""
    import shutil

    from playwright.sync_api import sync_playwright

    from agent_eval_schema import review_eval_set

    with tempfile.TemporaryDirectory() as folder:
        unlabeled = [{"request": row["request"], "response": row["response"]} for row in rows]
        opened = review_eval_set(unlabeled, reviewer="benchmark", journal=os.path.join(folder, "rows"))
        try:
            with sync_playwright() as playwright:
                chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
                page = chromium.new_page()
                page.goto(opened.url)
                page.wait_for_selector("#row p")
                paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
                steps = sorted(page.evaluate(_NEXT_ROWS, KEYS))
                chromium.close()
        finally:
            opened.stop()
    return {"paint": paint / 1e3, "key": steps[KEYS // 2] / 1e3}
