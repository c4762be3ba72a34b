"""What can be run, as it is: objects of langchain-core, langgraph and mlflow; functions; and what cannot."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypedDict

import pytest

from agent_eval_schema import EvalSetError, EvalTask
from agent_eval_schema.evaluation.runnables import Answer, _is_only_async, calling, read_output

SEARCH = {"tool_name": "search", "tool_input": {"q": "x"}}


@pytest.fixture(autouse=True)
def without_their_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def asked(runnable: Any, prompt: Any = "hello", **options: Any) -> Answer:
    return read_output(calling(runnable, **options)(prompt))


def test_a_function_and_an_object_that_is_called() -> None:
    class Agent:
        def __call__(self, prompt: str) -> str:
            return f"you said {prompt}"

    assert asked(lambda prompt: f"you said {prompt}") == asked(Agent()) == Answer("you said hello")


def test_an_object_with_query() -> None:
    class Agent:
        def query(self, *, input: str) -> dict[str, Any]:
            return {"output": input, "intermediate_steps": []}

        def __call__(self, _: str) -> str:
            raise AssertionError("query comes first")

    assert asked(Agent()) == Answer("hello", [])


def test_an_async_query() -> None:
    class Agent:
        async def query(self, *, input: str) -> str:
            return input

    call = calling(Agent())
    assert asyncio.iscoroutinefunction(call)
    assert asyncio.run(call("hello")) == "hello"


def test_make_input() -> None:
    class Agent:
        def query(self, *, input: dict[str, str]) -> str:
            return input["question"]

    assert asked(Agent(), make_input=lambda prompt: {"question": prompt}) == Answer("hello")
    assert asked(lambda given: given[0], make_input=lambda prompt: [prompt]) == Answer("hello")


@pytest.mark.parametrize("thing", [7, "agent", {"a": 1}, object()])
def test_what_cannot_be_run(thing: Any) -> None:
    with pytest.raises(EvalSetError, match=r"cannot run .*: expected a function, an object with .query"):
        calling(thing)


def test_a_class_is_not_its_object() -> None:
    class Agent:
        def query(self, *, input: str) -> str:
            return input

    with pytest.raises(EvalSetError, match=r"cannot run the class Agent: give an object of it, such as Agent\(\)"):
        calling(Agent)


def test_an_answer_in_pieces() -> None:
    def agent(prompt: str) -> Iterator[str]:
        yield prompt

    found = asked(agent)
    assert found.failed
    assert "got a generator: give a function that reads it to its end" in str(found.error)


# ---------------------------------------------------------------------------------------------------------------------
# LangChain


@pytest.fixture
def model() -> Any:
    """langchain-core's own fake chat model: it asks for a tool, then answers."""
    models = pytest.importorskip("langchain_core.language_models.fake_chat_models")
    from langchain_core.messages import AIMessage

    class Model(models.FakeMessagesListChatModel):  # type: ignore[misc, name-defined]
        def bind_tools(self, *_: Any, **__: Any) -> Any:
            return self

    wants = AIMessage(content="", tool_calls=[{"name": "search", "args": {"q": "x"}, "id": "1"}])
    return Model(responses=[wants, AIMessage(content="Done")])


def test_a_chat_model(model: Any) -> None:
    assert asked(model) == Answer(None, [SEARCH])
    assert asked(model) == Answer("Done")  # whether it called anything before is not known


@pytest.mark.oracle
def test_a_chain_with_a_template() -> None:
    prompts = pytest.importorskip("langchain_core.prompts")
    from langchain_core.output_parsers import StrOutputParser
    from langchain_core.runnables import RunnableLambda

    said = RunnableLambda(lambda value: value.to_messages()[0])
    chain = prompts.ChatPromptTemplate.from_template("Say {topic}") | said | StrOutputParser()
    assert asked(chain) == Answer("Say hello")


@pytest.mark.oracle
def test_intermediate_steps() -> None:
    runnables = pytest.importorskip("langchain_core.runnables")
    from langchain_core.agents import AgentAction

    steps = [(AgentAction(tool="search", tool_input={"q": "x"}, log=""), "found")]
    runnable = runnables.RunnableLambda(lambda prompt: {"output": prompt, "intermediate_steps": steps})
    assert asked(runnable) == Answer("hello", [SEARCH])


