"""What is private is replaced and counted, and nothing else changes: JSON stays JSON, ids and times stay themselves."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("duckdb")

from agent_eval_schema import EvalSetError, eval_set_from_inference_table
from agent_eval_schema.inference_tables.finish import redact
from agent_eval_schema.inference_tables.finish.redact import MAX_NESTING, Redactor, find_hook, is_card_number
from tests.helpers.logged_calls import chat, chunk, feedback, logged, retrieval, table, trace


def redacted(text: str) -> tuple[str, dict[str, int]]:
    redactor = Redactor("default")
    [found] = redactor.column(pa.array([text])).to_pylist()
    return found, dict(redactor.counts(0) or ())


@pytest.mark.parametrize(
    ("text", "expected", "counts"),
    [
        ("write to ana@example.com.", "write to [EMAIL].", {"email": 1}),
        ("<Ana.B+c@mail.example.co.uk>", "<[EMAIL]>", {"email": 1}),
        ("jürgen@übel.de, x@y.org", "[EMAIL], [EMAIL]", {"email": 2}),
        ("+44 20 7946 0958", "[PHONE]", {"phone": 1}),
        ("call +4915112345678 now", "call [PHONE] now", {"phone": 1}),
        ("(555) 123-4567 or 555.123.9876", "[PHONE] or [PHONE]", {"phone": 2}),
        ("(555) 123-4567 or 555.123.4567", "[PHONE] or [PHONE]", {"phone": 1}),
        ("1-800-555-0199", "[PHONE]", {"phone": 1}),
        ("about my order: (723) 555-8812, 723-555-8813", "about my order: [PHONE], [PHONE]", {"phone": 2}),
        ("paid 2024-4111111111111111 - 123", "paid 2024-[CARD] - 123", {"card": 1}),
        ("0049 30 1234567", "[PHONE]", {"phone": 1}),
        ("4111 1111 1111 1111", "[CARD]", {"card": 1}),
        ("5500-0000-0000-0004", "[CARD]", {"card": 1}),
        ("378282246310005", "[CARD]", {"card": 1}),
    ],
)
def test_what_is_private(text: str, expected: str, counts: dict[str, int]) -> None:
    assert redacted(text) == (expected, counts)


@pytest.mark.parametrize(
    "text",
    [
        "4111 1111 1111 1112",  # the sum does not hold
        "Order #112-3456789-1234567",  # the sum of the last two groups holds
        "IMEI 490154203237518",  # and that of all digits here: no card of this issuer has 15
        *(
            "order 400-123-4567",
            "Order no. 723-555-8812",
            "Bestellnr. 12, Bestellung: 723-555-8812",
            "see #723-555-8812",
        ),
        *(
            "rows 100-200-3000",
            "Q1 2024: 100 200 3000",
            "+100.000.000,00 EUR",
            "flight +10 2000 3000 40",
            "+999 123 456 789",
        ),
        "0000 0000 0000 0000",
        "9f3d2a10-0000-4000-8000-000000000003",
        "tr-4111111111111111",
        "4111111111111111abc",
        "1762160471000000000",
        "2025-11-03T09:01:11.204000Z",
        "2024-09-12 10:20:30",
        "192.168.100.200",
        "version 1.2.3, build 20240912",
        "80 working days, $1,234,567.89",
        "a@b, @ana, ana@localhost",
        "x = 3.14159265358979",
        "cG9ydC80OTE1MTEyMzQ1Njc4+4915112345678==",
    ],
)
def test_what_is_not(text: str) -> None:
    assert redacted(text) == (text, {})


@pytest.mark.parametrize(
    ("digits", "holds"),
    [
        ("4111111111111111", True),
        ("4222222222222", True),
        ("6304000000000000000", True),
        ("4111111111111112", False),
        ("4111 1111-1111 1111", True),
        ("79927398713", False),  # Luhn holds, but eleven digits are no card
        ("411111111117", False),  # of 12 digits
        ("4111111111119", True),
        ("4111111111111111110", True),  # of 19 digits
        ("41111111111111111115", False),
        ("0000000000000", False),
    ],
)
def test_luhn(digits: str, holds: bool) -> None:
    assert is_card_number(digits) is holds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("+12 345678", "[PHONE]"),  # of 8 digits
        ("+12 34567", "+12 34567"),
        ("+12 17777 17777 177", "[PHONE]"),  # of 15 digits
        ("+12 17777 17777 1777", "[PHONE] 1777"),
        ("+12177771777717771", "+12177771777717771"),  # of 16 digits
        (f"{'a' * 64}@example.com", "[EMAIL]"),
        (f"{'a' * 65}@example.com", f"{'a' * 65}@example.com"),
        (f"a@{'b' * 63}.com", "[EMAIL]"),
        (f"a@{'b' * 64}.com", f"a@{'b' * 64}.com"),
        (f"a@b.{'c' * 24}", "[EMAIL]"),
        (f"a@b.{'c' * 25}", f"a@b.{'c' * 25}"),
        ("a@b.c", "a@b.c"),
    ],
)
def test_the_lengths_of_what_is_private(text: str, expected: str) -> None:
    assert redacted(text)[0] == expected


def test_json_is_searched_to_a_depth() -> None:
    """Below it the text is searched as one, in which `\\"` hides a sign."""
    for depth, mark in ((MAX_NESTING - 1, "[EMAIL]"), (MAX_NESTING, "[EMAIL]")):
        text = '"ana\\u0040example.com"'
        for _ in range(depth):
            text = json.dumps([text])
        found = redacted(text)[0]
        for _ in range(depth):
            (found,) = json.loads(found)
        assert found == f'"{mark}"'


CELL = {
    "ana@example.com": 1,
    "said": "from ana@example.com\nto ben@example.com",
    "nested": json.dumps({"n": 1762160471000000000, "deep": json.dumps(["+44 20 7946 0958", 1.50])}),
    "card": 4111111111111111,
    "span_id": "4111111111111112",
    "price": 1.50,
}


def test_json_stays_json_and_nested_json_too() -> None:
    found, counts = redacted(json.dumps(CELL))
    value = json.loads(found)
    assert value["said"] == "from [EMAIL]\nto [EMAIL]"
    nested = json.loads(value["nested"])
    assert (nested["n"], json.loads(nested["deep"])) == (1762160471000000000, ["[PHONE]", 1.5])
    assert (value["card"], value["span_id"], value["[EMAIL]"]) == ("[CARD]", "4111111111111112", 1)
    assert counts == {"email": 2, "phone": 1, "card": 1}  # ana's address is there twice


def test_an_escape_hides_nothing() -> None:
    assert redacted('{"a": "ana\\u0040example.com"}') == ('{"a": "[EMAIL]"}', {"email": 1})


@pytest.mark.parametrize("blank", ["\n", "\t", "\r", "\f", "\b", " "])
@pytest.mark.parametrize(
    ("private", "name"),
    [("4111 1111 1111 1111", "CARD"), ("+44 20 7946 0958", "PHONE"), ("555-123-4567", "PHONE"), ("a@b.org", "EMAIL")],
)
def test_a_line_may_begin_with_what_is_private(private: str, name: str, blank: str) -> None:
    """In JSON it then follows the letter of an escape."""
    text = f"It is:{blank}{private}{blank}Bye"
    for cell in (text, json.dumps({"a": text}), json.dumps({"a": json.dumps({"b": text})})):
        assert redacted(cell) == (cell.replace(private, f"[{name}]"), {name.lower(): 1})


pieces = st.sampled_from(
    [
        *("ana@example.com", "+44 20 7946 0958", "0044 20 7946 0958", "(212) 555-0147", "1 (212) 555-0147"),
        *("+1 2 3 44 55 66 77", "+44/20/7946/0958", "4111 1111 1111 1111", "4111111111111111", "٤١١١١١١١١١١١١١١١"),
        *("abc", "\n", "é", '"', "\\", "/", "1", "17", "2026-01-02", " ", "+", "00", "@", "{", "[", ":"),
    ]
)


@given(st.lists(pieces, max_size=6).map("".join), st.booleans(), st.booleans())
def test_the_quick_test_passes_over_nothing_private(text: str, ascii: bool, slashes: bool) -> None:
    cell = json.dumps({"a": [text, json.dumps([text], ensure_ascii=ascii)]}, ensure_ascii=ascii)
    cell = cell.replace("/", "\\/") if slashes else cell
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redact, "_may_be_private", lambda _: True)
        thorough = Redactor("default").cell(cell)
    assert Redactor("default").cell(cell) == thorough


def test_text_that_is_no_json_is_redacted_as_text() -> None:
    assert redacted('{"a": "ana@example.com')[0] == '{"a": "[EMAIL]'


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**19), 10**19)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12)
    | st.sampled_from(["ana@example.com", "+44 20 7946 0958", "4111 1111 1111 1111", '{"a": "x@y.org"}', '"']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: shape(v) for k, v in value.items()}
    is_number = isinstance(value, float) and not is_card_number(f"{value:.0f}")  # a card becomes a text
    return [shape(v) for v in value] if isinstance(value, list) else type(value) if is_number else None


@given(values, st.booleans())
def test_any_json_keeps_its_shape(value: Any, ascii: bool) -> None:
    found = json.loads(redacted(json.dumps(value, ensure_ascii=ascii))[0])
    assert shape(found) == shape(value)
    assert "ana@example.com" not in json.dumps(found)
    again, counts = redacted(json.dumps(found))
    assert (json.loads(again), counts) == (found, {})


@given(st.text())
def test_any_text_comes_back(text: str) -> None:
    assert isinstance(Redactor("default").cell(text), str)


# ---------------------------------------------------------------------------------------------------------------------
# in a build

PRIVATE = "Mail ana@example.com or call +44 20 7946 0958"


def test_every_text_of_a_set_is_redacted_and_counted() -> None:
    answer, found = f"{PRIVATE}!", retrieval("s1", ("mailto:ana@example.com", PRIVATE))
    rows = [
        chat("a", PRIVATE, answer, trace=trace("a", PRIVATE, answer, found)),
        feedback("a", "negative", edit=f"{PRIVATE}?", chunks=[chunk("s1", 0)]),
        logged("b", f"{{{PRIVATE}", "{}"),
    ]
    build = eval_set_from_inference_table(table(rows), redact="default")
    kept, aside = build.rows.to_json(date_format="iso"), build.excluded[["message", "request", "response"]].to_json()
    for text in (kept, aside):
        assert "ana@example.com" not in text
        assert "7946" not in text
    row = build.rows.iloc[0]
    assert row["expected_response"] == "Mail [EMAIL] or call [PHONE]?"
    assert row["expected_retrieved_context"] == row["retrieved_context"]
    assert row["retrieved_context"][0]["doc_uri"] == "mailto:[EMAIL]"
    assert build.report.ok
    assert build.summary.redacted == {"email": 1, "phone": 1}  # in ten places of one row


def test_a_function_of_the_user() -> None:
    build = eval_set_from_inference_table(
        table([chat("a", "Ana asks", "Ana!")]), redact=lambda t: t.replace("Ana", "X")
    )
    row = build.rows.iloc[0]
    assert (row["request"]["messages"], row["response"]) == ([{"role": "user", "content": "X asks"}], "X!")
    assert build.summary.redacted == {"hook": 2}


def test_a_function_is_not_asked_about_the_structure() -> None:
    own = trace("a", "Hi", "Hello", retrieval("s1", ("u", "text")))
    build = eval_set_from_inference_table(table([chat("a", "Hi", "Hello", trace=own)]), redact=lambda _: "REDACTED")
    row = build.rows.iloc[0]
    assert row["request"]["messages"] == [{"role": "user", "content": "REDACTED"}]
    assert json.loads(row["trace"])["data"]["spans"][1]["span_id"] == "s1"
    assert build.report.ok


def test_a_function_by_its_name() -> None:
    build = eval_set_from_inference_table(table([chat("a", "Hi", "a < b")]), redact="html:escape")
    assert (build.rows["response"].tolist(), build.summary.redacted) == (["a &lt; b"], {"hook": 1})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("html", "expected default, none or MODULE:FUNCTION, got 'html'"),
        (":escape", "expected default, none or MODULE:FUNCTION, got ':escape'"),
        ("no_such_module:hook", "No module named 'no_such_module': set PYTHONPATH to the folder of the module"),
        ("html:no_such_function", "has no attribute 'no_such_function'"),
        ("html:__name__", "redact: html:__name__ is not a function but str"),
    ],
)
def test_a_name_that_is_of_no_function(name: str, message: str) -> None:
    with pytest.raises(EvalSetError) as caught:
        find_hook(name)
    assert str(caught.value).endswith(message)


def test_a_number_in_json_that_is_no_card_stays() -> None:
    assert redacted("[4111111111111111, 4111111111111112]") == ('["[CARD]", 4111111111111112]', {"card": 1})
    mine = Redactor(lambda text: text.replace("a", "b"))
    assert mine.cell('["a", 4111111111111111]') == '["b", 4111111111111111]'


@pytest.mark.parametrize("hook", [lambda _: None, lambda _: 1 / 0])
def test_a_function_that_fails_is_told(hook: Any) -> None:
    with pytest.raises(EvalSetError, match="the redaction hook"):
        eval_set_from_inference_table(table([chat("a")]), redact=hook)


def test_nothing_is_redacted_unless_asked() -> None:
    build = eval_set_from_inference_table(table([chat("a", PRIVATE)]))
    assert build.rows["request"][0]["messages"][0]["content"] == PRIVATE
    assert build.summary.redacted == {}


def test_a_hook_is_not_asked_about_the_structure_of_chats_and_traces() -> None:
    structure = [
        "role",
        "type",
        "object",
        "model",
        "status",
        "status_code",
        "code",
        "finish_reason",
        "state",
        "id",
        "span_id",
        "trace_id",
        "parent_id",
        "parent_span_id",
        "request_id",
        "call_id",
        "tool_call_id",
        "client_request_id",
        "run_id",
        "mlflow.traceRequestId",
        "mlflow.spanType",
        "start_time",
        "end_time",
        "start_time_unix_nano",
        "end_time_unix_nano",
        "request_time",
        "timestamp",
        "execution_duration",
    ]
    cell = {**dict.fromkeys(structure, "ana"), "content": "ana"}
    assert json.loads(Redactor(str.upper).cell(json.dumps(cell))) == {**cell, "content": "ANA"}


def test_a_column_without_private_data_is_the_same_array() -> None:
    array = pa.array(["Hello", None, "a@b is no address"])
    assert Redactor("default").column(array) is array
