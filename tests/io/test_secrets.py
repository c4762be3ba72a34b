"""What gives access to data is in no report, message, traceback or repr."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from agent_eval_schema import EvalSetError, convert_eval_set, diff_eval_sets, validate_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.text.visible import without_secrets
from agent_eval_schema.validation.report import summary_of

SECRET = "s3cr3tsignature"
ROWS = [{"request": "Hi", "response": "Hello"}, {"request": "", "response": "x"}]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"https://ana:{SECRET}@host/a.jsonl", "https://***@host/a.jsonl"),
        (f"https://{SECRET}@host/a.jsonl", "https://***@host/a.jsonl"),
        (f"https://host/a.jsonl?sig={SECRET}&x=1", "https://host/a.jsonl?***"),
        (f"cannot open 'https://host/a?sig={SECRET}' (404)", "cannot open 'https://host/a?***' (404)"),
        (f"abfs://c@acc.net/a.jsonl?sv=1&sig={SECRET}, again", "abfs://***@acc.net/a.jsonl?***"),
        (f"postgresql://u:{SECRET}@h:1/db and mysql://v:{SECRET}@h/db", "postgresql://***@h:1/db and mysql://***@h/db"),
        ("s3://bucket/part-?.jsonl", "s3://bucket/part-?.jsonl"),
        ("s3://bucket/day=1/a.jsonl", "s3://bucket/day=1/a.jsonl"),
        ("mail ana@example.com, see a?b=c", "mail ana@example.com, see a?b=c"),
    ],
)
def test_what_gives_access_is_not_shown(text: str, shown: str) -> None:
    assert without_secrets(text).removesuffix(" again") == shown


@pytest.mark.parametrize("piece", ["://a", "://a?", "://a@", "://?"])
def test_a_text_of_many_urls_is_read_once(piece: str) -> None:
    """A search from each `://` to the end of the text would take minutes."""
    assert without_secrets(piece * 200_000).startswith("://")


class Handler(BaseHTTPRequestHandler):
    """Rows for who knows the signature; a path with `to` in it is elsewhere."""

    seen: ClassVar[list[tuple[str, str | None]]] = []

    def do_GET(self) -> None:
        self.seen.append((self.path, self.headers.get("authorization")))
        if self.path.startswith("/to/"):
            self.send_response(302)
            self.send_header("location", f"http://localhost:{self.path.split('/')[2]}/rows.jsonl?sig={SECRET}")
            self.send_header("content-length", "0")
            self.end_headers()
            return
        found = f"sig={SECRET}" in self.path and "rows" in self.path
        body = "".join(json.dumps(row) + "\n" for row in ROWS).encode() if found else b""
        self.send_response(200 if found else 403)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The port of a server of this machine."""
    pytest.importorskip("fsspec")
    pytest.importorskip("aiohttp")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=partial(server.serve_forever, 0.05), daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.fixture
def url(port: int) -> str:
    """A signed URL."""
    Handler.seen.clear()
    return f"http://127.0.0.1:{port}/rows.jsonl?sig={SECRET}"


def test_another_host_does_not_get_the_password(url: str, port: int) -> None:
    assert validate_eval_set(url, format="databricks").row_count == 2
    validate_eval_set(f"http://ana:{SECRET}@127.0.0.1:{port}/to/{port}/rows.jsonl", format="databricks")
    given = {path: authorization for path, authorization in Handler.seen if path.startswith("/to/")}
    assert all(value and value.startswith("Basic ") for value in given.values())
    assert {authorization for path, authorization in Handler.seen if path.startswith("/rows")} == {None}


def test_no_form_of_a_report_shows_it(url: str, tmp_path: Path) -> None:
    report = validate_eval_set(url, format="databricks")
    assert (report.row_count, summary_of(report).name) == (2, f"{url.partition(chr(63))[0]}?***")
    forms = [report.to_text(), report.to_html(), report.to_json(), repr(report), report._repr_html_()]
    diff = diff_eval_sets(url, ROWS, format="databricks")
    conversion = convert_eval_set(url, "vertex", format="databricks")
    for result in (diff, conversion):
        forms += [result.to_text(), result.to_html(), result.to_json(), repr(result)]
    report.write(tmp_path / "rows.parquet")
    assert not [form for form in forms if SECRET in form]
    assert SECRET.encode() not in (tmp_path / "rows.parquet").read_bytes()


@pytest.mark.parametrize(
    "name",
    [
        f"nosuchscheme://ana:{SECRET}@host/a.jsonl",
        f"https://ana:{SECRET}@127.0.0.1:9/a.jsonl?sig={SECRET}",
    ],
)
def test_no_error_shows_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(EvalSetError) as raised:
        validate_eval_set(name)
    assert SECRET not in str(raised.value) + repr(raised.value)
    for arguments in (["validate", name], ["validate", name, "--debug"], ["diff", name, name]):
        assert main([*arguments]) == 2
        out, err = capsys.readouterr()
        assert SECRET not in out + err


def test_a_driver_that_quotes_a_part_of_the_url_does_not_show_it() -> None:
    pytest.importorskip("fsspec")
    with pytest.raises(
        EvalSetError, match=r"memory://\*\*\*@bucket/no.jsonl: cannot be read: .*/\*\*\*@bucket/no.jsonl"
    ):
        validate_eval_set(f"memory://ana:{SECRET}@bucket/no.jsonl")


def test_an_internal_error_shows_the_command_without_it(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError(f"of {url}")

    monkeypatch.setattr("agent_eval_schema.validation.validate.check_source", broken)
    assert main(["validate", url]) == 2
    err = capsys.readouterr().err
    assert "internal error" in err
    assert SECRET not in err
