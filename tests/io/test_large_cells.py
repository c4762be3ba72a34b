"""Data that is small where it is stored, and more than two gigabytes once its texts are written out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROWS, LENGTH = 8_192, 270_000

MAKE = f"""
import sys
import pandas as pd, pyarrow as pa, pyarrow.parquet as pq
rows, text, path = {ROWS}, "x" * {LENGTH}, sys.argv[1]
requests = ["q"] * (rows - 1) + [None]
once = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([text]))
one = pa.array([text], pa.string_view()).buffers()
view = pa.Array.from_buffers(pa.string_view(), rows, [None, pa.py_buffer(one[1].to_pybytes()[:16] * rows), *one[2:]])
documents = pa.StructArray.from_arrays([pa.array(["u"] * rows), once], ["doc_uri", "content"])
contexts = pa.ListArray.from_arrays(pa.array(range(rows + 1), pa.int32()), documents)
"""

KINDS = {
    "a dictionary in Parquet": """
pq.write_table(pa.table({"request": requests, "response": once}), path)
data = path
""",
    "pages with a dictionary": """
pq.write_table(pa.table({"request": requests, "response": once}), path, store_schema=False)
data = path
""",
    "lists in pages with a dictionary": """
table = pa.table({"request": requests, "response": ["a"] * rows, "retrieved_context": contexts})
pq.write_table(table, path, store_schema=False)
data = path
""",
    "a folder for several workers": """
import os
os.makedirs(path)
for part in range(2):
    rows_of = pa.table({"request": requests[part::2], "response": once.take(pa.array(range(part, rows, 2)))})
    pq.write_table(rows_of, f"{path}/{part}.parquet", store_schema=False)
data = path
options["jobs"] = 2
""",
    "an Arrow dictionary": """
data = pa.table({"request": requests, "response": once})
""",
    "views of one text": """
data = pa.table({"request": requests, "response": view})
""",
    "one string in all rows of a list": """
data = [{"request": r, "response": text} for r in requests]
""",
    "one string in the later rows of a list": """
data = [{"request": r, "response": "a" if i < 64 else text} for i, r in enumerate(requests)]
""",
    "one string in a frame": """
data = pd.DataFrame({"request": requests, "response": [text] * rows})
""",
    "categories of a frame": """
data = pd.DataFrame({"request": requests, "response": pd.Categorical([text] * rows)})
""",
}

CHECK = """
import resource
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.validation.validate import check_source
report = check_source(open_source(data), **options)
largest = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print(report.valid_count, (~report.valid_mask).nonzero()[0].tolist(), dict(report.counts), largest >> 10)
"""


@pytest.mark.process
@pytest.mark.parametrize("kind", KINDS)
def test_every_row_is_judged_in_little_memory(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("resource", reason="memory is measured as Unix does")
    code = MAKE + "options = {}" + KINDS[kind] + CHECK
    # Linux counts the peak of the process that starts another one as the other's; that of a shell is small.
    in_a_shell = ["sh", "-c", '"$@"; exit $?', "sh"]
    command = [*in_a_shell, sys.executable, "-c", code, str(tmp_path / "rows.parquet")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr or f"ended by signal {-done.returncode}"
    *found, megabytes = done.stdout.rsplit(maxsplit=1)
    assert found == [f"{ROWS - 1} [{ROWS - 1}] {{'AE201': 1}}"]
    assert int(megabytes) < 1_000
