"""A table of Unity Catalog or BigQuery → a Parquet file; the rows come in parts, so memory does not grow with it.

`catalog.schema.table` is read through Spark where a session is active, else from a SQL warehouse, with the connector of
Databricks (package databricks-sql-connector), by its public interface: PEP 249 and `Cursor.fetchmany_arrow`.

`bq://project.dataset.table` is read through the official client (package google-cloud-bigquery), whose
`Client.list_rows(table).to_arrow_iterable()` gives record batches. The project and the credentials are those that the
client finds. A JSON column comes as text, a REPEATED RECORD as list<struct>: both are forms of a trajectory that we
read.
"""

from __future__ import annotations

import os
import re
import sys
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from agent_eval_schema.errors import EvalSetError, import_extra
from agent_eval_schema.io.parquet import write_tables
from agent_eval_schema.io.spark import spark_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


ROWS_AT_ONCE = 8_192


def active_table(name: str) -> DataFrame | None:
    """The table as a DataFrame of the active Spark session; None without a session. Raises EvalSetError."""
    if (sql := sys.modules.get("pyspark.sql")) is None:  # no session without it
        return None
    session: Any = sql.SparkSession.getActiveSession()
    if session is None:
        return None
    with spark_errors(f"{name}: Spark cannot read it"):
        return session.table(name)  # type: ignore[no-any-return]


def fetch_catalog(name: str, path: str) -> None:
    """Write the rows of a table into a Parquet file. Raises EvalSetError without connector or configuration."""
    sql = import_extra("databricks.sql", "unity-catalog", "databricks-sql-connector 3")
    with sql.connect(**_connection(name)) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {quoted(name)}")
        first = cursor.fetchmany_arrow(ROWS_AT_ONCE)

        def tables() -> Any:
            table = first
            while table.num_rows:
                yield table
                table = cursor.fetchmany_arrow(ROWS_AT_ONCE)

        write_tables(path, tables(), first.schema)


def quoted(name: str) -> str:
    """The name as SQL has it, each part in backquotes."""
    return ".".join(f"`{part.strip('`')}`" for part in name.split("."))


def _connection(name: str) -> dict[str, str]:
    """How to reach the warehouse, from the environment variables of Databricks' own tools."""
    host = _setting("DATABRICKS_SERVER_HOSTNAME", "DATABRICKS_HOST").removeprefix("https://").strip("/")
    warehouse = _setting("DATABRICKS_WAREHOUSE_ID")
    path = _setting("DATABRICKS_HTTP_PATH") or (f"/sql/1.0/warehouses/{warehouse}" if warehouse else "")
    settings = {  # each with the variables that may have it
        "server_hostname": (host, "DATABRICKS_HOST"),
        "http_path": (path, "DATABRICKS_HTTP_PATH or DATABRICKS_WAREHOUSE_ID"),
        "access_token": (_setting("DATABRICKS_TOKEN"), "DATABRICKS_TOKEN"),
    }
    if unset := [variables for value, variables in settings.values() if not value]:
        raise EvalSetError(
            f"{name}: no such file; to read it as a table of Unity Catalog, set {', '.join(unset)} (of a SQL "
            "warehouse), or start a Spark session"
        )
    return {key: value for key, (value, _) in settings.items()}


def _setting(*names: str) -> str:
    return next((value for name in names if (value := os.environ.get(name, ""))), "")


_TABLE = re.compile(r"[\w:.-]+\.\w+\.[\w$-]+")


def fetch_bigquery(table: str, path: str) -> None:
    """Write the rows of a table, named `project.dataset.table`, into a Parquet file."""
    if not _TABLE.fullmatch(table):
        raise EvalSetError(f"bq://{table}: expected bq://project.dataset.table")
    bigquery = import_extra("google.cloud.bigquery", "bigquery", "google-cloud-bigquery 3")
    with bigquery.Client(project=table.partition(".")[0]) as client:
        batches = iter(client.list_rows(table).to_arrow_iterable())
        first = next(batches, None)
        write_tables(path, () if first is None else chain([first], batches), first.schema if first else pa.schema([]))
