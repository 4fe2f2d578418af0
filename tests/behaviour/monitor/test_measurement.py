"""Speeds as messages and back: nothing unknown becomes zero, and nothing outgrows the limit."""

import numpy as np

from penstock.messages import (
    MESSAGE_BYTES_MAX,
    PartAssembler,
    Refusal,
    SpeedSource,
    WholeMeasurement,
    WriteSpeedMeasurement,
    decode,
    encode,
)
from penstock.model.broker_logs import LogName
from penstock.monitor.core.measurement import measurement_parts
from penstock.monitor.core.meter import MeasuredSpeeds


def speeds_of(names: list[LogName], *, unknown: bool = False) -> MeasuredSpeeds:
    count = len(names)
    values = np.full(count, np.nan) if unknown else np.linspace(0, 1e9 / 3, count)
    return MeasuredSpeeds(
        names=names,
        topic_ids=["x" * 22] * count,
        source=SpeedSource.LOG_DIRS,
        newest_sample_age_s=0.25,
        bytes_per_s=values,
        raw_bytes_per_s=values,
        records_per_s=values,
        mean_bytes_per_record=values,
        start_offset=values,
        end_offset=np.full(count, np.nan) if unknown else np.full(count, 2.0**53),
    )


def parts_of(speeds: MeasuredSpeeds, sequence: int = 1) -> list[WriteSpeedMeasurement]:
    return list(
        measurement_parts(
            speeds,
            monitor_incarnation=7,
            sequence=sequence,
            published_at_unix_ms=1_800_000_000_000,
            window_s=30.0,
        )
    )


def test_twelve_thousand_partitions_travel_in_parts() -> None:
    """Every part is below the limit even with the longest names, and together they are whole."""
    names = [(f"{'t' * 245}{topic:04d}", number) for topic in range(12) for number in range(1000)]
    assembler: PartAssembler[WriteSpeedMeasurement] = PartAssembler()
    whole = None
    for part in parts_of(speeds_of(names)):
        encoded = encode(part)
        assert len(encoded.value) < MESSAGE_BYTES_MAX
        read = decode(encoded.value, encoded.headers, topic_role="monitor", mailbox=0)
        assert isinstance(read, WriteSpeedMeasurement), read
        whole = assembler.add(read)
    assert whole is not None
    assert [
        (row.topic, row.partition)
        for row in WholeMeasurement.from_parts(whole, read_at_s=0.0).partitions
    ] == (names)


def test_unknown_is_absent_in_the_text() -> None:
    """A reader without our code finds no speed at all where none is known."""
    (part,) = parts_of(speeds_of([("orders", 0)], unknown=True))
    text = encode(part).value.decode()
    for absent in ("speed", "records", "offset", "source", "NaN", "null"):
        assert absent not in text
    assert '"topic":"orders"' in text


def test_no_partition_is_a_measurement_too() -> None:
    """An empty cluster gives one message without rows."""
    (part,) = parts_of(speeds_of([]))
    assert part.partitions == ()
    assert part.age_ms == 250


def test_the_newest_whole_one_counts() -> None:
    """Lost, doubled, late and old parts: only a complete and newer measurement is given."""
    names = [("t", number) for number in range(2500)]
    old, new = parts_of(speeds_of(names), 4), parts_of(speeds_of(names), 5)
    assembler: PartAssembler[WriteSpeedMeasurement] = PartAssembler()
    order = [old[0], old[2], new[2], old[1], new[0], new[0], old[1], new[1], old[2]]
    given = [assembler.add(part) for part in order]
    complete = [one for one in given if one is not None]
    assert [one[0].sequence for one in complete] == [5]


def test_age_grows_by_the_readers_clock() -> None:
    """The age when read, plus the time since; a clock that goes back takes nothing off."""
    (part,) = parts_of(speeds_of([("t", 0)]))
    newest = WholeMeasurement.from_parts([part], read_at_s=1000.0, unread_s=0.05)
    assert newest.age_s(1002.0) == 2.3
    assert newest.age_s(10.0) == 0.3


def test_foreign_bytes_are_refused() -> None:
    """Bytes that are no measurement give a refusal, and raise nothing."""
    assert isinstance(decode(b"{}", [], topic_role="monitor", mailbox=0), Refusal)
