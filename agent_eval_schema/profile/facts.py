"""The facts of all rows: `fact_batch` makes a few numbers, hashes and names of each, pure and picklable, the same in a
file and on Spark; `Facts` adds them up, batch by batch.

No cell is kept. Only the trace of a row has the tools that its models were offered, when it ran, and whether a prompt
contains the ground truth.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.cells.arrow import bounds, is_text, list_array
from agent_eval_schema.cells.hashing import Array, hash_array
from agent_eval_schema.io.source import Source
from agent_eval_schema.metrics.independence import RowKeys, Units, independent_units
from agent_eval_schema.profile.options import lengths
from agent_eval_schema.runtime.progress import progress
from agent_eval_schema.similarity.shingles import (
    beside_questions,
    contained,
    content_text,
    messages_of,
    normalized,
    question_texts,
    shingled,
)
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.moments import micros_since_epoch, read_iso
from agent_eval_schema.traces.decode import decode_trace
from agent_eval_schema.traces.reading import Reading, attributes
from agent_eval_schema.traces.spans import Trace, value_of
from agent_eval_schema.validation.checked_batch import VERDICT, rows_of, verdict
from agent_eval_schema.validation.checked_run import CheckedRun
from agent_eval_schema.validation.kernel import check_batch
from agent_eval_schema.validation.plan import Plan
from agent_eval_schema.validation.report import Report

STRINGS, LARGE_STRINGS = pa.list_(pa.string()), pa.list_(pa.large_string())

TEXTS = ("request", "response", "truth", "guidelines", "context")
"""What a judge reads: its bytes or tokens are counted."""

NAMES = ("tools_offered", "tools_expected", "tools_called", "uris_expected", "uris_retrieved", "guidelines", "tags")
"""Lists of names whose rows are counted."""

TIMES = ("request_time", "timestamp", "timestamp_ms", "created_at", "date")
"""Columns, unknown to the format, that may say when a row was logged."""


def fact_batch(
    batch: pa.RecordBatch, plan: Plan, texts: tuple[str, ...] = (), tokenizer: str | None = None
) -> pa.RecordBatch:
    """The validation results of the rows of a batch, and what is kept of the rows; `texts` are normalized."""
    checked = check_batch(batch, replace(plan, columns=True))
    columns = _facts(_Cells(rows_of(checked)), texts, tokenizer)
    fields = [*VERDICT, *((name, column.type) for name, column in columns.items())]
    arrays = [*checked.columns[: len(VERDICT)], *columns.values()]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, checked.schema.metadata))


class _Cells:
    """The normalized columns of some rows, each read when it is asked for."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        self.rows, self.size = rows, rows.num_rows

    def column(self, name: str) -> pa.Array:
        return self.rows.column(self.rows.schema.get_field_index(name))

    def texts(self, name: str) -> list[str | None]:
        column = self.column(name)
        return [None] * self.size if column.null_count == self.size else column.to_pylist()

    def parts(self, name: str, key: str) -> pa.ListArray:
        """Of each row the values of a key of its documents or tool calls, in their order."""
        column = self.column(name)
        if column.null_count == self.size:
            return list_array([0] * self.size, pa.array([], pa.string()))
        sizes = pc.list_value_length(column).fill_null(0).to_numpy()
        values = column.flatten().field(key)
        rows = np.repeat(np.arange(self.size), sizes)[np.asarray(values.is_valid())]
        return list_array(np.bincount(rows, minlength=self.size), values.drop_null())


def _distinct(lists: pa.ListArray) -> pa.ListArray:
    """Each value of a list once."""
    values, sizes = lists.flatten(), lists.value_lengths().to_numpy()
    rows = np.repeat(np.arange(len(lists), dtype=np.int64), sizes)
    keys = (rows << 32) | np.asarray(values.dictionary_encode().indices)
    first = np.unique(keys, return_index=True)[1]
    if len(first) == len(values):
        return lists
    return list_array(np.bincount(rows[first], minlength=len(lists)), values.take(pa.array(first)))


