"""Results as files of every-eval-ever: valid by its recorded schemas, read back; what has no place there is named."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pandas as pd
import pytest

from agent_eval_schema import (
    CustomMetric,
    EvalResult,
    EvalSetError,
    EvalTask,
    MetricInfo,
    UnwrittenScoreWarning,
    load_result,
)
from agent_eval_schema.cli import main
from tests.conftest import ROOT
from tests.evaluation.test_saved_result import run_of_today

SCHEMAS = ROOT / "tests/data/every_eval_ever"
AGGREGATE, SAMPLE = (
    jsonschema.Draft7Validator(json.loads((SCHEMAS / f"{name}.schema.json").read_text()))
    for name in ("eval", "instance_level_eval")
)
ID = "0b9ad5de-4a86-4c8b-9a5f-6a1c1a0b7d11"
OTHER_ID = "1c8be6ef-5b97-4d9c-8b60-7b2d2b1c8e22"


def place(folder: Path, model: str = "agent-2", id: str = ID) -> Path:
    path = folder / "data" / "support" / "acme" / model
    path.mkdir(parents=True, exist_ok=True)
    return path / f"{id}.json"


def samples(path: Path) -> list[dict[str, Any]]:
    lines = path.with_name(f"{path.stem}_samples.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def graded() -> EvalResult:
    """A metric that is written, one without a direction, one without a scale."""
    rows = [{"prompt": f"q{i}", "response": str(i % 2), "reference": "1"} for i in range(8)]
    free = CustomMetric("charm", lambda row: {"charm": len(row["prompt"])})
    errors = CustomMetric("lapses", lambda row: {"lapses": int(row["response"])}, lower_is_better=True)
    bounded = CustomMetric("harm", lambda row: {"harm": int(row["response"]) / 2}, lower_is_better=True, scale=(0, 1))
    return EvalTask(rows, ["exact_match", free, errors, bounded]).evaluate()


def test_both_files_are_valid_and_agree(tmp_path: Path) -> None:
    path = place(tmp_path)
    with pytest.warns(UnwrittenScoreWarning):
        assert graded().write(path) == 8
    document, lines = json.loads(path.read_text()), samples(path)
    AGGREGATE.validate(document)
    for line in lines:
        SAMPLE.validate(line)
        assert (line["evaluation_id"], line["model_id"]) == (document["evaluation_id"], "acme/agent-2")
    detail = document["detailed_evaluation_results"]
    content = path.with_name(f"{ID}_samples.jsonl").read_bytes()
    assert (detail["total_rows"], detail["file_path"]) == (16, f"data/support/acme/agent-2/{ID}_samples.jsonl")
    assert detail["checksum"] == hashlib.sha256(content).hexdigest()
    results = {found["evaluation_result_id"]: found for found in document["evaluation_results"]}
    kinds = {name: found["metric_config"]["score_type"] for name, found in results.items()}
    assert (kinds["exact_match"], kinds["harm"]) == ("binary", "continuous")
    assert {name: found["metric_config"]["lower_is_better"] for name, found in results.items()} == {
        "exact_match": False,
        "harm": True,
    }
    assert results["exact_match"]["score_details"]["score"] == 0.5
    given = [(x["evaluation_result_id"], *x["evaluation"].values(), x["output"]["raw"]) for x in lines[:4]]
    assert given == [
        ("exact_match", 0.0, False, ["0"]),
        ("harm", 0.0, True, ["0"]),
        ("exact_match", 1.0, True, ["1"]),
        ("harm", 0.5, False, ["1"]),
    ]


def test_a_line_has_the_latency_of_its_row_if_there_is_one(tmp_path: Path) -> None:
    rows = [{"prompt": "q", "exact_match/score": 1, "latency_in_seconds": seconds} for seconds in (1.5, 0, None, "x")]
    load_result(rows).write(place(tmp_path))
    lines = samples(place(tmp_path))
    assert [line.get("performance") for line in lines] == [{"latency_ms": 1500}, {"latency_ms": 0}, None, None]


ASKED = ("prompt", "request", "inputs")
ANSWERED = ("response", "outputs", "predicted_trajectory")
EXPECTED = ("reference", "expected_response", "expectations", "reference_trajectory")


def test_a_line_has_the_first_text_that_its_row_has(tmp_path: Path) -> None:
    """Each row lacks the first columns of the row before."""
    rows = [
        {**{name: f"a {name}" for names in (ASKED, ANSWERED, EXPECTED) for name in names[i:]}, "exact_match/score": 1}
        for i in range(5)
    ]
    load_result(rows).write(place(tmp_path))
    lines = samples(place(tmp_path))
    assert [line["input"]["raw"] for line in lines] == [*(f"a {name}" for name in ASKED), "", ""]
    assert [line["output"]["raw"] for line in lines] == [*([f"a {name}"] for name in ANSWERED), [], []]
    assert [line["input"]["reference"] for line in lines] == [*([f"a {name}"] for name in EXPECTED), []]


@pytest.mark.parametrize("read", ["", f"{ID}.json", f"{ID}_samples.jsonl"])
@pytest.mark.parametrize(
    ("out", "what"), [(f"{ID}.json", "the data"), (f"{ID}_samples.jsonl", "the other file of the result")]
)
def test_a_result_overwrites_neither_file_that_it_was_read_from(
    read: str, out: str, what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = place(tmp_path)
    of_another_tool(path, [[1, 0]])
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    with pytest.raises(EvalSetError, match=f"{out}: would overwrite {what}: choose another path"):
        load_result(path.parent / read).write(path.with_name(out))
    assert main(["compare", str(path.parent / read), "x.jsonl", "--html", str(path.with_name(out))]) == 2
    assert f"{out}: --html would overwrite " in capsys.readouterr().err
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before


def test_the_samples_of_a_result_do_not_overwrite_its_data(tmp_path: Path) -> None:
    rows = tmp_path / "rows_samples.jsonl"
    rows.write_text('{"response": "4", "reference": "4"}\n')
    os.link(rows, place(tmp_path).with_name(f"{ID}_samples.jsonl"))
    result = EvalTask(rows, ["exact_match"]).evaluate()
    with pytest.raises(EvalSetError, match="the samples would overwrite the data"):
        result.write(place(tmp_path))
    assert not place(tmp_path).exists()
    assert result.write(tmp_path / "rows.json") == 1  # which has no samples


def test_what_has_no_place_is_named_and_not_lost(tmp_path: Path) -> None:
    path, result = place(tmp_path), graded()
    named = "charm: no known direction; lapses: no scale, so no score is known to be correct"
    with pytest.warns(UnwrittenScoreWarning, match=f"has no place for: {named}: only this package reads them"):
        result.write(path)
    details = json.loads(path.read_text())["source_metadata"]["additional_details"]
    assert details["scores_not_written"] == named
    pd.testing.assert_frame_equal(load_result(path).scores, result.scores)


@pytest.mark.parametrize("name", ["", f"{ID}.json", f"{ID}_samples.jsonl"])
def test_a_result_that_is_read_is_the_one_that_was_written(name: str, tmp_path: Path) -> None:
    path, result = place(tmp_path), run_of_today()
    with pytest.warns(UnwrittenScoreWarning, match="has no place for: 2 rows without a score"):
        assert result.write(path) == 4
    AGGREGATE.validate(json.loads(path.read_text()))
    read = load_result(path.parent / name)
    pd.testing.assert_frame_equal(read.scores, result.scores)
    assert list(read.metrics_table.columns) == list(result.metrics_table.columns)
    assert read.reasons.to_dict("list") == result.reasons.to_dict("list")
    assert (read.metrics, read.row_count, read.scored) == (result.metrics, 4, result.scored)
    assert read.failures == result.failures
    assert read.provenance == {**result.provenance, "source": None}
    pd.testing.assert_frame_equal(read.standard_errors(), result.standard_errors())


def test_scores_outside_of_their_scale_are_named(tmp_path: Path) -> None:
    rows = [{"prompt": "q", "recall/score": 80, "exact_match/score": 1}]
    result = load_result(rows, infos=[MetricInfo("recall", "higher", (0, 1))])
    with pytest.warns(UnwrittenScoreWarning, match=r"recall: scores outside of its scale \(0\.0, 1\.0\)"):
        result.write(place(tmp_path))
    AGGREGATE.validate(json.loads(place(tmp_path).read_text()))


def test_a_metric_without_a_score_is_named(tmp_path: Path) -> None:
    result = EvalTask(
        [{"prompt": "q", "response": "4", "reference": "4"}], ["exact_match", "trajectory_recall"]
    ).evaluate()
    with pytest.warns(UnwrittenScoreWarning, match="has no place for: trajectory_recall: no score: only this package"):
        result.write(place(tmp_path))


def test_a_result_without_any_expressible_metric_is_an_error(tmp_path: Path) -> None:
    result = load_result([{"prompt": "q", "quux/score": 0.5}])
    with pytest.raises(EvalSetError, match="no metric can be written: quux: no known direction"):
        result.write(place(tmp_path))
    assert not list(place(tmp_path).parent.iterdir())


def of_another_tool(path: Path, scores: list[list[float]]) -> None:
    """A record with two metrics; `scores` has those of each sample by metric; the second one less is better."""
    names = ["accuracy", "toxicity"]
    base = {"schema_version": "0.3.0", "evaluation_id": f"e/{path.parent.name}", "model_id": "acme/x"}
    lines = [
        {
            **base,
            "evaluation_name": "bench",
            "evaluation_result_id": f"r-{name}",
            "sample_id": f"s{at}",
            "interaction_type": "single_turn",
            "input": {"raw": f"question {at}", "reference": ["a", "b"]},
            "output": {"raw": ["answer"]},
            "answer_attribution": [],
            "evaluation": {"score": score, "is_correct": False},
            "performance": {"latency_ms": 1500},
        }
        for at, of_sample in enumerate(scores)
        for name, score in zip(names, of_sample, strict=True)
    ]
    for line in lines:
        SAMPLE.validate(line)
    path.with_name(f"{path.stem}_samples.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    document = {
        **{name: value for name, value in base.items() if name != "model_id"},
        "retrieved_timestamp": "1",
        "source_metadata": {
            "source_type": "evaluation_run",
            "source_organization_name": "acme",
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "x", "version": "1"},
        "model_info": {
            "name": "x",
            "id": "acme/x",
            "additional_details": {"deployment_type": "unknown", "model_availability": "unknown"},
        },
        "evaluation_results": [
            {
                "evaluation_result_id": f"r-{name}",
                "evaluation_name": "bench",
                "source_data": {"dataset_name": "bench", "source_type": "other"},
                "metric_config": {"metric_name": name, "lower_is_better": at == 1, "min_score": 0, "max_score": 1},
                "score_details": {"score": 0.5},
            }
            for at, name in enumerate(names)
        ],
    }
    AGGREGATE.validate(document)
    path.write_text(json.dumps(document))


def test_records_of_another_tool_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = place(tmp_path, "one"), place(tmp_path, "two")
    of_another_tool(old, [[1, 0]] * 12)
    of_another_tool(new, [[0, 1]] * 12)
    read = load_result(old)
    assert (read.metrics, read.row_count, read.provenance["agent"]) == (("accuracy", "toxicity"), 12, "acme/x")
    assert read.infos["toxicity"] == MetricInfo("toxicity", "lower", (0, 1))
    assert read.metrics_table.iloc[0].to_dict() == {
        "request_id": "s0",
        "prompt": "question 0",
        "reference": "a\nb",
        "response": "answer",
        "latency_in_seconds": 1.5,
        "accuracy/score": 1.0,
        "toxicity/score": 0.0,
    }
    assert main(["compare", str(old.parent), str(new.parent), "--output", "json"]) == 1
    lines = {line["metric"]: line for line in json.loads(capsys.readouterr().out)["lines"]}
    assert [lines[name]["difference"] for name in ("accuracy", "toxicity")] == [-1, 1]


def test_a_folder_with_two_results_names_one(tmp_path: Path) -> None:
    for id in (ID, OTHER_ID):
        of_another_tool(place(tmp_path, id=id), [[1, 0]])
    with pytest.raises(EvalSetError, match=f"expected one result, got 2: name one, such as .*{OTHER_ID}.json"):
        load_result(place(tmp_path).parent)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("support/acme", "x/acme", "line 1: expected evaluation_id .* it is of another run"),
        ('"score":1.0', '"score":"x"', r"line 1: .*\$\.evaluation\.score"),
        ('"score":1.0', '"score"', "line 1: JSON is malformed"),
        ('"evaluation_result_id":"exact_match"', '"evaluation_result_id":"other"', ""),
        ("\n", "\n\n", ""),
    ],
)
def test_a_damaged_line_is_named_and_a_join_by_name_is_enough(
    old: str, new: str, expected: str, tmp_path: Path
) -> None:
    path = place(tmp_path)
    EvalTask([{"response": "1", "reference": "1"}] * 8, ["exact_match"]).evaluate().write(path)
    lines, document = path.with_name(f"{ID}_samples.jsonl"), json.loads(path.read_text())
    lines.write_text(lines.read_text().replace(old, new, 1))
    with pytest.raises(EvalSetError, match="is not the file that"):
        load_result(path)
    del document["detailed_evaluation_results"]["checksum"]
    path.write_text(json.dumps(document))
    if not expected:
        assert load_result(path).scored == {"exact_match": 8}
        return
    with pytest.raises(EvalSetError, match=expected):
        load_result(path)


@pytest.mark.parametrize("algorithm", ["sha256", "md5"])
def test_samples_of_another_run_are_one_error_with_both_names(algorithm: str, tmp_path: Path) -> None:
    path = place(tmp_path)
    of_another_tool(path, [[1, 0]] * 4)
    lines, document = path.with_name(f"{ID}_samples.jsonl"), json.loads(path.read_text())
    checksum = hashlib.new(algorithm, lines.read_bytes()).hexdigest().upper()
    detail = {"format": "jsonl", "file_path": "x", "hash_algorithm": algorithm, "checksum": checksum}
    path.write_text(json.dumps({**document, "detailed_evaluation_results": detail}))
    assert load_result(path).row_count == 4
    lines.write_text(lines.read_text().replace("question 0", "question 9"))
    with pytest.raises(EvalSetError) as raised:
        load_result(path)
    found = hashlib.new(algorithm, lines.read_bytes()).hexdigest()
    assert str(raised.value).startswith(f"{lines}: is not the file that {path} was written with: expected the ")
    assert f"{algorithm} {checksum}, got {found}" in str(raised.value)


def test_samples_that_were_cut_or_are_of_no_result_are_errors(tmp_path: Path) -> None:
    path = place(tmp_path)
    of_another_tool(path, [[1, 0]] * 4)
    lines = path.with_name(f"{ID}_samples.jsonl")
    text, document = lines.read_text(), json.loads(path.read_text())
    lines.write_text(text.replace("r-accuracy", "r-x", 1).replace('"bench"', '"y"', 1))
    with pytest.raises(EvalSetError, match=r"line 1: expected a result of the aggregate \(.*r-accuracy.*\)"):
        load_result(path)
    document["detailed_evaluation_results"] = {"format": "jsonl", "file_path": "x", "total_rows": 9}
    lines.write_text(text)
    path.write_text(json.dumps(document))
    with pytest.raises(EvalSetError, match="expected 9 lines, got 8: the file is not complete"):
        load_result(path)


@pytest.mark.parametrize("what", ["checksum", "evaluation_id", "evaluation_name"])
def test_no_text_of_a_file_makes_an_error_long(what: str, tmp_path: Path) -> None:
    path, long = place(tmp_path), "x" * 99_999
    of_another_tool(path, [[1, 0]] * 4)
    document = json.loads(path.read_text())
    if what == "checksum":
        detail = {"format": "jsonl", "file_path": "x", "hash_algorithm": "md5", "checksum": long}
        document["detailed_evaluation_results"] = detail
    elif what == "evaluation_id":
        document[what] = long
    else:
        document["evaluation_results"] = [
            {k: v for k, v in {**found, what: long}.items() if k != "evaluation_result_id"}
            for found in document["evaluation_results"]
        ]
    path.write_text(json.dumps(document))
    with pytest.raises(EvalSetError, match="xxx") as raised:
        load_result(path)
    assert len(str(raised.value)) < 1_000


def test_a_record_without_a_sample_is_a_result_without_rows(tmp_path: Path) -> None:
    path = place(tmp_path)
    of_another_tool(path, [])
    read = load_result(path)
    assert (list(read.scores), len(read.scores), len(read.reasons)) == (["accuracy", "toxicity"], 0, 0)


def test_the_command_writes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = place(tmp_path)
    file = str(ROOT / "sample_data/vertex.jsonl")
    assert main(["score", file, "--write-scores", str(path), "--output", "json"]) == 0
    assert f"rows with their scores written to {path}" in capsys.readouterr().err
    assert {line["evaluation_result_id"] for line in samples(path)} >= {"trajectory_exact_match", "trajectory_recall"}
    assert main(["compare", str(path), str(path)]) == 0
