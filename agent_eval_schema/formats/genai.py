"""The Gen AI evaluation service of Vertex AI: rows and cases of an EvaluationDataset.

    instruction, history, prompt       request: the instruction of the system, the turns before, the question
    response, reference                response, expected_response
    context                            retrieved_context, one text
    intermediate_events                predicted_trajectory: the function calls, in order
    reference_trajectory               reference_trajectory: calls, or contents with function calls
    rubric_groups                      guidelines
    {"eval_cases": [...]}              a row per case
    {"agent_data": {"turns": [...]}}   a row per question, as one session
    starting_prompt, user_scenario     request: the first question of a simulated user
    {"request": {"contents": [...]}}   a request of the Gemini API and its response

Text may be a Content: `{"role": "model", "parts": [{"text": …}]}`. Keys may be in camelCase. Source:
google-cloud-aiplatform 2.7.0 (`vertexai._genai.types`, `_evals_data_converters`).
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent_eval_schema.decoding import chat
from agent_eval_schema.formats.adk_schema import snake_case
from agent_eval_schema.formats.ces.schema import part_at
from agent_eval_schema.formats.detection import Signs, each_with
from agent_eval_schema.formats.documents import CaseList, shared_values, with_truth
from agent_eval_schema.formats.format import Field, Format, Head, Nested, Row, Unfolded, Writer, lists_in
from agent_eval_schema.formats.shapes import (
    all_in,
    all_of,
    as_text,
    objects_of,
    read_context,
    text_only,
    with_camel,
    write_context,
)
from agent_eval_schema.issues import Finding, with_hint
from agent_eval_schema.rules.requests import MISSING_REQUEST
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.jsontext import as_object, structured, without_null


def _parts_of(content: Any) -> list[dict[str, Any]]:
    parts = all_of(as_object(structured(content)).get("parts"))
    return [{snake_case(k): v for k, v in p.items() if v is not None} for p in parts if isinstance(p, dict)]


def _text_of(value: Any) -> Any:
    """The text of a Content or of a response that contains one; other values as they are."""
    content = structured(value)
    if not isinstance(content, dict):
        return value
    for name in ("content", "response"):
        if isinstance(content.get(name), dict):
            return _text_of(content[name])
    candidates = all_of(content.get("candidates"))
    if candidates:
        return _text_of(candidates[0])
    texts = [p["text"] for p in _parts_of(content) if isinstance(p.get("text"), str)]
    if texts:
        return "".join(texts)
    return None if "parts" in content else value


def calls_in(contents: Any) -> list[dict[str, Any]]:
    """The function calls in a list of contents, or of events that have one."""
    items = [item.get("content", item) for item in all_of(contents) if isinstance(item, dict)]
    calls = [part.get("function_call") for content in items for part in _parts_of(content)]
    named = [call for call in calls if isinstance(call, dict) and "name" in call]
    return [{"tool_name": call["name"], "tool_input": call.get("args") or {}} for call in named]


def _content(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "parts": [{"text": text}]}


def _read_expected(value: Any) -> Any:
    content = structured(value)
    if isinstance(content, list) and any(_parts_of(c) for c in content):
        return calls_in(content)
    return content


def _write_events(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    parts = [{"function_call": {"name": c["tool_name"], "args": c["tool_input"] or {}}} for c in calls]
    return [{"author": "agent", "content": {"role": "model", "parts": [part]}} for part in parts]


_HISTORY = ("conversation_history", "history")
_INSTRUCTION = ("instruction", "system_instruction")


def _read_request(source: Row, row: dict[str, Any]) -> None:
    if scores := structured(source.get("scores")):
        row["custom_expected"] = {"scores": scores}
    question = row.get("request")
    before = [m for c in _first(source, _HISTORY, list) for m in _message(c)]
    instruction = _first(source, _INSTRUCTION, str | dict)
    system = [{"role": "system", "content": text}] if isinstance(text := _text_of(instruction), str) and text else []
    if isinstance(question, str) and (before or system):
        row["request"] = {"messages": [*system, *before, {"role": "user", "content": question}]}


def _first(source: Row, names: Sequence[str], kind: Any) -> Any:
    values = (structured(source.get(name)) for name in names)
    return next((value for value in values if value and isinstance(value, kind)), ())


def _message(entry: Any) -> Iterator[Any]:
    """A turn of a history: a Content, or an object that has one beside its author; another value as it is."""
    if not isinstance(entry, dict):
        yield entry
        return
    content = entry.get("content", entry)
    text = _text_of(content) if isinstance(content, dict) else content
    role = (content.get("role") if isinstance(content, dict) else None) or entry.get("author") or entry.get("role")
    parts = _parts_of(content)
    if any("function_call" in part or "function_response" in part for part in parts):
        for message in chat.of_parts({"role": "user" if role == "user" else "model", "parts": parts}) or ():
            for call in message.get("tool_calls", ()):
                call.setdefault("id", call["function"]["name"])  # as a result without an ID is that of the name
            result = structured(message["content"]) if message["role"] == "tool" else None
            own = result.get(_RESULT) if isinstance(result, dict) and len(result) == 1 else None
            yield {**message, "content": own} if isinstance(own, str) else message
    elif isinstance(text, str):
        yield {"role": "user" if role == "user" else "assistant", "content": text}


_RESULT = "result"
"""The key of the result of a function that is a text: a response of the API is an object."""


def _write_request(row: Row, written: dict[str, Any]) -> None:
    messages = list((row.get("request") or {}).get("messages", ()))
    if messages and messages[0]["role"] == "system" and isinstance(messages[0].get("content"), str):
        written["instruction"] = messages.pop(0)["content"]
    questions = [(i, chat.join_text(m.get("content"))) for i, m in enumerate(messages) if m["role"] == "user"]
    last, prompt = next((q for q in reversed(questions) if isinstance(q[1], str) and q[1]), (None, ""))
    if last is None:  # the class requires a text
        return
    written["prompt"] = prompt
    tools = chat.tools_of_calls(messages)
    before = [c for c in (_as_turn(message, tools) for message in messages[:last]) if c is not None]
    if before:
        written["history"] = before


def _as_turn(message: Row, tools: Mapping[str, str]) -> dict[str, Any] | None:
    """A message of a history as a Content; None if it has no place there."""
    role, text = message["role"], chat.join_text(message.get("content"))
    if role == "tool":
        own, response = message.get("tool_call_id"), structured(text)
        name = tools.get(str(own)) or message.get("name") or own
        result = {"id": own, "name": name, "response": response if isinstance(response, dict) else {_RESULT: text}}
        return {"role": "user", "parts": [{"function_response": without_null(result)}]}
    calls = message.get("tool_calls") or () if role == "assistant" else ()
    parts = [
        {"function_call": without_null({"id": call.get("id"), "name": name, "args": arguments or {}})}
        for call in calls
        for name, arguments in chat.read_tool_calls([{"tool_calls": [call]}])
    ]
    if isinstance(text, str) and (text or not parts):
        parts.insert(0, {"text": text})
    return {"role": _ROLES[role], "parts": parts} if role in _ROLES and parts else None


_ROLES = {"user": "user", "assistant": "model"}


def _read_rubrics(value: Any) -> Any:
    groups = structured(value)
    if not isinstance(groups, dict):
        return groups
    result = {}
    for name, group in groups.items():
        rubrics = group.get("rubrics") if isinstance(group, dict) else group
        texts = [part_at(rubric, "content.property.description") for rubric in all_of(rubrics)]
        result[name] = [text for text in texts if text is not None]
    return {name: texts for name, texts in result.items() if texts} or None


def _write_rubrics(guidelines: dict[str, list[str]]) -> dict[str, Any]:
    return {
        name: {"rubrics": [{"content": {"property": {"description": text}}} for text in texts]}
        for name, texts in guidelines.items()
    }


def _snake(value: Any) -> dict[str, Any]:
    return {snake_case(k): v for k, v in value.items()} if isinstance(value, dict) else {}


def _is_dataset(names: Sequence[str], head: Head) -> bool:
    """An EvaluationDataset: cases with a prompt or responses; those of an evalset of ADK have a conversation."""
    if not set(CASES) & set(names):
        return False
    cases = [_snake(structured(c)) for row in head() for c in all_in(row, CASES)]
    if not cases:
        return FRAME not in names and not OF_DATASET.isdisjoint(names)
    case = next((c for c in cases if c), {})
    return not case.keys().isdisjoint(OF_CASE) and case.keys().isdisjoint({"conversation", "eval_id"})


CASES = with_camel("eval_cases")
"""The keys of the list of cases: a dataset may have both."""


FRAME = "eval_dataset_df"
"""The key of the rows of a dataset that was made of a DataFrame, in place of cases."""

OF_CASE = frozenset(
    with_camel(
        *("prompt", "responses", "agent_data", "reference", "intermediate_events", "user_scenario"),
        *("starting_prompt", "interactions_data_source"),
    )
)
"""Keys by which a case of an EvaluationDataset is known."""

OF_DATASET = OF_CASE.union(with_camel(FRAME, "candidate_name", "bigquery_source", "gcs_source"))
"""Keys beside its cases by which an EvaluationDataset is known."""


def rows_of_dataset(row: Row) -> Iterator[Unfolded]:
    """A row per case, or per turn of its agent data."""
    beside = {k: v for k, v in row.items() if k not in CASES}
    for case in map(structured, all_in(row, CASES)):
        yield from rows_of_agent_data({**beside, **(_snake(case) or {"prompt": case})})


def _is_result(names: Sequence[str], _: Head) -> bool:
    """An EvaluationResult, also as `agents-cli eval grade` writes it; that of ADK names its evalset."""
    return not set(RESULTS).isdisjoint(names) and OF_EVALSET.isdisjoint(names)


RESULTS = with_camel("eval_case_results")
OF_EVALSET = frozenset(with_camel("eval_set_id"))


def _rows_of_result(document: Row) -> Iterator[Unfolded]:
    """The rows of the cases with the scores of each response; a case of several turns has them on its last one."""
    result = _snake(document)
    if result.get("eval_case_results") is None:  # a row beside results
        yield from rows_of_agent_data(result)
        return
    datasets = [_snake(structured(d)) for d in all_of(structured(result.get("evaluation_dataset")))]
    for place, entry in enumerate(map(_snake, all_of(result.get("eval_case_results")))):
        case = entry.get("eval_case_index")
        case = case if isinstance(case, int) else place
        for index, candidate in enumerate(map(_snake, all_of(entry.get("response_candidate_results")) or [None])):
            index = candidate["response_index"] if isinstance(candidate.get("response_index"), int) else index
            # with several candidates there is a dataset for each, else a case has several responses
            dataset = datasets[index if 0 <= index < len(datasets) else 0] if datasets else {}
            cases = all_in(dataset, CASES) or all_of(structured(dataset.get(FRAME)))
            row = _snake(structured(cases[case])) if 0 <= case < len(cases) else {}
            responses = all_of(row.get("responses"))
            row |= {"responses": responses[index : index + 1]} if 0 <= index < len(responses) else {}
            *before, (last, unread) = rows_of_agent_data({**row, "candidate_name": dataset.get("candidate_name")})
            yield from before
            metrics = candidate.get("metric_results")
            entries = metrics.items() if isinstance(metrics, dict) else ()
            scores = {name: m["score"] for name, m in entries if isinstance(m, dict) and m.get("score") is not None}
            yield {**last, "scores": scores or None}, unread


def _has_agent_data(names: Sequence[str], head: Head) -> bool:
    return bool({"agent_data", "agentData"} & set(names)) and any(_turns_of(_snake(row)) for row in head())


def _turns_of(row: Mapping[str, Any]) -> Sequence[Any]:
    return all_of(_snake(structured(row.get("agent_data"))).get("turns"))


def rows_of_agent_data(row: Row) -> Iterator[Unfolded]:
    """A row per question: what the agent did until the next one, and the events before it as history. The first
    question is the prompt of the case if no event of the user comes first. Ground truth is on the last row."""
    case = _snake(row)
    turns: list[_Turn] = []
    for place, turn in enumerate(_turns_of(case)):
        written = _snake(structured(turn)).get("events")
        listed, unread = objects_of([] if written is None else written, f"agent_data.turns[{place}].events")
        events = [_snake(structured(event)) for event in listed]
        if turns and events and not any(map(_is_question, events)):  # the results of functions, or more of the agent
            turns[-1][0].extend(events)
            turns[-1][1].extend(unread)
        else:
            turns.append((events, unread))
    if not turns:
        yield {"intermediate_events": None, **case}, ()
        return
    original = {k: v for k, v in case.items() if k not in _OF_DATASET}
    truth = {name: case.pop(name) for name in [*case] if name in _OF_LAST}
    rows = list(with_truth(_rows_of_turns(case, turns), truth))
    if dataset_of([_filled(row) for row, _ in rows])["eval_cases"] != [without_null(original)]:
        rows[-1][0][ORIGINAL] = original
    yield from rows


_OF_LAST = frozenset({"reference", "reference_trajectory", "rubric_groups", "responses", "context"})
"""Keys of a case that are about its last response: the reference and the responses by the documentation of `EvalCase`;
the trajectory and the rubrics as Google's own converter of evalsets takes them from the last invocation."""


