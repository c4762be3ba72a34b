"""The metrics of a platform in the catalog are those of its package: the version that the catalog names is read, not
run. A metric that is new or gone in a package fails its test, when the catalog names the next version.

What the catalog leaves out is named here, with the reason.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from agent_eval_schema.metrics import catalog
from agent_eval_schema.metrics.catalog import PLATFORMS
from tests.metrics.conftest import Files

pytestmark = pytest.mark.oracle


def public(files: Files, path: str) -> list[str]:
    """The names of `__all__` of a module."""
    (text,) = files(re.escape(path)).values()
    for node in ast.walk(ast.parse(text)):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            strings = ast.walk(node.value)  # type: ignore[attr-defined]
            return [n.value for n in strings if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    raise AssertionError(f"{path} has no __all__")


def found(files: Files, paths: str, pattern: str) -> list[str]:
    return [name for text in files(paths).values() for name in re.findall(pattern, text)]


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def ending(names: Iterable[str], end: str) -> set[str]:
    return {name for name in names if name.endswith(end) and name != end}


# system: the wheel of its source in catalog.py, the names of its metrics, what the catalog leaves out and why
CATALOGS: dict[str, tuple[str, Callable[[Files], set[str]], dict[str, str]]] = {
    "azure": (
        "azure-ai-evaluation==1.18.10",
        lambda files: {
            snake(name)
            for name in found(files, r"azure/ai/evaluation/_evaluators/.*\.py", r"(?m)^class _?(\w+)Evaluator\b")
        },
        {"eci": "for employees of the vendor"},
    ),
    "strands": (
        "strands-agents-evals==1.7.0",
        lambda files: set(public(files, "strands_evals/evaluators/__init__.py")),
        {
            "Evaluator": "an abstract class",
            "StructuredOutputReport": "a result",
            "InteractionsEvaluator": "no field of a row holds the interactions of several agents",
            "StateEquals": "no field of a row holds the state of an environment",
            "StructuredOutputSimilarity": "compares objects of a class, not the texts of a row",
            **dict.fromkeys(
                [
                    f"Multimodal{n}Evaluator"
                    for n in ["Correctness", "Faithfulness", "Output", "InstructionFollowing", "OverallQuality"]
                ],
                "judges images",
            ),
        },
    ),
    "braintrust": (
        "autoevals==0.4.1",
        lambda files: set(
            found(files, r"autoevals/(llm|ragas|string|json|number|list|value|moderation)\.py", r"(?m)^class (\w+)\(")
        ),
        {
            "Translation": "a translation",
            **dict.fromkeys(
                ("OpenAIScorer", "OpenAILLMScorer", "OpenAILLMClassifier", "LLMClassifier", "SpecFileClassifier"),
                "an abstract class",
            ),
        },
    ),
    "phoenix": (
        "arize-phoenix-evals==3.9.4",
        lambda files: (
            set(
                found(
                    files, r"phoenix/evals/metrics/\w+\.py", r"(?m)^class (\w+)\((?:LLM|ClassificationE|E)\w*valuator\)"
                )
            )
            | set(found(files, r"phoenix/evals/metrics/\w+\.py", r"(?m)^class (\w+)\(\w*Evaluator\)"))
            | {"exact_match"}
        ),
        {"PrecisionRecallFScore": "compares lists of labels, not the texts of a row"},
    ),
    "ragas": (
        "ragas==0.4.3",
        lambda files: (
            {*public(files, "ragas/metrics/collections/__init__.py")}
            | set(found(files, r"ragas/metrics/_context_(precision|recall)\.py", r"(?m)^class (IDBased\w+)\("))
        ),
        {
            "BaseMetric": "an abstract class",
            "DistanceMeasure": "an option",
            "MultiModalFaithfulness": "judges images",
            "MultiModalRelevance": "judges images",
            "InstanceSpecificRubrics": "no field of a row holds the rubrics of a sample",
            "SQLSemanticEquivalence": "reads the schema of a database",
            "SummaryScore": "reads reference contexts as the text to summarize",
            "TopicAdherence": "no field of a row holds reference topics",
        },
    ),
    "deepeval": (
        "deepeval==4.3.1",
        lambda files: (
            ending(public(files, "deepeval/metrics/__init__.py"), "Metric") | {"GEval", "ConversationalGEval"}
        ),
        {
            **dict.fromkeys(("BaseMetric", "BaseConversationalMetric", "BaseArenaMetric"), "an abstract class"),
            **dict.fromkeys(("DAGMetric", "ConversationalDAGMetric"), "what it reads is in its graph"),
            **dict.fromkeys(
                [
                    "TextToImageMetric",
                    "ImageEditingMetric",
                    "ImageCoherenceMetric",
                    "ImageHelpfulnessMetric",
                    "ImageReferenceMetric",
                ],
                "judges images",
            ),
            **dict.fromkeys(
                [
                    f"{name}Metric"
                    for name in [
                        "AgentResponsiveness",
                        "AudioGlitch",
                        "AudioIntegrity",
                        "SpeechIntelligibility",
                        "TranscriptionAccuracy",
                        "TurnTakingNaturalness",
                        "VoiceConsistency",
                        "VoiceNaturalness",
                        "VoiceReliability",
                    ]
                ],
                "judges speech",
            ),
            **dict.fromkeys(
                ("MCPUseMetric", "MCPTaskCompletionMetric", "MultiTurnMCPUseMetric"),
                "no field of a row holds MCP servers",
            ),
        },
    ),
    "vertex-genai": (
        "google-cloud-aiplatform==2.7.0",
        lambda files: (
            set(
                found(
                    files,
                    r"agentplatform/_genai/_evals_metric_loaders\.py",
                    r"(?m)^    def ([A-Z_0-9]+)\(self\) -> LazyLoadedPrebuiltMetric",
                )
            )
            | {"exact_match", "bleu", "rouge_1", "rouge_l_sum"}
        ),  # computed, and named as texts
        {
            "GROUNDEDNESS": "the old name of GROUNDING",
            "GECKO_TEXT2IMAGE": "judges images",
            "GECKO_TEXT2VIDEO": "judges videos",
        },
    ),
    "inspect": (
        "inspect-ai==0.3.285",
        lambda files: set(
            found(files, r"inspect_ai/scorer/_[\w/]+\.py", r"(?m)^@scorer\((?:[^()]|\([^()]*\))*\)\ndef ([a-z]\w+)\(")
        ),
        {
            "cascade": "combines scorers",
            "perplexity": "no field of a row holds log probabilities",
            "target_perplexity": "no field of a row holds log probabilities",
        },
    ),
    "langsmith": (
        "openevals==0.2.2",
        lambda files: {
            name.removesuffix("_PROMPT") for name in ending(public(files, "openevals/prompts/__init__.py"), "_PROMPT")
        },
        {
            **dict.fromkeys(
                ("AUDIO_QUALITY", "TRANSCRIPTION_ACCURACY", "USER_INTERRUPTS", "VOCAL_AFFECT"), "judges speech"
            ),
            **dict.fromkeys(("EXPLICIT_CONTENT", "SENSITIVE_IMAGERY"), "judges images"),
            "PLAN_ADHERENCE": "no field of a row holds a plan",
        },
    ),
    "openai": (
        "openai==3.57.0",
        lambda files: {
            Path(path).stem.removesuffix("_grader") for path in files(r"openai/types/graders/\w+_grader\.py")
        },
        {"python": "what it reads is in its source", "multi": "combines graders"},
    ),
}


def listed(system: str) -> set[str]:
    return set(PLATFORMS[system])


@pytest.mark.parametrize("system", CATALOGS)
def test_the_metrics_of_a_package(system: str, files_of: Callable[[str], Files]) -> None:
    requirement, names, left_out = CATALOGS[system]
    own = names(files_of(requirement))
    assert left_out.keys() <= own
    assert listed(system) == own - left_out.keys()


@pytest.mark.parametrize("system", CATALOGS)
def test_the_catalog_names_the_version(system: str) -> None:
    name, _, version = CATALOGS[system][0].partition("==")
    assert re.search(rf"^    {system} +.*\b{name} {re.escape(version)}\b", str(catalog.__doc__), re.MULTILINE)


def test_the_metrics_of_google_adk() -> None:
    from google.adk.evaluation.eval_metrics import PrebuiltMetrics

    no_field = {"per_turn_user_simulator_quality_v1"}  # reads the scenario that a simulated user follows
    assert listed("adk") == {metric.value for metric in PrebuiltMetrics} - no_field


def test_the_scorers_of_other_libraries_that_mlflow_wraps() -> None:
    import mlflow.genai.scorers

    folder = Path(mlflow.genai.scorers.__file__).parent  # read, not imported: the libraries are not installed
    libraries = sorted(path.parent.name for path in folder.glob("*/registry.py"))
    names = {f"mlflow.{library}/{name}" for library in libraries for name in registered(folder / library)}
    assert listed("mlflow-third-party") == names


def registered(library: Path) -> list[str]:
    """The names in a registry of scorers: the keys of its dict, or the strings of its list."""
    for node in ast.walk(ast.parse((library / "registry.py").read_text())):
        value = getattr(node, "value", None) if isinstance(node, ast.Assign | ast.AnnAssign) else None
        entries = value.keys if isinstance(value, ast.Dict) else value.elts if isinstance(value, ast.List) else []
        if entries:
            return [
                entry.value for entry in entries if isinstance(entry, ast.Constant) and isinstance(entry.value, str)
            ]
    raise AssertionError(f"{library.name} has no registry")
