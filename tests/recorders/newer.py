"""Which packages that tables were recorded with have a newer version in the index.

    python -m tests.recorders.newer            a line of a Markdown list per package, nothing if all are the newest
    python -m tests.recorders.newer --apply    and the newer versions where the tables name theirs

pip and npm are asked, which know the index. Run `pytest -m oracle tests/metrics` and `python -m
tests.recorders.environments` afterwards: they read the versions that are named.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from agent_eval_schema.formats import kept
from agent_eval_schema.formats.kept import KEPT_BY_CLASSES
from agent_eval_schema.metrics import catalog

KEPT = Path(kept.__file__).with_name("kept.json")
CATALOGS = Path(__file__).parents[1] / "metrics" / "test_catalogs.py"
_PIN = re.compile(r'"([\w.-]+)==([\w.]+)"')
OF_NPM = frozenset({"promptfoo"})


def recorded() -> dict[str, set[str]]:
    """The versions of each package that a table was recorded with."""
    found: dict[str, set[str]] = {}
    pins = _PIN.findall(CATALOGS.read_text(encoding="utf-8"))
    for package, version in [*pins, *((k.package, k.version) for k in KEPT_BY_CLASSES.values())]:
        found.setdefault(package, set()).add(version)
    return dict(sorted(found.items()))


def newest(package: str) -> str:
    """The newest version in the index; "" if it gives none."""
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "index", "versions", package)
    command = ("npm", "view", package, "version") if package in OF_NPM else pip
    answer = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found = re.search(r"^\S+ \(([^)]+)\)" if command is pip else r"^(\d\S*)$", answer, re.MULTILINE)
    return found[1] if found else ""


def newer(packages: dict[str, set[str]]) -> Iterator[tuple[str, str, str]]:
    """The packages with another newest version than those recorded: the name, these, and the newest."""
    for package, versions in packages.items():
        latest = newest(package)
        if latest not in versions or len(versions) > 1:
            yield package, ", ".join(sorted(versions)), latest


def apply(package: str, latest: str) -> None:
    """Name the version in the tables that are compared with the package."""
    tables = json.loads(KEPT.read_text(encoding="utf-8"))
    for table in tables.values():
        table["version"] = latest if table["package"] == package else table["version"]
    KEPT.write_text(json.dumps(tables, indent=1) + "\n", encoding="utf-8")
    if f'"{package}==' not in CATALOGS.read_text(encoding="utf-8"):
        return
    for path, joint in ((CATALOGS, "=="), (Path(catalog.__file__), " ")):
        text = path.read_text(encoding="utf-8")
        path.write_text(
            re.sub(rf"\b{re.escape(package)}{joint}\d[\w.]*\b", f"{package}{joint}{latest}", text), encoding="utf-8"
        )


if __name__ == "__main__":
    for package, versions, latest in newer(recorded()):
        print(f"* `{package}`: recorded with {versions}, newest {latest or 'not in the index'}")
        if latest and "--apply" in sys.argv:
            apply(package, latest)
