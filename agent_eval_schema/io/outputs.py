"""Where results are written: a place is settled before the work, with all that the call reads and that is kept for it.

    settle({"OUT": out, "--html": page}, {"IN": path, "--against": other})

A place that is one of them by its real path, as another hard link, or in another case where names have none, is an
error: an input or one of its files, the journals of its review, its manifest, the other file of a result in two;
another output; and the name of any journal.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Hashable, Iterator, Mapping
from contextlib import suppress

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.io.atomic import require_no_checkpoint, require_no_journal
from agent_eval_schema.io.places import JOURNALS, ending_of, files_of, is_url, part_of, real_path, record_files
from agent_eval_schema.io.source import Source
from agent_eval_schema.io.streams import STDIN, STDOUT
from agent_eval_schema.text.visible import visible


def settle(
    written: Mapping[str, str | None], read: Mapping[str, object], in_place: tuple[str, str] | None = None
) -> None:
    """Raise EvalSetError now, rather than after the work, if an output would overwrite what is read or kept, or another
    output. Both are paths by the names that they have for the user; of `read` also sources, and several of them.
    `in_place` are an output and an input that may be the same."""
    taken: dict[Hashable, str] = {}
    for name, data in read.items():
        for path in _paths(data):
            base, part = (path, "") if is_url(path) else part_of(path)
            # a part is written without the rest, but for a sheet
            what = f"the whole file of {name}" if part and ending_of(base) != ".xlsx" else name
            for file in [base, *([] if is_url(path) or "\0" in path else files_of(base))]:
                taken |= dict.fromkeys(_identities(file), what)
            for what, file in _kept(path):
                taken |= dict.fromkeys(_identities(file), what)
    for name, out in written.items():
        if not out or out == STDOUT:
            continue
        require_no_journal(out)
        require_no_checkpoint(out)
        own = _identities(out)
        for what in (taken[identity] for identity in own if identity in taken):
            if (name, what) != in_place:
                would = f"{name} would" if name else "would"
                raise EvalSetError(f"{out}: {would} overwrite {what}: choose another path")
        taken |= dict.fromkeys(own, name)


def _paths(data: object) -> Iterator[str]:
    if isinstance(data, str):
        if data != STDIN:
            yield data
    elif isinstance(data, Source):
        yield from dict.fromkeys(path for path in (data.name, data.path) if path and path != STDIN)
    elif isinstance(data, list | tuple):
        for part in data:
            yield from _paths(part)


def _kept(path: str) -> Iterator[tuple[str, str]]:
    """What is kept beside the data at a path."""
    if not is_url(path) and "\0" not in path:
        for journal in glob.glob(f"{glob.escape(path)}.*{JOURNALS}"):
            yield f"the review journal {visible(os.path.basename(journal))}", journal
        yield "the manifest of the data", f"{path.rstrip(os.sep)}.manifest.json"
        yield from (("the other file of the result", file) for file in record_files(path) if file != path)


def _identities(path: str) -> list[Hashable]:
    """By what a file is recognized: its path, and if it exists its number on its device."""
    if is_url(path) or "\0" in path:  # which names no file
        return [path]
    real = real_path(path)
    identities: list[Hashable] = [real.casefold() if has_no_case(os.path.dirname(real)) else real]
    with suppress(OSError):
        state = os.stat(real)
        identities += [(state.st_dev, state.st_ino)] if state.st_ino else []
    return identities


def has_no_case(folder: str) -> bool:
    """Whether names in a folder mean the same in another case: that of the folder does, or by the system."""
    other = os.path.join(os.path.dirname(folder), os.path.basename(folder).swapcase())
    if other == folder:
        return os.path.normcase("A") == "a"
    with suppress(OSError):
        return os.path.samefile(folder, other)
    return False
