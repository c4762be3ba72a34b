"""Kill every command that writes at random moments: `python -m tests.kill --times 200`.

After each kill the output is the old file or the new one, whole; what else there is does not break the next run, which
ends as a run that nobody disturbed, with the same bytes and nothing left behind. Every third kill is a SIGTERM or
SIGINT: the exit code is that of the signal, and no temporary files stay but the work folder of a build that can be
resumed. Before that, two runs of each command start together. Prints the seed and the counts, also of runs that ended
before their kill; exit code 1 with the first run that was not so.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.kill.commands import COMMANDS, Command

SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGKILL, signal.SIGINT)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kill", description="kill every command that writes")
    parser.add_argument("--times", type=int, default=200, help="how many runs are killed, of all commands together")
    parser.add_argument("--rows", type=int, default=20_000, help="the rows of an input: with more, runs take longer")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=600, help="stop after so many minutes")
    parser.add_argument("--only", nargs="+", choices=list(COMMANDS), metavar="COMMAND", help=", ".join(COMMANDS))
    arguments = parser.parse_args()
    chance, counts, slowest = random.Random(arguments.seed), Counter[str](), 0.0
    start = time.monotonic()
    end = start + arguments.minutes * 60
    print(f"seed {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        runs = [Runs(name, Path(folder) / str(i), arguments.rows) for i, name in enumerate(arguments.only or COMMANDS)]
        for run in runs:
            if wrong := run.at_once():
                print(f"two runs of {run.name} at once: {wrong}")
                return 1
        for n in range(arguments.times):
            if time.monotonic() > end:
                break
            number, run = SIGNALS[n // len(runs) % len(SIGNALS)], runs[n % len(runs)]
            outcome, seconds = run.killed(number, chance.random())
            counts[f"{number.name}: {outcome}" if run.was_killed else "ended before the signal"] += 1
            slowest = max(slowest, seconds if number != signal.SIGKILL else 0)
            if outcome not in FINE:
                print(f"run {n}: {run.name} after {number.name}: {outcome}")
                return 1
    print("\n".join(f"{count:5} × {what}" for what, count in sorted(counts.items())))
    print(f"{counts.total()} runs of {len(runs)} commands in {time.monotonic() - start:.0f} s; ", end="")
    print(f"the slowest end after SIGTERM or SIGINT took {slowest:.2f} s")
    return 0


FINE = ("the old file", "the new file", "no file")


class Runs:
    """The runs of one command in a folder: an undisturbed one shows its result and how long it takes."""

    def __init__(self, name: str, folder: Path, rows: int) -> None:
        self.name, self._folder, self.was_killed, self._code = name, folder, False, 0
        self._command: Command = COMMANDS[name]
        folder.mkdir()
        self._command.prepare(folder, rows)
        start = time.monotonic()
        self._run(lambda _: None)
        self._seconds = time.monotonic() - start
        self._new = self._content()
        if not self._new:
            sys.exit(f"{name}: {self._said.decode()}")

    def killed(self, number: signal.Signals, share: float) -> tuple[str, float]:
        """What is there after a run was killed when a share of its time was over, or what is wrong; and how long the
        end took."""
        chosen = random.Random(share).choice(("nothing", "old"))
        self._clear()
        if chosen == "old" and self._command.may_be_there:
            if self._command.old is not None:
                self._command.old(self._folder)
            else:
                (self._folder / self._command.out).write_bytes(b"old")
        seconds = self._run(lambda process: self._kill(process, number, share * self._seconds))
        self.was_killed = self._code not in (0, 1)
        found = self._content()
        outcome = {b"": "no file", b"old": "the old file", self._new: "the new file"}.get(found, "half a file")
        if self.was_killed and self._code not in (-number, 128 + number):  # of itself, before it takes signals
            return f"exit code {self._code}: {self._said.decode()[-300:]}", seconds
        left = [name for name in self._litter() if name != self._command.work]
        if number != signal.SIGKILL and left:
            return f"temporary files stay: {left}", seconds
        of_one_name = self._command.content is None  # of two, one can be new: a reader says it
        if outcome == "no file" and chosen == "old" and self._command.may_be_there and of_one_name:
            return "the old file is gone", seconds
        if self._command.work in self._litter():
            self._run(lambda _: None, "--resume")
        else:
            if not self._command.may_be_there:
                self._clear(keep_litter=True)
            self._run(lambda _: None)
        if self._content() != self._new:
            return f"the next run fails, with {len(self._content())} bytes: {self._said.decode()[-300:]}", seconds
        if left := self._litter():
            return f"the next run leaves {left}", seconds
        return outcome, seconds

    def at_once(self) -> str:
        """What is wrong after two runs that start together: each ends well, or names the process of the other."""
        self._clear()
        processes = [self._start() for _ in range(2)]
        said = [process.communicate(timeout=600)[1].decode() for process in processes]
        for process, text, other in zip(processes, said, reversed(processes), strict=True):
            told = (
                f"another run (process {other.pid}) is writing it",
                "another run has written it",
                "something already",
            )
            if process.returncode not in (0, 1) and not any(words in text for words in told):
                return f"exit code {process.returncode}: {text[-300:]}"
        if self._content() != self._new:
            return f"the output has {len(self._content())} bytes, not {len(self._new)}"
        return f"they leave {self._litter()}" if self._litter() else ""

    def _kill(self, process: subprocess.Popen[bytes], number: signal.Signals, after: float) -> None:
        try:
            process.wait(after)
        except subprocess.TimeoutExpired:
            process.send_signal(number)

    def _run(self, disturb: Callable[[subprocess.Popen[bytes]], None], *more: str) -> float:
        """Run the command; returns how long it ran after it was disturbed."""
        process = self._start(*more)
        disturb(process)
        start = time.monotonic()
        self._said = process.communicate(timeout=600)[1]
        self._code = process.returncode
        return time.monotonic() - start

    def _start(self, *more: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "agent_eval_schema", *self._command.arguments, *more],
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )

    def _content(self) -> bytes:
        """The bytes of the output, of a folder those of its files."""
        if self._command.content is not None:
            return self._command.content(self._folder)
        out = self._folder / self._command.out
        if out.is_dir():
            return b"".join(sorted(p.read_bytes() for p in out.rglob("*.parquet")))
        return out.read_bytes() if out.exists() else b""

    def _litter(self) -> list[str]:
        out = Path(self._command.out)
        kept = {*self._command.inputs, str(out), *self._command.beside, out.parts[0]}
        found = {*self._folder.iterdir(), *(self._folder / out).parent.iterdir()}
        return sorted({str(path.relative_to(self._folder)) for path in found} - kept)

    def _clear(self, *, keep_litter: bool = False) -> None:
        names = [] if keep_litter else self._litter()
        for name in [*names, self._command.out, *self._command.beside]:
            subprocess.run(["rm", "-rf", str(self._folder / name)], check=True)


if __name__ == "__main__":
    sys.exit(main())
