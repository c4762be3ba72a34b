"""AE8: what one form of evaluations says and another cannot. A conversion reports each loss; nothing is dropped
silently."""

from agent_eval_schema.issues import Rule, Severity

SCENARIO = Rule(
    "AE801",
    "loss-scenario",
    Severity.WARNING,
    "keep the JSON of this evaluation",
    "A scenario is left out of a golden CSV.\n\nThe file holds golden conversations only.",
)

STEP = Rule(
    "AE802",
    "loss-step",
    Severity.WARNING,
    "keep the JSON of this evaluation, or say the step with one of the CSV's eight actions",
    "A step is left out of a golden CSV, which has no action for it.\n\nEvents, DTMF, audio and blobs as input, "
    "transfers as a step, expected variables, mocked tool responses and the expectation of no tool calls cannot be "
    "said there.",
)

FIELD = Rule(
    "AE803",
    "loss-field",
    Severity.WARNING,
    "keep the JSON of this evaluation if the field matters",
    "A field is left out of a golden CSV, which has no column for it.\n\nThe rest of its step or evaluation "
    "is written.",
)

LIST_ITEM = Rule(
    "AE804",
    "loss-separator",
    Severity.WARNING,
    "rename the tag or group: no semicolon, no blanks at its ends",
    "A tag or group cannot be told from others in a cell of a golden CSV.\n\nThey stand between semicolons; one that "
    "holds a semicolon, or is blank, would come back as others.",
)

RESOURCE_NAMES = Rule(
    "AE805",
    "names-kept",
    Severity.INFO,
    'give a map from display names to resource names: {"get_order": "projects/…/tools/…"}',
    "A name stays as it is, in the dialect of where it comes from.\n\nThe API has resource names, a golden CSV and app "
    "packages have display names; only you know which is which.",
)

EVALUATION = Rule(
    "AE806",
    "loss-evaluation",
    Severity.WARNING,
    "give it a display name of its own, and at least one step that the CSV can say",
    "An evaluation is left out of a golden CSV.\n\nIt has no display name, no conversation, or the name of another.",
)
