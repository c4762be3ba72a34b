"""What is measured, one function each; every measurement runs alone in a fresh process.

    python -m tests.benchmarks.measure validate /some/folder/traces.parquet      prints one line of JSON

Only the named work is timed: imports, the first rows (which fill the caches of decoders and lazy modules) and, for the
bare parsers, the reading of the file stay outside.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, redirect_stdout, suppress
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

Result = dict[str, float]

WARM_UP_ROWS = 64
COLUMN_ROWS = 3_000
"""Fewer than one process per core would share."""
EVALUATED_ROWS = 500
"""mlflow takes tens of milliseconds a row."""
WARM_UP_EVALUATIONS = 4
MLFLOW_TRACES = 2_000
"""mlflow's own extraction is measured on this many and scaled: all of them would take minutes."""

PARSED_EVALUATIONS = 300
"""The vendor's parser takes a millisecond each."""


ADK_ROWS = 4_000
"""google-adk's evaluator, too, is measured on some rows and scaled."""


def main(name: str, path: str) -> None:
    result = MEASUREMENTS[name](Path(path))
    print(json.dumps(result))


def validate(path: Path) -> Result:
    """``validate_eval_set(path)`` from start to verdict, reading included."""
    from agent_eval_schema import validate_eval_set

    validate_eval_set(first_rows(path, WARM_UP_ROWS))
    start = time.perf_counter()
    report = validate_eval_set(path)
    rows, invalid = report.row_count, report.invalid_count
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "rows": rows, "invalid": invalid, "issues": sum(report.counts.values())}


def validate_on_one_core(path: Path) -> Result:
    pin()
    return validate(path)


def validate_table(path: Path) -> Result:
    """The same of a table in memory, in seconds of the core."""
    import pyarrow.parquet as pq

    from agent_eval_schema.formats.opening import open_source
    from agent_eval_schema.validation.validate import check_source

    pin()
    table = pq.read_table(path)
    check_source(open_source(table.slice(0, WARM_UP_ROWS)), jobs=1)
    start = time.process_time()
    report = check_source(open_source(table), jobs=1)
    seconds = time.process_time() - start
    rows, invalid = report.row_count, report.invalid_count
    return {"seconds": seconds, "rows": rows, "invalid": invalid, "issues": sum(report.counts.values())}


def validate_lines(path: Path) -> Result:
    """``validate_eval_set(path)`` of a file with a trace per line, in seconds of the core."""
    from agent_eval_schema import validate_eval_set

    pin()
    with path.open(encoding="utf-8") as lines:
        validate_eval_set([json.loads(line) for line in islice(lines, WARM_UP_ROWS)])
    start = time.process_time()
    report = validate_eval_set(path)
    rows, invalid = report.row_count, report.invalid_count
    seconds = time.process_time() - start
    return {"seconds": seconds, "rows": rows, "invalid": invalid, "issues": sum(report.counts.values())}


def validate_column(path: Path) -> Result:
    """``validate_eval_set`` of a column of traces in memory, in seconds of the core."""
    import pyarrow as pa

    from agent_eval_schema import validate_eval_set

    pin()
    with path.open(encoding="utf-8") as lines:
        texts = list(islice(lines, COLUMN_ROWS))
    table = pa.table({"request_id": [f"req-{i:08}" for i in range(len(texts))], "trace": texts})
    validate_eval_set(table.slice(0, WARM_UP_ROWS))
    start = time.process_time()
    report = validate_eval_set(table)
    rows, invalid = report.row_count, report.invalid_count
    seconds = time.process_time() - start
    return {"seconds": seconds, "rows": rows, "invalid": invalid, "issues": sum(report.counts.values())}


def orjson_loads(path: Path) -> Result:
    """A bare ``orjson.loads`` of each trace; the texts are in memory, a chunk at a time."""
    import orjson

    seconds, rows = 0.0, 0
    for texts in trace_chunks(path):
        start = time.perf_counter()
        for text in texts:
            orjson.loads(text)
        seconds += time.perf_counter() - start
        rows += len(texts)
    return {"seconds": seconds, "rows": rows}


