"""EvalResult: the scores of rows, ready to be asked, compared, drawn and kept.

    scored rows ──parts──▶ metrics_table           the data's columns, then those of the run, then <metric>/score
                └─tallies─▶ summary_metrics        row_count, <metric>/mean, <metric>/std

The names of columns and keys are those that trajectories.md documents. Of a file only the tallies are in memory: its
table is read, and scored, again when it is asked for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from msgspec.structs import replace

from agent_eval_schema.evaluation.columns import score_column
from agent_eval_schema.evaluation.comparison import ScoreComparison, compare
from agent_eval_schema.evaluation.findings import Findings
from agent_eval_schema.evaluation.score_stats import RESAMPLES, ScoreStats
from agent_eval_schema.issues import EvalSetError, Severity
from agent_eval_schema.metrics.catalog import FAILURE, LATENCY
from agent_eval_schema.render.result.summary import ResultSummary, Scored, ScorePlot
from agent_eval_schema.render.shown import Saved
from agent_eval_schema.rules import RULES
from agent_eval_schema.validation.report import issues_frame

PERCENTILES = (0.5, 0.9, 0.95, 0.99)

WORST_ON_A_PAGE, WORST_INLINE = 20, 3
"""Rows to look at that are shown."""

ROWS_LISTED = 10_000
"""Rows that `to_json` lists; `to_parquet` writes them all."""


class EvalResult(Saved):
    """What `EvalTask.evaluate` and `score_trajectories` give.

    Attributes
    ----------
    summary_metrics
        row_count, then `<metric>/mean` and `/std` of each metric; of a run first those of latency_in_seconds and
        failure. Rows without a score are left out of both; std is the sample standard deviation (NaN for one row).
    metrics_table
        A line a row, in order: the data's columns, those of the run (response, latency_in_seconds, failure,
        predicted_trajectory, error), then `<metric>/score`, and `<metric>/explanation` of a judge.
    metrics
        The names of the metrics.
    options
        How trajectories were compared: `duplicates` and `empty`.
    reasons
        How many rows have no score, by (metric, reason); `unscored` is the same as a frame.
    """

    def __init__(
        self,
        *,
        metrics: tuple[str, ...],
        tallies: Mapping[str, ScoreStats],
        row_count: int,
        parts: Callable[[], Iterator[pd.DataFrame]],
        options: Mapping[str, str],
        unscored: Mapping[tuple[str, str], int],
        findings: Findings,
        name: str | None = None,
    ) -> None:
        self.metrics, self.row_count, self.options, self.name = metrics, row_count, dict(options), name
        self.tallies = dict(tallies)
        self.reasons = dict(unscored)
        self._parts, self._findings = parts, findings

    # numbers

    @property
    def summary_metrics(self) -> dict[str, float]:
        found: dict[str, float] = {"row_count": self.row_count}
        for name, tally in self.tallies.items():
            found[f"{name}/mean"], found[f"{name}/std"] = tally.mean, tally.std
        return found

    @cached_property
    def metrics_table(self) -> pd.DataFrame:
        parts = list(self._parts())
        return pd.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0] if parts else pd.DataFrame()

    def iter_parts(self) -> Iterator[pd.DataFrame]:
        """The table in pieces, whatever its size."""
        yield from [self.metrics_table] if "metrics_table" in self.__dict__ else self._parts()

    @property
    def lines(self) -> list[Scored]:
        """One line a metric: its mean, std, how many rows there are and how many of them have a score."""
        return [Scored(n, t.mean, t.std, self.row_count, t.scored) for n, t in self.tallies.items()]

    def percentiles(self, metric: str = LATENCY, shares: tuple[float, ...] = PERCENTILES) -> dict[str, float]:
        """`{"p50": …, "p90": …, "p95": …, "p99": …}` of a metric, by default of the latency in seconds."""
        return {f"p{share * 100:g}": self._stats(metric).percentile(share) for share in shares}

    def interval(
        self, metric: str, level: float = 0.95, *, resamples: int = RESAMPLES, seed: int = 0
    ) -> tuple[float, float]:
        """A confidence interval of a metric's mean, by bootstrap; the same seed gives the same one."""
        if not 0 < level < 1:
            raise EvalSetError(f"a level lies between 0 and 1, got {level}")
        return self._stats(metric).interval(level, resamples=resamples, seed=seed)

    def _stats(self, metric: str) -> ScoreStats:
        if metric not in self.tallies:
            raise EvalSetError(f"no metric {metric!r} in this result: it has {', '.join(self.tallies) or 'none'}")
        return self.tallies[metric]

    def by(self, column: str) -> pd.DataFrame:
        """The summary for each value of a column: a line a value, in the order in which they come, with row_count and
        `<metric>/mean` and `/std`. Raises EvalSetError if there is no such column."""
        groups: dict[str, dict[str, ScoreStats]] = {}
        for part in self.iter_parts():
            if column not in part.columns:
                raise EvalSetError(f"no column {column!r} to group by: there are {', '.join(map(str, part.columns))}")
            keys = part[column].map(str)
            for key, rows in part.groupby(keys.to_numpy(), sort=False):
                tallies = groups.setdefault(str(key), {name: ScoreStats() for name in self.tallies})
                for name, tally in tallies.items():
                    tally.add(rows[score_column(name)].to_numpy(np.float64, na_value=np.nan))
        lines = {
            key: {"row_count": max((t.rows for t in tallies.values()), default=0)}
            | {f"{n}/{what}": getattr(t, what) for n, t in tallies.items() for what in ("mean", "std")}
            for key, tallies in groups.items()
        }
        frame = pd.DataFrame.from_dict(lines, orient="index")
        frame.index.name = column
        return frame

    # what is wrong

    @cached_property
    def issues(self) -> pd.DataFrame:
        """What was found wrong with cells that scores are read from, a line each, as in a Report. Of very many only the
        first 10,000; `issue_counts` has all."""
        return issues_frame(self._findings.kept)

    @property
    def issue_counts(self) -> dict[str, int]:
        """How many findings of each code there are."""
        return dict(sorted(self._findings.counts.items()))

    def count(self, severity: Severity | str) -> int:
        """The number of findings of a severity."""
        return sum(n for code, n in self.issue_counts.items() if RULES[code].severity == severity)

    def below(self, bounds: Mapping[str, float]) -> dict[str, float]:
        """The means that are lower than their bound, or that there are not: {metric: mean}. For a gate in CI.

        Raises EvalSetError for a metric that the result does not have."""
        means = {metric: self._stats(metric).mean for metric in bounds}
        return {metric: mean for metric, mean in means.items() if not mean >= bounds[metric]}

    @property
    def unscored(self) -> pd.DataFrame:
        """Why rows have no score: metric, reason, rows."""
        lines = [(metric, reason, rows) for (metric, reason), rows in self.reasons.items()]
        return pd.DataFrame(lines, columns=["metric", "reason", "rows"])

    @property
    def reason_groups(self) -> list[tuple[str, int, list[str]]]:
        """(reason, rows, metrics): metrics that as many rows lack for the same reason stand together."""
        groups: dict[tuple[str, int], list[str]] = {}
        for (metric, reason), rows in self.reasons.items():
            groups.setdefault((reason, rows), []).append(metric)
        return [(reason, rows, metrics) for (reason, rows), metrics in groups.items()]

    # against another one

    def compare(self, other: EvalResult, *, key: str | None = None) -> ScoreComparison:
        """What became better and what worse in `other`, row by row, with a paired test.

        `key` is a column that says which row is which (such as request_id); by default rows are compared by their
        position. See comparison.py for the test. Raises EvalSetError if rows at one position ask different things, or
        the key does not tell rows apart.
        """
        metrics = [name for name in self.tallies if name in other.tallies]
        return compare(self.metrics_table, other.metrics_table, metrics, key)

    # pictures and files

    def summary(self, *, worst: int = 0) -> ResultSummary:
        """The result as plain values, without its table; with `worst`, at most so many of the rows that failed or have
        the lowest scores, the distributions of the scores, and the first issues."""
        stats = self.tallies
        summary = ResultSummary(
            name=self.name,
            row_count=self.row_count,
            metrics=self.metrics,
            options=self.options,
            numbers=self.summary_metrics,
            lines=self.lines,
            reasons=self.reasons,
            reason_groups=self.reason_groups,
            issue_counts=self.issue_counts,
            failed=sum(rows for value, rows in stats[FAILURE].counts if value) if FAILURE in stats else 0,
            latency=self.percentiles() if LATENCY in stats and stats[LATENCY].scored else {},
        )
        if not worst:
            return summary
        from agent_eval_schema.evaluation.worst import worst_rows

        return replace(
            summary,
            findings=[(i.row, i.path, i.message) for i in self.issues.head(20).itertuples()],
            plots=[_plot(name, one) for name, one in stats.items() if name != FAILURE and not one.is_binary],
            worst=worst_rows(self.iter_parts(), stats, worst) if self.row_count else [],
        )

    def to_text(self, width: int | None = None) -> str:
        """The table of metrics as text."""
        from agent_eval_schema.render.result.text import result_text

        return result_text(self.summary(), width)

    def to_json(self) -> str:
        """The summary and the table as JSON; NaN is null."""
        from agent_eval_schema.render.result.json import result_json

        rows: Iterator[dict[Any, Any]] = (row for part in self.iter_parts() for row in part.to_dict("records"))
        return result_json(self.summary(), islice(rows, ROWS_LISTED))

    def to_html(self) -> str:
        """A standalone page: scores, distributions, the worst rows with both trajectories side by side."""
        from agent_eval_schema.render.result.html import result_page

        return result_page(self.summary(worst=WORST_ON_A_PAGE))

    def _repr_html_(self) -> str:
        from agent_eval_schema.render.result.html import result_inline

        return result_inline(self.summary(worst=WORST_INLINE))

    def to_parquet(self, path: str | Path) -> None:
        """Write the table, a part at a time; cells with objects are JSON text."""
        from agent_eval_schema.evaluation.table_files import write_result_parquet

        write_result_parquet(str(path), self.iter_parts())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result by the ending of the path: a page (.html), JSON (.json), the table (.parquet, .csv, .jsonl),
        or text."""
        if Path(path).suffix.lower() in (".parquet", ".pq", ".csv", ".jsonl", ".ndjson"):
            from agent_eval_schema.evaluation.table_files import write_result_table

            write_result_table(os.fspath(path), self.iter_parts())
        else:
            super().save(path)

    def log_to_mlflow(self) -> str:
        """Log the summary as metrics, and page, JSON and table as artifacts, to the active mlflow run (a new one if
        there is none). Returns the run's id."""
        from agent_eval_schema.evaluation.mlflow_run import log_result

        params = {f"trajectory_{name}": value for name, value in self.options.items()}
        texts = {"result.html": self.to_html, "result.json": self.to_json}
        return log_result(self.summary_metrics, params, texts, self.to_parquet)

    def __repr__(self) -> str:
        return f"<EvalResult: {self.row_count:,} rows, {len(self.metrics)} metrics>"


def _plot(name: str, stats: ScoreStats) -> ScorePlot:
    bars = stats.tenths if name != LATENCY and stats.is_share else None
    return ScorePlot(name, stats.distribution, bars, {share: stats.percentile(share) for share in (0.5, 0.9, 0.99)})
