"""Files whose rows are whole conversations → one row a turn, and tables by columns → rows, before anything else looks.

    {"eval_set_id": …, "eval_cases": [{"eval_id", "conversation": [invocation, …]}, …]}    ADK evalset
    [{"query", "expected_tool_use", "reference"}, …]                                       ADK test file: one session
    [{"name", "data": [{"query", …}, …], "initial_session": …}, …]                         ADK, several sessions
    {"evaluations": [evaluation, …], "nextPageToken": …}                                   CES, a list of the API;
    {"evaluationResults": [result, …], "nextPageToken": …}                                 results too
    {"prompt": [text, …], "reference_trajectory": [[call, …], …], …}                       one object, a list a column
    {"prompt": {"0": text, …}, …}                                                          as pandas' to_json writes it
    {"columns": [name, …], "data": [[cell, …], …]}                                         with orient="split"
    {"version": 1, "questions": [row, …]}                                                  one list of rows, any key
    {"run": {"cases": [row, …]}}                                                           also one level below
    {"q-1": row, "q-2": row, …}                                                            rows by their IDs

A turn keeps its own keys and gets four columns beside them: `eval_id`, `turn` (from 1), `turns` (how many there are)
and `history`, the turns before it. A format (adk.py) then reads the turns as it reads any row.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from functools import lru_cache, partial
from itertools import islice, pairwise, product
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from agent_eval_schema.cells.arrow import is_text, to_values
from agent_eval_schema.cells.cells import native_rows
from agent_eval_schema.cells.notes import notes_on, reading_problems, with_notes
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.formats.format import Format, Head, Nested, Row, Unfold, Unfolded
from agent_eval_schema.formats.otel_traces import COLUMN, collected, is_export
from agent_eval_schema.formats.registry import FORMATS, detect, formats_of_packages
from agent_eval_schema.formats.shapes import objects_of
from agent_eval_schema.formats.suggestions import is_question
from agent_eval_schema.io.json import holds_array
from agent_eval_schema.io.pandas import with_new_rows
from agent_eval_schema.io.places import files_of
from agent_eval_schema.io.records import batch_of_rows
from agent_eval_schema.io.source import Source, first_rows
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules import reading
from agent_eval_schema.runtime.extensions import Extension
from agent_eval_schema.text.jsontext import structured
from agent_eval_schema.text.privacy import or_warning
from agent_eval_schema.text.visible import visible


def expand_rows(source: Source, *, alone: bool = False) -> Source:
    """The source with a row for each turn, if its rows are conversations, or for each row of a table that is one object
    by columns; else the source itself. `alone` means that there is one object, and no list.

    Row numbers then count turns. A row that could not be read stays in its place, for its problems to be reported.
    """
    nesting = _nesting_of(source, alone or source.kind == "json")
    if nesting is None:
        return collected(source)
    rows = with_new_rows(source, partial(_unfold, source.batches, nesting))
    rows = replace(rows, turns_apart=nesting.apart)
    return expand_rows(rows) if nesting is _LIST else rows  # which may contain others, too


def with_list(source: Source, key: str) -> Source:
    """The rows of the list of a document that the user chose. Raises EvalSetError if there is none at the path."""
    documents = _first_objects(source, _COLUMNS)
    if len(documents) != 1 or _list_of_rows(documents[0], key) is None:
        raise EvalSetError(f"{source.name}: expected a document with a list of objects at {visible(key)}")
    chosen = Nested(lambda *_: False, partial(_listed_rows, key=key))
    return expand_rows(with_new_rows(source, partial(_unfold, source.batches, chosen)))


def _nesting_of(source: Source, may_be_alone: bool) -> Nested | None:
    if source.is_canonical():
        return None
    names = source.column_names()
    found = next((f for f in _candidates(names) if f.detect(names, partial(_first_objects, source, f))), None)
    first = source.head() if found is None and may_be_alone else None
    if first is not None and first.num_rows == 1 and len(list(islice(source.batches(), 2))) == 1:
        (document,) = ([] if _is_array(source) else _first_objects(source, _COLUMNS)) or [{}]
        if document and _by_columns(document):
            return _COLUMNS
        is_known = detect(names).format is not None or is_export(source)
        if list(document.values()) == [[]] and not is_known:  # no row shows whose list it is
            return Nested(lambda *_: False, lambda _: (), parts=tuple(document))
        return _LIST if not is_known and _list_of_rows(document, name=source.name) is not None else None
    return found


def _is_array(source: Source) -> bool:
    """Whether a file is a JSON array: its one element is a row, and no document."""
    return source.kind == "json" and source.path is not None and any(map(holds_array, files_of(source.path)))


def require_one_format(source: Source, path: str) -> None:
    """Raise EvalSetError if the rows that were made of documents would not be read as rows where they are written."""
    if not source.can_hold_objects or _nesting_of(source, may_be_alone=False) is None:
        return
    if _count(source) != _count(expand_rows(source)):  # rows of some formats are documents of one row
        raise EvalSetError(
            f"{path}: the data has documents of two formats, and one would be read as the other's rows: "
            "give the documents of each format in a file of their own"
        )


def _count(source: Source) -> int:
    return sum(batch.num_rows for batch in source.batches())


def is_unfolded(names: Sequence[str]) -> bool:
    """Whether the columns alone show that rows are documents, from each of which others are made."""
    return COLUMN in names or any(f.detect(names, tuple) for f in _candidates(names))


def _candidates(names: Collection[str]) -> Iterator[Nested]:
    """The formats that a table can have: where rows have their own request, another list is a column of the user's."""
    requests = {"request", "inputs"}.intersection(names)
    return (f for f in _nested() if not requests or not f.parts or not requests.isdisjoint(f.parts))


