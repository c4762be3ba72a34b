"""EvalSetBuild: the result of a build, whatever its engine is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from typing import Generic, Literal, TypeVar

import pyarrow as pa

from agent_eval_schema.inference_tables.build_summary import BuildSummary, funnel_view
from agent_eval_schema.io.outputs import settle
from agent_eval_schema.render.blocks import View
from agent_eval_schema.render.printable import Savable
from agent_eval_schema.text.choices import path_of
from agent_eval_schema.validation.checked_run import CheckedRun
from agent_eval_schema.validation.report import Report, summary_of
from agent_eval_schema.validation.shown import shown_on_page

Frame = TypeVar("Frame")
Table = Literal["rows", "excluded", "updates"]


class EvalSetBuild(Savable, Generic[Frame]):  # numpydoc ignore=PR01
    """An evaluation dataset that was built from an inference table.

    `print(build)` shows the row counts per step; a notebook shows them as HTML. The tables are pandas DataFrames, or
    Spark DataFrames of a build on Spark: they are lazy and have no fixed order, and what they are computed from is
    persisted until `close` is called or the `with` block ends.

    See Also
    --------
    eval_set_from_inference_table : The function that returns a build.
    spark_from_inference_table : The function that returns a build on Spark.

    Examples
    --------
    >>> from agent_eval_schema import eval_set_from_inference_table
    >>> build = eval_set_from_inference_table("sample_data/inference_table.jsonl")
    >>> build.summary.records == len(build.rows) + len(build.excluded)
    True
    """

    def _frame(self, name: Table) -> Frame:
        raise NotImplementedError

    def _batches(self, name: Table) -> Iterator[pa.RecordBatch]:
        raise NotImplementedError

    def _write(self, name: Table, path: str) -> int:
        raise NotImplementedError

    def _summarize(self) -> BuildSummary:
        raise NotImplementedError

    _run: CheckedRun
    _tables: tuple[str | None, ...] = ()

    @cached_property
    def summary(self) -> BuildSummary:
        """The row counts per step.

        Returns
        -------
        BuildSummary
            The numbers; on Spark, computing them runs a job.

        Examples
        --------
        >>> from agent_eval_schema import eval_set_from_inference_table
        >>> eval_set_from_inference_table("sample_data/inference_table.jsonl").summary.logged
        27
        """
        return self._summarize()

    @cached_property
    def rows(self) -> Frame:
        """The rows of the evaluation dataset.

        Returns
        -------
        pandas.DataFrame or pyspark.sql.DataFrame
            One row per call, in the order of the table, with a RangeIndex: the canonical columns with the dtypes that
            `normalize_eval_set` returns, then `request_time` (datetime64[us, UTC]), `status_code` (Int64) and
            `served_entity` (object; str or None). The rows of a dataset that is extended are the first, and its other
            columns the last.

        See Also
        --------
        EvalSetBuild.iter_batches : Stream the rows of a large table.

        Examples
        --------
        >>> from agent_eval_schema import eval_set_from_inference_table
        >>> build = eval_set_from_inference_table("sample_data/inference_table.jsonl")
        >>> build.rows["status_code"].unique().tolist()
        [200]
        """
        return self._frame("rows")

    @cached_property
    def excluded(self) -> Frame:
        """The excluded rows, each with its reason.

        Returns
        -------
        pandas.DataFrame or pyspark.sql.DataFrame
            One row per excluded row, in the order of the table, with a RangeIndex and the columns `request_id`,
            `reason`, `message` (object; str or None), `time` (datetime64[us, UTC]), `status_code` (Int32), `request`
            and `response` (object; str or None). The `request_id` of a record of a batch call is `<id>#<n>`.

        Examples
        --------
        >>> from agent_eval_schema import eval_set_from_inference_table
        >>> build = eval_set_from_inference_table("sample_data/inference_table.jsonl")
        >>> build.excluded["reason"].value_counts()["status"].item()
        2
        """
        return self._frame("excluded")

    @cached_property
    def updates(self) -> Frame:
        """The labels of the extended dataset that later feedback changed.

        Returns
        -------
        pandas.DataFrame or pyspark.sql.DataFrame
            One row per label, with a RangeIndex and the columns `request_id`, `column`, `before` and `after` (object;
            str or None, JSON text for documents). It is empty if no dataset is extended.

        Examples
        --------
        >>> from agent_eval_schema import eval_set_from_inference_table
        >>> first = eval_set_from_inference_table("sample_data/inference_table.jsonl", labels=None)
        >>> build = eval_set_from_inference_table("sample_data/inference_table.jsonl", extend=first.rows)
        >>> build.updates["column"].value_counts().to_dict()
        {'expected_response': 4, 'expected_retrieved_context': 1}
        """
        return self._frame("updates")

    @property
    def report(self) -> Report:
        """The validation report of the rows.

        Returns
        -------
        Report
            The issues and the metric coverage of `rows`.

        Examples
        --------
        >>> from agent_eval_schema import eval_set_from_inference_table
        >>> build = eval_set_from_inference_table("sample_data/inference_table.jsonl")
        >>> build.report.ok
        True
        """
        return Report(self._run)

    def iter_batches(self) -> Iterator[pa.RecordBatch]:
        """Iterate over the rows as Arrow batches.

        Returns
        -------
        iterator of pyarrow.RecordBatch
            The columns of `rows`; a table of any size is streamed.

        Examples
        --------
        >>> from agent_eval_schema import eval_set_from_inference_table
        >>> build = eval_set_from_inference_table("sample_data/inference_table.jsonl", sample=5)
        >>> sum(batch.num_rows for batch in build.iter_batches())
        5
        """
        return self._batches("rows")

    def iter_excluded(self) -> Iterator[pa.RecordBatch]:
        """Iterate over the excluded rows as Arrow batches, in the order of the table.

        Returns
        -------
        iterator of pyarrow.RecordBatch
            The columns of `excluded`; a table of any size is streamed.

        Examples
        --------
        >>> from agent_eval_schema import eval_set_from_inference_table
        >>> build = eval_set_from_inference_table("sample_data/inference_table.jsonl", sample=5)
        >>> sum(batch.num_rows for batch in build.iter_excluded()) == len(build.excluded)
        True
        """
        return self._batches("excluded")

    def write(self, path: str | os.PathLike[str]) -> int:
        """Write the rows to a file or a new Delta table.

        Parameters
        ----------
        path : str or os.PathLike
            The path. `.parquet` and `.jsonl` select the kind of file; any other name is the folder of a new Delta
            table. On Spark, `.parquet` is a folder of files.

        Returns
        -------
        int
            The number of rows that were written.

        Raises
        ------
        EvalSetError
            The file cannot be written, or the folder exists.

        See Also
        --------
        EvalSetBuild.write_excluded : Write the excluded rows.

        Examples
        --------
        >>> from agent_eval_schema import eval_set_from_inference_table
        >>> build = eval_set_from_inference_table("sample_data/inference_table.jsonl", sample=5)
        >>> build.write("rows.jsonl")
        5
        """
        return self._write("rows", self._settled(path))

    def write_excluded(self, path: str | os.PathLike[str]) -> int:
        """Write the excluded rows to a file or a new Delta table.

        Parameters
        ----------
        path : str or os.PathLike
            The path. `.parquet` and `.jsonl` select the kind of file; any other name is the folder of a new Delta
            table. On Spark, `.parquet` is a folder of files.

        Returns
        -------
        int
            The number of rows that were written.

        Raises
        ------
        EvalSetError
            The file cannot be written, or the folder exists.

        Examples
        --------
        >>> from agent_eval_schema import eval_set_from_inference_table
        >>> build = eval_set_from_inference_table("sample_data/inference_table.jsonl", sample=5)
        >>> build.write_excluded("excluded.parquet") == len(build.excluded)
        True
        """
        return self._write("excluded", self._settled(path))

    def _settled(self, path: str | os.PathLike[str]) -> str:
        settle({"": path_of(path)}, {"a table of the build": self._inputs()})
        return path_of(path)

    def _inputs(self) -> object:
        return self._tables

    def close(self) -> None:
        """Release the temporary files of the build, or the rows that are persisted on Spark.

        Tables that were not read before must not be used afterwards.

        Examples
        --------
        >>> from agent_eval_schema import eval_set_from_inference_table
        >>> with eval_set_from_inference_table("sample_data/inference_table.jsonl", sample=5) as build:
        ...     rows = build.rows
        >>> len(rows)
        5
        """
        raise NotImplementedError

    def __enter__(self) -> EvalSetBuild[Frame]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _json(self) -> str:
        return self.summary.to_json()

    def _page(self, output: str | None = None) -> str:
        """The page; `output` is the file with the rows, if a command wrote one."""
        from agent_eval_schema.render.block_html import view_page
        from agent_eval_schema.render.report.report_blocks import after_build

        report = summary_of(self.report)
        view = funnel_view(self.summary, output=output, report=report)
        return view_page(after_build(view, report, shown_on_page(self._run)))

    def _view(self) -> View:
        return funnel_view(self.summary)

    # A representation runs no job on Spark: it has the numbers that are known.
    def _repr_html_(self) -> str | None:  # type: ignore[override]  # None: a notebook shows the text
        return self.summary._repr_html_() if "summary" in self.__dict__ else None

    def __repr__(self) -> str:
        return f"<EvalSetBuild: {self.summary.funnel if 'summary' in self.__dict__ else 'not counted yet'}>"
