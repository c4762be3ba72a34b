"""The benchmark's data: seeded, distinct rows that are written as they are made, so a file may be larger than memory.

    rows(start, stop) ──▶ record batches of BATCH_ROWS ──▶ Parquet │ JSONL │ Parquet in one row group

A trace is what ``mlflow.entities.Trace.to_json`` of MLflow 3 writes (span attributes are JSON text inside the JSON,
ids are base64, times are nanoseconds): AGENT → two RETRIEVER, two TOOL and two CHAT_MODEL spans, the last of which
carries the documents in its prompt; about 20 KB. A plain row has a request, a response, an expected response and the
documents retrieved and expected. A payload is a logged call of 5 KB, in half of them with a short trace inside.

Each batch has its own seed, so the same rows come out in whatever file they are written to.

    python -m tests.benchmarks.data traces.parquet 100000 /some/folder/file.parquet
"""

from __future__ import annotations

import base64
import datetime
import json
import os
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.benchmarks import ces

Row = dict[str, Any]
Writer = Callable[[Path, pa.Schema, Iterable[pa.RecordBatch]], None]

BATCH_ROWS = 2_000
"""A row group of traces is one batch: 40 MB of text."""
GROUP_BATCHES = 20
"""A row group of plain rows is 20 batches, 40,000 rows: 30 MB of text."""

DOCUMENTS = pa.list_(pa.struct([("doc_uri", pa.string()), ("content", pa.string())]))
TRACE_SCHEMA = pa.schema([("request_id", pa.string()), ("trace", pa.string())])
LINE_SCHEMA = pa.schema([("text", pa.string())])
PLAIN_SCHEMA = pa.schema(
    [
        ("request", pa.string()),
        ("response", pa.string()),
        ("expected_response", pa.string()),
        ("retrieved_context", DOCUMENTS),
        ("expected_retrieved_context", DOCUMENTS),
    ]
)

PAYLOAD_SCHEMA = pa.schema(
    [
        ("databricks_request_id", pa.string()),
        ("request_date", pa.date32()),
        ("client_request_id", pa.string()),
        ("request_time", pa.timestamp("us", "UTC")),
        ("status_code", pa.int32()),
        ("sampling_fraction", pa.float64()),
        ("execution_duration_ms", pa.int64()),
        ("request", pa.string()),
        ("response", pa.string()),
        ("logging_error_codes", pa.list_(pa.string())),
        ("served_entity_id", pa.string()),
        ("requester", pa.string()),
    ]
)
TRAJECTORY_SCHEMA = pa.schema([("predicted_trajectory", pa.string()), ("reference_trajectory", pa.string())])

VOCABULARY = """
access account agent alert answer archive attribute audit average backup balance batch billing branch budget cache
catalog change chart cluster column commit compute condition connection contract copy cost count customer dashboard
dataset default delta deployment discount document driver endpoint engine error estimate event example export failure
feature file filter folder forecast format function gateway grant group growth history identifier import index input
instance interval invoice job join key label lakehouse latency layer lease limit lineage link location log margin
market measure member memory merge message metric migration model month node notebook number object option order
outage output owner parameter partition password payment permission pipeline plan policy pool position price principal
process product profile project prompt provider quality quarter query queue quota range rate record refund region
register release renewal replica report request resource response result retention retry return revenue review role
rollback row rule runtime sample schedule schema score secret segment server service session shard share shipment
signal snapshot source space span stage statement status storage stream subscription summary supplier support table
target task team tenant test threshold ticket token topic trace transfer trigger type update upgrade usage user value
vendor version view volume warehouse warning window workflow workspace zone the a of and to in is for with on by from
that this each every after before until because when which its our their not only also must can should may does has
was were will at least than more less first last new old same next daily monthly café Größe naïve résumé “stage” €20 →
≥3
"""
WORDS = VOCABULARY.split()


def main(kind: str, rows: str, path: str) -> None:
    """Write the file ``path`` of the given kind; it appears when it is complete."""
    half = Path(f"{path}.part")
    schema, batches, write = FILES[kind]
    write(half, schema, batches(int(rows)))
    half.rename(path)


# --- text -----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def sentences() -> tuple[str, ...]:
    """A stock to pick from: choosing single words for gigabytes of text would take longer than the benchmark."""
    rng = random.Random("sentences")
    return tuple(sentence(rng) for _ in range(8192))


