"""The rows that a profile shows, read again when it is known which they are."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from msgspec.structs import replace

from agent_eval_schema.io.source import rows_where
from agent_eval_schema.profile.facts import Facts
from agent_eval_schema.profile.row_facts import question_of, shown_truths
from agent_eval_schema.render.profile.summary import RowExample
from agent_eval_schema.validation.checked_batch import rows_of, verdict
from agent_eval_schema.validation.kernel import check_batch

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
    plan, found, left = replace(facts.plan, columns=True), {}, wanted.tolist()
    for batch in rows_where(facts.source.batches(), mask):
        checked = check_batch(batch, plan)
        ids, cells = verdict(checked, "id").to_pylist(), rows_of(checked)
        for i, (question, truth) in enumerate(zip(question_of(cells), shown_truths(cells), strict=True)):
            row = left.pop(0)
            found[row] = RowExample(row, ids[i], _shortened(question), _shortened(truth))
    return found


def _shortened(text: str | None) -> str | None:
    if not text:
        return None
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
