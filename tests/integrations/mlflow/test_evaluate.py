"""`evaluate_eval_set` in the real mlflow, on a sqlite store: every row × scorer has a score or a reason."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from agent_eval_schema import EvalSetError, evaluate_eval_set, profile_eval_set, scorers, supported_scorers
from agent_eval_schema.evaluation.result import EvalResult
from agent_eval_schema.evaluation.result_blocks import REASONS_SHOWN
from agent_eval_schema.integrations.mlflow.prepare import ReducedInputsWarning
from agent_eval_schema.integrations.mlflow.records import TAG_PREFIX
from agent_eval_schema.render.printable import as_text
from tests.conftest import DATA, SAMPLES, Row
from tests.helpers.mlflow_store import mlflow_store, without_its_warnings
from tests.helpers.scores import scores_view
from tests.integrations.mlflow.test_prepare import BREAKS, broken

GOLDEN = DATA / "golden" / "scores.txt"
ROWS: list[Row] = [{"request": q, "response": a} for q, a in (("a", "x"), ("b", "yy"), ("c", "zzz"))]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, no_runs: Path) -> Iterator[Any]:
    """The real MLflow with an experiment on a new store."""
    folder = tmp_path_factory.mktemp("mlflow")
    with mlflow_store(folder, no_runs, "evaluate") as found:
        yield found


@pytest.fixture
def mlflow(store: Any) -> Iterator[Any]:
    """The store with its experiment as the current one, whatever a test before did."""
    home = store.get_tracking_uri()
    store.set_experiment("evaluate")
    yield store
    while store.active_run() is not None:
        store.end_run()
    store.set_tracking_uri(home)
    store.set_experiment("evaluate")  # also for tests that use the store without this fixture


def evaluated(data: Any, *arguments: Any, **options: Any) -> EvalResult:
    with without_its_warnings():
        return evaluate_eval_set(data, *arguments, **options)


def made(function: Callable[..., Any]) -> Any:
    """A scorer of a function, as users write it with @scorer."""
    with without_its_warnings():
        from mlflow.genai.scorers import scorer

        return scorer(function)


def length(outputs: Any) -> int:
    return len(outputs)


def ok(messages: Any) -> str:
    return f"{len(messages)} messages"


def new(mlflow: Any) -> tuple[int, ...]:
    return tuple(int(part) for part in mlflow.__version__.split(".")[:2])


# ---------------------------------------------------------------------------------------------------------------------
# scores and reasons


@pytest.mark.usefixtures("mlflow")
def test_every_row_has_a_score_or_a_reason_in_order() -> None:
    rows = [*ROWS, {"request": " ", "response": "blank"}, {"request": "d"}, {"request": "e", "response": "vvvv"}]
    found = evaluated(rows, [made(length)])
    assert found.scores["length"].tolist() == [1, 2, 3, None, None, 4]
    reasons = found.reasons["length"].tolist()
    assert reasons[:3] == [None, None, None]
    assert reasons[3].startswith("the row is invalid: AE")
    assert reasons[4].startswith("the row is invalid: AE")
    assert list(found.scores.index) == list(range(6))
    assert found.metrics_table.columns.tolist() == ["request", "response", "length/score", "length/reason"]
    assert repr(found) == "<EvalResult: 6 rows, 1 metrics: 4 of 6 rows scored>"


def ids_of_traces(mlflow: Any, found: EvalResult) -> dict[str, tuple[str | None, str | None]]:
    """client_request_id and the tag of each trace, by what was asked."""
    traces = mlflow.search_traces(run_id=found.run_id, return_type="list")
    given = {t.info.trace_id: json.dumps(t.data.spans[0].inputs) for t in traces}
    return {
        given[t.info.trace_id]: (t.info.client_request_id, t.info.tags.get(f"{TAG_PREFIX}request_id")) for t in traces
    }


def test_the_id_of_a_row_is_beside_its_scores_and_on_its_trace(mlflow: Any) -> None:
    ids = ["first", None, "third"]
    frame = pd.DataFrame([{**row, "request_id": id} for row, id in zip(ROWS, ids, strict=True)], index=list("xyz"))
    static, ran = evaluated(frame, [made(length)]), evaluated(frame, [made(length)], ok)
    for found in (static, ran):
        assert found.scores["request_id"].tolist() == found.metrics_table["request_id"].tolist() == ids
        assert found.scores.index.tolist() == found.reasons.index.tolist() == ["x", "y", "z"]
        assert found.reasons["request_id"].tolist() == ids
        asked = [json.dumps({"messages": [{"role": "user", "content": row["request"]}]}) for row in ROWS]
        assert ids_of_traces(mlflow, found) == {q: (id, id) for q, id in zip(asked, ids, strict=True)}
    assert frame[["response"]].join(static.scores)["length"].to_dict() == {"x": 1, "y": 2, "z": 3}


def test_a_copied_trace_keeps_its_id(mlflow: Any) -> None:
    """mlflow's copy has none, and a tag of an earlier evaluation, on another row, means nothing."""
    frame = pd.DataFrame([{**row, "request_id": f"id {row['request']}"} for row in ROWS])
    before = evaluated(frame, [made(length)], ok)
    traces = [t.to_json() for t in mlflow.search_traces(run_id=before.run_id, return_type="list")]
    mlflow.set_experiment("copies")
    found = evaluated(pd.DataFrame({"trace": traces}), [made(length)])
    if found.scores["length"].notna().all():  # not with mlflow up to 3.5
        assert found.scores["request_id"].tolist() != frame["request_id"].tolist()  # the newest trace comes first
    ids = {id for id, _ in ids_of_traces(mlflow, found).values()}
    assert ids == set(frame["request_id"])
    assert all(id == tag and id[3:] in asked for asked, (id, tag) in ids_of_traces(mlflow, found).items())


