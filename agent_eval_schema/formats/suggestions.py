"""What unknown columns look like, by their names and contents: `{"question": "request"}`, as `columns=` takes it.

The hint of an issue has the mapping, for the user to judge; `columns="auto"` applies it where it is unambiguous.
The names are those of roles.py; what the cells are decides whether a column can be made of them.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from msgspec import Struct

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.formats.format import Row
from agent_eval_schema.formats.roles import NO_ROLE, TRUTHS, is_of_truth, meanings_of, role_of, words_of
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text.describe import names as listed
from agent_eval_schema.text.jsontext import structured
from agent_eval_schema.text.spelling import is_unwritten
from agent_eval_schema.text.visible import shell_words

SAMPLED_ROWS = 16
"""The rows whose cells are looked at."""

_OF_DOCUMENT = {
    "doc_uri": ("doc_uri", "uri", "url", "source", "doc_id", "document_id", "docid", "id"),
    "content": ("content", "text", "page_content", "pagecontent", "passage", "body", "chunk", "snippet", "document"),
}
_OF_CALL = {
    "tool_name": ("tool_name", "name", "tool", "function"),
    "tool_input": ("tool_input", "arguments", "args", "input", "parameters", "params"),
}
"""By our key, the keys that others give to it."""


class _Place(Struct, frozen=True):
    """A column, or a key of the objects in one, with its path and the values of the first rows."""

    name: str
    path: str
    values: list[Any]

    def are(self, kind: type | tuple[type, ...]) -> bool:
        """Whether all values are of a type, at least one."""
        return bool(self.values) and all(isinstance(v, kind) and not isinstance(v, bool) for v in self.values)

    @property
    def kind(self) -> str:
        """What the values are, in words; there is at least one."""
        kinds = ((str, "text"), (bool, "true or false"), ((int, float), "number"), (list, "list"), (dict, "object"))
        words = (word for kind, word in kinds if all(isinstance(v, kind) for v in self.values))
        return next(words, "values of several types")

    def is_sql(self) -> bool:
        """Whether most values are statements of SQL."""
        return self.are(str) and 2 * sum(_SQL.match(v) is not None for v in self.values) > len(self.values)

    def are_documents(self) -> bool:
        """Whether the values are names of documents, maybe several: `faq.md; rules.md`."""
        return self.are(str) and all(_DOCUMENTS.fullmatch(value.strip()) for value in self.values)

    def elements(self) -> list[Any]:
        """The elements of values that are lists; none if one is not."""
        return [e for v in self.values for e in v] if self.are(list) else []


def _places(names: Sequence[str], rows: Sequence[Row]) -> list[_Place]:
    return [_Place(n, n, [structured(row[n]) for row in rows if row.get(n) is not None]) for n in names]


_DOCUMENTS = re.compile(r"[^\s;,]+[./][^\s;,]+(?:[;,]\s*[^\s;,]+[./][^\s;,]+)*")


def _doubt(path: str) -> int:
    """How much a name leaves open: of two places for one column, that of less doubt is meant."""
    role = role_of(path)
    return 2 * (not role.sure) + (role.name == "task")


_SQL = re.compile(r"\s*(SELECT|WITH|INSERT INTO|UPDATE|DELETE FROM)\b")
"""How a statement of SQL begins; in lower case, `select a flight from …` is a request."""


def is_question(name: str) -> bool:
    """Whether others call a column so that has the question of a row."""
    return role_of(name).column == "request"


@lru_cache(maxsize=8)
def names_of(column: str) -> frozenset[str]:
    """The names of a column, ours among them, as letters in lower case."""
    first, last = (words_of(*meanings) for meanings in _MEANINGS[column])
    return frozenset((column.replace("_", ""), *first, *last, *(a + b for a in first for b in last)))


_MEANINGS = {
    "request": (("user",), ("ask",)),
    "response": (("made",), ("answer", "output")),
    "expected_response": (("truth",), ("answer", "output")),
}
"""By column, the meanings of the first and of the last word of its names."""


def suggested_columns(
    names: Sequence[str],
    rows: Sequence[Row],
    *,
    whole: bool,
    known: Collection[str] = COLUMNS,
    present: Collection[str] = (),
) -> dict[str, str]:
    """The mapping that a user may want, for a table with these columns and these first rows. Of a table of no format it
    is that of the `whole` table: also of keys in its objects, and by the contents of columns. The `known` columns are
    read as they are, and the columns of ours that are `present` under another name are not looked for."""
    places = _places([name for name in names if name not in known], rows)
    free = [name for name in COLUMNS if name not in names and name not in present]
    mappings: dict[str, dict[str, str]] = {}
    inner = [key for place in places for key in _keys(place)] if whole else []
    by_role = sorted([*places, *inner], key=lambda place: _doubt(place.path))
    roles = Counter([role_of(place.path).column for place in by_role])
    for place in by_role:
        column = _column_for(place, free, roles)
        if column is not None and column not in mappings and (paths := _fit(place, column)):
            mappings[column] = paths
    for column, looks in _BY_CONTENT.items() if whole else ():
        if column in free and column not in mappings:
            taken = {path for paths in mappings.values() for path in paths}
            free_places = (p for p in places if not any(_is_at(path, p.path) for path in taken) and looks(p))
            first = next((p for p in free_places if role_of(p.path).name not in _OF_NO_ROW), None)
            meant = None if first is None else _of_truth(first.path, column, free)
            if first is not None and meant is not None and meant not in mappings and (paths := _fit(first, meant)):
                mappings[meant] = paths
    return {path: target for column in COLUMNS for path, target in mappings.get(column, {}).items()}


_OF_NO_ROW = frozenset({"score", "metadata", "choice"})
"""What no column of ours is made of, whatever it looks like."""


def contents_of(names: Sequence[str], rows: Sequence[Row]) -> dict[str, str]:
    """What columns have, in words: `metadata: text, 12 of 12 rows`."""
    places = [place for place in _places(names, rows) if place.values]
    contents = {place.path: f"{place.kind}, {len(place.values)} of {len(rows)} rows" for place in places}
    return {name: f"{role}: {what}" if (role := role_of(name).name) else what for name, what in contents.items()}


def unread_truths(names: Sequence[str], rows: Sequence[Row], suggested: Mapping[str, str]) -> dict[str, str]:
    """The columns that a reader may have to look for ground truth, as no mapping is suggested: each with what is in it.
    Those whose names show it come with their role; those of any name if their texts differ from row to row."""
    truths = {}
    for place in _places([name for name in names if not any(_is_at(path, name) for path in suggested)], rows):
        role = role_of(place.path)
        many = len(place.values) >= _FEW_ROWS and 2 * len(place.values) >= len(rows)
        differ = many and place.are((str, list)) and 2 * len(set(map(str, place.values))) > len(place.values)
        if place.values and (is_of_truth(place.path) or role.name in _TRUE_ROLES) and role.name not in _OF_NO_ROW:
            truths[place.path] = f"{place.kind}, {len(place.values)} of {len(rows)} rows"
        elif role is NO_ROLE and differ:
            truths[place.path] = f"{place.kind}, {len(place.values)} of {len(rows)} rows: ground truth?"
    return truths


_TRUE_ROLES = frozenset({"answer", "SQL", "label", "keywords", "facts", "expected documents", "expected tool calls"})
"""The roles of ground truth whose names do not have to show it."""

_FEW_ROWS = 3
"""The rows that show whether the values of a column differ, at least."""


def hint_for_column(name: str, suggested: Mapping[str, str], then: str = "") -> str:
    """The hint for an unknown column that looks like one of ours; "" for another one. `then` is what else changes."""
    moves = {path: column for path, column in suggested.items() if _is_at(path, name)}
    if not moves:
        return ""
    like = " and ".join(f"`{column}` by {reason_for(path, column)}" for path, column in moves.items())
    return f"Name the column, which looks like {like} ({naming_columns(suggested)}).{then}"


def is_guess(what: str) -> bool:
    """Whether nothing but its values shows what an unread column has."""
    return what.endswith("?")


def hint_for_unread(path: str, what: str) -> str:
    """What to do with a column without a suggested mapping."""
    target = "expected_facts" if what.startswith("list") else "expected_response"
    if is_guess(what):
        return f"Name the column if it has the ground truth ({naming_columns({path: target})})."
    return "Write the ground truth as text into `expected_response`, or as a list of texts into `expected_facts`."


def truths_at(name: str, suggested: Mapping[str, str]) -> set[str]:
    """The columns of ground truth that a column looks like, or a key in it."""
    return {truth for path, target in suggested.items() if _is_at(path, name) and (truth := truth_of(target))}


def truth_of(target: str) -> str | None:
    """The column of ground truth that a mapping fills, on its own or as a key of MLflow's `expectations`."""
    column = target.removeprefix("expectations.").partition("[")[0].partition(".")[0]
    return column if is_of_truth(column) else None


