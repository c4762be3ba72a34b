"""Texts of others: what is too large or nested too deep is not decoded."""

import pytest

from agent_eval_schema import EvalSetError
from agent_eval_schema.text import guarded


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[1]", None),
        ("[1" + " " * (1 << 20), "expected at most 1 MB"),
        ("[" * 257 + "]" * 257, "expected at most 256 levels of brackets"),
    ],
    ids=["read", "too large", "too deep"],
)
def test_a_text_that_no_reader_should_decode_is_an_error(
    text: str, why: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded, "MOST_BYTES", 1 << 20)
    assert guarded.decoded_or_none(text, list[int]) == (None if why else [1])
    if why:
        with pytest.raises(EvalSetError, match=f"^run: {why}: use another path$"):
            guarded.decoded(text, list[int], "run", "use another path")
