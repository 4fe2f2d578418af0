"""Times of the day in which a group is not changed: `08:00-09:00`, `mon-fri 22:00-06:00`. Pure.

A range is of the local wall clock: what a person reads on it decides. So an hour that the clock
skips in spring is not there, and one that comes twice in autumn counts twice. A range that ends
before it begins goes on after midnight; its day is the one on which it begins.
"""

import re
from dataclasses import dataclass

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAY_MINUTES = 24 * 60
WEEK_MINUTES = 7 * DAY_MINUTES
# 1970-01-01 was a Thursday.
_FIRST_WEEKDAY = 3
_RANGE = re.compile(
    r"(?:(?P<days>[a-z]{3}(?:[-,][a-z]{3})*) +)?"
    r"(?P<begin>\d{1,2}:\d{2}) *- *(?P<end>\d{1,2}:\d{2})"
)
_EXAMPLES = "for instance 08:00-09:00 or mon-fri 08:00-09:00"


@dataclass(frozen=True, slots=True)
class DailyRange:
    """From `begin_minute` of each day up to `end_minute`, which may be after midnight."""

    text: str
    days: frozenset[int]
    begin_minute: int
    end_minute: int

    def minutes_left(self, minute_of_week: int) -> int:
        """How long the range goes on from this minute; 0 outside of it."""
        for day in self.days:
            since = (minute_of_week - day * DAY_MINUTES - self.begin_minute) % WEEK_MINUTES
            left = self.end_minute - self.begin_minute - since
            if left > 0:
                return left
        return 0


def daily_range(text: str) -> DailyRange:
    """ValueError for what is none, with what it should be."""
    found = _RANGE.fullmatch(" ".join(text.lower().split()))
    if found is None:
        raise ValueError(f"{text!r} is not a time of the day, {_EXAMPLES}")
    begin, end = _minute(text, found["begin"]), _minute(text, found["end"])
    if begin in {end, DAY_MINUTES}:
        raise ValueError(f"{text!r} has no minute in it; a whole day is 00:00-24:00")
    days = _days(text, found["days"]) if found["days"] else frozenset(range(len(DAYS)))
    return DailyRange(text, days, begin, end if end > begin else end + DAY_MINUTES)


def minute_of_week(unix_ms: int, utc_offset_s: int) -> int:
    """Of the local wall clock, from Monday 00:00."""
    minutes = (unix_ms // 1_000 + utc_offset_s) // 60
    return (minutes + _FIRST_WEEKDAY * DAY_MINUTES) % WEEK_MINUTES


def _minute(text: str, time: str) -> int:
    hours, minutes = (int(part) for part in time.split(":"))
    minute = 60 * hours + minutes
    if minutes > 59 or minute > DAY_MINUTES:
        raise ValueError(f"{text!r}: there is no {time}; times go from 00:00 to 24:00")
    return minute


def _days(text: str, names: str) -> frozenset[int]:
    days: set[int] = set()
    for part in names.split(","):
        first, _, last = part.partition("-")
        if first not in DAYS or (last or first) not in DAYS:
            raise ValueError(f"{text!r}: days are {', '.join(DAYS)}, {_EXAMPLES}")
        begin = DAYS.index(first)
        number = (DAYS.index(last or first) - begin) % len(DAYS)
        days |= {(begin + day) % len(DAYS) for day in range(number + 1)}
    return frozenset(days)
