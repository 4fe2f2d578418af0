"""Runs the demo: starts the group, loads it, kills parts of it, drains it, checks the lake."""

import json
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import PenstockError
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.committed_records import all_records
from penstock.laboratory.broker import small_broker
from penstock.laboratory.demo.kill_during_a_move import KillDuringMove
from penstock.laboratory.demo.narration import Narrator, Recovery, introduction, line
from penstock.laboratory.demo.observation import (
    ConsumptionChange,
    HandOver,
    Moment,
    hand_overs,
    has_grown,
    has_shrunk,
    moment,
)
from penstock.laboratory.demo.recorded_run import RecordedRun
from penstock.laboratory.demo.story import (
    CAPACITY_BYTES_PER_S,
    DRAIN_TIMEOUT_S,
    DemoIncident,
    Story,
)
from penstock.laboratory.load import LoadGenerator, LoadResult, Target
from penstock.local_group import LocalGroup
from penstock.messages import Refusal, StartConsumingEvent, StopConsumingEvent, decode
from penstock.model import TopicPartition
from penstock.model.sentences import counted
from penstock.processes import send_signal
from penstock.settings import Settings
from penstock.verification import VerificationResult, carried_so_far, verify

LOOK_EVERY_S = 0.25
# What the story says happens later on a busy machine: it is waited for, so long at most.
LATE_BY_S_MAX = 300.0
START_TIMEOUT_S = 300.0


@dataclass(slots=True)
class DemoRun:
    """Everything observed during the run."""

    # The run as the page would have shown it.
    recorded: RecordedRun = field(default_factory=RecordedRun)
    moments: list[Moment] = field(default_factory=list)
    incidents: list[DemoIncident] = field(default_factory=list)
    results: list[LoadResult] = field(default_factory=list)
    hand_overs: list[HandOver] = field(default_factory=list)
    recoveries: list[Recovery] = field(default_factory=list)
    verdict: VerificationResult | None = None
    drained_in_s: float | None = None

    @property
    def records_produced(self) -> int:
        return sum(result.records_acknowledged for result in self.results)


