"""The text that a message may quote: with private data, no content of a cell.

    quoting on    got the text 'My number is 4711', unknown key `salary`, the byte 0xE9
    quoting off   got a text of 17 characters,      unknown key `*`,      something else

Code that writes a message calls this module (text/describe.py does for most). A validation sets the switch from its
plan wherever messages are made: around each batch that is read, in the kernel, in the report builder. It is a context
variable, because a reader runs in a thread of its own; it is set for a step and never across a `yield`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeVar

from agent_eval_schema.errors import RAISED, ExtensionWarning, warn_caller
from agent_eval_schema.text.visible import visible

T = TypeVar("T")
D = TypeVar("D")

_on: ContextVar[bool] = ContextVar("quoting", default=True)


def may_quote() -> bool:
    """Whether messages may quote cells."""
    return _on.get()


@contextmanager
def quoting(on: bool) -> Iterator[None]:
    """Set the switch for a block, which must not yield."""
    token = _on.set(on)
    try:
        yield
    finally:
        _on.reset(token)


def without_quoting(read: Callable[[], Iterator[T]]) -> Iterator[T]:
    """The items that are read; while each is made, nothing may be quoted."""
    with quoting(False):
        steps = read()
    while True:
        with quoting(False):
            item = next(steps, None)
        if item is None:
            return
        yield item


def length_of(text: str) -> str:
    """The description of a text that may not be quoted."""
    return f"a text of {len(text):,} character{'' if len(text) == 1 else 's'}"


def quoted(text: str) -> str:
    """The text in quotes, whole."""
    return repr(text) if may_quote() else length_of(text)


def byte_name(byte: int) -> str:
    """A byte that is not UTF-8: the "got" of a message."""
    return f"the byte 0x{byte:02X}" if may_quote() else "something else"


def byte_at(error: UnicodeDecodeError) -> str:
    """The first byte that is not UTF-8, and its place."""
    return f"{byte_name(error.object[error.start])} at byte {error.start}"


def error_text(error: BaseException) -> str:
    """The message of an exception; those of other packages quote cells, as in "Failed to parse 'x'"."""
    if not may_quote():
        return f"(a {type(error).__name__}, its text may quote cells)"
    with suppress(Exception, SystemExit):  # an exception may raise one while it is written
        return str(error)
    return ""


def or_warning(function: Callable[..., T], *arguments: Any, default: D, what: str) -> T | D:
    """The result of a function of another package; where it raises an exception, the default, and a warning of what is
    not done."""
    try:
        return function(*arguments)
    except RAISED as error:
        warn_caller(f"{what}: {type(error).__name__}: {first_line(error)}", ExtensionWarning)
        return default


def first_line(error: BaseException) -> str:
    """The first line of the message of an exception; the next lines contain places in foreign code."""
    return visible(next(iter(error_text(error).strip().splitlines()), type(error).__name__))