def naming_columns(moves: Mapping[str, str]) -> str:
    """The options by which a mapping is given."""
    return f"`{_options(moves)}`, `columns={json.dumps(moves, ensure_ascii=False)}`"


def _keys(place: _Place) -> Iterator[_Place]:
    if place.are(dict):
        for key in dict.fromkeys(key for value in place.values for key in value):
            values = [value[key] for value in place.values if value.get(key) is not None]
            if _STEP.fullmatch(key):
                yield _Place(key, f"{place.path}.{key}", values)


_STEP = re.compile(r"[^.\[\]=]+")


def _is_at(path: str, place: str) -> bool:
    """Whether a path is that of a place, or below it."""
    return path == place or path.startswith((f"{place}.", f"{place}["))


def _column_for(place: _Place, free: Sequence[str], roles: Counter[str | None]) -> str | None:
    """Our column that others call so. An `answer` beside another ground truth is that of the agent; SQL is what a
    question is answered with, and so is the completion beside a prompt without the name of a model. The names of
    documents without an agent's answer are those of the expected ones."""
    column, name = role_of(place.path).column, role_of(place.path).name
    others = {role for role, count in roles.items() if count > (role == column)}
    if column == "request" and place.is_sql():
        column = "expected_response"
    is_lone = name == "answer" or (place.name.lower() == "completion" and "response" not in others)
    if is_lone and "expected_response" in free and "expected_response" not in others:
        column = "expected_response"
    if column == "retrieved_context" and "response" not in others and place.are_documents():
        column = "expected_retrieved_context"
    return column if column in free else None


