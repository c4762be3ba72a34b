"""Texts that others can have written, or that were cut: journals, saved results, manifests, states, mappings.

They come from colleagues, git, sync tools and crashes. Size and depth are measured before a parser reads a text, and
its types decide; so each failure is one error that names the place and what to do.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import msgspec

from agent_eval_schema.errors import EvalSetError, reading_file
from agent_eval_schema.rules.reading import MAX_DEPTH
from agent_eval_schema.text.depth import is_too_deep
from agent_eval_schema.text.visible import visible

MOST_BYTES = 256 << 20
"""The bytes of one such text, at most."""

T = TypeVar("T")


def decoded(text: str | bytes, kind: type[T], place: str, advice: str) -> T:
    """The value in a JSON text. Raises EvalSetError that names the place and ends with the advice."""
    try:
        if len(text) > MOST_BYTES:
            raise ValueError(f"expected at most {MOST_BYTES >> 20} MB")
        if is_too_deep(text):
            raise ValueError(f"expected at most {MAX_DEPTH} levels of brackets")
        value: T = _decoder(kind).decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError, OverflowError) as error:
        raise EvalSetError(f"{visible(place)}: {visible(error)}: {advice}") from error
    return value


def decoded_or_none(text: str | bytes, kind: type[T]) -> T | None:
    """The same; None if there is no such value in it: of several lines, one does not cost the others."""
    try:
        return decoded(text, kind, "", "")
    except EvalSetError:
        return None


def read_json(path: str, kind: type[T], advice: str) -> T:
    """The value in a file. Raises EvalSetError if it cannot be read, or is none."""
    with reading_file(path), open(path, "rb") as file:
        text = file.read(MOST_BYTES + 1)
    return decoded(text, kind, path, advice)


_decoder: Callable[[Any], msgspec.json.Decoder[Any]] = cache(msgspec.json.Decoder)
