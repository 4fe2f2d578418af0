"""On a real broker: partitions that come, grow, vanish and come back under the same name."""

import time

import pytest

from kit.kafka.measuring import fits, seen_in, watching, writing
from penstock.kafka_io.administration import Administration
from penstock.laboratory.broker import EmbeddedKafka
from penstock.monitor.core.meter import MeasuredSpeeds

pytestmark = pytest.mark.broker


def test_speed_of_a_steady_writer(kafka: EmbeddedKafka) -> None:
    """The measured speed is the produced one, in bytes and in records."""
    Administration(kafka.settings).create_topic("steady", partitions=1)
    name = ("steady", 0)
    with writing(kafka, name) as writer, watching(kafka, "steady") as watcher:
        watcher.until(name)

        def wrong(window: list[MeasuredSpeeds]) -> object:
            produced, seen = writer.payload_bytes_per_s(name), seen_in(window[-1], name)
            assert seen is not None
            is_right = fits(seen.bytes_per_s, produced) and fits(seen.records_per_s, produced / 1e3)
            return None if is_right else (seen, produced)

        watcher.until_right(writer, 6.0, wrong)


def test_new_partitions_and_topics_are_found(kafka: EmbeddedKafka) -> None:
    """A grown topic and a new one are measured soon, and the old partition is not disturbed."""
    administration = Administration(kafka.settings)
    administration.create_topic("growing-a", partitions=1)
    with writing(kafka, ("growing-a", 0)) as writer, watching(kafka, "growing-.") as watcher:
        watcher.until(("growing-a", 0))
        watcher.watch(2.0)
        administration.grow_topic("growing-a", 3)
        administration.create_topic("growing-b", partitions=2)
        for name in (("growing-a", 2), ("growing-b", 1)):
            assert watcher.until(name).bytes_per_s == 0.0

        def wrong(window: list[MeasuredSpeeds]) -> object:
            produced = writer.payload_bytes_per_s(("growing-a", 0))
            rows = [seen_in(speeds, ("growing-a", 0)) for speeds in window]
            assert None not in rows
            speeds = [one.bytes_per_s for one in rows if one is not None]
            return [(one, produced) for one in speeds if not fits(one, produced, within=0.25)]

        watcher.until_right(writer, 3.0, wrong)


def test_a_deleted_topic_leaves_and_comes_back_as_another(kafka: EmbeddedKafka) -> None:
    """Deleted: gone. Made again: unknown first, then its own speed; never the old one's past."""
    administration = Administration(kafka.settings)
    administration.create_topic("again", partitions=1)
    administration.create_topic("again-not", partitions=1)
    with watching(kafka, "again.*") as watcher:
        with writing(kafka, ("again", 0), bytes_per_s=1_000_000):
            watcher.until(("again", 0))
            watcher.watch(2.0)
        administration.delete_topic("again")
        until_s = time.monotonic() + 60
        while ("again", 0) in (gone := watcher.watch(1.0)[-1]).names:
            assert time.monotonic() < until_s, "it stays"
        assert ("again-not", 0) in gone.names
        administration.create_topic("again", partitions=1)
        with writing(kafka, ("again", 0), bytes_per_s=100_000) as writer:
            watcher.until(("again", 0))

            def wrong(window: list[MeasuredSpeeds]) -> object:
                produced = writer.payload_bytes_per_s(("again", 0))
                speeds = [seen_in(one, ("again", 0)) for one in window]
                assert all(one is not None and (one.bytes_per_s or 0) < 300_000 for one in speeds)
                last = speeds[-1]
                assert last is not None
                return None if fits(last.bytes_per_s, produced, within=0.2) else (last, produced)

            watcher.until_right(writer, 4.0, wrong)


def test_a_topic_made_again_between_two_looks(kafka: EmbeddedKafka) -> None:
    """Even when nobody saw it missing, the new topic does not inherit the old one's speed."""
    administration = Administration(kafka.settings)
    administration.create_topic("swift", partitions=1)
    with watching(kafka, "swift", layout_refresh="10s") as watcher:
        with writing(kafka, ("swift", 0), bytes_per_s=1_000_000):
            watcher.until(("swift", 0))
            watcher.watch(2.0)
        administration.delete_topic("swift")
        administration.create_topic("swift", partitions=1)
        later = watcher.watch(5.0)
    last = seen_in(later[-1], ("swift", 0))
    assert last is not None
    assert last.bytes_per_s == 0.0
    assert last.end_offset == 0


def test_offsets_measure_where_sizes_are_not_asked(kafka: EmbeddedKafka) -> None:
    """The second source, forced: the same speed from offsets and sampled record sizes."""
    Administration(kafka.settings).create_topic("by-offsets", partitions=2)
    name = ("by-offsets", 0)
    with (
        writing(kafka, name) as writer,
        watching(kafka, "by-offsets", source="offsets") as watcher,
    ):
        watcher.until(name)

        def wrong(window: list[MeasuredSpeeds]) -> object:
            produced, seen = writer.payload_bytes_per_s(name), seen_in(window[-1], name)
            assert seen is not None
            return None if fits(seen.bytes_per_s, produced) else (seen, produced)

        watcher.until_right(writer, 6.0, wrong)
        idle = seen_in(watcher.rounds[-1], ("by-offsets", 1))
    assert watcher.rounds[-1].source == "offsets"
    assert idle is not None
    assert idle.bytes_per_s == 0.0
