"""Facts → findings → the numbers and examples of a profile, and what one evaluation costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from agent_eval_schema.metrics.catalog import Metric
from agent_eval_schema.metrics.support import metrics_of, support_of, supports
from agent_eval_schema.profile.advice import next_steps
from agent_eval_schema.profile.coverage import balance, cluster_rows, clusters_of, commonest_truth, cover
from agent_eval_schema.profile.duplicates import ROWS_OF_A_GROUP, FoundLeak, Repeats
from agent_eval_schema.profile.facts import Facts
from agent_eval_schema.profile.options import BYTES_PER_TOKEN, USUAL, Options, tokens_of
from agent_eval_schema.profile.profile_blocks import (
    Assumptions,
    Cost,
    DuplicateGroup,
    Duplicates,
    Leak,
    MetricCost,
    ProfileSummary,
    RowExample,
)
from agent_eval_schema.profile.row_facts import question_of, shown_truths
from agent_eval_schema.profile.size import PastScores, Sizing
from agent_eval_schema.render.phrases import plural
from agent_eval_schema.rules.columns import PAYLOAD_TABLE
from agent_eval_schema.text.describe import cut
from agent_eval_schema.validation.checked_batch import rows_of, verdict


def summarize(
    facts: Facts,
    options: Options,
    repeats: Repeats,
    leaks: Sequence[FoundLeak],
    compared: tuple[str, ...],
    past: Sequence[PastScores],
) -> ProfileSummary:
    """The numbers and examples of a profile; `compared` are the names of what leaks were looked for in."""
    conflicts = facts.run.builder.conflicts
    metrics = metrics_of(options.system_of(facts.plan.format))
    groups, clustered = repeats.groups(), cluster_rows(repeats) if facts.plan.values else []
    truth = commonest_truth(facts)[3]
    shown = [*clustered, *(() if truth is None else (truth,))]
    shown += [row for group in groups for row in group[:ROWS_OF_A_GROUP].tolist()]
    shown += [row for pair in conflicts[:EXAMPLES] for row in pair]
    shown += [row for leak in leaks for row in leak.rows[:EXAMPLES]]
    examples = read_examples(facts, shown)
    clusters, note = clusters_of([examples[row] for row in clustered])
    assumed = Assumptions(options.rate, options.correlation, options.cluster_correlation, facts.cluster_words())
    sizing = Sizing(facts, repeats, past, assumed)
    valid = int(np.count_nonzero(facts.valid))
    summary = ProfileSummary(
        facts.source.name,
        facts.format,
        facts.plan.outputs,
        options.system_of(facts.plan.format),
        facts.row_count,
        valid,
        facts.row_count - valid,
        tuple(_notes(facts, valid)),
        (),
        tuple(map(sizing.power, metrics)),
        assumed,
        _duplicates(repeats, conflicts, groups, examples, options.near),
        tuple(
            Leak(leak.source, leak.kind, len(leak.rows), tuple(examples[row] for row in leak.rows[:EXAMPLES]))
            for leak in leaks
        ),
        compared,
        cover(facts, options.min_rows, clusters, note if facts.plan.values else ""),
        balance(facts, None if truth is None else examples[truth]),
        estimate(facts, metrics, options),
        PAYLOAD_TABLE.code in facts.report.counts,
    )
    masks, rows = facts.run.builder.valid_masks, facts.row_count
    support = [support_of(metric, masks, rows, facts.plan.outputs) for metric in metrics]
    return replace(summary, next_steps=next_steps(summary, support))


def _notes(facts: Facts, valid: int) -> Iterable[str]:
    """What a reader has to know before any number."""
    if not facts.row_count:
        yield "The dataset has no rows."
    elif not valid:
        yield "No row is valid: there is nothing to profile."
    elif valid == 1:
        yield "One row is valid: it shows nothing about an agent."
    if facts.format != facts.plan.format and facts.row_count:
        yield "Each row is a turn of an evaluation, or an invalid evaluation."
    if facts.row_count > valid > 0:
        yield f"{plural(facts.row_count - valid, 'invalid row')} excluded."
    if valid and not facts.array("truth")[facts.valid].any():
        yield "No row has ground truth: correctness cannot be scored."
    unasked = int(np.count_nonzero(facts.valid & (facts.array("exact") == 0)))
    if unasked:
        yield f"{plural(unasked, 'valid row')} without a question: not compared."


def _duplicates(
    repeats: Repeats,
    conflicts: Sequence[tuple[int, int]],
    groups: list[Any],
    examples: Mapping[int, RowExample],
    threshold: float,
) -> Duplicates:
    made = [
        DuplicateGroup(
            "exact" if len(set(repeats.exact[group].tolist())) == 1 else "near",
            len(group),
            tuple(examples[row] for row in group[:ROWS_OF_A_GROUP].tolist()),
        )
        for group in groups
    ]
    pairs = tuple((examples[one], examples[other]) for one, other in conflicts[:EXAMPLES])
    return Duplicates(
        int(np.count_nonzero(repeats.asked)),
        repeats.distinct,
        len(repeats.exact_rows),
        len(repeats.near_rows),
        threshold,
        repeats.group_count,
        tuple(made),
        len(conflicts),
        pairs,
    )


EXAMPLES = 20
"""Examples of a kind, at most."""

LONGEST = 160
"""Characters of a text that is shown."""


def read_examples(facts: Facts, rows: Iterable[int]) -> dict[int, RowExample]:
    """The examples of these rows; without values, only their positions."""
    wanted = np.unique(np.fromiter(rows, np.int64))
    if not facts.plan.values:
        return {row: RowExample(row) for row in wanted.tolist()}
    mask = np.zeros(facts.row_count, bool)
    mask[wanted] = True
    found, left = dict[int, RowExample](), wanted.tolist()
    for _, checked in facts.run.reread(mask):
        ids, cells = verdict(checked, "id").to_pylist(), rows_of(checked)
        for i, (question, truth) in enumerate(zip(question_of(cells), shown_truths(cells), strict=True)):
            row = left.pop(0)
            texts = (cut(" ".join(text.split()), LONGEST) if text else None for text in (question, truth))
            found[row] = RowExample(row, ids[i], *texts)
    return found


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
        read = dict.fromkeys(READ_BY[field] for field in metric.fields if field in READ_BY)
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
