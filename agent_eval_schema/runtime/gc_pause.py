"""Work that makes many objects and no reference cycles does not look for cycles among them again and again."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """Switch the search for cycles off for a block whose objects live until its end: it took a tenth of the time of a
    check, and a third of reading a golden CSV. They should not live longer (call a function in the block): the next
    search goes through all that are still there."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
