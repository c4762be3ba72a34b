"""`review_eval_set`: open a dataset, its journals and the page."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any

from agent_eval_schema.cells.cells import native_rows
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.formats.column_names import ColumnNames
from agent_eval_schema.formats.names import InputFormat
from agent_eval_schema.formats.opening import EvalSetLike, open_source
from agent_eval_schema.io.source import Source
from agent_eval_schema.review.agreement import merged_states
from agent_eval_schema.review.dataset import QUEUE_NAMES, Reviewed
from agent_eval_schema.review.journal import Journal, other_journals, own_journal, read_journal
from agent_eval_schema.review.server import ReviewServer
from agent_eval_schema.review.session import Session
from agent_eval_schema.review.write import Reviewing
from agent_eval_schema.text.choices import path_of, require_choice, require_count, require_kind
from agent_eval_schema.validation.plan import Outputs

if TYPE_CHECKING:
    import pandas as pd

    from agent_eval_schema.integrations.mlflow.datasets import WrittenDataset
    from agent_eval_schema.integrations.mlflow.records import OnDuplicate


def review_eval_set(
    data: EvalSetLike,
    *,
    reviewer: str | None = None,
    queue: str = "",
    rows: Sequence[int] = (),
    journal: str | os.PathLike[str] | None = None,
    overlap: int = 0,
    guide: str | os.PathLike[str] | None = None,
    port: int = 0,
    open_browser: bool = False,
    format: InputFormat = "auto",
    outputs: Outputs = "auto",
    columns: ColumnNames = None,
) -> Review:
    """Open a page on which people give the rows of a dataset their ground truth.

    The page is served on this machine only. Each change is saved to a journal before the page shows "Saved"; the
    dataset is not changed.

    Parameters
    ----------
    data : EvalSetLike
        Any input of `validate_eval_set`.
    reviewer : str or None, default None
        The name of the reviewer, which is part of the name of the journal. None uses the user of the machine.
    queue : str, default ""
        The queue that the page opens: `"truth"`, `"errors"`, `"fixes"`, `"conflicts"`, `"duplicates"`, `"audit"`,
        `"flagged"`, `"changed"`, `"overlap"`, `"together"`, `"rows"` or `"all"`. `""` is the first one that has rows.
    rows : sequence of int, default ()
        The 0-based positions of rows, such as of those that became worse. They are the queue `"rows"`, the first one.
    journal : str, os.PathLike or None, default None
        The start of the names of the journals. None uses the path of the file, and `"data"` for data in memory:
        `"data.maria.review.jsonl"`.
    overlap : int, default 0
        The number of rows that every reviewer gets, to measure their agreement.
    guide : str, os.PathLike or None, default None
        The path of a Markdown file with the instructions of the team, which the page shows beside the form.
    port : int, default 0
        The port of the server. 0 is the one of the last review of the journal, or a free one.
    open_browser : bool, default False
        If True, open the page in a browser.
    format : FormatName or "auto", default "auto"
        The format of the data. `"auto"` detects it from the column names.
    outputs : {"auto", "provided", "generated"}, default "auto"
        Whether the agent's outputs are in the data, as in `validate_eval_set`.
    columns : mapping of str to str, {"auto"} or None, default None
        Canonical names of columns of the data, as in `validate_eval_set`.

    Returns
    -------
    Review
        The running page: its `url`, the `progress`, the reviewed `rows()`, and `stop()`. The call does not wait.

    Raises
    ------
    EvalSetError
        The data cannot be read as a table of evaluation rows, or the port is taken.
    MissingExtraError
        The extra `review` is not installed.

    See Also
    --------
    validate_eval_set : Report the issues of each row.

    Examples
    --------
    >>> from agent_eval_schema import review_eval_set
    >>> review = review_eval_set([{"request": "What is Delta Lake?", "response": "A table format."}], reviewer="maria")
    >>> review.url.startswith("http://127.0.0.1:")
    True
    >>> review.progress["rows"]["truth"]
    1
    >>> review.rows()["request"].tolist()
    ['What is Delta Lake?']
    >>> review.stop()
    """
    for option, value in (("overlap", overlap), ("port", port)):
        if value:
            require_count(option, value)
    source = open_source(data, "data", columns, format=format, outputs=outputs)
    require_kind("rows", rows, Iterable, "row numbers")
    for row in rows:
        require_kind("rows", row, Integral, "row numbers")
    session = open_session(source, reviewer, journal, overlap=overlap, guide=guide, rows=list(map(int, rows)))
    if queue:
        require_choice("queue", queue, QUEUE_NAMES)
    server = ReviewServer(session, port=port, queue=queue)
    if open_browser:
        server.open_in_browser()
    return Review(session, server)


def default_reviewer() -> str:
    """The user of the machine, as far as the name can be one of a file."""
    name = ""
    with suppress(Exception):  # there may be no such user
        name = getpass.getuser().strip()
    return name or "reviewer"


def open_session(
    source: Source,
    reviewer: str | None = None,
    journal: str | os.PathLike[str] | None = None,
    *,
    overlap: int = 0,
    guide: str | os.PathLike[str] | None = None,
    rows: Sequence[int] = (),
    check: Callable[[int], None] = lambda _: None,
) -> Session:
    """The session of a reviewer, with the journals that are beside the file; `check` as of `Reviewed`."""
    by = default_reviewer() if reviewer is None else reviewer
    base = path_of(journal, "journal") if journal is not None else source.path or source.name or "data"
    own, words = own_journal(base, by), "" if guide is None else read_guide(path_of(guide, "guide"))
    find = partial(other_journals, base, by)
    return Session(Reviewed(source, check), own, list(find()), find=find, overlap=overlap, guide=words, rows=rows)


MOST_GUIDE = 200_000
"""Bytes of a guide, at most."""


def read_guide(path: str) -> str:
    """The instructions in a file."""
    try:
        with open(path, "rb") as file:
            text = file.read(MOST_GUIDE + 1)
    except OSError as error:
        raise EvalSetError(f"guide: {path}: cannot be read: {error.strerror}") from error
    if len(text) > MOST_GUIDE:
        raise EvalSetError(f"guide: {path}: expected at most {MOST_GUIDE:,} bytes")
    return text.decode("utf-8-sig", "replace")


def merge(source: Source, paths: Sequence[str]) -> Session:
    """A session of several journals as one: what their reviewers agree on, or decided together."""
    journals = []
    for path in paths:
        if not os.path.isfile(path):
            raise EvalSetError(f"--merge {path}: there is no such journal")
        journals.append(read_journal(path))
    names = [journal.by for journal in journals]
    if len(set(names)) < len(names):
        raise EvalSetError(f"--merge: expected journals of different reviewers, got {', '.join(names)}")
    return Session(Reviewed(source), Journal("merged"), journals)


def merged(session: Session) -> Reviewing:
    """The rows with what all reviewers of a merged session agree on."""
    return Reviewing(session.reviewed, merged_states(session.of_others()))


class Review:  # numpydoc ignore=PR01
    """A running review page.

    See Also
    --------
    review_eval_set : Open a page on which people give rows their ground truth.

    Examples
    --------
    >>> from agent_eval_schema import review_eval_set
    >>> review = review_eval_set([{"request": "Hi", "response": "Hello!"}], reviewer="maria")
    >>> review.progress["done"]["truth"]
    0
    >>> review.stop()
    """

    def __init__(self, session: Session, server: ReviewServer) -> None:
        self._session, self._server = session, server

    @property
    def url(self) -> str:
        """Return the address of the page.

        Returns
        -------
        str
            An address of this machine, with the token that opens the page.

        Examples
        --------
        >>> from agent_eval_schema import review_eval_set
        >>> review = review_eval_set([{"request": "Hi", "response": "Hello!"}], reviewer="maria")
        >>> review.url.startswith("http://127.0.0.1:")
        True
        >>> review.stop()
        """
        return self._server.url

    @property
    def progress(self) -> dict[str, Any]:
        """Return how far the review is.

        Returns
        -------
        dict
            `rows` and `done` have the number of rows and of submitted rows of each queue, `coverage` per metric the
            rows that support it and half of the interval in percentage points, `changes` the number of changes.

        Examples
        --------
        >>> from agent_eval_schema import review_eval_set
        >>> review = review_eval_set([{"request": "Hi", "response": "Hello!"}], reviewer="maria")
        >>> review.progress["changes"]
        0
        >>> review.stop()
        """
        with self._session.up_to_date():
            return self._session.progress()

    def rows(self) -> pd.DataFrame:
        """Return the rows with what this reviewer decided about them.

        Returns
        -------
        pandas.DataFrame
            The columns of the data and those that labels need, without the rows that were dropped.

        Examples
        --------
        >>> from agent_eval_schema import review_eval_set
        >>> review = review_eval_set([{"request": "Hi", "response": "Hello!"}], reviewer="maria")
        >>> review.rows().shape
        (1, 2)
        >>> review.stop()
        """
        import pandas as pd

        with self._session.up_to_date():
            reviewing = Reviewing(self._session.reviewed, self._session.states)
            rows = [row for batch in reviewing.batches() for row in native_rows(batch)]
        names = dict.fromkeys([*self._session.reviewed.source.column_names(), *(name for row in rows for name in row)])
        return pd.DataFrame({name: pd.Series([row.get(name) for row in rows], dtype="object") for name in names})

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the rows with what this reviewer decided to a file.

        Parameters
        ----------
        path : str or os.PathLike
            The path of the file. In the format and the kind of the file under review, only reviewed cells differ.

        Raises
        ------
        EvalSetError
            The path is that of the file under review, or cannot be written.

        Examples
        --------
        >>> from agent_eval_schema import review_eval_set
        >>> review = review_eval_set([{"request": "Hi", "response": "Hello!"}], reviewer="maria")
        >>> review.write("reviewed.jsonl")
        >>> review.stop()
        """
        with self._session.up_to_date():
            Reviewing(self._session.reviewed, self._session.states).write(path_of(path))

    def to_mlflow_dataset(
        self, name: str, *, on_duplicate: OnDuplicate = "merge", tracking_uri: str | None = None
    ) -> WrittenDataset:
        """Write the valid reviewed rows to an MLflow dataset.

        The source of the record of a row that was reviewed is `{"source_type": "HUMAN", "source_data": {"user_name":
        ...}}` with the names of its reviewers. MLflow keeps the first source of a record.

        Parameters
        ----------
        name : str
            The name or the ID (`"d-…"`) of the dataset. One that does not exist is created.
        on_duplicate : {"raise", "first", "last", "merge"}, default "merge"
            What to do with rows that have the same request, as in `to_mlflow_dataset`.
        tracking_uri : str or None, default None
            The URI of the tracking store. None is the store that MLflow is configured with.

        Returns
        -------
        WrittenDataset
            The dataset, and what was done with each row.

        Raises
        ------
        MissingExtraError
            MLflow 3.5 or newer is not installed.
        EvalSetError
            No row is valid, or the store rejects the operation.

        See Also
        --------
        to_mlflow_dataset : Write the rows of an evaluation dataset.

        Examples
        --------
        >>> from agent_eval_schema import review_eval_set
        >>> review = review_eval_set([{"request": "Hi", "response": "Hello!"}], reviewer="maria")
        >>> review.to_mlflow_dataset("docs.Review.to_mlflow_dataset").written
        1
        >>> review.stop()
        """
        from agent_eval_schema.review.to_mlflow import write_dataset

        with self._session.up_to_date():
            return write_dataset(self._session, name, on_duplicate=on_duplicate, tracking_uri=tracking_uri)

    def to_mlflow_traces(self, *, tracking_uri: str | None = None) -> dict[str, int]:
        """Log the labels of rows with a trace as expectations of that trace.

        The source of an expectation is an `AssessmentSource` of the type HUMAN with the name of the reviewer. A second
        call changes the expectations of the same reviewer, and deletes those whose label was taken away.

        Parameters
        ----------
        tracking_uri : str or None, default None
            The URI of the tracking store with the traces. None is the store that MLflow is configured with.

        Returns
        -------
        dict
            The number of expectations that were `written`, `deleted` and `unchanged`, and the number of labeled rows
            without a trace (`rows_without_trace`) and with tags, which are no expectations (`tags_not_kept`).

        Raises
        ------
        MissingExtraError
            MLflow 3.3 or newer is not installed.
        EvalSetError
            The store has no such trace, or rejects the operation.

        See Also
        --------
        traces_from_store : Return the traces of a tracking store, with their expectations.

        Examples
        --------
        >>> from agent_eval_schema import review_eval_set
        >>> review = review_eval_set([{"request": "Hi", "response": "Hello!"}], reviewer="maria")
        >>> review.to_mlflow_traces()["written"]
        0
        >>> review.stop()
        """
        from agent_eval_schema.review.to_mlflow import log_labels

        with self._session.up_to_date():
            return log_labels(self._session, tracking_uri=tracking_uri)

    def stop(self) -> None:
        """Stop the server. The journal stays.

        Examples
        --------
        >>> from agent_eval_schema import review_eval_set
        >>> review = review_eval_set([{"request": "Hi", "response": "Hello!"}], reviewer="maria")
        >>> review.stop()
        """
        self._server.stop()

    def __repr__(self) -> str:
        return f"<Review: {self.url}>"

    def _repr_html_(self) -> str:
        return f'<a href="{self.url}" rel="noreferrer">Open the review</a>'
