"""The meter round by round: partitions that come, go, move and fall silent."""

import math
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.messages import SpeedSource
from penstock.model.broker_logs import BrokerLogSizes, LogName, LogOffsets, LogPlace
from penstock.monitor.core.filters import (
    Exponential,
    PlainWindow,
    SpeedFilter,
    StepAdapting,
    filter_from_settings,
)
from penstock.monitor.core.meter import Meter
from penstock.settings.sections import MonitorSettings

# A busy machine is no defect of the subject.
unhurried = settings(deadline=None)
ORDERS: LogName = ("orders", 0)
CLICKS: LogName = ("clicks", 0)
FIRST = LogPlace("a" * 22, leader=1)
AGAIN = LogPlace("b" * 22, leader=1)
RECORD_BYTES = 100


def meter(*names: LogName, speed_filter: SpeedFilter | None = None, **options: float) -> Meter:
    made = Meter(
        speed_filter or PlainWindow(),
        window_s=options.get("window_s", 30.0),
        unknown_after_s=options.get("unknown_after_s", 10.0),
    )
    made.set_layout(dict.fromkeys(names, FIRST))
    return made


def sample(one: Meter, at_s: float, records: Mapping[LogName, int], *, broker: int = 1) -> bool:
    """Each log has this many records of 100 bytes; nothing was ever deleted."""
    sizes = {name: count * RECORD_BYTES for name, count in records.items()}
    starts = dict.fromkeys(records, 0)
    return one.add_round(
        at_s, [BrokerLogSizes(broker, at_s, sizes)], [LogOffsets(broker, at_s, starts, records)]
    )


def speed_of(one: Meter, name: LogName, now_s: float) -> float:
    speeds = one.speeds(now_s)
    return float(speeds.bytes_per_s[list(speeds.names).index(name)])


@pytest.mark.parametrize(
    "speed_filter", [PlainWindow(), Exponential(4.0), StepAdapting(2.0, tolerance=0.02, noise=4.0)]
)
def test_no_interval_yet_is_unknown(speed_filter: SpeedFilter) -> None:
    """Of two partitions nothing has been seen twice: both unknown, in every filter."""
    nothing = np.zeros((0, 2))
    assert np.isnan(speed_filter.speeds(nothing, nothing)).tolist() == [True, True]


def test_first_look_is_unknown_and_second_is_right() -> None:
    """The first sample gives unknown, the second the true speed; never zero in between."""
    one = meter(ORDERS)
    sample(one, 100.0, {ORDERS: 5000})
    assert math.isnan(speed_of(one, ORDERS, 100.0))
    sample(one, 101.0, {ORDERS: 5010})
    assert speed_of(one, ORDERS, 101.0) == 1000.0


def test_everything_a_message_needs_is_there() -> None:
    """Raw and filtered speed, records, mean weight, offsets, source and age."""
    one = meter(ORDERS)
    for number in range(4):
        sample(one, number, {ORDERS: 10 * number + (5 if number == 3 else 0)})
    speeds = one.speeds(3.5)
    assert speeds.bytes_per_s[0] == pytest.approx(3500 / 3)
    assert speeds.raw_bytes_per_s[0] == 1500.0
    assert speeds.records_per_s[0] == pytest.approx(35 / 3)
    assert speeds.mean_bytes_per_record[0] == RECORD_BYTES
    assert (speeds.start_offset[0], speeds.end_offset[0]) == (0, 35)
    assert speeds.source is SpeedSource.LOG_DIRS
    assert speeds.newest_sample_age_s == 0.5


