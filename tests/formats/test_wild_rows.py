"""Wild variations of flat rows: whatever the writer of DeepEval, Ragas, OpenAI evals, Vertex AI or LangSmith can write,
in any version and any kind of file, is detected, valid, and converted there and back equal or with a loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_eval_schema import convert_eval_set, validate_eval_set
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.validation.report import summary_of
from tests.helpers.wild import EXAMPLES, NAMES, OBJECTS, VALUES, WORDS, camel, files_of, optional, write

Row = dict[str, Any]
Rows = st.SearchStrategy[list[Row]]

many = settings(
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
pytestmark = pytest.mark.property

TEXTS = WORDS.filter(lambda text: text[0] not in "[{" and "|" not in text)
MORE = st.dictionaries(NAMES.map(lambda name: f"x_{name}"), VALUES, max_size=2)
"""Columns and keys of the user's own."""
UUIDS = st.uuids().map(str)
LISTS = st.lists(TEXTS, max_size=3)


@st.composite
def with_more(draw: st.DrawFn, rows: st.SearchStrategy[Row]) -> Row:
    return {**draw(rows), **draw(MORE)}


def spelled(rows: st.SearchStrategy[Row], keys: Callable[[str], str]) -> st.SearchStrategy[Row]:
    return rows.map(lambda row: {keys(name): value for name, value in row.items()})


# ---------------------------------------------------------------------------------------------------------------------
# DeepEval
TOOLS = st.lists(
    optional({"name": NAMES}, type=st.just("FUNCTION"), description=WORDS, output=VALUES, reasoning=WORDS).flatmap(
        lambda tool: st.sampled_from(["inputParameters", "input_parameters"]).flatmap(
            lambda key: st.fixed_dictionaries({**{k: st.just(v) for k, v in tool.items()}}, optional={key: OBJECTS})
        )
    ),
    max_size=2,
)
SOURCED = st.lists(TEXTS | TEXTS.map(lambda text: f"deepeval_source=a.md,deepeval_context={text}"), max_size=2)
OF_GOLDEN: dict[str, st.SearchStrategy[Any]] = {
    "context": LISTS,
    "additional_metadata": OBJECTS,
    "comments": WORDS,
    "custom_column_key_values": st.dictionaries(NAMES, WORDS, max_size=1),
    "expectations": optional({"must": LISTS}, must_not=LISTS),
}
GOLDENS = optional(
    {"input": TEXTS, "expected_output": TEXTS},
    actual_output=WORDS,
    retrieval_context=SOURCED,
    tools_called=TOOLS,
    expected_tools=TOOLS,
    source_file=WORDS,
    token_cost=st.floats(0, 9),
    input_token_count=st.integers(0, 9),
    **OF_GOLDEN,
)
TURNS = st.lists(
    optional(
        {"role": st.sampled_from(["user", "assistant"]), "content": TEXTS},
        tools_called=TOOLS,
        retrieval_context=LISTS,
        user_id=NAMES,
    ),
    max_size=4,
)
CONVERSATIONS = optional(
    {"scenario": TEXTS, "turns": st.none() | TURNS}, expected_outcome=TEXTS, user_description=WORDS, **OF_GOLDEN
)
DEEPEVAL = st.one_of(
    st.lists(with_more(GOLDENS), min_size=1, max_size=3, unique_by=str),
    st.lists(with_more(spelled(GOLDENS, camel)), min_size=1, max_size=3, unique_by=str),
    st.lists(with_more(CONVERSATIONS), min_size=1, max_size=3, unique_by=str),
)

