"""Google's Agent Development Kit: a turn of an evalset, or of the older test list, ⇄ our row.

    user_content | query                           the newest message; `history` gives those before it
    final_response | reference                     expected_response
    intermediate_data.tool_uses | expected_tool_use   reference_trajectory
    conversation_scenario.starting_prompt          the request of a case whose user is played by a model
    rubrics                                        guidelines, by their ids
    session_input                                  session_id, and tags app_name, user_id, state

`request_id` is the eval_id, and `<eval_id>#<turn>` where a case has several turns. Source: what
google-adk's own classes accept (the tests read and write with them).

The turns are made of the files (nested.py shows them) with what google-adk rejects of each; the values of its evalset
and its case are repeated on each turn.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, pairwise
from typing import Any

from msgspec.structs import replace

from agent_eval_schema.decoding import chat
from agent_eval_schema.formats.adk_schema import PART, SESSION, TURN, Found, inspect_value, snake_case
from agent_eval_schema.formats.azure import is_action_file
from agent_eval_schema.formats.ces.rows import numbered
from agent_eval_schema.formats.detection import Signs
from agent_eval_schema.formats.format import (
    Format,
    Head,
    Nested,
    Row,
    Unfold,
    Unfolded,
    Writer,
    Written,
    lists_in,
    save_json,
    with_ids,
)
from agent_eval_schema.formats.genai import CASES, OF_DATASET, OF_EVALSET, RESULTS, calls_in
from agent_eval_schema.formats.genai import OF_CASE as OF_GENAI_CASE
from agent_eval_schema.formats.shapes import all_in, as_tags, as_text, has_entries, read_calls, with_camel
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules import adk
from agent_eval_schema.rules.columns import MISSPELLED_COLUMN, UNKNOWN_COLUMN, UNREAD_TRUTH
from agent_eval_schema.rules.pages import ADK_EVALUATE
from agent_eval_schema.rules.tools import EMPTY_TRAJECTORY
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.jsontext import as_list, as_object, structured

_PLACE = ("eval_id", "turn", "turns", "history")
TURN_COLUMNS, LEGACY_COLUMNS = (*_PLACE, "user_content"), (*_PLACE, "query")
"""The columns by which turns are recognized; a file without any turn has them too."""

OF_SET, OF_CASE = "eval_set_", "eval_case_"
"""The prefix for a key of an evalset or a case that has another meaning in a row."""


def snake_keys(value: Mapping[str, Any]) -> dict[str, Any]:
    """Keys in snake_case: ADK reads and writes both spellings. In a table both may be columns, one of them null."""
    nulls = {snake_case(key): None for key in value}
    return nulls | {snake_case(key): v for key, v in value.items() if v is not None}


def is_evalset(names: Sequence[str], head: Head) -> bool:
    """An evalset, and no EvaluationDataset of Vertex AI, whose cases have a prompt and responses."""
    if not set(CASES) & set(names):
        return False
    cases = [c for row in head() for c in all_in(row, CASES)]
    if not cases:  # which both may be, without a key beside them
        return bool(set(names) - set(CASES)) and OF_DATASET.isdisjoint(names)
    first = next((c for c in cases if isinstance(c, dict)), {})
    return OF_GENAI_CASE.isdisjoint(first) or not {"conversation", "eval_id", "evalId"}.isdisjoint(first)


def is_test_list(names: Sequence[str], _: Head) -> bool:
    """Turns of a test list; `query` and `reference` are keys of others too."""
    return "query" in names and (not set(OF_TEST_LIST).isdisjoint(names) or set(names) == {"query", "reference"})


_ARE_SCENARIOS = has_entries(("scenarios",), *with_camel("starting_prompt"))

OF_TEST_LIST = ("expected_tool_use", "expected_intermediate_agent_responses")


def are_sessions(names: Sequence[str], head: Head) -> bool:
    """Sessions of the older evalset: the turns in `data` have a query."""
    return has_entries(("data",), "query")(names, head) and not is_action_file(names, head)


def turns_of_evalset(document: Mapping[str, Any]) -> Iterator[Unfolded]:
    """The turns of an evalset, of the cases under either spelling of the key. The issues of an evalset or a case are
    reported on its first turn. google-adk reads no cases under `evalCases`, so it has no issues for them."""
    findings = _by_turn(inspect_value(document))
    beside = {_own(OF_SET, k): v for k, v in document.items() if k not in CASES}
    # first those of `eval_cases`, whose issues have the numbers of its cases
    lists = [document[key] for key in CASES if key in document] or [None]
    cases = [case for fields in lists for case in (fields if isinstance(fields, list) else [fields])]
    for i, case in enumerate(cases):
        fields = snake_keys(case) if isinstance(case, dict) else {"conversation": case}
        of_case = {_own(OF_CASE, k): v for k, v in fields.items() if k not in ("eval_id", "conversation")}
        prompt = snake_keys(as_object(fields.get("conversation_scenario"))).get("starting_prompt")
        of_case["user_content"] = prompt and {"role": "user", "parts": [{"text": prompt}]}
        yield from _turns(fields.get("eval_id"), fields.get("conversation"), {**beside, **of_case}, findings, i)


def turns_of_session(session: Mapping[str, Any]) -> Iterator[Unfolded]:
    findings = _by_turn(inspect_value(session, SESSION))
    beside = {"query": None, **({"session_input": initial} if (initial := session.get("initial_session")) else {})}
    yield from _turns(session.get("name"), session.get("data"), beside, findings)


def turns_of_scenarios(document: Mapping[str, Any]) -> Iterator[Unfolded]:
    """The scenarios of a file of their own, by whose prompts their conversations start."""
    for scenario in map(_without_nulls, map(structured, as_list(document.get("scenarios")))):
        content = {"role": "user", "parts": [{"text": scenario.get("starting_prompt")}]}
        yield {**dict.fromkeys(_PLACE), "conversation_scenario": scenario, "user_content": content}, ()


def turns_of_result(document: Mapping[str, Any]) -> Iterator[Unfolded]:
    """The invocations of a result: what was expected, what the agent did, and the scores; those of the whole case are
    on its last one."""
    result = snake_keys(document)
    beside = {k: v for k, v in result.items() if k != "eval_case_results"}
    for case in _objects(result.get("eval_case_results")):
        session = {"session_input": {k: case[k] for k in ("session_id", "user_id") if case.get(k) is not None}}
        turns: list[dict[str, Any]] = []
        for invocation in _objects(case.get("eval_metric_result_per_invocation")):
            (actual,) = _objects([invocation.get("actual_invocation")]) or [{}]
            question = {"user_content": actual.get("user_content")}
            (expected,) = _objects([invocation.get("expected_invocation")]) or [question]
            scores = _scores(invocation.get("eval_metric_results"))
            turns.append({**expected, "actual_invocation": actual, "scores": scores})
        if turns:
            turns[-1]["scores"] = {**_scores(case.get("overall_eval_metric_results")), **turns[-1]["scores"]}
        yield from _turns(case.get("eval_id"), turns, {**beside, **session}, {})


def _objects(values: Any) -> list[dict[str, Any]]:
    return [snake_keys(value) for value in as_list(values) if isinstance(value, dict)]


def _scores(results: Any) -> dict[str, Any]:
    return {str(r.get("metric_name")): r["score"] for r in _objects(results) if r.get("score") is not None}


def _is_result(names: Sequence[str], _: Head) -> bool:
    return not set(RESULTS).isdisjoint(names) and not OF_EVALSET.isdisjoint(names)


def turns_of_test_list() -> Unfold:
    """The rows of a test list are the turns of one session, whatever the batches are."""
    before: deque[Any] = deque(maxlen=MOST_BEFORE)
    number = count(1)

    def turn_of(row: Mapping[str, Any]) -> Iterator[Unfolded]:
        place = {"eval_id": None, "turn": next(number), "history": list(before)}
        yield {**snake_keys(row), **place}, [*(finding for _, finding in inspect_value(row, TURN)), *_cut(place)]
        before.append(_messages_of(row))

    return turn_of


def _own(owner: str, key: str) -> str:
    return f"{owner}{key}" if key in _MEANS_ELSE else key


_MEANS_ELSE = frozenset((*COLUMNS, "creation_timestamp", "rubrics"))
"""Keys that a turn has too, and the canonical columns."""


_ByTurn = Mapping[tuple[int, int], Sequence[Finding]]
"""The findings of each turn, by the numbers of case and turn; those of a case are on its first turn."""


def _by_turn(defects: Iterable[Found]) -> _ByTurn:
    findings: dict[tuple[int, int], list[Finding]] = {}
    for place, finding in defects:
        numbers = {key: number for key, number in pairwise(place[:4]) if isinstance(number, int)}
        turn = numbers.get("conversation", numbers.get("data", 0))
        findings.setdefault((numbers.get("eval_cases", 0), turn), []).append(finding)
    return findings


def _turns(eval_id: Any, conversation: Any, beside: Row, findings: _ByTurn, case: int = 0) -> Iterator[Unfolded]:
    """The turns of one conversation; an invalid one is a single row, with the columns of its case."""
    turns = conversation if isinstance(conversation, list) and conversation else [{}]
    history = list(map(_messages_of, turns))
    for i, turn in enumerate(turns):
        own = turn if isinstance(turn, dict) else {"user_content": turn}
        before = history[max(0, i - MOST_BEFORE) : i]
        place = {"eval_id": eval_id, "turn": i + 1, "turns": len(turns), "history": before}
        yield {**beside, **snake_keys(own), **place}, [*findings.get((case, i), ()), *_cut(place)]


def _messages_of(turn: Any) -> chat.Messages:
    """What later turns read of a turn: the question and the answer, not what the agent did."""
    question, answer = _texts_of_turn(turn)
    messages = [] if question is None else [{"role": "user", "content": question}]
    return [*messages, {"role": "assistant", "content": answer}] if isinstance(answer, str) else messages


MOST_BEFORE = 100
"""The turns before its own that a row repeats: without a limit a file grows by the square of its turns when read."""


def _cut(turn: Mapping[str, Any]) -> Iterator[Finding]:
    before = turn["turn"] - 1
    if before > MOST_BEFORE:
        message = f"expected at most {MOST_BEFORE} turns before, got {before:,}: the request has the last {MOST_BEFORE}"
        yield Finding(adk.LONG_CONVERSATION, message, "request")


COLUMNS_OF_A_TURN = (
    *("eval_id", "turn", "turns", "history", "user_content", "final_response", "intermediate_data", "session_input"),
    *("eval_case_rubrics", "rubrics", "query", "expected_tool_use", "reference", "actual_invocation", "scores"),
)

IDS_OF_A_FILE = ("eval_set_id", "eval_set_result_id", "eval_set_result_name")
OF_A_SET = ("name", "description", "eval_set_creation_timestamp")
OF_A_CASE = ("final_session_state", "eval_case_creation_timestamp")
OF_A_TURN = ("invocation_id", "creation_timestamp", "duration", "model_duration", "tool_duration", "app_details")


def _read_turn(source: Row, row: dict[str, Any]) -> None:
    question, row["expected_response"] = _texts_of_turn(source)
    if question is not None:
        turns = as_list(source.get("history"))  # the messages of each; or, in a table of the user, what a turn is
        before = [message for turn in turns for message in (turn if isinstance(turn, list) else _messages_of(turn))]
        row["request"] = {"messages": [*before, {"role": "user", "content": question}]}
    row["reference_trajectory"] = _calls(_without_nulls(source))
    if isinstance(actual := source.get("actual_invocation"), dict):
        row["response"], row["predicted_trajectory"] = _texts_of_turn(actual)[1], _calls(_without_nulls(actual))
        row["custom_expected"] = {"scores": scores} if (scores := source.get("scores")) else None
    # no ID is made for a case without one, as the turns of several such cases would share it
    eval_id, place = source.get("eval_id"), source.get("turn")
    is_named = isinstance(eval_id, str | int) and not isinstance(eval_id, bool)
    is_turn = is_named and place is not None and source.get("turns") != 1
    row["request_id"] = f"{eval_id}#{place}" if is_turn else eval_id
    rubrics = [*as_list(source.get("eval_case_rubrics")), *as_list(source.get("rubrics"))]
    row["guidelines"] = _guidelines(rubrics)
    row[RUBRICS] = rubrics or None
    session = source.get("session_input")
    if isinstance(session, dict):
        session = snake_keys(session)
        row["session_id"] = session.get("session_id")
        row["tags"] = as_tags({k: session[k] for k in ("app_name", "user_id", "state") if session.get(k)}) or None


RUBRICS = "adk_rubrics"
"""The column of the rubrics as they came, with their types: a metric of ADK reads those of its type only."""


def _guidelines(rubrics: Sequence[Any]) -> dict[str, list[Any]] | None:
    named: dict[str, list[Any]] = {}
    for rubric in rubrics:
        read = snake_keys(as_object(rubric))
        text = snake_keys(as_object(read.get("rubric_content"))).get("text_property")
        name, mark, number = str(read.get("rubric_id")).rpartition("#")
        name = name if mark and name in named and number.isdecimal() else f"{name}{mark}{number}"
        named.setdefault(name, []).extend([] if text is None else [text])
    return named or None


def _texts_of_turn(turn: Any) -> tuple[Any, Any]:
    """The question and the answer of an invocation of an evalset, or of an entry of a test list."""
    turn = _without_nulls(turn) if isinstance(turn, Mapping) else {}
    content = turn.get("final_response")
    answer = _joined(_parts_of(content)) if isinstance(content, dict) else content
    return turn.get("query", _content(turn.get("user_content"))), turn.get("reference", answer)


def _calls(turn: Row) -> Any:
    if "expected_tool_use" in turn:
        return read_calls("tool_name", "tool_input")(turn["expected_tool_use"])
    data = turn.get("intermediate_data")
    if not isinstance(data, dict):
        return None
    data = _without_nulls(data)  # `{}` as google-adk writes it for no call
    if "tool_uses" in data:
        return read_calls("name", "args")(data["tool_uses"])
    events = data.get("invocation_events") or []
    return calls_in(events) if isinstance(events, list) else None


def _content(content: Any) -> Any:
    """A Content {parts, role} as the content of a message: text, or parts if there is more than text."""
    if not isinstance(content, dict):
        return content
    parts = _parts_of(content)
    if all(isinstance(p, dict) and p.keys() <= {"text"} for p in parts):
        return _joined(parts)
    return [{"type": "text" if "text" in p else next(iter(p)), **p} if isinstance(p, dict) else p for p in parts if p]


def _parts_of(content: Row) -> list[Any]:
    return list(map(_without_nulls, as_list(snake_keys(content).get("parts"))))


def _without_nulls(part: Any) -> Any:
    """A part as google-genai writes it may hold every possible key, all null but one; so may a row of a table."""
    return {k: v for k, v in snake_keys(part).items() if v is not None} if isinstance(part, Mapping) else part


def _joined(parts: Iterable[Any]) -> str | None:
    """The texts of parts as google-adk joins them."""
    texts = [p["text"] for p in parts if isinstance(p, dict) and isinstance(p.get("text"), str)]
    return "\n".join(text for text in texts if text) if texts else None


def _evalset(rows: Sequence[Row]) -> Written:
    """An evalset of canonical rows, and the number of each row's turn among all turns in it.

    Rows `x#1`, `x#2`, … that follow each other are the turns of the case `x`. Any other row is a case of its own, whose
    earlier messages are turns before the row's.
    """
    cases: list[dict[str, Any]] = []
    rubrics: list[list[tuple[dict[str, Any], list[Any]]]] = []  # of each case, its own turns with theirs
    turns: list[int] = []
    count = 0
    rows = with_ids(rows)
    for i, row in enumerate(rows):
        name, number = numbered(row)
        turn = 1 if number is None else number
        follows = turn > 1 and bool(cases) and cases[-1]["eval_id"] == name
        if follows and len(cases[-1].get("conversation", ())) == turn - 1:
            cases[-1]["conversation"].append(_invocation(row, len(_messages(rows[i - 1]))))
            count += 1
        else:
            first = turn == 1 and i + 1 < len(rows) and numbered(rows[i + 1]) == (name, 2)
            identity = (name if first else None) or row["request_id"]
            cases.append(_new_case(identity, row, [] if first else _history(row)))
            rubrics.append([])
            count += len(cases[-1].get("conversation", (row,)))  # a scenario is read as one row
        rubrics[-1].append((cases[-1].get("conversation", cases[-1:])[-1], _rubrics(row)))
        turns.append(count - 1)
    for case, of_turns in zip(cases, rubrics, strict=True):
        shared = of_turns[0][1]  # rubrics that all turns share are those of the case
        are_shared = all(own == shared for _, own in of_turns)
        for owner, own in [(case, shared)] if are_shared else of_turns:
            owner.update({"rubrics": own} if own else {})
    set_id = next((row["eval_set_id"] for row in rows if isinstance(row.get("eval_set_id"), str)), "evalset")
    of_set = _carried(rows[0], OF_A_SET, OF_SET) if rows else {}
    document = {"eval_set_id": set_id, **of_set, "eval_cases": cases}
    return Written(document, document, "adk", turns)


def _rubrics(row: Row) -> list[Any]:
    """The rubrics as they came, or one per guideline; ADK requires distinct IDs, and ignores one without a type."""
    guidelines, own = row.get("guidelines") or {}, row.get(RUBRICS)
    if isinstance(own, list) and (_guidelines(own) or {}) == guidelines:
        return own
    return [
        {
            "rubric_id": name if number == 1 else f"{name}#{number}",
            "rubric_content": {"text_property": text},
            "type": "FINAL_RESPONSE_QUALITY",
        }
        for name, texts in guidelines.items()
        for number, text in enumerate(texts, 1)
    ]


def _carried(row: Row, names: Sequence[str], owner: str = "") -> Row:
    """The values of these in a row that comes from an evalset, without the name of the owner. In any other row the same
    names may have another meaning."""
    of_adk = row.get("eval_set_id") is not None
    return {n.removeprefix(owner): row[n] for n in names if of_adk and row.get(n) is not None}


def _new_case(eval_id: str, row: Row, before: list[dict[str, Any]]) -> dict[str, Any]:
    scenario = _carried(row, ("conversation_scenario",))  # which a case has in place of a conversation
    case: dict[str, Any] = {"eval_id": eval_id, **(scenario or {"conversation": [*before, _invocation(row)]})}
    case |= _carried(row, OF_A_CASE, OF_CASE)
    tags = row.get("tags") or {}
    if row.get("session_id") or tags.keys() & {"app_name", "user_id", "state"}:
        state = jsontext.parse_leniently(tags["state"]) if tags.get("state") else {}
        case["session_input"] = {
            "app_name": tags.get("app_name") or "app",
            "user_id": tags.get("user_id") or "user",
            **({"session_id": row["session_id"]} if row.get("session_id") else {}),
            "state": state if isinstance(state, dict) else {},
        }
    return case


def _invocation(row: Row, start: int = 0) -> dict[str, Any]:
    """The row's own turn: its messages from `start` on, as far as they are one invocation, and the ground truth."""
    messages = (_invocations(_messages(row)[start:]) or [[]])[-1]
    calls = row.get("reference_trajectory")
    uses = None if calls is None else [{"name": c["tool_name"], "args": c["tool_input"]} for c in calls]
    return _turn(messages, row.get("expected_response"), uses, _carried(row, OF_A_TURN))


