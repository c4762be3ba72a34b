"""Rules that look at several cells of a row."""

import posixpath
import re
from functools import partial, reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema.cells.arrow import is_text, rows_beginning_with, rows_passing, simplified
from agent_eval_schema.cells.batch import is_json_column
from agent_eval_schema.decoding.requests import last_user_text
from agent_eval_schema.decoding.values import FAILED
from agent_eval_schema.formats.suggestions import names_of, naming_columns
from agent_eval_schema.rule import Rule
from agent_eval_schema.rules import columns, expectations, requests, retrieval, tools
from agent_eval_schema.text.describe import describe, excerpt, key_name
from agent_eval_schema.text.spelling import (
    AROUND,
    LONGEST_PLACEHOLDER,
    SHEET_ERRORS,
    UNWRITTEN,
    UNWRITTEN_TRUTHS,
    is_unwritten,
    odd_blanks,
)
from agent_eval_schema.validation.rows import Rows


def note_empty_lists(rows: Rows) -> None:
    """Lists that are present and empty where content is expected."""
    for name, rule, noun in _EMPTY:
        column = rows.values[name]
        for row in np.flatnonzero(column.given() & ~column.filled()).tolist():
            rows.log.add(rule, row, name, f"expected at least one {noun}, got {describe(column[row])}")


_EMPTY = (
    ("expected_facts", expectations.BLANK_EXPECTATION, "fact"),
    ("guidelines", expectations.BLANK_EXPECTATION, "guideline"),
    ("expected_retrieved_context", retrieval.EMPTY_EXPECTED_CONTEXT, "document"),
    ("predicted_trajectory", tools.EMPTY_TRAJECTORY, "call"),
    ("reference_trajectory", tools.EMPTY_TRAJECTORY, "call"),
)
LISTS = tuple(name for name, _, _ in _EMPTY)


def note_null_placeholders(rows: Rows) -> None:
    """Requests and responses that are another tool's placeholder for a missing value, or a whole chat in a text."""
    for name, words in (("request", _PLACEHOLDERS), ("response", _PLACEHOLDERS if rows.plan.without_null else _OF_NAN)):
        at = rows.batch.schema.get_field_index(name)
        if at < 0:
            continue
        array = rows.batch.column(at)
        if not is_text(array.type) and not is_text((array := simplified(array)).type):
            continue
        nulls = pa.array([f'"{word}"' for word in words] if is_json_column(rows.batch.schema.field(at)) else words)
        short = pc.indices_nonzero(pc.less_equal(pc.binary_length(array), LONGEST_PLACEHOLDER))
        for row in short.filter(pc.is_in(array.take(short), nulls.cast(array.type))).to_pylist():
            got = describe(array[row].as_py().strip('"'))
            rows.log.add(columns.NULL_PLACEHOLDER, row, name, f"expected {_MEANT[name]}, got {got}")
        for row in _rows_where(pc.match_substring_regex(array, _CHAT)) if name == "request" else ():
            message = "expected the messages of a chat, got one text with the turns of a user and an assistant"
            rows.log.add(requests.CHAT_AS_TEXT, row, "request", message)


_CHAT = (
    r'(?is)^"?\s*(user|human|customer|client|nutzer|benutzer|kunde|usuario|utilisateur)\s*:.*'
    r"(\n|\\n)\s*(assistant|ai|agent|bot|assistent|asistente)\s*:"
)
"""A turn of a user at the begin of a text, and one of an assistant on a later line, which JSON text has escaped."""


_OF_NAN = ("nan", "NaN", "-nan", "-NaN", "<NA>", "NaT", "#NA", "#N/A N/A", *SHEET_ERRORS)
_PLACEHOLDERS = (*_OF_NAN, "NA", "N/A", "n/a", "NULL", "null", "None")
"""What `pandas.read_csv` reads as missing, what `str` writes of NaN, NA and None, and errors of a spreadsheet: NA, None
and null may be answers."""
_MEANT = {"request": "a request", "response": "the agent's answer"}


