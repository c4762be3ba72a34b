"""The oracle of each platform in an environment of its own: the packages of all platforms do not install together.

    python -m tests.recorders.environments               each platform, in the version that kept.json names
    python -m tests.recorders.environments ragas adk     these

For each a line: the rows that its class loads, the columns that it keeps, what it demands of a file. A package that
does not install is named. The exit code is 1 if a class rejects a row, or keeps other columns than those recorded.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from agent_eval_schema.formats.kept import KEPT_BY_CLASSES
from tests.recorders.newer import OF_NPM

TEST = "tests/formats/test_loaded.py::test_the_class_loads_what_is_written[{}]"
EXTRAS = {"google-cloud-aiplatform": "[evaluation]"}
BESIDE = {"ragas": ("langchain-community<0.4",)}
"""Packages that a platform imports and does not limit."""
OF_TESTS = ("pytest>=8,<9.2", "pytest-xdist>=3.6", "hypothesis>=6.100", "pyyaml>=6")
"""As in pyproject.toml."""


def requirements(name: str) -> Sequence[str]:
    kept = KEPT_BY_CLASSES[name]
    own = () if kept.package in OF_NPM else (f"{kept.package}{EXTRAS.get(kept.package, '')}=={kept.version}",)
    return (*own, *BESIDE.get(name, ()), *OF_TESTS)


def run(name: str, folder: Path) -> tuple[bool, str]:
    """Whether the platform agrees with the table, or is not installed; the line, or the end of what was printed."""
    kept, python = KEPT_BY_CLASSES[name], folder / "bin" / "python"
    environment = {**os.environ, "PROMPTFOO": str(folder)}
    commands = [
        [sys.executable, "-m", "venv", str(folder)],
        [str(python), "-m", "pip", "install", "-q", "-e", ".", *requirements(name)],
    ]
    if kept.package in OF_NPM:
        npm = shutil.which("npm") or "npm"
        commands.append([npm, "install", "--silent", "--prefix", str(folder), f"{kept.package}@{kept.version}"])
    for command in commands:
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            why = str(getattr(error, "stderr", "") or error).strip().splitlines()
            return True, f"{kept.release:<40} not installed: {why[-1] if why else error}"
    command = [str(python), "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-rs", TEST.format(name)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    found = [line for line in lines if line.startswith(kept.release)]
    if done.returncode == 0 and found:
        return True, found[0]
    return False, "\n".join([f"{kept.release}: the oracle of {name} failed", *lines[-60:], done.stderr[-2000:]])


def main(names: Sequence[str]) -> int:
    is_agreed = True
    for name in names or sorted(KEPT_BY_CLASSES):
        with tempfile.TemporaryDirectory() as folder:
            agrees, text = run(name, Path(folder))
        print(text, flush=True)
        is_agreed &= agrees
    return 0 if is_agreed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