def _turn(messages: Sequence[Any], answer: Any, uses: Any, others: Row) -> dict[str, Any]:
    turn: dict[str, Any] = {"user_content": _question(messages), **others}
    if answer is not None:
        turn["final_response"] = _to_content(answer, "model")
    data = {} if uses is None else {"tool_uses": uses}
    responses, tools = [], chat.tools_of_calls(messages)
    for message in messages:
        if message["role"] == "tool":
            value = jsontext.parse_leniently(text) if isinstance(text := message.get("content"), str) else text
            call = message.get("tool_call_id")
            own = {"id": call, "name": message.get("name") or tools.get(str(call))}
            response = {k: v for k, v in own.items() if isinstance(v, str)}
            responses.append({**response, "response": value if isinstance(value, dict) else {"output": value}})
    if responses:
        data["tool_responses"] = responses
    return {**turn, "intermediate_data": data} if data else turn


def _invocations(messages: Sequence[Any]) -> list[list[Any]]:
    """The messages from each question to the next: messages of the user without an answer between them are one, and a
    tool's response is part of it. (Two invocations would ask the agent twice.)"""
    invocations: list[list[Any]] = []
    for message in messages:
        if message["role"] == "user" and (not invocations or invocations[-1][-1]["role"] != "user"):
            invocations.append([])
        if invocations and message["role"] in ("user", "assistant", "tool"):
            invocations[-1].append(message)
    return invocations


