"""One of the two datasets of a comparison: its report, and hashes of each row to compare it, never cells.

The rows are checked once for both. The values to be shown are read again once they are known (`read`).

Cells → 64-bit hashes that are equal where the cells have the same value, whatever file they came from.

    text             its characters
    JSON             its value: neither blanks nor the order of keys matter, and 1.0 is 1
    list, struct     the hashes of the parts, by their places
    absent           0

Canonical columns have one Arrow form, so their parts are hashed as columns. A passed-through column is text in one file
and JSON in another: there a JSON string is its text, text that holds a JSON object or list is that value.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from agent_eval_schema.cells.arrow import filtered, is_text, simplified, text_views, to_values
from agent_eval_schema.cells.cells import native, read_cells
from agent_eval_schema.cells.hashing import Array, hash_array, hash_texts, hashes_of
from agent_eval_schema.cells.notes import line_texts
from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.io.arrow import canonical_values
from agent_eval_schema.io.source import Source
from agent_eval_schema.metrics.catalog import Metric
from agent_eval_schema.metrics.support import supports
from agent_eval_schema.rule import Severity
from agent_eval_schema.rules import RULES, all_rules
from agent_eval_schema.rules.columns import NAMED_COLUMN
from agent_eval_schema.schema import COLUMNS, ChatRequest, JsonObject, JsonValue, columns_of
from agent_eval_schema.text.jsontext import (
    NOT_JSON,
    OPENING,
    canonical_bytes,
    canonical_json,
    decode_exact,
    encode_sorted,
)
from agent_eval_schema.validation.checked_batch import rows_of, verdict
from agent_eval_schema.validation.checked_run import CheckedRun
from agent_eval_schema.validation.plan import make_plan
from agent_eval_schema.validation.report import Report

ORIGINAL_LINE = "(line)"
"""The name of the field for a line of a file that is not a row: its text."""

_JSON_TEXTS = frozenset((*columns_of(ChatRequest, JsonObject, JsonValue), "trace", "tool_input"))
"""Columns, and keys in them, whose Arrow form is JSON text."""

_UNREADABLE = np.uint64(0x9E3779B97F4A7C15)


def fingerprints(rows: pa.RecordBatch, source_cells: pa.RecordBatch, unread: dict[str, list[int]]) -> dict[str, Array]:
    """One hash per row for each column of the normalized `rows` that has a value.

    A cell that could not be read has no normalized value: in the `unread` rows, the original cell is hashed.
    """
    columns = {field.name: _column(rows, field) for field in rows.schema}
    for name, at in unread.items():
        cells = read_cells(filtered(source_cells.select([name]), np.isin(np.arange(source_cells.num_rows), at)), name)
        if cells is not None:
            hashes = hashes_of(_plain_texts(cells.texts, cells.json))
            # Different from cells that can be read: text that is not a list yet differs from the list.
            columns[name][at] = np.where(hashes, mixed(hashes ^ _UNREADABLE), 0)
    lines = line_texts(source_cells)
    if lines is not None:
        columns[ORIGINAL_LINE] = hashes_of(lines.to_pylist())
    return {name: hashes for name, hashes in columns.items() if hashes.any()}


def mixed(hashes: Array) -> Array:
    """Hashes that share no pattern with these hashes (the finalizer of SplitMix64)."""
    hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    last: Array = hashes ^ (hashes >> np.uint64(31))
    return last


def name_hash(name: str) -> Any:
    return hash_texts([name])[0][0]


def _column(rows: pa.RecordBatch, field: pa.Field) -> Array:
    array = rows.column(rows.schema.get_field_index(field.name))
    if array.null_count == len(array):
        return np.zeros(len(array), np.uint64)
    if field.name in COLUMNS:
        if pa.types.is_map(array.type):
            return hashes_of([None if v is None else encode_sorted(v) for v in canonical_values(array, field)])
        return _value_hashes(simplified(array), field.name)
    cells = read_cells(rows, field.name)
    return hashes_of(_plain_texts(cells.texts, cells.json) if cells else to_values(array))


def _plain_texts(texts: Sequence[str | None], json: bool) -> list[str | None]:
    """The cells of a column of unknown type as text: a JSON string is its text, everything else its value as JSON."""

    def plain(text: str) -> str:
        if json and text[:1] != '"':
            return canonical_json(text)
        if json:
            with suppress(*NOT_JSON):
                text = str(decode_exact(text))
        # text as it is ("1.10" is not a number), unless it is an object or a list
        return canonical_json(text) if text.startswith(OPENING) else text

    return [None if text is None else plain(text) for text in texts]


# --- canonical columns


def _value_hashes(array: pa.Array, name: str) -> Array:
    """The hash of each value of an Arrow array; `name` is the column's or the key's."""
    kind = array.type
    if is_text(kind) and name in _JSON_TEXTS:
        return hashes_of(list(map(canonical_bytes, text_views(array))))
    if is_text(kind):
        hashes = np.asarray(hash_array(array).fill_null(0))
    elif pa.types.is_list(kind):
        hashes = _lists(array, name)
    elif pa.types.is_struct(kind):
        hashes = np.zeros(len(array), np.uint64)
        for part, values in zip(kind, array.flatten(), strict=True):
            hashes += mixed(_value_hashes(values, part.name) ^ name_hash(part.name))
        hashes = mixed(hashes)
    else:
        numbers = np.asarray(array.cast(pa.float64() if pa.types.is_floating(kind) else pa.int64()).fill_null(0))
        hashes = mixed((numbers + 0).view(np.uint64) + _UNREADABLE)  # + 0: there is a zero with a minus sign
    return np.where(np.asarray(array.is_valid()), hashes, np.uint64(0))


def _lists(array: pa.Array, name: str) -> Array:
    """Each list's entries, every one mixed with its place in the list, summed up."""
    lengths = np.asarray(pc.list_value_length(array).fill_null(0)).astype(np.int64)
    ends = np.cumsum(lengths)
    places = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)
    entries = mixed(_value_hashes(array.flatten(), name) ^ mixed(places.astype(np.uint64) + np.uint64(1)))
    running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(entries, dtype=np.uint64)])
    return mixed(running[ends] - running[ends - lengths] + lengths.astype(np.uint64) + np.uint64(1))