def _of_truth(path: str, column: str, free: Sequence[str]) -> str | None:
    """The column for a place: at a path whose name shows it, what an agent produces is what is expected of it."""
    truth = TRUTHS.get(column) if is_of_truth(path) else None
    return column if truth is None else truth if truth in free else None


class Ambiguity(Struct, frozen=True):
    """A column that is expected, and the entries of the mapping, one of which is meant."""

    expected: str
    choices: list[dict[str, str]]

    def message(self, shown: Mapping[str, str]) -> str:
        """The error that names the candidates, each as the options of the command."""
        names = {name for choice in self.choices for name in choice}
        rest = {path: target for path, target in shown.items() if path not in names}
        commands = " or ".join(f"`{_options({**rest, **choice})}`" for choice in self.choices)
        return f"columns: expected {self.expected}: use {commands}"


def without_question(names: Sequence[str], found: Mapping[str, str]) -> str:
    """The error if no column has the question; "" if one has."""
    if "request" in names or any(target.partition(".")[0] == "request" for target in found.values()):
        return ""
    return f"columns: expected a column with the question, got {listed(names)}: name it (--columns PATH=request)"


def ambiguities(names: Sequence[str]) -> Iterator[Ambiguity]:
    """What the names of columns leave open: two columns for one, or an `answer` without a sign whose it is."""
    roles = {name: role_of(name) for name in names if name not in COLUMNS}
    by_name = {name: role.column for name, role in roles.items() if role.sure and role.name != "SQL"}
    answers = [name for name in by_name if roles[name].name == "answer"]
    for target in ("request", "response", "expected_response"):
        alike = [name for name, column in by_name.items() if column == target and name not in answers]
        alike = [name for name in alike if _doubt(name) == min(map(_doubt, alike))]
        if len(alike) > 1 and target not in names:
            yield Ambiguity(f"one column for `{target}`, got {listed(alike)}", [{name: target} for name in alike])
    others = {*names, *(column for name, column in by_name.items() if name not in answers)}
    if answers and others.isdisjoint({"response", "expected_response", "expected_facts"}):
        choices = [{answers[0]: target} for target in ("expected_response", "response")]
        yield Ambiguity(f"a column that shows whose answer `{answers[0]}` is, got none", choices)


