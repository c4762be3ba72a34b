"""Redaction: private data in the strings of a cell is replaced, and counted by kind.

    "Write to ana@example.com or +44 20 7946 0958"   →   "Write to [EMAIL] or [PHONE]"

A cell that is JSON stays JSON: only its strings are searched, string by string, and a string that contains JSON itself
(the attributes of a span) in the same way; everything else keeps its bytes. A string is searched as it reads: `%40` is
an @, a literal `\\n` a line end, a dash of any width a hyphen.

The default finds what `PRIVATE_KINDS` lists by patterns and check digits. With the extra `redact`, phonenumbers finds
phone numbers of any country, and of the regions of the user national ones, and python-stdnum national IDs of those
regions. Any function from string to string can take its place.
"""

import html
import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from json.encoder import encode_basestring
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema.cells.arrow import list_array
from agent_eval_schema.errors import EvalSetError, import_extra
from agent_eval_schema.inference_tables.plan import BuildPlan, Hook
from agent_eval_schema.runtime.lazy import find_pandas
from agent_eval_schema.runtime.tables import packaged
from agent_eval_schema.text.jsontext import Malformed, parse
from agent_eval_schema.text.privacy import error_text
from agent_eval_schema.text.visible import visible

DEFAULT = "default"

MAX_NESTING = 8
"""JSON within JSON within JSON: deeper levels are taken as text."""

LIBRARIES = ("phonenumbers", "stdnum")
"""The modules of the extra `redact`."""


# --- a string as it reads
class _Look(dict[int, str]):
    """For each character the one of ASCII that it looks like; filled as the characters occur."""

    def __missing__(self, point: int) -> str:
        character = chr(point)
        plain, kind = unicodedata.normalize("NFKC", character), unicodedata.category(character)
        if kind == "Nd":
            self[point] = str(unicodedata.decimal(character))
        elif len(plain) == 1 and plain.isascii():
            self[point] = plain
        else:
            self[point] = {"Pd": "-", "Zs": " ", "Cf": " ", "Zl": "\n", "Zp": "\n"}.get(kind, character)
        return self[point]


_LOOK = _Look({0x2212: "-"})

_ENCODED = re.compile(
    r"%(?:25)*[0-7][0-9A-Fa-f]|(?<=[^\W\d_]|[@.])[\u00ad\u200b-\u200f\u2060\ufeff]+(?=[^\W\d_]|[@.])|%[C-Fc-f][0-9A-Fa-f](?:%[89ABab][0-9A-Fa-f]){1,3}|\\u[0-9A-Fa-f]{4}|\\[nrtbf]"
    r"|&(?:\#\d{1,6}|\#[xX][0-9A-Fa-f]{1,5}|nbsp|commat|period|plus);"
)
"""A character of a URL (also encoded twice), of JSON or of HTML, in a string that is none of these; or characters
inside of a word that have no width."""


_NO_WIDTH = frozenset("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff")
_INSIDE = re.compile(r"(?:[^\W\d_]|[@.]){2}")
"""What is before and behind a character without width that is inside of a word or an address."""


def _as_it_reads(text: str) -> tuple[str, Sequence[int]]:
    """The string as a person reads it, character by character, and where each begins in the string, and its end."""
    read, starts, at = [], list[int](), 0
    for found in _ENCODED.finditer(text):
        code = found.group()
        decoded = html.unescape(code) if code[0] == "&" else " " if code[0] == "\\" else ""
        if code.startswith("\\u"):
            decoded = chr(int(code[2:], 16))
        elif code[0] == "%":
            decoded = unquote(code.replace("%25", "%").replace("%25", "%"))
        if decoded in _NO_WIDTH and _INSIDE.fullmatch(
            text[found.start() - 1 : found.start()] + text[found.end() :][:1]
        ):
            decoded = ""
        read += [text[at : found.start()], decoded[:1]]
        starts += range(at, found.start() + len(decoded[:1]))
        at = found.end()
    view = "".join([*read, text[at:]])
    if "%" in text and at:  # in a URL a plus sign is a blank
        view = re.sub(r"(?<=\d)\+(?=\d)", " ", view)
    return view if view.isascii() else view.translate(_LOOK), [*starts, *range(at, len(text) + 1)]