def test_an_executor_is_called_by_its_input_keys() -> None:
    class Executor:
        input_keys = ("input",)

        def invoke(self, given: dict[str, str]) -> dict[str, Any]:
            return {"output": given["input"], "intermediate_steps": []}

    executor = Executor()
    executor.input_keys = ["input"]  # type: ignore[assignment]
    assert asked(executor) == Answer("hello", [])


class Described:
    """A runnable with the JSON Schema of its input; without one, as of a state that pydantic cannot describe."""

    class builder:
        class input_schema:
            question: str
            user: str

    def __init__(self, *required: str, properties: tuple[str, ...] = (), type: str = "object") -> None:
        self.schema = {"type": type, "properties": {key: {} for key in (*required, *properties)}, "required": required}

    def get_input_jsonschema(self) -> dict[str, Any]:
        if not self.schema["required"] and self.schema["type"] == "object":
            raise NotImplementedError
        return self.schema

    def invoke(self, given: Any) -> str:
        return repr(given)


CHAT = "{'messages': [{'role': 'user', 'content': 'hello'}]}"


@pytest.mark.parametrize(
    ("runnable", "given"),
    [
        (Described("messages", "user"), CHAT),
        (Described("topic"), "{'topic': 'hello'}"),
        (Described("topic", properties=("question",)), "{'topic': 'hello'}"),
        (Described("topic", "question"), "{'question': 'hello'}"),
        (Described(), "{'question': 'hello'}"),
        (Described(type="string"), "'hello'"),
    ],
    ids=["messages", "one key", "one required key", "a usual key", "annotations", "text"],
)
def test_a_prompt_is_given_under_the_key_of_the_schema(runnable: Described, given: str) -> None:
    assert asked(runnable) == Answer(given)


def test_a_prompt_whose_key_is_not_known_is_an_error_with_the_keys() -> None:
    names = (
        r"the runnable takes an object with the keys topic, tone: name the key of the prompt, .*\{\"topic\": prompt\}$"
    )
    with pytest.raises(EvalSetError, match=names):
        calling(Described("topic", "tone"))


@pytest.mark.parametrize(
    ("names", "given"),
    [
        (["messages", "context"], CHAT),
        (["input", "context"], CHAT.replace("messages", "input")),
        (["topic"], "[{'topic': 'hello'}]"),
        ([0], "['hello']"),
        (None, "['hello']"),
    ],
    ids=["chat", "responses", "a column", "no names", "no signature"],
)
def test_a_model_is_given_the_input_of_its_signature(names: list[Any] | None, given: str) -> None:
    inputs = None if names is None else SimpleNamespace(input_names=lambda: names)
    model = SimpleNamespace(metadata=SimpleNamespace(signature=SimpleNamespace(inputs=inputs)), predict=repr)
    assert asked(model) == Answer(given)


@pytest.mark.parametrize("action", ["search", {"tool": " "}, {"kwargs": {"tool": 1}}], ids=repr)
def test_a_step_without_a_tool_is_named_with_its_place(action: Any) -> None:
    steps = [[{"tool": "search", "tool_input": {"q": "x"}}, "found"], [action, "found"]]
    found = asked(lambda _: {"output": "done", "intermediate_steps": steps})
    assert (found.response, found.trajectory, found.failed) == ("done", None, False)
    assert str(found.error).startswith("intermediate_steps[1]: expected an action with a tool, got ")


@pytest.mark.oracle
def test_a_langgraph_agent(model: Any) -> None:
    graph = _agent(model)
    assert asked(graph) == Answer("Done", [SEARCH])


@pytest.mark.oracle
def test_a_langgraph_agent_in_a_task(model: Any) -> None:
    model.responses = [*model.responses] * 2
    rows = [{"prompt": p, "reference_trajectory": [SEARCH]} for p in ("one", "two")]
    found = EvalTask(rows, ["trajectory_exact_match"]).evaluate(_agent(model), max_workers=1)
    assert found.metrics_table["response"].tolist() == ["Done", "Done"]
    assert found.summary_metrics["trajectory_exact_match/mean"] == 1