def sentence(rng: random.Random) -> str:
    words = rng.choices(WORDS, k=rng.randint(6, 14))
    if rng.random() < 0.1:
        words[2] = f'"{words[2]}"'
    return f"{' '.join(words).capitalize()}."


def prose(rng: random.Random, least: int, separator: str = " ") -> str:
    """Whole sentences, at least ``least`` characters."""
    stock, chosen, length = sentences(), [], 0
    while length < least:
        one = stock[int(rng.random() * len(stock))]
        chosen.append(one)
        length += len(one) + 1
    return separator.join(chosen)


def doc_uri(rng: random.Random) -> str:
    return f"docs/{WORDS[int(rng.random() * 200)]}/{int(rng.random() * 20_000):05}.md"


# --- plain rows -----------------------------------------------------------------------------------------------------


def plain_row(rng: random.Random, number: int) -> Row:
    retrieved = [document(rng, doc_uri(rng)) for _ in range(1 + number % 2)]
    wanted = retrieved[0] if rng.random() < 0.8 else document(rng, doc_uri(rng))
    expected = [wanted, document(rng, doc_uri(rng))][: 1 + number // 2 % 2]
    return {
        "request": f"Case {number}: {prose(rng, rng.randint(50, 180))}",
        "response": f"On case {number}: {prose(rng, rng.randint(110, 180))}",
        "expected_response": f"For case {number}, {prose(rng, rng.randint(40, 100))}",
        "retrieved_context": retrieved,
        "expected_retrieved_context": expected,
    }


def document(rng: random.Random, uri: str) -> dict[str, str]:
    return {"doc_uri": uri, "content": prose(rng, rng.randint(60, 200))}


# --- payloads of an endpoint ------------------------------------------------------------------------------------------


def payload_row(rng: random.Random, number: int) -> Row:
    """A logged call of 5 KB: every other one a long chat, or a short one whose answer brings its trace. One in 200 is
    delivered twice, one in 100 was refused."""
    name = f"{number - (number % 200 == 9):012}"
    question = f"Case {number}: {prose(rng, 150)}"
    answer = completion(rng, {"role": "assistant", "content": prose(rng, 350)}, "stop")
    messages = [user(question)]
    if number % 2:
        trace = short_trace(rng, number, question, answer)
        answer["databricks_output"] = {"trace": json.loads(trace.replace(f"client-{number:08}", name))}
    else:
        turns = [{"role": ("user", "assistant")[i % 2], "content": prose(rng, 520)} for i in range(6)]
        messages = [{"role": "system", "content": prose(rng, 300)}, *turns, user(question)]
    refused = number % 100 == 7
    return {
        "databricks_request_id": name,
        "request_date": datetime.date(2026, 11, 1 + number % 20),
        "client_request_id": f"client-{number:08}",
        "request_time": datetime.datetime(2026, 11, 1 + number % 20, tzinfo=datetime.timezone.utc),
        "status_code": 429 if refused else 200,
        "sampling_fraction": 1.0,
        "execution_duration_ms": 300 + number % 5_000,
        "request": json.dumps({"messages": messages, "temperature": 0.1}),
        "response": json.dumps({"error_code": "REQUEST_LIMIT_EXCEEDED"} if refused else answer),
        "logging_error_codes": None,
        "served_entity_id": f"entity-{number % 3}",
        "requester": "agent@example.org",
    }


def short_trace(rng: random.Random, number: int, question: str, answer: Row) -> str:
    """AGENT → RETRIEVER, about 3.5 KB."""
    recording = Recording(rng, number)
    recording.span("agent", "AGENT", {"messages": [user(question)]}, answer)
    documents = [
        {"page_content": prose(rng, 160, "\n"), "metadata": {"doc_uri": doc_uri(rng)}, "id": None} for _ in range(2)
    ]
    recording.span("retrieve_docs", "RETRIEVER", {"query": question}, documents)
    return recording.to_json(total_usage(answer))


# --- traces ---------------------------------------------------------------------------------------------------------


@dataclass
class Recording:
    """One trace in the making: its ids, its clock and the spans so far."""

    rng: random.Random
    number: int
    spans: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.id_bytes = self.rng.randbytes(16)
        self.trace_id = f"tr-{self.id_bytes.hex()}"
        self.start = self.clock = 1_795_219_155_555_259_590 + self.number * 1_000_000_007

    def span(self, name: str, kind: str, inputs: Any, outputs: Any, **attributes: Any) -> None:
        """Append a span; the first is the root and the parent of all the others."""
        begin, self.clock = self.clock, self.clock + self.rng.randint(100_000, 900_000_000)
        parent = self.spans[0]["span_id"] if self.spans else None
        self.spans.append(
            {
                "trace_id": base64.b64encode(self.id_bytes).decode(),
                "span_id": base64.b64encode(self.rng.randbytes(8)).decode(),
                "parent_span_id": parent,
                "name": name,
                "kind": "SPAN_KIND_INTERNAL",
                "start_time_unix_nano": begin,
                "end_time_unix_nano": self.clock,
                "events": [],
                "status": {"code": "STATUS_CODE_OK", "message": ""},
                "attributes": self.attributes(name, kind, inputs, outputs, attributes),
                "links": [],
            }
        )

    def attributes(self, name: str, kind: str, inputs: Any, outputs: Any, more: Row) -> dict[str, str]:
        values = {
            "mlflow.traceRequestId": self.trace_id,
            "mlflow.spanType": kind,
            "mlflow.spanFunctionName": name,
            "mlflow.spanInputs": inputs,
            "mlflow.spanOutputs": outputs,
            "mlflow.spanLogLevel": 20,
        }
        values.update((f"mlflow.{key.replace('_', '.')}", value) for key, value in more.items())
        return {key: attribute_text(value) for key, value in values.items()}

    def to_json(self, usage: Row) -> str:
        """The text as ``Trace.to_json`` writes it, all ASCII."""
        self.spans[0]["end_time_unix_nano"] = self.clock
        return json.dumps({"info": self.info(usage), "data": {"spans": self.spans}})

    def info(self, usage: Row) -> Row:
        attributes = self.spans[0]["attributes"]
        inputs, outputs = attributes["mlflow.spanInputs"], attributes["mlflow.spanOutputs"]
        return {
            "trace_id": self.trace_id,
            "client_request_id": f"client-{self.number:08}",
            "trace_location": {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "1"}},
            "request_time": "2026-11-20T23:59:15.555Z",
            "state": "OK",
            "trace_metadata": {
                "mlflow.trace_schema.version": "3",
                "mlflow.trace.tokenUsage": attribute_text(usage),
                "mlflow.trace.session": f"session-{self.number // 5}",
                "mlflow.trace.infoFinalized": "true",
                "mlflow.source.type": "LOCAL",
                "mlflow.source.name": "agent/serve.py",
                "mlflow.source.git.commit": "",
                "mlflow.user": "service",
                "mlflow.traceInputs": shortened(inputs),
                "mlflow.traceOutputs": shortened(outputs),
            },
            "tags": {
                "mlflow.traceName": "agent",
                "mlflow.artifactLocation": "dbfs:/agents/app",
                "mlflow.trace.spansLocation": "TRACKING_STORE",
            },
            "request_preview": shortened(inputs),
            "response_preview": shortened(outputs),
            "execution_duration_ms": (self.clock - self.start) // 1_000_000,
        }