def _facts(rows: _Cells, texts: Sequence[str], tokenizer: str | None) -> dict[str, pa.Array]:
    """What is kept of each row: the hash of its question (0 if there is none), the number and the pairs of its words,
    its script and turns; the hashes of its session and its first expected document; the lengths of its texts, its
    chunks, the lists of names; the microseconds since 1970 UTC when it was logged, where its own prompt contains its
    ground truth, and the given texts that contain its question (2 i) or its truth (2 i + 1)."""
    chats = messages_of(rows.texts("request"))
    inputs = rows.texts("inputs")
    questions = question_texts(chats)
    pairs = zip(rows.texts("expected_response"), rows.texts("expected_facts"), strict=True)
    truths = [[t for t in (answer, *(facts or ())) if t] for answer, facts in pairs]
    traced = _traced(rows, truths)
    named: list[Any] = rows.texts("guidelines")
    tags: list[Any] = rows.texts("tags")
    guidelines = [
        list(dict.fromkeys(text for _, texts in cell for text in texts or ())) if cell else [] for cell in named
    ]
    of = shingled(questions, beside_questions(chats, questions, inputs))
    session, document = _beside_question(rows)
    response, called = rows.column("response"), _distinct(rows.parts("predicted_trajectory", "tool_name"))
    read = {
        "request": list_array([1] * rows.size, pa.array(questions, pa.string())),
        "response": list_array(response.is_valid(), response.drop_null()),
        "truth": pa.array(truths, LARGE_STRINGS),
        "guidelines": pa.array(guidelines, STRINGS),
        "context": rows.parts("retrieved_context", "content"),
    }
    return {
        "exact": pa.array(of.exact),
        "words": pa.array(of.words),
        "shingles": list_array(np.diff(of.ends), pa.array(of.shingles)),
        "script": pa.array([script_of(q) for q in questions], pa.string()),
        "turns": pa.array([[m.role for m in messages].count("user") for messages in chats], pa.int64()),
        "session": session,
        "document": document,
        **{f"{name}_size": pa.array(lengths(read[name], tokenizer)) for name in TEXTS},
        "chunks": pc.list_value_length(rows.column("retrieved_context")).fill_null(0).cast(pa.int64()),
        "tools_offered": _offered(called, inputs, traced),
        "tools_expected": _distinct(rows.parts("reference_trajectory", "tool_name")),
        "tools_called": called,
        "uris_expected": _distinct(rows.parts("expected_retrieved_context", "doc_uri")),
        "uris_retrieved": _distinct(rows.parts("retrieved_context", "doc_uri")),
        "guidelines": read["guidelines"],
        "tags": pa.array([[f"{k}={v}" for k, v in t] if t else [] for t in tags], STRINGS),
        "moment": pa.array(_moments(rows, traced), pa.int64()),
        "in_prompt": pa.array([t.in_prompt for t in traced], pa.string()),
        "found": pa.array(_found(questions, truths, texts), pa.list_(pa.int32())),
    }


# --- questions
def script_of(text: str) -> str | None:
    """The script of most letters of a text: Latin, Cyrillic, Arabic, Cjk, Hiragana …; None if it has no letter."""
    if text.isascii():
        return None if text.strip("0123456789 .,;:?!-+*/=()'\"\n") == "" else "Latin"
    head = text[:500]
    plain = head.encode("ascii", "ignore")
    scripts = ["Latin"] * (len(plain) - len(plain.translate(None, _LETTERS)))
    scripts += [_script(c) for c in _BEYOND_ASCII(head) if c.isalpha()]
    if not scripts:
        return None
    return "Japanese" if "Japanese" in scripts else max(dict.fromkeys(scripts), key=scripts.count)


_LETTERS = string.ascii_letters.encode()
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]").findall


@lru_cache(maxsize=1 << 14)
def _script(letter: str) -> str:
    name = unicodedata.name(letter, "Other").split(" ")[0].split("-")[0].title()
    return {"Cjk": "Chinese", "Hiragana": "Japanese", "Katakana": "Japanese", "Hangul": "Korean"}.get(name, name)


def question_of(rows: pa.RecordBatch) -> list[str]:
    """What each normalized row asks, without what else its inputs contain."""
    return question_texts(messages_of(_Cells(rows).texts("request")))


