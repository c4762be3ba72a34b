"""How far a good cell travels: the calls of our functions whose arguments hold it, while a file is validated.

    python -m tests.benchmarks.visits

A function is visited if one of its arguments holds the cell: its text, its bytes, a value decoded from it, or a
container of these (an array, a batch, a column, the rows of a batch); it counts once, however often it is called.
Private functions, methods and generators count like all others, comprehensions and lambdas do not, nor do the steps of
a check, which have all rows and look at the columns that they are about. The row is the second of its file: the keys of
the first one stand for those of all that are written like it.
"""

from __future__ import annotations

import inspect
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import pyarrow as pa

from tests.helpers.traces import span, trace

MARK = "how many days of parental leave"
PACKAGE = "agent_eval_schema"
DEPTH = 3
"""Containers within containers that are looked into."""
MOST = {"request": 16, "trace": 23}
"""The functions that a good cell of a column may visit (`tests/project/test_calls.py`)."""


def rows() -> dict[str, dict[str, Any]]:
    """A good row by the column whose cell is followed: only that cell has the mark in it."""
    root = span(kind="AGENT", inputs={"query": MARK}, outputs="16 weeks")
    return {
        "request": {"request": {"messages": [{"role": "user", "content": MARK}]}, "response": "16 weeks"},
        "trace": {"trace": json.dumps(trace(root))},
    }


def holds(value: Any, depth: int = DEPTH) -> bool:
    """Whether the marked cell is in a value."""
    if isinstance(value, str):
        return MARK in value
    if isinstance(value, bytes | bytearray | memoryview):
        return MARK.encode() in bytes(value)
    if isinstance(value, pa.Array | pa.ChunkedArray | pa.RecordBatch | pa.Table):
        return MARK in str(value.to_pylist())
    if depth == 0 or value is None or isinstance(value, int | float | type):
        return False
    return any(holds(part, depth - 1) for part in _parts(value))


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        yield from value
    elif type(value).__name__ in ("Source", "Batches"):
        return  # the whole data, which is not in anybody's hands yet
    elif isinstance(value, msgspec.Struct):
        yield from (getattr(value, name) for name in value.__struct_fields__)
    elif type(value).__module__.startswith(PACKAGE):
        yield from vars(value).values() if hasattr(value, "__dict__") else ()


def visits(column: str) -> Counter[str]:
    """The visits of a cell on its way through `validate_eval_set`, by module."""
    from agent_eval_schema import validate_eval_set
    from agent_eval_schema.validation.steps import STEPS

    steps = {getattr(step.run, "__code__", None) for step in STEPS}
    found: Counter[str] = Counter()
    resumed: dict[int, FrameType] = {}

    def watch(frame: FrameType, event: str, _: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        code = frame.f_code
        if event != "call" or not module.startswith(PACKAGE) or code.co_name.startswith("<") or code in steps:
            return
        if code.co_flags & inspect.CO_GENERATOR:
            if id(frame) in resumed:
                return
            resumed[id(frame)] = frame
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if any(holds(frame.f_locals.get(name)) for name in names):
            name = getattr(code, "co_qualname", code.co_name)  # Python 3.10 has the short one only
            found[f"{module.removeprefix(PACKAGE + '.')}.{name}"] += 1

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "two.jsonl"
        line = json.dumps(rows()[column])
        path.write_text(f"{line.replace(MARK, 'why').replace('tr-1', 'tr-0')}\n{line}\n")
        validate_eval_set(path)  # everything is imported and cached
        import threading

        threading.setprofile(watch)
        sys.setprofile(watch)
        try:
            report = validate_eval_set(path)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    assert report.ok, report
    return found


if __name__ == "__main__":
    for column in rows():
        found = visits(column)
        print(f"{column}: {len(found)} functions in {found.total()} calls")
        for name, count in found.items():
            print(f"  {count:3} {name}")
