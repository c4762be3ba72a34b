# ruff: noqa: I001 - in the order of a reader's interest, which is that of `__all__` (runtime/lazy.py)
from agent_eval_schema.formats.ces.golden_reader import read_golden_csv as read_golden_csv
from agent_eval_schema.formats.ces.golden_writer import write_golden_csv as write_golden_csv
from agent_eval_schema.formats.ces.golden_writer import golden_csv_text as golden_csv_text
from agent_eval_schema.formats.ces.golden_writer import golden_template as golden_template
from agent_eval_schema.formats.ces.evaluation import read_evaluation as read_evaluation
from agent_eval_schema.formats.ces.evaluation import read_evaluations as read_evaluations
from agent_eval_schema.formats.ces.evaluation import write_evaluation as write_evaluation
from agent_eval_schema.formats.ces.evaluation import write_evaluations as write_evaluations
from agent_eval_schema.formats.ces.evaluation import validate_evaluation as validate_evaluation
from agent_eval_schema.formats.ces.update import update_request as update_request
from agent_eval_schema.integrations.ces.client import update_evaluation as update_evaluation
from agent_eval_schema.formats.ces.update import import_request as import_request
from agent_eval_schema.integrations.ces.client import import_evaluations as import_evaluations
from agent_eval_schema.integrations.ces.client import get_evaluation as get_evaluation
from agent_eval_schema.integrations.ces.client import list_evaluations as list_evaluations
from agent_eval_schema.formats.ces.evaluation import Evaluation as Evaluation
from agent_eval_schema.formats.ces.golden_reader import GoldenFile as GoldenFile
