"""Evaluation JSON: read, written, validated.

    text ──read_evaluation──▶ Evaluation (a dict that remembers its text) ──write_evaluation──▶ the same text

What was read comes back as it was, to the byte, as long as nobody changed the dict: order of keys, unknown fields,
spelling of numbers and blanks. A changed one is written anew; its keys keep their order, and what this package does not
know is kept.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from agent_eval_schema.formats.ces import inspection, schema, shapes
from agent_eval_schema.formats.ces.inspection import Defect
from agent_eval_schema.formats.ces.names import Names, in_full, with_names
from agent_eval_schema.issues import EvalSetError, Issue
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.visible import visible

Input = str | bytes | os.PathLike[str] | Mapping[str, Any]
"""The path of a file, its text, or the evaluation as a dict."""


class Evaluation(dict[str, Any]):
    """One evaluation as JSON-like data, by the names that it was written with. `text` is what it was read from."""

    text: str | None = None

    @property
    def unchanged_text(self) -> str | None:
        """The text that it was read from, if it still says the same."""
        if self.text is None:
            return None
        try:
            is_same = jsontext.write_exactly(jsontext.decode(self.text)) == jsontext.write_exactly(self)
        except (TypeError, ValueError, RecursionError):  # it holds what JSON does not know, which the text did not
            return None
        return self.text if is_same else None


def read_evaluation(source: Input, *, names: Names | None = None) -> Evaluation:
    """The one evaluation in a JSON file, a JSON text or a dict.

    `names` maps display names to resource names: bare names of tools, agents and so on are written in full then, where
    the map has them. Nothing is validated (see `validate_evaluation`). Raises EvalSetError if there is no such file, it
    is not JSON, or it does not hold exactly one evaluation.
    """
    found = read_evaluations(source, names=names)
    if len(found) != 1:
        raise EvalSetError(f"{_named(source)}: expected one evaluation, got {len(found)}: use read_evaluations")
    return found[0]


def read_evaluations(source: Input | Iterable[Mapping[str, Any]], *, names: Names | None = None) -> list[Evaluation]:
    """All evaluations of a source: JSON with one or a list (also `{"evaluations": [...]}`, as the API lists them),
    JSONL, the folder of an exported app, dicts.

    Raises EvalSetError if there is no such file or it is not JSON.
    """
    found = list(_evaluations(source))
    return found if names is None else [_in_full(evaluation, names) for evaluation in found]


def write_evaluation(evaluation: Mapping[str, Any], path: str | os.PathLike[str] | None = None) -> str:
    """The JSON text of an evaluation, also written to `path`. What was read and not changed since is the text that it
    was read from. Raises EvalSetError if the data is no JSON or the file cannot be written."""
    text = _text_of(evaluation)
    if path is not None:
        from agent_eval_schema.io.atomic import write_text

        write_text(os.fspath(path), text)
    return text


def write_evaluations(evaluations: Iterable[Mapping[str, Any]], path: str | os.PathLike[str] | None = None) -> str:
    """The JSON text of a list of evaluations, also written to `path`; with the ending `.jsonl`, one a line."""
    texts = [_text_of(e) for e in evaluations]
    if path is not None and os.fspath(path).lower().endswith((".jsonl", ".ndjson")):
        text = "".join(msgspec.json.format(t, indent=-1) + "\n" for t in texts)
    else:
        text = "[\n" + ",\n".join(t.strip() for t in texts) + "\n]\n" if texts else "[]\n"
    if path is not None:
        from agent_eval_schema.io.atomic import write_text

        write_text(os.fspath(path), text)
    return text


def validate_evaluation(source: Input | Iterable[Mapping[str, Any]]) -> list[Issue]:
    """Every problem of an evaluation (a dict, a JSON text, a file), or of all in a list, a file or a folder.

    The path of an issue is that of the JSON (`golden.turns[0].steps[1].userInput`), its row the number of the
    evaluation, its id the evaluation's name. An EvaluationResult is checked against its own message. Never raises for
    what an evaluation holds; EvalSetError if there is no such file.
    """
    if isinstance(source, Mapping):
        return _issues(0, source)
    if isinstance(source, list | tuple):
        return [issue for row, item in enumerate(source) for issue in _issues(row, item)]
    return [issue for row, text in enumerate(_texts(source)) for issue in _issues(row, text)]


def findings_of(text: str | bytes) -> list[Defect]:
    """Every problem of an evaluation (or the result of one) as JSON text."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if shapes.conforms(data):
        return []
    value = inspection.parse_keeping_repeats(data.decode("utf-8", "replace"))
    if isinstance(value, jsontext.Malformed):
        return [Defect(value.rule, "", value.message)]
    return _inspect(value)


def _inspect(value: Any) -> list[Defect]:
    if isinstance(value, dict) and is_result(value):
        return inspection.inspect_message(schema.RESULT, value)
    return inspection.inspect_evaluation(value)


_RESULT_ONLY = (
    *("goldenResult", "scenarioResult", "evaluationStatus", "executionState"),
    *("golden_result", "scenario_result", "evaluation_status", "execution_state"),
)


def is_result(value: Mapping[str, Any]) -> bool:
    """Whether this is an EvaluationResult, by the fields that only that has."""
    return any(key in value for key in _RESULT_ONLY) and "golden" not in value and "scenario" not in value


def _issues(row: int, source: Any) -> list[Issue]:
    if isinstance(source, Evaluation) and (text := source.unchanged_text) is not None:
        source = text
    if isinstance(source, str | bytes):
        findings = findings_of(source)
    else:
        findings = [] if shapes.value_conforms(source) else _inspect(source)
    if not findings:
        return []
    name = name_of(source)
    return [issue_of(finding, row, name) for finding in findings]


