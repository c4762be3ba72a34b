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

from agent_eval_schema.formats.detection import Signs, each_with
from agent_eval_schema.formats.format import Field, Format, Row
from agent_eval_schema.formats.shapes import question


def _with_model(_: Row, made: dict[str, Any]) -> None:
    """A response names its model, without which Bedrock rejects the dataset."""
    for response in made.get("modelResponses", ()):
        response.setdefault("modelIdentifier", "agent")


BEDROCK = Format(
    name="bedrock",
    title="Amazon Bedrock (model evaluation)",
    summary="prompts for model evaluation of Amazon Bedrock: prompt, referenceResponse, modelResponses",
    system="bedrock",
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
    own=frozenset({"automatedEvaluationResult", "modelIdentifier"}),
    write_rest=_with_model,
)
