"""The server: what an editor sends over stdin → what it is sent over stdout. It opens no connection.

    didOpen, didChange, didSave ──▶ File (text, version) ──after a pause, in a thread──▶ check_all ──▶ diagnostics
                                         └──at once, for JSON Lines──▶ check_lines ──▶ diagnostics

The texts are kept here and not by pygls, which counts every line separator of Unicode as the end of a line. Text of
cells never goes into a log.
"""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO

from agent_eval_schema.errors import EvalSetError, import_extra
from agent_eval_schema.fix.effects import FIXABLE
from agent_eval_schema.io.git import DEFAULT
from agent_eval_schema.io.places import kind_of
from agent_eval_schema.lsp import answers
from agent_eval_schema.lsp.check import (
    MOST_TYPED,
    Found,
    Mark,
    check_all,
    check_lines,
    is_dataset,
    marks_of,
    problem_mark,
)
from agent_eval_schema.lsp.fixes import Change, fixes_at, fixes_of, ignoring
from agent_eval_schema.lsp.rows import place_of, span
from agent_eval_schema.lsp.text import Place, Text
from agent_eval_schema.render.phrases import Call
from agent_eval_schema.rule import Severity
from agent_eval_schema.rules import RULES, all_rules
from agent_eval_schema.rules.columns import UNKNOWN_FORMAT
from agent_eval_schema.runtime.version import __version__
from agent_eval_schema.text.guarded import MOST_BYTES
from agent_eval_schema.text.visible import visible

types: Any = import_extra("lsprotocol.types", "lsp", "pygls 2")
uris: Any = import_extra("pygls.uris", "lsp", "pygls 2")

NAME = "agent-eval-schema"
PAGES = "https://agent-eval-schema.github.io/agent-eval-schema/reference/rules"

REVIEW = "agent-eval-schema.review"
_FIX_ALL = "source.fixAll.agent-eval-schema"

TYPED, PAUSED = 0.05, 0.6
"""Seconds after the last key until new lines, and until the whole file is checked."""

MOST_LINES = 100
"""Lines of a selection whose fixes are offered one by one, at most."""

_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFO: types.DiagnosticSeverity.Information,
}


class File:
    """An open file: its text as the editor has it, and what was found in it."""

    def __init__(self, uri: str, path: str, text: Text, version: int) -> None:
        self.uri, self.path, self.text, self.version = uri, path, text, version
        self.found: Found | None = None
        self.problem: EvalSetError | None = None
        self.marks: list[Mark] = []
        self.shown = -1  # the version whose marks these are
        self.tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def is_large(self) -> bool:
        return self.text.size > MOST_TYPED


