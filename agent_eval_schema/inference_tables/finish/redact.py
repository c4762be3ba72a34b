"""Redaction: private data in the texts of a cell is replaced, and counted by kind.

    "Write to ana@example.com or +44 20 7946 0958"   →   "Write to [EMAIL] or [PHONE]"

A cell that is JSON stays JSON: only its strings are searched, string by string, and a string that contains JSON itself
(the attributes of a span) in the same way; everything else keeps its bytes. The default finds e-mail addresses, phone
numbers and card numbers; any function from text to text can take its place.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from json.encoder import encode_basestring
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema.inference_tables.options import Hook
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.runtime.put_off_pandas import find_pandas
from agent_eval_schema.text.jsontext import Malformed, parse
from agent_eval_schema.text.privacy import error_text
from agent_eval_schema.text.visible import visible

DEFAULT = "default"

MAX_NESTING = 8
"""JSON within JSON within JSON: deeper levels are taken as text."""


class PrivateKind(NamedTuple):
    """Something private: its name, how it looks, and what else must be true of a match."""

    name: str
    pattern: re.Pattern[str]
    holds: Callable[[str], bool]


def is_card_number(text: str) -> bool:
    """Whether the digits are those of a payment card: 13 to 19 of them, of an issuer, with a sum that holds (Luhn)."""
    digits = re.sub(r"\D", "", text)
    if not 13 <= len(digits) <= 19 or len(set(digits)) == 1:
        return False
    doubled = (sum(divmod(2 * int(d), 10)) for d in digits[-2::-2])
    return (sum(doubled) + sum(map(int, digits[-1::-2]))) % 10 == 0


# Neither may be inside of a longer word or number: IDs and hashes are full of digits.
_ALONE_BEFORE, _ALONE_AFTER = r"(?<![\w.+/=-])", r"(?![\w=]|[-./+]\w)"

PRIVATE_KINDS = (
    PrivateKind(
        "email",
        re.compile(r"(?<![\w.+%-])[\w.+%-]{1,64}@(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.)+[^\W\d_]{2,24}(?![\w@])"),
        lambda _: True,
    ),
    # Issuers' numbers begin with 2 to 6 (a timestamp with 1).
    PrivateKind("card", re.compile(_ALONE_BEFORE + r"[2-6]\d{3}(?:[ -]?\d){9,15}" + _ALONE_AFTER), is_card_number),
    # With the code of a country; or of three, three and four digits, with signs between them.
    PrivateKind(
        "phone",
        re.compile(
            r"(?<![\w+/=])(?:\+|00)[1-9]\d{0,2}(?:[ ./-]?\(?\d{1,5}\)?){2,6}(?![\w=]|[-/+]\w)"
            r"|(?<![\w.+/=-])(?:1[ .-])?(?:\(\d{3}\)[ ]?|\d{3}[ .-])\d{3}[ .-]\d{4}(?![\w=]|[-./+]\w)"
        ),
        lambda text: 8 <= sum(c.isdigit() for c in text) <= 15,
    ),
)
"""In the order in which they are looked for."""

_SUSPECT = "|".join(
    [
        r"@|\\u00",
        r"(?:^|[^0-9A-Za-z_.]|\\[bfnrt])[2-6]\d{3}(?:[ -]?\d){9}",
        r"(?:\+|00)[1-9]\d{0,2}[ ./(-]?\(?\d",
        r"\d{3}\)?[ .-]?\d{3}[ .-]\d{4}",
    ]
)
"""The characters that a cell must contain for the default to search it (an escape may hide them)."""

_may_be_private = re.compile(r"@|\\[u/]|\d(?:\D{0,3}\d){7}").search
"""The characters that any text must contain, as it is in JSON or not, to be worth a look at its parts: a quick test for
the many strings of a cell, of which most have nothing private."""

STRUCTURAL = frozenset(
    {
        *("role", "type", "object", "model", "status", "status_code", "code", "finish_reason", "state"),
        *("id", "span_id", "trace_id", "parent_id", "parent_span_id", "request_id", "call_id", "tool_call_id"),
        *("client_request_id", "run_id", "mlflow.traceRequestId", "mlflow.spanType", "start_time", "end_time"),
        *("start_time_unix_nano", "end_time_unix_nano", "request_time", "timestamp", "execution_duration"),
    }
)
"""Keys whose strings make up the structure of a chat or a trace: a hook of the user is not asked about them."""


class Redactor:
    """Replaces private data in cells; `rows` counts the replacements of each kind per row of the batch (of a hook: the
    texts that it changed)."""

    def __init__(self, given: str | Hook) -> None:
        self.rows: defaultdict[int, Counter[str]] = defaultdict(Counter)
        self._counts: Counter[str] = Counter()
        self._hook = None if given == DEFAULT else find_hook(given) if isinstance(given, str) else given
        self._text = self._by_default if self._hook is None else self._by_hook

    def column(self, array: pa.Array, rows: np.ndarray[Any, Any] | None = None) -> pa.Array:
        """A column of text (JSON or not) with its cells redacted; the same array if there is nothing to replace. `rows`
        has the row of each text (its own, if not given)."""
        found = array.is_valid() if self._hook else pc.match_substring_regex(array, _SUSPECT).fill_null(False)
        texts = dict[int, str]()
        for at in np.flatnonzero(np.asarray(found)).tolist():
            self._counts = self.rows[at if rows is None else int(rows[at])]
            text = array[at].as_py()
            if (new := self.cell(text)) != text:
                texts[at] = new
        if not texts:
            return array
        return pa.array([texts.get(i, t) for i, t in enumerate(array.to_pylist())], array.type)

    def cell(self, text: str, depth: int = 0) -> str:
        """The text redacted. If it is JSON, so is the result, and its strings are redacted."""
        if self._hook is None and not _may_be_private(text):
            return text
        if depth < MAX_NESTING and text.lstrip()[:1] in ("{", "[", '"') and not isinstance(parse(text), Malformed):
            return self._json(text, depth)
        return self._text(text)

    def _json(self, text: str, depth: int) -> str:
        key = ""

        def redacted(found: re.Match[str]) -> str:
            nonlocal key
            if self._hook is None and not _may_be_private(found.group()):
                return found.group()
            literal, colon, number = found.groups()
            if number is not None:
                return self._number(number)
            string: str = _decode(literal)
            if colon is not None:
                key = string
                new = string if self._hook else self._text(string)
            else:
                new = string if self._hook and key in STRUCTURAL else self.cell(string, depth + 1)
            return found.group() if new == string else encode_basestring(new) + (colon or "")

        return _TOKENS.sub(redacted, text)

    def _number(self, digits: str) -> str:
        """A card number that is written as a number becomes a text."""
        if self._hook or not is_card_number(digits):
            return digits
        self._counts["card"] += 1
        return '"[CARD]"'

    def _by_default(self, text: str) -> str:
        for kind in PRIVATE_KINDS:
            text = kind.pattern.sub(lambda found, kind=kind: self._replaced(kind, found.group()), text)  # type: ignore[misc]
        return text

    def _replaced(self, kind: PrivateKind, found: str) -> str:
        if not kind.holds(found):
            return found
        self._counts[kind.name] += 1
        return f"[{kind.name.upper()}]"

    def _by_hook(self, text: str) -> str:
        assert self._hook is not None
        try:
            new = self._hook(text)
        except Exception as error:
            raise EvalSetError(
                f"the redaction hook raised an exception: {type(error).__name__}: {error_text(error)}"
            ) from error
        if not isinstance(new, str):
            raise EvalSetError(f"the redaction hook must give text for text, got {type(new).__name__}")
        self._counts["hook"] += new != text
        return new.encode("utf-8", "replace").decode()


_decode = json.JSONDecoder(strict=False).decode

_TOKENS = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?|(?<![\w.+-])([2-6]\d{12,18})(?![\w.])', re.DOTALL)
"""A string (a key, if a colon follows), or a number that could be that of a card."""


@lru_cache(maxsize=8)
def find_hook(name: str) -> Hook:
    """The function that `module:function` names. Raises EvalSetError if there is none."""
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise EvalSetError(f"redact: expected default, none or MODULE:FUNCTION, got {visible(name)[:80]!r}")
    find_pandas()  # the function may hand Arrow what pandas made
    try:
        hook: Any = import_module(module)
        for part in attribute.split("."):
            hook = getattr(hook, part)
    except (ImportError, AttributeError) as error:
        hint = ": set PYTHONPATH to the folder of the module" if isinstance(error, ModuleNotFoundError) else ""
        raise EvalSetError(f"redact: cannot find {visible(name)[:80]}: {error_text(error)}{hint}") from error
    if not callable(hook):
        raise EvalSetError(f"redact: {visible(name)[:80]} is not a function but {type(hook).__name__}")
    return hook  # type: ignore[no-any-return]
