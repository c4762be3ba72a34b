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
from agent_eval_schema.metrics.batch import columns, numbers
from agent_eval_schema.metrics.batch import texts as cells
from agent_eval_schema.metrics.batch.columns import PREDICTED, REFERENCE, Pair, read_pair, score_pair
from agent_eval_schema.metrics.batch.numbers import ABSENT, GIVEN, UNREADABLE_CALLS
from agent_eval_schema.metrics.trajectory import TRAJECTORY_METRICS, score_trajectory
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


def scored(batch: pa.RecordBatch, *, one_to_one: bool = False, define_empty: bool = True) -> dict[str, list[float]]:
    found = score_pair(read_pair(batch, IssueLog(batch.num_rows)), one_to_one=one_to_one, define_empty=define_empty)
    return {name: values.tolist() for name, values in found.items()}


def names_of(pair: Pair) -> list[list[str]]:
    """The tools that each prediction calls."""
    return [[pair.names[t] for t in pair.tools[pair.predicted.of(row)]] for row in range(pair.predicted.size)]


some_values = st.sampled_from([1, 1.0, 1e0, True, "1", None, 10**20, 0.5, [1, {"a": 2.0}], [1, {"a": 2}]])
some_inputs = st.none() | st.dictionaries(st.sampled_from(["x", "é"]), some_values, max_size=2)
trajectories = st.none() | st.lists(st.builds(ToolCall, st.sampled_from(["a", "b", "ü"]), some_inputs), max_size=6)
rows = st.lists(st.tuples(trajectories, trajectories) | trajectories.map(lambda t: (t, t)), max_size=8)


