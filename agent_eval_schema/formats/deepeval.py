"""DeepEval: goldens, test cases and conversational goldens.

    input, actual_output, expected_output            request, response, expected_response
    context, retrieval_context                       expected_retrieved_context, retrieved_context
    tools_called, expected_tools                     predicted_trajectory, reference_trajectory
    scenario, turns, expected_outcome                a conversation: the last question, the answer, the reference
    additional_metadata, tags                        tags

Names of columns and keys may be in camelCase, as Confident AI and DeepEval's own models write them. In a cell of text,
documents are separated by `|`, and names of tools by `;`. Source: deepeval 4.3.1 (`dataset`, `test_case`), which reads
and writes the files in tests/data/platforms/deepeval.
"""

import re
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from agent_eval_schema.formats.detection import Signs, each_with
from agent_eval_schema.formats.format import Field, Format, Nested, Row, Writer
from agent_eval_schema.formats.kept import dropped_of, inspect_kinds
from agent_eval_schema.formats.shapes import (
    all_in,
    all_of,
    has_entries,
    inspecting,
    lone_arguments,
    python_lists,
    question,
    read_calls,
    read_labels,
    read_texts,
    uri_of,
    with_camel,
    with_content,
    write_calls,
    write_labels,
    write_texts,
)
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules.columns import FORBIDDEN_COLUMN
from agent_eval_schema.rules.tools import MISSING_TOOL_NAME
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.jsontext import listed, structured

SEPARATOR, TOOL_SEPARATOR = "|", ";"
_python_lists = python_lists("context", *with_camel("retrieval_context"), "turns")
_SOURCED = re.compile(r"deepeval_source=(?P<source>.*?),deepeval_context=(?P<context>.*)")
"""How a document with a source is written: its text may have no line break."""


def _read_documents(value: Any) -> Any:
    texts = listed(value)
    if isinstance(texts, str):
        texts = texts.split(SEPARATOR) if texts else []
    return [document for text in texts for document in _documents(text)] if isinstance(texts, list) else texts


def _documents(text: Any) -> list[Any]:
    """The document of a text; none of a blank one."""
    if isinstance(text, dict) and text.keys() == {"context", "source"}:
        return [{"doc_uri": text["source"], "content": text["context"]}]
    found = _SOURCED.fullmatch(text) if isinstance(text, str) else None
    if found is not None:
        return [{"doc_uri": found["source"], "content": found["context"]}]
    return list(read_texts([text]))


def _write_retrieved(documents: list[dict[str, Any]]) -> list[str] | None:
    return [_sourced(d) or d["content"] for d in with_content(documents)] or (None if documents else [])


def _sourced(document: dict[str, Any]) -> str | None:
    uri, content = document["doc_uri"], document["content"]
    if uri is None or content is None or uri == uri_of(content):
        return None
    text = f"deepeval_source={uri},deepeval_context={content}"
    return text if _documents(text) == [document] else None


_read_named_calls = read_calls("name", "input_parameters", "inputParameters")


def _read_calls(value: Any) -> Any:
    """Calls; of an older version, names alone."""
    calls = structured(value)
    if isinstance(calls, str):
        calls = [name.strip() for name in calls.split(TOOL_SEPARATOR)] if calls.strip() else []
    if isinstance(calls, list):
        calls = [{"name": call} if isinstance(call, str) else call for call in calls]
    return _read_named_calls(calls)


_CALLS = (_read_calls, write_calls("name", "input_parameters"))
_lone_arguments = lone_arguments("input_parameters", "tools_called", "expected_tools")


_OUTCOMES = with_camel("expected_outcome")
CONVERSATION = ("scenario", "turns", *_OUTCOMES)


def _either(turn: Row, *names: str) -> Any:
    return next((turn[name] for name in names if turn.get(name) is not None), None)