def attribute_text(value: Any) -> str:
    """As ``mlflow.tracing.utils.dump_span_attribute_value``: not escaped here, escaped by the JSON around it."""
    return json.dumps(value, ensure_ascii=False)


def shortened(text: str) -> str:
    """MLflow keeps 250 characters of inputs and outputs in the metadata."""
    return text if len(text) <= 250 else f"{text[:247]}..."


def trace_row(rng: random.Random, number: int) -> Row:
    return {"request_id": f"req-{number:08}", "trace": agent_trace(rng, number)}


def agent_trace(rng: random.Random, number: int) -> str:
    """One question: plan, retrieve twice, call two tools, answer from all of it."""
    recording = Recording(rng, number)
    question = f"Case {number}: {prose(rng, 150)}"
    answer = completion(rng, {"role": "assistant", "content": prose(rng, 350)}, "stop")
    recording.span("agent", "AGENT", {"messages": [user(question)], "session": f"session-{number // 5}"}, answer)
    prompt = [{"role": "system", "content": prose(rng, 800, "\n")}, user(question)]
    calls = [tool_call(rng, name, question) for name in ("search_tickets", "lookup_account")]
    plan = completion(rng, {"role": "assistant", "content": None, "tool_calls": calls}, "tool_calls")
    record_model_call(recording, prompt, plan)
    passages = [record_retrieval(recording, name, question) for name in ("retrieve_docs", "retrieve_tickets")]
    results = [record_tool_call(recording, call) for call in calls]
    context = {"role": "system", "content": "Answer from these passages only.\n\n" + "\n\n".join(passages)}
    record_model_call(recording, [*prompt, context, plan["choices"][0]["message"], *results], answer)
    return recording.to_json(total_usage(plan, answer))


