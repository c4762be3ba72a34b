"""AE3: the ground truth of a row: expected response, facts, guidelines."""

from agent_eval_schema.rules.pages import CORRECTNESS, EVALUATION_SCHEMA, MLFLOW_EVALUATE, Page

_ROW = {"request": "How long is parental leave?", "response": "16 weeks."}

_MLFLOW_ROW = {"inputs": {"question": "How long is parental leave?"}, "outputs": "16 weeks."}

_schema_page = Page(EVALUATION_SCHEMA)
_mlflow_page = Page(MLFLOW_EVALUATE)

BOTH_RESPONSE_AND_FACTS = _schema_page.error(
    "AE301 response-and-facts",
    "The row has both expected_response and expected_facts.",
    why="At most one of them is allowed: a judge would compare the answer with two ground truths.",
    hint="Keep one of the two: `--prefer expected_facts` (or `expected_response`) drops the other one.",
    bad=({**_ROW, "expected_response": "16 weeks.", "expected_facts": ["16 weeks"]},),
    good=({**_ROW, "expected_facts": ["16 weeks"]},),
)

EXPECTED_RESPONSE_TYPE = _schema_page.error(
    "AE302 expected-response-type",
    "expected_response is not a string.",
    why="The schema defines a string, with which judges compare the response.",
    hint="Write the ground truth as a string; move a list of facts to `expected_facts`.",
    bad=({**_ROW, "expected_response": ["16 weeks"]},),
    good=({**_ROW, "expected_response": "16 weeks."},),
)

EXPECTED_FACTS_SHAPE = _schema_page.error(
    "AE303 expected-facts-shape",
    "expected_facts is not a list of strings.",
    why="The correctness judge compares the response with each fact of the list, so it needs separate facts.",
    hint='Set a list of short strings: `["16 weeks", "fully paid"]`.',
    bad=({**_ROW, "expected_facts": "16 weeks"},),
    good=({**_ROW, "expected_facts": ["16 weeks"]},),
)

GUIDELINES_SHAPE = _schema_page.error(
    "AE304 guidelines-shape",
    "guidelines is neither a list of strings nor an object of named lists of strings.",
    why="The guideline_adherence judge reads each guideline as a string.",
    hint='Set a list of strings, or named lists: `{"tone": ["The answer is polite."]}`.',
    bad=({**_ROW, "guidelines": "Be polite."}, {**_ROW, "guidelines": {"tone": "Be polite."}}),
    good=({**_ROW, "guidelines": {"tone": ["Be polite."]}},),
)

BLANK_EXPECTATION = Page(CORRECTNESS).warning(
    "AE305 blank-expectation",
    "A blank expectation is treated as missing ground truth.",
    why=(
        "The row does not support metrics that require ground truth. MLflow's Correctness rejects a row with an"
        " expected_response and an empty expected_facts."
    ),
    hint="Fill in the expectation, or set it to null.",
    bad=(
        {**_ROW, "expected_response": " "},
        {**_ROW, "expected_facts": []},
        {**_ROW, "guidelines": []},
    ),
    good=({**_ROW, "expected_response": "16 weeks."},),
)

NOT_MINIMAL = _schema_page.info(
    "AE306 expected-response-not-minimal",
    "expected_response shows signs of a copy, not of ground truth.",
    why=(
        "It should be the minimal set of facts: additional text makes a correct answer look incomplete. Signs "
        "are a string that equals the response or a passage of a retrieved document (from 60 characters), a "
        "string much longer than the response, a greeting or a closing phrase."
    ),
    hint="No action needed if all facts are required; otherwise delete the rest, or list them in `expected_facts`.",
    bad=({**_ROW, "expected_response": "Hello! You get 16 weeks. I hope this helps."},),
    good=({**_ROW, "expected_response": "16 weeks."},),
)

CUSTOM_EXPECTED_SHAPE = _schema_page.error(
    "AE307 custom-expected-shape",
    "custom_expected is not an object.",
    why="Custom metrics read its values by name.",
    hint='Set an object: `{"name": value}`.',
    bad=({**_ROW, "custom_expected": "strict"},),
    good=({**_ROW, "custom_expected": {"mode": "strict"}},),
)

MISSPELLED_EXPECTATION = _mlflow_page.warning(
    "AE308 misspelled-expectation",
    "A key of expectations closely matches one that a metric reads.",
    why=("MLflow stores it as a custom expectation, and metrics that require the intended key silently score nothing."),
    hint="Rename the key to the one that it closely matches.",
    bad=({"inputs": {"question": "Hi"}, "outputs": "Hello", "expectations": {"expected_respones": "Hello"}},),
    good=({"inputs": {"question": "Hi"}, "outputs": "Hello", "expectations": {"expected_response": "Hello"}},),
)

