"""Amazon Bedrock: datasets of model evaluation.

    prompt                          request
    referenceResponse               expected_response
    modelResponses[0].response      response, of a model that was run elsewhere
    category                        tags

The records of a result have all of this in `inputRecord`. Source: the user guide of Amazon Bedrock, and
aws-samples/amazon-bedrock-samples.
"""

from __future__ import annotations

from typing import Any

from agent_eval_schema.formats import catalog
from agent_eval_schema.formats.layout import Row, question
from agent_eval_schema.formats.table import Entry, Table


def _with_model(_: Row, made: dict[str, Any]) -> None:
    """A response names its model, without which Bedrock rejects the dataset."""
    for response in made.get("modelResponses", ()):
        response.setdefault("modelIdentifier", "agent")


BEDROCK = Table(
    about=catalog.BEDROCK,
    page="https://docs.aws.amazon.com/bedrock/latest/userguide/model-evaluation-prompt-datasets-judge.html",
    entries=(
        Entry("prompt", "request", write=question, others=("inputRecord.prompt",)),
        Entry("referenceResponse", "expected_response", others=("inputRecord.referenceResponse",)),
        Entry(
            "modelResponses[0].response",
            "response",
            others=("inputRecord.modelResponses[0].response",),
        ),
        Entry("category", "tags", lambda v: {"category": v}, lambda tags: tags.get("category")),
    ),
    likely=(("prompt", "category"),),
    never=frozenset({"request", "inputs"}),
    write_rest=_with_model,
    own=frozenset({"automatedEvaluationResult", "modelIdentifier"}),
)
