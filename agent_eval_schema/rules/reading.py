"""AE0: what keeps a row or a cell from being read at all."""

from agent_eval_schema.issues import Rule, Severity

INTERNAL = Rule(
    "AE001",
    "rule-failed",
    Severity.ERROR,
    "the row is set aside and the run goes on; please report the row and this message as a defect of agent_eval_schema",
    "A rule broke down on this row.\n\nNothing about the row was verified beyond this point, so it is not called "
    "valid.",
)

MALFORMED_JSON = Rule(
    "AE002",
    "malformed-json",
    Severity.ERROR,
    "write the cell with json.dumps, and look for a cut-off export at the byte that the message names",
    "A cell that must hold JSON holds text that is not JSON.\n\nThe platform parses the cell and fails on the "
    "whole row.",
    bad=({"request": "Hi", "response": "Hello", "expected_retrieved_context": '[{"doc_uri": "a.md"'},),
    good=({"request": "Hi", "response": "Hello", "expected_retrieved_context": '[{"doc_uri": "a.md"}]'},),
)

NAN_LITERAL = Rule(
    "AE003",
    "nan-literal",
    Severity.ERROR,
    "write null for a missing number: json.dumps(..., allow_nan=False) finds the place",
    "JSON text holds NaN or Infinity, which JSON does not have.\n\nPython writes them, Spark, JavaScript and strict "
    "parsers refuse them.",
    bad=({"request": "Hi", "response": "Hello", "custom_expected": '{"score": NaN}'},),
    good=({"request": "Hi", "response": "Hello", "custom_expected": '{"score": null}'},),
)

TOO_DEEP = Rule(
    "AE004",
    "nested-too-deep",
    Severity.ERROR,
    "flatten the value; a cell this deep is usually an escaped document that was parsed again and again",
    "A cell is nested deeper than a parser can follow.\n\nThe platform's parser would stop or crash at it.",
    bad=({"request": "Hi", "response": "Hello", "custom_expected": "[" * 5000 + "]" * 5000},),
    good=({"request": "Hi", "response": "Hello", "custom_expected": '{"a": [[[1]]]}'},),
)

NOT_UTF8 = Rule(
    "AE005",
    "not-utf8",
    Severity.ERROR,
    "save the file as UTF-8 (for example: iconv -f latin1 -t utf-8)",
    "Bytes that are not UTF-8.\n\nEvery platform reads these files as UTF-8; a Latin-1 or UTF-16 export turns into "
    "wrong characters or fails.",
)

LONE_SURROGATE = Rule(
    "AE006",
    "lone-surrogate",
    Severity.ERROR,
    "repair the text: text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace')",
    "Text holds half of a character (a lone surrogate).\n\nIt cannot be written as UTF-8, so no file, table or request "
    "can carry it. It comes from text that was cut in the middle of an emoji.",
    bad=({"request": "Hi \ud83d", "response": "Hello"},),
    good=({"request": "Hi \U0001f600", "response": "Hello"},),
)

MALFORMED_ROW = Rule(
    "AE007",
    "malformed-row",
    Severity.ERROR,
    "mend the line that the message names; the original text is kept with the invalid rows",
    "A line of the file is not a row.\n\nA cut-off or hand-edited line would fail the whole file on the platform.",
)

NOT_A_ROW = Rule(
    "AE008",
    "not-an-object",
    Severity.ERROR,
    'every row is an object: {"request": ..., "response": ...}',
    "A row is not an object with columns.\n\nA list, a number or a text has no columns to read.",
)

UNREADABLE_CELL = Rule(
    "AE009",
    "unreadable-cell",
    Severity.ERROR,
    "give plain data: text, numbers, lists, dicts, dataclasses or pydantic objects",
    "A cell holds an object that cannot be written as JSON.\n\nFiles, Spark and the platform only carry plain data.",
    bad=({"request": {"messages": [{"role": "user", "content": 1j}]}, "response": "Hello"},),
    good=({"request": {"messages": [{"role": "user", "content": "Hi"}]}, "response": "Hello"},),
)

CONTROL_CHARACTER = Rule(
    "AE010",
    "nul-character",
    Severity.WARNING,
    r"remove it: text.replace('\x00', '')",
    "Text holds a NUL character.\n\nIt is legal JSON, but databases and many consoles refuse or cut the text there.",
    bad=({"request": "Hi\x00", "response": "Hello"},),
    good=({"request": "Hi", "response": "Hello"},),
)