def _question(messages: Sequence[Any]) -> dict[str, Any]:
    contents = [m.get("content") for m in messages if m["role"] == "user"]
    # a message that only sets variables of a session, as one of CES may, has no words of the user
    spoken = [
        c for c in contents if not isinstance(c, list) or not c or any(part.get("type") != "variables" for part in c)
    ]
    first, *more = spoken or contents or [""]
    content = _to_content(first, "user")
    content["parts"] += [part for c in more for part in _to_content(c, "user")["parts"]]
    return content


def _messages(row: Row) -> list[Any]:
    """The messages of a row; none, if it lost its request in another format."""
    return row["request"]["messages"] if row["request"] is not None else []


def _history(row: Row) -> list[dict[str, Any]]:
    """The messages before the last question as turns of their own: a question, the calls of tools, and the answer."""
    turns: list[dict[str, Any]] = []
    for messages in _invocations(_messages(row))[:-1]:
        answers = [chat.join_text(m.get("content")) for m in messages if m["role"] == "assistant"]
        texts = [text for text in answers if isinstance(text, str) and text]
        uses = [{"name": name, "args": args or {}} for name, args in chat.read_tool_calls(messages)]
        turns.append(_turn(messages, texts[-1] if texts else None, uses or None, {}))
    return turns


def _to_content(content: Any, role: str) -> dict[str, Any]:
    if isinstance(content, list):
        return {"role": role, "parts": [_to_part(p) for p in content]}
    return {"role": role, "parts": [{"text": content or ""}]}


