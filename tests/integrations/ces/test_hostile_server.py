"""A hostile MCP server on loopback cannot crash, fill or hang the client, or have the token shown."""

from __future__ import annotations

import base64
import gzip
import json
import logging
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from urllib.parse import quote

import pytest

pytest.importorskip("mcp.server.mcpserver", reason="the server of the tests is that of mcp 2")

from agent_eval_schema.integrations.ces import client
from tests.conftest import PATIENCE
from tests.helpers.ces_server import Fault, Store, Wire, answering, serving
from tests.integrations.ces.test_client import NAME, REQUEST, STORED, TOKEN, Service, failed, served

JSON, EVENTS = "application/json", "text/event-stream"
RESULT = {"content": [], "structuredContent": {"name": NAME, "displayName": "Refunds"}, "isError": False}


@pytest.fixture
def service() -> Iterator[Service]:
    yield from served()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "BACKOFF", 0.01)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", client.TOKEN_VARIABLE):
        monkeypatch.delenv(name, raising=False)


def replying(
    reply: Callable[[Any], Any], kind: str = JSON, before: tuple[Any, ...] = (), open_for: float = 0.0, **headers: str
) -> Fault:
    """The answer to a message of that ID, as JSON or as an event after others; the stream may stay open."""

    async def fault(wire: Wire, _: Any, __: Any, send: Any) -> None:
        message = wire.seen[-1][2]
        texts = [json.dumps(part) for part in (*before, reply(message["id"]))]
        body = texts[-1] if kind == JSON else "".join(f"event: message\r\ndata: {text}\r\n\r\n" for text in texts)
        named = [
            (b"content-type", kind.encode()),
            *((k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": named})
        await send({"type": "http.response.body", "body": body.encode(), "more_body": True})
        if open_for:
            await client.anyio.sleep(open_for)
        await send({"type": "http.response.body", "body": b""})

    return fault


def good(request_id: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": RESULT}


# ---------------------------------------------------------------------------------------------------------------------
# streams


def test_a_stream_that_stays_open_is_not_waited_for(service: Service) -> None:
    service.wire.faults["tools/call"] = [replying(good, EVENTS, open_for=2 * PATIENCE)]
    assert service.update(timeout=PATIENCE)["displayName"] == "Refunds"


def test_a_question_of_the_server_is_no_failure(service: Service) -> None:
    ping = {"jsonrpc": "2.0", "id": 99, "method": "ping"}
    service.wire.faults["tools/call"] = [replying(good, EVENTS, before=(ping,))]
    assert service.update(timeout=PATIENCE)["displayName"] == "Refunds"


@pytest.mark.parametrize("kind", [JSON, EVENTS])
def test_the_reply_to_another_request_is_not_waited_on(service: Service, kind: str) -> None:
    service.wire.faults["tools/call"] = [replying(lambda _: good(12345), kind)]
    said = service.failure(timeout=PATIENCE)
    assert "not an MCP message" in said
    assert said.endswith(client.UNSURE)


def test_events_without_end_are_not_read_without_end(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    async def flood(_: Wire, __: Any, ___: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", EVENTS.encode())]})
        for _ in range(100):
            await send({"type": "http.response.body", "body": b"data: {}\n\n" * 5000, "more_body": True})

    monkeypatch.setattr(client, "LARGEST_ANSWER", 1 << 20)
    service.wire.faults["tools/call"] = [flood]
    assert "sent more than 1,048,576 bytes" in service.failure(timeout=PATIENCE)


def test_an_answer_byte_by_byte_ends_with_the_time(service: Service) -> None:
    async def drip(_: Wire, __: Any, ___: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", JSON.encode())]})
        for _ in range(200):
            await send({"type": "http.response.body", "body": b" ", "more_body": True})
            await client.anyio.sleep(0.05)

    service.wire.faults["tools/call"] = [drip]
    said = service.failure(timeout=1.0)
    assert f"no answer from {service.address}/mcp in 1 s: {client.UNSURE}" in said


# ---------------------------------------------------------------------------------------------------------------------
# packed bodies
BOMB = b"[" + b" " * (40 << 20)
packed = partial(gzip.compress, mtime=0)  # the same bytes in each process that collects the tests


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (packed(BOMB), {"content_encoding": "gzip", "content_type": JSON}),
        (packed(packed(BOMB)), {"content_encoding": "gzip, gzip", "content_type": JSON}),
        (zlib.compress(BOMB), {"content_encoding": "deflate", "content_type": JSON}),
        (zlib.compress(BOMB), {"content_type": f"{JSON}; charset=zip"}),
        (b"+AHs-" * 1000, {"content_type": f"{JSON}; charset=utf-7"}),
        (b"7b7d", {"content_type": f"{JSON}; charset=hex"}),
        (b"7b7d", {"content_type": f"{EVENTS}; charset=hex"}),
    ],
)
@pytest.mark.parametrize("rest", [False, True])
def test_a_packed_answer_is_not_unpacked(service: Service, body: bytes, headers: dict[str, str], rest: bool) -> None:
    service.wire.faults["GET" if rest else "tools/call"] = [answering(200, body, **headers)]
    tracemalloc.start()
    try:
        if rest:
            said = failed(lambda: client.get_evaluation(NAME, endpoint=service.address, token=TOKEN))
        else:
            said = service.failure()
        assert tracemalloc.get_traced_memory()[1] < len(BOMB)
    finally:
        tracemalloc.stop()
    assert "compressed" in said or "not an MCP message" in said or "expected an evaluation" in said
    assert {h["accept-encoding"] for _, h, _ in service.wire.seen} == {"identity"}


# ---------------------------------------------------------------------------------------------------------------------
# wrong types
DEEP = json.loads("[" * 400 + "]" * 400)


@pytest.mark.parametrize(
    "reply",
    [
        {"result": None},
        {"result": []},
        {"result": {"content": "text"}},
        {"result": {"content": [1]}},
        {"result": {"content": [{"type": "text"}]}},
        {"result": {"content": [{"type": "text", "text": ["a"]}]}},
        {"result": {"content": [], "isError": "maybe"}},
        {"result": {"content": [], "structuredContent": [1]}},
        {"result": {"content": [], "structuredContent": DEEP}},
        {"result": {"content": [{"type": "text", "text": "[" * 100_000}]}},
        {"result": {"content": [{"type": "text", "text": '{"name": NaN}'}]}},
        {"result": {"content": [{"type": "text", "text": "\x00\ud800"}]}},
        {"error": "no"},
        {"error": {"code": "x", "message": 1}},
        {"error": {"code": -32603, "message": "a" * 100_000, "data": DEEP}},
        {"error": {"code": 1e300, "message": "m"}},
        {"error": {"code": -1, "message": "\x1b]0;owned\x07\u202e"}},
    ],
    ids=lambda reply: json.dumps(reply)[:60],
)
@pytest.mark.parametrize("method", ["initialize", "tools/call"])
def test_an_answer_of_the_wrong_type_is_one_line(service: Service, method: str, reply: Any) -> None:
    service.wire.faults[method] = [replying(lambda request_id: {"jsonrpc": "2.0", "id": request_id, **reply})]
    said = service.failure(timeout=PATIENCE)
    assert len(said) < 1500
    assert said.isprintable()
    assert service.store.updates == []


# ---------------------------------------------------------------------------------------------------------------------
# the token
SPELLINGS = {
    "whole": TOKEN,
    "a part": TOKEN[:-2],
    "in percent": "".join(f"%{ord(c):02x}" for c in TOKEN),
    "as JSON": "".join(f"\\u{ord(c):04x}" for c in TOKEN),
    "as HTML": "".join(f"&#{ord(c)};" for c in TOKEN),
    "in base64": base64.b64encode(f"Bearer {TOKEN}".encode()).decode(),
    "in hex": TOKEN.encode().hex(),
    "backwards": TOKEN[::-1],
    "on two lines": f"{TOKEN[:8]}\n{TOKEN[8:]}",
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("status", [200, 302, 400])
def test_a_token_that_is_sent_back_is_not_shown(service: Service, spelling: str, status: int) -> None:
    text = SPELLINGS[spelling]
    middle = len(text) // 2
    parts = text.split("\n") if "\n" in text else [text[middle - 6 : middle + 6]]
    location = {"location": f"https://x/?{quote(text)}"} if status == 302 else {}
    service.wire.faults["tools/call"] = [answering(status, f"no: {text}".encode(), content_type=JSON, **location)]
    said = service.failure()
    assert not any(part in said for part in parts)


def test_a_token_as_the_id_of_a_session_is_not_taken(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}
    reply = replying(lambda i: {"jsonrpc": "2.0", "id": i, "result": result}, mcp_session_id=TOKEN)
    service.wire.faults["initialize"] = [reply]
    with caplog.at_level(logging.INFO):
        assert "sent the token back as the ID of a session" in service.failure()
    assert TOKEN not in caplog.text


def test_what_is_not_encrypted_does_not_go_to_a_proxy(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(STORED)
    wire = Wire(None, {}, store)
    with serving(wire) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy)
        monkeypatch.setenv("http_proxy", proxy)
        monkeypatch.setenv("ALL_PROXY", proxy)
        assert service.update(REQUEST)["displayName"] == "Refunds"
    assert wire.seen == []
