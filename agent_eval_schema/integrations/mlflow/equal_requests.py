"""Rows with equal requests → the one that an MLflow dataset gets of them, and what becomes of the others.

    rows ──by inputs──▶ groups of equal requests ──first, last or merge──▶ the rows to write, each a record
                        │                          │
                        a stored record            collapsed, updated: which columns get lost

A dataset has one record for equal inputs: a second row with the same request overwrites, key by key, the cells of the
first one. So equal requests are looked for before anything is written, among the rows and in the dataset.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any, Literal

from msgspec import Struct

from agent_eval_schema.formats.mlflow import whole
from agent_eval_schema.integrations.mlflow.records import (
    RECORDED,
    SOURCE,
    DatasetRecord,
    RowWithSource,
    key_of,
    read_records,
)
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.text.jsontext import without_null_keys
from agent_eval_schema.text.visible import visible

OnDuplicate = Literal["raise", "first", "last", "merge"]


class Collapsed(Struct, frozen=True):
    """A row without a record of its own: `into` is the position of the row with the same request that was written, or
    the ID of the existing record. `lost` names the columns with other values there."""

    row: int
    request_id: str | None
    into: int | str
    lost: tuple[str, ...]


class Updated(Struct, frozen=True):
    """A record that was there and was updated by a row. `lost` names the columns whose stored cells were replaced; a
    record keeps its first source, so a new one is lost."""

    row: int
    record_id: str
    lost: tuple[str, ...]


class Chosen(Struct):
    """The rows to write, and the treatment of the others and of the existing records."""

    rows: list[RowWithSource] = []
    collapsed: list[Collapsed] = []
    updated: list[Updated] = []


def choose_rows(rows: list[RowWithSource], stored: list[DatasetRecord], on_duplicate: OnDuplicate) -> Chosen:
    """Choose a row for each request. Raise EvalSetError for `"raise"` if a row would get no record of its own."""
    groups: dict[str, list[RowWithSource]] = {}
    for row in rows:
        groups.setdefault(key_of(whole(row, "inputs")), []).append(row)
    there = {key_of(r["inputs"]): r for r in stored}
    met = [there[key] for key in groups if key in there]
    known = {r["id"]: row for r, (row, _) in zip(met, read_records(met), strict=True)}
    chosen = Chosen()
    choose = {"first": itemgetter(0), "last": itemgetter(-1)}.get(on_duplicate, _merged)
    for key, group in groups.items():
        record = there.get(key)
        if record is not None and on_duplicate == "first":
            chosen.collapsed += [_collapsed(r, known[record["id"]], record["id"]) for r in group]
            continue
        kept = choose(group)
        chosen.rows.append(kept)
        chosen.collapsed += [_collapsed(r, kept, kept["row"]) for r in group if r["row"] != kept["row"]]
        if record is not None:
            chosen.updated.append(Updated(kept["row"], record["id"], _differing(kept, known[record["id"]])))
    if on_duplicate == "raise":
        _raise_for(chosen)
    return chosen


def _merged(group: list[RowWithSource]) -> RowWithSource:
    """The last row, completed with values of those before it; the later one of expected_response and expected_facts, of
    which a row has one."""
    merged = dict(group[0])
    for row in group[1:]:
        later = without_null_keys(row)
        for name, other in (_TRUTHS, _TRUTHS[::-1]):
            if name in later and other not in later:
                merged[other] = None
        for name in _KEYED:
            if name in later and merged[name] is not None:
                later[name] = {**merged[name], **later[name]}
        merged.update(later)
    return merged


_TRUTHS = ("expected_response", "expected_facts")
_KEYED = ("custom_expected", "tags")
"""Columns that mlflow merges key by key."""


def _collapsed(row: RowWithSource, kept: RowWithSource, into: int | str) -> Collapsed:
    lost = [n for n in (*RECORDED, SOURCE) if n != "request" and not _keeps(kept[n], row[n], n)]
    return Collapsed(row["row"], row["request_id"], into, tuple(lost))


def _differing(row: RowWithSource, stored: RowWithSource) -> tuple[str, ...]:
    """The columns in which the row differs from the stored one, after MLflow has merged them."""
    both = [n for n in (*RECORDED, SOURCE) if n != "request" and row[n] is not None and stored[n] is not None]
    merged = {n: {**stored[n], **row[n]} if n in _KEYED else row[n] for n in both}
    return tuple(n for n in both if not _keeps(merged[n], stored[n], n))


def _keeps(kept: Any, value: Any, name: str) -> bool:
    """Whether nothing of a cell is lost if there is `kept` in its place."""
    if value is None or kept == value:
        return True
    return name in _KEYED and kept is not None and {**kept, **value} == kept


def _raise_for(chosen: Chosen) -> None:
    lost = []
    for c in chosen.collapsed:
        request_id = "" if c.request_id is None else f" ({visible(c.request_id)[:60]})"
        lost.append(f"row {c.row}{request_id} as row {c.into}{_other_columns(c.lost)}")
    lost += [
        f"row {u.row} as the stored record {u.record_id}{_other_columns(u.lost)}" for u in chosen.updated if u.lost
    ]
    if lost:
        shown = "; ".join(lost[:5]) + (f"; and {len(lost) - 5:,} more" if len(lost) > 5 else "")
        raise EvalSetError(
            f"{len(lost):,} rows would be merged, because an MLflow dataset stores one record per distinct request: "
            f"{shown}. "
            'Nothing was written; on_duplicate="first", "last" or "merge" selects the row that is kept'
        )


def _other_columns(lost: tuple[str, ...]) -> str:
    return f" (another {', '.join(lost)})" if lost else ""