def _agent(model: Any) -> Any:
    prebuilt = pytest.importorskip("langgraph.prebuilt")
    from langchain_core.tools import tool

    @tool
    def search(q: str) -> str:
        """Search."""
        return f"found {q}"

    return prebuilt.create_react_agent(model, [search])


@pytest.mark.oracle
def test_a_graph_with_a_state_of_its_own() -> None:
    graphs = pytest.importorskip("langgraph.graph")

    graph = graphs.StateGraph(dict)
    graph.add_node("answer", lambda state: {"answer": f"you said {state['question']}"})
    graph.add_edge(graphs.START, "answer")
    found = asked(graph.compile(), make_input=lambda prompt: {"question": prompt})
    assert found == Answer("you said hello")


def _one_node(state: Any, node: Any, **options: Any) -> Any:
    graphs = pytest.importorskip("langgraph.graph")
    graph = graphs.StateGraph(state)
    graph.add_node("answer", node)
    graph.add_edge(graphs.START, "answer")
    return graph.compile(**options)


class Asked(TypedDict):
    question: str
    answer: str


class Booked(TypedDict):
    city: str
    day: str


@pytest.mark.oracle
def test_the_key_of_a_prompt_in_a_state() -> None:
    graph = _one_node(Asked, lambda state: {"answer": f"you said {state['question']}"})
    assert asked(graph) == Answer("you said hello")
    with pytest.raises(EvalSetError, match=r'keys city, day: .*make_input=lambda prompt: \{"city": prompt\}'):
        calling(_one_node(Booked, lambda _: {"day": "Monday"}))


@pytest.mark.oracle
def test_what_is_only_async_is_awaited(model: Any) -> None:
    tools = pytest.importorskip("langchain_core.tools")
    runnables = pytest.importorskip("langchain_core.runnables")
    prebuilt = pytest.importorskip("langgraph.prebuilt")

    async def answer(_: Any) -> dict[str, str]:
        return {"answer": "yes"}

    async def search(q: str) -> str:
        """Search."""
        return f"found {q}"

    agent = prebuilt.create_react_agent(model, [tools.StructuredTool.from_function(coroutine=search)])
    chain = runnables.RunnableLambda(answer) | (lambda given: given["answer"])
    for runnable, expected in (
        (_one_node(Asked, answer), Answer("yes")),
        (chain, Answer("yes")),
        (agent, Answer("Done", [SEARCH])),
    ):
        call = calling(runnable)
        assert asyncio.iscoroutinefunction(call)
        assert read_output(asyncio.run(call("hello"))) == expected


@pytest.mark.oracle
def test_a_bound_method_is_called_as_its_runnable(model: Any) -> None:
    graph = _agent(model)
    assert asked(graph.invoke) == Answer("Done", [SEARCH])
    call = calling(graph.ainvoke)
    assert read_output(asyncio.run(call("hello"))) == Answer("Done", [SEARCH])


@pytest.mark.parametrize("type", [["human"], {"a": 1}, 1])
def test_a_type_of_an_answer_that_is_no_text_is_none_of_a_message(type: Any) -> None:
    assert read_output([{"type": type, "response": "Hi"}]).response == read_output({"response": "Hi"}).response == "Hi"


@pytest.mark.oracle
def test_rows_are_no_conversation() -> None:
    graphs = pytest.importorskip("langgraph.graph")
    memory = pytest.importorskip("langgraph.checkpoint.memory")

    def node(state: Any) -> dict[str, Any]:
        return {"messages": [{"role": "assistant", "content": f"{len(state['messages'])} messages"}]}

    graph = _one_node(graphs.MessagesState, node, checkpointer=memory.MemorySaver())
    call = calling(graph)
    assert [read_output(call("hello")).response for _ in range(2)] == ["1 messages", "1 messages"]
    one = calling(graph.with_config({"configurable": {"thread_id": "one"}}))
    assert [read_output(one("hello")).response for _ in range(2)] == ["1 messages", "3 messages"]


# ---------------------------------------------------------------------------------------------------------------------
# mlflow


