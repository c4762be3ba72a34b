"""What the fuzzer found stays mended, and the fuzzer finds what is broken."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from random import Random
from types import ModuleType

import pytest

from agent_eval_schema.formats import azure, examples, genai, nested, promptfoo
from agent_eval_schema.formats.ces import golden_writer
from agent_eval_schema.review import bundle
from agent_eval_schema.validation import kernel
from agent_eval_schema.validation.rows import Rows
from agent_eval_schema.validation.steps import Step
from tests.conftest import DATA, ROOT
from tests.fuzz.checks import CHECKS
from tests.fuzz.documents import what_is_lost
from tests.fuzz.inputs import MARK, Case, case, in_python, is_of_python, place_case, place_cases
from tests.fuzz.run import Part, raised, run_part
from tests.helpers.mutations import copied, samples

FOUND = sorted((DATA / "fuzz").glob("*.json"))


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_what_was_found(path: Path, tmp_path: Path) -> None:
    found = json.loads(path.read_text())
    given = Case("", path.stem, found["rows"], is_of_python(found["rows"]))
    error = raised(CHECKS[found["check"]][0], given, tmp_path)
    if error is not None:
        raise error


def test_a_case_is_the_same_each_time() -> None:
    assert case(7, 11, 5) == case(7, 11, 5) != case(8, 11, 5)
    marked = [given for given in (case(7, n, 5) for n in range(200)) if MARK in json.dumps(given.rows)]
    assert marked
    assert all(given.is_python for given in marked)
    assert in_python([{"a": {MARK: "tuple"}}]) == [{"a": (1, "a")}]
    assert is_of_python([{"a": float("inf")}])


def test_a_defect_is_found_and_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that fails."""

    def step(_: Rows) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(kernel, "STEPS", (Step(step),))
    found = run_part(Part(1, 0, 3, ("validate",))).findings
    assert "AE001" in found[0].text
    assert "ZeroDivisionError" in found[0].text
    assert len(found[0].rows) == 1


def test_a_fault_of_one_row_of_a_large_case_is_found_and_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several samples, in batches that fail as a whole."""
    large = [given for given in (case(1, number, 400) for number in range(12)) if len(given.rows) > 300]
    given = next(given for given in large if "alert(1)" in json.dumps(given.rows))
    same = {json.dumps(row) for rows in samples().values() for row in rows}
    assert sum(json.dumps(row) not in same for row in given.rows) > 100
    assert len({tuple(row) for row in given.rows}) < 100

    def step(rows: Rows) -> None:
        if "alert(1)" in str(rows.batch.to_pydict()):
            raise ZeroDivisionError

    monkeypatch.setattr(kernel, "STEPS", (Step(step),))
    (found,) = run_part(Part(1, int(given.seed.partition("-")[2]), 1, ("validate",), most_rows=400)).findings
    assert "ZeroDivisionError" in found.text
    assert len(json.dumps(found.rows)) < 100


def test_each_place_of_a_format_is_without_a_value_and_has_one_of_every_type_in_turn() -> None:
    """Also inside of texts, of which a trace is one."""
    path = ("trace", None, "info", "state")
    number = next(n for n, (_, places) in enumerate(place_cases()) if path in [place for _, place in places])
    states = [json.loads(row["trace"])["info"].get("state", "removed") for row in place_case(number).rows]
    others = {json.dumps(state) for state in states}
    assert others >= {"null", "true", "7", '""', '"a"', "[]", '["a"]', "[{}]", "{}", '{"a": 1}', '"removed"'}


def test_a_look_up_of_a_value_that_is_no_text_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A type of images that is an object: a random damage has seldom found it."""
    image = ("golden", "turns", 0, "steps", 4, "userInput", "image", "mimeType")
    number = next(n for n, (_, places) in enumerate(place_cases()) if (0, image) in places)
    part = Part(0, number, 1, ("ces",), places=True)
    assert run_part(part).findings == []
    monkeypatch.setitem(
        golden_writer._CELLS, "image_mime_type", lambda _, fields, name: {}.get(fields.fields.get(name))
    )
    assert "unhashable type" in "".join(finding.text for finding in run_part(part).findings)


