"""The server of a review: loopback only, for whoever has its address.

    page ──GET /──▶ the same for everybody, without data
         ──/api/… with the token of the address──▶ Session

Other pages in the browser cannot ask it: a name that resolves to this machine is not its Host (DNS rebinding), a
foreign page is not its Origin, and none of them knows the token, which is in the part of the address that is not sent.
"""

from __future__ import annotations

import html
import os
import secrets
import socket
import threading
import webbrowser
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from agent_eval_schema.conversion.conversion import find_writer
from agent_eval_schema.errors import EvalSetError, import_extra
from agent_eval_schema.io.atomic import write_private
from agent_eval_schema.io.streams import STDIN_NAME
from agent_eval_schema.render.page import review_page
from agent_eval_schema.render.phrases import Call, plural
from agent_eval_schema.review.agreement import excluded_rows, merged_states
from agent_eval_schema.review.dataset import as_text
from agent_eval_schema.review.journal import Event, Stale, require_value
from agent_eval_schema.review.session import SUBMITTED, Session
from agent_eval_schema.review.write import Reviewing, out_path
from agent_eval_schema.runtime.progress import shown_on
from agent_eval_schema.runtime.signals import TemporaryFolder
from agent_eval_schema.text.choices import require_choice
from agent_eval_schema.text.guarded import decoded, decoded_or_none
from agent_eval_schema.validation.report import Report
from agent_eval_schema.validation.validate import check_source

if TYPE_CHECKING:
    from starlette.applications import Starlette

LOOPBACK = "127.0.0.1"
TOKEN_HEADER = "x-review-token"

MINE, AGREED = "mine", "agreed"
"""What is written: what the reviewer of the page decided, or what all reviewers agree on."""

MOST_CHANGES = 5_000
"""Changes of cells that a preview has, at most."""

MOST_BODY = 8 << 20
"""Bytes of a request, at most."""

Scope = MutableMapping[str, Any]
ASGI = Callable[[Scope, Any, Any], Awaitable[None]]


class PageProgress:
    """The progress of what the server does, as a page asks for it."""

    text, share = "", None

    def show(self, text: str, share: float | None) -> None:
        self.text, self.share = text, share

    def close(self, text: str) -> None:
        self.text, self.share = text, None


class Answers:
    """What the server answers, by the last part of its paths."""

    def __init__(self, session: Session, queue: str = "", out: str | None = None) -> None:
        self._session, self._queue = session, queue
        reviewed, self.progress = session.reviewed, PageProgress()
        name = reviewed.source.name
        endings = find_writer(reviewed.format).endings if reviewed.is_document else ()
        self.outs = {MINE: out or out_path(name, session.journal.by, endings), AGREED: out_path(name, endings=endings)}

    def overview(self, _: Any) -> Any:
        return self._session.overview(self._queue)

    def row(self, row: Any) -> Any:
        return self._session.detail(_whole(row), with_markdown=True)

    def change(self, body: Any) -> Any:
        session, rows = self._session, dict[int, None]()
        for step in _of_type(body, "steps", list):
            changes = _of_type(step, "changes", list)
            session.apply(changes, _of_type(step, "id", str))
            rows |= dict.fromkeys(map(session.row_in, changes))
        return self._after(rows, next(reversed(rows), None))

    def states(self, body: Any) -> dict[int, Any]:
        """The rows of steps that were rejected, as they are."""
        rows = {self._session.row_in(change) for step in body["steps"] for change in step["changes"]}
        return {row: self._session.state(row) for row in rows}

    def check(self, body: Any) -> Any:
        state = _of_type(body, "state", dict)
        for path, value in state.items():
            require_value(path, value)
        return self._session.check(_whole(body.get("row")), state)

    def undo(self, _: Any) -> Any:
        return self._after(self._rows(self._session.undo()))

    def kind(self, body: Any) -> Any:
        events = self._session.accept_kind(_of_type(body, "kind", str), str(body.get("choice")))
        return self._after(self._rows(events))

    def search(self, text: Any) -> Any:
        return {"rows": self._session.search(str(text))}

    def refresh(self, _: Any) -> Any:
        self._session.refresh()
        return {}

    def preview(self, what: Any) -> Any:
        reviewing, reasons, hidden = self._reviewing(what)
        answer: dict[str, Any] = {"summary": [*reviewing.summary(), *reasons], "out": self.outs[what]}
        answer["reviewers"] = 1 + len(self._session.of_others())
        if hidden:
            return {**answer, "hidden": hidden, "changes": [], "count": 0}
        changed = reviewing.changes()
        shown = changed.head(MOST_CHANGES)
        return {
            **answer,
            "hidden": 0,
            "count": len(changed),
            "changes": [
                {"row": int(r), "id": i, "field": f, "old": _shown(a), "new": _shown(b)}
                for r, i, f, a, b in shown[["old_row", "request_id", "field", "old", "new"]].itertuples(index=False)
            ],
        }

    def _reviewing(self, what: Any) -> tuple[Reviewing, list[str], int]:
        """What is written, why rows are not in it, and how many rows of others the reviewer must not see yet."""
        session = self._session
        require_choice("what", what, (MINE, AGREED))
        if what == MINE:
            return Reviewing(session.reviewed, session.states), [], 0
        everybody = {session.journal.by: session.states, **session.of_others()}
        states, mine = merged_states(everybody), session.states
        reasons = [f"{plural(count, 'row')} excluded: {why}" for why, count in excluded_rows(everybody).items()]
        hidden = [row for row in states if mine.get(row, {}).get("status") != SUBMITTED]
        return Reviewing(session.reviewed, states), reasons, len(hidden)

    def write(self, body: Any) -> Any:
        path, what = _of_type(body, "path", str), body.get("what")
        reviewing, _, _ = self._reviewing(what)
        if os.path.lexists(path) and body.get("replace") is not True:
            return {"exists": path}
        with shown_on(lambda: self.progress):
            reviewing.write(path)
            self.outs[what] = path
            return bought(self._session, path)

    def _rows(self, events: list[Event]) -> Iterable[int]:
        return {row for event in events if (row := self._session.row_of(event.row)) is not None}

    def _after(self, changed: Iterable[int], row: int | None = None) -> dict[str, Any]:
        session, rows = self._session, sorted(changed)
        answer: dict[str, Any] = {
            "rows": rows, "states": {n: session.state(n) for n in rows}, "progress": session.progress(),
        }  # fmt: skip
        if row is not None:
            answer |= {"row": row, "check": session.check(row, session.state(row)), "others": session.others_of(row)}
        return answer


