"""LangSmith: examples of a dataset, whose outputs are the reference.

    inputs                         request; the object itself is kept
    outputs, reference_outputs     expected_response, other expectations by MLflow's names, custom_expected; where a row
                                   has both, as an evaluator gets them, outputs are the response. Lists of messages,
                                   as evaluators of agentevals get them, have the request and the tool calls, too
    metadata                       tags; kept in addition where it contains other values than strings
    id                             request_id, if it is a UUID; any other is written into the metadata

Source: langsmith 0.15 (`schemas.Example`, `schemas.ExampleCreate`, which take any object as inputs and outputs).
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from agent_eval_schema.decoding import chat
from agent_eval_schema.decoding.columns import SHAPES
from agent_eval_schema.formats.detection import Signs, each_with
from agent_eval_schema.formats.format import Field, Format, Head, Nested, Row, Unfolded, Writer, identity
from agent_eval_schema.formats.mlflow import EXPECTATIONS, TOOL_CALLS, WORDS, calls_as_ours, whole
from agent_eval_schema.formats.shapes import after_question, as_tags, as_text, calls_in, id_of_tags, write_calls
from agent_eval_schema.text.jsontext import as_object, parse_leniently, structured

_OUTPUTS = ("outputs", "reference_outputs")


def _read_rest(source: Row, row: dict[str, Any]) -> None:
    row["inputs"] = structured(source.get("inputs"))
    reference, outputs = structured(source.get("reference_outputs")), structured(source.get("outputs"))
    for messages in (outputs, reference) if row["inputs"] is None else ():  # a trajectory, with its question
        if isinstance(messages, list) and (end := after_question(messages)):
            row["request"] = {"messages": messages[:end]}
            break
    if reference is not None and outputs is not None:
        row["outputs"], row["response"] = outputs, chat.read_answer(outputs)[0]
        row["predicted_trajectory"] = _calls_in(outputs)
    outputs = outputs if reference is None else reference
    row.update(expected_of(outputs))
    if (scores := structured(source.get("scores"))) is not None:
        row["custom_expected"] = {**row.get("custom_expected", {}), "scores": scores}
    row["latency_seconds"] = source.get("execution_time")
    id_of_tags(row)


def is_result_frame(names: Sequence[str], _: Head) -> bool:
    """Whether the columns are those of `ExperimentResults.to_pandas()`, where an object has a column per key."""
    others = ("outputs.", "reference.", "feedback.")
    return any(n.startswith("inputs.") for n in names) and any(n.startswith(others) for n in names)


def _row_of_result(row: Row) -> Iterator[Unfolded]:
    result = fold_dotted(row, ("inputs", "outputs", "reference", "feedback"))
    scores = {k: parse_leniently(v) if isinstance(v, str) else v for k, v in result.pop("feedback", {}).items()}
    columns = {"reference_outputs": result.pop("reference", None), "scores": scores or None}
    run = {"id": result.get("example_id"), "run_id": result.get("id")}
    yield {"inputs": None, **result, **columns, **{k: v for k, v in run.items() if v is not None}}, ()


def fold_dotted(row: Row, owners: Container[str]) -> dict[str, Any]:
    """The columns `inputs.question` … of objects as one value for each owner."""
    result: dict[str, Any] = {}
    for name, value in row.items():
        owner, dot, key = name.partition(".")
        if dot and owner in owners:
            result.setdefault(owner, {})[key] = value
        else:
            result[name] = structured(value)
    return result


def _calls_in(outputs: Any) -> list[dict[str, Any]] | None:
    return calls_in(outputs) if isinstance(outputs, list) or chat.is_chat_object(outputs) else None


def expected_of(outputs: Any) -> dict[str, Any]:
    """The outputs of an example are its ground truth: keys that a metric reads by their names, and the answer."""
    result: dict[str, Any] = {}
    remaining = dict(outputs) if isinstance(outputs, dict) else {"output": outputs} if outputs is not None else {}
    for name, column in EXPECTATIONS.items():
        value = _AS_OURS.get(name, identity)(remaining.get(name))
        # a text or a number in place of a list or an object is a key of its author's own
        if value is not None and (column not in SHAPES or isinstance(value, list | dict)):
            result[column] = value
            del remaining[name]
    answer, known = chat.read_answer(remaining)
    if known and answer is not None and result.keys().isdisjoint({"expected_response", "expected_facts"}):
        result["expected_response"] = answer
        remaining = {k: v for k, v in remaining.items() if v != answer and not chat.is_chat_object({k: v})}
    if "reference_trajectory" not in result and (calls := _calls_in(outputs)) is not None:
        result["reference_trajectory"] = calls
    rest = {k: v for k, v in remaining.items() if v is not None}
    return {**result, "custom_expected": rest} if rest else result


_AS_OURS = {TOOL_CALLS: calls_as_ours, "expected_response": as_text}


def asked_of(inputs: Any) -> Any:
    """The request in the inputs of an example."""
    value = structured(inputs)
    if not isinstance(value, Mapping):
        return value
    request = chat.read_inputs(dict(value))
    text = inputs if isinstance(inputs, str) else as_text(value)
    return {"messages": chat.user_message(str(text))} if request is None else request


def _write_rest(row: Row, written: dict[str, Any]) -> None:
    if row.get("request") is not None:
        written["inputs"] = whole(row, "inputs")
    if outputs := outputs_of(row):
        written["outputs"] = outputs
    identity = written.get("id")
    if identity is not None and not _is_uuid(identity):  # which LangSmith rejects as the ID of an example
        written["metadata"] = {**(written.get("metadata") or {}), "request_id": written.pop("id")}


def _is_uuid(text: str) -> bool:
    try:
        return bool(UUID(text))
    except ValueError:
        return False


def outputs_of(row: Row) -> dict[str, Any]:
    """The outputs of an example for the expectations of a row."""
    outputs = {"answer": row["expected_response"]} if row.get("expected_response") is not None else {}
    for name, column in EXPECTATIONS.items():
        if column not in ("expected_response", "reference_trajectory") and row.get(column) is not None:
            outputs[name] = row[column]
    calls = row.get("reference_trajectory")
    if isinstance(calls, list) and all(isinstance(c, dict) and {"tool_name", "tool_input"} <= c.keys() for c in calls):
        outputs[TOOL_CALLS] = write_calls("name", "arguments")(calls)
    return outputs | {k: v for k, v in as_object(row.get("custom_expected")).items() if k not in outputs}


_BESIDE_INPUTS = (
    *("dataset_id", "source_run_id", "example_id", "metadata", "modified_at", "reference_outputs", "attachments"),
)
"""The columns by which inputs are those of an example."""

LANGSMITH = Format(
    name="langsmith",
    title="LangSmith",
    summary="examples of LangSmith: inputs, outputs (the reference), metadata",
    page="https://docs.smith.langchain.com/evaluation/concepts",
    signs=Signs(
        sure=(*each_with("inputs", *_BESIDE_INPUTS), ("outputs", "reference_outputs")),
        never=frozenset({"expectations", "trace", "request", "tags", "session"}),
    ),
    fields=(Field("id", "request_id"), Field("inputs", "request", asked_of), Field("metadata", "tags", as_tags)),
    passthrough_columns=(
        *(*_BESIDE_INPUTS, "created_at", "split", "run_id", "runs"),
        *("use_source_run_io", "use_source_run_attachments"),
    ),
    request_columns=("attachments",),
    read_rest=_read_rest,
    write_rest=_write_rest,
    extra_columns=("outputs",),
    read_only_columns=("reference_outputs", "scores", "execution_time"),
    also_read="the DataFrame of `ExperimentResults.to_pandas()`",
    nested=(Nested(is_result_frame, _row_of_result, columns=("inputs", "example_id")),),
    places={
        "custom_expected": "outputs",
        **{column: f"outputs.{name}" for name, column in reversed(EXPECTATIONS.items())},
        "expected_response": "outputs",  # whatever its key is
    },
    cell_readers=WORDS,
    writer=Writer(marks={"metadata": {}}),
)