def unit_keys(rows: pa.RecordBatch) -> list[Array]:
    """What joins normalized rows besides their questions: hashes of their sessions and first expected documents."""
    return [key.fill_null(0).to_numpy(zero_copy_only=False) for key in _beside_question(_Cells(rows))]


def _beside_question(rows: _Cells) -> Iterator[pa.Array]:
    yield hash_array(rows.column("session_id"))
    expected = rows.parts("expected_retrieved_context", "doc_uri")
    sizes = expected.value_lengths().to_numpy()
    firsts = pa.array(bounds(sizes)[:-1], mask=sizes == 0)
    yield hash_array(expected.flatten().take(firsts))


def shown_truths(rows: pa.RecordBatch) -> list[str | None]:
    """The ground truth of each normalized row as one text."""
    cells = _Cells(rows)
    pairs = zip(cells.texts("expected_response"), cells.texts("expected_facts"), strict=True)
    return ["; ".join(facts) if facts else answer for answer, facts in pairs]


# --- what else is counted
def _offered(called: pa.ListArray, inputs: list[str | None], traced: list[Traced]) -> pa.ListArray:
    """The tools that the inputs and the traces name, and those that were called."""
    named = [_tools_of(cell) if cell is not None and '"tools"' in cell else [] for cell in inputs]
    if not any(named) and not any([trace.tools for trace in traced]):
        return called
    rows = zip(called.to_pylist(), named, traced, strict=True)
    return pa.array([sorted({*names, *tools, *trace.tools}) for names, tools, trace in rows], STRINGS)


def _tools_of(inputs: str) -> list[str]:
    value = jsontext.parse(inputs)
    return tool_names(value.get("tools")) if isinstance(value, dict) else []


def _traced(rows: _Cells, truths: list[list[str]]) -> list[Traced]:
    traces = rows.texts("trace")
    if traces.count(None) == rows.size:
        return [Traced()] * rows.size
    contents = rows.parts("retrieved_context", "content").to_pylist()
    cells = zip(traces, truths, contents, strict=True)
    return [Traced() if trace is None else read_trace(trace, *others) for trace, *others in cells]


def _moments(rows: _Cells, traced: list[Traced]) -> list[int | None]:
    moments = [t.moment for t in traced]
    for name in TIMES:
        if name in rows.rows.schema.names:
            for i, moment in enumerate(_times(rows.column(name))):
                moments[i] = moment if moments[i] is None else moments[i]
    return moments


def _times(column: pa.Array) -> list[int | None]:
    if pa.types.is_temporal(column.type) and not pa.types.is_time(column.type):
        times: list[int | None] = column.cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()
        return times
    return [_moment(v) for v in column.to_pylist()] if is_text(column.type) or pa.types.is_integer(column.type) else []


def _moment(value: Any) -> int | None:
    text = str(value).strip('"')
    try:
        # Of numbers those since 2001 in milliseconds are a time.
        return int(text) * 1_000 if text.isdecimal() and len(text) == 13 else micros_since_epoch(read_iso(text))
    except (ValueError, OverflowError):
        return None


def _found(questions: list[str], truths: list[list[str]], texts: Sequence[str]) -> list[list[int] | None]:
    if not texts:
        return [None] * len(questions)
    pairs = zip(contained(questions, texts), [contained(parts, texts) for parts in truths], strict=True)
    return [[*(2 * i for i in at), *sorted({2 * i + 1 for one in others for i in one})] for at, others in pairs]


SYSTEM_PROMPT, EARLIER_MESSAGE = "the system prompt", "an earlier message of the prompt"


class Traced(Struct, frozen=True):
    """The facts of a trace: tool names, start (microseconds since 1970), where a prompt has the ground truth."""

    tools: tuple[str, ...] = ()
    moment: int | None = None
    in_prompt: str | None = None


