"""Examples of datasets: an input, an expected output and metadata, under the names of each platform.

    langfuse      input  expectedOutput  metadata  id      dataset items
    braintrust    input  expected        metadata  id      rows of a dataset, with tags
    phoenix       input  output          metadata  id      examples of a dataset; the output is the reference
    inspect       input  target          metadata  id      samples
    pydantic      inputs expected_output metadata  name    cases of a dataset of Pydantic Evals

An input or an expected output is a text, or an object: its keys are read as those of LangSmith's examples are.
Sources: langfuse 5.0.4 and its server of 2026-08, braintrust 0.48.1, the client of Phoenix, inspect-ai 0.3.285,
pydantic-evals 2.20.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from string import ascii_uppercase
from typing import Any

from msgspec.structs import replace

from agent_eval_schema.decoding.chat import read_arguments
from agent_eval_schema.formats.detection import Signs, each_with
from agent_eval_schema.formats.documents import CaseList
from agent_eval_schema.formats.format import Field, Format, Head, Nested, Row, Unfolded, Writer, save_json
from agent_eval_schema.formats.langsmith import asked_of, expected_of, fold_dotted, outputs_of
from agent_eval_schema.formats.shapes import (
    LABELS,
    all_of,
    as_tags,
    as_text,
    has_entries,
    inspecting,
    objects_of,
    question_or_messages,
    read_labels,
    write_labels,
)
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules.ces import MORE_PAGES
from agent_eval_schema.rules.columns import FORBIDDEN_COLUMN, NOT_ACTIVE, UNKNOWN_COLUMN
from agent_eval_schema.rules.expectations import TARGET_NO_CHOICE
from agent_eval_schema.rules.requests import MESSAGE_REJECTED
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.jsontext import encode_text, python_value, structured

_EXPECTED = ("expected_response", "expected_facts", "guidelines", "expected_retrieved_context", "reference_trajectory")


def asked_in(value: Any) -> Any:
    """The request in an input: a text, a chat, or an object that contains one."""
    parsed = structured(value)
    return {"messages": parsed} if isinstance(parsed, list) else asked_of(value)


def rest_of(inputs: str, outputs: str, *, objects: bool = False) -> dict[str, Any]:
    """`read_rest` and `write_rest` of a format: what columns of inputs and outputs hold besides the request. Both are
    written as `objects` where the platform takes no other value."""

    def read(source: Row, result: dict[str, Any]) -> None:
        question = structured(source.get(inputs))
        if isinstance(question, dict) and question.keys() != {"messages"}:
            result["inputs"] = question
        expected = structured(source.get(outputs))
        if isinstance(expected, str):
            result["expected_response"] = expected
        elif expected is not None:
            result.update(expected_of(expected))

    def write(row: Row, written: dict[str, Any]) -> None:
        if isinstance(row.get("inputs"), dict):
            written[inputs] = row["inputs"]
        expected = outputs_of(row)
        alone = expected.keys() == {"answer"} and isinstance(expected["answer"], str)
        if expected or objects:
            written[outputs] = expected["answer"] if alone and not objects else expected
        question = written.get(inputs)
        if objects and question is not None and not isinstance(question, dict):
            written[inputs] = {"question" if isinstance(question, str) else "messages": question}

    return {"read_rest": read, "write_rest": write}


def _fields(inputs: str, outputs: str) -> tuple[Field, ...]:
    """The fields of a platform whose examples have these columns."""
    return (
        Field("id", "request_id", as_text),
        Field(inputs, "request", asked_in, question_or_messages),
        *(Field(outputs, column, _nothing, _nothing) for column in (*_EXPECTED, "custom_expected")),
        Field("metadata", "tags", as_tags),
    )


def _nothing(_: Any) -> None:
    """What the whole row decides."""


_NEVER = frozenset({"request", "inputs", "actual_output", "expected_output", "user_input", "prompt", "ideal"})
"""Signs of other formats that have an input, too."""

_OF_LOGS = frozenset(
    {"trace_id", "span_id", "run_id", "session_id", "record_id", "ts", "timestamp", "start_time", "latency", "duration"}
    | {"latency_ms", "model", "cost", "total_cost", "total_tokens", "prompt_tokens", "completion_tokens"}
)
"""Signs of logged calls: their output is what an agent answered, in a dataset it is the reference."""


# --- Langfuse
def _inspect_status(source: Row) -> Iterator[Finding]:
    if source.get("status") == "ARCHIVED":
        message = "expected an item that is ACTIVE, got ARCHIVED: Langfuse runs no experiment on it"
        yield Finding(NOT_ACTIVE, message, "status")


def is_page(names: Sequence[str], head: Head) -> bool:
    """Whether this is a page of items of the API: a list in `data` beside `meta`, or `data.examples` of Phoenix."""
    return "data" in names and any(_has_items(row) for row in head())


def _has_items(page: Row) -> bool:
    _, data = _data(page)
    items = map(structured, all_of(data) if isinstance(structured(page.get("data")), dict) or "meta" in page else ())
    return any(isinstance(item, dict) and ("input" in item or item.keys() >= _OF_ITEM) for item in items)


_OF_ITEM = frozenset({"id", "datasetId"})
"""Keys that an item of the API has, whatever was given for it."""


def _data(page: Row) -> tuple[str, Any]:
    """The path of the items of a page, and what is there."""
    data = structured(page.get("data"))
    return ("data.examples", data.get("examples")) if isinstance(data, dict) else ("data", data)


def rows_of_page(page: Row) -> Iterator[Unfolded]:
    """The items of a page; those of Phoenix have the ID of the node under another name."""
    path, data = _data(page)
    items, unread = objects_of(data, path) if "data" in page else ([], [])
    for finding in unread:
        yield {"input": None}, [finding]
    for item in map(structured, items):
        node = item.get("id") if item.get("node_id") is None else item["node_id"]
        yield {"input": None, **item, **({} if path == "data" else {"node_id": node})}, ()


def _more_pages(page: Row) -> Sequence[Finding]:
    """That more pages of Langfuse follow this one. Phoenix returns all examples at once."""
    meta = structured(page.get("meta"))
    number, pages = (meta.get("page"), meta.get("totalPages")) if isinstance(meta, dict) else (None, None)
    if not isinstance(number, int) or not isinstance(pages, int) or number >= pages:
        return ()
    return [Finding(MORE_PAGES, f"expected all {pages} pages, got none after page {number}", path="meta.totalPages")]


LANGFUSE = Format(
    name="langfuse",
    title="Langfuse",
    summary="items of a Langfuse dataset: input, expectedOutput, metadata",
    also_read='a page of the API, `{"data": [...], "meta": …}`',
    page="https://langfuse.com/docs/evaluation/experiments/datasets",
    signs=Signs(
        sure=(
            *each_with("input", "datasetId", "datasetName", "sourceTraceId", "sourceObservationId"),
            ("input", "expectedOutput", "status"),
        ),
        likely=(("input", "status"),),
        never=_NEVER,
    ),
    fields=_fields("input", "expectedOutput"),
    passthrough_columns=(
        *("status", "sourceTraceId", "sourceObservationId", "datasetId", "datasetName", "createdAt", "updatedAt"),
        *("mediaReferences", "projectId", "validFrom", "validTo"),
    ),
    **rest_of("input", "expectedOutput"),
    inspect_row=_inspect_status,
    inspected=("status",),
    nested=(Nested(is_page, rows_of_page, parts=("data",), columns=("input", "datasetId"), ends=_more_pages),),
    writer=Writer(marks={"status": "ACTIVE"}),
)


# --- Braintrust
def _read_tags(metadata: Any, labels: Any) -> Any:
    tags = read_labels(metadata, labels)
    return None if tags == {} else tags


BRAINTRUST = Format(
    name="braintrust",
    title="Braintrust",
    summary="rows of a Braintrust dataset: input, expected, metadata, tags",
    page="https://www.braintrust.dev/docs/annotate/datasets",
    signs=Signs(
        sure=(*each_with("input", "_xact_id", "_pagination_key", "root_span_id"), ("input", "expected", "metadata")),
        never=_NEVER,
    ),
    fields=(*_fields("input", "expected")[:-1], Field("metadata", "tags", _read_tags, write_labels, second=LABELS)),
    passthrough_columns=(
        *("_xact_id", "_pagination_key", "root_span_id", "span_id", "is_root", "created", "project_id"),
        *("dataset_id", "origin", "comments", "audit_data", "facets", "classifications"),
    ),
    **rest_of("input", "expected"),
    writer=Writer(marks={"metadata": {}}),
)

# --- Phoenix
_DOTTED = ("input", "output", "metadata")
_OF_OTHERS = _NEVER | _OF_LOGS | {"reference", "expected"}


def is_dotted(names: Sequence[str], _: Head) -> bool:
    """Whether the columns are those of Phoenix's CSV export, where an object has a column per key."""
    owners = {name.partition(".")[0] for name in names if "." in name}
    return owners >= {"input", "output"} and _OF_OTHERS.isdisjoint(names)


