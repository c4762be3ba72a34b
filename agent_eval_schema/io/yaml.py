"""YAML → the JSON texts of its rows: a list has a row per entry, anything else is one row.

    displayName: refund                      {"displayName": "refund",
    golden:                          ─▶       "golden": {"turns": [{"steps": [{"userInput": {"text": "yes"}}]}]}}
      turns: [{steps: [{userInput: {text: yes}}]}]

Scalars are read as YAML 1.2 has them, where `yes` and `2025-01-31` are text. A key that a mapping has twice is in the
JSON text twice, for the rule that reports it. Needs PyYAML (the extra `ces`).
"""

import json
import re
from typing import Any

from agent_eval_schema.errors import import_extra
from agent_eval_schema.rules.reading import MAX_DEPTH
from agent_eval_schema.text.depth import STAND_IN, TooDeep
from agent_eval_schema.text.visible import visible

_MOST_COPIES, _MOST_ADDED = 20, 64 << 20
"""Limits of aliases, which repeat their anchors: the factor for a small file, the bytes for a large one."""

_MOST_DIGITS = 4_000
"""Digits of a number: Python converts no text of more than 4,300."""


def yaml_rows(data: bytes) -> list[tuple[bytes, str]]:
    """The JSON texts of the rows in a YAML text; of what cannot be read the text itself, and why. For a text that is
    nested too deep there is JSON that is so, too."""
    try:
        budget = [min(_MOST_COPIES * len(data), 2 * len(data) + _MOST_ADDED) + 1000]
        return [(_json(row, budget, 0).encode(), "") for row in yaml_nodes(data)]
    except TooDeep:
        return [(STAND_IN.encode(), "")]
    except _Unreadable as error:
        return [(data, str(error))]


def yaml_nodes(data: bytes) -> list[Any]:
    """The nodes of the rows in a YAML text. Raises ValueError for what cannot be read."""
    return [row for d in _documents(data) for row in (d.value if d.id == "sequence" else [d])]


class _Unreadable(ValueError):
    pass


def _documents(data: bytes) -> list[Any]:
    """The documents of a YAML stream as nodes."""
    yaml = import_extra("yaml", "ces", "PyYAML 6")
    try:
        text, loader = data.decode("utf-8-sig"), getattr(yaml, "CBaseLoader", yaml.BaseLoader)
        if len(text) > MAX_DEPTH:
            depth = 0
            for event in yaml.parse(text, Loader=loader):  # of streams, documents, lists and objects
                kind = type(event).__name__
                depth += kind.endswith("StartEvent") - kind.endswith("EndEvent")
                if depth > _MOST_LEVELS:
                    raise TooDeep
        documents = list(yaml.compose_all(text, Loader=loader))
    except UnicodeDecodeError as error:
        raise _Unreadable(f"expected UTF-8, got another byte at {error.start}") from error
    except yaml.MarkedYAMLError as error:
        if error.problem == "exceeded maximum nesting depth":  # the limit of libyaml 0.2.6, which is 1,000 levels
            raise TooDeep from error
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark is not None else ""
        raise _Unreadable(f"{line}expected YAML: {visible(str(error.problem or error.context))}") from error
    except yaml.YAMLError as error:
        raise _Unreadable(f"expected YAML: {visible(str(error).partition(chr(10))[0])}") from error
    return [document for document in documents if document is not None]


_MOST_LEVELS = MAX_DEPTH + 4
"""A cell is in a row, that maybe in a list, and that in a document of a stream."""


def _json(node: Any, budget: list[int], depth: int) -> str:
    """The JSON text of a node."""
    if depth > MAX_DEPTH and node.id != "scalar":  # the row itself is one level more than its cells
        raise TooDeep
    budget[0] -= 2 if node.id != "scalar" else len(node.value) + 1  # of every copy: an empty list takes time, too
    if budget[0] < 0:
        raise _Unreadable("expected a file of ordinary size, got one that its aliases make very large")
    if node.id == "sequence":
        text = "[" + ",".join(_json(item, budget, depth + 1) for item in node.value) + "]"
    elif node.id == "mapping":
        pairs = []
        for key, value in node.value:
            if key.id != "scalar":
                raise _Unreadable(f"line {key.start_mark.line + 1}: expected a key that is text, got a {key.id}")
            budget[0] -= len(key.value)
            pairs.append(f"{json.dumps(key.value)}:{_json(value, budget, depth + 1)}")
        text = "{" + ",".join(pairs) + "}"
    else:
        text = json.dumps(node.value) if node.style else _scalar(node)
    return text


def _scalar(node: Any) -> str:
    """A plain scalar, as the core schema of YAML 1.2 has it."""
    text: str = node.value
    if text in ("", "~", "null", "Null", "NULL"):
        return "null"
    if text.lower() in ("true", "false") and text in (text.lower(), text.upper(), text.capitalize()):
        return text.lower()
    is_whole, has_base = re.fullmatch(r"[-+]?[0-9]+", text), re.fullmatch(r"0o[0-7]+|0x[0-9a-fA-F]+", text)
    if (is_whole or has_base) and len(text) > _MOST_DIGITS * (5 / 6 if has_base else 1):  # as many decimal digits
        line = node.start_mark.line + 1
        raise _Unreadable(
            f"line {line}: expected a number of at most {_MOST_DIGITS:,} digits, got one of {len(text):,}"
        )
    if is_whole or has_base:
        return str(int(text, 0 if has_base else 10))
    if re.fullmatch(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", text):
        return json.dumps(float(text))
    return json.dumps(text)
