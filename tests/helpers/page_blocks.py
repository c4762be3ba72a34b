"""The blocks of code on a page of the documentation: what they print is what the page shows.

    ```console      lines with `$ ` are commands, run beside the sample data; the others are what they print
    ```bash         its lines that begin with agent-eval-schema are run
    ```python       is run; what a block ```text with `% output` above it shows is what it prints
    ```pycon        is run example by example, as doctest does

The blocks of a page run in their order and share names and files. Above a block, `% not run: REASON` means that it is
only compiled, and `% head N` that N lines of the output are shown. `…` in an output stands for anything.
`UPDATE_GOLDEN=1` writes the outputs into the page.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from agent_eval_schema.cli import main

WIDTH = 96
"""Of what is printed, in characters."""


class Block(NamedTuple):
    """A fenced block: its language, the mark above it, its text, and where the text is in the page."""

    language: str
    mark: str
    text: str
    start: int
    end: int


_FENCE = re.compile(
    r"(?:^% ?(?P<mark>[^\n]*)\n)?^(?P<fence>```+)(?P<language>\w+)\n(?P<text>.*?)^(?P=fence)\n",
    re.DOTALL | re.MULTILINE,
)
_RUN = ("console", "bash", "python", "pycon", "text")


def blocks(page: str) -> list[Block]:
    """The blocks of a page that are run, or compared."""
    found = [
        Block(m["language"], m["mark"] or "", m["text"], m.start("text"), m.end("text")) for m in _FENCE.finditer(page)
    ]
    return [b for b in found if b.language in _RUN and (b.language != "text" or b.mark.startswith("output"))]


class PageRun:
    """The run of a page: its names, and what the last Python block has printed."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.printed = ""

    def as_run(self, block: Block) -> str:
        """The text of a block with what it prints now."""
        if block.mark.startswith("not run"):
            return self._compiled(block)
        if block.language == "console":
            return "".join(self._command(line, block) for line in _commands(block.text))
        if block.language == "bash":
            for line in block.text.replace("\\\n", " ").splitlines():
                if line.startswith("agent-eval-schema"):
                    run_command(line)
        elif block.language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(block.text, "<page>", "exec"), self.names)
            self.printed = out.getvalue()
        elif block.language == "pycon":
            return "".join(self._examples(block.text))
        else:
            return _head(self.printed, block)
        return block.text

    def _compiled(self, block: Block) -> str:
        if block.language == "python":
            compile(block.text, "<page>", "exec")
        return block.text

    def _command(self, line: str, block: Block) -> str:
        return f"$ {line}\n" + _head(run_command(line.replace("\\\n", " ")), block)

    def _examples(self, text: str) -> Iterator[str]:
        for part in doctest.DocTestParser().parse(text):
            if isinstance(part, str):
                yield part
                continue
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(part.source, "<page>", "single"), self.names)
            lines = part.source.rstrip("\n").split("\n")
            yield "".join(f"{'>>>' if i == 0 else '...'} {line}".rstrip() + "\n" for i, line in enumerate(lines))
            yield out.getvalue()


def _commands(text: str) -> Iterator[str]:
    """The commands of a console block; a command goes on after a backslash."""
    for found in re.finditer(r"^\$ ((?:.*\\\n)*.*)$", text, re.MULTILINE):
        yield found[1]


def _head(printed: str, block: Block) -> str:
    wanted = re.search(r"head (\d+)", block.mark)
    lines = [line.rstrip() for line in printed.splitlines()]
    cut = int(wanted[1]) if wanted else len(lines)
    return "".join(f"{line}\n" for line in lines[:cut]) + ("…\n" if len(lines) > cut else "")


def run_command(line: str) -> str:
    """What a command prints, on stdout and stderr. Exit code 2 is an error of the page."""
    if line.startswith("agent-eval-schema ") and not re.search(r"[|<>*;&$]", line):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = main(shlex.split(line)[1:])
        printed = out.getvalue()
    else:
        program = Path("bin/agent-eval-schema")
        if not program.exists():
            program.parent.mkdir()
            program.write_text(f'#!/bin/sh\nexec {sys.executable} -m agent_eval_schema "$@"\n', encoding="utf-8")
            program.chmod(0o755)
        environment = {**os.environ, "PATH": f"{program.parent.resolve()}:{os.environ['PATH']}"}
        done = subprocess.run(
            ["bash", "-c", line],
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        code, printed = done.returncode, done.stdout
    assert code in (0, 1), f"{line}: exit code {code}\n{printed}"
    return printed


def outputs(page: Path) -> list[str]:
    """The texts of the blocks of a page as they run now, one after the other."""
    run = PageRun()
    return [run.as_run(block) for block in blocks(page.read_text(encoding="utf-8"))]


def without_mlflow(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a new process, without the store and the experiment that earlier tests have set."""
    return {name: value for name, value in environment.items() if not name.startswith("MLFLOW_")}


def outputs_of_process(page: Path, environment: dict[str, str]) -> list[str]:
    """The same in a process of its own: MLflow keeps stores and experiments in the process."""
    command = [sys.executable, "-W", "ignore", "-m", __name__, str(page)]
    environment = {**without_mlflow(os.environ), **environment}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


def matches(shown: str, printed: str) -> bool:
    """Whether a block shows what is printed."""
    pattern = ".*?".join(re.escape(part) for part in shown.rstrip().split("…"))
    return re.fullmatch(pattern, printed.rstrip(), re.DOTALL) is not None


if __name__ == "__main__":
    print(json.dumps(outputs(Path(sys.argv[1]))))