def _is_frame(names: Sequence[str], head: Head) -> bool:
    """Whether this is the CSV file of a DataFrame of Phoenix, whose objects are as Python writes them."""
    return {"input", "output", "metadata"} <= set(names) and any(python_value(row.get("input")) for row in head())


def row_of_frame(row: Row) -> Iterator[Unfolded]:
    """The objects that Python wrote, as values."""
    yield {name: (python_value(v) if name in _DOTTED else None) or v for name, v in row.items()}, ()


def row_of_dotted(row: Row) -> Iterator[Unfolded]:
    yield fold_dotted(row, _DOTTED), ()


_DATASET = CaseList(
    "examples",
    {"examples": []},
    text="input",
    mark="example_id",
    detect=lambda names, _: {"examples", "version_id"} <= set(names),
    of_document={name: f"dataset_{name}" for name in ("id", "name", "description", "metadata", "updated_at")},
)


PHOENIX = Format(
    name="phoenix",
    title="Phoenix",
    summary="examples of a Phoenix dataset: input, output (the reference), metadata",
    also_read=(
        'the CSV export (`input.question`), `{"data": {"examples": [...]}}`, `Dataset.to_dict()` and the CSV file of '
        "its DataFrame; its exports for OpenAI are read as `openai`"
    ),
    page="https://arize.com/docs/phoenix/datasets-and-experiments/how-to-datasets/exporting-datasets",
    signs=Signs(
        sure=tuple(("input", "output", name) for name in ("node_id", "splits", "example_id", "metadata")),
        likely=(("input", "output"),),
        never=_OF_OTHERS,
        note="where the output is the reference answer",
    ),
    fields=(Field("id", "request_id", as_text, others=("example_id",)), *_fields("input", "output")[1:]),
    passthrough_columns=("node_id", "splits", "updated_at", "version_id", "created_at", *_DATASET.of_document.values()),
    **rest_of("input", "output", objects=True),  # its client rejects other examples
    nested=(Nested(is_dotted, row_of_dotted), Nested(_is_frame, row_of_frame), _DATASET.nested),
)

