"""Every result shows itself, saves its report and writes its data; whatever is in the cells stays text."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from agent_eval_schema import (
    Conversion,
    EvalResult,
    EvalSetError,
    EvalTask,
    ValuesAsTextWarning,
    convert_eval_set,
    diff_eval_sets,
    profile_eval_set,
    validate_eval_set,
)
from agent_eval_schema.conversion.conversion import find_writer
from agent_eval_schema.conversion.convert import convert_file
from agent_eval_schema.evaluation.mlflow_run import MlflowEvaluation
from agent_eval_schema.evaluation.result import result_of_evaluation
from agent_eval_schema.formats.names import TARGETS
from tests.conftest import SAMPLES
from tests.render.report.test_html import ALLOWED, HOSTILE, Tags, hostile_rows


def evaluated(**parts: Any) -> EvalResult:
    """The result of an evaluation by MLflow."""
    return result_of_evaluation(MlflowEvaluation(**parts))


def scored(texts: list[str]) -> EvalResult:
    """A result as an evaluation gives it, with these texts wherever a text can be."""
    rows = len(texts)
    ids = {"request_id": texts}
    scores = {text: [1.0 / 3 if i == j else None for i in range(rows)] for j, text in enumerate(texts)}
    reasons = {text: [f"why {text}"] * rows for text in texts}
    index = pd.Index(texts)
    return evaluated(
        scores=pd.DataFrame({**ids, **scores, "judge": [[1, "yes"]] * rows}, index=index, dtype="object"),
        reasons=pd.DataFrame({**ids, **reasons, "judge": texts}, index=index, dtype="object"),
        metrics={f"{text}/mean": 0.5 for text in texts} | {"judge/mean": float("nan")},
        run_id=texts[0],
        report=validate_eval_set([{"request": "a"}] * rows),
        result=None,
        without_judge={texts[0]: 2},
        failures={0: texts[0]},
    )


TEXTS = [text.encode("utf-8", "replace").decode() for text in HOSTILE]


def valid_row(text: str) -> dict[str, Any]:
    """A row that loses something in most formats."""
    return {"request_id": text, "request": text, "response": text, "custom_expected": {text: text}, text: {text: 1}}


def hostile_question(text: str, i: int) -> dict[str, Any]:
    """One of two rows of a profile that ask the same, with the text wherever a profile shows one."""
    return {
        "request": f"what is {text}",
        "expected_response": f"{text} {i}",
        "guidelines": [text],
        "tags": {text: text, "kind": f"{text} {i}"},
        "expected_retrieved_context": [{"doc_uri": text}],
        "predicted_trajectory": [{"tool_name": text, "tool_input": {}}],
    }


RESULTS = {
    "Conversion": lambda: convert_eval_set([*map(valid_row, TEXTS), *hostile_rows()], "ragas", format="databricks"),
    "EvalResult of MLflow": lambda: scored(TEXTS),
    "Profile": lambda: profile_eval_set([hostile_question(text, i) for text in TEXTS for i in range(2)]),
}


@pytest.mark.parametrize("form", ["to_html", "_repr_html_"])
@pytest.mark.parametrize("kind", RESULTS)
def test_hostile_text_stays_text(kind: str, form: str) -> None:
    text = getattr(RESULTS[kind](), form)()
    tags = Tags(text)
    assert tags.open == []
    assert {t for t, _ in tags.seen} <= ALLOWED | {"ol", "polyline", "circle"}
    for _, attributes in tags.seen:
        assert not [n for n in attributes if n.startswith("on") or n in ("src", "action")]
        assert re.fullmatch(r"#[\w-]+", attributes.get("href") or "#x")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]", text)
    assert "window.pwned" in text


def test_a_conversion_reports_each_kind_of_loss_in_every_form(tmp_path: Path) -> None:
    made = convert_eval_set([*map(valid_row, "abc"), {"request": " "}, {"request": "d", "tags": {"x": "y"}}], "ragas")
    kinds = made.losses.groupby(made.losses["column"].fillna(""))
    assert len(kinds) > 3
    page, told = made.to_html(), json.loads(made.to_json())
    for column, of in kinds:
        rows = f"{of['row'].nunique():,} row{'s' if of['row'].nunique() > 1 else ''}"
        assert f"{column}  {rows}  {of['code'].iloc[0]} " in f"  {made}" if column else "AE814" in str(made)
        assert f'{column}</code> <span class="count">{rows}</span>' in page if column else "AE814" in page
    assert [loss["message"] for loss in told["losses"]] == made.losses["message"].tolist()
    assert (told["given"], told["converted"], told["lossless"]) == (made.given, made.converted, False)
    for name in ("report.html", "report.json", "report.txt"):
        made.save(tmp_path / name)
    assert (tmp_path / "report.html").read_text() == page
    assert (tmp_path / "report.txt").read_text() == str(made)
    assert repr(made).startswith("<Conversion: databricks → ragas: 4 of 5 ")


def test_of_many_losses_twenty_are_drawn_and_all_are_counted() -> None:
    rows = [{"request": "a", "response": "x", "request_id": f"q{i}"} for i in range(1234)]
    page = convert_eval_set(rows, "vertex").to_html()
    assert page.count('<td class="n" data-label="row">') == 20
    assert '<span class="count">1,234 rows</span>' in page
    assert "… and 1,214 more." in page


def can_hold(target: str, extension: str) -> bool:
    writer = find_writer(target)
    return writer.save is None or extension in writer.endings


@pytest.mark.parametrize(
    ("target", "extension"),
    [(target, e) for target in TARGETS for e in (".jsonl", ".parquet", ".csv") if can_hold(target, e)],
)
def test_a_conversion_writes_what_the_command_line_writes(target: str, extension: str, tmp_path: Path) -> None:
    source = SAMPLES / ("golden.csv" if target.startswith("ces") else "good.jsonl")
    here, there = tmp_path / f"a{extension}", tmp_path / f"b{extension}"
    made = convert_eval_set(source, target)  # type: ignore[arg-type]
    as_text = (".parquet", ".csv") if target in ("mlflow", "promptfoo", "inspect") else ()
    with pytest.warns(ValuesAsTextWarning) if extension in as_text else nullcontext():
        written = made.write(here)
    assert written == convert_file(str(source), str(there), target).converted > 0
    assert here.read_bytes() == there.read_bytes()


def test_a_conversion_without_rows_is_written_too(tmp_path: Path) -> None:
    made = convert_eval_set([{"request": ""}], "mlflow")
    assert isinstance(made, Conversion)
    assert made.write(tmp_path / "a.jsonl") == 0
    assert (tmp_path / "a.jsonl").read_bytes() == b""


def test_an_evaluation_is_written_and_saved(tmp_path: Path) -> None:
    found = scored(["a", "b"])
    for name in ("scores.parquet", "scores.csv", "scores.jsonl"):
        assert found.write(tmp_path / name) == 2
    table = pd.read_parquet(tmp_path / "scores.parquet")
    assert table["a/score"].tolist()[0] == pytest.approx(1 / 3)
    assert table["a/reason"].tolist() == ["why a", "why a"]
    for name in ("report.html", "report.json", "report.txt"):
        found.save(tmp_path / name)
    told = json.loads((tmp_path / "report.json").read_text())
    assert told["scored"] == {"failure": 2, "a": 1, "b": 1, "judge": 2}
    assert told["metrics"] == ["a", "b", "judge"]
    assert (told["run_id"], told["without_judge"]) == ("a", {"a": 2})
    assert {name: told["summary_metrics"][f"{name}/mean"] for name in "ab"} == {"a": 0.5, "b": 0.5}
    assert {n: v for n, v in told["rows"][1].items() if n.endswith(("/score", "/value"))} == {
        "a/score": None,
        "b/score": 1 / 3,
        "judge/score": 1.0,
        "judge/value": [1, "yes"],
    }
    page = (tmp_path / "report.html").read_text()
    assert "0.333" in page
    assert "why a" in page
    assert "1, yes" in page


def test_rows_of_an_evaluation_open_to_their_cells_the_worst_first() -> None:
    call = {"tool_name": "refund", "tool_input": {}}
    rows = [{"request": f"question {i}", "response": f"answer {i}", "predicted_trajectory": [call]} for i in range(5)]
    data = [{**row, "reference_trajectory": []} for row in rows]
    values = {"judge": ["yes", 0.5, None, "no", "yes"], "other": [1, True, None, 0.25, [1, 0]]}
    for show_values in (True, False):
        found = evaluated(
            scores=pd.DataFrame(values, dtype="object"),
            reasons=pd.DataFrame({name: ["because"] * 5 for name in values}),
            metrics={},
            run_id="r",
            report=validate_eval_set(data, show_values=show_values),
            result=None,
        )
        page = found.to_html()
        assert re.findall(r'<th scope="row" class="n">(\d)</th>', page) == ["3", "1", "4", "2", "0"]
        assert "because" in page
        assert ("answer 3" in page, 'aria-label="extra"' in page) == (show_values, show_values)
        assert ("answer 3" in found.to_json()) == show_values


def test_of_many_rows_the_page_has_the_first_and_the_json_all() -> None:
    found = scored(["a"])
    many = 600
    frames: dict[str, Any] = {n: pd.concat([getattr(found, n)] * many) for n in ("scores", "reasons")}
    long = evaluated(**frames, metrics={}, run_id="r", report=validate_eval_set([{"request": "a"}] * many), result=None)
    for shown, page in ((500, long.to_html()), (550, long.to_html(rows=550))):
        assert len(json.loads(page.partition('id="data">')[2].partition("</script>")[0])["rows"]) == shown
    assert "… and 100 more rows: to_html(rows=…) draws more." in long.to_html()
    with pytest.raises(EvalSetError, match="rows: expected a whole number of at least 1; got 0"):
        long.to_html(rows=0)
    assert long._repr_html_().count('<tr class="told"') == 3
    assert len(json.loads(long.to_json())["rows"]) == many


@pytest.mark.parametrize(
    "made",
    [
        lambda: validate_eval_set([{"request": "a", "response": "b"}]),
        lambda: diff_eval_sets([{"request": "a"}], [{"request": "b"}]),
        lambda: convert_eval_set([{"request": "a", "response": "b"}], "mlflow"),
        lambda: EvalTask([{"prompt": "a", "response": "b", "reference": "b"}], ["exact_match"]).evaluate(),
        lambda: scored(["a"]),
    ],
)
def test_all_results_have_the_same_forms(made: Any, tmp_path: Path) -> None:
    result = made()
    assert str(result) == result.to_text()
    assert result._repr_html_().startswith("<div")
    for extension, form in ((".html", result.to_html), (".json", result.to_json), (".txt", result.to_text)):
        result.save(tmp_path / f"report{extension}")
        assert (tmp_path / f"report{extension}").read_text(encoding="utf-8") == form()
    with pytest.raises(EvalSetError, match="save writes a report"):
        result.save(tmp_path / "report.docx")
