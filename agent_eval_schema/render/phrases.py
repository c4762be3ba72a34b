"""What all forms share and no console is needed for: how numbers are written (three significant digits, thousands
apart, the same decimals in a column, a unit once), nouns beside them, styles, the next command."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from agent_eval_schema.rule import Severity
from agent_eval_schema.text.visible import shell_words

DIGITS = 3
"""Significant digits of a number that was measured; counts are exact."""

MISSING = "–"
"""What is written where there is no number."""


def number(value: float) -> str:
    """A number with three significant digits: `0.667`, `12.3`, `1,230`; a dash for none."""
    return _written(value, _decimals(value))


def aligned(values: Iterable[float]) -> list[str]:
    """The numbers of a column, all with the same decimals, so that they are aligned where they end."""
    values = list(values)
    decimals = min(max(map(_decimals, values), default=0), DIGITS)
    return [_written(v, decimals) for v in values]


def signed(value: float) -> str:
    return number(value) if not value or math.isnan(value) else f"{'+' if value > 0 else '−'}{number(abs(value))}"


def share(part: float, whole: float) -> str:
    """A percentage: it is 0 % or 100 % only if that is exactly so."""
    if not whole or part in (0, whole):
        return "100%" if part else "0%"
    percent = 100 * part / whole
    if percent < 0.1:
        return "<0.1%"
    if percent > 99.9:
        return ">99.9%"
    return f"{percent:.1f}%" if percent < 10 or percent > 99 else f"{percent:.0f}%"


SECONDS = (("s", 1.0), ("ms", 1e3), ("µs", 1e6))


def seconds(value: float) -> str:
    """Seconds in the unit in which they can be read; the unit is not parted from its number."""
    if math.isnan(value):
        return MISSING
    size = abs(value) if math.isfinite(value) else 0.0
    unit, factor = next((pair for pair in SECONDS if size * pair[1] >= 0.1), SECONDS[-1] if size else SECONDS[0])
    return f"{number(value * factor)}\N{NO-BREAK SPACE}{unit}"


def _decimals(value: float) -> int:
    """The decimals of a number with three significant digits, without those that are zero."""
    if not math.isfinite(value) or not value:
        return 0
    decimals = max(DIGITS - 1 - math.floor(math.log10(abs(value))), 0)
    digits = f"{abs(value):.{decimals}f}"
    return len(digits.partition(".")[2].rstrip("0"))


def _written(value: float, decimals: int) -> str:
    if math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value and abs(value) < 1e-6:
        return f"{value:.2e}"
    if abs(value) >= 1000:
        value = float(f"{value:.3g}")
    return f"{value + 0.0:,.{decimals}f}"  # there is no negative zero


SIGNS = {"good": "✓ ", "warning": "⚠ ", "error": "✗ ", "": ""}
"""What begins a verdict, in every form of text."""

STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold cyan"}


EXAMPLES_SHOWN = 3
"""Examples of a field, of a code and of a metric, and edits of a cell, in a text; counts beside them are exact, and the
other forms have more."""


class NextCommand(NamedTuple):
    """What to type next, and what it does."""

    command: str
    effect: str


class Call(NamedTuple):
    """The data of a call (a name; None: in memory) and its options that are not defaults, for advice to repeat: as
    commands, or `in_python`."""

    name: str | None = None
    options: Mapping[str, Any] = {}
    in_python: bool = False

    def command(self, verb: str, *more: str) -> str:
        """The command that reads the file, or stdin once more; "" for data in memory. Files of `more` come before the
        options."""
        from agent_eval_schema.io.streams import STDIN, STDIN_NAME, STDOUT  # not above: `rules` needs no Arrow

        if self.in_python or self.name in (None, STDOUT):
            return ""
        name = STDIN if self.name == STDIN_NAME else str(self.name)
        files = list(takewhile(lambda word: word[:2] != "--", more))
        words = ["agent-eval-schema", verb, *(f"./{n}" if n[:1] == "-" != n else n for n in (name, *files))]
        for option in (o for o in _OPTIONS_OF[verb] if o in self.options and f"--{o}" not in more):
            value = self.options[option]
            flag = f"--{option.replace('_', '-')}"
            pairs = [f"{key}={one}" for key, one in value.items()] if isinstance(value, Mapping) else []
            if option == "columns":
                words += [word for pair in pairs for word in (flag, pair)]
            elif value is True:
                words.append(flag)
            else:
                words += [flag, ",".join(pairs or value) if isinstance(value, tuple | Mapping) else str(value)]
        return shell_words([*words, *more[len(files) :]])

    def function(self, name: str, data: str = "data", **more: object) -> str:
        """The call of a function on data in memory, or in Python on the file."""
        if self.in_python and self.name is not None:
            data = _literal(self.name)
        options = {o: self.options[o] for o in _OPTIONS_OF[name] if o in self.options} | more
        return f"{name}({', '.join([data, *(f'{o}={_literal(v)}' for o, v in options.items())])})"

    def naming(self, columns: Mapping[str, str]) -> Call:
        """The call with more columns named."""
        return self._replace(options={**self.options, "columns": {**self.options.get("columns", {}), **columns}})

    def validation(self, select: Sequence[str] = (), data: str = "data") -> str:
        """What validates the data again, by all rules of the call or some: a command, or for data in memory a call."""
        chosen = ("--select", ",".join(select)) if select else ()
        rules = {"select": list(select)} if select else {}
        return self.command("validate", *chosen) or self.function("validate_eval_set", data, **rules)


def _literal(value: object) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return repr(list(value) if isinstance(value, tuple) else value)


_READING = ("format", "columns", "config")
_RULES = ("select", "ignore")
_OF_PROFILE = (*("system", "near", "price", "calls_per_minute", "tokenizer", "instruction_tokens", "answer_tokens"),)
_OPTIONS_OF = {
    "validate": (*_READING, "outputs", *_RULES, "max_cell_bytes", "no_values"),
    "metrics": (*_READING, "outputs", *_RULES),
    "profile": (*_READING, "outputs", "no_values", "documents", *_OF_PROFILE),
    "score": (*_READING, "metrics", "tool_name", "duplicates", "empty", "match"),
    "convert": _READING,
    "review": (*_READING, "outputs"),
    "diff": (*_READING, "outputs"),
    "from-inference-table": ("columns",),
    "validate_eval_set": ("format", "outputs", "columns", *_RULES, "max_cell_bytes", "show_values"),
    "normalize_eval_set": ("format", "outputs", "columns"),
    "metric_support": ("format", "outputs", "columns"),
    "review_eval_set": ("format", "outputs", "columns"),
    "profile_eval_set": ("format", "outputs", "columns", "show_values", *_OF_PROFILE),
    "eval_set_from_inference_table": ("columns",),
}
"""The options that each verb takes."""


def counted(counts: Iterable[tuple[int, str]]) -> list[str]:
    """`["2 added", "1 moved"]`: each number with its words, without those that are 0."""
    return [f"{count:,} {words}" for count, words in counts if count]


def code_block(text: str) -> str:
    """A text as a block of code in Markdown, which no backtick of the text ends."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}text\n{text.rstrip()}\n{fence}\n"


def plural(count: int, noun: str) -> str:
    """`1 row`, `1,000 rows`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
