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
from agent_eval_schema.io.yaml import yaml_nodes
from agent_eval_schema.lsp import tree
from agent_eval_schema.lsp.check import Found, Mark
from agent_eval_schema.lsp.rows import BOM, column_in, is_blank, json_node
from agent_eval_schema.lsp.text import Place, Text
from agent_eval_schema.lsp.tree import Layer, Node, at, join, of_yaml, parse
from agent_eval_schema.metrics.catalog import BIT, Metric
from agent_eval_schema.metrics.support import metrics_of, missing_needs, need_words
from agent_eval_schema.render.phrases import plural
from agent_eval_schema.rule import Rule, Severity
from agent_eval_schema.rules import RULES, all_rules
from agent_eval_schema.runtime.groups import by_key
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
    metrics = metrics_of(find_format(plan.format).system)
    mask, broken = state.mask, {m.path or "" for m in marks if m.severity is Severity.ERROR}
    broken |= {note["path"] or "" for note in state.notes if RULES[note["code"]].severity is Severity.ERROR}
    is_usable = state.usable and not broken
    columns = {_our_column(found, path) for path in broken}
    for field, names in COLUMNS_OF_FIELD.items():
        mask |= 0 if columns.isdisjoint(names) else BIT[field]
    lacks = {metric: missing_needs(metric, mask, plan.outputs) for metric in metrics}
    complete = [metric for metric, needs in lacks.items() if not needs]
    enabling = by_key((need_words(needs[0]), metric) for metric, needs in lacks.items() if len(needs) == 1)
    by_size = sorted(enabling.items(), key=lambda item: -len(item[1]))
    return Metrics(complete if is_usable else [], [] if is_usable else complete, by_size, len(metrics))


def _our_column(found: Found, path: str) -> str:
    """Our column of a path in the file."""
    known = {theirs: ours for names in (found.plan.origins, found.rows.names) for ours, theirs in names.items()}
    for theirs, ours in known.items():
        if re.match(rf"{re.escape(theirs)}(?:[.\[]|$)", path):
            return ours
    column = column_in(path)
    return "request" if column == "inputs" else column


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
    metrics = [m for m in metrics_of(find_format(found.plan.format).system) if needing.intersection(m.fields)]
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
        parts = [option for part in inner if isinstance(part, dict) for option in _alternatives(part, schema)]
    return parts


def _alternatives(part: dict[str, Any], schema: dict[str, Any]) -> list[dict[str, Any]]:
    if "$ref" in part:
        part = schema.get("$defs", {}).get(part["$ref"].rpartition("/")[2], {})
    several = [*part.get("anyOf", ()), *part.get("oneOf", ())]
    return [part, *(option for other in several for option in _alternatives(other, schema))]


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


class _Typed(NamedTuple):
    """What is typed at a place: the path of the value, or of the object whose key it is; what is there of it, and where
    that starts; and the keys that the object has."""

    path: str
    is_key: bool
    prefix: str
    start: int
    is_quoted: bool
    own: frozenset[str] = frozenset()


def proposals(found: Found | None, text: Text, place: Place, kind: str) -> list[Proposal]:
    """Keys of the format and those that are used elsewhere in the file; values of the format, roles, names of tools and
    URIs of documents that are. The `kind` of file is jsonl, json, csv or yaml."""
    offset = text.offset(place)
    start = text.starts[min(place.line, len(text.lines) - 1)] if kind == "jsonl" else 0
    start += text.whole.startswith(BOM, start)
    if offset - start > MOST_TEXT:
        return []
    if kind == "yaml":
        typed = _in_yaml(text, place, offset)
    elif kind == "csv":
        typed = None if found is None else _in_csv(found, text, offset)
    else:
        end = text.starts[place.line + 1] if kind == "jsonl" else text.size
        typed = _in_json(Layer(text.whole[start:offset], range(start, offset + 1)), text.whole, (start, end))
    if typed is None:
        return []
    path = re.sub(r"^\[\d+\]\.?", "", typed.path) if kind == "json" else typed.path
    schema = schema_at(found.plan.format if found is not None else "", path)
    known = (
        [name for part in schema for name in part.get("properties", ())]
        if typed.is_key
        else [value for part in schema for value in part.get("enum", ()) if isinstance(value, str)]
    )
    used = Counter(_used(found, text, place, kind, _last(path), typed.is_key))
    words = dict.fromkeys([*known, *(word for word, _ in used.most_common())])
    new = (word for word in words if word not in typed.own and word != typed.prefix and len(word) <= LONGEST)
    fitting = [word for word in new if word.lower().startswith(typed.prefix.lower())]
    return [Proposal(w, typed.is_key, typed.start, offset, typed.is_quoted) for w in fitting[:MOST_PROPOSED]]


MOST_TEXT = 1 << 20
"""Characters before the cursor that are read, at most."""