def read_and_decode(path: Path) -> Result:
    """What is left of validation without any Python of ours: two processes read half of the file each, and decode each
    trace once."""
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        # The first task of each is small, and makes it import what it needs.
        list(pool.map(decode_half, [path, path], [0, 1], [1, 1]))
        start = time.perf_counter()
        rows = sum(pool.map(decode_half, [path, path], [0, 1]))
        return {"seconds": time.perf_counter() - start, "rows": rows}


def decode_half(path: Path, half: int, most: int | None = None) -> int:
    from agent_eval_schema.cells.arrow import text_views
    from agent_eval_schema.io.files import open_file
    from agent_eval_schema.io.source import Share, units_of
    from agent_eval_schema.traces.decode import decode_trace

    time.sleep(0.5 if most else 0)  # so that the other process takes the other first task
    rows = 0
    for _, batch in islice(units_of(open_file(str(path)), Share(half, 2, 0)), most):
        rows += sum(decode_trace(text) is not None for text in text_views(batch.column("trace")))
    return rows


def mlflow_extraction(path: Path) -> Result:
    """``Trace.from_json`` and mlflow's own accessors, for the fields that validation derives from a trace."""
    texts = first_traces(path, MLFLOW_TRACES)
    for text in texts[:WARM_UP_ROWS]:
        mlflow_fields(text)
    start = time.perf_counter()
    for text in texts:
        mlflow_fields(text)
    return {"seconds": time.perf_counter() - start, "rows": len(texts)}


def mlflow_fields(text: str) -> dict[str, Any]:
    """mlflow's own extraction of what validation derives; its functions for scorers, where it has them."""
    from mlflow.entities import Trace
    from mlflow.genai.utils import trace_utils

    trace = Trace.from_json(text)
    return {
        "request": trace_utils.extract_request_from_trace(trace),
        "response": trace_utils.extract_response_from_trace(trace),
        "retrieved_context": trace_utils.extract_retrieval_context_from_trace(trace),
        "trajectory": trace_utils.extract_tools_called_from_trace(trace),
        "expectations": trace_utils.extract_expectations_from_trace(trace),
        "usage": trace.info.token_usage,
    }


def arrow_read(path: Path) -> Result:
    """The file through pyarrow, batch by batch, nothing done with it."""
    pin()
    import pyarrow.parquet as pq

    start = time.perf_counter()
    rows = sum(batch.num_rows for batch in pq.ParquetFile(path).iter_batches())
    return {"seconds": time.perf_counter() - start, "rows": rows}


def pandas_read(path: Path) -> Result:
    pin()
    import pandas as pd

    first_rows(path, WARM_UP_ROWS)  # imports what pandas would import first
    start = time.perf_counter()
    rows = len(pd.read_parquet(path))
    return {"seconds": time.perf_counter() - start, "rows": rows}


def evaluate_eval_set(path: Path) -> Result:
    """All of ``evaluate_eval_set``: preparing, evaluating with two scorers, logging the report, joining the scores."""
    from agent_eval_schema import evaluate_eval_set

    rows = first_rows(path, EVALUATED_ROWS)
    with mlflow_on_sqlite():
        scorers = cheap_scorers()
        evaluate_eval_set(rows[:WARM_UP_EVALUATIONS], scorers)
        start = time.perf_counter()
        found = evaluate_eval_set(rows, scorers)
        seconds = time.perf_counter() - start
    return {"seconds": seconds, "rows": len(rows), "scored": int(found.scores.notna().all(axis=1).sum())}


def mlflow_evaluate(path: Path) -> Result:
    """mlflow's own evaluate of the prepared rows, with the same scorers and settings."""
    from agent_eval_schema import prepare_for_evaluate

    rows = first_rows(path, EVALUATED_ROWS)
    with mlflow_on_sqlite() as mlflow:
        scorers, frame = cheap_scorers(), prepare_for_evaluate(rows, outputs="provided")
        mlflow.genai.evaluate(data=frame[:WARM_UP_EVALUATIONS], scorers=scorers)
        start = time.perf_counter()
        mlflow.genai.evaluate(data=frame, scorers=scorers)
        seconds = time.perf_counter() - start
    return {"seconds": seconds, "rows": len(rows)}


