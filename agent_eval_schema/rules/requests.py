"""AE2: the request in its three formats, its messages, and the response."""

from agent_eval_schema.rules.pages import (
    EVALUATION_SCHEMA,
    MLFLOW_EVALUATE,
    MLFLOW_SIMULATOR,
    OPENAI_CHAT,
    OPENAI_EVALS,
    OPENAI_RESPONSES,
    RAGAS_DATASET,
    Page,
)

_HI, _HELLO = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}
_ASKED = {"role": "user", "content": "How long is parental leave?"}
_RESULT = {"role": "tool", "content": "4"}
_OK = ({"request": "Hi", "response": "Hello"},)
_CHAT = ({"request": {"messages": [_HI]}, "response": "Hello"},)

_schema_page = Page(EVALUATION_SCHEMA, good=_OK)
_schema_chat_page = Page(EVALUATION_SCHEMA, good=_CHAT)
_chat_page = Page(OPENAI_CHAT, good=_CHAT)

MISSING_REQUEST = _schema_page.error(
    "AE201 missing-request",
    "The row has no request and no trace from which to derive one.",
    why=(
        "Every metric refers to a request, and the platform rejects the row. Only Vertex AI and Ragas compute "
        "metrics without one: on trajectories, on contexts, or on a response and a reference."
    ),
    hint="Fill `request` (a string, `{messages}` or `{query, history}`), or add a trace that contains it.",
    bad=({"request": None, "response": "Hello"},),
)

BLANK_REQUEST = _schema_page.error(
    "AE202 blank-request",
    "The request is empty.",
    why="The agent would receive no question, and a judge would score an answer without a question.",
    hint="Fill in the question, or drop the row.",
    bad=({"request": "  ", "response": "Hello"}, {"request": {"messages": []}, "response": "Hello"}),
)

AMBIGUOUS_REQUEST = _schema_page.error(
    "AE203 ambiguous-request",
    "The request has both `messages` and `query`.",
    why="Which of the two the agent received is ambiguous.",
    hint="Keep one of them: `messages` for a whole chat, or `query` with `history`.",
    bad=({"request": {"messages": [_HI], "query": "Hi"}, "response": "Hello"},),
    good=({"request": {"query": "Hi", "history": []}, "response": "Hello"},),
)

REQUEST_TYPE = _schema_chat_page.error(
    "AE204 request-type",
    "The request, or a part of it, has the wrong type.",
    why="The schema defines a string or an object; no agent and no judge finds the question in another value.",
    hint='Set a string, `{"messages": [...]}` or `{"query": "...", "history": [...]}`.',
    bad=({"request": 42, "response": "Hello"}, {"request": [_HI], "response": "Hello"}),
)

REQUEST_KEY = _schema_chat_page.error(
    "AE205 request-key",
    "The request is an object without `messages`, `query` or `input`.",
    why="The platform does not find the question in it.",
    hint="Add `messages`, `query` (with an optional `history`) or `input`.",
    bad=({"request": {"mesages": [_HI]}, "response": "Hello"},),
)

MESSAGE_ROLE = _chat_page.error(
    "AE206 message-role",
    "A message's role is not in the OpenAI chat schema.",
    why="The agent's model rejects the chat, or attributes the message to another participant.",
    hint="Use one of system, developer, user, assistant, tool, function.",
    bad=({"request": {"messages": [{"role": "usr", "content": "Hi"}]}, "response": "Hello"},),
)

MESSAGE_CONTENT = _chat_page.error(
    "AE207 message-content",
    "A message's content is missing or has the wrong type.",
    why="The agent's model rejects the chat, and a judge has no text to read.",
    hint="Set `content` to a string or a list of parts; it may be null only beside `tool_calls`.",
    bad=({"request": {"messages": [{"role": "user", "content": None}]}, "response": "Hello"},),
)

MESSAGE_SHAPE = _chat_page.error(
    "AE208 message-shape",
    "An entry of messages or history is not a valid message.",
    why=(
        "The entry is not an object, or its role, name or tool calls have the wrong type. The agent's model "
        "rejects the chat, and a judge cannot tell who wrote what."
    ),
    hint='Write each message as an object: `{"role": "user", "content": "..."}`.',
    bad=({"request": {"messages": ["Hi"]}, "response": "Hello"},),
)

