"""`update_evaluation`: an update that is sent, as a call of the MCP tool or as its REST twin.

    update_request ──▶ initialize ─ tools/call update_evaluation ──▶ result.isError │ error │ the Evaluation
                  └──▶ PATCH /v1beta/{name}?updateMask=…         ──▶ HTTP status    │       │ the Evaluation

The protocol of MCP is the SDK's (extra `ces`); the sending is transport.py's, so that the SDK never holds the token and
repeats nothing. All failures are one EvalSetError of one line: the failure, the message of the server, and advice.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

from agent_eval_schema.formats.ces.update import TOOL, arguments_of, rest_request
from agent_eval_schema.integrations.ces.transport import Courier, advice, check_endpoint, find_token, http, words_of
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.runtime.event_loop import LoopThread
from agent_eval_schema.runtime.extras import missing
from agent_eval_schema.runtime.version import __version__
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.visible import visible

try:
    import anyio
    from mcp import ClientSession, types
    from mcp.client.streamable_http import streamable_http_client
except ImportError as error:
    raise missing("ces", "mcp 1.24", error) from None

MCP_ENDPOINT = "https://ces.googleapis.com/mcp"
REST_ENDPOINT = "https://ces.googleapis.com"

GOODBYE = 2.0
"""Seconds for the end of a session."""

FIX_FIELDS = "correct the fields that the server names"

Send = Callable[[Mapping[str, Any], str, Courier, Any], Awaitable[dict[str, Any]]]


def update_evaluation(
    request: Mapping[str, Any],
    *,
    endpoint: str | None = None,
    token: str | None = None,
    rest: bool = False,
    timeout: float = 60.0,
) -> dict[str, Any]:
    """Send a request of `update_request` and return the stored evaluation.

    It requires the extra `ces`. It can be called from a running event loop, for example in a notebook.

    Parameters
    ----------
    request : mapping
        The result of `update_request`.
    endpoint : str or None, default None
        The MCP endpoint, or with `rest=True` the address before `/v1beta`; https, except for this machine. A regional
        endpoint is `https://ces.REGION.rep.googleapis.com/mcp`. None is `https://ces.googleapis.com/mcp`, with
        `rest=True` `https://ces.googleapis.com`.
    token : str or None, default None
        An OAuth access token, as printed by `gcloud auth print-access-token`. It is sent to the endpoint only. None
        reads the environment variable CES_ACCESS_TOKEN.
    rest : bool, default False
        If True, send `PATCH /v1beta/{name}?updateMask=...` in place of the MCP call.
    timeout : float, default 60.0
        The maximum duration, in seconds, including one repetition. A request is repeated once, only if a proxy rejected
        it (503 with an empty body).

    Returns
    -------
    dict
        The evaluation as it is stored after the update.

    Raises
    ------
    MissingExtraError
        The extra `ces` is not installed.
    EvalSetError
        The update was rejected, its outcome is unknown, `request` is not an update, the endpoint is not encrypted, or
        there is no token.

    See Also
    --------
    update_request : Return the request.

    Examples
    --------
    >>> from agent_eval_schema import ces
    >>> name = "projects/p/locations/us/apps/a/evaluations/e"
    >>> request = ces.update_request({"name": name, "displayName": "Refunds"}, mask="displayName")
    >>> stored = ces.update_evaluation(request)  # doctest: +SKIP
    """
    arguments_of(request)
    where = check_endpoint(endpoint or (REST_ENDPOINT if rest else MCP_ENDPOINT))
    secret = find_token(token)
    loop = LoopThread("ces update")
    try:
        outcome = loop.submit(_deliver(_over_rest if rest else _over_mcp, request, where, secret, timeout)).result()
    finally:
        loop.stop(GOODBYE)
    if isinstance(outcome, str):  # raised here, so that no exception that contains the request is its context
        raise EvalSetError(outcome)
    stored: dict[str, Any] = outcome
    return stored


async def _deliver(
    send: Send, request: Mapping[str, Any], endpoint: str, token: str, timeout: float
) -> dict[str, Any] | str:
    """The result, or the message of the failure."""

    def sign(message: Any) -> Any:
        message.headers["authorization"] = f"Bearer {token}"
        return message

    limits = http.Timeout(timeout, connect=min(10.0, timeout / 2))
    async with http.AsyncClient(timeout=limits) as client:
        courier = Courier(client, sign, lambda text: text.replace(token, "***"))
        with anyio.move_on_after(timeout) as scope:
            try:
                return await send(request, endpoint, courier, scope)
            except EvalSetError as error:
                return str(error)
            except Exception as error:  # of the SDK, which may be any
                return f"the update failed on its way ({courier.quoted(error)}): {courier.outcome}"
        return f"no answer from {visible(endpoint)} in {timeout:g} s: {courier.outcome}"


# ---------------------------------------------------------------------------------------------------------------------
# REST
async def _over_rest(request: Mapping[str, Any], endpoint: str, courier: Courier, _: object) -> dict[str, Any]:
    method, path, query, body = rest_request(request)
    url = f"{endpoint}{path}?{urlencode(query)}"
    answer = await courier.deliver(method, url, jsontext.write_exactly(body).encode(), writes=True)
    return _evaluation(answer.text, courier)


def _evaluation(text: str, courier: Courier) -> dict[str, Any]:
    """The stored Evaluation that a success holds."""
    stored = jsontext.parse(text)
    if not isinstance(stored, dict):
        raise EvalSetError(
            f"the update was accepted, but the answer holds no evaluation ({courier.quoted(text)}): read the "
            "evaluation before continuing"
        )
    return stored


# ---------------------------------------------------------------------------------------------------------------------
# MCP
async def _over_mcp(request: Mapping[str, Any], endpoint: str, courier: Courier, scope: Any) -> dict[str, Any]:
    evaluation, mask = arguments_of(request)
    with anyio.CancelScope() as inner:
        transport = _CourierTransport(courier, inner.cancel)
        result = await _call({"evaluation": evaluation, "updateMask": mask}, endpoint, courier, transport, scope)
    if transport.failure or isinstance(result, str):
        raise EvalSetError(transport.failure or result)
    text = "\n".join(part["text"] for part in result.get("content") or () if part.get("type") == "text")
    if result.get("isError"):
        words = words_of(text)
        raise EvalSetError(f"{TOOL} failed: {courier.quoted(words)}: {advice(words, FIX_FIELDS)}")
    structured = result.get("structuredContent")
    return structured if isinstance(structured, dict) else _evaluation(text, courier)


async def _call(
    arguments: dict[str, Any], endpoint: str, courier: Courier, transport: _CourierTransport, scope: Any
) -> dict[str, Any] | str:
    """The tool's result, or the message of a failure that the protocol reports.

    `call_tool` of the SDK is not used: after the call it requests the tool's schema from the server, and treats an
    answer that does not fit it as a failure, although the update has been made.
    """
    result: dict[str, Any] | str = ""
    call: Any = types.CallToolRequest(
        method="tools/call", params=types.CallToolRequestParams(name=TOOL, arguments=arguments)
    )
    information = types.Implementation(name="agent-eval-schema", version=__version__)
    async with (
        http.AsyncClient(transport=transport) as client,
        streamable_http_client(endpoint, http_client=client) as (read, write, *_),
        ClientSession(read, write, client_info=information) as session,
    ):
        try:
            await session.initialize()
            answer = await session.send_request(call, types.CallToolResult)
            result = answer.model_dump(by_alias=True, mode="json")
        except Exception as error:  # the exception of the SDK for an error of JSON-RPC has another name in each release
            result = _protocol_error(error, courier)
        scope.deadline = math.inf  # the outcome is known: an error on closing must not change it
    return result


_NOT_PROCESSED = (-32700, -32600, -32601, -32602)
"""JSON-RPC: not JSON, an invalid request, an unknown method or tool, wrong arguments."""


def _protocol_error(error: Exception, courier: Courier) -> str:
    """One line for a JSON-RPC error, or for an answer that the SDK could not take."""
    data = getattr(error, "error", None)
    if data is None:
        return f"the answer is not one of {TOOL} ({courier.quoted(error)}): {courier.outcome}"
    words = f"{data.message} {json.dumps(data.data, default=str) if data.data else ''}".strip()
    what_now = advice(words, FIX_FIELDS if data.code in _NOT_PROCESSED else courier.outcome)
    return f"{TOOL} failed ({data.code}): {courier.quoted(words)}: {what_now}"


class _CourierTransport(http.AsyncBaseTransport):  # type: ignore[misc]  # of either HTTP library
    """The requests of the SDK, delivered by the courier. A failure stops the SDK, which would log it, wait or retry."""

    def __init__(self, courier: Courier, stop: Callable[[], None]) -> None:
        self._courier, self._stop = courier, stop
        self.failure = ""

    async def handle_async_request(self, request: Any) -> Any:
        """Answer the SDK: the handshake and the call from the endpoint, the rest of the protocol in short."""
        if request.method == "GET":  # messages that the server begins: there are none to wait for
            return http.Response(405)
        body = await request.aread()
        if request.method == "DELETE":
            with anyio.move_on_after(GOODBYE), suppress(EvalSetError):  # end the session, if the server has one
                return await self._send(request, b"", writes=False)
            return http.Response(405)
        message = json.loads(body)
        try:
            answer = await self._send(request, body, writes=message.get("method") == "tools/call")
            if "id" in message and not _answers(answer):
                words = f"a response that is not an MCP message ({self._courier.quoted(answer.text)})"
                raise EvalSetError(f"{request.url} sent {words}: {self._courier.outcome}")
            return answer
        except EvalSetError as error:
            self.failure = str(error)
        self._stop()
        return await anyio.sleep_forever()

    async def _send(self, request: Any, body: bytes, *, writes: bool) -> Any:
        headers = {k: v for k, v in request.headers.items() if k.startswith(_OF_MCP)}
        return await self._courier.deliver(request.method, str(request.url), body, headers=headers, writes=writes)


_OF_MCP = ("accept", "content-type", "mcp-", "last-event-id")


def _answers(answer: Any) -> bool:
    """Whether the answer contains the response to a request: a result or an error, as JSON or as an event of SSE."""
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        return _is_reply(answer.text)
    return kind == "text/event-stream" and any(_is_reply(data) for data in _events(answer.text))


def _events(text: str) -> Iterator[str]:
    """The data of each event of a stream (the EventSource format: lines `data: …`, a blank line ends an event)."""
    for event in re.split(r"(?:\r?\n|\r){2}", text):
        yield "\n".join(line[5:] for line in re.split(r"\r?\n|\r", event) if line.startswith("data:"))


def _is_reply(text: str) -> bool:
    value = jsontext.parse(text)
    return isinstance(value, dict) and ("result" in value or "error" in value)
