"""The notebooks run, and what is committed of their outputs is what a run gives.

    committed notebook ──nbclient──▶ outputs of this run ──compare──▶ committed outputs

They are read on a web page, where nobody runs them. `UPDATE_GOLDEN=1 python -m pytest tests/project/test_notebooks.py`
writes the outputs of the run into the notebooks: look at the difference.
"""

from __future__ import annotations

import ast
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

import agent_eval_schema
from tests.conftest import ROOT

FOLDER = ROOT / "notebooks"
NAMES = [
    "01_validate.ipynb",
    "02_from_traces.ipynb",
    "03_inference_table.ipynb",
    "04_convert_ces.ipynb",
    "05_trajectories.ipynb",
    "07_profile.ipynb",
]

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}

VOLATILE = [(re.compile(r"agent-eval-schema \d+(\.\w+)+"), "agent-eval-schema <version>")]
"""What may differ from run to run. The notebooks show no ids, times and latencies, so there is nothing else."""

UNWANTED = {
    "an absolute path": re.compile(r"(?<![\w.:/<])/(?!Volumes/)[a-zA-Z][\w.-]*/|\b[A-Z]:\\|file://"),
    "a traceback": re.compile(r"Traceback|ipykernel"),
    "a warning": re.compile(r"\w+Warning\b|WARNING"),
    "terminal colors": re.compile("\x1b"),
    "an id of mlflow": re.compile(r"\btr-[0-9a-f]{32}|\b[0-9a-f]{32}\b"),
}


PACE = re.compile(r"[\d,]+ rows? in .+ rows/s\)")
"""What a slow machine shows at the end of a long evaluation."""


def committed(name: str) -> NotebookNode:
    return nbformat.read(FOLDER / name, as_version=4)


def executed(name: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> NotebookNode:
    """The notebook after a run of this code in this interpreter, whatever kernels and profiles the machine has."""
    kernel = home / "kernels" / "python3"
    kernel.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "Python 3", "language": "python"}))
    for variable in ("JUPYTER_PATH", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(variable, str(home))
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)  # the kernel starts in the notebooks' folder
    notebook = committed(name)
    monkeypatch.setenv("COLUMNS", "80")  # the width of what is printed
    monkeypatch.setenv("PYTHONWARNINGS", "ignore:IProgress not found")  # a package of mlflow's, without ipywidgets
    client = NotebookClient(
        notebook, timeout=300, kernel_name="python3", coalesce_streams=True, resources={"metadata": {"path": FOLDER}}
    )
    client.execute()  # raises CellExecutionError with the traceback of the cell
    for cell in (c for c in notebook.cells if c.cell_type == "code"):
        cell.outputs = [o for o in cell.outputs if not PACE.fullmatch(o.get("data", {}).get("text/plain", ""))]
    return notebook


def tidied(notebook: NotebookNode) -> str:
    """The file's text: the same for the same sources and outputs."""
    notebook.metadata = nbformat.from_dict(METADATA)
    for number, cell in enumerate(notebook.cells):
        cell.id, cell.metadata = f"cell-{number:02d}", nbformat.from_dict({})
        if cell.cell_type == "code":
            cell.execution_count = None
            for output in cell.outputs:
                if output.output_type == "execute_result":
                    output.execution_count = None
    return nbformat.writes(notebook).rstrip("\n") + "\n"


def outputs(notebook: NotebookNode) -> list[tuple[str, list[Any]]]:
    """Each code cell with what it shows, without what may differ."""
    return [(c.source, [_shown(o) for o in c.outputs]) for c in notebook.cells if c.cell_type == "code"]


def _shown(output: NotebookNode) -> dict[str, str]:
    shown = {output.name: output.text} if output.output_type == "stream" else dict(output.get("data", output))
    return {form: _settled(str(text)) for form, text in shown.items()}


def _settled(text: str) -> str:
    for pattern, name in VOLATILE:
        text = pattern.sub(name, text)
    return text


def test_all_notebooks_are_tested() -> None:
    assert sorted(path.name for path in FOLDER.glob("*.ipynb")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_run_gives_the_committed_outputs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = executed(name, tmp_path, monkeypatch)
    if os.environ.get("UPDATE_GOLDEN"):
        (FOLDER / name).write_text(tidied(run), encoding="utf-8")
    assert outputs(run) == outputs(committed(name))
    assert sorted(path.name for path in FOLDER.iterdir() if path.is_dir()) == [], "the run left something behind"


@pytest.mark.parametrize("name", NAMES)
def test_the_committed_file_has_its_stable_form(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == tidied(committed(name))


@pytest.mark.parametrize("name", NAMES)
def test_the_committed_outputs_can_be_read_on_a_web_page(name: str) -> None:
    cells = outputs(committed(name))
    assert sum(bool(shown) for _, shown in cells) >= 8
    for source, shown in cells:
        for form, text in ((form, text) for output in shown for form, text in output.items()):
            assert form in ("stdout", "text/plain", "text/html"), source
            assert {what: found[0] for what, p in UNWANTED.items() if (found := p.search(text))} == {}, source


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_has_a_goal_an_early_view_and_a_result(name: str) -> None:
    cells = committed(name).cells
    assert cells[0].source.startswith(f"# {int(name[:2])}. ")
    assert "**Goal.**" in cells[0].source
    assert cells[-1].source.startswith("## Result")
    views = [n for n, cell in enumerate(cells) if any('class="aes"' in str(out) for out in cell.get("outputs", []))]
    assert views
    assert views[0] <= 6


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_imports_public_names_only(name: str) -> None:
    cells = [c.source for c in committed(name).cells if c.cell_type == "code" and not c.source.startswith("%")]
    nodes = [node for node in ast.walk(ast.parse("\n".join(cells))) if isinstance(node, ast.ImportFrom)]
    ours = [node for node in nodes if (node.module or "").startswith("agent_eval_schema")]
    assert {node.module for node in ours} == {"agent_eval_schema"}
    assert {alias.name for node in ours for alias in node.names} <= set(agent_eval_schema.__all__)


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_not_wider_than_a_web_page(name: str) -> None:
    for cell in committed(name).cells:
        if cell.cell_type == "code":
            texts = [cell.source]
            texts += [text for out in cell.outputs for form, text in _shown(out).items() if form != "text/html"]
            assert [line for text in texts for line in text.splitlines() if len(line) > 100] == []


def test_the_notebooks_name_the_queue_for_people() -> None:
    named = {name: re.findall(r"--queue (\w+)`|queue=&#34;(\w+)&#34;", (FOLDER / name).read_text()) for name in NAMES}
    assert {name: {a or b for a, b in found} for name, found in named.items() if found} == {
        "01_validate.ipynb": {"errors"}, "03_inference_table.ipynb": {"truth"}, "07_profile.ipynb": {"truth"},
    }  # fmt: skip
