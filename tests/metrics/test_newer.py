"""The weekly look for newer versions, against an index on this machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from agent_eval_schema.formats.kept import kept_by_classes
from tests.recorders.newer import newer, recorded

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
    assert {"arize-phoenix-evals", "promptfoo", *(kept.package for kept in kept_by_classes().values())} <= set(found)
    assert all(versions for versions in found.values())
