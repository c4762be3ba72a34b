"""What other platforms write and accept, recorded with their own packages, which are too heavy for the tests.

    python3 -m venv /tmp/deepeval && /tmp/deepeval/bin/pip install deepeval
    /tmp/deepeval/bin/python tests/recorders/platforms.py deepeval

Run it from the top of the repository, in an environment that has the platform's package and nothing of this project:
deepeval, ragas (with langchain-community<0.4), openai, langsmith, google-cloud-aiplatform[evaluation] for vertex and
vertex-genai, inspect-ai for inspect, strands-agents-evals for strands, or azure-ai-evaluation for azure.
It writes `theirs.*`, by the platform's own writer, and `accepted.json`: the version, and for each file `ours.*` how its
own loader read it. tests/formats/test_platforms.py writes `ours.*` (UPDATE_GOLDEN=1) and compares.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

FOLDER = Path("tests/data/platforms")
CALL = {"employee": "E1042", "days": [1, 2]}


def deepeval(folder: Path) -> None:
    os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "YES"
    from deepeval.dataset import ConversationalGolden, EvaluationDataset, Golden
    from deepeval.dataset.expectations import Expectations
    from deepeval.dataset.golden import Persona
    from deepeval.test_case import LLMTestCase, RetrievedContextData, ToolCall, Turn

    call = ToolCall(name="get_balance", input_parameters=CALL)
    goldens = [
        Golden(
            input="How many days?",
            actual_output="12.",
            expected_output="12 days.",
            context=["You have 12 days.", "Leave is paid."],
            retrieval_context=[RetrievedContextData(context="Leave is paid.", source="leave.pdf"), "It's 12."],
            tools_called=[ToolCall(name="get_balance", input_parameters=CALL, output=12, description="days left")],
            expected_tools=[call],
            additional_metadata={"team": "hr", "level": 2},
            comments="from the hand book",
            name="case 1",
            source_file="leave.pdf",
            custom_column_key_values={"owner": "Ann"},
            expectations=Expectations(must=["names 12"], must_not=["greets"]),
        ),
        Golden(input="Who decides?"),
    ]
    turns = [
        Turn(role="user", content="Hi"),
        Turn(role="assistant", content="Hello!"),
        Turn(role="user", content="Friday off?"),
        Turn(role="assistant", content="Booked.", tools_called=[call], retrieval_context=["Fridays are fine."]),
    ]
    conversations = [
        ConversationalGolden(
            scenario="Ann wants a day off.",
            expected_outcome="The day is booked.",
            persona=Persona(characteristics="curt"),
            turns=turns,
            context=["a", "b"],
            name="day off",
            additional_metadata={"level": 1},
        ),
        ConversationalGolden(scenario="Bob asks for his balance.", expected_outcome="He knows it."),
    ]
    for kind in ("json", "jsonl", "csv"):
        EvaluationDataset(goldens=goldens).save_as(kind, str(folder), "theirs_goldens")
        EvaluationDataset(goldens=conversations).save_as(kind, str(folder), "theirs_conversations")
    case = LLMTestCase(
        input="q", actual_output="a", retrieval_context=["x"], tools_called=[call], tags=["smoke"], metadata={"n": 1}
    )
    _write(folder / "theirs_cases_camel.json", [case.model_dump(by_alias=True)])
    _write(folder / "theirs_cases_snake.json", [case.model_dump()])

    def load(path: Path) -> Any:
        dataset = EvaluationDataset()
        getattr(dataset, f"add_goldens_from_{path.suffix[1:]}_file")(str(path))
        return [golden.model_dump(mode="json", exclude_none=True, exclude_defaults=True) for golden in dataset.goldens]

    _record(folder, "deepeval", load)


def ragas(folder: Path) -> None:
    from ragas import EvaluationDataset, MultiTurnSample, SingleTurnSample
    from ragas.messages import AIMessage, HumanMessage, ToolCall, ToolMessage

    call = ToolCall(name="get_balance", args=CALL)
    single = EvaluationDataset(
        [
            SingleTurnSample(
                user_input="How many days?",
                response="12.",
                reference="12 days.",
                retrieved_contexts=["You have 12 days.", "It's paid."],
                reference_contexts=["You have 12 days."],
                retrieved_context_ids=["leave.pdf", 7],
                rubrics={"score1_description": "wrong"},
                persona_name="Ann",
            ),
            SingleTurnSample(user_input="Who decides?"),
            SingleTurnSample(response="Hello", reference="Hi"),
        ]
    )
    messages = [
        HumanMessage(content="How many days?"),
        AIMessage(content="", tool_calls=[call]),
        ToolMessage(content="12"),
        AIMessage(content="12 days.", metadata={"model": "m"}),
    ]
    multi = EvaluationDataset(
        [
            MultiTurnSample(
                user_input=messages, reference="12 days.", reference_tool_calls=[call], reference_topics=["hr"]
            )
        ]
    )
    for name, dataset in (("single", single), ("multi", multi)):
        dataset.to_jsonl(folder / f"theirs_{name}.jsonl")
        dataset.to_csv(folder / f"theirs_{name}.csv")

    def load(path: Path) -> Any:
        return EvaluationDataset.from_jsonl(path).to_list()

    _record(folder, "ragas", load)


def langsmith(folder: Path) -> None:
    from langsmith.schemas import Example, ExampleCreate

    whole = Example(
        id="3f1c7a52-0000-4000-8000-000000000001",
        dataset_id="3f1c7a52-0000-4000-8000-00000000000a",
        inputs={"question": "How many days?", "k": 3},
        outputs={"output": "12 days.", "score": 0.5},
        metadata={"level": 2, "team": "hr", "dataset_split": ["base"]},
        modified_at="2026-11-01T00:00:00Z",
    )
    without = Example(
        id="3f1c7a52-0000-4000-8000-000000000002", inputs={"messages": [{"role": "user", "content": "Hi"}]}
    )
    lines = [example.model_dump(mode="json") for example in (whole, without)]
    _write_lines(folder / "theirs_examples.jsonl", lines)
    made = "2026-11-01T00:00:00Z"
    new = ExampleCreate(
        created_at=made, inputs={"question": "Hi"}, reference_outputs={"answer": "Hello"}, metadata={"level": 1}
    )
    _write(folder / "theirs_new.json", [new.model_dump(mode="json", exclude_none=True)])

    def load(path: Path) -> Any:
        made = [ExampleCreate(**_for_create(row)) for row in _rows(path)]
        return [example.model_dump(mode="json", exclude_none=True, exclude={"created_at"}) for example in made]

    _record(folder, "langsmith", load)


def _for_create(row: dict[str, Any]) -> dict[str, Any]:
    known = ("id", "inputs", "outputs", "reference_outputs", "metadata", "split")
    given = {name: value for name, value in row.items() if name in known and value is not None}
    if "outputs" in given:
        given["reference_outputs"] = given.pop("outputs")
    return given


def openai(folder: Path) -> None:
    from openai.types.evals.create_eval_jsonl_run_data_source_param import SourceFileContentContent
    from pydantic import TypeAdapter

    content = TypeAdapter(SourceFileContentContent)
    lines = [
        content.validate_python(
            {"item": {"ticket_text": "My monitor stays dark.", "correct_label": "Hardware", "tier": 2, "tags": ["a"]}}
        ),
        content.validate_python(
            {"item": {"input": [{"role": "user", "content": "Hi"}], "ideal": "Hello"}, "sample": {"output_text": "Hey"}}
        ),
    ]
    _write_lines(folder / "theirs_content.jsonl", lines)
    _record(folder, "openai", lambda path: [content.validate_python(row) for row in _rows(path)])


def vertex(folder: Path) -> None:
    import pandas as pd
    from vertexai.preview.evaluation import utils
    from vertexai.preview.evaluation.metrics._instance_evaluation import build_trajectory

    steps = [[{"kwargs": {"tool": "get_balance", "tool_input": given}}, "12"] for given in (CALL, "E1042")]
    trajectory = utils.parse_intermediate_steps(steps)
    table = pd.DataFrame(
        {
            "predicted_trajectory": [trajectory, trajectory[:1]],
            "reference_trajectory": [json.dumps(trajectory), json.dumps(trajectory)],
            "latency_in_seconds": [0.5, 1.25],
            "failure": [0, 1],
            "trajectory_exact_match/score": [1.0, 0.0],
        }
    )
    table.to_json(folder / "theirs_results.jsonl", orient="records", lines=True)
    texts = pd.DataFrame({"response": ["12.", "Hi"], "reference": ["12 days.", "Hello"]})
    texts.to_csv(folder / "theirs_texts.csv", index=False)
    with_prompt = table.assign(prompt=["How many days?", "And now?"], response=["12.", None])
    with_prompt.to_json(folder / "theirs_prompts.jsonl", orient="records", lines=True)

    def load(path: Path) -> Any:
        loaded = utils.load_dataset(str(path))
        names = [n for n in ("predicted_trajectory", "reference_trajectory") if n in loaded]
        filled = {n: [c for c in loaded[n] if isinstance(c, str | list) and c not in ([], "[]")] for n in names}
        built = {n: [str(build_trajectory(cell)) for cell in cells] for n, cells in filled.items()}
        assert "None" not in [text for texts in built.values() for text in texts]  # which is what it drops
        return {"columns": sorted(map(str, loaded.columns)), "rows": len(loaded), "trajectories": built}

    _record(folder, "google-cloud-aiplatform", load)


def vertex_genai(folder: Path) -> None:
    from agentplatform._genai import types
    from agentplatform._genai._evals_data_converters import _FlattenEvalDataConverter
    from google.genai.types import Content, FunctionCall, Part

    def content(text: str, role: str) -> Content:
        return Content(role=role, parts=[Part(text=text)])

    call = Part(function_call=FunctionCall(name="get_balance", args=CALL))
    cases = [
        types.EvalCase(
            eval_case_id="balance",
            prompt=content("How many days?", "user"),
            responses=[types.ResponseCandidate(response=content("You have 12.", "model"))],
            reference=types.ResponseCandidate(response=content("12 days.", "model")),
            system_instruction=content("Be brief.", "user"),
            intermediate_events=[
                types.evals.Event(event_id="e1", author="model", content=Content(role="model", parts=[call]))
            ],
        ),
        types.EvalCase(prompt=content("Who decides?", "user")),
    ]
    dataset = types.EvaluationDataset(eval_cases=cases)
    _write(folder / "theirs_dataset.json", dataset.model_dump(mode="json"))
    scores = [
        types.EvalCaseMetricResult(metric_name="final_response_match_v2", score=1.0, explanation="It names 12."),
        types.EvalCaseMetricResult(metric_name="safety_v1", error_message="No quota."),
    ]
    found = types.ResponseCandidateResult(response_index=0, metric_results={str(s.metric_name): s for s in scores})
    result = types.EvaluationResult(
        eval_case_results=[types.EvalCaseResult(eval_case_index=0, response_candidate_results=[found])],
        summary_metrics=[types.AggregatedMetricResult(metric_name="safety_v1", num_cases_total=1, num_cases_error=1)],
        evaluation_dataset=[dataset],
    )
    _write(folder / "theirs_result.json", result.model_dump(mode="json"))

    def load(path: Path) -> Any:
        if path.suffix == ".json":
            found = types.EvaluationDataset.model_validate_json(path.read_bytes())
            return found.model_dump(mode="json", exclude_none=True)
        answered = [row for row in _rows(path) if row.get("response")]  # it refuses a row without a response
        found = _FlattenEvalDataConverter().convert(answered).eval_cases
        return [case.model_dump(mode="json", exclude_none=True) for case in found]

    _record(folder, "google-cloud-aiplatform", load)


def inspect(folder: Path) -> None:
    from inspect_ai.dataset import Sample, csv_dataset, json_dataset
    from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageTool, ChatMessageUser
    from inspect_ai.tool import ToolCall

    samples = [
        Sample(id=1, input="Capital of France?", target="Paris", choices=["Lyon", "Paris"], metadata={"topic": "geo"}),
        Sample(
            id="b",
            input=[ChatMessageSystem(content="You help."), ChatMessageUser(content="2+2?")],
            target=["4", "four"],
            setup="echo start",
            files={"notes.txt": "2+2"},
        ),
        Sample(
            id="c",
            input=[
                ChatMessageUser(content="How many days?"),
                ChatMessageAssistant(content="", tool_calls=[ToolCall(id="1", function="get_balance", arguments=CALL)]),
                ChatMessageTool(content="12", tool_call_id="1", function="get_balance"),
                ChatMessageUser(content="And next year?"),
            ],
            target="12",
        ),
    ]
    kept = {"exclude_none": True, "exclude": {"input": {"__all__": {"id"}}}}
    lines = [{k: v for k, v in sample.model_dump(mode="json", **kept).items() if v != ""} for sample in samples]
    _write_lines(folder / "theirs_samples.jsonl", lines)

    def load(path: Path) -> Any:
        read = {".csv": csv_dataset, ".json": json_dataset, ".jsonl": json_dataset}[path.suffix]
        return [sample.model_dump(mode="json", **kept) for sample in read(str(path))]

    _record(folder, "inspect-ai", load)


def azure(folder: Path) -> None:
    import pandas as pd
    from azure.ai.evaluation._evaluate._utils import DataLoaderFactory
    from azure.ai.evaluation._evaluators._common._validators import ConversationValidator
    from azure.ai.evaluation._exceptions import ErrorTarget

    call = {"type": "tool_call", "tool_call_id": "c1", "name": "get_balance", "arguments": CALL}
    result = {"type": "tool_result", "tool_result": {"days": 12}}
    answer = {"role": "assistant", "content": [{"type": "text", "text": "12 days."}]}
    messages = [
        {"role": "assistant", "content": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": [result]},
        answer,
    ]
    lines = [
        {"query": "How many days?", "response": "12.", "context": "Leave is paid.", "ground_truth": "12 days."},
        {"query": [{"role": "user", "content": [{"type": "text", "text": "How many?"}]}], "response": messages},
    ]
    check = ConversationValidator(error_target=ErrorTarget.COHERENCE_EVALUATOR).validate_eval_input

    def load(path: Path) -> Any:
        table = DataLoaderFactory.get_loader(path).load()
        rows = [{k: v for k, v in row.items() if v is not None and v == v} for row in table.to_dict("records")]
        for row in rows:
            if "query" in row and row.get("response"):  # it rejects an empty answer
                check({"query": row["query"], "response": row["response"]})
        return rows

    _write_lines(folder / "theirs_rows.jsonl", lines)
    load(folder / "theirs_rows.jsonl")
    pd.DataFrame(lines[:1]).to_csv(folder / "theirs_texts.csv", index=False)
    _record(folder, "azure-ai-evaluation", load)


def strands(folder: Path) -> None:
    from strands_evals import Case, Experiment

    cases = [
        Case(
            name="balance",
            session_id="3f1c7a52-0000-4000-8000-000000000001",
            input="How many days?",
            expected_output="12 days.",
            expected_trajectory=["get_balance"],
            expected_assertion="Names 12.",
            metadata={"team": "hr", "level": 2},
        ),
        Case(name="decides", session_id="3f1c7a52-0000-4000-8000-000000000002", input="Who decides?"),
    ]
    Experiment(cases=cases, evaluators=[]).to_file(str(folder / "theirs_experiment.json"))

    def load(path: Path) -> Any:
        found = Experiment.from_file(str(path)).cases
        return [case.model_dump(mode="json", exclude_none=True, exclude={"session_id"}) for case in found]

    _record(folder, "strands-agents-evals", load)


# ---------------------------------------------------------------------------------------------------------------------
# files
def _rows(path: Path) -> Iterator[dict[str, Any]]:
    text = path.read_text(encoding="utf-8")
    yield from json.loads(text) if path.suffix == ".json" else map(json.loads, text.splitlines())


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _write_lines(path: Path, rows: list[Any]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _record(folder: Path, package: str, load: Callable[[Path], Any]) -> None:
    """Let the platform's own loader read what we wrote; it raises for what it refuses."""
    read = {path.name: {"digest": digest(path), "loaded": load(path)} for path in sorted(folder.glob("ours*"))}
    _write(folder / "accepted.json", {"package": package, "version": version(package), "files": read})


if __name__ == "__main__":
    (name,) = sys.argv[1:]
    place = FOLDER / name
    place.mkdir(parents=True, exist_ok=True)
    with contextlib.redirect_stdout(io.StringIO()):
        globals()[name.replace("-", "_")](place)
    print(f"recorded in {place}: {', '.join(sorted(path.name for path in place.iterdir()))}")
