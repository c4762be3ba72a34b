"""A result in the files of every-eval-ever (https://github.com/evaleval/every_eval_ever), version 0.3.0 of its schemas.

    data/<benchmark>/<developer>/<model>/<uuid4>.json            the aggregate record: a result per metric
    data/<benchmark>/<developer>/<model>/<uuid4>_samples.jsonl   a line per row and metric: its score

A metric needs a known direction there, and a score whether the answer is correct: whether it is the best score of the
scale. Scores of other metrics are not instances. A file that we wrote has all cells and reasons beside the scores, in
`metadata` of the first line of a row, and those of rows without a line in the aggregate: nothing is lost to us.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import msgspec
import pandas as pd
from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.errors import EvalSetError, UnwrittenScoreWarning, reading_file, warn_caller
from agent_eval_schema.evaluation.saved_result import RECORD, ResultRecord
from agent_eval_schema.evaluation.table import REQUEST_ID, ScoreStats, cell_text, score_column
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.io.atomic import replacing, require_local_place
from agent_eval_schema.io.locks import locked
from agent_eval_schema.io.places import UUID, record_files
from agent_eval_schema.io.records import is_absent
from agent_eval_schema.io.source import Source
from agent_eval_schema.io.streams import creating
from agent_eval_schema.metrics.catalog import LATENCY
from agent_eval_schema.metrics.intervals import is_binary
from agent_eval_schema.metrics.metric_info import MetricInfo, numbers_of
from agent_eval_schema.render.phrases import plural
from agent_eval_schema.runtime.version import __version__
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import excerpt, excerpt_names, truncate
from agent_eval_schema.text.guarded import decoded, read_json
from agent_eval_schema.text.visible import visible

SCHEMA_VERSION = "0.3.0"

_AGGREGATE = re.compile(rf"(?:.*/)?data/([^/]+)/([^/]+)/([^/]+)/({UUID})\.json")

_POSITION, _REST = f"{RECORD}/row", f"{RECORD}/rows"
"""The keys of the position of a row, in `metadata`, and of the cells of rows without a line, in the aggregate."""

_ASKED = ("prompt", "request", "inputs")
_ANSWERED = ("response", "outputs", "predicted_trajectory")
_EXPECTED = ("reference", "expected_response", "expectations", "reference_trajectory")
"""The columns of the texts of a line; the first that is filled counts."""


def is_aggregate(path: str) -> bool:
    """Whether the name of a file is that of an aggregate record."""
    return _AGGREGATE.fullmatch(path.replace(os.sep, "/")) is not None


def samples_of(aggregate: str) -> str:
    """The path of the lines of an aggregate record."""
    return f"{aggregate.removesuffix('.json')}_samples.jsonl"


# --- a result as files
def write_evaluation(
    path: str,
    record: ResultRecord,
    tables: Iterable[pd.DataFrame],
    tallies: Mapping[str, ScoreStats],
    infos: Mapping[str, MetricInfo],
) -> None:
    """Write both files. What others cannot read as a score is a warning."""
    match = _AGGREGATE.fullmatch(path.replace(os.sep, "/"))
    assert match is not None
    require_local_place(path)
    benchmark, developer, model, _ = match.groups()
    unwritten = {name: why for name in record.metrics if (why := _unwritten(infos[name], tallies.get(name)))}
    written = [name for name in record.metrics if name not in unwritten]
    missing = "; ".join(f"{name}: {why}" for name, why in unwritten.items())
    if not written:
        raise EvalSetError(f"{path}: no metric can be written: {missing or 'the result has none'}")
    now = str(time.time())
    ids = {"evaluation_id": f"{benchmark}/{developer}_{model}/{now}", "model_id": f"{developer}/{model}"}
    rest: dict[str, dict[str, str]] = {}
    lines, start, digest = 0, 0, hashlib.sha256()
    # both are of one run, or the checksum differs
    with locked(path), replacing(path) as aggregate, replacing(samples_of(path)) as samples:
        with creating(samples) as file:
            for table in tables:
                columns = (table.iloc[:, at].tolist() for at in range(len(table.columns)))
                for row, line in enumerate(zip(*columns, strict=True), start):
                    named = zip(table.columns, line, strict=True)
                    values = {name: jsontext.structured(cell) for name, cell in named if not is_absent(cell)}
                    cells = {name: cell_text(cell) for name, cell in values.items()}
                    scores = {name: values[column] for name in written if (column := score_column(name)) in values}
                    metadata = {_POSITION: str(row), **cells}
                    for name, score in scores.items():
                        sample = {"schema_version": SCHEMA_VERSION, **ids, "evaluation_name": benchmark}
                        sample |= _sample(cells, row) | {"evaluation_result_id": name, "metadata": metadata}
                        sample["evaluation"] = {"score": score, "is_correct": score == _best(infos[name])}
                        written_line = jsontext.encode(sample) + b"\n"
                        digest.update(written_line)
                        file.write(written_line)
                        metadata = {_POSITION: str(row)}
                    if not scores:
                        rest[str(row)] = cells
                    lines += len(scores)
                start += len(table)
        details = {RECORD: jsontext.encode_text(msgspec.to_builtins(record)), _REST: jsontext.encode_text(rest)}
        details |= {"scores_not_written": missing} if missing else {}
        document = {
            "schema_version": SCHEMA_VERSION,
            "evaluation_id": ids["evaluation_id"],
            "retrieved_timestamp": now,
            "source_metadata": {
                "source_type": "evaluation_run",
                "source_organization_name": "unknown",
                "evaluator_relationship": "other",
                "additional_details": details,
            },
            "eval_library": {"name": "agent_eval_schema", "version": __version__},
            "model_info": {
                "name": model,
                "id": ids["model_id"],
                "developer": developer,
                "additional_details": {"deployment_type": "unknown", "model_availability": "unknown"},
            },
            "evaluation_results": [_result(infos[name], tallies[name], benchmark) for name in written],
            "detailed_evaluation_results": {
                "format": "jsonl",
                "file_path": "/".join(["data", benchmark, developer, model, os.path.basename(samples_of(path))]),
                "hash_algorithm": "sha256",
                "checksum": digest.hexdigest(),
                "total_rows": lines,
            },
        }
        with creating(aggregate) as file:
            file.write(jsontext.encode(document) + b"\n")
    if rest:
        missing = "; ".join([*([missing] if missing else []), f"{plural(len(rest), 'row')} without a score"])
    if missing:
        warn_caller(
            f"{path}: every-eval-ever has no place for: {missing}: only this package reads them", UnwrittenScoreWarning
        )


def _unwritten(info: MetricInfo, tally: ScoreStats | None) -> str:
    """Why the scores of a metric cannot be written; "" if they can be."""
    if tally is None or not tally.scored:
        return "no score"
    if not info.known_sign:
        return "no known direction"
    if info.span is None:
        return "no scale, so no score is known to be correct"
    low, high = info.ends or (0, 0)
    return "" if low <= tally.known.min() and tally.known.max() <= high else f"scores outside of its scale {info.ends}"


def _best(info: MetricInfo) -> float:
    return (info.ends or (0, 0))[info.sign > 0]


def _result(info: MetricInfo, tally: ScoreStats, benchmark: str) -> dict[str, Any]:
    low, high = info.ends or (0, 0)
    uncertainty = {"num_samples": tally.scored, **({"standard_deviation": tally.std} if tally.scored > 1 else {})}
    return {
        "evaluation_result_id": info.name,
        "evaluation_name": benchmark,
        "source_data": {"dataset_name": benchmark, "source_type": "other"},
        "metric_config": {
            "metric_name": info.name,
            "lower_is_better": info.sign < 0,
            "score_type": "binary" if is_binary(tally.known) else "continuous",
            "min_score": low,
            "max_score": high,
        },
        "score_details": {"score": tally.mean, "uncertainty": uncertainty},
    }


def _sample(cells: Mapping[str, str], row: int) -> dict[str, Any]:
    prompts, answers, expected = (
        next(([cells[name]] for name in columns if name in cells), []) for columns in (_ASKED, _ANSWERED, _EXPECTED)
    )
    seconds = numbers_of([cells.get(LATENCY)])[0]
    return {
        "sample_id": cells.get(REQUEST_ID, str(row)),
        "interaction_type": "single_turn",
        "input": {"raw": "".join(prompts), "reference": expected},
        "output": {"raw": answers},
        "answer_attribution": [],
        **({"error": cells["error"]} if "error" in cells else {}),
        **({"performance": {"latency_ms": float(seconds) * 1000}} if seconds == seconds else {}),
    }


# --- files as a result
class _Metric(Struct):
    lower_is_better: bool
    metric_name: str | None = None
    metric_id: str | None = None
    min_score: float | str | None = None
    max_score: float | str | None = None


class _Result(Struct):
    evaluation_name: str
    metric_config: _Metric
    evaluation_result_id: str | None = None

    @property
    def info(self) -> MetricInfo:
        config = self.metric_config
        low, high = (end if isinstance(end, float) else None for end in (config.min_score, config.max_score))
        is_known = low is not None and (config.max_score == "Infinity" or (high is not None and low < high))
        name = config.metric_name or config.metric_id or self.evaluation_name
        scale = (low, high) if is_known and low is not None else None
        return MetricInfo(name, "lower" if config.lower_is_better else "higher", scale)


class _Origin(Struct):
    additional_details: dict[str, str] = {}


class _Model(Struct):
    id: str


class _Details(Struct):
    total_rows: int | None = None
    hash_algorithm: Literal["sha256", "md5"] | None = None
    checksum: str | None = None

    def require(self, samples: str, path: str) -> None:
        """Raise EvalSetError if the lines are not those that were written with an aggregate."""
        if self.hash_algorithm is None or self.checksum is None:
            return
        digest = hashlib.new(self.hash_algorithm, usedforsecurity=False)
        with open(samples, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
        if digest.hexdigest() != self.checksum.lower():
            raise EvalSetError(
                f"{samples}: is not the file that {path} was written with: expected the {self.hash_algorithm} "
                f"{truncate(visible(self.checksum), 64)}, got {digest.hexdigest()}: it was changed, or is of "
                "another run: write both again"
            )


class _Aggregate(Struct):
    evaluation_id: str
    evaluation_results: list[_Result]
    source_metadata: _Origin
    model_info: _Model
    detailed_evaluation_results: _Details | None = None


class _Input(Struct):
    raw: str
    reference: list[str]


class _Output(Struct):
    raw: list[str]


class _Evaluation(Struct):
    score: float


class _Performance(Struct):
    latency_ms: float | None = None


class _Sample(Struct):
    evaluation_id: str
    evaluation_name: str
    sample_id: str
    input: _Input
    evaluation: _Evaluation
    evaluation_result_id: str | None = None
    output: _Output | None = None
    error: str | None = None
    performance: _Performance | None = None
    metadata: dict[str, str] | None = None

    @property
    def cells(self) -> dict[str, Any]:
        seconds = None if self.performance is None else self.performance.latency_ms
        return {
            REQUEST_ID: self.sample_id,
            "prompt": self.input.raw,
            "reference": "\n".join(self.input.reference) or None,
            "response": "\n".join(self.output.raw) if self.output else None,
            **({} if self.error is None else {"error": self.error}),
            **({} if seconds is None else {LATENCY: seconds / 1000}),
        }


_ADVICE = "validate the file by `every_eval_ever validate`"


def open_evaluation(place: str) -> Source | None:
    """The rows of an aggregate record, of its lines, or of a folder with one of them; None for any other place."""
    paths = [place]
    if os.path.isdir(place) and os.access(place, os.R_OK):
        paths = [os.path.join(place, name) for name in sorted(os.listdir(place))]
    pairs = [pair for pair in dict.fromkeys(map(record_files, paths)) if pair and all(map(os.path.isfile, pair))]
    if len(pairs) > 1:
        raise EvalSetError(f"{place}: expected one result, got {len(pairs):,}: name one, such as {pairs[-1][0]}")
    return _opened(pairs[0][0]) if pairs else None


def _opened(path: str) -> Source:
    aggregate = read_json(path, _Aggregate, _ADVICE)
    infos: dict[str, MetricInfo] = {}
    by_name: dict[str | None, str] = {}
    by_id: dict[str | None, str] = {}
    for result in aggregate.evaluation_results:
        info = infos.setdefault(result.info.name, result.info)
        by_name.setdefault(result.evaluation_name, info.name)
        if result.evaluation_result_id is not None:
            by_id[result.evaluation_result_id] = info.name
    expected = aggregate.detailed_evaluation_results
    if expected is not None:
        expected.require(samples_of(path), path)
    details = aggregate.source_metadata.additional_details
    is_own = RECORD in details
    rows: dict[Any, dict[str, Any]] = {}
    scores: dict[Any, dict[str, list[float]]] = {}
    lines = 0
    for place, sample in _samples_in(samples_of(path)):
        if sample.evaluation_id != aggregate.evaluation_id:
            id = excerpt(aggregate.evaluation_id)
            raise EvalSetError(f"{place}: expected evaluation_id {id}: it is of another run")
        metric = by_id.get(sample.evaluation_result_id) or by_name.get(sample.evaluation_name)
        if metric is None:
            known = excerpt_names([name for name in (by_id or by_name) if name])
            raise EvalSetError(f"{place}: expected a result of the aggregate ({known}): {_ADVICE}")
        cells = dict(sample.metadata or {}) if is_own else sample.cells
        key = cells.pop(_POSITION, "") if is_own else (sample.evaluation_name, sample.sample_id)
        rows.setdefault(key, {}).update(cells)
        scores.setdefault(key, {}).setdefault(score_column(metric), []).append(sample.evaluation.score)
        lines += 1
    if expected is not None and expected.total_rows not in (None, lines):
        total = expected.total_rows or 0
        raise EvalSetError(f"{samples_of(path)}: expected {total:,} lines, got {lines:,}: the file is not complete")
    for key, by_column in scores.items():
        rows[key] |= {name: numbers_of([values])[0] for name, values in by_column.items()}
    record = ResultRecord(metrics=tuple(infos), row_count=len(rows), agent=aggregate.model_info.id)
    if is_own:
        place = f"{path}: the record of the result ({RECORD})"
        record = decoded(details[RECORD], ResultRecord, place, "write the result again")
        rows |= decoded(details.get(_REST, "{}"), dict[str, dict[str, str]], place, "write the result again")
        rows = {key: rows[key] for key in sorted(rows, key=lambda key: (len(key), key))}  # numbers as text
    infos |= {info.name: info for info in record.infos}
    record = replace(record, infos=tuple(infos.values()))
    source = open_source(pd.DataFrame(list(rows.values())))
    return replace(source, name=path, metadata={RECORD.encode(): msgspec.json.encode(record)})


def _samples_in(path: str) -> Iterator[tuple[str, _Sample]]:
    """Each line of a file, and the name of its place."""
    with reading_file(path), open(path, "rb") as file:
        for number, text in enumerate(file, 1):
            if text.strip():
                place = f"{path}: line {number}"
                yield place, decoded(text, _Sample, place, _ADVICE)
