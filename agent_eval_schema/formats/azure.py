"""Azure AI Foundry: rows for the evaluators of azure-ai-evaluation.

    query                                     request: a question or a chat
    response                                  response; of messages the last text, their tool calls the trajectory
    context                                   retrieved_context, one text
    ground_truth                              expected_response; a list of tools: reference_trajectory
    tool_calls                                predicted_trajectory
    retrieved_documents, retrieval_ground_truth   retrieved_context, expected_retrieved_context by their ids
    {"conversation": {"messages": [...]}}     a row per answer, with the messages before it, and per open question
    {"messages": [...], "tool_definitions"}   the same
    {"item": {...}, "sample": {...}}          a row of an evaluation run: the item's columns, and the sample's response
    {"evaluators": [...], "data": [...]}      the file of microsoft/ai-agent-evals, the GitHub action: a row per query

Source: azure-ai-evaluation 1.18.10 (validators of the evaluators, `_converters`).
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from agent_eval_schema.decoding import chat
from agent_eval_schema.formats.detection import Signs, each_with
from agent_eval_schema.formats.documents import CaseList, with_truth
from agent_eval_schema.formats.format import Field, Format, Head, Nested, Row, Unfold, Unfolded, Writer
from agent_eval_schema.formats.roles import role_of
from agent_eval_schema.formats.shapes import (
    all_of,
    of_list,
    question_or_messages,
    read_context,
    text_only,
    write_context,
)
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules.columns import CONVERSATION_BESIDE
from agent_eval_schema.rules.dataset import MIXED_KINDS
from agent_eval_schema.text.jsontext import as_object, encode_text, structured

Calls = list[dict[str, Any]]


def _read_query(query: Any) -> Any:
    messages = structured(query)
    return {"messages": [_message(m) for m in messages]} if isinstance(messages, list) else query


def _message(message: Any) -> Any:
    """A message of a chat, whose parts may be calls and their results."""
    if not isinstance(message, dict):
        return message
    result = {k: v for k, v in message.items() if k not in _OF_A_RUN}
    parts = [p for p in all_of(message.get("content")) if isinstance(p, dict)]
    results = [p["tool_result"] for p in parts if "tool_result" in p]
    if results:
        return {**result, "content": results[0] if isinstance(results[0], str) else encode_text(results[0])}
    calls = [(p.get("tool_call_id") or p.get("call_id"), call) for p in parts if (call := _call(p)) is not None]
    content = chat.join_text(message.get("content"))
    if calls:
        result["tool_calls"] = [chat.function_call(c["tool_name"], c.get("tool_input") or {}, i) for i, c in calls]
        return {**result, "content": content if isinstance(content, str) else None}
    return {**result, "content": content} if "content" in result else result


_OF_A_RUN = ("createdAt", "run_id", "context")
"""Keys of a message that are not part of a chat."""


def _call(part: Any) -> dict[str, Any] | None:
    """The call in a part of a message (`tool_call`, `function_call`, `mcp_call` …); None if it is none."""
    if not isinstance(part, dict) or not str(part.get("type")).endswith("_call"):
        return None
    inner = part.get("tool_call") or part
    inner = inner.get("function") or inner if isinstance(inner, dict) else {}
    if not isinstance(inner, dict) or "name" not in inner:
        return None
    arguments = structured(inner.get("arguments"))
    return {"tool_name": inner["name"], **({} if arguments is None else {"tool_input": arguments})}


def _answer(response: Any) -> Any:
    """The last text of the agent; None if it only called tools."""
    value = structured(response)
    if not isinstance(value, list):
        return response
    messages = [m for m in value if isinstance(m, dict)]
    return chat.read_answer([*messages, {}])[0] if len(messages) == len(value) else value


def _calls_made(response: Any) -> Calls | None:
    messages = [message for message in all_of(response) if isinstance(message, dict)]
    calls = [_call(part) for message in messages for part in (message, *all_of(message.get("content")))]
    return [call for call in calls if call is not None] or None


def _write_calls(calls: Calls) -> Calls:
    return [
        {"type": "tool_call", "tool_call_id": f"call_{i}", "name": c["tool_name"], "arguments": c["tool_input"] or {}}
        for i, c in enumerate(calls, 1)
    ]


def _expected_calls(truth: Any) -> Any:
    """The tools that an agent is expected to call: names, or names and their arguments."""
    tools = structured(truth)
    if not isinstance(tools, list):
        return None
    names, arguments = tools, {}
    if len(tools) == 2 and isinstance(tools[0], list):
        names, arguments = tools[0], tools[1] if isinstance(tools[1], dict) else {}
    inputs = [{"tool_input": arguments[n]} if isinstance(n, str) and n in arguments else {} for n in names]
    return [{"tool_name": name, **tool_input} for name, tool_input in zip(names, inputs, strict=True)]


def _write_expected(calls: Calls) -> Any:
    names = [c["tool_name"] for c in calls]
    arguments = {c["tool_name"]: c["tool_input"] for c in calls if c["tool_input"]}
    return [names, arguments] if arguments else names


def _document(document: Any) -> Any:
    if not isinstance(document, dict) or "document_id" not in document:
        return document
    return {"doc_uri": str(document["document_id"])}


def _is_relevant(document: Any) -> bool:
    label = document.get("query_relevance_label") if isinstance(document, dict) else None
    return not isinstance(label, int | float) or label > 0


def _relevant_documents(value: Any) -> Any:
    parsed = structured(value)
    return of_list(_document)(list(filter(_is_relevant, parsed)) if isinstance(parsed, list) else parsed)


def _write_ids(documents: list[dict[str, Any]]) -> Any:
    if any(d["content"] is not None for d in documents):
        return None
    return [{"document_id": d["doc_uri"]} for d in documents]


def _write_labels(documents: list[dict[str, Any]]) -> Any:
    return [{"document_id": d["doc_uri"], "query_relevance_label": 1} for d in documents]


def _is_conversation(names: Sequence[str], head: Head) -> bool:
    conversations = (structured(row.get("conversation")) for row in head()) if "conversation" in names else ()
    return any(isinstance(conversation, dict) and conversation.get("messages") for conversation in conversations)


def turns_of_conversations(are_bare: bool = False) -> Unfold:
    """A row per answer of a conversation, and one for a question after the last answer, which has no response. A row
    with its own question or answer is a row, too, whether there is a conversation beside them or not. Rows of bare
    conversations have the messages themselves."""
    count = 0
    kinds: set[bool] = set()

    def turns(row: Row) -> Iterator[Unfolded]:
        nonlocal count
        if are_bare:
            others = {name: value for name, value in row.items() if name != "messages"}
            row = {**others, "conversation": {"messages": row.get("messages")}}
        conversation = as_object(structured(row.get("conversation")))
        messages = list(map(structured, all_of(conversation.get("messages"))))
        findings = []
        if bool(messages) not in kinds and kinds:
            what = "a conversation beside questions" if messages else "a question beside conversations"
            findings.append(Finding(MIXED_KINDS, f"expected rows of one kind, got {what}"))
        kinds.add(bool(messages))
        if "conversation" not in row or (not messages and _is_given(row)):
            yield dict(row), findings
            return
        if _is_given(row):
            if row.get("query") is not None or row.get("response") is not None:
                message = "expected `conversation`, or `query` and `response`, got both"
                findings.append(Finding(CONVERSATION_BESIDE, message, "conversation"))
            yield {k: v for k, v in row.items() if k != "conversation"}, findings
            row, findings = {k: v for k, v in row.items() if k not in _OF_LAST}, []
        count += 1
        truth = {k: v for k, v in row.items() if k in _OF_LAST}
        rows = with_truth(rows_of({k: v for k, v in row.items() if k not in truth}, messages), truth)
        yield from ((turn, [*notes, *(findings if i == 0 else ())]) for i, (turn, notes) in enumerate(rows))

    def rows_of(row: Row, messages: list[Any]) -> Iterator[Unfolded]:
        others = structured(row["conversation"])
        if isinstance(others, dict):
            others = {k: v for k, v in others.items() if k != "messages"}
        beside = {"session_id": f"conversation {count}", **row, "conversation": others}
        if not others:  # no evaluator reads the others: they are passed through, which is reported
            del beside["conversation"]
        answers = [i for i, m in enumerate(messages) if isinstance(m, dict) and m.get("role") == "assistant"]
        truths = {i: {TRUTH: messages[i][TRUTH]} for i in answers if messages[i].get(TRUTH) is not None}
        for i in truths:
            messages[i] = {k: v for k, v in messages[i].items() if k != TRUTH}
        after = answers[-1] + 1 if answers else 0
        is_asked = not answers or any(map(_is_user, messages[after:]))
        for i in answers:
            # the last one with the results of its calls
            answer = messages[i:] if i == answers[-1] and not is_asked else [messages[i]]
            context = messages[i].get("context") or _context_of(messages[:i], row)
            turn = {"query": messages[:i], "response": _text_or_messages(answer), "context": context}
            yield {**beside, **turn, **truths.get(i, {})}, ()
        if is_asked:
            yield {**beside, "query": messages or None, "response": None, "context": _context_of(messages, row)}, ()

    return turns


TRUTH = "ground_truth"
"""The column of the ground truth, and the key of a message that has its own, as the SDK reads it."""

_OF_LAST = frozenset({TRUTH, "retrieval_ground_truth", "retrieved_documents", "tool_calls"})
"""Columns of a conversation that are about its last answer, or about that of the row itself."""


def _is_given(row: Row) -> bool:
    return "query" in row or "response" in row


def _context_of(messages: Sequence[Any], row: Row) -> Any:
    """The context of the last question, else that of the row."""
    own = messages[-1].get("context") if messages and _is_user(messages[-1]) else None
    return own or row.get("context")


def _is_user(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") == "user"


def _text_or_messages(messages: Sequence[dict[str, Any]]) -> Any:
    """An answer: its text, or the messages if there is more in them."""
    content = messages[0].get("content")
    return content if isinstance(content, str) and len(messages) == 1 else list(messages)


def _is_run(names: Sequence[str], head: Head) -> bool:
    """Whether the rows are those of an evaluation run of Foundry, and not of OpenAI's, by the keys of the first."""
    if not {"item", "sample"} <= set(names):
        return False
    for row in head():
        item, sample = structured(row.get("item")), structured(row.get("sample"))
        if isinstance(sample, dict) and "output_items" in sample:
            return True
        if isinstance(item, dict) and "query" in item and not item.keys().isdisjoint(_OF_FOUNDRY):
            return True
    return False