class Session:
    """The files of one editor."""

    def __init__(self, server: Any) -> None:
        self.server = server
        self.files: dict[str, File] = {}
        self.one_check = asyncio.Lock()
        self.has_hints = False
        self.reviews: list[subprocess.Popen[bytes]] = []

    # --- texts
    def open(self, params: Any) -> None:
        document = params.text_document
        path = _path(document.uri)
        if path is None or not is_dataset(path):
            return
        units = self.server.server_capabilities.position_encoding
        text = Text.of(document.text, str(getattr(units, "value", units)))
        file = self.files[document.uri] = File(document.uri, path, text, document.version)
        self._later(file, "all", 0, self._check_all)

    def change(self, params: Any) -> None:
        file = self.files.get(params.text_document.uri)
        if file is None:
            return
        for change in params.content_changes:
            before = len(file.text.lines)
            if (changed := getattr(change, "range", None)) is None:
                file.text, kept_before, kept_behind = Text.of(change.text, file.text.units), 0, 0
            else:
                start, end = _place(changed.start), _place(changed.end)
                file.text, kept_before, kept_behind = file.text.edited(start, max(start, end), change.text)
            if file.found is not None:
                grown = len(file.text.lines) - before
                file.found.compared = [
                    mark if mark.start.line < kept_before else mark.moved(grown)
                    for mark in file.found.compared
                    if mark.start.line < kept_before or mark.start.line >= before - kept_behind
                ]
        file.version = params.text_document.version
        if file.is_large:
            return
        if file.found is not None and file.found.lines is not None:
            self._later(file, "lines", TYPED, self._check_lines)
        self._later(file, "all", PAUSED, self._check_all)

    def save(self, params: Any) -> None:
        for file in self.files.values():  # a file may be saved that others are compared with, or the settings
            if file.uri == params.text_document.uri or not file.is_large:
                self._later(file, "all", 0, self._check_all)

    def close(self, params: Any) -> None:
        file = self.files.pop(params.text_document.uri, None)
        if file is not None:
            for task in file.tasks.values():
                task.cancel()
            self._publish(file, [])

    # --- checks
    def _later(self, file: File, what: str, seconds: float, run: Callable[[File], Any]) -> None:
        """Run something for a file after a pause; what was to run for an earlier text does not."""

        async def wait() -> None:
            await asyncio.sleep(seconds)
            try:
                await run(file)
            except Exception as error:  # an internal error costs a check, not the server
                file.found, file.problem = None, EvalSetError(f"internal error: {type(error).__name__}")
                self._show(file)

        if (before := file.tasks.get(what)) is not None:
            before.cancel()
        file.tasks[what] = asyncio.ensure_future(wait())

    async def _check_lines(self, file: File) -> None:
        found = file.found
        if found is not None and found.lines is not None:
            check_lines(file.path, found, file.text)
            self._show(file)

    async def _check_all(self, file: File) -> None:
        async with self.one_check:
            version, text, ended = file.version, file.text, threading.Event()
            try:
                result = await asyncio.to_thread(check_all, file.path, None if file.is_large else text, ended.is_set)
                problem = None
            except (EvalSetError, OSError) as error:
                result, problem = None, error if isinstance(error, EvalSetError) else EvalSetError(str(error))
            finally:
                ended.set()
        if version == file.version and file.uri in self.files:
            file.found, file.problem = result, problem
            self._show(file)

    # --- diagnostics
    def _show(self, file: File) -> None:
        marks, more = ([], 0) if file.found is None else marks_of(file.found, file.text)
        if file.problem is not None:
            marks = [problem_mark(file.problem)]
        file.marks, file.shown = marks, file.version
        diagnostics = [self._diagnostic(file, mark) for mark in marks]
        if more:
            command = Call(file.path).command("validate")
            diagnostics.append(_note(f"{more:,} more issues: `{command}` lists them."))
        if file.is_large:
            diagnostics.append(_note(f"The file has more than {MOST_TYPED >> 20} MB: it is checked when it is saved."))
        self._publish(file, diagnostics)

    def _publish(self, file: File, diagnostics: list[Any]) -> None:
        params = types.PublishDiagnosticsParams(uri=file.uri, diagnostics=diagnostics, version=file.version)
        self.server.text_document_publish_diagnostics(params)

    # --- code actions
    async def code_action(self, params: Any) -> list[Any]:
        """What can be done about the issues at a place: those under the cursor, else those on its lines."""
        file = self.files.get(params.text_document.uri)
        if file is None or file.found is None or file.shown != file.version:
            return []
        start, end = _place(params.range.start), _place(params.range.end)
        on_lines = [m for m in file.marks if m.start.line <= end.line and m.end.line >= start.line]
        marks = [m for m in on_lines if m.start <= end and m.end >= start] or on_lines
        fixable = {m.code for m in marks if m.code in FIXABLE}
        only = params.context.only
        actions = []
        if fixable and not file.is_large and _asks_for(only, types.CodeActionKind.QuickFix):
            try:
                last = min(end.line, start.line + MOST_LINES)
                fixes = await asyncio.to_thread(fixes_at, file.path, file.text, file.found, start.line, last)
            except EvalSetError:
                fixes = []
            for fix, changes in fixes:
                about = [m for m in marks if m.code in FIXABLE and (m.path or "").startswith(fix.column)]
                if about and changes:
                    diagnostics = [self._diagnostic(file, mark) for mark in about]
                    title = f"Fix: {fix.what} ({visible(fix.parts[0].path)})"
                    edit, kind = self._edit(file.uri, changes, file.version), types.CodeActionKind.QuickFix
                    actions.append(types.CodeAction(title, kind, diagnostics, is_preferred=True, edit=edit))
            titles = {code: f"Fix every {code} {RULES[code].name} in the file" for code in sorted(fixable)}
            actions += [await self._fix_all(file, title, [code]) for code, title in titles.items()]
        if any(m.code in FIXABLE for m in file.marks) and _asks_for(only, _FIX_ALL) and not file.is_large:
            actions.append(await self._fix_all(file, "Apply all safe fixes in the file", sorted(FIXABLE), _FIX_ALL))
        if _asks_for(only, types.CodeActionKind.QuickFix):
            codes = sorted({m.code for m in marks if m.code in all_rules()})
            actions += [action for code in codes for action in self._ignoring(file, code)]
            if any(m.severity is Severity.ERROR for m in marks):
                title = "Open the rows with errors in the review"
                actions.append(types.Command(title, REVIEW, arguments=[file.uri]))
        return actions

    async def _fix_all(self, file: File, title: str, codes: list[str], kind: Any = "quickfix") -> Any:
        """The fixes of the whole file, which an editor that can do so asks for when they are chosen."""
        action = types.CodeAction(title, kind=kind, data={"uri": file.uri, "version": file.version, "codes": codes})
        client = self.server.client_capabilities.text_document
        resolves = client and client.code_action and client.code_action.resolve_support
        return action if resolves else await self.resolve(action)

    async def resolve(self, action: Any) -> Any:
        data = action.data or {}
        file = self.files.get(str(data.get("uri")))
        if file is None or file.found is None or file.version != data["version"]:
            return action  # of a text that the editor no longer has
        try:
            changes = await asyncio.to_thread(fixes_of, file.path, file.text, file.found, frozenset(data["codes"]))
        except EvalSetError as error:
            self.server.window_show_message(types.ShowMessageParams(types.MessageType.Warning, visible(str(error))))
            return action
        action.edit = self._edit(file.uri, changes, data["version"])
        return action

    def _ignoring(self, file: File, code: str) -> list[Any]:
        found = ignoring(file.path, code, self.server.workspace.root_path or os.path.dirname(file.path))
        if found is None:
            return []
        path, change = found
        uri, creates = uris.from_fs_path(path), not os.path.exists(path)
        title = f"Ignore {code} {RULES[code].name} in this repository"
        edit = self._edit(uri, [change], None, creates)
        return [types.CodeAction(title, kind=types.CodeActionKind.QuickFix, edit=edit)] if edit else []

    def _edit(self, uri: str, changes: list[Change], version: int | None, creates: bool = False) -> Any:
        """The changes for an editor, of this version of the text if it can tell versions apart."""
        edits = [types.TextEdit(_range(change.start, change.end), change.new) for change in changes]
        workspace = self.server.client_capabilities.workspace
        client = workspace.workspace_edit if workspace else None
        if client is None or not client.document_changes:
            return None if creates else types.WorkspaceEdit(changes={uri: edits})
        document = types.OptionalVersionedTextDocumentIdentifier(uri, version)
        new = [types.CreateFile(uri, options=types.CreateFileOptions(ignore_if_exists=True))] if creates else []
        return types.WorkspaceEdit(document_changes=[*new, types.TextDocumentEdit(document, edits)])

    async def review(self, uri: str) -> None:
        """Start the review of a file's rows with errors, a server of its own that opens its page. It ends when the pipe
        to it does, however this process ends."""
        if (file := self.files.get(uri)) is None:
            return
        command = [sys.executable, "-c", _COMMAND, "review", file.path, "--queue", "errors"]
        folder, pipe = os.path.dirname(file.path), subprocess.PIPE
        process = subprocess.Popen(command, cwd=folder, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT)
        self.reviews.append(process)
        assert process.stdout is not None
        first = (await asyncio.to_thread(process.stdout.readline)).decode("utf-8", "replace")
        if first.startswith("http"):
            kind, text = types.MessageType.Info, "The review opened in the browser. It ends with the editor."
        else:
            kind, text = types.MessageType.Warning, visible(first.strip())
        self.server.window_show_message(types.ShowMessageParams(kind, text))

    # --- what an editor asks about a place
    def _current(self, params: Any) -> tuple[File | None, Found | None]:
        """The file, and what was found in the text that the editor has now."""
        file = self.files.get(params.text_document.uri)
        if file is None or file.found is None or file.shown == file.version:
            return file, None if file is None else file.found
        if file.found.lines is None or file.is_large:
            return file, None
        check_lines(file.path, file.found, file.text)
        return file, file.found

    def hover(self, params: Any) -> Any:
        file, found = self._current(params)
        if file is None or found is None:
            return None
        marks = file.marks if file.shown == file.version else marks_of(found, file.text)[0]
        text = answers.hover(found, file.text, _place(params.position), marks, PAGES)
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text)) if text else None

    async def completion(self, params: Any) -> list[Any]:
        file = self.files.get(params.text_document.uri)
        if file is None or file.is_large:
            return []
        kind = kind_of(file.path) or "yaml"
        if kind == "json" and file.found is not None and file.found.lines is not None:
            kind = "jsonl"
        proposals = await asyncio.to_thread(answers.proposals, file.found, file.text, _place(params.position), kind)
        return [self._proposed(file.text, proposal, kind) for proposal in proposals]

    def _proposed(self, text: Text, proposal: answers.Proposal, file_kind: str) -> Any:
        new = answers.written(proposal, file_kind)
        kind = types.CompletionItemKind.Property if proposal.is_key else types.CompletionItemKind.Value
        edit = types.TextEdit(_range(text.place(proposal.start), text.place(proposal.end)), new)
        return types.CompletionItem(visible(proposal.text), kind=kind, text_edit=edit, filter_text=new)

    async def symbols(self, params: Any) -> list[Any]:
        file, found = self._current(params)
        if file is None or found is None:
            return []
        text = file.text
        return [
            types.DocumentSymbol(
                f"{row}: {answers.question(found, node)}",
                types.SymbolKind.Object,
                _range(*span(text, node.start, node.end)),
                _range(*span(text, node.start, node.start)),  # its first character
            )
            for row, node in answers.rows_listed(found)
        ]

    async def folding(self, params: Any) -> list[Any]:
        file, found = self._current(params)
        if file is None or found is None or found.lines is not None:
            return []
        ends = ([file.text.place(o).line for o in (n.start, n.end)] for _, n in answers.rows_listed(found))
        return [types.FoldingRange(first, last) for first, last in ends if last > first]

    async def inlay_hints(self, params: Any) -> list[Any]:
        """The number of metrics of each row, if the editor switched it on: `{"inlayHints": true}`."""
        file, found = self._current(params)
        if not self.has_hints or file is None or found is None:
            return []
        hints, text = [], file.text
        for row, node in answers.rows_listed(found):
            end = text.place(node.end)
            if params.range.start.line <= end.line <= params.range.end.line:
                metrics = answers.metrics_at(found, row)
                label = f"{len(metrics.supported)}/{metrics.total} metrics"
                hints.append(types.InlayHint(_position(end), label, padding_left=True))
        return hints

    def initialize(self, params: Any) -> None:
        options = params.initialization_options
        self.has_hints = isinstance(options, dict) and options.get("inlayHints") is True

    def _diagnostic(self, file: File, mark: Mark) -> Any:
        message = visible(mark.message) + (f"\n→ {visible(mark.hint)}" if mark.hint else "")
        where = _range(mark.start, mark.end)
        if mark.code not in all_rules():
            return types.Diagnostic(where, message, severity=types.DiagnosticSeverity.Error, source=NAME)
        related = None
        if mark.first is not None and file.found is not None:
            first = span(file.text, *place_of(file.found.rows, mark.first, mark.path))
            location = types.Location(file.uri, _range(*first))
            related = [types.DiagnosticRelatedInformation(location, f"row {mark.first}")]
        # any JSON or YAML file is opened in an editor; whether one is a dataset shows by its columns, or by its name
        page = answers.page_of(RULES[mark.code], PAGES)
        is_other = mark.code == UNKNOWN_FORMAT.code and not DEFAULT.search(file.path)
        return types.Diagnostic(
            where,
            message,
            severity=types.DiagnosticSeverity.Hint if mark.is_note or is_other else _SEVERITIES[mark.severity],
            code=mark.code,
            code_description=types.CodeDescription(page) if page else None,
            source=NAME,
            related_information=related,
        )