def note_placeholders(rows: Rows) -> None:
    """Ground truth and responses that someone was still to write, that a program wrote, or that are a header."""
    for name, words in (("expected_response", UNWRITTEN_TRUTHS), ("response", UNWRITTEN)):
        texts = rows.values[name].texts()
        short = pc.indices_nonzero(pc.less_equal(pc.binary_length(texts), LONGEST_PLACEHOLDER))
        if not len(short):
            continue
        cores = pc.utf8_lower(pc.utf8_trim(texts.take(short), AROUND))
        is_placeholder = pc.is_in(cores, pa.array(words, cores.type), skip_nulls=True)
        for row in short.filter(pc.and_(is_placeholder, pc.not_equal(cores, ""))).to_pylist():
            message = f"expected the text, got {describe(texts[row].as_py())}"
            rows.log.add(expectations.PLACEHOLDER, row, name, message)
        for row in short.filter(pc.match_substring_regex(cores, _MIDNIGHT)).to_pylist():
            message = f"expected the text of a date, got {describe(texts[row].as_py())}"
            rows.log.add(expectations.DATE_AS_TIME, row, name, message)
        words_of_header, request_names = pa.array(names_of(name), cores.type), names_of("request")
        letters = pc.replace_substring_regex(cores, _BETWEEN, "")
        for row in short.filter(pc.is_in(letters, words_of_header, skip_nulls=True)).to_pylist():
            question = last_user_text(rows.values["request"][row])
            if question is not None and re.sub(_BETWEEN, "", question.lower()) in request_names:
                message = f"expected a row, got {describe(question)} and {describe(texts[row].as_py())}"
                rows.log.add(columns.HEADER_ROW, row, "request", message)


_BETWEEN = r"[\s_.:?-]"
"""The signs between and behind the words of a header; "question 7" is none."""


def note_placeholder_entries(rows: Rows) -> None:
    """Facts and guidelines that someone was still to write."""
    for name in ("expected_facts", "guidelines"):
        cells = [() if cell is None or cell is FAILED else cell for cell in rows.values[name]]
        lists = [list(cell.items()) if isinstance(cell, dict) else [("", cell)] for cell in cells]
        short = {text for cell in lists for _, texts in cell for text in texts if len(text) <= LONGEST_PLACEHOLDER}
        if not (unwritten := set(filter(is_unwritten, short))):
            continue
        for row, cell in enumerate(lists):
            for key, i, text in [(k, i, t) for k, texts in cell for i, t in enumerate(texts) if t in unwritten]:
                path = f"{name}.{key_name(key)}[{i}]" if key else f"{name}[{i}]"
                rows.log.add(expectations.PLACEHOLDER, row, name, f"expected the text, got {describe(text)}", path=path)


_MIDNIGHT = r"^\d{4}-\d\d-\d\d[t ]00:00(:00(\.0+)?)?(z|[+]00:00)?$"


def inspect_tags(rows: Rows) -> None:
    """The tags that MLflow omits or truncates; next to a trace, those of its own names are set by MLflow itself."""
    traces = rows.values["trace"]
    for row, tags in enumerate(rows.values["tags"]):
        for name, value in tags.items() if isinstance(tags, dict) else ():
            of_mlflow = name in SET_BY_MLFLOW or (traces[row] is not None and name.startswith("mlflow."))
            if not of_mlflow and (why := _refused(name, value)) is not None:
                rows.log.add(columns.REFUSED_TAG, row, "tags", why, path=f"tags.{key_name(name)}")
            if not of_mlflow and any(isinstance(t, str) and odd_blanks(t) and t.strip() for t in (name, value)):
                why = f"expected single blanks inside of {key_name(name)!r} and its value only, got others"
                rows.log.add(columns.BLANKS_IN_TAG, row, "tags", why, path=f"tags.{key_name(name)}")


