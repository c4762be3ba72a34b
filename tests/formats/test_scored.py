"""What a row supports is what other platforms score: rows of each kind × the metrics of a platform. Its own checks are
recorded (tests/helpers/record_scored.py), as the packages are too heavy for the tests.

EXCEPTIONS has the cells that differ on purpose, with the argument.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable

import pytest

from agent_eval_schema import convert_eval_set, validate_eval_set
from agent_eval_schema.metrics import platforms
from agent_eval_schema.metrics.catalog import METRICS
from tests.conftest import DATA, Row

pytestmark = pytest.mark.oracle

PLATFORMS = DATA / "platforms"

ASKED: Row = {"request": "How many days?"}
ANSWERED: Row = {**ASKED, "response": "Twelve days."}
TRUTH: Row = {"expected_response": "12 days"}
DOCUMENTS: Row = {"retrieved_context": [{"doc_uri": "leave.md", "content": "Leave is twelve days."}]}
EXPECTED: Row = {"expected_retrieved_context": [{"doc_uri": "leave.md", "content": "Leave is twelve days."}]}
CALL = {"tool_name": "look_up", "tool_input": {"policy": "leave"}}

KINDS: dict[str, Row] = {
    "a question": ASKED,
    "an answer": ANSWERED,
    "an empty answer": {**ASKED, "response": ""},
    "an answer, truth": {**ANSWERED, **TRUTH},
    "truth only": {**ASKED, **TRUTH},
    "documents": {**ANSWERED, **DOCUMENTS},
    "documents, truth": {**ANSWERED, **DOCUMENTS, **TRUTH},
    "documents without an answer": {**ASKED, **DOCUMENTS},
    "documents on both sides": {**ANSWERED, **DOCUMENTS, **EXPECTED, **TRUTH},
    "calls": {**ANSWERED, "predicted_trajectory": [CALL]},
    "calls on both sides": {**ANSWERED, "predicted_trajectory": [CALL], "reference_trajectory": [CALL]},
    "calls, none expected": {**ANSWERED, "predicted_trajectory": [CALL], "reference_trajectory": []},
}


def kind_of(platform: str, row: Row) -> Row:
    """A row in the format of the platform."""
    (found,) = convert_eval_set([row], platform).data.to_dict("records")  # type: ignore[arg-type]
    return {name: value for name, value in found.items() if value is not None and value == value}


ANY = tuple(KINDS)
NO_ANSWER = ("a question", "truth only", "documents without an answer", "an empty answer")
CALLS = tuple(kind for kind in KINDS if kind.startswith("calls"))

EXCEPTIONS: dict[str, dict[str, tuple[str, tuple[str, ...]]]] = {
    "azure": {
        "the judge would read an empty answer": (
            "code_vulnerability hate_unfairness indirect_attack protected_material self_harm sexual violence",
            ("an empty answer",),
        ),
        "the judge would read no context": ("groundedness", tuple(k for k in KINDS if "documents" not in k)),
        "the judge would read calls as the text of the ground truth": ("response_completeness similarity", CALLS),
        "the judge would be asked about no tool call": ("tool_call_success", ANY),
    },
    "deepeval": {
        "the metric reads the trace of a running agent": (
            "AgentLoopDetectionMetric PlanAdherenceMetric PlanQualityMetric StepEfficiencyMetric TaskCompletionMetric",
            ANY,
        ),
        "no call is expected": ("ToolCorrectnessMetric", CALLS),
    },
    "ragas": {
        "the judge would read no answer": (
            "AgentGoalAccuracyWithoutReference DomainSpecificRubrics RubricsScoreWithoutReference AnswerRelevancy "
            "RubricsScoreWithReference",
            NO_ANSWER,
        ),
        "the judge would read no ground truth": ("RubricsScoreWithReference", ANY),
        "a goal is reached in an answer, which there is none of": (
            "AgentGoalAccuracy AgentGoalAccuracyWithReference",
            ("truth only",),
        ),
        "no call is expected": ("ToolCallAccuracy ToolCallF1", CALLS),
    },
}
"""By platform and argument: the metrics and kinds of rows of which it accepts more than this package supports."""

LOOSER = {("ragas", "AnswerRelevancy", kind) for kind in CALLS}
"""What is called supported though not in one column: the answer of a conversation of Ragas is its last message."""


@pytest.mark.parametrize("platform", ["azure", "deepeval", "ragas"])
def test_a_row_supports_what_the_platform_accepts(
    platform: str, record_property: Callable[[str, object], None]
) -> None:
    kinds = PLATFORMS / platform / "kinds.jsonl"
    rows = [kind_of(platform, row) for row in KINDS.values()]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    if os.environ.get("UPDATE_GOLDEN"):
        kinds.write_text(lines)
    assert kinds.read_text() == lines, f"let {platform} judge them again: tests/helpers/record_scored.py"
    recorded = json.loads((PLATFORMS / platform / "scored.json").read_text())
    release = re.escape(f"{recorded['package']} {recorded['version']}")
    assert re.search(rf"^    {platform} +{release}", str(platforms.__doc__), re.MULTILINE)

    names = {m.name.removeprefix(f"{platform}/"): m.name for m in METRICS if m.system == platform}
    shared = sorted(names.keys() & recorded["scored"].keys())
    supported: dict[str, set[str]] = {name: set() for name in shared}
    for kind, row in zip(KINDS, rows, strict=True):
        support = validate_eval_set([row], format=platform, outputs="provided").metric_support  # type: ignore[arg-type]
        for name in shared:
            supported[name] |= {kind} if support[names[name]][0] else set()
    accepted = {name: {k for k, yes in zip(KINDS, recorded["scored"][name], strict=True) if yes} for name in shared}
    looser = {(platform, name, kind) for name in shared for kind in supported[name] - accepted[name]}
    stricter = {(name, kind) for name in shared for kind in accepted[name] - supported[name]}
    cells = len(shared) * len(KINDS)
    agreeing = cells - len(looser) - len(stricter)
    record_property("oracle", (f"{recorded['package']} {recorded['version']}", cells, agreeing, len(stricter)))
    assert looser == {cell for cell in LOOSER if cell[0] == platform}
    argued = [{(n, k) for n in metrics.split() for k in kinds} for metrics, kinds in EXCEPTIONS[platform].values()]
    assert stricter <= set().union(*argued)
    assert all(stricter & cells for cells in argued)


def test_calls_and_documents_are_where_azure_reads_them() -> None:
    call = {"type": "tool_call", "tool_call_id": "1", "name": "look_up", "arguments": {"policy": "leave"}}
    row = {
        "query": "How many days?",
        "response": [{"role": "assistant", "content": [call]}, {"role": "assistant", "content": "Twelve."}],
        "ground_truth": ["look_up"],
        "retrieved_documents": [{"document_id": "leave.md", "relevance_score": 0.9}],
        "retrieval_ground_truth": [{"document_id": "leave.md", "query_relevance_label": 1}],
    }
    support = validate_eval_set([row], format="azure").metric_support
    assert [support[name][0] for name in ("task_navigation_efficiency", "document_retrieval")] == [True, True]
