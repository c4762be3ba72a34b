"""Evaluation JSON: read, written, validated.

    text ──read_evaluation──▶ Evaluation (a dict that remembers its text) ──write_evaluation──▶ the same text

An unmodified evaluation is written back byte for byte: order of keys, unknown fields, spelling of numbers and blanks. A
modified one is rewritten; its keys keep their order, and unknown fields are preserved."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from agent_eval_schema.errors import EvalSetError, reading_file
from agent_eval_schema.formats.ces import inspection, schema
from agent_eval_schema.formats.ces.app import EvaluationText, evaluation_texts, split_text
from agent_eval_schema.io.atomic import write_text
from agent_eval_schema.issues import Finding, Issue
from agent_eval_schema.rules import ces
from agent_eval_schema.rules.reading import MALFORMED_ROW
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.choices import path_of, require_dicts, require_kind
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.jsontext import parse_keeping_repeats
from agent_eval_schema.text.visible import visible

# --- the two naming conventions: `projects/p/locations/us/apps/a/tools/7f3e` of the API, `get_order` in an app package
#
# The user provides the map from display names to resource names. A name without an entry is not changed. Where a tool
# and an agent have the same display name, the kind distinguishes them: `{"tools/refund": …, "agents/refund": …}`.
Names = Mapping[str, str]
"""Display name (or kind/display name) → resource name."""


def display(name: str, kind: str, names: Names) -> str | None:
    """The display name of a resource name; None if the map does not have it."""
    if "/" not in name:
        return name
    matches = [shown.rpartition("/")[2] for shown, full in names.items() if full == name]
    return matches[0] if matches and schema.kind_of(name) in ("", kind) else None


def with_names(value: Any, names: Names) -> Any:
    """A copy of an evaluation with the resource names of what it refers to."""

    def named(name: str, kind: str) -> str:
        full = None if "/" in name else names.get(f"{kind}/{name}") or names.get(name)
        return full if full and schema.kind_of(full) in ("", kind) else name

    return schema.with_references(value, schema.EVALUATION, named)


_EXPECTED = "a path (str or os.PathLike), JSON text (str or bytes), or dicts"

Input = str | bytes | os.PathLike[str] | Mapping[str, Any]
"""The path of a file, its text, or the evaluation as a dict."""


class Evaluation(dict[str, Any]):  # numpydoc ignore=PR01
    """One evaluation of Google Customer Engagement Suite: a dict that remembers its text.

    Keys have the names of the source (JSON names or snake_case).

    Attributes
    ----------
    text : str or None
        The JSON text that the evaluation was read from; None if it was not read from text.

    See Also
    --------
    read_evaluation : Read an evaluation.

    Examples
    --------
    >>> from agent_eval_schema import ces
    >>> evaluation = ces.read_evaluation('{"displayName": "Refund"}')
    >>> evaluation["displayName"], evaluation.text
    ('Refund', '{"displayName": "Refund"}')
    """

    text: str | None = None

    @property
    def unchanged_text(self) -> str | None:
        """The text that the evaluation was read from, if it was not changed since.

        Returns
        -------
        str or None
            None if the evaluation was changed, or not read from text.

        Examples
        --------
        >>> from agent_eval_schema import ces
        >>> evaluation = ces.read_evaluation('{"displayName": "Refund"}')
        >>> evaluation["displayName"] = "Refunds"
        >>> evaluation.unchanged_text is None
        True
        """
        if self.text is None:
            return None
        try:
            is_same = jsontext.write_exactly(jsontext.decode(self.text)) == jsontext.write_exactly(self)
        except (TypeError, ValueError):  # a value that JSON, and so the text, does not have
            return None
        return self.text if is_same else None


def read_evaluation(source: Input, *, names: Names | None = None) -> Evaluation:
    """Read one evaluation.

    The evaluation is not validated.

    Parameters
    ----------
    source : str, bytes, os.PathLike or mapping
        The path of a JSON file, a JSON text, or a dict.
    names : mapping of str to str or None, default None
        Resource names by display name: names of tools and agents are replaced by their resource names. None changes no
        name.

    Returns
    -------
    Evaluation
        The evaluation.

    Raises
    ------
    EvalSetNotFoundError
        The file does not exist.
    EvalSetError
        The source is not JSON, or does not contain exactly one evaluation.

    See Also
    --------
    read_evaluations : Read all evaluations of a source.
    validate_evaluation : Validate an evaluation.

    Examples
    --------
    >>> from agent_eval_schema import ces
    >>> ces.read_evaluation('{"displayName": "Refund", "golden": {"turns": []}}')
    {'displayName': 'Refund', 'golden': {'turns': []}}
    """
    evaluations = read_evaluations(source, names=names)
    if len(evaluations) != 1:
        raise EvalSetError(f"{_named(source)}: expected one evaluation, got {len(evaluations)}: use read_evaluations")
    return evaluations[0]


def read_evaluations(source: Input | Iterable[Mapping[str, Any]], *, names: Names | None = None) -> list[Evaluation]:
    """Read all evaluations of a source.

    The evaluations are not validated.

    Parameters
    ----------
    source : str, bytes, os.PathLike, mapping or iterable of mapping
        The path or the text of JSON with one evaluation, a list, or an object with the key `evaluations`; the path of a
        JSON Lines or YAML file, or of the folder or the zip file of an exported app; or dicts.
    names : mapping of str to str or None, default None
        Resource names by display name, as in `read_evaluation`. None changes no name.

    Returns
    -------
    list of Evaluation
        The evaluations, in the order of the source.

    Raises
    ------
    EvalSetNotFoundError
        The file does not exist.
    EvalSetError
        The source is not JSON.

    See Also
    --------
    read_golden_csv : Read the evaluations of a golden CSV file.

    Examples
    --------
    >>> from agent_eval_schema import ces
    >>> [evaluation["displayName"] for evaluation in ces.read_evaluations("sample_data/evaluation.json")]
    ['Leave balance', 'Confused new joiner']
    """
    evaluations = list(_evaluations(source))
    return evaluations if names is None else [Evaluation(with_names(evaluation, names)) for evaluation in evaluations]


def write_evaluation(evaluation: Mapping[str, Any], path: str | os.PathLike[str] | None = None) -> str:
    """Return the JSON text of an evaluation, and write it to a file.

    An evaluation that was read and not changed is written byte for byte.

    Parameters
    ----------
    evaluation : mapping
        The evaluation.
    path : str, os.PathLike or None, default None
        The path of the file. None writes no file.

    Returns
    -------
    str
        The JSON text.

    Raises
    ------
    EvalSetError
        The evaluation contains values that JSON does not have, or the file cannot be written.

    See Also
    --------
    write_evaluations : Write several evaluations.

    Examples
    --------
    >>> from agent_eval_schema import ces
    >>> print(ces.write_evaluation({"displayName": "Refund"}, "refund.json"), end="")
    {
      "displayName": "Refund"
    }
    """
    text = _text_of(evaluation)
    if path is not None:
        write_text(path_of(path), text)
    return text


def write_evaluations(evaluations: Iterable[Mapping[str, Any]], path: str | os.PathLike[str] | None = None) -> str:
    """Return the JSON text of several evaluations, and write it to a file.

    Parameters
    ----------
    evaluations : iterable of mapping
        The evaluations.
    path : str, os.PathLike or None, default None
        The path of the file. The file extension `.jsonl` selects one evaluation per line, any other a JSON array. None
        writes no file.

    Returns
    -------
    str
        The text.

    Raises
    ------
    EvalSetError
        An evaluation contains values that JSON does not have, or the file cannot be written.

    See Also
    --------
    write_evaluation : Write one evaluation.

    Examples
    --------
    >>> from agent_eval_schema import ces
    >>> evaluations = [{"displayName": "Refund"}, {"displayName": "Delivery"}]
    >>> print(ces.write_evaluations(evaluations, "evaluations.jsonl"), end="")
    {"displayName":"Refund"}
    {"displayName":"Delivery"}
    """
    texts = [_text_of(e) for e in require_dicts("evaluations", evaluations)]
    if path is not None and os.fspath(path).lower().endswith((".jsonl", ".ndjson")):
        text = "".join(msgspec.json.format(t, indent=-1) + "\n" for t in texts)
    else:
        text = "[\n" + ",\n".join(t.strip() for t in texts) + "\n]\n" if texts else "[]\n"
    if path is not None:
        write_text(path_of(path), text)
    return text


def validate_evaluation(source: Input | Iterable[Mapping[str, Any]]) -> list[Issue]:
    """Validate one or more evaluations.

    Parameters
    ----------
    source : str, bytes, os.PathLike, mapping or iterable of mapping
        Any input of `read_evaluations`; malformed JSON is reported as an issue. An EvaluationResult is validated by its
        own schema.

    Returns
    -------
    list of Issue
        The issues: `path` is that of the JSON (`golden.turns[0].steps[1].userInput`), `row` the 0-based position of the
        evaluation, `request_id` its name. Empty if there is none.

    Raises
    ------
    EvalSetNotFoundError
        The file does not exist.
    EvalSetError
        The file cannot be read.

    See Also
    --------
    validate_eval_set : Validate a file and return a Report.

    Examples
    --------
    >>> from agent_eval_schema import ces
    >>> [issue.path for issue in ces.validate_evaluation({"displayName": "Refund", "golden": {"turn": []}})][:1]
    ['golden.turn']
    """
    if isinstance(source, Mapping):
        return _issues(0, source)
    if not isinstance(source, str | bytes | os.PathLike):
        require_kind("source", source, Iterable, _EXPECTED)
        return [issue for row, item in enumerate(source) for issue in _issues(row, item)]
    return [issue for row, text in enumerate(_listed(source)) for issue in _issues_of_text(row, text)]


def _issues_of_text(row: int, text: EvaluationText) -> list[Issue]:
    issues = [Finding(MALFORMED_ROW, text.problem).issue(row, None)] if text.problem else _issues(row, str(text))
    if text.has_next:
        issues.insert(0, Finding(ces.MORE_PAGES, MORE_PAGES).issue(row, name_of(str(text))))
    return [replace(issue, message=f"{text.file}: {issue.message}") for issue in issues] if text.file else issues


MORE_PAGES = "expected all pages, got one with a nextPageToken: what follows on the next is missing"


def findings_of(text: str | bytes) -> list[Finding]:
    """Every problem of an evaluation (or the result of one) as JSON text."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    value = parse_keeping_repeats(data.decode("utf-8", "replace"))
    if isinstance(value, jsontext.Malformed):
        return [Finding(value.rule, value.message)]
    return _inspect(value)


