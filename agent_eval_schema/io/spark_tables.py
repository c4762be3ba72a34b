"""Tables that Spark reads and writes itself, for the command line: folders of Parquet, Delta folders, its catalog."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from agent_eval_schema.io.atomic import require_local_place
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.runtime.extras import missing
from agent_eval_schema.text.privacy import first_line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def spark_session() -> SparkSession:
    """The session that runs, or a new one with the settings of the machine. Raises EvalSetError if pyspark is not
    installed, or cannot start."""
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise missing("spark", "pyspark 3.5", error) from error
    try:
        return SparkSession.builder.appName("agent-eval-schema").getOrCreate()
    except Exception as error:  # no Java, no cluster: pyspark has no type for it
        raise EvalSetError(f"Spark cannot be started: {first_line(error)}") from error


def read_table(spark: SparkSession, name: str) -> DataFrame:
    """A Parquet file or folder, a Delta folder, or a table of the catalog. Raises EvalSetError if Spark cannot read
    it."""
    try:
        if not os.path.exists(name) and "://" not in name:
            return spark.table(name)
        if os.path.isdir(os.path.join(name, "_delta_log")):
            return spark.read.format("delta").load(name)
        return spark.read.parquet(name)
    except Exception as error:  # of Spark or of Java
        raise EvalSetError(f"{name}: Spark cannot read it: {first_line(error)}") from error


def require_new(path: str) -> None:
    """Raise EvalSetError now, rather than after the work, if no new folder can be written at `path`."""
    if os.path.splitext(path)[1] not in ("", ".parquet"):
        raise EvalSetError(f"{path}: Spark writes a folder of Parquet files (NAME.parquet) or a Delta table (NAME)")
    if os.path.lexists(path):
        raise EvalSetError(f"{path}: there is something already: Spark writes a new folder")
    require_local_place(path)


def write_table(df: DataFrame, path: str) -> None:
    """Write a new folder; it appears under its name when all of it is there."""
    folder, name = os.path.split(os.path.abspath(path))
    new = os.path.join(folder, f".{name}.new")
    shutil.rmtree(new, ignore_errors=True)
    form = "parquet" if path.endswith(".parquet") else "delta"
    try:
        df.write.format(form).save(new)
        os.rename(new, path)
    except Exception as error:  # of Spark, of Java or of the disk
        raise EvalSetError(f"{path}: cannot be written: {first_line(error)}") from error
    finally:
        shutil.rmtree(new, ignore_errors=True)
