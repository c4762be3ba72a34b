"""What a conversion needs to know of CES: the evaluations of a source, the rows in them, and evaluations of rows."""

from __future__ import annotations

import bisect
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from agent_eval_schema.formats.ces.evaluation import Evaluation, read_evaluations
from agent_eval_schema.formats.ces.golden_file import read_golden_csv
from agent_eval_schema.formats.ces.rows import by_json_names, goldens_of, groups_of, objects, rows_of
from agent_eval_schema.formats.unread import ALL, Shape, unread
from agent_eval_schema.issues import EvalSetError, Severity
from agent_eval_schema.report import Report

CSV, JSON = "ces-csv", "ces-evaluation"
FORMATS = (CSV, JSON)


class Given(Struct, frozen=True):
    """An evaluation of a source: the row of the source on which it begins, its groups, and whether it is valid."""

    evaluation: Evaluation
    row: int
    groups: list[str]
    valid: bool

    def rows(self) -> list[dict[str, Any]]:
        """The evaluation rows in it."""
        return rows_of(self.evaluation, self.groups)

    def unread(self) -> Iterator[tuple[str, Any]]:
        """What no row says: the JSON path and the value."""
        named = by_json_names(self.evaluation)
        yield from unread(named, _READ)
        for path in _any_arguments(named):
            yield path, "any arguments"


def _any_arguments(evaluation: Mapping[str, Any]) -> Iterator[str]:
    """Expected calls that leave their arguments open, which a trajectory cannot say."""
    golden = evaluation.get("golden")
    for i, turn in enumerate(objects(golden.get("turns")) if isinstance(golden, dict) else ()):
        for j, step in enumerate(objects(turn.get("steps"))):
            expectation = step.get("expectation")
            call = expectation.get("toolCall") if isinstance(expectation, dict) else None
            if isinstance(call, dict) and call.get("args") is None:
                yield f"golden.turns[{i}].steps[{j}].expectation.toolCall.args"


def evaluations_of(data: Any, report: Report) -> list[Given]:
    """The evaluations of a source of CES, which a report has been made of. Raises EvalSetError for a frame: only a
    file, a folder, text or a list of objects holds evaluations."""
    if report.format == CSV:
        return list(_golden(data))
    source = os.fspath(data) if isinstance(data, os.PathLike) else data
    if not isinstance(source, str | list | tuple | Mapping):
        raise EvalSetError("Evaluation JSON is converted from a file, a folder or a list of dicts")
    found = read_evaluations(source)
    return [Given(e, i, [], bool(valid)) for i, (e, valid) in enumerate(zip(found, report.valid_mask, strict=True))]


def _golden(data: Any) -> Iterator[Given]:
    if not isinstance(data, str | os.PathLike):
        raise EvalSetError("a golden CSV is converted from a file")
    file = read_golden_csv(data)
    broken = [i.row for i in file.issues if i.severity is Severity.ERROR]
    whole = None in broken  # an error of the header is one of all evaluations
    bad = {bisect.bisect_right(file.starts, row) - 1 for row in broken if row is not None}
    for i, evaluation in enumerate(file.evaluations):
        groups = file.groups.get(evaluation["displayName"], [])
        yield Given(evaluation, file.starts[i], groups, not whole and i not in bad)


def made_of_rows(rows: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], list[int | None]]:
    """A golden evaluation a row, and which of the rows that are read back is the row's: none if it expects nothing."""
    made = goldens_of(rows)
    places: list[int | None] = []
    count = 0
    for row, evaluation in zip(rows, made, strict=True):
        count += len(rows_of(evaluation))
        expects = any(row.get(n) is not None for n in ("expected_response", "reference_trajectory")) or any(
            "expectation" in step for step in evaluation["golden"]["turns"][-1]["steps"]
        )
        places.append(count - 1 if expects else None)
    return made, places


def groups_by_name(rows: Sequence[Mapping[str, Any]], made: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The groups of the evaluations, as a golden CSV is told them."""
    return {str(e["displayName"]): groups_of(row) for row, e in zip(rows, made, strict=True)}


def rows_back(evaluations: Sequence[Mapping[str, Any]], groups: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """The rows of evaluations that were made of rows, with the groups that a golden CSV says."""
    return [row for e, named in zip(evaluations, groups, strict=True) for row in rows_of(e, named)]


_INPUT: Shape = dict.fromkeys(("text", "dtmf", "audio", "toolResponses", "image", "blob", "variables", "event"), ALL)

_READ: Shape = {
    **dict.fromkeys(("displayName", "name", "description", "tags", "scenario"), ALL),
    "golden": {"turns": {"steps": {"userInput": _INPUT, "expectation": ALL}}},
    "goldenResult": {
        "turnReplayResults": {
            **dict.fromkeys(("conversation", "turnLatency", "errorInfo"), ALL),
            **dict.fromkeys(("toolInvocationScore", "toolOrderedInvocationScore", "overallToolInvocationResult"), ALL),
            **{key: {"score": ALL} for key in ("semanticSimilarityResult", "hallucinationResult")},
            "expectationOutcome": {
                **dict.fromkeys(("observedToolCall", "observedAgentResponse", "expectation", "outcome"), ALL),
                "toolInvocationResult": {"parameterCorrectnessScore": ALL},
            },
        }
    },
    "scenarioResult": {
        **dict.fromkeys(("conversation", "task", "allExpectationsSatisfied", "taskCompleted", "rubricOutcomes"), ALL),
        **{key: {"score": ALL} for key in ("taskCompletionResult", "userGoalSatisfactionResult")},
        "expectationOutcomes": {
            **dict.fromkeys(("observedToolCall", "observedAgentResponse", "expectation"), ALL),
        },
    },
    **dict.fromkeys(("evaluationStatus", "evaluationRun", "appVersion", "errorInfo"), ALL),
}
"""What rows.py reads of an evaluation and of a result."""
