"""Labels of a review in the real mlflow: with their reviewers, in datasets and on traces, and read back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema import (
    EvalSetError,
    eval_set_from_traces,
    from_mlflow_dataset,
    review_eval_set,
    traces_from_store,
    validate_eval_set,
)
from agent_eval_schema.cli import main
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.review.review import open_session
from agent_eval_schema.review.session import Session
from agent_eval_schema.review.to_mlflow import log_labels, write_dataset
from tests.integrations.mlflow.test_datasets import needs_datasets
from tests.integrations.mlflow.test_tracking import log
from tests.review.test_session import session

pytestmark = [
    pytest.mark.usefixtures("tracking_store"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # mlflow uses parts of SQLAlchemy that will be removed
]

CALLS = [{"tool_name": "add", "tool_input": {"n": 2}}]


def label(work: Session, row: int, **labels: Any) -> None:
    changes = [{"row": row, "path": p, "old": work.state(row).get(p), "new": v} for p, v in labels.items()]
    work.apply([*changes, {"row": row, "path": "status", "old": work.state(row).get("status"), "new": "submitted"}])


def traced(name: str, *questions: str) -> tuple[list[str], str]:
    """Traces in an experiment, the oldest first, and a file of their rows."""
    ids = log(name, list(questions))
    file = f"{name}.jsonl"
    assert main(["from-traces", "--experiment", name, file]) == 0
    return ids[::-1], file


def expectations(trace_id: str) -> list[tuple[str, Any, str, str]]:
    import mlflow

    found = mlflow.MlflowClient().get_trace(trace_id).info.assessments
    return [(a.name, a.value, a.source.source_type, a.source.source_id) for a in found if a.expectation]


@needs_datasets
@pytest.mark.parametrize("source", [None, {"source_type": "TRACE", "source_data": {"trace_id": "tr-1"}}])
def test_a_dataset_has_the_labels_and_who_gave_them(source: Any) -> None:
    rows = [{"request": f"What is {n}?", "response": "x", "source": source} for n in range(3)]
    work = session([{k: v for k, v in row.items() if v} for row in rows])
    label(work, 1, expected_facts=["One."], tags={"team": "docs"})
    work.apply([{"row": 0, "path": "status", "new": "flagged"}, {"row": 2, "path": "dropped", "new": True}])
    name = f"signed {bool(source)}"

    written = write_dataset(work, name)

    assert (written.rows_in, written.written, written.not_kept) == (2, 2, {})
    first, second = from_mlflow_dataset(name).to_dict("records")
    assert (first["expected_facts"], first["source"]) == (None, source)
    assert (second["expected_facts"], second["tags"]) == (["One."], {"team": "docs"})
    data = (source or {}).get("source_data", {})
    assert second["source"] == {"source_type": "HUMAN", "source_data": {**data, "user_name": "maria"}}
    frame = written.dataset.to_df()
    assert [list(facts) for facts in validate_eval_set(frame).rows["expected_facts"].dropna()] == [["One."]]


@needs_datasets
def test_a_second_writing_changes_the_records() -> None:
    work = session([{"request": "a", "response": "x"}, {"request": "a", "response": "x"}])
    label(work, 0, expected_facts=["Old."])
    write_dataset(work, "twice")
    label(work, 0, expected_facts=["New."])

    written = write_dataset(work, "twice")

    assert len(written.collapsed) == 1  # the row without a label takes none away
    assert from_mlflow_dataset("twice")["expected_facts"].tolist() == [["New."]]


@needs_datasets
@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_rows_of_a_file(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows.{ending}"
    lines = {"jsonl": '{"request": "Hi", "source": "web"}\n', "csv": "request,source\nHi,web\n"}
    path.write_text(lines[ending])
    review = review_eval_set(path, reviewer="maria")
    label(review._session, 0, expected_response="Hello!")

    review.to_mlflow_dataset(f"of {ending}")
    review.stop()

    [row] = from_mlflow_dataset(f"of {ending}").to_dict("records")
    assert row["expected_response"] == "Hello!"
    assert row["source"] == {"source_type": "HUMAN", "source_data": {"user_name": "maria"}}


def test_labels_are_expectations_of_the_traces() -> None:
    (first, second), _ = traced("reviewed sums", "What is 1 + 1?", "What is 2 + 2?")
    review = review_eval_set(traces_from_store("reviewed sums"), reviewer="maria")
    work = review._session
    label(work, 0, expected_facts=["It is 4."], reference_trajectory=CALLS, tags={"team": "docs"})

    done = review.to_mlflow_traces()
    review.stop()

    assert done == {"written": 2, "deleted": 0, "unchanged": 0, "rows_without_trace": 0, "tags_not_kept": 1}
    assert sorted(expectations(first)) == [
        ("expected_facts", ["It is 4."], "HUMAN", "maria"),
        ("expected_tool_calls", [{"name": "add", "arguments": {"n": 2}}], "HUMAN", "maria"),
    ]
    assert expectations(second) == []
    read = eval_set_from_traces(traces_from_store("reviewed sums"))
    assert read["expected_facts"].tolist() == [["It is 4."], None]
    assert read["reference_trajectory"].tolist() == [CALLS, None]


def test_a_second_call_changes_the_expectations_of_the_same_reviewer() -> None:
    import mlflow

    [id], file = traced("changed sums", "What is 1 + 1?")
    mlflow.log_expectation(trace_id=id, name="expected_facts", value=["Of another."])
    others = expectations(id)
    work = open_session(open_source(file), "maria")
    label(work, 0, expected_facts=["Old."], guidelines=["Be kind."])
    assert log_labels(work)["written"] == 2
    assert log_labels(work)["unchanged"] == 2

    label(work, 0, expected_facts=["New."], guidelines=[])
    done = log_labels(work)
    assert (done["written"], done["deleted"]) == (1, 1)
    assert expectations(id) == [*others, ("expected_facts", ["New."], "HUMAN", "maria")]


def test_of_several_reviewers_each_has_an_expectation(capsys: pytest.CaptureFixture[str]) -> None:
    (first, second), file = traced("sums of two", "What is 1 + 1?", "What is 2 + 2?")
    for name, fact in (("maria", "It is 2."), ("jonas", "It is two.")):
        work = open_session(open_source(file), name)
        label(work, 0, expected_response="4")
        label(work, 1, expected_response=fact)  # on which they differ

    assert main(["review", file, "--merge", f"{file}.*.review.jsonl", "--to", "mlflow"]) == 0

    assert "expectations of traces: 2 written, 0 deleted, 0 unchanged" in capsys.readouterr().out
    assert sorted(expectations(first)) == [("expected_response", "4", "HUMAN", name) for name in ("jonas", "maria")]
    assert expectations(second) == []


@needs_datasets
def test_the_command_writes_a_dataset(capsys: pytest.CaptureFixture[str], tmp_path: Path, tracking_store: str) -> None:
    path = str(tmp_path / "rows.jsonl")
    Path(path).write_text('{"request": "a"}\n{"request": "a"}\n{"request": "b"}\n{"request": 3}\n')
    label(open_session(open_source(path), "maria"), 0, expected_response="A")
    arguments = ["review", path, "--reviewer", "maria", "--to", "mlflow:by command", "--tracking-uri", tracking_store]

    assert main(arguments) == 0
    assert capsys.readouterr().out.splitlines() == [
        "2 of 4 rows written to the dataset by command",
        "1 row merged into rows with the same request",
        "1 row excluded",
    ]
    assert from_mlflow_dataset("by command")["expected_response"].tolist() == ["A", None]

    label(open_session(open_source(path), "jonas"), 2, expected_response="B")  # its record has no source yet
    label(open_session(open_source(path), "jonas"), 0, expected_response="A")
    assert main([a.replace("maria", "jonas") for a in arguments]) == 0
    assert "written into records that keep their first source" in capsys.readouterr().out


def test_what_cannot_be_written_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = str(tmp_path / "rows.jsonl")
    Path(path).write_text('{"request": "a", "response": "b"}\n')
    work = open_session(open_source(path), "maria")
    label(work, 0, expected_response="A")
    assert main(["review", path, "--reviewer", "maria", "--to", "mlflow"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["1 row without a trace"]
    with pytest.raises(SystemExit):
        main(["review", path, "--to", "langsmith"])
    assert "expected mlflow or mlflow:DATASET, got 'langsmith'" in capsys.readouterr().err
    assert main(["review", path, "--tracking-uri", "x"]) == 2
    assert "--tracking-uri: expected --to mlflow" in capsys.readouterr().err
    with pytest.raises(EvalSetError, match=r"nowhere\.db not found"):
        log_labels(work, tracking_uri="sqlite:///nowhere.db")


def test_a_trace_of_another_store_is_an_error() -> None:
    import mlflow

    [id], file = traced("deleted sums", "What is 1 + 1?")
    experiment = mlflow.get_experiment_by_name("deleted sums")
    mlflow.MlflowClient().delete_traces(experiment.experiment_id, trace_ids=[id])
    work = open_session(open_source(file), "maria")
    label(work, 0, expected_response="2")
    with pytest.raises(EvalSetError, match=f"rejected the operation: .*{id}"):
        log_labels(work)


def test_a_rating_of_the_answer_is_feedback_of_a_person() -> None:
    import mlflow

    (trace_id,), file = traced("ratings", "What is 1?")
    work = open_session(open_source(file), "maria")
    for rating, reason in (("wrong", "it is 2"), ("partly", "almost")):
        label(work, 0, rating=rating, reason=reason)
        assert log_labels(work)["written"] == 1
        found = [a for a in mlflow.MlflowClient().get_trace(trace_id).info.assessments if a.feedback]
        assert [(a.name, a.feedback.value, a.rationale, a.source.source_type, a.source.source_id) for a in found] == [
            ("human_rating", rating, reason, "HUMAN", "maria")
        ]
    assert log_labels(work)["unchanged"] == 1


@pytest.mark.parametrize("way", ["taken away", "undone"])
def test_what_is_taken_away_again_leaves_the_trace(way: str) -> None:
    import mlflow

    (trace_id,), file = traced(f"sums {way}", "What is 1?")
    mlflow.log_feedback(trace_id=trace_id, name="human_rating", value="right")
    others = [a.assessment_id for a in mlflow.MlflowClient().get_trace(trace_id).info.assessments]
    work = open_session(open_source(file), "maria")
    label(work, 0, rating="wrong", expected_facts=["One."])
    assert log_labels(work)["written"] == 2
    if way == "undone":
        work.undo()
    else:
        label(work, 0, rating=None, expected_facts=None)

    done = log_labels(work)

    assert (done["written"], done["deleted"]) == (0, 2)
    assert [a.assessment_id for a in mlflow.MlflowClient().get_trace(trace_id).info.assessments] == others
    assert log_labels(work) == dict.fromkeys(done, 0)
