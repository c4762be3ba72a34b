"""Columns that the user names: `{"item.ticket_text": "request"}` moves a key of each item into the column `request`.

    question            request                          a column, whole
    item.ticket_text    request                          a key of the objects in a column
    ctx[].text          retrieved_context[].content      a key of each object of a list → that key of each document
    contexts[]          retrieved_context[].content      each string of a list
    context             retrieved_context[].content      the one value of a list
    spans[].docs[].id   retrieved_context[].doc_uri      of lists in a list, one after the other
    Sources[;]          retrieved_context[].doc_uri      the parts of a text between semicolons (or [,] [|] [•])
    Points[\\n]          expected_facts                   the lines of a text, without their bullets

A path is the name of a column, then keys and `[]`, which means each element of a list. What else is in such an object
stays where it is, and so does a cell of another shape.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.cells.cells import native, native_rows
from agent_eval_schema.cells.edit import with_columns, with_edits
from agent_eval_schema.cells.notes import Notes, with_notes
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.formats.mlflow import TEST_CASE
from agent_eval_schema.formats.registry import UNKNOWN, detect, find_format
from agent_eval_schema.formats.roles import NO_ROLE, is_of_truth, role_of
from agent_eval_schema.formats.shapes import uri_of
from agent_eval_schema.formats.suggestions import (
    SAMPLED_ROWS,
    naming_columns,
    reason_for,
    require_unambiguous,
    split_of,
    suggested_columns,
    truth_of,
    unread_truths,
)
from agent_eval_schema.io.source import Remote, Source, first_rows
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules.columns import NAMED_COLUMN, PREFERRED_TRUTH, UNMATCHED_PATH
from agent_eval_schema.schema import COLUMNS, Contexts, Count, RetrievedContext, columns_of
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.choices import no_choice, require_choice, shown
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.jsontext import column_of, structured, value_at
from agent_eval_schema.text.spelling import is_unwritten

EACH = "[]"
"""The step of a path that means each element of a list."""

AUTO = "auto"
"""The mapping that the names and the values of the columns suggest."""

ColumnNames: TypeAlias = "Mapping[str, str] | Literal['auto'] | None"

_T = TypeVar("_T")
_Change = Callable[[pa.RecordBatch], pa.RecordBatch]


class Move(Struct, frozen=True):
    """One entry of the mapping: the column and the steps below it where a value is, and where it goes."""

    column: str
    steps: tuple[str, ...]
    name: str
    into: tuple[str, ...]


def with_names(source: Source, columns: Mapping[str, str], *, all_of_them: bool = True) -> Source:
    """The source with the columns under these names. Raises EvalSetError for a path that is malformed, a name that no
    column has here, or (unless some may lack) a column that the data does not have."""
    moves = _moves(source.column_names(), columns, all_of_them=all_of_them)
    if not moves:
        return source
    source = _shown(source, [move.column for move in moves if move.name not in _NUMBERS])
    touched = {name for move in moves for name in (move.column, move.name)}
    ragged = source.ragged or any(move.steps for move in moves)  # what stays of a column may be in some rows only
    change = partial(_renamed, moves=moves)
    return with_changed_cells(source, change, touched, columns=None, in_order=True, ragged=ragged)


_NUMBERS = columns_of(Count, float, bool)


def _shown(source: Source, names: Collection[str]) -> Source:
    """The source with the numbers of these columns as a sheet shows them, if it is one."""
    if source.as_text is None:
        return source
    texts = source.as_text(names)
    return replace(source, batches=texts.batches, take=texts.take, original=texts.original, as_text=texts.as_text)


def with_changed_cells(source: Source, change: _Change, touched: Collection[str], **others: Any) -> Source:
    """The source with other cells in the `touched` columns, changed where the rows are, and with what else differs."""
    original, as_text = source.original, source.as_text
    return replace(
        source,
        as_text=as_text and (lambda names: with_changed_cells(as_text(names), change, touched, **others)),
        batches=lambda: map(change, source.batches()),
        original=original and (lambda name: None if name in touched else original(name)),
        shares=None,
        remote=source.remote and _Named(source.remote, change),
        **others,
    )


PREFERRED = "preferred"
"""What a column of ground truth is mapped to, so that rows with several kinds keep this one."""

_OTHER_TRUTH = {"expected_facts": "expected_response", "expected_response": "expected_facts"}
"""The columns of ground truth where a platform takes one of two, each with the other one."""


def preferred_in(columns: Mapping[str, str] | None) -> str:
    """The column of ground truth that the mapping prefers; "" for none."""
    preferred = [name for name in _OTHER_TRUTH if columns and columns.get(name) == PREFERRED]
    if len(preferred) > 1:
        raise EvalSetError(f"columns: expected one preferred column, got {' and '.join(preferred)}")
    return next(iter(preferred), "")


def without_preferred(columns: Mapping[str, str]) -> dict[str, str]:
    """The names of columns in a mapping."""
    return {path: name for path, name in columns.items() if not (path in _OTHER_TRUTH and name == PREFERRED)}


def with_preferred(source: Source, name: str) -> Source:
    """The source whose rows with two kinds of ground truth keep the one, each with an issue."""
    change = partial(_preferring, name=name, can_hold_objects=source.can_hold_objects)
    return with_changed_cells(source, change, (*_OTHER_TRUTH, "expectations"))


def _preferring(batch: pa.RecordBatch, name: str, can_hold_objects: bool) -> pa.RecordBatch:
    names = batch.schema.names
    columns = {n: native(batch, names.index(n)) for n in (*_OTHER_TRUTH, "expectations") if n in names}
    cells, notes = dict[str, dict[int, Any]](), Notes()
    for row in range(batch.num_rows if columns else 0):
        inner = structured(columns["expectations"][row]) if "expectations" in columns else None
        for truths in ({n: columns[n][row] for n in _OTHER_TRUTH if n in columns}, inner):
            complete = [n for n in _OTHER_TRUTH if isinstance(truths, dict) and _is_written(truths.get(n))]
            written = [n for n in _OTHER_TRUTH if isinstance(truths, dict) and truths.get(n)]
            if len(written) < 2 or not isinstance(truths, dict):
                continue
            other = _OTHER_TRUTH[name if name in complete or not complete else complete[0]]
            rest = {n: value for n, value in truths.items() if n != other}
            column, value = ("expectations", rest) if truths is inner else (other, None)
            cells.setdefault(column, {})[row] = value
            notes[row] = [Finding(PREFERRED_TRUTH, f"dropped, as the row has `{_OTHER_TRUTH[other]}`", other)]
    return with_notes(with_edits(batch, cells, can_hold_objects), notes)


def _is_written(truth: Any) -> bool:
    """Whether a ground truth has a text that is no placeholder."""
    texts = structured(truth)
    return any(not (isinstance(t, str) and is_unwritten(t)) for t in (texts if isinstance(texts, list) else [texts]))


def without_auto(columns: ColumnNames) -> tuple[Mapping[str, str] | None, bool]:
    """The names that are given, and whether the others are to be those that the columns suggest."""
    if isinstance(columns, str):
        require_choice("columns", columns, (AUTO,))
        return None, True
    if columns is not None and not isinstance(columns, Mapping):
        raise EvalSetError(f"columns: expected a dict {{column of the data: our name}}; got {shown(columns)}")
    if columns is None or columns.get(AUTO) != AUTO:
        return columns, False
    return {path: name for path, name in columns.items() if path != AUTO} or None, True


class Likely(Struct, frozen=True):
    """What the columns that a format does not read look like: the mapping that a user may want, what else may have
    ground truth, with what is in it, and what `then` changes with the mapping, as sentences."""

    columns: dict[str, str] = {}
    unread: dict[str, str] = {}
    then: str = ""


def likely_columns(source: Source, format: str) -> Likely:
    """What columns look like, by their names and the first rows, which are looked at only if a column is unknown."""
    names, form, whole = source.column_names(), find_format(format), format == UNKNOWN.name
    known = COLUMNS if whole else form.own_columns.union(COLUMNS)
    unknown = [n for n in names if n not in known and not n.startswith("dataset_")]
    is_open = whole or any(role is NO_ROLE or role.column or is_of_truth(n) for n in unknown for role in [role_of(n)])
    with_keys = [name for name in OBJECTS.get(format, ()) if name in names]
    if not (form.is_rows or whole) or not (is_open or with_keys):
        return Likely()
    texts = [name for name in unknown if (column := role_of(name).column) and column not in _NUMBERS]
    rows = [row for batch in first_rows(_shown(source, texts), SAMPLED_ROWS) for row in native_rows(batch)]
    if whole:
        columns = suggested_columns(names, rows, whole=True)
        return Likely(columns, unread_truths(names, rows, columns), _then(source, rows, columns, format))
    origins = form.origins(names)
    places = {column: place for column, place in origins.items() if column not in _ANSWERS or place not in with_keys}
    present = {column for column, place in places.items() if any(value_at(row, place) is not None for row in rows)}
    into = {column: place for column, place in origins.items() if form.has_canonical and column_of(place) in COLUMNS}
    into |= {"request": "inputs.question"} if into.get("request") == "inputs" else {}
    if with_keys:
        keys = [(row, [_keys_below(name, structured(row.get(name))) for name in with_keys]) for row in rows]
        rows = [{**row, **{key: value for inner in dicts for key, value in inner.items()}} for row, dicts in keys]
        of_case = {*(f"inputs.{key}" for key in TEST_CASE), *origins.values()}  # which the format reads
        unknown += dict.fromkeys(n for row in rows for n in row if n not in of_case.union(names) and _may_be_truth(n))
    asks = {"request"} - present
    columns = {
        path: into.get(target, target)
        for path, target in suggested_columns(unknown, rows, whole=False, known=(), present={*present, *names}).items()
        if format == "databricks" or target in asks or truth_of(target)
    }
    if columns and source.reading.format == "auto" and detect(_named(names, columns)).format != format:
        columns = suggested_columns(names, rows, whole=True)
        columns = columns if "request" in columns.values() else {}
    has_truth = not present.union(names).isdisjoint(_ANSWERS)
    unread = {} if has_truth else unread_truths(unknown, rows, columns)
    return Likely(columns, unread, _then(source, rows, columns, format))


def _then(source: Source, rows: list[dict[str, Any]], columns: Mapping[str, str], format: str) -> str:
    """Which platform reads the table under these names, if that is another one, and what it rejects of the first rows
    that MLflow accepts."""
    chosen = detect(_named(source.column_names(), columns)).format if columns else None
    if source.reading.format != "auto" or chosen is None:
        return ""
    was = "" if format == UNKNOWN.name else f", not of {format}"
    text = f" Under these names the rows are those of {chosen}{was}." if chosen != format else ""
    paths = {truth_of(target): path.partition("[")[0] for path, target in columns.items()}
    both = sum(all(value_at(row, paths.get(name, name)) for name in _ANSWERS) for row in rows)
    if chosen != "databricks" or not both:
        return text
    return (
        f"{text} As {chosen}, a row with an answer and facts, such as {both} of the first {len(rows)}, is invalid "
        '(AE301); as a row of MLflow (`--format mlflow`, `format="mlflow"`) it is valid.'
    )


_ANSWERS = ("expected_response", "expected_facts")

OBJECTS = {
    "mlflow": ("inputs", "expectations"),
    "langsmith": ("inputs", "outputs"),
    "openai": ("item",),
    "promptfoo": ("vars",),
}
"""By format, the columns of objects whose keys are the user's: ground truth may be among them."""


