"""AE2: `inputs` and `outputs`, as mlflow.genai.evaluate reads them."""

from functools import partial

from agent_eval_schema.issues import Rule, Severity
from agent_eval_schema.rules.pages import MLFLOW_EVALUATE

_OK = ({"inputs": {"question": "What is RAG?"}, "outputs": "Retrieval, then generation."},)

_mlflow_rule = partial(Rule, url=MLFLOW_EVALUATE, good=_OK)

INPUTS_NOT_OBJECT = _mlflow_rule(
    "AE216",
    "inputs-not-object",
    Severity.WARNING,
    "inputs is not an object.",
    why=("`mlflow.genai.evaluate` calls `predict_fn(**inputs)` and requires a dict, but validates the first row only."),
    hint='Set an object: `{"question": "..."}` or `{"messages": [...]}`; `prepare_for_evaluate` does this.',
    bad=(
        {"inputs": {"question": "What is RAG?"}, "outputs": "Retrieval, then generation."},
        {"inputs": "What is RAG for?", "outputs": "Grounding."},
    ),
)

INPUTS_AS_JSON = _mlflow_rule(
    "AE217",
    "inputs-as-json",
    Severity.INFO,
    "inputs has no known request format.",
    why="Its JSON text is used as the request, which judges read.",
    hint='No action needed if the agent accepts these inputs; judges read `{"question": "..."}` better.',
    bad=({"inputs": {"topic": "RAG", "tone": "brief"}, "outputs": "Retrieval, then generation."},),
)

OUTPUTS_AS_JSON = _mlflow_rule(
    "AE224",
    "outputs-as-json",
    Severity.INFO,
    "outputs has no known response format.",
    why="Its JSON text is used as the response, which judges read.",
    hint="No action needed if the agent returns this value.",
    bad=({"inputs": {"question": "What is RAG?"}, "outputs": {"a": 1, "b": 2}},),
    good=({"inputs": {"question": "What is RAG?"}, "outputs": {"response": "Retrieval, then generation."}},),
)

IGNORED_BESIDE = Rule(
    "AE227",
    "ignored-beside-inputs",
    Severity.WARNING,
    "A column `request` or `response` is beside `inputs` or `outputs`.",
    why=(
        "`mlflow.genai.evaluate` ignores the column, and rejects the dataset up to MLflow 3.6, which renamed "
        "its own columns to these names."
    ),
    hint="Remove the column, or rename it to keep its values.",
    url=MLFLOW_EVALUATE,
    no_example='The rule applies if `format="mlflow"` is given.',
)

FIRST_INPUTS = _mlflow_rule(
    "AE226",
    "first-inputs-not-object",
    Severity.ERROR,
    "The inputs of the first row are not an object.",
    why=(
        "`mlflow.genai.evaluate` validates the first row, and rejects the whole dataset if its inputs are not a"
        " dict. It does not validate a dataset with traces."
    ),
    hint='Set objects: `{"question": "..."}` or `{"messages": [...]}`; `prepare_for_evaluate` does this.',
    bad=({"inputs": "What is RAG?", "outputs": "Retrieval, then generation."},),
)
