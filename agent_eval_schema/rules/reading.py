"""AE0: rows and cells that cannot be parsed."""

from agent_eval_schema.rules.pages import EVALUATION_SCHEMA, JSON, NO_PAGE, Page

_json_page = Page(JSON)

MAX_DEPTH = 256
"""The levels of lists and objects in a cell, and in JSON text inside of a cell: a count of ours, as the recursion limit
of a parser depends on the Python and on the stack of the caller. Functions of ours that walk a value take up to three
stack frames per level, of the thousand that Python 3.10 and 3.11 have."""

INTERNAL = NO_PAGE.error(
    "AE001 rule-failed",
    "Internal error: a rule raised an exception on this row.",
    why="The other rules were not applied, so the row is marked invalid, and validation continues.",
    hint="Report this as a bug, with the row and this message.",
    no_example="The rule reports a defect of this package.",
)

RULE_NOT_RUN = NO_PAGE.warning(
    "AE013 rule-not-run",
    "A rule of another package was not applied to this row.",
    why="It raised an exception, or its package is not installed where the row was validated. All other rules applied.",
    hint="Report it to the authors of the package, or install the package on every worker.",
    no_example="The rule reports a defect of another package, or of its installation.",
)

MALFORMED_JSON = _json_page.error(
    "AE002 malformed-json",
    "A cell that must contain JSON contains a string that is not JSON.",
    why="The platform parses the cell and rejects the whole row.",
    hint="Write the cell with `json.dumps`, and look for a truncated export at the byte that the message names.",
    bad=({"request": "Hi", "response": "Hello", "expected_retrieved_context": '[{"doc_uri": "a.md"'},),
    good=({"request": "Hi", "response": "Hello", "expected_retrieved_context": '[{"doc_uri": "a.md"}]'},),
)

PYTHON_LIST = _json_page.warning(
    "AE182 python-list",
    "A cell contains the text that Python writes of a list.",
    why="`DataFrame.to_csv` writes it. It is read as the list, but the platform's parser of JSON rejects it.",
    hint="Write the cell with `json.dumps`; `--fix` does.",
    bad=({"request": "Hi", "response": "Hello", "expected_facts": "['paid', 'sent']"},),
    good=({"request": "Hi", "response": "Hello", "expected_facts": '["paid", "sent"]'},),
)

NAN_LITERAL = _json_page.error(
    "AE003 nan-literal",
    "JSON text contains NaN or Infinity, which are not JSON.",
    why="Python writes these literals; Spark, JavaScript and strict parsers reject them.",
    hint="Write null for a missing number; `json.dumps(value, allow_nan=False)` raises where one occurs.",
    bad=({"request": "Hi", "response": "Hello", "custom_expected": '{"score": NaN}'},),
    good=({"request": "Hi", "response": "Hello", "custom_expected": '{"score": null}'},),
)

TOO_DEEP = _json_page.error(
    "AE004 nested-too-deep",
    f"A cell contains more than {MAX_DEPTH} levels of lists and objects.",
    why=(
        "The platform's parser stops or crashes on it. A cell this deep is usually an escaped document that was"
        " parsed repeatedly. The limit is the same in every kind of input and on every Python."
    ),
    hint="Flatten the value.",
    bad=({"request": "Hi", "response": "Hello", "custom_expected": "[" * 5000 + "]" * 5000},),
    good=({"request": "Hi", "response": "Hello", "custom_expected": '{"a": [[[1]]]}'},),
)

NOT_UTF8 = Page(JSON).error(
    "AE005 not-utf8",
    "Bytes are not UTF-8.",
    why="Platforms read these files as UTF-8: a Windows-1252 or UTF-16 export fails or turns into wrong characters.",
    hint="Save the file as UTF-8, for example with `iconv -f cp1252 -t utf-8`.",
    no_example="The rule concerns the bytes of a file.",
)

LONE_SURROGATE = _json_page.error(
    "AE006 lone-surrogate",
    "Text contains a lone surrogate (invalid Unicode).",
    why="UTF-8, and so a file or a request, cannot contain it. A string that was cut within an emoji has one.",
    hint="Replace it: `text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace')`.",
    bad=({"request": "Hi \ud83d", "response": "Hello"},),
    good=({"request": "Hi \U0001f600", "response": "Hello"},),
)

MALFORMED_ROW = _json_page.error(
    "AE007 malformed-row",
    "A line of the file is not a valid row.",
    why="A truncated or hand-edited line makes the platform reject the whole file.",
    hint="Correct the line that the message names; its original text is kept with the invalid rows.",
    no_example="The rule concerns a line of a file.",
)

NOT_A_ROW = Page(EVALUATION_SCHEMA).error(
    "AE008 not-an-object",
    "A row is not an object.",
    why="A list, a number or a string has no columns to read.",
    hint='Write each row as an object: `{"request": ..., "response": ...}`.',
    no_example="The rule concerns a line of a file.",
)

UNREADABLE_CELL = _json_page.error(
    "AE009 unreadable-cell",
    "A cell contains an object that cannot be serialized as JSON.",
    why="Files, Spark and the platforms transfer plain data only.",
    hint="Use plain data: strings, numbers, lists, dicts, dataclasses or pydantic objects.",
    bad=({"request": {"messages": [{"role": "user", "content": 1j}]}, "response": "Hello"},),
    good=({"request": {"messages": [{"role": "user", "content": "Hi"}]}, "response": "Hello"},),
)

CONTROL_CHARACTER = _json_page.warning(
    "AE010 nul-character",
    "Text contains a NUL character.",
    why="It is valid JSON, but databases and many consoles reject or truncate the string there.",
    hint=r"Remove it: `text.replace('\x00', '')`.",
    bad=({"request": "Hi\x00", "response": "Hello"},),
    good=({"request": "Hi", "response": "Hello"},),
)

LARGE_CELL = NO_PAGE.error(
    "AE011 large-cell",
    "A cell is larger than the limit of this run.",
    why="The cell is not parsed: one cell could take the memory and time of all others.",
    hint="Shorten the cell, or raise the limit (`max_cell_bytes`, `--max-cell-bytes`).",
    no_example="The rule applies when a run has a limit.",
)

NOT_A_LIST = _json_page.error(
    "AE012 not-a-list-of-rows",
    "A document has something else where its list of rows belongs.",
    why="The document is that of a known format, but no row can be read from it.",
    hint="Write the list of rows under the key that the message names, or give the file that contains the list.",
    bad=({"scenarios": 3},),
    good=({"scenarios": [{"scenario_id": "refund", "turns": [{"input": "Hi", "expected_response": "Hello"}]}]},),
)
