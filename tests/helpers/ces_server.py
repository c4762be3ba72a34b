"""A server on loopback that holds one evaluation: the real MCP server of the SDK with the tool `update_evaluation`, and
in front of it the faults that a network has. It keeps what arrived on the wire."""

from __future__ import annotations

import base64
import copy
import csv
import io
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs

import anyio
import uvicorn
from mcp import types
from mcp.server.lowlevel import Server

SCHEMA = {
    "type": "object",
    "properties": {
        "evaluation": {"type": "object", "properties": {"name": {"type": "string"}, "displayName": {"type": "string"}}},
        "updateMask": {"type": "string"},
    },
    "required": ["evaluation"],
}

Fault = Callable[["Wire", Any, Any, Any], Awaitable[None]]


class Refused(Exception):
    """What the service says in place of an answer."""


class Store:
    """One evaluation, updated as the service does: the fields of the mask, if the etag is that of the stored one."""

    def __init__(self, evaluation: dict[str, Any]) -> None:
        self.evaluation = copy.deepcopy(evaluation)
        self.updates: list[str] = []
        self.imports: list[dict[str, Any]] = []
        self.imported: list[dict[str, Any]] = []

    def update(self, new: dict[str, Any], mask: str) -> dict[str, Any]:
        if new.get("name") != self.evaluation["name"]:
            raise Refused("NOT_FOUND: there is no such evaluation")
        if new.get("etag") not in (None, self.evaluation.get("etag")):
            raise Refused("ABORTED: the etag is not that of the stored evaluation")
        for path in mask.split(","):
            self._set(path.split("."), new)
        self.updates.append(mask)
        self.evaluation["etag"] = f"e{len(self.updates) + 1}"
        return copy.deepcopy(self.evaluation)

    def rest(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> dict[str, Any]:
        """What the REST API answers: one evaluation per page, and an import that is done at the second look."""
        name = path.removeprefix("/v1beta/")
        if method == "PATCH":
            return self.update(body, query["updateMask"][0])
        if method == "POST" and name.endswith("/apps/a1:importEvaluations"):
            self.imports.append(body)
            return {"name": OPERATION, "metadata": {}}
        if name == OPERATION:
            return {"name": OPERATION, "done": True, "response": {"@type": "x", **self._import(self.imports[-1])}}
        every = [self.evaluation, *self.imported]
        if name.endswith("/apps/a1/evaluations"):
            at = int(query.get("pageToken", ["0"])[0])
            return {"evaluations": every[at : at + 1], **({"nextPageToken": str(at + 1)} if every[at + 1 :] else {})}
        found = next((evaluation for evaluation in every if evaluation["name"] == name), None)
        if found is None:
            raise Refused("NOT_FOUND: there is no such evaluation")
        return found

    def _import(self, body: dict[str, Any]) -> dict[str, Any]:
        rows = csv.DictReader(io.StringIO(base64.b64decode(body["csvContent"]).decode()))
        names = [row["display_name"] for row in rows if row["display_name"]]
        failed = [f"{name}: refused" for name in names if "refuse" in name]
        app = self.evaluation["name"].rpartition("/")[0]
        made = [{"name": f"{app}/i{i}", "displayName": n} for i, n in enumerate(names) if "refuse" not in n]
        self.imported += made
        return {"evaluations": made, **({"importFailureCount": len(failed), "errorMessages": failed} if failed else {})}

    def _set(self, path: list[str], new: dict[str, Any]) -> None:
        target = self.evaluation
        for name in path[:-1]:
            target, new = target.setdefault(name, {}), new.get(name, {})
        if path[-1] in new:
            target[path[-1]] = copy.deepcopy(new[path[-1]])
        else:
            target.pop(path[-1], None)


OPERATION = "projects/p1/locations/us/operations/o1"


class Wire:
    """The ASGI application: notes each request, lets the next fault of its kind happen, else hands it to the server.

    `faults` says what happens to the next messages of a method (`initialize`, `tools/call`; of REST `GET`, `POST`).
    Requests of the REST API are answered from the `store`.
    """

    def __init__(self, app: Any, answers: dict[str, Any], store: Store | None = None) -> None:
        self.app, self.answers, self.store = app, answers, store
        self.seen: list[tuple[str, dict[str, str], Any]] = []
        self.faults: dict[str, list[Fault]] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        body = b""
        while True:
            part = await receive()
            body += part.get("body", b"")
            if not part.get("more_body"):
                break
        message = json.loads(body) if body else None
        headers = {k.decode(): v.decode() for k, v in scope["headers"]}
        self.seen.append((scope["method"], headers, message))
        pending = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Any:
            return pending.pop() if pending else await receive()

        is_rest = scope["path"].startswith("/v1beta/")
        faults = self.faults.get(scope["method"] if is_rest else (message or {}).get("method", ""))
        if faults:
            return await faults.pop(0)(self, scope, replay, send)
        if is_rest and self.store is not None:
            try:
                query = parse_qs(scope["query_string"].decode())
                status, body = 200, json.dumps(self.store.rest(scope["method"], scope["path"], query, message)).encode()
            except Refused as error:
                reason = str(error).partition(":")[0]
                status, body = (
                    404,
                    json.dumps({"error": {"code": 404, "message": str(error), "status": reason}}).encode(),
                )
            return await answering(status, body, content_type="application/json")(self, scope, replay, send)
        return await self.app(scope, replay, send)

    def calls(self) -> list[Any]:
        """The messages that called the tool."""
        return [message for _, _, message in self.seen if message and message.get("method") == "tools/call"]


def mcp_server(store: Store, answers: dict[str, Any]) -> Server[Any]:
    """The SDK's server with the one tool. `answers["call"]` says what the tool answers, if not what it should."""

    async def list_tools(*_: Any) -> types.ListToolsResult:
        tool = types.Tool(name="update_evaluation", input_schema=SCHEMA)
        return types.ListToolsResult(tools=[tool])

    async def call_tool(_: Any, params: Any) -> types.CallToolResult:
        given = params.arguments
        if "call" in answers:
            return answers["call"]()
        try:
            stored = store.update(given["evaluation"], given["updateMask"])
        except Refused as error:
            return types.CallToolResult(content=[types.TextContent(type="text", text=str(error))], is_error=True)
        text = types.TextContent(type="text", text=json.dumps(stored))
        return types.CallToolResult(content=[text], structured_content=stored if answers["structured"] else None)

    return Server("ces", on_list_tools=list_tools, on_call_tool=call_tool)


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """The address of a server that runs in a thread, and is shut down and waited for at the end."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, ws="none", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.005)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        assert not thread.is_alive()


# ---------------------------------------------------------------------------------------------------------------------
# faults


def answering(status: int, body: bytes = b"", **headers: str) -> Fault:
    """An answer that something before the service gives."""

    async def fault(_: Wire, __: Any, ___: Any, send: Any) -> None:
        named = [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": named})
        await send({"type": "http.response.body", "body": body})

    return fault


def slow(seconds: float) -> Fault:
    """The service does it, and the answer is late."""

    async def fault(wire: Wire, scope: Any, receive: Any, send: Any) -> None:
        held: list[Any] = []

        async def hold(message: Any) -> None:
            held.append(message)

        await wire.app(scope, receive, hold)
        await anyio.sleep(seconds)
        for message in held:
            await send(message)

    return fault


async def cut(wire: Wire, scope: Any, receive: Any, send: Any) -> None:
    """The service does it, and the connection ends in the middle of the answer."""

    async def swallow(_: Any) -> None:
        pass

    await wire.app(scope, receive, swallow)
    headers = [(b"content-type", b"application/json"), (b"content-length", b"1000")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b'{"jsonrpc": "2.0", "id"', "more_body": False})
