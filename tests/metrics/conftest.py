"""The packages of platforms, read and not installed."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from zipfile import ZipFile

import pytest

Files = Callable[[str], dict[str, str]]
"""The files of a wheel whose path matches a pattern, with their text."""


@pytest.fixture(scope="session")
def files_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Files]:
    """The files of a wheel, which is downloaded and not installed."""
    folder = tmp_path_factory.mktemp("wheels")

    def files(requirement: str) -> Files:
        target = folder / requirement
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*command, "-d", str(target), requirement], check=True, timeout=300)
        (wheel,) = target.glob("*.whl")

        def matching(pattern: str) -> dict[str, str]:
            with ZipFile(wheel) as archive:
                names = [name for name in archive.namelist() if re.fullmatch(pattern, name)]
                assert names, f"{wheel.name} has no file like {pattern}"
                return {name: archive.read(name).decode() for name in names}

        return matching

    return files
