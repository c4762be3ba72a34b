"""AE5: trajectories, the lists of tool calls."""

from agent_eval_schema.rules.pages import VERTEX_AGENTS, Page

_ROW = {"request": "Book a desk", "response": "Done."}
_CALL = {"tool_name": "book_desk", "tool_input": {"city": "Berlin"}}


def _rows(trajectory: object) -> tuple[dict[str, object], ...]:
    return ({**_ROW, "predicted_trajectory": trajectory},)


_tool_page = Page(VERTEX_AGENTS, good=_rows([_CALL]))

TRAJECTORY_SHAPE = _tool_page.error(
    "AE501 trajectory-shape",
    "A trajectory is not a list of tool calls, or an entry is not a tool call.",
    why="Trajectory metrics compare tool calls one by one and cannot score any other value.",
    hint='Set a list of calls: `[{"tool_name": "...", "tool_input": {...}}]`.',
    bad=_rows(_CALL),
)

MISSING_TOOL_NAME = _tool_page.error(
    "AE502 missing-tool-name",
    "A tool call has no tool_name, or one that is not a string.",
    why="Tool calls are equal only if their names are equal.",
    hint="Add `tool_name`, the name of the tool as a string.",
    bad=_rows([{"tool_input": {"city": "Berlin"}}]),
)

TOOL_INPUT = _tool_page.error(
    "AE503 tool-input",
    "The tool_input of a tool call cannot be read or is not accepted.",
    why=(
        "Arguments are compared as JSON values. A lone value, such as the text of a tool with one argument, is read as "
        "that argument; Ragas and DeepEval accept an object only, MLflow an object or text, and Vertex AI drops a "
        "trajectory with a call that has no `tool_input`."
    ),
    hint="Set the arguments as an object: `{}` if there are none.",
    bad=_rows([{"tool_name": "book_desk", "tool_input": '{"city": "Ber'}]),
)

TOOL_CALL_KEY = _tool_page.warning(
    "AE504 tool-call-key",
    "A tool call has an unrecognized key.",
    why="Arguments under `args` are kept, but no metric reads them: the call is compared as one without arguments.",
    hint="Rename the key to `tool_name` or `tool_input` if it means one of them.",
    bad=_rows([{"tool_name": "book_desk", "args": {"city": "Berlin"}}]),
)

EMPTY_TRAJECTORY = _tool_page.warning(
    "AE505 empty-trajectory",
    "A trajectory is an empty list.",
    why="The Vertex AI service rejects such a row; the local metrics score it.",
    hint="Set the trajectory to null if it is unknown; keep the empty list if no tool was called.",
    bad=_rows([]),
)