_Turn = tuple[list[dict[str, Any]], list[Finding]]
"""The events of a turn, and the issues of those that could not be read."""


def _rows_of_turns(case: dict[str, Any], turns: Sequence[_Turn]) -> Iterator[Unfolded]:
    data, prompt = _snake(structured(case.pop("agent_data"))), case.pop("prompt", None)
    first, _ = turns[0]
    if prompt is not None and not any(map(_is_question, first[:1])):
        first.insert(0, {"author": "user", "content": prompt if isinstance(prompt, dict) else _content(prompt)})
    elif prompt is not None and _text_of(prompt) != _text_of(first[0].get("content")):
        case["case_prompt"] = prompt
    session = case.pop("session_id", None) or case.get("eval_case_id") or _session_of(data)
    instructions = [e for e in (_snake(a).get("instruction") for a in _snake(data.get("agents")).values()) if e]
    before: list[dict[str, Any]] = []
    for number, (events, findings) in enumerate(turns, 1):
        *_, last = (-1, *(i for i, event in enumerate(events) if _is_question(event)))
        question, done = (events[last].get("content") if last >= 0 else None), events[last + 1 :]
        before += [e["content"] for e in events[: max(last, 0)] if isinstance(e.get("content"), dict)]
        answer = next((t for e in reversed(done) if isinstance(t := _text_of(e.get("content")), str)), None)
        result: dict[str, Any] = {**case, "prompt": question, "response": answer}
        if len(turns) > 1:
            result["session_id"] = session
            result |= {name: f"{case[name]}#{number}" for name in _IDS if case.get(name) is not None}
        result |= {"history": list(before)} if before else {}
        result |= {"instruction": instructions[0]} if len(instructions) == 1 else {}
        result["intermediate_events"] = done if calls_in(done) else None  # by which the rows are known
        result |= {"agents": data["agents"]} if data.get("agents") else {}
        yield result, findings
        before += [question] if isinstance(question, dict) else []
        before += [_content(answer, "model")] if answer is not None else []


