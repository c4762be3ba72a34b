"""Rules that look at several cells of a row."""

import posixpath
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema.decoding.values import FAILED
from agent_eval_schema.rules import columns, expectations, requests, retrieval, tools
from agent_eval_schema.text.describe import excerpt, key_name
from agent_eval_schema.validation.rows import Rows


def note_empty_lists(rows: Rows) -> None:
    """Lists that are there and say nothing where something was expected."""
    for name, rule, noun in _EMPTY:
        column = rows.column(name)
        for row in np.flatnonzero(column.given() & ~column.filled()).tolist():
            rows.log.add(rule, row, name, f"expected at least one {noun}, got an empty list")


_EMPTY = (
    ("expected_retrieved_context", retrieval.EMPTY_EXPECTED_CONTEXT, "document"),
    ("predicted_trajectory", tools.EMPTY_TRAJECTORY, "call"),
    ("reference_trajectory", tools.EMPTY_TRAJECTORY, "call"),
)


def look_at_tags(rows: Rows) -> None:
    """The tags that mlflow leaves out or cuts, with no more than a line in its log."""
    for row, tags in enumerate(rows.column("tags")):
        for name, value in tags.items() if isinstance(tags, dict) else ():
            if (why := _refused(name, value)) is not None:
                rows.log.add(columns.REFUSED_TAG, row, "tags", why, path=f"tags.{key_name(name)}")


def _refused(name: str, value: Any) -> str | None:
    if len(name) > LONGEST_TAG_NAME:
        return f"expected a name of at most {LONGEST_TAG_NAME} characters, got one of {len(name):,}"
    if not _TAG_NAME(name) or posixpath.normpath(name) != name or name == "." or name.startswith(("..", "/")):
        return "expected a name of letters, digits, spaces and _ - . / : that is no odd path, got another"
    if name in OF_MLFLOW:
        return "expected a name of your own, got one under which mlflow keeps what it knows of a trace"
    if isinstance(value, str) and len(value) > LONGEST_TAG:
        return f"expected at most {LONGEST_TAG:,} characters, got {len(value):,}"
    return None


LONGEST_TAG_NAME, LONGEST_TAG = 250, 8_000
_TAG_NAME = re.compile(r"[/\w.\- :]*").fullmatch
"""Source: mlflow's own check of the tags of a trace (3.17)."""

OF_MLFLOW = frozenset(
    [
        *("mlflow.user", "mlflow.artifactLocation"),
        *("mlflow.trace.spansLocation", "mlflow.trace.archiveLocation", "mlflow.trace.archivalFailure"),
    ]
)
"""Tags that nobody can set on a trace: IMMUTABLE_TAGS of mlflow 3.17 (of 3.5 the first two). All other names that
begin with `mlflow.` are stored as they come."""


def require_request_and_output(rows: Rows) -> None:
    """Every row needs a request; with outputs provided it needs a response or a trace."""
    traced = rows.column("trace")
    for row in np.flatnonzero(rows.column("request").missing()).tolist():
        if row not in rows.unread and traced[row] is not FAILED:
            _note_missing(rows, row, ("request",), requests.MISSING_REQUEST, "expected a request, got none")
    for row in np.flatnonzero(rows.column("response").missing()).tolist() if rows.outputs == "provided" else ():
        if traced[row] is None and row not in rows.unread:
            message = "expected a response or a trace, got neither"
            _note_missing(rows, row, ("response", "trace"), requests.MISSING_OUTPUT, message)


def _note_missing(rows: Rows, row: int, names: tuple[str, ...], rule: Any, message: str) -> None:
    """A misspelt column absorbs the "missing" that it causes: one cause, one issue."""
    wrong = next((rows.misspelt[n] for n in names if n in rows.misspelt), None)
    hint = f"rename the column `{wrong}`: did you mean `{_meant(rows, wrong)}`?" if wrong else ""
    rows.log.add(rule, row, names[0], message, hint=hint)


def _meant(rows: Rows, wrong: str) -> str:
    return next(right for right, w in rows.misspelt.items() if w == wrong)


def forbid_two_truths(rows: Rows) -> None:
    """expected_response and expected_facts: at most one."""
    both = rows.column("expected_response").given() & rows.column("expected_facts").filled()
    for row in np.flatnonzero(both).tolist():
        message = "expected at most one of expected_response and expected_facts, got both"
        rows.log.add(expectations.BOTH_RESPONSE_AND_FACTS, row, "expected_response", message)


COPY_LENGTH = 60
"""From this many characters on, the same text is taken for a copy; short answers are rightly the same."""
OPENINGS = ("hi", "hello", "hey", "dear", "thank you", "thanks for", "great question", "sure", "certainly", "of course")
CLOSINGS = ("hope this helps", "hope that helps", "let me know if", "feel free to", "happy to help", "best regards")
_OPENS = rf"(?i)^\s*({'|'.join(OPENINGS)})\b.{{12}}"
_CLOSES = rf"(?i)({'|'.join(CLOSINGS)})[^.!?]*[.!?]?\s*$"
_END = 120
"""A closing phrase stands in the last so many bytes."""


def look_at_ground_truth(rows: Rows) -> None:
    """The signs of seed 003 that expected_response was copied rather than written."""
    truths, answers = rows.column("expected_response").texts(), rows.column("response").texts()
    size, answer_size = pc.utf8_length(truths), pc.utf8_length(answers)
    long = _rows_where(pc.greater_equal(size, COPY_LENGTH))
    signs: dict[int, list[str]] = {}
    for row in _rows_where(pc.and_(pc.equal(truths, answers), pc.greater_equal(size, COPY_LENGTH))):
        signs.setdefault(row, []).append("it is identical to the response")
    for row in _rows_where(pc.greater(size, pc.max_element_wise(pc.multiply(answer_size, 3), 200, skip_nulls=False))):
        times = size[row].as_py() // max(answer_size[row].as_py(), 1)
        signs.setdefault(row, []).append(f"it is {times} times as long as the response")
    for row in rows.column("retrieved_context").rows_holding(truths, long):
        signs.setdefault(row, []).append("it stands word for word in a retrieved document")
    for row in _rows_where(_polite(truths)):
        signs.setdefault(row, []).append("it holds a greeting or a closing phrase")
    for row, found in sorted(signs.items()):
        message = f"expected the minimal facts, got {excerpt(truths[row].as_py())}: {'; '.join(found)}"
        rows.log.add(expectations.NOT_MINIMAL, row, "expected_response", message)


def _polite(truths: pa.Array) -> pa.Array:
    """Which texts open with a greeting or close with a phrase: Arrow's regex engine, and only on the two ends."""
    ends = pc.binary_slice(truths.cast(pa.large_binary()), -_END)
    return pc.or_(pc.match_substring_regex(truths, _OPENS), pc.match_substring_regex(ends, _CLOSES))


def _rows_where(mask: pa.Array) -> list[int]:
    found: list[int] = np.flatnonzero(np.asarray(mask.fill_null(False))).tolist()
    return found
