"""Evaluation JSON ⇄ golden CSV: equal, or the loss is listed."""

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_eval_schema import EvalSetError, ces
from agent_eval_schema.formats.ces import schema
from tests.formats.ces.test_evaluation import APP, CONDITIONS, FULL, messages

PATH = "golden.turns[0].steps[1]"
HI = {"userInput": {"text": "Hi"}}


def evaluation(*steps: Any, **more: Any) -> dict[str, Any]:
    return {"displayName": "Refund", "golden": {"turns": [{"steps": [HI, *steps]}]}, **more}


def written(*evaluations: dict[str, Any], **options: Any) -> tuple[list[dict[str, Any]], list[tuple[str, str | None]]]:
    """What comes back from the CSV, and the losses as code and path."""
    before = copy.deepcopy(evaluations)
    text, losses = ces.golden_csv_text(evaluations, **options)
    assert evaluations == before
    file = ces.read_golden_csv(text)
    assert [i for i in file.issues if i.severity == "error" and i.code != "AE101"] == []  # there may be no rows
    return [dict(e) for e in file.evaluations], [(issue.code, issue.path) for issue in losses]


def test_what_a_csv_can_say_comes_back_equal() -> None:
    value = evaluation(
        {"userInput": {"variables": {"id": 7, "x": [1.5, None, {"y": "ü"}]}}},
        {"userInput": {"image": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}},
        {"userInput": {"toolResponses": {"toolResponses": [{"tool": "f", "response": {"output": 1}}]}}},
        {"expectation": {"toolCall": {"tool": "f"}}},
        {"expectation": {"toolCall": {"tool": "f", "args": {}}, "note": "none"}},
        {"expectation": {"toolResponse": {"tool": "f", "response": {}}}},
        {"expectation": {"agentTransfer": {"targetAgent": "other"}}},
        {"expectation": {"agentResponse": {"role": "root", "chunks": [{"text": 'a,"b"\r\nc'}]}}},
        name="refund",
        description="why\nso",
        tags=["a", "b c"],
    )
    assert written(value) == ([value], [])


@pytest.mark.parametrize("name", [n for n in FULL if n not in ("text", "image", "toolResponses", "variables")])
def test_other_inputs_are_losses(name: str) -> None:
    back, losses = written(evaluation({"userInput": {name: FULL[name]}}))
    assert losses == [("AE802", PATH)]
    assert back == [evaluation()]


@pytest.mark.parametrize("name", ["updatedVariables", "mockToolResponse", "noToolCalls"])
def test_other_expectations_are_losses(name: str) -> None:
    back, losses = written(evaluation({"expectation": {name: CONDITIONS[name], "note": "n"}}))
    assert losses == [("AE802", PATH)]
    assert back == [evaluation()]


def test_a_transfer_as_a_step_is_a_loss() -> None:
    assert written(evaluation({"agentTransfer": {"targetAgent": "x"}})) == ([evaluation()], [("AE802", PATH)])


def test_a_tool_of_a_toolset_is_a_loss() -> None:
    call = {"toolsetTool": {"toolset": "s", "toolId": "t"}}
    assert written(evaluation({"expectation": {"toolCall": call}})) == ([evaluation()], [("AE802", PATH)])


def test_chunks_that_are_no_text_are_a_loss() -> None:
    response = {"role": "r", "chunks": [{"text": "a"}, {"transcript": "b"}]}
    assert written(evaluation({"expectation": {"agentResponse": response}})) == ([evaluation()], [("AE802", PATH)])


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ({"userInput": {"text": 5}}, "`text` is the number 5, the CSV needs text there"),
        ({"userInput": {"variables": [1]}}, "`variables` is a list of 1, the CSV needs an object there"),
        (
            {"userInput": {"variables": {"a": float("nan")}}},
            "`variables` contains a value that JSON cannot represent, or is nested too deeply",
        ),
        (
            {"userInput": {"image": {"mimeType": "image/png", "data": "####"}}},
            "an image of the text 'image/png' with the text '####'",
        ),
        ({"userInput": {"toolResponses": {}}}, "no tool response in it"),
        (
            {"expectation": {"agentResponse": {"role": "r", "chunks": [{"text": "a"}, {"text": 5}]}}},
            "chunks that are not text",
        ),
    ],
    ids=str,
)
def test_a_step_with_a_value_that_no_cell_can_hold_is_one_loss_with_its_reason(step: Any, reason: str) -> None:
    text, losses = ces.golden_csv_text([evaluation(step)])
    assert [(loss.path, loss.message) for loss in losses] == [(PATH, f"the step is excluded: {reason}")]
    assert text == ces.golden_csv_text([evaluation()])[0]