def issue_of(finding: Defect, row: int, name: str | None) -> Issue:
    """A finding as an issue of the package; its column is the top-level field."""
    rule, path, message, hint = finding
    column = column_of(path)
    return Issue(row, name, column, path or None, rule.code, rule.name, rule.severity, message, hint or rule.hint)


def column_of(path: str) -> str | None:
    """The top-level field that a path leads into."""
    return path.partition(".")[0].partition("[")[0] or None


def name_of(source: Any) -> str | None:
    """What an evaluation (as data or text) is known by: its resource name, else its display name."""
    if isinstance(source, str | bytes):
        try:
            found: Any = _NAMES.decode(source)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return None
        return next((n for n in (found.name, found.displayName, found.display_name) if n), None)
    if not isinstance(source, Mapping):
        return None
    given = (source.get(key) for key in ("name", "displayName", "display_name"))
    return next((name for name in given if isinstance(name, str) and name), None)


class _Named(msgspec.Struct):
    name: str | None = None
    displayName: str | None = None
    display_name: str | None = None


_NAMES = msgspec.json.Decoder(_Named)


# ---------------------------------------------------------------------------------------------------------------------
# texts
def _text_of(evaluation: Mapping[str, Any]) -> str:
    if isinstance(evaluation, Evaluation) and (text := evaluation.unchanged_text) is not None:
        return text
    try:
        return msgspec.json.format(jsontext.write_exactly(dict(evaluation)), indent=2) + "\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise EvalSetError(f"the evaluation cannot be written as JSON: {error}") from error


def _evaluations(source: Input | Iterable[Mapping[str, Any]]) -> Iterator[Evaluation]:
    if isinstance(source, Mapping):
        yield Evaluation(source)
    elif isinstance(source, str | bytes | os.PathLike):
        texts = list(_texts(source))
        for number, text in enumerate(texts, start=1):
            if text.strip() != "[]":
                place = f": evaluation {number}" if len(texts) > 1 else ""
                yield _evaluation(text, _named(source) + place)
    else:
        for item in source:
            yield item if isinstance(item, Evaluation) else Evaluation(item)


def _evaluation(text: str, where: str) -> Evaluation:
    value = jsontext.parse(text)
    if isinstance(value, jsontext.Malformed):
        raise EvalSetError(f"{where}: {value.message}")
    if not isinstance(value, dict):
        raise EvalSetError(f"{where}: expected an object, got {describe(value)}")
    found = Evaluation(value)
    found.text = text
    return found


def _texts(source: Any) -> Iterator[str]:
    """The text of each evaluation of a file, a folder or a text."""
    if isinstance(source, bytes):
        yield from _split(source.decode("utf-8", "surrogateescape"))
    elif isinstance(source, str) and source.lstrip("\ufeff \t\r\n")[:1] in ("", "{", "["):
        yield from _split(source)
    else:
        yield from _texts_of_path(Path(source))


def _texts_of_path(path: Path) -> Iterator[str]:
    if path.is_dir():
        for file in _exported(path):
            yield from _split(_read(file))
    elif path.suffix.lower() in (".jsonl", ".ndjson"):
        yield from (line for line in _read(path).split("\n") if line.strip())
    else:
        yield from _split(_read(path))


def _exported(folder: Path) -> list[Path]:
    """The evaluations of an exported app: the JSON files below a folder `evaluations`, or all if there is none."""
    files = sorted(file for file in folder.rglob("*.json") if file.is_file())
    of_evaluations = [f for f in files if "evaluations" in f.relative_to(folder).parts[:-1]]
    if not files:
        raise EvalSetError(f"{folder}: there is no JSON file in the folder")
    return of_evaluations or files


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise EvalSetError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise EvalSetError(f"{path}: expected UTF-8: save the file as UTF-8") from error


def _split(text: str) -> Iterator[str]:
    """The texts of a list of evaluations, or the one text; what is no JSON is told when it is read as one."""
    head = text.lstrip("\ufeff \t\r\n")
    if head.startswith("["):
        items = _raw(text, list[msgspec.Raw])
        yield from [text] if not items else (bytes(item).decode() for item in items)
        return
    page = _raw(text, _Page) if any(f'"{key}"' in head for key in _Page.__struct_encode_fields__) else None
    listed = None if page is None else page.listed
    yield from [text] if listed is None else (bytes(e).decode() for e in listed)


class _Page(msgspec.Struct):
    """What the API answers to a request for the list of evaluations, or of results."""

    evaluations: list[msgspec.Raw] | None = None
    evaluationResults: list[msgspec.Raw] | None = None
    evaluation_results: list[msgspec.Raw] | None = None

    @property
    def listed(self) -> list[msgspec.Raw] | None:
        lists = (self.evaluations, self.evaluationResults, self.evaluation_results)
        return next((found for found in lists if found is not None), None)


def _raw(text: str, kind: Any) -> Any:
    try:
        return msgspec.json.decode(text.removeprefix("\ufeff"), type=kind)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def _named(source: Any) -> str:
    is_path = isinstance(source, os.PathLike) or (isinstance(source, str) and source.lstrip()[:1] not in ("", "{", "["))
    return visible(os.fspath(source)) if is_path else "the text"


def _in_full(evaluation: Evaluation, names: Names) -> Evaluation:
    return Evaluation(with_names(evaluation, lambda name, kind: in_full(name, kind, names) or name))
