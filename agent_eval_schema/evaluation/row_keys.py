"""The rows of a result → what makes them depend on each other: their session, question and first expected document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from msgspec.structs import asdict

from agent_eval_schema.cells.hashing import hashes_of
from agent_eval_schema.decoding.chat import read_messages
from agent_eval_schema.io.pandas import frame_of
from agent_eval_schema.io.records import is_absent
from agent_eval_schema.metrics.independence import RowKeys
from agent_eval_schema.similarity.shingles import ComparedMessage, beside_questions, question_hashes, question_texts
from agent_eval_schema.text import jsontext

_REQUEST_COLUMNS = ("request", "prompt", "inputs")
"""The columns that have the question of a row; the first that is filled counts."""

_SESSION, _DOCUMENTS = "session_id", "expected_retrieved_context"


def row_keys(rows: pa.RecordBatch | pd.DataFrame) -> RowKeys | None:
    """The keys of rows, by our names of columns or those of a Vertex AI table; None if they have none of these."""
    if isinstance(rows, pa.RecordBatch):
        names = [n for n in dict.fromkeys(rows.schema.names) if n in (*_REQUEST_COLUMNS, _SESSION, _DOCUMENTS)]
        rows = frame_of([rows.select(names)]) if names else pd.DataFrame()
    columns = {name: _cells(rows[name]) for name in (*_REQUEST_COLUMNS, _SESSION, _DOCUMENTS) if name in rows.columns}
    if not columns:
        return None
    none: list[Any] = [None] * len(rows)
    requests = zip(*(columns[name] for name in _REQUEST_COLUMNS if name in columns), strict=True)
    cells = [next((cell for cell in row if cell is not None), None) for row in requests] or none
    chats = [[] if isinstance(cell, str) else _messages(cell) for cell in cells]  # a text is the question, mostly
    pairs = zip(cells, question_texts(chats), strict=True)
    questions = [cell if isinstance(cell, str) else question for cell, question in pairs]
    inputs = [_text_of_cell(cell) for cell in columns.get("inputs", none)]
    beside = beside_questions(chats, questions, inputs) if "inputs" in columns or any(chats) else ()
    asked_keys = question_hashes(questions, beside)
    sessions = [None if cell in (None, "") else str(cell) for cell in columns.get(_SESSION, none)]
    documents = list(map(_first_document, columns.get(_DOCUMENTS, none)))
    return RowKeys(hashes_of(sessions), asked_keys, hashes_of(documents))


def keys_of(rows: pa.RecordBatch, batch: pa.RecordBatch) -> RowKeys:
    """The keys of canonical rows; where none has a request, by the columns of the batch that they were read from."""
    keys = row_keys(rows)
    assert keys is not None
    if not keys.questions.any() and (own := row_keys(batch)) is not None:
        return RowKeys(keys.sessions, own.questions, keys.documents)
    return keys


def keys_as_text(keys: RowKeys) -> list[str]:
    """The keys of each row as one text, for a file or a tag."""
    return [":".join(f"{key:x}" for key in row) for row in zip(*asdict(keys).values(), strict=True)]


def keys_from_text(texts: Iterable[Any]) -> RowKeys | None:
    """The keys of rows by `keys_as_text`; None if a row has none."""
    matches = [_KEYS.fullmatch(text) if isinstance(text, str) else None for text in texts]
    rows = [[int(key, 16) for key in match.groups()] for match in matches if match is not None]
    return RowKeys(*np.array(rows, np.uint64).reshape(-1, 3).T) if len(rows) == len(matches) else None


_KEYS = re.compile(":".join(["([0-9a-f]{1,16})"] * 3))


def joined_keys(parts: list[RowKeys]) -> RowKeys:
    columns = ([getattr(part, name) for part in parts] for name in RowKeys.__struct_fields__)
    return RowKeys(*(np.concatenate([*column, np.zeros(0, np.uint64)]) for column in columns))


def _cells(column: pd.Series[Any]) -> list[Any]:
    return [None if is_absent(cell) else jsontext.structured(cell) for cell in column.tolist()]


def _messages(cell: Any) -> list[ComparedMessage]:
    if cell is None:
        return []
    messages = read_messages(cell)
    if messages is None:  # inputs of a form of their own
        return [ComparedMessage("user", _text_of_cell(cell))]
    return [ComparedMessage(message.get("role") or "", message.get("content")) for message in messages]


def _text_of_cell(cell: Any) -> str | None:
    return cell if cell is None or isinstance(cell, str) else jsontext.encode_sorted(cell).decode()


def _first_document(cell: Any) -> str | None:
    documents = cell if isinstance(cell, list | tuple | np.ndarray) else ()
    uris = (d.get("doc_uri") for d in documents if isinstance(d, Mapping))
    return next((uri for uri in uris if isinstance(uri, str) and uri), None)
