"""Google Customer Engagement Suite (CX Agent Studio): golden CSV and Evaluation JSON.

    from agent_eval_schema import ces

    file = ces.read_golden_csv("golden.csv")             file.evaluations, file.groups, file.issues
    losses = ces.write_golden_csv(file.evaluations, "copy.csv", groups=file.groups)
    evaluation = ces.read_evaluation("evaluation.json")  a dict that remembers its text
    issues = ces.validate_evaluation(evaluation)
    text = ces.write_evaluation(evaluation)
    request = ces.update_request(new, old=stored)        what differs, as a call of the MCP tool update_evaluation
    stored = ces.update_evaluation(request)              needs the extra `ces`, and a token

The names are loaded on first use, as those of the package.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOME = {
    "read_golden_csv": "formats.ces.golden_file",
    "write_golden_csv": "formats.ces.golden_writer",
    "golden_csv_text": "formats.ces.golden_writer",
    "golden_template": "formats.ces.golden_template",
    "read_evaluation": "formats.ces.evaluation",
    "read_evaluations": "formats.ces.evaluation",
    "write_evaluation": "formats.ces.evaluation",
    "write_evaluations": "formats.ces.evaluation",
    "validate_evaluation": "formats.ces.evaluation",
    "Evaluation": "formats.ces.evaluation",
    "GoldenFile": "formats.ces.golden_file",
    "update_request": "formats.ces.update",
    "import_request": "formats.ces.update",
    "update_evaluation": "integrations.ces.client",
}

__all__ = [  # noqa: RUF022 -- in the order of a reader's interest
    "read_golden_csv",
    "write_golden_csv",
    "golden_csv_text",
    "golden_template",
    "read_evaluation",
    "read_evaluations",
    "write_evaluation",
    "write_evaluations",
    "validate_evaluation",
    "update_request",
    "update_evaluation",
    "import_request",
    "Evaluation",
    "GoldenFile",
]

if TYPE_CHECKING:
    from agent_eval_schema.formats.ces.evaluation import (
        Evaluation,
        read_evaluation,
        read_evaluations,
        validate_evaluation,
        write_evaluation,
        write_evaluations,
    )
    from agent_eval_schema.formats.ces.golden_file import GoldenFile, read_golden_csv
    from agent_eval_schema.formats.ces.golden_template import golden_template
    from agent_eval_schema.formats.ces.golden_writer import golden_csv_text, write_golden_csv
    from agent_eval_schema.formats.ces.update import import_request, update_request
    from agent_eval_schema.integrations.ces.client import update_evaluation


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"agent_eval_schema.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