def _to_part(part: Any) -> dict[str, Any]:
    """A part of a message as google-genai takes it: as it is, an image of OpenAI's chat as media, else its JSON."""
    own = {k: v for k, v in part.items() if k != "type"} if isinstance(part, dict) else {}
    if own and not inspect_value(own, PART):
        return own
    image = own.get("image_url")
    url = image.get("url") if isinstance(image, dict) else image
    if not isinstance(url, str):
        return {"text": jsontext.encode_text(part)}
    kind, mark, data = url.removeprefix("data:").partition(";base64,")
    is_inline = mark and url.startswith("data:")
    media: Row = {"inline_data": {"mime_type": kind, "data": data}} if is_inline else {"file_data": {"file_uri": url}}
    return {"text": jsontext.encode_text(part)} if is_inline and inspect_value(media, PART) else dict(media)


def _one_session(rows: Sequence[Row]) -> Written:
    """The older test list, which is one session with a turn a row; and the numbers of the rows' turns."""
    turns = []
    for row in rows:
        questions = (m.get("content") for m in reversed(_messages(row)) if m["role"] == "user")
        question = as_text(chat.join_text(next(questions, "")) or "")
        turn = {"query": question, "expected_tool_use": row["reference_trajectory"] or []}
        turns.append(turn if row["expected_response"] is None else {**turn, "reference": row["expected_response"]})
    return Written(turns, turns, "adk-legacy", range(len(turns)))