def test_tags_that_are_no_list_are_a_loss() -> None:
    losses = ces.golden_csv_text([evaluation(tags="a;b")])[1]
    assert [(loss.path, loss.message) for loss in losses] == [("tags", "expected a list, got the text 'a;b'")]


CALL = {"toolCall": {"tool": "f"}}


@pytest.mark.parametrize(
    ("step", "path"),
    [
        ({"userInput": {"text": "a", "willContinue": True}}, "userInput.willContinue"),
        ({"expectation": {**CALL, "comparisonType": "EQUALS"}}, "expectation.comparisonType"),
        ({"expectation": {**CALL, "skipEvaluation": True}}, "expectation.skipEvaluation"),
        ({"expectation": {**CALL, "new": {"x": 1}}}, "expectation.new"),
        (
            {"expectation": {**CALL, "expectationLevelMetricsThresholdsOverride": {}}},
            "expectation.expectationLevelMetricsThresholdsOverride",
        ),
        ({"expectation": {"toolCall": {"tool": "f", "id": "1"}}}, "expectation.toolCall.id"),
        ({"expectation": {"toolCall": {"tool": "f", "displayName": "F"}}}, "expectation.toolCall.displayName"),
        ({"expectation": {"toolResponse": {"tool": "f", "response": {"a": 1}}}}, "expectation.toolResponse.response"),
        ({"expectation": {"toolResponse": {"tool": "f"}}}, "expectation.toolResponse.response"),
        (
            {
                "expectation": {
                    "agentResponse": {"role": "r", "chunks": [{"text": "a"}], "eventTime": "2025-01-31T00:00:00Z"}
                }
            },
            "expectation.agentResponse.eventTime",
        ),
        (
            {"expectation": {"agentResponse": {"role": "r", "chunks": [{"text": "a"}, {"text": "b"}]}}},
            "expectation.agentResponse.chunks",
        ),
        (
            {"userInput": {"toolResponses": {"toolResponses": [{"tool": "f", "response": {}}] * 2}}},
            "userInput.toolResponses.toolResponses",
        ),
    ],
)
def test_a_field_without_a_column_is_a_loss_and_its_step_is_kept(step: Any, path: str) -> None:
    back, losses = written(evaluation(step))
    assert losses == [("AE803", f"{PATH}.{path}")]
    assert len(back[0]["golden"]["turns"][0]["steps"]) >= 2


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"evaluationMetricsThresholdOverride": {"x": 1}}, "evaluationMetricsThresholdOverride"),
        ({"evaluationMetricsConfigOverride": {}}, "evaluationMetricsConfigOverride"),
        ({"evaluationDatasets": ["g"]}, "evaluationDatasets"),
        ({"etag": "x"}, "etag"),
        ({"labels": 0}, "labels"),
        ({"description": "  "}, "description"),
        ({"display_name": "b"}, "display_name"),
    ],
)
def test_a_field_of_the_evaluation_without_a_column_is_a_loss(change: dict[str, Any], path: str) -> None:
    back, losses = written(evaluation(**change))
    assert losses == [("AE803", path)]
    assert back == [evaluation()]


