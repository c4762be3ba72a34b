"""AE9: issues of the dataset as a whole, which validation/report_builder.py finds by hashes."""

import json
from typing import Any

from agent_eval_schema.rules.pages import EVALUATION_SCHEMA, MLFLOW_TRACES, RAGAS_DATASET, Page

_HI, _HO = {"request": "Hi", "response": "a"}, {"request": "Ho", "response": "b"}

REPEATED_REQUEST_ID = Page(EVALUATION_SCHEMA).error(
    "AE901 repeated-request-id",
    "Duplicate request_id.",
    why="Results are joined by it: the two rows would receive each other's scores. The first row stays valid.",
    hint="Set a unique `request_id` for each row, or drop the duplicate.",
    bad=({"request_id": "1", **_HI}, {"request_id": "1", **_HO}),
    good=({"request_id": "1", **_HI}, {"request_id": "2", **_HO}),
)

_LOGGED = json.dumps({"info": {"trace_id": "tr-1"}, "data": {"spans": []}})

REPEATED_TRACE_ID = Page(MLFLOW_TRACES).warning(
    "AE905 repeated-trace-id",
    "The row has the ID of its trace, and an earlier row has the same ID.",
    why="The ID is derived, so the row stays valid; but results joined by request_id are those of both rows.",
    hint="Drop the row if the trace was exported twice; otherwise set a unique `request_id`.",
    bad=({**_HI, "trace": _LOGGED}, {**_HO, "trace": _LOGGED}),
    good=({"request_id": "1", **_HI, "trace": _LOGGED}, {"request_id": "2", **_HO, "trace": _LOGGED}),
)

REPEATED = frozenset([REPEATED_REQUEST_ID.code, REPEATED_TRACE_ID.code])
"""The codes of rows with the ID of an earlier row."""

CONFLICTING_TRUTH = Page(EVALUATION_SCHEMA).warning(
    "AE902 conflicting-ground-truth",
    "Duplicate request with conflicting ground truth.",
    why="No answer can be correct for both rows.",
    hint="Decide which ground truth is correct, or make the questions differ.",
    bad=({**_HI, "expected_response": "a"}, {"request": "Hi", "response": "b", "expected_response": "b"}),
    good=({**_HI, "expected_response": "a"}, {**_HO, "expected_response": "b"}),
)


def _retrieved(uri: str) -> tuple[dict[str, Any], ...]:
    """A row with the document that was retrieved, where `/Volumes/hr/leave.pdf` is expected."""
    expected = [{"doc_uri": "/Volumes/hr/leave.pdf"}]
    return ({**_HI, "retrieved_context": [{"doc_uri": uri}], "expected_retrieved_context": expected},)


DOC_URI_NEAR_MISS = Page(EVALUATION_SCHEMA).warning(
    "AE903 doc-uri-near-miss",
    "The expected and the retrieved doc_uris never match, but are close matches.",
    why=(
        "document_recall compares strings: it would be 0 on every row. The URIs differ in scheme, host, case, a"
        " trailing slash, or /Volumes against dbfs:/Volumes."
    ),
    hint="Rewrite one side so that the URIs are equal.",
    bad=_retrieved("dbfs:/Volumes/hr/leave.pdf"),
    good=_retrieved("/Volumes/hr/leave.pdf"),
)

MIXED_KINDS = Page(RAGAS_DATASET).warning(
    "AE909 mixed-kinds-of-rows",
    "The rows are of two kinds, but the platform loads one kind per file.",
    why=(
        "Ragas rejects single-turn beside multi-turn samples, and a dataset of MLflow test cases of simulated users "
        "beside other rows; Azure scores no row of questions beside conversations; Vertex AI rejects the whole file if "
        "one row lacks the response that another has."
    ),
    hint="Put the rows of each kind into a file of their own, or complete them.",
    bad=(
        {"user_input": "Hi", "response": "Hello"},
        {"user_input": [{"type": "human", "content": "Hi"}, {"type": "ai", "content": "Hello"}]},
    ),
    good=({"user_input": "Hi", "response": "Hello"}, {"user_input": "Ho", "response": "Hello"}),
)

COPIED_TRUTH = Page(EVALUATION_SCHEMA).warning(
    "AE904 ground-truth-copied",
    "expected_response is identical to the response in most rows.",
    why="The agent is compared with itself: correctness is close to 1 and has no meaning.",
    hint="Write the ground truth by hand, or take it from a reviewed source.",
    bad=tuple({"request": f"Question {i}", "response": "Yes", "expected_response": "Yes"} for i in range(4)),
    good=tuple({"request": f"Question {i}", "response": "Yes", "expected_response": "No"} for i in range(4)),
)
