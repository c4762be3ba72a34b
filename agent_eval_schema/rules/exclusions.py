"""REASONS: why a logged row is no row of the evaluation set. In the order of the funnel; the first that fits counts.

    logged ─ feedback ─▶ calls ─ outside_window … no_response ─▶ readable ─ repeated …
           near_duplicate ─▶ distinct ─ in_existing … near_in_existing ─▶ new ─ not_sampled ─▶ sampled ─ invalid ─▶ rows

Whatever is logged ends as a row or with exactly one of these: rows + excluded = logged (+ the records of batch calls).
"""

from msgspec import Struct


class Reason(Struct, frozen=True):
    """Why a row is excluded. `--include` takes those that are `switchable`: others have an option of their own, or such
    a row can be none of an evaluation dataset."""

    name: str
    sentence: str
    remedy: str
    switchable: bool = False


REASONS = {
    reason.name: reason
    for reason in (
        Reason(
            "filtered", "the row does not match the condition", "Change the condition (`where=...`) to include the row."
        ),
        Reason(
            "feedback",
            "feedback request for another row",
            "No action needed: the feedback labels the row with the rated request_id.",
        ),
        Reason(
            "outside_window",
            "logged outside the time window",
            "Change `since=...` and `until=...` to include the row.",
            switchable=True,
        ),
        Reason(
            "status",
            "the call failed: its status is not 200, or the response is an error",
            "Inspect the request that the endpoint or its guardrail rejected; failed calls have no response to score.",
            switchable=True,
        ),
        Reason(
            "oversize",
            "the request or response was too large to be logged",
            "Join a traces table (`traces=...`), from which request and response are then derived.",
        ),
        Reason(
            "malformed",
            "the request or response is malformed JSON",
            "Inspect the byte position in the message; the payload was probably truncated or edited.",
        ),
        Reason(
            "partial",
            "the streamed response is incomplete",
            "No action needed: incomplete responses are excluded.",
            switchable=True,
        ),
        Reason(
            "batch_mismatch",
            "a batch call whose numbers of records and predictions differ",
            "Inspect the model's output: responses cannot be assigned to records.",
        ),
        Reason(
            "no_request", "no request content", "Join a traces table (`traces=...`), or map the column (`columns=...`)."
        ),
        Reason(
            "no_response",
            "no response content and no trace",
            "Join a traces table (`traces=...`), or map the column (`columns=...`).",
        ),
        Reason(
            "defect",
            "internal error while converting the row",
            "Report this as a bug of agent_eval_schema, with the message.",
        ),
        Reason(
            "repeated",
            "the same request_id was logged before",
            "No action needed: requests are logged at least once; the earliest row is kept.",
            switchable=True,
        ),
        Reason(
            "duplicate_question",
            "another row has the same question",
            "No action needed. Build without `dedupe='question'` to keep every call.",
        ),
        Reason(
            "near_duplicate",
            "another row has a near-duplicate question",
            "No action needed. Build with another `near=...`, or without `dedupe='near'`, to keep more calls.",
        ),
        Reason(
            "in_existing",
            "the dataset that is extended has the row",
            "No action needed: later feedback updates the labels of its row.",
        ),
        Reason(
            "question_in_existing",
            "the dataset that is extended has the same question",
            "No action needed. Build without `dedupe='question'` to add the call.",
        ),
        Reason(
            "near_in_existing",
            "the dataset that is extended has a near-duplicate question",
            "No action needed. Build with another `near=...`, or without `dedupe='near'`, to add the call.",
        ),
        Reason("not_sampled", "not drawn for the sample", "Increase `sample=...` or change `seed=...`."),
        Reason(
            "invalid",
            "the row has validation errors",
            "The message contains the rule codes; run `agent-eval-schema explain CODE` for details.",
            switchable=True,
        ),
    )
}
