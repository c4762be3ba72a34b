"""The tables of the package as pages: columns, schemas, derivations, metrics, inference tables, extras."""

from __future__ import annotations

import json
import re
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

from agent_eval_schema import json_schema
from agent_eval_schema.formats.inference_tables import MAPPED, MAPPING_TARGETS, TABLE_FAMILIES
from agent_eval_schema.formats.json_schema import SCHEMAS
from agent_eval_schema.formats.registry import FORMATS
from agent_eval_schema.inference_tables.plan import REASONS
from agent_eval_schema.metrics import catalog
from agent_eval_schema.metrics.catalog import FIELD_WORDS, METRICS, SYSTEMS
from agent_eval_schema.metrics.definitions import DEFINITIONS
from agent_eval_schema.metrics.known_metrics import CATALOG
from agent_eval_schema.metrics.metric_info import MetricInfo
from agent_eval_schema.metrics.support import need_words
from agent_eval_schema.review.journal import journal_schema
from agent_eval_schema.schema import COLUMN_DESCRIPTIONS, COLUMNS, ROW_SCHEMA
from agent_eval_schema.traces.derive import DERIVATIONS
from agent_eval_schema.traces.otel.conventions import CONVENTIONS, FIELDS, Field
from reference.markdown import Pages, code, codes, prose, table


def pages(_: Path) -> Pages:
    """The JSON Schemas, and tables that pages include."""
    return {
        **{f"reference/schema/{name}.schema.json": json.dumps(json_schema(name), indent=2) + "\n" for name in SCHEMAS},
        "reference/schema/review-journal.schema.json": json.dumps(journal_schema(), indent=2) + "\n",
        "reference/generated/extras.inc": _extras(),
        "reference/generated/otel-conventions.inc": _conventions(),
    }


def columns() -> str:
    """The page of the canonical columns."""
    schema = json_schema("canonical")
    required = schema.get("required", []) or schema["$defs"]["EvalRow"].get("required", [])
    parts = [
        "# Canonical columns\n",
        "`normalize_eval_set` returns these columns for every input format, in this order. An absent value is null; "
        "an empty list is a value. The input is never modified.\n",
        "The Arrow type is that of the Parquet files that `write_eval_set` writes; in Python and JSON, a nested cell "
        "is a list or an object.\n",
    ]
    for name in COLUMNS:
        origins = [(form.name, form.origins(()).get(name)) for form in FORMATS]
        other = [f"{code(place)} ([{code(form)}](../formats/index.md#{form}))" for form, place in origins if place]
        parts += [
            f"## {code(name)}\n",
            prose(COLUMN_DESCRIPTIONS[name]) + "\n",
            f"Arrow type: {code(ROW_SCHEMA.field(name).type)}. "
            + ("Required." if name in required else "Optional.")
            + (f" In other formats: {', '.join(other)}." if other else "")
            + "\n",
        ]
        read_by = [code(metric) for metric, definition in DEFINITIONS.items() if name in definition.reads]
        if read_by:
            parts += [f"Read by the metrics {', '.join(read_by)}.\n"]
    return "\n".join(parts)


def json_schemas() -> str:
    """The table of the JSON Schemas."""
    rows = [
        (code(name), json_schema(name).get("title", ""), f"{{download}}`{name}.schema.json <{name}.schema.json>`")
        for name in SCHEMAS
    ]
    return "\n".join(
        [
            "# JSON Schemas\n",
            "JSON Schemas (draft 2020-12) of one row, for editors and for programs that write evaluation datasets. "
            "`agent-eval-schema schema NAME` and `json_schema(NAME)` return the same documents. Validation reports "
            "more: rules over several cells or rows cannot be expressed in JSON Schema.\n",
            table(("Schema", "Content", "File"), rows),
            "[Use a schema in an editor](../../how-to/ci/editor-schema.md).\n",
        ]
    )


def derivations() -> str:
    """The fields that are derived from traces."""
    rows = [(code(d.field), prose(d.source)) for d in DERIVATIONS]
    return "\n".join(
        [
            "# Fields derived from traces\n",
            "A field that the row's columns lack is derived from its MLflow trace. A value in a column takes "
            "precedence; a conflict is reported as [AE605](../rules/index.md#trace-disagrees).\n",
            table(("Field", "Derived from"), rows),
            "`token_counts` are the columns `input_token_count`, `output_token_count` and `total_token_count`. "
            "`expectations` are `expected_response`, `expected_facts`, `guidelines`, `expected_retrieved_context`, "
            "`reference_trajectory` and `custom_expected`.\n",
            "Traces of every MLflow version since 2.13 are read, as JSON string, object or `Trace`. Parts that cannot "
            "be parsed are skipped and reported ([family AE6](../rules/index.md)).\n",
            "## Traces of OpenTelemetry\n",
            "The spans of [OpenTelemetry](../../how-to/mlflow/traces-from-opentelemetry.md) are translated to those of "
            "MLflow first. The request is the input of the outermost agent, else of the first model; the response is "
            "the output of the last one. Per field, the attributes per naming convention, in order of precedence:\n",
            _conventions(),
        ]
    )


