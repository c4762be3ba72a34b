"""Close matches: the canonical name that a misspelled or foreign column or key means."""

import difflib
from collections.abc import Iterable
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
    free, found = tuple(right), dict[str, str]()
    for name in wrong:
        match = _match(name, free, cutoff)
        if match is not None:
            found[name] = match
            free = tuple(other for other in free if other != match)
    return found


@lru_cache(1024)  # the keys and roles of thousands of messages are misspelled alike
def _match(name: str, right: tuple[str, ...], cutoff: float) -> str | None:
    plain = name.strip().lower().replace("-", "_").replace(" ", "_")
    alias = next((r for r in right if plain == r or plain in ALIASES.get(r, ())), None)
    return alias or next(iter(difflib.get_close_matches(plain, right, n=1, cutoff=cutoff)), None)
