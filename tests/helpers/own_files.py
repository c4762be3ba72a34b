"""Files that the tool reads of itself, each with a command that reads it: journals, results, manifests, settings."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from agent_eval_schema import score_trajectories
from tests.conftest import SAMPLES

EVENT = {
    "v": 1, "seq": 1, "at": "2026-01-01T00:00:00Z", "by": "bob", "row": {"id": "hd-001", "hash": "0" * 16, "n": 0},
    "op": "set", "path": "note", "old": None, "new": "1 note",
}  # fmt: skip


def journal() -> str:
    return json.dumps(EVENT) + "\n" + json.dumps({**EVENT, "seq": 2, "old": "1 note", "new": "2"}) + "\n"


def saved(folder: Path, name: str) -> None:
    score_trajectories(SAMPLES / "vertex.jsonl").write(folder / name)


FILES: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "in.jsonl.bob.review.jsonl": (
        lambda here: (here / "in.jsonl.bob.review.jsonl").write_text(journal()),
        ["review", "in.jsonl", "--reviewer", "ana", "--bundle", "page.html"],
    ),
    "bob.review.jsonl": (
        lambda here: [(here / f"{n}.review.jsonl").write_text(journal().replace("bob", n)) for n in ("ana", "bob")],
        ["review", "in.jsonl", "--merge", "ana.review.jsonl", "bob.review.jsonl"],
    ),
    "result.jsonl": (lambda here: saved(here, "result.jsonl"), ["compare", "result.jsonl", "result.jsonl"]),
    "past.json": (
        lambda here: score_trajectories(SAMPLES / "vertex.jsonl").save(here / "past.json"),
        ["profile", "in.jsonl", "--past", "past.json"],
    ),
    "names.json": (
        lambda here: (here / "names.json").write_text('{"request": "request"}'),
        ["validate", "in.jsonl", "--columns", "names.json"],
    ),
    "settings.toml": (
        lambda here: (here / "settings.toml").write_text('fail-on = "warning"\nmax-cell-bytes = 1000\n'),
        ["validate", "in.jsonl", "--config", "settings.toml"],
    ),
    "test_config.json": (
        lambda here: (here / "test_config.json").write_text('{"criteria": {"response_match_score": 0.1}}'),
        ["validate", "in.evalset.json"],
    ),
    "old.jsonl.manifest.json": (
        lambda here: (here / "old.jsonl.manifest.json").write_text('{"extends": [{"output": "1"}], "output": "o"}'),
        ["from-inference-table", "logged.jsonl", "new.jsonl", "--extend", "old.jsonl", "--dedupe", "id"],
    ),
}


def prepare(folder: Path) -> None:
    """Put the data of the commands into a folder, in which they run."""
    for sample, name in {
        "good.jsonl": "in.jsonl",
        "help_desk.evalset.json": "in.evalset.json",
        "inference_table.jsonl": "logged.jsonl",
    }.items():
        shutil.copy(SAMPLES / sample, folder / name)
    (folder / "old.jsonl").write_text('{"request_id": "a", "request": "Hi", "response": "Hello"}\n')
