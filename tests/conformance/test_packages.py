"""A format of another package is one of ours in every command; a broken one costs only itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

TEMPLATE = ROOT / "docs" / "how-to" / "extend" / "template"
TICKETS = [
    {"ticket": 7, "problem": "The badge does not open the door.", "solution": "Renew it.", "queue": "access"},
    {"ticket": 8, "problem": " ", "solution": "Restart it.", "queue": "it"},
]

BROKEN = {
    "broken_import": "raise RuntimeError('boom')\nX = 1\n",
    "not_a_format": "X = {'name': 'x'}\n",
    "name_of_ours": "from agent_eval_schema.extend import Format, Signs\n"
    "X = Format(name='ragas', title='R', summary='R', page='p', signs=Signs(sure=(('a', 'b'),)))\n",
}


CONFORMANCE = ("-p", "agent_eval_schema.conformance.plugin", "--agent-eval-schema-conformance")
"""With the plug-in by its name: an environment that was installed before it was declared does not load it."""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the template, built and installed as pip does it."""
    folder = tmp_path_factory.mktemp("packages")
    source = folder / "source"
    shutil.copytree(TEMPLATE, source)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", str(folder / "site"), str(source)], check=True, capture_output=True, text=True)
    return folder / "site"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "tickets.jsonl").write_text("".join(json.dumps(row) + "\n" for row in TICKETS))
    return tmp_path


def run(here: Path, site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(site), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": paths, "COLUMNS": "200"}
    return subprocess.run([sys.executable, *words], cwd=here, env=environment, capture_output=True, text=True)


def command(here: Path, site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run(here, site, "-m", "agent_eval_schema", *words)


@pytest.mark.process
@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("validate tickets.jsonl", "tickets format (the columns ticket, problem"),
        ("validate tickets.jsonl --format tickets --jobs 2", "1 of 2 rows cannot be evaluated"),
        ("metrics tickets.jsonl", "Metric coverage"),
        ("profile tickets.jsonl", "tickets format"),
        ("diff tickets.jsonl tickets.jsonl", "No difference"),
        ("convert tickets.jsonl ragas.jsonl --to ragas", "1 of 2 rows"),
        ("convert tickets.jsonl same.jsonl --to tickets", "1 of 2 rows"),
        ("formats", "of agent-eval-schema-tickets 0.1.0"),
        ("formats tickets", "From the package agent-eval-schema-tickets 0.1.0"),
        ("validate tickets.jsonl --format ticket", "did you mean 'tickets'?"),
    ],
)
def test_every_command_knows_the_format(words: str, shown: str, here: Path, installed: Path) -> None:
    found = command(here, installed, *words.split())
    assert shown in found.stdout + found.stderr, found.stdout + found.stderr
    assert "Warning" not in found.stderr


@pytest.mark.process
def test_its_own_tests_and_the_conformance_suite_pass(here: Path, installed: Path) -> None:
    shutil.copy(TEMPLATE / "test_tickets_format.py", here)
    tested = run(here, installed, "-m", "pytest", "-q", "-p", "no:cacheprovider", *CONFORMANCE)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "10 passed" in tested.stdout


@pytest.mark.process
@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_package_costs_only_itself(kind: str, here: Path, installed: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(installed, site)
    (site / f"{kind}.py").write_text(BROKEN[kind])
    info = site / f"{kind}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {kind}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[agent_eval_schema.formats]\nx = {kind}:X\n")
    good, bad = (command(here, at, "validate", "tickets.jsonl", "--output", "json") for at in (installed, site))
    assert bad.stdout == good.stdout
    assert (good.returncode, bad.returncode) == (1, 1)
    assert f"{kind} 1.0 is not used (agent_eval_schema.formats)" in bad.stderr.replace("name-of-ours", kind)
    assert "Traceback" not in bad.stderr


@pytest.mark.process
def test_two_packages_with_one_name_are_both_named(here: Path, installed: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(installed, site)
    (site / "other_tickets.py").write_text((TEMPLATE / "tickets_format.py").read_text())
    info = site / "other_tickets-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-tickets\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text("[agent_eval_schema.formats]\nx = other_tickets:TICKETS\n")
    found = command(here, site, "validate", "tickets.jsonl", "--format", "tickets")
    assert found.returncode == 2
    assert "agent-eval-schema-tickets 0.1.0 and other-tickets 2.0" in found.stderr
    assert "the name is taken" in found.stderr


ON_SPARK = """
import sys
from pathlib import Path
from agent_eval_schema import normalize_eval_set
from tests.helpers.spark_session import start_spark
rows = [("The badge does not open.", "Renew it."), (" ", "Restart it.")]
df = start_spark(Path(sys.argv[1])).createDataFrame(rows, ["problem", "solution"])
print([row.expected_response for row in normalize_eval_set(df, on_invalid="drop").collect()])
"""


@pytest.mark.spark
def test_the_executors_of_spark_find_it(here: Path, installed: Path) -> None:
    found = run(here, installed, "-W", "ignore", "-c", ON_SPARK, str(here))
    assert found.stdout.strip() == "['Renew it.']", found.stderr[-2000:]


def test_without_a_package_nothing_is_imported_for_it() -> None:
    code = (
        "import sys; import agent_eval_schema.formats.registry as r; r.detect(['request']);"
        "print('importlib.metadata' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert found.stdout.strip() == "False"