def _conventions() -> str:
    kinds = [(c.title, codes(c.kinds) or codes(f"{n}…" for n in c.names)) for c in CONVENTIONS]
    rows = [
        (label, f"[{convention.title}]({convention.url})", codes(attributes))
        for field, label in _FIELDS.items()
        for convention in CONVENTIONS
        if (attributes := convention.fields.get(field))
    ]
    return "\n".join(
        [
            table(("Convention", "Kind of the span"), kinds),
            table(("Content", "Convention", "Attributes"), rows),
        ]
    )


_FIELDS: dict[Field, str] = {
    "inputs": "input",
    "outputs": "output",
    "documents": "retrieved documents",
    "documents_by_id": "retrieved documents, named by their ID",
    "tool": "name of a tool",
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
    "total_tokens": "total tokens",
    "usage": "all tokens",
    "session": "session",
    "system": "instructions",
    "level": "state",
    "message": "error",
}
assert set(_FIELDS) == set(FIELDS)


def metrics() -> str:
    """Which metric needs which fields."""
    parts = [
        "# Metrics and required fields\n",
        "Which metrics a row supports follows from the fields that it has. A row with an error supports no metric. "
        "[Metric coverage](../../concepts/metric-coverage.md) explains how a report uses this table.\n",
        "Better is the score that is better by the platform's documentation: `none` of metrics that classify, "
        "`unknown` of those that give words, or of which no end is documented to be better.\n",
        "The names of the metrics of a package are compared with the package of the version that is named "
        "(`tests/metrics/test_catalogs.py`).\n",
        "[Sources of the directions](#sources-of-the-directions) names what states it, per metric.\n",
        '<div class="filterable">\n',
    ]
    of_platforms = re.findall(r"^    ([\w-]+)\s+(.+(?:\n {20}.+)*)", str(catalog.__doc__), re.MULTILINE)
    sources = {system: " ".join(source.split()) for system, source in of_platforms}
    for system in SYSTEMS:
        rows = [
            (
                code(m.name),
                ", ".join(prose(need_words(n)) for n in m.needs),
                "LLM judge" if m.judged else "computed",
                CATALOG[m].direction,
                _scale(CATALOG[m]),
            )
            for m in METRICS
            if m.system == system
        ]
        parts += [
            f"**{_SYSTEM_NAMES[system]}** (`--system {system}`)\n",
            re.sub(r"^([a-z.-]+)(?= [0-9])", r"`\1`", f"{sources[system]}.\n"),
            table(("Metric", "Needs", "Value", "Better", "Scale"), rows),
        ]
    computed = [(code(name), codes(d.reads), prose(d.undefined)) for name, d in DEFINITIONS.items()]
    parts += [
        "</div>\n",
        "## Metrics that this package computes\n",
        "`EvalTask`, `score_trajectories` and the [scorers](../api/index.md#agent_eval_schema.scorers) compute these "
        "without a model. [Trajectories](trajectory.md), [tool calls](tool-calls.md) and "
        "[text and retrieval](text-and-retrieval.md) define them.\n",
        table(("Metric", "Columns", "No score for a complete row if"), computed),
        "## Names of fields\n",
        "Reports name fields that are more specific than a column as follows.\n",
        table(("Field", "In a report"), [(code(k), prose(v)) for k, v in FIELD_WORDS.items()]),
        "## Sources of the directions\n",
        "What states which score of a metric is better: a file of the package of this version, in which "
        "`tests/metrics/test_directions.py` finds it, or a page of the documentation. A metric without a source is "
        "`unknown`.\n",
        table(("Platform", "Better", "Metrics", "Source"), map(_direction_source, DIRECTION_SOURCES)),
    ]
    return "\n".join(parts)


DIRECTION_SOURCES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("directions.json").read_text())


