"""No code of the working directory runs in a process of ours; workers find what the process that started them found.

The folder has a module for every name that Python knows, each of which writes down that it was imported.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import agent_eval_schema
from tests.conftest import PATIENCE, SAMPLES

pytestmark = pytest.mark.process

PACKAGE = Path(agent_eval_schema.__file__).parent

TRAP = """
with open({log!r}, "a") as log:
    log.write({name!r} + chr(10))
raise ImportError("code of the working directory")
"""

SCRIPT = "import sys\nfrom agent_eval_schema.cli import main\nsys.exit(main())\n"
"""What pip makes of an entry point, into a folder of its own."""

COMMANDS = {
    "validate": (["validate", "good.jsonl", "--jobs", "2"], 0),
    "validate Parquet": (["validate", "rows.parquet", "--jobs", "2"], 0),
    "build": (["from-inference-table", "inference_table.jsonl", "out.jsonl", "--jobs", "2", "--redact", "default"], 0),
    "fix": (["validate", "broken.jsonl", "--fix", "fixed.jsonl"], 1),
    "convert": (["convert", "good.jsonl", "out.json", "--to", "mlflow"], 0),
    "diff": (["diff", "good.jsonl", "edited_broken.jsonl"], 1),
    "page": (["validate", "good.jsonl", "--html", "page.html"], 0),
}


def installed() -> set[str]:
    """The names of all modules that could be imported from elsewhere."""
    return {name for name in importlib.metadata.packages_distributions() if name.isidentifier()}


def loaded_at_start(folder: Path) -> set[str]:
    """What Python imports for `python -m` before any line of ours runs, and the few names that our package needs."""
    code = "import agent_eval_schema, runpy, sys; print(*(name.partition('.')[0] for name in sys.modules))"
    return set(subprocess.check_output([sys.executable, "-c", code], text=True, cwd=folder).split())


@pytest.fixture
def trapped(tmp_path: Path) -> Path:
    """A folder with the samples, a script as pip makes it, and a module for every name."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("good.jsonl", "edited_broken.jsonl", "broken.jsonl", "inference_table.jsonl"):
        shutil.copy(SAMPLES / name, folder)
    pq.write_table(pa.table({"request": ["q"] * 9, "response": ["a"] * 9}), folder / "rows.parquet", row_group_size=1)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "agent-eval-schema").write_text(SCRIPT)
    for name in {*sys.stdlib_module_names, *installed(), "numexpr", "bottleneck"} - {"agent_eval_schema"}:
        trap(folder / f"{name}.py")
    return folder


def trap(path: Path) -> None:
    name = path.parent.name if path.name == "__init__.py" else path.stem
    path.write_text(TRAP.format(log=str(path.parents[path.name == "__init__.py"] / "imported.log"), name=name))


def run(command: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )


def imported(folder: Path) -> list[str]:
    log = folder / "imported.log"
    return log.read_text().split() if log.exists() else []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_command_imports_nothing_from_the_working_directory(name: str, trapped: Path) -> None:
    (trapped / "agent_eval_schema").mkdir()
    trap(trapped / "agent_eval_schema" / "__init__.py")
    command, code = COMMANDS[name]
    done = run([sys.executable, str(trapped.parent / "bin" / "agent-eval-schema"), *command], trapped)
    assert imported(trapped) == []
    assert done.returncode == code, done.stderr


@pytest.mark.parametrize("name", ["validate", "build"])
@pytest.mark.parametrize("beside", [False, True], ids=["installed", "package in the working directory"])
def test_python_m_imports_nothing_from_the_working_directory(name: str, beside: bool, trapped: Path) -> None:
    """But for what Python itself imports before a line of ours runs. With the package beside, workers import it."""
    for loaded in loaded_at_start(trapped.parent):
        (trapped / f"{loaded}.py").unlink(missing_ok=True)
    if beside:
        shutil.copytree(PACKAGE, trapped / "agent_eval_schema", ignore=shutil.ignore_patterns("__pycache__"))
    command, code = COMMANDS[name]
    done = run([sys.executable, "-m", "agent_eval_schema", *command], trapped)
    assert imported(trapped) == []
    assert done.returncode == code, done.stderr


MASKS = "def hide(text):\n    return text.replace('a', '*')\n"


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_function_of_the_user_is_found_by_pythonpath(jobs: str, trapped: Path) -> None:
    masks = trapped.parent / "masks"
    masks.mkdir()
    (masks / "our_masks.py").write_text(MASKS)
    command = [
        "from-inference-table",
        "inference_table.jsonl",
        "out.jsonl",
        "--jobs",
        jobs,
        "--redact",
        "our_masks:hide",
    ]
    done = run([sys.executable, str(trapped.parent / "bin" / "agent-eval-schema"), *command], trapped)
    assert done.returncode == 2
    assert "PYTHONPATH" in done.stderr
    done = run(
        [sys.executable, str(trapped.parent / "bin" / "agent-eval-schema"), *command], trapped, PYTHONPATH=str(masks)
    )
    assert done.returncode == 0, done.stderr
    assert "*" in (trapped / "out.jsonl").read_text()
    assert imported(trapped) == []


def test_a_function_beside_a_script_is_found_by_workers(tmp_path: Path) -> None:
    """Here and where the script has looked for it, which is its own folder."""
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (scripts / "our_masks.py").write_text(MASKS)
    (scripts / "build.py").write_text(
        "from agent_eval_schema import eval_set_from_inference_table as build\n"
        f"made = build({str(SAMPLES / 'inference_table.jsonl')!r}, redact='our_masks:hide', jobs=2)\n"
        "made.write('out.jsonl')\n"
    )
    done = run([sys.executable, str(scripts / "build.py")], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "*" in (tmp_path / "out.jsonl").read_text()


STARTER = """
import sys, time
from agent_eval_schema.runtime.processes import Worker
worker = Worker("sleeper:run", b"", modules=[sys.argv[1]])
next(worker.messages())
print("started", flush=True)
time.sleep(600)
"""
SLEEPER = """
import time
def run(job):
    yield 0, b""
    time.sleep(600)
"""


def test_a_worker_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    """It would go on to write into the folder of the next run. Their stderr ends when both have ended."""
    (tmp_path / "sleeper.py").write_text(SLEEPER)
    command = [sys.executable, "-c", STARTER, tmp_path]
    starter = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    assert starter.stdout.readline() == "started\n"
    starter.kill()
    assert starter.communicate(timeout=PATIENCE) == ("", "")