def _adapt_issue(finding: Finding) -> Finding | None:
    """An empty list of expected calls means that no tool is to be called; unknown keys are reported by their place in
    the file."""
    expects_none = finding.rule is EMPTY_TRAJECTORY and finding.column == "reference_trajectory"
    return None if expects_none or finding.rule in (MISSPELLED_COLUMN, UNKNOWN_COLUMN, UNREAD_TRUTH) else finding


ADK = Format(
    name="adk",
    title="Google ADK (evalsets)",
    summary="turns of an evalset of Google's Agent Development Kit",
    page=ADK_EVALUATE,
    truth_of="Each turn has its own answer and tool calls; the rubrics of a case belong to each of its turns.",
    signs=Signs(sure=(("turn", "history", "user_content"),), needs=("eval_cases",)),
    # other parts of an evalset: they are passed through, and written back into an evalset
    passthrough_columns=("conversation_scenario", RUBRICS, *IDS_OF_A_FILE, *OF_A_SET, *OF_A_CASE, *OF_A_TURN),
    read_rest=_read_turn,
    extra_columns=COLUMNS_OF_A_TURN,
    originals=(),
    instead_of_response=(),
    adapt_issue=_adapt_issue,
    also_read="`*.evalset_result.json`, files of scenarios",
    nested=(
        Nested(is_evalset, turns_of_evalset, parts=CASES, columns=TURN_COLUMNS),
        # of a simulated user; those of AgentCore have turns
        lists_in("scenarios", unfold=turns_of_scenarios, columns=TURN_COLUMNS, detect=_ARE_SCENARIOS),
        lists_in(*RESULTS, unfold=turns_of_result, columns=TURN_COLUMNS, detect=_is_result),
    ),
    writer=Writer(document=_evalset, save=save_json),
)
ADK_LEGACY = replace(
    ADK,
    name="adk-legacy",
    title="Google ADK (test files)",
    summary="turns of an older test list of the ADK",
    signs=Signs(sure=(("turn", "history", "query"),), needs=("query", "expected_tool_use")),
    passthrough_columns=("expected_intermediate_agent_responses",),
    nested=(
        Nested(is_test_list, turns_of_test_list, parts=OF_TEST_LIST, columns=LEGACY_COLUMNS, counts=True),
        Nested(are_sessions, turns_of_session, parts=("data", "initial_session"), columns=LEGACY_COLUMNS),
    ),
    writer=Writer(document=_one_session, save=save_json),
)
