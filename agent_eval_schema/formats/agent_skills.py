"""Agent Skills: the test cases of a skill, in `evals/evals.json`.

    {"skill_name": "csv-analyzer", "evals": [{"id": 1, "prompt": …, "expected_output": …, …}]}

    id                           request_id; whole numbers there
    prompt                       request
    expected_output              expected_response
    expectations (assertions)    guidelines: statements that a grader verifies
    files, skill_name            passed through

Source: the guide "Evaluating skill output quality" of agentskills.io (github.com/agentskills/agentskills), which called
the statements `assertions` before, and the schemas of the skill-creator (github.com/anthropics/skills).
"""

from collections.abc import Sequence
from itertools import count

from agent_eval_schema.formats.detection import Signs
from agent_eval_schema.formats.documents import CaseList
from agent_eval_schema.formats.format import CanonicalRow, Field, Format, Writer, Written, save_json
from agent_eval_schema.formats.shapes import as_text, has_entries, question, read_statements, write_statements


def _document(rows: Sequence[CanonicalRow]) -> Written:
    """The file of canonical rows; one without an ID gets a number that no other has."""
    taken = {row.get("request_id") for row in rows}
    free = (str(number) for number in count(1) if str(number) not in taken)
    named = [row if row.get("request_id") is not None else {**row, "request_id": next(free)} for row in rows]
    return _EVALS.document(named, AGENT_SKILLS)


_EVALS = CaseList(
    "evals",
    {"skill_name": "skill", "evals": []},
    text="prompt",
    mark="skill_name",
    detect=has_entries(("evals",), "prompt", marks=("skill_name",)),  # not a column of results
)

AGENT_SKILLS: Format = Format(
    name="agent-skills",
    title="Agent Skills",
    summary="test cases of an Agent Skill (evals.json): prompt, expected_output, expectations",
    also_read='`{"evals": [...]}` without `skill_name`; `assertions`, the former name of `expectations`',
    page="https://agentskills.io/skill-creation/evaluating-skills",
    signs=Signs(
        sure=(("skill_name", "prompt"),), never=frozenset({"request", "inputs"}), needs=("skill_name", "evals")
    ),
    fields=(
        Field("id", "request_id", as_text, lambda v: int(v) if v.isdecimal() and v == str(int(v)) else v),
        Field("prompt", "request", write=question),
        Field("expected_output", "expected_response"),
        Field("expectations", "guidelines", read_statements("expectations"), write_statements, others=("assertions",)),
    ),
    passthrough_columns=("skill_name", "files"),
    request_columns=("files",),
    nested=(_EVALS.nested,),
    writer=Writer(document=_document, save=save_json),
)
