"""The first pages have no number that is typed by hand, agree with each other, and list what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agent_eval_schema import __version__
from agent_eval_schema.integrations.mlflow.store import OLDEST_WITH_DATASETS
from tests.conftest import ROOT

DOCS = ROOT / "docs"
README = ROOT / "README.md"
FIRST = (README, *(DOCS / name for name in ("index.md", "quickstart.md", "install.md", "reference/index.md")))

NUMBER = re.compile(
    r"\b\d+(?:[.,]\d+)*\b|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozens?|\w+teen|hundreds?)\b",
    re.IGNORECASE,
)


def lowest(package: str) -> str:
    """The oldest version that pyproject.toml allows."""
    found = re.search(rf'"?{package}"?(?: = ")?>=([\d.]+)', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert found, package
    return found[1]


def facts() -> set[str]:
    """What the pages may say with a number, each from its only source."""
    traces = [re.findall(r"\d+", path.stem) for path in (ROOT / "tests" / "data" / "traces").glob("mlflow_v*.json")]
    oldest_trace = ".".join(map(str, min([int(part) for part in version[:2]] for version in traces)))
    return {
        f"Python {lowest('requires-python')} or newer",
        f"Until {__version__} is released",
        f"pandas {lowest('pandas')} and pandas 3 are supported",
        f"Spark {lowest('pyspark')} and 4 are supported",
        f"MLflow datasets require MLflow {OLDEST_WITH_DATASETS}.",
        f"MLflow traces since {oldest_trace}",
        "MLflow 3,",  # products
        "Microsoft 365 Copilot",
        # the exit codes, as tests/cli/test_main.py has them
        "its **exit code is 1**",
        "0 without errors, 1 with errors, 2 for unreadable input",
        "0 without errors, 1 with errors, 2 if an input could not be processed",
        "Exit code 0: no issue. A broken file has exit code 1",
        "| 0, 1, 2, and variables |",
    }


def prose(path: Path) -> str:
    """A page without its code, whose outputs other tests compare, and without the addresses of its links.

    `tests/render/test_picture.py` compares the texts of the pictures. The section Development of README has the size
    and the time of an install, which are measured.
    """
    text = path.read_text(encoding="utf-8").partition("\n## Development\n")[0]
    text = re.sub(r"^```.*?^```$|<picture>.*?</picture>|<!--.*?-->|^!\[.*?$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\]\([^)]*\)|^::::\{grid\}.*$|^:gutter:.*$|`[^`]*`|^## \d\. |^% .*$", "", text, flags=re.MULTILINE)
    return " ".join(text.split())


@pytest.mark.parametrize("path", FIRST, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_number_is_typed_by_hand(path: Path) -> None:
    text = prose(path)
    for fact in facts():
        text = text.replace(fact, "")
    assert [text[max(0, m.start() - 30) : m.end() + 20] for m in NUMBER.finditer(text)] == []


@pytest.mark.parametrize("text", ["eleven of them", "13 formats", "Six lessons", "sixteen rows", "870 MB", "3.5"])
def test_a_number_is_found(text: str) -> None:
    assert NUMBER.search(text)


def test_the_installation_page_has_what_readme_has_on_the_release() -> None:
    found = re.search(r"^Until \S+ is released, .*?\n\n", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert found
    assert found[0] in (DOCS / "install.md").read_text(encoding="utf-8")


def links(path: Path) -> set[str]:
    return set(re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")))


def test_the_index_of_how_tos_lists_every_how_to() -> None:
    pages = {path.relative_to(DOCS / "how-to").as_posix() for path in (DOCS / "how-to").glob("*/*.md")}
    assert {page for page in pages if not page.endswith("/index.md")} - links(DOCS / "how-to" / "index.md") == set()


def test_the_index_of_tutorials_lists_every_notebook() -> None:
    notebooks = {f"../../notebooks/{path.name}" for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert notebooks <= links(DOCS / "tutorials" / "index.md")


def test_the_index_of_the_reference_lists_every_page() -> None:
    folder = DOCS / "reference"
    pages = {path.relative_to(folder).as_posix() for path in folder.glob("*.md")} - {"index.md"}
    pages |= {f"{name}/index.md" for name in ("rules", "formats", "cli", "api")}
    for name in ("schema", "metrics", "production"):
        pages |= {path.relative_to(folder).as_posix() for path in (folder / name).glob("[!i]*.md")}
    assert pages - links(folder / "index.md") == set()


def test_the_home_page_has_a_line_per_task() -> None:
    table = (DOCS / "index.md").read_text(encoding="utf-8").partition("| I want to |")[2].partition("\n\n")[0]
    named = set(re.findall(r"\[`([^`]+)`\]", table))
    tasks = {"validate", "metrics", "profile", "from-traces", "from-inference-table", "score", "convert", "diff"}
    assert named >= {*tasks, "--columns", "profile_eval_set", "eval_set_from_traces"}
