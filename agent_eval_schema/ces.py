"""Google Customer Engagement Suite (CX Agent Studio): golden CSV and Evaluation JSON.

The names are loaded on first use, as those of the package. What is sent to the service
(`update_evaluation`, `import_evaluations`, `get_evaluation`, `list_evaluations`) requires the extra `ces`, and a token.

Examples
--------
>>> from agent_eval_schema import ces
>>> file = ces.read_golden_csv("sample_data/golden.csv")
>>> ces.write_golden_csv(file.evaluations, "copy.csv", groups=file.groups)
[]
>>> evaluation = ces.read_evaluation('{"displayName": "Refund"}')
>>> issues = ces.validate_evaluation(evaluation)
>>> text = ces.write_evaluation(evaluation)
"""

from typing import TYPE_CHECKING

from agent_eval_schema.runtime.lazy import load_on_use

if TYPE_CHECKING:
    from agent_eval_schema.formats.ces.evaluation import Evaluation as Evaluation
    from agent_eval_schema.formats.ces.evaluation import read_evaluation as read_evaluation
    from agent_eval_schema.formats.ces.evaluation import read_evaluations as read_evaluations
    from agent_eval_schema.formats.ces.evaluation import validate_evaluation as validate_evaluation
    from agent_eval_schema.formats.ces.evaluation import write_evaluation as write_evaluation
    from agent_eval_schema.formats.ces.evaluation import write_evaluations as write_evaluations
    from agent_eval_schema.formats.ces.golden_reader import GoldenFile as GoldenFile
    from agent_eval_schema.formats.ces.golden_reader import read_golden_csv as read_golden_csv
    from agent_eval_schema.formats.ces.golden_writer import golden_csv_text as golden_csv_text
    from agent_eval_schema.formats.ces.golden_writer import golden_template as golden_template
    from agent_eval_schema.formats.ces.golden_writer import write_golden_csv as write_golden_csv
    from agent_eval_schema.formats.ces.update import import_request as import_request
    from agent_eval_schema.formats.ces.update import update_request as update_request
    from agent_eval_schema.integrations.ces.client import get_evaluation as get_evaluation
    from agent_eval_schema.integrations.ces.client import import_evaluations as import_evaluations
    from agent_eval_schema.integrations.ces.client import list_evaluations as list_evaluations
    from agent_eval_schema.integrations.ces.client import update_evaluation as update_evaluation
else:
    _HOMES = {
        "read_golden_csv": "formats.ces.golden_reader",
        "write_golden_csv": "formats.ces.golden_writer",
        "golden_csv_text": "formats.ces.golden_writer",
        "golden_template": "formats.ces.golden_writer",
        "read_evaluation": "formats.ces.evaluation",
        "read_evaluations": "formats.ces.evaluation",
        "write_evaluation": "formats.ces.evaluation",
        "write_evaluations": "formats.ces.evaluation",
        "validate_evaluation": "formats.ces.evaluation",
        "update_request": "formats.ces.update",
        "update_evaluation": "integrations.ces.client",
        "import_request": "formats.ces.update",
        "import_evaluations": "integrations.ces.client",
        "get_evaluation": "integrations.ces.client",
        "list_evaluations": "integrations.ces.client",
        "Evaluation": "formats.ces.evaluation",
        "GoldenFile": "formats.ces.golden_reader",
    }
    """In the order of a reader's interest."""

    __getattr__, __dir__, __all__ = load_on_use(__name__, _HOMES)
