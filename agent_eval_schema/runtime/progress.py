"""The progress of a long operation: rows, rows a second, and how much of the data has been read.

    a terminal         a bar on stderr, which goes when the check is done
    a notebook         one line of plain text below the cell; no widgets are needed
    anything else      nothing: a log, a pipe, a script that calls the library

A check that takes less than a second shows nothing anywhere. There is no thread for it: it reports every batch to its
`Progress`, and most of the time the answer is that it is too soon to draw.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

PATIENCE = 1.0
"""Seconds that may pass before anything is shown."""

PAUSE = 0.1
"""Seconds between two drawings."""

ReadShare = Callable[[int], float | None]
"""The share of the data that has been read after this number of rows, None if unknown."""


class ProgressDisplay(Protocol):
    """The display of progress. `share` is the part of the data that has been read, None if it is unknown."""

    def show(self, text: str, share: float | None) -> None: ...

    def close(self, text: str) -> None: ...


@contextmanager
def shown_on(screen: Callable[[], ProgressDisplay | None]) -> Iterator[None]:
    """A block whose progress is drawn on this screen (None: on none), not in a notebook."""
    token = _SCREEN.set(screen)
    try:
        yield
    finally:
        _SCREEN.reset(token)


@contextmanager
def progress(read_share: ReadShare | None) -> Iterator[Progress]:
    """Draw the progress of reading rows until the block ends. Progress inside of it is not drawn."""
    with closing(Progress(read_share, _SCREEN.get()())) as so_far, shown_on(lambda: None):
        yield so_far


class Progress:
    """Called with the rows of each batch, it draws once a second has passed, and then now and again."""

    def __init__(self, read_share: ReadShare | None, screen: ProgressDisplay | None) -> None:
        self._read_share, self._screen = read_share, screen
        self._rows = 0
        self._start = monotonic()
        self._next = self._start + PATIENCE
        self._drawn = False

    def add(self, rows: int) -> None:
        self._rows += rows
        now = monotonic()
        if self._screen is not None and now >= self._next:
            self._next, self._drawn = now + PAUSE, True
            share = self._read_share(self._rows) if self._read_share else None
            self._screen.show(progress_text(self._rows, now - self._start, share), share)

    def close(self) -> None:
        if self._screen is not None and self._drawn:
            self._screen.close(pace_text(self._rows, monotonic() - self._start))


def progress_text(rows: int, seconds: float, share: float | None) -> str:
    parts = [f"{rows:,} rows", f"{_rate(rows, seconds)} rows/s"]
    if share is None:
        return ", ".join(parts)
    rest = [f"{_clock(seconds * (1 - share) / share)} left"] if share > 0 else []
    return ", ".join([f"{share:.0%}", *parts, *rest])


def _clock(seconds: float) -> str:
    """`0:42`, `1:02:05`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def pace_text(rows: int, seconds: float) -> str:
    """`1,000,000 rows in 4.8 s (208,000 rows/s)`."""
    return f"{rows:,} rows in {seconds:,.1f} s ({_rate(rows, seconds)} rows/s)"


def _rate(rows: int, seconds: float) -> str:
    """Rows per second, with at most three significant digits."""
    return f"{int(float(f'{rows / max(seconds, 1e-9):.3g}')):,}"


# --- screens
def terminal(stream: TextIO | None = None, name: str = "") -> ProgressDisplay | None:
    """The terminal that a stream (stderr) goes to, if it is one that can redraw a line. `name` is what is read."""
    stream = stream or sys.stderr
    return _Terminal(stream, name) if stream.isatty() and os.environ.get("TERM") != "dumb" else None


class _Terminal:
    def __init__(self, stream: TextIO, name: str) -> None:
        self._stream, self._name = stream, name
        self._bar: Bar | None = None

    def show(self, text: str, share: float | None) -> None:
        bar = self._bar = self._bar or self._started()
        total = None if share is None else 1.0
        text = f"{self._name}: {text}" if self._name else text
        bar.update(bar.task_ids[0], description=text, total=total, completed=share or 0.0, refresh=True)

    def close(self, text: str) -> None:  # noqa: ARG002 -- the command line prints it in its own words
        if self._bar is not None:
            self._bar.stop()

    def _started(self) -> Bar:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bar

        bar = Bar(
            BarColumn(style="bright_black", complete_style="green", finished_style="green", pulse_style="green"),
            TextColumn("{task.description}", markup=False),
            console=Console(file=self._stream),
            transient=True,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        bar.add_task("")
        bar.start()
        return bar


def notebook() -> ProgressDisplay | None:
    """The cell of a notebook, if this process is its kernel. rich would draw there with ipywidgets only."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return _Notebook(ipython) if getattr(shell, "kernel", None) is not None else None


_SCREEN: ContextVar[Callable[[], ProgressDisplay | None]] = ContextVar("_SCREEN", default=notebook)
"""The screen of the block that runs."""


class _Notebook:
    def __init__(self, ipython: Any) -> None:
        self._ipython = ipython
        self._line: Any = None

    def show(self, text: str, share: float | None) -> None:  # noqa: ARG002 -- the text contains it
        line = {"text/plain": text}
        if self._line is None:
            self._line = self._ipython.display.display(line, raw=True, display_id=True)
        else:
            self._line.update(line, raw=True)

    def close(self, text: str) -> None:
        self._line.update({"text/plain": text}, raw=True)
