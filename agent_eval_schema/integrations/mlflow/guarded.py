"""The guard for MLflow's own scorers: they raise an error on rows that they cannot score."""

from __future__ import annotations

from typing import Any

from mlflow.genai.scorers.base import Scorer, ScorerKind
from pydantic import PrivateAttr

from agent_eval_schema.integrations.mlflow.scored_row import ScoredRow
from agent_eval_schema.integrations.mlflow.scorers import skipped
from agent_eval_schema.metrics.catalog import Metric


class Guarded(Scorer):
    """A scorer of MLflow that is only called for rows with all of its inputs; for the others it reports the missing
    fields.

    It is serialized and registered as the scorer within, so mlflow can load it without this package.
    """

    _within: Scorer = PrivateAttr()
    _metric: Metric = PrivateAttr()

    def __init__(self, within: Scorer, metric: Metric) -> None:
        super().__init__(name=within.name, aggregations=within.aggregations)
        self._within, self._metric = within, metric

    @property
    def within(self) -> Scorer:
        """The scorer of mlflow."""
        return self._within

    def __call__(  # type: ignore[override]  # mlflow hands over what the signature names
        self, *, inputs: Any = None, outputs: Any = None, expectations: Any = None, trace: Any = None
    ) -> Any:
        lacking = ScoredRow(inputs, outputs, expectations, trace).lacks(self._metric.needs)
        if lacking:
            return skipped(self, f"the row lacks {', and '.join(lacking)}")
        handed = {"inputs": inputs, "outputs": outputs, "expectations": expectations, "trace": trace}
        return self._within.run(**handed)  # type: ignore[no-untyped-call]

    @property
    def kind(self) -> ScorerKind:
        return self._within.kind

    def model_dump(self, **options: Any) -> dict[str, Any]:
        return self._within.model_dump(**options)

    def register(self, **options: Any) -> Scorer:
        return self._within.register(**options)
