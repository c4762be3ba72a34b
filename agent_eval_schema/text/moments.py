"""Times in text or numbers → a datetime, or microseconds since 1970 UTC; a time without a zone is in UTC."""

import re
from datetime import datetime, timedelta, timezone
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

_FRACTION = re.compile(r"\.(\d+)")


def read_iso(text: str) -> datetime:
    """The datetime that an ISO 8601 text holds. Raises ValueError if it holds none."""
    # Python 3.10 reads no Z, and exactly 3 or 6 digits of a second.
    zoned = re.sub(r"[zZ]$", "+00:00", text.strip())
    return datetime.fromisoformat(_FRACTION.sub(lambda m: f".{m.group(1)[:6]:0<6}", zoned))


def micros_since_epoch(moment: datetime) -> int:
    zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)
    return (zoned - EPOCH) // timedelta(microseconds=1)


def micros_of(value: Any) -> int | None:
    """A time in a JSON value: a text or a number."""
    if isinstance(value, str):
        return micros_of_text(value.encode("utf-8", "replace"))
    return micros_of_number(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


_UNITS = ((10**11, 1_000_000), (10**14, 1_000), (10**17, 1))
"""Below 10^11 it is seconds (until the year 5138), below 10^14 milliseconds, below 10^17 microseconds, else ns."""
FIRST_TIME, END_OF_TIMES = -62_135_596_800_000_000, 253_402_300_800_000_000
"""The years 1 to 9999, which Python and Spark can write."""


def micros_of_number(number: int | float) -> int | None:
    """A number since 1970, whose unit is determined by its size."""
    if number != number or abs(number) > 10**20:
        return None
    scale = next((scale for limit, scale in _UNITS if abs(number) < limit), None)
    micros = int(number * scale) if scale else int(number) // 1000
    return micros if 0 <= micros < END_OF_TIMES else None


def micros_of_text(text: bytes) -> int | None:
    """A time in words: ISO 8601, with or without a zone (then it is UTC), or a number."""
    words = text.decode("utf-8", "replace").strip()
    if _NUMBER.fullmatch(words):
        return micros_of_number(int(words) if words.isdecimal() else float(words))
    match = _ISO.fullmatch(words)
    if match is None:
        return None
    whole, fraction, zone = match.groups()
    if not zone or zone in ("Z", "z", " UTC"):
        zone = "+00:00"
    zone = zone if ":" in zone else f"{zone[:3]}:{zone[3:] or '00'}"
    try:
        moment = read_iso(whole.replace(" ", "T") + (zone if len(whole) > len("2025-11-03") else ""))
    except ValueError:
        return None
    micros = micros_since_epoch(moment) + int(f"{(fraction or '')[:6]:0<6}")
    return micros if 0 <= micros < END_OF_TIMES else None


_NUMBER = re.compile(r"-?\d{1,20}(\.\d{1,20})?", re.ASCII)
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?)(?:\.(\d{1,12}))?( UTC|[Zz]|[+-]\d\d(?::?\d\d)?)?", re.ASCII
)