def test_rows_that_ask_the_same_are_not_mistaken_for_each_other(mlflow: Any) -> None:
    """Which of them a call was for nobody can tell: the trace has no id rather than that of another row."""
    rows = [{**ROWS[0], "request_id": id} for id in "ab"]
    found = evaluated(rows, [made(length)], ok)
    traces = mlflow.search_traces(run_id=found.run_id, return_type="list")
    assert [t.info.client_request_id for t in traces] == [None, None]


@pytest.mark.usefixtures("mlflow")
def test_the_reason_of_an_invalid_row_names_its_codes() -> None:
    rows = [*ROWS, {"request": 7.5, "response": "x", "expected_facts": "one text"}]
    found = evaluated(rows, [made(length)])
    codes = [i.code for i in found.report.iter_issues() if i.row == 3 and i.severity == "error"]
    assert len(codes) > 1
    assert all(code in found.reasons.at[3, "length"] for code in codes)


@pytest.mark.usefixtures("mlflow")
def test_a_scorer_that_raises_costs_no_other_score() -> None:
    def picky(outputs: Any) -> bool:
        if outputs == "yy":
            raise ValueError("I do not like\nthis one")
        return True

    found = evaluated(ROWS, [made(picky), made(length)])
    assert found.scores["picky"].tolist() == [True, None, True]
    assert found.reasons.at[1, "picky"] == "the scorer raised an exception: I do not like\\nthis one"
    assert found.scores["length"].tolist() == [1, 2, 3]


@pytest.mark.usefixtures("mlflow")
def test_what_scorers_of_ones_own_may_return() -> None:
    with without_its_warnings():
        from mlflow.entities import Feedback

    def flag(outputs: Any) -> bool:
        return bool(outputs == "x")

    def word(outputs: Any) -> str:
        return "long" if len(outputs) > 1 else "short"

    def judged(outputs: Any) -> Any:
        return Feedback(value=len(outputs) / 2, rationale="half of it")

    def several(outputs: Any) -> Any:
        return [Feedback(name="first", value=outputs[0]), Feedback(name="last", value=outputs[-1])]

    def nothing() -> None:
        return None

    found = evaluated(ROWS[:2], [made(f) for f in (flag, word, judged, several, nothing)])
    assert found.scores.to_dict("list") == {
        "flag": [True, False],
        "word": ["short", "long"],
        "judged": [0.5, 1.0],
        "several": [None, None],
        "nothing": [None, None],
        "first": ["x", "y"],
        "last": ["x", "y"],
    }
    assert found.reasons["nothing"].tolist() == ["the scorer gave no score"] * 2


def test_a_skipped_row_says_what_it_lacks(mlflow: Any) -> None:
    if new(mlflow) < (3, 17):
        pytest.skip("an older mlflow hands over no recorded trace, and keeps no reasons")
    uri = [{"doc_uri": "a"}]
    rows = [ROWS[0], {**ROWS[1], "retrieved_context": uri, "expected_retrieved_context": uri}]
    found = evaluated(rows)
    assert found.scores["document_recall"].tolist() == [None, 1.0]
    assert "the row lacks expected_retrieved_context" in found.reasons.at[0, "document_recall"]
    assert found.summary_metrics["document_recall/mean"] == 1.0
    assert {type(v) for name, v in found.summary_metrics.items() if name != "row_count"} == {float}


