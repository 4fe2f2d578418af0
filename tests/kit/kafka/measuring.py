"""Measures a real cluster in the test's own process, and writes to it at a known speed."""

import gc
import math
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from threading import Event, Thread

from penstock.kafka_io.administration import Administration
from penstock.kafka_io.broker_questions import BrokerQuestions
from penstock.laboratory.broker import EmbeddedKafka
from penstock.laboratory.load import LoadGenerator, RecordForm, Target
from penstock.laboratory.load.shapes import Constant
from penstock.model import TopicPartition
from penstock.model.broker_logs import LogName
from penstock.monitor.core.meter import MeasuredSpeeds
from penstock.monitor.process import SpeedMeasuring
from penstock.settings import Settings
from penstock.settings.sections import KafkaSettings, MonitorSettings

PERIOD_S = 0.3
# A producer that gets no processor for a while writes nothing and then too much. A window counts
# where it wrote evenly over every such time, and the meter had most of its rounds.
EVEN_OVER_S = 1.0
EVEN_WITHIN = 0.1
ROUNDS_SHARE_MIN = 0.7
WINDOWS_MAX = 15


@dataclass(frozen=True, slots=True)
class Seen:
    """One partition in one measurement; None is unknown."""

    bytes_per_s: float | None
    raw_bytes_per_s: float | None
    records_per_s: float | None
    end_offset: float | None


class Watcher:
    """Runs rounds and remembers them. Every speed it ever sees is a speed, or unknown."""

    def __init__(self, measuring: SpeedMeasuring) -> None:
        self._measuring = measuring
        self.rounds: list[MeasuredSpeeds] = []

    def watch(self, seconds: float, writer: "Writer | None" = None) -> list[MeasuredSpeeds]:
        """Run rounds for this long; returns those. What the writer has written is noted beside."""
        first, end_s = len(self.rounds), time.monotonic() + seconds
        while time.monotonic() < end_s:
            begun_s = time.monotonic()
            speeds = self._measuring.run_round()
            assert speeds is not None
            for row in (speeds.bytes_per_s, speeds.raw_bytes_per_s, speeds.records_per_s):
                assert all(math.isnan(value) or 0 <= value < math.inf for value in row)
            self.rounds.append(speeds)
            if writer is not None:
                writer.look()
            time.sleep(max(0.0, PERIOD_S - (time.monotonic() - begun_s)))
        return self.rounds[first:]

    def until(self, name: LogName, *, timeout_s: float = 90.0) -> Seen:
        """Watch until the speed of a partition is known."""
        end_s = time.monotonic() + timeout_s
        while time.monotonic() < end_s:
            self.watch(PERIOD_S)
            seen = seen_in(self.rounds[-1], name)
            if seen is not None and seen.bytes_per_s is not None:
                return seen
        raise AssertionError(f"the speed of {name} stayed unknown for {timeout_s} s")

    def until_right(
        self,
        writer: "Writer",
        seconds: float,
        wrong: Callable[[list[MeasuredSpeeds]], object],
    ) -> None:
        """Watch a window in which nothing is `wrong`; begins with a mark of the writer.

        What is wrong in a window of an even writer is an error. In another one it proves nothing,
        and the next window is watched.
        """
        for _ in range(WINDOWS_MAX):
            writer.mark()
            window = self.watch(seconds, writer)
            found = wrong(window)
            if not found:
                return
            has_rounds = len(window) >= ROUNDS_SHARE_MIN * seconds / PERIOD_S
            assert not (has_rounds and writer.was_even()), found
        raise AssertionError(f"void {WINDOWS_MAX} times: nothing was written evenly; {found}")


def seen_in(speeds: MeasuredSpeeds, name: LogName) -> Seen | None:
    if name not in speeds.names:
        return None
    column = list(speeds.names).index(name)
    rows = (speeds.bytes_per_s, speeds.raw_bytes_per_s, speeds.records_per_s, speeds.end_offset)
    values = [float(row[column]) for row in rows]
    return Seen(*(None if math.isnan(value) else value for value in values))


