"""The weekly look for newer versions, against an index on this machine."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from agent_eval_schema.formats.kept import KEPT_BY_CLASSES
from tests.recorders import environments
from tests.recorders import newer as module
from tests.recorders.newer import apply, newer, recorded

pytest.importorskip("pip")
pytestmark = pytest.mark.process


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for package in ("one", "two"):
        (folder := tmp_path / package).mkdir()
        links = [f'<a href="{package}-{version}.tar.gz">{package}-{version}.tar.gz</a>' for version in ("1.9", "1.10")]
        (folder / "index.html").write_text(f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(tmp_path))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/")
        monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
        yield
        server.shutdown()


@pytest.mark.usefixtures("index")
def test_a_newer_version_of_the_index_is_found() -> None:
    given = {"one": {"1.9"}, "two": {"1.10"}, "absent": {"1.0"}}
    assert list(newer(given)) == [("one", "1.9", "1.10"), ("absent", "1.0", "")]


def test_each_package_of_a_table_is_asked_for() -> None:
    found = recorded()
    assert {"arize-phoenix-evals", "promptfoo", *(kept.package for kept in KEPT_BY_CLASSES.values())} <= set(found)
    assert all(versions for versions in found.values())


def test_a_newer_version_is_named_in_the_kept_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(module.KEPT, tmp_path)
    monkeypatch.setattr(module, "KEPT", tmp_path / "kept.json")
    apply("langfuse", "99.1")
    tables = json.loads((tmp_path / "kept.json").read_text())
    assert {name for name, table in tables.items() if table["version"] == "99.1"} == {"langfuse"}
    before = {name: table.version for name, table in KEPT_BY_CLASSES.items()}
    assert {name: table["version"] for name, table in tables.items()} == {**before, "langfuse": "99.1"}


def test_each_platform_has_an_environment(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name, table in KEPT_BY_CLASSES.items():
        own = [one for one in environments.requirements(name) if one.endswith(f"=={table.version}")]
        assert len(own) == (table.package not in module.OF_NPM)
    monkeypatch.setattr(environments, "run", lambda name, _: (name != "ragas", name))
    assert environments.main([]) == 1
    assert capsys.readouterr().out.split() == sorted(KEPT_BY_CLASSES)
    assert environments.main(["adk"]) == 0


def test_a_package_that_does_not_install_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "requirements", lambda _: ("no-such-package==1",))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    agrees, line = environments.run("ragas", tmp_path / "ragas")
    assert agrees
    assert "not installed: " in line