@pytest.mark.usefixtures("mlflow")
def test_a_mean_of_mlflow_has_the_same_interval_in_every_form() -> None:
    rows = [{**ROWS[0], "request": f"question number {i // 2}"} for i in range(12)]
    varied = [{**row, "response": "a" * (1 + i % 5)} for i, row in enumerate(rows)]
    found = evaluated(varied, [made(length)])
    assert found.standard_errors()["units"].item() == 6
    low, high = found.confidence_interval("length")
    assert json.loads(found.to_json())["intervals"]["length"]["low"] == low
    assert f"{low:.3g} to {high:.3g}" in found.to_html()


@pytest.mark.usefixtures("mlflow")
def test_an_evaluation_in_any_form(every_input: Callable[[list[Row]], Any]) -> None:
    found = evaluated(every_input(ROWS[:2]), [made(length)])
    assert found.scores["length"].tolist() == [1, 2]


# ---------------------------------------------------------------------------------------------------------------------
# the app


@pytest.mark.parametrize("traced", [False, True])
def test_the_app_is_run_on_each_row_once(traced: bool, mlflow: Any) -> None:
    asked = []

    def app(question: str) -> str:
        asked.append(question)
        return question * 2

    found = evaluated(ROWS, [made(length), made(exact)], mlflow.trace(app) if traced else app, inputs="question")
    assert sorted(asked) == ["a", "b", "c"]
    assert [len(t.data.spans) for t in mlflow.search_traces(run_id=found.run_id, return_type="list")] == [1, 1, 1]
    assert found.scores["length"].tolist() == [2, 2, 2]
    assert found.scores["exact"].tolist() == ["aa", "bb", "cc"]


def exact(outputs: Any) -> Any:
    return outputs


@pytest.mark.parametrize("broken", ["a", "b"])
@pytest.mark.usefixtures("mlflow")
def test_an_app_that_raises_costs_its_row_only(broken: str) -> None:
    def app(question: str) -> str:
        if question == broken:
            raise RuntimeError("out of tokens")
        return question

    def strict(outputs: Any) -> int:
        return len(outputs)

    def lenient(outputs: Any) -> bool:
        return outputs is not None

    found = evaluated(ROWS, [made(strict), made(lenient)], app, inputs="question")
    row = "abc".index(broken)
    assert found.scores["strict"].tolist() == [None if i == row else 1 for i in range(3)]
    assert found.reasons.at[row, "strict"] == "predict_fn raised an exception: out of tokens"
    assert found.scores["lenient"].tolist() == [i != row for i in range(3)]  # a scorer may score that too
    assert found._headline == f"1 of 3 calls failed (row {row}); 2 of 3 rows scored by strict"
    assert f"\n⚠ {found._headline}: strict 1, lenient 0.667\n" in found.to_text(width=120)


def test_a_failed_call_is_a_failure_and_is_named_by_its_id(mlflow: Any) -> None:
    def app(question: str) -> str:
        if question == "b":
            raise RuntimeError("out of tokens")
        return question

    rows = [{"request_id": f"r-{row['request']}", **row} for row in ROWS]
    with without_its_warnings():
        found = evaluate_eval_set(rows, predict_fn=app, inputs="question")
    assert found.scores["failure"].tolist() == [0, 1, 0]
    assert found.summary_metrics["failure/mean"] == pytest.approx(1 / 3)
    assert found._headline.startswith("1 of 3 calls failed (row r-b); ")
    assert " 3 rows scored" in found._headline
    page = found.to_html()
    assert page.index('class="tag error">failed</span> <span class="path">r-b</span>') < page.index(">r-a</span>")
    assert "<dt>response</dt>" in page  # what predict_fn returned
    logged = mlflow.get_run(found.run_id).data.metrics
    assert {name: logged[f"{name}/scored"] for name in found.scored} == found.scored
    assert found.scored["failure"] == 3
    assert found.scored.get("pii_detection", 2) == 2  # a scorer of newer versions of mlflow


