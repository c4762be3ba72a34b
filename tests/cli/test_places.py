"""Every command reads rows from every place, as it reads them from a file."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent_eval_schema.cli import main
from tests.conftest import SAMPLES
from tests.helpers.places import PLACES

ROWS = "vertex.jsonl"

COMMANDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "validate": (ROWS, ("validate", "IN", "--output", "json")),
    "validate-diff": (ROWS, ("validate", "IN", "--diff")),
    "validate-fix": (ROWS, ("validate", "IN", "--fix", "OUT.jsonl", "--quiet")),
    "write-normalized": (ROWS, ("validate", "IN", "--write-normalized", "OUT.jsonl", "--quiet")),
    "metrics": (ROWS, ("metrics", "IN", "--output", "json")),
    "profile": (ROWS, ("profile", "IN", "--output", "json")),
    "profile-against": (ROWS, ("profile", "FILE", "--against", "IN", "--output", "json")),
    "profile-past": ("scores.jsonl", ("profile", "FILE", "--past", "IN", "--output", "json")),
    "diff-old": (ROWS, ("diff", "IN", "FILE", "--output", "json")),
    "diff-new": (ROWS, ("diff", "FILE", "IN", "--output", "json")),
    "score": (ROWS, ("score", "IN", "--output", "json")),
    "compare-old": (ROWS, ("compare", "IN", "FILE", "--output", "json")),
    "compare-new": (ROWS, ("compare", "FILE", "IN", "--output", "markdown")),
    "convert": (ROWS, ("convert", "IN", "OUT.jsonl", "--to", "mlflow")),
    "from-traces": ("search_traces.jsonl", ("from-traces", "IN", "OUT.jsonl", "--quiet")),
    "from-inference-table": (
        "inference_table.jsonl",
        ("from-inference-table", "IN", "OUT.jsonl", "--quiet", "--output", "json"),
    ),
}
"""The command, and the sample that it reads."""

QUICK = {("validate", place) for place in PLACES} | {
    *(
        ("convert", "folder"),
        ("diff-new", "unity-catalog"),
        ("score", "url-glob"),
        ("profile-against", "zst"),
        ("compare-new", "url"),
    ),
    *(("metrics", "stdin"), ("validate-fix", "glob"), ("profile", "bigquery"), ("from-traces", "url-of-a-folder")),
}
"""The others have the mark `containers`: they are many, and there is one mechanism."""

CASES = [
    pytest.param(
        command, place, marks=[] if (command, place) in QUICK else pytest.mark.containers, id=f"{command}-{place}"
    )
    for command in COMMANDS
    for place in PLACES
    if place != "file"
]

VARIES = ("name", "seconds", "rows_per_second", "source", "old", "new", "inputs", "table", "past", "file", "command")
"""Keys of a report whose values are the name of the place, or a time."""


SCORES = b"".join(b'{"trajectory_recall/score": %d}\n' % i for i in (0, 1, 1))


def sample(name: str) -> bytes:
    """The rows that a command reads, as JSON Lines."""
    return SCORES if name == "scores.jsonl" else (SAMPLES / name).read_bytes()


@pytest.mark.parametrize(("command", "place"), CASES)
def test_a_command_reads_a_place_as_it_reads_a_file(
    command: str,
    place: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    read, words = COMMANDS[command]
    beside = tmp_path / "beside.jsonl"
    beside.write_bytes(sample(ROWS))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "2000")  # no line is broken at a place that depends on a name
    found = []
    for kind in ("file", place):
        (folder := tmp_path / kind).mkdir()
        given = PLACES[kind](sample(read), folder, monkeypatch)
        code = main(_filled(words, given, str(beside), str(folder / "out.jsonl")))
        printed = capsys.readouterr()
        assert code in (0, 1), printed.err
        found.append((code, _plain(printed.out, given, folder), _rows(folder / "out.jsonl")))
    assert found[0] == found[1]


def _filled(words: Sequence[str], given: str, beside: str, out: str) -> list[str]:
    return [{"IN": given, "FILE": beside, "OUT.jsonl": out}.get(word, word) for word in words]


def _plain(text: str, given: str, folder: Path) -> object:
    """What is printed, without the name of the place."""
    names = {str(folder): "FOLDER"} if given == "-" else {shlex.quote(given): "IN", given: "IN", str(folder): "FOLDER"}
    for name, plain in {**names, "'<stdin>'": "IN", "<stdin>": "IN", " review - ": " review IN "}.items():
        text = text.replace(name, plain)
    try:
        return _without_names(json.loads(text))
    except ValueError:
        return _PLACE.sub(" ", " ".join(text.split()))


_PLACE = re.compile(r" (?:\S+\.jsonl|IN):\d+ | part-\d\.\w+: | - After: .*? (?=#### )")
"""The file and the line of a row, and the name and the date of a file, which not every place has."""


def _without_names(value: object) -> object:
    if isinstance(value, dict):
        return {k: _without_names(v) for k, v in value.items() if k not in VARIES}
    return [_without_names(v) for v in value] if isinstance(value, list) else value


def _rows(path: Path) -> list[object]:
    """The rows that are written. A warehouse has objects as JSON text, which is passed on as it is."""
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [{name: _parsed(value) for name, value in row.items() if value is not None} for row in rows]


def _parsed(value: object) -> object:
    return json.loads(value) if isinstance(value, str) and value[:1] in ("[", "{") else value
