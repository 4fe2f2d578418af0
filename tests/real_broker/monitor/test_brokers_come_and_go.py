"""On real clusters of its own: leaders that move, brokers that are killed, paused and restarted."""

import time

import pytest

from kit.kafka.measuring import fits, seen_in, watching, writing
from penstock.kafka_io.administration import Administration
from penstock.laboratory.broker import EmbeddedKafka
from penstock.laboratory.broker.properties import BrokerPlan
from penstock.monitor.core.meter import MeasuredSpeeds
from penstock.processes import STOP_GRACE_S, stop

# Long: a round that waits for a silent broker is told from one that waits for the processor.
ANSWER_TIMEOUT_S = 30.0

pytestmark = [
    pytest.mark.broker,
    # kafka-python leaves the socket of a refused connection to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


@pytest.mark.timeout(180)
def test_leaders_move_between_three_brokers(broker_jars: None) -> None:
    """A leader dies, another takes over, the first comes back: no jump, no zero, no storm."""
    with EmbeddedKafka(BrokerPlan(brokers=3, heap_mib=256)) as kafka:
        Administration(kafka.settings).create_topic("moved", partitions=6)
        names = [("moved", number) for number in range(6)]
        with (
            writing(kafka, *names, bytes_per_s=100_000) as writer,
            watching(kafka, "moved") as watcher,
        ):
            for name in names:
                watcher.until(name)
            watcher.watch(2.0)
            leaders = watcher._measuring._meter.by_leader
            assert len(leaders) == 3
            victim = min(leaders)
            moved = leaders[victim]
            stop(kafka.nodes[victim].process, grace_s=STOP_GRACE_S)
            writer.mark()
            watcher.watch(6.0, writer)
            until_s = time.monotonic() + 60
            while victim in watcher._measuring._meter.by_leader:
                assert time.monotonic() < until_s, "no leader moved: the test is void"
                watcher.watch(1.0, writer)
            calm = watcher.watch(2.0, writer)
            kafka.restart(victim)
            back = watcher.watch(6.0, writer)
            written = {name: writer.speeds_between_looks(name) for name in moved}
            for name in names:
                watcher.until(name)

            def wrong(window: list[MeasuredSpeeds]) -> object:
                rows = [
                    (seen_in(window[-1], name), writer.payload_bytes_per_s(name)) for name in names
                ]
                return [
                    (last, produced)
                    for last, produced in rows
                    if last is None or not fits(last.bytes_per_s, produced, within=0.25)
                ]

            watcher.until_right(writer, 6.0, wrong)
    for speeds in (*calm, *back):
        for name in moved:
            seen = seen_in(speeds, name)
            assert seen is not None
            assert seen.bytes_per_s is not None
            # Where the writer of a busy machine stood still or came in a burst, so does the speed.
            slowest, fastest = written[name]
            assert slowest == 0 or seen.bytes_per_s > 0
            assert seen.bytes_per_s < max(200_000, 2 * fastest)


@pytest.mark.timeout(180)
def test_a_broker_is_paused_killed_and_restarted(broker_jars: None) -> None:
    """Silence is held, then unknown; after the restart the speeds are right again."""
    with EmbeddedKafka() as kafka:
        Administration(kafka.settings).create_topic("away", partitions=1)
        name = ("away", 0)
        patient = f"{ANSWER_TIMEOUT_S:g}s"
        with watching(kafka, "away", answer_timeout=patient, unknown_after="2s") as watcher:
            with writing(kafka, name):
                watcher.until(name)
                kafka.pause(1)
                begun_s = time.monotonic()
                silent = watcher.watch(4.0)
                over_s = time.monotonic() - begun_s - 4.0
                assert over_s < ANSWER_TIMEOUT_S / 2, "a round waited for the silent broker"
                kafka.resume(1)
                watcher.until(name)
            last = seen_in(silent[-1], name)
            assert last is not None
            assert last.bytes_per_s is None
            kafka.kill(1)
            dead = watcher.watch(4.0)[-1]
            assert (seen := seen_in(dead, name)) is not None
            assert seen.bytes_per_s is None
            kafka.restart(1)
            with writing(kafka, name) as writer:
                watcher.until(name)

                def wrong(window: list[MeasuredSpeeds]) -> object:
                    produced, again = writer.payload_bytes_per_s(name), seen_in(window[-1], name)
                    assert again is not None
                    is_right = fits(again.bytes_per_s, produced, within=0.2)
                    return None if is_right else (again, produced)

                watcher.until_right(writer, 5.0, wrong)
