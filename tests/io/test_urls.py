"""What a server answers, and what it may cost: each is an error that says what it is."""

import http.server
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from agent_eval_schema import EvalSetError, validate_eval_set
from agent_eval_schema.io import remote

pytest.importorskip("aiohttp")
ROW = b'{"request": "Hi", "response": "Hello"}\n'


class _Answers(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_: Any) -> None: ...

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        kind = self.path.strip("/").partition(".")[0]
        self.send_response(int(kind) if kind.isdigit() else 200)
        self.end_headers()
        if self.command == "HEAD" or kind.isdigit():
            return
        try:
            if kind == "stalled":
                time.sleep(5)
            for _ in range({"endless": 1_000_000, "slow": 50}.get(kind, 1)):
                self.wfile.write(ROW * (1_000 if kind == "endless" else 1))
                time.sleep(0.1 if kind == "slow" else 0)
        except OSError:  # the reader has enough
            pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    found = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    found.daemon_threads = True
    threading.Thread(target=found.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{found.server_port}"
    found.shutdown()
    found.server_close()


SAID = {
    "401": r"the server answers 401 \(Unauthorized\): log in, or set the credentials of its driver",
    "403": r"the server answers 403 \(Forbidden\): ask for access",
    "404": r"the server answers 404 \(Not Found\): check the address",
    "500": r"the server answers 500 \(Internal Server Error\): try again later",
    "endless": "expected at most 3 MB, got more: set AGENT_EVAL_SCHEMA_URL_MB to more",
    "slow": "expected an answer within 1 s: set AGENT_EVAL_SCHEMA_URL_SECONDS to more",
    "stalled": "the server sent nothing for 2 s: try again later",
}


@pytest.mark.parametrize("kind", SAID)
def test_an_answer_is_named(kind: str, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_EVAL_SCHEMA_URL_MB", "3")
    monkeypatch.setenv("AGENT_EVAL_SCHEMA_URL_SECONDS", "1")
    monkeypatch.setattr(remote, "STALLED", 2)
    with pytest.raises(EvalSetError, match=rf"{kind}\.jsonl: cannot be read: {SAID[kind]}$"):
        validate_eval_set(f"{server}/{kind}.jsonl")


def test_a_good_answer_is_read(server: str) -> None:
    assert validate_eval_set(f"{server}/good.jsonl").row_count == 1