# ---------------------------------------------------------------------------------------------------------------------
# Ragas
SAMPLES = optional(
    {"user_input": TEXTS},
    response=TEXTS,
    reference=TEXTS,
    retrieved_contexts=LISTS,
    reference_contexts=LISTS,
    rubrics=st.dictionaries(NAMES, WORDS, max_size=1),
    multi_responses=LISTS,
    persona_name=WORDS,
)
OLDER = optional(
    {"question": TEXTS, "contexts": LISTS},
    answer=TEXTS,
    ground_truth=TEXTS,
    ground_truths=st.lists(TEXTS, min_size=1, max_size=2),
    evolution_type=NAMES,
    metadata=st.lists(OBJECTS, max_size=1),
)
RAGAS_CALLS = st.lists(st.fixed_dictionaries({"name": NAMES, "args": OBJECTS}), max_size=2)
ASKED = optional({"type": st.just("human"), "content": TEXTS}, metadata=OBJECTS)
DONE = optional({"type": st.just("ai"), "content": TEXTS}, tool_calls=RAGAS_CALLS)
CHATS = optional(
    {"user_input": st.tuples(ASKED, st.lists(DONE, max_size=2)).map(lambda said: [said[0], *said[1]])},
    reference=TEXTS,
    reference_tool_calls=RAGAS_CALLS,
    reference_topics=LISTS,
)
RAGAS = st.one_of(
    *(st.lists(with_more(rows), min_size=1, max_size=3, unique_by=str) for rows in (SAMPLES, OLDER, CHATS))
)

# ---------------------------------------------------------------------------------------------------------------------
# OpenAI evals, Vertex AI, LangSmith
ITEMS = st.fixed_dictionaries(
    {"ticket_text": TEXTS}, optional={"correct_label": VALUES, "tier": VALUES, "tags": VALUES, "error": VALUES}
)
MESSAGES = st.lists(st.fixed_dictionaries({"role": st.just("user"), "content": TEXTS}), min_size=1, max_size=2)
SAMPLED = optional({}, output_text=WORDS, model=NAMES, output_json=VALUES)
OPENAI = st.one_of(
    st.lists(with_more(optional({"item": with_more(ITEMS)}, sample=SAMPLED)), min_size=1, max_size=3, unique_by=str),
    st.lists(with_more(optional({"input": MESSAGES, "ideal": TEXTS | st.lists(TEXTS, min_size=1)})), min_size=1),
)

VERTEX_CALLS = st.lists(
    st.fixed_dictionaries({"tool_name": NAMES, "tool_input": OBJECTS | TEXTS | st.integers()}), min_size=1, max_size=2
)
COMPUTED = optional({"predicted_trajectory": VERTEX_CALLS}, reference_trajectory=VERTEX_CALLS, response=TEXTS)
PROMPTED = optional(
    {"prompt": TEXTS},
    response=TEXTS,
    reference=TEXTS,
    reference_trajectory=VERTEX_CALLS,
    latency_in_seconds=st.floats(0, 9),
    failure=st.integers(0, 1),
)
VERTEX = st.one_of(*(st.lists(with_more(rows), min_size=1, max_size=3, unique_by=str) for rows in (COMPUTED, PROMPTED)))

EXAMPLES = optional(
    {"inputs": st.dictionaries(NAMES, VALUES, max_size=3) | st.fixed_dictionaries({"question": TEXTS}), "id": UUIDS},
    outputs=OBJECTS | st.fixed_dictionaries({"answer": TEXTS}),
    metadata=OBJECTS,
    created_at=st.just("2026-11-01T00:00:00Z"),
    source_run_id=UUIDS,
).map(lambda row: {**row, "dataset_id": "3f1c7a52-0000-4000-8000-00000000000a"})
LANGSMITH = st.lists(with_more(EXAMPLES), min_size=1, max_size=3, unique_by=lambda row: row["id"])

