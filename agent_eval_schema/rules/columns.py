"""AE1: the columns of a table, and the cells of scalar columns (IDs, counts, flags) and of tags."""

from agent_eval_schema.rules.pages import (
    AZURE_EVALUATE,
    EVALUATION_SCHEMA,
    INFERENCE_TABLES,
    JSON,
    LANGFUSE_DATASETS,
    MLFLOW_EVALUATE,
    MLFLOW_TAGS,
    NO_PAGE,
    PANDAS_CSV,
    RAGAS_DATASET,
    Page,
)

_ROW = {"request": "Hi", "response": "Hello"}

_schema_page = Page(EVALUATION_SCHEMA)

NO_ROWS = _schema_page.error(
    "AE101 no-rows",
    "The dataset has no rows.",
    why="An evaluation without rows fails late, or passes without a measurement.",
    hint="Check the export or the filter that produced the dataset.",
    no_example="The rule concerns a dataset without rows.",
)

MISSPELLED_COLUMN = _schema_page.warning(
    "AE102 misspelled-column",
    "Unknown column whose name closely matches a schema column (probable typo).",
    why=("The platform ignores unknown columns, and metrics that require the intended column silently score nothing."),
    hint="Rename the column to the schema column that it closely matches.",
    bad=({**_ROW, "expected_respones": "Hello"},),
    good=({**_ROW, "expected_response": "Hello"},),
)

UNKNOWN_COLUMN = _schema_page.info(
    "AE103 unknown-column",
    "Unknown column.",
    why="The column is not part of the schema: it is passed through, and no metric reads it.",
    hint="No action needed: the column is passed through unchanged.",
    bad=({**_ROW, "team": "search"},),
    good=({**_ROW, "tags": {"team": "search"}},),
)

UNREAD_TRUTH = _schema_page.warning(
    "AE119 unread-ground-truth",
    "An unknown column looks like the ground truth that the data lacks.",
    why="The ground truth has another name in every row: no metric reads it, and no row is invalid for it.",
    hint="Rename the column, or name it (`--columns PATH=NAME`).",
    bad=({**_ROW, "ground_truth": "Hello"},),
    good=({**_ROW, "expected_response": "Hello"},),
)

DUPLICATE_COLUMN = _schema_page.error(
    "AE104 duplicate-column",
    "Two columns have the same name.",
    why="Only the first one can be read, and which one was intended is ambiguous.",
    hint="Rename or drop one of them; `df.loc[:, ~df.columns.duplicated()]` keeps the first.",
    no_example="The rule concerns a table: an object cannot have two columns of one name.",
)

IGNORED_COLUMN = _schema_page.warning(
    "AE105 ignored-when-generated",
    "Output columns are ignored because outputs will be generated.",
    why="The run generates response, retrieved_context and trace; the values of these columns are not scored.",
    hint='Drop the column, or validate with `outputs="provided"` to score its values.',
    no_example='The rule applies with `outputs="generated"`.',
)

REQUEST_ID_TYPE = _schema_page.warning(
    "AE106 request-id-not-text",
    "request_id is a number, not a string.",
    why="The schema defines a string. IDs that pass through a float column gain `.0` or lose digits.",
    hint='Convert the column: `df["request_id"] = df["request_id"].convert_dtypes().astype("string")`.',
    bad=({"request_id": 7, "request": "Hi", "response": "Hello"},),
    good=({"request_id": "7", "request": "Hi", "response": "Hello"},),
)

CELL_TYPE = _schema_page.error(
    "AE107 wrong-cell-type",
    "A cell of an ID, count, latency, flag or tags column has the wrong type.",
    why="The value cannot be aggregated or compared with those of other rows.",
    hint="Set a value of the type that the message names.",
    bad=({**_ROW, "total_token_count": "many"},),
    good=({**_ROW, "total_token_count": 12},),
)

_fix_page = Page(no_example="The rule applies with `--fix` or `fix=True`.")

REPAIRED_CELL = _fix_page.info(
    "AE108 repaired-cell",
    "A cell was fixed (`--fix`, `fix=True`).",
    why="The fixed row is validated; the message contains the value before and after the fix.",
    hint="No action needed if both values have the same meaning; otherwise correct the cell by hand.",
)

REPAIRED_COLUMN = _fix_page.info(
    "AE109 repaired-column",
    "A misspelled column was renamed (`--fix`, `fix=True`).",
    why="One schema column closely matches the name, no row fills both, and most cells are valid under the new name.",
    hint="No action needed if this is the intended column; otherwise choose a name unlike that of a schema column.",
)

