"""Validated rows → a checked batch: the result of each row and, if the plan requests them, the normalized columns."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import methodcaller
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema.cells.arrow import rows_beginning_with, rows_passing, text_array
from agent_eval_schema.cells.cells import Texts, read_cells
from agent_eval_schema.cells.hashing import hash_array, hash_words
from agent_eval_schema.cells.notes import NOTE, IssueLog, filled_rows, is_hidden
from agent_eval_schema.cells.sizes import one_batch
from agent_eval_schema.decoding.requests import Chat, last_user_text
from agent_eval_schema.decoding.values import FAILED, DecodedColumn, Mask, NoCells
from agent_eval_schema.formats.adk import RUBRICS
from agent_eval_schema.formats.format import Format
from agent_eval_schema.formats.mlflow import is_test_case
from agent_eval_schema.formats.ragas import USER_INPUT
from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.metrics.catalog import BIT
from agent_eval_schema.render.phrases import plural
from agent_eval_schema.rule import Severity
from agent_eval_schema.rules import RULES
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text import jsontext
from agent_eval_schema.traces.derive import Derived
from agent_eval_schema.validation.doc_uris import nearness
from agent_eval_schema.validation.fill_from_traces import leave_to_traces
from agent_eval_schema.validation.normalized_columns import FIELDS, normalized
from agent_eval_schema.validation.originals import ORIGINALS, original, outputs_of, request_keys
from agent_eval_schema.validation.plan import Plan
from agent_eval_schema.validation.rows import Rows


def assemble(rows: Rows) -> pa.RecordBatch:
    plan, log, values = rows.plan, _reported(rows.log, rows.plan), rows.values
    valid = np.ones(rows.size, bool)
    valid[list(log.failed)] = False
    usable = valid.copy()
    for row, note in zip(rows.log.rows, rows.log.notes, strict=True) if plan.unselected else ():
        usable[row] &= note[0] not in plan.unselected or RULES[note[0]].severity is not Severity.ERROR
    presence = np.zeros(rows.size, np.uint64)
    masks: dict[str, Mask] = {}
    for field, name, holds in _PRESENCE:
        if name in values:
            masks[field] = present = holds(values[name])
            if name in rows.uncounted:
                present = present & ~np.isin(np.arange(rows.size), rows.uncounted[name])
            presence |= present * np.uint64(BIT[field])
    for field, name, holds_text in _PASSED_THROUGH:
        if name in rows.names:
            presence |= np.asarray(holds_text(_texts_in(rows, name)).fill_null(False)) * np.uint64(BIT[field])
    answers, truth_texts = values["response"].texts(), values["expected_response"].texts()
    masks["judged_text"] = np.ones(rows.size, bool)
    if _may_be_values(answers):
        masks["judged_text"] = _are_texts(rows)
    if USER_INPUT in rows.batch.schema.names:
        masks["conversation"] = _are_conversations(rows)
    else:  # as Ragas is given the row: with calls, or with messages before the question
        masks["conversation"] = masks.get("predicted_trajectory", np.zeros(rows.size, bool))
        if (requests := values["request"]).array is None:
            long = [r.has_history if r.__class__ is Chat else r.__class__ is list and len(r) > 1 for r in requests]
            masks["conversation"] = masks["conversation"] | np.array(long, bool)
    if plan.outputs != "provided" and "inputs" in rows.batch.schema.names:
        masks["simulated"] = _simulated(rows)
    derived = () if rows.derived is None else rows.derived
    for field, present in _what_is_read(masks, truth_texts, plan.outputs, RUBRICS in rows.names, derived).items():
        presence |= present * np.uint64(BIT[field])
    truths = _truths(values["expected_response"], values["expected_facts"])
    questions = values["request"].array
    if questions is None:
        questions = pa.array(map(last_user_text, values["request"]), pa.large_string())
    nearness_of, pairs = nearness(values["expected_retrieved_context"], values["retrieved_context"])
    of_traces = pa.repeat(False, rows.size)
    if rows.derived is not None:  # an ID may be that of the trace, from which it was derived now or in an earlier run
        ids = zip(values["request_id"], rows.derived, strict=True)
        of_traces = pa.array([d is not None and id is not None and id == d.request_id for id, d in ids], pa.bool_())
    columns = {
        "valid": pa.array(valid),
        "usable": pa.array(usable),
        "issues": log.to_arrow(),
        "presence": pa.array(presence, pa.uint64()),
        "id": values["request_id"].texts().cast(pa.string()),
        "id_of_trace": of_traces,
        "request_hash": hash_words(request_keys(rows, truths.is_valid()) if truths.null_count < rows.size else truths),
        "truth_hash": hash_array(truths),
        "answer_hash": hash_array(answers),
        "copied": pc.equal(truth_texts, answers),
        "nearness": pa.array(nearness_of, pa.int8()),
        "near_pair": pa.array(pairs, pa.list_(pa.string())),
        "derived": pa.array(rows.filled, pa.uint32()),
        "request_length": pc.utf8_length(questions).cast(pa.float64()),
        "response_length": pc.utf8_length(answers).cast(pa.float64()),
        "latency_seconds": _numbers(values["latency_seconds"]),
        "total_token_count": _numbers(values["total_token_count"]),
        "tool_calls": _numbers(values["predicted_trajectory"], len),
        "mlflow_reads": pa.array(rows.trace_states, pa.bool_())
        if plan.beside_traces
        else pa.nulls(rows.size, pa.bool_()),
    }
    verdict, fields = [columns[field.name] for field in VERDICT], list(VERDICT)
    if plan.columns:
        if plan.beside_traces:
            leave_to_traces(rows)
        for name in COLUMNS:
            verdict.append(original(name, rows) if name in ORIGINALS else normalized(name, rows))
            fields.append(FIELDS[name])
        for field, array in zip(rows.batch.schema, rows.batch.columns, strict=True):
            if field.name not in COLUMNS and not is_hidden(field):
                verdict.append(array)
                fields.append(field)
    batch = pa.RecordBatch.from_arrays(verdict, schema=pa.schema(fields))
    misspelled = {wrong: int(filled_rows(rows.batch, wrong).sum()) for wrong in rows.misspelled.values()}
    # the columns that can be reported: a DataFrame of search_traces has columns of its own, which are expected
    form = find_format(plan.format)
    schema = rows.batch.schema if form.is_rows else ()
    names = json.dumps([f.name for f in schema if not is_hidden(f) and f.name not in form.own_columns])
    return batch.replace_schema_metadata({"columns": names, "misspelled": json.dumps(misspelled)})


def join(parts: Sequence[pa.RecordBatch], plan: Plan) -> pa.RecordBatch:
    """One checked batch of several. Columns that are passed through may be missing in some of them, and names of the
    first columns occur twice."""
    own = len(VERDICT) + len(COLUMNS) * plan.columns
    more = {field.name: field for part in parts for field in list(part.schema)[own:]}
    schema = pa.schema([*list(parts[0].schema)[:own], *more.values()])

    def completed(part: pa.RecordBatch) -> pa.RecordBatch:
        columns = dict(zip(part.schema.names[own:], part.columns[own:], strict=True))
        rest = [columns.get(name, pa.nulls(part.num_rows, field.type)) for name, field in more.items()]
        return pa.RecordBatch.from_arrays([*part.columns[:own], *rest], schema=schema)

    unknown, misspelled = dict[str, None](), Counter[str]()
    for part in parts:
        unknown.update(dict.fromkeys(json.loads(part.schema.metadata[b"columns"])))
        misspelled.update(json.loads(part.schema.metadata[b"misspelled"]))
    metadata = {"columns": json.dumps(list(unknown)), "misspelled": json.dumps(misspelled)}
    return one_batch(map(completed, parts)).replace_schema_metadata(metadata)


def _what_is_read(
    masks: dict[str, Mask], truth_texts: pa.Array, outputs: str, has_rubrics: bool, derived: Sequence[Derived | None]
) -> dict[str, Mask]:
    """The fields of the metric catalog that no single column shows, by what a platform reads of a row."""
    none = np.zeros(len(truth_texts), bool)
    # MLflow reads a trace, or the one that is made of the columns of a row without
    untraced, single = ~masks.get("trace", none), pc.equal(pc.binary_length(truth_texts), 1)
    read = {
        "retriever_span": untraced & masks.get("retrieved_content", none),
        "tool_span": untraced & masks.get("predicted_trajectory", none),
        "one_truth": masks.get("expected_response", none) ^ masks.get("expected_facts", none),
        "recorded_session": masks.get("session" if outputs == "provided" else "simulated", none),
        "judged_text": masks["judged_text"],
        "single_turn": ~masks.get("conversation", none),
        "letter": np.asarray(pc.and_(single, pc.ascii_is_upper(truth_texts)).fill_null(False)),
        # as rubrics, guidelines of another format are of the response
        "response_rubrics": none if has_rubrics else masks.get("guidelines", none),
    }
    if derived:
        read["retriever_span"] |= np.array([d is not None and d.has_retriever_span for d in derived], bool)
        read["tool_span"] |= np.array([d is not None and d.has_tool_span for d in derived], bool)
    return read


def _reported(log: IssueLog, plan: Plan) -> IssueLog:
    """The log without the rules that are disabled, with the names that the columns have in the user's table."""
    if not log.rows or (RULES.keys() <= plan.codes and not plan.unselected and not plan.origins):
        return log
    reported = IssueLog(log.size)
    for row, (code, column, path, message, hint) in zip(log.rows, log.notes, strict=True):
        if code in plan.codes:
            origin = plan.origins.get(column or "")
            if origin is not None:
                path, column = origin + (path or "").removeprefix(column or ""), origin.partition(".")[0]
            reported.rows.append(row)
            reported.notes.append((code, column, path, message, hint))
            if RULES[code].severity is Severity.ERROR:
                reported.failed.add(row)
    return reported