def _with_camel(*fields: Field) -> tuple[Field, ...]:
    """The fields, which have their names in camelCase too."""
    return tuple(replace(f, others=(*f.others, *with_camel(f.path)[1:])) for f in fields)


def _read_rest(source: Row, row: dict[str, Any]) -> None:
    """A conversation: the last question, after the turns before it, and the turns of the agent that follow. For a
    scenario without turns, which a model is yet to play, the scenario is the question. `expectations` are what must and
    must not be in the answer, for a metric of DeepEval."""
    turns = [t for t in all_of(source.get("turns")) if isinstance(t, dict)]
    end = max((i for i, t in enumerate(turns) if t.get("role") == "user"), default=len(turns) - 1) + 1
    done = turns[end:]  # by the agent, after the question
    calls = [call for t in done for call in _read_calls(_either(t, "tools_called", "toolsCalled")) or ()]
    documents = [_either(t, "retrieval_context", "retrievalContext") for t in done]
    values = {
        "response": next((t["content"] for t in reversed(done) if t.get("content") is not None), None),
        "predicted_trajectory": calls or None,
        "retrieved_context": next((_read_documents(d) for d in reversed(documents) if d), None),
    }
    if turns[:end]:
        values["request"] = {"messages": [{"role": t.get("role"), "content": t.get("content")} for t in turns[:end]]}
    elif source.get("scenario") is not None:
        values["request"] = source["scenario"]
    values["expected_response"] = _either(source, *_OUTCOMES)
    row.update({name: value for name, value in values.items() if value is not None and row.get(name) is None})
    metadata = structured(_either(source, "metadata", "additionalMetadata"))
    if metadata is not None and metadata != row.get("tags"):
        row["deepeval_additional_metadata"] = metadata
    wanted = structured(source.get("expectations"))
    if wanted is not None:
        row["custom_expected"] = {"expectations": wanted}


_EXPECTATIONS = {"must", "must_not", "mustNot", "model", "eval_mode"}
"""The keys of `Expectations`, which rejects any other. Those of Customer Engagement Suite are a list."""


def _write_rest(row: Row, written: dict[str, Any]) -> None:
    wanted = (row.get("custom_expected") or {}).get("expectations")
    if isinstance(wanted, dict) and wanted.keys() <= _EXPECTATIONS:
        written["expectations"] = wanted
    if row.get("scenario") is None:
        return
    # a row that comes from a conversation is written as one: its columns are passed through, and contain all of these
    for name in ("input", "actual_output", "expected_output", "retrieval_context", "tools_called"):
        written.pop(name, None)
    if row.get("turns") is None:
        written["turns"] = []  # by which it is known as a conversation


_OWN = (
    *("token_cost", "comments", "source_file", "custom_column_key_values", "expected_labels", "images_mapping"),
    *("multimodal", "flaky", "persona", "user_description", "chatbot_role", "mcp_servers"),
    *("mcp_tools_called", "mcp_resources_called", "mcp_prompts_called", "id"),
    *("success", "metrics_data", "run_duration", "evaluation_cost", "order"),
)
"""Columns of a golden or a test case that are not reported."""

_BESIDE_INPUT = with_camel(
    *("actual_output", "expected_output", "expected_tools", "tools_called", "retrieval_context"),
    *("additional_metadata", "source_file"),
)
"""The columns by which an input is that of a golden or a test case."""


CASES = ("conversationalTestCases", "testCases", "test_cases")
"""The keys of the lists of test cases in the file of a test run."""


_is_run = has_entries(CASES, "input", "turns", "scenario", empty=True)


def _lone_names(source: Row) -> Iterator[Finding]:
    """Tools that are named by a text alone, which the model of DeepEval rejects."""
    for name in ("expected_tools", "expectedTools", "tools_called", "toolsCalled"):
        for i, call in enumerate(all_of(source.get(name))):
            if isinstance(call, str):
                message = f"expected an object with `name`, got {describe(call)}: DeepEval rejects it"
                yield Finding(MISSING_TOOL_NAME, message, name, f"{name}[{i}]", 'Write each tool as `{"name": "..."}`.')


