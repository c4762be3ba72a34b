"""An exported app of CES, a folder or a zip, → the evaluations in it, each with its file.

    app.yaml  agents/…  tools/…                     other resources, which are not read
    evaluations/refund/refund.yaml                  one evaluation
    evaluations/billing.json                        one, or a list

The files may be YAML or JSON. In a zip, and often in a folder, all of this is below a folder with the name of the app.
Source: Google's reference of the export format.
"""

from __future__ import annotations

import codecs
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

import msgspec
import pyarrow as pa

from agent_eval_schema.errors import EvalSetError, reading_file
from agent_eval_schema.io.jsonl import cell_batches
from agent_eval_schema.io.pandas import frame_of
from agent_eval_schema.io.records import batch_of_rows
from agent_eval_schema.io.source import Source, rows_where
from agent_eval_schema.io.streams import require_bounded
from agent_eval_schema.io.yaml import yaml_rows
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.visible import visible

HOME = "evaluations"
"""The folder of an app that holds its evaluations."""

APP_FILES = ("app.yaml", "app.yml", "app.json")
_YAML = (".yaml", ".yml")
_KINDS = (".json", *_YAML)
_LARGEST = 64 << 20
"""Bytes of one file of an app; its evaluations have some KB each."""


def evaluation_texts(path: str) -> list[EvaluationText] | None:
    """The evaluations of an app or a YAML file, each with its file; None for another path. Raises EvalSetError."""
    folder = Path(path)
    if path.lower().endswith(".zip"):
        return list(_in_zip(path))
    if path.lower().endswith(_YAML) and not folder.is_dir():
        return list(_of_file(folder.parent, folder))
    # the folder itself, in it, or below the one with the app's name
    places = (folder / HOME, *sorted(folder.glob(f"*/{HOME}"))) if folder.name != HOME else (folder,)
    homes = [home for home in places if home.is_dir()] if folder.is_dir() else []
    if not homes and not any(file for name in APP_FILES for at in ("", "*/") for file in folder.glob(at + name)):
        return None
    files = sorted(file for home in homes for file in home.rglob("*") if file.suffix.lower() in _KINDS)
    return [text for file in files for text in _of_file(folder, file)]


def open_app(path: str) -> Source | None:
    """The source for the evaluations of an app, one row per evaluation. None if the path is not an app."""
    texts = evaluation_texts(path)
    if texts is None:
        return None

    def batches() -> Iterator[pa.RecordBatch]:
        if not texts:
            yield batch_of_rows([dict.fromkeys(("displayName", "golden"))]).slice(0, 0)
        yield from cell_batches((text.encode("utf-8", "surrogateescape"), text.file, text.problem) for text in texts)

    return Source(
        kind="json",
        batches=batches,
        take=lambda mask: frame_of(rows_where(batches(), mask)),
        name=path,
        files=tuple(text.file for text in texts),
    )


def _of_file(folder: Path, file: Path) -> Iterator[EvaluationText]:
    name = file.relative_to(folder).as_posix()
    with reading_file(file):
        if not file.is_dir():
            yield from _texts(name, file.read_bytes() if file.stat().st_size <= _LARGEST else None)


def _in_zip(path: str) -> Iterator[EvaluationText]:
    try:
        with zipfile.ZipFile(path) as archive:
            entries = [e for e in archive.infolist() if not e.is_dir()]
            wanted = [e for e in entries if _is_evaluation(PurePosixPath(e.filename))]
            if not wanted and not any(PurePosixPath(e.filename).name in APP_FILES for e in entries):
                raise EvalSetError(f"{path}: expected an exported app of CES, got a zip without {HOME} and app.yaml")
            require_bounded(path, sum(e.file_size for e in wanted if e.file_size <= _LARGEST))
            for entry in sorted(wanted, key=lambda entry: entry.filename):
                yield from _texts(entry.filename, archive.read(entry) if entry.file_size <= _LARGEST else None)
    except (OSError, zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:  # encrypted, or packed otherwise
        raise EvalSetError(f"{path}: cannot be read: {error}") from error


def _is_evaluation(name: PurePath) -> bool:
    """Whether a file of an app contains evaluations; the files that macOS adds do not."""
    return HOME in name.parts[:-1] and name.suffix.lower() in _KINDS and "__MACOSX" not in name.parts


def _texts(name: str, data: bytes | None) -> Iterator[EvaluationText]:
    if data is None:
        rows = [(b"", f"expected a file of up to {_LARGEST >> 20} MB, got a larger one")]
    else:
        rows = yaml_rows(data) if name.lower().endswith(_YAML) else [(data, "")]
    for text, problem in rows:
        decoded = text.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")
        for evaluation in [EvaluationText(decoded)] if problem else split_text(decoded):
            if evaluation.strip() != "[]":
                evaluation.file, evaluation.problem = visible(name), problem
                yield evaluation


# --- the texts of evaluations in a text: one, a list, or a page of what the API lists
class EvaluationText(str):
    """The JSON text of an evaluation: the `file` of an app that it is from and, if that cannot be read, the `problem`;
    whether it is the last one of a page that is not the last (`has_next`)."""

    file: str = ""
    problem: str = ""
    has_next: bool = False


def split_text(text: str) -> Iterator[EvaluationText]:
    """The texts of a list of evaluations, or the one text; invalid JSON is reported when it is read."""
    head = text.lstrip("\ufeff \t\r\n")
    items: list[msgspec.Raw] | None = _raw(text, list[msgspec.Raw]) if head.startswith("[") else None
    page = _Page()
    if not head.startswith("[") and any(f'"{key}"' in head for key in _Page.__struct_encode_fields__):
        page = _raw(text, _Page) or page
        lists = (page.evaluations, page.evaluationResults, page.evaluation_results)
        items = [item for entries in lists for item in entries or ()]
    if not items and page == _Page():  # in an evaluation the keys may be further down
        yield EvaluationText(text)
        return
    texts = [EvaluationText(bytes(item).decode()) for item in items or ()]
    if texts:
        texts[-1].has_next = bool(page.nextPageToken or page.next_page_token)
    yield from texts


class _Page(msgspec.Struct):
    """The answer of the API to a request for the list of evaluations, or of results."""

    evaluations: list[msgspec.Raw] | None = None
    evaluationResults: list[msgspec.Raw] | None = None
    evaluation_results: list[msgspec.Raw] | None = None
    nextPageToken: Any = None
    next_page_token: Any = None


def _raw(text: str, kind: Any) -> Any:
    try:
        return jsontext.decoder(kind)(text.removeprefix("\ufeff"))
    except ValueError:
        return None
