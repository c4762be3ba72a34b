"""Amazon Bedrock: datasets of model evaluation.

    prompt                          request
    referenceResponse               expected_response
    modelResponses[0].response      response, of a model that was run elsewhere
    category                        tags

The records of a result have all of this in `inputRecord`. Source: the user guide of Amazon Bedrock, and
aws-samples/amazon-bedrock-samples.

Datasets of RAG evaluation, one conversation per line.

    prompt.content[0].text                     request, after the turns before it
    referenceResponses[0].content[0].text      expected_response
    output.text                                response
    output.retrievedPassages.retrievalResults  retrieved_context (retrievedResults in retrieve-only jobs)
    referenceContexts                          expected_retrieved_context

Source: the user guide of Amazon Bedrock, and aws-samples/amazon-bedrock-samples.
"""

from typing import Any

from agent_eval_schema.formats.detection import Signs, each_with
from agent_eval_schema.formats.documents import TURN, Conversations
from agent_eval_schema.formats.format import Field, Format, Row, Writer, lists_in, save_lines
from agent_eval_schema.formats.shapes import (
    MADE_URI,
    of_list,
    question,
    read_texts,
    text_only,
    uri_of,
    with_content,
    write_texts,
)
from agent_eval_schema.text.jsontext import value_at


def _with_model(_: Row, row: dict[str, Any]) -> None:
    """A response names its model, without which Bedrock rejects the dataset."""
    for response in row.get("modelResponses", ()):
        response.setdefault("modelIdentifier", "agent")


BEDROCK = Format(
    name="bedrock",
    title="Amazon Bedrock (model evaluation)",
    summary="prompts for model evaluation of Amazon Bedrock: prompt, referenceResponse, modelResponses",
    also_read='the records of a result, `{"inputRecord": …}`',
    page="https://docs.aws.amazon.com/bedrock/latest/userguide/model-evaluation-prompt-datasets-judge.html",
    signs=Signs(
        sure=(*each_with("prompt", "referenceResponse", "modelResponses"), ("inputRecord",)),
        likely=(("prompt", "category"),),
        never=frozenset({"request", "inputs"}),
    ),
    fields=(
        Field("prompt", "request", write=question, others=("inputRecord.prompt",)),
        Field("referenceResponse", "expected_response", others=("inputRecord.referenceResponse",)),
        Field("modelResponses[0].response", "response", others=("inputRecord.modelResponses[0].response",)),
        Field("category", "tags", lambda v: {"category": v}, lambda tags: tags.get("category")),
    ),
    passthrough_columns=("automatedEvaluationResult", "modelIdentifier"),
    write_rest=_with_model,
)


_PROMPT, _REFERENCE = "prompt.content[0].text", "referenceResponses[0].content[0].text"
_URIS = ("name", "metadata.x-amz-bedrock-kb-source-uri", "location.s3Location.uri", "location.webLocation.url")


def _document(result: Any) -> Any:
    text = value_at(result, "content.text") if isinstance(result, dict) else None
    if not isinstance(text, str):
        return result
    uris = (value_at(result, path) for path in _URIS)
    return {"doc_uri": next((uri for uri in uris if isinstance(uri, str)), uri_of(text)), "content": text}


def _write_result(document: dict[str, Any]) -> dict[str, Any]:
    uri, text = document["doc_uri"], document["content"]
    name = {} if uri is None or uri.startswith(MADE_URI) else {"name": uri}
    return {"content": {"text": text}, **name}


def _write_results(documents: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    return [_write_result(d) for d in with_content(documents)] or None


def _texts_of_turn(turn: Row) -> tuple[Any, Any]:
    answer = value_at(turn, _REFERENCE)
    return value_at(turn, _PROMPT), answer if isinstance(answer, str) else value_at(turn, "output.text")


def _with_sources(_: Row, written: dict[str, Any]) -> None:
    """An output names its model and its knowledge base, without which Bedrock rejects the dataset."""
    if "output" in written:
        written["output"].setdefault("text", "")
        written["output"].setdefault("modelIdentifier", "agent")
        written["output"].setdefault("knowledgeBaseIdentifier", "retriever")


_PASSAGES = "output.retrievedPassages.retrievalResults"
_RETRIEVED_ONLY = "output.retrievedResults.retrievalResults"

_TURNS = Conversations("conversationTurns", _texts_of_turn)

BEDROCK_RAG: Format = Format(
    name="bedrock-rag",
    title="Amazon Bedrock (RAG evaluation)",
    summary="conversations for RAG evaluation of Amazon Bedrock: conversationTurns",
    also_read="retrieve-only jobs",
    page="https://docs.aws.amazon.com/bedrock/latest/userguide/knowledge-base-evaluation-prompt.html",
    truth_of="Each turn has its own `referenceResponses` and `referenceContexts`.",
    signs=Signs(
        sure=(("turn", "turns", "prompt"), ("turn", "turns", "referenceResponses")), needs=("conversationTurns",)
    ),
    fields=(
        Field(_PROMPT, "request", write=question),
        Field(_REFERENCE, "expected_response"),
        Field("output.text", "response", lambda v: v or None),
        Field(_PASSAGES, "retrieved_context", of_list(_document), _write_results, (_RETRIEVED_ONLY,)),
        Field(
            *("referenceContexts", "expected_retrieved_context"),
            lambda v: read_texts(of_list(lambda context: value_at(context, "content[0].text"))(v)),
            lambda documents: [{"content": [{"text": text}]} for text in write_texts(documents) or ()] or None,
        ),
        Field("session_id", "session_id", text_only, lambda _: None),
    ),
    read_only_columns=TURN,
    read_rest=_TURNS.read_history,
    write_rest=_with_sources,
    passthrough_columns=("automatedEvaluationResults",),
    outputs=("response", "trace", "retrieved_context"),
    nested=(lists_in("conversationTurns", unfold=_TURNS.unfold, columns=("turn", "turns", "prompt")),),
    writer=Writer(
        document=lambda rows: _TURNS.document(rows, BEDROCK_RAG),
        save=save_lines,
        endings=(".jsonl", ".ndjson", ".json"),
    ),
)
