"""One incarnation of a consumer: lock the state directory, open the mailbox, run the core.

    ConsumerProcess(settings, consumer_id=3).run()

Returns after an orderly end. Any other end leaves "running" in the state directory, and the next
incarnation knows.
"""

import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from penstock.consumer.core.inputs import (
    Command,
    Input,
    MessagesRead,
    ShutdownAsked,
    SparkStarted,
    Tick,
)
from penstock.consumer.core.ownership import Ownership
from penstock.consumer.core.settings import core_settings
from penstock.consumer.core.shutdown_record import (
    CONTROLLED,
    RUNNING,
    begin_incarnation,
    shutdown_record_content,
)
from penstock.consumer.core.state_machine import begin, step
from penstock.consumer.process.effect_runner import EffectRunner
from penstock.consumer.process.external_systems import ExternalSystems
from penstock.consumer.process.metrics import ConsumerMetrics
from penstock.consumer.process.outbound import OutboundMessages
from penstock.consumer.process.threads import (
    Inbox,
    Item,
    MailboxCrashed,
    MailboxThread,
    Signalled,
    Worker,
    WorkerAnswer,
    now_ms,
)
from penstock.errors import SettingsError, UnreachableError
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.group_offsets import GroupOffsets
from penstock.kafka_io.mailbox import Mailbox, MailboxTrouble, NotFromLeader
from penstock.kafka_io.partition_reader import KafkaRecord
from penstock.messages import (
    Refusal,
    StartConsumingCommand,
    StateQuery,
    StopConsumingCommand,
    decode,
)
from penstock.model import ConsumerId, TopicPartition
from penstock.pipeline import Writer
from penstock.settings import Settings
from penstock.state_directory import BrokenState, StateDirectory
from penstock.telemetry import Health, MetricStore, get_logger

if TYPE_CHECKING:
    from penstock.kafka_io.leaders_records import LeadersRecords

Point = Callable[[str], None]
# How soon a broker that does not answer at the start is asked again.
KAFKA_PAUSE_S = 1.0


def _nothing(_: str) -> None:
    """Do nothing: only a test acts at a point."""