def _session_of(data: Mapping[str, Any]) -> str:
    """The session of agent data without an ID: other agent data is another session."""
    digest = hashlib.sha256(jsontext.encode_sorted(without_null(data))).hexdigest()[:8]
    return f"session {data.get('session_id') or digest}"


_IDS = ("case_id", "eval_case_id")


# --- rows → an EvaluationDataset, as the client loads it from JSON
ORIGINAL = "eval_case"
"""The column of a case as it came, on the row of its last turn, where the case has more than its rows."""

_OF_DATASET = ("candidate_name", "bigquery_source", "gcs_source")
_OF_TURN = frozenset({"prompt", "response", "intermediate_events", _IDS[0], *_HISTORY})


def dataset_of(rows: Sequence[Row]) -> dict[str, Any]:
    """The dataset of rows. The rows of a session are one case with its agent data, if each has those before it as its
    history and only the last one has ground truth: then the case is read as these rows."""
    shared = shared_values({name: [row.get(name) for row in rows] for name in _OF_DATASET})
    cases: list[dict[str, Any]] = []
    rest = [{k: v for k, v in row.items() if k not in shared and v not in (None, [])} for row in rows]
    while rest:
        original, count = _original_of(rest)
        if original is None:
            count = next((i for i in range(1, len(rest)) if not _follows(rest[:i], rest[i])), len(rest))
        cases.append(_case(rest[:count]) if original is None else original)
        rest = rest[count:]
    return {**shared, "eval_cases": cases}


