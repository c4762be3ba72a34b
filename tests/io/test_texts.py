"""Texts are read from every place that rows are read from."""

from __future__ import annotations

import gzip
import io
import os
import re
import sys
import threading
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pytest

from agent_eval_schema import EvalSetError, profile_eval_set, validate_eval_set
from agent_eval_schema.io.texts import read_bytes

TEXT = b"How many days of leave do I have?\n12 days.\n"


def _put(place: str, folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> str:
    path = folder / name
    if place == "gz":
        path = path.with_name(f"{name}.gz")
        path.write_bytes(gzip.compress(TEXT))
    elif place == "zst":
        path = path.with_name(f"{name}.zst")
        path.write_bytes(pa.compress(TEXT, "zstd", asbytes=True))
    else:
        path.write_bytes(TEXT)
    if place == "stdin":
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT)))
        return "-"
    return path.as_uri() if place == "url" else str(path)


@pytest.mark.parametrize("place", ["file", "gz", "zst", "url", "stdin"])
def test_a_text_is_read_from_a_place(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if place == "url":
        pytest.importorskip("fsspec")
    assert read_bytes(_put(place, tmp_path, "prompt.md", monkeypatch)) == TEXT


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are of POSIX")
def test_a_text_is_read_from_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(TEXT,))
    writer.start()
    assert read_bytes(str(pipe)) == TEXT
    writer.join()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are of POSIX")
@pytest.mark.parametrize("text", [b'{"request": "Hi", "response": "Hello"}', b""], ids=["rows", "nothing"])
def test_rows_are_read_from_a_pipe(text: bytes, tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    writer = threading.Thread(target=pipe.write_bytes, args=(text,))
    writer.start()
    why = "pipe: expected JSON Lines, JSON, CSV or Parquet; got no data through the pipe$"
    with nullcontext() if text else pytest.raises(EvalSetError, match=why):
        assert validate_eval_set(pipe).row_count == 1
    writer.join()


@pytest.mark.parametrize("place", ["file", "gz", "zst", "url"])
def test_a_profile_compares_with_texts_and_lists_of_every_place(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if place == "url":
        pytest.importorskip("fsspec")
    rows = [{"request": "How many days of leave do I have?", "response": "12 days.", "expected_response": "12 days."}]
    rows[0]["expected_retrieved_context"] = [{"doc_uri": "12 days."}]  # type: ignore[assignment]
    prompt = _put(place, tmp_path, "prompt.md", monkeypatch)
    documents = _put(place, tmp_path, "documents.txt", monkeypatch)
    profile = profile_eval_set(rows, against=[prompt], documents=documents)
    assert profile.counts["leaked"] == 1
    assert profile.summary.coverage.documents.unknown_rows == 0


@pytest.mark.parametrize("name", ["missing.txt", "."])
def test_what_is_no_text_is_named(name: str) -> None:
    with pytest.raises(EvalSetError, match=f"documents: {re.escape(name)} cannot be read as text: "):
        profile_eval_set([{"request": "Hi", "response": "Hello"}], documents=name)
    if name != ".":
        with pytest.raises(EvalSetError, match=r"missing\.txt: No such file"):
            profile_eval_set([{"request": "Hi", "response": "Hello"}], against=[name])