def score_on_one_core(path: Path) -> Result:
    """``score_trajectories(path)``: all five metrics, reading included.

    CPU time here and for google-adk: neighbors take less of it than of the clock's.
    """
    pin()
    from agent_eval_schema import score_trajectories

    score_trajectories(first_rows(path, WARM_UP_ROWS))
    start = time.process_time()
    rows = score_trajectories(path).row_count
    return {"seconds": time.process_time() - start, "rows": rows}


def adk_evaluator(path: Path) -> Result:
    """google-adk's evaluator on the same trajectories, one kind of match; its objects are made before."""
    return adk(path, ["EXACT"], making=False)


def adk_from_cells(path: Path) -> Result:
    """google-adk's evaluator, the three kinds of match that it has, from the same cells."""
    return adk(path, ["EXACT", "IN_ORDER", "ANY_ORDER"], making=True)


def adk(path: Path, kinds: list[str], *, making: bool) -> Result:
    pin()
    from google.adk.evaluation.eval_case import IntermediateData, Invocation
    from google.adk.evaluation.eval_metrics import EvalMetric, ToolTrajectoryCriterion
    from google.adk.evaluation.trajectory_evaluator import TrajectoryEvaluator
    from google.genai import types

    def evaluator(kind: str) -> Any:
        criterion = ToolTrajectoryCriterion(threshold=1, match_type=ToolTrajectoryCriterion.MatchType[kind])
        return TrajectoryEvaluator(eval_metric=EvalMetric(metric_name="m", threshold=1, criterion=criterion))

    def invocation(cell: str) -> Any:
        uses = [types.FunctionCall(name=c["tool_name"], args=c["tool_input"]) for c in json.loads(cell)]
        return Invocation(user_content=types.Content(), intermediate_data=IntermediateData(tool_uses=uses))

    def made(rows: list[dict[str, Any]]) -> list[list[Any]]:
        return [[invocation(r[f"{side}_trajectory"]) for r in rows] for side in ("predicted", "reference")]

    rows, evaluators = first_rows(path, ADK_ROWS), [evaluator(kind) for kind in kinds]
    for one in evaluators:
        one.evaluate_invocations(*made(rows[:WARM_UP_ROWS]))
    ready = None if making else made(rows)
    start = time.process_time()
    ready = ready or made(rows)
    for one in evaluators:
        one.evaluate_invocations(*ready)
    return {"seconds": time.process_time() - start, "rows": len(rows)}


@contextmanager
def mlflow_on_sqlite() -> Iterator[Any]:
    """mlflow with a fresh store; it prints, and the result of a measurement is all that may be printed."""
    settings = {"MLFLOW_GENAI_EVAL_MAX_WORKERS": "4", "MLFLOW_ENABLE_ASYNC_TRACE_LOGGING": "false"}
    os.environ.update(settings, MLFLOW_DISABLE_TELEMETRY="true", DO_NOT_TRACK="true")
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(sys.stderr):
        import mlflow.genai

        mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
        mlflow.set_experiment(experiment_id=mlflow.create_experiment("benchmark", artifact_location=f"file://{folder}"))
        yield mlflow


def cheap_scorers() -> list[Any]:
    from mlflow.genai.scorers import scorer

    from agent_eval_schema.integrations.mlflow.scorers import DocumentRecall

    @scorer  # type: ignore[untyped-decorator]
    def length(outputs: Any) -> int:
        return len(outputs)

    return [length, DocumentRecall()]


