"""MLflow's results → scores and reasons, one line per row of the input and one column per scorer.

    mlflow's result, or the store's traces ──lines──▶ by the position in a tag ──▶ a score or a reason

MLflow does not keep the order of the rows, and omits those that it lost. So every row has a line here, filled by
position; where there is no score, a reason is given.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from agent_eval_schema.evaluation.mlflow_run import ROW_TAG, ResultLine, ScoresAndReasons, of_run
from agent_eval_schema.evaluation.table import REQUEST_ID
from agent_eval_schema.integrations.mlflow.records import errors_by_row
from agent_eval_schema.integrations.mlflow.scored_row import ScoredRow
from agent_eval_schema.io.records import is_absent
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.visible import visible
from agent_eval_schema.validation.report import Report, run_of


def scorer_name(scorer: Any) -> str:
    """The name under which mlflow logs the scores of a scorer, which may be a decorated function."""
    return str(getattr(scorer, "name", None) or getattr(scorer, "__name__", scorer))


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
    joined = ScoresAndReasons(map(scorer_name, scorers), report.row_count)
    of_sessions = [scorer_name(s) for s in scorers if getattr(s, "is_session_level_scorer", False)]
    errors = errors_by_row(report) if report.invalid_count else {}
    reasons: dict[int, str] = {}
    rows: set[int] = set()
    for line in lines:
        row = _place(line)
        if row is None:
            continue
        rows.add(row)
        joined.take(row, of_run(_assessments(line), run_id))
        run = ScoredRow(None, None, None, line.get("trace")).derived if ran else None
        if run is not None and run.failure:
            reasons[row] = "predict_fn raised an exception" + (f": {visible(run.error)}" if run.error else "")
    failures = dict(sorted(reasons.items()))
    for row, valid in enumerate(report.valid_mask.tolist()):
        if not valid:
            codes = dict.fromkeys(f"{issue.code} {issue.name}" for issue in errors.get(row, ()))
            reasons[row] = f"the row is invalid: {', '.join(codes) or 'see the report'}"
        elif row not in rows:
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


def _assessments(line: dict[str, Any]) -> list[dict[str, Any]]:
    """The assessments of a line of mlflow's result."""
    if "assessments" in line:
        assessments = line["assessments"] or []
    else:
        text = line.get("trace")
        assessments = jsontext.decode(text)["info"].get("assessments") or [] if isinstance(text, str) else []
    return [a if isinstance(a, dict) else a.to_dictionary() for a in assessments]


def _place(line: Mapping[str, Any]) -> int | None:
    """The position of the row of a line, which is the request_id in older versions."""
    place = (line["tags"] or {}).get(ROW_TAG) if "assessments" in line else line.get("request_id")
    return None if place is None else int(place)


def answers_by_row(result: Any) -> dict[int, Any]:
    """What `predict_fn` returned, by row."""
    lines = getattr(result, "result_df", None)
    answers = {}
    for line in () if lines is None else lines.to_dict("records"):
        row = _place(line)
        answer = line.get("response", line.get("outputs"))  # as older versions call it
        if row is not None and not is_absent(answer):
            answers[row] = answer
    return answers
