"""Requests that are sent: an update as a call of the MCP tool or as its REST twin, an import, and what is stored.

    update_request ──▶ initialize ─ tools/call update_evaluation ──▶ result.isError │ error │ the Evaluation
                  └──▶ PATCH /v1beta/{name}?updateMask=…         ──▶ HTTP status    │       │ the Evaluation
    import_request ──▶ POST  /v1beta/{app}:importEvaluations     ──▶ an operation ──▶ GET until it is done
                       GET   /v1beta/{name}, /v1beta/{app}/evaluations (page by page)

The protocol of MCP is the SDK's (extra `ces`); a `Sender` sends, so that the SDK never holds the token and repeats
nothing. All failures are one EvalSetError of one line: the failure, the message of the server, and advice.
"""

from __future__ import annotations

import base64
import html
import ipaddress
import json
import math
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from agent_eval_schema.errors import EvalSetError, missing
from agent_eval_schema.formats.ces.evaluation import Evaluation
from agent_eval_schema.formats.ces.update import (
    APP_NAME,
    EVALUATION_NAME,
    OPERATION_NAME,
    TOOL,
    arguments_of,
    checked_name,
    rest_path,
)
from agent_eval_schema.runtime.event_loop import LoopThread
from agent_eval_schema.runtime.version import __version__
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import excerpt
from agent_eval_schema.text.visible import visible

try:
    import anyio
    from mcp import ClientSession, types
    from mcp.client import streamable_http  # the first release with `streamable_http_client` is 1.24
except ImportError as error:
    raise missing("ces", "mcp 1.24", error) from None

http: Any = getattr(streamable_http, "httpx2", None) or vars(streamable_http)["httpx"]

TOKEN_VARIABLE = "CES_ACCESS_TOKEN"

BACKOFF = 1.0
"""Seconds before a rejected request is sent again, unless the server specifies a number (`Retry-After`)."""

LONGEST_BACKOFF = 10.0

LARGEST_ANSWER = 64 * 2**20
"""Bytes of an answer that are read. An evaluation with images has some megabytes."""

NOTHING_CHANGED = "no change was made"
NOTHING_READ = "nothing was read"
UNSURE = "the update may have been made or not: read the evaluation before you try again"
UNSURE_IMPORT = "the import may have been made or not: list the evaluations of the app before you try again"

FIX_FIELDS = "correct the fields that the server names"
READ_AGAIN = "the evaluation has changed since it was read (etag): read it again, and make the update from that"

_FAILURES = (
    ("INVALID_ARGUMENT", 400, "3", FIX_FIELDS),
    ("UNAUTHENTICATED", 401, "16", f"set {TOKEN_VARIABLE} to a fresh token: gcloud auth print-access-token"),
    ("PERMISSION_DENIED", 403, "7", "the account of the token may not do this with evaluations of the app"),
    ("NOT_FOUND", 404, "5", "check the name, and the endpoint"),
    ("ALREADY_EXISTS", None, "6", "another evaluation of the app has this displayName"),
    ("ABORTED", 409, "10", READ_AGAIN),
    ("FAILED_PRECONDITION", 412, "9", FIX_FIELDS),
    ("RESOURCE_EXHAUSTED", 429, "8", "wait, and try again"),
    *((name, None, None, "") for name in ("INTERNAL", "UNAVAILABLE", "DEADLINE_EXCEEDED")),
)
"""Google's name for a failure, which occurs as text in the answer of a tool; its HTTP status; its code in a
`google.rpc.Status`; and what to do."""

ADVICE = {name: advice for name, _, _, advice in _FAILURES}
"""What to do, by the first of these names that a failure contains; the outcome where there is no advice."""

_OF_STATUS = {status: name for name, status, _, _ in _FAILURES}
_OF_CODE = {code: name for name, _, code, _ in _FAILURES}


# --- where to, and as whom
def check_endpoint(endpoint: str) -> str:
    """The address without a slash at its end. Raises EvalSetError if a token must not go there."""
    try:
        parts = urlsplit(endpoint)
        host, _ = parts.hostname, parts.port
    except ValueError:  # such as [REGION], which no host is
        raise EvalSetError(
            f"{excerpt(endpoint)} is not an address: expected one such as https://ces.googleapis.com"
        ) from None
    if parts.username is not None or parts.query or parts.fragment:
        raise EvalSetError("expected an endpoint without user, query and fragment")
    if not host or parts.scheme not in ("https", "http"):
        raise EvalSetError(f"{excerpt(endpoint)} is not an endpoint: expected one such as https://ces.googleapis.com")
    try:
        is_here = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # the name of another machine
        is_here = False
    if parts.scheme == "http" and not is_here:
        raise EvalSetError(f"{visible(endpoint)} is not encrypted, so the token must not go there: use https")
    return endpoint.rstrip("/")


