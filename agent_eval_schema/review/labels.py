"""What people decided about rows → the cells that say so, in the format of the rows.

    state of a row ──▶ accepted fixes ──▶ canonical row + labels ──the format's writer──▶ cells that differ
                                                                    └─ read back ──▶ what the format cannot hold

There is no table of where a format has its labels: the canonical row is written with and without them, and what differs
is put into the cells of the source, so that everything else in them stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.cells.cells import native_rows
from agent_eval_schema.cells.edit import with_edits
from agent_eval_schema.cells.sizes import taken
from agent_eval_schema.fix.search import CellFix
from agent_eval_schema.formats.format import Format
from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.formats.shapes import MADE_URI
from agent_eval_schema.io.arrow import to_rows
from agent_eval_schema.io.jsonl import REMOVED
from agent_eval_schema.review.journal import FIX, State
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text import jsontext
from agent_eval_schema.validation.checked_batch import rows_of
from agent_eval_schema.validation.kernel import check_batch
from agent_eval_schema.validation.plan import Plan

LABELS = ("expected_facts", "expected_response", "guidelines", "documents", "reference_trajectory", "tags")
"""The labels of a row that become cells; `documents` has for each doc_uri whether it is relevant."""

COLUMN_OF = {label: label for label in LABELS} | {"documents": "expected_retrieved_context"}
"""The canonical column of each label."""

RATING = {"rating": "human_rating", "reason": "human_rating_reason"}
"""The columns of what a person thinks of the answer of the agent: a judge can be aligned with them."""

ACCEPTED, REJECTED = "accept", "reject"


def fix_path(fix: CellFix) -> str:
    """The path under which a journal has the decision about a fix."""
    return FIX + fix.column


def canonical_rows(batch: pa.RecordBatch, plan: Plan) -> list[dict[str, Any]]:
    """The rows of a batch in canonical form."""
    return to_rows(rows_of(check_batch(batch, replace(plan, columns=True))))


def with_labels(row: Mapping[str, Any], state: State) -> dict[str, Any]:
    """A canonical row with the labels of a state; an empty label takes the value away."""
    result = dict(row)
    for label in LABELS:
        if label in state:
            read = _READERS.get(label)
            result[COLUMN_OF[label]] = (state[label] if read is None else read(state[label], row)) or None
    return result


def _documents(marks: Mapping[str, bool], row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The documents that were expected or marked as relevant. Only one that is named by its text needs that."""
    expected = [d for d in row["expected_retrieved_context"] or () if marks.get(d["doc_uri"], True)]
    known = {d["doc_uri"] for d in expected}
    retrieved = [d for d in row["retrieved_context"] or () if d["doc_uri"] is not None]
    texts = {d["doc_uri"]: d["content"] for d in retrieved if d["doc_uri"].startswith(MADE_URI)}
    return expected + [{"doc_uri": u, "content": texts.get(u)} for u, is_ in marks.items() if is_ and u not in known]


def _guidelines(texts: Sequence[str], row: Mapping[str, Any]) -> dict[str, list[str]]:
    """Guidelines that stay are in the group in which they were; new ones are in the first group."""
    groups = {name: [t for t in own if t in texts] for name, own in (row["guidelines"] or {}).items()}
    known = {t for own in groups.values() for t in own}
    groups.setdefault(next(iter(groups), GUIDELINES), []).extend(t for t in texts if t not in known)
    return {name: own for name, own in groups.items() if own}


EXAMPLES: Mapping[str, Any] = {
    "expected_facts": ["a"],
    "expected_response": "a",
    "guidelines": ["a"],
    "documents": {"https://example.com/a": True},
    "reference_trajectory": [{"tool_name": "a", "tool_input": {}}],
    "tags": {"a": "b"},
}
"""A value of each label."""


def places_of(form: Format) -> dict[str, list[str]]:
    """Where a format has each label that it can hold: a column, and the keys below it."""
    empty = dict.fromkeys(COLUMNS)
    before, places = _written(form, empty), {}
    for label, example in EXAMPLES.items():
        after = with_labels(empty, {label: example})
        value: Any = {k: v for k, v in _written(form, after).items() if v != before.get(k)}
        path: list[str] = []
        while isinstance(value, dict) and len(value) == 1 and value != example:
            key, value = next(iter(value.items()))
            path += [key] if path[-1:] != [key] else []  # guidelines without a name have that of their column
        places[label] = path
    return {label: path for label, path in places.items() if path}


GUIDELINES = "guidelines"
"""The name of guidelines that have none."""


def for_browser(value: Any) -> Any:
    """The value with each integer that a browser would round as its text."""
    return _mapped(value, lambda leaf: str(leaf) if isinstance(leaf, int) and abs(leaf) >= 2**53 else leaf)


def _calls(calls: Any, row: Mapping[str, Any]) -> Any:
    """Calls from a browser, with the integers of the row that were sent as their texts."""
    leaves: list[Any] = []
    _mapped([row["reference_trajectory"], row["predicted_trajectory"]], leaves.append)
    numbers = {for_browser(leaf): leaf for leaf in leaves if for_browser(leaf) != leaf and str(leaf) not in leaves}
    return _mapped(calls, lambda leaf: numbers.get(leaf, leaf))


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        return {key: _mapped(inner, change) for key, inner in value.items()}
    return [_mapped(inner, change) for inner in value] if isinstance(value, list) else change(value)


_READERS: dict[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "documents": _documents, "guidelines": _guidelines, "reference_trajectory": _calls,
}  # fmt: skip


