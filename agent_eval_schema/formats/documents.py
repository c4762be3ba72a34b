"""Documents: files that are one value, and whose parts are rows of ours.

    {"skill_name": "csv", "evals": [a, b]}   ⇄   a and b, each with the skill_name     CaseList
    {"turns": [a, b]}                        ⇄   a, and b with a as its history         Conversations

A turn keeps its own keys and gets, beside those of its session, the columns `turn` (from 1), `turns` (how many there
are) and `history`, the turns before it. Rows are written as one session where each is the history of the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from agent_eval_schema.decoding import chat
from agent_eval_schema.formats.format import CanonicalRow, Format, Head, Nested, Row, Unfolded, Written, lists_in
from agent_eval_schema.formats.shapes import all_of
from agent_eval_schema.text.jsontext import structured


class CaseList(Struct, frozen=True):
    """A document with a list of rows under a key, beside values that all rows share.

    Attributes
    ----------
    key
        The key of the list.
    empty
        The document without rows, in the order of its keys. Its values are those for rows that do not agree.
    text
        The column of the question, which an entry that is no object is.
    mark
        The column that every row gets in addition, by which the format is known.
    detect
        Whether a document is of the format; None if the key of the list suffices.
    of_document
        Keys of the document that a case has, too, with another meaning, and the columns that hold them.
    """

    key: str
    empty: Mapping[str, Any]
    text: str
    mark: str
    detect: Callable[[Sequence[str], Head], bool] | None = None
    of_document: Mapping[str, str] = MappingProxyType({"name": "dataset_name", "id": "dataset_id"})

    @property
    def nested(self) -> Nested:
        """How the documents are read."""
        return lists_in(self.key, unfold=self._unfold, columns=(self.text, self.mark), detect=self.detect)

    def _unfold(self, document: Row) -> Iterator[Unfolded]:
        beside = {
            self.of_document.get(k, k): v for k, v in document.items() if k != self.key and v not in ([], {}, None)
        }
        for case in all_of(document.get(self.key)):
            own = case if isinstance(case, dict) else {self.text: case}
            row = {self.mark: None, **beside, **own}
            row.setdefault(self.text, None)
            yield row, ()

    def document(self, rows: Sequence[CanonicalRow], form: Format) -> Written:
        """The document of canonical rows, with the columns that the format passes through."""
        shared: dict[str, Any] = {}
        columns = {name: name for name in self.empty if name != self.key} | dict(self.of_document)
        for name, column in columns.items():
            values = [structured(row.get(column)) for row in rows]
            if values and values[0] is not None and all(value == values[0] for value in values):
                shared[name] = values[0]
        own = form.own - self.empty.keys() - set(self.of_document.values())
        cases = [
            {**form.write_row(row), **{k: v for k, v in row.items() if k in own and v is not None}} for row in rows
        ]
        made = {**self.empty, **shared, self.key: cases}
        return Written(made, made, form.name, range(len(rows)))


TURN = ("turn", "turns", "history")
"""The columns that place a turn in its session."""


class Conversations(Struct, frozen=True):
    """How sessions are read and written. `turns` is the key of their turns.

    `said(turn)` has the question and the answer of a turn. `of_session` are columns that a session has and not a turn:
    they are on its last row, or on all of them if they are `everywhere`. `wrap` makes the document of all sessions.
    """

    turns: str
    said: Callable[[Row], tuple[Any, Any]]
    of_session: tuple[str, ...] = ()
    everywhere: tuple[str, ...] = ()
    wrap: Callable[[list[dict[str, Any]]], Any] = list

    # -----------------------------------------------------------------------------------------------------------------
    # reading
    def unfold(self, session: Mapping[str, Any]) -> Iterator[Unfolded]:
        """The turns of a session; an invalid one is a single row."""
        given = all_of(session.get(self.turns)) or ({},)
        beside = {k: v for k, v in session.items() if k != self.turns and k not in self.of_session}
        last = {k: v for k, v in session.items() if k in self.of_session}
        for i, turn in enumerate(given):
            own = turn if isinstance(turn, dict) else {}
            place = {"turn": i + 1, "turns": len(given), "history": list(given[:i])}
            yield {**beside, **(last if i == len(given) - 1 else {}), **own, **place}, ()

    def read_history(self, theirs: Row, made: dict[str, Any]) -> None:
        """The request of a row, after the turns before it."""
        asked, history = made.get("request"), structured(theirs.get("history"))
        if isinstance(asked, str) and isinstance(history, list) and history:
            made["request"] = {"messages": [*self._messages(history), *chat.user_message(asked)]}

    def _messages(self, turns: Sequence[Any]) -> chat.Messages:
        messages: chat.Messages = []
        for turn in turns:
            asked, answer = self.said(turn) if isinstance(turn, dict) else (None, None)
            messages += chat.user_message(asked) if isinstance(asked, str) else []
            messages += [{"role": "assistant", "content": answer}] if isinstance(answer, str) else []
        return messages

    # -----------------------------------------------------------------------------------------------------------------
    # writing
    def document(self, rows: Sequence[CanonicalRow], form: Format) -> Written:
        """The sessions of canonical rows, each of which is a turn of the format."""
        sessions: list[dict[str, Any]] = []
        places: list[int] = []
        write = form.write_row
        before: CanonicalRow | None = None
        count = 0
        for row in rows:
            messages = (row.get("request") or {}).get("messages", ())
            turn = write({**row, "request": {"messages": messages[-1:]}} if len(messages) > 1 else row)
            session = {k: turn.pop(k) for k in (*self.everywhere, *self.of_session) if k in turn}
            of_row = {k: value for k, value in row.items() if k in form.own and value is not None}
            history = (row.get("request") or {}).get("messages", [])[:-1]
            if before is not None and self._follows(before, row, sessions[-1], history):
                sessions[-1][self.turns].append(turn)
            else:
                turns = [*self._turns_of(history, write), turn]
                count += len(turns) - 1
                sessions.append({**of_row, self.turns: turns})
            sessions[-1].update(session)
            before = row
            count += 1
            places.append(count - 1)
        made = self.wrap(sessions)
        return Written(made, made, form.name, places)

    def _follows(self, before: CanonicalRow, row: CanonicalRow, session: Mapping[str, Any], history: Any) -> bool:
        """Whether a row is the next turn of the session, which then has nothing of its own yet."""
        same = before.get("session_id") == row.get("session_id")
        alone = not any(name in session for name in self.of_session)
        return bool(history) and same and alone and self._messages(session[self.turns]) == history

    def _turns_of(self, messages: Sequence[Row], write: Callable[[CanonicalRow], dict[str, Any]]) -> list[Any]:
        """The messages before a question, as turns of their own."""
        turns: list[dict[str, Any]] = []
        for message in messages:
            text = chat.join_text(message.get("content"))
            if message["role"] == "user" and isinstance(text, str):
                turns.append({"request": {"messages": chat.user_message(text)}})
            elif message["role"] == "assistant" and turns and isinstance(text, str):
                turns[-1]["expected_response"] = text
        session = {*self.everywhere, *self.of_session}
        return [{k: v for k, v in write(turn).items() if k not in session} for turn in turns]