# --- Inspect AI
_TARGETS = "target"


def _read_input(value: Any) -> Any:
    """A question or a chat; Inspect writes the function of a call as its name, beside the arguments."""
    messages = structured(value)
    if not isinstance(messages, list):
        return asked_in(value)
    return asked_in([_with_each(_with_each(m, "tool_calls", _openai_call), "content", _openai_part) for m in messages])


def _with_each(message: Any, key: str, convert: Callable[[Any, int], Any]) -> Any:
    """The message with the entries of a list in it converted, by the entry and its place."""
    entries = message.get(key) if isinstance(message, dict) else None
    return {**message, key: list(map(convert, entries, count()))} if isinstance(entries, list) else message


_PARTS: dict[Any, Sequence[str]] = {
    **{name: (name,) for name in ("text", "reasoning", "image", "document", "data")},
    **{name: (name, "format") for name in ("audio", "video")},
    "tool_use": ("tool_type", "id", "name", "arguments", "result"),
}
"""The types of the parts of a message, and the keys that each must have."""


def _is_part(part: Any) -> bool:
    return isinstance(part, dict) and all(key in part for key in _PARTS.get(str(part.get("type", "text")), ("\0",)))


def _openai_part(part: Any, _: int) -> Any:
    is_image = isinstance(part, dict) and part.keys() == {"type", "image"} and part["type"] == "image"
    return {"type": "image_url", "image_url": {"url": part["image"]}} if is_image else part


