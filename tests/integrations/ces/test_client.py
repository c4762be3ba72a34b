"""`update_evaluation` against the SDK's own MCP server, and its REST twin against an HTTP server, both on loopback."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import traceback
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from agent_eval_schema import EvalSetError
from agent_eval_schema.formats.ces.update import import_request, update_request

pytest.importorskip("mcp.server.mcpserver", reason="the server of the tests is that of mcp 2")
from mcp import types
from mcp.shared.exceptions import MCPError

from agent_eval_schema.integrations.ces import client
from agent_eval_schema.integrations.ces.client import update_evaluation
from tests.conftest import PATIENCE
from tests.helpers.ces_server import Refused, Store, Wire, answering, cut, mcp_server, serving, slow

NAME = "projects/p1/locations/us/apps/a1/evaluations/refund"
TOKEN = "ya29.s3cr3t-t0ken"
CALL = {"toolCall": {"tool": "projects/p1/locations/us/apps/a1/tools/get", "args": {"order": None, "n": 1}}}
STORED: dict[str, Any] = {
    "name": NAME,
    "displayName": "Refund",
    "golden": {"turns": [{"steps": [{"userInput": {"text": "Ré fund"}}, {"expectation": CALL}]}]},
    "etag": "e1",
}
REQUEST = update_request(STORED | {"displayName": "Refunds"}, STORED)

FORMS = [(True, True), (True, False), (False, True), (False, False)]
"""Does the server answer as JSON or as SSE, and does it keep sessions?"""


@pytest.fixture(autouse=True)
def _no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "BACKOFF", 0.01)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", client.TOKEN_VARIABLE):
        monkeypatch.delenv(name, raising=False)


class Service:
    """The store, what came over the wire, and the address."""

    def __init__(self, wire: Wire, store: Store, address: str) -> None:
        self.wire, self.store, self.address = wire, store, address

    def update(self, request: Any = REQUEST, **options: Any) -> dict[str, Any]:
        return update_evaluation(request, endpoint=f"{self.address}/mcp", token=TOKEN, **options)

    def failure(self, request: Any = REQUEST, **options: Any) -> str:
        with pytest.raises(EvalSetError) as raised:
            self.update(request, **options)
        said = str(raised.value)
        assert "\n" not in said
        assert raised.value.__context__ is None
        assert TOKEN not in said
        return said


def served(*, json_response: bool = True, stateless: bool = True) -> Iterator[Service]:
    store, answers = Store(STORED), {"structured": True}
    server = mcp_server(store, answers)
    wire = Wire(server.streamable_http_app(json_response=json_response, stateless_http=stateless), answers, store)
    with serving(wire) as address:
        yield Service(wire, store, address)


@pytest.fixture
def service() -> Iterator[Service]:
    yield from served()


@pytest.fixture(params=FORMS, ids=["json", "json-sessions", "sse", "sse-sessions"])
def every_service(request: pytest.FixtureRequest) -> Iterator[Service]:
    as_json, stateless = request.param
    yield from served(json_response=as_json, stateless=stateless)


# ---------------------------------------------------------------------------------------------------------------------
# success


@pytest.mark.parametrize("structured", [True, False])
def test_an_update_is_made_and_what_is_stored_comes_back(every_service: Service, structured: bool) -> None:
    every_service.wire.answers["structured"] = structured
    assert every_service.update() == STORED | {"displayName": "Refunds", "etag": "e2"}
    assert every_service.store.updates == ["displayName"]


def test_what_arrives_is_the_request_of_the_seed(every_service: Service) -> None:
    every_service.update()
    [call] = every_service.wire.calls()
    meta = call["params"].pop("_meta", None)
    assert not meta
    assert call | {"id": 1} == REQUEST  # nulls in arguments too; the SDK counts its own ids
    headers = [headers for method, headers, _ in every_service.wire.seen if method == "POST"]
    assert {h["authorization"] for h in headers} == {f"Bearer {TOKEN}"}
    assert {h["accept"] for h in headers} == {"application/json, text/event-stream"}
    assert {h["content-type"] for h in headers} == {"application/json"}


def test_the_raw_request_of_the_seed_is_taken_as_curl_sends_it(service: Service) -> None:
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    raw = urllib.request.Request(f"{service.address}/mcp", json.dumps(REQUEST).encode(), headers)
    with urllib.request.urlopen(raw) as answer:
        result = json.load(answer)["result"]
    assert result["structuredContent"]["displayName"] == "Refunds"
    assert service.wire.calls() == [REQUEST]


def test_it_works_where_an_event_loop_runs(service: Service) -> None:
    async def cell() -> dict[str, Any]:
        return service.update()

    assert asyncio.run(cell())["etag"] == "e2"


def test_a_session_is_ended_and_no_stream_is_opened(every_service: Service) -> None:
    every_service.update()
    methods = [method for method, _, _ in every_service.wire.seen]
    sessions = any("mcp-session-id" in headers for _, headers, _ in every_service.wire.seen)
    assert methods == ["POST", "POST", "POST"] + ["DELETE"] * sessions


# ---------------------------------------------------------------------------------------------------------------------
# failures that the server tells


def test_a_failure_of_the_tool(every_service: Service) -> None:
    every_service.store.evaluation["etag"] = "e9"
    assert every_service.failure() == (
        "update_evaluation failed: 'ABORTED: the etag is not that of the stored evaluation': the evaluation has "
        "changed since it was read (etag): read it again, and make the update from that"
    )
    assert every_service.store.updates == []


def test_a_jsonrpc_error(every_service: Service) -> None:
    def refuse() -> Any:
        raise MCPError(code=-32602, message=f"bad \x1b[2Jmask\nfor {TOKEN}")

    every_service.wire.answers["call"] = refuse
    said = every_service.failure()
    assert (
        said
        == "update_evaluation failed (-32602): 'bad \\x1b[2Jmask for ***': correct the fields that the server names"
    )


def test_an_error_within_the_server_leaves_it_open(service: Service) -> None:
    def fail() -> Any:
        raise MCPError(code=-32603, message="Internal error")

    service.wire.answers["call"] = fail
    assert service.failure().endswith(f"'Internal error': {client.UNSURE}")


def test_an_answer_without_an_evaluation(service: Service) -> None:
    text = types.TextContent(type="text", text="done")
    service.wire.answers["call"] = lambda: types.CallToolResult(content=[text])
    assert "the update was accepted, but the answer holds no evaluation ('done')" in service.failure()


# ---------------------------------------------------------------------------------------------------------------------
# failures of the way


@pytest.mark.parametrize("method", ["initialize", "tools/call"])
def test_503_without_a_body_is_sent_again_once(service: Service, method: str) -> None:
    service.wire.faults[method] = [answering(503)]
    assert service.update()["etag"] == "e2"
    assert service.store.updates == ["displayName"]
    service.wire.faults[method] = [answering(503), answering(503), answering(503)]
    assert f"answered 503: {client.NOTHING_CHANGED}" in service.failure()
    assert len(service.wire.faults[method]) == 1


def test_503_with_a_body_may_have_been_made(service: Service) -> None:
    service.wire.faults["tools/call"] = [answering(503, b"upstream reset")]
    assert service.failure().endswith(f"answered 503: 'upstream reset': {client.UNSURE}")
    assert len(service.wire.calls()) == 1
    service.wire.faults["initialize"] = [answering(503, b"upstream reset")]  # no write: sent again
    assert service.update()["displayName"] == "Refunds"


def test_retry_after_is_waited_for(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    sleep = client.anyio.sleep

    async def note(seconds: float) -> None:
        waited.append(seconds)
        await sleep(0)

    monkeypatch.setattr(client.anyio, "sleep", note)
    for asked, seconds in (("3", 3), ("999", client.LONGEST_BACKOFF), ("Thu, 01 Jan", client.BACKOFF)):
        service.wire.faults["tools/call"] = [answering(503, retry_after=asked)]
        service.update(update_request({**STORED, "etag": None, "displayName": "B"}, mask="displayName"))
        assert waited.pop() == seconds


def test_a_connection_that_ends_after_sending_is_not_tried_again(every_service: Service) -> None:
    every_service.wire.faults["tools/call"] = [cut]
    said = every_service.failure()
    assert "ended before its answer did" in said
    assert said.endswith(client.UNSURE)
    assert len(every_service.wire.calls()) == 1
    assert every_service.store.updates == ["displayName"]  # it had been made


def test_a_slow_answer_is_not_waited_for(service: Service) -> None:
    service.wire.faults["tools/call"] = [slow(1.5)]
    said = service.failure(timeout=0.75)
    assert "no answer from" in said
    assert said.endswith(client.UNSURE)
    assert len(service.wire.calls()) == 1


def test_a_slow_handshake_has_changed_nothing(service: Service) -> None:
    service.wire.faults["initialize"] = [slow(1.5)]
    assert service.failure(timeout=0.75).endswith(client.NOTHING_CHANGED)
    assert service.store.updates == []


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (answering(401, b'{"error": {"code": 401, "message": "expired", "status": "UNAUTHENTICATED"}}'),
         "answered 401: 'expired UNAUTHENTICATED': set CES_ACCESS_TOKEN"),
        (answering(403, b"<html>no</html>"), "answered 403: '<html>no</html>': the account of the token"),
        (answering(404), "answered 404: check the name, and the endpoint"),
        (answering(500, b"INVALID_ARGUMENT"), client.UNSURE),
        (answering(418, TOKEN.encode()), "answered 418: '***': no change was made"),
        (answering(200, b"<html>log in</html>", content_type="text/html"), "MCP message ('<html>log in</html>')"),
        (answering(200, b"{", content_type="application/json"), "not an MCP message ('{')"),
        (answering(200, b"event: ping\n\n", content_type="text/event-stream"), "not an MCP message"),
        (answering(202), "not an MCP message"),
        (answering(303, location=f"https://x/{TOKEN}"), "points to 'https://x/***', where the token must not go"),
    ],
)  # fmt: skip
def test_what_a_call_may_be_answered(service: Service, fault: Any, words: str) -> None:
    service.wire.faults["tools/call"] = [fault]
    assert words in service.failure()
    assert len(service.wire.calls()) == 1


def test_a_redirect_does_not_get_the_token(service: Service) -> None:
    for other in served():
        target = f"{other.address}/mcp"
        for status in (301, 302, 307, 308):
            service.wire.faults["initialize"] = [answering(status, location=target)]
            assert f"points to '{target}', where the token must not go: no change was made" in service.failure()
        assert other.wire.seen == []


def test_no_server(service: Service) -> None:
    gone = service.address
    with pytest.raises(EvalSetError) as raised:
        update_evaluation(REQUEST, endpoint=f"{gone.rpartition(':')[0]}:1/mcp", token=TOKEN)
    assert "no connection to http://127.0.0.1:1/mcp" in str(raised.value)
    assert str(raised.value).endswith(client.NOTHING_CHANGED)


# ---------------------------------------------------------------------------------------------------------------------
# before anything is sent


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"endpoint": "http://ces.example.com/mcp"}, "not encrypted"),
        ({"endpoint": "http://127.0.0.1.example.com/mcp"}, "not encrypted"),
        ({"endpoint": "https://ces.[REGION].rep.googleapis.com/mcp"}, "not an address"),
        ({"endpoint": "https://ces.example.com:port/mcp"}, "not an address"),
        ({"endpoint": "ces.example.com"}, "not an endpoint"),
        ({"endpoint": "https://me:s3cr3t@ces.example.com/mcp"}, "without user, query and fragment"),
        ({"endpoint": "https://ces.example.com/mcp?key=s3cr3t"}, "without user, query and fragment"),
        ({"token": None}, "no access token: set CES_ACCESS_TOKEN"),
        ({"token": "s3cr3t\r\nx-evil: 1"}, "characters that no token has"),
        ({"token": "s3cr3té"}, "characters that no token has"),
    ],
)
def test_what_is_not_sent(options: dict[str, Any], words: str) -> None:
    with pytest.raises(EvalSetError) as raised:
        update_evaluation(REQUEST, **{"endpoint": "http://127.0.0.1:1", "token": TOKEN} | options)
    assert words in str(raised.value)
    assert "s3cr3t" not in str(raised.value)


def test_only_an_update_is_sent() -> None:
    request = copy.deepcopy(REQUEST)
    del request["params"]["arguments"]["updateMask"]
    with pytest.raises(EvalSetError, match="a call of update_evaluation with an evaluation and a mask"):
        update_evaluation(request, token=TOKEN)


def test_the_token_may_come_from_the_environment(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(client.TOKEN_VARIABLE, f"{TOKEN}\n")
    update_evaluation(REQUEST, endpoint=f"{service.address}/mcp")
    assert service.wire.seen[0][1]["authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize("fault", [cut, answering(500, TOKEN.encode()), answering(302, location="https://x/")])
def test_the_token_is_shown_nowhere(
    service: Service, fault: Any, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    service.wire.faults["tools/call"] = [fault]
    with caplog.at_level(logging.DEBUG), pytest.raises(EvalSetError) as raised:
        service.update()
    shown = "".join(traceback.format_exception(raised.value)) + repr(raised.value) + caplog.text
    shown += "".join(str(record.args) for record in caplog.records) + "".join(capfd.readouterr())
    assert TOKEN not in shown
    assert "POST" in caplog.text  # the libraries do log


def test_nothing_is_written_to_the_terminal(service: Service, capfd: pytest.CaptureFixture[str]) -> None:
    service.wire.faults["tools/call"] = [cut]
    service.failure()
    assert capfd.readouterr() == ("", "")


# ---------------------------------------------------------------------------------------------------------------------
# REST


class Rest:
    """A small HTTP server that answers PATCH from the store, or as `behave` says."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.seen: list[tuple[str, str, dict[str, str], Any]] = []
        self.behave: Callable[[BaseHTTPRequestHandler], bool] = lambda _: False
        rest = self

        class Handler(BaseHTTPRequestHandler):
            def do_PATCH(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                rest.seen.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                if not rest.behave(self):
                    mask = parse_qs(urlsplit(self.path).query)["updateMask"][0]
                    try:
                        send(self, 200, rest.store.update(body, mask))
                    except Refused as error:
                        send(self, 409, {"error": {"code": 409, "message": str(error), "status": "ABORTED"}})

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"


def send(handler: BaseHTTPRequestHandler, status: int, body: Any = None, **headers: str) -> None:
    content = b"" if body is None else json.dumps(body).encode()
    handler.send_response(status)
    for name, value in {"content-length": str(len(content)), **headers}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(content)


@pytest.fixture
def rest() -> Iterator[Rest]:
    found = Rest(Store(STORED))
    thread = Thread(target=found.server.serve_forever, args=(0.02,))
    thread.start()
    yield found
    found.server.shutdown()
    thread.join(10)
    found.server.server_close()
    assert not thread.is_alive()


def over_rest(rest: Rest, **options: Any) -> dict[str, Any]:
    return update_evaluation(REQUEST, endpoint=rest.address + "/", token=TOKEN, rest=True, **options)


def test_the_rest_twin_updates(rest: Rest) -> None:
    assert over_rest(rest) == STORED | {"displayName": "Refunds", "etag": "e2"}
    [(method, path, headers, body)] = rest.seen
    assert (method, path) == ("PATCH", f"/v1beta/{NAME}?updateMask=displayName")
    assert headers["authorization"] == f"Bearer {TOKEN}"
    assert headers["content-type"] == "application/json"
    assert body == REQUEST["params"]["arguments"]["evaluation"]


def test_the_rest_twin_tells_a_conflict(rest: Rest) -> None:
    rest.store.evaluation["etag"] = "e9"
    with pytest.raises(EvalSetError, match=r"answered 409: 'ABORTED: the etag .* read it again"):
        over_rest(rest)


def test_the_rest_twin_tries_a_503_once_more(rest: Rest) -> None:
    def busy(handler: BaseHTTPRequestHandler) -> bool:
        if len(rest.seen) == 1:
            send(handler, 503)
        return len(rest.seen) == 1

    rest.behave = busy
    assert over_rest(rest)["etag"] == "e2"
    assert len(rest.seen) == 2


def test_the_rest_twin_does_not_repeat_what_was_dropped(rest: Rest) -> None:
    def drop(handler: BaseHTTPRequestHandler) -> bool:
        rest.store.update(rest.seen[-1][3], "displayName")
        handler.close_connection = True
        handler.connection.shutdown(2)
        return True

    rest.behave = drop
    with pytest.raises(EvalSetError) as raised:
        over_rest(rest)
    assert str(raised.value).endswith(client.UNSURE)
    assert len(rest.seen) == 1


def test_the_rest_twin_does_not_follow(rest: Rest) -> None:
    rest.behave = lambda handler: send(handler, 308, location="http://127.0.0.1:1/x") or True
    with pytest.raises(EvalSetError, match=r"points to 'http://127.0.0.1:1/x', where the token must not go"):
        over_rest(rest)


def test_the_rest_twin_reads_no_endless_answer(rest: Rest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "LARGEST_ANSWER", 10)
    with pytest.raises(EvalSetError, match="sent more than 10 bytes"):
        over_rest(rest)


# ---------------------------------------------------------------------------------------------------------------------
# what is stored, and imports
APP = "projects/p1/locations/us/apps/a1"
GOLDEN = (
    "display_name,turn_index,action_type,text_content\r\nOne,,,\r\n,1,INPUT_TEXT,Hi\r\nTwo,,,\r\n,1,INPUT_TEXT,Hé\r\n"
)


def failed(call: Callable[[], Any]) -> str:
    with pytest.raises(EvalSetError) as raised:
        call()
    said = str(raised.value)
    assert "\n" not in said
    assert raised.value.__context__ is None
    assert TOKEN not in said
    return said


def test_what_is_stored_is_read(service: Service) -> None:
    options = {"endpoint": f"{service.address}/", "token": TOKEN}
    found = client.get_evaluation(NAME, **options)
    assert found == STORED
    assert update_request({**found, "displayName": "B"}, found)["params"]["arguments"]["evaluation"]["etag"] == "e1"
    service.store.imported = [{"name": f"{APP}/evaluations/i{i}", "displayName": str(i)} for i in range(3)]
    assert client.list_evaluations(APP, **options) == [STORED, *service.store.imported]
    assert [method for method, _, _ in service.wire.seen] == ["GET"] * 5  # an evaluation per page
    assert {headers["authorization"] for _, headers, _ in service.wire.seen} == {f"Bearer {TOKEN}"}


def test_an_import_is_waited_for(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "POLLING", 0.01)
    options = {"endpoint": service.address, "token": TOKEN}
    request = import_request(GOLDEN, conflict="SKIP")
    result = client.import_evaluations(APP, request, **options)
    assert [evaluation["displayName"] for evaluation in result["evaluations"]] == ["One", "Two"]
    assert service.store.imports == [request]
    assert [e["displayName"] for e in client.list_evaluations(APP, **options)] == ["Refund", "One", "Two"]
    result = client.import_evaluations(APP, import_request(GOLDEN.replace("One", "refuse")), **options)
    assert (result["importFailureCount"], result["errorMessages"]) == (1, ["refuse: refused"])
    assert "@type" not in result


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (3, "INVALID_ARGUMENT"),
        (8, "RESOURCE_EXHAUSTED"),
        (9, "FAILED_PRECONDITION"),
        (10, "ABORTED"),
        (16, "UNAUTHENTICATED"),
    ],
)
def test_an_import_that_fails_is_an_error_with_advice(service: Service, code: int, name: str) -> None:
    body = json.dumps({"done": True, "error": {"code": code, "message": "line 2: no turn"}}).encode()
    service.wire.faults["POST"] = [answering(200, body)]
    options = {"endpoint": service.address, "token": TOKEN}
    said = failed(lambda: client.import_evaluations(APP, import_request(GOLDEN), **options))
    assert said == f"the import failed: 'line 2: no turn {name}': {client.ADVICE[name]}"


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    ("fault", "unsure"),
    [
        (cut, True),
        (answering(200, b"[1]"), True),
        (answering(200, b'{"name": "projects/p1/../secrets"}'), True),
        (answering(500, TOKEN.encode()), True),
        (answering(403, b"no"), False),
        (answering(302, location="http://127.0.0.1:1/"), False),
    ],
)
def test_the_outcome_of_an_import_is_known_or_not(
    service: Service, method: str, fault: Any, unsure: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "POLLING", 0.01)
    service.wire.faults[method] = [fault]
    said = failed(
        lambda: client.import_evaluations(
            APP, import_request(GOLDEN), endpoint=service.address, token=TOKEN, timeout=PATIENCE
        )
    )
    assert said.endswith(client.UNSURE_IMPORT) == (unsure or method == "GET")  # GET: only the question failed
    assert len(service.store.imports) == (method == "GET")


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (answering(404), "answered 404: check the name, and the endpoint"),
        (answering(200, b"[]"), "expected a page of evaluations, got '[]': nothing was read"),
        (answering(200, b'{"evaluations": [1]}'), "expected a list of evaluations"),
        (answering(200, b'{"evaluations": {"a": 1}}'), "expected a list of evaluations"),
        (answering(200, b'{"nextPageToken": 7}'), "expected a new nextPageToken, got '7': nothing was read"),
        (answering(307, location="http://127.0.0.1:1/"), "where the token must not go: nothing was read"),
        (cut, "ended before its answer did"),
    ],
)
def test_what_is_no_list_is_not_read(service: Service, fault: Any, words: str) -> None:
    service.wire.faults["GET"] = [fault]
    assert words in failed(lambda: client.list_evaluations(APP, endpoint=service.address, token=TOKEN))


def test_pages_that_never_end_are_an_error(service: Service) -> None:
    page = answering(200, b'{"evaluations": [], "nextPageToken": "a"}')
    service.wire.faults["GET"] = [page] * 5
    said = failed(lambda: client.list_evaluations(APP, endpoint=service.address, token=TOKEN))
    assert "expected a new nextPageToken, got 'a'" in said
    assert len(service.wire.faults["GET"]) == 3


@pytest.mark.parametrize("name", ["", "e", f"{APP}/evaluations/..", f"{APP}/evaluations/a?b", f"{APP}\n", None, 7])
def test_only_the_name_of_a_resource_is_asked_for(name: Any) -> None:
    for call in (
        client.get_evaluation,
        client.list_evaluations,
        lambda n: client.import_evaluations(n, {"gcsUri": "g"}),
    ):
        with pytest.raises(EvalSetError, match=r"(expected the name as|`name` is missing: expected) projects"):
            call(name)


def test_only_an_import_is_sent() -> None:
    with pytest.raises(EvalSetError, match="expected what import_request returns"):
        client.import_evaluations(APP, {"csv": "x"}, token=TOKEN)
