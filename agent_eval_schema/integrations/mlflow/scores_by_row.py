"""MLflow's results → scores and reasons, one line per row of the input and one column per scorer.

    mlflow's result, or the store's traces ──lines──▶ by the position in a tag ──▶ a score or a reason

MLflow does not keep the order of the rows, and omits those that it lost. So every row has a line here, filled by
position; where there is no score, a reason is given.
"""

import inspect
from collections.abc import Iterable
from typing import Any

import pandas as pd

from agent_eval_schema.evaluation.table import REQUEST_ID
from agent_eval_schema.integrations.mlflow.records import ROW_TAG, errors_by_row, position_in
from agent_eval_schema.integrations.mlflow.scored_row import ScoredRow
from agent_eval_schema.io.records import is_absent
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.visible import visible
from agent_eval_schema.validation.report import Report, run_of

RUN_OF = "mlflow.assessment.sourceRunId"
"""The key of an assessment's metadata that names the evaluation that made it; a trace keeps those of earlier ones."""


def scorer_name(scorer: Any) -> str:
    """The name under which mlflow logs the scores of a scorer, which may be a decorated function."""
    return str(getattr(scorer, "name", None) or getattr(scorer, "__name__", scorer))


class _ScoresAndReasons:
    """Scores and reasons by the scorer's name, each as long as the input."""

    def __init__(self, names: Iterable[str], size: int) -> None:
        self.size = size
        self.scores: dict[str, list[Any]] = {name: [None] * size for name in names}
        self.reasons: dict[str, list[Any]] = {name: [None] * size for name in self.scores}

    def take(self, row: int, assessments: Iterable[dict[str, Any]]) -> None:
        """The scores of a row, or the reason why there is none. A scorer may return several, under any name."""
        values: dict[str, list[Any]] = {}
        rationales: dict[str, list[str]] = {}
        for assessment in assessments:
            name, feedback = str(assessment.get("assessment_name")), assessment.get("feedback")
            if not isinstance(feedback, dict):
                continue
            for columns in (self.scores, self.reasons):
                columns.setdefault(name, [None] * self.size)
            value, error, why = feedback.get("value"), feedback.get("error"), assessment.get("rationale")
            if error:
                why = f"the scorer raised an exception: {error.get('error_message') or error.get('error_code')}"
            elif not is_absent(value):
                values.setdefault(name, []).append(value)
            if why:
                rationales.setdefault(name, []).append(visible(why))
        for name, found in values.items():
            self.scores[name][row] = found[0] if len(found) == 1 else found
        for name, texts in rationales.items():
            self.reasons[name][row] = " | ".join(dict.fromkeys(texts))

    def explain(self, row: int, reason: str, *, only: Iterable[str] | None = None, replace: bool = False) -> None:
        """Fill in the reason of a row without a score where there is none; `replace`: also an existing one."""
        for name in self.scores if only is None else only:
            if self.scores[name][row] is None and (replace or self.reasons[name][row] is None):
                self.reasons[name][row] = reason


ResultLine = dict[str, Any]


def result_lines(mlflow: Any, result: Any, experiment: str) -> list[ResultLine]:
    """MLflow's result by row; it has none if one score is NaN or infinite: then the scores are read from the traces."""
    if result.result_df is not None:
        found: list[ResultLine] = result.result_df.to_dict("records")
        return found
    scope = "locations" if "locations" in inspect.signature(mlflow.search_traces).parameters else "experiment_ids"
    traces = mlflow.search_traces(**{scope: [experiment]}, run_id=result.run_id, return_type="list")
    lines = []
    for trace in traces:
        # feedback as MLflow writes it, except the values, which its own writer does not support
        feedback = [
            {
                "assessment_name": a.name,
                "feedback": {"value": a.value, "error": a.error and a.error.to_dictionary()},
                "rationale": a.rationale,
                "metadata": a.metadata,
            }
            for a in trace.info.assessments
            if hasattr(a, "error")  # expectations have none
        ]
        lines.append({"tags": trace.info.tags, "assessments": feedback, "trace": trace})
        trace.info.assessments = []  # so that it can be written
    return lines


def scores_by_row(
    run_id: str,
    lines: Iterable[ResultLine],
    scorers: list[Any],
    report: Report,
    ids: list[str | None],
    *,
    ran: bool,
    otherwise: str,
) -> tuple[pd.DataFrame, pd.DataFrame, dict[int, str]]:
    """The results of MLflow, at the place of each row; where there is none, the reason: `otherwise` if nothing else is
    known. The rows have the index of the data, and their request_id. Then the errors of the rows on which
    the agent failed."""
    joined = _ScoresAndReasons(map(scorer_name, scorers), report.row_count)
    of_sessions = [scorer_name(s) for s in scorers if getattr(s, "is_session_level_scorer", False)]
    errors = errors_by_row(report) if report.invalid_count else {}
    reasons: dict[int, str] = {}
    found: set[int] = set()
    for line in lines:
        row, assessments = _of_a_line(line)
        if row is None:
            continue
        found.add(row)
        of_run = [a for a in assessments if (a.get("metadata") or {}).get(RUN_OF) == run_id]
        # MLflow's judge of documents names the document; the store keeps no order
        joined.take(row, sorted(of_run, key=lambda a: position_in((a.get("metadata") or {}).get("chunk_index"))))
        run = ScoredRow(None, None, None, line.get("trace")).derived if ran else None
        if run is not None and run.failure:
            reasons[row] = "predict_fn raised an exception" + (f": {visible(run.error)}" if run.error else "")
    failures = dict(sorted(reasons.items()))
    for row, valid in enumerate(report.valid_mask.tolist()):
        if not valid:
            codes = dict.fromkeys(f"{issue.code} {issue.name}" for issue in errors.get(row, ()))
            reasons[row] = f"the row is invalid: {', '.join(codes) or 'see the report'}"
        elif row not in found:
            reasons[row] = "MLflow recorded no trace for this row, so it has no score"
        if row in reasons:
            joined.explain(row, reasons[row], replace=True)
        else:
            joined.explain(row, "a session has one score, on its first row", only=of_sessions)
            joined.explain(row, otherwise)
    known = {REQUEST_ID: ids} if any(id is not None for id in ids) else {}
    index = run_of(report).index
    of_rows, why = (
        pd.DataFrame({n: pd.Series(c, dtype="object", index=index) for n, c in {**known, **columns}.items()})
        for columns in (joined.scores, joined.reasons)
    )
    return of_rows, why, failures


def _of_a_line(line: dict[str, Any]) -> tuple[int | None, list[dict[str, Any]]]:
    """The position of the row that a line of mlflow's result is about, and its assessments."""
    if "assessments" in line:
        found = line["assessments"] or []
        place = (line["tags"] or {}).get(ROW_TAG)
    else:
        text = line.get("trace")
        found = jsontext.decode(text)["info"].get("assessments") or [] if isinstance(text, str) else []
        place = line.get("request_id")
    assessments = [a if isinstance(a, dict) else a.to_dictionary() for a in found]
    return (None if place is None else int(place)), assessments


def answers_by_row(result: Any) -> dict[int, Any]:
    """What `predict_fn` returned, by row."""
    lines = getattr(result, "result_df", None)
    if lines is None or not {"tags", "response"} <= set(lines.columns):
        return {}
    found = {}
    for tags, response in zip(lines["tags"], lines["response"], strict=True):
        row = (tags or {}).get(ROW_TAG)
        if row is not None and not is_absent(response):
            found[int(row)] = response
    return found
