"""One trace while it is read: its root, its spans by type, and their tree; and the tokens that its models report."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct

from agent_eval_schema.issues import Finding
from agent_eval_schema.rule import Rule
from agent_eval_schema.traces.spans import FAILED_CODES, NOTHING, Attributes, Span, Trace, content_text, value_of

_PLACES = {"RETRIEVER": 0, "TOOL": 1, "LLM": 2, "CHAT_MODEL": 2}
_PLACES |= {f'"{kind}"': place for kind, place in _PLACES.items()}
"""The place of a type, which may be the JSON text of a text, among those that are read apart."""


class Reading:
    """One trace while it is being read: its root, its spans by type, and the notes of the readers.

    Without `values` only the validation result matters: a reader may return a part of a value to show that there is
    one.
    """

    __slots__ = (
        *("trace", "values", "notes", "retrievers", "tools", "models", "failed"),
        *("root", "inputs", "outputs", "metadata", "state", "spare", "_top"),
    )

    def __init__(self, trace: Trace, values: bool = True) -> None:
        self.trace = trace
        self.values = values
        self.spare = trace.spare
        self.notes: list[Finding] = trace.notes
        self.retrievers: list[Span] = []
        self.tools: list[Span] = []
        self.models: list[Span] = []
        self.failed: list[Span] = []
        orphans: list[Span] = []
        by_kind = self.retrievers, self.tools, self.models
        for span in trace.spans:
            kind = span.attributes.type  # type: ignore[union-attr]  # as in `attributes`, without the call
            if kind in _PLACES:
                by_kind[_PLACES[kind]].append(span)
            if not (span.parent_span_id or span.parent_id):
                orphans.append(span)
            status = span.status
            # `code`, without the call: there are several Structs of a status
            text = status is None or status.__class__ is str
            if (status or span.status_code if text else status.code) in FAILED_CODES:  # type: ignore[union-attr]
                self.failed.append(span)
        # No parent, the earliest if several; if every parent is missing from the trace, the earliest span.
        self.root = orphans[0] if len(orphans) == 1 else min(orphans or trace.spans, key=start_of, default=None)
        self._top = self.root.id if self.root else None
        attrs = attributes(self.root) if self.root else Attributes()
        self.inputs = trace.request if attrs.inputs is NOTHING else attrs.inputs
        self.outputs = trace.response if attrs.outputs is NOTHING else attrs.outputs
        self.metadata = trace.info.trace_metadata or trace.info.request_metadata
        self.state = trace.info.state or trace.info.status

    def outermost(self, spans: list[Span]) -> list[Span]:
        """The spans that do not lie below another one of them."""
        for span in spans:  # mostly all are children of the root
            if (span.parent_span_id or span.parent_id or None) != self._top:
                break
        else:
            if self.root not in spans:
                return spans
        if len(spans) == 1:
            return spans
        by_id = {s.id: s for s in self.trace.spans}
        result = []
        for span in spans:
            above: list[Span] = []  # a loop in a broken trace ends the walk
            parent = by_id.get(span.parent) if span.parent else None
            while parent is not None and parent not in above and parent not in spans:
                above.append(parent)
                parent = by_id.get(parent.parent) if parent.parent else None
            if parent is None or parent not in spans:
                result.append(span)
        return result or spans  # where parents form a loop, no span is outside: then all are

    def note(self, rule: Rule, path: str, message: str) -> None:
        self.notes.append(Finding(rule, message, path=path))


def attributes(span: Span) -> Attributes:
    """A decoded trace's spans all have attributes."""
    return span.attributes  # type: ignore[return-value]


def start_of(span: Span) -> int:
    """The start time of a span; 0 if it has none."""
    start = span.start_time_unix_nano
    return start if start.__class__ is int and 0 <= start < 1 << 63 else span.start or 0


# ---------------------------------------------------------------------------------------------------------------------
# the usage, in the vocabulary of MLflow or of OpenAI
Tokens = tuple[int | None, int | None, int | None]
"""Input, output and total."""


class Usage(Struct, gc=False):
    """Token counts as mlflow names them, and as OpenAI does."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Output(Struct, gc=False):
    usage: Usage | None = None


_usage = msgspec.json.Decoder(Usage, strict=False).decode
_output = msgspec.json.Decoder(_Output, strict=False).decode


def token_counts(reading: Reading) -> Tokens | None:
    """The models' usage, except below a counted span (mlflow#24307); else the trace's, else the root's."""
    used: dict[Span, Tokens] = {}
    for span in reading.models:
        attrs = attributes(span)
        tokens = _stated(attrs.token_usage, reading.spare) or _stated_in_output(attrs.outputs)
        if tokens is not None:
            used[span] = tokens
    if used:
        counts = zip(*[used[s] for s in reading.outermost(list(used))], strict=True)
        inputs, outputs, totals = [_sum_of_known(c) if None in c else sum(c) for c in counts]
        return inputs, outputs, totals
    stated = _stated(reading.metadata.token_usage) if reading.metadata else None
    return stated or _stated_in_output(reading.outputs)


def _sum_of_known(counts: tuple[int | None, ...]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _stated(raw: Raw, spare: int = 0) -> Tokens | None:
    if raw is NOTHING:
        return None
    try:
        return counts_of(_usage(content_text(raw, spare)))
    except ValueError:
        return usage_of(value_of(raw))


def _stated_in_output(raw: Raw) -> Tokens | None:
    if raw is NOTHING or b"usage" not in bytes(raw):
        return None
    try:
        usage = _output(content_text(raw)).usage
    except ValueError:
        value = value_of(raw)
        return usage_of(value.get("usage")) if isinstance(value, dict) else None
    return counts_of(usage) if usage else None


def usage_of(usage: Any) -> Tokens | None:
    """The counts in a usage that also has values of other types."""
    if not isinstance(usage, dict):
        return None
    counts = {k: v for k, v in usage.items() if isinstance(v, int) and not isinstance(v, bool)}
    return counts_of(msgspec.convert(counts, Usage))


def counts_of(usage: Usage) -> Tokens | None:
    """The counts in either vocabulary; the total is their sum where it is not stated."""
    inputs = usage.input_tokens if usage.input_tokens is not None else usage.prompt_tokens
    outputs = usage.output_tokens if usage.output_tokens is not None else usage.completion_tokens
    total = usage.total_tokens
    if total is None and inputs is not None and outputs is not None:
        total = inputs + outputs
    return None if inputs is outputs is total is None else (inputs, outputs, total)