EXPECTATIONS_SHAPE = Page(MLFLOW_EVALUATE).error(
    "AE110 expectations-shape",
    "expectations is not an object.",
    why=("`mlflow.genai.evaluate` requires a dict per row; any other value, including NaN, aborts the entire run."),
    hint='Set an object: `{"expected_response": "...", "expected_facts": ["..."]}`.',
    bad=({"inputs": {"question": "Hi"}, "outputs": "Hello", "expectations": "Hello"},),
    good=({"inputs": {"question": "Hi"}, "outputs": "Hello", "expectations": {"expected_response": "Hello"}},),
)

PAYLOAD_TABLE = Page(INFERENCE_TABLES).warning(
    "AE111 payload-table",
    "The table is an inference table (request log), not an evaluation dataset.",
    why=(
        "Its request and response columns contain HTTP bodies, or the input and output of a trace. Failed "
        "requests, warm-up requests, feedback and duplicates would be scored as questions."
    ),
    hint=(
        "Convert the table first: `agent-eval-schema from-inference-table TABLE OUT` or "
        "`eval_set_from_inference_table(table)`."
    ),
    bad=(
        {
            "databricks_request_id": "7c1f40d2-0001",
            "request_time": "2026-11-16T08:03:12Z",
            "status_code": 200,
            "request": '{"messages": [{"role": "user", "content": "Hi"}]}',
            "response": '{"choices": [{"message": {"role": "assistant", "content": "Hello"}}]}',
        },
    ),
    good=({"request_id": "7c1f40d2-0001", "request": "Hi", "response": "Hello"},),
)

REFUSED_TAG = Page(MLFLOW_TAGS).warning(
    "AE112 refused-tag",
    "A tag name is invalid in MLflow, or its value exceeds 8,000 characters.",
    why=(
        "`mlflow.genai.evaluate` copies the tags of a row to its trace, and excludes or truncates such tags "
        "with a log line at most. `mlflow.user` is reserved. Tags that MLflow itself set on a trace are not "
        "reported."
    ),
    hint=(
        "Rename the tag: at most 250 letters, digits and `_ - . / :`, and no name that MLflow reserves. Shorten"
        " its value to 8,000 characters."
    ),
    bad=({**_ROW, "tags": {"team (new)": "search"}}, {**_ROW, "tags": {"mlflow.user": "ann"}}),
    good=({**_ROW, "tags": {"team.new": "search"}}, {**_ROW, "tags": {"mlflow.source.name": "search"}}),
)

BLANKS_IN_TAG = Page(MLFLOW_TAGS).info(
    "AE180 blanks-in-tag",
    "A tag has blanks at an end, or several in a row.",
    why="Names and values that differ only in blanks look alike and are counted apart, as groups of a profile too.",
    hint="No action needed if the blanks are meant; otherwise remove them.",
    bad=({**_ROW, "tags": {"team ": "search"}}, {**_ROW, "tags": {"team": "search  A"}}),
    good=({**_ROW, "tags": {"team": "search A"}},),
)

UNKNOWN_FORMAT = _schema_page.error(
    "AE113 unknown-format",
    "The columns match no known format.",
    why=(
        "The message names the three closest formats and the columns that each one requires. If a format is "
        "given, its rules apply. With `--ignore AE113` the rows are read as Databricks rows."
    ),
    hint='Give the format (`--format ragas`, `format="ragas"`), or name the columns (`--columns PATH=NAME`).',
    bad=({"title": "Hi", "label": "greeting"},),
    good=(_ROW,),
)

NULL_PLACEHOLDER = Page(PANDAS_CSV).warning(
    "AE115 null-placeholder",
    "A request or response is a placeholder for a missing value (NaN, NA, null).",
    why=(
        "The agent receives the placeholder as a question, or a judge scores it; `pandas.read_csv` reads such a"
        " cell as missing. An error of a spreadsheet, such as #REF!, is one too, and so is a formula that none has"
        " calculated. The responses NA, None and null are reported in CSV files only, which have no null: elsewhere"
        " they may be the answer."
    ),
    hint="Leave the cell empty (null in JSON) if the value is missing.",
    bad=({"request": "NaN", "response": "Hello"}, {"request": "Hi", "response": "nan"}),
    good=({"request": "Hi", "response": "None"},),
)

NOT_ACTIVE = Page(LANGFUSE_DATASETS).warning(
    "AE116 inactive-row",
    "The platform that the row comes from does not use it: the row is archived.",
    why="An archived row is not part of an experiment of its platform; here it counts like any other.",
    hint="Remove the row, or set its `status` to `ACTIVE`.",
    bad=({"id": "item-1", "input": "Hi", "expectedOutput": "Hello", "datasetId": "greetings", "status": "ARCHIVED"},),
    good=({"id": "item-1", "input": "Hi", "expectedOutput": "Hello", "datasetId": "greetings", "status": "ACTIVE"},),
)

