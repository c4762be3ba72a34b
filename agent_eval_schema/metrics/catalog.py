"""METRICS: every metric that an evaluation platform computes, the fields that a row must have for it, what scores mean.

`platforms.json` has them, several of the same kind on a line: `judged` are names of metrics that ask a judge model,
`computed` of others. `needs` are fields; of fields between bars any one suffices.

Without documents, calls or a session in a trace MLflow reads those of the trace that prepare_for_evaluate makes of the
columns; some of its scorers make text of an answer, and others raise an exception at a number. The ADK requires a
reference response where it judges the coherence of the response alone. Calls make a conversation of a row of Ragas.
Scores of deepeval 4 and of MLflow's PIIDetection are high if nothing was found; Langfuse's prompt of Answer-Relevance
asks for 1 if an answer is noncommittal. `scale` is that of docstrings and templates of the packages below.

A platform has those that ask a judge model, and those that compute, from embeddings too. Where a platform takes one of
several inputs, the need is the usual one. What belongs to the evaluator and not to a row is no need: a pattern, the
name of a tool. A tool's answer is in a trace only, not in a trajectory. Evaluators of images, of speech, of
translations, and of what no field of a row holds are excluded: `tests/metrics/test_catalogs.py` names them, and
compares each list with the package that it comes from. Sources, and how each is
checked; "rows of each kind" are those of `tests/formats/test_scored.py`:

    databricks      Databricks, evaluation input schema and built-in AI judges: read, as there is no open package
    mlflow          mlflow 3.17.2: what `mlflow.genai.evaluate` scores on rows of each kind, with a stub as the judge
                    (`tests/integrations/mlflow/test_oracle.py`)
    vertex          google-cloud-aiplatform 2.7.0: the requests for trajectories that its client builds of rows of each
                    kind; latency and failure by "Evaluate an agent"
    ces             google-cloud-ces 0.7.2: the fields of `TurnReplayResult`
    adk             google-adk 2.13.0: its evaluators on rows of each kind, with a stub as the judge and the service
    azure           azure-ai-evaluation 1.18.10: its evaluators on rows of each kind, with a stub as the judge
    bedrock         botocore 1.44.5: the `metricNames` of an evaluation job; the needs by its user guide
    bedrock-rag     botocore 1.44.5: the same; the needs by "Use metrics to understand RAG system performance", with
                    the citations
    agentcore       aws-cdk.aws-bedrock-agentcore-alpha 2.275.0a0: the names; the needs by the user guide: the table of
                    "Ground truth evaluations", and in "Prompt templates" the placeholders, which come from a trace
    vertex-genai    google-cloud-aiplatform 2.7.0: the requests that its client builds of rows of each kind; the
                    metrics whose prompts it loads from the service by "Details for managed rubric-based metrics"
    m365-copilot    Microsoft 365 Copilot's evaluations CLI, "Evaluators reference": read; its package is not public
    strands         strands-agents-evals 1.7.0: its evaluators on rows of each kind, with a stub as the judge
    braintrust      autoevals 0.4.1: the names, `check_required` and the templates, read
    phoenix         arize-phoenix-evals 3.9.4: its evaluators on rows of each kind, with a stub as the judge
    inspect         inspect-ai 0.3.285: its scorers on rows of each kind, with a stub as the judge
    promptfoo       promptfoo 0.121.20: the handlers of assertions, read
    ragas           ragas 0.4.3: its collections on rows of each kind, with a stub as the judge
    deepeval        deepeval 4.3.1: its metrics of a single turn on rows of each kind, with a stub as the judge
    langsmith       openevals 0.2.2: its prompts as judges on rows of each kind, with a stub as the model
    langfuse        langfuse 0a6ecf1 (the repository): `managed-evaluators.json`: the variables of the prompts, read
    openai          openai 3.57.0: the graders of the Evals API, with `{{ item.… }}` and `{{ sample.output_text }}`
    mlflow-third-party
                    mlflow 3.17.2: `mlflow.genai.scorers.deepeval`, `.ragas`, `.trulens`, `.phoenix`, `.guardrails` and
                    `.google_adk`, and what each reads of inputs, outputs, expectations and trace: read
"""