class Demo:
    def __init__(
        self,
        settings: Settings,
        *,
        flags: list[str],
        story: Story,
        say: Callable[[str], None],
        show: Callable[[float, dict[str, Any]], None],
    ) -> None:
        self._settings = settings
        self._flags = flags
        self._story = story
        self._say = say
        self._show = show
        self.run = DemoRun(RecordedRun(settings.lake.group))
        self._narrator = Narrator(story)
        self._stop = threading.Event()
        self._failures: list[BaseException] = []
        self._begun_s = 0.0
        self._seen_unix_ms = 0

    def play(self) -> DemoRun:
        group = LocalGroup(
            self._settings,
            self._flags,
            start_broker=small_broker,
            embedded_spark=True,
            on_progress=self._say,
            with_page=self._settings.page.enabled,
        )
        with group:
            administration = Administration(group.settings.kafka)
            for topic in self._story.topics:
                administration.create_topic(topic, partitions=self._story.partitions_per_topic)
            self._wait_for_controller(group)
            for text in introduction(self._story):
                self._say(text)
            try:
                self._run_story(group, administration)
            finally:
                self._stop.set()  # the load ends with the demo, also after an error
            self._drain(group)
            self._wait_until_smaller(group)
            self.run.recoveries = self._narrator.recoveries
            self._say("comparing every record in Kafka with the lake")
            self.run.verdict = verify(group.settings, [], on_progress=lambda _: None)
            self.run.hand_overs = hand_overs(consumption_changes(group.settings))
            self.run.recorded.look_at_tables(group.settings.lake)
        return self.run

    def _wait_for_controller(self, group: LocalGroup) -> None:
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while self._status(group) is None:
            if time.monotonic() > deadline_s:
                raise PenstockError(
                    "The controller did not start.", remedy=f"Its log: {group.log_of('controller')}"
                )
            group.repair()
            time.sleep(LOOK_EVERY_S)  # nothing tells us that the file is written

    def _status(self, group: LocalGroup) -> dict[str, Any] | None:
        try:
            content = (group.directory / "status.json").read_text(encoding="utf-8")
            status: dict[str, Any] = json.loads(content)
        except (OSError, ValueError):
            return None  # not written yet
        return status

    def _run_story(self, group: LocalGroup, administration: Administration) -> None:
        """Watch the group and disrupt it when it is time; the load runs on other threads."""
        self._begun_s = time.monotonic()
        self.run.recorded.begin()
        loads = [self._load(group, self._story.targets(), self._story.duration_s)]
        kill_during_move = KillDuringMove(group.settings, lambda: group.process_of("controller"))
        todo = self._disruptions(group, administration, loads, kill_during_move)
        try:
            while not self._is_over(at_s := self._at_s(), has_more=bool(todo)):
                for disruption in [one for one in todo if one.is_due(at_s)]:
                    done = disruption.do(at_s)
                    if done is None:  # not yet
                        continue
                    todo.remove(disruption)
                    what, detail = done
                    self.run.incidents.append(DemoIncident(at_s, what))
                    self._say(self._narrator.disrupted(at_s, what, detail))
                self._watch(group, at_s)  # after what was done: the story has this order
                time.sleep(LOOK_EVERY_S)  # the demo draws what it sees at each look
        finally:
            kill_during_move.stop()
        for thread in loads:
            thread.join()
        if todo:
            raise PenstockError("Not all disruptions of the demo took place; run it again.")
        if self._failures:
            raise self._failures[0]

    def _at_s(self) -> float:
        return time.monotonic() - self._begun_s

    def _is_over(self, at_s: float, *, has_more: bool) -> bool:
        return at_s >= self._story.duration_s + (LATE_BY_S_MAX if has_more else 0.0)

    def _load(
        self, group: LocalGroup, targets: list[Target], duration_s: float
    ) -> threading.Thread:
        generator = LoadGenerator(
            group.settings.kafka, targets, run_id=f"demo{len(targets)}", seed=1
        )

        def produce() -> None:
            try:
                self.run.results.append(generator.run(duration_s, self._stop))
            except BaseException as error:  # noqa: BLE001 -- raised by the main thread
                self._failures.append(error)

        thread = threading.Thread(target=produce, name="load")
        thread.start()
        return thread

    def _disruptions(
        self,
        group: LocalGroup,
        administration: Administration,
        loads: list[threading.Thread],
        kill_during_move: KillDuringMove,
    ) -> "list[_Disruption]":
        def kill_consumer(_: float) -> tuple[str, str] | None:
            status = self._status(group) or {"consumers": []}
            reading = [one for one in status["consumers"] if one["partitions"]]
            if not reading:
                return None
            busiest = max(reading, key=lambda one: len(one["partitions"]))
            consumer = busiest["consumer"]
            send_signal(group.deployment.process_of(consumer), signal.SIGKILL)
            held = counted(len(busiest["partitions"]), "partition")
            return f"consumer {consumer} killed with -9", f"nobody reads its {held} now"

        def kill_controller(_: float) -> tuple[str, str] | None:
            if not kill_during_move.has_killed():
                return None
            detail = "nobody decides now, and partitions are on their way from one to another"
            return "controller killed with -9 during a move", detail

        def add_partitions(at_s: float) -> tuple[str, str]:
            count = self._story.partitions_per_topic + self._story.grown_by
            administration.grow_topic(self._story.grown_topic, count)
            loads.append(
                self._load(group, self._story.added_targets(at_s), self._story.duration_s - at_s)
            )
            what = f"{self._story.grown_topic} grown to {count} partitions"
            return what, f"nobody reads the {self._story.grown_by} new ones yet"

        return [
            _Disruption(self._story.kill_consumer_at_s, kill_consumer),
            _Disruption(self._story.kill_controller_after_s, kill_controller),
            _Disruption(self._story.add_partitions_at_s, add_partitions),
        ]

    def _watch(self, group: LocalGroup, at_s: float) -> None:
        for text in (*self._narrator.loaded(at_s), *_at(at_s, group.repair())):
            self._say(text)
        status = self._status(group)
        if status is None or status["at_unix_ms"] == self._seen_unix_ms:
            return  # nothing new: the controller writes once a second while it runs
        self._seen_unix_ms = status["at_unix_ms"]
        for text in self._narrator.seen(at_s, status):
            self._say(text)
        self._show(at_s, status)
        self.run.recorded.add(status)
        # A controller that has just started has no speeds yet; that is not a dip in the load.
        if status["phase"] != "Synchronize" and status["measurement_age_ms"] is not None:
            self.run.moments.append(moment(at_s, status, CAPACITY_BYTES_PER_S))

    def _drain(self, group: LocalGroup) -> None:
        """Wait until the lake's ledger covers every produced record."""
        self._say("the load ends; waiting until the last record is in the lake")
        begun_s = time.monotonic()
        while time.monotonic() - begun_s < DRAIN_TIMEOUT_S:
            if sum(carried_so_far(group.settings).values()) >= self.run.records_produced:
                self.run.drained_in_s = time.monotonic() - begun_s
                return
            self._watch(group, self._at_s())
            time.sleep(LOOK_EVERY_S)  # the ledger is a log that one has to read
        raise PenstockError(
            f"The group did not drain within {DRAIN_TIMEOUT_S:.0f} s.",
            remedy=f"The logs are in {group.directory}.",
        )

    def _wait_until_smaller(self, group: LocalGroup) -> None:
        """The group shrinks a while after the load has fallen: that is part of the story."""
        deadline_s = time.monotonic() + LATE_BY_S_MAX
        while not has_shrunk(self.run.moments) and time.monotonic() < deadline_s:
            self._watch(group, self._at_s())
            time.sleep(LOOK_EVERY_S)  # the status is a file that one has to read