def _inspect_part(part: Any, _: int) -> dict[str, Any]:
    """A part as Inspect takes it: an image of OpenAI's chat, a text, or anything else as its JSON."""
    if _is_part(part):
        return dict(part)
    own = part if isinstance(part, dict) else {}
    image = own.get("image_url")
    url = image.get("url") if isinstance(image, dict) else image
    if isinstance(url, str):
        return {"type": "image", "image": url}
    return {"type": "text", "text": own["text"] if isinstance(own.get("text"), str) else encode_text(part)}


_ROLES = {"developer": "system", "function": "tool"}
"""The roles that Inspect does not have, and its own in their place."""


def _inspect_messages(source: Row) -> Iterator[Finding]:
    for i, message in enumerate(all_of(source.get("input"))):
        if not isinstance(message, dict):
            continue
        role, content = message.get("role"), message.get("content")
        if isinstance(role, str) and role in _ROLES:
            message = f"expected the role `{_ROLES[role]}`, got {describe(role)}"
            yield Finding(MESSAGE_REJECTED, message, "input", f"input[{i}].role")
        for k, part in enumerate(content if isinstance(content, list) else ()):
            if not _is_part(part):
                message = f"expected a part of a type that Inspect knows, with its keys, got {describe(part)}"
                yield Finding(MESSAGE_REJECTED, message, "input", f"input[{i}].content[{k}]")


def _openai_call(call: Any, _: int) -> Any:
    if not isinstance(call, dict) or not isinstance(call.get("function"), str):
        return call
    rest = {key: value for key, value in call.items() if key != "arguments"}
    return {**rest, "function": {"name": call["function"], "arguments": encode_text(call.get("arguments"))}}


def _write_input(request: Row) -> Any:
    """A question or a chat; Inspect rejects a message without content, also one that only calls tools."""
    question = question_or_messages(request)
    if isinstance(question, str):
        return question
    messages = [{**m, "role": _ROLES.get(m["role"], m["role"]), "content": m.get("content") or ""} for m in question]
    return [_with_each(_with_each(m, "tool_calls", _inspect_call), "content", _inspect_part) for m in messages]


def _inspect_call(call: Any, index: int) -> Any:
    """Inspect requires an ID, and arguments that are an object."""
    called = call.get("function") if isinstance(call, dict) else None
    if not isinstance(called, dict):
        return call
    arguments = read_arguments(called.get("arguments")) or {}
    return {"id": f"call_{index}", "type": "function", **call, "function": called.get("name"), "arguments": arguments}


def _first(target: Any) -> Any:
    values = structured(target)
    return (values[0] if values else None) if isinstance(values, list) else target


def _several(target: Any) -> Any:
    """Each of several targets is accepted: they stay together, too."""
    targets = structured(target)
    return {_TARGETS: targets} if isinstance(targets, list) and len(targets) > 1 else None


_LETTERS = f"{ascii_uppercase}123456789"
"""How Inspect calls the choices, in order."""


