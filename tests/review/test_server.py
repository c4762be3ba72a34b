"""The server: nobody but the page of its own address is answered, and every answer is that of the session."""

import http.client
import json
import os
import shlex
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from agent_eval_schema import EvalSetError, review_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.review.review import Review, open_session
from agent_eval_schema.review.server import Answers, ReviewServer
from agent_eval_schema.review.session import Session
from tests.conftest import PATIENCE, SAMPLES
from tests.review.test_session import ROWS, labeled, written

pytest.importorskip("uvicorn")


@pytest.fixture
def review(tmp_path: Path) -> Iterator[Review]:
    found = review_eval_set(written(tmp_path, ROWS), reviewer="maria")
    yield found
    found.stop()


def ask(
    review: Review, path: str, body: Any = None, *, token: str | None = None, **headers: str
) -> tuple[int, Any, dict[str, str]]:
    server = review._server
    sent = {"X-Review-Token": server.token if token is None else token, **headers}
    raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)) as connection:
        connection.request("GET" if body is None else "POST", path, raw, sent)
        answer = connection.getresponse()
        text, found = answer.read(), {k.lower(): v for k, v in answer.getheaders()}
    return answer.status, json.loads(text) if "json" in found["content-type"] else text.decode(), found


def test_the_page_has_no_data_and_allows_only_its_own_script(review: Review) -> None:
    status, page, headers = ask(review, "/", token="")
    assert status == 200
    assert "Which documents?" not in page
    assert review._server.token not in page
    policy = headers["content-security-policy"]
    for part in ("default-src 'none'", "script-src 'sha256-", "style-src 'sha256-", "connect-src 'self'",
                 "frame-ancestors 'none'", "base-uri 'none'"):  # fmt: skip
        assert part in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("headers", "token", "why"),
    [
        ({"Host": "evil.example.com"}, None, "own address"),  # DNS rebinding
        ({"Host": "127.0.0.1:1"}, None, "own address"),
        ({"Origin": "https://evil.example.com"}, None, "page itself"),
        ({"Origin": "null"}, None, "page itself"),
        ({}, "", "token"),
        ({}, "x" * 32, "token"),
        ({}, "é", "token"),
    ],
)
@pytest.mark.parametrize("path", ["/api/overview", "/api/row/0", "/api/write", "/api/nothing"])
def test_others_are_refused(review: Review, headers: dict[str, str], token: str | None, why: str, path: str) -> None:
    body = {"path": "/tmp/x.jsonl"} if path == "/api/write" else None
    status, answer, _ = ask(review, path, body, token=token, **headers)
    assert status == 403
    assert why in answer["error"]


def test_localhost_is_an_address_of_it(review: Review) -> None:
    host = f"localhost:{review._server.port}"
    assert ask(review, "/api/overview", Host=host, Origin=f"http://{host}")[0] == 200


def test_only_loopback_listens(review: Review) -> None:
    assert review._server._socket.getsockname()[0] == "127.0.0.1"


def test_a_change_is_saved_when_it_is_answered(review: Review, tmp_path: Path) -> None:
    change = {"row": 0, "path": "expected_facts", "old": None, "new": ["f"]}
    status, answer, _ = ask(review, "/api/change", {"steps": [{"id": "1", "changes": [change]}]})
    assert (status, answer["rows"], answer["states"]) == (200, [0], {"0": {"expected_facts": ["f"]}})
    assert "one_truth" in answer["check"]["fields"]
    lines = (tmp_path / "rows.jsonl.maria.review.jsonl").read_text().splitlines()
    assert [json.loads(line)["new"] for line in lines] == [["f"]]
    assert ask(review, "/api/change", {"steps": [{"id": "2", "changes": [{**change, "new": ["g"]}]}]})[0] == 409
    assert ask(review, "/api/undo", {})[1]["rows"] == [0]
    assert ask(review, "/api/row/0")[1]["state"] == {}


