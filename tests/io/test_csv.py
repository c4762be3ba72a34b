"""CSV files as spreadsheets write them, in countries that separate columns otherwise too."""

from pathlib import Path

import pytest

from agent_eval_schema import EvalSetError, validate_eval_set
from agent_eval_schema.cells.cells import native_rows
from agent_eval_schema.cli import main
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.io.csv import csv_above, csv_columns

ROWS = [{"request": "q;1", "response": "a"}, {"request": "q2", "response": None}]
TEXTS = {
    "semicolons": 'request;response\n"q;1";a\nq2;\n',
    "named": 'sep=;\nrequest;response\n"q;1";a\nq2;\n',
    "named, Windows": '\ufeffsep=;\r\nrequest;response\r\n"q;1";a\r\nq2;\r\n',
    "named in quotes": '"sep=;"\n\nrequest;response\n"q;1";a\nq2;\n',
    "named tabs": "sep=\t\nrequest\tresponse\nq;1\ta\nq2\t\n",
}


@pytest.mark.parametrize("case", TEXTS)
def test_the_separator_is_the_one_that_the_file_names_or_uses(case: str, tmp_path: Path) -> None:
    (path := tmp_path / "rows.csv").write_bytes(TEXTS[case].encode())
    rows = [row for batch in open_source(path).batches() for row in native_rows(batch)]
    assert [{name: row.get(name) for name in ("request", "response")} for row in rows] == ROWS


def test_a_header_with_a_quoted_comma_may_have_semicolons(tmp_path: Path) -> None:
    (path := tmp_path / "rows.csv").write_text('request;"response, final";response\nq;b;a\n')
    report = validate_eval_set(path)
    assert report.counts == {"AE103": 1}
    assert report.issues["column"].tolist() == ["response, final"]


def test_a_fixed_copy_keeps_the_line_that_names_the_separator(tmp_path: Path) -> None:
    text = "sep=|\nrequest|response|tags\nq|a|\"{'team': 'x'}\"\n"
    (path := tmp_path / "rows.csv").write_text(text)
    main(["validate", str(path), "--fix", str(tmp_path / "fixed.csv")])
    assert (tmp_path / "fixed.csv").read_text() == text.replace("'", '""').replace(": ", ":")


def test_a_line_that_is_shorter_than_the_header_has_absent_cells(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("request,expected_response,request_id\nHi,Hello,a\nHo,x\nHu\n")
    report = validate_eval_set(path)
    assert (report.valid_count, report.counts) == (3, {"AE169": 2})
    found = [(row["request_id"], row["expected_response"]) for row in report.iter_rows()]
    assert found == [("a", "Hello"), (None, "x"), (None, None)]
    (issue, _) = (issue for issue in report.iter_issues() if issue.code == "AE169")
    assert (issue.row, issue.message) == (1, "line 3 has 2 fields, the header has 3")


def test_a_fix_of_a_short_line_writes_its_fields(tmp_path: Path) -> None:
    path, out = tmp_path / "d.csv", tmp_path / "out.csv"
    path.write_text("request,expected_facts,request_id\nHi,16 weeks\nHo,,b\n")
    assert main(["validate", str(path), "--fix", str(out)]) == 0
    assert out.read_text() == 'request,expected_facts,request_id\nHi,"[""16 weeks""]",\nHo,,b\n'


TITLED = "Nr.{0}Kundenfrage{0}Musterantwort\n1{0}Wie geht das?{0}So\n2{0}Wo ist es?{0}{0}\n"


@pytest.mark.parametrize("comma", [",", ";", "\t", "|"])
@pytest.mark.parametrize(
    "title", ["Test cases\n", "Test cases{0}{0}\n{0}{0}\n", "\nTests\n\n", "sep={0}\nTest cases\n"]
)
def test_a_title_above_the_header_is_no_header(tmp_path: Path, title: str, comma: str) -> None:
    text = (title + TITLED.replace("{0}{0}\n", "{0}TODO\n")).replace("{0}", comma)
    (tmp_path / "t.csv").write_text(text)
    report = validate_eval_set(tmp_path / "t.csv", columns="auto")
    assert (report.ok, report.row_count) == (True, 2)
    assert [i.message for i in report.iter_issues() if i.code == "AE181"] == ["1 line above the header is no row"]
    line = text.count("\n")
    assert f"t.csv:{line}" in report.to_text()


def test_a_fixed_copy_keeps_the_title(tmp_path: Path) -> None:
    text = "Test cases||\n\nrequest|response|tags\nq|a|\"{'team': 'x'}\"\n"
    (path := tmp_path / "rows.csv").write_text(text)
    main(["validate", str(path), "--fix", str(tmp_path / "fixed.csv")])
    assert (tmp_path / "fixed.csv").read_text() == text.replace("'", '""').replace(": ", ":")


@pytest.mark.parametrize(
    "text", ["prompt\na,b\nc,d\n", "prompt\nHello, you\nHi, we\n", "The prompt\nHello, you\nHi, we\n", "a b\n"]
)
def test_text_with_commas_below_one_name_is_no_header(tmp_path: Path, text: str) -> None:
    (path := tmp_path / "t.csv").write_text(text)
    assert csv_above(str(path)) == 0
    assert csv_columns(str(path)) == text.strip().split("\n")[:1]


def test_a_header_that_cannot_be_read_is_reported_with_its_line(tmp_path: Path) -> None:
    (path := tmp_path / "t.csv").write_text('request,"resp"onse\na,b\n')
    with pytest.raises(EvalSetError, match=r"""t\.csv: line 1: the header cannot be read: ',' expected after '"'$"""):
        validate_eval_set(path)
