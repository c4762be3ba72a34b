"""What is published: the sdist, the wheel, their metadata, and the version that everything has."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest

from agent_eval_schema import __version__
from tests.conftest import ROOT

pytest.importorskip("build", reason="needs the package build")
pytest.importorskip("hatchling", reason="needs the package hatchling")
pytest.importorskip("hatch_fancy_pypi_readme", reason="needs the package hatch-fancy-pypi-readme")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheel, built from the sdist as pip would, and the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {path.suffix: path for path in folder.iterdir()}


@pytest.fixture(scope="module")
def wheel(built: dict[str, Path]) -> zipfile.ZipFile:
    return zipfile.ZipFile(built[".whl"])


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    return message_from_bytes(wheel.read(f"agent_eval_schema-{__version__}.dist-info/METADATA"))


def test_the_version_is_written_once(metadata: Message) -> None:
    assert metadata["Version"] == __version__
    for name in ("pyproject.toml", "CITATION.cff"):
        assert __version__ not in re.sub(r">=[\d.]+", "", (ROOT / name).read_text(encoding="utf-8")), name


def test_pages_name_the_version_that_there_is() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    named = {
        tag for path in pages for tag in re.findall(r"(?:rev: |agent-eval-schema@)v([\d.]+)", path.read_text("utf-8"))
    }
    assert named == {__version__}


def test_the_metadata_are_complete(built: dict[str, Path], metadata: Message) -> None:
    pytest.importorskip("twine")
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, built.values())]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert {"Documentation", "Repository", "Issues", "Changelog"} == {
        url.split(",")[0] for url in metadata.get_all("Project-URL", [])
    }
    for field in ("Author", "Summary", "Keywords", "License-Expression", "Requires-Python", "Description-Content-Type"):
        assert metadata[field], field


def test_the_published_readme_leads_to_the_site_and_to_the_repository(metadata: Message) -> None:
    """The links of README are relative, and PyPI has nothing beside it; each has an address of its own there."""
    targets = r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\""
    ours = [a or b for a, b in re.findall(targets, (ROOT / "README.md").read_text(encoding="utf-8"))]
    published = [a or b for a, b in re.findall(targets, str(metadata.get_payload()))]
    expected = {
        "docs/quickstart.md": f"{SITE}/quickstart.html",
        "docs/how-to/ces/index.md": f"{SITE}/how-to/ces/index.html",
        "notebooks/02_from_traces.ipynb": f"{SITE}/tutorials/02_from_traces.html",
        "sample_data/README.md": f"{CODE}/blob/main/sample_data/README.md",
        ".github/tour-light.webp": f"{RAW}/main/.github/tour-light.webp",
        "https://pre-commit.com": "https://pre-commit.com",
    }
    assert dict(zip(ours, published, strict=True)).items() >= expected.items()
    assert [link for link in published if not link.startswith("https://")] == []
    sources = {link for link in ours if link.startswith(("docs/", "notebooks/"))}
    assert len({link for link in published if link.startswith(f"{SITE}/")}) == len(sources)


SITE = "https://agent-eval-schema.github.io/agent-eval-schema"
CODE = "https://github.com/agent-eval-schema/agent-eval-schema"
RAW = "https://raw.githubusercontent.com/agent-eval-schema/agent-eval-schema"


def test_the_wheel_has_the_package_alone(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()
    assert {name.split("/")[0] for name in names} == {"agent_eval_schema", f"agent_eval_schema-{__version__}.dist-info"}
    assert {"agent_eval_schema/py.typed", "agent_eval_schema/render/templates/blocks.html"} <= set(names)
    assert not [name for name in names if name.split("/")[-1].startswith(("test_", "conftest"))]


def test_the_sdist_has_what_the_readme_shows_and_the_tests_read(built: dict[str, Path]) -> None:
    with tarfile.open(built[".gz"]) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"\b(?:sample_data|notebooks|docs)/[\w./-]*\w", readme)) | set(
        re.findall(r"\]\(([\w./]+)\)", readme)
    )
    kept = {name for name in shown if (ROOT / name).is_file()}
    assert kept
    assert kept <= names
    for folder in ("agent_eval_schema", "tests", "sample_data", "notebooks", ".github", ".vale"):
        files = {
            p.relative_to(ROOT).as_posix()
            for p in (ROOT / folder).rglob("*")
            if p.is_file() and "__pycache__" not in p.parts
        }
        assert files - names == set(), folder
