"""AE1: which columns there are, and the cells of the plain ones (ids, counts, flags, tags)."""

from agent_eval_schema.issues import Rule, Severity

NO_ROWS = Rule(
    "AE101",
    "no-rows",
    Severity.ERROR,
    "check the export or the filter that made this data set",
    "The data set has no rows.\n\nAn evaluation of nothing fails late, or worse, passes.",
)

MISSPELT_COLUMN = Rule(
    "AE102",
    "misspelt-column",
    Severity.WARNING,
    "rename the column",
    "A column's name is nearly one of the schema.\n\nThe platform ignores a column that it does not know, and the "
    "metrics that need it silently score nothing.",
    bad=({"request": "Hi", "response": "Hello", "expected_respones": "Hello"},),
    good=({"request": "Hi", "response": "Hello", "expected_response": "Hello"},),
)

UNKNOWN_COLUMN = Rule(
    "AE103",
    "unknown-column",
    Severity.INFO,
    "nothing to do: it is carried along unchanged and no metric reads it",
    "A column that the schema does not know.",
    bad=({"request": "Hi", "response": "Hello", "team": "search"},),
    good=({"request": "Hi", "response": "Hello", "tags": {"team": "search"}},),
)

DUPLICATE_COLUMN = Rule(
    "AE104",
    "duplicate-column",
    Severity.ERROR,
    "rename or drop one of them: df.loc[:, ~df.columns.duplicated()] keeps the first",
    "Two columns have the same name.\n\nOnly the first can be read; which one was meant is a guess.",
)

IGNORED_COLUMN = Rule(
    "AE105",
    "ignored-when-generated",
    Severity.WARNING,
    'drop the column, or validate with outputs="provided" if these outputs are to be scored',
    "Outputs are present, but the app is to be run.\n\nThe run generates response, retrieved_context and trace; "
    "what the "
    "columns hold is ignored.",
)

REQUEST_ID_TYPE = Rule(
    "AE106",
    "request-id-not-text",
    Severity.WARNING,
    'make it text: df["request_id"] = df["request_id"].astype(str)',
    "request_id is a number.\n\nThe schema says text; ids that pass through a float column end in .0 or lose digits.",
    bad=({"request_id": 7, "request": "Hi", "response": "Hello"},),
    good=({"request_id": "7", "request": "Hi", "response": "Hello"},),
)

CELL_TYPE = Rule(
    "AE107",
    "wrong-cell-type",
    Severity.ERROR,
    "give the value in the type that the message names",
    "A cell of a plain column (id, count, latency, flag, tags) has the wrong type.\n\nIt cannot be aggregated or "
    "compared.",
    bad=({"request": "Hi", "response": "Hello", "total_token_count": "many"},),
    good=({"request": "Hi", "response": "Hello", "total_token_count": 12},),
)

REPAIRED_CELL = Rule(
    "AE108",
    "repaired-cell",
    Severity.INFO,
    "nothing to do if before and after say the same to you; otherwise mend the cell by hand",
    "A cell was repaired because this was asked for (--fix, fix=True).\n\nThe row is judged as repaired; what the cell "
    "was and what it is now stand in the message.",
)

REPAIRED_COLUMN = Rule(
    "AE109",
    "repaired-column",
    Severity.INFO,
    "nothing to do if this is the column that was meant; otherwise give it a name that is not nearly one of the schema",
    "A misspelt column was renamed because this was asked for (--fix, fix=True).\n\nOnly one column of the schema is "
    "near, no row fills both, and the data has no more errors than before.",
)

EXPECTATIONS_SHAPE = Rule(
    "AE110",
    "expectations-shape",
    Severity.ERROR,
    'give an object: {"expected_response": "...", "expected_facts": ["..."]}',
    "expectations is not an object.\n\nmlflow.genai.evaluate takes a dict a row; anything else, NaN included, ends the "
    "whole run.",
    bad=({"inputs": {"question": "Hi"}, "outputs": "Hello", "expectations": "Hello"},),
    good=({"inputs": {"question": "Hi"}, "outputs": "Hello", "expectations": {"expected_response": "Hello"}},),
)

PAYLOAD_TABLE = Rule(
    "AE111",
    "payload-table",
    Severity.WARNING,
    "make an evaluation set of it: `agent-eval-schema from-inference-table TABLE OUT`, or "
    "eval_set_from_inference_table(table)",
    "The table is a log of calls, and no evaluation set.\n\nIts request and response are HTTP bodies, or what a trace "
    "recorded beside its spans; failed calls, warm-ups and feedback stand between the questions, and a call may be "
    "there twice. Scored as it is, all of that counts.",
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

REFUSED_TAG = Rule(
    "AE112",
    "refused-tag",
    Severity.WARNING,
    "rename the tag with letters, digits and _ - . / : only, 250 characters at most, and no name of mlflow's own; "
    "shorten its value to 8,000",
    "A tag has a name that mlflow refuses, or a value that it cuts.\n\nmlflow.genai.evaluate gives the tags of a row "
    "to its trace, and leaves these out with a line in its log at most. mlflow.user, mlflow.artifactLocation and "
    "mlflow.trace.spansLocation, .archiveLocation and .archivalFailure are its own.",
    bad=(
        {"request": "Hi", "response": "Hello", "tags": {"team (new)": "search"}},
        {"request": "Hi", "response": "Hello", "tags": {"mlflow.user": "ann"}},
    ),
    good=(
        {"request": "Hi", "response": "Hello", "tags": {"team.new": "search"}},
        {"request": "Hi", "response": "Hello", "tags": {"mlflow.source.name": "search"}},
    ),
)
