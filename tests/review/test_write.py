"""The reviewed file: only reviewed cells differ, in every format that holds them."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agent_eval_schema import EvalSetError, diff_eval_sets, review_eval_set, validate_eval_set
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.review.dataset import Reviewed
from agent_eval_schema.review.journal import Journal
from agent_eval_schema.review.server import MINE, Answers
from agent_eval_schema.review.session import Session
from agent_eval_schema.review.write import Reviewing, out_path
from tests.conftest import SAMPLES


def reviewing(path: Path | str, states: dict[int, Any]) -> Reviewing:
    return Reviewing(Reviewed(open_source(str(path))), states)


LINES = (
    '{"request_id": "a", "request":"Hi",  "response": "x"}\r\n'
    "\n"
    '{"request": "\\u0048o", "response": "y", "expected_facts": ["f"] }\n'
    "no row\n"
    '{"request": "He", "response": "z"}'
)


def test_only_the_reviewed_cells_of_lines_differ(tmp_path: Path) -> None:
    path, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    path.write_text(LINES, encoding="utf-8", newline="")
    reviewing(path, {0: {"expected_facts": ["1"]}, 1: {"expected_facts": ["f", "g"], "tags": {"a": "b"}}}).write(
        str(out)
    )
    assert out.read_bytes().decode() == (
        '{"request_id": "a", "request":"Hi",  "response": "x",  "expected_facts": ["1"]}\r\n'
        "\n"
        '{"request": "\\u0048o", "response": "y", "expected_facts": ["f", "g"], "tags": {"a": "b"} }\n'
        "no row\n"
        '{"request": "He", "response": "z"}'
    )
    assert path.read_bytes().decode() == LINES


@pytest.mark.parametrize("dropped", [[0], [1], [3], [0, 1], [0, 3], [0, 1, 2, 3]])
@pytest.mark.parametrize("ending", [".jsonl", ".json", ".csv", ".parquet"])
def test_a_dropped_row_is_left_out_and_the_others_stay(tmp_path: Path, dropped: list[int], ending: str) -> None:
    rows = [{"request_id": f"{i}", "request": f"Q{i}", "response": "x"} for i in range(4)]
    path, out = tmp_path / f"rows{ending}", tmp_path / f"out{ending}"
    frame = pd.DataFrame(rows)
    if ending == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elif ending == ".json":
        path.write_text(json.dumps(rows, indent=2), encoding="utf-8")
    elif ending == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    reviewing(path, {row: {"dropped": True} for row in dropped}).write(str(out))
    kept = [row for i, row in enumerate(rows) if i not in dropped]
    back = [] if len(dropped) == 4 and ending == ".jsonl" else _rows(out)
    assert back == kept


def _rows(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".json":
        return json.loads(path.read_text(encoding="utf-8"))
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    read = pd.read_csv if path.suffix == ".csv" else pd.read_parquet
    return read(path, **({"dtype": str} if path.suffix == ".csv" else {})).to_dict("records")


def test_an_indented_file_stays_indented(tmp_path: Path) -> None:
    path, out = tmp_path / "rows.json", tmp_path / "out.json"
    rows = [{"request": "Hi", "response": "x"}, {"request": "Ho", "response": "y", "expected_facts": ["f"]}]
    path.write_text(json.dumps(rows, indent=2), encoding="utf-8")
    reviewing(path, {0: {"tags": {"a": "b"}}, 1: {"expected_facts": ["g", "h"]}}).write(str(out))
    text = out.read_text(encoding="utf-8")
    assert '"response": "x",\n    "tags": {"a": "b"}\n  }' in text
    assert '"expected_facts": [\n      "g",\n      "h"\n    ]\n' in text


def test_a_table_that_lacks_the_column_gets_it(tmp_path: Path) -> None:
    path, out = tmp_path / "rows.csv", tmp_path / "out.csv"
    path.write_text("request,response\nHi,x\nHo,y\n", encoding="utf-8")
    reviewing(path, {1: {"expected_response": "z"}}).write(str(out))
    assert out.read_text(encoding="utf-8").splitlines() == ["request,response,expected_response", "Hi,x,", "Ho,y,z"]


def test_the_file_itself_and_one_that_changed_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"request": "Hi", "response": "x"}\n', encoding="utf-8")
    found = reviewing(path, {0: {"expected_response": "y"}})
    with pytest.raises(EvalSetError, match="would overwrite the file under review"):
        found.write(str(path))
    path.write_text('{"request": "Hello", "response": "x"}\n', encoding="utf-8")
    again = r"rows\.jsonl: changed since it was read: open the review again: the journal has your decisions$"
    with pytest.raises(EvalSetError, match=again):
        found.changes()
    with pytest.raises(EvalSetError, match=again):
        found.write(str(tmp_path / "out.jsonl"))


def test_the_diff_is_that_of_the_written_file(tmp_path: Path) -> None:
    path, out = SAMPLES / "good.jsonl", tmp_path / "out.jsonl"
    found = reviewing(path, {0: {"expected_facts": ["new"]}, 3: {"dropped": True}, 5: {"tags": {"a": "b"}}})
    found.write(str(out))
    shown, real = json.loads(found.diff().to_json()), json.loads(diff_eval_sets(str(path), str(out)).to_json())
    pd.testing.assert_frame_equal(found.changes().drop(columns="new_row"), found.diff().changed.drop(columns="new_row"))
    assert shown["rows"] == real["rows"]
    assert real["rows"]["changed"] == 2
    assert found.summary()[0].startswith("2 rows changed: ")
    assert found.summary()[1] == "1 row excluded"


def test_a_preview_compares_no_row_without_a_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []

    def counting(old: Any, new: Any) -> Any:
        compared.extend(sum(batch.num_rows for batch in side.batches()) for side in (old, new))
        return diff_eval_sets(old, new)

    monkeypatch.setattr("agent_eval_schema.review.write.diff_eval_sets", counting)
    for name, states in (("good.jsonl", {4: {"expected_facts": ["new"]}, 5: {"dropped": True}}), ("good.csv", {})):
        changed = reviewing(SAMPLES / name, states).changes()
        assert changed["old_row"].tolist() == [row for row in states if row == 4]
    assert compared == [1, 1, 0, 0]


FORMATS = sorted(
    p.name for p in SAMPLES.iterdir() if not any(word in p.name for word in ("broken", "edited", "README", "inference"))
)
STATE = {"expected_response": "A reviewed answer.", "tags": {"reviewed": "yes"}}


@pytest.mark.parametrize("name", [n for n in FORMATS if n not in ("evaluation.json", "golden.csv")])
def test_every_format_is_written_and_valid_as_before(tmp_path: Path, name: str) -> None:
    path, out = SAMPLES / name, tmp_path / name
    reviewed = Reviewed(open_source(str(path)))
    facts = {"expected_facts": ""} if reviewed.format in ("databricks", "mlflow") or reviewed.is_canonical else {}
    last = len(reviewed) - 1  # in a conversation the turns after it would have another history
    found = Reviewing(reviewed, {last: {**STATE, **facts}})
    found.write(str(out))
    before, after = validate_eval_set(str(path)), validate_eval_set(str(out))
    assert after.valid_count == before.valid_count
    assert after.row_count == before.row_count
    if "expected_response" not in found.unheld:
        assert after.rows["expected_response"][last] == "A reviewed answer."
    if not reviewed.is_canonical:
        counts = json.loads(diff_eval_sets(str(path), str(out)).to_json())["rows"]
        assert (counts["changed"], counts["added"], counts["removed"]) == (1, 0, 0)


BROKEN_DOCUMENTS = ["help_desk_broken.evalset.json", "strands_broken.json", "agentcore_broken.json"]


@pytest.mark.parametrize("name", BROKEN_DOCUMENTS)
def test_rows_that_a_document_cannot_contain_are_named(tmp_path: Path, name: str) -> None:
    path, out = SAMPLES / name, tmp_path / name
    reviewed, report = Reviewed(open_source(str(path))), validate_eval_set(str(path))
    assert reviewed.valid.tolist() == report.valid_mask.tolist()  # by the rules of its format
    found = Reviewing(reviewed, {})
    found.write(str(out))
    told = [line for line in found.summary() if "cannot be written" in line]
    lost = len(reviewed) - validate_eval_set(str(out)).row_count
    assert told[0].startswith(f"{lost} invalid row")
    gone = [int(n) for n in told[0].partition(": ")[2].partition(";")[0].split(", ")]
    assert len(gone) == lost
    dropped = Reviewing(reviewed, {row: {"dropped": True} for row in gone})
    assert dropped.summary() == ["no cell changed", f"{lost} row{'s' * (lost > 1)} excluded"]
    some = Reviewing(reviewed, {0: {"dropped": True}})  # rows are numbered as in the file that is reviewed
    told = [line for line in some.summary() if "cannot be written" in line]
    assert [int(n) for n in told[0].partition(": ")[2].partition(";")[0].split(", ")] == [n for n in gone if n]


def test_the_rules_of_a_document_judge_a_row_until_it_has_a_label() -> None:
    path = SAMPLES / "strands_broken.json"
    reviewed = Reviewed(open_source(str(path)))
    work = Session(reviewed, Journal("maria"))
    codes = {i.code for i in validate_eval_set(str(path)).iter_issues() if i.row == 0}
    assert {issue["code"] for issue in work.detail(0)["issues"]} == codes
    assert not work.detail(0)["usable"]


def test_the_name_of_the_reviewed_file() -> None:
    assert out_path("a/support.jsonl") == "support.reviewed.jsonl"
    assert out_path("a/support.jsonl", "José/2") == "support.José%2F2.reviewed.jsonl"
    assert out_path("rows.csv.gz") == "rows.reviewed.csv.gz"
    assert out_path("catalog.schema.table") == "catalog.schema.table.reviewed.jsonl"
    assert out_path(None) == "data.reviewed.jsonl"
    assert out_path("cases.parquet", endings=(".json",)) == "cases.reviewed.json"
    assert out_path("cases.jsonl", endings=(".json", ".jsonl")) == "cases.reviewed.jsonl"


def test_the_diff_of_a_document_is_in_its_format_and_has_what_the_written_file_has(tmp_path: Path) -> None:
    path, out = SAMPLES / "help_desk.evalset.json", tmp_path / "out.evalset.json"
    found = reviewing(path, {0: {"expected_response": "Another answer."}})
    found.write(str(out))
    shown, real = found.diff(), diff_eval_sets(str(path), str(out))
    assert shown.changed.to_dict("records") == real.changed.to_dict("records")
    assert "adk format" in shown.to_text()
    # the next turn of the conversation has the answer in its history
    assert shown.changed[["old_row", "field"]].values.tolist() == [[0, "expected_response"], [1, "request"]]


def test_labels_that_a_format_cannot_hold_are_known_before_one_types() -> None:
    for name, unheld in (("bedrock.jsonl", "tags"), ("help_desk.evalset.json", "expected_facts")):
        labels = Reviewed(open_source(str(SAMPLES / name))).unheld_labels
        assert unheld in labels
        assert "expected_response" not in labels
    assert Reviewed(open_source(str(SAMPLES / "good.jsonl"))).unheld_labels == []


@pytest.mark.parametrize("name", ["good.jsonl", "good_mlflow.jsonl", "good.csv", "help_desk.evalset.json"])
def test_a_rating_of_the_answer_is_a_column_that_changes_no_result(tmp_path: Path, name: str) -> None:
    path, out = SAMPLES / name, tmp_path / name
    found = reviewing(path, {0: {"rating": "wrong", "reason": "it is 16 weeks"}})
    found.write(str(out))
    before, after = validate_eval_set(str(path)), validate_eval_set(str(out))
    assert (after.valid_count, after.format) == (before.valid_count, before.format)
    if name.endswith("evalset.json"):
        assert "the ratings of 1 row are not in a document: they stay in the journal" in found.summary()
    else:
        assert "human_rating 1" in found.summary()[0]
        assert "it is 16 weeks" in out.read_text(encoding="utf-8")


def test_a_document_that_is_in_a_table_is_reviewed_into_a_file_that_can_hold_it(tmp_path: Path) -> None:
    """It is JSON, which in a file that ends in .parquet nothing could read."""
    path = tmp_path / "skills.parquet"
    case = {"id": 1, "prompt": "Hi", "expected_output": "Hello"}
    pq.write_table(pa.table({"skill_name": ["greet"], "evals": [json.dumps([case])]}), path)
    review = review_eval_set(str(path), reviewer="maria")
    assert review._session.reviewed.format == "agent-skills"
    review._session.apply([{"row": 0, "path": "expected_facts", "new": ["It is a greeting"]}])
    with pytest.raises(EvalSetError, match=r"x\.parquet: expected \.json for a document of the format, got \.parquet"):
        review.write(tmp_path / "x.parquet")
    assert not (tmp_path / "x.parquet").exists()
    out = Answers(review._session).outs[MINE]
    assert out == "skills.maria.reviewed.json"
    review.write(tmp_path / out)
    assert json.loads((tmp_path / out).read_text())["evals"][0]["expected_output"] == "Hello"
    review.stop()