def find_token(token: str | None) -> str:
    """The given token, or that of the environment. Raises EvalSetError if there is none that can be sent."""
    value = (token or os.environ.get(TOKEN_VARIABLE, "")).strip()
    if not value:
        raise EvalSetError(f"no access token: {ADVICE['UNAUTHENTICATED']}")
    if not value.isascii() or not value.isprintable() or " " in value:
        raise EvalSetError("the token holds characters that no token has; it is not shown here")
    return value


# --- sending
class Sender:
    """Delivers requests to one endpoint, at most one of them twice, and records whether a write may have been made.

    `client` sends requests with the `token`; `unsure` and `unchanged` tell the user which of both is true after a
    failure.
    """

    def __init__(self, client: Any, token: str, unsure: str, unchanged: str) -> None:
        self._client, self._token, self._unsure, self._unchanged = client, token, unsure, unchanged
        raw = token.encode()
        spellings = [token, token[::-1], raw.hex(), *(base64.b64encode(raw[i:]).decode()[:-4] for i in range(3))]
        size = min(_FRAGMENT, len(token))
        self._fragments = {s[at : at + size] for s in spellings for at in range(len(s) - size + 1)}
        self._again = True
        self._may_have_written = False

    async def deliver(
        self,
        method: str,
        url: str,
        body: bytes = b"",
        *,
        headers: Mapping[str, str] | None = None,
        writes: bool = False,
        reply_to: Any = None,
    ) -> Any:
        """The whole answer; events only up to the reply to `reply_to`. Raises EvalSetError for every other outcome."""
        headers = {"content-type": "application/json", **(headers or {}), "accept-encoding": "identity"}
        request = self._client.build_request(method, url, content=body, headers=headers)
        where = visible(f"{request.url.scheme}://{request.url.netloc.decode()}{request.url.path}")
        while True:
            answer, is_reply = await self._exchange(request, where, writes, reply_to)
            status = answer.status_code
            if writes and (300 <= status < 500 or (status == 503 and not answer.content)):
                self._may_have_written = False
            if status != 503 or (writes and answer.content) or not self._again:
                break
            self._again = False
            wait = answer.headers.get("retry-after") or ""
            await anyio.sleep(min(float(wait), LONGEST_BACKOFF) if wait.isdecimal() else BACKOFF)
        if status < 300 and (is_reply or reply_to is None):
            return answer
        if status < 300:
            raise self.failure(f"{where} sent a response that is not an MCP message ({self.quoted(answer.text)})")
        if status < 400:
            target = self.quoted(answer.headers.get("location", "an address that it does not name"))
            raise self.failure(f"{where} points to {target}, where the token must not go")
        words = words_of(answer.text)
        reason = f": {self.quoted(words)}" if words else ""
        named = f"{words} {_OF_STATUS.get(status, '')}" if status < 500 else ""
        raise self.failure(f"{where} answered {status}{reason}", self.advice(named, self.outcome))

    async def _exchange(self, request: Any, where: str, writes: bool, reply_to: Any) -> tuple[Any, bool]:
        """The answer, and whether it holds the reply. An exception of the HTTP library contains the request, with its
        token: EvalSetError in its place has only the reason."""
        before, self._may_have_written = self._may_have_written, self._may_have_written or writes
        try:
            response = await self._client.send(request, auth=self._signed, stream=True)
            try:
                session = response.headers.get("mcp-session-id", "")
                if self._hidden(session) != session:  # the SDK logs it
                    raise self.failure(f"{where} sent the token back as the ID of a session")
                return await _whole(response, reply_to)
            finally:
                await response.aclose()
        except _Unacceptable as error:
            reason = f"{where} sent {error}"
        except (http.ConnectError, http.ConnectTimeout, http.ProxyError, http.UnsupportedProtocol) as error:
            self._may_have_written = before
            reason = f"no connection to {where} ({self.quoted(str(error) or 'no answer')})"
        except http.TimeoutException:
            reason = f"no answer from {where} in time"
        except http.HTTPError as error:
            reason = f"the connection to {where} ended before its answer did ({self.quoted(error)})"
        raise self.failure(reason)

    @property
    def outcome(self) -> str:
        """The state of the service when its answer is not known."""
        return self._unsure if self._may_have_written else self._unchanged

    def failure(self, reason: str, advice: str = "") -> EvalSetError:
        """The exception for a failure; without advice it ends with the outcome."""
        return EvalSetError(f"{reason}: {advice or self.outcome}")

    def _signed(self, request: Any) -> Any:
        request.headers["authorization"] = f"Bearer {self._token}"
        return request

    def quoted(self, words: object) -> str:
        """The message of a server or a library, without the token, on one line and safe to show."""
        return excerpt(self._hidden(str(words)), 300)

    def _hidden(self, text: str) -> str:
        """The beginning of a text without the token; nothing of a text that has a part or another spelling of it."""
        shown = text.replace(self._token, "***")[:_LONGEST_QUOTE]
        unescaped = re.sub(r"\\u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), shown)
        spellings = ["".join(s.split()) for s in (shown, unquote(shown), html.unescape(shown), unescaped)]
        return "***" if any(part in spelling for spelling in spellings for part in self._fragments) else shown

    def advice(self, words: str, otherwise: str) -> str:
        return next((text or self.outcome for name, text in ADVICE.items() if name in words), otherwise)


_FRAGMENT = 12
"""The number of consecutive characters of a token from which on they are hidden."""

_LONGEST_QUOTE = 4000
"""The characters of an excerpt of an answer."""


class _Unacceptable(Exception):
    """An answer that is not read, in words."""


async def _whole(response: Any, reply_to: Any) -> tuple[Any, bool]:
    """The response with its body read, and whether it has the reply. A body may be a thousand times as large as it was
    packed, so a packed one is not read; a charset may be a packing too (`zip`), so all text is UTF-8."""
    if response.headers.get("content-encoding", "").lower() not in ("", "identity"):
        raise _Unacceptable("a compressed answer, which it was not asked for")
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    parts: list[bytes] = []

    async def body() -> AsyncIterator[bytes]:
        async for part in response.aiter_raw():
            parts.append(part)
            if response.num_bytes_downloaded > LARGEST_ANSWER:
                raise _Unacceptable(f"more than {LARGEST_ANSWER:,} bytes")
            yield part

    headers = {k: v for k, v in response.headers.items() if k.lower() in _KEPT_HEADERS} | {"content-type": kind}
    whole = http.Response(response.status_code, headers=headers, content=body(), request=response.request)
    is_reply = False
    if kind == "text/event-stream" and reply_to is not None:
        events = vars(streamable_http)["EventSource"](whole)
        async for event in events.aiter_sse() if hasattr(events, "aiter_sse") else events:  # as of mcp 1, or of mcp 2
            if is_reply := event.event == "message" and _is_reply(event.data, reply_to):
                break  # a server may keep the stream open
    else:
        await whole.aread()
        is_reply = kind == "application/json" and reply_to is not None and _is_reply(whole.text, reply_to)
    return http.Response(response.status_code, headers=headers, content=b"".join(parts)), is_reply


_KEPT_HEADERS = ("mcp-session-id", "mcp-protocol-version", "retry-after", "location")


def words_of(body: str) -> str:
    """The message of an error: that of Google's or of JSON-RPC's error object with its status, else the text."""
    try:
        error = jsontext.decode(body)["error"]
        return f"{error['message']} {error.get('status') or ''}".strip()
    except (ValueError, KeyError, TypeError, AttributeError):
        return body.strip()


# --- the public verb
MCP_ENDPOINT = "https://ces.googleapis.com/mcp"
REST_ENDPOINT = "https://ces.googleapis.com"

GOODBYE = 2.0
"""Seconds for the end of a session."""

T = TypeVar("T")

Send = Callable[[str, Sender, Any], Awaitable[T]]
"""Sends requests to an address with a sender; the scope is that of the time limit."""


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
    evaluation, mask = arguments_of(request)
    path, body = rest_path(evaluation["name"], updateMask=mask), jsontext.write_exactly(evaluation).encode()

    async def over_rest(where: str, sender: Sender, _: object) -> dict[str, Any]:
        return _evaluation((await sender.deliver("PATCH", where + path, body, writes=True)).text, sender)

    over_mcp = partial(_over_mcp, {"evaluation": evaluation, "updateMask": mask})
    where = check_endpoint(endpoint or (REST_ENDPOINT if rest else MCP_ENDPOINT))
    return _sent(over_rest if rest else over_mcp, where, token, timeout, UNSURE, NOTHING_CHANGED)


def get_evaluation(
    name: str, *, endpoint: str | None = None, token: str | None = None, timeout: float = 60.0
) -> Evaluation:
    """Return a stored evaluation.

    It requires the extra `ces`, and sends `GET /v1beta/{name}`.

    Parameters
    ----------
    name : str
        The resource name of the evaluation, `projects/.../apps/.../evaluations/...`.
    endpoint, token : str or None, default None
        As in `update_evaluation` with `rest=True`.
    timeout : float, default 60.0
        The maximum duration, in seconds.

    Returns
    -------
    Evaluation
        The evaluation, with the fields that only the service sets, such as `etag`.

    Raises
    ------
    MissingExtraError
        The extra `ces` is not installed.
    EvalSetError
        `name` is not the name of an evaluation, the service rejected the request, or there is no token.

    See Also
    --------
    list_evaluations : Return all evaluations of an app.

    Examples
    --------
    >>> from agent_eval_schema import ces
    >>> stored = ces.get_evaluation("projects/p/locations/us/apps/a/evaluations/e")  # doctest: +SKIP
    """
    path = rest_path(checked_name(name, EVALUATION_NAME))

    async def send(where: str, sender: Sender, _: object) -> Evaluation:
        text = (await sender.deliver("GET", where + path)).text
        stored = Evaluation(_object(text, sender, "an evaluation"))
        stored.text = text
        return stored

    return _sent(send, check_endpoint(endpoint or REST_ENDPOINT), token, timeout)


def list_evaluations(
    app: str, *, endpoint: str | None = None, token: str | None = None, timeout: float = 60.0
) -> list[Evaluation]:
    """Return all stored evaluations of an app.

    It requires the extra `ces`, and sends `GET /v1beta/{app}/evaluations`, page by page.

    Parameters
    ----------
    app : str
        The resource name of the app, `projects/.../locations/.../apps/...`.
    endpoint, token : str or None, default None
        As in `update_evaluation` with `rest=True`.
    timeout : float, default 60.0
        The maximum duration of all pages, in seconds.

    Returns
    -------
    list of Evaluation
        The evaluations, in the order of the service: the last changed first.

    Raises
    ------
    MissingExtraError
        The extra `ces` is not installed.
    EvalSetError
        `app` is not the name of an app, the service rejected a request, or there is no token.

    See Also
    --------
    get_evaluation : Return one evaluation.

    Examples
    --------
    >>> from agent_eval_schema import ces
    >>> stored = ces.list_evaluations("projects/p/locations/us/apps/a")  # doctest: +SKIP
    """
    parent = checked_name(app, APP_NAME)

    async def send(where: str, sender: Sender, _: object) -> list[Evaluation]:
        evaluations: list[Evaluation] = []
        tokens = [""]
        while True:
            path = rest_path(f"{parent}/evaluations", **({"pageToken": tokens[-1]} if tokens[-1] else {}))
            text = (await sender.deliver("GET", where + path)).text
            page = _object(text, sender, "a page of evaluations")
            items, following = page.get("evaluations") or [], page.get("nextPageToken") or ""
            if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
                raise sender.failure(f"expected a list of evaluations, got {sender.quoted(text)}")
            evaluations += map(Evaluation, items)
            if not following:
                return evaluations
            if not isinstance(following, str) or following in tokens:  # it would never end
                raise sender.failure(f"expected a new nextPageToken, got {sender.quoted(following)}")
            tokens.append(following)

    return _sent(send, check_endpoint(endpoint or REST_ENDPOINT), token, timeout)


def import_evaluations(
    app: str,
    request: Mapping[str, Any],
    *,
    endpoint: str | None = None,
    token: str | None = None,
    timeout: float = 300.0,
) -> dict[str, Any]:
    """Send a request of `import_request` and return the result of the import.

    It requires the extra `ces`, and sends `POST /v1beta/{app}:importEvaluations`. The service imports each evaluation
    on its own; those that fail are counted in the result.

    Parameters
    ----------
    app : str
        The resource name of the app, `projects/.../locations/.../apps/...`.
    request : mapping
        The result of `import_request`.
    endpoint, token : str or None, default None
        As in `update_evaluation` with `rest=True`.
    timeout : float, default 300.0
        The maximum duration, in seconds, including the import itself.

    Returns
    -------
    dict
        The ImportEvaluationsResponse: `evaluations`, `importFailureCount`, `errorMessages`.

    Raises
    ------
    MissingExtraError
        The extra `ces` is not installed.
    EvalSetError
        The import was rejected or failed, its outcome is unknown, `app` is not the name of an app, or there is no
        token.

    See Also
    --------
    import_request : Return the request.

    Examples
    --------
    >>> from agent_eval_schema import ces
    >>> request = ces.import_request("sample_data/golden.csv", conflict="SKIP")
    >>> result = ces.import_evaluations("projects/p/locations/us/apps/a", request)  # doctest: +SKIP
    """
    path = rest_path(f"{checked_name(app, APP_NAME)}:importEvaluations")
    if not isinstance(request, Mapping) or not {"csvContent", "gcsUri"} & request.keys():
        raise EvalSetError("expected what import_request returns: a body with csvContent or gcsUri")
    body = jsontext.write_exactly(dict(request)).encode()

    async def send(where: str, sender: Sender, _: object) -> dict[str, Any]:
        answer = await sender.deliver("POST", where + path, body, writes=True)
        while True:
            operation = _object(answer.text, sender, "an operation")
            if isinstance(error := operation.get("error"), dict):
                words = f"{error.get('message')} {_OF_CODE.get(str(error.get('code')), '')}".strip()
                raise sender.failure(f"the import failed: {sender.quoted(words)}", sender.advice(words, UNSURE_IMPORT))
            if operation.get("done") is True:
                response = operation.get("response")
                return {k: v for k, v in response.items() if k != "@type"} if isinstance(response, dict) else {}
            try:
                status = rest_path(checked_name(operation.get("name"), OPERATION_NAME))
                await anyio.sleep(POLLING)
                answer = await sender.deliver("GET", where + status)
            except EvalSetError as error:  # of the question, while the import goes on
                raise sender.failure(str(error).removesuffix(f": {sender.outcome}")) from None

    return _sent(send, check_endpoint(endpoint or REST_ENDPOINT), token, timeout, UNSURE_IMPORT, NOTHING_CHANGED)


POLLING = 1.0
"""Seconds between two questions whether an operation is done."""


def _sent(
    send: Send[T],
    endpoint: str,
    token: str | None,
    timeout: float,
    unsure: str = NOTHING_READ,
    unchanged: str = NOTHING_READ,
) -> T:
    """The result of `send`, in a thread with an event loop of its own. Raises EvalSetError with the failure."""
    secret = find_token(token)

    async def deliver() -> tuple[Any, str]:
        """The result, or the failure."""
        limits = http.Timeout(timeout, connect=min(10.0, timeout / 2))
        is_here = endpoint.startswith("http:")  # a proxy must not get what is not encrypted
        async with http.AsyncClient(timeout=limits, trust_env=not is_here) as client:
            sender = Sender(client, secret, unsure, unchanged)
            with anyio.move_on_after(timeout) as scope:
                try:
                    return await send(endpoint, sender, scope), ""
                except EvalSetError as error:
                    return None, str(error)
                except Exception as error:  # of the SDK, which may be any
                    return None, f"the request failed on its way ({sender.quoted(error)}): {sender.outcome}"
            return None, f"no answer from {visible(endpoint)} in {timeout:g} s: {sender.outcome}"

    result: T
    loop = LoopThread("ces")
    try:
        result, failure = loop.submit(deliver()).result()
    finally:
        loop.stop(GOODBYE)
    if failure:  # raised here, so that no exception that contains the request is its context
        raise EvalSetError(failure)
    return result


# --- answers
def _object(text: str, sender: Sender, what: str) -> dict[str, Any]:
    value = jsontext.parse(text)
    if not isinstance(value, dict):
        raise sender.failure(f"expected {what}, got {sender.quoted(text)}")
    return value


def _evaluation(text: str, sender: Sender) -> dict[str, Any]:
    """The stored Evaluation that a success holds."""
    stored = jsontext.parse(text)
    if not isinstance(stored, dict):
        raise EvalSetError(
            f"the update was accepted, but the answer holds no evaluation ({sender.quoted(text)}): read the "
            "evaluation before continuing"
        )
    return stored


# --- MCP
async def _over_mcp(arguments: dict[str, Any], endpoint: str, sender: Sender, scope: Any) -> dict[str, Any]:
    with anyio.CancelScope() as inner:
        transport = _SenderTransport(sender, inner.cancel)
        result = await _call(arguments, endpoint, sender, transport, scope)
    if transport.failure or isinstance(result, str):
        raise EvalSetError(transport.failure or result)
    text = "\n".join(part["text"] for part in result.get("content") or () if part.get("type") == "text")
    if result.get("isError"):
        words = words_of(text)
        raise sender.failure(f"{TOOL} failed: {sender.quoted(words)}", sender.advice(words, FIX_FIELDS))
    structured = result.get("structuredContent")
    return structured if isinstance(structured, dict) else _evaluation(text, sender)


async def _call(
    arguments: dict[str, Any], endpoint: str, sender: Sender, transport: _SenderTransport, scope: Any
) -> dict[str, Any] | str:
    """The tool's result, or the message of a failure that the protocol reports.

    `call_tool` of the SDK is not used: after the call it requests the tool's schema from the server, and treats an
    answer that does not fit it as a failure, although the update has been made.
    """
    result: dict[str, Any] | str = ""
    parameters = types.CallToolRequestParams(name=TOOL, arguments=arguments)
    call: Any = types.CallToolRequest(method="tools/call", params=parameters)
    information = types.Implementation(name="agent-eval-schema", version=__version__)
    async with (
        http.AsyncClient(transport=transport) as client,
        streamable_http.streamable_http_client(endpoint, http_client=client) as (read, write, *_),
        ClientSession(read, write, client_info=information) as session,
    ):
        try:
            await session.initialize()
            answer = await session.send_request(call, types.CallToolResult)
            result = answer.model_dump(by_alias=True, mode="json")
        except Exception as error:  # the exception of the SDK for an error of JSON-RPC has another name in each release
            data = getattr(error, "error", None)
            if data is None:  # an answer that the SDK could not take
                result = f"the answer is not one of {TOOL} ({sender.quoted(error)}): {sender.outcome}"
            else:
                words = f"{data.message} {json.dumps(data.data, default=str) if data.data else ''}".strip()
                what_now = sender.advice(words, FIX_FIELDS if data.code in _NOT_PROCESSED else sender.outcome)
                result = f"{TOOL} failed ({data.code}): {sender.quoted(words)}: {what_now}"
        scope.deadline = math.inf  # the outcome is known: an error on closing must not change it
    return result


_NOT_PROCESSED = (-32700, -32600, -32601, -32602)
"""JSON-RPC: not JSON, an invalid request, an unknown method or tool, wrong arguments."""


class _SenderTransport(http.AsyncBaseTransport):  # type: ignore[misc]  # of either HTTP library
    """The requests of the SDK, delivered by the sender. A failure stops the SDK, which would log it, wait or retry."""

    def __init__(self, sender: Sender, stop: Callable[[], None]) -> None:
        self._sender, self._stop = sender, stop
        self.failure = ""

    async def handle_async_request(self, request: Any) -> Any:
        """Answer the SDK: the handshake and the call from the endpoint, the rest of the protocol in short."""
        if request.method == "GET":  # messages that the server begins: there are none to wait for
            return http.Response(405)
        body = await request.aread()
        if request.method == "DELETE":
            with anyio.move_on_after(GOODBYE), suppress(EvalSetError):  # end the session, if the server has one
                return await self._send(request)
            return http.Response(405)
        message = json.loads(body)
        expected = message.get("id") if "method" in message else None  # none to a reply of the SDK's own
        try:
            return await self._send(request, body, writes=message.get("method") == "tools/call", reply_to=expected)
        except EvalSetError as error:
            self.failure = str(error)
        self._stop()
        return await anyio.sleep_forever()

    async def _send(self, request: Any, *content: bytes, **options: Any) -> Any:
        headers = {k: v for k, v in request.headers.items() if k.startswith(_OF_MCP)}
        return await self._sender.deliver(request.method, str(request.url), *content, headers=headers, **options)


_OF_MCP = ("accept", "content-type", "mcp-", "last-event-id")


def _is_reply(text: str, request_id: Any) -> bool:
    """Whether this is a result or an error of that request; an error may lack the ID."""
    message = jsontext.as_object(jsontext.parse(text))
    is_error = "error" in message and message.get("id") in (request_id, None)
    return is_error or ("result" in message and message.get("id") == request_id)
