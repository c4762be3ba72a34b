"""JSON rows that have a key twice: whichever value is read, the other one may not be lost without a word."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_eval_schema import validate_eval_set
from agent_eval_schema.cells.notes import notes_on
from agent_eval_schema.fix.fix import fix_source
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.io import json as json_
from agent_eval_schema.io.jsonl import cell_batches
from agent_eval_schema.io.streams import too_large

GOOD = '{"request": "Hi", "response": "Hello"}'

TWICE = {
    "as json.dumps writes it": '{"request": "Hi", "request": "Ho", "response": "x"}',
    "compact": '{"request":"Hi","response":"x","request":"Ho"}',
    "with an escape in the name": r'{"request": "Hi", "response": "x", "reque\u0073t": "Ho"}',
    "null and a value": '{"request": null, "response": "x", "request": "Ho"}',
    "the same value": '{"request": "Hi", "response": "x", "request": "Hi"}',
    "a column of the user's own": '{"request": "Hi", "response": "x", "note": 1, "note": 2}',
}


@pytest.mark.parametrize("case", TWICE)
@pytest.mark.parametrize("ending", [".jsonl", ".json"])
def test_a_row_with_a_key_twice_is_refused_and_handed_back_whole(case: str, ending: str, tmp_path: Path) -> None:
    text = f"{GOOD}\n{TWICE[case]}\n{GOOD}\n" if ending == ".jsonl" else f"[{GOOD}, {TWICE[case]}, {GOOD}]"
    path = tmp_path / f"rows{ending}"
    path.write_text(text)
    report = validate_eval_set(path, ignore=["AE103"])
    key = "note" if "note" in TWICE[case] else "request"
    assert report.issues[["row", "column", "code"]].to_numpy().tolist() == [[1, key, "AE114"]]
    assert f"2: expected `{key}` once, got it 2 times" in report.issues["message"][0]
    report.write_invalid(tmp_path / "invalid.jsonl")
    assert json.loads((tmp_path / "invalid.jsonl").read_text())["__line__"] == TWICE[case]


NAMED = '{"request": "Hi", "response": "Hello", "Expected_Response": "x"}'
FIXED = NAMED.replace("Expected_Response", "expected_response")


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        (f'{NAMED[:-1]}, "expected_response": null}}', FIXED),
        (
            '{"request": "Hi", "Expected_Response": null, "expected_response": "y"}',
            '{"request": "Hi", "expected_response": "y"}',
        ),
        (f'{NAMED[:-1]}, "Expected_Response": "y"}}',) * 2,
        ('["Expected_Response"]',) * 2,
        ('{"Expected_Response" "x"}',) * 2,
        (f'{{"Expected_Response": {"[" * 300}{"]" * 300}}}',) * 2,
    ],
    ids=["its own is null", "the other is null", "a key twice", "a list", "no colon", "deep"],
)
def test_a_column_is_renamed_in_valid_rows_only(text: str, fixed: str, tmp_path: Path) -> None:
    (path := tmp_path / "rows.jsonl").write_text(f"{NAMED}\n{text}\n")
    fix_source(open_source(str(path))).write(out := str(tmp_path / "fixed.jsonl"))
    assert Path(out).read_text() == f"{FIXED}\n{fixed}\n"


def test_the_rest_of_an_array_that_cannot_be_read_is_one_invalid_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_, "CHUNK", 16)
    (path := tmp_path / "rows.json").write_text(f"[{GOOD} {NAMED}, {GOOD}]")
    report = validate_eval_set(path)
    assert report.valid_mask.tolist() == [True, False]
    assert report.issues["message"].tolist() == ["element 2: expected a comma or the end of the array"]
    report.write_invalid(tmp_path / "invalid.jsonl")
    assert json.loads((tmp_path / "invalid.jsonl").read_text())["__line__"] == f"{NAMED}, {GOOD}]"


def test_a_row_may_have_many_keys_and_each_row_others(tmp_path: Path) -> None:
    """Columns are made of the keys that there are: no step goes through all columns for each row."""
    rows = [{"request": f"q{i}", "response": "a", f"k{i}": i} for i in range(1_000)]
    (path := tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (batch,) = cell_batches((line, "", "") for line in path.read_bytes().splitlines())
    assert batch.schema.names == ["request", "response", *(f"k{i}" for i in range(1_000))]
    assert all(batch.column(f"k{i}").null_count == 999 for i in range(1_000))
    assert [batch.column(f"k{i}")[i].as_py() for i in range(1_000)] == [str(i) for i in range(1_000)]
    path.write_text(json.dumps({"request": "Hi", "response": "a", **dict.fromkeys(map(str, range(10_000)), 1)}))
    assert validate_eval_set(path).counts == {"AE103": 10_000}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)
_PAIRS = st.lists(st.tuples(st.sampled_from(["a", "b", "ü", "a:", '"', "long name"]), _JSON), min_size=1, max_size=6)
_STYLES = st.sampled_from([(", ", ": "), (",", ":"), (",\n  ", " : "), (" ,", ":\t")])


def _object(pairs: list[tuple[str, Any]], style: tuple[str, str], ascii_only: bool) -> str:
    comma, colon = style
    texts = [json.dumps(k, ensure_ascii=ascii_only) + colon + json.dumps(v, ensure_ascii=ascii_only) for k, v in pairs]
    return "{" + comma.join(texts) + "}"


@given(st.lists(_PAIRS, min_size=1, max_size=12), _STYLES, st.booleans())
def test_exactly_the_objects_with_a_key_twice_are_noted(
    objects: list[list[tuple[str, Any]]], style: tuple[str, str], ascii_only: bool
) -> None:
    """However the file is written, as long as it is in one style."""
    texts = [_object(pairs, style, ascii_only) for pairs in objects]
    (batch,) = cell_batches((text.encode(), "", "") for text in texts)
    counts = [Counter(key for key, _ in pairs) for pairs in objects]
    twice = {i: [key for key, count in found.items() if count > 1] for i, found in enumerate(counts)}
    found = {row: [finding.column for finding in findings] for row, findings in notes_on(batch).items()}
    assert found == {row: keys for row, keys in twice.items() if keys}


@pytest.mark.parametrize(("name", "is_packed"), [("a.jsonl.gz", True), ("a.JSON.ZST", True), ("a.xlsx", False)])
def test_only_a_compressed_file_can_be_unpacked(name: str, is_packed: bool) -> None:
    assert ("unpack the file" in str(too_large(name))) == is_packed