def _may_be_truth(path: str) -> bool:
    """Whether the path of a key shows ground truth. Any key of MLflow's `expectations` is what a scorer of one's own
    may read: only a name that means the ground truth of an answer, and nothing else, is one."""
    column, _, key = path.partition(".")
    if column != "expectations":
        return is_of_truth(path)
    role = role_of(key)
    return role.sure and role.name in ("ground truth", "answer", "response", "facts")


def _keys_below(column: str, value: Any) -> dict[str, Any]:
    return {f"{column}.{key}": inner for key, inner in value.items()} if isinstance(value, dict) else {}


def unmatched(source: Source, columns: Mapping[str, str]) -> list[Finding]:
    """The paths into cells that match nothing in the first rows, and what is there instead."""
    moves = [(path, move) for path, move in zip(columns, _moves(source.column_names(), columns), strict=True)]
    if not any(move.steps for _, move in moves):
        return []
    rows, findings = [row for batch in first_rows(source, SAMPLED_ROWS) for row in native_rows(batch)], []
    for path, move in moves:
        values = [structured(row[move.column]) for row in rows if row.get(move.column) is not None]
        if move.steps and values and all(_is_absent(_without(value, move.steps)[1]) for value in values):
            message = f"`{path}` matches nothing in the first rows ({len(rows)}), got {describe(values[0])}"
            split = split_of(values) if path.endswith(EACH) else ""
            other = {path.removesuffix(EACH) + split: columns[path] if split else f"{columns[path]}{EACH}"}
            texts = path.endswith(EACH) and all(isinstance(value, str) for value in values)
            hint = f"Split the text, or read it as one element ({naming_columns(other)})." if texts else ""
            findings.append(Finding(UNMATCHED_PATH, message, move.column, hint=hint))
    return findings