def test_partitions_grow_without_a_jump() -> None:
    """A new partition is unknown at first and does not disturb the old one."""
    one = meter(ORDERS)
    sample(one, 0, {ORDERS: 0})
    sample(one, 1, {ORDERS: 10})
    one.set_layout({ORDERS: FIRST, ("orders", 1): FIRST, ("another", 0): FIRST})
    sample(one, 2, {ORDERS: 20, ("orders", 1): 7000, ("another", 0): 9})
    assert speed_of(one, ORDERS, 2) == 1000.0
    assert math.isnan(speed_of(one, ("orders", 1), 2))
    sample(one, 3, {ORDERS: 30, ("orders", 1): 7020, ("another", 0): 9})
    assert speed_of(one, ("orders", 1), 3) == 2000.0
    assert speed_of(one, ("another", 0), 3) == 0.0


def test_deleted_topic_is_gone() -> None:
    """What is not in the layout is not in a measurement; the rest keeps its past."""
    one = meter(ORDERS, CLICKS)
    sample(one, 0, {ORDERS: 0, CLICKS: 0})
    sample(one, 1, {ORDERS: 10, CLICKS: 5})
    one.set_layout({ORDERS: FIRST})
    sample(one, 2, {ORDERS: 20})
    assert one.speeds(2).names == [ORDERS]
    assert speed_of(one, ORDERS, 2) == 1000.0


def test_a_topic_made_again_has_no_past() -> None:
    """Another topic id is another log: unknown until it has been looked at twice."""
    one = meter(ORDERS)
    sample(one, 0, {ORDERS: 1000})
    sample(one, 1, {ORDERS: 2000})
    one.set_layout({ORDERS: AGAIN})
    sample(one, 2, {ORDERS: 3000})
    assert math.isnan(speed_of(one, ORDERS, 2))
    sample(one, 3, {ORDERS: 3001})
    assert speed_of(one, ORDERS, 3) == 100.0


def test_a_log_that_went_back_asks_for_the_layout() -> None:
    """An end offset that fell is a hint that the topic was made again."""
    one = meter(ORDERS)
    sample(one, 0, {ORDERS: 1000})
    assert not sample(one, 1, {ORDERS: 1010})
    assert sample(one, 2, {ORDERS: 3})


def test_only_the_leader_counts() -> None:
    """A follower's size on another broker is not looked at."""
    one = meter(ORDERS)
    for number in range(3):
        sample(one, number, {ORDERS: 10 * number})
        one_more = {ORDERS: 10**9 + 10**6 * number}
        one.add_round(number + 0.1, [BrokerLogSizes(2, number + 0.1, one_more)], [])
    assert speed_of(one, ORDERS, 2.1) == 1000.0


def test_a_leader_move_gives_no_jump() -> None:
    """The new leader's log has another size; the speed stays what it was."""
    one = meter(ORDERS)
    for number in range(5):
        sample(one, number, {ORDERS: 100 * number})
    one.set_layout({ORDERS: LogPlace(FIRST.topic_id, leader=2)})
    for number in range(5, 10):
        sizes = BrokerLogSizes(2, number, {ORDERS: 777_777 + 10_000 * number})
        offsets = LogOffsets(2, number, {ORDERS: 0}, {ORDERS: 100 * number})
        one.add_round(number, [sizes], [offsets])
        assert speed_of(one, ORDERS, number) == pytest.approx(10_000.0)


def test_silence_becomes_unknown_not_zero() -> None:
    """The last speed is held for a while; then it is unknown, until the broker answers again."""
    one = meter(ORDERS, unknown_after_s=3.0)
    sample(one, 0, {ORDERS: 0})
    sample(one, 1, {ORDERS: 10})
    for number in range(2, 8):
        one.add_round(number, [], [])
        known = not math.isnan(speed_of(one, ORDERS, number))
        assert known == (number - 1 <= 3.0)
    sample(one, 8, {ORDERS: 80})
    assert speed_of(one, ORDERS, 8) == pytest.approx(1000.0)


def test_the_window_forgets() -> None:
    """Nothing older than the window counts."""
    one = meter(ORDERS, window_s=5.0)
    records = 0
    for number in range(20):
        records += 1000 if number <= 10 else 10
        sample(one, number, {ORDERS: records})
    assert speed_of(one, ORDERS, 19) == 1000.0