def _numbers(column: DecodedColumn, read: Callable[[Any], int] | None = None) -> pa.Array:
    if isinstance(column, NoCells):
        return pa.nulls(len(column), pa.float64())
    values = column if read is None else [v if v is None or v is FAILED else read(v) for v in column]
    numbers = [None if v is None or v is FAILED or not -_HUGE < v < _HUGE else float(v) for v in values]
    return pa.array(numbers, pa.float64())


_HUGE = 1 << 63


def _simulated(rows: Rows) -> Mask:
    """Whether MLflow will simulate a conversation for a row, and so record a session."""
    cells = read_cells(rows.batch, "inputs")
    assert cells is not None
    texts = cells.texts
    return np.array([bool(t and '"goal"' in t and is_test_case(jsontext.parse_leniently(t))) for t in texts], bool)


def _are_conversations(rows: Rows) -> Mask:
    """Whether a row of Ragas is a conversation: the metrics of a single turn reject it, though its last message was
    read as the answer."""
    return np.asarray(pc.match_substring_regex(_texts_in(rows, USER_INPUT), r"^\s*\[").fill_null(False))


def _texts_in(rows: Rows, name: str) -> pa.Array:
    """The texts of a column, which may be lists or objects as Arrow has them; a JSON string is its text."""
    cells = read_cells(rows.batch, name)
    assert cells is not None
    if isinstance(cells.texts, Texts):
        return cells.texts.array.cast(pa.string())
    return pa.array(map(_text_of, cells.texts) if cells.json else cells.texts, pa.string())


