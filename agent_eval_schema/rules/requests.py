"""AE2: the request in its three formats, its messages, and the response."""

from agent_eval_schema.issues import Rule, Severity

_HI = {"role": "user", "content": "Hi"}
_OK = ({"request": "Hi", "response": "Hello"},)

MISSING_REQUEST = Rule(
    "AE201",
    "missing-request",
    Severity.ERROR,
    "fill `request` (text, {messages} or {query, history}), or give a trace that holds it",
    "The row has no request, and no trace that says it.\n\nEvery metric is about a request; the platform refuses "
    "the row.",
    bad=({"request": None, "response": "Hello"},),
    good=_OK,
)

BLANK_REQUEST = Rule(
    "AE202",
    "blank-request",
    Severity.ERROR,
    "fill in the question, or drop the row",
    "The request is empty.\n\nThe app would be asked nothing, and a judge would rate the answer to nothing.",
    bad=({"request": "  ", "response": "Hello"}, {"request": {"messages": []}, "response": "Hello"}),
    good=_OK,
)

AMBIGUOUS_REQUEST = Rule(
    "AE203",
    "ambiguous-request",
    Severity.ERROR,
    "keep one of them: `messages` for a whole chat, or `query` with `history`",
    "The request has both `messages` and `query`.\n\nWhich of the two the app was asked is a guess.",
    bad=({"request": {"messages": [_HI], "query": "Hi"}, "response": "Hello"},),
    good=({"request": {"query": "Hi", "history": []}, "response": "Hello"},),
)

REQUEST_TYPE = Rule(
    "AE204",
    "request-type",
    Severity.ERROR,
    'give text, {"messages": [...]} or {"query": "...", "history": [...]}',
    "The request is neither text nor an object, or a part of it has the wrong type.",
    bad=({"request": 42, "response": "Hello"}, {"request": [_HI], "response": "Hello"}),
    good=({"request": {"messages": [_HI]}, "response": "Hello"},),
)

REQUEST_KEY = Rule(
    "AE205",
    "request-key",
    Severity.ERROR,
    "the object needs `messages`, or `query` and optionally `history`",
    "The request is an object without `messages` or `query`.\n\nThe platform does not find the question in it.",
    bad=({"request": {"mesages": [_HI]}, "response": "Hello"},),
    good=({"request": {"messages": [_HI]}, "response": "Hello"},),
)

MESSAGE_ROLE = Rule(
    "AE206",
    "message-role",
    Severity.ERROR,
    "use one of system, developer, user, assistant, tool, function",
    "A message's role is not one of the OpenAI chat schema.\n\nThe app's model refuses the chat, or takes the "
    "message for "
    "somebody else's.",
    bad=({"request": {"messages": [{"role": "usr", "content": "Hi"}]}, "response": "Hello"},),
    good=({"request": {"messages": [_HI]}, "response": "Hello"},),
)

MESSAGE_CONTENT = Rule(
    "AE207",
    "message-content",
    Severity.ERROR,
    "content is text or a list of parts; it may be null only beside tool_calls",
    "A message's content is missing or of the wrong type.",
    bad=({"request": {"messages": [{"role": "user", "content": None}]}, "response": "Hello"},),
    good=({"request": {"messages": [_HI]}, "response": "Hello"},),
)

MESSAGE_SHAPE = Rule(
    "AE208",
    "message-shape",
    Severity.ERROR,
    'a message is an object: {"role": "user", "content": "..."}',
    "An entry of messages or history is not a message, or its role, name or tool calls cannot be read.",
    bad=({"request": {"messages": ["Hi"]}, "response": "Hello"},),
    good=({"request": {"messages": [_HI]}, "response": "Hello"},),
)

TOOL_MESSAGE_ID = Rule(
    "AE209",
    "tool-message-without-id",
    Severity.WARNING,
    "set tool_call_id to the id of the tool call that this message answers",
    "A tool message does not say which call it answers.\n\nOpenAI's API refuses such a chat when the app replays it.",
    bad=({"request": {"messages": [{"role": "tool", "content": "4"}, _HI]}, "response": "Hello"},),
    good=(
        {"request": {"messages": [{"role": "tool", "content": "4", "tool_call_id": "c1"}, _HI]}, "response": "Hello"},
    ),
)

ENDS_WITH_ASSISTANT = Rule(
    "AE210",
    "ends-with-assistant",
    Severity.WARNING,
    "end the chat with the user's message, and put the assistant's last message into `response`",
    "The chat ends with the assistant.\n\nThe judges look at the last entry as the question: here it is an answer.",
    bad=({"request": {"messages": [_HI, {"role": "assistant", "content": "Hello"}]}, "response": "Hello"},),
    good=({"request": {"messages": [_HI]}, "response": "Hello"},),
)

JSON_TEXT_REQUEST = Rule(
    "AE211",
    "request-is-json-text",
    Severity.INFO,
    "nothing to do: it is read as the object; give the object itself to say so",
    "The request is an object written as text.",
    bad=({"request": '{"messages": [{"role": "user", "content": "Hi"}]}', "response": "Hello"},),
    good=({"request": {"messages": [_HI]}, "response": "Hello"},),
)

