"""Shapes of values that several formats share: questions, texts, tags, tool calls, lists of objects."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from msgspec.structs import replace

from agent_eval_schema.decoding import chat
from agent_eval_schema.decoding.requests import is_request
from agent_eval_schema.formats.format import Detect, Head, Row
from agent_eval_schema.issues import Finding
from agent_eval_schema.rule import Rule
from agent_eval_schema.rules.reading import NOT_A_LIST, NOT_A_ROW
from agent_eval_schema.rules.tools import TOOL_INPUT
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.jsontext import listed, structured, written_by_python


def question(request: Row) -> Any:
    """A request for a column that holds a question: the user's last message that is plain text, else the chat as JSON.
    A message in parts, which `last_user_text` joins, does not count."""
    messages = request["messages"]
    texts = [m["content"] for m in messages if m.get("role") == "user" and isinstance(m.get("content"), str)]
    return texts[-1] if texts else jsontext.encode(messages).decode()


def request_or_text(value: Any) -> Any:
    """A request that may be JSON text of a chat; any other JSON text is the user's text."""
    parsed = structured(value)
    return parsed if is_request(parsed) else value


def question_or_messages(request: Row) -> Any:
    """A request for a column that holds a question or a chat: the text of a lone user message, else all of it."""
    messages = request["messages"]
    question = chat.lone_question(messages)
    return messages if question is None else question