def _text_of(cell: str | None) -> str | None:
    value = jsontext.parse(cell) if cell is not None and cell.startswith('"') else cell
    return value if isinstance(value, str) else cell


def demands_one_kind(form: Format, outputs: str) -> bool:
    """Whether the rows of a file are to be of one kind: not where the agent will complete them, nor, where outputs are
    given, of sessions, which were recorded."""
    field = form.one_kind[0]
    is_open = (field == "response") != (outputs == "provided") and field in ("response", "recorded_session")
    return field != "" and not is_open


def kinds_of(form: Format, masks: Mapping[int, int]) -> Counter[bool]:
    """The rows of each kind, by their presence masks and counts, if the platform of a format loads rows of
    one kind per file: those with the field that distinguishes them (True), and those without."""
    counts = Counter[bool]()
    for mask, rows in masks.items():
        counts[bool(form.one_kind[0] and mask & BIT[form.one_kind[0]])] += rows
    return counts


def mixed_kinds(form: Format, masks: Mapping[int, int]) -> str:
    """What is wrong with rows, counted by presence mask, if the platform of a format rejects rows of two kinds in one
    file; empty if they are of one kind."""
    _, having, lacking = form.one_kind
    counts = kinds_of(form, masks).most_common()
    words = " and ".join(plural(rows, having if has else lacking) for has, rows in counts)
    return f"expected rows of one kind, got {words}" if len(counts) > 1 else ""


