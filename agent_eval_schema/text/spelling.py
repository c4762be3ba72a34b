"""Close matches: the canonical name that a misspelled or foreign column or key means."""

import difflib
import re
from collections.abc import Collection, Iterable
from functools import lru_cache

ALIASES: dict[str, tuple[str, ...]] = {
    "doc_uri": ("uri", "url", "source", "doc_id", "document_id", "id", "path"),
    "content": ("page_content", "text", "body", "chunk", "snippet"),
    "tool_name": ("name", "tool", "function", "function_name"),
    "tool_input": ("input", "inputs", "args", "arguments", "parameters", "input_parameters"),
    "name": ("tool_name", "tool", "function", "function_name"),
    "arguments": ("input", "inputs", "args", "tool_input", "parameters", "input_parameters"),
    "role": ("type", "author", "speaker", "sender"),
    "messages": ("message", "chat", "conversation", "dialogue", "turns"),
    "query": ("question", "prompt", "input", "text", "user_input"),
    "history": ("chat_history", "previous", "context"),
}
"""Names that other tools give to our keys. An alias is a better guess than the spelling."""

OUR_WORDS = frozenset(ALIASES).union(*ALIASES.values())
"""Names that a message may contain even if the data is private: they are ours."""


def match_names(wrong: Iterable[str], right: Iterable[str], cutoff: float = 0.75) -> dict[str, str]:
    """The names of `right` that those of `wrong` most likely mean, each used once: by alias, else by spelling."""
    free, matches = tuple(right), dict[str, str]()
    for name in wrong:
        match = _match(name, free, cutoff)
        if match is not None:
            matches[name] = match
            free = tuple(other for other in free if other != match)
    return matches


@lru_cache(1024)  # the keys and roles of thousands of messages are misspelled alike
def _match(name: str, right: tuple[str, ...], cutoff: float) -> str | None:
    plain = plain_name(name)
    alias = next((r for r in right if plain == r or plain in ALIASES.get(r, ())), None)
    return alias or next(iter(difflib.get_close_matches(plain, right, n=1, cutoff=cutoff)), None)


def meant(name: str, known: Iterable[str], cutoff: float = 0.8) -> str | None:
    """The known name that `name` is another spelling of, or None if there is none or more than one.

    A name with a digit (`response_2`) or with a word more (`response_b`) is a name of its own, not a misspelling.
    """
    known = list(known)
    plain = plain_name(name)
    bare = plain.replace("_", "")
    aliases = [k for k in known if bare == k.replace("_", "") or plain in ALIASES.get(k, ())]
    if aliases or any(c.isdigit() for c in plain):
        return aliases[0] if len(aliases) == 1 else None
    close = difflib.get_close_matches(plain, known, n=2, cutoff=cutoff)
    own = any(set(k.split("_")) < set(plain.split("_")) for k in close)
    return close[0] if len(close) == 1 and not own else None


def plain_name(name: str) -> str:
    """The name in the one spelling in which names are compared."""
    return name.strip().lower().replace("-", "_").replace(" ", "_")


VALUE_ALIASES = {"human": "user", "ai": "assistant", "bot": "assistant", "model": "assistant"}
"""What other libraries call a role."""


def named_value(name: str, known: Collection[str]) -> str | None:
    """The known value in another notation (`User`) or by its name in another library."""
    plain = name.strip().lower()
    value = plain if plain in known else VALUE_ALIASES.get(plain)
    return value if value in known else None


def meant_value(name: str, known: Collection[str]) -> str | None:
    """The known value that `name` is in another notation or by another name, or that it misspells: the only one."""
    return named_value(name, known) or meant(name, sorted(known))


# --- Texts that someone was still to write: `TBD`, `-`, `n/a`.
AROUND = " .:<>[]()"
"""The marks around a placeholder."""

UNWRITTEN = (
    *("tbd", "tba", "todo", "to do", "to be done", "to be defined", "fixme", "xxx", "xx"),
    *("-", "--", "?", "??", "???"),
)
SHEET_ERRORS = (
    *("#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!"),
    *("#SPILL!", "#CALC!", "#FIELD!", "#BLOCKED!", "#CONNECT!", "#BUSY!", "#UNKNOWN!"),
)
"""What a spreadsheet shows, and writes, where a formula has no value (the values of ERROR.TYPE)."""

UNWRITTEN_TRUTHS = (*UNWRITTEN, "n/a", "na", "none", "null", "nan", *map(str.lower, SHEET_ERRORS))
"""Without the marks around them. A response may rightly be `none`."""

LONGEST_PLACEHOLDER = 24


def is_unwritten(text: str) -> bool:
    """Whether a ground truth is a placeholder."""
    return len(text) <= LONGEST_PLACEHOLDER and text.strip(AROUND).lower() in UNWRITTEN_TRUTHS


odd_blanks = re.compile(r"^\s|\s$|[^\S\n]{2}").search
"""Finds blanks at an end of a text, or several in a row."""