def read_trace(text: str, truths: Sequence[str], retrieved: Sequence[str]) -> Traced:
    """What a trace contains. A ground truth that a `retrieved` document contains may be in the prompt."""
    trace = decode_trace(text)
    if not isinstance(trace, Trace):
        return Traced()
    reading = Reading(trace)
    spans = reading.models if reading.root is None else [*reading.models, reading.root]
    prompts = [value_of(attributes(span).inputs) for span in spans]
    prompts = [p for p in prompts if isinstance(p, dict)]
    tools = [name for p in prompts for name in tool_names(p.get("tools"))]
    tools += [name for span in trace.spans for name in tool_names(value_of(attributes(span).tools))]
    start = None if reading.root is None else reading.root.start
    in_prompt = _place(prompts, truths, retrieved) if truths else None
    return Traced(tuple(dict.fromkeys(tools)), None if start is None else start // 1_000, in_prompt)


def _place(prompts: list[dict[str, Any]], truths: Sequence[str], retrieved: Sequence[str]) -> str | None:
    documents = normalized(retrieved)
    hidden = [t for t, at in zip(truths, contained(truths, documents), strict=True) if not at]
    if not hidden:
        return None
    system, earlier = list[str](), list[str]()
    for messages in map(_messages, prompts):
        system += [content_text(m.get("content")) for m in messages if m.get("role") in ("system", "developer")]
        last = max((i for i, m in enumerate(messages) if m.get("role") == "user"), default=0)
        before = [m for m in messages[:last] if m.get("role") in ("user", "assistant")]
        earlier += [content_text(m.get("content")) for m in before]
    for place, texts in ((SYSTEM_PROMPT, system), (EARLIER_MESSAGE, earlier)):
        if any(contained(hidden, normalized(texts))):
            return place
    return None


def _messages(prompt: dict[str, Any]) -> list[dict[str, Any]]:
    messages = prompt.get("messages")
    return [m for m in messages if isinstance(m, dict)] if isinstance(messages, list) else []


def tool_names(tools: Any) -> list[str]:
    """The names in the definitions of tools, as a request to a chat model has them."""
    functions = [t.get("function", t) for t in tools if isinstance(t, dict)] if isinstance(tools, list) else []
    return [f["name"] for f in functions if isinstance(f, dict) and isinstance(f.get("name"), str)]


# --- all rows
PER_ROW = ("exact", "words", "session", "document", "chunks", *(f"{name}_size" for name in TEXTS))
DAY = 86_400 * 1_000_000


class Facts:
    """What is known of the rows that a run checks. Arrays have one entry per row; counts are of valid rows. `format` is
    that of the data whose rows the plan reads."""

    def __init__(self, run: CheckedRun, documents: frozenset[str] | None) -> None:
        self.run, self.source, self.plan = run, run.source, run.plan
        self.format = run.plan.format
        self.row_count = 0
        self._columns: dict[str, list[Array]] = {name: [] for name in (*PER_ROW, "truth", "id")}
        self._shingles: list[Array] = []
        self._sizes: list[Array] = []
        self.names = {name: Counter[str]() for name in NAMES}
        self.scripts, self.turns, self.days = Counter[str](), Counter[int](), Counter[int]()
        self.in_prompt: dict[str, list[int]] = {SYSTEM_PROMPT: [], EARLIER_MESSAGE: []}
        self.found: dict[int, list[int]] = {}
        self.guideline_rows = self.unknown_documents = 0
        self.has_documents = documents is not None
        self._documents = None if documents is None else pa.array(sorted(documents), pa.string())

    def add(self, facts: pa.RecordBatch) -> None:
        """Take in the facts of the next rows."""
        start = self.row_count
        self.row_count += facts.num_rows
        valid = np.asarray(verdict(facts, "valid")).astype(bool)
        for name in PER_ROW:
            self._columns[name].append(np.asarray(facts.column(name).fill_null(0)).copy())
        self._columns["truth"].append(np.asarray(verdict(facts, "truth_hash").fill_null(0)).copy())
        self._columns["id"].append(np.asarray(hash_array(verdict(facts, "id")).fill_null(0)))
        shingles = facts.column("shingles")
        sizes = np.asarray(pc.list_value_length(shingles)).astype(np.int64)
        self._shingles.append(np.asarray(shingles.flatten())[np.repeat(valid, sizes)])
        self._sizes.append(np.where(valid, sizes, 0))
        self._count(facts, valid, start)

    def _count(self, facts: pa.RecordBatch, valid: Array, start: int) -> None:
        mask = pa.array(valid)
        for name in NAMES:
            self.names[name].update(_counts(facts.column(name).filter(mask).flatten()))
        guidelines = pc.list_value_length(facts.column("guidelines").filter(mask)).fill_null(0)
        self.guideline_rows += int(np.count_nonzero(np.asarray(guidelines)))
        if self._documents is not None:
            self.unknown_documents += _outside(facts.column("uris_expected").filter(mask), self._documents)
        self.scripts.update(_counts(facts.column("script").filter(mask)))
        self.turns.update(_counts(facts.column("turns").filter(mask)))
        moments = np.asarray(facts.column("moment").filter(mask).drop_null())
        self.days.update((moments // DAY).tolist())
        for row in np.flatnonzero(valid & np.asarray(facts.column("in_prompt").is_valid())).tolist():
            self.in_prompt[facts.column("in_prompt")[row].as_py()].append(start + row)
        codes = facts.column("found")
        for row in np.flatnonzero(valid & (np.asarray(pc.list_value_length(codes).fill_null(0)) > 0)).tolist():
            for code in codes[row].as_py():
                self.found.setdefault(code, []).append(start + row)

    def array(self, name: str) -> Array:
        """A column of all rows: the numbers of PER_ROW, and the hashes (0: absent) of `truth` and `id`."""
        parts = self._columns[name]
        if len(parts) > 1:
            parts[:] = [np.concatenate(parts)]
        return parts[0] if parts else np.zeros(0, np.uint64)

    @cached_property
    def shingles(self) -> tuple[Array, Array]:
        """The shingles of the questions of valid rows, and where those of each row end."""
        sizes = np.concatenate([*self._sizes, np.zeros(0, np.int64)])
        flat, end = np.zeros(int(sizes.sum()), np.uint32), 0
        for part in _taken(self._shingles):  # they may be a gigabyte, which is not to be there twice
            flat[end : end + len(part)] = part
            end += len(part)
        return flat, bounds(sizes)

    @cached_property
    def report(self) -> Report:
        """The validation report, when all rows were added."""
        return Report(self.run)

    @property
    def valid(self) -> Array:
        return self.run.builder.valid

    @cached_property
    def masks(self) -> Array:
        return self.run.builder.masks

    @cached_property
    def units(self) -> Units:
        """The independent units of the valid rows."""
        keys = (np.where(self.valid, self.array(name), 0) for name in ("session", "exact", "document"))
        return independent_units(RowKeys(*(key.astype(np.uint64) for key in keys)))

    def cluster_words(self) -> str:
        """What makes rows of different questions one unit, "" if nothing does."""
        words = {"session": "session", "document": "expected document"}
        return " or ".join(word for kind, word in words.items() if kind in self.units.kinds)


def gather(
    source: Source,
    plan: Plan,
    texts: tuple[str, ...] = (),
    documents: frozenset[str] | None = None,
    tokenizer: str | None = None,
) -> Facts:
    """The facts of all rows of a source, made where the rows are. With a list of documents, rows that expect another
    one are counted; with a tokenizer the tokens of the texts are, else their bytes."""
    run = CheckedRun(source, plan, check=partial(fact_batch, texts=texts, tokenizer=tokenizer))
    facts = Facts(run, documents)
    with progress(source.read_share) as so_far:
        for batch in run.batches():
            facts.add(batch)
            so_far.add(batch.num_rows)
    return facts


def _taken(parts: list[Array]) -> Iterator[Array]:
    """The parts, in their order; each is gone from the list."""
    parts.reverse()
    while parts:
        yield parts.pop()


def _outside(lists: pa.Array, known: pa.Array) -> int:
    """The lists with a value that is not known."""
    lengths = np.asarray(pc.list_value_length(lists).fill_null(0))
    unknown = ~np.asarray(pc.is_in(lists.flatten(), value_set=known)).astype(bool)
    return len(np.unique(np.repeat(np.arange(len(lists)), lengths)[unknown]))


def _counts(values: pa.Array) -> dict[Any, int]:
    return {e["values"]: e["counts"] for e in values.drop_null().value_counts().to_pylist()}