def test_a_kind_of_fix_the_search_and_the_written_file(review: Review, tmp_path: Path) -> None:
    kind = ask(review, "/api/row/5")[1]["fixes"][0]["kind"]
    assert ask(review, "/api/kind", {"kind": kind, "choice": "accept"})[1]["rows"] == [5, 6]
    assert ask(review, "/api/search?q=DOCUMENTS")[1] == {"rows": [1]}
    preview = ask(review, "/api/preview?what=mine")[1]
    assert preview["summary"] == ["2 rows changed: request 2"]
    assert (preview["out"], preview["count"]) == ("rows.maria.reviewed.jsonl", 2)
    assert [(c["row"], c["field"]) for c in preview["changes"]] == [(5, "request"), (6, "request")]
    out = tmp_path / "out.jsonl"
    done = ask(review, "/api/write", {"path": str(out), "what": "mine"})[1]
    assert (done["valid_before"], done["valid"], done["rows"]) == (5, 7, 8)
    assert done["next"][:2] == [f"agent-eval-schema validate {out}", f"agent-eval-schema metrics {out}"]
    assert {"metric": "response/llm_judged/relevance_to_query/rating", "before": 5, "after": 7} in done["gained"]
    assert review.rows().shape[0] == 8
    before = out.stat()
    assert ask(review, "/api/write", {"path": str(out), "what": "mine"})[1] == {"exists": str(out)}
    assert out.stat() == before
    assert ask(review, "/api/write", {"path": str(out), "what": "mine", "replace": True})[1]["path"] == str(out)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/change", b"no json"),
        ("/api/change", {"steps": 3}),
        ("/api/change", {"steps": [{"id": "1", "changes": [{"row": 0}]}]}),
        ("/api/change", {"steps": [{"id": "1", "changes": [{"row": "x", "path": "note"}]}]}),
        ("/api/change", {"steps": [{"id": "1", "changes": [{"row": 0, "path": "expected_facts", "new": 3}]}]}),
        ("/api/check", {"row": 0, "state": {"documents": [1]}}),
        ("/api/row/99", None),
        ("/api/row/-1", None),
        ("/api/row/" + "9" * 5_000, None),
        ("/api/preview?what=x", None),
        ("/api/kind", {"kind": "x", "choice": "perhaps"}),
        ("/api/write", {"path": "rows.doc", "what": "mine"}),
        ("/api/write", {"path": "rows.jsonl"}),
    ],
)
def test_a_request_that_makes_no_sense_is_an_error(review: Review, path: str, body: Any) -> None:
    status, answer, _ = ask(review, path, body)
    assert status == 400
    assert answer["error"]
    assert review.progress["changes"] == 0


def test_a_request_that_is_too_large_is_refused(review: Review) -> None:
    assert ask(review, "/api/check", b" " * (9 << 20))[0] == 413


