"""A row of the data as every page shows it: templates/row.js draws it, in lists of reports and results and in a review.

ShownRow ─ how it is known, and its columns in the list
   └ RowContent ─ question and conversation · expected beside actual · scores · documents · calls · steps · other cells
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, to_builtins

from agent_eval_schema.text.markdown import trees_of

if TYPE_CHECKING:
    from agent_eval_schema.metrics.alignment import CallPair

MOST_MARKDOWN = 300_000
"""Characters of Markdown that a page renders, those of the first rows; the texts of others are shown as they are."""


class ShownSpan(Struct, frozen=True, array_like=True):
    """A span of a trace: where its bar begins and how long it is (percent of the trace), how deep it is nested, and of
    one that failed the error."""

    name: str
    type: str
    status: str
    start: float
    width: float
    depth: int
    duration: str
    inputs: str
    outputs: str
    error: str


class ShownTurn(Struct, frozen=True, array_like=True):
    """A turn of a conversation: its path in the row, who speaks, what, and the calls with their inputs."""

    path: str
    role: str
    text: str
    calls: Sequence[tuple[str, str]] = ()


class ShownIssue(Struct, frozen=True, array_like=True):
    """An issue of a row that a page can open."""

    code: str
    severity: str
    column: str
    path: str
    message: str
    hint: str


class ShownScore(Struct, frozen=True, array_like=True):
    """A score of a row, its mood, and the reason that its metric gives."""

    metric: str
    text: str
    mood: str
    reason: str


class RowContent(Struct, frozen=True, omit_defaults=True):
    """What a row holds: its conversation, the answers of the agent, what is expected of them, its scores, documents
    (path, URI, content) and calls (their title, and the pairs: those of each run), the spans of its trace, its other
    cells as text, its issues, and what changed or would change: a path, and its pieces of text, each with the side that
    it is on (both, old or new)."""

    turns: Sequence[ShownTurn] = []
    answers: Sequence[tuple[str, str]] = []
    expected: Sequence[tuple[str, str]] = []
    scores: Sequence[ShownScore] = []
    documents: Sequence[tuple[str, str, str]] = []
    calls: Sequence[tuple[str, Sequence[CallPair]]] = []
    spans: Sequence[ShownSpan] = []
    cells: Sequence[tuple[str, str]] = []
    issues: Sequence[ShownIssue] = []
    edits: Sequence[tuple[str, Sequence[tuple[str, str]]]] = []

    @property
    def question(self) -> str:
        """What the user asked last; "" if that is not known."""
        return next((turn.text for turn in reversed(self.turns) if turn.role == "user"), "")

    def texts(self) -> Iterator[str]:
        """Those that may be Markdown."""
        yield from (turn.text for turn in self.turns)
        yield from (text for _, text in (*self.answers, *self.expected))
        yield from (text for _, _, text in self.documents)

    def terms(self) -> Iterator[tuple[str, str]]:
        """What a page without a script shows of it, beside its calls."""
        yield from ((turn.role, turn.text) for turn in self.turns)
        yield from (*self.answers, *self.expected)
        yield from ((f"{score.metric}/reason", score.reason) for score in self.scores if score.reason)
        yield from ((uri, text) for _, uri, text in self.documents)
        yield from self.cells
        yield from ((issue.code, f"{issue.path} {issue.message}") for issue in self.issues)


class ShownRow(Struct, frozen=True, omit_defaults=True):
    """A row that a page can open: its position (or key), line and ID, whether it is valid, its codes, the metrics that
    it supports (by their position in the catalog), how it is called if not by its question, and its cells in the list:
    text, mood and the number by which it is sorted."""

    row: int | str
    line: int | None = None
    id: str | None = None
    valid: bool | None = None
    codes: list[str] = []
    metrics: list[int] = []
    title: str = ""
    failed: bool = False
    columns: Sequence[tuple[str, str, float | None]] = []
    content: RowContent = RowContent()


def row_data(rows: Sequence[ShownRow], total: int, heads: Sequence[str] = (), edits: str = "") -> dict[str, Any]:
    """The rows of a page, whose edits have that title; equal lists of metrics, and equal issues, are there once."""
    sets: dict[tuple[int, ...], int] = {}
    issues: dict[ShownIssue, int] = {}
    entries = [
        to_builtins(row.content)
        | {name: value for name, value in to_builtins(row).items() if name != "content"}
        | {"metrics": sets.setdefault(tuple(row.metrics), len(sets))}
        | ({"issues": [issues.setdefault(i, len(issues)) for i in row.content.issues]} if row.content.issues else {})
        for row in rows
    ]
    trees = trees_of((text for row in rows for text in row.content.texts()), MOST_MARKDOWN)
    return {
        "total": total,
        "heads": list(heads),
        "edits": edits,
        "sets": list(sets),
        "issues": list(issues),
        "trees": trees,
        "rows": entries,
    }