# --- a dataset
CODE_BITS = np.int64(16)
"""A finding as one number: the row, and in the last bits the place of its code among all (`all_codes`)."""


def all_codes() -> tuple[str, ...]:
    """The codes of all rules, in an order that stays."""
    return tuple(all_rules())


class Snapshot:
    """A dataset that is compared with another one.

    `hashes` has one hash per row for each column that has a value (0 where a cell is absent), `findings` the codes
    that each row has (see CODE_BITS), sorted; `overall` has code and column of the findings on the dataset as a whole,
    `masks` the fields that are present in each row.
    """

    def __init__(self, source: Source) -> None:
        self._run = run = CheckedRun(source, replace(make_plan(source), columns=True))
        self._reader = find_format(run.plan.format).read
        parts: dict[str, list[tuple[int, Array]]] = {}
        findings = [np.zeros(0, np.int64)]
        start = 0
        for batch, checked in run.pairs():
            cells = self._reader(batch)
            for name, hashes in fingerprints(rows_of(checked), cells, _unread(cells, checked)).items():
                parts.setdefault(name, []).append((start, hashes))
            lists = verdict(checked, "issues")
            codes = pc.index_in(lists.flatten().field("code"), value_set=pa.array(all_codes()))
            rows = start + np.repeat(np.arange(len(lists)), np.asarray(pc.list_value_length(lists)))
            findings.append(np.unique((rows << CODE_BITS) | np.asarray(codes).astype(np.int64)))
            start += batch.num_rows
        self.report = Report(run)
        self.row_count, self.valid, self.masks = start, run.builder.valid, run.builder.masks
        # how the columns were named is the reading, not the data
        overall = (issue for issue in run.builder.overall if issue.code != NAMED_COLUMN.code)
        self.overall = {(issue.code, issue.column) for issue in overall}
        self.hashes: dict[str, Array] = {}
        for name in list(parts):
            self.hashes[name] = whole = np.zeros(start, np.uint64)
            for at, hashes in parts.pop(name):
                whole[at : at + len(hashes)] = hashes
        compared = np.array(run.builder.compared_rows, np.int64)  # the issues of the rules that compare rows
        compared_codes = np.array([all_codes().index(code) for code in run.builder.compared_codes], np.int64)
        self.findings = np.unique(np.concatenate([*findings, (compared << CODE_BITS) | compared_codes]))

    def supports(self, metric: Metric) -> Array:
        """For each row whether it supports the metric; the rows of a CES file are not evaluation rows."""
        if not find_format(self.report.format).is_rows:
            return np.zeros(self.row_count, bool)
        return supports(metric, self.masks, self.valid, self.report.outputs)

    def hash(self, name: str) -> Array:
        """The hashes of a column, 0 throughout if there is nothing in it."""
        hashes = self.hashes.get(name)
        return np.zeros(self.row_count, np.uint64) if hashes is None else hashes

    def keys(self) -> list[Array]:
        """The keys of each row, the surest first; 0 where a row lacks the parts of the key."""
        contents = np.zeros(self.row_count, np.uint64)
        for name, hashes in self.hashes.items():
            if name != "request_id":
                contents += np.where(hashes, mixed(hashes ^ name_hash(name)), 0)
        own, request = self.hash("inputs"), self.hash("request")
        question = np.where(own, mixed(own ^ mixed(request)), request)
        contents, ids = mixed(contents + np.uint64(1)), self.hash("request_id")
        with_contents = np.where(ids != 0, mixed(mixed(ids) + contents), 0)
        with_question = np.where((ids != 0) & (question != 0), mixed(mixed(ids) + question), 0)
        return [with_contents, with_question, ids, contents, question, request]

    def errors(self, row: int) -> tuple[str, ...]:
        """The codes for which a row is invalid."""
        first, end = np.searchsorted(self.findings, np.array([row, row + 1]) << CODE_BITS)
        every = all_codes()
        codes = (every[i] for i in (self.findings[first:end] & ((1 << CODE_BITS) - 1)).tolist())
        return tuple(code for code in codes if RULES[code].severity is Severity.ERROR)

    def read(self, wanted: Mapping[str, Array]) -> dict[str, dict[int, Any]]:
        """The values of some rows, {column: {row: value}}: normalized, or as given where they could not be read."""
        columns: dict[str, dict[int, Any]] = {name: {} for name in wanted}
        rows = np.unique(np.concatenate([np.zeros(0, np.int64), *wanted.values()]))
        mask = np.zeros(self.row_count, bool)
        mask[rows] = True
        start = 0
        for batch, checked in self._run.reread(mask):
            cells = self._reader(batch)
            here = rows[start : start + cells.num_rows]
            start += cells.num_rows
            unread = _unread(cells, checked)
            for name in wanted:
                places = np.flatnonzero(np.isin(here, wanted[name]))
                values = _values(name, cells, checked, unread.get(name, []), places)
                columns[name].update(zip(here[places].tolist(), values, strict=True))
        return columns


