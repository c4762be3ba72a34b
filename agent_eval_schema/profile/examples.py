"""The rows that a profile shows, read again when it is known which they are."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from agent_eval_schema.profile.facts import Facts
from agent_eval_schema.profile.profile_summary import RowExample
from agent_eval_schema.profile.row_facts import question_of, shown_truths
from agent_eval_schema.text.describe import cut
from agent_eval_schema.validation.checked_batch import rows_of, verdict

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
