"""Rows that depend on each other, in every form of data; and the one interval of all forms of a result."""

from __future__ import annotations

import json
import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_eval_schema import (
    EvalSetError,
    EvalTask,
    convert_eval_set,
    load_result,
    profile_eval_set,
    score_trajectories,
)
from agent_eval_schema.evaluation.row_keys import row_keys
from agent_eval_schema.metrics.independence import independent_units
from tests.conftest import Row

SYSTEM = {"role": "system", "content": "Be kind."}

RIGHT, WRONG = {"response": "4", "reference": "4"}, {"response": "3", "reference": "4"}


@pytest.mark.parametrize(
    "asked",
    [
        {"prompt": "Who are you?"},
        {"request": "who are you"},
        {"request": {"messages": [{"role": "user", "content": "Who are you?"}]}},
        {"request": json.dumps({"messages": [SYSTEM, {"role": "user", "content": "Who are you?"}]})},
        {"inputs": {"question": "Who are you?"}},
        {"inputs": '{"question": "Who are you?", "session_id": "s"}'},
    ],
)
def test_the_question_of_a_row(asked: Row) -> None:
    keys = row_keys(pd.DataFrame([asked]))
    assert keys is not None
    assert keys.questions == row_keys(pd.DataFrame([{"prompt": "WHO are you"}])).questions  # type: ignore[union-attr]


def test_what_makes_questions_differ() -> None:
    rows = [{"inputs": {"question": "Sum up", "document": name}} for name in ("a", "b")]
    rows += [{"inputs": {"a": 1, "b": 2}}, {"inputs": {"a": 1, "b": 3}}, {"inputs": None}]
    keys = row_keys(pd.DataFrame(rows))
    assert keys is not None
    assert len(set(keys.questions.tolist())) == 5
    assert keys.questions[-1] == 0
    assert row_keys(pd.DataFrame({"response": ["a"]})) is None


def test_sessions_and_documents() -> None:
    table = pd.DataFrame(
        {
            "session_id": ["a", "a", None, None, "", "u", None],
            "expected_retrieved_context": [
                *([{"doc_uri": "v"}], None, [{"doc_uri": "u"}], [{"doc_uri": "u"}], [], None),
                '[{"doc_uri": "u"}]',
            ],
        }
    )
    keys = row_keys(table)
    assert keys is not None
    found = independent_units(keys)
    assert (found.codes.tolist(), found.kinds) == ([0, 0, 1, 1, 2, 3, 1], ("session", "document"))


def repeated() -> list[Row]:
    """Ten questions, ten times each, five always right and five always wrong."""
    return [{**(RIGHT if i % 2 else WRONG), "prompt": f"question {i}"} for i in range(10) for _ in range(10)]


def test_ten_answers_to_ten_questions_are_ten_units() -> None:
    result = EvalTask(repeated(), ["exact_match"]).evaluate()
    line, alone = (result.standard_errors(cluster=c).iloc[0] for c in ("auto", None))
    assert (line["rows"], line["units"], alone["units"]) == (100, 10, 100)
    assert line["std_error"] == pytest.approx(0.5 / 3)  # √(10/9 · 10 · 5²) / 100
    assert alone["std_error"] == pytest.approx(0.5 / math.sqrt(99))
    assert line["std_answers"] == 0
    assert line["std_questions"] == pytest.approx(math.sqrt(10 / 36))
    assert "The intervals are those of 10 questions, not of 100 rows." in str(result)
    assert "0 between answers to the same question (the noise of the agent)." in " ".join(str(result).split())


@pytest.mark.parametrize("form", ["memory", "jsonl", "trajectories", "trajectories of a file"])
def test_every_form_of_a_result_has_the_same_interval(form: str, tmp_path: Path) -> None:
    call = [{"tool_name": "a", "tool_input": {}}]
    rows: list[Row] = [
        {"prompt": f"question {i % 12}", "predicted_trajectory": call * (i % 3), "reference_trajectory": call}
        for i in range(40)
    ]
    data: Any = rows
    if form in ("jsonl", "trajectories of a file"):
        data = str(tmp_path / "rows.jsonl")
        Path(data).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    metric = "trajectory_exact_match"
    whole = score_trajectories(data) if form.startswith("trajectories") else EvalTask(data, [metric]).evaluate()
    low, high = whole.confidence_interval(metric)
    errors = whole.standard_errors().set_index("metric").loc[metric]
    assert (errors["low"], errors["high"], errors["units"]) == (low, high, 12)
    assert json.loads(whole.to_json())["intervals"][metric]["low"] == low
    written = f"{low:.3g} to {high:.3g}"
    assert written in str(whole)
    assert written in whole.to_html()
    by_row = EvalTask(rows, [metric]).evaluate()
    assert by_row.confidence_interval(metric) == (low, high)


def test_a_profile_has_the_same_units() -> None:
    rows = [{**r, "session_id": f"s{i // 4}"} for i, r in enumerate(repeated()[::5])]
    result = EvalTask(rows, ["exact_match"]).evaluate()
    data = [{"request": r["prompt"], "response": r["response"], "session_id": r["session_id"]} for r in rows]
    codes = profile_eval_set(data)._facts.units.codes
    assert result._units is not None
    assert np.array_equal(codes, result._units.codes)


def test_a_column_as_cluster() -> None:
    rows = [{**RIGHT, "prompt": f"{i}", "team": "x" if i < 3 else None} for i in range(6)]
    result = EvalTask(rows, ["exact_match"]).evaluate()
    assert result.standard_errors(cluster="team")["units"].item() == 4
    with pytest.raises(EvalSetError, match=r"cluster: expected auto, None or a column .*team.*; got 'nothing'"):
        result.standard_errors(cluster="nothing")


OTHER_NAMES = ("azure", "databricks", "deepeval", "ragas")
"""Formats whose questions are in columns of different names."""


@pytest.mark.property
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 12), st.booleans(), st.booleans()), min_size=12
    ),
    name=st.sampled_from(OTHER_NAMES),
)
def test_no_route_changes_a_p_value(rows: list[tuple[str, int, bool, bool]], name: str, tmp_path: Path) -> None:
    """In memory and in a file of any kind, whatever the columns of the format are called."""

    def result(place: int) -> Any:
        canonical = [
            {
                "request": f"question {question}",
                "session_id": session,
                "response": "yes" if right[place] else "no",
                "expected_response": "yes",
            }
            for session, question, *right in rows
        ]
        data = convert_eval_set(canonical, name).data  # type: ignore[arg-type]
        return EvalTask(data, ["exact_match"], format=name).evaluate()  # type: ignore[arg-type]

    routes: list[list[Any]] = [[result(0), result(1)]]
    for kind in ("parquet", "jsonl", "csv"):
        for place, made in enumerate(routes[0]):
            made.write(tmp_path / f"{place}.{kind}")
        routes.append([load_result(tmp_path / f"{place}.{kind}") for place in (0, 1)])
    found = [old.compare(new, metrics=["exact_match"]) for (old, _), (_, new) in product(routes, routes)]
    numbers = {(c.lines[0].units, c.lines[0].p_value, c.lines[0].low, c._units, c.matched_by) for c in found}
    assert len({repr(of) for of in numbers}) == 1
    units = independent_units(routes[0][0]._keys)
    assert found[0].lines[0].units == len(set(units.codes.tolist()))
