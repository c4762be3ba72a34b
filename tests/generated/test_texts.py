"""Lists of names of formats and metrics in code, docstrings and README: they are those of the registries."""

from __future__ import annotations

import json
import os
import re
import textwrap
from collections.abc import Iterable, Sequence

import pytest

from agent_eval_schema.evaluation.task_metrics import NAMES as METRICS
from agent_eval_schema.formats.registry import FORMATS
from agent_eval_schema.metrics.catalog import SYSTEMS
from tests.conftest import ROOT

pytestmark = pytest.mark.xdist_group("generated")  # several texts are in one file

NAMES = sorted(form.name for form in FORMATS)
TARGETS = sorted(form.name for form in FORMATS if form.writer is not None)
PACKAGE = ROOT / "agent_eval_schema"


def wrapped(text: str, indent: int) -> str:
    margin = " " * indent
    return textwrap.fill(text, 120, initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False)


def literal(names: Iterable[str]) -> str:
    return wrapped(", ".join(json.dumps(name) for name in names) + ",", 4)


def quoted_lines(text: str) -> str:
    """A string of Python over several lines."""
    lines = textwrap.wrap(text, 100, break_on_hyphens=False)
    return "\n".join(f'    "{line}{" " if line is not lines[-1] else ""}"' for line in lines)


def alternatives(names: Sequence[str]) -> str:
    *others, last = (f'`"{name}"`' for name in names)
    return f"{', '.join(others)} or {last}"


def titles(written: bool) -> str:
    found = (form.title for form in FORMATS if (form.writer is not None) == written)
    return ", ".join(sorted(found, key=lambda title: title.strip("`").lower()))


# file, the text before and after, what is between
TEXTS = [
    ("agent_eval_schema/formats/names.py", "FormatName = Literal[\n", "\n]  # fmt: skip", literal(NAMES)),
    ("agent_eval_schema/formats/names.py", "TargetFormat = Literal[\n", "\n]  # fmt: skip", literal(TARGETS)),
    ("agent_eval_schema/evaluation/task_metrics.py", "MetricName = Literal[\n", "\n]  # fmt: skip", literal(METRICS)),
    (
        "agent_eval_schema/api.py",
        '    format : FormatName or "auto", default "auto"\n',
        "\n    outputs :",
        wrapped(f'The format of the data: {alternatives(NAMES)}. `"auto"` detects it from the column names.', 8),
    ),
    (
        "agent_eval_schema/conversion/convert.py",
        "    to : str\n",
        "\n    format :",
        wrapped(f'The format of the output: {alternatives(TARGETS)}. `"databricks"` is the canonical row.', 8),
    ),
    (
        "agent_eval_schema/metrics/support.py",
        "System = Literal[\n",
        "\n]  # fmt: skip",
        literal(("auto", *SYSTEMS, "all")),
    ),
    (
        "agent_eval_schema/api.py",
        '    system : str, default "auto"\n',
        "\n    format :",
        wrapped(
            f"The system whose metrics are the columns: {alternatives((*SYSTEMS, 'all'))}. "
            '`"auto"` is the system of the data\'s format.',
            8,
        ),
    ),
    (
        "agent_eval_schema/cli/options.py",
        "SYSTEM_NAMES = (\n",
        "\n)",
        quoted_lines(f"{', '.join(SYSTEMS)} or all"),
    ),
    ("README.md", "| read and written | ", " |\n", titles(True)),
    ("docs/index.md", "and reads and writes the formats\n", ".\n", wrapped(titles(True), 0)),
    ("README.md", "| read | ", ", inference tables |\n", titles(False)),
]


@pytest.mark.parametrize(("path", "before", "after", "text"), TEXTS)
def test_a_text_has_the_names_of_the_registry(path: str, before: str, after: str, text: str) -> None:
    file = ROOT / path
    whole = file.read_text(encoding="utf-8")
    place = re.compile(f"(?<={re.escape(before)}).*?(?={re.escape(after)})", re.DOTALL)
    assert place.search(whole), f"{path}: nothing between {before!r} and {after!r}"
    made = place.sub(lambda _: text, whole, count=1)
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(made, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == made, f"UPDATE_GOLDEN=1 python -m pytest tests/generated writes {path}"
