"""The names that users import: each is there, and type checkers see the same ones."""

import ast
import copy
import inspect
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from zipfile import ZipFile

import pytest

import agent_eval_schema
from agent_eval_schema import ces, scorers


@pytest.mark.parametrize("module", [agent_eval_schema, ces, scorers], ids=lambda m: m.__name__)
def test_type_checkers_see_what_is_loaded_on_use(module: ModuleType) -> None:
    tree = ast.parse(Path(str(module.__file__)).with_suffix(".pyi").read_text("utf-8"))
    seen = {a.name: i.module for i in tree.body if isinstance(i, ast.ImportFrom) for a in i.names if a.name == a.asname}
    assert list(seen) == [*(["__version__"] if module is agent_eval_schema else []), *module.__all__]
    if module is scorers:
        pytest.importorskip("mlflow", minversion="3.3")
    for name, home in seen.items():
        found = getattr(module, name)
        assert found is (getattr(import_module(str(home)), name)), name


def test_the_names_are_found_in_a_zip_file(tmp_path: Path) -> None:
    """As Python applications are packed (PEP 441): the stub is read from where the module is."""
    archive, package = tmp_path / "app.zip", Path(str(agent_eval_schema.__file__)).parent
    parts = ("__init__.py", "__init__.pyi", "rule.py", *(f"runtime/{n}.py" for n in ("__init__", "lazy", "version")))
    with ZipFile(archive, "w") as file:
        for part in parts:
            file.write(package / part, f"agent_eval_schema/{part}")
    code = (
        f"import sys; sys.path.insert(0, {str(archive)!r}); import agent_eval_schema as a; print(a.Severity('error'))"
    )
    found = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)
    assert (found.stdout, found.stderr) == ("error\n", "")


@pytest.mark.parametrize("module", [agent_eval_schema, ces, scorers], ids=lambda m: m.__name__)
def test_a_name_that_is_not_there_is_an_attribute_error(module: ModuleType) -> None:
    assert set(module.__all__) <= set(dir(module))
    with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'bogus'"):
        _ = module.bogus


@pytest.mark.parametrize(
    ("name", "meant"),
    [("validate", "validate_eval_set"), ("normalize", "normalize_eval_set"), ("validate_evalset", "validate_eval_set")],
)
def test_a_name_that_is_close_is_suggested(name: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'; did you mean '{meant}'\\?$"):
        getattr(agent_eval_schema, name)


@pytest.mark.parametrize(
    "name",
    ["check", "read", "from_csv", "compare", "redact", "sample", "split", "detect_format", "read_excel", "dedupe"],
)
def test_a_name_that_people_try_is_answered_with_a_call_that_works(name: str) -> None:
    with pytest.raises(AttributeError, match="; use `") as found:
        getattr(agent_eval_schema, name)
    called = re.findall(r"(\w+)\(", str(found.value).partition("`")[2])
    assert called[0] in agent_eval_schema.__all__


ROWS = [{"request": "Hi", "response": "Hello", "expected_facts": "x"}]


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (lambda: agent_eval_schema.validate_eval_set(ROWS, fmt="mlflow"), "; use `format`"),
        (lambda: agent_eval_schema.convert_eval_set(ROWS, fmt="mlflow"), "; use `to`"),
        (lambda: agent_eval_schema.convert_eval_set(ROWS, "mlflow", fmt="mlflow"), "; use `format`"),
        (lambda: agent_eval_schema.convert_eval_set(ROWS, target="mlflow"), "; use `to`"),
        (lambda: agent_eval_schema.validate_eval_set(ROWS, fix=True), "; use `normalize_eval_set(data, fix=True)`"),
        (
            lambda: agent_eval_schema.convert_eval_set(ROWS, "mlflow", ignore=["AE303"]),
            "; use `validate_eval_set(data, ignore=…), and pass its report as the data`",
        ),
        (lambda: agent_eval_schema.validate_eval_set("x.xlsx", sheet_name="a"), "; use `a path with the sheet: FILE"),
        (lambda: agent_eval_schema.validate_eval_set(ROWS, ouputs="provided"), "; did you mean 'outputs'?"),
        (lambda: agent_eval_schema.validate_eval_set(ROWS, bogus=1), "argument 'bogus'"),
        (lambda: ces.import_request("x", conflicts="SKIP"), "; did you mean 'conflict'?"),
    ],
)
def test_a_keyword_that_people_try_is_answered(call: Callable[[], object], answer: str) -> None:
    with pytest.raises(TypeError, match=r"^\w+\(\) got an unexpected keyword argument '\w+'") as found:
        call()
    assert str(found.value).endswith(answer) or ("#" not in answer and answer in str(found.value))


