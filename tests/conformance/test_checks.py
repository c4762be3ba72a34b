"""The checks of the conformance suite: our own formats pass them, and a format that breaks a promise fails one."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from agent_eval_schema.conformance import checks
from agent_eval_schema.conformance.checks import CHECKS
from agent_eval_schema.extend import Field, Format, Signs
from agent_eval_schema.formats import registry
from agent_eval_schema.formats.registry import FORMATS, find_format

OWN = [form.name for form in FORMATS if form.writer is not None and form.is_rows]

GOOD = Format(
    name="good",
    title="Good",
    summary="rows of good",
    page="https://good.example.com",
    signs=Signs(sure=(("asks", "truth"),)),
    fields=(Field("id", "request_id"), Field("asks", "request"), Field("truth", "expected_response")),
)


def raises(_: Any) -> Any:
    raise RuntimeError("a cell that is not expected")


BAD: dict[str, Format] = {
    "declaration": replace(GOOD, name="Bad Name"),
    "detection": replace(GOOD, signs=Signs(sure=(("asks", "answer"),))),
    "round trip": replace(GOOD, fields=(*GOOD.fields[:2], Field("truth", "expected_response", str.upper))),
    "validity": replace(GOOD, fields=(*GOOD.fields[1:], Field("id", "request_id", write=lambda _: "same"))),
    "damage": replace(GOOD, fields=(*GOOD.fields, Field("documents", "retrieved_context", raises))),
}


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes a format the only one of another package."""

    def install(form: Format) -> None:
        monkeypatch.setitem(registry._BY_NAME, form.name, form)
        checks._written_rows.cache_clear()

    yield install
    checks._written_rows.cache_clear()


@pytest.mark.property
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", OWN)
def test_our_own_formats_keep_the_promises(name: str, check: str) -> None:
    CHECKS[check](find_format(name))


@pytest.mark.parametrize("check", BAD)
def test_a_format_that_breaks_a_promise_fails(check: str, only: Any) -> None:
    only(BAD[check])
    with pytest.raises(Exception, match=r".+"):
        CHECKS[check](BAD[check])
