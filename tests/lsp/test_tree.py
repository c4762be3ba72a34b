"""The places of the parts of a row, whole or while it is typed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_eval_schema.lsp.tree import Layer, Node, field, parse


def parsed(text: str) -> Node:
    root = parse(Layer(text, range(len(text) + 1))).root
    assert root is not None
    return root


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("request", r'"{\"messages\": [{\"role\": \"us\\ud83d\\ude00r\"}]}"'),
        ("request.messages[0].role", r"\"us\\ud83d\\ude00r\""),
        ("a.b.c[1].d", "null"),  # of a key with a dot
        ("list.messages[1]", "2"),  # a list that is the messages
    ],
)
def test_a_part_is_found_also_in_json_in_a_string(path: str, found: str) -> None:
    text = r' {"request": "{\"messages\": [{\"role\": \"us\\ud83d\\ude00r\"}]}",'
    text += '"a.b": {"c": [1, {"d": null}]}, "list": [1, 2]}'
    node, is_there = parsed(text).find(path)
    assert (is_there, text[node.start : node.end]) == (True, found)


def test_what_is_not_there_leads_to_what_lacks_it() -> None:
    text = '{"a": {"b": [{"c": 1}]}}'
    node, is_there = parsed(text).find("a.b[0].x")
    assert (is_there, text[node.start : node.end]) == (False, '{"c": 1}')
    assert parsed(text).find("a.b[7]")[0].key == "b"


def test_of_a_key_that_is_there_twice_the_last_one_counts_as_for_the_reader() -> None:
    text = '{"a": 1, "a": 2}'
    node, _ = parsed(text).find("a")
    assert text[node.start : node.end] == "2"


@pytest.mark.parametrize(
    ("text", "path", "wants_key", "prefix"),
    [
        ('{"request": {"messages": [{"role": "us', "request.messages[0].role", False, "us"),
        ('{"request": {"mes', "request", True, "mes"),
        ('{"messages": [{"role": "user", ', "messages[0]", True, None),
        ('{"a": [1, 2, ', "a[2]", False, None),
        ('{"a": "b\\', "a", False, "b"),
        ('{"a": "b\\"', "a", False, 'b"'),
        ('{"a":', "a", False, None),
        ("", "", False, None),
    ],
)
def test_what_comes_next_while_a_row_is_typed(text: str, path: str, wants_key: bool, prefix: str | None) -> None:
    found = parse(Layer(text, range(len(text) + 1)))
    assert (found.path, found.wants_key) == (path, wants_key)
    assert (None if found.prefix is None else found.prefix.text) == prefix


def test_a_field_of_csv_is_unquoted_with_its_places() -> None:
    text = 'x,"{""a"": [1, ""q""]}",y'
    node = field(text, 2, 23)
    part, is_there = node.find("a[1]")
    assert (is_there, text[part.start : part.end]) == (True, '""q""')


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.sampled_from('ab"\\é😀\n{[')),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc.", max_size=3), inner, max_size=3),
    max_leaves=12,
)


@given(JSON, st.booleans(), st.sampled_from([None, 1]))
def test_every_part_of_well_formed_json_is_where_it_is(value: Any, is_ascii: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii, indent=indent)
    pairs = [(parsed(text), value)]
    for node, part in pairs:
        assert json.loads(text[node.start : node.end]) == part
        if isinstance(part, dict):
            assert [child.key for child in node.parts] == list(part)
            pairs += zip(node.parts, part.values(), strict=True)
        elif isinstance(part, list):
            pairs += zip(node.parts, part, strict=True)
        elif isinstance(part, str):
            assert node.layer is not None
            assert node.layer.text == part


@given(st.text(st.sampled_from('{}[]:,"\\ ua1é')), st.booleans())
def test_no_text_stops_the_reader(text: str, is_field: bool) -> None:
    found = parse(Layer(text, range(len(text) + 1)))
    assert all(0 <= node.start <= node.end <= len(text) for node in found.open)
    if is_field:
        assert field(text, 0, len(text)).layer is not None
