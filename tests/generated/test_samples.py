"""The lines of the samples in their index: format, rows, errors and warnings are those of a validation."""

from __future__ import annotations

import os
import re

import pytest

from agent_eval_schema import validate_eval_set
from agent_eval_schema.formats.registry import find_format
from tests.conftest import SAMPLES

pytestmark = pytest.mark.xdist_group("generated")

INDEX = SAMPLES / "README.md"


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.iterdir() if path != INDEX))
def test_a_sample_has_its_line(name: str) -> None:
    """What it shows is written by hand; a new line has the summary of its format there."""
    report = validate_eval_set(SAMPLES / name)
    is_logged = "AE111" in report.counts  # no evaluation dataset, and reported as such
    format = "inference table" if is_logged else f"`{report.format}`"
    figures = [report.row_count, *(["", ""] if is_logged else [report.count("error"), report.count("warning")])]
    text = INDEX.read_text(encoding="utf-8")
    *_, last = lines = re.findall(r"^\| `.*\|$", text, re.MULTILINE)
    before = next((line for line in lines if line.startswith(f"| `{name}` |")), None)
    shows = find_format(report.format).summary if before is None else before.split(" | ")[2]
    line = f"| `{name}` | {format} | {shows} |{'|'.join(f' {figure} '.replace('  ', ' ') for figure in figures)}|"
    if os.environ.get("UPDATE_GOLDEN"):
        made = text.replace(last, f"{last}\n{line}") if before is None else text.replace(before, line)
        INDEX.write_text(made, encoding="utf-8")
    advice = "UPDATE_GOLDEN=1 python -m pytest tests/generated writes it into sample_data/README.md"
    assert line in INDEX.read_text(encoding="utf-8").splitlines(), advice