EXPECTED_AS_JSON = _mlflow_page.info(
    "AE309 expected-response-as-json",
    "The expected_response of an MLflow row is not a string.",
    why=(
        "Metrics that compare strings read its JSON text. MLflow accepts any JSON value there, and its "
        "Equivalence scorer compares such values. The value itself is preserved in `expectations`."
    ),
    hint="No action needed if the agent returns values of this type; list several facts in `expected_facts`.",
    bad=({"inputs": {"question": "6 * 7?"}, "outputs": 42, "expectations": {"expected_response": 42}},),
    good=({"inputs": {"question": "6 * 7?"}, "outputs": "42", "expectations": {"expected_response": "42"}},),
)

BOTH_IN_EXPECTATIONS = _mlflow_page.warning(
    "AE313 response-and-facts-in-expectations",
    "An MLflow row has both expected_response and expected_facts.",
    why="MLflow's Correctness scorer raises an exception at such a row; its other scorers score it.",
    hint="Keep one of the two: `--prefer expected_facts` (or `expected_response`) drops the other one.",
    bad=({**_MLFLOW_ROW, "expectations": {"expected_response": "16 weeks.", "expected_facts": ["16 weeks"]}},),
    good=({**_MLFLOW_ROW, "expectations": {"expected_facts": ["16 weeks"]}},),
)

NAMED_GUIDELINES = _mlflow_page.warning(
    "AE312 named-guidelines",
    "The guidelines among the expectations of an MLflow row are an object.",
    why=(
        "The prompt of MLflow's ExpectationsGuidelines scorer contains only the names, not the guidelines. "
        "`prepare_for_evaluate`, `evaluate_eval_set` and a conversion to MLflow write one list."
    ),
    hint='Set a list: `{"guidelines": ["Name the number of weeks"]}`.',
    bad=({**_MLFLOW_ROW, "expectations": {"guidelines": {"tone": ["Name the number of weeks"]}}},),
    good=({**_MLFLOW_ROW, "expectations": {"guidelines": ["Name the number of weeks"]}},),
)

BESIDE_INPUTS = _mlflow_page.warning(
    "AE310 expectation-beside-inputs",
    "A column of ground truth is beside `inputs`.",
    why="`mlflow.genai.evaluate` reads ground truth from `expectations` only. `prepare_for_evaluate` moves it.",
    hint='Move it to `expectations`: `{"expected_response": "..."}` (`--fix` does this).',
    bad=({"inputs": {"question": "Hi"}, "outputs": "Hello", "expected_response": "Hello"},),
    good=({"inputs": {"question": "Hi"}, "outputs": "Hello", "expectations": {"expected_response": "Hello"}},),
)

DATE_AS_TIME = Page(CORRECTNESS).warning(
    "AE314 date-as-timestamp",
    "The ground truth or the response is a timestamp at midnight, not a date.",
    why="Spreadsheets and pandas convert cells that look like dates; an agent answers with the date as it was written.",
    hint="Write the date as text, as the agent is expected to write it (`dtype=str` in `pandas.read_csv`).",
    bad=({**_ROW, "expected_response": "2026-11-24 00:00:00"},),
    good=({**_ROW, "expected_response": "2026-11-24"},),
)

PLACEHOLDER = Page(CORRECTNESS).warning(
    "AE311 placeholder-text",
    "The ground truth or the response is a placeholder (TBD, N/A, todo).",
    why="A judge takes it for the answer, and scores every other answer as wrong.",
    hint="Write the text, or leave the cell empty (null in JSON).",
    bad=(
        {**_ROW, "expected_response": "TBD"},
        {**_ROW, "expected_facts": ["TODO"]},
        {"request": "How long is parental leave?", "response": "todo"},
    ),
    good=({**_ROW, "expected_response": "None of the employees."},),
)

TARGET_NO_CHOICE = Page("https://inspect.aisi.org.uk/scorers.html").warning(
    "AE315 target-no-choice",
    "The target of a sample with choices is not the letter of one of them.",
    why="The scorer `choice` fails at the text of a choice, and no answer is correct for a letter beyond the last.",
    hint="Write the letter of the choice as `target`: `A` is the first.",
    bad=(
        {"input": "Capital of France?", "target": "Paris", "choices": ["Lyon", "Paris"]},
        {"input": "Capital of France?", "target": "C", "choices": ["Lyon", "Paris"]},
    ),
    good=({"input": "Capital of France?", "target": "B", "choices": ["Lyon", "Paris"]},),
)
