"""What one evaluation of the dataset costs: calls of judges, tokens, money, time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct

from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.metrics.catalog import Metric
from agent_eval_schema.metrics.support import supports
from agent_eval_schema.profile.facts import Facts
from agent_eval_schema.profile.tokens import BYTES_PER_TOKEN, USUAL, tokens_of
from agent_eval_schema.render.profile.summary import Cost, MetricCost

INSTRUCTION_TOKENS, ANSWER_TOKENS = 400, 150
"""Assumed of a judge: the tokens of its instructions, and of its answer with the rationale."""


class Judging(Struct, frozen=True):
    """How tokens are counted, and how many a call has beside the row: those of the instructions and of the answer."""

    tokenizer: str | None = None
    instruction_tokens: int = INSTRUCTION_TOKENS
    answer_tokens: int = ANSWER_TOKENS

    def note(self, outputs: str) -> str:
        """How the numbers came about."""
        by = f"tokens of the rows by {self.tokenizer}"
        if self.tokenizer is None:
            by = f"{BYTES_PER_TOKEN} bytes of UTF-8 per token (the tokenizer {USUAL} counts them)"
        missing = "tokens of the agent are"
        if outputs == "generated":
            missing = "responses and documents that the agent is yet to produce, and its own tokens, are"
        return (
            f"Estimates: {by}, {self.instruction_tokens:,} tokens of instructions and {self.answer_tokens:,} tokens of "
            f"answer per call of a judge; {missing} not included."
        )


READ_BY = {
    "request": "request",
    "response": "response",
    "retrieved_content": "context",
    "retriever_span": "context",
    "expected_response": "truth",
    "expected_facts": "truth",
    "guidelines": "guidelines",
    "trace": "response",
}
"""The text that a judge reads of a field."""

PER_CHUNK = ("retrieval/llm_judged/chunk_relevance_precision", "RetrievalRelevance")
"""Metrics whose judge is called for each retrieved chunk."""


def require_price(price: Mapping[str, float] | None) -> None:
    """Raise EvalSetError for anything but prices per million tokens, of input and of output."""
    if price is not None and (set(price) != {"input", "output"} or not all(map(_is_amount, price.values()))):
        raise EvalSetError(
            f'price: expected amounts per million tokens, such as {{"input": 2.5, "output": 10}}; got {dict(price)!r}'
        )


def _is_amount(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")


def estimate(
    facts: Facts,
    metrics: Sequence[Metric],
    judging: Judging,
    price: Mapping[str, float] | None,
    calls_per_minute: float | None,
) -> Cost:
    """What the judged metrics cost on the rows that support them."""
    lines = tuple(_lines(facts, metrics, judging, price))
    calls = sum(line.calls for line in lines)
    agent = int(np.count_nonzero(facts.valid)) if facts.plan.outputs == "generated" else 0
    return Cost(
        lines,
        calls,
        agent,
        sum(line.input_tokens for line in lines),
        sum(line.output_tokens for line in lines),
        None if price is None else round(sum(line.money or 0.0 for line in lines), 6),
        None if calls_per_minute is None else (calls + agent) / calls_per_minute,
        judging.note(facts.plan.outputs),
    )


def _lines(
    facts: Facts, metrics: Sequence[Metric], judging: Judging, price: Mapping[str, float] | None
) -> Iterator[MetricCost]:
    for metric in metrics:
        rows = supports(metric, facts.masks, facts.valid, facts.plan.outputs)
        if not metric.judged or not rows.any():
            continue
        fields = [field for need in metric.needs for field in ((need,) if isinstance(need, str) else need)]
        read = dict.fromkeys(READ_BY[field] for field in fields if field in READ_BY)
        size = {name: facts.array(f"{name}_length")[rows] for name in read}
        calls = np.ones(int(rows.sum()), np.int64)
        if metric.name in PER_CHUNK:  # each call has one chunk, and all that is read besides
            calls = facts.array("chunks")[rows]
            size = {name: n if name == "context" else n * calls for name, n in size.items()}
        tokens = tokens_of(sum(int(n.sum()) for n in size.values()), judging.tokenizer)
        total = int(calls.sum())
        given, answered = tokens + total * judging.instruction_tokens, total * judging.answer_tokens
        money = None if price is None else (given * price["input"] + answered * price["output"]) / 1e6
        yield MetricCost(metric.system, metric.name, total, given, answered, money)
