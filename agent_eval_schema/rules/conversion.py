"""AE8: fields that a target format does not support, and excluded rows. A conversion reports each loss.
AE80: golden CSV and Evaluation JSON; AE81: all other formats."""

from agent_eval_schema.rules.pages import GOLDEN_CSV, RAGAS_DATASET, Page

_golden_loss_page = Page(GOLDEN_CSV, no_example="The rule applies when evaluations are written as a golden CSV.")
_loss_page = Page(no_example="The rule applies when rows are converted to another format.")

SCENARIO = _golden_loss_page.warning(
    "AE801 loss-scenario",
    "A scenario is excluded from a golden CSV.",
    why="The file contains golden conversations only.",
    hint="Keep the JSON of this evaluation.",
)

STEP = _golden_loss_page.warning(
    "AE802 loss-step",
    "A step is excluded from a golden CSV, which has no action for it.",
    why=(
        "Events, DTMF, audio and blobs as input, transfers as a step, expected variables, mocked tool responses"
        " and the expectation of no tool calls have no action."
    ),
    hint="Keep the JSON of this evaluation, or write the step with one of the eight actions of the CSV.",
)

FIELD = _golden_loss_page.warning(
    "AE803 loss-field",
    "A field is excluded from a golden CSV, which has no column for it.",
    why="The rest of its step or evaluation is written.",
    hint="Keep the JSON of this evaluation if the field matters.",
)

LIST_ITEM = _golden_loss_page.warning(
    "AE804 loss-separator",
    "A tag or group cannot be separated from others in a cell of a golden CSV.",
    why="Semicolons separate the values of a cell: a value with one, or a blank one, would be read back as others.",
    hint="Rename the tag or group: no semicolon, no leading or trailing spaces.",
)

RESOURCE_NAMES = _golden_loss_page.info(
    "AE805 names-kept",
    "A tool or agent name was not mapped between display name and resource name.",
    why="The API uses resource names, a golden CSV and app packages display names; only you know the pairs.",
    hint=(
        "No action needed if the target accepts the names; otherwise map display names to resource names: "
        '`{"get_order": "projects/…/tools/…"}`.'
    ),
)

NO_EVALUATION = _golden_loss_page.warning(
    "AE806 loss-evaluation",
    "An evaluation is excluded from a golden CSV.",
    why="It has no display name, no conversation, or the display name of another evaluation.",
    hint="Set a unique display name, and add at least one step that the CSV supports.",
)

NO_PLACE = _loss_page.warning(
    "AE811 no-place-in-target",
    "The target format does not support this field.",
    why="The converted row was read back: the field was missing, or in a column that only you read, and not the agent.",
    hint="Keep the source file, or choose a target that supports the field.",
)

CHANGED = _loss_page.warning(
    "AE812 changed-by-conversion",
    "The target format supports this field in part, or in another form.",
    why="The converted row was read back: the field was different.",
    hint="Check whether the converted value is sufficient; keep the source file.",
)

NOT_READ = _loss_page.warning(
    "AE813 not-read-from-source",
    "A part of a source row has no equivalent in an evaluation row.",
    why="No column of the schema has this meaning, so the converted row lacks the part.",
    hint="Keep the source file.",
)

RENAMED = _loss_page.info(
    "AE815 column-renamed",
    "A passed-through column was renamed to avoid a column of the target format.",
    why="The target format reads a column of its name as something else: ground truth, a request or a response.",
    hint="No action needed: a conversion back restores the name.",
)

LEFT_OUT = _loss_page.error(
    "AE814 row-left-out",
    "A row was not converted: it is invalid, or the target rejects it.",
    why="The platform would reject the row or the whole file, by an error or as a row of another kind than most.",
    hint=(
        "Correct the row: `validate` reports its errors, and `validate --fix` fixes those with exactly one "
        "valid interpretation. Convert rows of another kind to a separate file, or keep them (`--on-invalid keep`, "
        '`on_invalid="keep"`).'
    ),
)

MIXED_KINDS = _loss_page.warning(
    "AE816 mixed-kinds",
    "The target contains two kinds of rows, but its platform loads only one per file.",
    why=(
        "Ragas separates single-turn from multi-turn samples, DeepEval goldens from conversational goldens, Azure "
        "questions from conversations, Vertex AI rows with a response from rows without."
    ),
    hint='Convert the rows of each kind to a separate file, or exclude the fewer (`on_invalid="drop"`).',
    url=RAGAS_DATASET,
)

NOT_LOADED = _loss_page.info(
    "AE817 not-loaded",
    "A column is in the file, but the class of the platform drops it.",
    why="The class was recorded with the package of the platform: of a row it keeps the columns that it declares.",
    hint="No action needed if only you read the column; otherwise put its value into a field that the platform keeps.",
)

EXECUTED = _loss_page.warning(
    "AE818 executed-by-platform",
    "A value contains a text that the platform executes or replaces.",
    why=(
        "promptfoo renders templates in variables and assertions, reads the file of `file://…`, and calls the provider "
        "again where an answer is empty. MLflow's judges replace variables of their prompts (`{{ output }}`), and "
        "Azure's evaluators split theirs at a line `user:` and read the image of `![](…)`. Nothing escapes them."
    ),
    hint="Reword the value, or leave the row out: the test would be of another text.",
    url="https://github.com/promptfoo/promptfoo/issues/10434",
)
