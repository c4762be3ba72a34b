"""TABLE_FAMILIES: the tables in which endpoints log their calls, known by their columns, and which column holds what.

`inference_tables.json` has them.

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
from agent_eval_schema.runtime.tables import packaged
from agent_eval_schema.schema import are_canonical
from agent_eval_schema.text.choices import no_choice, require_choice, shown
from agent_eval_schema.text.describe import names

TRACE_PARTS = (
    *("trace_id", "client_request_id", "request_time", "state", "execution_duration_ms", "trace_location"),
    *("trace_metadata", "tags", "assessments", "spans"),
)
"""The columns of an archived view from which a trace is put together; previews are not among them."""


class Family(Struct, frozen=True, forbid_unknown_fields=True):
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


class _Tables(Struct, frozen=True, forbid_unknown_fields=True):
    targets: dict[str, str]
    families: tuple[Family, ...]


_TABLES = packaged(__package__, "inference_tables.json", _Tables)

MAPPING_TARGETS = _TABLES.targets
"""The fields of a call that a table can have: the names that `columns` gives to columns of the table."""

TABLE_FAMILIES = _TABLES.families
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
        matches = [next((n for n in group if n in known), None) for group in family.signs]
        if None not in matches and not (family.own_trace and are_canonical(known)):
            return family, f"the columns {names(dict.fromkeys(matches))}"
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
    paths: dict[str, str] = {}
    for path, field in columns.items():
        require_choice("columns", field, MAPPING_TARGETS)
        if field in paths:
            raise EvalSetError(f"columns: expected one column for {field}; got {names([paths[field], path])}")
        paths[field] = path
    return tuple(paths.items())


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