def _named(names: list[str], columns: Mapping[str, str]) -> list[str]:
    """The columns of a table when these are moved."""
    return [*(n for n in names if n not in columns), *(column_of(target) for target in columns.values())]


def with_likely_names(source: Source) -> Source:
    """The source with columns under their likely names, an issue for each. Raises EvalSetError for ambiguous ones."""
    names = source.column_names()
    format = detect(names, source.metadata).format
    columns = likely_columns(source, format or UNKNOWN.name).columns
    if format is not None and not columns:
        return source
    may_quote = source.reading.show_values  # the keys in cells
    origins = find_format(format or UNKNOWN.name).origins(names)
    read = [*names, *(column for column, place in origins.items() if column_of(place) in names)]
    require_unambiguous(read, columns, {path: column for path, column in columns.items() if may_quote or path in names})
    named = [
        Finding(NAMED_COLUMN, f"`{shown}` is read as `{column}`: {reason_for(path, column)}", _NAME.findall(column)[0])
        for path, column in columns.items()
        for shown in [path if may_quote else path[: _end_of_column(path, names)]]
    ]
    names_asked = {**source.reading.columns, **columns}
    source = replace(with_names(source, columns), options={**source.options, "columns": names_asked})
    return replace(source.read_as(columns=names_asked), remarks=(*source.remarks, *named))