@lru_cache(maxsize=1)
def _nested() -> tuple[Nested, ...]:
    others = [(other, nested) for other in formats_of_packages().values() for nested in other.value.nested]
    guarded = (replace(nested, detect=partial(_detects, other, nested)) for other, nested in others)
    return (*(nested for form in FORMATS for nested in form.nested), *guarded)


def _detects(other: Extension[Format], nested: Nested, names: Sequence[str], head: Head) -> bool:
    """Whether a format of another package is found; one that raises an exception is not, and detection goes on."""
    with other.watch("to look whether rows are its own"):
        what = f"{other.value.name} of {other.package} is not detected"
        return or_warning(nested.detect, names, head, default=False, what=what)


def _unfold(batches: Callable[[], Iterator[pa.RecordBatch]], nesting: Nested) -> Iterator[pa.RecordBatch]:
    unfold, is_empty = cast(Any, nesting.unfold), True
    unfold = unfold() if nesting.counts else unfold
    keys = {path.partition(".")[0] for path in (*nesting.parts, *nesting.lists)}
    for batch in batches():
        unread, noted = _not_utf8(batch), notes_on(batch)
        broken = sorted(reading_problems(batch) | unread.keys())
        for start, end in pairwise([-1, *broken, batch.num_rows]):
            rows = native_rows(batch.slice(start + 1, end - start - 1))
            objects = [{n: structured(v) if n in nesting.parts else v for n, v in row.items()} for row in rows]
            turns: list[Unfolded] = []
            for place, row in enumerate(objects, start + 1):
                unfolded_row, others = _with_lists(row, nesting.lists)
                turns += [(dict.fromkeys(nesting.columns), [finding]) for finding in others]
                turns += () if unfolded_row is None else _turns(unfolded_row, unfold, keys, noted.get(place, ()))
            if turns:
                notes = {i: list(findings) for i, (_, findings) in enumerate(turns) if findings}
                if end == batch.num_rows and (last := nesting.ends(objects[-1])):
                    notes.setdefault(len(turns) - 1, []).extend(last)
                rows = [{n: v for n, v in t.items() if v is not None or n in nesting.columns} for t, _ in turns]
                yield with_notes(batch_of_rows(rows), notes)
                is_empty = False
            if end in unread:
                yield with_notes(batch_of_rows([dict.fromkeys(nesting.columns)]), {0: [unread[end]]})
            elif end < batch.num_rows:
                yield batch.slice(end, 1)
            is_empty = is_empty and end == batch.num_rows
    if is_empty:
        yield batch_of_rows([dict.fromkeys(nesting.columns)]).slice(0, 0)


