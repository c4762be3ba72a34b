"""Traces from a tracking store of the real mlflow: pages, filters, order, bounded memory, and what can go wrong."""

from __future__ import annotations

import gc
import glob
import os
import sqlite3
import subprocess
import sys
import tempfile
import tracemalloc
from functools import wraps
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from agent_eval_schema import (
    EvalSetError,
    eval_set_from_inference_table,
    eval_set_from_traces,
    traces_from_store,
    validate_eval_set,
)
from agent_eval_schema.api import validate_traces
from agent_eval_schema.cli import main
from agent_eval_schema.integrations.mlflow import store as stores
from agent_eval_schema.integrations.mlflow.store import Store, require_mlflow
from tests.conftest import ROOT

pytestmark = [
    pytest.mark.usefixtures("tracking_store"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # mlflow uses parts of SQLAlchemy that will be removed
]

QUESTIONS = [f"What is {n} + {n}?" for n in range(7)]


def log(experiment: str, questions: list[str], **tags: str) -> list[str]:
    """Log a trace for each question by mlflow's own tracing; returns their ids."""
    import mlflow

    if mlflow.get_experiment_by_name(experiment) is None:
        mlflow.create_experiment(experiment, artifact_location=Path(experiment).resolve().as_uri())
    mlflow.set_experiment(experiment)
    return [_log(question, tags) for question in questions]


def _log(question: str, tags: dict[str, str]) -> str:
    import mlflow

    with mlflow.start_span("agent") as span:
        span.set_inputs({"messages": [{"role": "user", "content": question}]})
        with mlflow.start_span("search", span_type="RETRIEVER") as search:
            search.set_outputs([{"page_content": "sums", "metadata": {"doc_uri": "sums.md"}}])
        span.set_outputs("it depends")
        if tags:
            mlflow.update_current_trace(tags=tags)
    return str(span.trace_id)


@pytest.fixture(scope="module")
def sums(tracking_store: str) -> list[str]:
    """The ids of seven traces in the experiment "sums"; every third one is tagged `kind=odd`."""
    assert tracking_store
    return [id for n, q in enumerate(QUESTIONS) for id in log("sums", [q], kind="even" if n % 3 else "odd")]


def questions(frame: pd.DataFrame) -> list[str]:
    return [r["messages"][0]["content"] for r in frame["request"]]


def leftovers() -> list[str]:
    return glob.glob(os.path.join(tempfile.gettempdir(), "agent-eval-schema-*"))


# ---------------------------------------------------------------------------------------------------------------------
# what comes out


@pytest.mark.parametrize("page_size", [1, 2, 3, 7, 100])
def test_every_trace_is_there_once_newest_first(sums: list[str], page_size: int) -> None:
    rows = eval_set_from_traces(traces_from_store("sums", page_size=page_size))

    assert rows["request_id"].tolist() == sums[::-1]
    assert questions(rows) == QUESTIONS[::-1]
    assert rows["response"].tolist() == ["it depends"] * 7
    assert rows["retrieved_context"].tolist() == [[{"doc_uri": "sums.md", "content": "sums"}]] * 7


def test_filter_order_and_limit_are_passed_on(sums: list[str]) -> None:
    odd = traces_from_store("sums", filter_string="tags.kind = 'odd'", order_by=["timestamp_ms ASC"], page_size=2)
    two = traces_from_store("sums", max_results=2, page_size=100)
    three = traces_from_store("sums", max_results=3, page_size=2)

    assert questions(eval_set_from_traces(odd)) == [QUESTIONS[0], QUESTIONS[3], QUESTIONS[6]]
    assert eval_set_from_traces(two)["request_id"].tolist() == sums[:-3:-1]
    assert eval_set_from_traces(three)["request_id"].tolist() == sums[:-4:-1]
    assert len(eval_set_from_traces(traces_from_store("sums", max_results=0))) == 0


def test_experiments_by_name_by_id_and_several(sums: list[str], tracking_store: str) -> None:
    import mlflow

    other = log("other sums", ["What is 1 + 2?"])
    by_id = mlflow.get_experiment_by_name("sums").experiment_id

    assert len(eval_set_from_traces(traces_from_store(by_id))) == 7
    both = eval_set_from_traces(traces_from_store(["sums", "other sums"], tracking_uri=tracking_store))
    assert sorted(both["request_id"]) == sorted(sums + other)
    assert eval_set_from_traces(traces_from_store())["request_id"].tolist() == other  # the active one


def test_the_traces_of_an_evaluation_are_excluded_and_counted(tmp_path: Path) -> None:
    """A dataset does not grow by the questions of its own evaluations; a trace of a run of the user's own stays."""
    import mlflow
    from mlflow.genai import evaluate
    from mlflow.genai.scorers import scorer

    [plain] = log("evaluated sums", ["What is 8 + 8?"])
    with mlflow.start_run():
        [in_run] = log("evaluated sums", ["What is 9 + 9?"])

    @scorer
    def exact(outputs: Any) -> bool:
        return bool(outputs)

    def agent(question: str) -> str:
        return question.upper()

    evaluate(data=[{"inputs": {"question": "a"}}, {"inputs": {"question": "b"}}], predict_fn=agent, scorers=[exact])
    evaluate(data=[{"inputs": {"question": "c"}, "outputs": "d"}], scorers=[exact])

    source = traces_from_store("evaluated sums", page_size=2)
    assert repr(source) == "<Source: tracking store>"
    assert eval_set_from_traces(source)["request_id"].tolist() == [in_run, plain]
    assert eval_set_from_traces(traces_from_store("evaluated sums", max_results=1))["request_id"].tolist() == [in_run]
    [excluded] = [issue for issue in validate_traces(source).iter_issues() if issue.code == "AE613"]
    assert excluded.message == "3 traces that an evaluation logged are excluded"
    every = traces_from_store("evaluated sums", evaluations=True)
    assert len(eval_set_from_traces(every)) == 5
    assert validate_traces(every).counts.get("AE613") is None
    for options, rows in (([], 2), (["--evaluations"], 5)):
        out = tmp_path / f"{rows}.jsonl"
        assert main(["from-traces", "--experiment", "evaluated sums", str(out), "--quiet", *options]) == 0
        assert len(out.read_text("utf-8").splitlines()) == rows
    pytest.importorskip("duckdb")
    build = eval_set_from_inference_table(source, extend=eval_set_from_traces(source).iloc[:1])
    assert (len(build.rows), build.report.counts["AE613"]) == (2, 1)
    grown, first = tmp_path / "grown.jsonl", str(tmp_path / "2.jsonl")
    command = ["from-traces", "--experiment", "evaluated sums", str(grown), "--extend", first, "--evaluations"]
    assert main(command) == 0
    assert len(grown.read_text("utf-8").splitlines()) == 5


@pytest.mark.usefixtures("sums")
def test_a_source_is_read_as_often_as_one_likes() -> None:
    source = traces_from_store("sums", page_size=3)

    first = validate_eval_set(source)
    log("sums", ["What came later?"], kind="late")
    again = validate_eval_set(source)

    assert first.row_count == again.row_count == len(first.rows) == 7
    assert first.invalid_count == 0
    assert len(first.valid) == 7
    assert len(eval_set_from_traces(traces_from_store("sums", filter_string="tags.kind = 'late'"))) == 1


@pytest.mark.usefixtures("sums")
def test_what_was_fetched_is_deleted_with_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # where nobody else works
    before = leftovers()
    source = traces_from_store("sums")
    assert len(leftovers()) == len(before) + 1
    [folder] = set(leftovers()) - set(before)
    assert os.stat(folder).st_mode & 0o077 == 0  # traces are nobody else's business

    report = validate_traces(source)
    del source
    assert len(report.rows) == len(report.rows)  # the report can still read it
    del report
    gc.collect()
    assert leftovers() == before


def test_traces_that_are_logged_meanwhile_move_the_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store pages by position, the newest first: a new trace moves the last one of a page to the next page."""
    from mlflow import MlflowClient

    ids = log("busy", QUESTIONS)
    search_traces = MlflowClient.search_traces

    @wraps(search_traces)
    def meanwhile(*arguments: Any, **options: Any) -> Any:
        log("busy", ["And meanwhile?"])
        return search_traces(*arguments, **options)

    monkeypatch.setattr(MlflowClient, "search_traces", meanwhile)
    report = validate_traces(traces_from_store("busy", page_size=3, max_results=12))

    found = report.rows["request_id"].tolist()
    assert len(set(found)) == len(found)
    assert [i for i in found if i in ids] == ids[::-1]
    assert "AE604" not in report.counts  # each with its spans


def test_expectations_logged_on_a_trace() -> None:
    import mlflow

    [trace_id] = log("expected sums", ["What is 2 + 2?"])
    mlflow.log_expectation(trace_id=trace_id, name="expected_response", value="4")
    mlflow.log_expectation(
        trace_id=trace_id, name="expected_tool_calls", value=[{"name": "add", "arguments": {"n": 2}}]
    )

    [row] = eval_set_from_traces(traces_from_store("expected sums")).to_dict("records")

    assert row["expected_response"] == "4"
    assert row["reference_trajectory"] == [{"tool_name": "add", "tool_input": {"n": 2}}]


def test_a_trace_without_its_spans_is_a_row_that_says_so(tracking_store: str) -> None:
    ids = log("lost sums", QUESTIONS[:3])
    _lose_spans(tracking_store, ids[1])

    report = validate_traces(traces_from_store("lost sums", page_size=2))

    assert report.rows["request_id"].tolist() == ids[::-1]
    assert [i.row for i in report.iter_issues() if i.code == "AE604"] == [1]


def _lose_spans(uri: str, trace_id: str) -> None:
    """As after a clean-up: the trace is known, its spans are not."""
    for file in Path("lost sums").rglob("traces.json"):  # up to 3.4 spans are files
        if trace_id in str(file):
            file.unlink()
    with sqlite3.connect(uri.removeprefix("sqlite:///")) as database:
        database.execute("DELETE FROM spans WHERE trace_id = ?", [trace_id])


# ---------------------------------------------------------------------------------------------------------------------
# memory


@pytest.fixture(scope="module")
def many(tracking_store: str) -> int:
    """An experiment of 1,000 traces of 20 KB: one that mlflow logged, and copies of what it wrote into the database."""
    [trace_id] = log("many", ["x" * 20_000])
    database = sqlite3.connect(tracking_store.removeprefix("sqlite:///"))
    with database:
        for table, key in (
            ("trace_info", "request_id"),
            ("trace_tags", "request_id"),
            ("trace_request_metadata", "request_id"),
            ("spans", "trace_id"),
        ):
            cursor = database.execute(f"SELECT * FROM {table} WHERE {key} = ?", [trace_id])
            names = [d[0] for d in cursor.description]
            written = [n for n in names if n != "duration_ns"]  # which the database computes
            rows = [[r[names.index(n)] for n in written] for r in cursor.fetchall()]
            marks, columns = ", ".join("?" for _ in written), ", ".join(f'"{n}"' for n in written)
            for copy in range(999):
                new = [[f"tr-{copy:032x}" if v == trace_id else v for v in row] for row in rows]
                database.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", new)
    database.close()
    return 1_000


def test_memory_holds_a_page_not_the_store(many: int) -> None:
    traces_from_store("many", max_results=20, page_size=10)  # what is loaded on first use does not count
    gc.collect()

    tracemalloc.start()
    source = traces_from_store("many", page_size=10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    arrow = pa.total_allocated_bytes()
    report = validate_eval_set(source)

    assert report.row_count == many
    size = sum(len(t) for b in source.batches() for t in b.column(0).to_pylist())
    assert size > 20_000_000
    assert peak < size / 5
    assert arrow < size / 5


# ---------------------------------------------------------------------------------------------------------------------
# what can go wrong


@pytest.mark.usefixtures("sums")
def test_no_such_experiment() -> None:
    with pytest.raises(EvalSetError, match=r"has no experiment 'smus': did you mean 'sums'\?$"):
        traces_from_store("smus")
    with pytest.raises(EvalSetError, match=r"has no experiment '424242'$"):
        traces_from_store("424242")


def test_a_deleted_experiment() -> None:
    import mlflow

    mlflow.delete_experiment(mlflow.create_experiment("gone"))
    with pytest.raises(EvalSetError, match="the experiment 'gone' is deleted"):
        traces_from_store("gone")


@pytest.mark.usefixtures("sums")
@pytest.mark.parametrize("options", [{"filter_string": "bogus ="}, {"order_by": ["bogus"]}])
def test_what_the_store_does_not_take(options: dict[str, Any]) -> None:
    with pytest.raises(EvalSetError, match=r"rejected the operation: .*bogus"):
        traces_from_store("sums", **options)


@pytest.mark.parametrize("options", [{"page_size": 0}, {"max_results": -1}])
def test_numbers_that_mean_nothing(options: dict[str, int]) -> None:
    with pytest.raises(EvalSetError, match="page_size must be 1 or more"):
        traces_from_store("sums", **options)


def test_an_unreachable_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "2")

    with pytest.raises(EvalSetError) as told:
        traces_from_store("sums", tracking_uri="http://someone:secret@127.0.0.1:1")

    message = str(told.value)
    assert message.startswith("the tracking store http://***@127.0.0.1:1 cannot be reached: ")
    assert "\n" not in message
    assert "secret" not in message


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(EvalSetError, match=r"tracking store sqlite:///.* not found: no such file"):
        traces_from_store("sums", tracking_uri=f"sqlite:///{tmp_path}/new/mlflow.db")
    assert list(tmp_path.iterdir()) == []


def test_a_store_of_no_known_kind() -> None:
    with pytest.raises(EvalSetError, match="the tracking store nonsense://x rejected the operation: "):
        traces_from_store("sums", tracking_uri="nonsense://x")


@pytest.mark.parametrize(("version", "old"), [("2.22.0", True), ("3.2.9", True), ("3.3.0", False), ("3.10.1", False)])
def test_an_old_mlflow(monkeypatch: pytest.MonkeyPatch, version: str, old: bool) -> None:
    import mlflow

    monkeypatch.setattr(mlflow, "__version__", version)
    if old:
        with pytest.raises(EvalSetError, match=rf"^this needs mlflow 3\.3 or newer, got {version}: pip install"):
            Store()
    else:
        assert require_mlflow() is mlflow


def test_a_folder_called_mlflow_is_not_mlflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "import_extra", lambda *_: object())
    with pytest.raises(EvalSetError, match=r"this needs mlflow 3\.3 or newer, got none"):
        require_mlflow()


@pytest.mark.parametrize("call", ["traces_from_store('x')", "to_mlflow_dataset([], 'x')", "from_mlflow_dataset('x')"])
def test_without_mlflow(call: str) -> None:
    code = f"import sys; sys.modules['mlflow'] = None; import agent_eval_schema as a; a.{call}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)

    assert run.stderr.splitlines()[-1].startswith("agent_eval_schema.errors.MissingExtraError: this needs mlflow 3.")
    assert run.stderr.splitlines()[-1].endswith("pip install -U 'agent-eval-schema[mlflow]'")


def test_the_module_is_imported_without_mlflow() -> None:
    code = "import sys; from agent_eval_schema import traces_from_store as _; assert 'mlflow' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


# ---------------------------------------------------------------------------------------------------------------------
# on the command line


@pytest.mark.usefixtures("sums")
def test_from_traces_of_an_experiment(tracking_store: str, tmp_path: Path) -> None:
    out = tmp_path / "rows.parquet"
    chosen = ["--experiment", "sums", "--filter", "tags.kind = 'odd'", "--tracking-uri", tracking_store]

    assert main(["from-traces", str(out), *chosen]) == 0
    assert len(pd.read_parquet(out)) == 3


@pytest.mark.parametrize(
    "arguments",
    [["out.jsonl"], ["in.jsonl", "out.jsonl", "--experiment", "x"], ["in.jsonl", "out.jsonl", "--filter", "x"]],
)
def test_a_file_or_an_experiment(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    named = [{"IN": "in.jsonl", "OUT": "out.jsonl"}.get(a, a) for a in arguments]

    assert main(["from-traces", *named]) == 2
    assert "give a file IN, or --experiment NAME" in capsys.readouterr().err