def _moves(names: list[str], columns: Mapping[str, str], *, all_of_them: bool = True) -> list[Move]:
    """Where each value is, and where it goes: our column, and the steps below it."""
    targets = {}
    for path, target in columns.items():
        found = _NAME.match(target) if isinstance(target, str) else None
        require_choice("columns", found[0] if found else target, COLUMNS)
        targets[path] = (found[0] if found else target, _steps(target, found.end() if found else 0))
    moves = []
    for path, (name, into) in targets.items():
        end = _end_of_column(path, names)
        if end is not None:
            moves.append(Move(path[:end], _steps(path, end), name, into))
        elif all_of_them:
            raise no_choice("columns", path, names)
    return moves


def column_renamer(names: list[str], columns: Mapping[str, str]) -> _Change:
    """The function that puts a batch's columns under their names, wherever its rows are. Raises as `with_names`."""
    return partial(_renamed, moves=_moves(names, columns, all_of_them=True))


def titles_of(source: Source) -> dict[str, str]:
    """By our names, the columns of a sheet that the mapping reads them from."""
    assert source.sheet is not None
    moves = _moves(list(source.sheet.columns), without_preferred(source.reading.columns))
    return {move.name: move.column for move in reversed(moves)}


def renames_in_sheet(source: Source, names: Collection[str]) -> dict[str, str | None]:
    """What the columns of a sheet are called when it holds these columns. One that is new is in the place of what it is
    read from, or of one that is no longer there; None is an empty place."""
    assert source.sheet is not None
    titles = sorted(source.sheet.columns, key=source.sheet.columns.__getitem__)
    renames: dict[str, str | None] = {}
    for name, title in titles_of(source).items():
        if name in names and name not in titles and title not in names:
            renames.setdefault(title, name)
    new = iter([name for name in names if name not in titles and name not in renames.values()])
    return renames | {title: next(new, None) for title in titles if title not in names and title not in renames}


