"""Validate, normalize, convert and score evaluation datasets for AI agents, and report the metrics of each row.

The public names are loaded on first use.

Examples
--------
>>> from agent_eval_schema import validate_eval_set
>>> validate_eval_set([{"request": "What is Delta Lake?", "response": "A table format."}])
<Report: 1 of 1 rows valid, 0 errors, 0 warnings>
"""

from agent_eval_schema.runtime.lazy import load_on_use
from agent_eval_schema.runtime.version import __version__ as __version__

_GUESSES = {
    **dict.fromkeys(("check", "check_eval_set", "lint"), "validate_eval_set(data)"),
    **dict.fromkeys(
        ("read", "load", "load_eval_set", "read_eval_set", "from_csv", "read_csv", "read_json"),
        "normalize_eval_set(path)",
    ),
    **dict.fromkeys(("fix", "repair", "fix_eval_set"), "normalize_eval_set(data, fix=True)"),
    **dict.fromkeys(("compare", "compare_results"), "load_result(old).compare(load_result(new))"),
    **dict.fromkeys(("split", "sample"), "normalize_eval_set(data).sample(n)"),
    **dict.fromkeys(("read_excel", "from_excel"), "import_eval_set(path)"),
    **dict.fromkeys(("dedupe", "deduplicate"), "profile_eval_set(data).write(path)"),
    "redact": 'eval_set_from_inference_table(table, redact="default")',
    "detect_format": "validate_eval_set(data).format",
}

__getattr__, __dir__, __all__ = load_on_use(__name__, _GUESSES)
