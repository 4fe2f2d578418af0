"""The monitor's process: each round it asks the brokers, and publishes the speeds it measured.

A round is one period. Brokers that are away do not end the process: an outage is logged once when
it begins and once when it ends. While an older monitor publishes to the same topic, this one only
measures (`core/who_publishes.py`). SIGTERM and SIGINT end the process after the running round.
"""

import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Event
from typing import Any

from penstock.errors import NotPermittedError
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.broker_questions import Answers, BrokerQuestions, Questions, SampleOf
from penstock.kafka_io.heard_monitors import HeardMonitors
from penstock.kafka_io.measurement_topic import (
    MeasurementPublisher,
    MeasurementReader,
    monitor_topic_missing,
)
from penstock.messages import SpeedSource
from penstock.metrics import Process
from penstock.model.broker_logs import LogName
from penstock.monitor.core.broker_watch import LayoutWatch, OutageWatch, sample_plan
from penstock.monitor.core.filters import filter_from_settings
from penstock.monitor.core.measurement import measurement_parts
from penstock.monitor.core.meter import MeasuredSpeeds, Meter
from penstock.monitor.core.partitions_of_interest import TopicsOfInterest
from penstock.monitor.core.who_publishes import WhoPublishes
from penstock.monitor.metrics import MonitorMetrics
from penstock.settings import Settings
from penstock.telemetry import Health, MetricStore, get_logger

# After this part of a period, a round goes on without the brokers that have not answered.
_WAIT_PART_OF_PERIOD = 0.8
# How long one round waits for the first layout; without it, the next round asks again.
_FIRST_LAYOUT_WAIT_S = 5.0
# How long the last measurements may take to be delivered when the process ends.
_CLOSE_S = 5.0


class SpeedMeasuring:
    """Asks the brokers and feeds the meter. `penstock speeds` uses it without publishing."""

    def __init__(
        self,
        settings: Settings,
        questions: BrokerQuestions,
        *,
        clock: Callable[[], float] = time.monotonic,
        tells_partitions: bool = True,
    ) -> None:
        """`tells_partitions`: whether the log says how many there are, when that changes."""
        monitor = settings.monitor
        self._tells_partitions = tells_partitions
        self._settings = settings
        self._questions = questions
        self._clock = clock
        self._log = get_logger(component="monitor")
        self._meter = Meter(
            filter_from_settings(monitor),
            window_s=monitor.window,
            unknown_after_s=monitor.unknown_after,
            source=(SpeedSource.OFFSETS if monitor.source == "offsets" else SpeedSource.LOG_DIRS),
        )
        self._interest = TopicsOfInterest.from_settings(monitor, settings.topics)
        self._layout = LayoutWatch(monitor.layout_refresh)
        self._outages = OutageWatch(monitor.broker_silent_after)
        self._sampled_last: LogName | None = None

    def run_round(self) -> MeasuredSpeeds | None:
        """Ask the brokers, take in their answers, and compute the speeds.

        None while the layout is unknown: a measurement without partitions would say there are none.
        """
        asked_at_s = self._clock()
        wait_s = _WAIT_PART_OF_PERIOD * self._settings.monitor.period
        if not self._layout.is_known:
            self._take(self._questions.ask(Questions(layout=True), wait_s=_FIRST_LAYOUT_WAIT_S))
            if not self._layout.is_known:
                return None
        answers = self._questions.ask(self._due(asked_at_s), wait_s=wait_s)
        self._take(answers)
        now_s = self._clock()
        if self._meter.add_round(now_s, answers.sizes, answers.offsets):
            self._layout.doubt()
        self._meter.learn_record_sizes(answers.bytes_per_record)
        return self._meter.speeds(self._clock())

    def _due(self, now_s: float) -> Questions:
        by_sizes = self._meter.source is SpeedSource.LOG_DIRS
        return Questions(
            layout=self._layout.is_due(now_s),
            sizes=by_sizes,
            offsets_by_leader=self._meter.by_leader,
            samples_by_leader={} if by_sizes else self._samples(),
        )

    def _samples(self) -> Mapping[int, Sequence[SampleOf]]:
        limit = self._settings.monitor.record_sizes_sampled
        plan = sample_plan(self._meter.offset_spans(), after=self._sampled_last, limit=limit)
        by_leader: dict[int, list[SampleOf]] = {}
        for name, from_offset in plan:
            self._sampled_last = name
            by_leader.setdefault(self._meter.leader_of(name), []).append(
                SampleOf(name, from_offset)
            )
        return by_leader

    def _take(self, answers: Answers) -> None:
        """Take in everything but sizes and offsets."""
        now_s = self._clock()
        if answers.layout is not None:
            internal = {name[0]: place.is_internal for name, place in answers.layout.items()}
            wanted = {
                topic
                for topic, is_internal in internal.items()
                if self._interest.includes(topic, is_internal=is_internal)
            }
            self._meter.set_layout(
                {name: place for name, place in answers.layout.items() if name[0] in wanted}
            )
            has_changed = self._layout.received(now_s, len(self._meter.names))
            if has_changed and self._tells_partitions:
                self._log.info("partitions_changed", partitions=len(self._meter.names))
        if answers.layout_is_stale:
            self._layout.doubt()
        if answers.sizes_refused is not None:
            self._refused(answers.sizes_refused)
        for event in self._outages.events(now_s, answers.silent_brokers, answers.failures):
            getattr(self._log, event.level)(event.name, **event.keys)

    def _refused(self, reason: str) -> None:
        if self._settings.monitor.source == "log_dirs":
            raise NotPermittedError(
                f"The cluster refuses to report log sizes ({reason}).",
                remedy="Give this principal Describe on the cluster, or set monitor.source=auto.",
            )
        if self._meter.source is SpeedSource.LOG_DIRS:
            self._log.warning("log_sizes_refused", reason=reason, source="offsets")
            self._meter.change_source(SpeedSource.OFFSETS)