def short_trace_row(rng: random.Random, number: int) -> Row:
    answer = completion(rng, {"role": "assistant", "content": prose(rng, 120)}, "stop")
    return {
        "request_id": f"req-{number:08}",
        "trace": short_trace(rng, number, f"Case {number}: {prose(rng, 60)}", answer),
    }


def trace_line(rng: random.Random, number: int) -> Row:
    return {"text": agent_trace(rng, number)}


def otel_line(rng: random.Random, number: int) -> Row:
    return {"text": json.dumps(otel_request(rng, number))}


def otel_request(rng: random.Random, number: int) -> Row:
    """The same trace as the request of an exporter, with the attributes of the GenAI conventions."""
    trace = json.loads(agent_trace(rng, number))
    spans = [otel_span(span, trace["info"]) for span in trace["data"]["spans"]]
    scope = {"scope": {"name": "opentelemetry.util.genai"}, "spans": spans}
    resource = {"attributes": otel_attributes({"service.name": "agent", "telemetry.sdk.language": "python"})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}


OPERATIONS = {"AGENT": "invoke_agent", "CHAT_MODEL": "chat", "TOOL": "execute_tool", "RETRIEVER": "retrieval"}


def otel_span(span: Row, info: Row) -> Row:
    attributes = {key: json.loads(text) for key, text in span["attributes"].items()}
    kind, given, made = (attributes[f"mlflow.span{part}"] for part in ("Type", "Inputs", "Outputs"))
    named: Row = {"gen_ai.operation.name": OPERATIONS[kind], "gen_ai.provider.name": "openai"}
    if kind == "RETRIEVER":
        named |= {"gen_ai.retrieval.query.text": given["query"]}
        documents = [{"id": d["metadata"]["doc_uri"], "content": d["page_content"], "score": 0.5} for d in made]
        named |= {"gen_ai.retrieval.documents": json.dumps(documents)}
    elif kind == "TOOL":
        named |= {"gen_ai.tool.name": span["name"], "gen_ai.tool.call.id": f"call_{span['span_id']}"}
        named |= {"gen_ai.tool.call.arguments": json.dumps(given), "gen_ai.tool.call.result": json.dumps(made)}
    else:
        session = info["trace_metadata"]["mlflow.trace.session"]
        named |= {"gen_ai.conversation.id": session, "gen_ai.request.model": "gpt-4o-mini"}
        answer = made["choices"][0]["message"]
        named |= {"gen_ai.input.messages": json.dumps([otel_message(m) for m in given["messages"]])}
        named |= {"gen_ai.output.messages": json.dumps([otel_message(answer)])}
        if kind == "CHAT_MODEL":
            usage = attributes["mlflow.chat.tokenUsage"]
            named |= {f"gen_ai.usage.{side}_tokens": usage[f"{side}_tokens"] for side in ("input", "output")}
            named |= {"gen_ai.tool.definitions": json.dumps(TOOLS)}
    parent = span["parent_span_id"]
    return {
        "traceId": info["trace_id"].removeprefix("tr-"),
        "spanId": base64.b64decode(span["span_id"]).hex(),
        **({"parentSpanId": base64.b64decode(parent).hex()} if parent else {}),
        "name": f"{OPERATIONS[kind]} {span['name']}",
        "kind": 1,
        "startTimeUnixNano": str(span["start_time_unix_nano"]),
        "endTimeUnixNano": str(span["end_time_unix_nano"]),
        "attributes": otel_attributes(named),
        "status": {},
        "flags": 256,
    }


def otel_attributes(values: Row) -> list[Row]:
    kinds = {int: "intValue", str: "stringValue"}
    return [{"key": key, "value": {kinds[type(value)]: str(value)}} for key, value in values.items()]


def otel_message(message: Row) -> Row:
    parts: list[Row] = [] if message["content"] is None else [{"type": "text", "content": message["content"]}]
    for call in message.get("tool_calls", ()):
        named = {"name": call["function"]["name"], "arguments": json.loads(call["function"]["arguments"])}
        parts.append({"type": "tool_call", "id": call["id"], **named})
    return {"role": message["role"], "parts": parts}


def user(content: str) -> Row:
    return {"role": "user", "content": content}