def test_two_windows_at_once_lose_nothing(review: Review) -> None:
    def work(rows: range) -> None:
        for row in rows:
            step = {"id": f"{row}", "changes": [{"row": row, "path": "note", "new": f"{row}"}]}
            ask(review, "/api/change", {"steps": [step]})

    threads = [threading.Thread(target=work, args=(range(start, 8, 2),)) for start in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert review.progress["changes"] == 8


def test_a_disk_that_takes_nothing_is_told(review: Review, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: str, _: bytes) -> int:
        raise EvalSetError(f"{path}: not saved: No space left on device")

    monkeypatch.setattr("agent_eval_schema.review.journal.append_synced", full)
    step = {"id": "1", "changes": [{"row": 0, "path": "note", "new": "x"}]}
    status, answer, _ = ask(review, "/api/change", {"steps": [step]})
    assert status == 507
    assert "No space left on device" in answer["error"]
    assert ask(review, "/api/row/0")[1]["state"] == {}


def test_a_port_that_is_taken_is_an_error(review: Review) -> None:
    with pytest.raises(EvalSetError, match=f"--port {review._server.port}: cannot be used"):
        ReviewServer(review._session, port=review._server.port)


def test_the_command_prints_the_address_and_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)

    def interrupted(server: ReviewServer) -> None:
        (address,) = opened  # an argument of the browser, which every user of the machine can see
        page = Path(unquote(urlsplit(address).path))
        assert server.token not in address
        assert f"url={server.url}" in page.read_text()
        assert (page.stat().st_mode & 0o777, page.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        raise KeyboardInterrupt

    monkeypatch.setattr(ReviewServer, "wait", interrupted)
    path = written(tmp_path, ROWS)
    assert main(["review", path, "--reviewer", "maria", "--queue", "fixes"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("http://127.0.0.1:")
    assert f"{path}.maria.review.jsonl" in said.err
    assert main(["review", path, "--queue", "x"]) == 2
    assert "queue: expected one of rows, truth" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "value", "why"),
    [
        ("overlap", -3, "--overlap: expected a whole number of at least 0; got -3"),
        ("port", -1, "--port -1: cannot be used: expected a port from 0 to 65535"),
        ("port", 99_999, "--port 99999: cannot be used: expected a port from 0 to 65535"),
    ],
)
def test_a_number_that_is_none_of_an_option_is_refused(
    option: str, value: int, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, ROWS)
    assert main(["review", path, f"--{option}", str(value), "--no-browser"]) == 2
    assert why in capsys.readouterr().err
    with pytest.raises(EvalSetError, match=f"{option}.*{value}"):
        review_eval_set(path, **{option: value})


def test_journals_are_merged_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = written(tmp_path, ROWS), tmp_path / "out.jsonl"
    from agent_eval_schema.formats.opening import open_source

    for by, facts in (("maria", ["f"]), ("jonas", ["g"])):
        work = open_session(open_source(path), by)
        for row, decided in ((0, ["same"]), (1, facts)):
            work.apply([{"row": row, "path": "expected_facts", "new": decided}])
            work.apply([{"row": row, "path": "status", "new": "submitted"}])
    command = ["review", path, "--merge", f"{path}.*.review.jsonl", "--out", str(out)]
    assert main(command) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "2 reviewers: 2 rows submitted"
    assert said[1] == "expected_facts: 1 the same, 1 only jonas, 1 only maria (2 rows that several submitted)"
    assert said[2] == "1 row excluded: the reviewers differ; the queue `together` has them"
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert rows[0]["expected_facts"] == ["same"]
    assert "expected_facts" not in rows[1]
    assert main([*command, "--merge", "nothing.review.jsonl"]) == 2
    assert "--merge nothing.review.jsonl: there is no such journal" in capsys.readouterr().err


def test_two_reviewers_of_one_file_see_each_other(tmp_path: Path) -> None:
    path = written(tmp_path, ROWS)
    (tmp_path / "rows.jsonl.jonas.review.jsonl").write_bytes(
        b"".join(json.dumps(e).encode() + b"\n" for e in _events(labeled("jonas", {1: {"a": True}})))
    )
    review = review_eval_set(path, reviewer="maria")
    try:
        assert ask(review, "/api/row/1")[1]["others"] == []
        changes = [
            {"row": 1, "path": "documents", "new": {"a": False}},
            {"row": 1, "path": "status", "new": "submitted"},
        ]
        assert [
            o["by"] for o in ask(review, "/api/change", {"steps": [{"id": "1", "changes": changes}]})[1]["others"]
        ] == ["jonas"]
        ask(review, "/api/refresh", {})
        queues = {q["name"]: q["rows"] for q in ask(review, "/api/overview")[1]["queues"]}
        assert queues["together"] == [1]
    finally:
        review.stop()


def test_what_i_write_is_mine_and_what_all_agree_on_is_another_file(tmp_path: Path) -> None:
    path = written(tmp_path, ROWS)
    from agent_eval_schema.formats.opening import open_source

    theirs = open_session(open_source(path), "José O'Neil")
    for row, facts in ((0, ["same"]), (1, ["theirs"]), (4, ["only theirs"])):
        theirs.apply([{"row": row, "path": "expected_facts", "new": facts}])
        theirs.apply([{"row": row, "path": "status", "new": "submitted"}])
    review = review_eval_set(path, reviewer="ana@example.com")
    try:
        work = review._session
        assert work.overview()["reviewers"] == ["ana@example.com", "José O'Neil"]
        for row, facts in ((0, ["same"]), (1, ["mine"])):
            work.apply([{"row": row, "path": "expected_facts", "new": facts}])
        work.apply([{"row": 1, "path": "draft:tags", "new": "half"}])
        mine = ask(review, "/api/preview?what=mine")[1]
        assert mine["out"] == "rows.ana@example.com.reviewed.jsonl"
        assert [(c["row"], c["new"]) for c in mine["changes"]] == [(0, '["same"]'), (1, '["mine"]')]
        assert mine["summary"][1] == "1 row with text that is typed and not entered: 1"
        assert review.rows()["expected_facts"].tolist()[:2] == [["same"], ["mine"]]
        agreed = ask(review, "/api/preview?what=agreed")[1]
        assert (agreed["hidden"], agreed["changes"]) == (3, [])
        assert "theirs" not in json.dumps(agreed)
        for row in (0, 1, 4):
            work.apply([{"row": row, "path": "status", "new": "submitted"}])
        agreed = ask(review, "/api/preview?what=agreed")[1]
        assert agreed["out"] == "rows.reviewed.jsonl"
        assert [c["row"] for c in agreed["changes"]] == [0]
        assert "2 rows excluded: the reviewers differ; the queue `together` has them" in agreed["summary"]
    finally:
        review.stop()


def test_reviewers_are_named_by_their_journals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, journals = written(tmp_path, ROWS), []
    for by in ("ana@example.com", "bob@example.com"):
        (tmp_path / f"{by[:3]}.review.jsonl").write_bytes(
            b"".join(json.dumps(e).encode() + b"\n" for e in _events(labeled(by, {1: {"a": True}})))
        )
        journals.append(str(tmp_path / f"{by[:3]}.review.jsonl"))
    assert main(["review", path, "--merge", *journals]) == 0
    assert capsys.readouterr().out.startswith("2 reviewers: 1 row submitted")
    assert main(["review", path, "--merge", journals[0], journals[0]]) == 2
    assert "got ana@example.com, ana@example.com" in capsys.readouterr().err


def test_a_page_finds_the_next_server_of_its_journal(tmp_path: Path) -> None:
    path = written(tmp_path, ROWS)
    urls = []
    for by in ("maria", "maria", "jonas"):
        review = review_eval_set(path, reviewer=by)
        urls.append(review.url)
        review.stop()
    assert urls[0] == urls[1]
    assert urls[2].partition("#")[2] != urls[0].partition("#")[2]
    kept = list((Path(os.environ["XDG_STATE_HOME"]) / "agent-eval-schema").iterdir())
    assert {file.stat().st_mode & 0o777 for file in kept} == {0o600}
    first = review_eval_set(path, reviewer="maria")
    second = review_eval_set(path, reviewer="maria")  # two at once: the same token at another port
    first.stop()
    second.stop()
    assert first.url == urls[0] != second.url
    for file in kept:
        file.chmod(0o644)  # others could have read it
    again = review_eval_set(path, reviewer="maria")
    again.stop()
    assert again.url.partition("#")[2] != urls[0].partition("#")[2]


def _events(journal: Any) -> list[Any]:
    import msgspec

    return [msgspec.to_builtins(event) for event in journal.events]


READINGS: dict[str, tuple[str, list[str]]] = {
    "columns": ('{"frage": "Hi?", "antwort": "x"}\n', ["--columns", "frage=request", "--columns", "antwort=response"]),
    "format": ('{"inputs": {"q": "Hi?"}, "outputs": "x"}\n', ["--format", "mlflow", "--outputs", "provided"]),
    "traces": ((SAMPLES / "search_traces.jsonl").read_text(encoding="utf-8"), ["--format", "search_traces"]),
    "a name": ('{"request": "Hi?", "response": "x"}\n', []),
}


@pytest.mark.parametrize("kind", READINGS)
def test_the_commands_after_writing_run_as_they_are_printed(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text, options = READINGS[kind]
    name = "-my rows.jsonl" if kind == "a name" else "rows.jsonl"
    Path(name).write_text(text, encoding="utf-8")
    served: list[Session] = []
    monkeypatch.setattr("agent_eval_schema.cli.review._serve", lambda session, _: served.append(session) or 0)
    assert main(["review", f"./{name}", "--reviewer", "maria", *options]) == 0
    (session,) = served
    session.apply([{"row": 0, "path": "expected_response", "new": "y"}])
    done = Answers(session).write({"path": name.replace(".", ".out."), "what": "mine"})
    assert [command.split()[1] for command in done["next"]] == ["validate", "metrics", "diff"]
    assert (done["rows"], done["valid"]) == (len(session.reviewed), done["valid_before"])
    for command in done["next"]:
        assert main(shlex.split(command)[1:]) in (0, 1), (command, capsys.readouterr().err)
    assert "+ y" in capsys.readouterr().out or kind == "traces"


@pytest.mark.parametrize("name", ["golden.csv", "evaluation.json"])
def test_evaluations_of_ces_are_refused_with_a_command_that_makes_rows_of_them(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes((SAMPLES / name).read_bytes())
    assert main(["review", name, "--reviewer", "maria", "--no-browser"]) == 2
    refused = capsys.readouterr().err
    assert "expected evaluation rows, got " in refused
    command = refused.strip().rpartition("turns: ")[2]
    assert main(shlex.split(command)[1:]) == 0
    review = review_eval_set("rows.jsonl", reviewer="maria")
    review.stop()
    assert review.progress["rows"]["all"] > 1
    assert main(["validate", name]) in (0, 1)
    assert "agent-eval-schema review" not in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["review", "--help"])
    assert "ces-" not in capsys.readouterr().out
