"""The forms in which private data is written: each is found, wherever in a logged row it is."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

pytest.importorskip("duckdb")

from agent_eval_schema import EvalSetError, eval_set_from_inference_table
from agent_eval_schema.cli import main
from agent_eval_schema.inference_tables.finish import redact
from agent_eval_schema.inference_tables.finish.redact import NATIONAL_IDS, Redactor, Search
from tests.conftest import ROOT
from tests.helpers.logged_calls import Row, chat, feedback, logged, retrieval, table, trace

GAPS = [
    "",
    " ",
    "-",
    ".",
    "  ",
    "\n",
    "\t",
    "\u2011",
    "\u2010",
    "\u2013",
    "\u00a0",
    "\u202f",
    "\u2009",
    "\u3000",
    "\u200b",
]
"""What may be between the groups of a number."""

AROUND = [
    *(("", ""), ("It is ", "."), ("key=", "&next=1"), ("https://example.com/?q=", "#top"), ("(", ")"), ('"', '"')),
    *(
        ("电话", "谢谢"),
        ("番号は", "です"),
        ("<b>", "</b>"),
        ("a\n", "\nb"),
        ("a\\n", "\\nb"),
        ("[", "](x)"),
        ("№", ","),
    ),
]
"""What may be before and after a form, without a blank between them."""

GROUPS = {
    "card": [["4111", "1111", "1111", "1111"], ["3782", "822463", "10005"], ["5500", "0000", "0000", "0004"]],
    "phone": [["+44", "20", "7946", "0958"], ["0049", "30", "123456"], ["+1", "212", "555", "0147"]],
}

SECRETS = [
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbmEifQ.c2lnbmF0dXJlLW9mLWl0",
    "sk-" + "a1B2" * 8,
    "ghp_" + "a1B2" * 9,
    "AKIA" + "A1B2" * 4,
    "dapi" + "0a1b" * 8,
    "hf_" + "a1B2" * 8,
]

FORMS: list[tuple[str, str, str, str]] = [
    *((kind, gap.join(groups), "It is ", ".") for kind, all_ in GROUPS.items() for groups in all_ for gap in GAPS),
    *((kind, all_[0][0] + "".join(all_[0][1:]), *around) for kind, all_ in GROUPS.items() for around in AROUND),
    *((kind, " ".join(all_[0]), *around) for kind, all_ in GROUPS.items() for around in AROUND),
    *(
        ("iban", text, *around)
        for text in ("DE89 3704 0044 0532 0130 00", "GB29NWBK60161331926819")
        for around in AROUND
    ),
    *(("email", "ana.b+c@mail.example.co.uk", *around) for around in AROUND),
    *(
        ("email", text, "an ", ", ja")
        for text in ("o'brien@example.com", "jürgen@übel.de", "ana＠example.com", "a@例え.jp")
    ),
    *(("email", text, "?to=", "&x=%20") for text in ("ana%40example.com", "ana%40mail.example.org")),
    *(
        ("email", text, "an ", ";")
        for text in ("ana&#64;example.com", "ana\\u0040example.com", "ana&commat;example.com")
    ),
    ("email", "ana@example.com", "**", "_ and more"),
    *((kind, "".join(all_[0]), sign, sign) for kind, all_ in GROUPS.items() for sign in ("_", "__", "*", "~~", "`")),
    *((kind, " ".join(all_[0]), sign, sign) for kind, all_ in GROUPS.items() for sign in ("_", "__", "*", "~~", "`")),
    *((kind, "".join(all_[0]), "https://example.com/of/", "/profile") for kind, all_ in GROUPS.items()),
    ("iban", "DE89 3704 0044 0532 0130 00", "_", "_"),
    ("iban", "DE89.3704.0044.0532.0130.00", "to ", " now"),
    ("email", "ana@exam\u00adple.com", "to ", ","),
    ("email", "ana\u200b@example.com", "to ", ","),
    ("email", "ana%2540example.com", "?to=", "&x=1"),
    *(("secret", text, *around) for text in SECRETS for around in (("key=", "&x=1"), ("Use ", "."), ("`", "`"))),
    ("secret", "abcdef.GHIJKL~0123456789", "Authorization: Bearer ", "\n"),
    ("card", "4111 1111 1111 1111", "", " 123"),  # its code
    ("card", "4111 1111 1111 1111", "", " 12/26 123"),
    ("card", "4111-1111-1111-1111", "", "-123"),
    ("card", "4111 1111 1111 1111", "2025 ", ""),
    ("card", "4111 1111 1111 1111", "2025-11-03 ", ""),
    ("card", "4111111111111111", ";", "=26121010000"),  # a track of the stripe
    ("card", "4111%201111%201111%201111", "?pan=", "&x=1"),
    ("card", "4111+1111+1111+1111", "?a=%20&pan=", "&x=1"),
    ("card", "４１１１ １１１１ １１１１ １１１１", "", ""),
    ("card", "٤١١١١١١١١١١١١١١١", "", ""),
    ("phone", "%2B44%2020%207946%200958", "?tel=", "&x=1"),
    ("phone", "%2B44+20+7946+0958", "?tel=", "&x=1"),
    ("phone", "&#43;44&nbsp;20&nbsp;7946&nbsp;0958", "", ""),
    ("phone", "+44 (0)20 7946 0958", "tel:", ""),
    ("phone", "(212) 555-0147", "tel:", ""),
    ("phone", "(+44) 20 7946 0958", "tel: ", "."),
    ("phone", "(+44) 20 7946 0958", "(office: ", ")"),
    ("phone", "1-800-555-0199", "call ", ""),
    ("phone", "+44 20 7946 0958", "", "\n2025 2026"),
]


@pytest.mark.parametrize(("kind", "text", "before", "after"), FORMS)
def test_each_form_is_replaced_as_a_whole(kind: str, text: str, before: str, after: str) -> None:
    for libraries in ((), redact.libraries_at_hand()):
        redactor = Redactor("default", Search((), libraries))
        assert redactor.cell(before + text + after) == f"{before}[{kind.upper()}]{after}"
        cell = redactor.cell(json.dumps({"a": [before + text + after]}))
        assert json.loads(cell) == {"a": [f"{before}[{kind.upper()}]{after}"]}


@pytest.mark.parametrize(
    "text",
    [
        "logo@3x.png",
        "call foo@bar.baz() first",
        "git@github.com:org/repo",
        "order_4111111111111111_x",
        "eyJ",
    ],
)
def test_what_only_looks_private_stays(text: str) -> None:
    assert Redactor("default").cell(text) == text


@pytest.mark.parametrize(
    "number", ["4111111111111111", "4111111111111111.0", "-4111111111111111", "4.111111111111111e15"]
)
def test_a_card_that_is_a_number(number: str) -> None:
    redactor = Redactor("default")
    assert json.loads(redactor.cell(f'{{"a": [{number}, 1.5]}}')) == {"a": ["[CARD]", 1.5]}
    redactor._found.clear()
    assert redactor.cell("[4111111111111112.0, 4.5e15]") == "[4111111111111112.0, 4.5e15]"


NATIONAL = [
    ("DE", "030 1234567", "PHONE"),
    ("DE", "(030) 123 45 67", "PHONE"),
    ("DE", "36 574 261 809", "ID"),
    ("FR", "01 42 68 53 00", "PHONE"),
    ("GB", "020 7946 0958", "PHONE"),
    ("US", "2125550147", "PHONE"),
    ("US", "536-90-4399", "ID"),
    ("NL", "111222333", "ID"),
    ("IT", "RCCMNL83S18D969H", "ID"),
    ("ES", "54362315-K", "ID"),
    ("PL", "44051401359", "ID"),
    ("BR", "390.533.447-05", "ID"),
    ("IN", "2341 2341 2346", "ID"),
]


@pytest.mark.parametrize(("region", "text", "kind"), NATIONAL)
def test_national_forms_of_a_region(region: str, text: str, kind: str) -> None:
    pytest.importorskip("phonenumbers")
    pytest.importorskip("stdnum")
    for before, after in (("No. ", "."), ("key=", "&x=1"), ("号码", "谢谢")):
        redactor = Redactor("default", Search((region,), ("phonenumbers", "stdnum")))
        assert redactor.cell(before + text + after) == f"{before}[{kind}]{after}"


def test_each_module_of_a_region_exists_and_the_page_has_each_region() -> None:
    pytest.importorskip("stdnum")
    page = (ROOT / "docs/how-to/production/redact.md").read_text()
    for region, names in NATIONAL_IDS.items():
        assert len(redact._id_checks(region)) == len(names.split())
        assert f"| {region} | " in page


# ---------------------------------------------------------------------------------------------------------------------
# in a build
def rows_with(i: int, text: str) -> list[Row]:
    """Logged calls with the text in every string: of rows that are kept and of such that are not."""
    own = f"{i} {text}"
    tool = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": json.dumps({"q": text})}}
    message = {"role": "assistant", "content": own, "tool_calls": [tool]}
    known = trace(f"t{i}", own, own, retrieval("s1", (text, text)))
    known["info"]["client_request_id"] = f"other {text}"  # which an issue quotes
    request = {
        "messages": [{"role": "user", "content": own}],
        "custom_inputs": {"who": text, text: "x", "nested": {"deep": [text]}},
        "context": {"conversation_id": text, "user_id": text},
    }
    more = {"served_entity_id": f"agent {text}", "requester": text}
    return [
        logged(f"a{i} {text}", request, {"choices": [{"message": message}], "extra": {"note": text}}, i, **more),
        chat(f"t{i}", own, own, i, trace=known, **more),
        {**feedback(f"t{i}", "negative", edit=f"Better: {text}", source=text), "databricks_request_id": f"fb{i}"},
        logged(f"m{i} {text}", f'{{"messages": "{text}', text, i, **more),
        logged(f"f{i}", {"messages": [{"role": "user", "content": own}]}, {"error": text}, i, status_code=500, **more),
        logged(f"s{i} {text}", {"messages": [{"role": "user", "content": own}]}, "{}", i, **more),
    ]


def test_no_form_is_in_any_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = [text for _, text, _, _ in FORMS]
    assert len(texts) > 200
    rows = [row for i, (_, text, before, after) in enumerate(FORMS) for row in rows_with(i, before + text + after)]
    source, out, excluded, page = (str(tmp_path / n) for n in ("t.parquet", "set.jsonl", "excluded.jsonl", "page.html"))
    pq.write_table(table(rows), source)
    options = ["--redact", "default", "--stratify", "served_entity", "--sample", "1000", "--excluded", excluded]
    outputs = {}
    for form in ("json", "text"):
        assert main(["from-inference-table", source, out, *options, "--html", page, "--output", form]) == 0
        outputs |= dict(zip((f"stdout {form}", f"stderr {form}"), capsys.readouterr(), strict=True))
    paths = (out, excluded, page, f"{out}.manifest.json")
    outputs |= {path: Path(path).read_text("utf-8") for path in paths}
    summary = json.loads(outputs["stdout json"])
    assert summary["rows"] == 2 * len(texts)
    assert {"malformed", "status", "no_response", "feedback"} <= set(summary["excluded"])
    for name, output in outputs.items():
        found = [text for text in texts if any(form in output for form in written(text))]
        assert (name, found) == (name, [])


def written(text: str) -> list[str]:
    """A text as it may be in a file: as it is, in JSON, and in HTML."""
    ascii_, other = (json.dumps(text, ensure_ascii=a)[1:-1] for a in (True, False))
    return [text, ascii_, other, ascii_.replace("\\", "\\\\"), text.replace("'", "&#39;").replace("+", "&#43;")]


def test_copies_count_once_and_the_summary_names_what_searched() -> None:
    build = eval_set_from_inference_table(table(rows_with(1, "ana@example.com")[1:2]), redact="default")
    assert build.summary.redacted == {"email": 1}  # in a dozen places of its row
    by = {"phonenumbers": "phonenumbers", "stdnum": "python-stdnum"}
    assert build.summary.redacted_by == ("patterns", *(by[name] for name in redact.libraries_at_hand()))
    assert f"1 e-mail (by {', '.join(build.summary.redacted_by)})" in build.to_text(width=200)
    assert "[EMAIL]" in build.to_html()
    assert build.report.counts["AE708"] == 1


def test_without_the_libraries_the_patterns_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("phonenumbers", "stdnum"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(redact, "find_spec", lambda _: None)
    calls = table([chat("a", "call +44 20 7946 0958")])
    build = eval_set_from_inference_table(calls, redact="default")
    assert (build.summary.redacted, build.summary.redacted_by) == ({"phone": 1}, ("patterns",))
    with pytest.raises(EvalSetError, match=r"agent-eval-schema\[redact\]"):
        eval_set_from_inference_table(calls, redact="default", redact_region="DE")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"redact": "default", "redact_region": "XX"}, "expected the code of a country such as DE or US, got 'XX'"),
        ({"redact_region": ["DE"]}, "redact_region: needs redact='default'"),
    ],
)
def test_regions_that_cannot_be_searched(options: dict[str, Any], message: str) -> None:
    pytest.importorskip("phonenumbers")
    pytest.importorskip("stdnum")
    with pytest.raises(EvalSetError, match=message):
        eval_set_from_inference_table(table([chat("a")]), **options)


def test_a_region_in_a_build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("phonenumbers")
    pytest.importorskip("stdnum")
    source, out = str(tmp_path / "t.parquet"), str(tmp_path / "set.jsonl")
    pq.write_table(table([chat("a", "Call 030 1234567 or 01 42 68 53 00, my number is 36574261809.")]), source)
    options = ["--redact", "default", "--redact-region", "de", "--redact-region", "FR"]
    assert main(["from-inference-table", source, out, *options]) == 0
    assert "2 phone numbers" in capsys.readouterr().out
    assert "Call [PHONE] or [PHONE], my number is [ID]." in Path(out).read_text()
    manifest = json.loads(Path(f"{out}.manifest.json").read_text())
    assert manifest["summary"]["redacted_by"] == ["patterns", "phonenumbers", "python-stdnum"]
    assert "--redact-region de --redact-region FR" in manifest["command"]
