"""What packages with formats, rules or metrics of their own import: stable by semantic versioning, as functions are.

    [project.entry-points."agent_eval_schema.formats"]      in pyproject.toml of the package
    help-desk = "help_desk:HELP_DESK"                       a module, and its `Format`
    [project.entry-points."agent_eval_schema.rules"]
    insecure-link = "help_desk:INSECURE_LINK"               its `RowRule`
    [project.entry-points."agent_eval_schema.metrics"]
    brevity = "help_desk:BREVITY"                           its `RowMetric`

Everything else below `agent_eval_schema` is private. The guide is docs/how-to/extend; `pytest
--agent-eval-schema-conformance` tests what is installed.
"""

from agent_eval_schema.formats.detection import Signs as Signs
from agent_eval_schema.formats.detection import each_with as each_with
from agent_eval_schema.formats.format import Field as Field
from agent_eval_schema.formats.format import Format as Format
from agent_eval_schema.formats.format import Nested as Nested
from agent_eval_schema.formats.format import Writer as Writer
from agent_eval_schema.formats.format import Written as Written
from agent_eval_schema.formats.format import lists_in as lists_in
from agent_eval_schema.formats.format import save_json as save_json
from agent_eval_schema.formats.format import save_lines as save_lines
from agent_eval_schema.formats.shapes import as_tags as as_tags
from agent_eval_schema.formats.shapes import as_text as as_text
from agent_eval_schema.formats.shapes import question as question
from agent_eval_schema.formats.shapes import question_or_messages as question_or_messages
from agent_eval_schema.formats.shapes import read_calls as read_calls
from agent_eval_schema.formats.shapes import read_context as read_context
from agent_eval_schema.formats.shapes import read_statements as read_statements
from agent_eval_schema.formats.shapes import read_texts as read_texts
from agent_eval_schema.formats.shapes import write_calls as write_calls
from agent_eval_schema.formats.shapes import write_statements as write_statements
from agent_eval_schema.formats.shapes import write_texts as write_texts
from agent_eval_schema.issues import Finding as Finding
from agent_eval_schema.issues import with_hint as with_hint
from agent_eval_schema.metrics.definitions import RowMetric as RowMetric
from agent_eval_schema.metrics.metric_info import MetricInfo as MetricInfo
from agent_eval_schema.rule import RowRule as RowRule
from agent_eval_schema.rule import Rule as Rule
from agent_eval_schema.rule import Severity as Severity
from agent_eval_schema.schema import Document as Document
from agent_eval_schema.schema import ToolCall as ToolCall
from agent_eval_schema.text.describe import describe as describe
from agent_eval_schema.text.jsontext import structured as structured

__all__ = [name for name in dir() if not name.startswith("_")]
