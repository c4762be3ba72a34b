"""TABLE_FAMILIES: the tables in which endpoints log their calls, known by their columns, and which column holds what.

    legacy payload · AI Gateway payload · Unity AI Gateway · derived request logs · assessment logs
    search_traces frames · archived trace views · and any other log with a mapping (`request=body.input`)

Sources: the pages of Databricks on inference tables (`rules/pages.py`). Families are tolerant: only the signs must be
there; a column that a table lacks is absent in all its rows.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain

from msgspec import Struct

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.schema import are_canonical
from agent_eval_schema.text.choices import no_choice, require_choice, shown
from agent_eval_schema.text.describe import names

MAPPING_TARGETS: dict[str, str] = {
    "request_id": "ID of the logged call",
    "client_request_id": "ID that the caller set",
    "time": "when the call was logged: timestamp, ISO text, or seconds, ms, us, ns since 1970",
    "status_code": "HTTP status",
    "latency_ms": "how long the call took, in milliseconds",
    "latency_seconds": "how long the call took, in seconds",
    "request": "the request: the payload, or text",
    "response": "the response: the payload, or text",
    "request_text": "the user's last question as text, where the payload is absent",
    "response_text": "the answer as text, where the payload is absent",
    "logging_error_codes": "errors of logging",
    "served_entity": "which model or agent answered",
    "requester": "who asked",
    "request_metadata": "endpoint_name, model_name, model_version of a legacy table",
    "session_id": "the conversation",
    "trace": "the trace of the call",
    "assessments": "the trace's assessments",
    "source": "of an assessment: who",
    "step_id": "of an assessment: the judged step",
    "text_assessment": "of an assessment: the judgment of the answer",
    "retrieval_assessment": "of an assessment: the judgment of a document",
}
"""The fields of a call that a table can have: the names that `columns` gives to columns of the table."""

TRACE_PARTS = (
    *("trace_id", "client_request_id", "request_time", "state", "execution_duration_ms", "trace_location"),
    *("trace_metadata", "tags", "assessments", "spans"),
)
"""The columns of an archived view from which a trace is put together; previews are not among them."""


class Family(Struct, frozen=True):
    """A kind of table. `signs` are groups of columns, and the table has at least one of each; `columns` has the
    columns that may contain each target, and the first that exists is used.

    `payloads` is true if request and response are HTTP bodies: text that is not JSON is then malformed, not a
    question. `own_trace` is true if the row is its trace, which then cannot be that of another call.
    """

    name: str
    summary: str
    signs: tuple[tuple[str, ...], ...]
    columns: dict[str, tuple[str, ...]]
    payloads: bool = True
    own_trace: bool = False

    @property
    def names(self) -> frozenset[str]:
        """Every column that a table of the family may have, as far as it is read."""
        return frozenset({*chain.from_iterable(self.signs), *chain.from_iterable(self.columns.values())})


def _same(*targets: str) -> dict[str, tuple[str, ...]]:
    """The targets that are in columns of their own name."""
    return {target: (target,) for target in targets}


_PAYLOAD = {
    "request_id": ("databricks_request_id",),
    **_same("client_request_id", "status_code", "request", "response", "requester", "logging_error_codes"),
    **_same("request_metadata", "trace"),
}
_LEGACY = {
    **_PAYLOAD,
    "time": ("timestamp_ms", "timestamp", "date"),
    "latency_ms": ("execution_time_ms",),
    "served_entity": ("served_entity_id",),
}
_TRACES = {
    "request_id": ("client_request_id", "trace_id", "request_id"),
    "time": ("request_time", "timestamp_ms"),
    "latency_ms": ("execution_duration", "execution_duration_ms", "execution_time_ms"),
    **_same("trace", "assessments"),
}

TABLE_FAMILIES: tuple[Family, ...] = (
    Family(
        "assessment_logs",
        "a derived table of judgments (<prefix>_payload_assessment_logs)",
        (("request_id",), ("text_assessment", "retrieval_assessment")),
        {
            "time": ("timestamp",),
            **_same("request_id", "source", "step_id", "text_assessment", "retrieval_assessment"),
        },
    ),
    Family(
        "request_logs",
        "a derived table of calls (<prefix>_payload_request_logs)",
        (("databricks_request_id",), ("request_raw", "response_raw")),
        {
            **_LEGACY,
            "request": ("request_raw",),
            "response": ("response_raw",),
            "request_text": ("request",),
            "response_text": ("response",),
            "session_id": ("conversation_id",),
        },
    ),
    Family(
        "ai_gateway",
        "an inference table of the AI Gateway (<prefix>_payload)",
        (
            ("databricks_request_id",),
            ("request", "response"),
            ("request_time", "execution_duration_ms", "logging_error_codes", "served_entity_id", "request_date"),
        ),
        {
            **_PAYLOAD,
            "time": ("request_time", "request_date"),
            "latency_ms": ("execution_duration_ms",),
            "served_entity": ("served_entity_id",),
        },
    ),
    Family(
        "legacy",
        "a legacy inference table of an endpoint (<prefix>_payload)",
        (
            ("databricks_request_id",),
            ("request", "response"),
            ("timestamp_ms", "execution_time_ms", "date", "request_metadata"),
        ),
        _LEGACY,
    ),
    Family(
        "unity_ai_gateway",
        "an inference table of the Unity AI Gateway",
        (("request", "response"), ("invocation_id", "event_time", "destination_model")),
        {
            **_PAYLOAD,
            "request_id": ("invocation_id", "databricks_request_id", "request_id"),
            "time": ("event_time", "request_time"),
            "latency_ms": ("latency_ms", "execution_duration_ms"),
            "served_entity": ("destination_model", "served_entity_id"),
        },
    ),
    Family(
        "search_traces",
        "a DataFrame of mlflow.search_traces()",
        (("trace",), ("trace_id", "request_id"), ("trace_metadata", "spans", "state", "request_time", "status")),
        _TRACES,
        own_trace=True,
    ),
    Family(
        "archived_traces",
        "an archived view of traces (one trace a row, its parts in columns)",
        (("trace_id",), ("spans",), ("state", "request_time", "trace_metadata", "trace_location")),
        _TRACES,
        own_trace=True,
    ),
)
"""In the order in which they are tried."""

MAPPED = Family("mapped", "a table whose columns you name (`columns`)", (), {}, payloads=False)
"""Bedrock, Vertex, SageMaker, LiteLLM and other logs: readable with a mapping, no more."""

Fields = tuple[tuple[str, str], ...]
"""Fields of a call, each with the column that holds it or a dotted path into its JSON."""

_OF_EVALUATION = frozenset(
    {
        *("expected_response", "expected_facts", "guidelines", "expected_retrieved_context", "retrieved_context"),
        *("expectations", "predicted_trajectory", "reference_trajectory"),
    }
)
"""Columns that no endpoint logs: a table with one of them is an evaluation dataset, whatever its other columns are."""


def find_family(name: str) -> Family:
    """The family of that name. Raises EvalSetError if there is none."""
    for family in (*TABLE_FAMILIES, MAPPED):
        if family.name == name:
            return family
    raise no_choice("format", name, [*(f.name for f in (*TABLE_FAMILIES, MAPPED)), "auto"])


def detect_family(columns: Sequence[str], fields: Fields = ()) -> tuple[Family, str]:
    """The family of a table with these columns, and the reason in words.

    Raises EvalSetError if there is none and `fields` has no request, response or trace either.
    """
    known = set(columns)
    for family in TABLE_FAMILIES:
        found = [next((n for n in group if n in known), None) for group in family.signs]
        if None not in found and not (family.own_trace and are_canonical(known)):
            return family, f"the columns {names(dict.fromkeys(found))}"
    if any(field in ("request", "response", "trace") for field, _ in fields):
        return MAPPED, f"no known columns; `columns` names {names(field for field, _ in fields)}"
    if known & _OF_EVALUATION:
        raise EvalSetError(
            f"this is an evaluation dataset, by the columns {names(n for n in columns if n in _OF_EVALUATION)}: "
            "run `agent-eval-schema validate` on it, or set the format if it is an inference table"
        )
    got = names(list(columns)[:12]) + (", …" if len(columns) > 12 else "")
    raise EvalSetError(
        f"no known inference table has these columns: {got}; set the format, or name the columns, for example "
        "columns={'body.input': 'request', 'body.output': 'response', 'id': 'request_id'}"
        if columns
        else "the table has no rows and therefore no columns to detect it by: check the export or its filter"
    )


def is_family(columns: Sequence[str]) -> bool:
    """Whether a table with these columns is of a family."""
    return any(all(not set(columns).isdisjoint(group) for group in family.signs) for family in TABLE_FAMILIES)


@lru_cache(maxsize=16)
def payload_table(columns: tuple[str, ...]) -> tuple[Family, str] | None:
    """The family of an inference table that is mistaken for an evaluation dataset, as it has a column `request` too,
    and the reason in words; None for any other table, and for one with whole traces, which are read directly.
    `event_time`, a sign of the Unity AI Gateway, may occur in any table."""
    known = set(columns) - {"event_time"}
    if known & _OF_EVALUATION:
        return None
    for family in TABLE_FAMILIES:
        signs = [[n for n in group if n in known] for group in family.signs]
        if all(signs) and not (family.own_trace and "trace" in known):
            return family, f"the columns {names(group[0] for group in signs)}"
    return None


def fields_of(columns: Mapping[str, str] | None) -> Fields:
    """`{"body.input": "request"}` → `(("request", "body.input"),)`. Raises EvalSetError for other fields."""
    if columns is None:
        return ()
    if not isinstance(columns, Mapping):
        raise EvalSetError(f"columns: expected a dict {{column of the table: field of a call}}; got {shown(columns)}")
    found: dict[str, str] = {}
    for path, field in columns.items():
        require_choice("columns", field, MAPPING_TARGETS)
        if field in found:
            raise EvalSetError(f"columns: expected one column for {field}; got {names([found[field], path])}")
        found[field] = path
    return tuple(found.items())


def locate(target: str, family: Family, fields: Fields, columns: Sequence[str]) -> tuple[str, tuple[str, ...]] | None:
    """Which column holds the target, and the path inside its JSON; None if no column of the table does.

    A column whose name is the whole path, dots and all, wins over a path into a column.
    """
    path = dict(fields).get(target)
    if path is None:
        column = next((n for n in family.columns.get(target, ()) if n in columns), None)
        return None if column is None else (column, ())
    keys = path.split(".")
    for end in range(len(keys), 0, -1):
        if (column := ".".join(keys[:end])) in columns:
            return column, tuple(keys[end:])
    return None