def completion(rng: random.Random, message: Row, finish_reason: str) -> Row:
    sent, produced = rng.randint(500, 4_000), rng.randint(20, 600)
    return {
        "id": f"chatcmpl-{rng.getrandbits(96):024x}",
        "object": "chat.completion",
        "model": "gpt-4o-mini",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": sent, "completion_tokens": produced, "total_tokens": sent + produced},
    }


def token_usage(answer: Row) -> dict[str, int]:
    usage = answer["usage"]
    return {
        "input_tokens": usage["prompt_tokens"],
        "output_tokens": usage["completion_tokens"],
        "total_tokens": usage["total_tokens"],
    }


def total_usage(*answers: Row) -> dict[str, int]:
    """As MLflow sums the usage of a trace's model calls."""
    usages = [token_usage(answer) for answer in answers]
    return {key: sum(usage[key] for usage in usages) for key in usages[0]}


def tool_call(rng: random.Random, name: str, question: str) -> Row:
    arguments = json.dumps({"query": question[:80], "limit": rng.randint(1, 9), "customer": f"C-{rng.getrandbits(32)}"})
    return {
        "id": f"call_{rng.getrandbits(64):016x}",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def record_retrieval(recording: Recording, name: str, question: str) -> str:
    """Record three documents; returns them as the passages of a prompt."""
    rng = recording.rng
    documents = [
        {
            "page_content": prose(rng, rng.randint(200, 420), "\n"),
            "metadata": {"doc_uri": doc_uri(rng), "chunk_id": f"c{index}", "score": round(rng.random(), 6)},
            "id": None,
        }
        for index in range(3)
    ]
    recording.span(name, "RETRIEVER", {"query": question, "k": 3}, documents)
    return "\n\n".join(str(one["page_content"]) for one in documents)


def record_tool_call(recording: Recording, call: Row) -> Row:
    """Record the call; returns the message with its result."""
    rng, name = recording.rng, call["function"]["name"]
    result = {"hits": [{"id": rng.getrandbits(32), "title": prose(rng, 60)} for _ in range(3)], "truncated": False}
    recording.span(name, "TOOL", json.loads(call["function"]["arguments"]), result)
    return {"role": "tool", "tool_call_id": call["id"], "content": attribute_text(result)}


def record_model_call(recording: Recording, messages: list[Row], answer: Row) -> None:
    inputs = {"model": "gpt-4o-mini", "temperature": 0.1, "messages": messages, "tools": TOOLS}
    usage = token_usage(answer)
    recording.span("ChatModel", "CHAT_MODEL", inputs, answer, chat_tokenUsage=usage, llm_model="gpt-4o-mini")


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"{name.replace('_', ' ')} of one customer",
            "parameters": {
                "type": "object",
                "properties": {
                    "query": {"type": "string"},
                    "limit": {"type": "integer"},
                    "customer": {"type": "string"},
                },
            },
        },
    }
    for name in ("search_tickets", "lookup_account")
]


# --- trajectories ---------------------------------------------------------------------------------------------------

CALLS = 5


def trajectory_row(rng: random.Random, number: int) -> Row:
    """Five calls that were expected, and what an agent did: in every other row the same, else with one other argument,
    in another order, with one call more, or with one less."""
    reference = [trajectory_call(rng, number) for _ in range(CALLS)]
    predicted = list(reference)
    if number % 8 == 1:
        predicted[rng.randrange(CALLS)] = trajectory_call(rng, number)
    elif number % 8 == 3:
        rng.shuffle(predicted)
    elif number % 8 == 5:
        predicted.insert(rng.randrange(CALLS), trajectory_call(rng, number))
    elif number % 8 == 7:
        predicted.pop(rng.randrange(CALLS))
    return {"predicted_trajectory": json.dumps(predicted), "reference_trajectory": json.dumps(reference)}


def trajectory_call(rng: random.Random, number: int) -> Row:
    name, argument = rng.choice(TRAJECTORY_TOOLS)
    return {
        "tool_name": name,
        "tool_input": {argument: f"{WORDS[rng.randrange(200)]}_{number}", "n": rng.randrange(50)},
    }


TRAJECTORY_TOOLS = (
    *(("get_user_preferences", "user_id"), ("set_device_info", "device_id"), ("set_temperature", "location")),
    *(("search_tickets", "query"), ("lookup_account", "customer"), ("send_mail", "to")),
)


# --- batches and files ----------------------------------------------------------------------------------------------


