"""What a user asks for with a profile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from msgspec import Struct

from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.metrics.catalog import SYSTEMS
from agent_eval_schema.profile.tokens import encoding
from agent_eval_schema.similarity.near import NEAR
from agent_eval_schema.text.choices import require_choice, shown

INSTRUCTION_TOKENS, ANSWER_TOKENS = 400, 150
"""Assumed of a judge: the tokens of its instructions, and of its answer with the rationale."""


class Options(Struct, frozen=True):
    """What a user asked for; a profile has them as `profile_eval_set` describes them."""

    system: str = "auto"
    near: float = NEAR
    rate: float = 0.5
    correlation: float = 0.5
    cluster_correlation: float = 0.2
    min_rows: int = 10
    price: Mapping[str, float] | None = None
    calls_per_minute: float | None = None
    tokenizer: str | None = None
    instruction_tokens: int = INSTRUCTION_TOKENS
    answer_tokens: int = ANSWER_TOKENS

    def require_valid(self) -> None:
        """Raise EvalSetError for a value that is not allowed."""
        require_choice("system", self.system, (*SYSTEMS, "all", "auto"))
        for name in ("near", "rate", "correlation", "cluster_correlation"):
            share = getattr(self, name)
            wrong = not _is_number(share) or not 0 <= share <= 1
            if wrong or (name == "near" and not share) or (name == "correlation" and share == 1):
                raise EvalSetError(f"{name}: expected a number from 0 to 1; got {shown(share)}")
        for name in ("min_rows", "calls_per_minute"):
            number = getattr(self, name)
            if number is not None and not (_is_number(number) and number > 0):
                raise EvalSetError(f"{name}: expected a number above 0; got {shown(number)}")
        for name in ("instruction_tokens", "answer_tokens"):
            number = getattr(self, name)
            if not isinstance(number, int) or isinstance(number, bool) or number < 0:
                raise EvalSetError(f"{name}: expected a whole number from 0 on; got {shown(number)}")
        price = self.price
        if price is not None and (set(price) != {"input", "output"} or not all(map(_is_amount, price.values()))):
            expected = 'amounts per million tokens, such as {"input": 2.5, "output": 10}'
            raise EvalSetError(f"price: expected {expected}; got {dict(price)!r}")
        if self.tokenizer is not None:
            encoding(self.tokenizer)

    def system_of(self, format: str) -> str:
        """The system whose metrics are profiled."""
        return find_format(format).system if self.system == "auto" else self.system


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_amount(value: object) -> bool:
    return _is_number(value) and 0 <= value < float("inf")
