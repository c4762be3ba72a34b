"""What an update sends: masks by comparison, masks as given, names and etags; the body of an import."""

from __future__ import annotations

import base64
import copy
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_eval_schema import EvalSetError
from agent_eval_schema.cli import main
from agent_eval_schema.formats.ces.schema import message, table
from agent_eval_schema.formats.ces.update import (
    arguments_of,
    check_mask,
    difference,
    faults_of,
    import_request,
    plan_update,
    plan_updates,
    rest_path,
    stated,
    update_request,
    with_json_names,
)
from agent_eval_schema.rules.reading import MAX_DEPTH
from tests.helpers.mutations import damage, samples

NAME = "projects/p1/locations/us/apps/a1/evaluations/refund"

TURN = {"steps": [{"userInput": {"text": "I want a refund"}}]}
GOLDEN = {"turns": [TURN]}
SCENARIO = {"task": "Get a refund", "rubrics": ["Polite"], "scenarioExpectations": []}
STORED: dict[str, Any] = {
    "name": NAME,
    "displayName": "Refund",
    "tags": ["smoke"],
    "golden": GOLDEN,
    "etag": "e1",
    "createTime": "2026-01-01T00:00:00Z",
    "evaluationDatasets": ["projects/p1/locations/us/apps/a1/evaluationDatasets/d1"],
}


def with_(**changes: Any) -> dict[str, Any]:
    """The stored evaluation with other fields; None takes one out."""
    return {k: v for k, v in (copy.deepcopy(STORED) | changes).items() if v is not None}


def mask_of(new: Any, old: Any = STORED) -> str:
    return str(update_request(new, old)["params"]["arguments"]["updateMask"])


# ---------------------------------------------------------------------------------------------------------------------
# the request


def test_evaluations_of_any_shape_are_planned_or_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    evaluations = [row for rows in samples().values() for row in rows if {"golden", "scenario"} & row.keys()]
    done = Counter[str]()
    for seed in range(400):
        chance = random.Random(seed)
        old, new = (copy.deepcopy(chance.choice(evaluations)) | {"name": NAME} for _ in range(2))
        new = copy.deepcopy(old) if chance.random() < 0.7 else new
        for side in (old, new):
            for _ in range(chance.randrange(4)):
                damage(chance, side)
        try:
            update = plan_update(new, old)
            done["refused" if faults_of(update) else "planned"] += 1
        except EvalSetError:
            done["refused"] += 1
        if seed % 20 == 0:
            Path("old.json").write_text(json.dumps(old))
            Path("new.json").write_text(json.dumps(new))
            assert main(["ces", "update", "new.json", "--against", "old.json"]) in (0, 1, 2), seed
            assert "Traceback" not in capsys.readouterr().err
    assert min(done.values()) > 50, done


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"golden": {"turns": [{"steps": [{"userInput": {"text": "a", "event": {}}}]}], "x": {}}}, {"golden": "text"}),
        ({"golden": "text"}, {"golden": {"turns": []}}),
        ({"scenario": {"userGoalBehavior": {"a": 1}}}, {"scenario": {"userGoalBehavior": ["b"]}}),
        ({"tags": {"a": {"b": 1}}}, {"tags": [{"a": 1}]}),
    ],
)
def test_fields_of_the_wrong_type_are_compared_whole(old: Any, new: Any) -> None:
    assert difference(old, new) == (next(iter(new)),) or difference(old, new) == ("scenario.userGoalBehavior",)


def test_the_body_is_that_of_the_seed() -> None:
    assert update_request(with_(displayName="Refunds"), STORED) == {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": "update_evaluation",
            "arguments": {
                "evaluation": {
                    "name": NAME,
                    "etag": "e1",
                    "displayName": "Refunds",
                    "tags": ["smoke"],
                    "golden": GOLDEN,
                },
                "updateMask": "displayName",
            },
        },
    }


@pytest.mark.parametrize("write", [lambda e: e, json.dumps])
def test_neither_side_is_changed_and_text_will_do(write: Any) -> None:
    new, old = with_(description="d"), copy.deepcopy(STORED)
    request = update_request(write(new), write(old))
    request["params"]["arguments"]["evaluation"]["golden"]["turns"].clear()
    assert (new, old) == (with_(description="d"), STORED)
    assert request["params"]["arguments"]["updateMask"] == "description"