from collections import Counter
from typing import Literal, NamedTuple

from msgspec import UNSET, Struct, UnsetType

from agent_eval_schema.runtime.tables import packaged

Need = str | tuple[str, ...]
"""A field; a tuple of fields means that any one of them suffices."""

Scale = tuple[float, float]

Direction = Literal["higher", "lower", "none", "unknown"]

TOOL_CALL_NEEDS: tuple[Need, ...] = (("predicted_trajectory", "trace"), "reference_trajectory")
"""An agent that called nothing has failed: a trace without a call suffices."""


class PlatformMetrics(Struct, frozen=True, forbid_unknown_fields=True):
    """A line of the table: metrics that need the same fields of a row, and whose scores mean the same."""

    needs: str
    judged: str = ""
    computed: str = ""
    direction: Direction | None = None
    """Which scores are better, where that is not the usual: less of an amount, more of anything else."""
    scale: tuple[int, int] | UnsetType | None = UNSET
    """The scale of a judge that gives steps; None if it gives several numbers, or is chosen with the prompt. From 0 to
    1 where it is not set."""

    @property
    def fields(self) -> tuple[Need, ...]:
        choices = [tuple(need.split("|")) for need in self.needs.split()]
        return tuple(choice if len(choice) > 1 else choice[0] for choice in choices)


PLATFORMS = {
    system: {name: line for line in lines for name in (line.judged or line.computed).split()}
    for system, lines in packaged(__package__, "platforms.json", dict[str, list[PlatformMetrics]]).items()
}
"""By the name of the platform and that of the metric."""


class _Field(Struct, frozen=True, forbid_unknown_fields=True):
    """A field of a row: how a report names one that a user should add, if not by the name of its column; if it will
    exist after the agent has run, the condition that a report adds; and whether people give it."""

    words: str = ""
    made_by_the_app: str | None = None
    is_truth: bool = False


_FIELDS = packaged(__package__, "fields.json", dict[str, _Field])

SUPPORT_FIELDS = tuple(_FIELDS)
"""The fields of a row that metrics read: one bit each, in this order, in the presence mask of a checked batch."""

BIT = {name: 1 << i for i, name in enumerate(SUPPORT_FIELDS)}

GROUND_TRUTH = sum(BIT[name] for name, field in _FIELDS.items() if field.is_truth)
"""The mask of the fields that people give a row: a row with none of them has no ground truth."""

FIELD_WORDS = {name: field.words for name, field in _FIELDS.items() if field.words}

MADE_BY_THE_APP = {name: field.made_by_the_app for name, field in _FIELDS.items() if field.made_by_the_app is not None}


class Metric(NamedTuple):
    """A metric of a system (databricks, mlflow, vertex, …), its needs, and whether a judge model is asked."""

    system: str
    name: str
    needs: tuple[Need, ...]
    judged: bool = False

    @property
    def fields(self) -> list[str]:
        return [field for need in self.needs for field in ((need,) if isinstance(need, str) else need)]


COMMON = ("databricks", "mlflow", "vertex", "ces")
"""The systems that every report shows; one of another platform is shown for its own formats, and where it is named."""

_TAKEN = Counter(name for metrics in PLATFORMS.values() for name in metrics)

METRICS: tuple[Metric, ...] = tuple(
    Metric(
        system, name if system in COMMON or _TAKEN[name] == 1 else f"{system}/{name}", line.fields, bool(line.judged)
    )
    for system, metrics in PLATFORMS.items()
    for name, line in metrics.items()
)
"""A metric of another platform whose name a second system has, too, has the name of its system before it."""

SYSTEMS = tuple(PLATFORMS)

LATENCY, FAILURE = "latency_in_seconds", "failure"