def test_pyfunc_models(tracking_store: str, tmp_path: Path) -> None:  # noqa: ARG001
    import mlflow
    import pandas as pd
    from mlflow.models import infer_signature

    class Batch(mlflow.pyfunc.PythonModel):  # type: ignore[misc, name-defined]
        def predict(self, context, model_input, params=None):  # noqa: ARG002 (a hint has a meaning to mlflow)
            return [f"you said {prompt}" for prompt in model_input]

    class Frame(mlflow.pyfunc.PythonModel):  # type: ignore[misc, name-defined]
        def predict(self, context, model_input, params=None):  # noqa: ARG002 (a hint has a meaning to mlflow)
            return pd.DataFrame({"answer": "you said " + model_input["question"]})

    signature = infer_signature(pd.DataFrame({"question": ["q"]}), pd.DataFrame({"answer": ["a"]}))
    for name, model, options in (("batch", Batch(), {}), ("frame", Frame(), {"signature": signature})):
        mlflow.pyfunc.save_model(str(tmp_path / name), python_model=model, **options)
        loaded = mlflow.pyfunc.load_model(str(tmp_path / name))
        assert asked(loaded) == Answer("you said hello"), name


def test_a_pyfunc_responses_agent(tracking_store: str, tmp_path: Path) -> None:  # noqa: ARG001
    import mlflow

    responses = pytest.importorskip("mlflow.types.responses")

    class Agent(mlflow.pyfunc.ResponsesAgent):  # type: ignore[misc, name-defined]
        def predict(self, request: Any) -> Any:
            call = self.create_function_call_item("i", "c", "search", '{"q": "x"}')
            text = self.create_text_output_item(f"you said {request.input[-1].content}", "1")
            return responses.ResponsesAgentResponse(output=[call, text])

    assert asked(Agent()) == Answer("you said hello", [SEARCH])
    mlflow.pyfunc.save_model(str(tmp_path / "agent"), python_model=Agent())
    assert asked(mlflow.pyfunc.load_model(str(tmp_path / "agent"))) == Answer("you said hello", [SEARCH])


def test_a_chat_agent_of_mlflow(tracking_store: str) -> None:  # noqa: ARG001
    import mlflow

    agents = pytest.importorskip("mlflow.types.agent")

    class Agent(mlflow.pyfunc.ChatAgent):  # type: ignore[misc, name-defined]
        def predict(self, messages: Any, context: Any = None, custom_inputs: Any = None) -> Any:  # noqa: ARG002
            said = agents.ChatAgentMessage(role="assistant", content=f"you said {messages[-1].content}", id="1")
            return agents.ChatAgentResponse(messages=[said])

    assert asked(Agent()).response == "you said hello"


def test_the_trajectory_of_a_trace(tracking_store: str) -> None:  # noqa: ARG001
    import mlflow
    from mlflow.entities import SpanType

    mlflow.set_experiment("runnables")

    @mlflow.trace(span_type=SpanType.TOOL)  # type: ignore[untyped-decorator]
    def search(q: str) -> str:
        return f"found {q}"

    @mlflow.trace(span_type=SpanType.AGENT)  # type: ignore[untyped-decorator]
    def agent(prompt: str) -> str:
        return str(search(q="x")) if prompt == "search" else "no tool is needed"

    async def agent_async(prompt: str) -> str:
        return str(agent(prompt))

    def untraced(prompt: str) -> str:
        return prompt

    rows = [{"prompt": p, "reference_trajectory": [SEARCH]} for p in ("search", "hello", "search")]
    for runnable in (agent, agent_async):
        table = EvalTask(rows, ["trajectory_recall"]).evaluate(runnable, max_workers=2).metrics_table
        assert table["predicted_trajectory"].tolist() == [[SEARCH], [], [SEARCH]]
    table = EvalTask(rows, ["trajectory_recall"]).evaluate(untraced).metrics_table
    assert table["predicted_trajectory"].tolist() == [None] * 3


def test_a_step_of_a_sequence_may_need_a_coroutine(monkeypatch: pytest.MonkeyPatch) -> None:
    class Step:
        steps: tuple[Any, ...] = ()
        coroutine = func = None

    monkeypatch.setattr("agent_eval_schema.evaluation.runnables._is_langchain", lambda part: isinstance(part, Step))
    last, whole = Step(), Step()
    whole.steps = (Step(), last)
    assert not _is_only_async(whole)
    last.coroutine = lambda: None
    assert _is_only_async(whole)
