"""Close matches: the canonical name that a misspelled or foreign column or key means."""

import difflib
from collections.abc import Iterable

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
    free, found = list(right), dict[str, str]()
    for name in wrong:
        plain = name.strip().lower().replace("-", "_").replace(" ", "_")
        alias = [r for r in free if plain == r or plain in ALIASES.get(r, ())]
        close = alias or difflib.get_close_matches(plain, free, n=1, cutoff=cutoff)
        if close:
            found[name] = close[0]
            free.remove(close[0])
    return found
