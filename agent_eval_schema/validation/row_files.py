"""A report's rows as files: the normalised ones, and the invalid ones beside their issues."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from agent_eval_schema.cells.notes import LINE, NOTE
from agent_eval_schema.io.source import Source, schema_of
from agent_eval_schema.io.write import write_batches
from agent_eval_schema.text.privacy import quoting
from agent_eval_schema.validation.plan import Plan
from agent_eval_schema.validation.second_reading import ISSUES_COLUMN, invalid_batches


def write_normalized(path: str | Path, rows: Iterable[pa.RecordBatch], schema: pa.Schema, *, values: bool) -> int:
    """Stream normalised rows into a file, the columns of the schema; returns their number."""
    with quoting(values):
        return write_batches(str(path), rows, schema)


def write_invalid(path: str | Path, source: Source, plan: Plan, valid: np.ndarray[Any, Any]) -> int:
    """Stream the invalid rows of a source into a file, with their cells as they came and their issues; returns their
    number."""
    given = [f for f in schema_of(source.kind, source.batches()) if f.name not in (ISSUES_COLUMN, LINE)]
    schema = pa.schema([*given, pa.field(LINE, pa.string()), pa.field(ISSUES_COLUMN, pa.list_(NOTE))])
    with quoting(plan.values):
        return write_batches(str(path), invalid_batches(source, plan, valid), schema)
