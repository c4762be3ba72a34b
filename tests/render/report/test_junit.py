"""JUnit XML: a suite a file, a case a rule, well-formed whatever the cells hold, and of the structure that CI reads."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest

from agent_eval_schema import validate_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.render.report.junit import junit_xml
from agent_eval_schema.rule import Severity
from agent_eval_schema.rules import RULES
from agent_eval_schema.runtime.version import __version__
from agent_eval_schema.validation.report import run_of, summary_of
from tests.conftest import as_jsonl
from tests.render.report.test_text import GOLDEN, compare, report_on

GOOD = {"request": "Hi", "response": "Hello"}
ROWS: list[dict[str, Any]] = [*({"request": " ", "response": ""} for _ in range(25)), {**GOOD, "team": "x"}]

NUMBER, TEXT = float, str
STRUCTURE: dict[str, tuple[dict[str, type], dict[str, type], set[str]]] = {
    # element: attributes that it must have, that it may have, and its children
    "testsuites": ({"name": TEXT, "tests": int, "failures": int, "errors": int, "time": NUMBER}, {}, {"testsuite"}),
    "testsuite": (
        {"name": TEXT, "tests": int, "failures": int, "errors": int, "skipped": int, "time": NUMBER},
        {},
        {"properties", "testcase", "system-out"},
    ),
    "properties": ({}, {}, {"property"}),
    "property": ({"name": TEXT, "value": TEXT}, {}, set()),
    "testcase": ({"name": TEXT, "classname": TEXT}, {"time": NUMBER}, {"failure", "system-out"}),
    "failure": ({"type": TEXT, "message": TEXT}, {}, set()),
    "system-out": ({}, {}, set()),
}


def check_structure(element: Element) -> None:
    """What junit-10.xsd says of the elements that we write."""
    required, optional, children = STRUCTURE[element.tag]
    assert required.keys() <= element.attrib.keys() <= required.keys() | optional.keys()
    for name, value in element.attrib.items():
        {**required, **optional}[name](value)
    assert {child.tag for child in element} <= children
    assert bool(children) or element.tag == "property" or element.text
    for child in element:
        check_structure(child)


def suites(document: str) -> list[Element]:
    root = ElementTree.fromstring(document.encode())
    check_structure(root)
    found = list(root)
    for counted in (root, *found):
        cases = list(counted.iter("testcase"))
        assert int(counted.attrib["tests"]) == len(cases)
        assert int(counted.attrib["failures"]) == len([c for c in cases if c.find("failure") is not None])
    return found


def suite_of(rows: list[dict[str, Any]], *failing: Severity, **options: Any) -> Element:
    (suite,) = suites(junit_xml([summary_of(validate_eval_set(rows, **options))], failing=failing))
    return suite


def case_of(suite: Element, code: str) -> Element:
    (case,) = [c for c in suite.iter("testcase") if c.attrib["name"].startswith(code)]
    return case


def test_the_broken_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one rule that passes: a new rule without issues in the sample does not change the file."""
    found = report_on("broken.jsonl", monkeypatch).counts
    report = report_on("broken.jsonl", monkeypatch, select=("AE001", *found))
    run_of(report).seconds = 1.5
    document = junit_xml([summary_of(report)])
    named = document.replace(f'"version" value="{__version__}"', '"version" value="VERSION"')
    compare(GOLDEN / "broken.junit.xml", re.sub('"rules_off" value="[0-9]+"', '"rules_off" value="OTHERS"', named))
    suites(document)


def test_every_rule_that_was_applied_is_a_case() -> None:
    suite = suite_of(ROWS, Severity.ERROR)
    assert [c.attrib["name"] for c in suite.iter("testcase")] == [f"{r.code} {r.name}" for r in RULES.values()]
    suite = suite_of(ROWS, Severity.ERROR, select="AE2", ignore="AE202")
    names = [c.attrib["name"][:5] for c in suite.iter("testcase")]
    assert names == [c for c in RULES if c.startswith("AE2") and c != "AE202"]
    assert suite.attrib["failures"] == "0"


