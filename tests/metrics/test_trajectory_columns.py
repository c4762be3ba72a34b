"""Whole batches of trajectories: the same scores as the definition, whatever the cells look like, and what is wrong."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_eval_schema.cells.cells import Cells
from agent_eval_schema.cells.notes import IssueLog
from agent_eval_schema.decoding.columns import decode_column
from agent_eval_schema.decoding.values import FAILED
from agent_eval_schema.metrics.trajectory import TRAJECTORY_METRICS, Match, score_trajectory
from agent_eval_schema.metrics.trajectory_columns import (
    ABSENT,
    GIVEN,
    PREDICTED,
    REFERENCE,
    UNREADABLE_CALLS,
    Trajectories,
    read_trajectories,
    score_pair,
)
from agent_eval_schema.schema import ToolCall

Trajectory = list[ToolCall] | None

CALLS = pa.list_(pa.struct([("tool_name", pa.string()), ("tool_input", pa.string())]))


def as_text(calls: Trajectory) -> str | None:
    return (
        None if calls is None else json.dumps([{"tool_name": c.tool_name, "tool_input": c.tool_input} for c in calls])
    )


def as_other_text(calls: Trajectory) -> str | None:
    """The same value, spelled in another way."""
    if calls is None:
        return None
    spelled = [{"tool_input": dict(reversed((c.tool_input or {}).items())), "tool_name": c.tool_name} for c in calls]
    return json.dumps(spelled, indent=1)


def as_tight_text(calls: Trajectory) -> str | None:
    """As other libraries write it."""
    return None if calls is None else json.dumps(json.loads(str(as_text(calls))), separators=(",", ":"))


def as_mixed_text(calls: Trajectory) -> str | None:
    """Every other call spelled in another way, so that equal calls of one trajectory differ as text."""
    if calls is None:
        return None
    texts = [(as_text if i % 2 else as_other_text)([call]) for i, call in enumerate(calls)]
    return f"[{', '.join(str(text).strip()[1:-1] for text in texts)}]"


def as_structs(calls: Trajectory) -> Any:
    plain = [(c.tool_name, json.dumps(c.tool_input or {})) for c in calls or ()]
    return None if calls is None else [{"tool_name": n, "tool_input": i} for n, i in plain]


WRITINGS = {
    "text": (as_text, pa.string(), as_text, pa.string()),
    "two spellings": (as_text, pa.string(), as_other_text, pa.large_string()),
    "mixed spellings": (as_mixed_text, pa.string(), as_mixed_text, pa.string()),
    "tight text": (as_tight_text, pa.string(), as_tight_text, pa.string()),
    "text with and without spaces": (as_text, pa.string(), as_tight_text, pa.string()),
    "structs": (as_structs, CALLS, as_structs, CALLS),
    "structs and text": (as_structs, pa.large_list(CALLS.value_type), as_text, pa.string()),
}


def batch_of(rows: list[tuple[Trajectory, Trajectory]], writing: str = "text") -> pa.RecordBatch:
    one, one_type, other, other_type = WRITINGS[writing]
    return pa.record_batch(
        {
            PREDICTED: pa.array([one(p) for p, _ in rows], one_type),
            REFERENCE: pa.array([other(r) for _, r in rows], other_type),
        }
    )


def read_pair(batch: pa.RecordBatch, log: IssueLog) -> tuple[Trajectories, Trajectories]:
    return read_trajectories(batch, PREDICTED, log), read_trajectories(batch, REFERENCE, log)


def scored(
    batch: pa.RecordBatch, *, one_to_one: bool = False, define_empty: bool = True, match: Match = "call"
) -> dict[str, list[float]]:
    found = score_pair(
        *read_pair(batch, IssueLog(batch.num_rows)), one_to_one=one_to_one, define_empty=define_empty, match=match
    )
    return {name: values.tolist() for name, values in found.items()}


def names_of(read: Trajectories) -> list[list[str]]:
    """The tools that each trajectory calls."""
    return [[call.tool_name for call in calls] if isinstance(calls, list) else [] for calls in read.calls]


some_values = st.sampled_from([1, 1.0, 1e0, True, "1", None, 10**20, 0.5, [1, {"a": 2.0}], [1, {"a": 2}]])
some_inputs = st.none() | st.dictionaries(st.sampled_from(["x", "é"]), some_values, max_size=2)
trajectories = st.none() | st.lists(st.builds(ToolCall, st.sampled_from(["a", "b", "ü"]), some_inputs), max_size=6)
rows = st.lists(st.tuples(trajectories, trajectories) | trajectories.map(lambda t: (t, t)), max_size=8)


@pytest.mark.parametrize("match", ["tool_name", "subset"])
@pytest.mark.parametrize("writing", WRITINGS)
@given(rows=rows)
def test_a_batch_has_the_scores_of_its_rows_if_calls_match_otherwise(
    writing: str, match: Match, rows: list[tuple[Trajectory, Trajectory]]
) -> None:
    found = scored(batch_of(rows, writing), match=match)
    for metric in TRAJECTORY_METRICS:
        expected = [
            math.nan if p is None or r is None else score_trajectory(metric, p, r, match=match) for p, r in rows
        ]
        assert found[metric] == pytest.approx(expected, nan_ok=True, abs=0)


@pytest.mark.parametrize("writing", WRITINGS)
@given(rows=rows, one_to_one=st.booleans(), define_empty=st.booleans())
def test_a_batch_has_the_scores_of_its_rows(
    writing: str, rows: list[tuple[Trajectory, Trajectory]], one_to_one: bool, define_empty: bool
) -> None:
    found = scored(batch_of(rows, writing), one_to_one=one_to_one, define_empty=define_empty)
    duplicates, empty = "one_to_one" if one_to_one else "membership", "define" if define_empty else "nan"
    for metric in TRAJECTORY_METRICS:
        expected = [
            math.nan if p is None or r is None else score_trajectory(metric, p, r, duplicates=duplicates, empty=empty)
            for p, r in rows
        ]
        assert found[metric] == pytest.approx(expected, nan_ok=True, abs=0)


@pytest.mark.parametrize("writing", WRITINGS)
@given(rows=rows)
def test_a_slice_of_a_batch_has_the_scores_of_its_rows(writing: str, rows: list[tuple[Trajectory, Trajectory]]) -> None:
    whole = batch_of(rows, writing)
    for metric, scores in scored(whole.slice(1)).items():
        assert scores == pytest.approx(scored(whole)[metric][1:], nan_ok=True, abs=0)


@given(calls=st.lists(st.builds(ToolCall, st.sampled_from(["a", "b"]), some_inputs), max_size=5), data=st.data())
def test_the_same_calls_in_another_order_have_the_scores_of_the_definition(
    calls: list[ToolCall], data: st.DataObject
) -> None:
    predicted = data.draw(st.permutations(calls))
    found = scored(batch_of([(predicted, calls)], "mixed spellings"))
    for metric in TRAJECTORY_METRICS:
        assert found[metric] == pytest.approx([score_trajectory(metric, predicted, calls)], nan_ok=True, abs=0)


@pytest.mark.parametrize("writing", WRITINGS)
def test_one_value_in_two_spellings_is_one_call(writing: str) -> None:
    """Where a text matches, another one of the same value still counts: in its order, and one to one."""
    one, spelled = ToolCall("a", {"x": 1, "y": 2}), ToolCall("a", {"y": 2.0, "x": 1.0})
    pairs = [([one, spelled], [spelled, one]), ([one, one, spelled], [one, spelled, spelled]), ([one, spelled], [one])]
    found = scored(batch_of([*pairs], writing), one_to_one=True)
    assert [found[m] for m in TRAJECTORY_METRICS] == [
        [1, 1, 0],
        [1, 1, 1],
        [1, 1, 1],
        [1, 1, 0.5],
        [1, 1, 1],
        [1, 1, 2 / 3],
    ]
    assert scored(batch_of([*pairs], writing))["trajectory_precision"] == [1, 1, 1]


@pytest.mark.parametrize("number", ["1e999", "-1E+400", "1" * 400 + ".0", "1" * 5000, "1" * 250 + "e99"])
@pytest.mark.parametrize("nested", ['{"x": %s}', '{"x": [{"y": %s}]}'])
def test_a_number_out_of_range_costs_the_row(number: str, nested: str) -> None:
    """Whether the reference is the same text or another one."""
    cell = f'[{{"tool_name": "a", "tool_input": {nested % number}}}]'
    batch = pa.record_batch({PREDICTED: [cell, cell], REFERENCE: [cell, '[{"tool_name": "a"}]']})
    predicted, _ = read_pair(batch, IssueLog(2))
    assert predicted.states.tolist() == [UNREADABLE_CALLS, UNREADABLE_CALLS]


huge = st.one_of(
    st.integers(309, 9_999).map(lambda n: f"1e{n}"),
    st.integers(309, 9_999).map(lambda n: f"3.5E+0{n}"),
    st.integers(310, 700).map(lambda n: "7" * n),
    st.tuples(st.integers(215, 300), st.integers(95, 99)).map(lambda n: f"{'9' * n[0]}.0e{n[1]}"),
)


def test_a_text_that_looks_like_a_large_number_costs_nothing() -> None:
    given = '[{"tool_name": "a", "tool_input": {"id": "3e512", "n": "%s", "x": 1e-999}}]' % ("1" * 400)
    batch = pa.record_batch({PREDICTED: [given, given], REFERENCE: [given, '[{"tool_name": "a"}]']})
    predicted, _ = read_pair(batch, IssueLog(2))
    assert predicted.states.tolist() == [GIVEN, GIVEN]


characters = st.sampled_from([*'{}[],:"\\1-. \n\x01\x00é\ufeff'])
words = st.sampled_from(
    [
        *("e9", "e999", "null", "nul", "{}", '"a"', '"x": 1', '"tool_name"', '{"tool_name": "b"}', "]}}", "}]"),
        *('}, {"tool_name": "b"', '},{"tool_name":"b"', '},  {"tool_name": "b"', '"x": [{"tool_name": "b"}, {}'),
    ]
)
escapes = st.sampled_from(["\\ud800", "\\u00e9", "\\x", "\\u0074"])
texts = st.sampled_from([as_text, as_tight_text, as_mixed_text])


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """The text of a trajectory in which some places were overwritten."""
    calls = draw(st.lists(st.builds(ToolCall, st.sampled_from(["a", "ü", " "]), some_inputs), max_size=3))
    text = str(draw(texts)(calls))
    for _ in range(draw(st.integers(0, 2))):
        start = draw(st.integers(0, len(text)))
        text = text[:start] + draw(characters | words | escapes) + text[start + draw(st.integers(0, 3)) :]
    return text


@given(texts=st.lists(damaged(), min_size=1, max_size=5), same=st.booleans())
def test_what_is_not_looked_into_is_as_good_as_what_is(texts: list[str], same: bool) -> None:
    """A cell is read the quick way if and only if a decoder of everything in it can read it."""
    other = '[{"tool_name": "other"}]'
    batch = pa.record_batch({PREDICTED: texts, REFERENCE: texts if same else [other] * len(texts)})
    assert_read_as_decoded(read_trajectories(batch, PREDICTED, IssueLog(len(texts))), texts)


def assert_read_as_decoded(predicted: Trajectories, texts: list[str]) -> None:
    """Each prediction is there if its text can be decoded, and has calls of the same tools."""
    values = decode_column(PREDICTED, Cells(False, texts), IssueLog(len(texts)))
    assert predicted.states.tolist() == [UNREADABLE_CALLS if value is FAILED else GIVEN for value in values]
    assert predicted.lengths.tolist() == [0 if value is FAILED else len(value) for value in values]
    assert names_of(predicted) == [[] if value is FAILED else [call.tool_name for call in value] for value in values]


parts = st.sampled_from(
    [
        *('{"tool_name": "a"', '{"tool_name": "a', '"b"}', "}", "}}", ", ", ",", ",  ", "]", "[", '"', "{}", "1"),
        *('{"tool_name": "b"}', ', {"tool_name": "c"}', ', {"tool_name":"d"', ', "tool_input": {"x": [', '{"x": 1}'),
        *('{"\\u0074ool_name": "e"}', '{ "tool_name": "f"}', '[{"tool_name": "g"}, {"x": 2}]', '"},"', '"}, {"'),
        ', "tool_input": {',
    ]
)
joined_parts = st.lists(parts, max_size=8).map(lambda found: f"[{{{''.join(found)}}}]")


@given(drawn=st.lists(joined_parts, min_size=1, max_size=6))
def test_pieces_of_cells_that_only_make_calls_together_are_none(drawn: list[str]) -> None:
    given = [cell.replace("[{{", "[{").replace("}}]", "}]") for cell in drawn]
    batch = pa.record_batch({PREDICTED: given, REFERENCE: ['[{"tool_name": "z"}]'] * len(given)})
    assert_read_as_decoded(read_trajectories(batch, PREDICTED, IssueLog(len(given))), given)


LIST_OF_CALLS = '[{"tool_name": "a", "tool_input": {"calls": [%s{"tool_name": "b"}, {"tool_name": "c"}]}}]'


@pytest.mark.parametrize(
    "texts",
    [
        [LIST_OF_CALLS % ""],
        [LIST_OF_CALLS % '{"x": 1}, '],
        [LIST_OF_CALLS % '{"x": 1}, ', '[{"tool_name": "a"},  {"tool_name": "b"}]'],
        [LIST_OF_CALLS % '{"x": 1}, ', '[{"tool_name": "a"}], [{"tool_name": "b"}]'],
        [LIST_OF_CALLS % '{"x": 1}, ', '[{"tool_name": "a"}x{"tool_name": "b"}]'],
        ['[{"tool_name": "a}, {"tool_name": "b"}]', '[{"tool_name": "c"}]'],
        ['[{"tool_name": "a", "tool_input": {"x": "}, {\\"tool_name"}}, {"tool_name": "b"}]'],
        ['[{"tool_name": "a"}', '{"tool_name": "b"}]', '[{"tool_name": "c"}]'],
        ["[", '{"tool_name": "b"}]', "", "]", '[{"tool_name": "c"}]'],
        ['[{"tool_name": "a"},{"tool_name": "b"}, {"tool_input": {}, "tool_name": "c"},\n{"tool_name": "d"}]'],
        ["", "[]"],
    ],
)
def test_a_cell_is_cut_between_its_calls(texts: list[str]) -> None:
    """What stands in an input, or in another cell, is no border; and no cutting makes anything valid."""
    batch = pa.record_batch({PREDICTED: texts, REFERENCE: ['[{"tool_name": "z"}]'] * len(texts)})
    assert_read_as_decoded(read_trajectories(batch, PREDICTED, IssueLog(len(texts))), texts)


def test_calls_are_those_of_their_cell_also_beside_one_that_is_cut_wrongly() -> None:
    """Texts are decoded as one list: what is no call must not lend its neighbor a bracket."""
    texts = ['[{"tool_name": "a"}, 1]', '[{"tool_name": "a"}]', "[[]]", '[{"tool_name": "a"}, {"tool_name": "b"}]']
    batch = pa.record_batch({PREDICTED: texts, REFERENCE: ['[{"tool_name": "b"}]'] * 4})
    predicted, _ = read_pair(batch, IssueLog(4))
    assert predicted.states.tolist() == [UNREADABLE_CALLS, GIVEN, UNREADABLE_CALLS, GIVEN]
    assert names_of(predicted) == [[], ["a"], [], ["a", "b"]]


def test_no_input_is_an_empty_one_in_any_spelling() -> None:
    inputs = ("", ', "tool_input": null', ', "tool_input": {}', ', "tool_input": { }')
    spellings = [f'{{"tool_name": "a"{given}}}' for given in inputs]
    pairs = [(f"[{p}]", f"[{r}]") for p in spellings for r in spellings]
    batch = pa.record_batch({PREDICTED: [p for p, _ in pairs], REFERENCE: [r for _, r in pairs]})
    assert scored(batch)["trajectory_exact_match"] == [1] * 16


@pytest.mark.parametrize(
    ("cell", "code", "path"),
    [
        ('[{"tool_name": "a"}, {"tool_input": {}}]', "AE502", "predicted_trajectory[1]"),
        ('[{"tool_name": " "}]', "AE502", "predicted_trajectory[0].tool_name"),
        ('[{"tool_name": "\\u00a0"}]', "AE502", "predicted_trajectory[0].tool_name"),
        ('[{"tool_name": 1}]', "AE502", "predicted_trajectory[0].tool_name"),
        ('[{"tool_name": "a", "tool_input": "{"}]', "AE503", "predicted_trajectory[0].tool_input"),
        ('{"tool_name": "a"}', "AE501", "predicted_trajectory"),
        ("a, b", "AE501", "predicted_trajectory"),
        ("[", "AE002", "predicted_trajectory"),
        ('[{"tool_name": "a", "tool_input": {"x": NaN}}]', "AE003", "predicted_trajectory"),
        ('[{"tool_name": "a", "tool_input": {"x": "\\ud800"}}]', "AE006", "predicted_trajectory"),
        ("[" * 5000, "AE004", "predicted_trajectory"),
    ],
)
@pytest.mark.parametrize("reference", [None, "the same text"])
def test_a_cell_that_cannot_be_read_says_why(cell: str, code: str, path: str, reference: str | None) -> None:
    """Also where the other trajectory is the same text: equal nonsense is no match."""
    good = '[{"tool_name": "a"}]'
    batch = pa.record_batch({PREDICTED: [good, cell], REFERENCE: [good, cell if reference else good]})
    log = IssueLog(2)
    predicted, reference = read_pair(batch, log)
    assert predicted.states.tolist() == [GIVEN, UNREADABLE_CALLS]
    found = [(row, note) for row, note in zip(log.rows, log.notes, strict=True) if note[1] == PREDICTED]
    assert [(row, note[0], note[2]) for row, note in found] == [(1, code, path)]
    scores = score_pair(predicted, reference, one_to_one=False, define_empty=True)
    assert [s[0] for s in scores.values()] == [1] * 6
    assert all(math.isnan(s[1]) for s in scores.values())


def test_a_key_that_nobody_reads_costs_no_score() -> None:
    batch = pa.record_batch(
        {
            PREDICTED: ['[{"tool_name": "a", "id": 7, "tool_input": {"x": 1.0}}]'] * 2,
            REFERENCE: [None, '[{"tool_name":"a","tool_input":{"x":1}}]'],
        }
    )
    log = IssueLog(2)
    predicted, reference = read_pair(batch, log)
    assert reference.states.tolist() == [ABSENT, GIVEN]
    assert [note[0] for note in log.notes] == ["AE504", "AE504"]
    assert (
        score_pair(predicted, reference, one_to_one=False, define_empty=False)["trajectory_exact_match"].tolist()[1]
        == 1
    )


def test_bytes_that_are_no_text_are_told() -> None:
    bad = pa.array([b'[{"tool_name": "\xff"}]', b'[{"tool_name": "a"}]'], pa.binary())
    batch = pa.record_batch({PREDICTED: bad, REFERENCE: ['[{"tool_name": "a"}]'] * 2})
    log = IssueLog(2)
    predicted, reference = read_pair(batch, log)
    assert log.rows == [0]
    assert log.notes[0][0] == "AE005"
    assert score_pair(predicted, reference, one_to_one=False, define_empty=False)["trajectory_recall"].tolist()[1] == 1


def test_an_empty_trajectory_is_told() -> None:
    log = IssueLog(2)
    read_pair(batch_of([([], [ToolCall("a")]), (None, [ToolCall("a")])]), log)
    assert [(row, note[0], note[1]) for row, note in zip(log.rows, log.notes, strict=True)] == [(0, "AE505", PREDICTED)]


def test_one_column_is_enough_to_read() -> None:
    predicted, reference = read_pair(pa.record_batch({PREDICTED: ['[{"tool_name": "a"}]']}), IssueLog(1))
    assert names_of(predicted) == [["a"]]
    assert reference.states.tolist() == [ABSENT]


def test_a_batch_without_rows() -> None:
    assert scored(batch_of([])) == {name: [] for name in TRAJECTORY_METRICS}


def test_thousands_of_calls_in_one_row() -> None:
    many = [ToolCall("a", {"i": i}) for i in range(3000)]
    found = scored(batch_of([(many, many[::2]), (many[::-1], many)]))
    assert [found[m] for m in TRAJECTORY_METRICS] == [[0, 0], [1, 0], [1, 1], [0.5, 1], [1, 1], [2 / 3, 1]]


def test_numbers_of_any_size_are_compared_exactly() -> None:
    pairs = [(2**70, 2**70 + 1), (2**60, 2.0**60), (0, -0.0), (1e308, 1e308)]
    found = scored(
        batch_of([([ToolCall("t", {"x": a})], [ToolCall("t", {"x": b})]) for a, b in pairs], "two spellings")
    )
    assert found["trajectory_exact_match"] == [0, 1, 1, 1]
    assert np.isfinite(found["trajectory_recall"]).all()
