"""The library, with worker processes of its own, in processes that others start: multiprocessing, and a notebook."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import PATIENCE, ROOT

pytestmark = pytest.mark.process

VALIDATE = """
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.validation.validate import check_source

def counts(path, jobs=2):
    report = check_source(open_source(path), jobs=jobs)
    return [report.row_count, report.valid_count, dict(report.counts)]
"""

SCRIPT = (
    "import json, multiprocessing, sys\n"
    + VALIDATE
    + """
if __name__ == "__main__":
    method, path = sys.argv[1:]
    before = counts(path, 1)
    with multiprocessing.get_context(method).Pool(2) as pool:
        print(json.dumps([before, *pool.map(counts, [path] * 3), counts(path)]))
"""
)


def rows_file(folder: Path, count: int) -> Path:
    """Rows of which every seventh is wrong."""
    path = folder / "rows.jsonl"
    lines = ({"request": f"question {i} " + "x" * 60 if i % 7 else 7, "response": "a"} for i in range(count))
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_process_of_multiprocessing_validates_with_workers(method: str, tmp_path: Path) -> None:
    """A script with a main guard, whose pool is of either kind, gets the counts of one process."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), method, str(rows_file(tmp_path, 4_000))]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found == [found[0]] * 5
    assert found[0][0] == 4_000
    assert 0 < found[0][1] < 4_000


class Kernel:
    """A kernel of Jupyter, as a notebook has one."""

    def __init__(self) -> None:
        from jupyter_client.manager import KernelManager

        self.manager = KernelManager()
        self.manager.kernel_cmd = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        self.manager.start_kernel(env={**os.environ, "PYTHONPATH": str(ROOT)})
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=PATIENCE)

    def run(self, code: str) -> dict[str, Any]:
        """The reply to a cell."""
        return self.reply(self.client.execute(code))

    def reply(self, message: str) -> dict[str, Any]:
        while True:
            reply = self.client.get_shell_msg(timeout=300)
            if reply["parent_header"].get("msg_id") == message:
                content: dict[str, Any] = reply["content"]
                return content

    def value(self, expression: str) -> str:
        reply = self.client.execute("", user_expressions={"value": expression})
        data: str = self.reply(reply)["user_expressions"]["value"]["data"]["text/plain"]
        return data

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


def children(pid: int) -> list[int]:
    """The processes that a process has started and that run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text().rpartition(") ")[2].split()[:2]
        except OSError:  # it has ended
            continue
        if int(parent) == pid and state != "Z":
            found.append(int(path.parent.name))
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes as Linux shows them")
def test_the_stop_button_of_a_notebook_ends_a_run_and_its_workers(tmp_path: Path) -> None:
    """The kernel is as usable as before: the next cell validates, and no worker is left."""
    path = rows_file(tmp_path, 400_000)
    kernel = Kernel()
    try:
        assert kernel.run(VALIDATE)["status"] == "ok"
        pid = int(kernel.value("__import__('os').getpid()"))
        before = set(children(pid))
        message = kernel.client.execute(f"counts({str(path)!r})")
        until = time.monotonic() + PATIENCE
        while not set(children(pid)) - before and time.monotonic() < until:
            time.sleep(0.02)
        assert set(children(pid)) - before, "no worker was started"
        kernel.manager.interrupt_kernel()
        reply = kernel.reply(message)
        assert (reply["status"], reply.get("ename")) == ("error", "KeyboardInterrupt")
        assert kernel.value(f"counts({str(rows_file(tmp_path, 70))!r})[:2]") == "[70, 60]"
        until = time.monotonic() + PATIENCE
        while set(children(pid)) - before and time.monotonic() < until:
            time.sleep(0.05)
        assert set(children(pid)) <= before
    finally:
        kernel.close()