def test_a_private_text_that_leaves_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A page for reviewers that is not redacted."""
    row = {"request": "Who is it?", "response": "Ask ana.canary@example.com"}
    given = Case("1", "a sample", [row] * 4)
    assert raised(CHECKS["redacted"][0], given, tmp_path) is None
    monkeypatch.setattr(bundle, "redacted", lambda value, _: value)
    assert "a private text in review.html" in str(raised(CHECKS["redacted"][0], given, tmp_path))


def test_entries_of_documents_that_are_lost_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that loses entries, and one that changes rows for those after them."""

    def lost() -> set[str]:
        documents = [
            {"prompts": ["{{q}}"], "tests": [{"vars": {"q": text}} for text in "abc"]},
            {"prompts": [], "tests": []},
        ]
        return set(what_is_lost(documents, Random(1), 100))

    all_of = promptfoo.all_of
    assert lost() == set()
    monkeypatch.setattr(promptfoo, "all_of", lambda values: all_of(values)[:2])
    assert lost() == {"an entry of tests (promptfoo) is no row and has no issue"}
    monkeypatch.setattr(promptfoo, "all_of", lambda values: [{**v, "of": len(values)} for v in all_of(values)])
    assert lost() == {"an entry of tests (promptfoo) changes other rows"}


SAID = [{"role": role, "content": role} for role in ("user", "assistant", "user", "assistant", "user")]


@pytest.mark.parametrize(
    ("document", "module", "lost"),
    [
        ({"conversation": {"messages": SAID}}, azure, "conversation.messages (azure) changes no row"),
        ({"data": {"examples": [{"input": t} for t in "abc"]}}, examples, "data.examples (langfuse) is no row"),
        (
            {"agent_data": {"turns": [{"events": [{"author": "user"}]}] * 3}},
            genai,
            "agent_data.turns (vertex-genai) is no row",
        ),
    ],
)
def test_entries_of_a_list_in_an_object_that_are_lost_are_found(
    document: dict[str, object], module: ModuleType, lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "objects_of" if module is examples else "all_of"
    read = getattr(module, name)
    assert set(what_is_lost([document], Random(1), 100)) == set()

    def cut(values: object, *path: str) -> object:
        found = read(values, *path)
        return (found[0][:2], found[1]) if path else found[:2]

    monkeypatch.setattr(module, name, cut)
    assert set(what_is_lost([document], Random(1), 100)) == {f"an entry of {lost} and has no issue"}


def test_entries_of_a_list_that_is_text_that_are_lost_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that takes a list, and not its JSON text."""
    documents = [{"cases": [{"input": "a"}, {"input": "b"}]}]
    monkeypatch.setattr(nested, "structured", lambda value: value)
    all_of = "agent_eval_schema.formats.documents.all_of"
    monkeypatch.setattr(all_of, lambda values: values if isinstance(values, list) else ())
    monkeypatch.setattr(nested, "_with_lists", lambda row, _: (row, []))
    assert set(what_is_lost(documents, Random(1), 100)) == {"an entry of cases (strands) is no row and has no issue"}


def test_a_document_with_a_lone_surrogate_is_one_issue_whatever_is_in_it() -> None:
    documents = [{"cases": [{"input": "\ud83d"}, {"input": "a"}, {"input": "b"}]}]
    assert set(what_is_lost(documents, Random(1), 100)) == set()


def test_a_document_that_is_lost_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [{"cases": [{"input": "a"}]}, {"input": "b"}]
    assert set(what_is_lost(documents, Random(1), 100)) == set()
    monkeypatch.setattr(nested, "_turns", lambda row, unfold, *_: unfold(row))
    assert set(what_is_lost(documents, Random(1), 100)) == {"an entry of the file (strands) is no row and has no issue"}


@pytest.mark.property
@pytest.mark.parametrize("seed", [1, 2])
def test_eight_thousand_cells(seed: int) -> None:
    """In two parts, each in one process: the workers of pytest share them."""
    command = [sys.executable, "-m", "tests.fuzz", "--cells", "4_000", "--seed", str(seed), "--sparse", "24"]
    done = subprocess.run([*command, "--jobs", "1"], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_value_of_any_depth_is_copied() -> None:
    deep: list[object] = []
    for _ in range(5_000):
        deep = [deep, {"a": 1}]
    again = copied({"a": deep, "b": [1, [2]], "c": {MARK: "tuple"}})
    assert (again["b"], again["c"]) == ([1, [2]], {MARK: "tuple"})
    assert again["a"] is not deep
    assert again["a"][0] is not deep[0]
    assert in_python([again])[0]["c"] == (1, "a")
