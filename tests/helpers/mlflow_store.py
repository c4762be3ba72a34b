"""Tracking stores of the real MLflow on sqlite: copies of one empty store, whose tables take seconds to make."""

from __future__ import annotations

import importlib
import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_ENABLE_ASYNC_TRACE_LOGGING": "false",  # else a trace may be read before it is written
}


def empty_store(path: Path) -> Path:
    """The file of a store without runs. Processes that make it at the same time do not disturb each other."""
    if not path.exists():
        mlflow = imported_mlflow()
        made = path.with_name(f"{path.name}-{os.getpid()}")
        with without_its_warnings():
            mlflow.MlflowClient(f"sqlite:///{made}").search_experiments()
        made.replace(path)
    return path


def imported_mlflow() -> Any:
    """MLflow with the parts that it loads late, or the reason to skip a test."""
    with without_its_warnings():
        mlflow = pytest.importorskip("mlflow", "3.3")
        importlib.import_module("mlflow.pyfunc")
        importlib.import_module("mlflow.genai")
    return mlflow


@contextmanager
def without_its_warnings() -> Iterator[None]:
    """MLflow's own warnings, of what it imports, are not ours to fix."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def mlflow_store(folder: Path, empty: Path, experiment: str = "", **variables: str) -> Iterator[Any]:
    """MLflow with a new store in `folder`, which is the working directory: artifacts of no experiment go there."""
    mlflow = imported_mlflow()
    uri = f"sqlite:///{folder / 'mlflow.db'}"
    with pytest.MonkeyPatch.context() as patch, without_its_warnings():
        # set_experiment and set_tracking_uri write the last two; the next module finds them as they were
        for name, value in {**QUIET, "MLFLOW_TRACKING_URI": uri, "MLFLOW_EXPERIMENT_ID": "0", **variables}.items():
            patch.setenv(name, value)
        patch.setattr(mlflow.tracking.fluent, "_active_experiment_id", None)
        patch.chdir(folder)
        if not (folder / "mlflow.db").exists():
            shutil.copy(empty, folder / "mlflow.db")
        mlflow.set_tracking_uri(uri)
        if experiment:
            mlflow.set_experiment(experiment)
        yield mlflow
        mlflow.set_tracking_uri(None)
        mlflow.tracing.reset()
