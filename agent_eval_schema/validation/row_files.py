"""A report's rows as files: the normalized ones, and the invalid ones with their issues."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from agent_eval_schema.cells.notes import LINE, NOTE
from agent_eval_schema.io.source import Source, schema_of
from agent_eval_schema.io.write import write_batches
from agent_eval_schema.text.choices import path_of
from agent_eval_schema.text.privacy import quoting
from agent_eval_schema.validation.plan import Plan
from agent_eval_schema.validation.second_reading import ISSUES_COLUMN, invalid_batches


def write_normalized(
    path: str | os.PathLike[str], source: Source, rows: Iterable[pa.RecordBatch], schema: pa.Schema, *, values: bool
) -> int:
    """Stream the normalized rows of a source into a file, the columns of the schema; returns their number."""
    with quoting(values):
        return write_batches(path_of(path), rows, schema, source.state)


def write_invalid(path: str | os.PathLike[str], source: Source, plan: Plan, valid: np.ndarray[Any, Any]) -> int:
    """Stream the invalid rows of a source into a file, with their cells as they came and their issues; returns their
    number."""
    given = [f for f in schema_of(source) if f.name not in (ISSUES_COLUMN, LINE)]
    schema = pa.schema([*given, pa.field(LINE, pa.string()), pa.field(ISSUES_COLUMN, pa.list_(NOTE))])
    with quoting(plan.values):
        return write_batches(path_of(path), invalid_batches(source, plan, valid), schema, source.state)