def _refused(name: str, value: Any) -> str | None:
    if len(name) > LONGEST_TAG_NAME:
        return f"expected a name of at most {LONGEST_TAG_NAME} characters, got one of {len(name):,}"
    if not _TAG_NAME(name) or posixpath.normpath(name) != name or name == "." or name.startswith(("..", "/")):
        return (
            "expected a name of letters, digits, spaces and _ - . / : without empty, . or .. path segments, got another"
        )
    if name in OF_MLFLOW:
        return "expected a name that MLflow does not reserve, got a reserved one"
    if isinstance(value, str) and len(value) > LONGEST_TAG:
        return f"expected at most {LONGEST_TAG:,} characters, got {len(value):,}"
    return None


LONGEST_TAG_NAME, LONGEST_TAG = 250, 8_000
_TAG_NAME = re.compile(r"[/\w.\- :]*").fullmatch
"""Source: mlflow's own check of the tags of a trace (3.17)."""

SET_BY_MLFLOW = frozenset(
    [
        "mlflow.artifactLocation",
        *("mlflow.trace.spansLocation", "mlflow.trace.archiveLocation", "mlflow.trace.archivalFailure"),
    ]
)
"""Tags that only MLflow sets: it omits them, and no value of a user is lost."""
OF_MLFLOW = SET_BY_MLFLOW | {"mlflow.user"}
"""Tags that cannot be set on a trace: IMMUTABLE_TAGS of MLflow 3.17. Others in `mlflow.` are stored unchanged."""


def require_request_and_output(rows: Rows) -> None:
    """Every row needs a request; with outputs provided it needs a response or a trace. Formats may ask for less."""
    form, plan = rows.form, rows.plan
    instead_of_response = form.outputs if plan.requires_outputs else form.instead_of_response
    needs: list[tuple[tuple[str, ...], tuple[str, ...], Rule, str]]
    accepted = form.instead_of_request if plan.instead_of_request is None else plan.instead_of_request
    instead_of_request = tuple(name for name in form.instead_of_request if name in accepted)
    needs = [(("request",), instead_of_request, requests.MISSING_REQUEST, "a request, got none")]
    if plan.outputs == "provided":
        asked_for = plan.requires_outputs and form.instead_of_response != form.outputs
        outputs = f"a response or a trace{' in each row (`outputs=provided`)' if asked_for else ''}, got neither"
        needs.append((("response", "trace"), instead_of_response, requests.MISSING_OUTPUT, outputs))
    for names, instead, rule, expected in needs:
        others = () if plan.complete else instead
        columns = [rows.values[name] for name in {*names, *others, "trace"}]
        present = reduce(np.logical_or, (rows.values[name].given() for name in names))
        replaced = reduce(np.logical_or, (rows.values[name].given() for name in others), np.zeros(rows.size, bool))
        for row in np.flatnonzero(~(present if plan.normalized else present | replaced)).tolist():
            if row in rows.unread or any([column[row] is FAILED for column in columns]):
                continue  # what cannot be read is its own issue
            if replaced[row]:
                rows.log.add(requests.INCOMPLETE_ROW, row, names[0], f"expected {expected}")
            else:  # a misspelled column absorbs the "missing" that it causes: one cause, one issue
                wrong = next((rows.misspelled[n] for n in names if n in rows.misspelled), None)
                meant = next((right for right, w in rows.misspelled.items() if w == wrong), None)
                hint = f"Did you mean `{meant}`? Rename the column `{wrong}`." if wrong else ""
                if rule is requests.MISSING_REQUEST and not hint:
                    likely = {p: n for p, n in plan.suggested.items() if n.partition(".")[0] in ("request", "inputs")}
                    hint = f"Name the column as it looks ({naming_columns(likely)}).{plan.then}" if likely else ""
                rows.log.add(rule, row, names[0], f"expected {expected}", hint=hint)


