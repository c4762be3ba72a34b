"""The tokens that a trace used: the usage that its models report, in the vocabulary of MLflow or of OpenAI."""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from agent_eval_schema.traces.reading import Reading, attributes
from agent_eval_schema.traces.spans import NOTHING, Span, content_text, value_of

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
        found = attributes(span)
        tokens = _stated(found.token_usage) or _stated_in_output(found.outputs)
        if tokens is not None:
            used[span] = tokens
    if used:
        counts = zip(*[used[s] for s in reading.outermost(list(used))], strict=True)
        known = [[n for n in column if n is not None] for column in counts]
        inputs, outputs, totals = [sum(column) if column else None for column in known]
        return inputs, outputs, totals
    stated = _stated(reading.metadata.token_usage) if reading.metadata else None
    return stated or _stated_in_output(reading.outputs)


def _stated(raw: Raw) -> Tokens | None:
    if raw is NOTHING:
        return None
    try:
        return counts_of(_usage(content_text(raw)))
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
    kept = {k: v for k, v in usage.items() if isinstance(v, int) and not isinstance(v, bool)}
    return counts_of(msgspec.convert(kept, Usage))


def counts_of(usage: Usage) -> Tokens | None:
    """The counts in either vocabulary; the total is their sum where it is not stated."""
    inputs = usage.input_tokens if usage.input_tokens is not None else usage.prompt_tokens
    outputs = usage.output_tokens if usage.output_tokens is not None else usage.completion_tokens
    total = usage.total_tokens
    if total is None and inputs is not None and outputs is not None:
        total = inputs + outputs
    return None if inputs is outputs is total is None else (inputs, outputs, total)
