"""How long texts are: in tokens of an encoding of tiktoken, or in bytes, of which four are about a token."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from itertools import chain
from typing import Any

import numpy as np

from agent_eval_schema.cells.hashing import Array
from agent_eval_schema.io.source import WORTH_IT, Source, size_of
from agent_eval_schema.issues import EvalSetError, missing
from agent_eval_schema.text.choices import shown

BYTES_PER_TOKEN = 4

USUAL = "o200k_base"
"""The encoding that counts unless another one is asked for."""

USUAL_URL = f"https://openaipublic.blob.core.windows.net/encodings/{USUAL}.tiktoken"
USUAL_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
"""The file that tiktoken fetches for it, by which its copy on this machine is known."""


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


def tokenizer_at_hand(source: Source) -> str | None:
    """The encoding that counts the tokens of a source unasked: None if it would have to be fetched, on this machine or
    on the executors, or if the source is so large that counting takes longer than the rest of a profile."""
    here = find_spec("tiktoken") is not None and source.remote is None
    return USUAL if here and size_of(source) < WORTH_IT and _is_cached() else None


def _is_cached() -> bool:
    """Whether the usual encoding is in the cache of tiktoken, in the folder that its documentation names."""
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if folder is None:
        folder = os.path.join(tempfile.gettempdir(), "data-gym-cache")
    if not folder:  # there is no cache
        return False
    try:
        with open(os.path.join(folder, hashlib.sha1(USUAL_URL.encode()).hexdigest()), "rb") as file:
            return hashlib.sha256(file.read()).hexdigest() == USUAL_SHA256  # else tiktoken would fetch it again
    except OSError:
        return False


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