# --- what is found
class Search(NamedTuple):
    """The regions whose national forms are searched for, and the modules that do it (LIBRARIES)."""

    regions: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()


Spans = Iterator[tuple[int, int]]

# Letters of scripts with blanks between words: a Chinese character before a number is no part of it.
_LETTERS = "A-Za-z\u00c0-\u0dff\u0f00-\u0fff\u10a0-\u177f\u1800-\u1fff"
_WORD = f"{_LETTERS}0-9_"
_SIGN = f"[{_LETTERS}0-9]"
# `_4111_` is emphasized text, `id_4111` a name.
_BEFORE = rf"(?<!{_SIGN})(?<!{_SIGN}_)(?<!{_SIGN}__)"
_AFTER = rf"(?!_{{0,2}}{_SIGN})"
_GAP = r"[\s./-]{1,3}"
# No number is inside of a longer word or number: IDs and hashes are full of digits.
_ALONE_BEFORE = rf"{_BEFORE}(?<![+-])(?<!\d\.)"
_ALONE_AFTER = rf"{_AFTER}(?!=(?!\d)|[-.+][{_WORD}])"

_EMAIL = re.compile(
    rf"(?<![{_WORD}.+%-])[{_WORD}.+%-](?:[{_WORD}.+%'-]{{0,63}})@(?:[^\W_](?:[\w-]{{0,61}}[^\W_])?\.)+"
    rf"(?:[{_LETTERS}]{{2,24}}(?![{_LETTERS}0-9@])|[\u3040-\u9fff\uac00-\ud7af]{{2,6}})"
)
_IBAN = re.compile(rf"{_BEFORE}[A-Z]{{2}}\d{{2}}(?:[\s.-]{{0,3}}[A-Z0-9]){{11,30}}{_AFTER}")
_DIGITS = re.compile(rf"{_ALONE_BEFORE}\d{{1,19}}(?:{_GAP}\d{{1,19}})*{_ALONE_AFTER}")
_COUNTRY = (
    r"(?:1(?![\s.-]*[01])|7|2[07]|2[1-69]\d|3[0-469]|3[578]\d|4[013-9]|42\d|5[1-8]|5[09]\d|6[0-6]|6[7-9]\d|8[1246]|8[0578]\d"
    r"|9[0-58]|9[67]\d|99[2-68])"
)
"""The codes of countries, as the ITU assigns them (E.164); after that of North America no area begins with 0 or 1."""
_PHONE = re.compile(
    rf"{_BEFORE}(?<!\+)(?:\+ ?|00){_COUNTRY}\)?(?:(?:{_GAP})?\(?\d{{1,5}}\)?){{2,6}}{_AFTER}(?!=|[-+][{_WORD}]|/\d)"
    rf"|{_ALONE_BEFORE}(?:1[\s.-]{{1,2}})?(?:\([2-9]\d\d\)\s{{0,2}}|(?P<bare>[2-9]\d\d[\s.-]{{1,2}}))"
    rf"\d{{3}}[\s.-]{{1,2}}\d{{4}}{_AFTER}(?!=|[-.+][{_WORD}]|/\d)"
)
_OF_A_THING = re.compile(
    r"(?i)(?:(?<![a-z])(?:order|invoice|ticket|case|ref(?:erence)?|sku|part|item|serial|booking|parcel|bestellung|rechnung|auftrag"
    r"|artikel|pedido|factura|commande|facture)s?[ _-]?(?:no|nr|num|number|nummer|id)?|#)[\s.:#=]{0,3}$"
).search
"""What names the number behind it: that of an order, not of a phone."""


_ISSUED = re.compile(
    r"4\d{12}(?:\d{3}){0,2}|3[47]\d{13}|3[0568-9]\d{12,17}|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}"
    r"|220[0-4]\d{12,15}|(?:5[06-9]|6\d)\d{11,17}"
).fullmatch
"""The first digits of issuers, and how many digits their cards have: an IMEI has 15, and no card of Visa has."""


