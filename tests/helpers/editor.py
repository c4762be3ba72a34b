"""An editor, for tests of the language server: the client of pygls on a real process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Editor:
    """A client that has opened files; each of `diagnostics` is what the server sent of a file and its version."""

    def __init__(self, client: Any) -> None:
        from lsprotocol import types

        self.client, self.types = client, types
        self.diagnostics: list[Any] = []
        self.messages: list[str] = []
        self._came = asyncio.Event()
        client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: self._take(self.diagnostics, params))
        client.feature(types.WINDOW_SHOW_MESSAGE)(lambda params: self._take(self.messages, params.message))

    def _take(self, found: list[Any], params: Any) -> None:
        found.append(params)
        self._came.set()

    async def until(self, test: Callable[[], Any], seconds: float = 60) -> Any:
        """Wait for what the server sends."""

        async def wait() -> Any:
            while not (found := test()):
                self._came.clear()
                await self._came.wait()
            return found

        return await asyncio.wait_for(wait(), seconds)

    def open(self, path: Path, text: str | None = None, version: int = 1) -> str:
        uri = path.as_uri()
        text = path.read_bytes().decode() if text is None else text
        document = self.types.TextDocumentItem(uri, "", version, text)
        self.client.text_document_did_open(self.types.DidOpenTextDocumentParams(document))
        return uri

    def type(self, uri: str, version: int, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        types = self.types
        change = types.TextDocumentContentChangePartial(self.range(start, end), text)
        document = types.VersionedTextDocumentIdentifier(version, uri)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))

    def save(self, uri: str) -> None:
        params = self.types.DidSaveTextDocumentParams(self.types.TextDocumentIdentifier(uri))
        self.client.text_document_did_save(params)

    def close(self, uri: str) -> None:
        params = self.types.DidCloseTextDocumentParams(self.types.TextDocumentIdentifier(uri))
        self.client.text_document_did_close(params)

    async def actions(self, uri: str, start: tuple[int, int], end: tuple[int, int], only: Any = None) -> list[Any]:
        """The code actions of a part of a file, each with its edit."""
        types = self.types
        context = types.CodeActionContext([], only=only)
        params = types.CodeActionParams(types.TextDocumentIdentifier(uri), self.range(start, end), context)
        found = await self.client.text_document_code_action_async(params)
        return [
            await self.client.code_action_resolve_async(a) if getattr(a, "data", None) is not None else a for a in found
        ]

    def applied(self, action: Any, uri: str, text: str) -> str:
        """The text after an action, by what the protocol defines."""
        (change,) = [c for c in action.edit.document_changes if c.text_document.uri == uri]
        lines = text.split("\n")
        for edit in sorted(change.edits, key=lambda e: (e.range.start.line, e.range.start.character), reverse=True):
            start, end = edit.range.start, edit.range.end
            head, tail = (lines[p.line].encode("utf-16-le") for p in (start, end))
            new = head[: 2 * start.character].decode("utf-16-le") + edit.new_text
            lines[start.line : end.line + 1] = [new + tail[2 * end.character :].decode("utf-16-le")]
        return "\n".join(lines)

    def range(self, start: tuple[int, int], end: tuple[int, int]) -> Any:
        return self.types.Range(self.types.Position(*start), self.types.Position(*end))

    async def checked(self, uri: str, version: int = 1) -> list[Any]:
        """The diagnostics of a version, when they come."""
        of_version = [p for p in self.diagnostics if p.uri == uri and p.version == version]
        if of_version:
            return list(of_version[-1].diagnostics)
        return list((await self.until(lambda: self._last(uri, version))).diagnostics)

    def _last(self, uri: str, version: int) -> Any:
        return next((p for p in reversed(self.diagnostics) if p.uri == uri and p.version == version), None)


def edit(work: Callable[[Editor], Any], folder: Path, **capabilities: Any) -> None:
    """Run a test with an editor that has started the server; it ends by itself when the editor asks it to."""
    from lsprotocol import types
    from pygls.lsp.client import LanguageClient

    async def session() -> None:
        client = LanguageClient("tests", "1")
        await client.start_io(sys.executable, "-m", "agent_eval_schema", "server", cwd=str(folder))
        editor = Editor(client)
        options = capabilities.pop("options", None)
        params = types.InitializeParams(
            capabilities=types.ClientCapabilities(**capabilities),
            root_uri=folder.as_uri(),
            initialization_options=options,
        )
        editor.server = await asyncio.wait_for(client.initialize_async(params), 60)  # type: ignore[attr-defined]
        client.initialized(types.InitializedParams())
        try:
            await asyncio.wait_for(work(editor), 120)
            await asyncio.wait_for(client.shutdown_async(None), 60)
            client.exit(None)
            assert await asyncio.wait_for(client._server.wait(), 60) == 0
        finally:
            if client._server is not None and client._server.returncode is None:
                client._server.kill()
            await client.stop()

    asyncio.run(session())
