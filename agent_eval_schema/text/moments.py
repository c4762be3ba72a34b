"""ISO 8601 text → a datetime, and a datetime → microseconds since 1970 UTC; a time without a zone is in UTC."""

import re
from datetime import datetime, timedelta, timezone

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

_FRACTION = re.compile(r"\.(\d+)")


def read_iso(text: str) -> datetime:
    """The datetime that an ISO 8601 text holds. Raises ValueError if it holds none."""
    # Python 3.10 reads no Z, and exactly 3 or 6 digits of a second.
    return datetime.fromisoformat(
        _FRACTION.sub(lambda m: f".{m.group(1)[:6]:0<6}", re.sub(r"[zZ]$", "+00:00", text.strip()))
    )


def micros_since_epoch(moment: datetime) -> int:
    zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)
    return (zoned - EPOCH) // timedelta(microseconds=1)
