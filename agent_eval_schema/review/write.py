"""The reviewed file: the same format, order and columns, and only the reviewed cells differ.

    .jsonl .json .csv      the text of the file with these cells replaced, the rest to the byte (as `--fix` does)
    .xlsx                  the workbook with these cells replaced; the line of a dropped row is empty
    Parquet, a folder …    all rows, rewritten
    a document             its rows, converted back into the format (`convert`)
    traces                 canonical rows

A row that was dropped is excluded. The diff is that of `diff`, of the rows as they are and as they would be written.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from agent_eval_schema.cells.notes import own_columns
from agent_eval_schema.cells.sizes import taken
from agent_eval_schema.conversion.conversion import Conversion, find_writer
from agent_eval_schema.conversion.convert import convert_eval_set
from agent_eval_schema.diff.diff import Diff, diff_eval_sets
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.fix.fix import is_rewritten, rewrite
from agent_eval_schema.formats.names import TargetFormat
from agent_eval_schema.formats.nested import require_one_format
from agent_eval_schema.io.atomic import VALIDATE_AGAIN
from agent_eval_schema.io.excel import is_excel
from agent_eval_schema.io.outputs import settle
from agent_eval_schema.io.places import compression_of, ending_of, kind_of, part_of
from agent_eval_schema.io.source import Source, schema_of
from agent_eval_schema.io.streams import DROPPED
from agent_eval_schema.io.write import require_document_place, require_writable, write_batches
from agent_eval_schema.render.phrases import plural
from agent_eval_schema.review.dataset import Reviewed
from agent_eval_schema.review.journal import DRAFT, State, in_file_name
from agent_eval_schema.rules.conversion import LEFT_OUT
from agent_eval_schema.runtime.progress import Progress, progress

if TYPE_CHECKING:
    import pandas as pd

NAMED = 8
"""Rows that a summary names; of more it gives the number."""


def out_path(name: str | None, reviewer: str = "", endings: Sequence[str] = ()) -> str:
    """Where a reviewed file is written by default: `support.maria.reviewed.jsonl` has the labels of maria,
    `support.reviewed.jsonl` those of all. A document in a table is written to a file of one of `endings`."""
    name = os.path.basename(part_of(name or "data.jsonl")[0])
    ending, packed = ending_of(name) if kind_of(name) or is_excel(name) else "", compression_of(name)
    stem = name.removesuffix(packed).removesuffix(ending)
    if endings and ending not in endings:
        ending = endings[0]
    return f"{stem}{reviewer and '.' + in_file_name(reviewer)}.reviewed{ending or '.jsonl'}{packed}"


class Reviewing:
    """The rows of a dataset with what was decided about them, to be compared and written."""

    def __init__(self, reviewed: Reviewed, states: Mapping[int, State]) -> None:
        self._reviewed, self._states = reviewed, states
        self.dropped = sorted(row for row, state in states.items() if state.get("dropped"))
        self._applied = list(reviewed.applied_batches(states))
        self.unheld = Counter(
            label
            for start, applied in zip(reviewed.starts, self._applied, strict=True)
            for at in applied.edits.keys() | applied.unheld.keys()
            for label in (
                reviewed.unheld(replace(applied, batch=applied.batch.slice(at, 1)), states.get(start + at, {}))
                if reviewed.is_document
                else applied.unheld.get(at, ())
            )
        )
        self.cells = Counter(column for a in self._applied for cells in a.edits.values() for column in cells)
        self.rows = sum(len(a.edits) for a in self._applied)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as they would be written."""
        for start, applied in zip(self._reviewed.starts, self._applied, strict=True):
            rows = sorted({*range(start, start + applied.batch.num_rows)}.difference(self.dropped))
            yield taken(applied.batch, [row - start for row in rows]) if self.dropped else applied.batch

    @property
    def source(self) -> Source:
        """The rows as a source of their own."""
        names = self._reviewed.source.column_names()
        added = [column for column in self.cells if column not in names]
        return replace(
            self._reviewed.source,
            batches=self.batches,
            columns=self._reviewed.source.columns and (*names, *added),
            shares=None,
            differs_from_file=True,
            lines=None,
        )

    def diff(self) -> Diff:
        """What would differ, in the format that is written."""
        reviewed = self._reviewed
        if reviewed.is_document:
            return diff_eval_sets(reviewed.original, self._document.data)
        before = replace(reviewed.source, batches=lambda: iter(reviewed.batches), shares=None, differs_from_file=True)
        return diff_eval_sets(before, self.source)

    def changes(self) -> pd.DataFrame:
        """The cells that would differ, as in `diff`; of a table only the rows with a decision are compared."""
        reviewed, rows, before, after = self._reviewed, list[int](), list[pa.RecordBatch](), list[pa.RecordBatch]()
        if reviewed.is_document:
            return self.diff().changed
        dropped = set(self.dropped)
        for start, batch, applied in zip(reviewed.starts, reviewed.batches, self._applied, strict=True):
            own = sorted(at for at in applied.edits if start + at not in dropped)
            rows += [start + at for at in own]
            before += [taken(batch, own)] if own or not before else []
            after += [taken(applied.batch, own)] if own or not after else []
        old = replace(reviewed.source, batches=lambda: iter(before), shares=None, differs_from_file=True, lines=None)
        with _advising():
            changes = diff_eval_sets(old, replace(self.source, batches=lambda: iter(after))).changed
        return changes.assign(old_row=[rows[row] for row in changes["old_row"]])

    def summary(self) -> list[str]:
        """What would be written, and what would not."""
        cells = ", ".join(f"{column} {count:,}" for column, count in self.cells.most_common())
        lines = [f"{plural(self.rows, 'row')} changed: {cells}" if self.rows else "no cell changed"]
        if self.dropped:
            lines.append(f"{plural(len(self.dropped), 'row')} excluded")
        if self._reviewed.is_canonical:
            lines.append(f"the format {self._reviewed.format} has no place for labels: canonical rows are written")
        if self._reviewed.is_document and (rated := sum("rating" in state for state in self._states.values())):
            lines.append(f"the ratings of {plural(rated, 'row')} are not in a document: they stay in the journal")
        for label, count in self.unheld.items():
            where = f"{label} of {plural(count, 'row')}"
            lines.append(f"{where}: the format {self._reviewed.format} cannot hold it; it stays in the journal")
        if typed := sorted(r for r, s in self._states.items() if any(p.startswith(DRAFT) and s[p] for p in s)):
            lines.append(f"{plural(len(typed), 'row')} with text that is typed and not entered: {_named(typed)}")
        if rows := self._left_out():
            lines.append(
                f"{plural(len(rows), 'invalid row')} cannot be written: {_named(rows)}; correct or drop what is wrong"
            )
        return lines

    @cached_property
    def _document(self) -> Conversion:
        """The rows, converted back into the format of a document."""
        form = cast(TargetFormat, self._reviewed.format)
        return convert_eval_set(self.source, form, format="databricks", on_invalid="keep")

    def _left_out(self) -> list[int]:
        """The rows that a document cannot contain, as the reviewed file numbers them."""
        if not self._reviewed.is_document:
            return []
        numbers = np.delete(np.arange(len(self._reviewed)), self.dropped)
        losses = self._document.losses
        return [int(numbers[row]) for row in losses["row"][losses["code"] == LEFT_OUT.code]]

    def write(self, path: str) -> None:
        """Write the rows. Raises EvalSetError if the source has changed since it was read, or is the file itself."""
        reviewed = self._reviewed
        settle({"": path}, {"the file under review": reviewed.original})
        if reviewed.is_document:
            writer = find_writer(reviewed.format)
            assert writer.save is not None
            require_document_place(path, writer.endings)
            writer.save(self._document.data, path)
            return
        source = reviewed.source
        with progress(lambda rows: rows / len(reviewed)) as so_far, _advising():
            is_new = source.kind == "csv" and bool(self.cells.keys() - set(source.column_names()))  # a header lacks it
            if is_rewritten(source, path) and not is_new:
                rewrite(source, path, {}, self._edits(so_far))
                return
            require_writable(path)
            require_one_format(source, path)
            write_batches(path, self._rows(so_far), schema_of(self.source))

    def _rows(self, so_far: Progress) -> Iterator[pa.RecordBatch]:
        for batch in self.batches():
            yield batch.select(own_columns(batch.schema))
            so_far.add(batch.num_rows)

    def _edits(self, so_far: Progress) -> Iterator[dict[str, Any]]:
        dropped = set(self.dropped)
        for start, applied in zip(self._reviewed.starts, self._applied, strict=True):
            for at in range(applied.batch.num_rows):
                yield DROPPED if start + at in dropped else applied.edits.get(at, {})
            so_far.add(applied.batch.num_rows)


@contextmanager
def _advising() -> Iterator[None]:
    """What to do in a review about a file that is no longer the one that was read."""
    try:
        yield
    except EvalSetError as error:
        if not str(error).endswith(VALIDATE_AGAIN):
            raise
        advice = "open the review again: the journal has your decisions"
        raise EvalSetError(str(error).replace("validate it again", advice)) from None


def _named(rows: list[int]) -> str:
    return ", ".join(f"{row:,}" for row in rows[:NAMED]) + (", …" if len(rows) > NAMED else "")