def is_card_number(text: str) -> bool:
    """Whether the digits are those of a payment card: as many as its issuer gives, with a sum that holds (Luhn)."""
    digits = re.sub(r"\D", "", text)
    if not _ISSUED(digits) or len(set(digits)) == 1:
        return False
    doubled = (sum(divmod(2 * int(d), 10)) for d in digits[-2::-2])
    return (sum(doubled) + sum(map(int, digits[-1::-2]))) % 10 == 0


def _emails(view: str, _: Search) -> Spans:
    return (found.span() for found in _EMAIL.finditer(view) if not _NO_EMAIL(found.group() + view[found.end() :][:1]))


_NO_EMAIL = re.compile(
    r"(?i).+@(?:\dx\.(?:png|jpe?g|gif|svg|webp)\W?|.+\()|(?:git|hg|svn)@(?:github|gitlab|bitbucket)\.\w+[\W_]?"
).fullmatch
"""Pictures for several densities (`logo@3x.png`), calls of code (`foo@bar.baz()`) and the users of repositories."""

_SECRET = re.compile(
    r"(?<![A-Za-z0-9_-])(?:eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}|sk-[\w-]{20,}|gh[pousr]_[A-Za-z0-9]{36,}"
    r"|github_pat_\w{22,}|glpat-[\w-]{20,}|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[\w-]{35}|xox[abprs]-[\w-]{10,}"
    r"|dapi[0-9a-f]{32}|hf_[A-Za-z0-9]{30,})(?![A-Za-z0-9_-])|(?i:(?<=\bbearer )[\w.~+/-]{16,}=*)"
)
"""Tokens (JWT), keys by the prefix of who gives them, and what follows `Bearer`."""


def _secrets(view: str, _: Search) -> Spans:
    return (found.span() for found in _SECRET.finditer(view))


def _ibans(view: str, _: Search) -> Spans:
    """An account number as a whole: up to the end of a word with which its sum holds (ISO 7064, modulo 97)."""
    for found in _IBAN.finditer(view):
        ends = [found.start() + end.start() for end in re.finditer(r"(?<=[A-Z0-9])(?![A-Z0-9])", found.group())]
        for end in reversed(ends):
            code = re.sub(r"[\s.-]", "", view[found.start() : end])
            if 15 <= len(code) <= 34 and int("".join(str(int(c, 36)) for c in code[4:] + code[:4])) % 97 == 1:
                yield found.start(), end
                break


def _cards(view: str, _: Search) -> Spans:
    """A card number among the numbers that are beside each other: a year may be before it, and a code after it."""
    for found in _DIGITS.finditer(view):
        groups = [(g.start() + found.start(), g.end() + found.start()) for g in re.finditer(r"\d+", found.group())]
        at = 0
        while at < len(groups):
            start, end = groups[at]
            fitting = []
            before = view[groups[at - 1][0] : start] if at else " "  # `112-3456789-1234567` is an order
            may_begin = end - start >= 4 and re.search(r"\s|/|^(?:19|20)\d\d\D", before)
            for last in range(at, len(groups) if may_begin else at):
                size = sum(b - a for a, b in groups[at : last + 1])
                if size > 19:
                    break
                if is_card_number(view[start : groups[last][1]]):
                    fitting.append((abs(size - 16), last))  # most have 16 digits
            if fitting:
                at = min(fitting)[1]
                yield start, groups[at][1]
            at += 1