def _may_be_values(answers: pa.Array) -> bool:
    """Whether the text of some answer may be that of a JSON number, boolean or list."""
    is_value = partial(pc.match_substring_regex, pattern=r"^\s*(?:\[|(?:-?\d[\d.eE+-]*|true|false)\s*$)")
    return bool(rows_passing(answers, rows_beginning_with(answers, b" \t\n\v\f\r-[0123456789tf"), is_value))


def _are_texts(rows: Rows) -> Mask:
    """Whether the answer of a row, which may be an original, is none of the numbers and booleans that some of
    MLflow's scorers make no text: of a list they read the first entry."""
    mask = np.ones(rows.size, bool)
    for row, text in enumerate(outputs_of(rows)):
        value = jsontext.parse(text) if text else None
        while isinstance(value, list) and value:
            value = value[0]
        mask[row] = not isinstance(value, int | float)
    return mask


def _truths(responses: DecodedColumn, facts: DecodedColumn) -> pa.Array:
    """The ground truth of each row as one text to compare."""
    with_facts = np.flatnonzero(facts.filled()).tolist()
    if not with_facts:
        return responses.texts()
    texts = responses.texts().to_pylist()
    for row in with_facts:
        texts[row] = jsontext.encode(facts[row])
    return text_array(texts)


def _with_key(key: str, expected: DecodedColumn) -> Mask:
    """Whether an expectation of the user's own has this name, by which a third-party scorer of MLflow reads it."""
    return np.array([isinstance(v, dict) and bool(v.get(key)) for v in expected], bool)


_PRESENCE: tuple[tuple[str, str, Callable[[DecodedColumn], Mask]], ...] = (
    ("request", "request", methodcaller("given")),
    ("response", "response", methodcaller("with_text")),
    ("retrieved_content", "retrieved_context", methodcaller("with_content")),
    ("retrieved_uri", "retrieved_context", methodcaller("with_uri")),
    ("expected_uri", "expected_retrieved_context", methodcaller("filled")),
    ("expected_response", "expected_response", methodcaller("given")),
    ("expected_facts", "expected_facts", methodcaller("filled")),
    ("guidelines", "guidelines", methodcaller("filled")),
    ("trace", "trace", methodcaller("given")),
    ("input_tokens", "input_token_count", methodcaller("given")),
    ("output_tokens", "output_token_count", methodcaller("given")),
    ("total_tokens", "total_token_count", methodcaller("given")),
    ("latency", "latency_seconds", methodcaller("given")),
    ("session", "session_id", methodcaller("filled")),
    ("failure", "failure", methodcaller("given")),
    ("predicted_trajectory", "predicted_trajectory", methodcaller("filled")),
    ("reference_trajectory", "reference_trajectory", methodcaller("filled")),
    *((key, "custom_expected", partial(_with_key, key)) for key in ("expected_output", "rubrics", "reference_topics")),
)
"""A field of the metric catalog, the column that holds it, and which of its cells count."""