def _asks_for(only: Any, kind: str) -> bool:
    """Whether an editor asks for actions of a kind, or for all."""
    names = (getattr(name, "value", name) for name in only or ())
    return only is None or any(kind == name or kind.startswith(f"{name}.") for name in names)


def _note(text: str) -> Any:
    start = types.Position(0, 0)
    return types.Diagnostic(types.Range(start, start), text, types.DiagnosticSeverity.Information, source=NAME)


def _path(uri: str) -> str | None:
    """The path of a file on this machine."""
    path: str | None = uris.to_fs_path(uri)
    return os.path.abspath(path) if path and uri.startswith("file:") and "\0" not in path else None


def _place(position: Any) -> Place:
    return Place(max(position.line, 0), max(position.character, 0))


def _position(place: Place) -> Any:
    return types.Position(place.line, place.column)


def _range(start: Place, end: Place) -> Any:
    return types.Range(_position(start), _position(end))


_FEATURES: dict[str, tuple[str, Any]] = {
    types.TEXT_DOCUMENT_DID_OPEN: ("open", None),
    types.TEXT_DOCUMENT_DID_CHANGE: ("change", None),
    types.TEXT_DOCUMENT_DID_SAVE: ("save", types.SaveOptions(include_text=False)),
    types.TEXT_DOCUMENT_DID_CLOSE: ("close", None),
    types.TEXT_DOCUMENT_CODE_ACTION: (
        "code_action",
        types.CodeActionOptions([types.CodeActionKind.QuickFix, _FIX_ALL], resolve_provider=True),
    ),
    types.CODE_ACTION_RESOLVE: ("resolve", None),
    types.TEXT_DOCUMENT_HOVER: ("hover", None),
    types.TEXT_DOCUMENT_COMPLETION: ("completion", types.CompletionOptions(trigger_characters=['"'])),
    types.TEXT_DOCUMENT_DOCUMENT_SYMBOL: ("symbols", None),
    types.TEXT_DOCUMENT_FOLDING_RANGE: ("folding", None),
    types.TEXT_DOCUMENT_INLAY_HINT: ("inlay_hints", None),
    types.INITIALIZE: ("initialize", None),
}
"""What an editor asks for, and the method of the session that answers, with its options."""


