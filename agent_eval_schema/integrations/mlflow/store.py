"""MLflow and the tracking store behind it: imported where it is used; a missing package or a failing store is reported
in one line.

A `Store` contains traces and datasets. Each of its failures (no server, no experiment, an invalid filter) is an
EvalSetError that names the store.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Any

from agent_eval_schema.issues import EvalSetError, EvalSetNotFoundError, MissingExtraError
from agent_eval_schema.runtime.extras import missing
from agent_eval_schema.text.visible import visible, without_secrets

OLDEST_MLFLOW = "3.3"
"""The oldest mlflow whose stores are read. Its traces are read from files back to 2.13, without mlflow."""


def require_mlflow(minimum: str = OLDEST_MLFLOW) -> ModuleType:
    """The module mlflow. Raises EvalSetError, in one line, if it is not there or older than `minimum`."""
    try:
        mlflow = import_module("mlflow")
    except ImportError as error:
        raise missing("mlflow", f"mlflow {minimum}", error) from error
    found = str(getattr(mlflow, "__version__", "none"))  # a folder of that name can be imported too
    if _numbers(found) < _numbers(minimum):
        message = f"this needs mlflow {minimum} or newer, got {found}: pip install -U 'mlflow>={minimum}'"
        raise MissingExtraError(message)
    return mlflow


def _numbers(version: str) -> tuple[int, ...]:
    """The release of a version, to compare by; `3.10` is newer than `3.9`."""
    return tuple(int(n) for n in re.findall(r"\d+", version)[:2])


class Store:
    """A tracking store: the one that mlflow is set to, or the one at `uri`."""

    def __init__(self, uri: str | None = None, minimum: str = OLDEST_MLFLOW) -> None:
        self.mlflow = require_mlflow(minimum)
        self.uri: str = os.fspath(uri) if uri is not None else self.mlflow.get_tracking_uri()

    @cached_property
    def client(self) -> Any:
        with self.reporting_errors():
            return self.mlflow.MlflowClient(tracking_uri=self.uri)

    def require_there(self) -> None:
        """Raise EvalSetError if a file that is to be read does not exist: mlflow would make an empty store of it, and
        the folders on the way."""
        file = re.match(r"sqlite(?:\+\w+)?:///([^?]+)", self.uri)
        if file is not None and not os.path.exists(file.group(1)):
            raise EvalSetNotFoundError(f"tracking store {self.shown} not found: no such file")

    @property
    def is_files(self) -> bool:
        """Whether the store is a folder of files, which can do less than a database."""
        return "://" not in self.uri or self.uri.startswith("file:")

    def active(self) -> AbstractContextManager[Any]:
        """A block in which MLflow is set to this store: datasets use no other."""
        if self.uri == self.mlflow.get_tracking_uri():
            return nullcontext()
        utils = import_module("mlflow.tracking._tracking_service.utils")
        context: AbstractContextManager[Any] = utils._use_tracking_uri(self.uri)
        return context

    @contextmanager
    def reporting_errors(self) -> Iterator[None]:
        """A block that calls the store: its exceptions become one line.

        MLflow does not catch the exceptions of its parts: those of SQLAlchemy, of requests, of the operating system.
        """
        try:
            yield
        except EvalSetError:
            raise
        except Exception as error:
            raise EvalSetError(without_secrets(self._message(error))) from error

    def _message(self, error: Exception) -> str:
        causes = [c for c in _chain(error) if isinstance(c, OSError)]  # as all errors of a connection are
        if causes:
            return f"the tracking store {self.uri} cannot be reached: {_one_line(causes[-1])}"
        return f"the tracking store {self.uri} rejected the operation: {_one_line(error)}"

    # experiments

    def experiment_ids(self, experiment: str | Sequence[str] | None) -> list[str]:
        """The ids of experiments that are given by name or id; of the active one if none is given. Raises EvalSetError
        if there is no experiment of that name."""
        if experiment is None:
            with self.reporting_errors(), self.active():
                return [str(import_module("mlflow.tracking.fluent")._get_experiment_id())]
        names = [experiment] if isinstance(experiment, str) else list(experiment)
        return [self._experiment_id(str(name)) for name in names]

    def _experiment_id(self, name: str) -> str:
        with self.reporting_errors():
            found = self.client.get_experiment_by_name(name)
        found = found or self._by_id(name)
        if found is None:
            raise EvalSetError(f"the tracking store {self.shown} has no experiment {name!r}{self._meant(name)}")
        if found.lifecycle_stage != "active":
            raise EvalSetError(f"the experiment {name!r} is deleted: restore it in the tracking store {self.shown}")
        return str(found.experiment_id)

    def _by_id(self, experiment: str) -> Any:
        if not experiment.isdecimal():
            return None
        try:
            return self.client.get_experiment(experiment)
        except self.mlflow.exceptions.MlflowException as error:
            if error.error_code == "RESOURCE_DOES_NOT_EXIST":
                return None
            raise EvalSetError(without_secrets(self._message(error))) from error

    def _meant(self, name: str) -> str:
        with self.reporting_errors():
            known = [e.name for e in self.client.search_experiments(max_results=100)]
        close = difflib.get_close_matches(name, known, n=1)
        return f": did you mean {close[0]!r}?" if close else ""

    @property
    def shown(self) -> str:
        return without_secrets(self.uri)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what caused it, the cause of all last."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return visible(text if len(text) <= 300 else text[:300] + " …")
