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

from agent_eval_schema.runtime.lazy import load_on_use

__getattr__, __dir__, __all__ = load_on_use(__name__)
