"""Every real component once: Spark, MLflow, an MCP server, worker processes, a notebook, each page in a browser.

The marks of these components hold the other tests of them; `pytest` without arguments runs these.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from agent_eval_schema import prepare_for_evaluate, supported_scorers, validate_eval_set
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.validation.validate import check_source
from tests.conftest import SAMPLES
from tests.helpers.mlflow_store import mlflow_store

pytestmark = pytest.mark.smoke

BROKEN = SAMPLES / "broken.jsonl"


def test_spark(spark: Any) -> None:
    rows = pd.DataFrame({"request": ["How long?", " "], "response": ["16 weeks", "x"]})
    report = validate_eval_set(spark.createDataFrame(rows))
    assert report.counts == validate_eval_set(rows).counts == {"AE202": 1}


@pytest.mark.mlflow
def test_mlflow(tmp_path: Path, no_runs: Path) -> None:
    data = validate_eval_set(SAMPLES / "good.jsonl").rows.head(3)
    with mlflow_store(tmp_path, no_runs, "smoke") as mlflow:
        answered = mlflow.genai.scorer(lambda outputs: bool(outputs), name="answered")
        result = mlflow.genai.evaluate(data=prepare_for_evaluate(data), scorers=[answered])
        assert result.metrics == {"answered/mean": 1.0}
        assert supported_scorers(data)


@pytest.mark.mcp
def test_an_update_of_ces() -> None:
    pytest.importorskip("mcp.server.mcpserver", reason="the server of the tests is that of mcp 2")
    from tests.integrations.ces.test_client import STORED, served

    for service in served():
        assert service.update() == STORED | {"displayName": "Refunds", "etag": "e2"}


@pytest.mark.process
def test_worker_processes(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(BROKEN.read_text(encoding="utf-8") * 200, encoding="utf-8")
    one, two = (check_source(open_source(str(path)), jobs=jobs) for jobs in (1, 2))
    assert two.to_json() == one.to_json()


@pytest.mark.process
def test_a_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    from tests.project.test_notebooks import committed, executed, outputs

    assert outputs(executed("01_validate.ipynb", tmp_path, monkeypatch)) == outputs(committed("01_validate.ipynb"))
