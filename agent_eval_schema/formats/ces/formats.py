"""The two formats of Google Customer Engagement Suite: golden CSV and Evaluation JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent_eval_schema.formats.ces.evaluation import MORE_PAGES
from agent_eval_schema.formats.ces.tables import (
    EVALUATION_SIGNS,
    GOLDEN_SIGNS,
    inspect_evaluations,
    prepare_golden,
    read_evaluation_batch,
)
from agent_eval_schema.formats.ces.writer import EVALUATION_WRITER, GOLDEN_WRITER
from agent_eval_schema.formats.format import Format, Head, Nested, Row, Unfolded
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules import ces, pages


# ---------------------------------------------------------------------------------------------------------------------
# a page of a list of the API
def _page(row: Row) -> Iterator[Unfolded]:
    for found in [row[key] for key in _LIST_FIELDS if key in row] or [None]:
        for item in found if isinstance(found, list) else [found]:
            yield (item if isinstance(item, dict) else {"golden": item}), ()


def _more_pages(page: Row) -> Sequence[Finding]:
    return (Finding(ces.MORE_PAGES, MORE_PAGES),) if any(page.get(key) for key in _TOKENS) else ()


_LIST_FIELDS = ("evaluations", "evaluationResults", "evaluation_results")
"""The fields of ListEvaluationsResponse and ListEvaluationResultsResponse that hold the list."""

_TOKENS = ("nextPageToken", "next_page_token")
_PAGE = frozenset({*_LIST_FIELDS, *_TOKENS})


def _is_page(names: Sequence[str], _: Head) -> bool:
    return any(key in names for key in _LIST_FIELDS) and set(names) <= _PAGE


# ---------------------------------------------------------------------------------------------------------------------
CES_CSV = Format(
    name="ces-csv",
    title="Google CES (golden CSV)",
    summary="a golden CSV of Google CES: evaluations and their conversations",
    system="ces",
    page=pages.GOLDEN_CSV,
    signs=GOLDEN_SIGNS,
    prepare=prepare_golden,
    instead_of_response=(),
    is_rows=False,
    knows_columns=True,
    writer=GOLDEN_WRITER,
)
CES_EVALUATION = Format(
    name="ces-evaluation",
    title="Google CES (Evaluation JSON)",
    summary="Evaluation JSON of Google CES: golden or scenario",
    system="ces",
    page=pages.CES_EVALUATION,
    signs=EVALUATION_SIGNS,
    read=read_evaluation_batch,
    instead_of_response=(),
    is_rows=False,
    knows_columns=True,
    inspect=inspect_evaluations,
    nested=(Nested(_is_page, _page, parts=_LIST_FIELDS, columns=("displayName", "golden"), ends=_more_pages),),
    writer=EVALUATION_WRITER,
)
