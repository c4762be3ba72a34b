"""An exported app, as a folder and as a zip: its evaluations are rows, and each issue names the file."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent_eval_schema import EvalSetError, ces, convert_eval_set, validate_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.io.yaml import yaml_rows
from agent_eval_schema.rules.reading import MAX_DEPTH
from agent_eval_schema.text.depth import is_too_deep

CALL = {"expectation": {"toolCall": {"tool": "get_order", "args": {"id": 7}}}}
WRONG_CALL = {"expectation": {"toolCall": {"tool": "get_order", "arguments": {"id": 7}}}}
HI = {"userInput": {"text": "yes"}}
ANSWER = {"expectation": {"agentResponse": {"role": "agent", "chunks": [{"text": "2026-11-16"}]}}}


def evaluation(name: str, *steps: Any, **more: Any) -> dict[str, Any]:
    return {"displayName": name, "golden": {"turns": [{"steps": [HI, *steps]}]}, **more}


APP: dict[str, Any] = {
    "app.yaml": {"displayName": "Shop", "rootAgent": "shop"},
    "agents/shop/shop.yaml": {"displayName": "shop", "instruction": "Be kind."},
    "tools/get_order/get_order.json": {"displayName": "get_order"},
    "evaluationDatasets/all/all.yaml": {"displayName": "all", "evaluations": ["refund", "billing"]},
    "evaluationExpectations/polite/polite.json": {"displayName": "polite"},
    "evaluations/billing/billing.json": evaluation("billing", CALL, ANSWER),
    "evaluations/refund/refund.yaml": evaluation("refund", WRONG_CALL),
    "evaluations/more.json": [evaluation("a", ANSWER), evaluation("b", ANSWER)],
    "evaluations/notes.txt": "no evaluation",
}
FILES = ["evaluations/billing/billing.json", "evaluations/more.json", "evaluations/more.json"]


def text_of(name: str, value: Any) -> str:
    if name.endswith(".txt"):
        return str(value)
    return yaml.safe_dump(value, sort_keys=False) if name.endswith(".yaml") else json.dumps(value, indent=2)


def as_folder(app: dict[str, Any], tmp_path: Path) -> Path:
    for name, value in app.items():
        file = tmp_path / "shop" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text_of(name, value), encoding="utf-8", newline="\n")
    return tmp_path / "shop"


def as_parent(app: dict[str, Any], tmp_path: Path) -> Path:
    as_folder(app, tmp_path)
    return tmp_path


def as_zip(app: dict[str, Any], tmp_path: Path) -> Path:
    path = tmp_path / "app.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("Shop/", "")
        archive.writestr("__MACOSX/Shop/evaluations/._refund.json", b"\x00\x05")
        for name, value in app.items():
            archive.writestr(f"Shop/{name}", text_of(name, value))
    return path


KINDS: dict[str, tuple[Callable[[dict[str, Any], Path], Path], str]] = {
    "folder": (as_folder, ""),
    "its parent": (as_parent, "shop/"),
    "zip": (as_zip, "Shop/"),
}


@pytest.fixture(params=KINDS)
def exported(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Callable[[dict[str, Any]], Path], str]:
    write, prefix = KINDS[request.param]
    return lambda app: write(app, tmp_path), prefix


Exported = tuple[Callable[[dict[str, Any]], Path], str]


def test_the_evaluations_of_an_app_are_rows_and_issues_name_their_files(exported: Exported) -> None:
    write, prefix = exported
    report = validate_eval_set(write(APP))
    assert (report.format, report.row_count) == ("ces-evaluation", 4), report.to_text()
    (issue,) = report.issues[report.issues["severity"] == "error"].to_dict("records")
    assert (issue["code"], issue["request_id"], issue["row"]) == ("AE153", "refund", 3)
    assert issue["message"].startswith(f"{prefix}evaluations/refund/refund.yaml: ")
    assert issue["path"] == "golden.turns[0].steps[1].expectation.toolCall.arguments"


def test_reading_and_validating_evaluations_takes_an_app(exported: Exported) -> None:
    write, prefix = exported
    path = write(APP)
    assert [found["displayName"] for found in ces.read_evaluations(path)] == ["billing", "a", "b", "refund"]
    (issue,) = ces.validate_evaluation(path)
    assert (issue.code, issue.row) == ("AE153", 3)
    assert issue.message.startswith(f"{prefix}evaluations/refund/refund.yaml: ")


def test_an_app_is_converted(exported: Exported) -> None:
    write, _ = exported
    made = convert_eval_set(write(APP), to="databricks")
    assert (made.source, made.given, made.converted) == ("ces-evaluation", 4, 3)
    assert made.data["expected_response"].dropna().tolist() == ["2026-11-16"] * 3
    assert made.data["request"][0] == {"messages": [{"role": "user", "content": "yes"}]}


def test_a_file_that_cannot_be_read_is_an_issue_of_its_own(exported: Exported) -> None:
    write, prefix = exported
    app = {"evaluations/a.json": evaluation("a", ANSWER), "evaluations/b.yaml": "x", "evaluations/c.json": "x"}
    path = write(app)
    broken = {"evaluations/b.yaml": "a: [1, 2\nb: }\n", "evaluations/c.json": '{"displayName": '}
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name, text in {"evaluations/a.json": text_of("a.json", app["evaluations/a.json"]), **broken}.items():
                archive.writestr(prefix + name, text)
    else:
        for name, text in broken.items():
            (path / prefix / name).write_text(text)
    report = validate_eval_set(path)
    found = report.issues[report.issues["severity"] == "error"]
    assert found["row"].tolist() == [1, 2]
    assert found["code"].tolist() == ["AE007", "AE007"]
    assert [m.partition(": ")[0] for m in found["message"]] == [f"{prefix}{name}" for name in broken]
    assert "line 2" in found["message"].iloc[0]
    with pytest.raises(EvalSetError, match=r"evaluations/b\.yaml: line 2"):
        ces.read_evaluations(path)


def test_a_file_above_the_limit_is_an_issue_of_its_own(exported: Exported, monkeypatch: pytest.MonkeyPatch) -> None:
    write, prefix = exported
    limit = 1 << 20
    monkeypatch.setattr("agent_eval_schema.formats.ces.app._LARGEST", limit)
    blanks = limit - len(text_of("a.json", evaluation("a", description="")))
    sizes = {"a.json": blanks, "b.json": blanks + 1, "c.yaml": limit}
    files = {f"evaluations/{n}": evaluation(n[0], description=" " * size) for n, size in sizes.items()}
    report = validate_eval_set(write({**files, "evaluations/d.json": evaluation("d", ANSWER)}))
    found = [(i.row, i.code, i.message) for i in report.iter_issues() if i.severity == "error"]
    assert report.row_count == 4
    message = "expected a file of up to 1 MB, got a larger one"
    assert found == [
        (row, "AE007", f"{prefix}evaluations/{name}: {message}") for row, name in ((1, "b.json"), (2, "c.yaml"))
    ]


def test_a_link_to_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = as_folder({"evaluations/a.json": evaluation("a")}, tmp_path)
    (path / "evaluations" / "b.json").symlink_to(tmp_path / "nowhere.json")
    for read in (ces.read_evaluations, validate_eval_set):
        with pytest.raises(EvalSetError, match=r"b\.json: "):
            read(path)


def test_an_app_without_evaluations_is_an_empty_one(exported: Exported) -> None:
    write, _ = exported
    report = validate_eval_set(write({"app.yaml": {"displayName": "Shop"}}))
    assert (report.format, report.row_count, list(report.counts)) == ("ces-evaluation", 0, ["AE101"])


def test_the_command_takes_an_app(exported: Exported, capsys: pytest.CaptureFixture[str]) -> None:
    write, prefix = exported
    assert main(["validate", str(write(APP))]) == 1
    assert f"{prefix}evaluations/refund/refund.yaml" in capsys.readouterr().out.replace("\n      ", " ")


def test_names_of_files_are_not_told_if_values_are_not(exported: Exported) -> None:
    write, _ = exported
    report = validate_eval_set(write(APP), show_values=False)
    assert "refund" not in report.to_json()


def test_one_yaml_file_is_read_too(tmp_path: Path) -> None:
    path = as_folder(APP, tmp_path) / "evaluations" / "refund" / "refund.yaml"
    assert validate_eval_set(path).counts == {"AE153": 1}
    assert ces.read_evaluation(path)["displayName"] == "refund"


def test_a_zip_or_a_folder_of_something_else_is_said_to_be_none(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("notes.txt", "x")
    with pytest.raises(EvalSetError, match=r"a\.zip: expected an exported app"):
        validate_eval_set(tmp_path / "a.zip")
    (tmp_path / "b.zip").write_bytes(b"no zip")
    with pytest.raises(EvalSetError, match=r"b\.zip: cannot be read"):
        validate_eval_set(tmp_path / "b.zip")
    with pytest.raises(EvalSetError, match="without files of rows"):
        validate_eval_set(tmp_path)


# ---------------------------------------------------------------------------------------------------------------------
# YAML


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: yes", {"a": "yes"}),
        ("a: 2025-01-31", {"a": "2025-01-31"}),
        ("a: 12:30:45", {"a": "12:30:45"}),
        ("a: 1_000", {"a": "1_000"}),
        ("a: '7'", {"a": "7"}),
        ("a: 7", {"a": 7}),
        ("a: -0.5e3", {"a": -500.0}),
        ("a: 0x1F", {"a": 31}),
        ("a: true\nb: FALSE\nc: ~\nd:", {"a": True, "b": False, "c": None, "d": None}),
        ("a: |\n  two\n  lines\n", {"a": "two\nlines\n"}),
        ("a: &x {b: 1}\nc: *x", {"a": {"b": 1}, "c": {"b": 1}}),
        ("\ufeffa: 1", {"a": 1}),
    ],
)
def test_scalars_are_those_of_yaml_1_2(text: str, value: Any) -> None:
    ((found, problem),) = yaml_rows(text.encode())
    assert (json.loads(found), problem) == (value, "")


def test_a_list_or_several_documents_are_rows() -> None:
    assert [json.loads(text) for text, _ in yaml_rows(b"- a: 1\n- a: 2\n")] == [{"a": 1}, {"a": 2}]
    assert [json.loads(text) for text, _ in yaml_rows(b"a: 1\n---\na: 2\n")] == [{"a": 1}, {"a": 2}]
    assert yaml_rows(b"") == []


def test_a_key_that_stands_twice_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("displayName: a\ndisplayName: b\ngolden: {turns: [{steps: [{userInput: {text: Hi}}]}]}\n")
    assert validate_eval_set(path).counts == {"AE150": 1}


@pytest.mark.parametrize(
    "text",
    [
        "a: [",
        "? [1]\n: 2",
        "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
        + "\n".join(f"b{i}: &b{i} [{', '.join([f'*b{i - 1}' if i else '*a'] * 10)}]" for i in range(9)),
        "a: \x00",
    ],
)
def test_yaml_that_cannot_be_read_is_told(text: str) -> None:
    ((_, problem),) = yaml_rows(text.encode())
    assert problem


@pytest.mark.parametrize("depth", [MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1, 100_000])
@pytest.mark.parametrize("layout", ["{}", "- {}", "--- {}\n--- {}", "[{}]"])
def test_the_levels_of_yaml_are_counted_before_it_is_read(layout: str, depth: int) -> None:
    rows = yaml_rows(layout.replace("{}", "{a: " + "[" * depth + "]" * depth + "}").encode())
    assert {is_too_deep(text, MAX_DEPTH + 1) for text, _ in rows} == {depth > MAX_DEPTH}
    assert not any(problem for _, problem in rows)


def test_an_alias_in_its_own_anchor_is_nested_too_deep() -> None:
    ((text, _),) = yaml_rows(b"a: &a [*a]")
    assert is_too_deep(text)


def test_yaml_in_another_encoding_is_told() -> None:
    ((_, problem),) = yaml_rows("a: ä".encode("latin-1"))
    assert "UTF-8" in problem


# ---------------------------------------------------------------------------------------------------------------------
# the vendor's package


@pytest.mark.oracle
def test_what_the_vendor_s_classes_write_is_valid_and_they_read_what_we_write(tmp_path: Path) -> None:
    types = pytest.importorskip("google.cloud.ces_v1beta.types", reason="google-cloud-ces is not installed")
    theirs = [types.Evaluation.from_json(json.dumps(evaluation(name, CALL, ANSWER))) for name in ("a", "b")]
    written = {f"evaluations/{i}.json": json.loads(types.Evaluation.to_json(e)) for i, e in enumerate(theirs)}
    report = validate_eval_set(as_zip(written, tmp_path))
    assert (report.format, report.ok, report.row_count) == ("ces-evaluation", True, 2), report.to_text()
    rows = convert_eval_set(as_folder(written, tmp_path), to="databricks").data
    made = convert_eval_set(rows, to="ces-evaluation").data
    for found, given in zip(made, theirs, strict=True):
        again = types.Evaluation.from_json(json.dumps(found))
        assert types.Evaluation.to_dict(again)["golden"] == types.Evaluation.to_dict(given)["golden"]