def in_sheet(source: Source, cells: Mapping[str, Any]) -> dict[str, Any]:
    """The cells of a row under the names of its sheet, each as the text that the mapping reads as this value. Raises
    EvalSetError for a value that no text is read as."""
    assert source.sheet is not None
    moves, written = _moves(list(source.sheet.columns), without_preferred(source.reading.columns)), dict[str, Any]()
    for name, value in cells.items():
        own = [move for move in moves if move.name == name]
        titles = [move.column for move in own] or [name]
        text = _joined(value, own[0]) if own and value is not None else value
        if len(titles) > 1 or (own and dict(_moved({titles[0]: text}, own)).get(name) != value):
            raise EvalSetError(
                f"{source.sheet.path}: `{name}` is read from {' and '.join(map(repr, titles))}: expected a value that "
                f"can be written there, got {describe(value)}: write .jsonl"
            )
        written[titles[0]] = text
    return written


def _joined(value: Any, move: Move) -> Any:
    """A list as the text that is split into it, if the column is split; of objects what is at the key of each."""
    if len(move.steps) != 1 or not isinstance(value, list):
        return value
    parts = [value_at(part, move.into[1]) if move.into[:1] == (EACH,) and move.into[1:] else part for part in value]
    sign = move.steps[0][1:-1]
    return ("\n" if sign in ("\n", "\\n") else f"{sign} ").join(map(str, parts))


def has_path(path: str, name: str, source: Source) -> bool:
    """Whether a source has the column of a path, or an entry of the mapping is of no column."""
    return path == AUTO or name == PREFERRED or _end_of_column(path, source.column_names()) is not None


def require_in_one(columns: Mapping[str, str], *sources: Source) -> None:
    """Raise EvalSetError for a path that none of several sources has."""
    for path, name in columns.items():
        if not any(has_path(path, name, source) for source in sources):
            raise no_choice("columns", path, dict.fromkeys(n for source in sources for n in source.column_names()))


_NAME = re.compile(r"[^.\[\]]+")
_SPLIT = r"\[(?:[;,|•\n]|\\n)?\]"
_STEP = re.compile(rf"({_SPLIT})|\.([^.\[\]]+)")
_BULLET = re.compile(r"(?:[•‣▪·*–-]|\d+[.)])\s+")
"""What begins an item of a list that is written as lines."""


def _steps(path: str, start: int) -> tuple[str, ...]:
    """The keys and `[]` of a path from a place on."""
    steps = []
    while start < len(path):
        step = _STEP.match(path, start)
        if step is None:
            raise EvalSetError(f"columns: expected a path such as item.text or ctx[].text; got {path!r}")
        steps.append(step[1] or step[2])
        start = step.end()
    return tuple(steps)


def _end_of_column(path: str, names: list[str]) -> int | None:
    """Where the name of the column ends. A column named as the whole path, dots and all, wins over keys in another."""
    ends = [len(path), *(match.start() for match in re.finditer(rf"\.|{_SPLIT}", path))]
    return next((end for end in sorted(ends, reverse=True) if path[:end] in names), None)


def _renamed(batch: pa.RecordBatch, moves: list[Move]) -> pa.RecordBatch:
    taken = frozenset(move.column for move in moves)
    # also without a value, and without a row: the columns of a source are those of its first batch
    result: dict[str, list[str | None]] = {move.name: [None] * batch.num_rows for move in moves}
    for i, row in enumerate(native_rows(batch)):
        for name, value in _moved({n: row[n] for n in taken if row.get(n) is not None}, moves):
            result.setdefault(name, [None] * batch.num_rows)[i] = jsontext.encode(value).decode()
    return with_columns(batch, result, taken)