_OF_FOUNDRY = ("context", "ground_truth", "tool_definitions", "tool_calls")


def row_of_run(row: Row) -> Iterator[Unfolded]:
    """The item's columns, and the response of the sample."""
    item, sample = structured(row.get("item")), structured(row.get("sample"))
    result = {k: v for k, v in row.items() if k not in ("item", "sample")}
    result |= item if isinstance(item, dict) else {"query": item}
    if isinstance(sample, dict):
        rest = dict(sample)
        items, text = rest.pop("output_items", None), rest.pop("output_text", None)
        result["response"] = items if items is not None else text
        if items is not None and text is not None and _answer(items) != text:
            rest["output_text"] = text
        sample = rest or None
    yield {**result, "sample": sample}, ()


def is_action_file(names: Sequence[str], head: Head) -> bool:
    """Whether this is a file of microsoft/ai-agent-evals: queries with evaluators, or with columns of Foundry."""
    if "data" not in names:
        return False
    queries = [q for row in head() for q in map(structured, all_of(row.get("data"))) if isinstance(q, dict)]
    of_foundry = "evaluators" in names or any(not q.keys().isdisjoint(_OF_FOUNDRY) for q in queries)
    return of_foundry and any("query" in query for query in queries)


_conversations = partial(Nested, columns=("query", "response"), counts=True, apart=True)

