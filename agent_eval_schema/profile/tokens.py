"""How long texts are: in tokens of an encoding of tiktoken, or in bytes, of which four are about a token."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np

from agent_eval_schema.cells.hashing import Array
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.runtime.extras import missing
from agent_eval_schema.text.choices import shown

BYTES_PER_TOKEN = 4


def lengths(rows: Sequence[Sequence[str]], tokenizer: str | None) -> Array:
    """The length of the texts of each row together, in tokens, or in bytes of UTF-8 without a tokenizer."""
    flat = list(chain.from_iterable(rows))
    if tokenizer is None:
        sizes = [len(text.encode()) for text in flat]
    else:
        sizes = [len(tokens) for tokens in encoding(tokenizer).encode_ordinary_batch(flat)]
    of = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    return np.bincount(of, weights=sizes, minlength=len(rows)).astype(np.int64)


def tokens_of(length: int, tokenizer: str | None) -> int:
    """The tokens of texts of this length."""
    return length if tokenizer is not None else -(-length // BYTES_PER_TOKEN)


@lru_cache(maxsize=4)
def encoding(name: str) -> Any:
    """The encoding of that name; tiktoken fetches it once if it is not on this machine. Raises EvalSetError if it
    cannot be had."""
    try:
        import tiktoken
    except ImportError as error:
        raise missing("profile", "tiktoken 0.8", error) from error
    if name not in (known := tiktoken.list_encoding_names()):
        raise EvalSetError(f"tokenizer: expected one of {', '.join(sorted(known))}; got {shown(name)}")
    try:
        return tiktoken.get_encoding(name)
    except Exception as error:
        raise EvalSetError(f"tokenizer: {name} cannot be loaded: {type(error).__name__}") from error
