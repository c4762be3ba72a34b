"""The Report: what a check found, ready to be asked.

What would be large on a file (rows, valid, invalid, a long list of issues) is read from it again when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from msgspec.structs import astuple

from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.io.arrow import fitted, to_columns
from agent_eval_schema.io.pandas import to_pandas
from agent_eval_schema.io.source import Source, schema_of
from agent_eval_schema.issues import EvalSetError, Issue, Severity
from agent_eval_schema.metrics.catalog import Metric
from agent_eval_schema.metrics.support import (
    Support,
    find_metric,
    metrics_of,
    summarise,
    support_of,
    supports,
    why_supported,
)
from agent_eval_schema.render.figures import Distribution, Presence, presence
from agent_eval_schema.render.report.summary import Excerpt, Location, ReportSummary
from agent_eval_schema.render.shown import Saved
from agent_eval_schema.rules import RULES
from agent_eval_schema.schema import COLUMNS, ROW_SCHEMA
from agent_eval_schema.text.visible import visible
from agent_eval_schema.validation.excerpts import excerpts
from agent_eval_schema.validation.plan import Plan
from agent_eval_schema.validation.report_builder import ReportBuilder
from agent_eval_schema.validation.row_files import write_invalid, write_normalized
from agent_eval_schema.validation.second_reading import batches_beside_checked, every_issue, normalized_batches
from agent_eval_schema.validation.unreadable import Origin, unreadable


class Report(Saved):
    """What `validate_eval_set` found.

    Attributes: `ok` (no error anywhere), `format`, `outputs`, `row_count`, `valid_count`, `invalid_count`, `counts`
    ({code: n}, exact), `derived` ({field: rows that took it from their trace}), `issues`, `rows`, `valid`, `invalid`,
    `metric_support`, `metrics`, `seconds` (that the check took). A row is invalid if it has an issue of severity error.
    """

    def __init__(self, source: Source, plan: Plan, builder: ReportBuilder, seconds: float = 0.0) -> None:
        builder.finish()
        self._source, self._plan, self._builder = source, plan, builder
        self.seconds = seconds

    # counts

    @property
    def codes(self) -> list[str]:
        """The codes of the rules that were applied."""
        return sorted(self._plan.codes)

    @property
    def rules_off(self) -> int:
        """How many rules were switched off by select and ignore."""
        return len(self.codes_off)

    @property
    def codes_off(self) -> list[str]:
        """The codes of the rules that were switched off."""
        return [code for code in RULES if code not in self._plan.codes]

    @property
    def format(self) -> str:
        return self._plan.format

    @property
    def format_reason(self) -> str:
        """Why the data was taken for this format."""
        return self._plan.reason

    @property
    def outputs(self) -> str:
        return self._plan.outputs

    @property
    def values(self) -> bool:
        """Whether messages may quote cells. Without, issues have no request_id either: a row is known by its number."""
        return self._plan.values

    @property
    def row_count(self) -> int:
        return self._builder.row_count

    @property
    def valid_count(self) -> int:
        return int(self._builder.valid.sum())

    @property
    def invalid_count(self) -> int:
        return self.row_count - self.valid_count

    @property
    def counts(self) -> dict[str, int]:
        return dict(sorted((c, n) for c, n in self._builder.counts.items() if n))

    @property
    def derived(self) -> dict[str, int]:
        return {c: self._builder.derived[c] for c in COLUMNS if self._builder.derived[c]}

    def count(self, severity: Severity | str) -> int:
        """The number of issues of a severity."""
        return sum(n for code, n in self.counts.items() if RULES[code].severity == severity)

    @property
    def ok(self) -> bool:
        return self.count(Severity.ERROR) == 0

    @property
    def examples(self) -> dict[str, list[Issue]]:
        """At most 20 issues of each code."""
        return dict(sorted(self._builder.examples.items()))

    @cached_property
    def excerpts(self) -> dict[Location, Excerpt]:
        """The cells around what the examples are about, by (row, column, path); of a file they are read again."""
        if not self.values:
            return {}
        shown = [issue for issues in self._builder.examples.values() for issue in issues]
        return excerpts(shown, self._source.batches(), find_format(self.format).read)

    @property
    def presence(self) -> list[Presence]:
        """Where in the data set which field is there, valid rows first; see render/figures.py."""
        return presence(self._builder.masks, self._builder.valid)

    @property
    def distributions(self) -> dict[str, Distribution]:
        """The distributions of latency, tokens and tool calls, as far as there are any (and values may be shown)."""
        if not self.values:
            return {}
        return {name: d for name, d in self._builder.distributions.items() if d.count}

    @property
    def name(self) -> str | None:
        """The file's path, if the data was a file."""
        return self._source.name

    def lines(self, rows: Iterable[int]) -> dict[int, int]:
        """The line of the file, counted from 1, on which each of these rows begins; nothing for a form without lines
        (a JSON array, Parquet, a packed file, data in memory)."""
        return self._source.lines(rows) if self._source.lines else {}

    # issues

    @cached_property
    def issues(self) -> pd.DataFrame:
        """All issues, a line each, in the order of the rows: row, request_id, column, path, code, name, severity,
        message, hint. `row` is the 0-based position in the input, or NA for the data set as a whole."""
        return issues_frame(list(self.iter_issues()))

    def iter_issues(self) -> Iterator[Issue]:
        """The issues one by one, in the order of the rows, the data set's own last; streams a file if they are many."""
        yield from self.listed_issues() if self._builder.holds_all_issues else every_issue(self._source, self._plan)

    def listed_issues(self) -> list[Issue]:
        """The issues that are in memory, in the order of the rows: all but for a file with very many."""
        return self._builder.take_issues()

    # rows

    @property
    def valid_mask(self) -> np.ndarray[Any, Any]:
        """For each row whether it is valid."""
        return self._builder.valid.copy()

    def iter_batches(self) -> Iterator[pa.RecordBatch]:
        """The normalised rows as Arrow batches, streamed."""
        return normalized_batches(self._source, self._plan)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the normalised rows: the canonical columns, then those that are carried along."""
        return pa.schema([*ROW_SCHEMA, *(f for f in self.source_schema if f.name not in COLUMNS)])

    @cached_property
    def source_schema(self) -> pa.Schema:
        """The columns of the input as its format reads them."""
        return schema_of(self._source.kind, map(find_format(self.format).read, self._source.batches()))

    def source_batches(self) -> Iterator[pa.RecordBatch]:
        """The batches of the input, streamed."""
        return self._source.batches()

    def checked_batches(self) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        """The batches of the input beside the checked ones with normalised columns, streamed."""
        return batches_beside_checked(self._source, self._plan)

    def to_arrow(self) -> pa.Table:
        """The normalised rows as one Arrow table."""
        schema = self.schema
        return pa.concat_tables([schema.empty_table(), *(fitted(b, schema) for b in self.iter_batches())])

    @property
    def rows(self) -> pd.DataFrame:
        """The normalised rows, all of them, in order: objects where the schema has objects, None where absent."""
        return to_pandas(self.iter_batches(), self._source)

    def iter_rows(self) -> Iterator[dict[str, Any]]:
        """The normalised rows one by one, whatever the file's size."""
        for batch in self.iter_batches():
            _, columns = to_columns([batch])
            for row in zip(*columns.values(), strict=True):
                yield dict(zip(columns, row, strict=True))

    @property
    def valid(self) -> Any:
        """The valid rows, in the form and with the cells in which they came (for a file a frame, with the rows'
        positions as its index; a DataFrame of Spark for one)."""
        return self._source.take(self._builder.valid)

    @property
    def invalid(self) -> Any:
        """The invalid rows, in the form and with the cells in which they came (for a file a frame, with the rows'
        positions as its index)."""
        return self._source.take(~self._builder.valid)

    def unreadable(self) -> dict[int, str]:
        """What the normalised rows cannot hold, by row: JSON text of an object with the cells that an error kept from
        being read, as they came and under the names of their columns, or of the line that is no row."""
        if self.ok:
            return {}
        pairs = zip(self._source.batches(), self.iter_batches(), strict=True)
        given = self.invalid if self._source.kind == "list" else ()
        no_rows = dict(zip(np.flatnonzero(~self._builder.valid).tolist(), given, strict=False))
        origin = Origin(find_format(self.format).origins, self._source.original, no_rows)
        return dict(unreadable(self.iter_issues(), pairs, origin))

    # metrics

    @property
    def metric_support(self) -> pd.DataFrame:
        """A bool frame, row × metric, of all systems."""
        return pd.DataFrame(
            {m.name: supports(m, self._builder.masks, self._builder.valid, self.outputs) for m in metrics_of("all")}
        )

    def support(self, system: str = "all") -> list[Support]:
        """One line a metric: supported, total, what would unlock most of the rest."""
        return summarise(self._builder.valid_masks, self.row_count, self.outputs, system)

    def support_of(self, metric: Metric) -> Support:
        """How many rows support a metric that need not be of the catalogue, and what would unlock most of the rest."""
        return support_of(metric, self._builder.valid_masks, self.row_count, self.outputs)

    @property
    def metrics(self) -> pd.DataFrame:
        """One line a metric: system, metric, supported, total, unlock, unlock_rows, condition, judged."""
        return pd.DataFrame(map(astuple, self.support()), columns=list(Support.__struct_fields__))

    def why(self, row: int, metric: str) -> str:
        """Why a row supports a metric, or what it lacks. `row` is the 0-based position; `metric` a name of the
        catalogue, or a part of one between slashes (`"correctness"`)."""
        found = find_metric(metric)
        if not 0 <= row < self.row_count:
            raise IndexError(f"row {row} is not one of 0 to {self.row_count - 1}")
        if not self._builder.valid[row]:
            return visible(f"row {row} does not support {found.name}: it is invalid ({self._errors_of(row)})")
        return f"row {row} {why_supported(found, int(self._builder.masks[row]), self.outputs)}"

    def _errors_of(self, row: int) -> str:
        found = [i for i in self.iter_issues() if i.row == row and i.severity is Severity.ERROR]
        return "; ".join(f"{i.code} {i.message}" for i in found)

    # views

    def raise_if_invalid(self) -> Report:
        """The report itself, or InvalidEvalSet if it is not ok."""
        if not self.ok:
            raise InvalidEvalSet(self)
        return self

    @property
    def system(self) -> str:
        """The system whose metrics the users of this format ask about first."""
        return find_format(self.format).system

    @property
    def has_metrics(self) -> bool:
        """Whether the rows are evaluation rows, on which metrics can be computed; those of a CES file are not."""
        return find_format(self.format).is_rows

    @cached_property
    def summary(self) -> ReportSummary:
        """The numbers and the examples, ready to be drawn."""
        return ReportSummary(
            name=self.name,
            format=self.format,
            format_reason=self.format_reason,
            system=self.system,
            has_metrics=self.has_metrics,
            outputs=self.outputs,
            values=self.values,
            codes=self.codes,
            codes_off=self.codes_off,
            row_count=self.row_count,
            valid_count=self.valid_count,
            counts=self.counts,
            examples=self.examples,
            derived=self.derived,
            coverage=self.support(),
            presence=self.presence,
            distributions=self.distributions,
            seconds=self.seconds,
        )

    def to_text(self, *, color: bool = False, width: int | None = None, system: str | None = None) -> str:
        """The report as it is printed in a terminal."""
        from agent_eval_schema.render.report.text import report_text

        return report_text(self.summary, color=color, width=width, system=system or self.system)

    def to_json(self) -> str:
        """The report as versioned JSON (see render/report/json.py)."""
        from agent_eval_schema.render.report.json import report_json

        return report_json(self.summary, self.listed_issues())

    def to_html(self) -> str:
        """The report as a standalone HTML page: no script, nothing loaded, every cell's text escaped."""
        from agent_eval_schema.render.report.html import report_page

        return report_page(self.summary, self.excerpts)

    def _repr_html_(self) -> str:
        from agent_eval_schema.render.report.html import report_inline

        return report_inline(self.summary, self.excerpts)

    def write_normalized(self, path: str | Path, *, carry: bool = True) -> int:
        """Stream the normalised rows into a JSONL or Parquet file; returns their number. Without `carry` only the
        canonical columns are written."""
        schema = self.schema if carry else ROW_SCHEMA
        return write_normalized(path, self.iter_batches(), schema, values=self.values)

    def write_invalid(self, path: str | Path) -> int:
        """Stream the invalid rows into a JSONL or Parquet file, with their original cells and a column `_issues`."""
        return write_invalid(path, self._source, self._plan, self._builder.valid)

    def __repr__(self) -> str:
        return (
            f"<Report: {self.valid_count:,} of {self.row_count:,} rows valid, {self.count('error'):,} errors, "
            f"{self.count('warning'):,} warnings>"
        )


def issues_frame(found: list[Issue]) -> pd.DataFrame:
    """Issues as a frame, a line each."""
    columns = Issue.__struct_fields__
    frame = pd.DataFrame({c: pd.Series([getattr(i, c) for i in found], dtype="object") for c in columns})
    frame["row"] = pd.array([i.row for i in found], dtype="Int64")
    frame["severity"] = pd.Series([str(i.severity) for i in found], dtype="object")
    return frame


class InvalidEvalSet(EvalSetError):
    """Raised on request when rows are invalid; `report` says which and why."""

    def __init__(self, report: Report) -> None:
        self.report = report
        super().__init__(report.to_text())