class Applied(Struct, frozen=True):
    """A batch with the decisions of people: the cells of each row that differ, and the labels that the format could
    not hold."""

    batch: pa.RecordBatch
    edits: dict[int, dict[str, Any]]
    unheld: dict[int, list[str]]


def apply_states(
    batch: pa.RecordBatch, states: Mapping[int, State], fixes: Mapping[int, Sequence[CellFix]], plan: Plan
) -> Applied:
    """Apply the states of rows, by their places in the batch."""
    edits: dict[int, dict[str, Any]] = {}
    for row, state in states.items():
        for fix in fixes.get(row, ()):
            if state.get(fix_path(fix)) == ACCEPTED:
                edits.setdefault(row, {}).update({fix.column: fix.after, **dict.fromkeys(fix.emptied, REMOVED)})
    fixed = _edited(batch, edits, plan)
    cells, unheld = _of_labels(fixed, states, plan)
    if unheld:  # a label that is not held leaves nothing behind
        rest = {r: {k: v for k, v in state.items() if k not in unheld.get(r, ())} for r, state in states.items()}
        cells, _ = _of_labels(fixed, rest, plan)
    for row, state in states.items():
        if rated := {column: state[path] for path, column in RATING.items() if path in state}:
            cells[row] = {**cells.get(row, {}), **rated}
    for row, own in cells.items():
        edits.setdefault(row, {}).update(own)
    return Applied(_edited(fixed, cells, plan), edits, unheld)


def _of_labels(
    batch: pa.RecordBatch, states: Mapping[int, State], plan: Plan
) -> tuple[dict[int, dict[str, Any]], dict[int, list[str]]]:
    """The cells of each row that its labels change, and the labels that are not read back from them."""
    labeled = sorted(row for row, state in states.items() if not state.keys().isdisjoint(LABELS))
    if not labeled:
        return {}, {}
    form, own = find_format(plan.format), taken(batch, labeled)
    wanted, cells = [], {}
    for row, canonical, source in zip(labeled, canonical_rows(own, plan), native_rows(own), strict=True):
        wanted.append(with_labels(canonical, states[row]))
        cells[row] = _cells(form, source, canonical, wanted[-1])
    unheld = {}
    back = canonical_rows(taken(_edited(batch, cells, plan), labeled), plan)
    for row, before, after in zip(labeled, wanted, back, strict=True):
        labels = [name for name in LABELS if name in states[row] and not _same(before, after, COLUMN_OF[name])]
        if labels:
            unheld[row] = labels
    return {row: own for row, own in cells.items() if own}, unheld


def _same(wanted: Mapping[str, Any], back: Mapping[str, Any], column: str) -> bool:
    """Whether a label came back: of documents which they are, of guidelines their texts, whatever group they are in."""
    if column == COLUMN_OF["documents"]:
        return [d["doc_uri"] for d in wanted[column] or ()] == [d["doc_uri"] for d in back[column] or ()]
    if column == GUIDELINES:
        texts = [[t for own in (row[column] or {}).values() for t in own] for row in (wanted, back)]
        return texts[0] == texts[1]
    return bool(jsontext.without_null(wanted[column]) == jsontext.without_null(back[column]))


def _edited(batch: pa.RecordBatch, edits: Mapping[int, Mapping[str, Any]], plan: Plan) -> pa.RecordBatch:
    cells: dict[str, dict[int, Any]] = {}
    for row, values in edits.items():
        for column, value in values.items():
            cells.setdefault(column, {})[row] = None if value is REMOVED else value
    return with_edits(batch, cells, plan.can_hold_objects)


# --- a canonical row with other labels → the cells of the format that differ
def _cells(
    form: Format, source: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]
) -> dict[str, Any]:
    old, new = _written(form, before), _written(form, after)
    cells = {}
    for column in dict.fromkeys((*old, *new)):
        if old.get(column) != new.get(column) and column != "trace":
            own = jsontext.structured(source.get(column))
            value = merged(own, old.get(column), new.get(column))
            cells[column] = REMOVED if value in (None, {}) else _as_before(own, value)
    return cells


def _written(form: Format, row: Mapping[str, Any]) -> dict[str, Any]:
    """The cells of the columns that the format reads, without its originals: those stay where they are."""
    plain = {**row, "expectations": None}
    if form.reads:
        return form.write_fields(plain)
    assert form.writer is not None
    assert form.writer.row is not None
    return form.writer.row(plain)


def _as_before(own: Any, value: Any) -> Any:
    """Guidelines without a name are a list where they were, or where there were none."""
    is_named = isinstance(own, dict) or not isinstance(value, dict)
    return value if is_named or list(value) != [GUIDELINES] else value[GUIDELINES]


def merged(own: Any, before: Any, after: Any) -> Any:
    """The source's value, in which what differs between the two written ones is changed."""
    if before == after:
        return own
    after = {} if after is None and isinstance(before, dict) else after
    if isinstance(after, dict) and isinstance(own, dict | None) and isinstance(before, dict | None):
        result, old = dict(own or {}), before or {}
        for key in (*old, *(k for k in after if k not in old)):
            value = merged(result.get(key), old.get(key), after.get(key))
            if value is None:
                result.pop(key, None)
            else:
                result[key] = value
        return result
    if isinstance(after, list) and isinstance(own, list) and isinstance(before, list) and len(own) == len(before):
        by_text = {jsontext.encode(b): o for b, o in zip(before, own, strict=True)}
        return [by_text.get(jsontext.encode(entry), jsontext.without_null(entry)) for entry in after]
    return jsontext.without_null(after)
