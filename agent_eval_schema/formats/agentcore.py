"""Amazon Bedrock AgentCore and Strands: scenarios of several turns, and cases.

    scenario_id                              session_id
    turns[].input, turns[].expected_response request, expected_response
    expected_trajectory                      reference_trajectory, names of tools, on the last turn of the session
    assertions                               guidelines, on the last turn of the session
    metadata                                 tags

    {"cases": [{"name", "session_id", "input", "expected_output", "expected_trajectory", "metadata"}]}     Strands

A trajectory has only names: compare it by them. Sources: bedrock-agentcore 1.25.0 (`FileDatasetProvider`), the API of
AgentCore Evaluations (`referenceInputs`), strands-agents-evals (`Case`, `Experiment`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from agent_eval_schema.formats import catalog
from agent_eval_schema.formats.conversations import TURN, Conversations
from agent_eval_schema.formats.layout import Head, Row, Unfolded, as_tags, as_text, question, question_or_messages
from agent_eval_schema.formats.table import Entry, Table, all_of, text_or_chat
from agent_eval_schema.formats.writer import CanonicalRow, Writer, Written, save_json
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules.reading import NOT_A_LIST
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.jsontext import structured

ASSERTIONS = "assertions"


def _read_names(value: Any) -> Any:
    """Names of tools, or calls, as a list or below `toolNames`."""
    given = structured(value)
    names = given.get("toolNames", given) if isinstance(given, dict) else given
    if not isinstance(names, list):
        return names
    return [_call(name) for name in names]


def _call(step: Any) -> Any:
    if isinstance(step, str):
        return {"tool_name": step}
    if isinstance(step, dict) and "tool_name" not in step and isinstance(step.get("name"), str):
        given = next((step[k] for k in ("args", "arguments", "input") if isinstance(step.get(k), dict)), None)
        return {"tool_name": step["name"], **({} if given is None else {"tool_input": given})}
    return step


def _write_names(calls: list[dict[str, Any]]) -> list[str]:
    return [call["tool_name"] for call in calls]


def _read_assertions(value: Any) -> Any:
    given = structured(value)
    if not isinstance(given, list):
        return given
    texts = [a.get("text", a) if isinstance(a, dict) else a for a in given]
    return {ASSERTIONS: texts} if texts else None


def _write_assertions(guidelines: dict[str, list[str]]) -> list[str]:
    return [text for texts in guidelines.values() for text in texts]


def _said(turn: Row) -> tuple[Any, Any]:
    return turn.get("input"), turn.get("expected_response")


_OF_A_SESSION = ("expected_trajectory", ASSERTIONS, "metadata")

AGENTCORE = Table(
    about=catalog.AGENTCORE,
    page="https://docs.aws.amazon.com/bedrock-agentcore/latest/devguide/ground-truth-evaluations.html",
    entries=(
        Entry("scenario_id", "session_id", as_text),
        Entry("input", "request", write=question),
        Entry("expected_response", "expected_response"),
        Entry("expected_trajectory", "reference_trajectory", _read_names, _write_names, ("expectedTrajectory",)),
        Entry(ASSERTIONS, "guidelines", _read_assertions, _write_assertions),
        Entry("metadata", "tags", as_tags),
    ),
    never=frozenset({"request", "inputs"}),
    more=TURN,
    unkept=TURN,
    read_rest=lambda theirs, made: AGENTCORE_TURNS.read_history(theirs, made),
    own=frozenset({"scenario_description", "actor_profile", "max_turns", "expectedTrajectory"}),
)
AGENTCORE_TURNS: Conversations = Conversations(
    AGENTCORE, "turns", _said, _OF_A_SESSION, ("scenario_id",), lambda sessions: {"scenarios": _named(sessions)}
)


def _named(sessions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The scenarios, each with an ID of its own."""
    taken = {i for s in sessions if isinstance(i := s.get("scenario_id"), str)}
    for i, session in enumerate(sessions):
        name = f"scenario {i + 1}"
        while name in taken:
            name += "'"
        session.setdefault("scenario_id", name)
    return sessions


def has_scenarios(names: Sequence[str], _: Head) -> bool:
    """Whether there is a list of scenarios, or each row is one."""
    return "scenarios" in names or ({"scenario_id", "turns"} <= set(names) and "turn" not in names)


def turns_of_scenarios(row: Row) -> Iterator[Unfolded]:
    """The turns of all scenarios; a simulated one has the input of its first turn."""
    scenarios = all_of(row.get("scenarios")) if "scenarios" in row else [row]
    beside = {k: v for k, v in row.items() if k != "scenarios"} if "scenarios" in row else {}
    for i, scenario in enumerate(scenarios):
        given = {**beside, **(scenario if isinstance(scenario, dict) else {"input": scenario})}
        turns = structured(given.get("turns"))
        if turns is not None and not isinstance(turns, list):
            message = f"expected a list of objects, got {describe(turns)}"
            path = f"scenarios[{i}].turns" if "scenarios" in row else "turns"
            yield {"scenario_id": None, "input": None}, (Finding(NOT_A_LIST, message, path=path),)
            continue
        if not turns:
            first = {k: given.pop(k) for k in ("input", "expected_response") if k in given}
            given["turns"] = [first]
        yield from AGENTCORE_TURNS.unfold(given)


# ---------------------------------------------------------------------------------------------------------------------
# Strands
STRANDS = Table(
    about=catalog.STRANDS,
    page="https://strandsagents.com/latest/documentation/docs/user-guide/evals-sdk/quickstart/",
    entries=(
        Entry("name", "request_id", as_text),
        Entry("session_id", "session_id"),
        Entry("input", "request", text_or_chat, question_or_messages),
        Entry("expected_output", "expected_response"),
        Entry("expected_trajectory", "reference_trajectory", _read_names, _write_names),
        Entry("expected_assertion", "guidelines", lambda v: {ASSERTIONS: [v]}, lambda g: _one(_write_assertions(g))),
        Entry("metadata", "tags", as_tags),
    ),
    never=frozenset({"request", "inputs", "scenario_id", "turn", "actual_output"}),
    own=frozenset({"expected_interactions", "expected_environment_state", "evaluators", "retry_strategy"}),
)


def _experiment(rows: Sequence[CanonicalRow]) -> Written:
    write = STRANDS.layout.write
    names = STRANDS.own - {"evaluators"}
    own = [{k: value for k, value in row.items() if k in names and value is not None} for row in rows]
    evaluators = [structured(row.get("evaluators")) for row in rows]
    first = next(iter(evaluators), None)
    shared = first if first is not None and all(e == first for e in evaluators) else []
    made = {"cases": [{**write(row), **more} for row, more in zip(rows, own, strict=True)], "evaluators": shared}
    return Written(made, made, "strands", range(len(rows)))


STRANDS_WRITER = Writer(document=_experiment, save=save_json)


def _one(texts: list[str]) -> str | None:
    return texts[0] if len(texts) == 1 else "\n".join(texts) or None


def rows_of_experiment(row: Row) -> Iterator[Unfolded]:
    """The cases of an experiment."""
    beside = {k: v for k, v in row.items() if k != "cases" and v not in ([], {}, None)}
    for case in all_of(row.get("cases")):
        yield {"expected_trajectory": None, **beside, **(case if isinstance(case, dict) else {"input": case})}, ()
