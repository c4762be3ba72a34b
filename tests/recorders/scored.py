"""What other platforms score of rows of each kind, recorded with their own packages, which are too heavy for the tests.

    /tmp/azure/bin/python tests/recorders/scored.py azure

Run it from the top of the repository, in an environment that has the platform's package and nothing of this project:
azure-ai-evaluation for azure; ragas, langchain-community<0.4, sacrebleu, rouge-score and rapidfuzz for ragas; deepeval;
google-adk[eval] for adk; inspect-ai and latex2sympy2-extended for inspect; strands-agents-evals for strands; openevals
for langsmith; arize-phoenix-evals for phoenix; google-cloud-aiplatform[evaluation] for vertex and vertex-genai.
It reads `kinds.jsonl`, which tests/formats/test_scored.py writes (UPDATE_GOLDEN=1), and writes `scored.json`: the
version, for each metric the rows that the platform accepts, and of some platforms the columns that its judge reads.
Where a judge would be asked, a stub notes that it was.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import logging
import os
import re
import sys
import types
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


def filled(kind: Any) -> Any:
    """What a judge could answer: an object of a schema with one entry in each list."""
    from pydantic import BaseModel

    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        return arguments[0]
    if origin in (typing.Union, types.UnionType):
        return filled(next(of for of in arguments if of is not type(None)))
    if origin is list:
        return [filled(arguments[0])]
    if origin is dict:
        return {}
    if inspect.isclass(kind) and issubclass(kind, BaseModel):
        return kind(**{name: filled(field.annotation) for name, field in kind.model_fields.items()})
    return {int: 1, float: 1.0, bool: True}.get(kind, "yes")


def texts_in(value: Any) -> Iterator[str]:
    """The texts of a cell of more than one word, and the names of tools."""
    if isinstance(value, str):
        if " " in value or "_" in value:
            yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts_in(item)


READ: dict[str, set[str]] = {}
"""By metric, the columns with a text that was in a prompt."""


def note(metric: str, row: dict[str, Any], prompts: list[Any]) -> None:
    whole = "\n".join(map(str, prompts))
    READ.setdefault(metric, set()).update(name for name, cell in row.items() if any(t in whole for t in texts_in(cell)))


def deepeval() -> tuple[str, dict[str, Scores]]:
    """Each metric of a single turn on a test case, with a judge that gives the simplest answer."""
    os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "YES"
    from deepeval import metrics
    from deepeval.models import DeepEvalBaseLLM
    from deepeval.test_case import LLMTestCase, ToolCall
    from pydantic import BaseModel

    prompts: list[Any] = []

    class Judge(DeepEvalBaseLLM):
        def load_model(self, *_: Any, **__: Any) -> Any:
            return self

        def get_model_name(self, *_: Any, **__: Any) -> str:
            return "none"

        def generate(self, prompt: Any, schema: Any = None, **_: Any) -> Any:
            prompts.append(prompt)
            return "yes" if schema is None else filled(schema)

        async def a_generate(self, prompt: Any, schema: Any = None, **_: Any) -> Any:
            return self.generate(prompt, schema)

    class Answer(BaseModel):
        answer: str

    known = {
        "model": Judge(),
        "async_mode": False,
        "role": "clerk",
        "domain": "leave",
        "advice_types": ["legal"],
        "prompt_instructions": ["Be brief."],
        "expected_schema": Answer,
        "pattern": "Twelve",
        "denied_tools": ["pay"],
    }

    def case(row: dict[str, Any]) -> Any:
        calls = {n: [ToolCall(**call) for call in row[n]] for n in ("tools_called", "expected_tools") if n in row}
        fields = ("input", "actual_output", "expected_output", "context", "retrieval_context")
        return LLMTestCase(**{n: row[n] for n in fields if n in row}, **calls)

    def scores(name: str, kind: Any) -> Scores:
        parameters = inspect.signature(kind.__init__).parameters
        metric = kind(**{n: value for n, value in known.items() if n in parameters})

        def score(row: dict[str, Any]) -> bool:
            prompts.clear()
            try:
                metric.measure(case(row), _show_indicator=False)
            except Exception:
                return False
            finally:
                note(name, row, prompts)
            return metric.score is not None

        return score

    found = {name: getattr(metrics, name) for name in metrics.__all__}
    single = {n: k for n, k in found.items() if isinstance(getattr(k, "_required_params", None), list)}
    return "deepeval", {n: scores(n, k) for n, k in single.items() if not n.startswith(("Image", "MCP"))}


def ragas() -> tuple[str, dict[str, Scores]]:
    """Each metric of the collections on the cells that it names, with a judge that gives the simplest answer."""
    from ragas.embeddings.base import BaseRagasEmbedding
    from ragas.llms.base import InstructorBaseRagasLLM
    from ragas.messages import AIMessage, HumanMessage, ToolCall, ToolMessage
    from ragas.metrics import collections

    prompts: list[Any] = []

    class Judge(InstructorBaseRagasLLM):
        def generate(self, prompt: Any, response_model: Any) -> Any:
            prompts.append(prompt)
            return filled(response_model)

        async def agenerate(self, prompt: Any, response_model: Any) -> Any:
            return self.generate(prompt, response_model)

    class Vectors(BaseRagasEmbedding):
        def embed_text(self, text: str, **_: Any) -> list[float]:
            prompts.append(text)
            return [1.0, 0.5]

        async def aembed_text(self, text: str, **_: Any) -> list[float]:
            return self.embed_text(text)

    kinds = {"human": HumanMessage, "ai": AIMessage, "tool": ToolMessage}
    known = {"llm": Judge(), "embeddings": Vectors()}

    def value(name: str, cell: Any) -> Any:
        if name == "user_input" and isinstance(cell, list):
            return [kinds[m["type"]](**{k: v for k, v in m.items() if k != "type" and v is not None}) for m in cell]
        return [ToolCall(**call) for call in cell] if name == "reference_tool_calls" else cell

    def scores(name: str, kind: Any) -> Scores:
        parameters = inspect.signature(kind.__init__).parameters
        metric = kind(**{n: v for n, v in known.items() if n in parameters})
        names = set(inspect.signature(kind.ascore).parameters)

        def score(row: dict[str, Any]) -> bool:
            prompts.clear()
            try:
                given = {n: value(n, cell) for n, cell in row.items() if n in names}
                found = asyncio.run(metric.ascore(**given))
            except Exception:
                return False
            finally:
                note(name, row, prompts)
            return bool(prompts) or (found.value is not None and found.value == found.value)

        return score

    found = {name: getattr(collections, name) for name in collections.__all__}
    named = {n: k for n, k in found.items() if hasattr(k, "ascore") and n != "BaseMetric"}
    # of images, and of tables, with a package whose newest version it cannot import
    omitted = ("MultiModal", "DataCompyScore")
    return "ragas", {n: scores(n, kind) for n, kind in named.items() if not n.startswith(omitted)}


def adk() -> tuple[str, dict[str, Scores]]:
    """Each evaluator of its registry on what the agent did and what was expected, up to its judge or its service."""
    os.environ["GOOGLE_API_KEY"] = "none"
    from google.adk.evaluation import vertex_ai_eval_facade as service
    from google.adk.evaluation.eval_case import IntermediateData, Invocation
    from google.adk.evaluation.eval_metrics import BaseCriterion, EvalMetric, PrebuiltMetrics
    from google.adk.evaluation.eval_rubrics import Rubric
    from google.adk.evaluation.metric_evaluator_registry import DEFAULT_METRIC_EVALUATOR_REGISTRY as REGISTRY
    from google.adk.models.google_llm import Gemini
    from google.genai.types import Content, FunctionCall, Part

    asked: list[str] = []

    async def ask(*_: Any, **__: Any) -> Any:
        asked.append("judge")
        raise RuntimeError("no model")
        yield

    Gemini.generate_content_async = ask  # type: ignore[method-assign]
    service._VertexAiEvalFacade._perform_eval = lambda *_, **__: asked.append("service")  # type: ignore[attr-defined]

    def content(text: str | None, role: str) -> Any:
        return None if text is None else Content(role=role, parts=[Part(text=text)])

    def turn(row: dict[str, Any], answer: str, calls: str) -> Any:
        done = [FunctionCall(name=c["tool_name"], args=c["tool_input"]) for c in row.get(calls, ())]
        texts = [text for texts in row.get("guidelines", {}).values() for text in texts]
        ours = [
            {"rubric_id": t, "rubric_content": {"text_property": t}, "type": "FINAL_RESPONSE_QUALITY"} for t in texts
        ]
        rubrics = [Rubric(**rubric) for rubric in row.get("adk_rubrics", ours)]
        return Invocation(
            user_content=content(row["request"], "user"),
            final_response=content(row.get(answer), "model"),
            intermediate_data=IntermediateData(tool_uses=done),
            rubrics=rubrics or None,
        )

    def scores(name: str) -> Scores:
        criterion = None if name.endswith(("count_v1", "usage_v1", "duration_v1")) else BaseCriterion(threshold=0.5)
        metric = EvalMetric(metric_name=name, criterion=criterion)

        async def result_of(row: dict[str, Any]) -> Any:
            actual = turn(row, "response", "predicted_trajectory")
            expected = turn(row, "expected_response", "reference_trajectory")
            result = REGISTRY.get_evaluator(metric).evaluate_invocations([actual], [expected], None)
            return await result if inspect.isawaitable(result) else result

        def score(row: dict[str, Any]) -> bool:
            asked.clear()
            try:
                result = asyncio.run(result_of(row))
            except Exception:
                return bool(asked)
            return bool(asked) or result.overall_score is not None

        return score

    # it reads the scenario of a simulated user, which is no row
    names = {metric.value for metric in PrebuiltMetrics} - {"per_turn_user_simulator_quality_v1"}
    return "google-adk", {name: scores(name) for name in names}


def inspect_ai() -> tuple[str, dict[str, Scores]]:
    """Each scorer, which returns a score or not; the judge gives a grade."""
    from inspect_ai import scorer
    from inspect_ai.model import ChatMessageUser, Model, ModelName, ModelOutput, get_model
    from inspect_ai.scorer import Target
    from inspect_ai.solver import TaskState

    async def ask(*_: Any, **__: Any) -> Any:
        return ModelOutput.from_content("mockllm/model", "GRADE: C")

    judge = get_model("mockllm/model")
    Model.generate = ask  # type: ignore[method-assign]
    made = {
        **{n: getattr(scorer, n)() for n in ("includes", "match", "exact", "f1", "choice", "math")},
        "answer": scorer.answer("line"),
        "pattern": scorer.pattern("(.*)"),
        "model_graded_qa": scorer.model_graded_qa(model=judge),
        "model_graded_fact": scorer.model_graded_fact(model=judge),
    }

    def scores(score_one: Any) -> Scores:
        def score(row: dict[str, Any]) -> bool:
            state = TaskState(
                model=ModelName("mockllm/model"),
                sample_id=1,
                epoch=1,
                input=row["request"],
                messages=[ChatMessageUser(content=row["request"])],
                output=ModelOutput.from_content("mockllm/model", row.get("response", "")),
                choices=row.get("choices"),
            )
            try:
                found = asyncio.run(score_one(state, Target(row.get("expected_response", ""))))
            except Exception:
                return False
            return found is not None and found.value is not None

        return score

    return "inspect-ai", {name: scores(one) for name, one in made.items()}


def strands() -> tuple[str, dict[str, Scores]]:
    """Each evaluator on the data of a case, up to its judge."""
    import strands_evals.evaluators as package
    from pydantic import BaseModel
    from strands_evals.types import EvaluationData

    asked: list[str] = []

    class Judge:
        def __init__(self, *_: Any, **__: Any) -> None: ...

        def __call__(self, *_: Any, **__: Any) -> Any:
            asked.append("judge")
            raise RuntimeError("no model")

    for name, module in list(sys.modules.items()):
        if name.startswith("strands_evals.evaluators.") and hasattr(module, "Agent"):
            module.Agent = Judge  # type: ignore[attr-defined]

    class Answer(BaseModel):
        answer: str

    known = {"rubric": "r", "value": "Twelve", "tool_name": "look_up", "skill_name": "s", "model_cls": Answer}

    def scores(kind: Any) -> Scores:
        parameters = inspect.signature(kind.__init__).parameters
        given = {n: v for n, v in known.items() if n in parameters and kind.__name__ != "Equals"}

        def score(row: dict[str, Any]) -> bool:
            asked.clear()
            calls = {
                ours: [call["tool_name"] for call in row[theirs]]
                for ours, theirs in (
                    ("actual_trajectory", "predicted_trajectory"),
                    ("expected_trajectory", "reference_trajectory"),
                )
                if theirs in row
            }
            texts = {"actual_output": row.get("response"), "expected_output": row.get("expected_response")}
            try:
                found = kind(**given).evaluate(EvaluationData(input=row["request"], **texts, **calls))
            except Exception:
                return bool(asked)
            return bool(asked) or any(not output.not_applicable for output in found)

        return score

    kinds = {name: getattr(package, name) for name in package.__all__ if hasattr(getattr(package, name), "evaluate")}
    return "strands-agents-evals", {n: scores(k) for n, k in kinds.items() if not n.startswith(("Multi", "Interact"))}


def langsmith() -> tuple[str, dict[str, Scores]]:
    """Each prompt as a judge, which gets what the prompt names."""
    from openevals import prompts
    from openevals.llm import create_llm_as_judge

    asked: list[str] = []

    class Judge:
        """A client of a model: `chat.completions.create`."""

        chat = completions = property(lambda self: self)

        def create(self, **_: Any) -> Any:
            asked.append("judge")
            raise RuntimeError("no model")

    def scores(prompt: str) -> Scores:
        judge = create_llm_as_judge(prompt=prompt, judge=Judge(), model="none")

        def score(row: dict[str, Any]) -> bool:
            asked.clear()
            named = {"inputs": "request", "outputs": "response", "reference_outputs": "expected_response"}
            given = {theirs: row[ours] for theirs, ours in named.items() if ours in row}
            if "retrieved_context" in row:
                given["context"] = row["retrieved_context"]
            with contextlib.suppress(Exception):
                judge(**given)
            return bool(asked)

        return score

    return "openevals", {n.removesuffix("_PROMPT"): scores(getattr(prompts, n)) for n in prompts.__all__}


def phoenix() -> tuple[str, dict[str, Scores]]:
    """Each evaluator on the inputs that its schema names, up to its judge."""
    from phoenix.evals import LLM, metrics

    asked: list[str] = []

    def ask(*_: Any, **__: Any) -> Any:
        asked.append("judge")
        raise RuntimeError("no model")

    LLM.generate_classification = LLM.generate_object = LLM.generate_text = ask  # type: ignore[method-assign]
    judge = LLM.__new__(LLM)

    def inputs_of(row: dict[str, Any]) -> dict[str, Any]:
        text, answer, calls = row["request"], row.get("response"), row.get("predicted_trajectory")
        documents = "\n".join(d["content"] for d in row.get("retrieved_context", ())) or None
        named = {
            **dict.fromkeys(("input", "user_message"), text),
            **dict.fromkeys(("output", "text"), answer),
            "conversation": None if answer is None else f"user: {text}\nassistant: {answer}",
            "expected": row.get("expected_response"),
            **dict.fromkeys(("context", "document_text"), documents),
            **dict.fromkeys(("tool_selection", "tool_call"), calls and json.dumps(calls)),
            "available_tools": json.dumps(row["tool_definitions"]) if "tool_definitions" in row else None,
        }
        return {name: value for name, value in named.items() if value is not None}

    def scores(kind: Any) -> Scores:
        known = {"llm": judge, "pattern": "Twelve"}
        if inspect.isclass(kind):
            required = inspect.signature(kind.__init__).parameters
            kind = kind(**{name: value for name, value in known.items() if name in required})

        def score(row: dict[str, Any]) -> bool:
            asked.clear()
            try:
                found = kind.evaluate(inputs_of(row))
            except Exception:
                return bool(asked)
            return bool(asked) or any(one.score is not None for one in found)

        return score

    names = [name for name in metrics.__all__ if name != "PrecisionRecallFScore"]  # of lists of labels
    return "arize-phoenix-evals", {name: scores(getattr(metrics, name)) for name in names}


def vertex() -> tuple[str, dict[str, Scores]]:
    """The request of each metric of trajectories: the instance that the service gets has to have all its fields."""
    import vertexai
    from google.auth.credentials import AnonymousCredentials
    from vertexai.preview.evaluation import constants
    from vertexai.preview.evaluation.metrics._instance_evaluation import build_request

    vertexai.init(project="none", location="us-central1", credentials=AnonymousCredentials())
    columns = {v: v for k, v in vars(constants.Dataset).items() if k.endswith("_COLUMN")}

    class Run:
        metric_column_mapping = columns

    def scores(name: str) -> Scores:
        def score(row: dict[str, Any]) -> bool:
            request = build_request(name, row, Run())  # type: ignore[arg-type]
            (instance,) = getattr(request, f"{name}_input").instances
            return all(getattr(instance, field).tool_calls for field in type(instance).meta.fields)

        return score

    names = [v for k, v in vars(constants.Metric).items() if k.startswith("TRAJECTORY_") and isinstance(v, str)]
    return "google-cloud-aiplatform", {name: scores(name) for name in names}


def vertex_genai() -> tuple[str, dict[str, Scores]]:
    """The request for each metric that is computed by the service, built of the cases that the converter makes."""
    from agentplatform._genai import _evals_constant, _evals_metric_handlers, types
    from agentplatform._genai._evals_data_converters import _FlattenEvalDataConverter

    computed = ("exact_match", "bleu", "rouge_1", "rouge_l_sum")
    judged = {
        re.sub(r"_v\d+$", "", name).upper(): name for name in sorted(_evals_constant.SUPPORTED_PREDEFINED_METRICS)
    }

    def scores(name: str) -> Scores:
        handler: Any = _evals_metric_handlers.get_handler_for_metric(None, types.Metric(name=name))  # type: ignore[arg-type]

        def score(row: dict[str, Any]) -> bool:
            try:
                (case,) = _FlattenEvalDataConverter().convert([row]).eval_cases
                return bool(handler._build_request_payload(case, 0))
            except Exception:
                return False

        return score

    return "google-cloud-aiplatform", {key: scores(n) for key, n in {**judged, **{n: n for n in computed}}.items()}


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    asyncio.set_event_loop(asyncio.new_event_loop())
    place = FOLDER / sys.argv[1]
    of = {"inspect": inspect_ai}.get(sys.argv[1]) or globals()[sys.argv[1].replace("-", "_")]
    package, metrics_by_name = of()
    rows = [json.loads(line) for line in (place / "kinds.jsonl").read_text().splitlines()]
    scored = {name: [int(score(row)) for row in rows] for name, score in sorted(metrics_by_name.items())}
    read = {"read": {name: sorted(columns) for name, columns in sorted(READ.items())}} if READ else {}
    document = {"package": package, "version": version(package), "scored": scored, **read}
    (place / "scored.json").write_text(json.dumps(document, indent=1).replace("\n   ", " ") + "\n")
    print(f"recorded {len(scored)} metrics of {len(rows)} rows")
