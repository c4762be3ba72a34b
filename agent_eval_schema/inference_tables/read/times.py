"""Times in any logged format → microseconds since 1970 UTC, or None for values that are not times."""

from __future__ import annotations

import re
from typing import Any

from agent_eval_schema.text.moments import micros_since_epoch, read_iso


def micros_of(value: Any) -> int | None:
    """A time in a JSON value: a text or a number."""
    if isinstance(value, str):
        return micros_of_text(value.encode("utf-8", "replace"))
    return micros_of_number(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


_UNITS = ((10**11, 1_000_000), (10**14, 1_000), (10**17, 1))
"""Below 10^11 it is seconds (until the year 5138), below 10^14 milliseconds, below 10^17 microseconds, else ns."""
_LAST = 253_402_300_800_000_000
"""The end of the year 9999, which Python and Spark can still write."""


def micros_of_number(number: int | float) -> int | None:
    """A number since 1970, whose unit is determined by its size."""
    if number != number or abs(number) > 10**20:
        return None
    scale = next((scale for limit, scale in _UNITS if abs(number) < limit), None)
    micros = int(number * scale) if scale else int(number) // 1000
    return micros if 0 <= micros < _LAST else None


def micros_of_text(text: bytes) -> int | None:
    """A time in words: ISO 8601, with or without a zone (then it is UTC), or a number."""
    words = text.decode("utf-8", "replace").strip()
    if _NUMBER.fullmatch(words):
        return micros_of_number(int(words) if words.isdecimal() else float(words))
    match = _ISO.fullmatch(words)
    if match is None:
        return None
    whole, fraction, zone = match.groups()
    try:
        moment = read_iso(whole.replace(" ", "T") + (_zone(zone) if len(whole) > len("2025-11-03") else ""))
    except ValueError:
        return None
    micros = micros_since_epoch(moment) + int(f"{(fraction or '')[:6]:0<6}")
    return micros if 0 <= micros < _LAST else None


def _zone(zone: str | None) -> str:
    if not zone or zone in ("Z", "z", " UTC"):
        return "+00:00"
    return zone if ":" in zone else f"{zone[:3]}:{zone[3:] or '00'}"


_NUMBER = re.compile(r"-?\d{1,20}(\.\d{1,20})?", re.ASCII)
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?)(?:\.(\d{1,12}))?( UTC|[Zz]|[+-]\d\d(?::?\d\d)?)?", re.ASCII
)
