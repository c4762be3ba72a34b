"""The options of a build, each declared once: its type and default, and its words on the command line.

    BuildOptions ──▶ eval_set_from_inference_table     a test compares the signature, which users and editors read
                 ──▶ COMMAND_LINE                      `--name` of each option: the arguments, a manifest's command
                 ──▶ BuildPlan                         validated for one table by make_plan.py

Nothing heavy is imported: the help of the command line reads this.
"""

from typing import Any

FEEDBACK = "feedback"
"""The labels that the table itself holds."""


COMMAND_LINE: dict[str, dict[str, dict[str, Any]]] = {
    "input": {
        "format": {
            "metavar": "TABLE_FORMAT",
            "help": "format of the table, if its columns do not identify it: assessment_logs, request_logs, "
            "ai_gateway, legacy, unity_ai_gateway, search_traces, archived_traces, mapped",
        },
        "columns": {
            "metavar": "PATH=FIELD|FILE",
            "help": "read the column or key PATH as FIELD of a call, for other logs: body.input=request; or a FILE of "
            "them (.json, .toml); repeatable",
        },
    },
    "rows": {
        "since": {"metavar": "TIME", "help": "logged at this time or later: 2025-11-03, 2025-11-03T09:00Z"},
        "until": {"metavar": "TIME", "help": "logged before this time (UTC if it has no zone)"},
        "where": {"metavar": "SQL", "help": "rows to read: \"served_entity_id = 'a'\""},
        "dedupe": {
            "choices": ["id", "question", "near", "none"],
            "help": "keep one row per request ID (default), the latest row per distinct question, or per group of near "
            "duplicates, or every row",
        },
        "near": {"metavar": "N", "help": "similarity of near duplicates (default: 0.7)"},
        "extend": {
            "metavar": "EXISTING",
            "help": "dataset of an earlier build whose rows come first: only calls that it does not have are added (as "
            "--dedupe compares them), and later feedback updates its labels",
        },
        "include": {
            "metavar": "REASON",
            "action": "append",
            "help": "do not exclude rows for this reason: outside_window, status, partial, repeated or invalid; "
            "repeatable",
        },
        "sample": {"metavar": "N", "help": "sample size: a row count or a fraction such as 0.1 (default: all rows)"},
        "stratify": {
            "metavar": "COL",
            "help": "stratify the sample by a column, day, served_entity, failed, thumbs, or an SQL expression",
        },
        "balance_by": {
            "metavar": "COL",
            "help": "draw equally many rows of each value, of the same columns; --sample is a row count",
        },
        "seed": {"metavar": "N", "help": "seed of the sample (default: 0)"},
    },
    "content of the rows": {
        "labels": {
            "metavar": "TABLE",
            "help": "source of ground-truth labels: feedback (default), none, or an assessment-log table",
        },
        "redact": {
            "metavar": "HOW",
            "help": "replace in strings: default (e-mail, phone and card numbers, IBANs), MODULE:FUNCTION, or none "
            "(default)",
        },
        "redact_region": {
            "metavar": "COUNTRY",
            "action": "append",
            "help": "country whose national phone numbers and IDs --redact default replaces too: DE; repeatable",
        },
        "traces": {"metavar": "TABLE", "help": "table of traces, for rows that were logged without one"},
    },
}
"""The arguments of argparse for each option but `show_values`, by the group that the help shows it in."""


def flag(option: str) -> str:
    return f"--{option.replace('_', '-')}"
