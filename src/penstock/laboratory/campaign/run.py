"""Runs a campaign: starts the group, writes to it, harms it as scheduled, drains it, checks it.

with Campaign(plan, settings, flags=flags, say=say) as campaign:
    campaign.run()
    check = campaign.check()
"""

import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from penstock.errors import PenstockError
from penstock.kafka_io.administration import Administration
from penstock.laboratory.broker import small_broker
from penstock.laboratory.campaign.deliveries import check_deliveries
from penstock.laboratory.campaign.faults import Fault
from penstock.laboratory.campaign.injection import Injection
from penstock.laboratory.campaign.lake_reading import commit_times, ids_in_lake
from penstock.laboratory.campaign.observed import CampaignCheck, CampaignPlan, CampaignRun
from penstock.laboratory.campaign.producers import Producers, Style
from penstock.laboratory.campaign.schedule import MADE_TOPICS
from penstock.laboratory.campaign.watching import Watch, read_status
from penstock.local_group import LocalGroup
from penstock.model import TopicPartition
from penstock.processes import start_child, stop
from penstock.settings import Settings
from penstock.verification import carried_so_far, verify

START_TIMEOUT_S = 180.0
CALM_TIMEOUT_S = 120.0
DRAIN_TIMEOUT_S = 600.0
LOOK_EVERY_S = 0.1
_BUSY = "while True: pass"


