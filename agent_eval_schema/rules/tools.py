"""AE5: trajectories, the lists of tool calls."""

from agent_eval_schema.issues import Rule, Severity

_ROW = {"request": "Book a desk", "response": "Done."}
_CALL = {"tool_name": "book_desk", "tool_input": {"city": "Berlin"}}


def _rows(trajectory: object) -> tuple[dict[str, object], ...]:
    return ({**_ROW, "predicted_trajectory": trajectory},)


TRAJECTORY_SHAPE = Rule(
    "AE501",
    "trajectory-shape",
    Severity.ERROR,
    'give a list of calls: [{"tool_name": "...", "tool_input": {...}}]',
    "A trajectory is not a list of tool calls, or an entry of it is not one.",
    bad=_rows(_CALL),
    good=_rows([_CALL]),
)

MISSING_TOOL_NAME = Rule(
    "AE502",
    "missing-tool-name",
    Severity.ERROR,
    "add `tool_name`, the name of the tool as text",
    "A call has no tool_name, or one that is not text.\n\nTwo calls are compared by name first.",
    bad=_rows([{"tool_input": {"city": "Berlin"}}]),
    good=_rows([_CALL]),
)

TOOL_INPUT = Rule(
    "AE503",
    "tool-input",
    Severity.ERROR,
    "give the arguments as an object, or leave tool_input out for none",
    "A call's tool_input is not an object.",
    bad=_rows([{"tool_name": "book_desk", "tool_input": ["Berlin"]}]),
    good=_rows([_CALL]),
)

TOOL_CALL_KEY = Rule(
    "AE504",
    "tool-call-key",
    Severity.WARNING,
    "rename or drop the key; a call has tool_name and tool_input",
    "A call has a key that nobody reads.\n\nArguments under `args` are silently compared as none.",
    bad=_rows([{"tool_name": "book_desk", "args": {"city": "Berlin"}}]),
    good=_rows([_CALL]),
)

EMPTY_TRAJECTORY = Rule(
    "AE505",
    "empty-trajectory",
    Severity.WARNING,
    "fill it, or make it null if it is not known; the local scorers can define the score of an empty one",
    "A trajectory is an empty list.\n\nThe vendor's service refuses such a row, and the scores are undefined.",
    bad=_rows([]),
    good=_rows([_CALL]),
)