def _moved(row: dict[str, Any], moves: list[Move]) -> Iterator[tuple[str, Any]]:
    nested = {move.column for move in moves if move.steps}
    made_lists = {move.column for move in moves if EACH in move.into}
    rest = {n: structured(v) if n in nested or n in made_lists else v for n, v in row.items()}
    result: dict[str, Any] = {}
    for move in moves:
        rest[move.column], value = _without(rest.get(move.column), move.steps)
        if not _is_absent(value):
            lists = sum(step[0] == "[" for step in move.steps)
            value = _flat(value, lists - max(move.into.count(EACH), 1))
            result[move.name] = _put(result.get(move.name), move.into, value)
    for name in _DOCUMENTS.intersection(result):
        result[name] = _with_uris(result[name])
    for move in moves:  # a key that is renamed in its object stays beside the others
        others, renamed = rest.get(move.column), result.get(move.column)
        if move.name == move.column and isinstance(others, dict) and isinstance(renamed, dict):
            result[move.name] = others | renamed
            rest[move.column] = {key: value for key, value in others.items() if key in renamed}
    yield from result.items()
    for name, value in rest.items():
        if value not in (None, {}):
            yield (f"{name}.rest" if name in result else name), value


def _without(value: Any, steps: tuple[str, ...]) -> tuple[Any, Any]:
    """A value without the content at these steps, and the content; of `[]` a list, with None for an element without."""
    if not steps:
        return None, value
    step, *below = steps
    if step[0] == "[" and step != EACH and isinstance(value, str):
        parts = value.splitlines() if step[1] in "\n\\" else value.split(step[1])
        value = [_BULLET.sub("", part.strip(), count=1) for part in parts if part.strip()]
    if step[0] == "[":
        if not isinstance(value, list):
            return value, None
        pairs = [_without(element, tuple(below)) for element in value]
        rest = [inner for inner, _ in pairs]
        return (rest if any(inner not in (None, {}) for inner in rest) else None), [content for _, content in pairs]
    if not isinstance(value, dict) or step not in value:
        return value, None
    inner, content = _without(value[step], tuple(below))
    others = {k: v for k, v in value.items() if k != step}
    return (others if inner in (None, {}) else {**others, step: inner}), content


def _is_absent(value: Any) -> bool:
    return value is None or (isinstance(value, list) and bool(value) and all(map(_is_absent, value)))


def _flat(value: Any, levels: int) -> Any:
    """The elements of lists in a list, one after the other."""
    for _ in range(levels):
        if isinstance(value, list):
            value = [v for part in value for v in (part if isinstance(part, list) else [part])]
    return value


def _put(before: Any, steps: tuple[str, ...], value: Any) -> Any:
    """A value with another one at these steps. What is not a list is the one element of a list."""
    if not steps:
        return value
    step, below = steps[0], steps[1:]
    if step != EACH:
        before = before if isinstance(before, dict) else {}
        return {**before, step: _put(before.get(step), below, value)}
    elements = list(before) if isinstance(before, list) else []
    for i, v in enumerate(value if isinstance(value, list) else [value]):
        if i == len(elements):
            elements.append(None)
        if v is not None:
            elements[i] = _put(elements[i], below, v)
    return elements


_DOCUMENTS = frozenset(columns_of(Contexts, RetrievedContext))


def _with_uris(documents: Any) -> Any:
    """Documents that are named by their content alone have an ID made of it; an ID is text."""
    for i, d in enumerate(documents if isinstance(documents, list) else ()):
        if isinstance(d, dict) and "doc_uri" not in d and isinstance(d.get("content"), str):
            documents[i] = {"doc_uri": uri_of(d["content"]), **d}
        elif isinstance(d, dict) and type(d.get("doc_uri")) is int:
            documents[i] = {**d, "doc_uri": str(d["doc_uri"])}
    return documents


class _Named:
    """Remote rows with other cells, which are changed where the rows are."""

    def __init__(self, remote: Remote, change: _Change) -> None:
        self._remote, self._change = remote, change

    def first(self, most: int, /) -> list[pa.RecordBatch]:
        """The first rows, in batches."""
        return [self._change(batch) for batch in self._remote.first(most)]

    def any(self, test: Callable[[pa.RecordBatch], bool], /) -> bool:
        """Whether the test is true of any batch."""
        return self._remote.any(partial(_after, self._change, test))

    def map(self, work: Callable[[pa.RecordBatch], pa.RecordBatch], /) -> Iterator[pa.RecordBatch]:
        """The results of a function on every batch."""
        return self._remote.map(partial(_after, self._change, work))


def _after(change: _Change, work: Callable[[pa.RecordBatch], _T], batch: pa.RecordBatch) -> _T:
    return work(change(batch))
