"""What formats, rules and metrics have to do so that every command treats them as its own: a check per promise.

`pytest --agent-eval-schema-conformance` runs them on what other packages declare (plugin.py).
"""

from __future__ import annotations

import json
import math
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

import pandas as pd
import pyarrow as pa

from agent_eval_schema.api import validate_eval_set, write_eval_set
from agent_eval_schema.conversion.convert import convert_eval_set
from agent_eval_schema.evaluation.result import EvalResult
from agent_eval_schema.evaluation.task import EvalTask
from agent_eval_schema.evaluation.task_metrics import MetricName
from agent_eval_schema.formats.detection import detect_among
from agent_eval_schema.formats.format import Format
from agent_eval_schema.formats.names import FormatName, TargetFormat
from agent_eval_schema.formats.overview import FormatOverview, overview
from agent_eval_schema.formats.registry import FORMATS, find_format, formats_of_packages
from agent_eval_schema.issues import Issue
from agent_eval_schema.metrics.catalog import SYSTEMS
from agent_eval_schema.metrics.definitions import RowMetric, metrics_of_packages
from agent_eval_schema.rule import RowRule
from agent_eval_schema.rules import rules_of_packages
from agent_eval_schema.rules.reading import RULE_NOT_RUN
from agent_eval_schema.runtime.extensions import Extension
from agent_eval_schema.runtime.tables import packaged
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.validation.report import Report

CANARY = "canary-7f3a"
"""A text that no report may quote where values are hidden."""

CALLS_PER_ROW = 1_000
"""Calls of Python functions per row that a validation may take, twice what the slowest format of this package takes."""

_SAMPLES = packaged(__package__, "samples.json", dict[str, list[Any]])

ROWS: list[dict[str, Any]] = _SAMPLES["rows"]
"""Canonical rows with a value in every column that a person writes."""

FEW = [
    [{k: v for k, v in row.items() if k in ("request_id", "request", "response", name)} for row in ROWS]
    for name in ROWS[0]
]
"""The same, each time with one further column only: ground truth of one kind, as platforms require."""

DAMAGE = _SAMPLES["damage"]
"""Values that a cell may hold in place of what a format expects."""


def _declaration(form: Format) -> None:
    """Name, texts, page and system."""
    assert re.fullmatch(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*", form.name), f"name: expected lower case, got {form.name!r}"
    for name in ("title", "summary", "page"):
        assert getattr(form, name), f"{name}: expected a text"
    assert form.system in SYSTEMS, f"system: expected one of {', '.join(SYSTEMS)}; got {form.system!r}"
    assert form.signs.sure, "signs: expected a group of columns by which a table is known"


def _detection(form: Format) -> None:
    """Its own rows are detected, and those of the formats of this package as they are without it."""
    for name in (other.name for other in FORMATS):
        example = next(entry.example for entry in overview() if entry.name == name)
        if isinstance(example, dict):
            names, signs = list(example), {other.name: other.signs for other in FORMATS}
            before, after = detect_among(signs, names), detect_among({**signs, form.name: form.signs}, names)
            assert after.format == before.format, f"rows of {name} are taken for {after.format}: narrow the signs"
    own = FormatOverview.of(form).example
    format_name = validate_eval_set([own]).format if isinstance(own, dict) else form.name
    assert format_name == form.name, f"expected {form.name}, its own rows are taken for {format_name}: {own}"


def _round_trip(form: Format) -> None:
    """What a conversion writes is read back; each value that is not is a loss."""
    for ours in FEW if form.writer is not None else ():
        there = convert_eval_set(ours, cast(TargetFormat, form.name), format="databricks")
        losses = set(zip(there.losses["row"], there.losses["column"], strict=True))
        back = list(validate_eval_set(there.data, format=cast(FormatName, form.name)).iter_rows())
        for place, row in enumerate(ours):
            for name in row.keys() & set(COLUMNS):
                if (place, name) not in losses and (place, None) not in losses:
                    assert back[place][name] == row[name], f"row {place}, {name}: a loss that is not reported"


def _validity(form: Format) -> None:
    """What a conversion writes has no error."""
    for rows in _written(form):
        report = validate_eval_set(rows, format=cast(FormatName, form.name), outputs="generated")
        assert report.ok, str(report)


def _privacy(form: Format) -> None:
    """With `show_values=False` a report quotes no cell."""
    values = [CANARY, [CANARY], {"key": CANARY}, [{"key": CANARY}], f"[{CANARY}", {"messages": CANARY}]
    report = _validated(form, list(_damaged(form, values)), show_values=False)
    for text in (report.to_json(), report.to_text(), report.to_html()):
        at = text.find(CANARY)
        assert at < 0, f"a cell is quoted: …{text[max(at - 80, 0) : at + 80]}…"


def _damage(form: Format) -> None:
    """No cell, however damaged, raises: it has an issue, or the format reads it."""
    _validated(form, list(_damaged(form, DAMAGE)))


def _containers(form: Format) -> None:
    """The same rows have the same issues in a list, a frame, a table and a file."""
    for rows in _written(form):
        texts = [{k: v if v is None or isinstance(v, str) else json.dumps(v) for k, v in row.items()} for row in rows]
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "rows.jsonl")
            write_eval_set(rows, path)
            kinds: list[Any] = [rows, pd.DataFrame(rows), pa.Table.from_pylist(texts), path]
            one, *others = ([r.row_count, r.valid_count] for r in (_validated(form, kind) for kind in kinds))
        assert all(other == one for other in others), f"rows and valid rows differ: {[one, *others]}"


