"""The Databricks format, whose columns are canonical: how a canonical row is written in it.

A request or response that the format can represent with all its keys is written whole: `request` is then the source's
own object, and there is no `inputs`.
"""

from collections.abc import Mapping
from itertools import product
from typing import Any

from agent_eval_schema.decoding import chat
from agent_eval_schema.decoding.requests import KEYS
from agent_eval_schema.formats.detection import Signs
from agent_eval_schema.formats.format import Format, Writer
from agent_eval_schema.formats.inference_tables import TABLE_FAMILIES
from agent_eval_schema.rules.pages import EVALUATION_SCHEMA
from agent_eval_schema.schema import COLUMNS


def write_databricks(row: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a canonical row that have a value."""
    result = {name: value for name, value in row.items() if value is not None and name in _COLUMNS}
    for view, name, holds in _WHOLE:
        if name in result and view in result and holds(result[name]):
            result[view] = result.pop(name)
    return result


GUIDELINES_CONTEXT = "guidelines_context"
"""The column that the judge of guidelines reads in place of the response; it is passed through."""

_COLUMNS = frozenset((*COLUMNS, GUIDELINES_CONTEXT))


def _is_request(inputs: Any) -> bool:
    return isinstance(inputs, dict) and ("messages" in inputs) != ("query" in inputs) and not set(inputs) <= set(KEYS)


_WHOLE = (("request", "inputs", _is_request), ("response", "outputs", chat.is_chat_object))
"""A column, the original that it can hold, and which values of it the form reads as such."""

_LOGS = (group for f in TABLE_FAMILIES if f.name != "search_traces" for group in product(*f.signs))

DATABRICKS = Format(
    name="databricks",
    title="Databricks Agent Evaluation",
    summary="the Databricks Agent Evaluation schema, which is also the canonical one",
    page=EVALUATION_SCHEMA,
    signs=Signs(
        sure=(("request",),),
        likely=(
            *((name,) for name in ("trace", "expected_response", "expected_facts", "guidelines", "custom_expected")),
            *((name,) for name in ("retrieved_context", "expected_retrieved_context")),
            *_LOGS,  # which validation recognizes by their columns, and reports
        ),
        columns=frozenset(COLUMNS),
        complete=True,
        spelled=True,
    ),
    passthrough_columns=(GUIDELINES_CONTEXT,),
    instead_of_response=(),
    writer=Writer(write_databricks, COLUMNS),
)
