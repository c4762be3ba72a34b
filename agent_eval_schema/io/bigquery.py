"""A table of BigQuery → a Parquet file, through the official client (package google-cloud-bigquery).

`Client.list_rows(table).to_arrow_iterable()` gives record batches, so memory does not grow with the table. The project
and the credentials are those that the client finds. A JSON column comes as text, a REPEATED RECORD as list<struct>:
both are forms of a trajectory that we read.
"""

from __future__ import annotations

import re
from itertools import chain

import pyarrow as pa

from agent_eval_schema.io.parquet import write_tables
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.runtime.extras import missing

_TABLE = re.compile(r"[\w:.-]+\.\w+\.[\w$-]+")


def fetch_table(table: str, path: str) -> None:
    """Write the rows of a table, named `project.dataset.table`, into a Parquet file."""
    if not _TABLE.fullmatch(table):
        raise EvalSetError(f"bq://{table}: expected bq://project.dataset.table")
    try:
        from google.cloud import bigquery
    except ImportError as error:
        raise missing("bigquery", "google-cloud-bigquery 3", error) from None
    with bigquery.Client(project=table.partition(".")[0]) as client:
        batches = iter(client.list_rows(table).to_arrow_iterable())
        first = next(batches, None)
        write_tables(path, () if first is None else chain([first], batches), first.schema if first else pa.schema([]))
