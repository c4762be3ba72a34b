"""The code on the pages runs, and prints what the pages show."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.conftest import ROOT, SAMPLES
from tests.helpers.language import wrong_terms
from tests.helpers.page_blocks import WIDTH, blocks, matches, outputs, outputs_of_process
from tests.helpers.pages import in_git

DOCS = ROOT / "docs"
WRITTEN = [path for path in in_git() if path.is_relative_to(DOCS)]

NEEDS = {
    "mlflow": ("mlflow", "evaluate_eval_set", "prepare_for_evaluate"),
    "duckdb": ("inference", "payload"),
    "rouge_score": ("rouge",),
    "polars": ("polars",),
    "datasets": ("from datasets",),
}


def pages() -> list[object]:
    """The written pages that have code, and the packages that their code needs."""
    found = []
    for path in WRITTEN:
        code = [block for block in blocks(path.read_text(encoding="utf-8")) if not block.mark.startswith("not run")]
        text = "".join(block.text for block in code)
        needs = [package for package, words in NEEDS.items() if any(word in text for word in words)]
        if code:
            found.append(pytest.param(path, needs, id=str(path.relative_to(DOCS))))
    return found


@pytest.mark.docs  # what DataFrames print depends on the version of pandas
@pytest.mark.parametrize(("path", "needs"), pages())
def test_the_blocks_of_a_page_print_what_it_shows(
    path: Path, needs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in needs:
        pytest.importorskip(package)
    shutil.copytree(SAMPLES, tmp_path / "sample_data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    of_process = {"MLFLOW_DISABLE_TELEMETRY": "true", "TQDM_DISABLE": "1"}
    printed = outputs_of_process(path, of_process) if "mlflow" in needs else outputs(path)
    page = path.read_text(encoding="utf-8")
    for block, text in reversed(list(zip(blocks(page), printed, strict=True))):
        if os.environ.get("UPDATE_GOLDEN") and not matches(block.text, text):
            page = page[: block.start] + text + page[block.end :]
            path.write_text(page, encoding="utf-8")
        else:
            assert matches(block.text, text), f"{path}: expected\n{block.text}\nprinted\n{text}"


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: str(path.relative_to(DOCS)))
def test_the_pages_use_the_terms_of_the_glossary(path: Path) -> None:
    assert wrong_terms(path.read_text(encoding="utf-8")) == []


def test_a_changed_output_does_not_match() -> None:
    assert matches("$ a\none …\nthree\n", "$ a\none two\nthree\n")
    assert not matches("$ a\none\n", "$ a\ntwo\n")
    assert not matches("$ a\n", "$ a\nmore\n")