TOOL_MESSAGE_ID = _chat_page.warning(
    "AE209 tool-message-without-id",
    "A tool message has no tool_call_id.",
    why="OpenAI's API rejects such a chat when the agent replays it.",
    hint="Set `tool_call_id` to the ID of the tool call that this message answers.",
    bad=({"request": {"messages": [_RESULT, _HI]}, "response": "Hello"},),
    good=({"request": {"messages": [{**_RESULT, "tool_call_id": "c1"}, _HI]}, "response": "Hello"},),
)

_HUMAN, _TOOL = {"type": "human", "content": "Hi"}, {"type": "tool", "content": "4"}
_CALL = {"type": "ai", "content": "", "tool_calls": [{"name": "f", "args": {}}]}

MESSAGE_REJECTED = Page(RAGAS_DATASET).error(
    "AE241 message-rejected",
    "The class of the platform rejects a message, and the file with it.",
    why=(
        "Ragas loads texts of `human`, `ai` and `tool`, and the result of a tool only after a message with its call. "
        "Inspect loads the roles `system`, `user`, `assistant` and `tool`, with content in parts that it knows."
    ),
    hint="Correct the message or remove it.",
    bad=(
        {"user_input": [_HUMAN, _TOOL], "reference": "4"},
        {"user_input": [{"type": "system", "content": "Be brief."}, _HUMAN]},
    ),
    good=({"user_input": [_HUMAN, _CALL, _TOOL], "reference": "4"},),
)

ENDS_WITH_ASSISTANT = _schema_chat_page.warning(
    "AE210 ends-with-assistant",
    "The chat ends with a message of the assistant.",
    why="Judges read the last message as the question: here it is an answer.",
    hint="End the chat with the user's message, and move the assistant's last message to `response`.",
    bad=({"request": {"messages": [_HI, _HELLO]}, "response": "Hello"},),
)

JSON_TEXT_REQUEST = _schema_chat_page.info(
    "AE211 request-is-json-text",
    "The request is an object that is written as a JSON string.",
    why="The string is parsed and read as the object.",
    hint="No action needed: the string is read as the object.",
    bad=({"request": '{"messages": [{"role": "user", "content": "Hi"}]}', "response": "Hello"},),
)

NO_USER_MESSAGE = _schema_page.warning(
    "AE212 no-user-message",
    "The chat has no user message.",
    why="Judges such as relevance_to_query have no question to compare the answer with.",
    hint="Add the user message that the response answers.",
    bad=({"request": {"messages": [{"role": "system", "content": "Be kind"}]}, "response": "Hello"},),
    good=({"request": {"messages": [{"role": "system", "content": "Be kind"}, _HI]}, "response": "Hello"},),
)

REPEATED_USER_MESSAGE = _schema_page.warning(
    "AE213 repeated-user-message",
    "The last user message is duplicated.",
    why="A client that appends the question to a history that contains it sends a chat that never took place.",
    hint="Drop one of the two if the client sent the message twice.",
    bad=({"request": {"query": "Hi", "history": [_HI]}, "response": "Hello"},),
    good=({"request": {"query": "Hi", "history": []}, "response": "Hello"},),
)

REQUEST_EXTRA_KEY = _schema_chat_page.warning(
    "AE214 request-extra-key",
    "The request object contains unknown keys beside messages, query and history.",
    why="No metric reads them; they are preserved in `inputs`. Parameters of the chat API are known (AE228).",
    hint=("Move values that a metric requires to a separate column; no action needed if only the agent reads the key."),
    bad=({"request": {"messages": [_HI], "customer": 7}, "response": "Hello"},),
)

REQUEST_PARAMETERS = _chat_page.info(
    "AE228 request-parameters",
    "The request object contains parameters of the chat API (temperature, tools, …).",
    why="No metric reads them; an agent that is run on the row receives them.",
    hint="No action needed: the parameters are preserved in `inputs`.",
    bad=({"request": {"messages": [_HI], "temperature": 0}, "response": "Hello"},),
)

LOOKS_LIKE_JSON = _schema_page.info(
    "AE215 request-looks-like-json",
    "The request is a string that contains a JSON object, but not a request.",
    why="The string is read as the text that the user typed.",
    hint="No action needed if the user typed JSON.",
    bad=({"request": '{"a": 1}', "response": "Hello"},),
)

CHAT_AS_TEXT = _chat_page.info(
    "AE240 chat-as-text",
    "The request is a text that contains a whole chat.",
    why="The turns of the assistant are read as part of one message of the user: no metric sees a conversation.",
    hint="No action needed if the user pasted a chat; otherwise write the turns as a list of messages.",
    bad=({"request": "User: Hi\nAssistant: Hello\nUser: How long is it?", "response": "16."},),
    good=({"request": "Translate: user: name of the account", "response": "Nutzer: Name des Kontos"},),
)

