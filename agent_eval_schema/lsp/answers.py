"""What an editor asks about a place: what is there, what can be there, and what the rows of the file are.

Answers are Markdown or plain values; whatever is from a cell is in them only as `visible` shows it.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from agent_eval_schema.formats.json_schema import SCHEMAS, json_schema
from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.lsp.check import Found, Mark
from agent_eval_schema.lsp.rows import BOM, is_blank, json_node
from agent_eval_schema.lsp.text import Place, Text
from agent_eval_schema.lsp.tree import Layer, Node, at, join, parse
from agent_eval_schema.metrics.catalog import BIT, Metric
from agent_eval_schema.metrics.support import metrics_of, missing_needs, need_words
from agent_eval_schema.render.phrases import plural
from agent_eval_schema.rule import Rule, Severity
from agent_eval_schema.rules import RULES, all_rules
from agent_eval_schema.schema import COLUMN_DESCRIPTIONS
from agent_eval_schema.text.jsontext import is_structured
from agent_eval_schema.text.visible import visible
from agent_eval_schema.validation.checked_batch import COLUMNS_OF_FIELD

MOST_NAMED = 12
"""Metrics that a hover names, at most."""


# --- rows
def row_at(found: Found, text: Text, place: Place) -> tuple[int, Node] | None:
    """The row at a place, and its node with its places in the whole text."""
    if place.line >= len(text.lines):
        return None
    if found.lines is not None:
        if is_blank(text.lines[place.line]):
            return None
        row = sum(not is_blank(line) for line in text.lines[: place.line])
        node = json_node(text.whole, *text.starts[place.line : place.line + 2])
    else:
        rows, offset = found.rows, text.offset(place)
        row = bisect_right(range(rows.size), offset, key=lambda i: n.start if (n := rows.node(i)) else -1) - 1
        node = rows.node(row) if row >= 0 else None
        if node is not None and not node.start <= offset <= node.end:
            return None
    return None if node is None or row >= len(found.states) else (row, node)


class Metrics(NamedTuple):
    """The metrics of the system of a file: those that a row supports, those that its errors cost it, and those that it
    lacks something for."""

    supported: list[Metric]
    lost: list[Metric]
    enabling: list[tuple[str, list[Metric]]]
    total: int


def metrics_at(found: Found, row: int, marks: Iterable[Mark] = ()) -> Metrics:
    """The metrics of a row; `marks` are those of rules that compare rows."""
    state, plan = found.states[row], found.plan
    form = find_format(plan.format)
    metrics = metrics_of(form.system)
    mask, broken = state.mask, {m.path or "" for m in marks if m.severity is Severity.ERROR}
    broken |= {note["path"] or "" for note in state.notes if RULES[note["code"]].severity is Severity.ERROR}
    is_usable = state.usable and not broken
    columns = {_our_column(found, path) for path in broken}
    for field, names in COLUMNS_OF_FIELD.items():
        mask |= 0 if columns.isdisjoint(names) else BIT[field]
    lacks = {metric: missing_needs(metric, mask, plan.outputs) for metric in metrics}
    complete = [metric for metric, needs in lacks.items() if not needs]
    enabling: dict[str, list[Metric]] = {}
    for metric, needs in lacks.items():
        if len(needs) == 1:
            enabling.setdefault(need_words(needs[0]), []).append(metric)
    by_size = sorted(enabling.items(), key=lambda item: -len(item[1]))
    return Metrics(complete if is_usable else [], [] if is_usable else complete, by_size, len(metrics))


def _our_column(found: Found, path: str) -> str:
    """Our column of a path in the file."""
    plan, found_column = found.plan, re.match(r"[^.\[]*", path)
    known = {theirs: ours for ours, theirs in plan.origins.items()}
    known |= {theirs: ours for ours, theirs in found.rows.names.items()}
    below = [ours for theirs, ours in known.items() if re.match(rf"{re.escape(theirs)}(?:[.\[]|$)", path)]
    match = next(iter(below), None)
    column = found_column[0] if found_column else path
    return match or ("request" if column == "inputs" else column)


def _named(metrics: list[Metric]) -> str:
    names = ", ".join(f"`{metric.name}`" for metric in metrics[:MOST_NAMED])
    return names + (f" and {len(metrics) - MOST_NAMED} more" if len(metrics) > MOST_NAMED else "")


def row_text(found: Found, row: int, marks: Iterable[Mark] = ()) -> str:
    """What a row supports, what its errors cost it, and what would enable the rest."""
    metrics, system = metrics_at(found, row, marks), find_format(found.plan.format).system
    if metrics.lost:
        lines = [f"**Row {row}** is invalid: it supports no metric. It lost {_named(metrics.lost)}."]
    else:
        count = f"{len(metrics.supported)} of {plural(metrics.total, 'metric')}"
        names = f": {_named(metrics.supported)}" if metrics.supported else ""
        lines = [f"**Row {row}** supports {count} of {system}{names}."]
    lines += [f"`{need}` would enable {_named(more)}." for need, more in metrics.enabling[:3]]
    return "\n\n".join(lines)


# --- hover
def hover(found: Found, text: Text, place: Place, marks: list[Mark], page: str) -> str:
    """The rules of the issues at a place, the meaning of its key, and what its row supports."""
    parts = [_rule(mark, page) for mark in marks if mark.start <= place <= mark.end and mark.code in all_rules()]
    located = row_at(found, text, place)
    if located is not None:
        row, node = located
        path, way = at(node, text.offset(place))
        if path and (meaning := key_text(found, way, path)):
            parts.append(meaning)
        first, last = (
            (place.line,) * 2 if found.lines is not None else (text.place(o).line for o in (node.start, node.end))
        )
        parts.append(row_text(found, row, (m for m in found.compared if first <= m.start.line <= last)))
    return "\n\n---\n\n".join(dict.fromkeys(parts))


def _rule(mark: Mark, page: str) -> str:
    rule = RULES[mark.code]
    head = f"**{rule.code} {rule.name}** ({rule.severity}): {rule.summary}"
    place = page_of(rule, page)
    return "\n\n".join([head, rule.why, *([f"[{rule.code}]({place})"] if place else [])])


def page_of(rule: Rule, pages: str) -> str:
    """The page of a rule; one of another package has the page that it names, if it does."""
    return f"{pages}/{rule.name}.html" if rule.code in RULES else rule.url


def key_text(found: Found, way: list[Node], path: str) -> str:
    """The meaning of a key in the format, and the metrics that need it."""
    column = _our_column(found, path)
    descriptions = [d for part in schema_at(found.plan.format, path) if (d := part.get("description"))]
    is_column = len(way) == 2 or path in found.plan.origins.values()
    meaning = descriptions[0] if descriptions else COLUMN_DESCRIPTIONS.get(column, "") if is_column else ""
    needing = {f for f, names in COLUMNS_OF_FIELD.items() if column in names} if is_column else set()
    system = find_format(found.plan.format).system
    metrics = [m for m in metrics_of(system) if needing.intersection(m.fields)]
    if not meaning and not metrics:
        return ""
    text = f"`{visible(path)}`" + (f": {meaning}" if meaning else "")
    return text + (f"\n\nMetrics that need it: {_named(metrics)}." if metrics else "")


@lru_cache(maxsize=len(SCHEMAS))
def _schema(format: str) -> dict[str, Any]:
    return json_schema(format) if format in SCHEMAS else {}


def schema_at(format: str, path: str) -> list[dict[str, Any]]:
    """The parts of the JSON Schema of a format that are about a path, if it has one."""
    schema = _schema(format)
    parts = _alternatives(schema, schema)
    for step in re.findall(r"\[|[^.\[\]]+", re.sub(r"\[\d*\]", "[", path)):
        inner = [part.get("items") if step == "[" else part.get("properties", {}).get(step) for part in parts]
        parts = [found for part in inner if isinstance(part, dict) for found in _alternatives(part, schema)]
    return parts


def _alternatives(part: dict[str, Any], schema: dict[str, Any]) -> list[dict[str, Any]]:
    if "$ref" in part:
        part = schema.get("$defs", {}).get(part["$ref"].rpartition("/")[2], {})
    several = [*part.get("anyOf", ()), *part.get("oneOf", ())]
    return [part, *(found for other in several for found in _alternatives(other, schema))]


# --- completion
MOST_READ = 500
"""Rows on either side of the cursor whose keys and values are proposed."""

MOST_PROPOSED, LONGEST = 60, 200


class Proposal(NamedTuple):
    """A key or a value that can be at a place: the text, and the part of the file whose place it takes."""

    text: str
    is_key: bool
    start: int
    end: int
    is_quoted: bool


def proposals(found: Found | None, text: Text, place: Place, is_lines: bool) -> list[Proposal]:
    """Keys of the format and those that are used elsewhere in the file; values of the format, roles, names of tools and
    URIs of documents that are."""
    offset = text.offset(place)
    start = text.starts[min(place.line, len(text.lines) - 1)] if is_lines else 0
    start += text.whole.startswith(BOM, start)
    if offset - start > MOST_TEXT:
        return []
    layer, path = Layer(text.whole[start:offset], range(start, offset + 1)), ""
    parsed = parse(layer)
    path = parsed.path
    while parsed.prefix is not None and not parsed.wants_key and is_structured(parsed.prefix.text):  # JSON in a string
        parsed = parse(parsed.prefix)
        path = join(path, parsed.path) if parsed.path else path
    if not parsed.open:
        return []
    if not is_lines:
        path = re.sub(r"^\[\d+\]\.?", "", path)
    prefix = parsed.prefix.text if parsed.prefix is not None else ""
    at_ = parsed.prefix.places[0] if parsed.prefix is not None else offset
    format = found.plan.format if found is not None else ""
    schema = schema_at(format, path)
    known = (
        [name for part in schema for name in part.get("properties", ())]
        if parsed.wants_key
        else [value for part in schema for value in part.get("enum", ()) if isinstance(value, str)]
    )
    used = Counter(_used(text, place, is_lines, _last(path), parsed.wants_key))
    row = json_node(text.whole, start, text.starts[place.line + 1] if is_lines else text.size)
    objects = [node for node in at(row, offset)[1] if node.kind == "{" or node.inner is not None] if row else []
    own = {str(node.key) for node in objects[-1].children} if objects and parsed.wants_key else set()
    words = dict.fromkeys([*known, *(word for word, _ in used.most_common())])
    new = (word for word in words if word not in own and word != prefix and len(word) <= LONGEST)
    fitting = [word for word in new if word.lower().startswith(prefix.lower())]
    is_quoted = parsed.prefix is not None
    return [Proposal(w, parsed.wants_key, at_, offset, is_quoted) for w in fitting[:MOST_PROPOSED]]


MOST_TEXT = 1 << 20
"""Characters before the cursor that are read, at most."""


def _last(path: str) -> str:
    """The last name of a path: the same keys and values are used under it elsewhere."""
    return re.sub(r"\[\d*\]", "[]", path).rpartition(".")[2]


def _used(text: Text, place: Place, is_lines: bool, name: str, keys: bool) -> Iterator[str]:
    for node in _near(text, place, is_lines):
        for path, part in node.walk():
            if _last(path if is_lines else re.sub(r"^\[\]\.?", "", path)) == name:
                if keys and part.kind == "{":
                    yield from (child.key for child in part.parts if isinstance(child.key, str))
                elif not keys and part.layer is not None and part.layer.text:
                    yield part.layer.text


def _near(text: Text, place: Place, is_lines: bool) -> Iterator[Node]:
    if not is_lines:
        nodes = [json_node(text.whole, 0, text.size)] if text.size <= MOST_TEXT else []
    else:
        near = range(max(place.line - MOST_READ, 0), min(place.line + MOST_READ, len(text.lines)))
        lines = (text.lines[i] for i in near if i != place.line and len(text.lines[i]) < 1 << 16)
        nodes = [json_node(line, 0, len(line)) for line in lines]
    return (node for node in nodes if node is not None)


# --- symbols, folding
MOST_ROWS = 5_000
"""Rows of a file that are listed, at most."""

_QUESTIONS = ("content", "query", "question", "text", "input", "request", "prompt")


def rows_listed(found: Found) -> Iterator[tuple[int, Node]]:
    """The first rows, each with its node in the whole text."""
    for row in range(min(len(found.states), MOST_ROWS)):
        if (node := found.rows.node(row)) is not None:
            yield row, node


def question(found: Found, node: Node) -> str:
    """The question of a row: the last text of the user, else the first text."""
    columns = [found.plan.origins.get("request", ""), *("request", "inputs", *_QUESTIONS)]
    start = next((part for name in columns if name for part, is_there in [node.find(name)] if is_there), node)
    leaves = [(path, n.layer.text) for path, n in start.walk() if n.layer is not None and n.inner is None]
    texts = [(path, text) for path, text in leaves if text.strip()]
    wanted = [text for path, text in texts if path.rpartition(".")[2] in _QUESTIONS]
    best = wanted[-1] if wanted else texts[0][1] if texts else ""
    return visible(" ".join(best.split())[:80])


def quoted(proposal: Proposal) -> str:
    """The text of a proposal as JSON, in the quotes that are there or in its own."""
    text = json.dumps(proposal.text, ensure_ascii=False)
    if proposal.is_quoted:
        return text[1:-1]
    return f"{text}: " if proposal.is_key else text