def _cost(form: Format) -> None:
    """A row takes a bounded number of calls."""
    for rows in _written(form)[:1]:
        many, calls = rows * 200, 0

        def count(_frame: Any, event: str, _argument: Any) -> None:
            nonlocal calls
            calls += event == "call"

        _validated(form, many)
        sys.setprofile(count)
        try:
            _validated(form, many)
        finally:
            sys.setprofile(None)
        assert calls <= CALLS_PER_ROW * len(many), f"{calls / len(many):,.0f} calls per row, expected {CALLS_PER_ROW:,}"


CHECKS: dict[str, Callable[[Format], None]] = {
    "declaration": _declaration,
    "detection": _detection,
    "round trip": _round_trip,
    "validity": _validity,
    "privacy": _privacy,
    "damage": _damage,
    "containers": _containers,
    "cost": _cost,
}


# --- rules
def _rule_declaration(row_rule: RowRule) -> None:
    """Texts, examples, and columns that exist."""
    for name in ("summary", "why", "hint", "bad", "good"):
        assert getattr(row_rule.rule, name), f"{name}: expected a text, or rows as an example"
    unknown = set(row_rule.columns) - set(COLUMNS)
    assert not unknown, f"columns: expected columns among {', '.join(COLUMNS)}; got {', '.join(sorted(unknown))}"


def _rule_examples(row_rule: RowRule) -> None:
    """The bad rows have the issue, and the good ones do not."""
    bad, good = ({i.code for i in _issues_of(rows)} for rows in (row_rule.rule.bad, row_rule.rule.good))
    assert row_rule.rule.code in bad, f"the bad rows have no {row_rule.rule.code}: {sorted(bad)}"
    assert row_rule.rule.code not in good, f"the good rows have {row_rule.rule.code}"


def _rule_damage(row_rule: RowRule) -> None:
    """No value of a row makes it raise."""
    rows = [{**row, name: value} for row in ROWS for name in row_rule.columns for value in (*DAMAGE, None)]
    issues = [issue.message for issue in _issues_of([*ROWS, *rows]) if issue.code == RULE_NOT_RUN.code]
    mine = [message for message in issues if f"`{row_rule.rule.code}`" in message]
    assert not mine, mine[0]


def _issues_of(rows: Iterable[dict[str, Any]]) -> Iterable[Issue]:
    return validate_eval_set(list(rows), format="databricks").iter_issues()


RULE_CHECKS: dict[str, Callable[[RowRule], None]] = {
    "declaration": _rule_declaration,
    "examples": _rule_examples,
    "damage": _rule_damage,
}


