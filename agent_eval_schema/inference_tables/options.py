"""The options of a build, each declared once: its type and default, and its words on the command line.

    BuildOptions ──▶ eval_set_from_inference_table     a test compares the signature, which users and editors read
                 ──▶ COMMAND_LINE                      `--name` of each option: the arguments, a manifest's command
                 ──▶ BuildPlan                         validated for one table by make_plan.py

Nothing heavy is imported: the help of the command line reads this.
"""

import json
from typing import Any

from agent_eval_schema.runtime.tables import file_of_package

FEEDBACK = "feedback"
"""The labels that the table itself holds."""


COMMAND_LINE: dict[str, dict[str, dict[str, Any]]] = json.loads(file_of_package(__package__, "options.json"))
"""The arguments of argparse for each option but `show_values`, by the group that the help shows it in."""


def flag(option: str) -> str:
    return f"--{option.replace('_', '-')}"