_PASSED_THROUGH: tuple[tuple[str, str, Callable[[pa.Array], pa.Array]], ...] = (
    ("tool_definitions", "tool_definitions", partial(pc.match_substring, pattern='"name"')),
    ("guidelines_context", "guidelines_context", partial(pc.match_substring, pattern=":")),
    ("retrieved_documents", "azure_retrieved_documents", partial(pc.match_substring, pattern='"relevance_score"')),
    ("calls_in_response", "azure_response", partial(pc.match_substring, pattern='"tool_call"')),
    ("tool_results", "azure_response", partial(pc.match_substring, pattern='"tool_result"')),
    ("scenario", "scenario", partial(pc.match_substring_regex, pattern=r"\S")),
    ("choices", "choices", partial(pc.match_substring_regex, pattern=r'[^\s\[\],"]')),  # Inspect splits a text
    ("response_rubrics", RUBRICS, partial(pc.match_substring, pattern='"FINAL_RESPONSE_QUALITY"')),
    ("tool_use_rubrics", RUBRICS, partial(pc.match_substring, pattern='"TOOL_USE_QUALITY"')),
    ("trajectory_rubrics", RUBRICS, partial(pc.match_substring, pattern='"TRAJECTORY_QUALITY"')),
)
"""Fields in columns that are not ours, and a test of their JSON text."""

COLUMNS_OF_FIELD: dict[str, tuple[str, ...]] = {
    **{field: (name,) for field, name, _ in (*_PRESENCE, *_PASSED_THROUGH)},
    "retriever_span": ("trace", "retrieved_context"),
    "tool_span": ("trace", "predicted_trajectory"),
    "one_truth": ("expected_response", "expected_facts"),
    "recorded_session": ("session_id", "trace"),
    "judged_text": ("response",),
    "letter": ("expected_response",),
    "single_turn": ("request",),
}
"""The columns that can hold a field of the metric catalog."""

VERDICT = pa.schema(
    [
        ("valid", pa.bool_()),
        ("usable", pa.bool_()),  # valid also by the rules outside of a selection: the row can support metrics
        ("issues", pa.list_(NOTE)),
        ("presence", pa.uint64()),  # one bit per field of the metric catalog
        ("id", pa.string()),
        ("id_of_trace", pa.bool_()),  # whether the ID is that of the trace, and not one of the user
        ("request_hash", pa.uint64()),
        ("truth_hash", pa.uint64()),
        ("answer_hash", pa.uint64()),
        ("copied", pa.bool_()),  # whether the ground truth is the response
        ("nearness", pa.int8()),  # of expected and retrieved doc_uris, see doc_uris.py
        ("near_pair", pa.list_(pa.string())),
        ("derived", pa.uint32()),  # one bit per canonical column that was taken from the trace
        ("request_length", pa.float64()),  # these five for the distributions that a report shows
        ("response_length", pa.float64()),
        ("latency_seconds", pa.float64()),
        ("total_token_count", pa.float64()),
        ("tool_calls", pa.float64()),
        ("mlflow_reads", pa.bool_()),  # the trace as it is; only needed of traces that are passed on
    ]
)


def verdict(checked: pa.RecordBatch, name: str) -> pa.Array:
    return checked.column(VERDICT.get_field_index(name))


def rows_of(checked: pa.RecordBatch) -> pa.RecordBatch:
    """The normalized and the passed-through columns."""
    return checked.select(list(range(len(VERDICT), checked.num_columns)))
