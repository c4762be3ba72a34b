"""REASONS: why a logged row is no row of the evaluation set. In the order of the funnel; the first that fits counts.

    logged ─ feedback ─▶ calls ─ outside_window … no_request ─▶ readable ─ repeated, duplicate_question ─▶ distinct
           ─ not_sampled ─▶ sampled ─ invalid ─▶ rows

Whatever is logged ends as a row or with exactly one of these: rows + set aside = logged (+ the records of batch calls).
"""

from __future__ import annotations

from msgspec import Struct


class Reason(Struct, frozen=True):
    """Why a row is set aside. What is not `switchable` cannot be kept."""

    name: str
    sentence: str
    remedy: str
    switchable: bool = True


REASONS: tuple[Reason, ...] = (
    Reason(
        "filtered",
        "the row does not meet the condition that was given (where)",
        "change the condition if the row was meant",
    ),
    Reason(
        "feedback",
        "a feedback call: somebody judged another row",
        "nothing to do: it labels the row whose request_id it names",
    ),
    Reason(
        "outside_window",
        "logged outside the time window",
        "change since and until if the row was meant",
    ),
    Reason(
        "status",
        "the call failed: its status is not 200, or the response is an error",
        "look at what the endpoint or its guardrail refused; such calls have no answer to score",
    ),
    Reason(
        "oversize",
        "the request or response was too large to be logged",
        "join a traces table (traces=...), from which request and response are then taken",
        switchable=False,
    ),
    Reason(
        "malformed",
        "the request or response is not JSON that can be read",
        "look at the byte that the message names; a cell this broken was cut or hand-edited",
        switchable=False,
    ),
    Reason(
        "partial",
        "the streamed response broke off",
        "nothing to do: half an answer is not what the agent says",
    ),
    Reason(
        "batch_mismatch",
        "a call with several records whose number of predictions differs",
        "look at the model's output: which answer belongs to which record cannot be told",
        switchable=False,
    ),
    Reason(
        "no_request",
        "there is nothing that was asked",
        "join a traces table (traces=...), or name the column (map)",
        switchable=False,
    ),
    Reason(
        "defect",
        "the converter broke down on the row",
        "please report the row and the message as a defect of agent_eval_schema",
        switchable=False,
    ),
    Reason(
        "repeated",
        "the same request_id was logged before",
        "nothing to do: tables are written at least once; the earliest row is kept",
    ),
    Reason(
        "duplicate_question",
        "another row asks the same",
        "nothing to do; build without dedupe='question' to keep every call",
    ),
    Reason(
        "not_sampled",
        "not drawn for the sample",
        "ask for a larger sample, or take another seed",
    ),
    Reason(
        "invalid",
        "the finished row breaks a rule of the evaluation schema",
        "the message names the rules; `agent-eval-schema explain CODE` tells more",
    ),
)

REASON_NAMES: tuple[str, ...] = tuple(r.name for r in REASONS)


def find_reason(name: str) -> Reason:
    """The reason of that name. Raises KeyError if there is none: names come from this package."""
    return _BY_NAME[name]


_BY_NAME = {r.name: r for r in REASONS}