@pytest.mark.usefixtures("mlflow")
def test_an_app_with_other_parameters_is_told_before_it_is_run() -> None:
    def app(question: str, tone: str = "kind") -> str:
        return question + tone

    said = r"^predict_fn accepts question, tone, but the inputs of the rows are messages: .* \"question\"$"
    with pytest.raises(EvalSetError, match=said):
        evaluated(ROWS, [made(exact)], app)
    rows = [{"inputs": {"q": "a"}}, {"inputs": {"question": "b"}}]
    found = evaluated(rows, [made(exact)], app)  # one row can
    assert found.scores["exact"].tolist() == [None, "bkind"]
    assert "unexpected keyword argument 'q'" in found.reasons.at[0, "exact"]


@pytest.mark.usefixtures("mlflow")
def test_the_stream_of_a_logged_request_is_not_asked_for() -> None:
    logged = {"messages": [{"role": "user", "content": "a"}], "stream": True, "stream_options": {"include_usage": True}}

    def app(messages: list[dict[str, str]]) -> str:
        return messages[-1]["content"] + "!"

    def streaming(messages: list[dict[str, str]], stream: bool) -> str:
        return f"{messages[-1]['content']} {stream}"

    assert evaluated([{"inputs": logged}], [made(exact)], app).scores["exact"].tolist() == ["a!"]
    assert evaluated([{"inputs": logged}], [made(exact)], streaming).scores["exact"].tolist() == ["a True"]
    assert "stream" in logged


class Asked:
    """An app that is an object, as agents of many frameworks are."""

    async def __call__(self, question: str) -> str:
        return question


async def waiting(question: str) -> str:
    await asyncio.sleep(0)
    return question


APPS = {
    "traced": lambda mlflow: mlflow.trace(lambda question: question, span_type="AGENT"),
    "async": lambda _: waiting,
    "async and traced": lambda mlflow: mlflow.trace(waiting, span_type="AGENT"),
    "an async object": lambda _: Asked(),
    "a function that makes coroutines": lambda _: lambda question: waiting(question),
    "a partial": lambda _: partial(waiting),
}


@pytest.mark.parametrize("kind", APPS)
def test_an_app_that_is_traced_or_async(kind: str, mlflow: Any) -> None:
    found = evaluated(ROWS, [made(exact)], APPS[kind](mlflow), inputs="question")
    assert found.scores["exact"].tolist() == ["a", "b", "c"]
    assert "async app" not in [thread.name for thread in threading.enumerate()]


def test_what_an_async_app_calls_stands_below_its_span(mlflow: Any) -> None:
    @mlflow.trace(span_type="TOOL")  # type: ignore[untyped-decorator]
    async def search(query: str) -> str:
        return await waiting(query)

    async def app(question: str) -> str:
        return str(await search(question))

    found = evaluated(ROWS, [made(exact)], app, inputs="question")
    for trace in mlflow.search_traces(run_id=found.run_id, return_type="list"):
        root, tool = sorted(trace.data.spans, key=lambda s: s.parent_id is not None)
        assert (root.name, root.parent_id, tool.name, tool.parent_id) == ("app", None, "search", root.span_id)


@pytest.mark.usefixtures("mlflow")
def test_all_rows_of_an_async_app_share_a_loop() -> None:
    """As a client that they share needs it."""
    loops = set()

    async def app(question: str) -> str:
        loops.add(asyncio.get_running_loop())
        return question

    evaluated(ROWS, [made(exact)], app, inputs="question")
    assert len(loops) == 1


@pytest.mark.usefixtures("mlflow")
def test_an_async_app_that_hangs_or_raises_costs_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_GENAI_EVAL_ASYNC_TIMEOUT", "1")

    async def app(question: str) -> str:
        await asyncio.sleep(60 if question == "b" else 0)
        if question == "c":
            raise RuntimeError("out of tokens")
        return question

    found = evaluated(ROWS, [made(exact)], app, inputs="question")
    assert found.scores["exact"].tolist() == ["a", None, None]
    assert found.reasons["exact"].tolist()[1:] == [
        "predict_fn raised an exception: no answer within 1 seconds (MLFLOW_GENAI_EVAL_ASYNC_TIMEOUT)",
        "predict_fn raised an exception: out of tokens",
    ]


@pytest.mark.usefixtures("mlflow")
def test_the_scorers_of_an_app_that_is_yet_to_run() -> None:
    found = evaluated([{"request": "a"}, {"request": "b"}], predict_fn=lambda messages: messages[0]["content"])
    assert found.scores["failure"].tolist() == [0.0, 0.0]
    assert all(seconds >= 0 for seconds in found.scores["latency_seconds"])