def _original_of(rows: Sequence[Row]) -> tuple[dict[str, Any] | None, int]:
    """The case that the next rows are read from, if they still agree with it, and their number."""
    place = next((i for i, row in enumerate(rows) if row.get(ORIGINAL) is not None), None)
    original = None if place is None else structured(rows[place][ORIGINAL])
    if place is None or not isinstance(original, dict):
        return None, 0
    read = [_filled(row) for row, _ in rows_of_agent_data(original)]
    own = rows[: place + 1]
    return (original, len(own)) if list(map(_read_columns, read)) == list(map(_read_columns, own)) else (None, 0)


def _read_columns(row: Row) -> dict[str, Any]:
    values = GENAI.read_row(row)
    return {field.column: structured(values.get(field.column)) for field in GENAI.fields}


def _follows(turns: Sequence[Row], row: Row) -> bool:
    """Whether a row is the next turn of a session."""
    first, last = turns[0], turns[-1]
    answer = [{"role": "assistant", "content": last["response"]}] if "response" in last else []
    history = [*_messages_before(last), {"role": "user", "content": _text_of(last.get("prompt"))}, *answer]
    name, mark, number = str(first.get(_IDS[0])).rpartition("#")
    id = f"{name}#{len(turns) + 1}" if _IDS[0] in first else None
    rest = [{k: v for k, v in r.items() if k not in _OF_TURN | _OF_LAST | {ORIGINAL}} for r in (last, row)]
    return (
        row.get("session_id") is not None
        and _OF_LAST.union(_HISTORY, [ORIGINAL]).isdisjoint(first)
        and _OF_LAST.isdisjoint(last)
        and rest[0] == rest[1]
        and (id is None or (mark, number) == ("#", "1"))
        and row.get(_IDS[0]) == id
        and _messages_before(row) == history
    )


