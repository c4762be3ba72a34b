"""Amazon Bedrock AgentCore and Strands: scenarios of several turns, and cases.

    scenario_id                              session_id, request_id (#1, #2 … of several turns)
    turns[].input, turns[].expected_response request, expected_response
    expected_trajectory                      reference_trajectory, names of tools, on the last turn of the session
    assertions                               guidelines, on the last turn of the session
    metadata                                 tags

    {"cases": [{"name", "session_id", "input", "expected_output", "expected_trajectory", "metadata"}]}     Strands

A trajectory has only names: compare it by them. Sources: bedrock-agentcore 1.25.0 (`FileDatasetProvider`), the API of
AgentCore Evaluations (`referenceInputs`), strands-agents-evals (`Case`, `Experiment`).
"""

from collections.abc import Iterator, Sequence
from typing import Any

from agent_eval_schema.formats.detection import Signs, each_with
from agent_eval_schema.formats.documents import TURN, CaseList, Conversations, with_own_names
from agent_eval_schema.formats.examples import asked_in, rest_of
from agent_eval_schema.formats.format import Field, Format, Head, Row, Unfolded, Writer, lists_in, save_json
from agent_eval_schema.formats.shapes import (
    all_of,
    as_tags,
    as_text,
    entries_in,
    of_list,
    question,
    question_or_messages,
    read_statements,
    text_only,
    write_statements,
)
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules.reading import NOT_A_LIST
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.jsontext import structured

ASSERTIONS = "assertions"


def _read_names(value: Any) -> Any:
    """Names of tools, or calls, as a list or below `toolNames`."""
    parsed = structured(value)
    names = parsed.get("toolNames", parsed) if isinstance(parsed, dict) else parsed
    return of_list(_call)(names)


def _call(step: Any) -> Any:
    if isinstance(step, str):
        return {"tool_name": step}
    if isinstance(step, dict) and "tool_name" not in step and isinstance(step.get("name"), str):
        values = (structured(step.get(k)) for k in ("args", "arguments", "input"))
        arguments = next((value for value in values if isinstance(value, dict)), None)
        return {"tool_name": step["name"], **({} if arguments is None else {"tool_input": arguments})}
    return step


_write_names = of_list(lambda call: call["tool_name"])
_TURNS = Conversations(
    "turns",
    lambda turn: (turn.get("input"), turn.get("expected_response")),
    ("expected_trajectory", "expectedTrajectory", ASSERTIONS, "metadata"),
    "scenario_id",
    "expected_trajectory",
    lambda sessions: {"scenarios": with_own_names(sessions, "scenario_id", "scenario")},  # AgentCore requires an ID
)


def _has_scenarios(names: Sequence[str], head: Head) -> bool:
    """Whether there are scenarios, one per row or in a list, and not the rows of anybody else."""
    if "scenarios" not in names:
        return {"scenario_id", "turns"} <= set(names) and "turn" not in names
    scenarios = entries_in(head, "scenarios")
    if not scenarios:  # a file of scenarios of ADK may have none, too
        return [*head()] != [{"scenarios": []}]
    return any(not s.keys().isdisjoint(("scenario_id", "turns", "input", "actor_profile")) for s in scenarios)


def turns_of_scenarios(row: Row) -> Iterator[Unfolded]:
    """The turns of all scenarios; a simulated one has the input of its first turn."""
    scenarios = all_of(row.get("scenarios")) if "scenarios" in row else [row]
    beside = {k: v for k, v in row.items() if k != "scenarios"} if "scenarios" in row else {}
    for i, scenario in enumerate(scenarios):
        merged = {**beside, **(scenario if isinstance(scenario, dict) else {"input": scenario})}
        turns = structured(merged.get("turns"))
        if turns is not None and not isinstance(turns, list):
            message = f"expected a list of objects, got {describe(turns)}"
            path = f"scenarios[{i}].turns" if "scenarios" in row else "turns"
            yield {"scenario_id": None, "input": None}, (Finding(NOT_A_LIST, message, path=path),)
            continue
        if not turns:
            merged["turns"] = [{k: merged.pop(k) for k in ("input", "expected_response") if k in merged}]
        yield from _TURNS.unfold(merged)


AGENTCORE: Format = Format(
    name="agentcore",
    title="AgentCore",
    summary="scenarios of an AgentCore dataset: turns, assertions and the names of the expected tools",
    also_read='`{"scenarios": [...]}` and a scenario per line; simulated scenarios',
    page="https://docs.aws.amazon.com/bedrock-agentcore/latest/devguide/ground-truth-evaluations.html",
    truth_of=(
        "Each turn has its own `expected_response`. `expected_trajectory` and `assertions` are those of the session, "
        "and are on the row of its last turn: the trajectory is compared with the calls of all turns, in order."
    ),
    signs=Signs(
        sure=(("scenario_id", "input"), ("turn", "turns", "input")),
        never=frozenset({"request", "inputs"}),
        needs=("scenarios",),
    ),
    fields=(
        Field("scenario_id", "session_id", as_text),
        Field("input", "request", write=question),
        Field("expected_response", "expected_response"),
        Field("expected_trajectory", "reference_trajectory", _read_names, _write_names, ("expectedTrajectory",)),
        Field(ASSERTIONS, "guidelines", read_statements(ASSERTIONS), write_statements),
        Field("metadata", "tags", as_tags),
    ),
    passthrough_columns=("scenario_description", "actor_profile", "max_turns", "expectedTrajectory"),
    read_only_columns=TURN,
    read_rest=_TURNS.read_place,
    calls_of="session",
    nested=(
        lists_in(
            *("scenarios", "turns"), unfold=turns_of_scenarios, columns=("scenario_id", "input"), detect=_has_scenarios
        ),
    ),
    writer=Writer(document=lambda rows: _TURNS.document(rows, AGENTCORE), save=save_json),
)


def _write_assertion(guidelines: dict[str, list[str]]) -> str | None:
    texts = write_statements(guidelines)
    return texts[0] if len(texts) == 1 else "\n".join(texts) or None


_CASES = CaseList("cases", {"cases": [], "evaluators": []}, text="input", mark="expected_trajectory")

STRANDS: Format = Format(
    name="strands",
    title="Strands Evals",
    summary="cases of Strands Evals: input, expected_output, expected_trajectory",
    also_read='`{"cases": [...]}` and a case per line',
    page="https://strandsagents.com/latest/documentation/docs/user-guide/evals-sdk/quickstart/",
    signs=Signs(
        sure=each_with("input", "expected_trajectory", "expected_interactions", "expected_assertion"),
        never=frozenset({"request", "inputs", "scenario_id", "turn", "actual_output"}),
    ),
    fields=(
        Field("name", "request_id", as_text),
        Field("session_id", "session_id"),
        Field("input", "request", asked_in, question_or_messages),
        Field("expected_output", "expected_response", text_only),
        Field("expected_trajectory", "reference_trajectory", _read_names, _write_names),
        Field("expected_assertion", "guidelines", lambda v: {ASSERTIONS: [v]}, _write_assertion),
        Field("metadata", "tags", as_tags),
    ),
    passthrough_columns=(
        *("expected_interactions", "expected_environment_state", "evaluators", "retry_strategy"),
        *_CASES.of_document.values(),
    ),
    read_rest=rest_of("input", "expected_output")["read_rest"],
    nested=(_CASES.nested,),
    writer=Writer(document=lambda rows: _CASES.document(rows, STRANDS), save=save_json),
)