def build_embedded(path: Path) -> Result:
    """All of ``from-inference-table`` with two processes, Parquet to Parquet; its children's time is in it."""
    from agent_eval_schema.cli import main as command

    with tempfile.TemporaryDirectory(dir=path.parent) as folder, redirect_stdout(sys.stderr):
        start, cpu_start = time.perf_counter(), sum(os.times()[:4])
        words = [*("from-inference-table", str(path), f"{folder}/rows.parquet", "--jobs", "2", "--quiet")]
        assert command([*words, "--excluded", f"{folder}/aside.parquet"]) == 0
        seconds, cpu_seconds = time.perf_counter() - start, sum(os.times()[:4]) - cpu_start
        kept = parquet_rows(Path(folder, "rows.parquet"))
        return {"seconds": seconds, "rows": parquet_rows(path), "kept": kept, "cpu_seconds": cpu_seconds}


def build_on_spark(path: Path) -> Result:
    """The same on Spark with two cores, which a smaller build has warmed up; Parquet to Parquet."""
    from agent_eval_schema.inference_tables.spark import spark_from_inference_table
    from tests.helpers.spark_session import start_spark

    plain = {f"spark.sql.{name}": "true" for name in ("adaptive.enabled", "codegen.wholeStage")}
    plain |= {"spark.sql.codegen.factoryMode": "FALLBACK", "spark.sql.shuffle.partitions": "8"}
    plain |= {"spark.driver.memory": "4g"}  # the driver is the executor, too
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        session = start_spark(Path(folder), **plain)
        table = session.read.parquet(str(path))
        for name, rows in (("warm", table.limit(5_000)), ("measured", table)):
            start = time.perf_counter()
            with spark_from_inference_table(rows.persist() if name == "warm" else rows) as build:
                build.rows.write.parquet(f"{folder}/{name}")
                build.excluded.write.parquet(f"{folder}/{name}-aside")
                kept = build.summary.rows
            seconds = time.perf_counter() - start
        session.stop()
    return {"seconds": seconds, "rows": parquet_rows(path), "kept": kept}


def read_decode_and_write(path: Path) -> Result:
    """What is left of a build without any Python of ours: two processes read half of the file each, decode each text
    once, and write what the rows would hold, each into a file of its own."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder, ProcessPoolExecutor(2, get_context("spawn")) as pool:
        halves = [path, path], [0, 1], [f"{folder}/0", f"{folder}/1"]
        list(pool.map(copy_half, *halves, [1, 1]))  # as in read_and_decode
        start = time.perf_counter()
        copied = list(pool.map(copy_half, *halves))
        seconds = time.perf_counter() - start
    rows = sum(count for count, _ in copied)
    return {"seconds": seconds, "rows": rows, "cpu_seconds": sum(cpu for _, cpu in copied)}


def copy_half(path: Path, half: int, out: str, most: int | None = None) -> tuple[int, float]:
    """How many rows were copied, and the CPU time of that."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from agent_eval_schema.cells.arrow import text_array
    from agent_eval_schema.io.files import open_file
    from agent_eval_schema.io.source import Share, units_of
    from agent_eval_schema.runtime.gc_pause import gc_paused

    time.sleep(0.5 if most else 0)
    start, rows = time.process_time(), 0
    schema = pa.schema([(name, pa.string()) for name in ("request", "response", "trace")])
    with gc_paused(), pq.ParquetWriter(out, schema, use_dictionary=False) as writer:
        for _, batch in islice(units_of(open_file(str(path)), Share(half, 2, 0)), most):
            columns = [text_array(texts) for texts in decoded_once(batch)]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
            rows += batch.num_rows
    return rows, time.process_time() - start


def decoded_once(batch: Any) -> list[list[Any]]:
    """The requests, written anew, the answers and the traces of logged calls; None for what is of another kind."""
    import msgspec

    from agent_eval_schema.cells.arrow import text_views
    from agent_eval_schema.inference_tables.read.payloads import _body, _encode, _reply
    from agent_eval_schema.traces.decode import decode_trace

    requests: list[bytes | None] = []
    answers: list[str | None] = []
    traces: list[bytes | None] = []
    for asked, answered in zip(*(text_views(batch.column(name)) for name in ("request", "response")), strict=True):
        request = answer = trace = None
        with suppress(msgspec.MsgspecError, TypeError):
            request = _encode(_body(asked).messages)
        with suppress(msgspec.MsgspecError, TypeError):
            reply = _reply(answered)
            answer = reply.choices[0].message.content if reply.choices else None
            if reply.databricks_output is not None:
                trace = bytes(reply.databricks_output.trace)
                decode_trace(trace)
        requests.append(request)
        answers.append(answer if isinstance(answer, str) else None)
        traces.append(trace)
    return [requests, answers, traces]


