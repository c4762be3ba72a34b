"""What a comparison found, ready to be drawn: every number is exact, every list of examples holds at most 20.

    DiffSummary ─ rows added, removed, made invalid, made valid  (DiffPlace)
                ├ fields that changed                                (FieldChange ─ CellChange ─ Edit)
                ├ issues gained and lost, a line per code            (IssueChange)
                └ metric support gained and lost, a line per metric  (MetricChange)

Renderers draw a DiffSummary and compute nothing. As JSON it is what `Diff.to_json` writes.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from agent_eval_schema.issues import Issue, Severity
from agent_eval_schema.text.edits import Edit

EXAMPLES_KEPT = 20
"""Examples of a kind in a DiffSummary; counts are always exact, and the frames of a Diff are complete."""


class DatasetSummary(Struct, frozen=True):
    """One side as its report has it. `source` is the file's path."""

    source: str | None
    format: str
    format_reason: str
    outputs: str
    rows: int
    valid: int
    invalid: int


class RowCounts(Struct, frozen=True):
    """How many rows: old = matched + removed, new = matched + added, matched = changed + unchanged.

    `moved` is how few of the matched rows must be moved to get from one order to the other. `became_invalid`,
    `became_valid`, `gained_a_metric` and `lost_a_metric` speak of matched rows.
    """

    old: int
    new: int
    matched: int
    added: int
    removed: int
    changed: int
    unchanged: int
    moved: int
    became_invalid: int
    became_valid: int
    gained_a_metric: int
    lost_a_metric: int


class DiffPlace(Struct, frozen=True):
    """A row: its 0-based positions (None on the side where it is not), its id, an excerpt of what it asks, and the
    codes for which it is invalid now (or was, if it was removed)."""

    old_row: int | None
    new_row: int | None
    request_id: str | None
    asks: str
    errors: tuple[str, ...]

    @property
    def key(self) -> tuple[int | None, int | None]:
        """Both positions."""
        return self.old_row, self.new_row

    @property
    def rows(self) -> str:
        """The position, or both if they differ: `3`, `3 → 5`."""
        return " → ".join(f"{row:,}" for row in dict.fromkeys(self.key) if row is not None)


class CellChange(Struct, frozen=True):
    """A cell whose value differs: the first edits, and the number of further ones."""

    row: DiffPlace
    edits: tuple[Edit, ...]
    more_edits: int

    def counted_edits(self) -> Iterator[tuple[Edit, int]]:
        """Each edit, the last one with the number of those that are not in `edits`."""
        for i, edit in enumerate(self.edits, 1):
            yield edit, self.more_edits if i == len(self.edits) else 0


class FieldChange(Struct, frozen=True):
    """A field, and the number of matched rows whose value differs."""

    field: str
    rows: int
    examples: tuple[CellChange, ...] = ()


class IssueChange(Struct, frozen=True):
    """A code and the rows that have it: old - lost - on_removed + gained + on_added = new.

    `gained` and `lost` count matched rows. A finding on the dataset as a whole counts like a row.
    """

    code: str
    name: str
    severity: Severity
    old: int
    new: int
    gained: int
    lost: int
    on_added: int
    on_removed: int
    gained_examples: tuple[Issue, ...] = ()
    lost_examples: tuple[Issue, ...] = ()


class MetricRow(Struct, frozen=True):
    """A row that supports a metric now or no longer, and why."""

    row: DiffPlace
    why: str


class MetricChange(Struct, frozen=True):
    """A metric and the rows that support it: old - lost - on_removed + gained + on_added = new.

    `gained` and `lost` count matched rows; `old_rows` and `new_rows` are all rows of each side.
    """

    system: str
    metric: str
    old: int
    old_rows: int
    new: int
    new_rows: int
    gained: int
    lost: int
    on_added: int
    on_removed: int
    gained_examples: tuple[MetricRow, ...] = ()
    lost_examples: tuple[MetricRow, ...] = ()

    @property
    def same(self) -> bool:
        """Whether no row supports it that did not, and the other way round."""
        return not (self.gained or self.lost or self.on_added or self.on_removed)


class DiffSummary(Struct, frozen=True):
    """A comparison of two datasets, in the order in which a reader would ask.

    `same`: nothing differs but, perhaps, the order of the rows. `losses`: a row is gone, invalid now, or lost a metric.
    `columns_added` and `columns_dropped` name those that hold something on one side only. `metrics` has all metrics of
    the catalog, the others only what differs.
    """

    same: bool
    losses: bool
    old: DatasetSummary
    new: DatasetSummary
    rows: RowCounts
    columns_added: tuple[str, ...]
    columns_dropped: tuple[str, ...]
    added: tuple[DiffPlace, ...]
    removed: tuple[DiffPlace, ...]
    became_invalid: tuple[DiffPlace, ...]
    became_valid: tuple[DiffPlace, ...]
    fields: tuple[FieldChange, ...]
    issues: tuple[IssueChange, ...]
    metrics: tuple[MetricChange, ...]
