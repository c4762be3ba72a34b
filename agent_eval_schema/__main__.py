"""``python -m agent_eval_schema`` is the command line."""

import sys

from agent_eval_schema.cli import main

if __name__ == "__main__":
    sys.exit(main())