def _turns(row: Row, unfold: Unfold, keys: Set[str], findings: Sequence[Finding]) -> Iterator[Unfolded]:
    """The turns of a row, the first one with the issues of the whole row; a row without any of the lists is a turn."""
    turn = None
    for turn, notes in unfold(row):
        yield turn, [*findings, *notes]
        findings = ()
    if turn is None and keys.isdisjoint(row):
        yield dict(row), findings


def _with_lists(row: dict[str, Any], paths: Sequence[str]) -> tuple[dict[str, Any] | None, list[Finding]]:
    """The row without the entries of its lists that are no objects, and the issues of these; no row if that is all."""
    unread: list[Finding] = []
    is_read = False
    for path in paths:
        above, _, key = path.rpartition(".")
        home = structured(row.get(above)) if above else row
        value = structured(home.get(key)) if isinstance(home, dict) else None
        if value is None:
            continue
        objects, wrong = objects_of(value, path)
        is_read, unread = is_read or bool(objects), unread + wrong
        if wrong:
            home = {**home, key: objects}
            row = {**row, above: home} if above else home
    return (row if is_read or not unread else None), unread


def _not_utf8(batch: pa.RecordBatch) -> dict[int, Finding]:
    """The rows that are not UTF-8, which Arrow does not check. Raises ArrowInvalid for offsets outside of the data."""
    try:
        batch.validate(full=True)
        return {}
    except pa.ArrowInvalid as error:
        if "UTF8" not in str(error):
            raise
    issues = {}
    for row, (name, column) in product(range(batch.num_rows), zip(batch.schema.names, batch.columns, strict=True)):
        try:
            column.slice(row, 1).validate(full=True)
        except pa.ArrowInvalid:
            issues[row] = Finding(reading.NOT_UTF8, f"expected UTF-8 in `{visible(name)}`, got other bytes", path=name)
    return issues


def _first_objects(source: Source, nesting: Nested) -> Sequence[Row]:
    rows: list[dict[str, Any]] = []
    try:
        for batch in first_rows(source, LOOKED_AT):
            if nesting.key:  # a search of the texts costs less than decoding them
                cells = batch.column(nesting.parts[0])
                texts = cells.cast(pa.large_binary()) if is_text(cells.type) else pa.array([str(to_values(cells))])
                texts.validate(full=True)
                if not pc.any(pc.match_substring(texts, nesting.key)).as_py():
                    continue
            try:
                batch.validate(full=True)
            except pa.ArrowInvalid:
                unread = _not_utf8(batch)
                batch = batch.filter(pa.array([i not in unread for i in range(batch.num_rows)]))
            rows += native_rows(batch)
    except pa.ArrowInvalid:  # reported where the cells are read
        return []
    return rows


LOOKED_AT = 20
"""The rows that are inspected where the columns do not suffice."""


def _by_columns(table: Row) -> dict[str, list[Any]] | None:
    """The columns of a table that is one object; None for a row, which has one prompt, and calls as objects."""
    if table.keys() <= _SPLIT and isinstance(table.get("columns"), list) and isinstance(table.get("data"), list):
        names, cells = table["columns"], table["data"]  # as pandas writes it with orient="split"
        is_table = all(isinstance(row, list) and len(row) == len(names) for row in cells)
        return {str(name): [row[i] for row in cells] for i, name in enumerate(names)} if is_table else None
    columns = {name: _column(cells) for name, cells in table.items()}
    lists = {name: cells for name, cells in columns.items() if cells is not None}
    if len(lists) < len(columns) or len(set(map(len, lists.values()))) != 1:
        return None
    return lists if any(_is_column(name, cells) for name, cells in lists.items()) else None


_SPLIT = frozenset({"columns", "index", "data"})