def _inspect(value: Any) -> list[Finding]:
    if isinstance(value, dict) and is_result(value):
        return inspection.inspect_message(schema.RESULT, value)
    return inspection.inspect_evaluation(value)


def is_result(value: Mapping[str, Any]) -> bool:
    """Whether this is an EvaluationResult, by the fields that only that has."""
    names = ("goldenResult", "scenarioResult", "evaluationStatus", "executionState")
    snake = ("golden_result", "scenario_result", "evaluation_status", "execution_state")
    return any(key in value for key in (*names, *snake)) and "golden" not in value and "scenario" not in value


def _issues(row: int, source: Any) -> list[Issue]:
    if isinstance(source, Evaluation) and (text := source.unchanged_text) is not None:
        source = text
    findings = findings_of(source) if isinstance(source, str | bytes) else _inspect(source)
    name = name_of(source) if findings else None
    return [finding.issue(row, name) for finding in findings]


def name_of(source: Any) -> str | None:
    """The name of an evaluation (as data or text): its resource name, else its display name."""
    value = jsontext.parse(source) if isinstance(source, str | bytes) else source
    names = map(value.get, ("name", "displayName", "display_name")) if isinstance(value, Mapping) else ()
    return next((name for name in names if isinstance(name, str) and name), None)


def _text_of(evaluation: Mapping[str, Any]) -> str:
    if isinstance(evaluation, Evaluation) and (text := evaluation.unchanged_text) is not None:
        return text
    try:
        return msgspec.json.format(jsontext.write_exactly(dict(evaluation)), indent=2) + "\n"
    except (TypeError, ValueError) as error:
        raise EvalSetError(f"the evaluation cannot be written as JSON: {error}") from error


