"""AE5: trajectories, the lists of tool calls."""

from agent_eval_schema.issues import Rule, Severity
from agent_eval_schema.rules.pages import VERTEX_AGENTS

_ROW = {"request": "Book a desk", "response": "Done."}
_CALL = {"tool_name": "book_desk", "tool_input": {"city": "Berlin"}}


def _rows(trajectory: object) -> tuple[dict[str, object], ...]:
    return ({**_ROW, "predicted_trajectory": trajectory},)


TRAJECTORY_SHAPE = Rule(
    "AE501",
    "trajectory-shape",
    Severity.ERROR,
    "A trajectory is not a list of tool calls, or an entry is not a tool call.",
    why="Trajectory metrics compare tool calls one by one and cannot score any other value.",
    hint='Set a list of calls: `[{"tool_name": "...", "tool_input": {...}}]`.',
    url=VERTEX_AGENTS,
    bad=_rows(_CALL),
    good=_rows([_CALL]),
)

MISSING_TOOL_NAME = Rule(
    "AE502",
    "missing-tool-name",
    Severity.ERROR,
    "A tool call has no tool_name, or one that is not a string.",
    why="Tool calls are equal only if their names are equal.",
    hint="Add `tool_name`, the name of the tool as a string.",
    url=VERTEX_AGENTS,
    bad=_rows([{"tool_input": {"city": "Berlin"}}]),
    good=_rows([_CALL]),
)

TOOL_INPUT = Rule(
    "AE503",
    "tool-input",
    Severity.ERROR,
    "The tool_input of a tool call is not an object.",
    why="Arguments are compared by name; values without names cannot be compared.",
    hint="Set the arguments as an object, or omit `tool_input` if there are none.",
    url=VERTEX_AGENTS,
    bad=_rows([{"tool_name": "book_desk", "tool_input": ["Berlin"]}]),
    good=_rows([_CALL]),
)

TOOL_CALL_KEY = Rule(
    "AE504",
    "tool-call-key",
    Severity.WARNING,
    "A tool call has an unrecognized key.",
    why="Arguments under `args` are kept, but no metric reads them: the call is compared as one without arguments.",
    hint="Rename the key to `tool_name` or `tool_input` if it means one of them.",
    url=VERTEX_AGENTS,
    bad=_rows([{"tool_name": "book_desk", "args": {"city": "Berlin"}}]),
    good=_rows([_CALL]),
)

EMPTY_TRAJECTORY = Rule(
    "AE505",
    "empty-trajectory",
    Severity.WARNING,
    "A trajectory is an empty list.",
    why="The Vertex AI service rejects such a row, and the scores are undefined.",
    hint=(
        "Fill the trajectory, or set it to null if it is unknown; the local scorers can define the score of an "
        "empty one."
    ),
    url=VERTEX_AGENTS,
    bad=_rows([]),
    good=_rows([_CALL]),
)