NAMED_COLUMN = NO_PAGE.info(
    "AE117 named-column",
    'A column is read under another name (`--columns auto`, `columns="auto"`).',
    why="The name and the values of the column look like those of a schema column, and no other column does.",
    hint="No action needed if the column is the intended one; otherwise name the columns (`--columns PATH=NAME`).",
    no_example='The rule applies with `--columns auto` or `columns="auto"`.',
)

UNMATCHED_PATH = NO_PAGE.warning(
    "AE168 unmatched-path",
    "A path of `--columns` matches nothing in the first rows.",
    why="The cells have another shape than the path, so they stay where they are and the column stays empty.",
    hint="Name a path that the cells have: `[]` means each element of a list, `.key` a key of an object.",
    no_example="The rule applies with `--columns` or `columns=`.",
)

SHORT_LINE = Page(PANDAS_CSV).warning(
    "AE169 short-line",
    "A line of a CSV file has fewer fields than the header.",
    why="The cells at its end are read as absent, as pandas reads them; a missing delimiter moves cells.",
    hint="Write a delimiter for each absent cell, if the last cells are the absent ones.",
    no_example="The rule concerns a line of a file.",
)

LINES_ABOVE_HEADER = NO_PAGE.info(
    "AE181 lines-above-header",
    "A sheet or a CSV file has lines above its header.",
    why="A title above the table is no row and no name of a column; the header is the first line of several names.",
    hint="No action needed: the lines are not read as rows.",
    no_example="The rule concerns a line of a file.",
)

PREFERRED_TRUTH = NO_PAGE.info(
    "AE183 preferred-truth",
    "A row has two kinds of ground truth, and the preferred one is kept (`--prefer`).",
    why="A platform takes an answer or facts as ground truth; the preference decides each row with both.",
    hint="No action needed: the original rows have both.",
    no_example="The rule applies with `--prefer`, or an entry `preferred` of `columns=`.",
)

HEADER_ROW = _schema_page.warning(
    "AE118 header-row",
    "A row contains the names of its columns.",
    why="Files that were joined repeat the header: the agent is asked the name of the column.",
    hint="Remove the row.",
    bad=({"request": "question", "response": "response"},),
    good=({"request": "question", "response": "Which one?"},),
)

_SPOKEN = [{"type": "human", "content": "Hi"}, {"type": "ai", "content": "Hello"}]

_TALK = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}

DROPPED_FIELD = Page(RAGAS_DATASET).warning(
    "AE198 dropped-field",
    "The platform drops a field that rows of this kind do not have.",
    why="Its class reads the row without an error, and metrics that require the field fail or score nothing.",
    hint="Write the row as one of the other kind, or keep the field in a file of its own.",
    bad=({"user_input": _SPOKEN, "retrieved_contexts": ["Hello."]},),
    good=({"user_input": "Hi", "response": "Hello", "retrieved_contexts": ["Hello."]},),
)

NOT_FINITE = Page(JSON).info(
    "AE185 not-finite",
    "A value has a number that JSON does not have: NaN or an infinite one.",
    why=(
        "A value in memory, in Parquet or on Spark may have such numbers. Where the value becomes JSON (a nested cell, "
        "a JSON file, another format) null takes their place."
    ),
    hint="No action needed if null is meant; otherwise write the number as text.",
    bad=({**_ROW, "margin": float("inf")}, {**_ROW, "custom_expected": {"margins": [0.5, float("nan")]}}),
    good=({**_ROW, "margin": None}, {**_ROW, "custom_expected": {"margins": [0.5, None]}}),
)

FORBIDDEN_COLUMN = Page("https://ai.pydantic.dev/evals/", no_example="The rule concerns a key of a document.").error(
    "AE184 forbidden-column",
    "The platform rejects the whole file for a key that it does not know.",
    why="Pydantic Evals forbids extra keys of a dataset and of its cases, DeepEval those in `expectations`.",
    hint="Put the value into `metadata`.",
)

CONVERSATION_BESIDE = Page(AZURE_EVALUATE).error(
    "AE199 conversation-beside-question",
    "A row has a `conversation` beside a question or an answer of its own.",
    why="An evaluator rejects the row: it takes a conversation, or `query` and `response`.",
    hint="Remove the `conversation`, or `query` and `response`.",
    bad=({"query": "Hi", "response": "Hello", "conversation": _TALK},),
    good=({"conversation": _TALK},),
)

REPEATED_KEY = Page(JSON).error(
    "AE114 repeated-key",
    "A JSON row, or an object in a cell, contains a key twice.",
    why="Spark rejects the file, and most other parsers drop the first value: the intended one is ambiguous.",
    hint="Keep one of them; the original line is kept with the invalid rows.",
    no_example="The rule concerns a line of a file.",
)
