"""AE8: what a conversion from one form of evaluation data into another loses, and rows that it leaves out."""

from agent_eval_schema.issues import Rule, Severity

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