class Campaign:
    def __init__(
        self,
        plan: CampaignPlan,
        settings: Settings,
        *,
        flags: Sequence[str],
        say: Callable[[str], None],
    ) -> None:
        self.plan = plan
        self.observed = CampaignRun()
        self._say = say
        self.group = LocalGroup(
            settings,
            list(flags),
            start_broker=small_broker,
            embedded_spark=True,
            on_progress=say,
        )
        self._began_s = time.monotonic()
        self._parts = ExitStack()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._faults_left = 0
        self._after_repair: Callable[[], None] = lambda: None

    def __enter__(self) -> Self:
        with ExitStack() as parts:
            parts.enter_context(self.group)
            self._administration = Administration(self.group.settings.kafka)
            for topic, partitions in self.plan.topics.items():
                self._administration.create_topic(topic, partitions=partitions)
            self.producers = Producers(self.group.settings.kafka, self.plan.seed)
            parts.callback(self.producers.stop, self._keep)
            self._parts = parts.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._parts.__exit__(kind, error, trace)

    def _now_s(self) -> float:
        return time.monotonic() - self._began_s

    def _keep(self) -> None:
        """Restart what died. Always on this thread: children end with the thread they have."""
        for line in self.group.repair():
            self._say(f"{self._now_s():5.0f} s: {line}")
        self._after_repair()
        time.sleep(LOOK_EVERY_S)  # nothing tells when a process dies

    def _keep_for_a_second(self) -> None:
        until_s = time.monotonic() + 1.0
        while time.monotonic() < until_s:
            self._keep()

    def run(self) -> CampaignRun:
        styles = {topic: self.plan.style(topic) for topic in self.plan.topics}
        for topic, partitions in self.plan.topics.items():
            self.producers.start(topic, range(partitions), styles[topic])
        self._wait_for_records()
        self._wait_for_calm()
        with ExitStack() as beside:
            for _ in range(self.plan.busy_processes):
                busy = start_child(
                    [sys.executable, "-c", _BUSY], log_file=self.group.directory / "busy.log"
                )
                beside.callback(stop, busy, grace_s=0)
            self._began_s = time.monotonic()
            began_unix_ms = time.time_ns() // 1_000_000
            watch = Watch(self.group, self.producers.log, self._now_s)
            watch.start()
            beside.callback(watch.stop)
            self.observed.watched = watch.watched
            self._harm(styles)
            self.observed.length_s = self._now_s()
            self._say(f"{self.observed.length_s:5.0f} s: the faults are over; draining")
            self.producers.stop(self._keep)
            self._drain()
            while any(thread.is_alive() for thread in self._threads):
                self._keep()
        self.observed.injected.sort(key=lambda one: one.at_s)
        self.observed.commits = [
            ((one.at_ms - began_unix_ms) / 1000, one)
            for one in commit_times(self.group.settings.lake.root, self._tables())
        ]
        return self.observed

    def _wait_for_records(self) -> None:
        """Wait until the group carries every topic."""
        self._say("waiting for the first records in the lake")
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while not set(self.plan.topics) <= {place.topic for place in self._carried()}:
            if time.monotonic() > deadline_s:
                raise PenstockError(
                    f"No records of every topic were in the lake within {START_TIMEOUT_S:.0f} s.",
                    remedy=f"The logs are in {self.group.directory}.",
                )
            self._keep_for_a_second()

    def _wait_for_calm(self) -> None:
        """Wait until every partition has a reader and none moves; then harm is due to faults."""
        deadline_s = time.monotonic() + CALM_TIMEOUT_S
        while not self._is_calm():
            if time.monotonic() > deadline_s:
                self._say(f"the group is not calm after {CALM_TIMEOUT_S:.0f} s; beginning anyway")
                return
            self._keep_for_a_second()

    def _is_calm(self) -> bool:
        status = read_status(self.group)
        if status is None or status["phase"] != "Sentinel" or status["moves"]:
            return False
        owned = [one["status"] == "owned" for one in status["partitions"].values()]
        return len(owned) == sum(self.plan.topics.values()) and all(owned)

    def _carried(self) -> dict[TopicPartition, int]:
        try:
            return carried_so_far(self.group.settings)
        except PenstockError:
            return {}  # the broker is away

    def _harm(self, styles: dict[str, Style]) -> None:
        """Harm the group as scheduled, while this thread restarts what died."""
        injection = Injection(
            self.group, self.producers, self.plan.style("made"), styles, self._now_s
        )
        self._parts.callback(injection.is_over.set)
        injection.note_servers()
        self._after_repair = injection.note_servers
        self._faults_left = len(self.plan.faults)
        # A thread of their own: a repair waits until a server is up, the next fault does not.
        self._start(self._inject_all, injection)
        while self._faults_left:
            self._keep()

    def _start(self, target: Callable[..., None], *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=target, args=arguments)
        self._threads.append(thread)
        thread.start()
        return thread

    def _inject_all(self, injection: Injection) -> None:
        """Every fault on a thread of its own, which ends when what was harmed is back."""
        topics_last: threading.Thread | None = None
        for fault in self.plan.faults:
            if injection.is_over.wait(max(0.0, fault.at_s - self._now_s())):
                return
            # A topic's faults follow each other, as the schedule assumes.
            after = topics_last if fault.topic else None
            thread = self._start(self._inject, injection, fault, after)
            topics_last = thread if fault.topic else topics_last

    def _inject(self, injection: Injection, fault: Fault, after: threading.Thread | None) -> None:
        try:
            if after is not None:
                after.join()
            injected = injection.do(fault)
        except PenstockError as error:
            self.observed.not_injected.append(f"{fault.kind}: {error}")
            return
        finally:
            with self._lock:
                self._faults_left -= 1
        self._say(f"{injected.at_s:5.0f} s: {injected.explanation}")
        self.observed.injected.append(injection.when_back(injected))

    def _drain(self) -> None:
        """Wait until the ledger covers every committed record of every topic."""
        deadline_s = time.monotonic() + DRAIN_TIMEOUT_S
        while not self.observed.has_drained and time.monotonic() < deadline_s:
            self._keep_for_a_second()
            self.observed.has_drained = self._is_drained()

    def _is_drained(self) -> bool:
        try:
            counts = self._administration.cluster().partition_counts
            names = set(counts) & {*self.plan.topics, *MADE_TOPICS}
            places = [TopicPartition(name, n) for name in names for n in range(counts[name])]
            ends = self._administration.stable_offsets(places)
        except PenstockError:
            return False
        carried = self._carried()
        return len(ends) == len(places) and all(
            carried.get(place, 0) >= end for place, end in ends.items()
        )

    def _tables(self) -> list[str]:
        return [*self.plan.topics, *MADE_TOPICS]

    def check(self, lake_root: str | None = None) -> CampaignCheck:
        """Compare the lake with Kafka, and with what the producers were told.

        `lake_root` names a copy of the lake, to be checked in its place.
        """
        self._say("comparing the lake with Kafka, and with what the producers were told")
        settings = self.group.settings
        if lake_root is not None:
            lake = settings.lake.model_copy(update={"root": lake_root})
            settings = settings.model_copy(update={"lake": lake})
        return CampaignCheck(
            verify(settings, []),
            check_deliveries(
                self.producers.log.lanes,
                ids_in_lake(settings.lake.root, self._tables()),
                self.producers.deleted_lanes,
            ),
        )