@pytest.mark.parametrize(
    ("new", "mask"),
    [
        (with_(displayName="B", description="d", tags=None), "displayName,description,tags"),
        (with_(golden={"turns": [TURN, TURN]}), "golden.turns"),
        (with_(golden=GOLDEN | {"evaluationExpectations": ["x"]}), "golden.evaluationExpectations"),
        (with_(golden=None, scenario=SCENARIO), "golden,scenario"),  # a switch: the one cleared, the other written
        ({"display_name": "B", **with_(displayName=None)}, "displayName"),  # ProtoJSON takes both names
        (with_(evaluationMetricsThresholdOverride={}), "evaluationMetricsThresholdOverride"),
        (with_(tags=["smoke", "b"], lastTenResults=[{"name": "r"}], evaluationDatasets=None), "tags"),
    ],
)
def test_the_mask_is_what_differs(new: Any, mask: str) -> None:
    assert mask_of(new) == mask


def test_a_mask_goes_as_deep_as_messages_do_and_no_deeper() -> None:
    key, golden = "evaluationMetricsThresholdOverride", "goldenEvaluationMetricsThresholds"
    old = with_(**{key: {golden: {"toolMatchingSettings": {"extraToolCallBehavior": "FAIL"}}}})
    new = with_(**{key: {golden: {"toolMatchingSettings": {"extraToolCallBehavior": "ALLOW"}}}})
    assert mask_of(new, old) == f"{key}.{golden}.toolMatchingSettings.extraToolCallBehavior"
    old, new = (with_(golden=None, scenario=SCENARIO | {"variableOverrides": {"vip": v}}) for v in (True, False))
    assert mask_of(new, old) == "scenario.variableOverrides"  # a free-form object is written whole


THRESHOLD = "overallToolInvocationCorrectnessThreshold"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"tags": []}, {}),
        ({"description": ""}, {}),
        ({"description": None}, {}),
        ({"golden": {"turns": [{"steps": [{"userInput": {"text": "a", "willContinue": False}}]}]}},
         {"golden": {"turns": [{"steps": [{"userInput": {"text": "a"}}]}]}}),
        ({"golden": {"turns": [{"hallucinationMetricBehaviorOverride": 1}]}},
         {"golden": {"turns": [{"hallucination_metric_behavior_override": "DISABLED"}]}}),
        ({"scenario": {"variableOverrides": {"n": 1}}}, {"scenario": {"variable_overrides": {"n": 1.0}}}),
    ],
)  # fmt: skip
def test_what_the_server_holds_alike_does_not_differ(old: Any, new: Any) -> None:
    assert difference(old, with_json_names(new)) == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"golden": {"turns": [{"turnLevelMetricsThresholdsOverride": {THRESHOLD: 0}}]}},
         {"golden": {"turns": [{"turnLevelMetricsThresholdsOverride": {}}]}}),  # 0 is a value where presence is told
        ({"golden": {"turns": [{"steps": [{"userInput": {"text": ""}}]}]}},
         {"golden": {"turns": [{"steps": [{"userInput": {}}]}]}}),  # so it is in a oneof
        ({"golden": {"turns": [{"steps": [{"expectation": {"toolCall": {"args": {"a": None}}}}]}]}},
         {"golden": {"turns": [{"steps": [{"expectation": {"toolCall": {"args": {}}}}]}]}}),  # null in free-form data
    ],
)  # fmt: skip
def test_what_the_server_tells_apart_does(old: Any, new: Any) -> None:
    assert difference(old, new) == ("golden.turns",)


def test_a_default_says_nothing_and_an_enum_has_its_name() -> None:
    modes = {"maxTurns": 0, "userGoalBehavior": 0, "scenarioExecutionMode": "SCENARIO_EXECUTION_MODE_UNSPECIFIED"}
    empty = {"displayName": "", "tags": [], "golden": None, "colour": 0}
    assert stated({**empty, "scenario": {"task": "t", **modes}}) == {"colour": 0, "scenario": {"task": "t"}}
    modes = {"maxTurns": 1, "userGoalBehavior": 1, "scenarioExecutionMode": 99}
    known = {**modes, "userGoalBehavior": "USER_GOAL_SATISFIED"}  # 99 is of a later version of the API
    assert stated({"displayName": "A", "scenario": modes}) == {"displayName": "A", "scenario": known}