def orjson_payloads(path: Path) -> Result:
    """A bare ``orjson.loads`` of each request and response, in one process."""
    import orjson

    return parsed_payloads(path, orjson.loads)


def msgspec_payloads(path: Path) -> Result:
    """The same with ``msgspec.json.decode``."""
    import msgspec

    return parsed_payloads(path, msgspec.json.decode)


def parsed_payloads(path: Path, parse: Callable[[str], Any]) -> Result:
    import pyarrow.parquet as pq

    seconds, rows = 0.0, 0
    for batch in pq.ParquetFile(path).iter_batches(1_000, columns=["request", "response"]):
        texts = [text for column in batch.columns for text in column.to_pylist()]
        start = time.perf_counter()
        for text in texts:
            parse(text)
        seconds += time.perf_counter() - start
        rows += batch.num_rows
    return {"seconds": seconds, "rows": rows}


def parquet_rows(path: Path) -> int:
    import pyarrow.parquet as pq

    return int(pq.read_metadata(path).num_rows)


def validate_in_memory(path: Path) -> Result:
    """``validate_eval_set`` of a frame."""
    from agent_eval_schema import validate_eval_set

    return of_a_frame(path, validate_eval_set)


def validate_frame_by_one_process(path: Path) -> Result:
    """A frame, checked by this process alone."""
    return of_a_source(path, 1)


def validate_frame_by_all_cores(path: Path) -> Result:
    """A frame, checked by one process per core."""
    return of_a_source(path, 0)


def of_a_source(path: Path, jobs: int) -> Result:
    import pandas as pd

    from agent_eval_schema.formats.opening import open_source
    from agent_eval_schema.validation.validate import check_source

    frame = pd.read_parquet(path)
    check_source(open_source(frame[:WARM_UP_ROWS]))
    start = time.perf_counter()
    check_source(open_source(frame), jobs=jobs)
    return {"seconds": time.perf_counter() - start, "rows": len(frame)}


def pool_by_one_process(path: Path) -> Result:
    """A file, or what a Parquet file has as a table in memory, by this process alone."""
    return by_processes(path, 1)


def pool_by_default(path: Path) -> Result:
    """The same by as many processes as the package takes."""
    return by_processes(path, 0)


def by_processes(path: Path, jobs: int) -> Result:
    import pyarrow.parquet as pq

    from agent_eval_schema.formats.opening import open_source
    from agent_eval_schema.validation.validate import check_source

    data = pq.read_table(path) if path.suffix == ".parquet" else str(path)
    with tempfile.TemporaryDirectory() as folder:
        few = Path(folder, "few.jsonl")
        few.write_text('{"request": "Hi", "response": "Hello"}\n')
        check_source(open_source(str(few)))
    start = time.perf_counter()
    report = check_source(open_source(data), jobs=jobs)
    return {"seconds": time.perf_counter() - start, "rows": report.row_count}


def read_frame(path: Path) -> Result:
    """The frame alone."""
    import pandas as pd

    start = time.perf_counter()
    frame = pd.read_parquet(path)
    return {"seconds": time.perf_counter() - start, "rows": len(frame)}


def prepare_in_memory(path: Path) -> Result:
    """``prepare_for_evaluate`` of a frame, whose traces are handed on."""
    from agent_eval_schema import prepare_for_evaluate

    return of_a_frame(path, prepare_for_evaluate)


def of_a_frame(path: Path, work: Callable[[Any], Any]) -> Result:
    import pandas as pd

    frame = pd.read_parquet(path)
    work(frame[:WARM_UP_ROWS])
    start = time.perf_counter()
    work(frame)
    return {"seconds": time.perf_counter() - start, "rows": len(frame)}