def test_fields_of_the_conversation_without_a_column_are_losses() -> None:
    value = evaluation()
    value["golden"]["evaluationExpectations"] = ["x"]
    value["golden"]["turns"][0]["rootSpan"] = {"name": "s"}
    value["golden"]["turns"][0]["hallucinationMetricBehaviorOverride"] = "ENABLED"
    back, losses = written(value)
    assert sorted(losses, key=str) == [
        ("AE803", "golden.evaluationExpectations"),
        ("AE803", "golden.turns[0].hallucinationMetricBehaviorOverride"),
        ("AE803", "golden.turns[0].rootSpan"),
    ]
    assert back == [evaluation()]


@pytest.mark.parametrize("value", [np.array([]), np.array([1, 2]), pd.Series([1])], ids=repr)
def test_a_field_that_has_no_truth_is_a_loss(value: Any) -> None:
    text, losses = ces.golden_csv_text([evaluation(labels=value)])
    assert [(loss.code, loss.path) for loss in losses] == [("AE803", "labels")]
    assert ces.read_golden_csv(text).evaluations == [evaluation()]


def test_a_field_without_a_value_is_no_loss() -> None:
    assert written(evaluation(etag="", evaluationDatasets=[])) == ([evaluation()], [])


def test_a_scenario_is_a_loss() -> None:
    assert written({"displayName": "a", "scenario": {"task": "x"}}) == ([], [("AE801", "scenario")])


def test_a_tag_or_group_with_a_semicolon_is_a_loss() -> None:
    back, losses = written(evaluation(tags=["a;b", "c", " d"]), groups={"Refund": ["g", "h;i"]})
    assert losses == [("AE804", "tags[0]"), ("AE804", "tags[2]"), ("AE804", "evaluation_groups[1]")]
    assert back[0]["tags"] == ["c"]


def test_names_become_display_names_by_a_map_or_stay_and_that_is_said() -> None:
    value = evaluation({"expectation": {"toolCall": {"tool": f"{APP}/tools/1"}}})
    assert written(value) == ([value], [("AE805", f"{PATH}.expectation.toolCall.tool")])
    back, losses = written(value, names={"get_order": f"{APP}/tools/1"})
    assert losses == []
    assert back == [evaluation({"expectation": {"toolCall": {"tool": "get_order"}}})]


def test_evaluations_that_cannot_be_told_apart_or_found_are_losses() -> None:
    value = evaluation()
    assert written(value, value)[1] == [("AE806", "displayName")]
    (loss,) = ces.golden_csv_text([value, value])[1]
    assert loss.message == "the evaluation is excluded: duplicate display name"
    assert written({"golden": value["golden"]})[1] == [("AE806", "displayName")]
    assert written({"displayName": "a", "golden": {}})[1] == [("AE806", "displayName")]
    assert written({"displayName": "a", "goldenResult": {"turnReplayResults": []}})[1] == [("AE806", None)]
    again = {**value, "displayName": "Other"}
    assert written({**value, "name": "x"}, {**again, "name": "x"}) == (
        [{**value, "name": "x"}, again],
        [("AE803", "name")],
    )
    (loss,) = ces.golden_csv_text([{**value, "name": "x"}, {**again, "name": "x"}])[1]
    assert loss.message == "the text 'x' is the ID of another evaluation: the cell stays blank"
    only_event = {"displayName": "a", "golden": {"turns": [{"steps": [{"userInput": {"event": {"event": "x"}}}]}]}}
    assert written(only_event) == (
        [],
        [
            ("AE802", "golden.turns[0].steps[0]"),
            ("AE802", "golden.turns[0]"),
            ("AE806", "golden"),
        ],
    )


def test_a_turn_that_is_left_out_leaves_no_gap() -> None:
    value = {"displayName": "a", "golden": {"turns": [{"steps": []}, {"steps": [HI]}]}}
    back, losses = written(value)
    assert losses == [("AE802", "golden.turns[0]")]
    assert len(back[0]["golden"]["turns"]) == 1