def _messages_before(row: Row) -> list[dict[str, Any]]:
    return [message for content in _first(row, _HISTORY, list) for message in _message(content)]


def _case(turns: Sequence[Row]) -> dict[str, Any]:
    """A case of one row, or of the turns of a session."""
    last = turns[-1]
    case = {k: v for k, v in last.items() if k not in (*_OF_TURN, *_INSTRUCTION, ORIGINAL)}
    instruction, name = _first(last, _INSTRUCTION, str | dict), last.get(_IDS[0])
    case |= {"system_instruction": _as_content(instruction)} if instruction else {}
    if "reference" in last and "response" not in _snake(last["reference"]):
        case["reference"] = {"response": _as_content(last["reference"], "model")}
    if len(turns) == 1:
        before = _first(last, _HISTORY, list)
        case |= {_IDS[1]: name} if name is not None else {}
        case |= {"prompt": _as_content(last["prompt"])} if "prompt" in last else {}
        case |= {"responses": [{"response": _as_content(last["response"], "model")}]} if "response" in last else {}
        case |= {_HISTORY[0]: [c if "content" in c else {"content": c} for c in before]} if before else {}
        return case | {k: last[k] for k in ("intermediate_events",) if k in last}
    case |= {_IDS[1]: str(name).rpartition("#")[0]} if name is not None else {}
    case["agent_data"] = {"turns": [{"turn_index": i, "events": _events(turn)} for i, turn in enumerate(turns)]}
    if last["session_id"] in (case.get(_IDS[1]), _session_of(case["agent_data"])):
        del case["session_id"]
    return case


def _events(turn: Row) -> list[dict[str, Any]]:
    done = list(all_of(turn.get("intermediate_events")))
    answer = turn.get("response")
    if answer is not None and (not done or _text_of(_snake(done[-1]).get("content")) != answer):
        done.append({"author": "agent", "content": _as_content(answer, "model")})
    return [{"author": "user", "content": _as_content(turn.get("prompt"))}, *done]


def _as_content(value: Any, role: str = "user") -> dict[str, Any]:
    content = structured(value)
    return content if isinstance(content, dict) and "parts" in content else _content(as_text(_text_of(value)), role)


def _filled(row: Row) -> dict[str, Any]:
    return {name: without_null(value) for name, value in row.items() if value is not None}


def _is_question(event: Mapping[str, Any]) -> bool:
    """Whether the user asks something in an event, and not only a function answers."""
    content = event.get("content")
    if (event.get("author") or _snake(content).get("role")) != "user":
        return False
    parts = _parts_of(content)
    return not parts or any("function_response" not in part for part in parts)


def _is_gemini(names: Sequence[str], head: Head) -> bool:
    return "request" in names and any(isinstance(_contents(row), list) for row in head())


def _contents(row: Mapping[str, Any]) -> Any:
    return _snake(structured(row.get("request"))).get("contents")


