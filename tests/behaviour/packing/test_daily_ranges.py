"""Times of the day in which a group is not changed."""

from datetime import UTC, datetime, timedelta

import pytest

from penstock.packing.daily_ranges import daily_range, minute_of_week
from penstock.settings.time_zone import utc_offset_s


def left(text: str, at: str, zone: str = "UTC") -> int:
    """The minutes that the range goes on from this moment of UTC."""
    unix_ms = round(datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp() * 1_000)
    return daily_range(text).minutes_left(minute_of_week(unix_ms, utc_offset_s(zone, unix_ms)))


def test_a_range_of_every_day() -> None:
    """The first minute is in it, the last is not."""
    assert left("08:00-09:00", "2026-11-17T07:59:59") == 0
    assert left("08:00-09:00", "2026-11-17T08:00:00") == 60
    assert left("8:00 - 9:00", "2026-11-17T08:59:59") == 1
    assert left("08:00-09:00", "2026-11-17T09:00:00") == 0
    assert left("00:00-24:00", "2026-11-17T23:59:00") == 1


def test_a_range_of_some_days() -> None:
    """2026-11-20 is a Friday; a range of days may go over the end of the week."""
    assert left("mon-fri 08:00-09:00", "2026-11-20T08:30:00") == 30
    assert left("mon-fri 08:00-09:00", "2026-11-21T08:30:00") == 0
    assert left("Sat,Mon 08:00-09:00", "2026-11-21T08:30:00") == 30
    assert left("fri-mon 08:00-09:00", "2026-11-22T08:30:00") == 30
    assert left("fri-mon 08:00-09:00", "2026-11-24T08:30:00") == 0


def test_a_range_goes_on_after_midnight() -> None:
    """Its day is the one on which it begins; Sunday's goes into the next week."""
    assert left("fri 22:00-06:00", "2026-11-20T23:00:00") == 7 * 60
    assert left("fri 22:00-06:00", "2026-11-21T05:00:00") == 60
    assert left("fri 22:00-06:00", "2026-11-20T05:00:00") == 0
    assert left("sun 22:00-06:00", "2026-11-23T05:00:00") == 60


def test_the_wall_clock_decides_when_clocks_change() -> None:
    """Berlin skips 02:00 to 03:00 on 2026-03-29 and has it twice on 2026-10-25."""
    zone, night, morning = "Europe/Berlin", "02:00-03:00", "08:00-09:00"
    assert left(morning, "2026-03-28T07:30:00", zone) == 30
    assert left(morning, "2026-03-29T06:30:00", zone) == 30
    assert left(morning, "2026-03-29T07:30:00", zone) == 0
    begin = datetime(2026, 3, 29, tzinfo=UTC)
    skipped = [left(night, (begin + timedelta(minutes=m)).isoformat()[:19], zone)
               for m in range(4 * 60)]  # fmt: skip
    assert not any(skipped)
    begin = datetime(2026, 10, 25, tzinfo=UTC)
    twice = [left(night, (begin + timedelta(minutes=m)).isoformat()[:19], zone)
             for m in range(4 * 60)]  # fmt: skip
    assert sum(map(bool, twice)) == 2 * 60


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("8 to 9", "is not a time of the day"),
        ("25:00-26:00", "there is no 25:00"),
        ("08:00-08:60", "there is no 08:60"),
        ("08:00-08:00", "has no minute in it"),
        ("24:00-01:00", "has no minute in it"),
        ("mon-xyz 08:00-09:00", "days are mon, tue"),
        ("xyz 08:00-09:00", "days are mon, tue"),
    ],
)
def test_what_is_no_range_is_refused(text: str, said: str) -> None:
    """With what it should be."""
    with pytest.raises(ValueError, match=said):
        daily_range(text)


def test_a_time_zone_that_nobody_knows_is_refused() -> None:
    """With an example."""
    with pytest.raises(ValueError, match="not a time zone that this machine knows"):
        utc_offset_s("Mars/Olympus", 0)