def run_monitor(
    settings: Settings,
    stop: Event,
    health: Health | None = None,
    metrics: MetricStore | None = None,
) -> None:
    """Measure and publish until `stop` is set."""
    log = get_logger(component="monitor")
    health = health or Health()
    told = MonitorMetrics(metrics or MetricStore(settings.lake.group, Process.MONITOR))
    publishing = _who_publishes(settings)

    def publishing_changed(error: Exception | None) -> None:
        if error is None:
            log.info("publishing_works_again")
        else:
            log.warning("publishing_fails", error=str(error))
        health.lacks("kafka", None if error is None else "the broker takes no measurements")

    questions = BrokerQuestions(settings.kafka)
    measuring = SpeedMeasuring(settings, questions)
    publisher = MeasurementPublisher(
        settings.kafka,
        settings.topics,
        group=settings.lake.group,
        on_change=publishing_changed,
    )
    others = HeardMonitors(settings.kafka, settings.topics)
    log.info(
        "monitor_started", incarnation=publishing.incarnation, period_s=settings.monitor.period
    )
    sequence = 0
    was_mine = True
    try:
        for _ in _rounds(settings.monitor.period, stop):
            health.beat()
            began_s = time.monotonic()
            speeds = measuring.run_round()
            told.round_ended(speeds, time.monotonic() - began_s)
            if speeds is None:
                continue
            health.begun()
            is_mine = _is_mine(publishing, others)
            if is_mine != was_mine:
                _log_change(log, publishing)
            was_mine = is_mine
            told.publishes(is_mine=is_mine)
            if not is_mine:
                continue
            sequence += 1
            publisher.publish(
                measurement_parts(
                    speeds,
                    monitor_incarnation=publishing.incarnation,
                    sequence=sequence,
                    published_at_unix_ms=time.time_ns() // 1_000_000,
                    window_s=settings.monitor.window,
                )
            )
            log.debug("published", sequence=sequence, partitions=len(speeds.names))
    finally:
        undelivered = publisher.close(_CLOSE_S)
        others.close()
        questions.close()
    log.info("monitor_stopped", published=sequence, undelivered_messages=undelivered)


def _who_publishes(settings: Settings) -> WhoPublishes:
    """With an incarnation higher than any before, even if the wall clock went back.

    Who published a moment ago, by the wall clocks, may still live: it counts as heard. A wrong
    clock costs some periods, or two monitors until they hear each other.
    """
    topic = settings.topics.names.monitor
    if topic not in Administration(settings.kafka).topics([topic]):
        raise monitor_topic_missing(topic)
    reader = MeasurementReader(settings.kafka, settings.topics)
    try:
        newest = reader.newest()
    finally:
        reader.close()
    now_ms = time.time_ns() // 1_000_000
    if newest is None:
        return WhoPublishes(now_ms, settings.monitor.period)
    publishing = WhoPublishes(max(now_ms, newest.monitor_incarnation + 1), settings.monitor.period)
    ago_s = max(0.0, (now_ms - newest.published_at_unix_ms) / 1000)
    publishing.heard(newest.monitor_incarnation, time.monotonic() - ago_s)
    return publishing


def _is_mine(publishing: WhoPublishes, others: HeardMonitors) -> bool:
    now_s = time.monotonic()
    for incarnation in others.incarnations():
        publishing.heard(incarnation, now_s)
    return publishing.is_mine(now_s)


def _log_change(log: Any, publishing: WhoPublishes) -> None:
    if publishing.other is None:
        log.info("takes_over", explanation="the older monitor is silent")
    else:
        log.warning(
            "steps_aside",
            other_incarnation=publishing.other,
            explanation="an older monitor publishes here; this one takes over when it is silent",
        )


def _rounds(period_s: float, stop: Event) -> Iterator[None]:
    """Once per period by the monotonic clock; after a late round, missed ones are skipped."""
    next_s = time.monotonic()
    while not stop.is_set():
        yield
        now_s = time.monotonic()
        next_s += period_s * max(1, int((now_s - next_s) / period_s) + 1)
        stop.wait(max(0.0, next_s - now_s))


def stop_on_signals() -> Event:
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop
