"""Facts → the numbers and examples of a profile, what one evaluation costs, and what to do next."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.metrics.catalog import GROUND_TRUTH, Metric
from agent_eval_schema.metrics.support import Support, metrics_of, supports
from agent_eval_schema.profile.coverage import (
    ROWS_OF_A_GROUP,
    TRUTH,
    FoundLeak,
    Repeats,
    balance,
    cluster_rows,
    clusters_of,
    commonest_truth,
    cover,
)
from agent_eval_schema.profile.facts import Facts, question_of, shown_truths
from agent_eval_schema.profile.options import BYTES_PER_TOKEN, USUAL, Options, tokens_of
from agent_eval_schema.profile.profile_blocks import (
    Assumptions,
    Cost,
    DuplicateGroup,
    Duplicates,
    Leak,
    MetricCost,
    NextStep,
    ProfileSummary,
    RowExample,
    short_name,
)
from agent_eval_schema.profile.size import PastScores, Sizing
from agent_eval_schema.render.phrases import Call, plural, share
from agent_eval_schema.rules.columns import PAYLOAD_TABLE
from agent_eval_schema.text.describe import truncate
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
    leaked = (Leak(x.source, x.kind, len(x.rows), tuple(examples[row] for row in x.rows[:EXAMPLES])) for x in leaks)
    clusters, note = clusters_of([examples[row] for row in clustered])
    assumed = Assumptions(clusters=facts.cluster_words())
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
        tuple(leaked),
        compared,
        cover(facts, clusters, note if facts.plan.values else ""),
        balance(facts, None if truth is None else examples[truth]),
        estimate(facts, metrics, options),
        PAYLOAD_TABLE.code in facts.report.counts,
    )
    support = list(map(facts.run.coverage_of, metrics))
    unlabeled = sum(count for mask, count in facts.run.builder.usable_masks.items() if not mask & GROUND_TRUTH)
    calls = facts.run.call, facts.run.call._replace(in_python=True)
    steps, in_python = (next_steps(summary, support, call, unlabeled) for call in calls)
    steps = tuple(replace(step, code=same.command) for step, same in zip(steps, in_python, strict=True))
    return replace(summary, next_steps=steps)


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
    shown = []
    for group in groups:
        kind = "exact" if len(set(repeats.exact[group].tolist())) == 1 else "near"
        shown.append(DuplicateGroup(kind, len(group), tuple(examples[row] for row in group[:ROWS_OF_A_GROUP].tolist())))
    pairs = tuple((examples[one], examples[other]) for one, other in conflicts[:EXAMPLES])
    rows, exact, near = int(np.count_nonzero(repeats.has_question)), len(repeats.exact_rows), len(repeats.near_rows)
    of_groups = threshold, repeats.group_count, tuple(shown)
    return Duplicates(rows, repeats.distinct, exact, near, *of_groups, len(conflicts), pairs)


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
    items, queue = dict[int, RowExample](), wanted.tolist()
    for _, checked in facts.run.reread(mask):
        ids, cells = verdict(checked, "id").to_pylist(), rows_of(checked)
        for known, *texts in zip(ids, question_of(cells), shown_truths(cells), strict=True):
            row = queue.pop(0)
            items[row] = RowExample(row, known, *[truncate(" ".join(t.split()), LONGEST) if t else None for t in texts])
    return items


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
    by = f"tokens of the rows by {options.tokenizer}"
    if options.tokenizer is None:
        by = f"{BYTES_PER_TOKEN} bytes of UTF-8 per token (the tokenizer {USUAL} counts them)"
    missing = "tokens of the agent are"
    if facts.plan.outputs == "generated":
        missing = "responses and documents that the agent is yet to produce, and its own tokens, are"
    return Cost(
        lines,
        calls,
        agent,
        sum(line.input_tokens for line in lines),
        sum(line.output_tokens for line in lines),
        None if options.price is None else round(sum(line.money or 0.0 for line in lines), 6),
        None if options.calls_per_minute is None else (calls + agent) / options.calls_per_minute,
        f"Estimates: {by}, {options.instruction_tokens:,} tokens of instructions and {options.answer_tokens:,} tokens "
        f"of answer per call of a judge; {missing} not included.",
    )


def _lines(facts: Facts, metrics: Sequence[Metric], options: Options) -> Iterator[MetricCost]:
    price = options.price
    for metric in metrics:
        rows = supports(metric, facts.masks, facts.valid, facts.plan.outputs)
        if not metric.judged or not rows.any():
            continue
        read = dict.fromkeys(READ_BY[field] for field in metric.fields if field in READ_BY)
        size = {name: facts.array(f"{name}_size")[rows] for name in read}
        calls = np.ones(int(rows.sum()), np.int64)
        if metric.name in PER_CHUNK:  # each call has one chunk, and all that is read besides
            calls = facts.array("chunks")[rows]
            size = {name: n if name == "context" else n * calls for name, n in size.items()}
        tokens = tokens_of(sum(int(n.sum()) for n in size.values()), options.tokenizer)
        total = int(calls.sum())
        tokens_in, tokens_out = tokens + total * options.instruction_tokens, total * options.answer_tokens
        money = None if price is None else (tokens_in * price["input"] + tokens_out * price["output"]) / 1e6
        yield MetricCost(metric.system, metric.name, total, tokens_in, tokens_out, money)


# --- what to do next
MOST_STEPS = 7
"""Steps that are reported, at most."""

LEAST_TRUTHS = 4
"""From this many rows with ground truth on, it means something that most have the same."""

POINTS = 0.05
"""The difference that a metric should be able to detect."""


def _grow(call: Call) -> str:
    """How logged calls become rows: only the user knows the table."""
    return "help(eval_set_from_inference_table)" if call.in_python else "agent-eval-schema from-inference-table --help"


def next_steps(summary: ProfileSummary, support: list[Support], call: Call, unlabeled: int = 0) -> tuple[NextStep, ...]:
    """Invalid rows, then the steps in order of gain: the share of the rows, or of what a metric lacks, that improve."""
    if summary.logged_calls:
        text = "The rows are logged calls: failed, repeated and feedback requests count as questions."
        command = call.command("from-inference-table", "rows.jsonl") or call.function("eval_set_from_inference_table")
        return (NextStep(1.0, text, command),)
    first, steps = list[NextStep](), list[NextStep]()
    if summary.invalid:  # all that follows is about the other rows
        text = f"{share(summary.invalid, summary.rows)} of the rows are invalid and support no metric."
        first = [NextStep(summary.invalid / summary.rows, text, call.validation())]
    if summary.valid:
        steps = [*_from_rows(summary, call), *_power(summary, call), *_from_coverage(summary, support, call, unlabeled)]
    return tuple([*first, *sorted(steps, key=lambda step: -step.gain)][:MOST_STEPS])


def _from_rows(summary: ProfileSummary, call: Call) -> Iterator[NextStep]:
    """Repeated and conflicting questions, and leaks."""
    repeats = summary.duplicates
    if rows := repeats.exact + repeats.near:
        kind = "are exact or near duplicates of an earlier question" if repeats.near else "repeat an earlier question"
        text = f"{share(rows, repeats.rows)} of the rows {kind}: {repeats.distinct:,} of {repeats.rows:,} are distinct."
        command = call.command("profile", "--write-distinct", "distinct.jsonl")
        again = f'{call.function("profile_eval_set")}.write("distinct.jsonl")'
        yield NextStep(rows / repeats.rows, text, command or again)
    if count := repeats.conflict_count:
        verbs = ("has", "expects") if count == 1 else ("have", "expect")
        text = f"{plural(count, 'row')} {verbs[0]} the request of an earlier one and {verbs[1]} another answer."
        command = _review(summary, call, "conflicts") or call.validation(["AE902"])
        yield NextStep(count / summary.rows, text, command)
    for leak in summary.leaks:
        what = "have their ground truth" if leak.kind == TRUTH else f"have {leak.kind}"
        text = f"{share(leak.rows, summary.valid)} of the rows {what} in {leak.source}: they measure memory."
        against = ("--against", leak.source) if leak.source in summary.compared_with else ()
        command = call.command("profile", *against, "--output", "json") or "profile.leaks"
        yield NextStep(leak.rows / summary.valid, text, command)


def _power(summary: ProfileSummary, call: Call) -> Iterator[NextStep]:
    known = [p for p in summary.power if p.unit == "points" and p.rows and p.rows_needed is not None]
    weak = [p for p in known if p.paired is None or p.paired > POINTS]
    if not weak:
        return
    worst = max(weak, key=lambda p: (p.half_width is None, p.half_width or 0.0, -p.rows, p.metric))
    rows = worst.rows_needed or (0,)
    width = "too few for an interval" if worst.half_width is None else f"± {round(100 * worst.half_width)} points"
    which = f"{short_name(worst.metric)} has {plural(worst.rows, 'row')}: {width}"
    if worst.rows == summary.valid and all((p.half_width, p.rows) == (worst.half_width, worst.rows) for p in known):
        every = " for each metric" if len(known) > 1 else ""
        which = f"The dataset has {plural(worst.rows, 'row')}: {width}{every}"
    text = f"{which}; a difference of 5 points needs {rows[0]:,} rows."
    # Logged calls are added to this dataset if it has the columns of one that is built of them.
    if summary.format == "databricks" and summary.outputs == "provided" and not summary.invalid and call.name:
        text += f" The option `extend` adds logged calls to {call.name}."
    yield NextStep(0.35 * (1 - min(worst.rows / rows[0], 1)), text, _grow(call))


def _review(summary: ProfileSummary, call: Call, queue: str) -> str:
    """What opens a queue of the review; "" for evaluations, which are no rows."""
    if find_format(summary.format).system == "ces":
        return ""
    return call.command("review", "--queue", queue) or call.function("review_eval_set", queue=queue)


def _from_coverage(summary: ProfileSummary, support: list[Support], call: Call, unlabeled: int) -> Iterator[NextStep]:
    """Fields that would enable metrics; tools, ground truth, documents and values that the rows do not cover."""
    if unlabeled and (review := _review(summary, call, "truth")):
        text = f"{plural(unlabeled, 'row')} {'has' if unlabeled == 1 else 'have'} no ground truth."
        yield NextStep(0.3 * unlabeled / summary.rows, text, review)
    covered = summary.coverage
    open_ = [s for s in support if s.unlock and s.unlock_rows]
    if open_:
        alike = Counter((s.unlock_rows, s.unlock) for s in open_)
        rows, unlock = max(alike, key=lambda k: (k[0] * alike[k], k))
        enabled = [short_name(s.metric) for s in open_ if (s.unlock_rows, s.unlock) == (rows, unlock)]
        what = enabled[0] if len(enabled) == 1 else plural(len(enabled), "metric")
        text = f"With {unlock}, {plural(rows, 'more row')} would support {what}."
        command = call.command("metrics", "--system", summary.system)
        again = call.function("metric_support", system=summary.system)
        yield NextStep(0.2 * rows / summary.rows, text, command or again)
    if unused := [t.tool for t in covered.tools if not t.expected and not t.called]:
        names = ", ".join(f"`{name}`" for name in unused[:3]) + (f" and {len(unused) - 3} more" if unused[3:] else "")
        text = f"No row exercises {names}: {len(unused)} of {plural(len(covered.tools), 'tool')}."
        yield NextStep(0.5 * len(unused) / len(covered.tools), text, _grow(call))
    truth_balance = summary.balance
    if truth_balance.truths >= LEAST_TRUTHS and truth_balance.top_truth_rows * 2 > truth_balance.truths:
        part = share(truth_balance.top_truth_rows, truth_balance.truths)
        text = f"{part} of the rows with ground truth have the same one: an agent that always gives it scores as much."
        gain = truth_balance.top_truth_rows / summary.rows
        yield NextStep(0.8 * gain, text, call.command("profile", "--output", "json") or "profile.to_json()")
    documents = covered.documents
    if documents.unknown_rows:
        text = f"{share(documents.unknown_rows, summary.valid)} of the rows expect a document that is not in the list."
        command = call.command("profile", "--output", "json") or "profile.to_json()"
        yield NextStep(documents.unknown_rows / summary.valid, text, command)
    if documents.retrieved and (number := documents.never_retrieved):
        count = f"{number:,} of {plural(documents.expected, 'expected document')}"
        text = f"{count} {'is' if number == 1 else 'are'} never retrieved."
        yield NextStep(0.3 * number / documents.expected, text, call.validation(["AE903"]))
    # one value per row: not a grouping
    groups = [b for b in covered.breakdowns if 2 * b.values <= summary.valid]
    if thin := [(b.name, c.value) for b in groups for c in b.thin]:
        name, value = thin[0]
        more = f" and {len(thin) - 1} more" if thin[1:] else ""
        text = f"Fewer than {covered.min_rows} rows have {name} `{value}`{more}: too few for their own score."
        yield NextStep(0.1, text, _grow(call))