class ConsumerProcess:
    def __init__(
        self,
        settings: Settings,
        consumer_id: int,
        *,
        state_directory: Path | None = None,
        deployment_version: int | None = None,
        started_file: Path | None = None,
        health: Health | None = None,
        metrics: MetricStore | None = None,
        at_point: Point = _nothing,
    ) -> None:
        self._settings = settings
        self._id = ConsumerId(consumer_id)
        self._deployment_version = deployment_version
        self._started_file = started_file
        self._health = health or Health()
        self._metrics = ConsumerMetrics(settings.lake, consumer_id, metrics)
        self._at_point = at_point
        self._inbox = Inbox()
        self._log = get_logger(consumer=consumer_id)
        root = Path(settings.consumer.state_root)
        path = state_directory or root / f"consumer-{consumer_id}"
        self._directory = StateDirectory(
            path,
            f"{settings.lake.group}/consumer-{consumer_id}",
            wait_s=settings.consumer.state_wait,
            is_given_up=lambda: self._is_asked_to_end,
        )
        self._is_asked_to_end = False
        self._leaders_records: LeadersRecords | None = None

    def run(self) -> None:
        """Work until asked to end."""
        self._handle_signals()
        with self._directory:
            if not self._begin():
                return
            self._health.begun()
            try:
                while not self._runner.has_ended:
                    self._once()
                self._log.info("consumer_ended", state=CONTROLLED)
            finally:
                self._mailbox_thread.stop(timeout_s=1.0)

    def _handle_signals(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return

        def on_signal(number: int, _: FrameType | None) -> None:
            self._is_asked_to_end = True
            self._inbox.put(Signalled(number))

        signal.signal(signal.SIGTERM, on_signal)
        signal.signal(signal.SIGINT, on_signal)

    # --- the beginning ----------------------------------------------------------------------

    def _begin(self) -> bool:
        """Read how the last incarnation ended, write that this one runs, and start the core.

        False if it was asked to end before a broker answered. It then leaves "running", because
        nobody has heard from it how the last incarnation ended.
        """
        stored = self._directory.read()
        is_broken = isinstance(stored, BrokenState)
        if isinstance(stored, BrokenState):
            self._log.warning("state_ignored", why=stored.why)
        known = None if isinstance(stored, BrokenState) else stored
        self._record = begin_incarnation(
            known, is_broken=is_broken, now_ms=time.time_ns() // 1_000_000
        )
        self._log.info(
            "consumer_starts",
            incarnation=self._record.incarnation,
            previous_shutdown=self._record.previous_shutdown,
            spark=self._settings.spark.master,
        )
        self._saved_positions: dict[TopicPartition, int] = dict(self._record.mailbox)
        self._save(RUNNING, self._saved_positions)
        mailbox = self._mailbox_once_kafka_answers()
        if mailbox is None:
            self._log.info("consumer_ended", state=RUNNING)
            return False
        self._mailbox = mailbox
        self._mailbox_thread = MailboxThread(mailbox, self._inbox)
        self._runner = self._make_runner()
        self._state, effects = begin(
            core_settings(self._settings, self._deployment_version),
            Ownership(
                self._id,
                self._record.incarnation,
                previous_shutdown=self._record.previous_shutdown,
            ),
            now_ms=now_ms(),
        )
        self._runner.run(effects)
        return True

    def _mailbox_once_kafka_answers(self) -> Mailbox | None:
        """Wait for a broker; None if asked to end meanwhile.

        The calls run in a thread of their own: they last long while no broker answers, and a
        shutdown does not wait for them.
        """
        mailbox_worker = Worker("mailbox-opener", self._inbox)
        answers: list[Mailbox | Exception] = []

        def answered(_: int, answer: Any) -> None:
            answers.append(answer)

        while True:
            mailbox_worker.ask(self._opened_mailbox, answered, answered)
            while not answers:
                if not self._pause(KAFKA_PAUSE_S):
                    return None
            answer = answers.pop()
            if isinstance(answer, Mailbox):
                self._health.lacks("kafka", None)
                return answer
            if not isinstance(answer, UnreachableError):
                raise answer
            self._log.warning("kafka_away", error=str(answer))
            self._health.lacks("kafka", answer.message)
            if not self._pause(KAFKA_PAUSE_S):
                return None

    def _pause(self, seconds: float) -> bool:
        """Let time pass until something comes; whether the start may go on."""
        for item in self._inbox.take(seconds):
            if isinstance(item, WorkerAnswer):
                item.as_input(now_ms())
        self._health.beat()
        return not self._is_asked_to_end

    def _opened_mailbox(self) -> Mailbox:
        names = self._settings.topics.names
        commands = TopicPartition(names.controller, self._id)
        queries = TopicPartition(names.query, self._id)
        found = Administration(self._settings.kafka).topics({commands.topic, queries.topic})
        for one in (commands, queries):
            if one.topic not in found or found[one.topic].partitions <= one.partition:
                raise SettingsError(
                    f"Consumer {self._id} has no mailbox: {one.topic} has no partition {self._id}.",
                    remedy=f"Run `penstock topics create --consumers {self._id}`.",
                )
        mailbox = Mailbox(
            self._settings.kafka, commands, queries, is_from_leader=self._is_from_leader
        )
        try:
            mailbox.open(self._record.mailbox)
        except UnreachableError:
            mailbox.close()
            raise
        return mailbox

    def _is_from_leader(self, partition: TopicPartition, offset: int) -> bool:
        """Called by the mailbox's thread."""
        if self._leaders_records is None:
            # Imported with the first command: the library is slow to import.
            from penstock.kafka_io.leaders_records import LeadersRecords  # noqa: PLC0415 -- slow

            settings = self._settings
            self._leaders_records = LeadersRecords(
                settings.kafka,
                settings.topics.names.transactional_id(settings.lake.group),
                on_trouble=lambda text: self._inbox.put(MailboxTrouble(text)),
            )
        return self._leaders_records.has(partition, offset)

    def _make_runner(self) -> EffectRunner:
        settings = self._settings
        self._outbound = OutboundMessages(settings, self._log)
        group: GroupOffsets | None = None
        if settings.consumer.group_offsets:
            group = GroupOffsets(
                settings.kafka, settings.lake.group, on_failure=self._group_offsets_failed
            )
        writer = Writer(self._id, self._record.incarnation)
        return EffectRunner(
            ExternalSystems(settings, writer, self._at_point, self._metrics),
            self._outbound,
            group,
            self._health,
            self._metrics,
            self._inbox,
            self._log,
            save_mailbox_positions=self._save_mailbox_positions,
            save_controlled_end=lambda: self._save(CONTROLLED, dict(self._mailbox.positions)),
        )

    def _group_offsets_failed(self, explanation: str) -> None:
        self._log.warning("group_offsets", error=explanation)

    # --- one pass of the loop ---------------------------------------------------------------

    def _once(self) -> None:
        """Wait for what comes, or until the next tick is due; the core sees everything in order."""
        items = self._inbox.take((self._runner.wake_ms - now_ms()) / 1000)
        for item in items:
            self._take(item)
        records = [one for one in items if isinstance(one, KafkaRecord)]
        foreign = [one.record for one in items if isinstance(one, NotFromLeader)]
        messages = self._decoded_all(records, self._settings.lake.group)
        # Of any group: the core reports what another group's controller writes here.
        not_from_leader = self._decoded_all(foreign, "")
        if messages or not_from_leader:
            self._feed(MessagesRead(now_ms(), messages, not_from_leader))
        if now_ms() >= self._runner.wake_ms:
            self._feed(Tick(now_ms(), is_delivery_stuck=self._outbound.are_stuck))
        self._health.beat()

    def _take(self, item: Item) -> None:
        """What is no message: those are read together, after all else."""
        if isinstance(item, WorkerAnswer):
            given = item.as_input(now_ms())
            if given is not None:
                self._feed(given)
        elif isinstance(item, Signalled):
            self._feed(ShutdownAsked(now_ms(), signal.Signals(item.number).name))
        elif isinstance(item, MailboxTrouble):
            self._log.warning("mailbox", error=item.explanation)
        elif isinstance(item, MailboxCrashed):
            raise item.error

    def _feed(self, given: Input) -> None:
        if isinstance(given, SparkStarted):
            self._tell_started()
        self._state, effects = step(self._state, given)
        self._metrics.owned = self._state.ownership.owned.keys()
        self._runner.run(effects)

    def _tell_started(self) -> None:
        """For a deployment that starts few at a time: the next one may start now.

        Told once, because the file's time says how long the start took; Spark may start again.
        """
        if self._started_file is None:
            return
        try:
            if not self._started_file.exists():
                self._started_file.touch()
        except OSError as error:
            self._log.warning("start_not_told", why=str(error))

    def _decoded_all(
        self, records: list[KafkaRecord], group: str
    ) -> tuple[Command | StateQuery, ...]:
        found = (self._decoded(record, group) for record in records)
        return tuple(one for one in found if one is not None)

    def _decoded(self, record: KafkaRecord, group: str) -> Command | StateQuery | None:
        role = self._settings.topics.names.role_of(record.topic)
        read = decode(record.value, record.headers, group=group, topic_role=role, mailbox=self._id)
        if isinstance(read, StartConsumingCommand | StopConsumingCommand | StateQuery):
            return read
        why = read.code if isinstance(read, Refusal) else f"unexpected {read.event_type}"
        self._log.warning("message_refused", topic=record.topic, offset=record.offset, why=str(why))
        return None

    # --- the state directory ----------------------------------------------------------------

    def _save_mailbox_positions(self) -> None:
        positions = dict(self._mailbox.positions)
        if positions != self._saved_positions:
            self._save(RUNNING, positions)
            self._saved_positions = positions

    def _save(self, state: str, positions: dict[TopicPartition, int]) -> None:
        """A directory that takes no writes is a warning: the next start then trusts nothing."""
        if not self._directory.write(
            shutdown_record_content(self._record, state=state, mailbox=positions)
        ):
            self._log.warning("state_not_saved", why=self._directory.unusable)