def test_a_pause_of_the_process_is_one_long_interval() -> None:
    """After an hour asleep the speed is the mean over that hour, not a burst; then it is fresh."""
    one = meter(ORDERS)
    sample(one, 0, {ORDERS: 0})
    sample(one, 1, {ORDERS: 10})
    sample(one, 3601, {ORDERS: 10 + 36_000})
    assert speed_of(one, ORDERS, 3601) == pytest.approx(1000.0)
    sample(one, 3602, {ORDERS: 10 + 36_000 + 20})
    assert speed_of(one, ORDERS, 3602) == 2000.0


def test_offsets_stand_in_when_sizes_are_refused() -> None:
    """Offsets take over with the mean that is already known, and are named as the source."""
    one = meter(ORDERS)
    sample(one, 0, {ORDERS: 0})
    sample(one, 1, {ORDERS: 10})
    one.change_source(SpeedSource.OFFSETS)
    one.add_round(2, [], [LogOffsets(1, 2.0, {ORDERS: 0}, {ORDERS: 20})])
    assert speed_of(one, ORDERS, 2) == 1000.0
    assert one.speeds(2).source is SpeedSource.OFFSETS
    one.learn_record_sizes({ORDERS: 200.0, ("gone", 3): 5.0})
    one.add_round(3, [], [LogOffsets(1, 3.0, {ORDERS: 0}, {ORDERS: 30})])
    assert one.speeds(3).raw_bytes_per_s[0] == 2000.0


