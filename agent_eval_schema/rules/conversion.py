"""AE8: what one form of evaluation data says and another cannot, and rows that are left out. A conversion reports each
loss; nothing is dropped silently. AE80: golden CSV and Evaluation JSON; AE81: any other."""

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

NO_EVALUATION = Rule(
    "AE806",
    "loss-evaluation",
    Severity.WARNING,
    "give it a display name of its own, and at least one step that the CSV can say",
    "An evaluation is left out of a golden CSV.\n\nIt has no display name, no conversation, or the name of another.",
)

NO_PLACE = Rule(
    "AE811",
    "no-place-in-target",
    Severity.WARNING,
    "keep the source beside the converted file, or choose a target that has the field",
    "The target format has no place for a field of the row.\n\nThe converted row was read back: the field was gone.",
)

CHANGED = Rule(
    "AE812",
    "changed-by-conversion",
    Severity.WARNING,
    "look whether the part that the target keeps is enough; keep the source beside the converted file",
    "The target format can hold a field only in part, or in another form.\n\nThe converted row was read back, and the "
    "field came back different.",
)

NOT_READ = Rule(
    "AE813",
    "not-read-from-source",
    Severity.WARNING,
    "keep the source beside the converted file; no canonical column says the same",
    "A part of a source row says something that has no place in an evaluation row.",
)

LEFT_OUT = Rule(
    "AE814",
    "row-left-out",
    Severity.ERROR,
    "mend the row: `validate` says what is wrong with it, `validate --fix` repairs what is safe",
    "A row was not converted, because it is not valid.",
)