def _phones(view: str, search: Search) -> Spans:
    """By patterns: with the code of a country, or of three, three and four digits; then by phonenumbers."""
    spans = []
    for found in _PHONE.finditer(view):
        start, end = found.span()
        while sum(map(str.isdigit, view[start:end])) > 15:  # further numbers after it
            shorter = re.search(rf"{_GAP}[^\s./-]*$", view[start:end])
            end = start if shorter is None else start + shorter.start()
        closing = view[start:end].count(")") - view[start:end].count("(")
        if closing > 0 and view[end - 1] == ")":  # of a parenthesis before it
            end, closing = end - 1, closing - 1
        if closing > 0 and view[start - 1 : start] == "(":  # around the code of the country
            start -= 1
        named = found["bare"] and _OF_A_THING(view[max(0, start - 30) : start])
        if sum(map(str.isdigit, view[start:end])) >= 8 and not named:
            spans.append((start, end))
    yield from spans
    if "phonenumbers" in search.libraries:
        import phonenumbers

        for start, end in spans:
            view = f"{view[:start]}{chr(0) * (end - start)}{view[end:]}"
        for region in (None, *search.regions):
            for match in phonenumbers.PhoneNumberMatcher(view, region, phonenumbers.Leniency.VALID, 1 << 16):
                if not re.match(rf"[{_WORD}=]", view[match.end :]) and not re.search(
                    rf"[{_WORD}]$", view[: match.start]
                ):
                    yield match.start, match.end


NATIONAL_IDS = packaged(__package__, "national_ids.json", dict[str, str])
"""The modules of python-stdnum that validate the national IDs of a region."""


def _national_ids(view: str, search: Search) -> Spans:
    """Up to five words beside each other that python-stdnum finds valid in one of the regions."""
    if "stdnum" not in search.libraries:
        return
    checks = [check for region in search.regions for check in _id_checks(region)]
    words = [found.span() for found in re.finditer(r"[A-Za-z0-9]+", view)] if checks else []
    at = 0
    while at < len(words):
        start, step = words[at][0], 1
        for count in range(min(5, len(words) - at), 0, -1):
            part = words[at : at + count]
            text = view[start : part[-1][1]]
            near = all(re.fullmatch(r"[\s./+-]{1,2}", view[a[1] : b[0]]) for a, b in pairwise(part))
            alone = not re.match(rf"[{_WORD}]", view[part[-1][1] :]) and not re.search(rf"[{_WORD}]$", view[:start])
            if near and alone and len(text) <= 24 and sum(map(str.isdigit, text)) >= 5 and any(c(text) for c in checks):
                yield start, part[-1][1]
                step = count
                break
        at += step


@lru_cache
def _id_checks(region: str) -> list[Callable[[str], bool]]:
    from stdnum import get_cc_module

    modules = [get_cc_module(region.lower(), name) for name in NATIONAL_IDS.get(region, "").split()]
    # a number of the United States has no check digit: without its hyphens it is any number
    checks: list[Callable[[str], bool]] = [module.is_valid for module in modules if module is not None]
    return [lambda text, valid=checks[0]: "-" in text and valid(text)] if region == "US" else checks  # type: ignore[misc]


PRIVATE_KINDS: dict[str, Callable[[str, Search], Spans]] = {
    "secret": _secrets,
    "email": _emails,
    "iban": _ibans,
    "card": _cards,
    "phone": _phones,
    "id": _national_ids,
}
"""What is private, in the order in which it is looked for: each finds its spans in a string as it reads."""

_BETWEEN = r"[\s./()\\nrt-]{0,6}"
_SUSPECT = "|".join(
    [
        r"@|\\u|&|%[0-7C-F]|[0-9][^\x00-\x7f]|[^\x00-\x7f][0-9]|\p{Nd}[^0-9\x00-\x7f]|[^\x00-\x7f]\p{Nd}|\x{FF20}",
        r"eyJ|sk-|gh[pousr]_|github_pat_|glpat-|AKIA|ASIA|AIza|xox[abprs]-|dapi[0-9a-f]|hf_|[Bb]earer |BEARER ",
        rf"(?:^|[^0-9A-Za-z]|\\[bfnrt])[2-6]\d{{3}}(?:{_BETWEEN}\d){{9}}",
        rf"(?:\+|00) ?[1-9]\d{{0,2}}{_BETWEEN}\d",
        rf"\d{{3}}{_BETWEEN}\d{{3}}[\s.\\nrt-]{{1,6}}\d{{4}}",
        rf"[A-Z]{{2}}\d{{2}}{_BETWEEN}[A-Z0-9]{{4}}{_BETWEEN}[A-Z0-9]",
    ]
)
"""The characters that a cell must contain for the default to search it (an escape may hide them)."""

