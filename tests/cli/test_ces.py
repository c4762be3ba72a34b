"""`ces update` as a user types it: what is shown, what is sent, and the exit code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema import EvalSetError, ces
from agent_eval_schema.formats.ces.update import plan_update, review_update
from agent_eval_schema.render.fixes import update_text
from tests.cli.test_main import run

SHOWN = """\
projects/acme-helpdesk/locations/eu/apps/hr-desk/evaluations/leave-balance
mask  golden.turns,displayName,evaluationMetricsThresholdOverride.goldenEvaluationMetricsThresholds.\
toolMatchingSettings

  golden.turns[0].steps[4].expectation.agentResponse.chunks[0].text
    - You have 12 days left this year.
    + You have 12 days of leave left this year.

  displayName
    - Leave balance
    + Leave balance, this year

  evaluationMetricsThresholdOverride.goldenEvaluationMetricsThresholds.toolMatchingSettings
    + {"extraToolCallBehavior":"ALLOW"}
"""
NAME = "projects/acme-helpdesk/locations/eu/apps/hr-desk/evaluations/leave-balance"


@pytest.fixture
def files(samples: Path) -> tuple[str, str]:
    return str(samples / "evaluation_edited.json"), str(samples / "evaluation.json")


def saved(folder: Path, evaluation: Any) -> str:
    path = folder / "evaluation.json"
    path.write_text(json.dumps(evaluation))
    return str(path)


def test_a_dry_run_shows_the_mask_and_what_changes(
    capsys: pytest.CaptureFixture[str], files: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    code, out, err = run(capsys, "ces", "update", files[0], "--against", files[1], "--dry-run")
    assert (code, err) == (0, "request not sent (--dry-run)\n")
    assert out == SHOWN


def test_the_request_as_json_is_that_of_the_library(capsys: pytest.CaptureFixture[str], files: tuple[str, str]) -> None:
    _, out, _ = run(capsys, "ces", "update", files[0], "--against", files[1], "--dry-run", "--output", "json")
    new, [stored, _] = ces.read_evaluation(Path(files[0])), ces.read_evaluations(Path(files[1]))
    assert json.loads(out) == ces.update_request(new, stored)


def test_without_the_stored_one_all_that_is_written_is_shown(
    capsys: pytest.CaptureFixture[str], files: tuple[str, str]
) -> None:
    _, out, _ = run(capsys, "ces", "update", files[0], "--mask", "displayName", "--dry-run", "-q")
    assert "not compared with the stored evaluation" in out
    assert "+ Leave balance, this year" in out
    assert "golden" not in out


def test_nothing_to_update(capsys: pytest.CaptureFixture[str], files: tuple[str, str]) -> None:
    code, out, err = run(capsys, "ces", "update", files[0], "--against", files[0])
    assert (code, out) == (0, "")
    assert "no changes" in err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "without a mask every field is overwritten"),
        (["--mask", "display_name"], 'did you mean "displayName"?'),
        (["--mask", "displayName", "--endpoint", "http://ces.example.com"], "not encrypted"),
        (["--mask", "displayName"], "no access token: set CES_ACCESS_TOKEN"),
        (["--against", "no-such.json"], "no-such.json"),
    ],
)
def test_what_cannot_run_exits_2_with_one_line(
    capsys: pytest.CaptureFixture[str],
    files: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    words: str,
) -> None:
    if "--mask" in options:
        pytest.importorskip("mcp")
    monkeypatch.delenv("CES_ACCESS_TOKEN", raising=False)
    code, _, err = run(capsys, "ces", "update", files[0], *options)
    assert (code, err.count("\n")) == (2, 1)
    assert words in err


def test_an_evaluation_that_is_not_stored(
    capsys: pytest.CaptureFixture[str], files: tuple[str, str], tmp_path: Path
) -> None:
    new = [{"name": f"{NAME}-{i}", "displayName": "A"} for i in range(2)]
    code, _, err = run(capsys, "ces", "update", saved(tmp_path, new), "--against", files[1])
    assert code == 2
    assert f"no evaluation has the `name` of evaluation 1: the text '{NAME}-0'" in err


def test_a_golden_csv_is_to_be_converted_first(capsys: pytest.CaptureFixture[str], samples: Path) -> None:
    code, _, err = run(capsys, "ces", "update", str(samples / "golden.csv"), "--mask", "displayName")
    assert code == 2
    assert err.endswith(
        "golden.csv: expected Evaluation JSON: `convert IN OUT --to ces-evaluation` makes it of a golden CSV\n"
    )


def test_an_element_that_is_no_evaluation_is_told_with_its_number(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "list.json"
    path.write_text(json.dumps([{"name": NAME, "displayName": "a"}, "b"]))
    code, _, err = run(capsys, "ces", "update", str(path), "--mask", "displayName")
    assert code == 2
    assert err.endswith("list.json: evaluation 2: expected an object, got the text 'b'\n")


def test_what_the_service_would_refuse_is_not_sent(
    capsys: pytest.CaptureFixture[str], files: tuple[str, str], tmp_path: Path
) -> None:
    new = ces.read_evaluation(Path(files[0]))
    new["golden"]["turns"][0]["steps"][0] = {"userInput": {"text": "a", "event": {"event": "b"}}}
    code, out, err = run(capsys, "ces", "update", saved(tmp_path, new), "--mask", "golden.turns")
    assert (code, err) == (1, "request not sent: the service would reject it\n")
    assert "golden.turns[0].steps[0].userInput" in out
    code, *_ = run(capsys, "ces", "update", saved(tmp_path, new), "--mask", "displayName", "--dry-run")
    assert code == 0  # what the mask does not name is not written


def test_a_threshold_in_percent_is_not_sent(
    capsys: pytest.CaptureFixture[str], files: tuple[str, str], tmp_path: Path
) -> None:
    new = ces.read_evaluation(Path(files[0]))
    level = {"turnLevelMetricsThresholds": {"overallToolInvocationCorrectnessThreshold": 95}}
    new["evaluationMetricsThresholdOverride"] = {"goldenEvaluationMetricsThresholds": level}
    code, out, err = run(capsys, "ces", "update", saved(tmp_path, new), "--against", files[1])
    assert (code, err) == (1, "request not sent: the service would reject it\n")
    assert "AE149" in out
    assert "expected a number from 0 to 1, got the number 95" in out


@pytest.mark.parametrize("seconds", ["0", "-1", "inf", "soon"])
def test_a_timeout_is_a_number_of_seconds(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(capsys, "ces", "update", "x.json", "--timeout", seconds)
    assert "expected a positive number of seconds" in capsys.readouterr().err


def test_an_update_is_sent(
    capsys: pytest.CaptureFixture[str], files: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mcp.server.mcpserver", reason="the server of the tests is that of mcp 2")
    from tests.helpers.ces_server import Store, Wire, mcp_server, serving

    stored = ces.read_evaluations(Path(files[1]))[0]
    store, answers = Store(stored), {"structured": True}
    app = mcp_server(store, answers).streamable_http_app(json_response=True, stateless_http=True)
    monkeypatch.setenv("CES_ACCESS_TOKEN", "s3cr3t")
    with serving(Wire(app, answers)) as address:
        given = ["ces", "update", files[0], "--against", files[1], "--endpoint", f"{address}/mcp"]
        code, out, err = run(capsys, *given)
    assert (code, err) == (0, f"updated {NAME}\n")
    assert "s3cr3t" not in out + err
    assert {k: v for k, v in store.evaluation.items() if k != "etag"} == ces.read_evaluation(Path(files[0]))


@pytest.fixture
def service(files: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, str]]:
    """A store with the first sample, and the address of a service that has it."""
    pytest.importorskip("mcp.server.mcpserver", reason="the server of the tests is that of mcp 2")
    from agent_eval_schema.integrations.ces import client
    from tests.helpers.ces_server import Store, Wire, serving

    monkeypatch.setenv("CES_ACCESS_TOKEN", "s3cr3t")
    monkeypatch.setattr(client, "POLLING", 0.01)
    store = Store(ces.read_evaluations(Path(files[1]))[0])
    store.evaluation["name"] = "projects/p1/locations/us/apps/a1/evaluations/e"
    with serving(Wire(None, {}, store)) as address:
        yield store, address


APP = "projects/p1/locations/us/apps/a1"


def test_what_is_stored_is_written(
    service: tuple[Any, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, address = service
    path = tmp_path / "stored.json"
    code, out, err = run(capsys, "ces", "get", f"{APP}/evaluations/e", str(path), "--endpoint", address)
    assert (code, out, err) == (0, "", f"1 written to {path}\n")
    assert ces.read_evaluation(path) == store.evaluation
    code, out, _ = run(capsys, "ces", "get", f"{APP}/evaluations/e", "--endpoint", address)
    assert json.loads(out) == store.evaluation
    code, out, _ = run(capsys, "ces", "list", APP, "--endpoint", address)
    assert json.loads(out) == [store.evaluation]
    code, out, err = run(capsys, "ces", "list", APP, str(path), "--endpoint", address)
    assert (code, ces.read_evaluations(path)) == (0, [store.evaluation])
    missing = f"{APP}/evaluations/gone"
    code, _, err = run(capsys, "ces", "get", missing, str(tmp_path / "none.json"), "--endpoint", address)
    assert code == 2
    assert "answered 404: 'NOT_FOUND" in err
    assert not (tmp_path / "none.json").exists()


def test_a_golden_csv_is_imported(
    service: tuple[Any, str], samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, address = service
    given = ["ces", "import", str(samples / "golden.csv"), APP, "--conflict", "SKIP", "--endpoint", address]
    code, out, err = run(capsys, *given)
    assert (code, err) == (0, "3 imported, 0 failed\n")
    assert out == "".join(f"{APP}/evaluations/i{i}\n" for i in range(3))
    assert store.imports[-1]["importOptions"] == {"conflictResolutionStrategy": "SKIP"}
    path = tmp_path / "golden.csv"
    path.write_text((samples / "golden.csv").read_text().replace("Desk booking", "refuse \x07"))
    code, out, err = run(capsys, "ces", "import", str(path), APP, "--endpoint", address)
    assert (code, err) == (1, "2 imported, 1 failed\n")
    assert out.splitlines()[-1] == "refuse \\x07: refused"


def test_a_golden_csv_with_an_error_is_not_sent(
    service: tuple[Any, str], samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, address = service
    given = ["ces", "import", str(samples / "golden_broken.csv"), APP, "--endpoint", address]
    code, out, err = run(capsys, *given)
    assert (code, err) == (1, "request not sent: the service would reject it\n")
    assert "AE123" in out
    assert store.imports == []


def test_hostile_text_is_shown_and_not_sent_to_the_terminal(files: tuple[str, str]) -> None:
    old = ces.read_evaluation(Path(files[0]))
    new = old | {"displayName": "a\x1b[2Jb", "description": "[bold]c[/]"}
    text = update_text(review_update(plan_update(new, old), old), color=False, width=100)
    assert "\x1b" not in text
    assert "\\x1b[2J" in text
    assert "[bold]c[/]" in text


def test_a_full_replace_shows_what_is_lost(files: tuple[str, str]) -> None:
    old = ces.read_evaluation(Path(files[0]))
    new = {k: v for k, v in old.items() if k != "description"}
    text = update_text(review_update(plan_update(new, old, "*"), old), color=False, width=100)
    assert "mask  *" in text
    assert "description\n    - Looks up the balance before it answers" in text


def test_the_public_names_are_loaded_on_use() -> None:
    assert ces.update_request.__module__.endswith("formats.ces.update")
    with pytest.raises(EvalSetError, match="without a mask"):
        ces.update_request({"name": NAME})
    assert ces.import_request("gs://a/b.csv") == {"gcsUri": "gs://a/b.csv"}


def test_a_missing_name_is_named(capsys: pytest.CaptureFixture[str], files: tuple[str, str], tmp_path: Path) -> None:
    new = [{"name": NAME, "displayName": "A"}, {"displayName": "Refund"}]
    code, _, err = run(capsys, "ces", "update", saved(tmp_path, new), "--against", files[1])
    assert code == 2
    assert (
        f"evaluation 2 (the text 'Refund'): `name` is missing: it identifies the stored evaluation in {files[1]}" in err
    )
    assert "null" not in err


# ---------------------------------------------------------------------------------------------------------------------
# from a golden CSV to the service
def test_a_golden_csv_updates_what_is_stored_and_imports_what_is_new(
    service: tuple[Any, str], samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The whole way of docs/how-to/ces/update-an-evaluation.md, without editing a file by hand."""
    store, address = service
    before, override = dict(store.evaluation), store.evaluation["evaluationMetricsThresholdOverride"]
    new, stored = str(tmp_path / "new.json"), str(tmp_path / "stored.json")
    assert run(capsys, "ces", "list", APP, stored, "--endpoint", address)[0] == 0
    converted = ["convert", str(samples / "golden.csv"), new, "--to", "ces-evaluation", "--fail-on", "never"]
    assert run(capsys, *converted)[0] == 0
    given = ["ces", "update", new, "--against", stored, "--app", APP]
    code, out, err = run(capsys, *given, "--dry-run")
    assert (code, err) == (0, "request not sent (--dry-run)\n")
    assert f"{APP}/evaluations/e\nmask  golden.turns,description\n" in out
    assert out.endswith(f"to import into {APP}: Desk booking, Badge photo\n")
    assert store.evaluation == before

    code, _, err = run(capsys, *given, "--rest", "--endpoint", address)
    assert (code, err) == (0, f"updated {APP}/evaluations/e\n2 imported, 0 failed\n")
    assert store.evaluation["evaluationMetricsThresholdOverride"] == override  # of which a golden CSV has nothing
    steps = [step for turn in store.evaluation["golden"]["turns"] for step in turn["steps"]]
    tools = [step["expectation"]["toolCall"]["tool"] for step in steps if "toolCall" in step.get("expectation", {})]
    assert tools == [f"{APP}/tools/get_leave_balance"]
    assert [one["displayName"] for one in store.imported] == ["Desk booking", "Badge photo"]
    assert store.imports[-1]["importOptions"] == {"conflictResolutionStrategy": "SKIP"}

    run(capsys, "ces", "get", f"{APP}/evaluations/e", stored, "--endpoint", address)
    (first, *_) = ces.read_evaluations(Path(new))
    Path(new).write_text(json.dumps([first]))
    assert run(capsys, *given, "--dry-run") == (0, "", "no changes: the stored evaluation is up to date\n")