def bought(session: Session, path: str) -> dict[str, Any]:
    """What a written file has that the source had not: valid rows, and rows that support a metric; and what to do
    next. The file has canonical column names, and of a format without a place for labels its own format."""
    from agent_eval_schema.formats.opening import open_source

    reviewed, original = session.reviewed, session.reviewed.original
    builder, reading = reviewed.run.builder, original.reading
    form = "auto" if reviewed.is_canonical else reading.format
    report: Report = check_source(open_source(path, format=form, outputs=reading.outputs))
    before = {c.metric: c.supported for c in reviewed.run.coverage()}
    now = {m: int(n) for m, n in zip(report.metrics["metric"], report.metrics["supported"], strict=True)}
    names = [metric.name for metric in reviewed.metrics]
    gained = [{"metric": m, "before": before[m], "after": now[m]} for m in names if now.get(m, 0) > before[m]]
    options = {k: v for k, v in original.options.items() if k != "format" or form != "auto"}
    call = Call(path, {k: v for k, v in options.items() if k != "columns"})
    compare = "" if original.name == STDIN_NAME else Call(original.name, options).command("diff", path)
    return {
        "path": path, "rows": report.row_count, "valid": report.valid_count, "valid_before": int(builder.valid.sum()),
        "gained": gained, "next": [call.command("validate"), call.command("metrics"), *filter(None, [compare])],
    }  # fmt: skip


def _shown(value: Any) -> str | None:
    return None if value is None else as_text(value)


def _whole(value: Any) -> int:
    is_text = isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 18
    if isinstance(value, bool) or not (isinstance(value, int) or is_text):
        raise EvalSetError("row: expected a whole number")
    return int(value)


def _of_type(body: Any, key: str, kind: type) -> Any:
    value = body.get(key) if isinstance(body, dict) else None
    if not isinstance(value, kind):
        raise EvalSetError(f"{key}: expected a {kind.__name__}")
    return value


