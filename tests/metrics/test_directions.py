"""Which score of a metric is better is what its platform states: each direction of the catalog has a source
(docs/_ext/reference/directions.json), and a package that is a source contains it in the version that is named."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema.metrics.known_metrics import CATALOG
from tests.metrics.conftest import Files

ROOT = Path(__file__).parents[2]
SOURCES: list[dict[str, Any]] = json.loads((ROOT / "docs/_ext/reference/directions.json").read_text())
OF_PACKAGES = [entry for entry in SOURCES if "states" in entry]
STATED = {(entry["system"], metric): entry["better"] for entry in SOURCES for metric in entry["metrics"]}


def test_every_direction_has_one_source_and_no_other_metric_has_one() -> None:
    directions = {(m.system, m.name.removeprefix(f"{m.system}/")): info.direction for m, info in CATALOG.items()}
    assert {key: direction for key, direction in directions.items() if direction != "unknown"} == STATED
    assert len(STATED) == sum(len(entry["metrics"]) for entry in SOURCES)


def test_a_source_is_a_page_or_a_package() -> None:
    for entry in SOURCES:
        assert entry["at"].startswith("https://") != ("states" in entry)


@pytest.mark.oracle
@pytest.mark.parametrize("entry", OF_PACKAGES, ids=lambda e: f"{e['system']}-{e['better']}-{e['metrics'][0]}")
def test_the_package_states_it(entry: dict[str, Any], files_of: Callable[[str], Files]) -> None:
    texts = files_of(entry["source"].replace(" ", "=="))(entry["at"]).values()
    joined = [re.sub(r'"?\n\s*"?', " ", text) for text in texts]  # a sentence is broken over several strings
    assert any(re.search(entry["states"], text) for text in joined)