CONSECUTIVE_USER_MESSAGES = _chat_page.warning(
    "AE218 consecutive-user-messages",
    "Two messages of the same user follow each other without an answer.",
    why=(
        "The turns are out of order, or an answer is missing: the agent continues a chat that never took place."
        " Several messages before the first answer, and messages of users with different names, are not "
        "reported."
    ),
    hint="Check the order of the turns, and add the missing assistant message.",
    bad=(
        {"request": {"messages": [_HI, _HELLO, _HI, _ASKED]}, "response": "16."},
        {"request": {"query": "Paid?", "history": [_ASKED, {**_HELLO, "content": "16."}, _HI]}, "response": "Yes."},
    ),
    good=({"request": {"messages": [_HI, _HELLO, _ASKED]}, "response": "16."},),
)

STARTS_WITH_ASSISTANT = _chat_page.info(
    "AE219 starts-with-assistant",
    "The first turn of the chat is the assistant's.",
    why="A chat with reversed turns or without its first question starts so, too; some model providers reject it.",
    hint="No action needed if the agent greets the user; otherwise check the order of the turns.",
    bad=({"request": {"messages": [_HELLO, _HI]}, "response": "Hello"},),
    good=({"request": {"messages": [{"role": "system", "content": "Be kind"}, _HI]}, "response": "Hello"},),
)

RESPONSE_TYPE = _schema_page.error(
    "AE220 response-type",
    "The response is neither a string nor a chat object that contains one.",
    why="Judges and text metrics do not find the answer in any other value.",
    hint="Set the answer as a string, or a chat object (`choices`, `messages` or `output`).",
    bad=({"request": "Hi", "response": 42}, {"request": "Hi", "response": {"foo": "Hello"}}),
    good=({"request": "Hi", "response": {"choices": [{"message": _HELLO}]}},),
)

BLANK_RESPONSE = _schema_page.warning(
    "AE221 blank-response",
    "The response is blank.",
    why="A judge scores an empty answer, and no metric reports why it is empty.",
    hint="Check whether the agent returned an empty answer; use null if there is no response.",
    bad=({"request": "Hi", "response": ""},),
)

CHAT_OBJECT_RESPONSE = _schema_page.info(
    "AE222 response-from-chat-object",
    "The response is a chat object.",
    why="The text of its last assistant message is used as the response.",
    hint="No action needed: the text of the last assistant message is used.",
    bad=({"request": "Hi", "response": {"choices": [{"message": _HELLO}]}},),
)

MISSING_OUTPUT = _schema_page.error(
    "AE223 missing-output",
    "The row has neither a response nor a trace, although outputs are provided.",
    why="There is no output to score; the platform rejects the row.",
    hint='Fill `response` or `trace`, or validate with `outputs="generated"` if the agent is to be run.',
    bad=(*_OK, {"request": "Hello?", "response": None}),
)

_NORMALIZED = dict.fromkeys(
    [
        *("request", "response", "trace", "expected_retrieved_context", "custom_expected", "latency_seconds"),
        *("predicted_trajectory", "reference_trajectory", "failure", "error"),
    ]
)

INCOMPLETE_ROW = _schema_page.warning(
    "AE230 incomplete-normalized-row",
    "The normalized row has no request, or no output although other rows have one.",
    why=(
        "Ragas, Vertex AI and others accept such rows, and a normalized row does not say which format it had. "
        "Metrics that read the missing value skip the row, and Databricks and MLflow reject it."
    ),
    hint="Fill `request`, and `response` or `trace`, if a metric or a platform that you use reads them.",
    bad=({**_NORMALIZED, "response": "12 days.", "expected_response": "You have 12 days left."},),
    good=({**_NORMALIZED, "request": "How many days?", "response": "12 days."},),
)

GUESSED_KEY = Page(OPENAI_EVALS).info(
    "AE225 guessed-item-key",
    "The key that contains the question or the ground truth was guessed.",
    why=(
        "The author of an OpenAI evals item chooses its keys; OpenAI reads them only through the templates of"
        " its graders. Usual names are tried first (input, messages, question, prompt, query; ideal, "
        "expected_output, ground_truth, reference, correct_label, answer), then names that suggest a question"
        " or ground truth, then the first string."
    ),
    hint='No action needed if this is the key; otherwise name it: `columns={"item.KEY": "request"}`.',
    bad=({"item": {"ticket_text": "My monitor stays dark.", "correct_label": "Hardware"}},),
    good=({"item": {"question": "My monitor stays dark.", "correct_label": "Hardware"}},),
)