def make_server() -> Any:
    """A server that is not started."""
    logging.getLogger("pygls").setLevel(logging.CRITICAL + 1)  # its messages quote cells
    server = import_extra("pygls.lsp.server", "lsp", "pygls 2").LanguageServer(NAME, __version__)
    session = Session(server)
    for name, (method, options) in _FEATURES.items():
        if name != types.INITIALIZE:  # else pygls keeps texts of its own
            server.protocol.fm.builtin_features.pop(name, None)
        server.feature(name, options)(partial(getattr(session, method)))  # a bound method takes none of its marks
    server.command(REVIEW)(partial(session.review))
    return server


_COMMAND = """
import os, signal, sys, threading
sys.path[:] = filter(None, sys.path)  # nothing is imported from the folder of the editor
def end():
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=end, daemon=True).start()
from agent_eval_schema.cli import main
sys.exit(main())
"""


MOST_HEADER = 1024
"""The bytes of a line of a header, at most; what is longer is more lines."""


class _Editor:
    """The editor at the other end of stdin and of a channel. What is read at once has a bound, as the length of a
    message can be any number; an editor that reads no more has ended."""

    def __init__(self, channel: BinaryIO) -> None:
        self._channel = channel

    def readline(self) -> bytes:
        return b"" if self._channel.closed else sys.stdin.buffer.readline(MOST_HEADER)

    def read(self, size: int) -> bytes:
        return sys.stdin.buffer.read(min(size, MOST_BYTES))

    def write(self, data: bytes) -> None:
        try:
            if not self._channel.closed:
                self._channel.write(data)
                self._channel.flush()
        except OSError:
            self.close()

    def flush(self) -> None:
        """A message is sent when it is written."""

    def close(self) -> None:
        with suppress(OSError):
            self._channel.close()


def serve() -> None:
    """Serve the editor that started this process, until it ends. What else is printed goes to stderr."""
    editor = _Editor(os.fdopen(os.dup(sys.stdout.fileno()), "wb"))
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.stdout = sys.stderr
    make_server().start_io(editor, editor)