# ---------------------------------------------------------------------------------------------------------------------
# what mlflow keeps


def test_what_the_run_holds(mlflow: Any) -> None:
    found = evaluated([*ROWS, {"request": "d"}], [made(length)])
    run = mlflow.get_run(found.run_id)
    assert run.data.metrics["eval_set/rows"] == 4
    assert run.data.metrics["eval_set/invalid_rows"] == 1
    assert run.data.metrics["eval_set/errors"] == found.report.count("error") >= 1
    assert run.data.metrics["length/mean"] == found.summary_metrics["length/mean"] == 2
    assert len(run.inputs.dataset_inputs) == 1
    assert run.info.status == "FINISHED"
    report = json.loads(mlflow.artifacts.load_text(f"{run.info.artifact_uri}/eval_set/report.json"))
    assert report == json.loads(found.report.to_json())
    assert "<html" in mlflow.artifacts.load_text(f"{run.info.artifact_uri}/eval_set/report.html")
    assert mlflow.active_run() is None


def test_the_active_run_is_used_and_left_open(mlflow: Any) -> None:
    with mlflow.start_run() as run:
        assert evaluated(ROWS, [made(length)]).run_id == run.info.run_id
        assert mlflow.active_run().info.run_id == run.info.run_id


@pytest.mark.parametrize("given", [None, "2"])
def test_the_settings_of_mlflow_are_as_before(given: str | None, mlflow: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert mlflow.get_tracking_uri().startswith("sqlite")
    name = "MLFLOW_GENAI_EVAL_MAX_WORKERS"
    monkeypatch.delenv(name, raising=False)
    if given:
        monkeypatch.setenv(name, given)
    before = dict(os.environ)

    def workers(outputs: Any) -> str:  # noqa: ARG001 (mlflow hands over what the signature names)
        return os.environ[name]

    assert set(evaluated(ROWS, [made(workers)]).scores["workers"]) == {given or "4"}
    assert dict(os.environ) == before


def test_the_settings_are_as_before_an_evaluation_that_fails(mlflow: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: Any) -> None:
        raise mlflow.exceptions.MlflowException(f"not with {os.environ['MLFLOW_GENAI_EVAL_MAX_WORKERS']} workers")

    monkeypatch.setattr(mlflow.genai, "evaluate", refuse)
    before = dict(os.environ)
    with pytest.raises(EvalSetError, match="mlflow could not evaluate: not with 4 workers"):
        evaluated(ROWS, [made(length)])
    assert dict(os.environ) == before


# ---------------------------------------------------------------------------------------------------------------------
# traces


def recorded(mlflow: Any, answers: str) -> list[str]:
    """Traces of an app in the current experiment: one a letter, which is question and answer."""

    @mlflow.trace  # type: ignore[untyped-decorator]
    def app(question: str) -> str:
        return question

    found = []
    with without_its_warnings():  # else the first trace of a process is lost to one
        for letter in answers:
            app(letter)
            found.append(mlflow.get_trace(mlflow.get_last_active_trace_id()).to_json())
    return found


def identities(mlflow: Any, run_id: str) -> list[str]:
    traces = mlflow.search_traces(run_id=run_id, return_type="list", include_spans=False)
    return sorted(t.info.trace_id for t in traces)


def test_traces_of_this_store_are_linked_not_copied(mlflow: Any) -> None:
    if new(mlflow) < (3, 17):
        pytest.skip("an older mlflow copies")
    texts = recorded(mlflow, "pqr")
    found = evaluated([{"trace": text} for text in texts], [made(exact)])
    assert found.scores["exact"].tolist() == ["p", "q", "r"]
    assert identities(mlflow, found.run_id) == sorted(json.loads(text)["info"]["trace_id"] for text in texts)


def test_traces_of_another_store_with_the_same_experiment_id_are_not_lost(mlflow: Any, tmp_path: Path) -> None:
    home = mlflow.get_tracking_uri()
    place = mlflow.get_experiment_by_name("evaluate").experiment_id
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'other.db'}")
    assert mlflow.set_experiment("elsewhere").experiment_id == place
    [foreign] = recorded(mlflow, "f")
    mlflow.set_tracking_uri(home)
    mlflow.set_experiment("evaluate")
    own = recorded(mlflow, "o")
    found = evaluated([{"trace": foreign}, {"trace": own[0]}], [made(exact)])
    assert found.scores["exact"].tolist() == ["f", "o"]