def make_app(answers: Answers, session: Session, token: str, port: int) -> ASGI:
    """The application. `port` is where it is reached: requests to another host or from another origin are rejected."""
    import_extra("starlette", "review", "starlette 0.40")
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, Response
    from starlette.routing import Route

    page, policy = review_page()
    headers = {
        "Content-Security-Policy": f"{policy}; frame-ancestors 'none'", "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "Cross-Origin-Resource-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
    }  # fmt: skip

    def answer(value: Any, status: int = 200) -> Response:
        return Response(msgspec.json.encode(value), status, headers, "application/json")

    def run(name: str, value: Any) -> Response:
        try:
            with session.up_to_date():
                return answer(getattr(answers, name)(value))
        except Stale as error:
            return answer({"error": f"{error} was changed in another window", "states": answers.states(value)}, 409)
        except EvalSetError as error:
            return answer({"error": str(error)}, 507 if ": not saved: " in str(error) else 400)
        except (KeyError, TypeError, AttributeError, msgspec.ValidationError) as error:
            return answer({"error": f"the request cannot be read: {type(error).__name__}"}, 400)

    def get(name: str, key: str = "") -> Callable[[Request], Response]:
        return lambda request: run(name, request.path_params.get(key, request.query_params.get(key)))

    def post(name: str) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            from starlette.concurrency import run_in_threadpool

            body = b""
            async for chunk in request.stream():
                body += chunk
                if len(body) > MOST_BODY:
                    return answer({"error": "the request is too large"}, 413)
            try:
                value = decoded(body, object, "request", "reload the page")
            except EvalSetError as error:
                return answer({"error": f"the request is not JSON: {error}"}, 400)
            return await run_in_threadpool(run, name, value)

        return handle

    routes = [
        Route("/", lambda _: HTMLResponse(page, headers=headers)),
        Route("/api/overview", get("overview")),
        Route("/api/row/{row}", get("row", "row")),
        Route("/api/search", get("search", "q")),
        Route("/api/preview", get("preview", "what")),
        # it does not wait for the work that it is about
        Route("/api/progress", lambda _: answer({"text": answers.progress.text, "share": answers.progress.share})),
        *(
            Route(f"/api/{n}", post(n), methods=["POST"])
            for n in ("change", "check", "undo", "kind", "refresh", "write")
        ),
    ]
    inner: Starlette = Starlette(routes=routes)
    hosts = {f"{LOOPBACK}:{port}", f"localhost:{port}"}

    async def guarded(scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        sent = {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in scope["headers"]}
        refused = ""
        if sent.get("host") not in hosts:
            refused = "expected a request to this server by its own address"
        elif "origin" in sent and sent["origin"] not in {f"http://{host}" for host in hosts}:
            refused = "expected a request of the page itself"
        elif scope["path"] != "/" and not secrets.compare_digest(
            sent.get(TOKEN_HEADER, "").encode("latin-1"), token.encode()
        ):
            refused = "expected the token of the address"
        response = answer({"error": refused}, 403) if refused else inner
        await response(scope, receive, send)

    return guarded


class Address(msgspec.Struct, frozen=True):
    """Where a page reaches the server of a journal again after a restart."""

    token: Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]{32}$")]
    port: Annotated[int, msgspec.Meta(ge=0, lt=65_536)]


def _address_file(session: Session) -> str:
    home = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_STATE_HOME")
    folder = home or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(folder, "agent-eval-schema", f"review-{session.name}.json")


def _address(session: Session) -> Address:
    """The address of the last server of the journal on this machine; a new one if only its owner cannot read it."""
    with suppress(OSError), open(_address_file(session), "rb") as file:
        own = os.fstat(file.fileno())
        if os.name != "posix" or (own.st_uid == os.getuid() and not own.st_mode & 0o077):
            found = decoded_or_none(file.read(1_000), Address)
            if found is not None:
                return found
    return Address(secrets.token_urlsafe(24), 0)


def _remember(session: Session, address: Address) -> None:
    """Keep the address for the next server. Where that is not possible, a page has to be opened anew."""
    path = _address_file(session)
    with suppress(OSError, EvalSetError):
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        write_private(path, msgspec.json.encode(address))


class ReviewServer:
    """A server on a thread of its own; it ends with the process, or when it is stopped."""

    def __init__(self, session: Session, *, port: int = 0, queue: str = "", out: str | None = None) -> None:
        uvicorn = import_extra("uvicorn", "review", "uvicorn 0.30")
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if os.name == "posix":  # elsewhere it would let two servers have one port
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        address = _address(session) if session.journal.path else Address(secrets.token_urlsafe(24), 0)
        try:
            with suppress(OSError):  # of another server, or another program
                if not port and address.port:
                    self._socket.bind((LOOPBACK, address.port))
            if not self._socket.getsockname()[1]:
                self._socket.bind((LOOPBACK, port))
            self._socket.listen()  # who asks before the thread has started waits
        except (OSError, OverflowError) as error:
            self._socket.close()
            why = error.strerror if isinstance(error, OSError) else "expected a port from 0 to 65535"
            raise EvalSetError(f"--port {port}: cannot be used: {why}") from error
        self.port: int = self._socket.getsockname()[1]
        self.token = address.token
        if session.journal.path and not address.port:
            _remember(session, Address(address.token, self.port))
        app = make_app(Answers(session, queue, out), session, self.token, self.port)
        options = {"log_config": None, "log_level": "critical", "access_log": False, "server_header": False}
        self._server = uvicorn.Server(uvicorn.Config(app, lifespan="off", ws="none", **options))
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}/#t={self.token}"

    def open_in_browser(self) -> None:
        """Open the page. Every user of the machine sees the arguments of a program: the browser gets the name of a
        private file that leads on, and not the token."""
        self._folder = TemporaryFolder()
        path = self._folder.file("review.html")
        leads_on = f'<!doctype html><meta http-equiv="refresh" content="0;url={html.escape(self.url)}">'
        write_private(path, leads_on.encode())
        webbrowser.open(Path(path).as_uri())

    def wait(self) -> None:
        """Wait until the server has ended; a signal may come at any time."""
        while self._thread.is_alive():
            self._thread.join(0.2)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(5)
        self._socket.close()
