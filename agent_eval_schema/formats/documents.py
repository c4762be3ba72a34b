"""Documents: files that are one value, and whose parts are rows of ours.

    {"skill_name": "csv", "evals": [a, b]}   ⇄   a and b, each with the skill_name     CaseList
    {"turns": [a, b]}                        ⇄   a, and b with a as its history         Conversations

A turn keeps its own keys and gets, beside those of its session, the columns `turn` (from 1), `turns` (how many there
are) and `history`, the turns before it. Rows are written as one session where each is the history of the next.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from agent_eval_schema.decoding import chat
from agent_eval_schema.formats.format import (
    CanonicalRow,
    Detect,
    Format,
    Nested,
    Row,
    Unfolded,
    Written,
    kept_of,
    lists_in,
)
from agent_eval_schema.formats.shapes import all_of, as_text, calls_in, has_entries
from agent_eval_schema.text.jsontext import structured


class CaseList(Struct, frozen=True):
    """A document with a list of rows under a key, beside values that all rows share."""

    key: str
    """The key of the list."""
    empty: Mapping[str, Any]
    """The document without rows, in the order of its keys. Its values are those for rows that do not agree."""
    text: str
    """The column of the question, which an entry that is no object is."""
    mark: str
    """The column that every row gets in addition, by which the format is known."""
    detect: Detect | None = None
    """Whether a document is of the format; None if its entries show it, by the column of the question or the mark."""
    of_document: Mapping[str, str] = MappingProxyType({"name": "dataset_name", "id": "dataset_id"})
    """Keys of the document that a case has, too, with another meaning, and the columns that hold them."""

    @property
    def nested(self) -> Nested:
        detect = self.detect or has_entries((self.key,), self.text, self.mark, empty=True)
        return lists_in(self.key, unfold=self._unfold, columns=(self.text, self.mark), detect=detect)

    def _unfold(self, document: Row) -> Iterator[Unfolded]:
        names = {k: self.of_document.get(k, k) for k in document if k != self.key}
        beside = {name: document[k] for k, name in names.items() if document[k] not in ([], {}, None)}
        for case in all_of(document.get(self.key)):
            row = {self.mark: None, **beside, **(case if isinstance(case, dict) else {self.text: case})}
            yield {**row, self.text: row.get(self.text)}, ()

    def document(self, rows: Sequence[CanonicalRow], form: Format) -> Written:
        """The document of canonical rows, with the columns that the format passes through."""
        columns = {name: name for name in self.empty if name != self.key} | dict(self.of_document)
        values = {name: [structured(row.get(column)) for row in rows] for name, column in columns.items()}
        own = set(form.passthrough_columns).difference(self.empty, self.of_document.values())
        cases = [form.write_row(row) | {k: v for k, v in row.items() if k in own and v is not None} for row in rows]
        document = {**self.empty, **shared_values(values), self.key: cases}
        return Written(document, document, form.name, range(len(rows)))


def shared_values(values: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """By key the value that all rows have."""
    first = {key: cells[0] for key, cells in values.items() if cells and cells[0] is not None}
    return {key: value for key, value in first.items() if all(other == value for other in values[key])}


def with_truth(rows: Iterable[Unfolded], truth: Row) -> Iterator[Unfolded]:
    """The turns of one case, the last one with the columns that are about the last answer, unless it has its own."""
    *before, (last, findings) = rows
    yield from before
    yield {**truth, **last}, findings


def _without_number(id: str, messages: Sequence[Row]) -> str:
    """The ID of a session by that of its last turn, if this is numbered."""
    name, _, number = id.rpartition("#")
    turns = sum(message["role"] == "user" for message in messages)
    return name if name and turns > 1 and number == str(turns) else id


def with_own_names(sessions: list[dict[str, Any]], key: str, noun: str = "") -> list[dict[str, Any]]:
    """The sessions, each with a name of its own under the key; one without a name stays so if there is no noun."""
    names = [as_text(session.get(key)) for session in sessions]
    own, taken = set(names), set[str]()
    for i, (session, original) in enumerate(zip(sessions, names, strict=True)):
        name = original
        if (original is None and noun) or original in taken:
            name = f"{noun} {i + 1}" if original is None else f"{original}'"
            while name in own or name in taken:
                name += "'"
            session[key] = name
        if name is not None:
            taken.add(name)
    return sessions


TURN = ("turn", "turns", "history")
"""The columns that place a turn in its session."""


class Conversations(Struct, frozen=True):
    """How sessions are read and written."""

    turns: str
    """The key of their turns."""
    texts_of: Callable[[Row], tuple[Any, Any]]
    """The question and the answer of a turn."""
    of_session: tuple[str, ...] = ()
    """Columns that a session has and not a turn: they are on its last row."""
    name: str = ""
    """The column with the name of a session, which is on all of its rows: its ID, else that of its row."""
    calls: str = ""
    """That of `of_session` with the names of the calls expected in all turns, if a session has one."""
    wrap: Callable[[list[dict[str, Any]]], Any] = list
    """Makes the document of all sessions."""
    of_turn: tuple[str, ...] = ()
    """Columns that the format passes through and that a turn has, not a session."""

    def unfold(self, session: Mapping[str, Any]) -> Iterator[Unfolded]:
        """The turns of a session; an invalid one is a single row."""
        turns = all_of(session.get(self.turns)) or ({},)
        beside = {k: v for k, v in session.items() if k != self.turns and k not in self.of_session}
        last = {k: v for k, v in session.items() if k in self.of_session}
        for i, turn in enumerate(turns):
            place = {"turn": i + 1, "turns": len(turns), "history": list(turns[:i])}
            own = turn if isinstance(turn, dict) else {}
            yield {**beside, **(last if i == len(turns) - 1 else {}), **own, **place}, ()

    def read_history(self, source: Row, row: dict[str, Any]) -> None:
        """The request of a row, after the turns before it."""
        text, history = row.get("request"), structured(source.get("history"))
        if isinstance(text, str) and isinstance(history, list) and history:
            row["request"] = {"messages": [*self._messages(history), *chat.user_message(text)]}

    def read_place(self, source: Row, row: dict[str, Any]) -> None:
        """The request of a row, after the turns before it, and its ID: that of the session, with its number there."""
        self.read_history(source, row)
        name, turns = row.get("session_id"), source.get("turns")
        if isinstance(name, str) and isinstance(turns, int):
            row["request_id"] = name if turns == 1 else f"{name}#{source.get('turn')}"

    def _messages(self, turns: Sequence[Any]) -> chat.Messages:
        messages: chat.Messages = []
        for question, answer in (self.texts_of(turn) for turn in turns if isinstance(turn, dict)):
            messages += chat.user_message(question) if isinstance(question, str) else []
            messages += [{"role": "assistant", "content": answer}] if isinstance(answer, str) else []
        return messages

    def document(self, rows: Sequence[CanonicalRow], form: Format) -> Written:
        """The sessions of canonical rows, each of which is a turn of the format."""
        sessions: list[dict[str, Any]] = []
        places: list[int] = []
        before: CanonicalRow = {}
        count = 0
        of_session = set(form.passthrough_columns).difference(self.of_turn)
        for row in rows:
            messages = (row.get("request") or {}).get("messages", [])
            history = messages[:-1]
            turn = form.write_row({**row, "request": {"messages": messages[-1:]}} if history else row)
            session = {k: turn.pop(k) for k in (self.name, *self.of_session) if k in turn}
            for k in self.of_turn:
                if (own := structured(row.get(k))) is not None:
                    turn[k] = {**own, **turn.get(k, {})} if isinstance(own, dict) else own
                name = f"{form.name.replace('-', '_')}_{k}"
                whole = structured(row.get(name))
                if turn.get(k) != whole and (rest := kept_of(form, name, whole)):  # what is read was edited
                    fields = turn.get(k) or {}
                    turn[k] = rest | {name: {**rest.get(name, {}), **value} for name, value in fields.items()}
            if self.name and row.get("request_id") is not None:
                session.setdefault(self.name, _without_number(row["request_id"], messages))
            is_next = history and sessions and before.get("session_id") == row.get("session_id")
            last = sessions[-1] if is_next and self._may_continue(sessions[-1], session) else None
            if last is not None and self._messages(last[self.turns]) == history:
                last[self.turns].append(turn)
                if expected := last.get(self.calls):
                    session[self.calls] = [*expected, *session[self.calls]]
            else:
                if isinstance(session.get(self.calls), list) and (called := calls_in(history)):
                    session[self.calls] = [*(call["tool_name"] for call in called), *session[self.calls]]
                turns = [*self._turns_of(history, form), turn]
                count += len(turns) - 1
                of_row = {k: value for k, value in row.items() if k in of_session and value is not None}
                sessions.append({**of_row, self.turns: turns})
            sessions[-1].update(session)
            before = row
            count += 1
            places.append(count - 1)
        document = self.wrap(sessions)
        return Written(document, document, form.name, places)

    def _may_continue(self, session: Row, turn: Row) -> bool:
        """Whether a session has nothing of its own yet, but for expected calls that those of its next turn follow."""
        own = session.keys() & self.of_session
        lists = [value.get(self.calls) for value in (session, turn)]
        return not own or (own == {self.calls} and all(isinstance(calls, list) for calls in lists))

    def _turns_of(self, messages: Sequence[Row], form: Format) -> list[Any]:
        """The messages before a question, as turns of their own."""
        turns: list[dict[str, Any]] = []
        for message in messages:
            text = chat.join_text(message.get("content"))
            if message["role"] == "user" and isinstance(text, str):
                turns.append({"request": {"messages": chat.user_message(text)}})
            elif message["role"] == "assistant" and turns and isinstance(text, str):
                turns[-1]["expected_response"] = text
        of_session = {self.name, *self.of_session}
        return [{k: v for k, v in form.write_row(turn).items() if k not in of_session} for turn in turns]