def _direction_source(entry: dict[str, Any]) -> tuple[str, ...]:
    is_page = entry["at"].startswith("https:")
    name, at = prose(entry["source"]), entry["at"]
    source = f"[{name}]({at})" if is_page else f"{name}: {code(at)}"
    return _SYSTEM_NAMES[entry["system"]], entry["better"], codes(entry["metrics"]), source


def _scale(info: MetricInfo) -> str:
    """The ends of a scale and its unit."""
    if info.scale is None:
        return "unknown"
    low, high = info.scale
    ends = f"from {low:g}" if high is None else f"{low:g} to {high:g}"
    return f"{ends}, {info.unit}" if info.unit else ends


_SYSTEM_NAMES = {
    "databricks": "Databricks Agent Evaluation",
    "mlflow": "MLflow 3 scorers",
    "vertex": "Vertex AI agent evaluation",
    "ces": "Google Customer Engagement Suite",
    "azure": "Azure AI Foundry",
    "bedrock": "Amazon Bedrock, model evaluation",
    "bedrock-rag": "Amazon Bedrock, RAG evaluation",
    "agentcore": "Amazon Bedrock AgentCore Evaluations",
    "vertex-genai": "Gen AI evaluation service of Vertex AI",
    "m365-copilot": "Microsoft 365 Copilot evaluations CLI",
    "strands": "Strands Evals",
    "braintrust": "Braintrust autoevals",
    "phoenix": "Phoenix evals",
    "inspect": "Inspect AI scorers",
    "promptfoo": "promptfoo assertions",
    "adk": "Google ADK",
    "ragas": "Ragas",
    "deepeval": "DeepEval",
    "langsmith": "LangSmith, evaluators of openevals",
    "langfuse": "Langfuse, managed evaluators",
    "openai": "OpenAI graders",
    "mlflow-third-party": "Scorers of other libraries that MLflow wraps",
}


def families() -> str:
    """The families of inference tables."""
    parts = [
        "# Inference table families\n",
        "The format of a table is detected from its columns, in this order; `--format` and `format=` override "
        "detection. A table has a family if it has at least one column of each group.\n",
    ]
    for family in TABLE_FAMILIES:
        groups = [f"- {codes(group)}" for group in family.signs]
        rows = [
            (code(target), codes(names), prose(MAPPING_TARGETS[target])) for target, names in family.columns.items()
        ]
        parts += [
            f"## {code(family.name)}\n",
            f"{prose(family.summary[0].upper() + family.summary[1:])}.\n",
        ]
        parts += [
            "Known by:\n",
            "\n".join(groups) + "\n",
            table(("Target", "Columns (the first that exists)", "Content"), rows),
        ]
    parts += [
        f"## {code(MAPPED.name)}\n",
        f"{prose(MAPPED.summary[0].upper() + MAPPED.summary[1:])}. Any log can be read if you "
        "[map its columns](../../how-to/production/other-logs.md) to these targets:\n",
        table(("Target", "Content"), [(code(t), prose(text)) for t, text in MAPPING_TARGETS.items()]),
    ]
    return "\n".join(parts)


def reasons() -> str:
    """The reasons to exclude a logged row."""
    rows = [
        (f'<a id="{r.name}"></a>{code(r.name)}', prose(r.sentence), prose(r.remedy), "yes" if r.switchable else "no")
        for r in REASONS.values()
    ]
    return "\n".join(
        [
            "# Exclusion reasons\n",
            "Every row of an inference table becomes a row of the evaluation dataset or is excluded for exactly one of "
            "these reasons: the first that applies, in this order. `--excluded PATH` and `build.excluded` return the "
            "excluded rows.\n",
            table(("Reason", "Condition", "Remedy", "Can be kept"), rows),
            "*Can be kept*: `--include REASON` and `include=[...]` do not exclude rows for this reason.\n",
        ]
    )


def _extras() -> str:
    """Extras and the packages that they install, for the installation page."""
    found = metadata("agent-eval-schema")
    wanted: dict[str, list[str]] = {extra: [] for extra in found.get_all("Provides-Extra") or ()}
    core = []
    for line in found.get_all("Requires-Dist") or ():
        package, _, marker = (part.strip() for part in line.partition(";"))
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", marker)
        if extra is None:
            core.append(package)
        elif not package.startswith("agent-eval-schema"):
            wanted[extra[1]].append(package)
    rows = [(code(extra), codes(packages)) for extra, packages in wanted.items() if packages]
    return "\n".join(
        [
            f"Python {found['Requires-Python']}; {codes(core)}.\n",
            table(("Extra", "Installs"), rows),
        ]
    )