def test_the_answers_about_rules_work() -> None:
    """Which rules count is a question to a validation; `normalize_eval_set` has both options itself."""
    report = agent_eval_schema.validate_eval_set(ROWS, ignore=["AE303"])
    assert agent_eval_schema.convert_eval_set(report, "mlflow").converted == 1
    (row,) = agent_eval_schema.normalize_eval_set(ROWS, ignore=["AE303"])
    assert (row["response"], row["expected_facts"]) == ("Hello", None)
    assert len(agent_eval_schema.normalize_eval_set(ROWS, select=["AE1"])) == 1
    with pytest.raises(agent_eval_schema.InvalidEvalSetError):
        agent_eval_schema.normalize_eval_set(ROWS)


def test_a_name_that_people_try_gets_no_misleading_answer() -> None:
    with pytest.raises(AttributeError, match=r"use `load_result\(old\).compare\(load_result\(new\)\)`$"):
        _ = agent_eval_schema.compare_results


def test_functions_keep_their_names_and_signatures() -> None:
    function = agent_eval_schema.validate_eval_set
    assert list(inspect.signature(function).parameters)[:2] == ["data", "format"]
    assert pickle.loads(pickle.dumps(function)) is function


def test_an_attribute_that_people_try_is_answered() -> None:
    report = agent_eval_schema.validate_eval_set([{"request": "Hi", "response": "Hello"}])
    for name, meant in {"errors": "issues", "is_valid": "ok", "to_df": "rows"}.items():
        with pytest.raises(AttributeError, match=f"'Report' object has no attribute '{name}'; use `{meant}`$"):
            getattr(report, name)
    assert not hasattr(report, "bogus")
    conversion = agent_eval_schema.convert_eval_set(report, "mlflow")
    for name, meant in {"rows": "data", "is_valid": "lossless", "to_dict": "to_json", "summary": "to_text"}.items():
        with pytest.raises(AttributeError, match=f"'Conversion' object has no attribute '{name}'; use `{meant}`$"):
            getattr(conversion, name)
    assert copy.copy(report).ok


def test_all_scorers_have_public_names() -> None:
    pytest.importorskip("mlflow", minversion="3.3")
    from agent_eval_schema.integrations.mlflow import scorers as defined

    assert [s.__name__ for s in scorers.SCORERS] == [n for n in scorers.__all__ if n not in ("SCORERS", "RowScorer")]
    for name in scorers.__all__:
        assert getattr(scorers, name) is getattr(defined, name)


def test_each_function_with_a_format_names_columns_too() -> None:
    """What reads rows reads columns of other names; `ces` and Spark's own functions have fixed ones."""
    functions = [getattr(agent_eval_schema, name) for name in agent_eval_schema.__all__]
    parameters = {f.__name__: inspect.signature(f).parameters for f in functions if inspect.isfunction(f)}
    parameters |= {kind.__name__: inspect.signature(kind).parameters for kind in (agent_eval_schema.EvalTask,)}
    readers = {name: found for name, found in parameters.items() if "format" in found or name == "supported_scorers"}
    assert [name for name, found in readers.items() if "columns" not in found] == ["json_schema"]
    assert {"evaluate_eval_set", "to_mlflow_dataset", "supported_scorers", "EvalTask"} <= readers.keys()