@pytest.mark.parametrize("writing", WRITINGS)
@given(rows=rows)
def test_a_batch_has_the_scores_of_its_rows_by_the_names_of_tools(
    writing: str, rows: list[tuple[Trajectory, Trajectory]]
) -> None:
    batch = batch_of(rows, writing)
    pair = read_pair(batch, IssueLog(batch.num_rows), by_name=True)
    found = score_pair(pair, one_to_one=False, define_empty=True)
    for metric in TRAJECTORY_METRICS:
        expected = [
            math.nan if p is None or r is None else score_trajectory(metric, p, r, match="tool_name") for p, r in rows
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


def test_no_call_of_equal_texts_is_numbered() -> None:
    same, other = [ToolCall("a", {"x": 1})], [ToolCall("b")]
    pair = read_pair(batch_of([(same, same), (other, same)]), IssueLog(2))
    assert pair.same.tolist() == [True, False]
    assert sorted(pair.names) == ["a", "b"]  # those of the second row
    pair = read_pair(batch_of([(same, same)]), IssueLog(1))
    assert (pair.predicted.lengths.tolist(), pair.predicted.ids.tolist()) == ([1], [])


def test_a_text_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def counting(decode: Any) -> Any:
        return lambda text: (seen.append(bytes(text).decode()), decode(text))[1]

    monkeypatch.setattr(cells, "_items", counting(cells._items))
    monkeypatch.setattr(cells, "_calls", counting(cells._calls))
    reference, predicted, other = ([ToolCall(name, {"x": 1})] for name in "abc")
    read_pair(batch_of([(predicted, reference)] * 50 + [(other, other)] * 50), IssueLog(100))
    texts = [str(as_text(calls)) for calls in (predicted, reference)]
    assert seen == [f"[{texts[0][1:-1]}, {texts[1][1:-1]}]", as_text(other)]


@pytest.mark.parametrize("repeats", [True, False])
@given(rows=rows)
def test_looking_for_texts_in_several_rows_changes_no_score(
    repeats: bool, rows: list[tuple[Trajectory, Trajectory]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "_repeats", lambda _: repeats)
        patch.setattr(cells, "FEW", 1)
        patch.setattr(cells, "MANY", 3)
        found = scored(batch_of(rows))
    for metric in TRAJECTORY_METRICS:
        expected = [math.nan if p is None or r is None else score_trajectory(metric, p, r) for p, r in rows]
        assert found[metric] == pytest.approx(expected, nan_ok=True, abs=0)


@pytest.mark.parametrize(("longest", "pairs"), [(0, 64), (2, 64), (8, 1 << 10)])
@given(rows=rows, one_to_one=st.booleans())
def test_trajectories_of_any_length_are_compared_as_the_definition_says(
    longest: int, pairs: int, rows: list[tuple[Trajectory, Trajectory]], one_to_one: bool
) -> None:
    """Those that are too long for it are not compared all at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numbers, "LONGEST", longest)
        patch.setattr(numbers, "PAIRS", pairs)
        found = scored(batch_of(rows, "mixed spellings"), one_to_one=one_to_one)
    duplicates = "one_to_one" if one_to_one else "membership"
    for metric in TRAJECTORY_METRICS:
        expected = [
            math.nan if p is None or r is None else score_trajectory(metric, p, r, duplicates=duplicates)
            for p, r in rows
        ]
        assert found[metric] == pytest.approx(expected, nan_ok=True, abs=0)


@given(calls=st.lists(st.builds(ToolCall, st.sampled_from(["a", "b"]), some_inputs), max_size=5), data=st.data())
def test_the_same_calls_in_another_order_have_the_scores_of_the_definition(
    calls: list[ToolCall], data: st.DataObject
) -> None:
    predicted = data.draw(st.permutations(calls))
    found = scored(batch_of([(predicted, calls)], "mixed spellings"))
    for metric in TRAJECTORY_METRICS:
        assert found[metric] == pytest.approx([score_trajectory(metric, predicted, calls)], nan_ok=True, abs=0)


def test_texts_in_several_rows_are_looked_for_where_there_are_many() -> None:
    texts = [f'[{{"tool_name": "a", "tool_input": {{"x": {i}}}}}]' for i in range(8_000)]
    some = [texts, texts[:4_000] * 2, [*texts[:7_990], *texts[:10]]]
    assert [columns._repeats(pa.array(t)) for t in some] == [False, True, False]


def test_an_input_is_only_decoded_where_its_text_does_not_say_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bytes] = []
    decode = numbers._value_keys
    monkeypatch.setattr(numbers, "_value_keys", lambda texts: (seen.extend(texts.to_pylist()), decode(texts))[1])
    one, other, third = ToolCall("a", {"x": 1}), ToolCall("a", {"x": 2}), ToolCall("b", {"x": 3})
    found = scored(batch_of([([one, third], [third, one]), ([one, other, third], [one, other])]))
    assert (found["trajectory_any_order_match"], seen) == ([1, 1], [])
    found = scored(batch_of([([one, third], [other, third])]))
    texts = [str(as_text([call]))[1:-1].encode() + b", " for call in (one, other)]
    assert (found["trajectory_precision"], sorted(seen)) == ([0.5], texts)


@pytest.mark.parametrize("writing", WRITINGS)
def test_one_value_in_two_spellings_is_one_call(writing: str) -> None:
    """Where a text matches, another one of the same value still counts: in its order, and one to one."""
    one, spelled = ToolCall("a", {"x": 1, "y": 2}), ToolCall("a", {"y": 2.0, "x": 1.0})
    pairs = [([one, spelled], [spelled, one]), ([one, one, spelled], [one, spelled, spelled]), ([one, spelled], [one])]
    found = scored(batch_of([*pairs], writing), one_to_one=True)
    assert [found[m] for m in TRAJECTORY_METRICS] == [[1, 1, 0], [1, 1, 1], [1, 1, 1], [1, 1, 0.5], [1, 1, 1]]
    assert scored(batch_of([*pairs], writing))["trajectory_precision"] == [1, 1, 1]


@pytest.mark.parametrize("number", ["1e999", "-1E+400", "1" * 400 + ".0", "1" * 5000, "1" * 250 + "e99"])
@pytest.mark.parametrize("nested", ['{"x": %s}', '{"x": [{"y": %s}]}'])
def test_a_number_out_of_range_costs_the_row(number: str, nested: str) -> None:
    """Whether the reference is the same text or another one."""
    cell = f'[{{"tool_name": "a", "tool_input": {nested % number}}}]'
    batch = pa.record_batch({PREDICTED: [cell, cell], REFERENCE: [cell, '[{"tool_name": "a"}]']})
    pair = read_pair(batch, IssueLog(2))
    assert pair.predicted.states.tolist() == [UNREADABLE_CALLS, UNREADABLE_CALLS]


huge = st.one_of(
    st.integers(309, 9_999).map(lambda n: f"1e{n}"),
    st.integers(309, 9_999).map(lambda n: f"3.5E+0{n}"),
    st.integers(310, 700).map(lambda n: "7" * n),
    st.tuples(st.integers(215, 300), st.integers(95, 99)).map(lambda n: f"{'9' * n[0]}.0e{n[1]}"),
)


@given(
    number=huge, before=st.text("1e+ x", max_size=70), after=st.text("1e+ x", max_size=70), piece=st.integers(1, 300)
)
def test_a_number_out_of_range_is_suspected_wherever_it_stands(
    number: str, before: str, after: str, piece: int
) -> None:
    column = pa.array([f'["{before}"]', f'["{before}", {number}, "{after}"]', f'["{after}"]'], pa.large_string())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "PIECE", piece)
        assert 0 in cells._out_of_range(column.slice(1), cells.decode_inputs)


def test_a_text_that_looks_like_a_large_number_costs_nothing() -> None:
    given = '[{"tool_name": "a", "tool_input": {"id": "3e512", "n": "%s", "x": 1e-999}}]' % ("1" * 400)
    batch = pa.record_batch({PREDICTED: [given, given], REFERENCE: [given, '[{"tool_name": "a"}]']})
    pair = read_pair(batch, IssueLog(2))
    assert pair.predicted.states.tolist() == [GIVEN, GIVEN]


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
    assert_read_as_decoded(read_pair(batch, IssueLog(len(texts))), texts)


def assert_read_as_decoded(pair: Pair, texts: list[str], *, names: bool = False) -> None:
    """Each prediction is there if its text can be decoded, and has as many calls; of the same tools, if asked for."""
    values = decode_column(PREDICTED, Cells(False, texts), IssueLog(len(texts)))
    assert pair.predicted.states.tolist() == [UNREADABLE_CALLS if value is FAILED else GIVEN for value in values]
    assert pair.predicted.lengths.tolist() == [0 if value is FAILED else len(value) for value in values]
    if names:
        assert names_of(pair) == [[] if value is FAILED else [call.tool_name for call in value] for value in values]


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
    assert_read_as_decoded(read_pair(batch, IssueLog(len(given)), names=True), given, names=True)


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
    assert_read_as_decoded(read_pair(batch, IssueLog(len(texts)), names=True), texts, names=True)


@given(names=st.lists(st.sampled_from(["a", "b", "ü", " ", "c" * 65, 'd"e']), max_size=5), most=st.integers(0, 3))
def test_names_that_were_met_before_make_no_difference(names: list[str], most: int) -> None:
    texts = [json.dumps([{"tool_name": n}]) for n in names] + [json.dumps([{"tool_name": n} for n in names])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "MOST_NAMES", most)
        patch.setattr(cells, "FEW", 1)
        for other in (texts, ['[{"tool_name": "z"}]'] * len(texts)):
            batch = pa.record_batch({PREDICTED: texts, REFERENCE: other})
            assert_read_as_decoded(read_pair(batch, IssueLog(len(texts))), texts)


def test_calls_are_those_of_their_cell_also_beside_one_that_is_cut_wrongly() -> None:
    """Texts are decoded as one list: what is no call must not lend its neighbor a bracket."""
    texts = ['[{"tool_name": "a"}, 1]', '[{"tool_name": "a"}]', "[[]]", '[{"tool_name": "a"}, {"tool_name": "b"}]']
    batch = pa.record_batch({PREDICTED: texts, REFERENCE: ['[{"tool_name": "b"}]'] * 4})
    pair = read_pair(batch, IssueLog(4), names=True)
    assert pair.predicted.states.tolist() == [UNREADABLE_CALLS, GIVEN, UNREADABLE_CALLS, GIVEN]
    assert names_of(pair) == [[], ["a"], [], ["a", "b"]]


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
    pair = read_pair(batch, log)
    assert pair.predicted.states.tolist() == [GIVEN, UNREADABLE_CALLS]
    found = [(row, note) for row, note in zip(log.rows, log.notes, strict=True) if note[1] == PREDICTED]
    assert [(row, note[0], note[2]) for row, note in found] == [(1, code, path)]
    scores = score_pair(pair, one_to_one=False, define_empty=True)
    assert [s[0] for s in scores.values()] == [1] * 5
    assert all(math.isnan(s[1]) for s in scores.values())


def test_a_key_that_nobody_reads_costs_no_score() -> None:
    batch = pa.record_batch(
        {
            PREDICTED: ['[{"tool_name": "a", "id": 7, "tool_input": {"x": 1.0}}]'] * 2,
            REFERENCE: [None, '[{"tool_name":"a","tool_input":{"x":1}}]'],
        }
    )
    log = IssueLog(2)
    pair = read_pair(batch, log)
    assert pair.reference.states.tolist() == [ABSENT, GIVEN]
    assert [note[0] for note in log.notes] == ["AE504", "AE504"]
    assert score_pair(pair, one_to_one=False, define_empty=False)["trajectory_exact_match"].tolist()[1] == 1


def test_bytes_that_are_no_text_are_told() -> None:
    bad = pa.array([b'[{"tool_name": "\xff"}]', b'[{"tool_name": "a"}]'], pa.binary())
    batch = pa.record_batch({PREDICTED: bad, REFERENCE: ['[{"tool_name": "a"}]'] * 2})
    log = IssueLog(2)
    pair = read_pair(batch, log)
    assert log.rows == [0]
    assert log.notes[0][0] == "AE005"
    assert score_pair(pair, one_to_one=False, define_empty=False)["trajectory_recall"].tolist()[1] == 1


def test_an_empty_trajectory_is_told() -> None:
    log = IssueLog(2)
    read_pair(batch_of([([], [ToolCall("a")]), (None, [ToolCall("a")])]), log)
    assert [(row, note[0], note[1]) for row, note in zip(log.rows, log.notes, strict=True)] == [(0, "AE505", PREDICTED)]


def test_one_column_is_enough_to_read() -> None:
    pair = read_pair(pa.record_batch({PREDICTED: ['[{"tool_name": "a"}]']}), IssueLog(1), names=True)
    assert (pair.predicted.ids.tolist(), pair.names) == ([0], ["a"])
    assert pair.reference.states.tolist() == [ABSENT]


def test_a_batch_without_rows() -> None:
    assert scored(batch_of([])) == {name: [] for name in TRAJECTORY_METRICS}


def test_thousands_of_calls_in_one_row() -> None:
    many = [ToolCall("a", {"i": i}) for i in range(3000)]
    found = scored(batch_of([(many, many[::2]), (many[::-1], many)]))
    assert [found[m] for m in TRAJECTORY_METRICS] == [[0, 0], [1, 0], [1, 1], [0.5, 1], [1, 1]]


def test_numbers_of_any_size_are_compared_exactly() -> None:
    pairs = [(2**70, 2**70 + 1), (2**60, 2.0**60), (0, -0.0), (1e308, 1e308)]
    found = scored(
        batch_of([([ToolCall("t", {"x": a})], [ToolCall("t", {"x": b})]) for a, b in pairs], "two spellings")
    )
    assert found["trajectory_exact_match"] == [0, 1, 1, 1]
    assert np.isfinite(found["trajectory_recall"]).all()
