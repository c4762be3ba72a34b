"""What a platform's own class keeps of a row, recorded with its package, which is too heavy for the tests.

    /tmp/ragas/bin/python tests/recorders/kept.py ragas

Run it from the top of the repository, in an environment that has the platform's package and nothing of this project.
A row of each kind gets one column more, with values of several types, and is loaded: the class keeps the column if its
value is in the object, or if it rejects each value. tests/formats/test_kept.py writes the columns (UPDATE_GOLDEN=1);
the result is in agent_eval_schema/formats/kept.json, with the version and the day.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

COLUMNS = Path("tests/data/platforms/columns.json")
RESULT = Path("agent_eval_schema/formats/kept.json")
UNKNOWN = "zz_unknown"
"""A column that no platform has: a class that keeps it keeps all."""
MARK = "zzmark"
NUMBER = 73219.5
DAY = "2031-07-09"

Row = Mapping[str, Any]
Load = Callable[[Row], Any]
Recorded = tuple[str, Mapping[str, Row], Load]
"""The package, a row of each kind, and what loads a row."""


def ragas() -> Recorded:
    from ragas import EvaluationDataset

    spoken = [{"type": "human", "content": "Hi"}, {"type": "ai", "content": "Hello"}]
    rows = {"single question": {"user_input": "Hi", "response": "Hello"}, "conversation": {"user_input": spoken}}
    return "ragas", rows, lambda row: EvaluationDataset.from_list([row]).to_list()


def deepeval() -> Recorded:
    os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "YES"
    from deepeval.dataset import EvaluationDataset

    def load(path: str) -> Any:
        dataset = EvaluationDataset()
        dataset.add_goldens_from_json_file(path)
        return [golden.model_dump() for golden in dataset.goldens]

    rows = {"golden": {"input": "Hi"}, "conversational golden": {"scenario": "Hi", "turns": []}}
    return "deepeval", rows, lambda row: _of_file([row], load)


def langsmith() -> Recorded:
    from langsmith.schemas import ExampleCreate

    return "langsmith", {"": {"inputs": {"question": "Hi"}}}, lambda row: ExampleCreate(**row).model_dump()


def openai() -> Recorded:
    from openai.types.evals.create_eval_jsonl_run_data_source_param import SourceFileContentContent
    from pydantic import TypeAdapter

    return "openai", {"": {"item": {"input": "Hi"}}}, TypeAdapter(SourceFileContentContent).validate_python


def vertex() -> Recorded:
    from vertexai.preview.evaluation import utils

    return "google-cloud-aiplatform", {"": {"prompt": "Hi"}}, lambda row: _of_lines(row, utils.load_dataset).to_dict()


def vertex_genai() -> Recorded:
    import pandas as pd
    from agentplatform._genai._evals_common import _run_inference_internal
    from agentplatform._genai._evals_data_converters import _FlattenEvalDataConverter

    def load(row: Row) -> Any:
        """A row without an answer is one that `run_inference` takes."""
        if not row.get("response"):
            asked = pd.DataFrame({name: pd.Series([value], dtype="object") for name, value in row.items()})
            (row,) = _run_inference_internal(None, lambda _: "Hello", asked).to_dict("records")
        return _FlattenEvalDataConverter().convert([row]).model_dump()

    return "google-cloud-aiplatform", {"": {"prompt": "Hi", "response": "Hello"}}, load


def azure() -> Recorded:
    from azure.ai.evaluation._evaluate._utils import DataLoaderFactory

    def load(path: str) -> Any:
        return DataLoaderFactory.get_loader(path).load().to_dict()

    return "azure-ai-evaluation", {"": {"query": "Hi"}}, lambda row: _of_lines(row, load)


def inspect() -> Recorded:
    from inspect_ai.dataset import json_dataset

    def load(path: str) -> Any:
        return [sample.model_dump() for sample in json_dataset(path)]

    return "inspect-ai", {"": {"input": "Hi", "target": "Hello"}}, lambda row: _of_file([row], load)


def mlflow() -> Recorded:
    from mlflow.genai.evaluation.entities import EvalItem

    return "mlflow", {"": {"inputs": {"question": "Hi"}}}, lambda row: vars(EvalItem.from_dataset_row(dict(row)))


def adk() -> Recorded:
    from google.adk.evaluation.eval_case import EvalCase

    row = {"eval_id": "a", "conversation": [{"user_content": {"parts": [{"text": "Hi"}]}}]}
    return "google-adk", {"": row}, lambda case: EvalCase.model_validate(case).model_dump()


def strands() -> Recorded:
    from strands_evals import Experiment

    def load(row: Row) -> Any:
        return Experiment.from_dict({"cases": [row], "evaluators": []}).to_dict()

    return "strands-agents-evals", {"": {"input": "Hi"}}, load


def pydantic_evals() -> Recorded:
    from pydantic_evals import Dataset

    def load(row: Row) -> Any:
        return [vars(case) for case in Dataset[Any, Any, Any].from_dict({"name": "d", "cases": [row]}).cases]

    return "pydantic-evals", {"": {"inputs": "Hi"}}, load


def langfuse() -> Recorded:
    from langfuse.api.core.pydantic_utilities import parse_obj_as
    from langfuse.api.dataset_items.types import CreateDatasetItemRequest

    def load(row: Row) -> Any:
        item = parse_obj_as(CreateDatasetItemRequest, {"datasetName": "d", **row})
        return [getattr(item, name) for name in type(item).model_fields]  # its client sends no other

    return "langfuse", {"": {"input": "Hi"}}, load


def braintrust() -> Recorded:
    from braintrust.framework import EvalCase

    return "braintrust", {"": {"input": "Hi"}}, lambda row: EvalCase.from_dict(dict(row)).as_dict()


def phoenix() -> Recorded:
    import httpx
    from phoenix.client import Client
    from phoenix.client.resources.datasets import DatasetUploadError

    sent: list[bytes] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "GET":  # the version of the server, which an ID of an example requires
            return httpx.Response(200, text="99.0.0")
        sent.append(request.content)
        return httpx.Response(400)

    def load(row: Row) -> Any:
        sent.clear()
        with contextlib.suppress(DatasetUploadError):
            server.datasets.create_dataset(name="d", examples=[row])
        return json.loads(sent[-1])

    server = Client(http_client=httpx.Client(transport=httpx.MockTransport(answer), base_url="http://localhost"))
    return "arize-phoenix-client", {"": {"input": {"q": "Hi"}, "output": {"a": "Hello"}}}, load


def promptfoo() -> Recorded:
    """Node and the package have to be in the folder that PROMPTFOO names (npm install promptfoo)."""
    node = subprocess.Popen(
        ("node", "--input-type=module", "-e", _EVALUATE),
        cwd=os.environ["PROMPTFOO"],
        env={**os.environ, "PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert node.stdin is not None
    assert node.stdout is not None
    into, out = node.stdin, node.stdout

    @atexit.register
    def end() -> None:
        into.close()
        out.close()
        node.wait()

    def load(path: str) -> Any:
        into.write(f"{path}\n")
        into.flush()
        found = json.loads(next(line for line in out if line.startswith(_ANSWER)).removeprefix(_ANSWER))
        if "error" in found:
            raise ValueError(found["error"])
        return found

    return "promptfoo", {"": {"vars": {"question": "Hi"}}}, lambda row: _of_lines(row, load)


_ANSWER = "answer "
"""What a line for us begins with: promptfoo prints texts of its own."""

_EVALUATE = """
import promptfoo from 'promptfoo';
import readline from 'node:readline';
for await (const path of readline.createInterface({ input: process.stdin })) {
  try {
    const suite = { prompts: ['{{question}}'], providers: ['echo'], tests: path, writeLatestResults: false };
    const { results } = await promptfoo.evaluate(suite, { cache: false, showProgressBar: false });
    console.log('answer ' + JSON.stringify({ tests: results.map((result) => [result.testCase, result.response]) }));
  } catch (error) {
    console.log('answer ' + JSON.stringify({ error: String(error) }));
  }
}
"""


def version_of(package: str) -> str:
    if package != "promptfoo":
        return version(package)
    path = Path(os.environ["PROMPTFOO"], "node_modules", package, "package.json")
    return str(json.loads(path.read_text(encoding="utf-8"))["version"])


def digest(names: list[str]) -> str:
    return hashlib.sha256(" ".join(names).encode()).hexdigest()[:16]


def _of_file(value: Any, load: Callable[[str], Any], extension: str = ".json") -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"rows{extension}")
        path.write_text(json.dumps(value) + "\n", encoding="utf-8")
        return load(str(path))


def _of_lines(row: Row, load: Callable[[str], Any]) -> Any:
    return _of_file(row, load, ".jsonl")


_CALL = {"name": MARK, "args": {}, "input_parameters": {}}
_VALUES: tuple[Any, ...] = (
    MARK,
    [MARK],
    {MARK: MARK},
    [_CALL],
    [{"node_name": MARK}],
    [{"role": "user", "content": MARK}],
    NUMBER,
    f"{DAY}T00:00:00Z",
)


def is_kept(load: Load, row: Row, name: str) -> bool:
    is_rejected = True
    for value in _VALUES:
        try:
            text = json.dumps(load({**row, name: value}), default=str)
        except Exception:
            continue
        is_rejected = False
        if any(mark in text for mark in (MARK, str(NUMBER), DAY)):
            return True
    return is_rejected


def kept(load: Load, row: Row, names: list[str]) -> list[str] | None:
    """The columns that are kept beside those of the row; None if any column is."""
    load(row)
    return None if is_kept(load, row, UNKNOWN) else [n for n in names if n in row or is_kept(load, row, n)]


if __name__ == "__main__":
    (platform,) = sys.argv[1:]
    with contextlib.redirect_stdout(io.StringIO()):
        package, rows, load = globals()[platform.replace("-", "_")]()
        names = json.loads(COLUMNS.read_text(encoding="utf-8"))[platform]
        found = {kind: kept(load, row, names) for kind, row in rows.items()}
    table = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
    table[platform] = {
        "package": package,
        "version": version_of(package),
        "recorded": date.today().isoformat(),
        "digest": digest(names),
        "kept": found,
    }
    RESULT.write_text(json.dumps(dict(sorted(table.items())), indent=1) + "\n", encoding="utf-8")
    print(f"{platform} ({package} {version_of(package)}): {found}")