def row_of_gemini(row: Row) -> Iterator[Unfolded]:
    """The last content is the question, and those before it are the history."""
    request, contents = _snake(structured(row.get("request"))), _contents(row)
    result = {k: v for k, v in row.items() if k not in ("request", "response")}
    if isinstance(contents, list) and contents:
        result["prompt"] = contents[-1]
        result |= {"history": contents[:-1]} if len(contents) > 1 else {}
    else:
        result["prompt"] = row.get("request")
    instruction = request.get("system_instruction")
    result |= {"instruction": instruction} if instruction is not None else {}
    yield {**result, "response": row.get("response"), "intermediate_events": None}, ()


_OF_SCENARIO = ("user_scenario.starting_prompt", "user_scenario.startingPrompt")
"""Where the first question of a user is that a model plays."""

_COLUMNS = ("prompt", "intermediate_events")
"""The columns by which rows that are made of a document are known."""

GENAI = Format(
    name="vertex-genai",
    title="Gen AI evaluation service of Vertex AI",
    summary=(
        "rows and cases for the Gen AI evaluation service of Vertex AI: prompt, history, response, intermediate_events"
    ),
    also_read=(
        '`{"eval_cases": [...]}`, `eval_dataset_df`, `agent_data`, `EvaluationResult`, requests of the Gemini API'
    ),
    page="https://cloud.google.com/vertex-ai/generative-ai/docs/models/evaluation-dataset",
    truth_of=(
        "Ground truth of a case belongs to its last response: `reference`, `reference_trajectory` and `rubric_groups` "
        "beside `agent_data` are on the row of the last turn."
    ),
    signs=Signs(
        sure=(
            *each_with("prompt", *_HISTORY, *_INSTRUCTION, "context", "intermediate_events", "rubric_groups"),
            *each_with("prompt", "responses", *_IDS, "agent_data"),
            ("response", "intermediate_events"),
            ("starting_prompt", "conversation_plan"),
            ("user_scenario",),
            ("interactions_data_source",),
        ),
        never=frozenset({"request", "inputs", "trace", "latency_in_seconds", "predicted_trajectory"}),
    ),
    fields=(
        Field("prompt", "request", _text_of, lambda _: None, ("source", "starting_prompt", *_OF_SCENARIO)),
        Field("response", "response", _text_of, others=("responses[0].response",)),
        Field("reference", "expected_response", _text_of),
        Field("context", "retrieved_context", read_context, write_context),
        Field("intermediate_events", "predicted_trajectory", lambda v: calls_in(v) or None, _write_events),
        Field("reference_trajectory", "reference_trajectory", _read_expected),
        Field("rubric_groups", "guidelines", _read_rubrics, _write_rubrics),
        Field("session_id", "session_id", text_only),
        # the client names the cases of a table itself, and rejects a table with `eval_case_id`
        Field(_IDS[0], "request_id", text_only, others=_IDS[1:]),
    ),
    passthrough_columns=(
        *("agent_data", "conversation_plan", "agents", "case_prompt", ORIGINAL),
        *(*_OF_DATASET, FRAME, "interactions_data_source"),
    ),
    writer=Writer(of_rows=dataset_of),
    extra_columns=(*_HISTORY, *_INSTRUCTION),
    read_only_columns=("scores",),
    read_rest=_read_request,
    write_rest=_write_request,
    instead_of_response=("request", "predicted_trajectory", "reference_trajectory"),
    outputs=("response", "trace", "predicted_trajectory", "retrieved_context"),
    one_kind=("response", "answered row", "unanswered row"),
    adapt_issue=with_hint(
        MISSING_REQUEST.code,
        "Fill `prompt`; of an interaction (`interactions_data_source`), load the agent data first.",
    ),
    nested=(
        Nested(_is_result, _rows_of_result, parts=RESULTS, columns=_COLUMNS, lists=RESULTS),
        lists_in(*CASES, unfold=rows_of_dataset, columns=_COLUMNS, detect=_is_dataset),
        CaseList(FRAME, {FRAME: []}, text="prompt", mark="intermediate_events").nested,
        Nested(_has_agent_data, rows_of_agent_data, parts=("agent_data", "agentData"), columns=_COLUMNS),
        Nested(_is_gemini, row_of_gemini, parts=("request", "response"), columns=_COLUMNS, key="contents"),
    ),
)