_may_be_private = re.compile(
    r"[@\uff20&%]|\\[u/]|\d(?:\D{0,6}\d){4}|eyJ|sk-|gh[pousr]_|github_pat_|glpat-|AKIA|ASIA|AIza|xox|hf_|(?i:bearer )"
).search
"""The characters that any text must contain, as it is in JSON or not, to be worth a look at its parts: a quick test for
the many strings of a cell, most of them without anything private."""

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
    """Replaces private data in cells. `rows` has what was replaced in each row of the batch, by kind: the same number
    in several places of a row is one (of a hook: the texts that it changed)."""

    def __init__(self, redaction: str | Hook, search: Search | None = None) -> None:
        self.rows: defaultdict[int, set[tuple[str, str]]] = defaultdict(set)
        self._found = set[tuple[str, str]]()
        self.hook = None if redaction == DEFAULT else find_hook(redaction) if isinstance(redaction, str) else redaction
        self._search = Search((), libraries_at_hand()) if search is None else search
        for name in self._search.libraries:  # on an executor of Spark it may be absent
            import_extra(name, "redact", name)
        self._suspect = rf"{_SUSPECT}|\d(?:\D{{0,6}}\d){{4}}" if self._search.regions else _SUSPECT
        self._redact_text = self._by_default if self.hook is None else self._by_hook

    def counts(self, row: int) -> list[tuple[str, int]] | None:
        return sorted(Counter(kind for kind, _ in self.rows[row]).items()) if self.rows.get(row) else None

    def column(self, array: pa.Array, rows: np.ndarray[Any, Any] | None = None) -> pa.Array:
        """A column of text (JSON or not) with its cells redacted; the same array if there is nothing to replace. `rows`
        has the row of each text (its own, if not given)."""
        mask = array.is_valid() if self.hook else pc.match_substring_regex(array, self._suspect).fill_null(False)
        texts = dict[int, str]()
        for at in np.flatnonzero(np.asarray(mask)).tolist():
            self._found = self.rows[at if rows is None else int(rows[at])]
            text = array[at].as_py()
            if (new := self.cell(text)) != text:
                texts[at] = new
        if not texts:
            return array
        return pa.array([texts.get(i, t) for i, t in enumerate(array.to_pylist())], array.type)

    def values(self, array: pa.Array, rows: np.ndarray[Any, Any]) -> pa.Array:
        """An array of any type with all its strings redacted, also inside of lists, structs and maps."""
        kind = array.type
        if pa.types.is_string(kind):
            return self.column(array, rows)
        if pa.types.is_struct(kind):
            parts = [self.values(part, rows) for part in array.flatten()]
            mask = array.is_null() if array.null_count else None
            return pa.StructArray.from_arrays(parts, fields=list(kind), mask=mask)
        if pa.types.is_map(kind):  # the names of tags too, but a hook is not asked about them
            cells = array.to_pylist()
            of = np.array([row for row, cell in zip(rows.tolist(), cells, strict=True) for _ in cell or ()], np.int64)
            keys, values = (pa.array([p[i] for c in cells for p in c or ()], pa.string()) for i in (0, 1))
            keys = keys if self.hook else self.column(keys, of)
            pairs = iter(list(zip(keys.to_pylist(), self.column(values, of).to_pylist(), strict=True)))
            return pa.array([None if cell is None else [next(pairs) for _ in cell] for cell in cells], kind)
        if pa.types.is_list(kind):
            flat = self.values(array.flatten(), rows[np.asarray(pc.list_parent_indices(array))])
            lengths = np.asarray(pc.list_value_length(array).fill_null(0))
            return list_array(lengths, flat, array.is_null() if array.null_count else None)
        return array

    def cell(self, text: str, depth: int = 0) -> str:
        """The text redacted. If it is JSON, so is the result, and its strings are redacted."""
        if self.hook is None and not _may_be_private(text):
            return text
        if depth < MAX_NESTING and text.lstrip()[:1] in ("{", "[", '"') and not isinstance(parse(text), Malformed):
            return self._json(text, depth)
        return self._redact_text(text)

    def _json(self, text: str, depth: int) -> str:
        key = ""

        def redacted(found: re.Match[str]) -> str:
            nonlocal key
            if self.hook is None and not _may_be_private(found.group()):
                return found.group()
            literal, colon, number = found.groups()
            if number is not None:
                digits = number.lstrip("-").partition(".")[0]
                if "e" in number.lower():
                    digits = f"{float(number):.0f}".lstrip("-")
                if self.hook or not is_card_number(digits):
                    return number
                self._found.add(("card", digits))
                return '"[CARD]"'
            string: str = _decode(literal)
            if colon is not None:
                key = string
                new = string if self.hook else self._redact_text(string)
            else:
                new = string if self.hook and key in STRUCTURAL else self.cell(string, depth + 1)
            return found.group() if new == string else encode_basestring(new) + (colon or "")

        return _TOKENS.sub(redacted, text)

    def _by_default(self, text: str) -> str:
        read, starts = _as_it_reads(text)
        view, spans = read, list[tuple[int, int, str]]()
        for kind, find in PRIVATE_KINDS.items():
            for start, end in list(find(view, self._search)):
                if "\0" not in view[start:end]:
                    spans.append((start, end, kind))
                    view = f"{view[:start]}{chr(0) * (end - start)}{view[end:]}"
        parts, at = [], 0
        for start, end, kind in sorted(spans):
            self._found.add((kind, re.sub(r"[^0-9a-z@]", "", read[start:end].lower())))
            parts += [text[at : starts[start]], f"[{kind.upper()}]"]
            at = starts[end]
        return "".join([*parts, text[at:]])

    def _by_hook(self, text: str) -> str:
        assert self.hook is not None
        try:
            new = self.hook(text)
        except Exception as error:
            raise EvalSetError(
                f"the redaction hook raised an exception: {type(error).__name__}: {error_text(error)}"
            ) from error
        if not isinstance(new, str):
            raise EvalSetError(f"the redaction hook must give text for text, got {type(new).__name__}")
        if new != text:
            self._found.add(("hook", text))
        return new.encode("utf-8", "replace").decode()