def test_answers_of_different_moments_do_not_bend_the_mean() -> None:
    """Sizes and offsets come unevenly, bytes are cleaned away: a record still weighs the same."""
    one = meter(ORDERS, window_s=10.0)
    for number in range(60):
        size_at_s = 0.5 * number + (0.05 if number % 2 else 0.0)
        offset_at_s = 0.5 * number + (0.0 if number % 2 else 0.3)
        cleaned = 40_000 * (number // 3)
        sizes = {ORDERS: 10**7 + int(100_000 * size_at_s) - cleaned}
        ends = {ORDERS: int(1000 * offset_at_s)}
        one.add_round(
            0.5 * number + 0.3,
            [BrokerLogSizes(1, size_at_s, sizes)],
            [LogOffsets(1, offset_at_s, {ORDERS: 0}, ends)],
        )
    speeds = one.speeds(29.8)
    assert speeds.mean_bytes_per_record[0] == pytest.approx(RECORD_BYTES, rel=0.1)
    assert speeds.bytes_per_s[0] == pytest.approx(100_000, rel=0.15)


def test_sizes_that_return_before_offsets_do_not_bend_the_mean() -> None:
    """After a silence, sizes come one round before offsets: a record still weighs the same."""
    one = meter(ORDERS, speed_filter=StepAdapting(2.0, tolerance=0.02, noise=4.0))
    for number in range(5):
        sample(one, 0.3 * number, {ORDERS: 90 * number})
    records = 360
    for number in range(15):
        now_s, records = 31.2 + 0.3 * number, records + 90
        sizes = BrokerLogSizes(1, now_s, {ORDERS: records * RECORD_BYTES})
        offsets = LogOffsets(1, now_s, {ORDERS: 0}, {ORDERS: records})
        one.add_round(now_s, [sizes], [offsets] if number else [])
    speeds = one.speeds(now_s)
    assert speeds.mean_bytes_per_record[0] == pytest.approx(RECORD_BYTES, rel=0.05)
    assert speeds.bytes_per_s[0] == pytest.approx(300 * RECORD_BYTES, rel=0.05)


def test_bytes_without_records_give_no_mean() -> None:
    """A size that grew while no offset did does not show what a record weighs."""
    one = meter(ORDERS)
    none_yet = LogOffsets(1, 0.0, {ORDERS: 0}, {ORDERS: 0})
    one.add_round(0.0, [], [none_yet])
    one.add_round(0.5, [BrokerLogSizes(1, 0.5, {ORDERS: 0})], [])
    still_none = LogOffsets(1, 1.5, {ORDERS: 0}, {ORDERS: 0})
    one.add_round(1.5, [BrokerLogSizes(1, 1.5, {ORDERS: 1})], [still_none])
    one.add_round(2.0, [], [])
    assert math.isnan(one.speeds(2.0).mean_bytes_per_record[0])


def test_offsets_without_a_mean_are_unknown() -> None:
    """Records of unknown weight have a speed in records and none in bytes."""
    one = meter(ORDERS)
    one.change_source(SpeedSource.OFFSETS)
    for number in range(3):
        one.add_round(number, [], [LogOffsets(1, number, {ORDERS: 0}, {ORDERS: 10 * number})])
    speeds = one.speeds(2)
    assert math.isnan(speeds.bytes_per_s[0])
    assert speeds.records_per_s[0] == 10.0


@unhurried
@given(
    rounds=st.lists(
        st.tuples(
            st.floats(-10, 100),  # how the clock moves: also back
            st.lists(st.none() | st.integers(0, 10**9), min_size=3, max_size=3),  # sizes
            st.lists(st.none() | st.integers(0, 10**6), min_size=3, max_size=3),  # end offsets
            st.lists(st.sampled_from([FIRST, AGAIN, None]), min_size=3, max_size=3),  # layout
        ),
        max_size=12,
    ),
    source=st.sampled_from(SpeedSource),
)
def test_whatever_happens_speeds_are_speeds_or_unknown(
    rounds: list[tuple[float, list[int | None], list[int | None], list[LogPlace | None]]],
    source: SpeedSource,
) -> None:
    """Any order of sizes, offsets, layouts and clock readings: finite and not negative, or NaN."""
    names = [("t", number) for number in range(3)]
    one = Meter(
        StepAdapting(2.0, tolerance=0.02, noise=4.0),
        window_s=30,
        unknown_after_s=10,
        source=source,
    )
    now_s = 0.0
    for moved_s, sizes, ends, places in rounds:
        now_s += moved_s
        one.set_layout({n: place for n, place in zip(names, places, strict=True) if place})
        sized = {n: size for n, size in zip(names, sizes, strict=True) if size is not None}
        ended = {n: end for n, end in zip(names, ends, strict=True) if end is not None}
        one.add_round(now_s, [BrokerLogSizes(1, now_s, sized)], [LogOffsets(1, now_s, {}, ended)])
        speeds = one.speeds(now_s)
        for row in (speeds.bytes_per_s, speeds.raw_bytes_per_s, speeds.records_per_s):
            known = row[~np.isnan(row)]
            assert np.isfinite(known).all()
            assert (known >= 0).all()
        assert speeds.newest_sample_age_s >= 0


def test_who_leads_what_and_where_logs_begin_and_end() -> None:
    """What the questions are put together from; a partition without a leader is asked of nobody."""
    one = meter()
    lost = LogPlace("c" * 22, leader=-1)
    one.set_layout({("orders", 0): FIRST, ("orders", 1): FIRST, ("lost", 0): lost})
    assert set(one.by_leader) == {1}
    assert set(one.by_leader[1]) == {("orders", 0), ("orders", 1)}
    assert (one.leader_of(("orders", 0)), one.leader_of(("lost", 0))) == (1, -1)
    assert len(one.names) == 3
    assert one.offset_spans() == []
    sample(one, 100.0, {("orders", 0): 5000})
    assert one.offset_spans() == [(("orders", 0), 0, 5000)]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("window", PlainWindow), ("exponential", Exponential), ("step_adapting", StepAdapting)],
)
def test_the_filter_is_a_setting(name: str, kind: type) -> None:
    """Each name makes its own."""
    settings_of_monitor = MonitorSettings.model_validate({"filter": name})
    assert isinstance(filter_from_settings(settings_of_monitor), kind)
