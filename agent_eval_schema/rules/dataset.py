"""AE9: what only shows when the whole data set is seen. The checks run in validation/report_builder.py, on hashes."""

from agent_eval_schema.issues import Rule, Severity

REPEATED_REQUEST_ID = Rule(
    "AE901",
    "repeated-request-id",
    Severity.ERROR,
    "give every row an id of its own, or drop the repeated row",
    "A request_id stands on an earlier row already.\n\nResults are joined back by it: the two rows would get "
    "each other's "
    "scores. The first row stays valid.",
    bad=({"request_id": "1", "request": "Hi", "response": "a"}, {"request_id": "1", "request": "Ho", "response": "b"}),
    good=({"request_id": "1", "request": "Hi", "response": "a"}, {"request_id": "2", "request": "Ho", "response": "b"}),
)

CONFLICTING_TRUTH = Rule(
    "AE902",
    "conflicting-ground-truth",
    Severity.WARNING,
    "decide which of the two is right, or make the questions differ",
    "The same request stands on an earlier row with a different ground truth.\n\nNo answer can be right for both.",
    bad=(
        {"request": "Hi", "response": "a", "expected_response": "a"},
        {"request": "Hi", "response": "b", "expected_response": "b"},
    ),
    good=(
        {"request": "Hi", "response": "a", "expected_response": "a"},
        {"request": "Ho", "response": "b", "expected_response": "b"},
    ),
)

DOC_URI_NEAR_MISS = Rule(
    "AE903",
    "doc-uri-near-miss",
    Severity.WARNING,
    "rewrite one side so that the URIs are equal",
    "The expected and the retrieved doc_uris never match, although they nearly do (scheme, host, case, trailing slash, "
    "/Volumes against dbfs:/Volumes).\n\ndocument_recall compares text: it would be 0 on every row.",
    bad=(
        {
            "request": "Hi",
            "response": "a",
            "retrieved_context": [{"doc_uri": "dbfs:/Volumes/hr/leave.pdf"}],
            "expected_retrieved_context": [{"doc_uri": "/Volumes/hr/leave.pdf"}],
        },
    ),
    good=(
        {
            "request": "Hi",
            "response": "a",
            "retrieved_context": [{"doc_uri": "/Volumes/hr/leave.pdf"}],
            "expected_retrieved_context": [{"doc_uri": "/Volumes/hr/leave.pdf"}],
        },
    ),
)

COPIED_TRUTH = Rule(
    "AE904",
    "ground-truth-copied",
    Severity.WARNING,
    "write the ground truth by hand, or take it from a reviewed source",
    "expected_response is identical to the response in most rows.\n\nThe app is compared with itself: "
    "correctness is near "
    "1 and means nothing.",
    bad=tuple({"request": f"Question {i}", "response": "Yes", "expected_response": "Yes"} for i in range(4)),
    good=tuple({"request": f"Question {i}", "response": "Yes", "expected_response": "No"} for i in range(4)),
)