def first_rows(path: Path, count: int) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = next(pq.ParquetFile(path).iter_batches(count)).to_pylist()
    return rows


def first_traces(path: Path, count: int) -> list[str]:
    texts: list[str] = []
    for chunk in trace_chunks(path):
        texts.extend(chunk)
        if len(texts) >= count:
            break
    return texts[:count]


def trace_chunks(path: Path) -> Iterator[list[str]]:
    import pyarrow.parquet as pq

    for batch in pq.ParquetFile(path).iter_batches(1_000, columns=["trace"]):
        yield batch.column("trace").to_pylist()


# What is measured on one core and waits for nothing is measured in time of that core: neighbors do not count.


def read_golden_csv(path: Path) -> Result:
    """``ces.read_golden_csv(path)``: read, validated, made into evaluations."""
    from agent_eval_schema import ces

    pin()
    ces.read_golden_csv(ces.golden_template())
    start = time.process_time()
    file = ces.read_golden_csv(path)
    seconds = time.process_time() - start
    steps = sum(len(turn["steps"]) for e in file.evaluations for turn in e["golden"]["turns"])
    return {
        "seconds": seconds,
        "rows": steps + len(file.evaluations),
        "invalid": not file.ok,
        "issues": len(file.issues),
    }


def validate_golden_csv(path: Path) -> Result:
    """``validate_eval_set(path)``: the same as a report, with the cells as a table."""
    from agent_eval_schema import validate_eval_set

    pin()
    start = time.process_time()
    report = validate_eval_set(path)
    rows, invalid = report.row_count, report.invalid_count
    return {"seconds": time.process_time() - start, "rows": rows, "invalid": invalid, "issues": len(report.counts)}


def validate_evaluations(path: Path) -> Result:
    """Every problem of each evaluation, of which there is none."""
    from agent_eval_schema.formats.ces.evaluation import findings_of

    return of_texts(path, findings_of)


def read_evaluations(path: Path) -> Result:
    from agent_eval_schema import ces

    return of_texts(path, ces.read_evaluation)


def msgspec_decode(path: Path) -> Result:
    """The texts to plain objects, and no more."""
    import msgspec

    return of_texts(path, msgspec.json.Decoder().decode)


def json_format_parse(path: Path) -> Result:
    """The vendor's own reader, on few of them."""
    from google.cloud.ces_v1beta.types import Evaluation
    from google.protobuf import json_format

    return of_texts(path, lambda text: json_format.Parse(text, Evaluation.pb(Evaluation())), most=PARSED_EVALUATIONS)


def of_texts(path: Path, work: Callable[[bytes], Any], most: int = 1 << 62) -> Result:
    pin()
    with path.open(encoding="utf-8") as lines:
        texts = [json.loads(line).encode() for _, line in zip(range(most), lines, strict=False)]
    for text in texts[:WARM_UP_ROWS]:
        work(text)
    start = time.process_time()
    for text in texts:
        work(text)
    return {"seconds": time.process_time() - start, "rows": len(texts)}


def pin() -> None:
    """Stay on one core, before pyarrow counts the cores for its thread pools."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


MEASUREMENTS: dict[str, Callable[[Path], Result]] = {
    one.__name__: one
    for one in (
        *(
            validate,
            validate_on_one_core,
            validate_table,
            validate_lines,
            validate_column,
            orjson_loads,
            mlflow_extraction,
            read_and_decode,
            arrow_read,
            pandas_read,
        ),
        *(score_on_one_core, adk_evaluator, adk_from_cells),
        *(read_golden_csv, validate_golden_csv, validate_evaluations, read_evaluations),
        *(msgspec_decode, json_format_parse),
        *(evaluate_eval_set, mlflow_evaluate, prepare_in_memory, validate_in_memory),
        *(validate_frame_by_one_process, validate_frame_by_all_cores, read_frame),
        *(pool_by_one_process, pool_by_default),
        *(build_embedded, build_on_spark, read_decode_and_write, orjson_payloads, msgspec_payloads),
    )
}

if __name__ == "__main__":
    main(*sys.argv[1:])