_texts = st.sampled_from(["a", "b", ""])
_thresholds = st.fixed_dictionaries(
    {}, optional={"toolMatchingSettings": st.sampled_from([{}, {"extraToolCallBehavior": "ALLOW"}])}
)
_turns = st.lists(st.sampled_from([TURN, {"steps": []}]), min_size=1, max_size=2)
_golden = st.fixed_dictionaries({"turns": _turns}, optional={"evaluationExpectations": st.lists(_texts, max_size=1)})
_scenario = st.fixed_dictionaries(
    {"task": st.sampled_from(["t", "u"]), "rubrics": st.just(["r"]), "scenarioExpectations": st.just([{}])},
    optional={"maxTurns": st.integers(0, 2), "variableOverrides": st.dictionaries(_texts, st.none() | st.booleans())},
)
_rest = {
    "description": _texts,
    "tags": st.lists(_texts, max_size=2),
    "evaluationMetricsThresholdOverride": st.fixed_dictionaries(
        {}, optional={"goldenEvaluationMetricsThresholds": _thresholds}
    ),
}
_base = {"name": st.just(NAME), "displayName": st.sampled_from("AB")}
evaluations = st.one_of(
    st.fixed_dictionaries({**_base, "golden": _golden}, optional=_rest),
    st.fixed_dictionaries({**_base, "scenario": _scenario}, optional=_rest),
)


@given(evaluations, evaluations)
def test_the_stored_evaluation_and_the_update_make_the_new_one(old: dict[str, Any], new: dict[str, Any]) -> None:
    update = plan_update(new, old)
    stored = copy.deepcopy(old)
    for path in update.paths:
        write(path.split("."), stored, update.evaluation)
    assert stated(stored) == stated(new)
    assert check_mask(",".join(update.paths)) == update.paths if update.paths else stated(old) == stated(new)


def write(path: list[str], stored: dict[str, Any], new: dict[str, Any]) -> None:
    """What the service does with a path of the mask: set the field, or clear it if the update does not have it."""
    for name in path[:-1]:
        stored, new = stored.setdefault(name, {}), new.get(name, {})
    stored.pop(path[-1], None)
    if path[-1] in new:
        stored[path[-1]] = new[path[-1]]


# ---------------------------------------------------------------------------------------------------------------------
# masks as given


@pytest.mark.parametrize(
    ("mask", "paths"),
    [
        ("displayName,golden", ("displayName", "golden")),
        (" displayName , displayName ", ("displayName",)),
        ("golden.turns,golden", ("golden",)),
        ("golden.turns", ("golden.turns",)),
        ("scenario.maxTurns", ("scenario.maxTurns",)),
        ("*", ("*",)),
    ],
)
def test_masks_that_the_server_takes(mask: str, paths: tuple[str, ...]) -> None:
    assert check_mask(mask) == paths


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        ("display_name", 'lowerCamelCase: did you mean "displayName"?'),
        ("golden.evaluation_expectations", 'did you mean "evaluationExpectations"?'),
        ("displayname", 'did you mean "displayName"?'),
        ("golden.turn", 'did you mean "turns"?'),
        ("colour", "known: golden, scenario, name"),
        ("evaluation.displayName", "paths begin below the evaluation"),
        ("golden.turns.steps", "a mask ends at golden.turns, a list"),
        ("displayName.x", "a mask ends at displayName, a field without subfields"),
        ("scenario.variableOverrides.vip", "a mask ends at scenario.variableOverrides"),
        ("evaluationDatasets", "import a CSV with evaluation_groups"),
        ("etag", "belongs in the evaluation"),
        ("name", "cannot be changed"),
        ("createTime", "only the server sets it"),
        ("aggregatedMetrics.metricsByAppVersion", "only the server sets it"),
        ("displayName,*", "alone"),
        ("golden.*", "alone"),
        ("", "empty path"),
        ("displayName,", "empty path"),
        ({"paths": ["displayName"]}, "which the server rejects"),
        (["displayName"], "expected the mask as text"),
        ("a\x1b[2J", "a\\x1b[2J"),
    ],
)
def test_masks_that_it_does_not_take_say_why(mask: Any, words: str) -> None:
    with pytest.raises(EvalSetError) as raised:
        update_request(STORED, mask=mask)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_full_replace_must_be_said() -> None:
    with pytest.raises(EvalSetError, match="without a mask every field is overwritten"):
        update_request(STORED)
    assert mask_of_star(STORED) == "*"


def mask_of_star(new: Any) -> str:
    return str(update_request(new, mask="*")["params"]["arguments"]["updateMask"])


# ---------------------------------------------------------------------------------------------------------------------
# what an update may not do


