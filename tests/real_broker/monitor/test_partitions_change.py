"""On a real broker: partitions that come, grow, vanish and come back under the same name."""

import pytest

from kit.kafka.measuring import fits, seen_in, watching, writing
from penstock.kafka_io.administration import Administration
from penstock.laboratory.broker import EmbeddedKafka

pytestmark = pytest.mark.broker


def test_speed_of_a_steady_writer(kafka: EmbeddedKafka) -> None:
    """The measured speed is the produced one, in bytes and in records."""
    Administration(kafka.settings).create_topic("steady", partitions=1)
    name = ("steady", 0)
    with writing(kafka, name) as writer, watching(kafka, "steady") as watcher:
        watcher.until(name)
        writer.mark()
        watcher.watch(6.0)
        produced = writer.payload_bytes_per_s(name)
        seen = seen_in(watcher.rounds[-1], name)
    assert seen is not None
    assert fits(seen.bytes_per_s, produced), (seen, produced)
    assert fits(seen.records_per_s, produced / 1000), (seen, produced)


def test_new_partitions_and_topics_are_found(kafka: EmbeddedKafka) -> None:
    """A grown topic and a new one are measured soon, and the old partition is not disturbed."""
    administration = Administration(kafka.settings)
    administration.create_topic("growing-a", partitions=1)
    with writing(kafka, ("growing-a", 0)) as writer, watching(kafka, "growing-.") as watcher:
        watcher.until(("growing-a", 0))
        writer.mark()
        watcher.watch(2.0)
        administration.grow_topic("growing-a", 3)
        administration.create_topic("growing-b", partitions=2)
        for name in (("growing-a", 2), ("growing-b", 1)):
            assert watcher.until(name).bytes_per_s == 0.0
        later = watcher.watch(1.5)
        produced = writer.payload_bytes_per_s(("growing-a", 0))
    for speeds in later:
        old = seen_in(speeds, ("growing-a", 0))
        assert old is not None
        assert fits(old.bytes_per_s, produced, within=0.25), (old, produced)


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
        gone = watcher.watch(3.0)[-1]
        assert ("again", 0) not in gone.names
        assert ("again-not", 0) in gone.names
        administration.create_topic("again", partitions=1)
        with writing(kafka, ("again", 0), bytes_per_s=100_000) as writer:
            watcher.until(("again", 0))
            writer.mark()
            later = watcher.watch(4.0)
            produced = writer.payload_bytes_per_s(("again", 0))
    speeds = [seen_in(one, ("again", 0)) for one in later]
    assert all(one is not None and (one.bytes_per_s or 0) < 300_000 for one in speeds)
    assert speeds[-1] is not None
    assert fits(speeds[-1].bytes_per_s, produced, within=0.2), (speeds[-1], produced)


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
        writer.mark()
        watcher.watch(6.0)
        produced = writer.payload_bytes_per_s(name)
        seen = seen_in(watcher.rounds[-1], name)
        idle = seen_in(watcher.rounds[-1], ("by-offsets", 1))
    assert watcher.rounds[-1].source == "offsets"
    assert seen is not None
    assert fits(seen.bytes_per_s, produced), (seen, produced)
    assert idle is not None
    assert idle.bytes_per_s == 0.0