def _in_json(layer: Layer, whole: str, row: tuple[int, int], column: str = "") -> _Typed | None:
    """What is typed at the end of a JSON text, in the row that is at these places."""
    offset = layer.places[len(layer.text)]
    parsed, path = parse(layer), column
    path = join(path, parsed.path) if parsed.path else path
    while parsed.prefix is not None and not parsed.wants_key and is_structured(parsed.prefix.text):  # JSON in a string
        parsed = parse(parsed.prefix)
        path = join(path, parsed.path) if parsed.path else path
    if not parsed.open:
        return None
    node = json_node(whole, *row) if parsed.wants_key and not column else None
    objects = [part for part in at(node, offset)[1] if part.kind == "{" or part.inner is not None] if node else []
    own = frozenset(str(part.key) for part in (objects[-1].children if objects else ()))
    prefix = parsed.prefix
    start = prefix.places[0] if prefix is not None and prefix.text else offset
    return _Typed(path, parsed.wants_key, prefix.text if prefix else "", start, prefix is not None, own)


def _in_csv(found: Found, text: Text, offset: int) -> _Typed | None:
    """What is typed in a cell that has JSON in quotes."""
    header = found.rows.header
    if header is None or not header.parts:
        return None
    comma = text.whole[header.parts[0].end : header.parts[0].end + 1].strip() or ","
    column, start = 0, 0
    for token in re.finditer(rf'"(?:[^"]|"")*(?:"|$)|[^"{re.escape(comma)}\r\n]+|.|\n', text.whole[:offset]):
        if token[0] == comma:
            column, start = column + 1, token.end()
        elif token[0] in "\r\n":
            column, start = 0, token.end()
    layer = tree.field(text.whole, start, offset).layer
    if column >= len(header.parts) or layer is None or text.whole[start : start + 1] != '"':
        return None
    return _in_json(layer, text.whole, (start, offset), str(header.parts[column].key))


def _in_yaml(text: Text, place: Place, offset: int) -> _Typed | None:
    """What is typed on a line of YAML: a key, or the value behind one."""
    start = text.starts[min(place.line, len(text.lines) - 1)]
    line = _YAML_LINE.fullmatch(text.whole[start:offset])
    if line is None:
        return None
    is_key, prefix = line["name"] is None, line["key"] or line["value"] or ""
    before = line["before"] + (line["name"] or "")
    try:  # what is before it, with another one in its place
        rows = yaml_nodes(f"{text.whole[:start]}{before}{'_: ' if is_key else ''}0\n".encode("utf-8", "surrogatepass"))
    except ValueError:
        return None
    path, way = at(of_yaml(rows[-1]), start + len(before)) if rows else ("", [])
    parent, _, last = path.rpartition(".")
    if len(way) < 2 or (is_key and last != "_"):  # a line of a text
        return None
    own = frozenset(str(part.key) for part in way[-2].parts) if is_key else frozenset[str]()
    return _Typed(parent if is_key else path, is_key, prefix, offset - len(prefix), bool(line["quote"]), own)


_YAML_LINE = re.compile(
    r"""(?P<before>\s*(?:- +)*)(?:(?P<name>[\w$-]+:\ +)(?P<quote>['"]?)(?P<value>[^'"#]*)|(?P<key>[\w$-]*))"""
)


def _last(path: str) -> str:
    """The last name of a path: the same keys and values are used under it elsewhere."""
    return re.sub(r"\[\d*\]", "[]", path).rpartition(".")[2]


def _used(found: Found | None, text: Text, place: Place, kind: str, name: str, keys: bool) -> Iterator[str]:
    for node in _near(found, text, place, kind):
        for path, part in node.walk():
            if _last(path) == name:
                if keys and part.kind == "{":
                    yield from (child.key for child in part.parts if isinstance(child.key, str))
                elif not keys and part.layer is not None and part.layer.text:
                    yield part.layer.text


def _near(found: Found | None, text: Text, place: Place, kind: str) -> Iterator[Node]:
    """Rows near a place of JSON Lines, or the first rows as they were checked."""
    if kind == "jsonl":
        near = range(max(place.line - MOST_READ, 0), min(place.line + MOST_READ, len(text.lines)))
        lines = (text.lines[i] for i in near if i != place.line and len(text.lines[i]) < 1 << 16)
        nodes = [json_node(line, 0, len(line)) for line in lines]
    else:
        nodes = [found.rows.node(row) for row in range(min(found.rows.size, MOST_READ))] if found is not None else []
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


def written(proposal: Proposal, kind: str) -> str:
    """The text of a proposal as a file of this kind has it, in the quotes that are there or in its own."""
    is_plain = kind == "yaml" and not proposal.is_quoted and _YAML_PLAIN.fullmatch(proposal.text) is not None
    text = proposal.text if is_plain else json.dumps(proposal.text, ensure_ascii=False)
    if proposal.is_quoted:
        text = text[1:-1]
    elif proposal.is_key:
        text += ": "
    return text.replace('"', '""') if kind == "csv" else text


_YAML_PLAIN = re.compile(r"[A-Za-z/_][\w/.-]*")
