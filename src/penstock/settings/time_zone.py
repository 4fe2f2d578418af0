"""Time zones by their names, for settings that speak of the time of the day."""

from datetime import UTC, datetime, tzinfo
from functools import cache
from zoneinfo import ZoneInfo


@cache
def time_zone(name: str) -> tzinfo:
    """ValueError for a name that this machine does not know. UTC needs no table of time zones."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):  # which of them depends on where it looks
        raise ValueError(
            f"{name!r} is not a time zone that this machine knows, such as Europe/Berlin"
        ) from None


def utc_offset_s(name: str, unix_ms: int) -> int:
    """How far the local clock is ahead of UTC at this moment."""
    offset = datetime.fromtimestamp(unix_ms / 1_000, time_zone(name)).utcoffset()
    return 0 if offset is None else round(offset.total_seconds())
