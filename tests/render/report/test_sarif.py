"""SARIF 2.1.0: what its schema asks of the parts that we write, hostile cells, and names of files that are no URI.

The schema below was written from the specification; output was also validated with the schema of OASIS
(sarif-schema-2.1.0.json), which is not part of this repository."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from agent_eval_schema import validate_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.validation.report import summary_of
from tests.conftest import ROOT, SAMPLES
from tests.render.report.test_html import hostile_rows

TEXT = {"type": "string", "minLength": 1}
MESSAGE = {"type": "object", "required": ["text"], "properties": {"text": TEXT}, "additionalProperties": False}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
URI = {"type": "string", "pattern": r"^[A-Za-z0-9\-._~:/?#@!$&'()*+,;=%]+$"}


def an_object(required: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": required.split(),
        "properties": {**properties, "properties": {"type": "object"}},
        "additionalProperties": False,
    }


REGION = an_object("startLine", startLine={"type": "integer", "minimum": 1})
PHYSICAL = an_object("artifactLocation", artifactLocation=an_object("uri", uri=URI), region=REGION)
LOGICAL = an_object("fullyQualifiedName", fullyQualifiedName=TEXT, kind=TEXT)
RESULT = an_object(
    "message",
    ruleId=TEXT,
    ruleIndex={"type": "integer", "minimum": 0},
    level=LEVEL,
    message=MESSAGE,
    locations={"items": an_object("", physicalLocation=PHYSICAL, logicalLocations={"items": LOGICAL})},
)
DESCRIPTOR = an_object(
    "id",
    id=TEXT,
    name=TEXT,
    shortDescription=MESSAGE,
    fullDescription=MESSAGE,
    help=MESSAGE,
    helpUri=URI,
    defaultConfiguration=an_object("", level=LEVEL),
)
DRIVER = an_object(
    "name", name=TEXT, version=TEXT, semanticVersion=TEXT, rules={"items": DESCRIPTOR, "uniqueItems": True}
)
RUN = an_object(
    "tool",
    tool=an_object("driver", driver=DRIVER),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    results={"type": "array", "items": RESULT},
)
LOG = an_object(
    "version runs", version={"const": "2.1.0"}, runs={"type": "array", "items": RUN}, **{"$schema": {"type": "string"}}
)


def valid(text: str) -> dict[str, Any]:
    jsonschema = pytest.importorskip("jsonschema")
    document: dict[str, Any] = json.loads(text)
    jsonschema.Draft202012Validator(LOG).validate(document)
    return document


def test_every_issue_is_a_result(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    name = f"{SAMPLES.name}/broken.jsonl"
    assert main(["validate", name, f"{SAMPLES.name}/good.csv", "--output", "sarif"]) == 1
    (run,) = valid(capsys.readouterr().out)["runs"]  # GitHub rejects a second one of the same tool
    report, good = validate_eval_set(name), validate_eval_set(SAMPLES / "good.csv")
    noted = [i.code for r in (report, good) for i in r.iter_issues() if not i.hint.startswith("No action needed:")]
    assert [r["ruleId"] for r in run["results"]] == noted
    assert [file["rows"]["invalid"] for file in run["properties"]["files"]] == [report.invalid_count, 0]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"] == name
        if "row" in result["properties"]:  # a row of this file begins on each line
            assert place["region"]["startLine"] == result["properties"]["row"] + 1


def test_hostile_cells_and_names_stay_text(tmp_path: Path) -> None:
    path = tmp_path / "a b:é\n::error::x#%?.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in hostile_rows()))
    report = validate_eval_set(path)
    report.save(tmp_path / "r.sarif")
    text = (tmp_path / "r.sarif").read_text()
    (run,) = valid(text)["runs"]
    assert len(run["results"]) == sum(not i.hint.startswith("No action needed:") for i in report.iter_issues())
    assert "::error" not in text
    (uri,) = {r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in run["results"]}
    assert unquote(uri).endswith(r"a b:é\n::error::x#%?.jsonl")


def test_data_in_memory_has_no_location() -> None:
    from agent_eval_schema.render.report.sarif import sarif_text

    report = validate_eval_set([{"request": None, "response": "x"}], select=["AE201"])
    (run,) = valid(sarif_text([(summary_of(report), list(report.iter_issues()), {})]))["runs"]
    assert "physicalLocation" not in json.dumps(run)
    (file,) = run["properties"]["files"]
    assert file["rows"] == {"total": 1, "valid": 0, "invalid": 1}
    assert "uri" not in file
