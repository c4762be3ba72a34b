"""What a row supports is what other platforms score: rows of each kind × the metrics of a platform. Its own checks are
recorded (tests/recorders/scored.py), as the packages are too heavy for the tests.

EXCEPTIONS has the cells that differ on purpose, with the argument.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable

import pytest

from agent_eval_schema import convert_eval_set, validate_eval_set
from agent_eval_schema.metrics import catalog
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
TOOL = {"name": "look_up", "description": "Looks up a policy.", "parameters": {"type": "object", "properties": {}}}

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
    "calls of known tools": {**ANSWERED, "predicted_trajectory": [CALL], "tool_definitions": [TOOL]},
    "guidelines": {**ANSWERED, "guidelines": {"tone": ["Be brief."]}},
}


RUBRIC = {"rubric_id": "a", "rubric_content": {"text_property": "Look it up."}}
MORE: dict[str, dict[str, Row]] = {
    "adk": {
        f"rubrics of {kind}": {
            **ANSWERED,
            "predicted_trajectory": [CALL],
            "guidelines": {"a": ["Look it up."]},
            "adk_rubrics": [{**RUBRIC, "type": kind}],
        }
        for kind in ("FINAL_RESPONSE_QUALITY", "TOOL_USE_QUALITY", "TRAJECTORY_QUALITY", None)
    },
    "inspect": {
        f"choices, {truth}": {**ANSWERED, "expected_response": truth, "choices": ["Ten days.", "Twelve days."]}
        for truth in ("B", "12 days")
    },
}
"""Rows that only one platform reads more of."""

ANY = tuple(KINDS)


def lacking(*columns: str) -> tuple[str, ...]:
    """The kinds of rows without one of the columns, or with an empty one."""
    kinds = {kind: row for more in ({}, *MORE.values()) for kind, row in {**KINDS, **more}.items()}
    return tuple(kind for kind, row in kinds.items() if not all(row.get(column) for column in columns))


NO_ANSWER = ("a question", "truth only", "documents without an answer", "an empty answer")
CALLS = tuple(kind for kind in KINDS if kind.startswith("calls"))

OF_CASES = ("adk", "inspect", "langsmith", "phoenix", "strands")
"""The platforms whose files are questions with ground truth: they score what the agent did then, which a row of ours
has beside these."""


def kind_of(platform: str, row: Row) -> Row:
    """A row in the format of the platform."""
    if platform in OF_CASES:
        return row
    (found,) = convert_eval_set([row], platform).data.to_dict("records")  # type: ignore[arg-type]
    return {name: value for name, value in found.items() if value is not None and value == value}


EXCEPTIONS: dict[str, dict[str, tuple[str, tuple[str, ...]]]] = {
    "adk": {
        "it compares with an empty ground truth": (
            "final_response_match_v2 response_evaluation_score response_match_score",
            lacking("expected_response", "response"),
        ),
        "it compares with no expected call": (
            "tool_trajectory_avg_score",
            lacking("predicted_trajectory", "reference_trajectory"),
        ),
        "the service would judge no call": ("multi_turn_tool_use_quality_v1", lacking("predicted_trajectory")),
        "calls that are not recorded are counted as none": ("tool_call_count_v1", lacking("predicted_trajectory")),
        "the service would judge no answer": (
            "multi_turn_task_success_v1 multi_turn_trajectory_quality_v1 safety_v1",
            NO_ANSWER,
        ),
    },
    "azure": {
        "the judge would read an empty answer": (
            "code_vulnerability hate_unfairness indirect_attack protected_material self_harm sexual violence",
            ("an empty answer",),
        ),
        "the judge would read no context": ("groundedness", tuple(k for k in KINDS if "documents" not in k)),
        "the judge would read calls as the text of the ground truth": ("response_completeness similarity", CALLS),
        "the judge would be asked about no tool call": ("tool_call_success", ANY),
        "the judge would read no result of a tool": ("tool_output_utilization", ("calls of known tools",)),
    },
    "deepeval": {
        "the metric reads the trace of a running agent": (
            "AgentLoopDetectionMetric PlanAdherenceMetric PlanQualityMetric StepEfficiencyMetric TaskCompletionMetric",
            ANY,
        ),
        "no call is expected": ("ToolCorrectnessMetric", CALLS),
    },
    "inspect": {
        "it compares with an empty target": (
            "answer exact f1 includes match model_graded_fact model_graded_qa pattern",
            lacking("expected_response", "response"),
        ),
        "it compares an empty answer": ("math", ("truth only",)),
    },
    "langsmith": {
        "the judge would read an answer as the messages of the agent": (
            "AGENT_TONE KNOWLEDGE_RETENTION LANGUAGE_DETECTION PERCEIVED_ERROR SUPPORT_INTENT TASK_COMPLETION "
            "TOOL_SELECTION TRAJECTORY_ACCURACY USER_SATISFACTION WINS",
            ANY,
        ),
        "the judge would read an empty answer": (
            "ANSWER_RELEVANCE CODE_CORRECTNESS CONCISENESS FAIRNESS LAZINESS PII_LEAKAGE RAG_HELPFULNESS TOXICITY",
            ("an empty answer",),
        ),
        "a row without a provided answer is not valid": (
            "CODE_INJECTION PROMPT_INJECTION RAG_RETRIEVAL_RELEVANCE",
            NO_ANSWER,
        ),
    },
    "phoenix": {
        "the judge would read an empty answer": (
            "CompletenessEvaluator ConcisenessEvaluator CorrectnessEvaluator HallucinationEvaluator MatchesRegex "
            "PiiDetectionEvaluator RefusalEvaluator",
            ("an empty answer",),
        ),
        "a row without a provided answer is not valid": (
            "DocumentRelevanceEvaluator RetrievalRelevanceEvaluator",
            NO_ANSWER,
        ),
    },
    "ragas": {
        "the judge would read no answer": (
            "DomainSpecificRubrics RubricsScoreWithoutReference AnswerRelevancy RubricsScoreWithReference",
            NO_ANSWER,
        ),
        "the judge would read no ground truth": ("RubricsScoreWithReference", ANY),
        "no call is expected": ("ToolCallAccuracy ToolCallF1", CALLS),
    },
    "strands": {
        "it reads no answer": ("Contains StartsWith OutputEvaluator", NO_ANSWER),
        "it compares with no ground truth": ("Equals", lacking("expected_response", "response")),
        "calls that are not recorded are none": ("ToolCalled", lacking("predicted_trajectory")),
        "skills are in a trace": ("SkillInvoked", ANY),
    },
    "vertex": {},
    "vertex-genai": {
        "the service would compare with no ground truth": ("FINAL_RESPONSE_MATCH", lacking("expected_response")),
        "the service would judge by no guideline": ("FINAL_RESPONSE_REFERENCE_FREE", lacking("guidelines")),
        "the service would judge by no document": ("GROUNDING", lacking("retrieved_context")),
        "the service would judge no call": ("TOOL_USE_QUALITY", lacking("predicted_trajectory")),
        "the service judges the data of an agent, which are in a trace": (
            "HALLUCINATION MULTI_TURN_TASK_SUCCESS MULTI_TURN_TOOL_USE_QUALITY MULTI_TURN_TRAJECTORY_QUALITY",
            ANY,
        ),
    },
}
"""By platform and argument: the metrics and kinds of rows of which it accepts more than this package supports."""


@pytest.mark.parametrize("platform", sorted(EXCEPTIONS))
def test_a_row_supports_what_the_platform_accepts(
    platform: str, record_property: Callable[[str, object], None]
) -> None:
    file = PLATFORMS / platform / "kinds.jsonl"
    kinds = {**KINDS, **MORE.get(platform, {})}
    rows = [kind_of(platform, row) for row in kinds.values()]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(lines)
    assert file.read_text() == lines, f"let {platform} judge them again: tests/recorders/scored.py"
    recorded = json.loads((PLATFORMS / platform / "scored.json").read_text())
    release = re.escape(f"{recorded['package']} {recorded['version']}")
    assert re.search(rf"^    {platform} +{release}", str(catalog.__doc__), re.MULTILINE)

    names = {m.name.removeprefix(f"{platform}/"): m.name for m in METRICS if m.system == platform}
    shared = sorted(names.keys() & recorded["scored"].keys())
    supported: dict[str, set[str]] = {name: set() for name in shared}
    for kind, row in zip(kinds, rows, strict=True):
        form = "databricks" if platform in OF_CASES else platform
        support = validate_eval_set([row], format=form, outputs="provided").metric_support  # type: ignore[arg-type]
        for name in shared:
            supported[name] |= {kind} if support[names[name]][0] else set()
    accepted = {name: {k for k, yes in zip(kinds, recorded["scored"][name], strict=True) if yes} for name in shared}
    looser = {(name, kind) for name in shared for kind in supported[name] - accepted[name]}
    stricter = {(name, kind) for name in shared for kind in accepted[name] - supported[name]}
    cells = len(shared) * len(kinds)
    agreeing = cells - len(looser) - len(stricter)
    record_property("oracle", (f"{recorded['package']} {recorded['version']}", cells, agreeing, len(stricter)))
    assert looser == set()
    argued = [{(n, k) for n in metrics.split() for k in argued} for metrics, argued in EXCEPTIONS[platform].values()]
    assert stricter <= set().union(*argued)
    assert all(stricter & cells for cells in argued)


CELLS = {
    "deepeval": {
        "response": "actual_output",
        "expected_response": "expected_output",
        "expected_uri": "context",
        "retrieved_content": "retrieval_context",
    },
    "ragas": {
        "request": "user_input",
        "response": "response",
        "expected_response": "reference",
        "retrieved_content": "retrieved_contexts",
    },
}
"""The column of a need."""


@pytest.mark.parametrize("platform", sorted(CELLS))
def test_the_judge_reads_what_is_needed(platform: str) -> None:
    """The text of each needed cell is in a prompt of the metric, so nothing is called supported that is judged on
    nothing. deepeval requires an input that some of its judges do not read."""
    recorded = json.loads((PLATFORMS / platform / "scored.json").read_text())
    read = {name: set(columns) for name, columns in recorded["read"].items() if any(recorded["scored"][name])}
    named = {m.name.removeprefix(f"{platform}/"): m for m in METRICS if m.system == platform and m.judged}
    needed = {
        name: {CELLS[platform][need] for need in named[name].needs if need in CELLS[platform]}
        for name in read.keys() & named.keys()
        if "trace" not in str(named[name].needs)  # or calls, which make a conversation of a row
    }
    assert len(needed) > 10
    assert {name: cells - read[name] for name, cells in needed.items() if not cells <= read[name]} == {}


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
