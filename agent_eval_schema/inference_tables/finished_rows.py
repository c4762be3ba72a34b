"""The finished rows of a build in this process: counted while they pass, the invalid ones excluded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from agent_eval_schema.cells.arrow import filtered
from agent_eval_schema.inference_tables.build_summary import Counts, existing_counts
from agent_eval_schema.inference_tables.existing import rows_schema
from agent_eval_schema.inference_tables.finish.excluded import invalid_rows
from agent_eval_schema.inference_tables.finish.finish import (
    changed_labels,
    issue_counts,
    label_counts,
    new_run,
    out_rows,
    redacted_counts,
    valid_rows,
)
from agent_eval_schema.inference_tables.read.plan import BuildPlan
from agent_eval_schema.inference_tables.work_folder import EXISTING_UNIT, PartKey, WorkFolder


class FinishedRows:
    """Counts the finished rows while they pass, and sets the invalid ones aside."""

    def __init__(self, plan: BuildPlan, work: WorkFolder) -> None:
        self.plan, self.work = plan, work
        self.schema = rows_schema(work)
        self.updates: list[pa.RecordBatch] = []
        self.run = new_run(plan)
        self._issues: Counter[str] = Counter()
        self._labels: Counter[str] = Counter()
        self._redacted: Counter[str] = Counter()
        self._invalid = self._rows = 0

    def staying(
        self, finished: Iterable[tuple[PartKey, pa.RecordBatch]], seen: Callable[[int], None]
    ) -> Iterator[pa.RecordBatch]:
        """The rows that stay, in the columns of `schema`."""
        for part, batch in finished:
            if part.unit == EXISTING_UNIT:
                self.run.add(batch)
                self.updates.append(changed_labels(batch))
                seen(batch.num_rows)
                yield out_rows(batch, self.schema)
                continue
            valid = valid_rows(batch, self.plan)
            if not valid.all():
                self._excluded(part, filtered(batch, ~valid))
                batch = filtered(batch, valid)
            self._add(batch)
            seen(len(valid))
            if batch.num_rows:
                yield out_rows(batch, self.schema)

    def _add(self, batch: pa.RecordBatch) -> None:
        self._rows += batch.num_rows
        self.run.add(batch)
        self._labels += label_counts(batch)
        self._redacted += redacted_counts(batch)

    def _excluded(self, part: PartKey, batch: pa.RecordBatch) -> None:
        self._invalid += batch.num_rows
        self._issues += issue_counts(batch)
        self.work.commit_invalid(part, invalid_rows(batch))

    def counts(self, logged: int, decided: dict[str, Any]) -> Counts:
        """What there is to count, when all rows have passed; `decided` are the small results of the decisions."""
        self.run.builder.finish()
        reasons = {reason: rows for reason, rows in decided["reasons"] if reason is not None}
        records = sum(rows for _, rows in decided["reasons"])
        if self._invalid:
            reasons["invalid"] = self._invalid
        assert records == self._rows + sum(reasons.values()), "a row was lost"
        return Counts(
            logged=logged,
            records=records,
            reasons=reasons,
            feedback=dict(decided["feedback"]),
            strata=decided["strata"],
            labels=self._labels,
            redacted=self._redacted,
            codes=self._issues + Counter(self.run.builder.counts),
            traces_joined=decided["joined"],
            existing=existing_counts(self.work.existing_rows(), self.updates) if self.plan.extends else {},
        )
