"""The labels of a review in MLflow, with the people who gave them.

reviewed rows ──to_mlflow_dataset──▶ records of a dataset      source HUMAN, user_name
labels of rows with a trace ───────▶ expectations of a trace   AssessmentSource HUMAN, source_id
ratings of their answers ──────────▶ feedback of the trace     the same
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, cast

import pyarrow as pa
from msgspec.structs import replace

from agent_eval_schema.cells.cells import native_rows
from agent_eval_schema.cells.edit import with_edits
from agent_eval_schema.formats.mlflow import EXPECTATION_OF, expectations_of
from agent_eval_schema.formats.names import InputFormat
from agent_eval_schema.integrations.mlflow.datasets import WrittenDataset, as_source, to_mlflow_dataset, trace_id_of
from agent_eval_schema.integrations.mlflow.records import SOURCE, OnDuplicate
from agent_eval_schema.integrations.mlflow.store import Store
from agent_eval_schema.review.labels import COLUMN_OF, LABELS, RATING, canonical_rows, with_labels
from agent_eval_schema.review.session import Session
from agent_eval_schema.review.write import Reviewing

HUMAN = "HUMAN"


def write_dataset(
    session: Session, name: str, *, on_duplicate: OnDuplicate = "merge", tracking_uri: str | None = None
) -> WrittenDataset:
    """Write the reviewed rows to a dataset; the source of a row that was reviewed is who did it."""
    reviewed, reviewing = session.reviewed, Reviewing(session.reviewed, session.together())
    sources = {row: _source(session, row, by) for row, by in session.reviewers().items()}
    rows = sorted(set(range(len(reviewed))).difference(reviewing.dropped))

    def batches() -> Iterator[pa.RecordBatch]:
        start = 0
        for batch in reviewing.batches():
            own = rows[start : start + batch.num_rows]
            cells = {at: sources[row] for at, row in enumerate(own) if row in sources}
            yield with_edits(batch, {SOURCE: cells}, reviewed.plan.can_hold_objects)
            start += batch.num_rows

    source = reviewing.source
    columns = source.columns and tuple(dict.fromkeys((*source.columns, SOURCE)))
    return to_mlflow_dataset(
        replace(source, batches=batches, columns=columns),
        name,
        on_duplicate=on_duplicate,
        format=cast(InputFormat, reviewed.plan.format),
        tracking_uri=tracking_uri,
    )


def _source(session: Session, row: int, by: list[str]) -> dict[str, Any]:
    """Who reviewed a row, beside what its source had: a record has one source, which names its trace too."""
    batch = session.reviewed.batch_of(row)
    before = as_source(native_rows(batch)[0].get(SOURCE)) or {"source_data": {}}
    trace_id = trace_id_of(canonical_rows(batch, session.reviewed.plan)[0]["trace"])
    trace = {"trace_id": trace_id} if trace_id else {}
    return {"source_type": HUMAN, "source_data": {**trace, **before["source_data"], "user_name": ", ".join(by)}}


def log_labels(session: Session, *, tracking_uri: str | None = None) -> dict[str, int]:
    """Make the labels of rows with a trace expectations of that trace, one for each reviewer. Those that a reviewer
    has from an earlier call are changed, or deleted if the label was taken away; of ratings the same."""
    store, states, reviewed = Store(tracking_uri), session.together(), session.reviewed
    store.require_there()
    done = Counter(dict.fromkeys(("written", "deleted", "unchanged", "rows_without_trace", "tags_not_kept"), 0))
    signed, removed = session.reviewers(), session.removed()
    for row in sorted({*signed, *removed}):
        state, gone = states.get(row, {}) if row in signed else {}, removed.get(row, {})
        labels = [label for label in LABELS if label in state]
        if not labels and "rating" not in state and not gone:
            continue
        canonical = canonical_rows(reviewed.batch_of(row), reviewed.plan)[0]
        trace_id = trace_id_of(canonical["trace"])
        if trace_id is None:
            done["rows_without_trace"] += bool(labels or "rating" in state)
            continue
        done["tags_not_kept"] += "tags" in labels
        labeled = with_labels(canonical, state)
        truth = expectations_of({COLUMN_OF[n]: labeled[COLUMN_OF[n]] for n in labels if COLUMN_OF[n] in EXPECTATION_OF})
        with store.reporting_errors(), store.active():
            for reviewer in dict.fromkeys([*signed.get(row, ()), *gone]):
                own = state if reviewer in signed.get(row, ()) else {}
                paths = {*gone.get(reviewer, ()), *own}
                names = [EXPECTATION_OF[c] for n, c in COLUMN_OF.items() if n in paths and c in EXPECTATION_OF]
                wanted = {name: truth.get(name) if own else None for name in names}
                done.update(_log(store, trace_id, wanted, reviewer))
                if "rating" in paths:
                    done.update(_rate(store, trace_id, own.get("rating"), own.get("reason"), reviewer))
    return dict(done)


def _rate(store: Store, trace_id: str, rating: str | None, reason: str | None, reviewer: str) -> Iterator[str]:
    """Make what a reviewer thinks of the answer feedback of the trace, in place of that of an earlier call."""
    mlflow = store.mlflow
    source = mlflow.entities.AssessmentSource(source_type=HUMAN, source_id=reviewer)
    name, assessments = RATING["rating"], store.client.get_trace(trace_id).info.assessments
    before = [a for a in assessments if a.feedback and a.name == name and a.source == source]
    if [(a.feedback.value, a.rationale) for a in before] == [(rating, reason)]:
        yield "unchanged"
        return
    for own in before:
        mlflow.delete_assessment(trace_id=trace_id, assessment_id=own.assessment_id)
        if rating is None:
            yield "deleted"
    if rating is not None:
        mlflow.log_feedback(trace_id=trace_id, name=name, value=rating, rationale=reason, source=source)
        yield "written"


def _log(store: Store, trace_id: str, wanted: dict[str, Any], reviewer: str) -> Iterator[str]:
    mlflow = store.mlflow
    source = mlflow.entities.AssessmentSource(source_type=HUMAN, source_id=reviewer)
    own = {a.name: a for a in store.client.get_trace(trace_id).info.assessments if a.expectation and a.source == source}
    for name, value in wanted.items():
        before = own.get(name)
        if before is not None and value is None:
            mlflow.delete_assessment(trace_id=trace_id, assessment_id=before.assessment_id)
            yield "deleted"
        elif before is not None and before.value == value:
            yield "unchanged"
        elif before is not None:
            new = mlflow.entities.Expectation(name=name, value=value, source=source)
            mlflow.update_assessment(trace_id=trace_id, assessment_id=before.assessment_id, assessment=new)
            yield "written"
        elif value is not None:
            mlflow.log_expectation(trace_id=trace_id, name=name, value=value, source=source)
            yield "written"
