"""DuckDB, for what needs the whole table: the decisions (sql.py) over index files that exceed memory, and
the user's SQL over the columns of a raw batch.

    index files (Parquet) ──STEPS──▶ decisions file (Parquet, in the order of the rows) · tallies

Nothing is loaded by it from anywhere: files go in by name, its memory is limited, and what exceeds that is spilled to a
folder of ours.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from agent_eval_schema.cells.arrow import simplified
from agent_eval_schema.cells.batch import is_json_column
from agent_eval_schema.cells.notes import is_hidden
from agent_eval_schema.errors import EvalSetError, import_extra
from agent_eval_schema.inference_tables.decide.sql import (
    BESIDE_SQL,
    DECISION_TABLES,
    ENTRY,
    JOINED_TRACES,
    RESULTS,
    steps_of,
)
from agent_eval_schema.inference_tables.plan import BuildPlan
from agent_eval_schema.io.arrow import as_text
from agent_eval_schema.text.describe import names
from agent_eval_schema.text.privacy import error_text

if TYPE_CHECKING:
    import duckdb


MEMORY = "256MB"
"""What DuckDB may use before it spills (AGENT_EVAL_SCHEMA_DUCKDB_MEMORY sets another limit)."""


def require_duckdb() -> None:
    import_extra("duckdb", "production", "duckdb 1.0")


def _connected(**more: Any) -> duckdb.DuckDBPyConnection:
    require_duckdb()
    import duckdb

    limit = os.environ.get("AGENT_EVAL_SCHEMA_DUCKDB_MEMORY", MEMORY)
    return duckdb.connect(":memory:", config={"memory_limit": limit, **more})


# --- decisions
def decide(
    tables: Mapping[str, Sequence[str]], plan: BuildPlan, existing: int, decided: Path, spill: Path, joined: Path | None
) -> dict[str, list[tuple[Any, ...]]]:
    """Run the steps over the Parquet files of each table; write a line a converted row to `decided` and give back the
    small RESULTS. A dataset that is extended has `existing` rows.

    `decided` (Parquet) has part, place, reason and entries (the feedback that belongs to the row, or null), in the
    order of part and place. `joined` has part, place and trace of the rows whose trace is in the table `traces`.
    """
    spill.mkdir(parents=True, exist_ok=True)
    threads = max(1, min(4, os.cpu_count() or 1))
    with closing(_connected(threads=threads, temp_directory=str(spill))) as connection:
        import duckdb

        try:
            for name, files in tables.items():
                if files:
                    rows = f"SELECT * FROM read_parquet([{', '.join(map(_literal, files))}])"
                    connection.execute(f"CREATE VIEW {name} AS {rows}")
                else:
                    connection.register(name, DECISION_TABLES[name].empty_table())
            for name, select in steps_of(plan, existing).items():
                if name in BESIDE_SQL:
                    connection.register(name, BESIDE_SQL[name](connection.sql(select).to_arrow_table(), plan))
                else:
                    connection.execute(f"CREATE TEMP TABLE {name} AS {select}")
            _copy(connection, _IN_ORDER, decided)
            if joined is not None:
                _copy(connection, f"SELECT part, place, trace FROM ({JOINED_TRACES}) j ORDER BY part, place", joined)
            return {name: connection.execute(select).fetchall() for name, select in RESULTS.items()}
        except duckdb.Error as error:
            raise EvalSetError(f"DuckDB could not decide about the rows: {error_text(error)}") from error


def _copy(connection: duckdb.DuckDBPyConnection, select: str, path: Path) -> None:
    connection.execute(f"COPY ({select}) TO {_literal(str(path))} (FORMAT PARQUET, COMPRESSION LZ4)")


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


_FIELDS = ", ".join(f"'{name}': {name}" for name in ENTRY)
_BY = ", ".join(f"{name} ASC NULLS FIRST" for name in ("time", *(n for n in ENTRY if n != "time")))

_IN_ORDER = f"""
    SELECT d.part, d.place, d.reason, l.entries
    FROM decisions d LEFT JOIN (
        SELECT part, place, list({{{_FIELDS}}} ORDER BY {_BY}) AS entries FROM attached GROUP BY part, place
    ) l ON d.part = l.part AND d.place = l.place
    ORDER BY d.part, d.place
"""


# --- the user's SQL
class Expressions:
    """SQL expressions of the user over the columns of a table, computed batch by batch."""

    def __init__(self, expressions: Mapping[str, tuple[str, str]], columns: Sequence[str] = ()) -> None:
        """`expressions`: {name: (SQL, type of the result)}. `columns` of the table that a batch lacks are null."""
        self._expressions, self._columns = dict(expressions), columns
        # The expression is the user's own, but it has no business with files.
        self._connection = _connected(threads=1, enable_external_access=False) if expressions else None

    def over(self, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        """One array an expression, a value a row. Raises EvalSetError for SQL that cannot be computed."""
        if self._connection is None:
            return {}
        import duckdb

        wanted = ", ".join(f"CAST(({sql}) AS {kind}) AS {name}" for name, (sql, kind) in self._expressions.items())
        self._connection.register("logged", self._readable(batch))
        try:
            arrays = self._connection.execute(f"SELECT {wanted} FROM logged").fetchnumpy()
        except duckdb.Error as error:
            sql_of = "; ".join(f"{name}: {sql}" for name, (sql, _) in self._expressions.items())
            # The rest of DuckDB's message is about our own query, which contains only the columns that are mentioned.
            cause = error_text(error).partition("\n")[0]
            columns = names(dict.fromkeys([*(f.name for f in batch.schema if not is_hidden(f)), *self._columns]))
            message = f"the SQL cannot be computed on this table ({sql_of}): {cause}; its columns are {columns}"
            raise EvalSetError(message) from error
        finally:
            self._connection.unregister("logged")
        return {name: _array(arrays[name], batch.num_rows, sql) for name, (sql, _) in self._expressions.items()}

    def _readable(self, batch: pa.RecordBatch) -> pa.Table:
        """The columns that the expressions may mention, text as text: a cell of a JSON file is JSON."""
        sql = " ".join(sql for sql, _ in self._expressions.values()).lower()
        cols = [i for i, n in enumerate(batch.schema.names) if n.lower() in sql]
        absent = {n: pa.nulls(batch.num_rows) for n in self._columns if n not in batch.schema.names}
        if not cols:
            return pa.table({"__row__": np.arange(batch.num_rows), **absent})
        arrays = [simplified(batch.column(i)) for i in cols]
        texts = [as_text(a) if is_json_column(batch.schema.field(i)) else a for i, a in zip(cols, arrays, strict=True)]
        return pa.table({**dict(zip([batch.schema.field(i).name for i in cols], texts, strict=True)), **absent})


def _array(values: Any, rows: int, sql: str) -> pa.Array:
    if len(values) != rows:
        raise EvalSetError(f"the SQL must give one value a row: {sql}")
    mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    return pa.array(np.ma.getdata(values), mask=mask, from_pandas=True)
