"""Files whose rows are whole conversations → one row a turn, and tables by columns → rows, before anything else looks.

    {"eval_set_id": …, "eval_cases": [{"eval_id", "conversation": [invocation, …]}, …]}    ADK evalset
    [{"query", "expected_tool_use", "reference"}, …]                                       ADK test file: one session
    [{"name", "data": [{"query", …}, …], "initial_session": …}, …]                         ADK, several sessions
    {"evaluations": [evaluation, …], "nextPageToken": …}                                   CES, what the API lists;
    {"evaluationResults": [result, …], "nextPageToken": …}                                 results too
    {"prompt": [text, …], "reference_trajectory": [[call, …], …], …}                       one object, a list a column
    {"prompt": {"0": text, …}, …}                                                          as pandas' to_json writes it

A turn keeps its own keys and gets four columns beside them: `eval_id`, `turn` (from 1), `turns` (how many there are)
and `history`, the turns before it. A format (adk.py) then reads the turns as it reads any row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, pairwise
from typing import Any

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.cells.cells import native
from agent_eval_schema.cells.notes import column_names, is_hidden, reading_problems
from agent_eval_schema.io.pandas import frame_of
from agent_eval_schema.io.records import batch_of_rows
from agent_eval_schema.io.source import Source, rows_where

Turns = Iterator[dict[str, Any]]


class Nested(Struct, frozen=True):
    """A form whose rows are conversations. `detect` looks at the columns; `turns` unfolds the rows of a batch."""

    name: str
    detect: Callable[[Sequence[str]], bool]
    turns: Callable[[Iterable[Mapping[str, Any]]], Turns]


def unfolded(source: Source, *, alone: bool = False) -> Source:
    """The source with a row for each turn, if its rows are conversations, or for each row of a table that is one object
    by columns; else the source itself. `alone` says that there is one object, and no list.

    Row numbers then count turns. A row that could not be read stays in its place, for its problems to be told.
    """
    nesting = _nesting_of(source, alone or source.kind == "json") if source.kind in _OBJECTS else None
    if nesting is None:
        return source
    batches = partial(_unfold, source.batches, nesting)
    return replace(
        source,
        batches=batches,
        take=lambda mask: frame_of(rows_where(batches(), mask)),
        nests=True,
        shares=None,
        lines=None,
        original=None,
        read_share=None,
        in_order=True,
    )


_OBJECTS = ("list", "json", "jsonl")
"""The kinds of sources that hold conversations."""


def _nesting_of(source: Source, may_be_alone: bool) -> Nested | None:
    first = source.head()
    names = column_names(first.schema) if first is not None else []
    found = next((f for f in NESTED if f.detect(names)), None)
    alone = found is None and may_be_alone and first is not None and first.num_rows == 1
    if first is not None and alone and len(list(islice(source.batches(), 2))) == 1:
        return _COLUMNS if any(row and _by_columns(row) for row in _objects(first)) else None
    return found


def _unfold(batches: Callable[[], Iterator[pa.RecordBatch]], nesting: Nested) -> Iterator[pa.RecordBatch]:
    for batch in batches():
        broken = sorted(reading_problems(batch))
        for start, end in pairwise([-1, *broken, batch.num_rows]):
            turns = list(nesting.turns(_objects(batch.slice(start + 1, end - start - 1))))
            if turns:
                yield batch_of_rows(turns)
            if end < batch.num_rows:
                yield batch.slice(end, 1)


def _objects(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    columns = {f.name: native(batch, i) for i, f in enumerate(batch.schema) if not is_hidden(f)}
    return [{n: v[i] for n, v in columns.items() if v[i] is not None} for i in range(batch.num_rows)]


def _turns(eval_id: Any, conversation: Any, beside: Mapping[str, Any]) -> Turns:
    """The turns of one conversation; one that is none is a single row that says so, or how a scenario begins."""
    if not isinstance(conversation, list) or not conversation:
        opening = _opening(beside.get("conversation_scenario"))
        yield {**beside, "eval_id": eval_id, "turn": 1, "turns": 1, "history": [], "user_content": opening}
        return
    for i, turn in enumerate(conversation):
        own = turn if isinstance(turn, dict) else {"user_content": turn}
        place = {"eval_id": eval_id, "turn": i + 1, "turns": len(conversation), "history": conversation[:i]}
        yield {**beside, **snake_keys(own), **place}


def _opening(scenario: Any) -> Any:
    """What the user, whom a model plays, says first."""
    prompt = snake_keys(scenario).get("starting_prompt") if isinstance(scenario, dict) else None
    return prompt and {"role": "user", "parts": [{"text": prompt}]}


# ---------------------------------------------------------------------------------------------------------------------
# tables by columns
def _by_columns(table: Mapping[str, Any]) -> dict[str, list[Any]] | None:
    """The columns of a table that is one object; None if it is a row. A row has one prompt, and of a trajectory the
    calls, which are objects."""
    columns = {name: _column(cells) for name, cells in table.items()}
    found = {name: cells for name, cells in columns.items() if cells is not None}
    if len(found) < len(columns) or len(set(map(len, found.values()))) != 1:
        return None
    told = any(_tells(name, cells) for name, cells in found.items())
    return found if told else None


def _column(cells: Any) -> list[Any] | None:
    if isinstance(cells, dict) and list(cells) == [str(i) for i in range(len(cells))]:
        return list(cells.values())
    return cells if isinstance(cells, list) else None


def _tells(name: str, cells: list[Any]) -> bool:
    if name in ("predicted_trajectory", "reference_trajectory"):
        return any(isinstance(cell, list | str) for cell in cells) and not any(isinstance(c, dict) for c in cells)
    return name in ("prompt", "request") and all(isinstance(cell, str) for cell in cells)


def _rows(tables: Iterable[Mapping[str, Any]]) -> Turns:
    for table in tables:
        columns = _by_columns(table) or {}
        for cells in zip(*columns.values(), strict=True):
            yield dict(zip(columns, cells, strict=True))


_COLUMNS = Nested("columns", lambda _: False, _rows)


# ---------------------------------------------------------------------------------------------------------------------
# ADK
def snake_keys(value: Mapping[str, Any]) -> dict[str, Any]:
    """Keys in snake_case: ADK reads and writes both spellings."""
    return {"".join(f"_{c.lower()}" if c.isupper() else c for c in key): v for key, v in value.items()}


def _evalset(rows: Iterable[Mapping[str, Any]]) -> Turns:
    for row in rows:
        document = snake_keys(row)
        cases = document.pop("eval_cases", None)
        beside = {k: v for k, v in document.items() if k in ("eval_set_id", "name", "description")}
        for case in cases if isinstance(cases, list) else [cases]:
            given = snake_keys(case) if isinstance(case, dict) else {"conversation": case}
            kept = {k: v for k, v in given.items() if k not in ("eval_id", "conversation", "creation_timestamp")}
            yield from _turns(given.get("eval_id"), given.get("conversation"), {**beside, **kept})


def _test_file(rows: Iterable[Mapping[str, Any]]) -> Turns:
    yield from _turns(None, [dict(row) for row in rows], {})


def _sessions(rows: Iterable[Mapping[str, Any]]) -> Turns:
    for row in rows:
        beside = {"session_input": row["initial_session"]} if row.get("initial_session") else {}
        yield from _turns(row.get("name"), row.get("data"), beside)


# ---------------------------------------------------------------------------------------------------------------------
# CES
def _page(rows: Iterable[Mapping[str, Any]]) -> Turns:
    for row in rows:
        found = next((row[key] for key in LIST_FIELDS if key in row), None)
        for item in found if isinstance(found, list) else [found]:
            yield item if isinstance(item, dict) else {"golden": item}


LIST_FIELDS = ("evaluations", "evaluationResults", "evaluation_results")
"""The fields of ListEvaluationsResponse and ListEvaluationResultsResponse that hold the list."""

_PAGE = frozenset({*LIST_FIELDS, "nextPageToken", "next_page_token"})


def _is_page(names: Sequence[str]) -> bool:
    return any(key in names for key in LIST_FIELDS) and set(names) <= _PAGE


NESTED: tuple[Nested, ...] = (
    Nested("ces-evaluation", _is_page, _page),
    Nested("adk", lambda names: bool({"eval_cases", "evalCases"} & set(names)), _evalset),
    Nested("adk-legacy", lambda names: {"query", "expected_tool_use"} <= set(names), _test_file),
    Nested("adk-legacy", lambda names: {"name", "data"} == set(names) - {"initial_session"}, _sessions),
)