def _column(cells: Any) -> list[Any] | None:
    if isinstance(cells, dict) and list(cells) == [str(i) for i in range(len(cells))]:
        return list(cells.values())
    return cells if isinstance(cells, list) else None


def _is_column(name: str, cells: list[Any]) -> bool:
    if name in ("predicted_trajectory", "reference_trajectory"):
        return any(isinstance(cell, list | str) for cell in cells) and not any(isinstance(c, dict) for c in cells)
    return is_question(name) and bool(cells) and all(_is_request(cell) for cell in cells)


def _is_request(cell: Any) -> bool:
    """Whether a cell asks something, and is no message of a chat, which would be a part of one request."""
    return isinstance(cell, str) or (isinstance(cell, dict) and "role" not in cell and "content" not in cell)


def _rows(table: Row) -> Iterator[Unfolded]:
    columns = _by_columns(table) or {}
    for cells in zip(*columns.values(), strict=True):
        yield dict(zip(columns, cells, strict=True)), ()


_COLUMNS = Nested(lambda *_: False, _rows)


# --- a document of no format with one list of rows, or with rows by their IDs
def _list_of_rows(document: Row, key: str = "", name: str | None = None) -> str | None:
    """The path of the only list of objects that ask something, or that are there, where no question is beside it; ""
    for objects by their IDs. Spans under any key are no rows. Raises EvalSetError if there are several."""
    if any(isinstance(value, str) and is_question(column) for column, value in document.items()):
        return None
    if len(document) > 1 and all(isinstance(row, dict) and any(map(is_question, row)) for row in document.values()):
        return ""
    lists = _lists_of_rows(document)
    if key:
        return key if key in lists else None
    asking = _asking(lists)
    if len(asking) > 1:
        counts = " and ".join(f"{visible(path)} ({len(lists[path]):,})" for path in asking)
        choices = " or ".join(f"{name}#{path}" if name else f"data[{path!r}]" for path in map(visible, asking))
        raise EvalSetError(f"{name or 'data'}: expected one list of rows, got {counts}: use {choices}")
    top = [path for path in lists if path in document]
    return asking[0] if asking else top[0] if len(top) == 1 else None


def _lists_of_rows(document: Row) -> dict[str, list[Any]]:
    """The lists of objects of a document, at most one level down, by their paths."""
    inner = {f"{k}.{below}": v for k, o in document.items() if isinstance(o, dict) for below, v in o.items()}
    lists = {path: list(map(structured, v)) for path, v in {**inner, **document}.items() if isinstance(v, list) and v}
    return {k: e for k, e in lists.items() if all(isinstance(v, dict) and _SPANS.isdisjoint(v) for v in e)}


def _asking(lists: Mapping[str, list[Any]]) -> list[str]:
    """The paths of the lists whose objects ask something."""
    return [path for path, entries in lists.items() if any(map(is_question, _row_in(entries[0])))]


_ROW = "row"
"""The key of each row in the answer of the server of datasets of Hugging Face."""
_SPANS = frozenset({"scopeSpans", "scope_spans"})


def _listed_rows(document: Row, key: str = "") -> Iterator[Unfolded]:
    """The rows of the list; what is beside it is of the dataset."""
    path = _list_of_rows(document, key)
    if path == "":
        are_ids = list(document) != [str(i) for i in range(len(document))]
        yield from (({**({"request_id": name} if are_ids else {}), **row}, ()) for name, row in document.items())
        return
    if path is None:
        return
    name, _, below = path.partition(".")
    rows = document[path] if path in document else document[name][below]
    others = _asking(_lists_of_rows(document)) if key else []  # which were not chosen
    beside = {f"dataset_{n}": v for n, v in document.items() if n not in (path, name, *others)}
    for row in map(structured, rows):
        yield {**beside, **_row_in(row)}, ()


def _row_in(entry: dict[str, Any]) -> dict[str, Any]:
    row = entry.get(_ROW)
    return row if isinstance(row, dict) else entry


_LIST = Nested(lambda *_: False, _listed_rows)
