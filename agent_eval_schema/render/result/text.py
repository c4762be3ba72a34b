"""A result, and a comparison of two, as tables of text. Computes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from rich.console import Console

from agent_eval_schema.issues import Severity
from agent_eval_schema.metrics.catalog import FAILURE, LATENCY, METRICS
from agent_eval_schema.render.console import drawn, print_columns, print_verdict
from agent_eval_schema.render.numbers import aligned, number, seconds, share, signed
from agent_eval_schema.render.phrases import STYLES, NextCommand, command_on, plural
from agent_eval_schema.render.result.summary import MetricComparison, ResultSummary, Scored
from agent_eval_schema.rules import RULES
from agent_eval_schema.text.visible import visible

UNREADABLE = "cannot be read"
"""How the reason ends if a cell is to blame, not the lack of one."""


def result_text(result: ResultSummary, width: int | None = None, *, color: bool = False) -> str:
    """A line per metric, why rows have no score, then what the means cover and the next command."""

    def draw(console: Console) -> None:
        means, stds = written(result.lines, lambda line: line.mean), written(result.lines, lambda line: line.std)
        rows = [
            (line.metric, mean, std, f"{line.scored:,} of {line.rows:,}", share(line.scored, line.rows))
            for line, mean, std in zip(result.lines, means, stds, strict=True)
        ]
        if result.options.get("match") == "tool_name":
            console.print("Trajectories are compared by tool name; inputs are not compared.")
        print_columns(console, ("metric", "mean", "std", "rows scored", "coverage"), rows)
        for reason, count, metrics in result.reason_groups:
            of = "" if len(metrics) == len(result.metrics) else f" ({', '.join(map(visible, metrics))})"
            console.print(f"{plural(count, 'row')} without a score: {visible(reason)}{of}")
        for code, count in result.issue_counts.items():
            rule = RULES[code]
            console.print(f"{code} {rule.name}: {count:,} ×", style=STYLES[rule.severity])
        console.print()
        sign, style = ("✗", "red") if result.headline else ("✓", "green")
        print_verdict(console, f"{sign} {result_verdict(result)}", style, next_commands(result))

    return drawn(draw, color, width).lstrip("\n")


def result_verdict(result: ResultSummary) -> str:
    """What the means cover: `1 of 4 rows scored; 3 unreadable`."""
    if not result.headline:
        return f"{plural(result.row_count, 'row')} evaluated"
    return "; ".join([result.headline, *_causes(result)])


def _causes(result: ResultSummary) -> Iterator[str]:
    """The reasons for which rows have no score of any metric, grouped."""
    unreadable = [
        rows
        for reason, rows, metrics in result.reason_groups
        if reason.endswith(UNREADABLE) and len(metrics) == len(result.metrics)
    ]
    if unreadable:
        yield f"{sum(unreadable):,} unreadable"


def next_commands(result: ResultSummary) -> list[NextCommand]:
    """What shows why rows have no score: the issues of their cells, else the fields that they lack."""
    if any(RULES[code].severity is not Severity.INFO for code in result.issue_counts):
        command = command_on(result.name, "validate", instead="validate_eval_set(data)")
        return [NextCommand(command, "shows where the issues are and how to fix them")]
    if any(line.metric == FAILURE and line.mean > 0 for line in result.lines):
        return [NextCommand("result.metrics_table.query('failure == 1')", "shows the calls that failed")]
    command = command_on(result.name, "metrics", "--system", "vertex")
    if command and result.headline and result.row_count and _VERTEX.issuperset(result.metrics):
        return [NextCommand(command, "shows which field would enable the most rows")]
    return []


_VERTEX = {metric.name for metric in METRICS if metric.system == "vertex"}


def written(lines: Iterable[Scored], value: Callable[[Scored], float]) -> list[str]:
    """A number of each metric: scores with the same decimals, seconds with their unit."""
    lines = list(lines)
    scores = iter(aligned(value(line) for line in lines if line.metric != LATENCY))
    return [seconds(value(line)) if line.metric == LATENCY else next(scores) for line in lines]


def written_alike(metric: str, values: Iterable[float]) -> list[str]:
    """Numbers of one metric: scores with the same decimals, seconds with their unit."""
    return list(map(seconds, values)) if metric == LATENCY else aligned(values)


def comparison_text(
    lines: Iterable[MetricComparison], only_old: int, only_new: int, width: int | None = None, verdict: str = ""
) -> str:
    """A line per metric: before, after, and whether the difference can be chance; the number of rows in only one of
    the two results; then the verdict."""

    def draw(console: Console) -> None:
        rows = []
        for line in lines:
            means = written_alike(line.metric, [line.old, line.new])
            counts = (f"{count:,}" for count in (line.higher, line.lower, line.rows))
            rows.append((line.metric, *means, signed(line.difference), *counts, number(line.p_value)))
        print_columns(console, ("metric", "before", "after", "difference", "higher", "lower", "rows", "p"), rows)
        for count, which in ((only_old, "before"), (only_new, "after")):
            if count:
                console.print(f"{plural(count, 'row')} only {which}")
        if verdict:
            console.print()
            print_verdict(console, verdict, "")

    return drawn(draw, False, width).lstrip("\n")
