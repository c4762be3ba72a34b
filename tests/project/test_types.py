"""The types of the public names, as a user's strict type checkers see them: they accept a script, and find each
mistake."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import DATA

SCRIPTS = DATA / "types"

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("types")]  # so that each checker runs once

Errors = dict[str, dict[int, str]]


def _run(module: str, *options: str, folder: Path) -> str:
    command = [sys.executable, "-m", module, *options]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert run.returncode in (0, 1), run.stdout + run.stderr
    return run.stdout


def of_mypy(folder: Path, names: list[str]) -> Errors:
    found: Errors = {name: {} for name in names}
    for line in _run("mypy", "--strict", "--no-error-summary", *names, folder=folder).splitlines():
        if match := re.match(r"([\w.]+):(\d+): error: (.*)", line):
            found[match[1]][int(match[2])] = match[3]
    return found


def of_pyright(folder: Path, names: list[str]) -> Errors:
    found: Errors = {name: {} for name in names}
    for told in json.loads(_run("pyright", "--outputjson", "--pythonpath", sys.executable, *names, folder=folder))[
        "generalDiagnostics"
    ]:
        if told["severity"] == "error":
            found[Path(told["file"]).name][told["range"]["start"]["line"] + 1] = told["message"]
    return found


CHECKERS = {"mypy": of_mypy, "pyright": of_pyright}


@pytest.fixture(scope="module", params=CHECKERS)
def errors(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Errors:
    """What a type checker finds in each script, by line. They are outside the repository, as a user's scripts are."""
    if importlib.util.find_spec(request.param) is None:
        pytest.skip(f"needs {request.param}")
    folder = tmp_path_factory.mktemp("user")
    names = sorted(path.name for path in SCRIPTS.glob("*.py"))
    for name in names:
        shutil.copy(SCRIPTS / name, folder)
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    return CHECKERS[request.param](folder, names)


def test_a_users_script_is_accepted(errors: Errors) -> None:
    assert errors["user_script.py"] == {}


def test_each_mistake_is_found(errors: Errors) -> None:
    lines = (SCRIPTS / "mistakes.py").read_text(encoding="utf-8").splitlines()
    seeded = [number for number, line in enumerate(lines, 1) if line.endswith("# mistake")]
    assert len(seeded) >= 20
    assert sorted(errors["mistakes.py"]) == seeded
