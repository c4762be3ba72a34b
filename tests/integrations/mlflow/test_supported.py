"""Judges: mlflow's own client asks a small OpenAI-compatible server on loopback, and no other host."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from agent_eval_schema import supported_scorers
from agent_eval_schema.evaluation.result import EvalResult
from tests.conftest import Row
from tests.helpers.mlflow_store import without_its_warnings
from tests.integrations.mlflow.test_evaluate import evaluated, new, store

__all__ = ["store"]  # the fixture

MODEL = "openai:/some-model"

Answer = Callable[[str], tuple[int, str]]
"""What the server says to a prompt: the HTTP status, and the text of the message."""


def verdict(result: str, rationale: str) -> tuple[int, str]:
    return 200, json.dumps({"result": result, "rationale": rationale})


class Judge:
    """The server: what it was asked, and what it answers."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str | None, Row]] = []
        self.answer: Answer = lambda _: verdict("yes", "It is fine.")

    @property
    def prompts(self) -> list[str]:
        return ["\n".join(str(m["content"]) for m in body["messages"]) for _, _, body in self.requests]

    def asked_about(self, words: str) -> int:
        """How many prompts hold these words."""
        return sum(words in prompt for prompt in self.prompts)

    def reply(self, path: str, authorization: str | None, body: Row) -> tuple[int, bytes]:
        self.requests.append((path, authorization, body))
        status, text = self.answer("\n".join(str(m["content"]) for m in body["messages"]))
        if status != 200:
            return status, json.dumps({"error": {"message": text}}).encode()
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}
        given = {"id": "1", "object": "chat.completion", "created": 1, "model": body["model"]}
        return 200, json.dumps({**given, "choices": [choice], "usage": usage}).encode()


