"""The datasets of an MLflow tracking store: found by name or id, their records read and merged into."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from agent_eval_schema.integrations.mlflow.records import ROW_TAG, DatasetRecord
from agent_eval_schema.integrations.mlflow.store import Store
from agent_eval_schema.issues import EvalSetError

OLDEST_WITH_DATASETS = "3.5"
"""The oldest MLflow whose datasets keep outputs; up to 3.3 there are none outside of Databricks."""

_ID = re.compile(r"d-[0-9a-f]{32}")


class DatasetStore(Store):
    """A tracking store that keeps datasets. Raises EvalSetError for a folder of files, and for an mlflow without."""

    def __init__(self, uri: str | None = None) -> None:
        super().__init__(uri, minimum=OLDEST_WITH_DATASETS)
        if self.is_files:
            message = f"the tracking store {self.shown} is a file store, which does not support MLflow datasets"
            raise EvalSetError(f"{message}: use a database (sqlite:///mlflow.db) or a server")

    def find(self, name: str) -> Any:
        """The dataset of that name or ID, or None if there is none of that name."""
        with self.reporting_errors():
            if _ID.fullmatch(name):
                return self.client.get_dataset(name)
            found = [d for d in self._search(name) if d.name == name]  # some databases compare without case
        if len(found) > 1:
            ids = ", ".join(d.dataset_id for d in found[:5])
            raise EvalSetError(f"{len(found)} datasets have the name {name!r}: give the id of one ({ids})")
        return found[0] if found else None

    def _search(self, name: str) -> Iterator[Any]:
        quote = '"' if '"' not in name else "'"
        if quote in name:
            raise EvalSetError(f"mlflow cannot search for a name with both kinds of quotes: {name!r}")
        token = None
        while True:
            page = self.client.search_datasets(filter_string=f"name = {quote}{name}{quote}", page_token=token)
            yield from page
            token = page.token
            if not token:
                return

    def records_of(self, dataset: Any) -> list[DatasetRecord]:
        """The records of a dataset, in the order in which they were written: those of one merge have the same time."""
        with self.reporting_errors(), self.active():
            records = [_record(r) for r in dataset.records]
        return sorted(records, key=lambda r: (r["created"], _position(r), r["id"]))

    def merge(self, records: list[DatasetRecord], found: Any, name: str, experiment_ids: list[str] | None) -> Any:
        """The dataset, with the records merged into it: the one that was found, or a new one."""
        # MLflow (3.17) infers the schema of outputs from the records in their order, and fails at an object that comes
        # after a string: objects go first. The order of the rows is in a tag.
        records = sorted(records, key=lambda record: not isinstance(record.get("outputs"), dict))
        with self.reporting_errors(), _explained(), self.active():
            datasets = import_module("mlflow.genai.datasets")
            if found is not None:
                dataset = datasets.get_dataset(dataset_id=found.dataset_id)
                return dataset.merge_records(records) if records else dataset
            dataset = datasets.create_dataset(name=name, experiment_id=experiment_ids)
            try:
                return dataset.merge_records(records)
            except Exception:
                datasets.delete_dataset(dataset_id=dataset.dataset_id)  # nothing was written, so nothing is left
                raise


@contextmanager
def _explained() -> Iterator[None]:
    """Explain the error of MLflow for an object among outputs of which its schema has only seen strings."""
    try:
        yield
    except Exception as error:
        if "item assignment" not in str(error):
            raise
        raise EvalSetError(
            "MLflow cannot add outputs that are objects to a dataset whose outputs were strings: use a new dataset"
        ) from error


def _record(record: Any) -> DatasetRecord:
    return {
        "id": record.dataset_record_id,
        "created": record.created_time or 0,
        "inputs": record.inputs,
        "outputs": record.outputs,
        "expectations": record.expectations,
        "tags": record.tags,
        "source": record.source.to_dict() if record.source is not None else None,
    }


def _position(record: DatasetRecord) -> int:
    text = str((record["tags"] or {}).get(ROW_TAG, ""))
    return int(text) if text.isdecimal() else 0
