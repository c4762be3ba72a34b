"""What unknown columns look like, by their names and contents: `{"question": "request"}`, as `columns=` takes it.

The hint of an issue has the mapping, for the user to judge; `columns="auto"` applies it where it is unambiguous.
"""

import json
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text.describe import names as listed
from agent_eval_schema.text.jsontext import structured

Row = Mapping[str, Any]

SAMPLED_ROWS = 16
"""The rows whose cells are looked at."""

_NAMES = {
    "request": "question query prompt input userinput usermessage userquery userquestion userprompt inputquestion "
    "utterance userutterance problem instruction q",
    "response": "output reply completion generation prediction predicted modeloutput modelresponse botresponse "
    "botanswer generatedanswer generatedresponse actualoutput agentresponse agentanswer assistantresponse modelanswer "
    "llmoutput llmanswer",
    "expected_response": "expected reference groundtruth groundtruthanswer target gold goldanswer goldenanswer ideal "
    "idealanswer idealresponse expectedoutput expectedanswer expectedresult referenceanswer referenceresponse "
    "correctanswer correctresponse truth solution answer",
    "expected_facts": "facts claims keypoints keyfacts expectedclaims",
    "retrieved_context": "context contexts ctx ctxs documents docs chunks passages sources searchresults retrieved "
    "retrieveddocuments retrievedcontexts retrieveddocs retrievedchunks",
    "expected_retrieved_context": "goldcontext goldcontexts goldpassages referencecontexts relevantdocs "
    "expecteddocuments expectedcontexts supportingdocs",
    "predicted_trajectory": "toolcalls calls actions trajectory actualtoolcalls toolscalled",
    "reference_trajectory": "expectedtoolcalls expectedtools expectedtool expectedcalls expectedactions expectedaction "
    "expectedtrajectory referencetoolcalls",
    "request_id": "id qid uid uuid rowid exampleid questionid",
    "session_id": "conversationid threadid chatid dialogid",
    "latency_seconds": "latency latencys durationseconds",
}
"""By our column, the names that others give to it, in lower case and without other characters than letters."""

_COLUMN_OF = {name: column for column, names in _NAMES.items() for name in names.split()}

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

    def elements(self) -> list[Any]:
        """The elements of values that are lists; none if one is not."""
        return [e for v in self.values for e in v] if self.are(list) else []


def has_names_of_others(names: Sequence[str]) -> bool:
    """Whether a table has a column that others call so, and lacks ours."""
    return any(name not in COLUMNS and _COLUMN_OF.get(_plain(name), names[0]) not in names for name in names)


def is_question(name: str) -> bool:
    """Whether others call a column so that has the question of a row."""
    return _COLUMN_OF.get(_plain(name)) == "request"


def names_of(column: str) -> frozenset[str]:
    """The names of a column, ours among them, in lower case and without other characters than letters."""
    return frozenset((_plain(column), *_NAMES.get(column, "").split()))


def suggested_columns(names: Sequence[str], rows: Sequence[Row], *, whole: bool) -> dict[str, str]:
    """The mapping that a user may want, for a table with these columns and these first rows. Of a table of no format it
    is that of the `whole` table: also of keys in its objects, and by the contents of columns."""
    others = [name for name in names if name not in COLUMNS]
    places = [_Place(n, n, [structured(row[n]) for row in rows if row.get(n) is not None]) for n in others]
    free = [name for name in COLUMNS if name not in names]
    found: dict[str, dict[str, str]] = {}
    inner = [key for place in places for key in _keys(place)] if whole else []
    for place in [*places, *inner]:
        column = _of_truth(place.path, _column_for(place.name, free, places), free)
        if column is not None and column not in found and (paths := _fit(place, column)):
            found[column] = paths
    for column, looks in _BY_CONTENT.items() if whole else ():
        if column in free and column not in found:
            taken = {path for paths in found.values() for path in paths}
            free_places = (p for p in places if not any(_is_at(path, p.path) for path in taken) and looks(p))
            first = next(free_places, None)
            meant = None if first is None else _of_truth(first.path, column, free)
            if first is not None and meant is not None and meant not in found and (paths := _fit(first, meant)):
                found[meant] = paths
    return {path: target for column in COLUMNS for path, target in found.get(column, {}).items()}


def hint_for_column(name: str, suggested: Mapping[str, str]) -> str:
    """The hint for an unknown column that looks like one of ours; "" for another one."""
    moves = {path: column for path, column in suggested.items() if _is_at(path, name)}
    if not moves:
        return ""
    like = " and ".join(f"`{column}`" for column in moves.values())
    return f"Name the column, which looks like {like} ({naming_columns(moves)})."


def looks_like_truth(name: str, suggested: Mapping[str, str], names: Collection[str]) -> bool:
    """Whether an unknown column looks like ground truth that a table with these columns does not have."""
    columns = {column for path, column in suggested.items() if _is_at(path, name) and is_of_truth(column)}
    return any(column not in _ANSWERS or _ANSWERS.isdisjoint(names) for column in columns)


_ANSWERS = frozenset({"expected_response", "expected_facts"})
"""The two forms of the ground truth of an answer, of which a row has one."""


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


def _column_for(name: str, free: Sequence[str], places: Sequence[_Place]) -> str | None:
    """Our column that others call so. An `answer` beside another ground truth is that of the agent."""
    column = _COLUMN_OF.get(_plain(name))
    if _plain(name) == "answer":
        others = {_COLUMN_OF.get(_plain(place.name)) for place in places if place.name != name}
        column = "response" if "expected_response" in others or "expected_response" not in free else "expected_response"
    return column if column in free else None