def _evaluations(source: Input | Iterable[Mapping[str, Any]]) -> Iterator[Evaluation]:
    if isinstance(source, Mapping):
        yield Evaluation(source)
    elif isinstance(source, str | bytes | os.PathLike):
        texts = list(_listed(source))
        if unread := next((text for text in texts if text.problem), None):
            raise EvalSetError(f"{unread.file}: {unread.problem}")
        for number, text in enumerate(texts, start=1):
            if text.strip() != "[]":
                place = f": evaluation {number}" if len(texts) > 1 else ""
                value = jsontext.parse(str(text))
                if isinstance(value, jsontext.Malformed):
                    raise EvalSetError(f"{_named(source)}{place}: {value.message}")
                if not isinstance(value, dict):
                    raise EvalSetError(f"{_named(source)}{place}: expected an object, got {describe(value)}")
                evaluation = Evaluation(value)
                evaluation.text = str(text)
                yield evaluation
    else:
        for item in require_dicts("source", source, _EXPECTED):
            yield item if isinstance(item, Evaluation) else Evaluation(item)


def _listed(source: Any) -> Iterator[EvaluationText]:
    """The text of each evaluation of a file, a folder or a text."""
    if isinstance(source, bytes):
        yield from split_text(source.decode("utf-8", "surrogateescape"))
    elif isinstance(source, str) and source.lstrip("\ufeff \t\r\n")[:1] in ("", "{", "["):
        yield from split_text(source)
    else:
        path = Path(source)
        if (texts := evaluation_texts(os.fspath(path))) is not None:
            yield from texts
        elif path.is_dir():
            raise EvalSetError(f"{path}: the folder contains no evaluation: expected an exported app")
        elif path.suffix.lower() in (".jsonl", ".ndjson"):
            yield from (EvaluationText(line) for line in _read_utf8(path).split("\n") if line.strip())
        else:
            yield from split_text(_read_utf8(path))


def _read_utf8(path: Path) -> str:
    try:
        with reading_file(path):
            return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise EvalSetError(f"{path}: expected UTF-8: save the file as UTF-8") from error


def _named(source: Any) -> str:
    is_path = isinstance(source, os.PathLike) or (isinstance(source, str) and source.lstrip()[:1] not in ("", "{", "["))
    return visible(os.fspath(source)) if is_path else "the text"