@pytest.mark.parametrize(
    ("new", "options", "words"),
    [
        (STORED, {"old": STORED}, "no changes"),
        (with_(name=None), {"mask": "displayName"}, "`name` is missing: expected projects/{project}"),
        (with_(name="refund"), {"mask": "displayName"}, "expected the name as projects/{project}"),
        (with_(name=NAME.replace("refund", "..")), {"mask": "displayName"}, "expected the name as"),
        (with_(name=NAME + "?a=b"), {"mask": "displayName"}, "expected the name as"),
        (with_(name=NAME + "2"), {"old": STORED}, "is not the stored evaluation"),
        (with_(etag="e0", tags=[]), {"old": STORED}, "has changed since"),
        (with_(displayName=None), {"old": STORED}, "clear displayName"),
        (with_(displayName=""), {"mask": "displayName"}, "clear displayName"),
        (with_(displayName=None), {"mask": "*"}, "clear displayName"),
        (with_(golden={"turns": []}), {"old": STORED}, "clear turns"),
        (with_(golden=None), {"old": STORED}, "without inputs"),
        (with_(golden=None), {"mask": "*"}, "without inputs"),
        (with_(scenario=SCENARIO), {"old": STORED}, "expected only one of them"),
        (with_(golden=None, scenario=SCENARIO), {"mask": "golden"}, "does not name scenario"),
        (with_(golden=None, scenario=SCENARIO), {"old": STORED, "mask": "scenario.task"}, "writes it whole"),
        (with_(colour="red"), {"old": STORED}, "the field colour differs"),
        ({**STORED, "display_name": "B"}, {"old": STORED}, "given twice"),
        ({"name": NAME + "/results/1", "goldenResult": {}}, {"old": STORED}, "the result of an evaluation"),
        ({"name": NAME + "/results/1", "evaluation_status": 1}, {"mask": "displayName"}, "the result of an evaluation"),
        ("[]", {"mask": "*"}, "expected an object"),
        ("{", {"mask": "*"}, "expected JSON"),
        ({"name": float("nan")}, {"mask": "*"}, "JSON cannot hold"),
        ({"name": NAME, "tags": {1, 2}}, {"mask": "*"}, "JSON cannot hold"),
    ],
)
def test_what_would_do_harm_is_refused(new: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(EvalSetError) as raised:
        update_request(new, **options)
    assert words in str(raised.value)


@pytest.mark.parametrize("depth", [MAX_DEPTH, 900, 100_000])
def test_what_is_nested_too_deep_is_refused(depth: int) -> None:
    variables = '{"a":' * depth + "1" + "}" * depth
    golden = f'{{"turns": [{{"steps": [{{"userInput": {{"variables": {variables}}}}}]}}]}}'
    with pytest.raises(EvalSetError):
        update_request(f'{{"name": "{NAME}", "displayName": "Refund", "golden": {golden}}}', STORED)


def test_a_switch_of_inputs_by_hand_needs_the_new_one_only() -> None:
    """Setting one member of a oneof clears the other."""
    request = update_request(with_(golden=None, scenario=SCENARIO), STORED, "scenario")
    assert request["params"]["arguments"]["updateMask"] == "scenario"


def test_identity_is_taken_from_the_stored_one_and_unknown_fields_are_kept() -> None:
    new = {"displayName": "B", "golden": GOLDEN, "tags": ["smoke"], "colour": "red"}
    evaluation = update_request(new, STORED, mask="displayName")["params"]["arguments"]["evaluation"]
    assert evaluation == {"name": NAME, "etag": "e1", **new}


@pytest.mark.parametrize(
    "request_", [{}, {"params": {"name": "x", "arguments": {"evaluation": {}, "updateMask": "*"}}}]
)
def test_only_an_update_is_one(request_: Any) -> None:
    with pytest.raises(EvalSetError, match="expected"):
        arguments_of(request_)


# ---------------------------------------------------------------------------------------------------------------------
# import

CSV = "display_name,turn_index,action_type,text_content\r\nRefund,,,\r\n,1,INPUT_TEXT,Hé\r\n"


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_an_import_holds_the_bytes_of_the_file(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "golden.csv"
    path.write_bytes((mark + CSV).encode())
    for source in (path, str(path), path.read_bytes(), mark + CSV):
        body = import_request(source, conflict="SKIP")
        assert base64.b64decode(body["csvContent"]) == path.read_bytes()
        assert body["importOptions"] == {"conflictResolutionStrategy": "SKIP"}
    assert "importOptions" not in import_request(path)


VARIABLES = {"user_name": "", "a": {"b_c": None, "d": [], "e": {"f": 0, "g": {}}}, "h": False}


def evaluation(variables: Any) -> dict[str, Any]:
    return with_(golden={"turns": [{"steps": [{"userInput": {"variables": variables}}]}]})


def test_a_free_object_is_what_it_is_at_any_depth() -> None:
    """Neither the names of its keys nor its nulls and defaults are those of the API."""
    assert with_json_names(evaluation(VARIABLES)) == evaluation(VARIABLES)
    assert stated(evaluation(VARIABLES))["golden"] == evaluation(VARIABLES)["golden"]
    for other in ({**VARIABLES, "user_name": "x"}, {**VARIABLES, "a": {"b_c": None}}, {"h": False}, {}):
        assert difference(evaluation(VARIABLES), evaluation(other)) == ("golden.turns",)
    assert difference(evaluation(VARIABLES), evaluation(dict(reversed(VARIABLES.items())))) == ()


def test_a_map_of_messages_is_compared_whole() -> None:
    messages = table().messages
    kind = next(k for k, m in messages.items() if any(f.map_value in messages for f in m.fields.values()))
    name, field = next((n, f) for n, f in message(kind).fields.items() if f.map_value in messages)
    inner = {"one_key": {"a_b": None, "c": 0}}
    assert with_json_names({field.proto_name: inner}, kind) == {name: inner}
    assert stated({name: inner}, kind) == {name: inner}


def test_an_import_from_cloud_storage() -> None:
    assert import_request("gs://bucket/golden.csv", conflict="DUPLICATE") == {
        "gcsUri": "gs://bucket/golden.csv",
        "importOptions": {"conflictResolutionStrategy": "DUPLICATE"},
    }


@pytest.mark.parametrize(
    ("csv", "options", "words"),
    [
        ("no-such.csv", {}, "cannot be read"),
        (b"", {}, "header begins with display_name,turn_index,action_type"),
        (b"a,b\n", {}, "header begins with"),
        (CSV.encode("latin-1"), {}, "the byte 0xE9"),
        (CSV, {"conflict": "REPLACE"}, "OVERWRITE, SKIP, DUPLICATE"),
    ],
)
def test_an_import_that_cannot_be_one(csv: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(EvalSetError, match=words):
        import_request(csv, **options)


@pytest.mark.oracle
def test_the_outside_oracle_reads_the_requests() -> None:
    """Google's own messages parse what is sent."""
    ces = pytest.importorskip("google.cloud.ces_v1beta")
    new = with_(golden={"turns": [TURN, TURN]}, displayName="B")
    arguments = update_request(new, STORED)["params"]["arguments"]
    message = ces.UpdateEvaluationRequest.from_json(json.dumps(arguments))
    assert set(message.update_mask.paths) == {"display_name", "golden.turns"}
    assert len(message.evaluation.golden.turns) == 2
    body = ces.ImportEvaluationsRequest.from_json(json.dumps(import_request(CSV, conflict="OVERWRITE")))
    assert body.csv_content == CSV.encode()
    assert body.import_options.conflict_resolution_strategy == 1


def test_updates_are_paired_by_name(tmp_path: Path) -> None:
    stored = [{**STORED, "name": f"{NAME}{number}"} for number in (1, 2, 3)]
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(json.dumps(stored))
    new.write_text(json.dumps([stored[2], stored[0]]))
    assert [match and match["name"] for _, match in plan_updates(new, old, None)[0]] == [f"{NAME}3", f"{NAME}1"]
    assert [match for _, match in plan_updates(new, None, "golden")[0]] == [None, None]
    for wanted, expected in (
        ([stored[0], {**STORED, "name": f"{NAME}9"}], "no evaluation has the `name` of evaluation 2"),
        ([{k: v for k, v in STORED.items() if k != "name"}], "evaluation 1 .*`name` is missing"),
    ):
        new.write_text(json.dumps(wanted))
        with pytest.raises(EvalSetError, match=expected):
            plan_updates(new, old, None)
    new.write_text("[]")
    with pytest.raises(EvalSetError, match=r"new\.json: expected an evaluation, got none"):
        plan_updates(new, old, None)
    golden = tmp_path / "golden.CSV"
    for files in ((golden, old), (golden, None), (new, golden)):
        with pytest.raises(EvalSetError, match=r"golden\.CSV: expected Evaluation JSON"):
            plan_updates(*files, None)


@pytest.mark.parametrize(("mask", "paths"), [("*", ["displayName", "tags"]), ("tags", ["tags"]), ("golden", [])])
def test_the_errors_of_an_update_are_those_of_the_fields_that_it_writes(mask: str, paths: list[str]) -> None:
    update = plan_update({**STORED, "displayName": 5, "tags": 7}, None, mask)
    assert [issue.path for issue in faults_of(update)] == paths


def test_a_path_has_a_query_if_there_is_one() -> None:
    assert rest_path("a/b").endswith("/a/b")
    assert rest_path("a/b", mask="x,y").endswith("/a/b?mask=x%2Cy")