NO_USER_MESSAGE = Rule(
    "AE212",
    "no-user-message",
    Severity.WARNING,
    "add the user's message that the response answers",
    "The chat has no message of the user.\n\nJudges such as relevance_to_query have no question to hold the "
    "answer against.",
    bad=({"request": {"messages": [{"role": "system", "content": "Be kind"}]}, "response": "Hello"},),
    good=({"request": {"messages": [{"role": "system", "content": "Be kind"}, _HI]}, "response": "Hello"},),
)

REPEATED_USER_MESSAGE = Rule(
    "AE213",
    "repeated-user-message",
    Severity.WARNING,
    "drop one of the two if the client sent the message twice",
    "The last user message stands twice in a row.\n\nClients that append the question to a history which already "
    "holds it "
    "do this; the app sees a chat that nobody had.",
    bad=({"request": {"query": "Hi", "history": [_HI]}, "response": "Hello"},),
    good=({"request": {"query": "Hi", "history": []}, "response": "Hello"},),
)

REQUEST_EXTRA_KEY = Rule(
    "AE214",
    "request-extra-key",
    Severity.WARNING,
    "move what you need into `tags` or a column of its own",
    "The request object holds keys beside messages, query and history.\n\nNo platform reads them, and they are "
    "not part of "
    "the normalised request.",
    bad=({"request": {"messages": [_HI], "temperature": 0}, "response": "Hello"},),
    good=({"request": {"messages": [_HI]}, "response": "Hello"},),
)

LOOKS_LIKE_JSON = Rule(
    "AE215",
    "request-looks-like-json",
    Severity.INFO,
    "nothing to do if the user really typed JSON",
    "The request is text that holds a JSON object, but not a request.\n\nIt is taken as what the user typed.",
    bad=({"request": '{"a": 1}', "response": "Hello"},),
    good=_OK,
)

RESPONSE_TYPE = Rule(
    "AE220",
    "response-type",
    Severity.ERROR,
    "give the answer's text, or a chat object (choices, messages or output)",
    "The response is neither text nor a chat object that holds one.",
    bad=({"request": "Hi", "response": 42}, {"request": "Hi", "response": {"foo": "Hello"}}),
    good=({"request": "Hi", "response": {"choices": [{"message": {"role": "assistant", "content": "Hello"}}]}},),
)

BLANK_RESPONSE = Rule(
    "AE221",
    "blank-response",
    Severity.WARNING,
    "check whether the app really answered nothing; null says that there is no response",
    "The response is blank.\n\nA judge scores an empty answer, and no metric can say why it is empty.",
    bad=({"request": "Hi", "response": ""},),
    good=_OK,
)

CHAT_OBJECT_RESPONSE = Rule(
    "AE222",
    "response-from-chat-object",
    Severity.INFO,
    "nothing to do: the text of the last assistant message is used",
    "The response is a chat object; its text is taken from it.",
    bad=({"request": "Hi", "response": {"choices": [{"message": {"role": "assistant", "content": "Hello"}}]}},),
    good=_OK,
)

MISSING_OUTPUT = Rule(
    "AE223",
    "missing-output",
    Severity.ERROR,
    'fill `response` or `trace`, or validate with outputs="generated" if the app is to be run',
    "The row has neither response nor trace, though outputs are provided.\n\nThere is nothing to score; the platform "
    "refuses the row.",
    bad=(*_OK, {"request": "Hello?", "response": None}),
    good=_OK,
)

INPUTS_NOT_OBJECT = Rule(
    "AE216",
    "inputs-not-object",
    Severity.WARNING,
    'give an object: {"question": "..."} or {"messages": [...]}; prepare_for_evaluate does it for you',
    "inputs is not an object.\n\nmlflow.genai.evaluate calls predict_fn(**inputs) and refuses anything but a dict, "
    "though it looks at the first row only.",
    bad=({"inputs": "What is RAG?", "outputs": "Retrieval, then generation."},),
    good=({"inputs": {"question": "What is RAG?"}, "outputs": "Retrieval, then generation."},),
)

INPUTS_AS_JSON = Rule(
    "AE217",
    "inputs-as-json",
    Severity.INFO,
    'nothing to do if this is what your app takes; judges read the JSON: {"question": "..."} reads better',
    "inputs has no known request format; its JSON text is the request.",
    bad=({"inputs": {"topic": "RAG", "tone": "brief"}, "outputs": "Retrieval, then generation."},),
    good=({"inputs": {"question": "What is RAG?"}, "outputs": "Retrieval, then generation."},),
)

OUTPUTS_AS_JSON = Rule(
    "AE224",
    "outputs-as-json",
    Severity.INFO,
    "nothing to do if this is what your app returns; judges read the JSON",
    "outputs has no known answer format; its JSON text is the response.",
    bad=({"inputs": {"question": "What is RAG?"}, "outputs": {"a": 1, "b": 2}},),
    good=({"inputs": {"question": "What is RAG?"}, "outputs": {"response": "Retrieval, then generation."}},),
)
