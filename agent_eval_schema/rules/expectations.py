"""AE3: the ground truth of a row: expected response, facts, guidelines."""

from agent_eval_schema.issues import Rule, Severity

_ROW = {"request": "How long is parental leave?", "response": "16 weeks."}

BOTH_RESPONSE_AND_FACTS = Rule(
    "AE301",
    "response-and-facts",
    Severity.ERROR,
    "keep expected_facts (preferred) and drop expected_response, or the other way round",
    "The row has both expected_response and expected_facts.\n\nAt most one of the two may be given: a judge "
    "would have two "
    "different truths.",
    bad=({**_ROW, "expected_response": "16 weeks.", "expected_facts": ["16 weeks"]},),
    good=({**_ROW, "expected_facts": ["16 weeks"]},),
)

EXPECTED_RESPONSE_TYPE = Rule(
    "AE302",
    "expected-response-type",
    Severity.ERROR,
    "give the ground truth as text; a list of facts belongs into expected_facts",
    "expected_response is not text.",
    bad=({**_ROW, "expected_response": ["16 weeks"]},),
    good=({**_ROW, "expected_response": "16 weeks."},),
)

EXPECTED_FACTS_SHAPE = Rule(
    "AE303",
    "expected-facts-shape",
    Severity.ERROR,
    'give a list of short texts: ["16 weeks", "fully paid"]',
    "expected_facts is not a list of texts.",
    bad=({**_ROW, "expected_facts": "16 weeks"},),
    good=({**_ROW, "expected_facts": ["16 weeks"]},),
)

GUIDELINES_SHAPE = Rule(
    "AE304",
    "guidelines-shape",
    Severity.ERROR,
    'give a list of texts, or lists with names: {"tone": ["The answer is polite."]}',
    "guidelines is neither a list of texts nor named lists of texts.",
    bad=({**_ROW, "guidelines": "Be polite."}, {**_ROW, "guidelines": {"tone": "Be polite."}}),
    good=({**_ROW, "guidelines": {"tone": ["Be polite."]}},),
)

BLANK_EXPECTATION = Rule(
    "AE305",
    "blank-expectation",
    Severity.WARNING,
    "fill it in, or make it null",
    "An expectation is blank.\n\nA judge would hold the answer against nothing; the row counts as having no "
    "ground truth.",
    bad=({**_ROW, "expected_response": " "},),
    good=({**_ROW, "expected_response": "16 weeks."},),
)

NOT_MINIMAL = Rule(
    "AE306",
    "expected-response-not-minimal",
    Severity.INFO,
    "cut expected_response down to the facts that a correct answer must hold, or list them in expected_facts",
    "expected_response shows signs of having been copied rather than written as ground truth.\n\nIt should be "
    "the minimal "
    "set of facts: extra text makes a correct answer look incomplete (seed 003). Signs: the same text as the response "
    "or a passage of a retrieved document (from 60 characters on), much longer than the response, a greeting or a "
    "closing phrase.",
    bad=({**_ROW, "expected_response": "Hello! You get 16 weeks. I hope this helps."},),
    good=({**_ROW, "expected_response": "16 weeks."},),
)

CUSTOM_EXPECTED_SHAPE = Rule(
    "AE307",
    "custom-expected-shape",
    Severity.ERROR,
    'give an object: {"name": value}',
    "custom_expected is not an object.",
    bad=({**_ROW, "custom_expected": "strict"},),
    good=({**_ROW, "custom_expected": {"mode": "strict"}},),
)

MISSPELT_EXPECTATION = Rule(
    "AE308",
    "misspelt-expectation",
    Severity.WARNING,
    "rename the key",
    "A key of expectations is nearly one that a metric reads.\n\nmlflow keeps it as a custom expectation, and the "
    "metrics that need it silently score nothing.",
    bad=({"inputs": {"question": "Hi"}, "outputs": "Hello", "expectations": {"expected_respones": "Hello"}},),
    good=({"inputs": {"question": "Hi"}, "outputs": "Hello", "expectations": {"expected_response": "Hello"}},),
)