def test_a_trace_that_no_store_takes_costs_no_row(mlflow: Any) -> None:
    """What mlflow's reader lets pass is not yet what its store can keep."""
    if new(mlflow) < (3, 6):
        pytest.skip("this mlflow scores no recorded traces")
    path = DATA / "traces" / "mlflow_v3_6_0.json"
    text = path.read_text(encoding="utf-8")
    own_ids = (text.replace(json.loads(text)["info"]["trace_id"], f"tr-{i:032x}") for i in range(len(BREAKS)))
    rows: list[Row] = [
        {"trace": json.dumps(broken(json.loads(t), how))} for t, how in zip(own_ids, BREAKS, strict=True)
    ]
    rows += [{**ROWS[0], "custom_expected": {"a": None}}]
    found = evaluated(rows, [made(length)])
    assert found.scores["length"].notna().tolist() == found.report.valid_mask.tolist() == [True] * len(rows)


def test_rows_that_share_a_trace(mlflow: Any) -> None:
    [text] = recorded(mlflow, "s")
    found = evaluated([{"request_id": str(i), "trace": text} for i in range(3)], [made(exact)])
    assert found.scores["exact"].tolist() == ["s", "s", "s"]


@pytest.mark.parametrize("odd", [float("nan"), float("inf")])
@pytest.mark.parametrize("ran", [False, True])
def test_a_score_that_is_no_number_costs_no_other_score(odd: float, ran: bool, mlflow: Any) -> None:
    def broken(outputs: Any) -> float:
        return odd if outputs == "b" else 1.0

    rows = [{"request": q, "response": q} for q in "abc"]
    if new(mlflow) < (3, 17):
        with pytest.raises(EvalSetError, match=r"^mlflow could not evaluate: a score is NaN or infinite, "):
            evaluated(rows, [made(length), made(broken)])
        return
    found = evaluated(
        rows, [made(length), made(broken)], (lambda question: question) if ran else None, inputs="question"
    )
    assert found.scores["length"].tolist() == [1, 1, 1]
    assert found.scores["broken"].tolist() == [1.0, None if odd != odd else odd, 1.0]
    assert found.reasons.at[1, "broken"] == ("the scorer gave no score" if odd != odd else None)


@pytest.mark.usefixtures("mlflow")
def test_names_of_scorers_are_looked_at_before_they_score() -> None:
    with without_its_warnings():
        from mlflow.genai.scorers import scorer

        named = [scorer(length, name=name) for name in ("fine", "two\nlines", "fine")]
    with pytest.raises(EvalSetError, match=r"^the scorer 'two\\nlines' needs another name, for its metrics: "):
        evaluated(ROWS, named[:2])
    with pytest.raises(EvalSetError, match=r"^two scorers are named 'fine'"):
        evaluated(ROWS, [named[0], named[2]])


def test_scores_of_an_earlier_evaluation_are_not_taken(mlflow: Any) -> None:
    said: list[int | None] = [1]

    def fickle(outputs: Any) -> int | None:  # noqa: ARG001 (mlflow hands over what the signature names)
        return said[0]

    rows = [{"trace": text} for text in recorded(mlflow, "t")]
    assert evaluated(rows, [made(fickle)]).scores["fickle"].tolist() == [1]
    said[0] = None
    again = evaluated(rows, [made(fickle)])
    assert again.scores["fickle"].tolist() == [None]
    assert again.reasons["fickle"][0].startswith("the scorer gave no score")


def test_rows_with_and_without_traces(mlflow: Any, samples: Path) -> None:
    found = evaluated(str(samples / "search_traces.jsonl"))
    told = ["hands it no trace of the data" in (reason or "") for reason in found.reasons["failure"]]
    assert told == found.scores["failure"].isna().tolist() == [new(mlflow) < (3, 6)] * len(told)
    assert found.report.ok
    assert len(found.scores) == found.report.row_count
    assert (found.scores.notna() | found.reasons.notna()).all(axis=None)