# ---------------------------------------------------------------------------------------------------------------------
# MLflow
ASKED_OF_AN_APP = st.one_of(
    st.fixed_dictionaries({"question": TEXTS}),
    st.fixed_dictionaries({"messages": MESSAGES}, optional={"temperature": st.floats(0, 1), "thread": VALUES}),
    st.fixed_dictionaries({"query": TEXTS}, optional={"history": st.just([])}),
    st.fixed_dictionaries({"request": st.fixed_dictionaries({"messages": MESSAGES})}),
    st.fixed_dictionaries(
        {"input": st.lists(st.fixed_dictionaries({"role": st.just("user"), "content": TEXTS}), min_size=1)}
    ),
    OBJECTS,
)
ANSWERED = st.one_of(
    TEXTS,
    VALUES,
    st.fixed_dictionaries({"response": TEXTS}),
    TEXTS.map(lambda text: {"choices": [{"message": {"role": "assistant", "content": text}}]}),
    TEXTS.map(lambda text: {"messages": [{"role": "assistant", "content": text}]}),
)
MLFLOW_CALLS = st.lists(
    st.sampled_from(["arguments", "args"]).flatmap(
        lambda key: st.fixed_dictionaries({"name": NAMES}, optional={key: OBJECTS})
    ),
    max_size=2,
)
EXPECTED = st.fixed_dictionaries(
    {},
    optional={
        "expected_response": TEXTS,
        "expected_facts": st.lists(TEXTS, min_size=1, max_size=2),
        "guidelines": st.lists(TEXTS, min_size=1, max_size=2),
        "expected_tool_calls": MLFLOW_CALLS,
        "expected_retrieved_context": st.lists(st.fixed_dictionaries({"doc_uri": NAMES}), min_size=1, max_size=2),
        "x_expected": VALUES,
    },
).filter(lambda expected: not {"expected_response", "expected_facts"} <= expected.keys())
"""A judge of mlflow refuses to be given both truths."""
MLFLOW = st.lists(
    with_more(
        optional(
            {"inputs": ASKED_OF_AN_APP},
            outputs=ANSWERED,
            expectations=EXPECTED,
            tags=st.dictionaries(NAMES, WORDS, max_size=2),
        )
    ),
    min_size=1,
    max_size=3,
    unique_by=str,
)

WRITERS: dict[str, Rows] = {
    "deepeval": DEEPEVAL,
    "ragas": RAGAS,
    "openai": OPENAI,
    "vertex": VERTEX,
    "langsmith": LANGSMITH,
    "mlflow": MLFLOW,
}


@pytest.mark.parametrize("format", WRITERS)
@given(data=st.data())
@many
def test_rows_in_the_wild(tmp_path: Path, format: str, data: st.DataObject) -> None:
    path = write(tmp_path, *data.draw(WRITERS[format].flatmap(files_of)))
    report = validate_eval_set(path)
    assert report.format == format, summary_of(report).format_reason
    assert report.ok, report.to_text()
    made = convert_eval_set(path, format)
    if made.lossless:
        again = validate_eval_set(made.data)
        assert (again.format, again.ok) == (format, True), summary_of(again).format_reason
        assert says_all(again.iter_rows(), report.iter_rows())
    other = data.draw(st.sampled_from(["databricks", "mlflow", "langsmith"]))
    there = convert_eval_set(path, other)
    if there.lossless and there.given:
        # an example of LangSmith keeps its other columns, by which it would be known among rows of MLflow as well
        asked = other if {format, other} == {"langsmith", "mlflow"} else "auto"
        back = validate_eval_set(there.data, format=asked, ignore=["AE223"])  # which not every platform asks
        assert (back.format, back.ok) == (other, True), summary_of(back).format_reason
        assert says_all(back.iter_rows(), report.iter_rows())


def says_all(rows: Iterator[Row], others: Iterator[Row]) -> bool:
    """Whether rows say what the others say, in the columns that metrics read."""
    for row, other in zip(rows, others, strict=True):
        for name, value in other.items():
            if name in READ and value not in (None, {}, []):
                assert row[name] == value, name
    return True


READ = [name for name in COLUMNS if name not in ("inputs", "outputs", "expectations", "trace")]