_EXECUTED = re.compile(r"(?im)^\s*#?\s*(?:system|user|assistant|function)\s*:\s*\n|!\[[^\]]*\]\(")
"""What the prompt of an evaluator, with the values in it, is split at: a message of its own, an image that is read
(azure-ai-evaluation 1.18.10)."""

AZURE = Format(
    name="azure",
    title="Azure AI Foundry",
    summary="rows for the evaluators of Azure AI Foundry: query, response, context, ground_truth",
    also_read=(
        '`{"conversation": …}` and `messages`: a row per answer, and for a question after the last one, as which they '
        "are also written; "
        '`{"item": …, "sample": …}` of an evaluation run; `{"name": …, "evaluators": …, "data": [...]}` of '
        "microsoft/ai-agent-evals"
    ),
    page="https://learn.microsoft.com/azure/ai-foundry/how-to/develop/evaluate-sdk",
    truth_of=(
        "Ground truth of a conversation belongs to its last answer; a message of the assistant with a `ground_truth` "
        "of its own has that one."
    ),
    signs=Signs(
        sure=(
            *each_with("query", "response", "ground_truth", "context", "tool_calls", "tool_definitions"),
            *each_with("query", "retrieval_ground_truth", "retrieved_documents"),
            ("retrieval_ground_truth", "retrieved_documents"),
            ("response", "ground_truth"),
        ),
        likely=(("response", "context"), ("response", "tool_definitions")),
        never=frozenset({"request", "inputs", "turn", "trace"}),
        test=lambda names: "query" in names or all(role_of(name).column != "request" for name in names),
    ),
    fields=(
        Field("query", "request", _read_query, question_or_messages),
        Field("response", "response", _answer),
        Field("ground_truth", "expected_response", lambda v: None if isinstance(structured(v), list) else v),
        Field("ground_truth", "reference_trajectory", _expected_calls, _write_expected),
        Field("context", "retrieved_context", read_context, write_context),
        Field("retrieved_documents", "retrieved_context", of_list(_document), _write_ids),
        Field("retrieval_ground_truth", "expected_retrieved_context", _relevant_documents, _write_labels),
        Field("tool_calls", "predicted_trajectory", of_list(lambda part: _call(part) or part), _write_calls),
        Field("response", "predicted_trajectory", _calls_made, lambda _: None),
        Field("session_id", "session_id", text_only),
    ),
    passthrough_columns=(
        *("tool_definitions", "sample", "test_case_description", "desired_num_turns"),
        *("dataset_name", "evaluators", "evaluator_parameters", "openai_graders", "data_mapping"),
    ),
    instead_of_request=("response", "expected_response", "expected_retrieved_context", "predicted_trajectory"),
    instead_of_response=("request", "predicted_trajectory", "expected_retrieved_context"),
    outputs=("response", "trace", "retrieved_context", "predicted_trajectory"),
    nested=(
        _conversations(
            _is_conversation, turns_of_conversations, parts=("conversation",), lists=("conversation.messages",)
        ),
        _conversations(
            lambda names, _: {"messages", "tool_definitions"} <= set(names),
            partial(turns_of_conversations, are_bare=True),
            parts=("messages",),
            lists=("messages",),
        ),
        Nested(_is_run, row_of_run, parts=("item", "sample"), columns=("query", "response")),
        CaseList("data", {"data": []}, text="query", mark="ground_truth", detect=is_action_file).nested,
    ),
    writer=Writer(executes=dict.fromkeys(("query", "response", "context", "ground_truth"), _EXECUTED)),
)
