"""What one evaluation of the dataset costs: calls of judges, tokens, money, time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from agent_eval_schema.metrics.catalog import Metric
from agent_eval_schema.metrics.support import supports
from agent_eval_schema.profile.facts import Facts
from agent_eval_schema.profile.options import Options
from agent_eval_schema.profile.profile_summary import Cost, MetricCost
from agent_eval_schema.profile.tokens import BYTES_PER_TOKEN, USUAL, tokens_of

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


def estimate(facts: Facts, metrics: Sequence[Metric], options: Options) -> Cost:
    """What the judged metrics cost on the rows that support them."""
    lines = tuple(_lines(facts, metrics, options))
    calls = sum(line.calls for line in lines)
    agent = int(np.count_nonzero(facts.valid)) if facts.plan.outputs == "generated" else 0
    return Cost(
        lines,
        calls,
        agent,
        sum(line.input_tokens for line in lines),
        sum(line.output_tokens for line in lines),
        None if options.price is None else round(sum(line.money or 0.0 for line in lines), 6),
        None if options.calls_per_minute is None else (calls + agent) / options.calls_per_minute,
        _note(options, facts.plan.outputs),
    )


def _lines(facts: Facts, metrics: Sequence[Metric], options: Options) -> Iterator[MetricCost]:
    price = options.price
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
        tokens = tokens_of(sum(int(n.sum()) for n in size.values()), options.tokenizer)
        total = int(calls.sum())
        given, answered = tokens + total * options.instruction_tokens, total * options.answer_tokens
        money = None if price is None else (given * price["input"] + answered * price["output"]) / 1e6
        yield MetricCost(metric.system, metric.name, total, given, answered, money)


def _note(options: Options, outputs: str) -> str:
    """How the numbers came about."""
    by = f"tokens of the rows by {options.tokenizer}"
    if options.tokenizer is None:
        by = f"{BYTES_PER_TOKEN} bytes of UTF-8 per token (the tokenizer {USUAL} counts them)"
    missing = "tokens of the agent are"
    if outputs == "generated":
        missing = "responses and documents that the agent is yet to produce, and its own tokens, are"
    return (
        f"Estimates: {by}, {options.instruction_tokens:,} tokens of instructions and {options.answer_tokens:,} tokens "
        f"of answer per call of a judge; {missing} not included."
    )
