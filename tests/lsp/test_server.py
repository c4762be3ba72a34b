"""The language server as an editor has it: a process that it talks to over stdin and stdout."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.validation.validate import check_source
from tests.conftest import PATIENCE, SAMPLES
from tests.helpers.editor import Editor, edit

pytest.importorskip("pygls")
pytestmark = pytest.mark.process

BAD = '{"request": {"messages": [{"role": "usr", "content": "Hi é😀"}]}, "response": "Hello!"}\n'
GOOD = BAD.replace("usr", "user")


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    (tmp_path / "rows.jsonl").write_text(GOOD * 2 + BAD, encoding="utf-8")
    return tmp_path / "rows.jsonl"


def codes(diagnostics: list[Any]) -> list[tuple[str, int]]:
    return [(d.code, d.range.start.line) for d in diagnostics]


@pytest.mark.parametrize("name", ["broken.jsonl", "golden_broken.csv", "evaluation_broken.json"])
def test_the_diagnostics_of_a_file_are_the_issues_of_validate(name: str, tmp_path: Path) -> None:
    issues = list(check_source(open_source(str(SAMPLES / name))).iter_issues())

    async def work(editor: Editor) -> None:
        found = await editor.checked(editor.open(SAMPLES / name))
        assert sorted(d.code for d in found) == sorted(i.code for i in issues)
        for diagnostic in found:
            issue = next(i for i in issues if i.code == diagnostic.code and diagnostic.message.startswith(i.message))
            assert diagnostic.message == f"{issue.message}\n→ {issue.hint}"
            assert diagnostic.code_description.href.endswith(f"/reference/rules/{issue.name}.html")
            assert diagnostic.source == "agent-eval-schema"
            assert diagnostic.severity.name.lower() in (issue.severity, "information", "hint")

    edit(work, tmp_path)


def test_a_typo_is_marked_while_it_is_typed_and_gone_when_it_is_corrected(rows: Path) -> None:
    async def work(editor: Editor) -> None:
        uri = editor.open(rows)
        (found,) = await editor.checked(uri)
        assert (found.code, found.range) == ("AE206", editor.range((2, 35), (2, 40)))
        editor.type(uri, 2, (2, 36), (2, 39), "user")
        assert await editor.checked(uri, 2) == []
        editor.type(uri, 3, (0, 36), (0, 40), "assistent")
        assert codes(await editor.checked(uri, 3)) == [("AE206", 0)]

    edit(work, rows.parent)


def test_columns_are_in_the_units_that_the_editor_prefers(rows: Path) -> None:
    from lsprotocol import types

    rows.write_text('{"tags": "é😀", "request": " ", "response": "a"}\n', encoding="utf-8")

    async def work(editor: Editor) -> None:
        found = await editor.checked(editor.open(rows))
        place = next(d.range for d in found if d.code == "AE202")
        assert (place.start.character, place.end.character) == (30, 33)  # é😀 has six bytes

    edit(work, rows.parent, general=types.GeneralClientCapabilities(position_encodings=["utf-8", "utf-16"]))


def test_the_other_row_of_a_comparison_is_a_related_place(rows: Path) -> None:
    ids = [{"request_id": "q1", "request": f"a{i}", "response": "b"} for i in range(2)]
    rows.write_text("".join(json.dumps(row) + "\n" for row in ids))

    async def work(editor: Editor) -> None:
        found = await editor.checked(editor.open(rows))
        (repeated,) = [d for d in found if d.code == "AE901"]
        (related,) = repeated.related_information
        assert (repeated.range.start.line, related.location.range.start.line) == (1, 0)

    edit(work, rows.parent)


def test_a_file_that_cannot_be_read_has_one_error_and_others_are_none_of_the_servers(rows: Path) -> None:
    latin = rows.parent / "rows.csv"
    latin.write_text("request,response\n")
    (rows.parent / "agent-eval-schema.toml").write_text("formt = 1\n")

    async def work(editor: Editor) -> None:
        (found,) = await editor.checked(editor.open(latin))
        assert "unknown setting" in found.message
        editor.open(rows.parent / "notes.md", "# Notes")
        assert {p.uri for p in editor.diagnostics} == {latin.as_uri()}

    edit(work, rows.parent)


def test_a_file_that_may_be_no_dataset_is_no_error_unless_its_name_says_that_it_is_one(rows: Path) -> None:
    """Each `package.json` that is opened would have one."""
    package, dataset = rows.parent / "package.json", rows.parent / "eval_set.json"
    for path in (package, dataset):
        path.write_text('[{"name": "x", "version": "1.0.0"}]')

    async def work(editor: Editor) -> None:
        from lsprotocol import types

        for path, severity in ((package, types.DiagnosticSeverity.Hint), (dataset, types.DiagnosticSeverity.Error)):
            found = [d for d in await editor.checked(editor.open(path)) if d.code == "AE113"]
            assert {d.severity for d in found} == {severity}

    edit(work, rows.parent)


def resolving() -> dict[str, Any]:
    """The capabilities of an editor that asks for an edit when it is chosen."""
    from lsprotocol import types

    options = types.ClientCodeActionResolveOptions(["edit"])
    return {
        "text_document": types.TextDocumentClientCapabilities(
            code_action=types.CodeActionClientCapabilities(resolve_support=options, data_support=True)
        ),
        "workspace": types.WorkspaceClientCapabilities(
            workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True)
        ),
    }


def test_what_can_be_done_about_an_issue(rows: Path) -> None:
    text = rows.read_text("utf-8").replace("Hello!", "").replace("usr", "Human ") + BAD.replace("usr", "human")
    rows.write_text(text, encoding="utf-8")

    async def work(editor: Editor) -> None:
        uri = editor.open(rows)
        await editor.checked(uri)
        actions = {a.title: a for a in await editor.actions(uri, (2, 38), (2, 38))}
        assert list(actions) == [
            "Fix: wrote a role as the schema has it (request.messages[0].role)",
            "Fix every AE206 message-role in the file",
            "Apply all safe fixes in the file",
            "Ignore AE206 message-role in this repository",
            "Open the rows with errors in the review",
        ]
        first, every, all_, ignore, review = actions.values()
        assert editor.applied(first, uri, text) == text.replace("Human ", "user")
        assert first.is_preferred
        assert [d.code for d in first.diagnostics] == ["AE206"]
        assert editor.applied(every, uri, text) == text.replace("Human ", "user").replace("human", "user")
        assert editor.applied(all_, uri, text) == editor.applied(every, uri, text)
        created, change = ignore.edit.document_changes
        assert created.uri == (rows.parent / "agent-eval-schema.toml").as_uri() == change.text_document.uri
        assert change.edits[0].new_text == 'ignore = ["AE206"]\n'
        assert (review.command, *review.arguments) == ("agent-eval-schema.review", uri)
        (fix_all,) = await editor.actions(uri, (0, 0), (0, 0), ["source.fixAll"])
        assert fix_all.title == "Apply all safe fixes in the file"

    edit(work, rows.parent, **resolving())


def test_the_review_of_a_file_opens_and_ends_with_the_server(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (rows.parent / "uvicorn.py").write_text("raise SystemExit('imported from the folder of the editor')")
    browser = rows.parent / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > "{rows.parent}/opened.txt"\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    opened: list[str] = []

    async def work(editor: Editor) -> None:
        uri = editor.open(rows)
        await editor.checked(uri)
        ask = editor.types.ExecuteCommandParams
        await editor.client.workspace_execute_command_async(ask("agent-eval-schema.review", [uri]))
        assert editor.messages == ["The review opened in the browser. It ends with the editor."]
        page = rows.parent / "opened.txt"
        while not (page.exists() and page.read_text()):
            await asyncio.sleep(0.05)
        text = Path(page.read_text().strip().removeprefix("file://")).read_text("utf-8")
        opened.append(text.partition("url=")[2].partition("#")[0])
        with urllib.request.urlopen(opened[0]) as answer:
            assert answer.status == 200
        rows.unlink()
        await editor.client.workspace_execute_command_async(ask("agent-eval-schema.review", [uri]))
        assert editor.messages[-1] == f"agent-eval-schema: {rows}: no such file"

    edit(work, rows.parent)
    for _ in range(600):  # it ends by itself when it sees that the server has
        try:
            urllib.request.urlopen(opened[0]).close()
        except urllib.error.URLError:
            return
        time.sleep(0.05)
    raise AssertionError("the review goes on")


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_the_review_ends_with_a_server_that_is_killed(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROWSER", "true %s")

    async def work(editor: Editor) -> None:
        uri = editor.open(rows)
        await editor.checked(uri)
        command = editor.types.ExecuteCommandParams("agent-eval-schema.review", [uri])
        await editor.client.workspace_execute_command_async(command)
        server = editor.client._server.pid
        (review,) = (int(pid) for pid in Path(f"/proc/{server}/task/{server}/children").read_text().split())
        editor.client._server.kill()
        while Path(f"/proc/{review}").exists():
            await asyncio.sleep(0.05)
        raise _Ended

    class _Ended(Exception):
        pass

    with pytest.raises(_Ended):
        edit(work, rows.parent)


def test_a_request_is_cancelled(rows: Path) -> None:
    rows.write_text(BAD * 3_000, encoding="utf-8")

    async def work(editor: Editor) -> None:
        types, uri = editor.types, editor.open(rows)
        await editor.checked(uri)
        params = types.CodeActionParams(
            types.TextDocumentIdentifier(uri), editor.range((0, 40), (0, 40)), types.CodeActionContext([])
        )
        asked = asyncio.ensure_future(editor.client.text_document_code_action_async(params))
        await asyncio.sleep(0)
        (number,) = editor.client.protocol._request_futures
        editor.client.protocol.notify("$/cancelRequest", types.CancelParams(number))
        with pytest.raises(Exception, match="cancel"):
            await asked
        assert [a.title for a in await editor.actions(uri, (0, 40), (0, 40))]

    edit(work, rows.parent)


def test_a_fix_of_an_earlier_text_is_not_made(rows: Path) -> None:
    async def work(editor: Editor) -> None:
        uri = editor.open(rows)
        await editor.checked(uri)
        params = editor.types.CodeActionParams(
            editor.types.TextDocumentIdentifier(uri), editor.range((2, 38), (2, 38)), editor.types.CodeActionContext([])
        )
        found = await editor.client.text_document_code_action_async(params)
        every = next(a for a in found if a.title.startswith("Fix every"))
        editor.type(uri, 2, (0, 0), (0, 0), "\n")
        assert (await editor.client.code_action_resolve_async(every)).edit is None

    edit(work, rows.parent, **resolving())


def test_a_closed_file_has_no_diagnostics(rows: Path) -> None:
    async def work(editor: Editor) -> None:
        uri = editor.open(rows)
        assert await editor.checked(uri)
        editor.close(uri)
        await editor.until(lambda: not editor.diagnostics[-1].diagnostics)

    edit(work, rows.parent)


def test_a_server_without_an_editor_ends(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "agent_eval_schema", "server"]
    done = subprocess.run(command, input=b"", capture_output=True, timeout=PATIENCE, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, b"")


def test_what_an_editor_asks_about_a_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text('[\n {"request": "Why?",\n  "response": "b"},\n {"request": "How?", "response": "b"}\n]\n')

    async def work(editor: Editor) -> None:
        types, client = editor.types, editor.client
        uri = editor.open(path)
        await editor.checked(uri)
        document, place = types.TextDocumentIdentifier(uri), types.Position(1, 5)
        shown = await client.text_document_hover_async(types.HoverParams(document, place))
        assert "**Row 0** supports " in shown.contents.value
        symbols = await client.text_document_document_symbol_async(types.DocumentSymbolParams(document))
        assert [(s.name, s.range.start.line) for s in symbols] == [("0: Why?", 1), ("1: How?", 3)]
        (fold,) = await client.text_document_folding_range_async(types.FoldingRangeParams(document))
        assert (fold.start_line, fold.end_line) == (1, 2)
        hints = await client.text_document_inlay_hint_async(
            types.InlayHintParams(document, editor.range((0, 0), (9, 0)))
        )
        assert [(h.position.line, h.label.endswith(" metrics")) for h in hints] == [(2, True), (3, True)]
        completed = await client.text_document_completion_async(types.CompletionParams(document, types.Position(1, 5)))
        assert "response" not in [item.label for item in completed]
        assert "retrieved_context" in [item.label for item in completed]

    edit(work, tmp_path, options={"inlayHints": True})


HOSTILE = [
    "[" * 100_000,
    '{"request": ' * 50_000,
    '{"request": "' + "\\" * 99_999,
    '"' * 100_001,
    "\0\ud800\udfff{\u2028\x0c\r\r\n",
    '{"request": "\\ud800", "response": "a\u202e"}\r{"request": 1}',
    '{"request": {"messages": [{"role": "\u001b]8;;x\u0007"}]}, "a`b": "::error::x"}\n' * 50,
    "request,response\n" + '"' * 9_999,
    "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c, *c]\n" * 9,
    "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)),
    "- " * 9_000,
    "",
]


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json", "rows.csv", "rows.yaml"])
def test_no_text_ends_the_server_or_makes_it_hang(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text("")

    async def work(editor: Editor) -> None:
        types, client = editor.types, editor.client
        for version, text in enumerate(HOSTILE, 1):
            uri = editor.open(path, text, version)
            await editor.checked(uri, version)
            document, place = types.TextDocumentIdentifier(uri), types.Position(0, 3)
            await client.text_document_hover_async(types.HoverParams(document, place))
            await client.text_document_completion_async(types.CompletionParams(document, place))
            await client.text_document_document_symbol_async(types.DocumentSymbolParams(document))
            await client.text_document_folding_range_async(types.FoldingRangeParams(document))
            await editor.actions(uri, (0, 0), (0, 9))
        editor.type(uri, 99, (7, 3), (2, 1), "{}\n")  # places that are not there
        assert await editor.checked(uri, 99) is not None
        assert not any("internal error" in d.message for p in editor.diagnostics for d in p.diagnostics)

    edit(work, tmp_path, **resolving())


def test_what_is_no_message_does_not_end_the_server(tmp_path: Path) -> None:
    def message(body: bytes) -> bytes:
        return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)

    parts = [message(b) for b in (b"[" * 99_999, b"{", b"[]", b"7", b'{"jsonrpc": "2.0", "method": 7}', b"\xff")]
    ask = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}
    command = [sys.executable, "-m", "agent_eval_schema", "server"]
    data = b"x\r\n\r\n" + b"".join(parts) + message(json.dumps(ask).encode())
    done = subprocess.run(command, input=data, capture_output=True, timeout=PATIENCE, cwd=tmp_path)
    assert b'"hoverProvider"' in done.stdout
    assert done.returncode == 0


@pytest.mark.parametrize("digits", [30, 900, 9_999])
def test_a_message_of_any_length_ends_the_server_as_its_stdin_does(digits: int, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "agent_eval_schema", "server"]
    data = b"Content-Length: %s\r\n\r\n{}" % (b"9" * digits)
    done = subprocess.run(command, input=data, capture_output=True, timeout=PATIENCE, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_editor_that_reads_no_more_has_ended(tmp_path: Path) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}).encode()
    message = b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    command, pipe = [sys.executable, "-m", "agent_eval_schema", "server"], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=tmp_path) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        with contextlib.suppress(OSError):  # it may end before all is sent
            process.stdin.write(message * 99)
            process.stdin.flush()
        errors = process.stderr.read()  # while stdin is open
        assert (process.wait(60), errors) == (0, b"")
        with contextlib.suppress(OSError):
            process.stdin.close()


def test_a_large_file_is_checked_when_it_is_opened_and_saved(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lsprotocol import types

    from agent_eval_schema.lsp import server

    monkeypatch.setattr(server, "MOST_TYPED", 10)
    published: list[Any] = []

    class Client:
        server_capabilities = types.ServerCapabilities(position_encoding="utf-16")
        text_document_publish_diagnostics = published.append

    async def work() -> None:
        session = server.Session(Client())
        uri = rows.as_uri()
        document = types.TextDocumentIdentifier(uri)
        session.open(types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "", 1, rows.read_text("utf-8"))))
        file = session.files[uri]
        await file.tasks["all"]
        assert [d.code for d in published[-1].diagnostics] == ["AE206", None]
        assert published[-1].diagnostics[1].message.endswith("it is checked when it is saved.")
        change = types.TextDocumentContentChangeWholeDocument(GOOD * 2)
        changed = types.VersionedTextDocumentIdentifier(2, uri)
        session.change(types.DidChangeTextDocumentParams(changed, [change]))
        assert file.tasks["all"].done()  # nothing is to be checked
        rows.write_text(GOOD * 2, encoding="utf-8")
        session.save(types.DidSaveTextDocumentParams(document))
        await file.tasks["all"]
        assert [d.code for d in published[-1].diagnostics] == [None]

    asyncio.run(work())


def test_what_an_earlier_text_was_to_be_checked_for_is_cancelled(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lsprotocol import types

    from agent_eval_schema.lsp import server

    published: list[Any] = []
    checked: list[str] = []
    check_all = server.check_all

    def noting(path: str, text: Any, stopped: Any) -> Any:
        checked.append(text.whole)
        return check_all(path, text, stopped)

    monkeypatch.setattr(server, "check_all", noting)

    class Client:
        server_capabilities = types.ServerCapabilities(position_encoding="utf-16")
        text_document_publish_diagnostics = published.append

    async def work() -> None:
        session = server.Session(Client())
        uri = rows.as_uri()
        session.open(types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "", 1, BAD)))
        for version in range(2, 50):
            change = types.TextDocumentContentChangeWholeDocument(GOOD * version)
            document = types.VersionedTextDocumentIdentifier(version, uri)
            session.change(types.DidChangeTextDocumentParams(document, [change]))
        await session.files[uri].tasks["all"]
        assert checked == [GOOD * 49]
        assert [(p.version, list(p.diagnostics)) for p in published] == [(49, [])]

    asyncio.run(work())