def require_unambiguous(names: Sequence[str], found: Mapping[str, str], shown: Mapping[str, str]) -> None:
    """Raise EvalSetError for a guess: no question, or what the names leave open."""
    if message := without_question(names, found):
        raise EvalSetError(message)
    for one in ambiguities(names):
        raise EvalSetError(one.message(shown))


def reason_for(path: str, target: str) -> str:
    """Why a place is proposed for a column of ours, and how sure that is."""
    role, column = role_of(path.partition("[")[0]), truth_of(target) or target.partition("[")[0].partition(".")[0]
    if path in COLUMNS or (role.column != column and role.name != "answer"):
        return "its values: a guess"
    if role.name == "answer":
        return "its name: likely, as no other column is the answer"
    return "its name: certain" if role.sure else "a word of its name: likely"


def _options(moves: Mapping[str, str]) -> str:
    return " ".join(shell_words(["--columns", f"{path}={column}"]) for path, column in moves.items())


def _fit(place: _Place, column: str) -> dict[str, str]:
    """The mapping of a place, if its values are of a kind that the column can be made of."""
    if column in _FITS:
        return _FITS[column](place, column)
    is_text = place.are((str, int, float)) and any(isinstance(value, str) for value in place.values)  # of a sheet
    return {place.path: column} if is_text else {}


def _as_request(place: _Place, column: str) -> dict[str, str]:
    if place.are(list) and _ask(place.values):
        return {place.path: f"{column}.messages"}
    return {place.path: column} if place.are(str) else {}


def _as_documents(place: _Place, column: str) -> dict[str, str]:
    key = "doc_uri" if "id" in meanings_of(place.name)[0] else "content"
    if place.are_documents():
        mark = next((mark for mark in ";," if any(mark in value for value in place.values)), "")
        return {place.path + (f"[{mark}]" if mark else ""): f"{column}[].doc_uri"}
    if place.are(str):
        return {place.path: f"{column}[].{key}"}
    if _are_texts(place.elements()):
        return {f"{place.path}[]": f"{column}[].{key}"}
    return _by_keys(place, column, _keys_of(place.elements(), _OF_DOCUMENT))


def _as_trajectory(place: _Place, column: str) -> dict[str, str]:
    texts = place.values if place.are(str) else place.elements()
    if _are_texts(texts):
        are_names = all(map(_NAME_OF_TOOL.fullmatch, texts))
        return {place.path if place.are(str) else f"{place.path}[]": f"{column}[].tool_name"} if are_names else {}
    keys = {} if _are_definitions(place.elements()) else _keys_of(place.elements(), _OF_CALL)
    return _by_keys(place, column, keys) if "tool_name" in keys else {}


_NAME_OF_TOOL = re.compile(r"[\w.:/-]+")


def _are_definitions(elements: Sequence[Any]) -> bool:
    """Whether entries describe tools, and are no calls: with a description, or a JSON Schema of the parameters."""
    inner = [e["function"] if isinstance(e, dict) and isinstance(e.get("function"), dict) else e for e in elements]
    return any(isinstance(e, dict) and ("description" in e or any(map(_is_schema, e.values()))) for e in inner)


def _is_schema(value: Any) -> bool:
    return isinstance(value, dict) and ("properties" in value or "$schema" in value or value.get("type") == "object")


