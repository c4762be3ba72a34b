"""Texts are broken at words, and nothing in them is lost or changed."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_eval_schema.fix.effects import FIXABLE
from agent_eval_schema.formats.overview import overview
from agent_eval_schema.render.rule import format_text, formats_text, rule_text, rules_text
from agent_eval_schema.rules import RULES
from agent_eval_schema.text.visible import wrapped


def test_what_is_quoted_stays_in_one_line() -> None:
    text = "run `agent-eval-schema validate a.jsonl` to see why the rows of the file are invalid"
    assert wrapped(text, 30, "  ") == [
        "run",
        "  `agent-eval-schema validate a.jsonl`",
        "  to see why the rows of the",
        "  file are invalid",
    ]
    assert wrapped(text, None) == [text]
    assert wrapped("the agent's column 'my own name' is the users' one", 24) == [
        "the agent's column",
        "'my own name' is the",
        "users' one",
    ]


@given(st.text(alphabet="ab-é` ", min_size=1).map(str.strip), st.integers(5, 40))
def test_no_word_is_lost(text: str, width: int) -> None:
    lines = wrapped(text, width)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert all(len(line) <= width or " " not in re.sub("`[^`]*`", "", line).strip() for line in lines)


TEXTS = {
    "rules": lambda width: rules_text(list(RULES.values()), width=width),
    "formats": lambda width: formats_text(overview(), width=width),
    **{
        rule.code: lambda width, rule=rule: rule_text(rule, FIXABLE.get(rule.code, ()), width=width)
        for rule in RULES.values()
    },
    **{entry.name: lambda width, entry=entry: format_text(entry, width=width) for entry in overview()},
}


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_looked_up_fits_a_terminal(name: str) -> None:
    """A line is longer only if it is one word, such as an address, or quoted."""
    text = TEXTS[name](80)
    found = [line for line in text.splitlines() if len(line) > 80]
    assert [line for line in found if " " in re.sub("`[^`]*`", "", line.strip())] == []
    assert re.sub(r"\s", "", text) == re.sub(r"\s", "", TEXTS[name](None))