@dataclass(frozen=True, slots=True)
class _Disruption:
    after_s: float
    # What it has done, and what that means for the group; None when it is not time yet.
    do: Callable[[float], tuple[str, str] | None]

    def is_due(self, at_s: float) -> bool:
        return at_s >= self.after_s


def _at(at_s: float, texts: list[str]) -> list[str]:
    return [line(at_s, text) for text in texts]


def consumption_changes(settings: Settings) -> list[ConsumptionChange]:
    """Every stop and start that consumers reported to the controller."""
    changes = []
    for kept in all_records(settings.kafka, TopicPartition(settings.topics.names.consumer, 0)):
        message = decode(kept.value, kept.headers, topic_role="consumer", mailbox=0)
        if isinstance(message, Refusal):
            continue
        if isinstance(message, StartConsumingEvent | StopConsumingEvent):
            is_start = isinstance(message, StartConsumingEvent)
            changes += [
                ConsumptionChange(
                    kept.timestamp_ms, message.consumer_id, f"{row.topic}-{row.partition}", is_start
                )
                for row in message.partitions
            ]
    return changes


def result_rows(run: DemoRun, figures: dict[str, float]) -> dict[str, str]:
    """The rows of the report, for the terminal and the page."""
    verdict = run.verdict
    partitions = verdict.partitions if verdict else ()
    return {
        "records produced": f"{run.records_produced:,}",
        "records in the lake": f"{sum(one.lake for one in partitions):,}",
        "lost": f"{sum(one.lost for one in partitions):,}",
        "duplicated": f"{sum(one.duplicated for one in partitions):,}",
        "consumers used, mean / most": (
            f"{figures['consumers_mean']:.2f} / {figures['consumers_max']:.0f}"
        ),
        "fewest possible, mean / most": (
            f"{figures['needed_mean']:.2f} / {figures['needed_max']:.0f}"
        ),
        "hand-overs": f"{figures['hand_overs']:.0f}",
        "a moved partition is not read for, median / p99": (
            f"{figures['hand_over_median_s']:.2f} s / {figures['hand_over_p99_s']:.2f} s"
        ),
        "drained in": f"{run.drained_in_s or 0:.1f} s",
        **{f"all read again after: {one.what}": f"{one.seconds:.0f} s" for one in run.recoveries},
    }


def shortcomings(run: DemoRun) -> list[str]:
    """What did not go as the demo promises, a sentence each; none if it succeeded."""
    verdict = run.verdict
    stored = sum(one.lake for one in verdict.partitions) if verdict else 0
    failed = sum(result.records_failed for result in run.results)
    found = {
        "No record was produced.": run.records_produced == 0,
        f"{counted(failed, 'record')} could not be written to Kafka.": failed > 0,
        "The lake was not compared with Kafka.": verdict is None,
        "Kafka and the lake differ.": verdict is not None and not verdict.is_exact,
        f"{stored:,} records are in the lake, {run.records_produced:,} were produced.": (
            stored != run.records_produced
        ),
        f"{len(run.incidents)} of 3 disruptions took place.": len(run.incidents) != 3,
        "The group did not grow.": not has_grown(run.moments),
        "The group did not shrink.": not has_shrunk(run.moments),
    }
    return [sentence for sentence, is_so in found.items() if is_so]
