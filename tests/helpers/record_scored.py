"""What other platforms score of rows of each kind, recorded with their own packages, which are too heavy for the tests.

    /tmp/azure/bin/python tests/helpers/record_scored.py azure

Run it from the top of the repository, in an environment that has the platform's package and nothing of this project:
azure-ai-evaluation for azure, ragas (with langchain-community<0.4), or deepeval. It reads `kinds.jsonl`, which
tests/formats/test_scored.py writes (UPDATE_GOLDEN=1), and writes `scored.json`: the version, and for each metric the
rows that the platform's own checks accept. Where a judge would be asked, a stub notes that it was.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import os
import re
import sys
import typing
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

FOLDER = Path("tests/data/platforms")
Scores = Callable[[dict[str, Any]], bool]


def classes_in(package: Any, end: str) -> Iterator[tuple[str, Any]]:
    for found in walk_packages(package.__path__, f"{package.__name__}."):
        module = import_module(found.name)
        for name, kind in vars(module).items():
            if inspect.isclass(kind) and name.endswith(end) and kind.__module__ == found.name:
                yield name, kind


def azure() -> tuple[str, dict[str, Scores]]:
    """Each evaluator with the columns that it names, through its own validators, up to its judge."""
    import azure.ai.evaluation as package
    from azure.ai.evaluation import _evaluators as evaluators
    from azure.ai.evaluation._evaluators._common import RaiServiceEvaluatorBase
    from azure.ai.evaluation._legacy.prompty import AsyncPrompty

    asked: list[str] = []

    async def ask(*_: Any, **__: Any) -> Any:
        asked.append("judge")
        return {"llm_output": "<S2>5</S2>"}

    AsyncPrompty.__call__ = ask  # type: ignore[method-assign]
    RaiServiceEvaluatorBase._evaluate_query_response = ask
    model = {"azure_endpoint": "https://localhost", "api_key": "none", "azure_deployment": "none"}
    known = {
        "model_config": model,
        "credential": object(),
        "azure_ai_project": "https://localhost/project",
        "rouge_type": package.RougeType.ROUGE_L,
    }

    def scores(kind: Any) -> Scores:
        required = inspect.signature(kind.__init__).parameters
        judge = kind(**{name: value for name, value in known.items() if name in required})
        columns = {n for call in typing.get_overloads(kind.__call__) for n in inspect.signature(call).parameters}

        def score(row: dict[str, Any]) -> bool:
            asked.clear()
            try:
                result = judge(**{name: value for name, value in row.items() if name in columns})
            except Exception:
                return bool(asked)
            own = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind.__name__.removesuffix("Evaluator")).lower()
            return bool(asked) or any(isinstance(v, float) and v == v and own[:4] in k for k, v in result.items())

        return score

    # several in one, one for employees of the vendor, and those that download data of NLTK first
    omitted = {"QAEvaluator", "ContentSafetyEvaluator", "ECIEvaluator"}
    omitted |= {f"{name}ScoreEvaluator" for name in ("Bleu", "Gleu", "Meteor")}
    names = {name: kind for name, kind in classes_in(evaluators, "Evaluator") if name not in omitted}
    own = {
        n.lstrip("_"): k for n, k in names.items() if k.__call__ is not object.__call__ and not inspect.isabstract(k)
    }
    found = {n: k for n, k in own.items() if typing.get_overloads(k.__call__)}
    snake = {re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", n.removesuffix("Evaluator")).lower(): k for n, k in found.items()}
    return "azure-ai-evaluation", {name: scores(kind) for name, kind in snake.items()}


def deepeval() -> tuple[str, dict[str, Scores]]:
    """The check of the required parameters of each metric of a single turn."""
    os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "YES"
    from deepeval import metrics
    from deepeval.metrics.utils.test_case import check_llm_test_case_params
    from deepeval.test_case import LLMTestCase, ToolCall

    def case(row: dict[str, Any]) -> Any:
        calls = {n: [ToolCall(**call) for call in row[n]] for n in ("tools_called", "expected_tools") if n in row}
        fields = ("input", "actual_output", "expected_output", "context", "retrieval_context")
        return LLMTestCase(**{n: row[n] for n in fields if n in row}, **calls)

    def scores(kind: Any) -> Scores:
        def score(row: dict[str, Any]) -> bool:
            try:
                check_llm_test_case_params(case(row), kind._required_params, None, None, kind)
            except Exception:
                return False
            return True

        return score

    found = {name: getattr(metrics, name) for name in metrics.__all__}
    return "deepeval", {
        n: scores(k) for n, k in found.items() if isinstance(getattr(k, "_required_params", None), list)
    }


def ragas() -> tuple[str, dict[str, Scores]]:
    """The arguments without a default of each metric of the collections."""
    from ragas.metrics import collections

    def scores(kind: Any) -> Scores:
        parameters = list(inspect.signature(kind.ascore).parameters.values())[1:]
        needed = [p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
        return lambda row: all(row.get(name) is not None for name in needed)

    found = {name: getattr(collections, name) for name in collections.__all__}
    return "ragas", {name: scores(kind) for name, kind in found.items() if hasattr(kind, "ascore")}


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    asyncio.set_event_loop(asyncio.new_event_loop())
    place = FOLDER / sys.argv[1]
    package, metrics_by_name = globals()[sys.argv[1]]()
    rows = [json.loads(line) for line in (place / "kinds.jsonl").read_text().splitlines()]
    scored = {name: [int(score(row)) for row in rows] for name, score in sorted(metrics_by_name.items())}
    document = {"package": package, "version": version(package), "scored": scored}
    (place / "scored.json").write_text(json.dumps(document, indent=1).replace("\n   ", " ") + "\n")
    print(f"recorded {len(scored)} metrics of {len(rows)} rows")
