"""What a user asks for with a profile, and how texts are measured: in tokens of tiktoken, or in bytes."""

import hashlib
import os
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import asdict

from agent_eval_schema.cells.arrow import bounds
from agent_eval_schema.cells.hashing import Array
from agent_eval_schema.errors import EvalSetError, import_extra
from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.io.source import WORTH_IT, Source, size_of
from agent_eval_schema.metrics.support import systems
from agent_eval_schema.similarity.near import NEAR
from agent_eval_schema.text.choices import require_choice, shown

INSTRUCTION_TOKENS, ANSWER_TOKENS = 400, 150
"""Assumed of a judge: the tokens of its instructions, and of its answer with the rationale."""


class Options(Struct, frozen=True):
    """What a user asked for; a profile has them as `profile_eval_set` describes them."""

    system: str = "auto"
    near: float = NEAR
    price: Mapping[str, float] | None = None
    calls_per_minute: float | None = None
    tokenizer: str | None = None
    instruction_tokens: int = INSTRUCTION_TOKENS
    answer_tokens: int = ANSWER_TOKENS

    def changed(self) -> dict[str, Any]:
        """The options that are not the defaults."""
        return {name: value for name, value in asdict(self).items() if value != getattr(Options(), name)}

    def require_valid(self) -> None:
        """Raise EvalSetError for a value that is not allowed."""
        require_choice("system", self.system, (*systems(), "all", "auto"))
        if not _is_number(self.near) or not 0 < self.near <= 1:
            raise EvalSetError(f"near: expected a number from 0 to 1; got {shown(self.near)}")
        rate = self.calls_per_minute
        if rate is not None and not (_is_number(rate) and rate > 0):
            raise EvalSetError(f"calls_per_minute: expected a number above 0; got {shown(rate)}")
        for name in ("instruction_tokens", "answer_tokens"):
            number = getattr(self, name)
            if not isinstance(number, int) or isinstance(number, bool) or number < 0:
                raise EvalSetError(f"{name}: expected a whole number from 0 on; got {shown(number)}")
        price = {"input": 0.0, "output": 0.0} if self.price is None else self.price
        is_right = set(price) == {"input", "output"}
        if not is_right or not all(_is_number(amount) and 0 <= amount < float("inf") for amount in price.values()):
            expected = 'amounts per million tokens, such as {"input": 2.5, "output": 10}'
            raise EvalSetError(f"price: expected {expected}; got {dict(price)!r}")
        if self.tokenizer is not None:
            encoding(self.tokenizer)

    def system_of(self, format: str) -> str:
        return find_format(format).system if self.system == "auto" else self.system


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


BYTES_PER_TOKEN = 4

USUAL = "o200k_base"
"""The encoding that counts unless another one is asked for."""

USUAL_URL = f"https://openaipublic.blob.core.windows.net/encodings/{USUAL}.tiktoken"
USUAL_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
"""The file that tiktoken fetches for it, by which its copy on this machine is known."""


def lengths(rows: pa.ListArray, tokenizer: str | None) -> Array:
    """The length of the texts of each row together, in tokens, or in bytes of UTF-8 without a tokenizer."""
    flat = rows.flatten()
    if tokenizer is None:
        sizes = pc.binary_length(flat).to_numpy()
    else:
        tokens = encoding(tokenizer).encode_ordinary_batch(flat.to_pylist())
        sizes = np.array(list(map(len, tokens)), np.int64)
    return np.diff(bounds(sizes)[bounds(rows.value_lengths().to_numpy())])


def tokens_of(length: int, tokenizer: str | None) -> int:
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
    """The encoding of that name; tiktoken fetches it once if it is not on this machine. Raises EvalSetError."""
    tiktoken = import_extra("tiktoken", "profile", "tiktoken 0.8")
    if name not in (known := tiktoken.list_encoding_names()):
        raise EvalSetError(f"tokenizer: expected one of {', '.join(sorted(known))}; got {shown(name)}")
    try:
        return tiktoken.get_encoding(name)
    except Exception as error:
        raise EvalSetError(f"tokenizer: {name} cannot be loaded: {type(error).__name__}") from error
