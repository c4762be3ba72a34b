"""A review without a server: one page that holds its rows and keeps its journal in the browser."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import msgspec

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.inference_tables.finish.redact import Redactor
from agent_eval_schema.render.page import review_page
from agent_eval_schema.render.phrases import plural
from agent_eval_schema.review.dataset import TITLE
from agent_eval_schema.review.journal import journal_path
from agent_eval_schema.review.session import Session, texts_of
from agent_eval_schema.text.markdown import trees_of

MOST_ROWS = 5_000
"""Rows that a page holds, at most: each is there with all that is shown of it."""


def require_few(rows: int) -> None:
    """Raise EvalSetError if a page cannot hold this number of rows."""
    if rows > MOST_ROWS:
        raise EvalSetError(
            f"--bundle: expected at most {plural(MOST_ROWS, 'row')}, got at least {rows:,}: name a queue (--queue)"
        )


def bundle_page(session: Session, queue: str = "", redact: str | None = None) -> str:
    """The page with the rows of a queue (of all, if none is named), redacted if that is wanted."""
    overview = session.overview(queue)
    rows = sorted({row for q in overview["queues"] if queue in ("", q["name"]) for row in q["rows"]})
    require_few(len(rows))
    members = set(rows)
    queues = [{**q, "rows": [row for row in q["rows"] if row in members]} for q in overview["queues"]]
    overview["queues"] = [q for q in queues if q["rows"]]
    details = {row: session.detail(row) for row in rows}
    overview["titles"] = [title if row in members else "" for row, title in enumerate(overview["titles"])]
    overview["ids"] = [name if row in members else None for row, name in enumerate(overview["ids"])]
    data: dict[str, Any] = {"overview": overview, "details": details, "seq": len(session.journal.events)}
    if redact is not None:
        data = _redacted_data(data, Redactor(redact).cell)
    for detail in data["details"].values():  # of the redacted texts: an address may have marks in it
        detail["trees"] = trees_of(texts_of(detail))
    file = session.reviewed.source.name or "data"
    name = journal_path(file.rpartition("/")[2], session.journal.by)
    content = hashlib.sha256(msgspec.json.encode(session.reviewed.hashes)).hexdigest()[:16]
    page, _ = review_page({**data, "bundle": f"{content} {session.journal.by}", "journal": name})
    return page


def _redacted_data(data: dict[str, Any], redact: Callable[[str], str]) -> dict[str, Any]:
    """The data with each text redacted, whatever its key is called; a row is still known by its number and its hash.
    A title is made of the redacted question: the one that a list shows was cut, and half an address is no address."""
    result: dict[str, Any] = redacted(data, redact)
    result["overview"]["reviewer"] = data["overview"]["reviewer"]  # whose the labels are
    for row, detail in data["details"].items():
        own = result["details"][row]
        for key, source in zip(_keys(own), _keys(detail), strict=True):
            key["hash"] = source["hash"]
        questions = [turn["text"] for turn in own["turns"] if turn["text"] and turn["role"] == "user"]
        result["overview"]["titles"][row] = (questions[-1] if questions else "")[:TITLE]
    return result


def _keys(detail: dict[str, Any]) -> list[dict[str, Any]]:
    return [detail["key"], *(twin["key"] for twin in detail["group"])]


def redacted(value: Any, redact: Callable[[str], str]) -> Any:
    """The value with every text and every key redacted."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {redact(k) if isinstance(k, str) else k: redacted(v, redact) for k, v in value.items()}
    return [redacted(entry, redact) for entry in value] if isinstance(value, list | tuple) else value