RESPONSES_REQUEST = Page(OPENAI_RESPONSES, good=_CHAT).info(
    "AE229 request-of-responses-api",
    "The request is an object of the Responses API (`input`).",
    why="Its items are read as messages.",
    hint="No action needed: its items are read as messages.",
    bad=({"request": {"input": [_HI]}, "response": "Hello"},),
)


# --- `inputs` and `outputs`, as mlflow.genai.evaluate reads them
_mlflow_page = Page(
    MLFLOW_EVALUATE, good=({"inputs": {"question": "What is RAG?"}, "outputs": "Retrieval, then generation."},)
)

INPUTS_NOT_OBJECT = _mlflow_page.warning(
    "AE216 inputs-not-object",
    "inputs is not an object.",
    why=("`mlflow.genai.evaluate` calls `predict_fn(**inputs)` and requires a dict, but validates the first row only."),
    hint='Set an object: `{"question": "..."}` or `{"messages": [...]}`; `prepare_for_evaluate` does this.',
    bad=(
        {"inputs": {"question": "What is RAG?"}, "outputs": "Retrieval, then generation."},
        {"inputs": "What is RAG for?", "outputs": "Grounding."},
    ),
)

INPUTS_AS_JSON = _mlflow_page.info(
    "AE217 inputs-as-json",
    "inputs has no known request format.",
    why="Its JSON text is used as the request, which judges read.",
    hint='No action needed if the agent accepts these inputs; judges read `{"question": "..."}` better.',
    bad=({"inputs": {"topic": "RAG", "tone": "brief"}, "outputs": "Retrieval, then generation."},),
)

TEST_CASE_VALUE = Page(MLFLOW_SIMULATOR, good=({"goal": "Book a flight", "persona": "In a hurry"},)).error(
    "AE231 test-case-value",
    "A test case for a simulated user has an invalid value.",
    why="MLflow's ConversationSimulator rejects the test cases, or simulates no conversation for this one.",
    hint="Set `goal` to a string, `context` to an object, and `persona` and `simulation_guidelines` to strings.",
    bad=(
        {"goal": "", "persona": "In a hurry"},
        {"goal": "Book a flight", "persona": "In a hurry", "context": "from SFO"},
        {"goal": "Book a flight", "persona": "In a hurry", "context": {"messages": []}},
    ),
)

GOAL_BESIDE_INPUTS = Page(MLFLOW_SIMULATOR).warning(
    "AE232 goal-beside-inputs",
    "Inputs have a goal and keys that a test case does not have.",
    why="An MLflow dataset rejects all records: the goal makes this one a session, and the other keys do not.",
    hint="Put the other keys into `context`, or rename `goal`.",
    bad=({"inputs": {"goal": "Book a flight", "question": "Which flights are there?"}},),
    good=({"inputs": {"goal": "Book a flight", "context": {"question": "Which flights are there?"}}},),
)

OUTPUTS_AS_JSON = _mlflow_page.info(
    "AE224 outputs-as-json",
    "outputs has no known response format.",
    why="Its JSON text is used as the response, which judges read.",
    hint="No action needed if the agent returns this value.",
    bad=({"inputs": {"question": "What is RAG?"}, "outputs": {"a": 1, "b": 2}},),
    good=({"inputs": {"question": "What is RAG?"}, "outputs": {"response": "Retrieval, then generation."}},),
)

IGNORED_BESIDE = Page(MLFLOW_EVALUATE).warning(
    "AE227 ignored-beside-inputs",
    "A column `request` or `response` is beside `inputs` or `outputs`.",
    why="`mlflow.genai.evaluate` ignores the column; up to MLflow 3.6 it rejects the dataset.",
    hint="Remove the column, or rename it to keep its values.",
    no_example='The rule applies if `format="mlflow"` is given.',
)

FIRST_INPUTS = _mlflow_page.error(
    "AE226 first-inputs-not-object",
    "The inputs of the first row are not an object.",
    why="`mlflow.genai.evaluate` rejects a dataset without traces if the inputs of the first row are not a dict.",
    hint='Set objects: `{"question": "..."}` or `{"messages": [...]}`; `prepare_for_evaluate` does this.',
    bad=({"inputs": "What is RAG?", "outputs": "Retrieval, then generation."},),
)