def test_the_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "golden.csv"
    losses = ces.write_golden_csv([evaluation()], path)
    assert losses == []
    assert ces.read_golden_csv(path).evaluations == [evaluation()]
    assert path.read_bytes().endswith(b"\r\n")
    with pytest.raises(EvalSetError):
        ces.write_golden_csv([evaluation()], tmp_path / "nowhere" / "golden.csv")
    assert [p.name for p in tmp_path.iterdir()] == ["golden.csv"]


# ---------------------------------------------------------------------------------------------------------------------
# whatever there is, it comes back or is listed


def differences(before: Any, after: Any, path: str = "") -> list[str]:
    """The paths of what did not come back: deepest first, a missing step at the step."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = dict.fromkeys([*before, *after])
        found = [(f"{path}.{k}" if path else k, before.get(k), after.get(k)) for k in keys]
        return [d for p, b, a in found for d in differences(b, a, p)]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [
            d for i, (b, a) in enumerate(zip(before, after, strict=True)) for d in differences(b, a, f"{path}[{i}]")
        ]
    return [] if before == after or (before in (None, "", []) and after is None) else [path]


def spelled(name: str, value: Any) -> Any:
    """The same by the JSON names, without what is null."""
    message = schema.message(name)
    if not isinstance(value, dict):
        return value
    found = {}
    for key, item in value.items():
        json_name = message.json_name(key) or key
        field = message.fields.get(json_name)
        if item is not None and field is not None and field.message:
            item = [spelled(field.message, i) for i in item] if isinstance(item, list) else spelled(field.message, item)
        if item is not None:
            found[json_name] = item
    return found


def is_listed(path: str, losses: list[str]) -> bool:
    """A loss at the path, above it, or below it (a list that came back shorter)."""
    return any(path.startswith(loss) or loss.startswith(path) for loss in losses)


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(st.lists(messages("Evaluation"), min_size=1, max_size=2))
def test_json_to_csv_to_json_is_equal_or_listed(values: list[dict[str, Any]]) -> None:
    text, losses = ces.golden_csv_text(values)
    file = ces.read_golden_csv(text)
    assert [i for i in file.issues if i.severity == "error" and i.code != "AE101"] == []  # there may be no rows
    listed: dict[int, list[str]] = {}
    for issue in losses:
        listed.setdefault(issue.row or 0, []).append(issue.path or "")
    gone = {issue.row for issue in losses if issue.code in ("AE801", "AE806")}
    kept = [number for number in range(len(values)) if number not in gone]
    assert len(kept) == len(file.evaluations)
    for number, back in zip(kept, file.evaluations, strict=True):
        value = spelled("Evaluation", json.loads(json.dumps(values[number])))
        for path in differences(value, dict(back)):
            assert is_listed(path, listed.get(number, [])), (path, listed)


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(st.lists(messages("Evaluation"), min_size=1, max_size=2))
def test_csv_to_json_to_csv_is_equal(values: list[dict[str, Any]]) -> None:
    """What a CSV says is said again by the CSV of what was read from it, without any loss."""
    text, _ = ces.golden_csv_text(values)
    file = ces.read_golden_csv(text)
    again, losses = ces.golden_csv_text(file.evaluations, groups=file.groups)
    assert again == text
    assert [issue for issue in losses if issue.code != "AE805"] == []
    evaluations = ces.read_evaluations(ces.write_evaluations(file.evaluations))
    assert evaluations == file.evaluations


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda s: (
            st.lists(s, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "displayName",
                        "golden",
                        "turns",
                        "steps",
                        "userInput",
                        "text",
                        "expectation",
                        "toolCall",
                        "tool",
                        "agentResponse",
                        "chunks",
                        "tags",
                        "name",
                    ]
                ),
                s,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_nothing_makes_the_writer_stumble(value: Any) -> None:
    """Data that is no evaluation at all is left out or written in part, and that is said."""
    made = value if isinstance(value, dict) else {"golden": value}
    text, losses = ces.golden_csv_text([{"displayName": "a", **made}])
    assert losses or ces.read_golden_csv(text).evaluations