@contextmanager
def watching(
    kafka: EmbeddedKafka, topic: str, *, answer_timeout: str = "10s", **options: object
) -> Iterator[Watcher]:
    """A meter on the topics that match; `options` are of the monitor's settings."""
    given = {"period": f"{PERIOD_S}s", "layout_refresh": "1s", "include": [topic], **options}
    settings = Settings(
        kafka=KafkaSettings.model_validate(
            {"bootstrap_servers": kafka.bootstrap_servers, "answer_timeout": answer_timeout}
        ),
        monitor=MonitorSettings.model_validate(given),
    )
    try:
        with closing(BrokerQuestions(settings.kafka)) as questions:
            yield Watcher(SpeedMeasuring(settings, questions))
    finally:
        # kafka-python leaves the socket of a refused connection to the garbage collector, which
        # should find it in the test that expects it.
        gc.collect()


class Writer:
    """A load that runs. What it truly reached is asked of it: the machine may be busy."""

    def __init__(self, generator: LoadGenerator) -> None:
        self._generator = generator
        self.mark()

    def mark(self) -> None:
        self._marked = (time.monotonic(), self._generator.acknowledged())
        self._looks = [self._marked]

    def look(self) -> None:
        self._looks.append((time.monotonic(), self._generator.acknowledged()))

    def was_even(self) -> bool:
        """Whether each partition was written at about one speed at all looks since the mark."""
        for partition in self._marked[1]:
            slowest, fastest = self.speeds_between_looks((partition.topic, partition.partition))
            if fastest - slowest > EVEN_WITHIN * fastest:
                return False
        return True

    def speeds_between_looks(self, name: LogName) -> tuple[float, float]:
        """The lowest and the highest speed since the mark over a second or more."""
        partition = TopicPartition(*name)
        speeds, begun = [], self._looks[0]
        for look in self._looks[1:]:
            if look[0] - begun[0] >= EVEN_OVER_S:
                acknowledged = look[1][partition][1] - begun[1][partition][1]
                speeds.append(acknowledged / (look[0] - begun[0]))
                begun = look
        return (min(speeds), max(speeds)) if speeds else (0.0, math.inf)

    def payload_bytes(self, name: LogName) -> int:
        """Acknowledged so far."""
        return self._generator.acknowledged()[TopicPartition(*name)][1]

    def payload_bytes_per_s(self, name: LogName) -> float:
        """Acknowledged since the mark; the log's bytes are a few percent more."""
        marked_at_s, before = self._marked
        partition = TopicPartition(*name)
        now = self._generator.acknowledged()
        return (now[partition][1] - before[partition][1]) / (time.monotonic() - marked_at_s)


@contextmanager
def writing(
    kafka: EmbeddedKafka, *names: LogName, bytes_per_s: float = 300_000, keys: int | None = None
) -> Iterator[Writer]:
    """Writes to the partitions, each at this speed, until the block ends."""
    administration = Administration(kafka.settings)
    while not {name[0] for name in names} <= set(administration.cluster().partition_counts):
        time.sleep(0.1)  # a topic that was just made is not known at once
    targets = [Target(TopicPartition(*name), Constant(bytes_per_s)) for name in names]
    form = RecordForm(keys="none" if keys is None else keys)
    generator = LoadGenerator(kafka.settings, targets, run_id="test", form=form)
    stop = Event()
    thread = Thread(target=generator.run, args=(3600.0, stop))
    thread.start()
    try:
        yield Writer(generator)
    finally:
        stop.set()
        thread.join()


def fits(measured: float | None, payload_bytes_per_s: float, *, within: float = 0.1) -> bool:
    """Whether a measured speed is that of the payload and the log's overhead of up to a tenth."""
    if measured is None:
        return False
    least, most = (1 - within) * payload_bytes_per_s, (1.1 + within) * payload_bytes_per_s
    return least <= measured <= most