def _rejected_expectations(source: Row) -> Iterator[Finding]:
    wanted = structured(source.get("expectations"))
    if wanted is not None and not (isinstance(wanted, dict) and wanted.keys() <= _EXPECTATIONS):
        message = f"expected an object with {', '.join(sorted(_EXPECTATIONS))} alone, got {describe(wanted)}"
        yield Finding(FORBIDDEN_COLUMN, message, "expectations", hint="Write other keys into `additional_metadata`.")


def cases_of_run(run: Row) -> Iterator[tuple[dict[str, Any], tuple[()]]]:
    for case in all_in(run, CASES):
        yield (case if isinstance(case, dict) else {"input": case}), ()


def as_csv_cells(row: Row) -> dict[str, Any]:
    """A row as DeepEval reads it in a CSV file: documents are not a list there, but joined."""
    joined = {name: SEPARATOR.join(row[name]) for name in ("context", "retrieval_context") if row.get(name)}
    return {**row, **joined}


_SPOKEN, _GOLDEN = "conversational golden", "golden"
_inspect_kinds = inspect_kinds("deepeval", lambda source: _GOLDEN if source.get("scenario") is None else _SPOKEN)

DEEPEVAL = Format(
    name="deepeval",
    title="DeepEval",
    summary="goldens and test cases of DeepEval: input, actual_output, expected_output; scenario, turns",
    page="https://deepeval.com/docs/evaluation-test-cases",
    truth_of="A conversation is one row: `expected_outcome` belongs to the answer to its last question.",
    signs=Signs(
        sure=(
            *each_with("input", *_BESIDE_INPUT),
            *each_with("scenario", *CONVERSATION[1:]),
            *each_with("turns", *_OUTCOMES),
            *each_with("scenario", "user_description", "userDescription", "persona", "chatbot_role"),
            *each_with("turns", "chatbot_role", "chatbotRole"),
        ),
        likely=(("input", "context"),),
        never=frozenset({"request"}),
        # the columns of a conversation are passed through into other formats, which have their own for the question
        test=lambda names: "input" in names or not {"inputs", "prompt", "user_input", "item"}.intersection(names),
    ),
    fields=_with_camel(
        Field("name", "request_id"),
        Field("input", "request", write=question),
        Field("actual_output", "response"),
        Field("expected_output", "expected_response"),
        Field("context", "expected_retrieved_context", _read_documents, write_texts),
        Field("retrieval_context", "retrieved_context", _read_documents, _write_retrieved),
        Field("tools_called", "predicted_trajectory", *_CALLS),
        Field("expected_tools", "reference_trajectory", *_CALLS),
        Field("completion_time", "latency_seconds"),
        Field("input_token_count", "input_token_count"),
        Field("output_token_count", "output_token_count"),
        Field("additional_metadata", "tags", read_labels, write_labels, ("metadata",), "tags"),
    ),
    passthrough_columns=(*with_camel(*_OWN), *CONVERSATION),
    read_rest=_read_rest,
    write_rest=_write_rest,
    extra_columns=("expectations",),
    places={"custom_expected": "expectations"},
    originals=("additional_metadata",),
    inspect_row=inspecting(_python_lists, _lone_arguments, _lone_names, _inspect_kinds, _rejected_expectations),
    inspected=(*CONVERSATION, *dropped_of("deepeval", _GOLDEN), *dropped_of("deepeval", _SPOKEN)),
    outputs=("response", "trace", "retrieved_context", "predicted_trajectory"),
    nested=(Nested(_is_run, cases_of_run, columns=("input", "actualOutput"), lists=CASES),),
    one_kind=("scenario", _SPOKEN, _GOLDEN),
    writer=Writer(cells=as_csv_cells),
)
