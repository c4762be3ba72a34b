"""Later feedback → the labels of rows that a dataset has: what it changes, and what it leaves.

no expected_response               takes the label of the feedback
one from feedback (by its tag)     a newer edit replaces it; a thumb down withdraws a copy of the response
any other                          is the user's own: it stays, and an issue reports that
expected_retrieved_context         documents that were rated positive are added, if all in it were retrieved
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from msgspec import Struct

from agent_eval_schema.cells.notes import IssueLog
from agent_eval_schema.inference_tables.finish.feedback_labels import Labels, chunks_of
from agent_eval_schema.inference_tables.finish.labels import COPIED, EDITED, TAG, labels_of_row
from agent_eval_schema.inference_tables.finish.redact import Redactor
from agent_eval_schema.inference_tables.read.plan import BuildPlan
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules import production as rules
from agent_eval_schema.schema import ROW_SCHEMA
from agent_eval_schema.text import jsontext

CHANGES = pa.list_(pa.struct([("column", pa.string()), ("before", pa.string()), ("after", pa.string())]))
"""The labels of a row that changed; a label that is not text is JSON text."""

_LABELS = ("expected_response", "expected_retrieved_context", "tags")


class _Row(Struct):
    """The labels of a row, and what they are compared with."""

    response: str | None
    expected_response: str | None
    expected_facts: list[str] | None
    context: list[dict[str, Any]] | None
    tags: dict[str, str]
    retrieved: set[str | None]

    @property
    def source(self) -> str | None:
        return self.tags.get(TAG)

    @property
    def is_own(self) -> bool:
        """Whether the ground truth is the user's own; a copy that is no copy any more was edited."""
        if self.expected_facts:
            return True
        edited = self.source == COPIED and self.expected_response != self.response
        return self.expected_response is not None and (self.source not in (EDITED, COPIED) or edited)


class UpdatedBatch(NamedTuple):
    """The columns with the labels, the notes on them, and what changed (CHANGES)."""

    columns: dict[str, pa.Array]
    notes: pa.Array
    changes: pa.Array


def updated(
    columns: dict[str, pa.Array], judged: pa.RecordBatch, plan: BuildPlan, redactor: Redactor | None
) -> UpdatedBatch:
    """The canonical columns of rows with later feedback: `judged` has the `entries` of each row, and its `time`."""
    log, size = IssueLog(judged.num_rows), judged.num_rows
    changes: list[list[dict[str, Any]] | None] = [None] * size
    rows = np.flatnonzero(np.asarray(judged.column("entries").is_valid())).tolist() if plan.labeled else []
    cells = {n: columns[n].to_pylist() for n in _LABELS} if rows else {}
    for at in rows:
        found = labels_of_row(columns, judged, at, plan)
        row = _row(columns, at)
        notes: list[Finding] = []
        new = dict(_changed(row, found, redactor, notes))
        for finding in [*(found.notes if new else ()), *notes]:
            log.add_finding(at, finding)
        for name, value in new.items():
            cells[name][at] = value
        texts = ((n, _text(columns[n][at].as_py()), _text(v)) for n, v in new.items() if n != "tags")
        changes[at] = [{"column": n, "before": old, "after": value} for n, old, value in texts] or None
    filled = {n: pa.array(values, ROW_SCHEMA.field(n).type) for n, values in cells.items()}
    return UpdatedBatch({**columns, **filled}, log.to_arrow(), pa.array(changes, CHANGES))


def _row(columns: dict[str, pa.Array], at: int) -> _Row:
    names = ("response", "expected_response", "expected_facts", "expected_retrieved_context", "tags", "trace")
    response, expected, facts, context, tags, trace = (columns[n][at].as_py() for n in names)
    retrieved = {uri for uri, _ in chunks_of(trace).values()} if context else set()
    return _Row(response, expected, facts, context, dict(tags or ()), retrieved)


def _changed(row: _Row, found: Labels, redactor: Redactor | None, notes: list[Finding]) -> Iterator[tuple[str, Any]]:
    """The cells that change."""
    given = found.expected_response
    if given is not None and redactor is not None:
        given = redactor.cell(given)
    source = COPIED if found.copied else EDITED
    if row.is_own:
        if given is not None and not found.copied and given != row.expected_response:
            message = "users edited the answer, but the dataset states its own ground truth"
            notes.append(Finding(rules.LABEL_YIELDS, message, "expected_response"))
    elif given is None:
        if row.source == COPIED and found.judged:
            yield "expected_response", None
            yield "tags", [(k, v) for k, v in row.tags.items() if k != TAG] or None
    elif not (found.copied and row.source == EDITED) and (given, source) != (row.expected_response, row.source):
        yield "expected_response", given
        yield "tags", list({**row.tags, TAG: source}.items())
    known = {d["doc_uri"] for d in row.context or ()}
    more = [d for d in found.expected_retrieved_context or () if d.doc_uri not in known]
    if more and not known <= row.retrieved:
        message = "users rate documents, but the dataset states expected_retrieved_context"
        notes.append(Finding(rules.LABEL_YIELDS, message, "expected_retrieved_context"))
    elif more:
        added = [{"doc_uri": d.doc_uri, "content": d.content} for d in more]
        yield "expected_retrieved_context", [*(row.context or ()), *added]


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else jsontext.encode(value).decode()
