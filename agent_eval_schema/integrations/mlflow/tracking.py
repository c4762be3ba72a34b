"""Traces in a tracking store → a source of rows, in bounded memory.

    store ──a page of traces at a time──▶ a temporary Parquet file ──▶ batches, as often as they are read

Validation reads its data more than once, while a store is slow and may grow: so each trace is fetched once, and every
later reading sees the same traces. The file is deleted with the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from inspect import signature
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.integrations.mlflow.store import Store
from agent_eval_schema.io.files import open_file
from agent_eval_schema.io.source import Source
from agent_eval_schema.issues import Finding
from agent_eval_schema.render.phrases import plural
from agent_eval_schema.rules.traces import EVALUATION_TRACE
from agent_eval_schema.runtime.signals import TemporaryFolder

REQUEST_TAG = "mlflow.eval.requestId"
"""The tag of a trace that MLflow logs in an evaluation: of a call of `predict_fn`, or of a row with outputs."""

_FILE = "traces.parquet"
_TRACES = pa.schema([("trace", pa.string())])


def traces_from_store(
    experiment: str | Sequence[str] | None = None,
    *,
    filter_string: str | None = None,
    max_results: int | None = None,
    order_by: list[str] | None = None,
    tracking_uri: str | None = None,
    page_size: int = 100,
    evaluations: bool = False,
) -> Source:
    """Return the traces of an MLflow tracking store.

    Parameters
    ----------
    experiment : str, sequence of str or None, default None
        The name or ID of an experiment, or several. None is the active experiment.
    filter_string : str or None, default None
        A filter as in `mlflow.search_traces`, such as `"trace.status = 'OK'"`. None selects all traces.
    max_results : int or None, default None
        The maximum number of traces. None returns all traces.
    order_by : list of str or None, default None
        The order as in `mlflow.search_traces`. None returns the newest trace first.
    tracking_uri : str or None, default None
        The URI of the tracking store. None is the store that MLflow is configured with.
    page_size : int, default 100
        The number of traces that are in memory at the same time.
    evaluations : bool, default False
        Whether traces that an evaluation has logged itself are included. If they are not, the report has their number
        (AE613): a dataset would grow by the questions of its own evaluations.

    Returns
    -------
    Source
        An input of `eval_set_from_traces`, `validate_eval_set` and the other functions that take data: one row per
        trace, with the column `trace`. Traces that are logged later are not in it. A trace without spans in the store
        is a row without spans.

    Raises
    ------
    MissingExtraError
        MLflow 3.3 or newer is not installed.
    EvalSetError
        The store cannot be reached, there is no such experiment, or the store rejects the filter or the order.

    See Also
    --------
    eval_set_from_traces : Return the canonical rows of traces.

    Examples
    --------
    >>> import mlflow
    >>> from agent_eval_schema import eval_set_from_traces, traces_from_store
    >>> experiment = mlflow.set_experiment("docs.traces_from_store")
    >>> @mlflow.trace
    ... def agent(question):
    ...     return "A table format."
    >>> answer = agent("What is Delta Lake?")
    >>> eval_set_from_traces(traces_from_store("docs.traces_from_store"))["response"].tolist()
    ['A table format.']
    """
    if page_size < 1 or (max_results is not None and max_results < 0):
        raise EvalSetError(f"page_size must be 1 or more, max_results 0 or more: got {page_size}, {max_results}")
    store = Store(tracking_uri)
    store.require_there()
    experiments = store.experiment_ids(experiment)
    search = store.client.search_traces
    # What mlflow 3.3 calls experiment_ids is deprecated since; a location is the same for an experiment.
    scope = "locations" if "locations" in signature(search).parameters else "experiment_ids"
    query: dict[str, Any] = {scope: experiments, "filter_string": filter_string, "order_by": order_by}

    def page(size: int, token: str | None, spans: bool) -> Any:
        with store.reporting_errors():
            return search(**query, max_results=size, page_token=token, include_spans=spans)

    folder, excluded = TemporaryFolder(), set[str]()
    with pq.ParquetWriter(folder.file(_FILE), _TRACES, compression="zstd") as writer:
        for traces in _pages(page, max_results, page_size, None if evaluations else excluded):
            with store.reporting_errors():
                texts = [str(trace.to_json()) for trace in traces]
            writer.write_table(pa.table([pa.array(texts, pa.string())], schema=_TRACES))

    # the folder lives as long as the source
    def batches() -> Iterator[pa.RecordBatch]:
        yield from open_file(folder.file(_FILE)).batches()

    def take(mask: np.ndarray[Any, Any]) -> Any:
        return open_file(folder.file(_FILE)).take(mask)

    are = "is" if len(excluded) == 1 else "are"
    message = f"{plural(len(excluded), 'trace')} that an evaluation logged {are} excluded"
    remarks = (Finding(EVALUATION_TRACE, message),) if excluded else ()
    return Source("tracking store", batches, take, can_hold_objects=False, remarks=remarks)


def _pages(
    page: Callable[[int, str | None, bool], Any], limit: int | None, page_size: int, excluded: set[str] | None
) -> Iterator[list[Any]]:
    """The traces, a page at a time, each trace once; the IDs of those that an evaluation logged are added to
    `excluded`, if it is given, and they are not among them.

    A page is requested without spans, and then with them: MLflow omits a trace whose spans it cannot load, and only the
    first answer shows that. A store pages by position, so traces that are logged meanwhile move the others: one that
    comes again is skipped.
    """
    seen: set[str] = set()
    token: str | None = None
    while limit is None or len(seen) < limit:
        size = page_size if limit is None else min(page_size, limit - len(seen))
        traces = page(size, token, False)
        if excluded is not None:
            excluded.update(trace.info.trace_id for trace in traces if REQUEST_TAG in trace.info.tags)
        bare = {t.info.trace_id: t for t in traces if t.info.trace_id not in seen | (excluded or set())}
        seen.update(bare)
        if bare:
            # with their spans; those that moved between the two questions are looked for further on
            whole = {t.info.trace_id: t for t in page(size, token, True)}
            if not whole.keys() >= bare.keys():
                whole |= {t.info.trace_id: t for t in page(2 * size, token, True)}
            yield [whole.get(id, trace) for id, trace in bare.items()]
        token = traces.token
        if not token:
            return
