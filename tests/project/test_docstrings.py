"""The docstrings of the public names are complete, as numpydoc checks them, and their examples run.

The standard library's doctest runs them, in place of `--doctest-modules`: exactly the public names, each in an empty
folder with the sample data, so examples write files as users do and leave none.
"""

from __future__ import annotations

import doctest
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, SAMPLES

pytest.importorskip("mlflow", minversion="3.3")

from tests.helpers.docstrings import documented

OBJECTS = documented()


NEEDS = (
    ("spark", "spark", r"\bspark\."),
    ("tracking_store", "mlflow", r"evaluate_eval_set|to_mlflow|mlflow_dataset|import mlflow"),
)
"""The fixture, its group of tests, and the code that asks for it. (MLflow uses deprecated parts of SQLAlchemy.)"""


def examples() -> list[Any]:
    """Every public path; an example that uses the session of Spark or a tracking store comes with that."""
    found = []
    for path, value in OBJECTS.items():
        lines = doctest.DocTestParser().get_examples(inspect.getdoc(value) or "")
        code = "".join(line.source for line in lines if doctest.SKIP not in line.options)
        fixture, group, _ = next((need for need in NEEDS if re.search(need[2], code)), ("", "", ""))
        marks = [getattr(pytest.mark, group), pytest.mark.xdist_group(group)] if fixture else []
        marks += [pytest.mark.filterwarnings("ignore::DeprecationWarning")] if group == "mlflow" else []
        found.append(pytest.param(path, fixture, marks=marks, id=path))
    return found


@pytest.mark.parametrize(("path", "fixture"), examples())
def test_the_examples_give_the_outputs_that_are_shown(
    path: str, fixture: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {fixture: request.getfixturevalue(fixture)} if fixture else {}
    (tmp_path / "sample_data").symlink_to(SAMPLES)
    monkeypatch.chdir(tmp_path)
    text = inspect.getdoc(OBJECTS[path]) or ""
    test = doctest.DocTestParser().get_doctest(text, given, path, None, None)
    assert test.examples, "no example"
    told: list[str] = []
    failed, _ = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=told.append)
    assert not failed, "".join(told)


NUMPYDOC = [path for path, value in OBJECTS.items() if not inspect.ismodule(value)]


@pytest.mark.parametrize("path", NUMPYDOC)
def test_the_docstring_passes_the_checks_of_pyproject(path: str) -> None:
    """numpydoc cannot look at a package's module that has no code of its own, so modules are not validated."""
    lint = pytest.importorskip("numpydoc.hooks.validate_docstrings")
    validate = pytest.importorskip("numpydoc.validate").validate
    checks = lint.parse_config(ROOT)["checks"]
    assert {"GL08", "SS03", "SS06", "PR01", "PR02", "PR04", "RT01", "EX01"} <= checks
    assert [f"{code} {why}" for code, why in validate(path)["errors"] if code in checks] == []


PRIVATE = re.compile(r"\b\w+/\w+\.py\b|\b(?:seed|issue) \d+|shared/|\bDESIGN\b")


@pytest.mark.parametrize("path", OBJECTS)
def test_a_docstring_names_no_file_or_document_of_the_project(path: str) -> None:
    assert PRIVATE.findall(inspect.getdoc(OBJECTS[path]) or "") == []