def _choices(value: Any) -> list[Any]:
    """The choices of a cell as Inspect reads them: it splits a text at its commas, or else at its blanks."""
    parsed = structured(value)
    if isinstance(parsed, str):
        parsed = parsed.split("," if "," in parsed else None)
    return [choice for choice in (parsed if isinstance(parsed, list) else [parsed]) if str(choice).strip()]


def _inspect_targets(source: Row) -> Iterator[Finding]:
    cell, targets = source.get("choices"), structured(source.get(_TARGETS))
    choices = [] if cell is None else _choices(cell)
    for target in (targets if isinstance(targets, list) else [targets]) if choices else ():
        if target is not None and str(target).upper() not in [*_LETTERS[: len(choices)]]:
            last = _LETTERS[: len(choices)][-1]
            message = f"expected the letter of a choice, `A` to `{last}`, got {describe(target)}"
            yield Finding(TARGET_NO_CHOICE, message, _TARGETS)


def _write_targets(row: Row, written: dict[str, Any]) -> None:
    targets = (row.get("custom_expected") or {}).get(_TARGETS)
    if isinstance(targets, list) and targets[:1] == [row.get("expected_response")]:
        written[_TARGETS] = targets


INSPECT = Format(
    name="inspect",
    title="Inspect",
    summary="samples of Inspect AI: input, target, choices, metadata",
    page="https://inspect.aisi.org.uk/datasets.html",
    signs=Signs(sure=(("input", "target"),), never=_NEVER - {"prompt"}),
    fields=(
        Field("id", "request_id", as_text),
        Field("input", "request", _read_input, _write_input),
        Field(_TARGETS, "expected_response", _first),
        Field(_TARGETS, "custom_expected", _several, _nothing),
        Field("metadata", "tags", as_tags),
    ),
    passthrough_columns=("choices", "sandbox", "files", "setup", "checkpoint"),
    request_columns=("choices", "files"),
    write_rest=_write_targets,
    inspect_row=inspecting(_inspect_targets, _inspect_messages),
    inspected=("choices",),
    writer=Writer(
        cells=lambda row: {**row, "metadata": row.get("metadata") or {}},  # Inspect cannot read an empty cell
        texts=("input", _TARGETS),  # a chat, or several targets, are one text to its reader of CSV files
    ),
)


# --- Pydantic Evals
_PYDANTIC_CASES = CaseList(
    "cases",
    {"cases": [], "report_evaluators": []},
    text="inputs",
    mark="expected_output",
    detect=has_entries(("cases",), "inputs"),
    of_document={"name": "dataset_name", "evaluators": "dataset_evaluators"},
)


def _forbidden(finding: Finding) -> Finding:
    """The class rejects a whole file for a column, or a key beside its rows, that it does not declare."""
    if finding.rule is not UNKNOWN_COLUMN:
        return finding
    message = f"expected a key that the class declares, got `{finding.column}`"
    return replace(finding, rule=FORBIDDEN_COLUMN, message=message)


PYDANTIC_EVALS: Format = Format(
    name="pydantic-evals",
    title="Pydantic Evals",
    summary="cases of Pydantic Evals: inputs, expected_output, metadata",
    also_read='`{"cases": [...]}` as JSON or YAML, and a case per line',
    page="https://ai.pydantic.dev/evals/",
    signs=Signs(
        sure=(("inputs", "expected_output"),),
        never=frozenset({"request", "outputs", "expectations", "actual_output", "input"}),
        needs=("cases",),
    ),
    fields=(Field("name", "request_id", as_text), *_fields("inputs", "expected_output")[1:]),
    passthrough_columns=("evaluators", "report_evaluators", "$schema", *_PYDANTIC_CASES.of_document.values()),
    **rest_of("inputs", "expected_output"),
    nested=(_PYDANTIC_CASES.nested,),
    adapt_issue=_forbidden,
    writer=Writer(document=lambda rows: _PYDANTIC_CASES.document(rows, PYDANTIC_EVALS), save=save_json),
)