@pytest.mark.parametrize(
    ("wanted", "stored", "message"),
    [
        ({"displayName": "A"}, ["A", "A"], "is the display name of several stored evaluations"),
        ({"name": "projects/p/locations/us/apps/x/evaluations/e"}, ["A"], f"is no evaluation of the app {APP}"),
    ],
)
def test_an_evaluation_that_is_not_found_in_an_app_without_doubt(
    wanted: Any, stored: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    turns = {"golden": {"turns": [{"steps": [{"userInput": {"text": "Hi"}}]}]}}
    places = [tmp_path / "new.json", tmp_path / "stored.json"]
    places[0].write_text(json.dumps({**turns, **wanted}))
    found = [{"name": f"{APP}/evaluations/{i}", "displayName": name, **turns} for i, name in enumerate(stored)]
    places[1].write_text(json.dumps(found))
    code, _, err = run(capsys, "ces", "update", str(places[0]), "--against", str(places[1]), "--app", APP, "--dry-run")
    assert code == 2
    assert message in err


def test_an_app_requires_its_stored_evaluations(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "ces", "update", files[0], "--mask", "displayName", "--app", APP, "--dry-run")
    assert code == 2
    assert "`ces list APP` writes them" in err


def test_two_evaluations_are_not_one_that_is_stored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    turns = {"golden": {"turns": [{"steps": [{"userInput": {"text": "Hi"}}]}]}}
    places = [tmp_path / "new.json", tmp_path / "stored.json"]
    places[0].write_text(json.dumps([{"name": "e", "displayName": "B", **turns}, {"displayName": "A", **turns}]))
    places[1].write_text(json.dumps([{"name": f"{APP}/evaluations/e", "displayName": "A", **turns}]))
    code, _, err = run(capsys, "ces", "update", str(places[0]), "--against", str(places[1]), "--app", APP, "--dry-run")
    assert (code, "rename one of them" in err) == (2, True)


def test_a_new_evaluation_that_no_golden_csv_holds_is_not_sent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = {"displayName": "New", "scenario": {"task": "Ask.", "rubrics": ["Answers."], "scenarioExpectations": []}}
    places = [tmp_path / "new.json", tmp_path / "stored.json"]
    places[0].write_text(json.dumps(scenario))
    places[1].write_text("[]")
    code, out, err = run(capsys, "ces", "update", str(places[0]), "--against", str(places[1]), "--app", APP)
    assert (code, err) == (1, "request not sent: the service would reject it\n")
    assert "scenario" in out