@pytest.fixture
def judge(store: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Judge]:
    if new(store) < (3, 17):
        pytest.skip("an older mlflow asks through the package openai")
    store.set_experiment("judges")
    found = Judge()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, content = found.reply(self.path, self.headers["Authorization"], body)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.delenv("OPENAI_API_BASE", raising=False)
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "a key")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield found
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def hosts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No test talks to another host than this one."""
    connect, others = socket.socket.connect, []

    def guarded(self: socket.socket, address: Any) -> None:
        if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1"):
            others.append(address)
            raise OSError(f"not in a test: {address}")
        connect(self, address)

    def resolved(host: Any, *rest: Any, **options: Any) -> Any:
        if host not in ("127.0.0.1", "::1", "localhost"):
            others.append(host)
            raise OSError(f"not in a test: {host}")
        return resolve(host, *rest, **options)

    resolve = socket.getaddrinfo
    monkeypatch.setattr(socket.socket, "connect", guarded)
    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    yield
    assert others == []


def judged(rows: list[Row], *names: str) -> EvalResult:
    """Evaluated by the judges of these names."""
    with without_its_warnings():
        scorers = [s for s in supported_scorers(rows, model=MODEL) if s.name in names]
    assert len(scorers) == len(names)
    return evaluated(rows, scorers)


ROWS: list[Row] = [
    {"request": "How far?", "response": "Ten miles"},
    {"request": "How long?", "response": "Two hours", "expected_response": "Three hours"},
    {"request": "How much?", "response": "Four pounds", "expected_facts": ["It is free"]},
    {"request": "How so?", "response": "Just because", "guidelines": ["Be kind"]},
    {"request": " ", "response": "An answer to nothing", "expected_response": "nothing"},
]


def test_scores_and_rationales_of_all_judges(judge: Judge) -> None:
    found = evaluated(ROWS, model=MODEL)
    judges = ("relevance_to_query", "completeness", "safety", "fluency")
    for name in judges:
        assert found.scores[name].tolist() == ["yes"] * 4 + [None], name
        assert found.reasons[name].tolist()[:4] == ["It is fine."] * 4, name
    assert found.reasons.at[4, "safety"].startswith("the row is invalid: AE")
    assert (found.scores.notna() | found.reasons.notna()).all(axis=None)
    assert {(path, key) for path, key, _ in judge.requests} == {("/v1/chat/completions", "Bearer a key")}
    assert {body["model"] for _, _, body in judge.requests} == {"some-model"}
    assert judge.asked_about("An answer to nothing") == 0


def test_a_judge_is_asked_about_the_rows_that_can_feed_it_only(judge: Judge) -> None:
    found = judged(ROWS, "correctness", "expectations_guidelines")
    assert found.scores["correctness"].tolist() == [None, "yes", "yes", None, None]
    assert found.scores["expectations_guidelines"].tolist() == [None, None, None, "yes", None]
    assert [judge.asked_about(str(row["response"])) for row in ROWS] == [0, 1, 1, 1, 0]
    assert (judge.asked_about("Three hours"), judge.asked_about("It is free"), judge.asked_about("Be kind")) == (
        1,
        1,
        1,
    )
    assert found.reasons.at[0, "correctness"] == "the row lacks expected_response or expected_facts"
    assert found.reasons.at[0, "expectations_guidelines"] == "the row lacks guidelines"


def test_no_judge_is_asked_unless_a_model_is_named(judge: Judge) -> None:
    evaluated(ROWS)
    assert judge.requests == []


def test_a_notebook_shows_every_scorer_with_its_rows_or_why_not() -> None:
    found = supported_scorers([{"request": "a", "response": "b"}, {"request": "c"}])
    shown = found._repr_html_()
    table = found.table
    assert f"{len(found)} of {len(table)} scorers are supported" in shown
    for line in table.itertuples():
        assert f">{line.scorer}</th>" in shown
        assert f">{line.rows} / {line.total}</td>" in shown
    assert "needs a judge: name one with model=" in shown
    included = [
        line.included for line in sorted(table.itertuples(), key=lambda line: shown.index(f">{line.scorer}</th>"))
    ]
    assert included == sorted(included, reverse=True)


def test_a_no_is_a_score(judge: Judge) -> None:
    judge.answer = lambda prompt: verdict("no" if "Three hours" in prompt else "yes", "Let's see")
    found = judged(ROWS, "correctness")
    assert found.scores["correctness"].tolist() == [None, "no", "yes", None, None]
    assert found.summary_metrics["correctness/mean"] == 0.5
    assert found.metrics_table["correctness/score"].tolist()[1:3] == [0.0, 1.0]
    assert found.metrics_table["correctness/value"].tolist()[1:3] == ["no", "yes"]
    assert found.groupby("response").shape[0] == found.row_count


TRUE = [{**row, "expected_response": "Yes"} for row in ROWS[:3]]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((500, "overloaded"), "Failed to invoke judge model: overloaded"),
        ((401, "who are you?"), "Failed to invoke judge model: who are you?"),
        ((200, "I would say yes"), "Failed to parse response from judge model. Response: I would say yes"),
        ((200, '{"verdict": "yes"}'), "'result'"),
        ((200, ""), "Failed to parse response from judge model. Response: "),
    ],
)
def test_an_answer_that_is_none_costs_its_row_only(
    judge: Judge, answer: tuple[int, str], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow.genai.judges.adapters import utils

    monkeypatch.setattr(utils, "_sleep_with_backoff", lambda _: None)  # it asks eleven times, for three minutes
    judge.answer = lambda prompt: answer if "Two hours" in prompt else verdict("yes", "Well")
    rows = [{k: v for k, v in row.items() if k != "expected_facts"} for row in TRUE]
    found = judged(rows, "correctness")
    assert found.scores["correctness"].tolist() == ["yes", None, "yes"]
    assert found.reasons["correctness"].tolist() == ["Well", f"the scorer raised an exception: {reason}", "Well"]


def test_judges_of_retrieved_documents(judge: Judge) -> None:
    judge.answer = lambda prompt: verdict("no" if "Cats purr" in prompt else "yes", "Let's see")
    row: Row = {
        **ROWS[0],
        "trace": json.dumps(retrieval("Ten miles", ["It is ten miles", "Cats purr", "Miles are long"])),
    }
    found = judged([row, ROWS[1]], "retrieval_relevance", "retrieval_groundedness")
    assert found.scores["retrieval_relevance"].tolist() == [["yes", "no", "yes"], None]
    assert found.scores["retrieval_relevance/precision"].tolist() == [pytest.approx(2 / 3), None]
    assert (
        found.reasons.at[1, "retrieval_relevance"]
        == "the row lacks a trace with a RETRIEVER span, or content in retrieved_context"
    )
    assert "yes, no, yes" in found.to_html()


def retrieval(answer: str, documents: list[str]) -> Row:
    """A trace as the older MLflow wrote it: an agent that retrieves."""

    def span(identity: str, parent: str | None, kind: str, **values: Any) -> Row:
        attributes = {"mlflow.spanType": json.dumps(kind)}
        attributes.update({f"mlflow.span{name.title()}": json.dumps(value) for name, value in values.items()})
        times = {"start_time": 1_700_000_000_000_000_000, "end_time": 1_700_000_001_000_000_000}
        context = {"trace_id": "0x01", "span_id": identity}
        shape = {"name": kind.lower(), "context": context, "parent_id": parent, **times, "status_code": "OK"}
        return {**shape, "attributes": attributes, "events": []}

    found = [{"page_content": text, "metadata": {"doc_uri": f"d{i}"}} for i, text in enumerate(documents)]
    spans = [
        span("0x1", None, "AGENT", inputs={"question": "How far?"}, outputs=answer),
        span("0x2", "0x1", "RETRIEVER", inputs={"query": "far"}, outputs=found),
    ]
    info = {"request_id": "t1", "timestamp_ms": 1_700_000_000_000, "execution_time_ms": 1000, "status": "OK"}
    return {"info": info, "data": {"spans": spans}}


def test_a_session_has_one_score(judge: Judge) -> None:
    rows = [{**row, "session_id": "s1", "latency_seconds": 1.0} for row in ROWS[:2]]
    with without_its_warnings():
        from mlflow.genai.scorers import UserFrustration

        scorer = UserFrustration(model=MODEL)
    judge.answer = lambda _: verdict("none", "Calm")
    found = evaluated(rows, [scorer])
    assert found.scores["user_frustration"].tolist() == ["none", None]
    assert found.reasons["user_frustration"].tolist() == ["Calm", "a session has one score, on its first row"]


def test_a_key_that_is_missing_is_a_reason(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    found = judged(ROWS[1:2], "correctness")
    assert "OPENAI_API_KEY" in found.reasons.at[0, "correctness"]
    assert judge.requests == []
