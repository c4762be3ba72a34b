"""The list of the formats, with what the writer of each makes of one row: formats/overview.json."""

from __future__ import annotations

import json
import os

from agent_eval_schema.formats.overview import FormatOverview, overview
from agent_eval_schema.formats.registry import FORMATS
from tests.conftest import ROOT

FILE = ROOT / "agent_eval_schema" / "formats" / "overview.json"


def test_the_list_is_that_of_the_registry() -> None:
    made = list(map(FormatOverview.of, sorted(FORMATS, key=lambda form: form.name)))
    if os.environ.get("UPDATE_GOLDEN"):
        entries = [{k: v for k, v in entry._asdict().items() if k != "package"} for entry in made]  # the same for all
        FILE.write_text(json.dumps(entries, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert overview() == made, f"UPDATE_GOLDEN=1 python -m pytest tests/generated writes {FILE.name}"