def test_copying_traces_does_not_wait_for_a_queue(mlflow: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_ENABLE_ASYNC_TRACE_LOGGING")
    seen = []

    def setting(outputs: Any) -> bool:  # noqa: ARG001 (mlflow hands over what the signature names)
        seen.append(os.environ.get("MLFLOW_ENABLE_ASYNC_TRACE_LOGGING"))
        return True

    rows = [{**row, "retrieved_context": [{"doc_uri": "a"}]} for row in ROWS]
    assert evaluated(rows, [made(setting)]).scores["setting"].tolist() == [True] * 3
    assert seen == ["false"] * 3
    assert "MLFLOW_ENABLE_ASYNC_TRACE_LOGGING" not in os.environ
    monkeypatch.setenv("MLFLOW_ENABLE_ASYNC_TRACE_LOGGING", "false")
    mlflow.tracing.disable()  # the next test traces at once again
    mlflow.tracing.enable()


# ---------------------------------------------------------------------------------------------------------------------
# errors


def one_line(error: pytest.ExceptionInfo[EvalSetError]) -> str:
    said = str(error.value)
    assert "\n" not in said
    return said


@pytest.mark.usefixtures("mlflow")
def test_no_scorers() -> None:
    with pytest.raises(EvalSetError, match="no scorer can score any row"):
        evaluated(ROWS, [])


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (lambda: "all", 'scorers must be "supported" or a list of scorers, got'),
        (lambda: made(length), "scorers must be \"supported\" or a list of scorers, got the scorer 'length' alone"),
        (lambda: None, 'scorers must be "supported" or a list of scorers, got null'),
        (
            lambda: [made(length), length],
            "'length' is not an MLflow scorer: expected what mlflow's decorator @scorer makes",
        ),
        (lambda: [type(made(length))], "is not an MLflow scorer: expected an instance of it"),
    ],
)
def test_what_is_no_list_of_scorers_is_told_before_a_run_is_open(given: Any, told: str, mlflow: Any) -> None:
    runs = len(mlflow.search_runs())
    with pytest.raises(EvalSetError, match=told):
        evaluated(ROWS, given())
    assert len(mlflow.search_runs()) == runs


@pytest.mark.usefixtures("mlflow")
def test_scorers_may_come_from_a_generator() -> None:
    assert evaluated(ROWS, (s for s in [made(length)])).scores["length"].tolist() == [1, 2, 3]


@pytest.mark.usefixtures("mlflow")
def test_an_app_that_cannot_be_called() -> None:
    with pytest.raises(EvalSetError, match="predict_fn must be a function, got the text 'app'"):
        evaluated(ROWS, [made(length)], "app")


@pytest.mark.usefixtures("mlflow")
def test_no_valid_row() -> None:
    """Rows of requests alone are valid, but there is nothing to score."""
    told = r'no row to evaluate: 2 of 2 are invalid \(most often AE223 missing-output\): .*\(data, outputs="provided"\)'
    with pytest.raises(EvalSetError, match=told):
        evaluated([{"request": "a"}, {"request": "b"}], [made(length)])


def test_a_store_that_cannot_be_reached(mlflow: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    mlflow.set_tracking_uri("http://127.0.0.1:1")
    with pytest.raises(EvalSetError) as error:
        evaluated(ROWS, [made(length)])
    assert one_line(error).startswith("mlflow could not evaluate: API request to ")
    assert "127.0.0.1" in one_line(error)


def test_an_experiment_that_was_deleted(mlflow: Any) -> None:
    gone = mlflow.set_experiment("gone").experiment_id
    mlflow.MlflowClient().delete_experiment(gone)
    with pytest.raises(EvalSetError) as error:
        evaluated(ROWS, [made(length)])
    assert one_line(error).startswith("mlflow could not evaluate: ")
    assert "deleted" in one_line(error)


def run_python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, **environment}
    )
    return done.stdout


def test_without_mlflow_one_line_names_the_extra() -> None:
    code = """
import sys
sys.modules["mlflow"] = None
from agent_eval_schema import EvalSetError, evaluate_eval_set
try:
    evaluate_eval_set([{"request": "a", "response": "b"}])
except EvalSetError as error:
    print(error)
"""
    said = run_python(code)
    assert said.startswith("this needs mlflow 3.3 or newer (")
    assert said.endswith("pip install -U 'agent-eval-schema[mlflow]'\n")
    assert said.count("\n") == 1


# ---------------------------------------------------------------------------------------------------------------------
# many rows


@pytest.mark.usefixtures("mlflow")
def test_200_rows_on_sqlite_are_all_scored() -> None:
    def last(outputs: Any) -> str:
        return str(outputs)[-1]

    uri = [{"doc_uri": "a"}]
    truth = {"retrieved_context": uri, "expected_retrieved_context": uri}
    rows = [{"request": f"q{i}", "response": "x" * (i + 1), **(truth if i % 50 == 0 else {})} for i in range(200)]
    with without_its_warnings():
        from agent_eval_schema.integrations.mlflow.scorers import DocumentRecall

        recall = DocumentRecall()
    found = evaluated(rows, [made(length), made(last), recall])
    assert found.scores["length"].tolist() == list(range(1, 201))
    assert found.scores["last"].tolist() == ["x"] * 200
    assert (found.scores["document_recall"].notna() | found.reasons["document_recall"].notna()).all()


