"""Facts → findings → the numbers and examples of a profile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.metrics.support import metrics_of, support_of
from agent_eval_schema.profile.advice import next_steps
from agent_eval_schema.profile.cost import estimate
from agent_eval_schema.profile.coverage import balance, cluster_rows, clusters_of, commonest_truth, cover
from agent_eval_schema.profile.duplicates import ROWS_OF_A_GROUP, Repeats, find_repeats
from agent_eval_schema.profile.examples import EXAMPLES, read_examples
from agent_eval_schema.profile.facts import Facts
from agent_eval_schema.profile.leakage import FoundLeak, Other, find_leaks
from agent_eval_schema.profile.options import Options
from agent_eval_schema.profile.past import PastScores, read_past
from agent_eval_schema.profile.profile_summary import (
    Assumptions,
    DuplicateGroup,
    Duplicates,
    Leak,
    ProfileSummary,
    RowExample,
)
from agent_eval_schema.profile.size import Sizing
from agent_eval_schema.render.phrases import plural
from agent_eval_schema.rules.columns import PAYLOAD_TABLE


class ProfileFindings(Struct, frozen=True):
    """What was found on the rows."""

    repeats: Repeats
    conflicts: list[tuple[int, int]]
    leaks: list[FoundLeak]
    compared: tuple[str, ...]
    past: list[PastScores]


def find(facts: Facts, others: Sequence[Other], past: Any, options: Options) -> ProfileFindings:
    """What the facts show."""
    repeats = find_repeats(facts, options.near)
    return ProfileFindings(
        repeats,
        facts.run.builder.conflicts,
        list(find_leaks(facts, repeats, others, options.near)),
        tuple(other.name for other in others),
        read_past(past, facts),
    )


def summarize(facts: Facts, findings: ProfileFindings, options: Options) -> ProfileSummary:
    """The numbers and examples of a profile."""
    metrics = metrics_of(options.system_of(facts.plan.format))
    groups, clustered = findings.repeats.groups(), cluster_rows(findings.repeats) if facts.plan.values else []
    truth = commonest_truth(facts)[3]
    examples = read_examples(facts, _shown(groups, findings, clustered, truth))
    clusters, note = clusters_of([examples[row] for row in clustered])
    assumed = Assumptions(options.rate, options.correlation, options.cluster_correlation, facts.cluster_words())
    sizing = Sizing(facts, findings.repeats, findings.past, assumed)
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
        _duplicates(findings, groups, examples, options.near),
        tuple(_leak(leak, examples) for leak in findings.leaks),
        findings.compared,
        cover(facts, options.min_rows, clusters, note if facts.plan.values else ""),
        balance(facts, None if truth is None else examples[truth]),
        estimate(facts, metrics, options),
        PAYLOAD_TABLE.code in facts.report.counts,
    )
    masks, rows = facts.run.builder.valid_masks, facts.row_count
    support = [support_of(metric, masks, rows, facts.plan.outputs) for metric in metrics]
    return replace(summary, next_steps=next_steps(summary, support))


def _shown(groups: list[Any], findings: ProfileFindings, clustered: list[int], truth: int | None) -> Iterable[int]:
    """The rows that a profile shows."""
    yield from clustered
    yield from () if truth is None else (truth,)
    for group in groups:
        yield from group[:ROWS_OF_A_GROUP].tolist()
    for pair in findings.conflicts[:EXAMPLES]:
        yield from pair
    for leak in findings.leaks:
        yield from leak.rows[:EXAMPLES]


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
    findings: ProfileFindings, groups: list[Any], examples: Mapping[int, RowExample], threshold: float
) -> Duplicates:
    repeats = findings.repeats
    made = [
        DuplicateGroup(
            "exact" if len(set(repeats.exact[group].tolist())) == 1 else "near",
            len(group),
            tuple(examples[row] for row in group[:ROWS_OF_A_GROUP].tolist()),
        )
        for group in groups
    ]
    pairs = tuple((examples[one], examples[other]) for one, other in findings.conflicts[:EXAMPLES])
    return Duplicates(
        int(np.count_nonzero(repeats.asked)),
        repeats.distinct,
        len(repeats.exact_rows),
        len(repeats.near_rows),
        threshold,
        repeats.group_count,
        tuple(made),
        len(findings.conflicts),
        pairs,
    )


def _leak(leak: FoundLeak, examples: Mapping[int, RowExample]) -> Leak:
    return Leak(leak.source, leak.kind, len(leak.rows), tuple(examples[row] for row in leak.rows[:EXAMPLES]))
