"""Microsoft 365 Copilot evaluations: prompts and conversations of a dataset of its evaluations CLI.

    {"schemaVersion": "1.6.0", "default_evaluators": {…}, "items": [a prompt, or {"name", "turns": [prompts]}]}

    prompt                                           request, after the turns before it
    expected_response, response                      the same
    context                                          expected_retrieved_context, one text: people write it
    evaluators.ToolCallSelection.calls[].tool        reference_trajectory, names of tools (schema 2.0)
    name                                             session_id, request_id (#1, #2 … of several turns)
    tags                                             tags

A plain list of prompts, as version 1 of the CLI accepts it, is read too. What a run adds (scores, citations,
diagnostics, status) is passed through. Source: the pages on datasets, evaluators and tool-call evaluators of the CLI,
and its JSON Schema (microsoft/m365-copilot-eval, schema/v1).
"""

from collections.abc import Iterator, Sequence
from typing import Any

from agent_eval_schema.formats.detection import Signs
from agent_eval_schema.formats.documents import TURN, Conversations, shared_values, with_own_names
from agent_eval_schema.formats.format import Field, Format, Head, Row, Unfolded, Writer, lists_in, save_json
from agent_eval_schema.formats.shapes import (
    all_of,
    as_text,
    of_list,
    question,
    read_context,
    read_labels,
    write_context,
    write_labels,
)

_OF_DOCUMENT = ("schemaVersion", "default_evaluators", "default_allowed_tools", "metadata")
_OF_TURN = ("evaluators", "evaluators_mode", "allowed_tools", "citations", "scores", "diagnostics", "status")
_OF_VERSION_2 = ("ToolCallSelection", "ToolCallExecution")
"""The evaluators that need schema 2.0."""
_OF_THREAD = ("description", "conversation_id", "summary")


def _document(sessions: list[dict[str, Any]]) -> dict[str, Any]:
    """The dataset: what all sessions share is its own, and a lone prompt without a name is an item of its own."""
    shared = shared_values({key: [session.pop(key, None) for session in sessions] for key in _OF_DOCUMENT})
    items = [
        session["turns"][0] if len(session["turns"]) == 1 and session.keys() == {"turns"} else session
        for session in with_own_names(sessions, "name")
    ]
    evaluators = [turn.get("evaluators") for session in sessions for turn in session["turns"]]
    needs_2 = any(isinstance(entry, dict) and not entry.keys().isdisjoint(_OF_VERSION_2) for entry in evaluators)
    version = str(shared.pop("schemaVersion", "1.6.0"))
    return {"schemaVersion": "2.0.0" if needs_2 and version.startswith("1.") else version, **shared, "items": items}


_TURNS = Conversations(
    "turns",
    lambda turn: (turn.get("prompt"), turn.get("expected_response")),
    name="name",
    wrap=_document,
    of_turn=_OF_TURN,
)


def _has_items(names: Sequence[str], head: Head) -> bool:
    """Whether there are items with prompts or turns, or rows that are threads, and not the rows of anybody else."""
    rows = [row for row in head() if "schemaVersion" in row or "turns" in row] if "items" in names else []
    items = [item for row in rows for item in all_of(row.get("items")) if isinstance(item, dict)]
    is_empty = any("schemaVersion" in row and row.get("items") == [] for row in rows)
    return is_empty or any("prompt" in item or _is_thread(item) for item in items)


def _is_thread(item: Row) -> bool:
    return any(isinstance(turn, dict) and "prompt" in turn for turn in all_of(item.get("turns")))


def _unfold(document: Row) -> Iterator[Unfolded]:
    """The prompts of all items; of a thread each turn."""
    beside = {k: v for k, v in document.items() if k != "items"}
    for item in all_of(document.get("items")):
        row = {**beside, **(item if isinstance(item, dict) else {"prompt": item})}
        if "turns" in row:
            yield from _TURNS.unfold(row)
        else:
            yield {**row, "prompt": row.get("prompt")}, ()


M365_COPILOT: Format = Format(
    name="m365-copilot",
    title="Microsoft 365 Copilot evaluations",
    summary="datasets of Microsoft 365 Copilot's evaluations CLI: prompt, expected_response, evaluators, turns",
    also_read='`{"schemaVersion": …, "items": [...]}` with prompts and threads of turns; a plain list of prompts',
    page="https://learn.microsoft.com/plugins/evaluations-cli-create-tests",
    truth_of="Each turn has its own `expected_response` and its own evaluators.",
    signs=Signs(
        sure=(("prompt", "expected_response"), ("prompt", "schemaVersion"), ("prompt", "evaluators")),
        never=frozenset({"request", "inputs"}),
        needs=("items",),
    ),
    fields=(
        Field("name", "session_id", as_text),
        Field("prompt", "request", write=question),
        Field("expected_response", "expected_response"),
        Field("response", "response"),
        Field("context", "expected_retrieved_context", read_context, write_context),
        Field(
            "evaluators.ToolCallSelection.calls",
            "reference_trajectory",
            of_list(lambda call: {"tool_name": call.get("tool")} if isinstance(call, dict) else call),
            of_list(lambda call: {"tool": call["tool_name"]}),
            ("evaluators.ToolCallExecution.calls",),
        ),
        Field("tags", "tags", lambda tags: read_labels(None, tags), lambda tags: write_labels(tags)[1]),
        Field(
            "error",
            "error",
            lambda error: as_text(error.get("message") if isinstance(error, dict) else error),
            lambda _: None,
        ),
    ),
    passthrough_columns=(*_OF_DOCUMENT, *_OF_TURN, *_OF_THREAD, "extensions"),
    read_only_columns=TURN,
    read_rest=_TURNS.read_place,
    nested=(lists_in("items", unfold=_unfold, columns=("prompt", "schemaVersion"), detect=_has_items),),
    writer=Writer(document=lambda rows: _TURNS.document(rows, M365_COPILOT), save=save_json),
)
