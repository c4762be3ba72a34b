"""`agent-eval-schema` and `python -m agent_eval_schema`: the command line."""

import os
import sys
from contextlib import suppress


def main() -> int:
    """Run the command line. Until it takes signals itself, SIGINT ends the process at once: where an exception breaks
    off the import of a compiled module, its next use may crash."""
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    from agent_eval_schema.cli import main as run

    return run()


if __name__ == "__main__":
    with suppress(FileNotFoundError):  # a working directory that was deleted
        if sys.path[:1] == [os.getcwd()]:  # where `python -m` looks first: data may lie there beside a file `json.py`
            del sys.path[0]
    sys.exit(main())