# ---------------------------------------------------------------------------------------------------------------------
# as text


def test_judges_that_are_skipped_for_want_of_a_model_are_reported_with_their_rows() -> None:
    calls = [{"tool_name": "f", "tool_input": {}}]
    rows = [
        {"request": "a", "response": "x", "expected_response": "x"},
        {"request": "b", "response": "y", "predicted_trajectory": calls, "reference_trajectory": calls},
    ]
    found = evaluated(rows)
    with without_its_warnings():
        table = supported_scorers(rows).table.set_index("scorer")
    skipped = table[table["why_left_out"].str.startswith("needs a judge")]["rows"].to_dict()
    assert found.without_judge == skipped
    assert (skipped["Correctness"], skipped["RelevanceToQuery"]) == (1, 2)
    last = found.to_text(width=200).split("with the rows that each could score: ")[1].partition("\n\n")[0]
    last = " ".join(last.split())
    assert last == ", ".join(f"{name} {count}" for name, count in skipped.items())
    assert "Skipped" not in evaluated(ROWS, [made(length)]).to_text()


def test_a_conversation_that_inputs_leave_out_is_reported() -> None:
    messages = [{"role": role, "content": "a"} for role in ("user", "assistant", "user")]
    data = [{"request": {"messages": messages}, "response": "x"}, ROWS[0]]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        evaluate_eval_set(data, [made(length)], inputs="question")
    (told,) = [w for w in found if issubclass(w.category, ReducedInputsWarning)]
    assert '1 of 2 rows (at the positions 0): inputs="messages" keeps all of them' in str(told.message)
    assert told.filename == __file__


def test_the_table_of_the_sample_data(mlflow: Any) -> None:
    if new(mlflow) < (3, 17):
        pytest.skip("an older mlflow has fewer scorers, and keeps no reasons")
    text = evaluated(str(SAMPLES / "good.jsonl")).to_text(width=120)
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_a_reason_is_shown_safely_and_of_many_the_first() -> None:
    reasons = pd.DataFrame({"judge": [f"why\x1b {i}" for i in range(REASONS_SHOWN + 3)]})
    lines = as_text(scores_view(reasons.map(lambda _: None), reasons), width=80).splitlines()
    assert "1 row without a score: why\\x1b 0" in lines
    assert "… and 3 other reasons" in lines


def test_a_result_has_standard_errors_and_is_the_past_of_a_profile(mlflow: Any, tmp_path: Path) -> None:
    if new(mlflow) < (3, 4):
        pytest.skip("MLflow 3.3 scores none of these rows")
    truths = [["u1"], ["u1", "u2"], ["u2"], ["u3", "u1"]]
    rows = [
        {
            "request_id": f"r{i}",
            "request": f"What is the {word} of the house?",
            "response": "It is.",
            "retrieved_context": [{"doc_uri": "u1", "content": "one"}],
            "expected_retrieved_context": [{"doc_uri": uri} for uri in uris],
        }
        for i, (word, uris) in enumerate(zip(["color", "price", "age", "owner"], truths, strict=True))
    ]
    with without_its_warnings():
        result = evaluate_eval_set(rows, [scorers.DocumentRecall()])
    errors = result.standard_errors().to_dict("records")[0]
    # The first two rows share a document: √(3/2 · (1/2² + 1/2² + 0²)) / 4
    assert (errors["rows"], errors["units"], errors["mean"]) == (4, 3, 0.5)
    assert errors["std_error"] == pytest.approx((1.5 * (0.25 + 0.25)) ** 0.5 / 4)
    result.write(tmp_path / "scores.csv")
    result.save(tmp_path / "report.json")
    for past in (result, tmp_path / "scores.csv", tmp_path / "report.json"):
        found = profile_eval_set(rows, past=past).metrics.set_index("metric")
        recall = found.loc["retrieval/ground_truth/document_recall"]
        assert (recall["mean"], recall["measured"]) == (0.5, True)  # 1, 1/2, 0, 1/2
        assert recall["deviation"] == pytest.approx((0.5 / 3) ** 0.5)