def of_list(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A reader of the entries of a list; what is no list stays as it is, for a rule to report."""

    def read_all(value: Any) -> Any:
        parsed = structured(value)
        return [read(entry) for entry in parsed] if isinstance(parsed, list) else parsed

    return read_all


def read_calls(name: str, *arguments: str) -> Callable[[Any], Any]:
    """A reader of tool calls whose name and arguments have other keys; their further keys are omitted."""
    known = {name: "tool_name", "tool_name": "tool_name", **dict.fromkeys((*arguments, "tool_input"), "tool_input")}

    def renamed(call: Any) -> Any:
        if not isinstance(call, dict) or "tool_name" not in {known.get(k) for k in call}:
            return call  # by its own keys, for the rule that explains it
        return {known[k]: v for k, v in call.items() if k in known}

    return of_list(renamed)


def write_calls(name: str, arguments: str) -> Callable[[Any], Any]:
    """The writer for `read_calls`."""
    source = {"tool_name": name, "tool_input": arguments}
    return lambda calls: [{source.get(key, key): value for key, value in call.items()} for call in calls]


def calls_in(messages: Any) -> list[dict[str, Any]] | None:
    """The tool calls of messages as a trajectory; None if there are none."""
    return [{"tool_name": name, "tool_input": arguments} for name, arguments in chat.read_tool_calls(messages)] or None


def expects_calls_of_session(row: Row) -> bool:
    """Whether the calls that a canonical row expects, if they are those of a session, are those of several turns."""
    messages = (row.get("request") or {}).get("messages") or ()
    return row.get("reference_trajectory") is not None and sum(m.get("role") == "user" for m in messages) > 1


def after_question(messages: Sequence[Any]) -> int | None:
    """The place after the last question of a user in a conversation; None if there is none."""
    of_user = ("user", "human")
    asks = (isinstance(m, dict) and (m.get("role") in of_user or m.get("type") in of_user) for m in messages)
    return max((place for place, is_question in enumerate(asks, 1) if is_question), default=None)


def read_statements(name: str) -> Callable[[Any], Any]:
    """A reader of statements about an answer, texts or objects with a text, as guidelines of one name."""

    def read(value: Any) -> Any:
        parsed = structured(value)
        if not isinstance(parsed, list):
            return parsed
        texts = [entry.get("text", entry) if isinstance(entry, dict) else entry for entry in parsed]
        return {name: texts} if texts else None

    return read


def write_statements(guidelines: dict[str, list[str]]) -> list[str]:
    return [text for texts in guidelines.values() for text in texts]


def as_text(value: Any) -> Any:
    """A value for a column of text: text as it is, of anything else its JSON."""
    return value if value is None or isinstance(value, str) else jsontext.encode(value).decode()


def as_tags(metadata: Any) -> Any:
    """Metadata may hold any JSON there; a tag is text."""
    parsed = structured(metadata)
    if not isinstance(parsed, dict):
        return parsed
    return {k: as_text(v) for k, v in parsed.items() if v is not None}


def id_of_tags(row: dict[str, Any]) -> None:
    """Move the ID of a row out of its tags, where it is written for a platform that has no other place for it."""
    tags = row.get("tags")
    if isinstance(tags, dict) and "request_id" in tags and row.get("request_id") in (None, tags["request_id"]):
        row["request_id"] = tags.pop("request_id")
    if tags == {}:
        del row["tags"]


LABELS = "tags"
"""The tag that holds the labels of an example, which are a list beside its metadata there."""


def read_labels(metadata: Any, labels: Any) -> Any:
    tags, labels = as_tags(metadata), structured(labels)
    if not isinstance(labels, list):
        return tags if labels is None else labels
    return {**(tags if isinstance(tags, dict) else {}), LABELS: as_text(labels)}


def write_labels(tags: Any) -> tuple[Any, list[str] | None]:
    labels = structured(tags.get(LABELS)) if isinstance(tags, dict) else None
    if not isinstance(labels, list):
        return tags, None
    return {k: v for k, v in tags.items() if k != LABELS} or None, labels


def inspecting(*functions: Callable[[Row], Iterable[Finding]]) -> Callable[[Row], Iterator[Finding]]:
    """The function that finds what these find, one after the other."""
    return lambda source: chain.from_iterable(function(source) for function in functions)


def python_lists(*names: str) -> Callable[[Row], Iterator[Finding]]:
    """A function that finds, in columns of lists, text that Python wrote of a list: it is not meant as a document."""

    def inspect(source: Row) -> Iterator[Finding]:
        for name in names:
            value = source.get(name)
            if isinstance(value, str) and isinstance(structured(value), str):
                finding = written_by_python(value)
                yield from () if finding is None else (replace(finding, column=name),)

    return inspect


def lone_arguments(key: str, *names: str) -> Callable[[Row], Iterator[Finding]]:
    """A function that finds, in columns of tool calls, a lone argument under the key of the arguments: others read it
    (`chat.read_arguments`), but the platform's model of a call accepts an object only."""

    def inspect(source: Row) -> Iterator[Finding]:
        for name in names:
            for i, call in enumerate(all_of(source.get(name))):
                arguments = call.get(key) if isinstance(call, dict) else None
                if arguments not in (None, "") and not isinstance(structured(arguments), dict):
                    message = f"expected an object, got {describe(arguments)}"
                    yield Finding(TOOL_INPUT, message, name, f"{name}[{i}].{key}")

    return inspect


def text_only(value: Any) -> Any:
    """A text; a value of another type is not ours."""
    return value if isinstance(value, str) and isinstance(structured(value), str) else None


def all_of(values: Any) -> Sequence[Any]:
    """The entries of a list, or none."""
    value = structured(values)
    return value if isinstance(value, list) else ()


def all_in(row: Row, keys: Iterable[str]) -> list[Any]:
    """The entries of the lists under these keys."""
    return [entry for key in keys for entry in all_of(row.get(key))]


def entries_in(head: Head, *keys: str) -> list[Row]:
    """The objects in the lists under these keys of the first rows."""
    return [entry for row in head() for entry in all_in(row, keys) if isinstance(entry, dict)]


def has_entries(keys: Sequence[str], *having: str, marks: Collection[str] = (), empty: bool = False) -> Detect:
    """A detection by the objects in the lists under these keys, one of which has one of the keys `having`; of a
    document with a key of the `marks` its columns suffice, and if `empty` is true a list without objects does, too."""

    def detect(names: Sequence[str], head: Head) -> bool:
        if set(keys).isdisjoint(names) or not set(marks).isdisjoint(names):
            return not set(keys).isdisjoint(names)
        entries = entries_in(head, *keys)
        return any(not entry.keys().isdisjoint(having) for entry in entries) or (empty and not entries)

    return detect


def with_camel(*names: str) -> tuple[str, ...]:
    """The names, and those of several words in camelCase, as some models write them, too."""
    words = (name.split("_") for name in names)
    return *names, *(f"{first}{''.join(map(str.capitalize, more))}" for first, *more in words if more)


def objects_of(value: Any, path: str) -> tuple[list[Any], list[Finding]]:
    """The objects of a list at a path, and an issue for each entry that is none, or for the value if it is no list."""
    parsed = structured(value)
    if not isinstance(parsed, list):
        return [], [_other(NOT_A_LIST, path, "a list of objects", value)]
    objects, unread = [], []
    for i, entry in enumerate(parsed):
        if isinstance(structured(entry), dict):
            objects.append(entry)
        else:
            unread.append(_other(NOT_A_ROW, f"{path}[{i}]", "an object", entry))
    return objects, unread


def _other(rule: Rule, path: str, expected: str, value: Any) -> Finding:
    hint = "Give the file that it names." if isinstance(value, str) else ""
    return Finding(rule, f"expected {expected}, got {describe(value)}", path=path, hint=hint)


# --- Documents of formats that have only texts ⇄ ours, which are identified by their `doc_uri`.
#
# A text without an id gets one made of its content: two equal texts then are the same document, as in a comparison of
# retrieved and expected texts. Writing omits such an ID again.
MADE_URI = "text:sha256-"
"""The prefix of a `doc_uri` that identifies a text."""


def uri_of(text: str) -> str:
    """The doc_uri of a document that is only its text."""
    return MADE_URI + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def read_texts(texts: Any, ids: Any = None) -> Any:
    """[text, ...] and, where there are any, [id, ...] → [{doc_uri, content}, ...]. Blank text is no document."""
    texts, ids = listed(texts), listed(ids)
    if texts is None and isinstance(ids, list):
        return [{"doc_uri": _id(i)} for i in ids]
    if not isinstance(texts, list):
        return texts
    named = ids if isinstance(ids, list) and len(ids) == len(texts) else [None] * len(texts)
    pairs = zip(texts, named, strict=True)
    return [_document(text, i) for text, i in pairs if i is not None or not isinstance(text, str) or text.strip()]


def _document(text: Any, identity: Any) -> Any:
    if not isinstance(text, str):
        return text  # for the rule on documents to explain
    if identity is None:
        return {"doc_uri": uri_of(text), "content": text}
    return {"doc_uri": _id(identity), "content": text or None}


def _id(identity: Any) -> Any:
    """Ids may be numbers there; `doc_uri` is text."""
    return str(identity) if isinstance(identity, int) and not isinstance(identity, bool) else identity


def read_context(value: Any) -> Any:
    """One text or several; JSON text of anything but a list is a text."""
    is_text = isinstance(value, str) and not isinstance(structured(value), list)
    if isinstance(value, str) and not value.strip():
        return None
    return read_texts([value] if is_text else value)


def write_context(documents: list[dict[str, Any]]) -> str | None:
    """The texts as one; None if no document has one."""
    return "\n\n".join(write_texts(documents) or ()) or None


def with_content(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The documents that can be written as a text: a judge would take a URI for the content of the document."""
    return [d for d in documents if d["content"] is not None]


def write_texts(documents: list[dict[str, Any]]) -> list[str] | None:
    """The texts alone; None if no document has one."""
    return [d["content"] for d in with_content(documents)] or (None if documents else [])


def write_texts_and_ids(documents: list[dict[str, Any]]) -> tuple[list[str] | None, list[str] | None]:
    """The texts, and the ids unless they are made of the texts: where one is, the others have one, too."""
    texts = [d["content"] or "" for d in documents]
    of_texts = [uri_of(text) for text in texts]
    ids = [d["doc_uri"] if d["doc_uri"] is not None else uri for d, uri in zip(documents, of_texts, strict=True)]
    if not with_content(documents) and documents:
        return None, ids
    return texts, None if ids == of_texts and len(with_content(documents)) == len(documents) else ids