def _unread(cells: pa.RecordBatch, checked: pa.RecordBatch) -> dict[str, list[int]]:
    """For each column the rows whose cell exists but could not be read, so that it has no normalized value."""
    lists = verdict(checked, "issues")
    notes = lists.flatten()
    errors = [code for code, rule in all_rules().items() if rule.severity is Severity.ERROR]
    wrong = np.asarray(pc.is_in(notes.field("code"), value_set=pa.array(errors)))
    if not wrong.any():
        return {}
    rows = np.repeat(np.arange(len(lists)), np.asarray(pc.list_value_length(lists)))
    columns, normal = notes.field("column"), rows_of(checked)
    by_column = {}
    for name in set(columns.filter(pa.array(wrong)).unique().to_pylist()).intersection(COLUMNS, cells.schema.names):
        at = np.unique(rows[wrong & np.asarray(pc.equal(columns, name).fill_null(False))])
        absent = np.asarray(normal.column(normal.schema.get_field_index(name)).is_null())
        by_column[name] = at[absent[at]].tolist()
    return {name: at for name, at in by_column.items() if at}


def _values(name: str, cells: pa.RecordBatch, checked: pa.RecordBatch, unread: list[int], places: Array) -> list[Any]:
    """The values of a column at some places of a batch."""
    if name == ORIGINAL_LINE:
        lines = line_texts(cells)
        return [None] * len(places) if lines is None else [lines[at].as_py() for at in places.tolist()]
    rows = rows_of(checked)
    at = rows.schema.get_field_index(name)
    if at < 0:
        return [None] * len(places)
    wanted = filtered(rows.select([at]), np.isin(np.arange(rows.num_rows), places))
    values = canonical_values(wanted.column(0), rows.schema.field(at))
    for i in np.flatnonzero(np.isin(places, unread)).tolist():
        values[i] = native(cells.slice(int(places[i]), 1), cells.schema.get_field_index(name))[0]
    return values
