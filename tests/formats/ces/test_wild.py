"""Wild variations of CES files: Evaluation JSON and golden CSV files as other programs write them."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_eval_schema import ces, convert_eval_set, validate_eval_set
from agent_eval_schema.formats.ces.golden import ACTIONS, GOLDEN_COLUMNS, OPTIONAL, REQUIRED
from tests.helpers.ces_messages import messages
from tests.helpers.wild import EXAMPLES, NAMES, OBJECTS, WORDS, files_of, texts_of, write

many = settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
pytestmark = pytest.mark.property

# ---------------------------------------------------------------------------------------------------------------------
# Evaluation JSON
EVALUATIONS = st.lists(messages("Evaluation"), min_size=1, max_size=2).map(
    lambda found: [{**e, **({"name": f"{e['name']}{i}"} if e.get("name") else {})} for i, e in enumerate(found)]
)


@given(data=st.data())
@many
def test_evaluations_in_the_wild(tmp_path: Path, data: st.DataObject) -> None:
    types = pytest.importorskip("google.cloud.ces_v1beta.types", reason="google-cloud-ces is not installed")
    from google.protobuf import json_format

    evaluations = data.draw(EVALUATIONS)
    page = {"evaluations": evaluations, "nextPageToken": ""}
    as_page = texts_of(page).map(lambda text: (".json", text))
    path = write(tmp_path, *data.draw(files_of(evaluations) | as_page))
    report = validate_eval_set(path)
    assert (report.format, report.ok, report.row_count) == ("ces-evaluation", True, len(evaluations)), report.to_text()
    made = convert_eval_set(path, "ces-evaluation")
    assert made.converted == len(evaluations)

    def parsed(evaluation: Any) -> Any:
        return json_format.ParseDict(evaluation, types.Evaluation.pb(types.Evaluation()))

    assert list(map(parsed, made.data)) == list(map(parsed, evaluations))


# ---------------------------------------------------------------------------------------------------------------------
# golden CSV
JSON_TEXTS = OBJECTS.map(json.dumps) | OBJECTS.map(lambda value: json.dumps(value, ensure_ascii=False, indent=1))
PNG = st.binary(max_size=6).map(lambda data: base64.b64encode(b"\x89PNG\r\n\x1a\n" + data).decode())
CELLS: dict[str, st.SearchStrategy[str]] = {
    "text_content": WORDS,
    "image_mime_type": st.just("image/png"),
    "image_content": PNG,
    "tool_name": NAMES,
    "tool_call_args_json": JSON_TEXTS,
    "tool_response_json": JSON_TEXTS,
    "updated_variables_json": JSON_TEXTS,
    "response_agent": NAMES,
    "agent_transfer_target": NAMES,
    "expectation_note": WORDS,
}
INPUTS = [name for name in ACTIONS if name.startswith("INPUT")]
EXPECTATIONS = [name for name in ACTIONS if name.startswith("EXPECTATION")]


@st.composite
def steps(draw: st.DrawFn, actions: list[str]) -> dict[str, str]:
    name = draw(st.sampled_from(actions))
    action = ACTIONS[name]
    optional = {column: CELLS[column] for column in action.columns if column in OPTIONAL}
    cells = draw(st.fixed_dictionaries({column: CELLS[column] for column in action.required}, optional=optional))
    return {"action_type": name, **cells}


METADATA: Mapping[str, st.SearchStrategy[str]] = {
    "description": WORDS,
    "tags": st.lists(NAMES, min_size=1, max_size=2).map(";".join),
    "evaluation_groups": st.lists(NAMES, min_size=1, max_size=2, unique=True).map("; ".join),
}


@st.composite
def goldens(draw: st.DrawFn) -> list[dict[str, str]]:
    """The rows of one evaluation: its own, then those of its turns."""
    rows = [draw(st.fixed_dictionaries({"display_name": NAMES}, optional=METADATA))]
    for turn in range(1, draw(st.integers(2, 4))):
        of_turn = [draw(steps(INPUTS)), *draw(st.lists(steps(EXPECTATIONS), max_size=2))]
        rows += [{"turn_index": str(turn), **step} for step in of_turn]
    return rows


FILES = st.lists(goldens(), min_size=1, max_size=2, unique_by=lambda rows: rows[0]["display_name"])


@st.composite
def tables(draw: st.DrawFn, rows: list[dict[str, str]]) -> str:
    """Rows as a CSV file: the required columns, those that are used, and some others, as spreadsheets write them."""
    used = {name for row in rows for name in row}
    others = [n for n in GOLDEN_COLUMNS if n not in REQUIRED and (n in used or draw(st.booleans()))]
    text = io.StringIO()
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    ends = draw(st.sampled_from(["\n", "\r\n"]))
    writer = csv.DictWriter(text, [*REQUIRED, *draw(st.permutations(others))], quoting=quoting, lineterminator=ends)
    writer.writeheader()
    writer.writerows(rows)
    return draw(st.sampled_from(["", "\ufeff"])) + text.getvalue()


@given(data=st.data())
@many
def test_golden_csv_in_the_wild(tmp_path: Path, data: st.DataObject) -> None:
    evaluations = data.draw(FILES)
    path = write(tmp_path, ".csv", data.draw(tables([row for rows in evaluations for row in rows])))
    report = validate_eval_set(path)
    assert (report.format, report.ok) == ("ces-csv", True), report.to_text()
    theirs = ces.read_golden_csv(path)
    assert [e["displayName"] for e in theirs.evaluations] == [rows[0]["display_name"] for rows in evaluations]
    made = convert_eval_set(path, "ces-csv")
    if made.lossless:
        again = ces.read_golden_csv(made.data)
        assert (again.evaluations, again.groups) == (theirs.evaluations, theirs.groups)
    stored = convert_eval_set(path, "ces-evaluation")
    assert list(stored.data) == theirs.evaluations
    assert validate_eval_set(list(stored.data)).ok