def batches_of(
    schema: pa.Schema, make: Callable[[random.Random, int], Row]
) -> Callable[[int], Iterator[pa.RecordBatch]]:
    def batches(rows: int) -> Iterator[pa.RecordBatch]:
        for start in range(0, rows, BATCH_ROWS):
            rng = random.Random(f"{make.__name__} {start}")
            numbers = range(start, min(start + BATCH_ROWS, rows))
            yield pa.RecordBatch.from_pylist([make(rng, number) for number in numbers], schema)

    return batches


def write_parquet(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)


def write_parquet_in_larger_groups(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Row groups of GROUP_BATCHES batches, compressed with snappy, pandas' default."""
    held: list[pa.RecordBatch] = []
    with pq.ParquetWriter(path, schema, compression="snappy") as writer:
        for batch in batches:
            held.append(batch)
            if len(held) == GROUP_BATCHES:
                writer.write_table(pa.Table.from_batches(held), row_group_size=GROUP_BATCHES * BATCH_ROWS)
                held = []
        if held:
            writer.write_table(pa.Table.from_batches(held), row_group_size=GROUP_BATCHES * BATCH_ROWS)


def write_jsonl(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:  # noqa: ARG001 (one signature)
    with path.open("w", encoding="utf-8") as lines:
        for batch in batches:
            lines.writelines(f"{json.dumps(row)}\n" for row in batch.to_pylist())


def write_lines(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:  # noqa: ARG001 (one signature)
    with path.open("w", encoding="utf-8") as lines:
        for batch in batches:
            lines.writelines(f"{text}\n" for text in batch.column(0).to_pylist())


def write_parquet_in_one_group(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """All rows in one row group, as a small frame's ``to_parquet`` writes it.

    pyarrow writes a row group from one table, and the table must not be in memory: it is spooled to an Arrow file,
    which is mapped.
    """
    spool = path.with_suffix(".arrow")
    with pa.ipc.new_file(spool, schema) as sink:
        for batch in batches:
            sink.write_batch(batch)
    try:
        with pa.memory_map(str(spool)) as mapped:
            table = pa.ipc.open_file(mapped).read_all()
            pq.write_table(table, path, row_group_size=max(1, table.num_rows), compression="zstd")
    finally:
        os.unlink(spool)


TRACE_BATCHES = batches_of(TRACE_SCHEMA, trace_row)
PLAIN_BATCHES = batches_of(PLAIN_SCHEMA, plain_row)
PAYLOAD_BATCHES = batches_of(PAYLOAD_SCHEMA, payload_row)
TRAJECTORY_BATCHES = batches_of(TRAJECTORY_SCHEMA, trajectory_row)
FILES: dict[str, tuple[pa.Schema, Callable[[int], Iterator[pa.RecordBatch]], Writer]] = {
    "traces.parquet": (TRACE_SCHEMA, TRACE_BATCHES, write_parquet),
    "short-traces.parquet": (TRACE_SCHEMA, batches_of(TRACE_SCHEMA, short_trace_row), write_parquet),
    "traces.jsonl": (TRACE_SCHEMA, TRACE_BATCHES, write_jsonl),
    "mlflow-lines.jsonl": (LINE_SCHEMA, batches_of(LINE_SCHEMA, trace_line), write_lines),
    "otel-lines.jsonl": (LINE_SCHEMA, batches_of(LINE_SCHEMA, otel_line), write_lines),
    "traces-one-group.parquet": (TRACE_SCHEMA, TRACE_BATCHES, write_parquet_in_one_group),
    "trajectories.parquet": (TRAJECTORY_SCHEMA, TRAJECTORY_BATCHES, write_parquet_in_larger_groups),
    "trajectories-tenth.parquet": (TRAJECTORY_SCHEMA, TRAJECTORY_BATCHES, write_parquet_in_larger_groups),
    "plain.jsonl": (PLAIN_SCHEMA, PLAIN_BATCHES, write_jsonl),
    "plain.parquet": (PLAIN_SCHEMA, PLAIN_BATCHES, write_parquet_in_larger_groups),
    "payloads.parquet": (PAYLOAD_SCHEMA, PAYLOAD_BATCHES, write_parquet),
    "golden.csv": (ces.GOLDEN_SCHEMA, ces.golden_batches, ces.write_csv),
    "evaluations.txt": (ces.EVALUATION_SCHEMA, ces.evaluation_batches, ces.write_lines),
}

if __name__ == "__main__":
    main(*sys.argv[1:])