# --- metrics
def _metric_range(metric: RowMetric) -> None:
    """Each score is on the scale."""
    low, high = metric.info.ends or (-math.inf, math.inf)
    scores = _scores(metric, [metric.better, metric.worse, *_ROWS_OF_METRICS])
    outside = [score for score in scores if not math.isnan(score) and not low <= score <= high]
    assert not outside, f"expected scores from {low:g} to {high:g}, got {outside[0]:g}"


def _metric_direction(metric: RowMetric) -> None:
    """The better row has the better score."""
    better, worse = _scores(metric, [metric.better, metric.worse])
    assert metric.info.direction != "unknown", "direction: expected higher, lower or none; got unknown"
    above = {"higher": better > worse, "lower": better < worse, "none": not math.isnan(better + worse)}
    assert above[metric.info.direction], f"{metric.info.direction}: got {better:g} for `better`, {worse:g} for `worse`"


def _metric_exceptions(metric: RowMetric) -> None:
    """No row makes it raise."""
    reasons = _evaluated(metric, _ROWS_OF_METRICS).unscored["reason"].tolist()
    raised = [reason for reason in reasons if "raised an exception" in reason]
    assert not raised, raised[0]


def _scores(metric: RowMetric, rows: Sequence[Mapping[str, Any]]) -> list[float]:
    return [float(score) for score in _evaluated(metric, rows).metrics_table[f"{metric.name}/score"]]


def _evaluated(metric: RowMetric, rows: Sequence[Mapping[str, Any]]) -> EvalResult:
    return EvalTask([dict(row) for row in rows], [cast(MetricName, metric.name)]).evaluate()


_NAMES_OF_METRICS = {"request": "prompt", "expected_response": "reference"}
_ROWS_OF_METRICS = [
    {_NAMES_OF_METRICS.get(k, k): v for k, v in {**row, **damage}.items()}
    for row in ROWS
    for damage in ({}, {"response": ""}, {"response": " "}, {"response": "0"}, {"expected_response": ""})
]
"""Rows as an EvalTask takes them, some with little in them."""

METRIC_CHECKS: dict[str, Callable[[RowMetric], None]] = {
    "range": _metric_range,
    "direction": _metric_direction,
    "exceptions": _metric_exceptions,
}


def checks() -> Iterator[tuple[str, Callable[[], None]]]:
    """Each check of what other packages declare, with its name."""
    groups: tuple[tuple[Mapping[str, Extension[Any]], Mapping[str, Callable[[Any], None]]], ...] = (
        (formats_of_packages(), CHECKS),
        (rules_of_packages(), RULE_CHECKS),
        (metrics_of_packages(), METRIC_CHECKS),
    )
    for extensions, promises in groups:
        for name, other in extensions.items():
            yield from ((f"{name}::{title}", partial(check, other.value)) for title, check in promises.items())


@cache
def _written_rows(name: str) -> list[list[dict[str, Any]]]:
    """What a conversion to a format writes; of a format that is not written its example."""
    form = find_format(name)
    if form.writer is None:
        return [[form.example]] if isinstance(form.example, dict) else []
    tables = [convert_eval_set(rows, cast(TargetFormat, name), format="databricks").data for rows in FEW]
    rows: list[Any] = [data.to_dict("records") if isinstance(data, pd.DataFrame) else data for data in tables]
    return [[one] if isinstance(one, dict) else list(one) for one in rows]


def _written(form: Format) -> list[list[dict[str, Any]]]:
    return _written_rows(form.name)


def _damaged(form: Format, values: Any) -> Iterator[dict[str, Any]]:
    """Rows of the format with one value in place of another, on the first level and below."""
    for rows in _written(form):
        for column, cell in rows[0].items():
            for value in values:
                yield {**rows[0], column: value}
                if isinstance(cell, list):
                    yield {**rows[0], column: [value, *cell]}
                if isinstance(cell, dict):
                    yield {**rows[0], column: dict.fromkeys(cell, value)}


def _validated(form: Format, rows: Any, **options: Any) -> Report:
    return validate_eval_set(rows, format=cast(FormatName, form.name), outputs="generated", **options)