def forbid_two_truths(rows: Rows) -> None:
    """expected_response and expected_facts: at most one; of MLflow's scorers one rejects both, and the others score.
    Rows that were normalized with both of them were MLflow's."""
    is_mlflow = rows.plan.format == "mlflow" or rows.plan.normalized
    rule = expectations.BOTH_IN_EXPECTATIONS if is_mlflow else expectations.BOTH_RESPONSE_AND_FACTS
    chosen = rows.plan.named and rule is expectations.BOTH_RESPONSE_AND_FACTS
    hint = f"{rule.hint} {_AS_MLFLOW}" if chosen else ""
    both = rows.values["expected_response"].given() & rows.values["expected_facts"].filled()
    for row in np.flatnonzero(both).tolist():
        message = "expected at most one of expected_response and expected_facts, got both"
        rows.log.add(rule, row, "expected_response", message, hint=hint)


_AS_MLFLOW = (
    "Under these names the rows are those of Databricks; as rows of MLflow (`--format mlflow`, "
    '`format="mlflow"`) they are valid.'
)

COPY_LENGTH = 60
"""From this many characters on, the same text is taken for a copy; short answers are rightly the same."""
LONG = 200
"""More characters than this, and three times as many as the response has, are more than an answer needs."""
OPENINGS = ("hi", "hello", "hey", "dear", "thank you", "thanks for", "great question", "sure", "certainly", "of course")
CLOSINGS = ("hope this helps", "hope that helps", "let me know if", "feel free to", "happy to help", "best regards")
_opens = partial(pc.match_substring_regex, pattern=rf"(?i)^\s*({'|'.join(OPENINGS)})\b.{{12}}")
_OPENING_BYTES = bytes({ord(case(words[0])) for words in (*OPENINGS, *"\t\n\f\r ") for case in (str.lower, str.upper)})
_CLOSES = rf"(?i)({'|'.join(CLOSINGS)})[^.!?]*[.!?]?\s*$"
_END = 120
"""A closing phrase is in this number of bytes at the end."""


def inspect_ground_truth(rows: Rows) -> None:
    """The signs that expected_response was copied rather than written."""
    truths, answers = rows.values["expected_response"].texts(), rows.values["response"].texts()
    size = pc.utf8_length(truths)
    long = _rows_where(pc.greater_equal(size, COPY_LENGTH))
    signs: dict[int, list[str]] = {}
    for row in _rows_where(pc.and_(pc.equal(truths, answers), pc.greater_equal(size, COPY_LENGTH))):
        signs.setdefault(row, []).append("it is identical to the response")
    for row in _rows_where(pc.and_(pc.greater(size, LONG), answers.is_valid())):  # few: not all answers are measured
        answer_size = len(answers[row].as_py())
        if size[row].as_py() > 3 * answer_size:
            times = size[row].as_py() // max(answer_size, 1)
            signs.setdefault(row, []).append(f"it is {times} times as long as the response")
    for row in rows.values["retrieved_context"].rows_holding(truths, long):
        signs.setdefault(row, []).append("it occurs verbatim in a retrieved document")
    ends = pc.binary_slice(truths.cast(pa.large_binary()), -_END)  # Arrow's regex engine, and only on the two ends
    opening = rows_passing(truths, rows_beginning_with(truths, _OPENING_BYTES), _opens)
    for row in {*opening, *_rows_where(pc.match_substring_regex(ends, _CLOSES))}:
        signs.setdefault(row, []).append("it holds a greeting or a closing phrase")
    for row, reasons in sorted(signs.items()):
        message = f"expected the minimal facts, got {excerpt(truths[row].as_py())}: {'; '.join(reasons)}"
        rows.log.add(expectations.NOT_MINIMAL, row, "expected_response", message)


def _rows_where(mask: pa.Array) -> list[int]:
    rows: list[int] = np.flatnonzero(np.asarray(mask.fill_null(False))).tolist()
    return rows