_decode = json.JSONDecoder(strict=False).decode

_TOKENS = re.compile(
    r'("(?:[^"\\]|\\.)*")(\s*:)?|(?<![\w.+-])(-?(?:[2-6]\d{12,18}(?:\.0+)?|[2-6]\.\d{12,17}[eE]\+?1[2-8]))(?![\w.])',
    re.DOTALL,
)
"""A string (a key, if a colon follows), or a number that could be that of a card."""


def redactor_of(plan: BuildPlan, hook: Hook | None) -> Redactor | None:
    """The redaction of a build; None if nothing is redacted."""
    redaction = hook or plan.redact
    return Redactor(redaction, Search(plan.redact_region, plan.redact_with)) if redaction else None


def libraries_at_hand(regions: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The modules of the extra `redact` that are installed and have something to do."""
    return tuple(name for name in LIBRARIES[: None if regions else 1] if find_spec(name) is not None)


def regions_of(regions: str | Iterable[str], redact: str | None) -> tuple[str, ...]:
    """The codes of regions, such as DE, in capitals. Raises EvalSetError for one that phonenumbers does not know, and
    unless it is the default redaction that searches there."""
    codes = tuple(dict.fromkeys(str(r).strip().upper() for r in ((regions,) if isinstance(regions, str) else regions)))
    if not codes:
        return ()
    if redact != DEFAULT:
        raise EvalSetError("redact_region: needs redact='default', which searches for the numbers of a region")
    needs = "phonenumbers 8.13 and python-stdnum 2.2"
    phonenumbers, _ = (import_extra(name, "redact", needs) for name in ("phonenumbers", "stdnum"))
    for code in codes:
        if code not in phonenumbers.SUPPORTED_REGIONS:
            expected = "expected the code of a country such as DE or US"
            raise EvalSetError(f"redact_region: {expected}, got {visible(code)[:80]!r}")
    return codes


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