def _of_truth(path: str, column: str | None, free: Sequence[str]) -> str | None:
    """The column for a place: at a path whose name shows it, what an agent produces is what is expected of it."""
    truth = _TRUTHS.get(column or "") if is_of_truth(path) else None
    return column if truth is None else truth if truth in free else None


_TRUTHS = {
    "response": "expected_response",
    "retrieved_context": "expected_retrieved_context",
    "predicted_trajectory": "reference_trajectory",
}
_OF_TRUTH = re.compile(r"(?i)expect|criteri|gold|truth|reference|ideal|target|correct|guideline|rubric|assert")


def is_of_truth(name: str) -> bool:
    """Whether the name of a column shows that it has ground truth."""
    return _OF_TRUTH.search(name) is not None


def require_unambiguous(names: Sequence[str], found: Mapping[str, str], shown: Mapping[str, str]) -> None:
    """Raise EvalSetError for a guess: no question, two columns for one, or an `answer` of which nothing shows whose."""
    by_name = {name: _COLUMN_OF.get(_plain(name)) for name in names if name not in COLUMNS}
    answers = [name for name in by_name if _plain(name) == "answer"]
    if "request" not in names and not any(target.partition(".")[0] == "request" for target in found.values()):
        message = f"columns: expected a column with the question, got {listed(names)}: name it (--columns PATH=request)"
        raise EvalSetError(message)
    for target in ("request", "response", "expected_response"):
        alike = [name for name, column in by_name.items() if column == target and name not in answers]
        if len(alike) > 1 and target not in names:
            choices = [{name: target} for name in alike]
            raise _ambiguous(shown, choices, f"one column for `{target}`, got {listed(alike)}")
    others = {*names, *(column for name, column in by_name.items() if name not in answers)}
    if answers and others.isdisjoint({"response", "expected_response", "expected_facts"}):
        choices = [{answers[0]: target} for target in ("expected_response", "response")]
        raise _ambiguous(shown, choices, f"a column that shows whose answer `{answers[0]}` is, got none")


def _ambiguous(shown: Mapping[str, str], choices: Sequence[Mapping[str, str]], expected: str) -> EvalSetError:
    """The error that names the candidates, each as the options of the command."""
    names = {name for choice in choices for name in choice}
    rest = {path: target for path, target in shown.items() if path not in names}
    commands = " or ".join(f"`{_options({**rest, **choice})}`" for choice in choices)
    return EvalSetError(f"columns: expected {expected}: use {commands}")


def _options(moves: Mapping[str, str]) -> str:
    return " ".join(shlex.join(["--columns", f"{path}={column}"]) for path, column in moves.items())


def _plain(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())


def _fit(place: _Place, column: str) -> dict[str, str]:
    """The mapping of a place, if its values are of a kind that the column can be made of."""
    if column in _FITS:
        return _FITS[column](place, column)
    return {place.path: column} if place.are(str) else {}


def _as_request(place: _Place, column: str) -> dict[str, str]:
    if place.are(list) and _are_messages(place.elements()):
        return {place.path: f"{column}.messages"}
    return {place.path: column} if place.are(str) else {}


def _as_documents(place: _Place, column: str) -> dict[str, str]:
    if place.are(str):
        return {place.path: f"{column}[].content"}
    if _are_texts(place.elements()):
        return {f"{place.path}[]": f"{column}[].content"}
    return _by_keys(place, column, _keys_of(place.elements(), _OF_DOCUMENT))


def _as_trajectory(place: _Place, column: str) -> dict[str, str]:
    if place.are(str) or _are_texts(place.elements()):
        return {place.path if place.are(str) else f"{place.path}[]": f"{column}[].tool_name"}
    found = _keys_of(place.elements(), _OF_CALL)
    return _by_keys(place, column, found) if "tool_name" in found else {}


def _by_keys(place: _Place, column: str, found: Mapping[str, str]) -> dict[str, str]:
    return {f"{place.path}[].{key}": f"{column}[].{field}" for field, key in found.items()}


def _as_number(place: _Place, column: str) -> dict[str, str]:
    try:  # a number of a CSV file is text
        return {place.path: column} if place.are((int, float, str)) and [float(v) for v in place.values] else {}
    except ValueError:
        return {}


_FITS: dict[str, Callable[[_Place, str], dict[str, str]]] = {
    "request": _as_request,
    "expected_facts": lambda place, column: {place.path: column} if _are_texts(place.elements()) else {},
    "retrieved_context": _as_documents,
    "expected_retrieved_context": _as_documents,
    "predicted_trajectory": _as_trajectory,
    "reference_trajectory": _as_trajectory,
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
    found = {field: next((key for key in keys if key in common), None) for field, keys in wanted.items()}
    return {field: key for field, key in found.items() if key is not None}


def _are_texts(elements: Sequence[Any]) -> bool:
    return bool(elements) and all(isinstance(e, str) for e in elements)


def _are_messages(elements: Sequence[Any]) -> bool:
    return bool(elements) and all(isinstance(e, dict) and {"role", "content"} <= e.keys() for e in elements)


def _holds_questions(place: _Place) -> bool:
    if place.are(list):
        return _are_messages(place.elements())
    return place.are(str) and 2 * sum(v.rstrip().endswith("?") for v in place.values) > len(place.values)


_BY_CONTENT: dict[str, Callable[[_Place], bool]] = {
    "request": _holds_questions,
    "retrieved_context": lambda place: (
        len(_keys_of(place.elements(), _OF_DOCUMENT)) == 2 and not _are_messages(place.elements())
    ),
    "predicted_trajectory": lambda place: len(_keys_of(place.elements(), _OF_CALL)) == 2,
}
"""How the values of a column look that has any name."""