def _by_keys(place: _Place, column: str, keys: Mapping[str, str]) -> dict[str, str]:
    return {f"{place.path}[].{key}": f"{column}[].{field}" for field, key in keys.items()}


def _as_facts(place: _Place, column: str) -> dict[str, str]:
    if place.are(str):
        return {place.path + split_of(place.values): column} if split_of(place.values) else {}
    return {place.path: column} if _are_texts(place.elements()) else {}


def split_of(values: Sequence[Any]) -> str:
    """The step of a path that splits most of these texts: at their lines, bullets, semicolons or bars; "" for none."""
    texts = [v.strip() for v in values if isinstance(v, str) and not is_unwritten(v)]
    marks = {step: sum(mark in t for t in texts) for mark, step in (("\n", "[\\n]"), *_MARKS)}
    marks["[\\n]"] += sum("\n" not in t and _BULLETED.match(t) is not None and t.count("•") < 2 for t in texts)
    return next((step for step, n in marks.items() if 2 * n > len(texts)), "")


_MARKS = (("•", "[•]"), (";", "[;]"), ("|", "[|]"))
_BULLETED = re.compile(r"[•‣▪·*–-]\s")
"""How a list of one entry begins."""


def _as_number(place: _Place, column: str) -> dict[str, str]:
    try:  # a number of a CSV file is text
        return {place.path: column} if place.are((int, float, str)) and [float(v) for v in place.values] else {}
    except (ValueError, OverflowError):
        return {}


_FITS: dict[str, Callable[[_Place, str], dict[str, str]]] = {
    "request": _as_request,
    "expected_facts": _as_facts,
    "retrieved_context": _as_documents,
    "expected_retrieved_context": _as_documents,
    "predicted_trajectory": _as_trajectory,
    "reference_trajectory": _as_trajectory,
    "guidelines": lambda place, column: {place.path: column} if _are_texts(place.elements()) else {},
    "latency_seconds": _as_number,
    "request_id": lambda place, column: (
        {place.path: column} if place.are(str) and len(set(place.values)) == len(place.values) else {}
    ),
}
"""The columns that are not made of a text."""


def _keys_of(elements: Sequence[Any], wanted: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The first key of each list that all elements have, which are objects."""
    if not elements or not all(isinstance(e, dict) for e in elements):
        return {}
    common = set(elements[0]).intersection(*elements[1:])
    first_keys = {field: next((key for key in keys if key in common), None) for field, keys in wanted.items()}
    return {field: key for field, key in first_keys.items() if key is not None}


def _are_texts(elements: Sequence[Any]) -> bool:
    return bool(elements) and all(isinstance(e, str) for e in elements)


def are_messages(elements: Sequence[Any]) -> bool:
    return bool(elements) and all(isinstance(e, dict) and {"role", "content"} <= e.keys() for e in elements)


def _ask(conversations: Sequence[Any]) -> bool:
    """Whether lists are of messages and end with a question: one that ends with an answer is not only a request."""
    return all(are_messages(messages) and messages[-1]["role"] not in _ANSWERING for messages in conversations)


_ANSWERING = ("assistant", "ai", "model", "bot")


def _holds_questions(place: _Place) -> bool:
    if place.are(list):
        return _ask(place.values)
    return place.are(str) and 2 * sum(v.rstrip().endswith(_QUESTION_MARKS) for v in place.values) > len(place.values)


def _have_keys(place: _Place, wanted: Mapping[str, Sequence[str]], are_others: Callable[[Sequence[Any]], bool]) -> bool:
    return len(_keys_of(place.elements(), wanted)) == 2 and not are_others(place.elements())


_QUESTION_MARKS = ("?", "？", "؟")  # of Latin, of Chinese and Japanese, of Arabic


_BY_CONTENT: dict[str, Callable[[_Place], bool]] = {
    "request": _holds_questions,
    "retrieved_context": partial(_have_keys, wanted=_OF_DOCUMENT, are_others=are_messages),
    "predicted_trajectory": partial(_have_keys, wanted=_OF_CALL, are_others=_are_definitions),
}
"""How the values of a column look that has any name."""
