"""MLflow and the tracking store behind it: imported where it is used; a missing package or a failing store is reported
in one line.

A `Store` contains traces and datasets. Each of its failures (no server, no experiment, an invalid filter) is an
EvalSetError that names the store.
"""

import difflib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property, partial
from importlib import import_module
from types import ModuleType
from typing import Any

from agent_eval_schema.errors import EvalSetError, EvalSetNotFoundError, MissingExtraError, import_extra
from agent_eval_schema.evaluation.mlflow_run import ROW_TAG, position_in
from agent_eval_schema.integrations.mlflow.records import DatasetRecord
from agent_eval_schema.text.visible import visible, without_secrets

OLDEST_MLFLOW = "3.3"
"""The oldest mlflow whose stores are read. Its traces are read from files back to 2.13, without mlflow."""


def require_mlflow(minimum: str = OLDEST_MLFLOW) -> ModuleType:
    """The module mlflow. Raises EvalSetError, in one line, if it is not there or older than `minimum`."""
    mlflow: ModuleType = import_extra("mlflow", "mlflow", f"mlflow {minimum}")
    version = str(getattr(mlflow, "__version__", "none"))  # a folder of that name can be imported too
    if _numbers(version) < _numbers(minimum):
        message = f"this needs mlflow {minimum} or newer, got {version}: pip install -U 'mlflow>={minimum}'"
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
        """Raise EvalSetError if the file of a store does not exist: MLflow would create it, and its folders."""
        file = re.match(r"sqlite(?:\+\w+)?:///([^?]+)", self.uri)
        if file is not None and not os.path.exists(file.group(1)):
            raise EvalSetNotFoundError(f"tracking store {self.shown} not found: no such file")

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
            cause: BaseException | None = error
            failure = f"rejected the operation: {_one_line(error)}"
            while cause is not None:  # the last of a connection, all of whose errors are of this kind
                if isinstance(cause, OSError):
                    failure = f"cannot be reached: {_one_line(cause)}"
                cause = cause.__cause__ or cause.__context__
            raise EvalSetError(without_secrets(f"the tracking store {self.uri} {failure}")) from error

    # experiments

    def experiment_ids(self, experiment: str | Sequence[str] | None) -> list[str]:
        """The IDs of experiments by name or ID, of the active one by default. Raises EvalSetError for others."""
        if experiment is None:
            with self.reporting_errors(), self.active():
                return [str(import_module("mlflow.tracking.fluent")._get_experiment_id())]
        names = [experiment] if isinstance(experiment, str) else list(experiment)
        return [self._experiment_id(str(name)) for name in names]

    def _experiment_id(self, name: str) -> str:
        with self.reporting_errors():
            found = self.client.get_experiment_by_name(name)
            if found is None and name.isdecimal():
                try:
                    found = self.client.get_experiment(name)
                except self.mlflow.exceptions.MlflowException as error:
                    if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                        raise
        if found is None:
            raise self.nothing_called(name, "experiment", partial(self.client.search_experiments, max_results=100))
        if found.lifecycle_stage != "active":
            raise EvalSetError(f"the experiment {name!r} is deleted: restore it in the tracking store {self.shown}")
        return str(found.experiment_id)

    def nothing_called(self, name: str, kind: str, search: Callable[[], Iterable[Any]]) -> EvalSetError:
        """The error that the store has nothing of that name, with the closest existing name."""
        with self.reporting_errors():
            close = difflib.get_close_matches(name, [item.name for item in search()], n=1)
        meant = f": did you mean {close[0]!r}?" if close else ""
        return EvalSetError(f"the tracking store {self.shown} has no {kind} {name!r}{meant}")

    @property
    def shown(self) -> str:
        return without_secrets(self.uri)


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return visible(text if len(text) <= 300 else text[:300] + " …")


# --- datasets: found by name or id, their records read and merged into
OLDEST_WITH_DATASETS = "3.5"
"""The oldest MLflow whose datasets keep outputs; up to 3.3 there are none outside of Databricks."""

_ID = re.compile(r"d-[0-9a-f]{32}")


class DatasetStore(Store):
    """A tracking store that keeps datasets. Raises EvalSetError for a file store and for an mlflow without datasets."""

    def __init__(self, uri: str | None = None) -> None:
        super().__init__(uri, minimum=OLDEST_WITH_DATASETS)
        if "://" not in self.uri or self.uri.startswith("file:"):
            message = f"the tracking store {self.shown} is a file store, which does not support MLflow datasets"
            raise EvalSetError(f"{message}: use a database (sqlite:///mlflow.db) or a server")

    def find(self, name: str) -> Any:
        """The dataset of that name or ID, or None if there is none of that name."""
        with self.reporting_errors():
            if _ID.fullmatch(name):
                return self.client.get_dataset(name)
            quote = '"' if '"' not in name else "'"
            if quote in name:
                raise EvalSetError(f"mlflow cannot search for a name with both kinds of quotes: {name!r}")
            datasets, token, where = [], None, f"name = {quote}{name}{quote}"
            while page := self.client.search_datasets(filter_string=where, page_token=token):
                datasets += [d for d in page if d.name == name]  # some databases compare without case
                token = page.token
                if not token:
                    break
        if len(datasets) > 1:
            ids = ", ".join(d.dataset_id for d in datasets[:5])
            raise EvalSetError(f"{len(datasets)} datasets have the name {name!r}: give the id of one ({ids})")
        return datasets[0] if datasets else None

    def records_of(self, dataset: Any) -> list[DatasetRecord]:
        """The records of a dataset, in the order in which they were written: those of one merge have the same time."""
        with self.reporting_errors(), self.active():
            records: list[DatasetRecord] = []
            for record in dataset.records:
                cells = {name: getattr(record, name) for name in ("inputs", "outputs", "expectations", "tags")}
                source = record.source.to_dict() if record.source is not None else None
                known = {"id": record.dataset_record_id, "created": record.created_time or 0}
                records.append({**known, **cells, "source": source})
        return sorted(records, key=lambda r: (r["created"], position_in((r["tags"] or {}).get(ROW_TAG)), r["id"]))

    def merge(self, records: list[DatasetRecord], found: Any, name: str, experiment_ids: list[str] | None) -> Any:
        """The dataset, with the records merged into it: the one that was found, or a new one."""
        # MLflow (3.17) infers the schema of outputs from the records in their order, and fails at an object that comes
        # after a string: objects go first. The order of the rows is in a tag.
        records = sorted(records, key=lambda record: not isinstance(record.get("outputs"), dict))
        with self.reporting_errors(), self.active():
            datasets = import_module("mlflow.genai.datasets")
            if found is not None:
                dataset = datasets.get_dataset(dataset_id=found.dataset_id)
            else:
                dataset = datasets.create_dataset(name=name, experiment_id=experiment_ids)
            try:
                return dataset.merge_records(records) if records or found is None else dataset
            except Exception as error:
                if found is None:
                    datasets.delete_dataset(dataset_id=dataset.dataset_id)  # nothing was written, so nothing is left
                if "item assignment" not in str(error):
                    raise
                raise EvalSetError(
                    "MLflow cannot add outputs that are objects to a dataset whose outputs were strings: "
                    "use a new dataset"
                ) from error
