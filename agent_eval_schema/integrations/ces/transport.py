"""One write over HTTP: sent at most once, or reported as possibly made.

    not sent       no connection                              → no change was made
    turned away    503 with an empty body: a proxy had no     → no change was made; sent once more, after a pause
                   server to hand it to
    rejected       any other answer from 300 on               → the server's words, and what to do
    unsure         the connection ended or timed out           → it may have been made: never sent again
                   after sending, or a 5xx with a body

What is no write (the handshake of MCP) is also sent once more after any 503. The token goes to the endpoint only, over
https unless that is this machine: redirects are not followed, and it is removed from every message of a server. Both
ways to update an evaluation (client.py) send through here. The HTTP library is the one that the installed `mcp` uses:
httpx2 with mcp 2, httpx with mcp 1.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.runtime.extras import missing
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import excerpt
from agent_eval_schema.text.visible import visible

try:
    import anyio
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
UNSURE = "the update may have been made or not: read the evaluation before you try again"

STATUS_NAMES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    412: "FAILED_PRECONDITION",
    429: "RESOURCE_EXHAUSTED",
}
"""Google's name for an HTTP status, which occurs as text in the answer of a tool."""

ADVICE = {
    "INVALID_ARGUMENT": "correct the fields that the server names",
    "UNAUTHENTICATED": f"set {TOKEN_VARIABLE} to a fresh token: gcloud auth print-access-token",
    "PERMISSION_DENIED": "the account of the token may not update evaluations of this app",
    "NOT_FOUND": "check the evaluation's name, and the endpoint",
    "ALREADY_EXISTS": "another evaluation of the app has this displayName",
    "ABORTED": "the evaluation has changed since it was read (etag): read it again, and make the update from that",
    "FAILED_PRECONDITION": "correct the fields that the server names",
    "RESOURCE_EXHAUSTED": "wait, and try again",
    "INTERNAL": UNSURE,
    "UNAVAILABLE": UNSURE,
    "DEADLINE_EXCEEDED": UNSURE,
}
"""What to do, by the first of these names that a failure contains."""


# ---------------------------------------------------------------------------------------------------------------------
# where to, and as whom
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
    if parts.scheme == "http" and not _is_this_machine(host):
        raise EvalSetError(f"{visible(endpoint)} is not encrypted, so the token must not go there: use https")
    return endpoint.rstrip("/")


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def find_token(token: str | None) -> str:
    """The given token, or that of the environment. Raises EvalSetError if there is none that can be sent."""
    found = (token or os.environ.get(TOKEN_VARIABLE, "")).strip()
    if not found:
        raise EvalSetError(f"no access token: {ADVICE['UNAUTHENTICATED']}")
    if not found.isascii() or not found.isprintable() or " " in found:
        raise EvalSetError("the token holds characters that no token has; it is not shown here")
    return found


# ---------------------------------------------------------------------------------------------------------------------
# sending
class Courier:
    """Delivers requests to one endpoint, at most one of them twice, and records whether a write may have been made.

    `client` sends requests, `sign` adds the token to a request, and `hide` removes it from a text.
    """

    def __init__(self, client: Any, sign: Callable[[Any], Any], hide: Callable[[str], str]) -> None:
        self._client, self._sign, self._hide = client, sign, hide
        self._again = True
        self._may_have_written = False

    async def deliver(
        self, method: str, url: str, body: bytes, *, headers: Mapping[str, str] | None = None, writes: bool
    ) -> Any:
        """The answer, read whole. Raises EvalSetError for every other outcome."""
        headers = {"content-type": "application/json", **(headers or {})}
        request = self._client.build_request(method, url, content=body, headers=headers)
        answer = await self._attempt(request, writes)
        if self._again and answer.status_code == 503 and not (writes and answer.content):
            self._again = False
            wait = answer.headers.get("retry-after") or ""
            await anyio.sleep(min(float(wait), LONGEST_BACKOFF) if wait.isdecimal() else BACKOFF)
            answer = await self._attempt(request, writes)
        if answer.status_code >= 300:
            raise EvalSetError(self._refusal(answer, _place(request.url)))
        return answer

    async def _attempt(self, request: Any, writes: bool) -> Any:
        self._may_have_written |= writes
        answer = await self._exchange(request)
        if isinstance(answer, str):
            raise EvalSetError(f"{answer}: {self.outcome}")
        if writes and (300 <= answer.status_code < 500 or (answer.status_code == 503 and not answer.content)):
            self._may_have_written = False
        return answer

    async def _exchange(self, request: Any) -> Any:
        """The answer, or in words why there is none. An exception of the HTTP library contains the request, with its
        token: none leaves this method."""
        where = _place(request.url)
        try:
            response = await self._client.send(request, auth=self._sign, stream=True)
            try:
                return await _whole(response) or f"{where} sent more than {LARGEST_ANSWER:,} bytes"
            finally:
                await response.aclose()
        except (http.ConnectError, http.ConnectTimeout, http.ProxyError, http.UnsupportedProtocol) as error:
            self._may_have_written = False
            return f"no connection to {where} ({self.quoted(str(error) or 'no answer')})"
        except http.TimeoutException:
            return f"no answer from {where} in time"
        except http.HTTPError as error:
            return f"the connection to {where} ended before its answer did ({self.quoted(error)})"

    @property
    def outcome(self) -> str:
        """The state of the update when its answer is not known."""
        return UNSURE if self._may_have_written else NOTHING_CHANGED

    def _refusal(self, answer: Any, where: str) -> str:
        """One line for an answer that is not a success."""
        if answer.status_code < 400:
            target = self.quoted(answer.headers.get("location", "an address that it does not name"))
            return f"{where} points to {target}, where the token must not go: {NOTHING_CHANGED}"
        words = words_of(answer.text)
        reason = f": {self.quoted(words)}" if words else ""
        named = f"{words} {STATUS_NAMES.get(answer.status_code, '')}" if answer.status_code < 500 else ""
        return f"{where} answered {answer.status_code}{reason}: {advice(named, self.outcome)}"

    def quoted(self, words: object) -> str:
        """The message of a server or a library, without the token, on one line and safe to show."""
        return excerpt(self._hide(str(words)), 300)


def advice(words: str, otherwise: str) -> str:
    """The advice for a failure with this message."""
    return next((text for name, text in ADVICE.items() if name in words), otherwise)


def _place(url: Any) -> str:
    return visible(f"{url.scheme}://{url.netloc.decode()}{url.path}")


async def _whole(response: Any) -> Any:
    """The response with its body read, or None if that is too large."""
    size, parts = 0, list[bytes]()
    async for part in response.aiter_bytes():
        size += len(part)
        if size > LARGEST_ANSWER:
            return None
        parts.append(part)
    kept = {k: v for k, v in response.headers.items() if k.lower() not in _OF_THE_TRANSFER}
    return http.Response(response.status_code, headers=kept, content=b"".join(parts))


_OF_THE_TRANSFER = ("content-encoding", "content-length", "transfer-encoding")


def words_of(body: str) -> str:
    """The message of an error: that of Google's or of JSON-RPC's error object with its status, else the text."""
    try:
        error = jsontext.decode(body)["error"]
        return f"{error['message']} {error.get('status') or ''}".strip()
    except (ValueError, KeyError, TypeError, AttributeError):
        return body.strip()
