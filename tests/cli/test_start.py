"""What each command imports: its start is what its user waits for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, SAMPLES

HEAVY = {"msgspec", "numpy", "pyarrow", "pandas", "rich", "mlflow", "duckdb", "pyspark", "sklearn", "fsspec", "asyncio"}

GOOD = str(SAMPLES / "good.jsonl")

READS = {"msgspec", "numpy", "pyarrow", "rich"}

COMMANDS: dict[str, tuple[list[str], set[str]]] = {
    "--help": (["--help"], set()),
    "--version": (["--version"], set()),
    "help of a command": (["validate", "--help"], set()),
    "schema": (["schema", "--help"], set()),
    "explain": (["explain", "AE206"], set()),
    "rules": (["rules"], set()),
    "rules as JSON": (["rules", "--output", "json"], {"msgspec"}),
    "formats": (["formats"], set()),
    "a format": (["formats", "ragas"], set()),
    "formats as JSON": (["formats", "--output", "json"], {"msgspec"}),
    "validate": (["validate", GOOD], READS),
    "metrics": (["metrics", GOOD], READS),
    "diff": (["diff", GOOD, GOOD], READS),
    "convert": (["convert", GOOD, "out.json", "--to", "mlflow"], READS),
}

RUN = """
import sys
from agent_eval_schema.cli import main
sys.argv[1:] = {arguments!r}
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_imports_what_it_uses(name: str, tmp_path: Path) -> None:
    arguments, allowed = COMMANDS[name]
    script = RUN.format(arguments=arguments)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert done.stdout, done.stderr
    loaded = done.stderr.split()
    assert HEAVY & {module.partition(".")[0] for module in loaded} <= allowed
    assert not {"pyarrow.parquet", "pyarrow.acero", "pyarrow.dataset"} & {*loaded}


FRAME = """
import sys
from agent_eval_schema.runtime.lazy import put_off_pandas
put_off_pandas()
assert "pandas" not in sys.modules
import pyarrow as pa
array = pa.array(["a", None])
{before}
import pandas as pd
from agent_eval_schema import validate_eval_set
report = validate_eval_set(pd.DataFrame({{"request": ["a", float("nan")], "n": pd.Series([1, None], dtype="Int64")}}))
assert report.valid_mask.tolist() == [True, False], report
assert pa.array(pd.Series([1.0, float("nan")])).null_count == 1
assert type(pa.table({{"a": array}}).to_pandas()) is pd.DataFrame
print("as ever")
"""


@pytest.mark.parametrize("before", ["", "pa.table({'a': array}).to_pandas()"], ids=["ours first", "Arrow's first"])
def test_who_asks_for_a_frame_gets_it(before: str) -> None:
    """pandas was put off, not taken away."""
    done = subprocess.run([sys.executable, "-c", FRAME.format(before=before)], capture_output=True, text=True)
    assert done.stdout == "as ever\n", done.stderr
