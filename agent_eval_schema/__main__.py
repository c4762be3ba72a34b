"""``python -m agent_eval_schema`` is the command line."""

import os
import sys

if __name__ == "__main__":
    if sys.path[:1] == [os.getcwd()]:  # where `python -m` looks first, and where data may lie beside a file `json.py`
        del sys.path[0]
    from agent_eval_schema.cli import main

    sys.exit(main())