def test_a_failure_has_the_exact_count_and_at_most_twenty_examples() -> None:
    failure = case_of(suite_of(ROWS, Severity.ERROR), "AE202").find("failure")
    assert failure is not None
    assert failure.attrib == {"type": "error", "message": "25 × The request is empty."}
    lines = (failure.text or "").splitlines()
    assert len(lines) == 21
    assert lines[0] == ("row 0, request: expected a question, got blank text → Fill in the question, or drop the row.")
    assert lines[-1] == "… and 5 more"


@pytest.mark.parametrize(
    ("failing", "failed"),
    [((Severity.ERROR,), {"AE202"}), ((Severity.ERROR, Severity.WARNING), {"AE202", "AE221"}), ((), set())],
)
def test_what_is_below_the_level_passes_and_is_told(failing: tuple[Severity, ...], failed: set[str]) -> None:
    suite = suite_of(ROWS, *failing)
    for code in ("AE202", "AE221", "AE103"):
        case = case_of(suite, code)
        assert (case.find("failure") is not None) == (code in failed)
        assert (case.find("system-out") is None) == (code in failed)
    told = case_of(suite, "AE103").findtext("system-out") or ""
    assert told.startswith("info: 1 × Unknown column.\nteam: `team` is passed through")


def test_properties_and_time(tmp_path: Path) -> None:
    path = as_jsonl(ROWS, tmp_path)
    report = validate_eval_set(path)
    assert run_of(report).seconds > 0
    run_of(report).seconds = 2.25
    (suite,) = suites(junit_xml([summary_of(report)]))
    properties = {p.attrib["name"]: p.attrib["value"] for p in suite.iter("property")}
    assert properties.pop("version")
    assert properties == {
        "format": "databricks",
        "outputs": "provided",
        "rows": "26",
        "valid_rows": "1",
        "invalid_rows": "25",
        "rules_off": "0",
    }
    assert (suite.attrib["name"], suite.attrib["time"]) == (path, "2.250")


CONTROL = (
    "".join(map(chr, [*range(32), *range(0x7F, 0xA0), 0x2028, 0x202E, 0xFEFF, 0xFFFE, 0xFFFF])) + "]]>&<\"'\U0001f600"
)


def test_it_is_xml_whatever_the_cells_hold(tmp_path: Path) -> None:
    rows = [
        {"request_id": CONTROL, "request": {CONTROL: CONTROL}, "response": {CONTROL: 1}, CONTROL: CONTROL},
        {**GOOD, "guidelines": {CONTROL: CONTROL}, "latency_seconds": CONTROL},
        {"request": {"messages": [{"role": "a\x00\x1b\ufffe\uffff]]>&<z", "content": "a"}]}, "response": "b"},
    ]
    for data in (rows, as_jsonl(rows, tmp_path)):
        document = junit_xml([summary_of(validate_eval_set(data))])
        (suite,) = suites(document)
        told = case_of(suite, "AE206").findtext("failure") or ""
        assert r"'a\x00\x1b\ufffe\uffff]]>&<z'" in told
        assert document.isascii()


def test_it_is_xml_whatever_the_file_is_called(tmp_path: Path) -> None:
    path = tmp_path / 'a\x1b<&".jsonl'
    path.write_text(json.dumps(GOOD))
    (suite,) = suites(junit_xml([summary_of(validate_eval_set(str(path)))]))
    assert suite.attrib["name"] == str(tmp_path / r'a\x1b<&".jsonl')


def test_the_text_of_half_a_character_is_written_out() -> None:
    report = validate_eval_set([{"request": {"\ud83d": 1}, "response": "a"}])
    suites(junit_xml([summary_of(report)]))


def test_the_command_line_writes_one_document_for_all_files(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"request": "a", "response": ""}))
    code = main(["validate", str(samples / "good.jsonl"), str(path), "--output", "junit"])
    assert code == 0
    found = suites(capsys.readouterr().out)
    assert [s.attrib["name"] for s in found] == [str(samples / "good.jsonl"), str(path)]
    assert [s.attrib["failures"] for s in found] == ["0", "0"]
    code = main(["validate", str(path), "--output", "junit", "--fail-on", "warning"])
    assert code == 1
    assert [s.attrib["failures"] for s in suites(capsys.readouterr().out)] == ["1"]
