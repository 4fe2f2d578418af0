"""One consumer's life: lock the state directory, listen, carry, report, end in order.

    ConsumerProcess(settings, consumer_id=3).run()

Returns after an orderly end. Whatever else ends it leaves "running" in the state directory, and the
next life knows.
"""

import math
import signal
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType

from penstock.consumer.core.effects import Effect, EndControlled, ReadLedger, Say
from penstock.consumer.core.inputs import CommandRead, Input, QueryRead, ReportDue, ShutdownAsked
from penstock.consumer.core.ownership import Ownership, step, stops_first
from penstock.consumer.core.shutdown_record import (
    CONTROLLED,
    RUNNING,
    begin_incarnation,
    shutdown_record_content,
)
from penstock.consumer.process.cycle import Cycle
from penstock.consumer.process.external_systems import World
from penstock.consumer.process.outbound import OutboundMessages
from penstock.consumer.process.threads import (
    Inbox,
    MailboxThread,
    Signalled,
    Worker,
    WorkerAnswer,
    now_s,
)
from penstock.errors import PenstockError, SettingsError
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.group_offsets import GroupOffsets
from penstock.kafka_io.mailbox import Letter, Mailbox, MailboxTrouble
from penstock.messages import (
    PreviousShutdown,
    Refusal,
    StartConsumingCommand,
    StateQuery,
    StopConsumingCommand,
    StopConsumingEvent,
    StopReason,
    decode,
)
from penstock.model import ConsumerId, TopicPartition
from penstock.pipeline import Writer
from penstock.pipeline.upkeep import UpkeepReport
from penstock.settings import Settings
from penstock.state_directory import BrokenState, StateDirectory
from penstock.telemetry import Health, get_logger

# Of the grace period: what the running batch may use, before it is dropped.
BATCH_SHARE_OF_GRACE = 0.6
LAST_WORDS_S = 3.0
Point = Callable[[str], None]


class GraceExceededError(PenstockError):
    """The orderly end took too long; the state directory says "running"."""


def _nothing(_: str) -> None:
    """No test is watching."""


class ConsumerProcess:
    def __init__(
        self,
        settings: Settings,
        consumer_id: int,
        *,
        state_directory: Path | None = None,
        deployment_version: int | None = None,
        health: Health | None = None,
        at_point: Point = _nothing,
    ) -> None:
        self._settings = settings
        self._id = ConsumerId(consumer_id)
        self._deployment_version = deployment_version
        self._health = health or Health()
        self._at_point = at_point
        self._inbox = Inbox()
        self._log = get_logger(consumer=consumer_id)
        root = Path(settings.consumer.state_root)
        path = state_directory or root / f"consumer-{consumer_id}"
        self._directory = StateDirectory(
            path,
            f"{settings.lake.group}/consumer-{consumer_id}",
            wait_s=settings.consumer.state_wait,
            is_given_up=lambda: self._is_told_to_end,
        )
        self._is_told_to_end = False
        self._has_ended = False
        self._deadline_s: float | None = None
        self._drop_at_s: float | None = None

    def run(self) -> None:
        """Work until told to end."""
        self._listen_to_signals()
        with self._directory:
            self._begin()
            self._health.begun()
            try:
                while not self._has_ended:
                    self._once()
                self._end()
            finally:
                self._mail.stop(timeout_s=1.0)

    def ask_to_end(self) -> None:
        """What SIGTERM does; from any thread."""
        self._inbox.put(Signalled(signal.SIGTERM))

    def _listen_to_signals(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return

        def heard(number: int, _: FrameType | None) -> None:
            self._is_told_to_end = True
            self._inbox.put(Signalled(number))

        signal.signal(signal.SIGTERM, heard)
        signal.signal(signal.SIGINT, heard)

    def _begin(self) -> None:
        """Know the last life, write that this one runs, open the mailbox, speak."""
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
        )
        self._saved_mailbox: dict[TopicPartition, int] = dict(self._record.mailbox)
        self._save(RUNNING, self._saved_mailbox)
        names = self._settings.topics.names
        self._commands = TopicPartition(names.controller, self._id)
        self._queries = TopicPartition(names.query, self._id)
        self._require_mailbox()
        self._mailbox = Mailbox(self._settings.kafka, self._commands, self._queries)
        self._mailbox.open(self._record.mailbox)
        self._mail = MailboxThread(self._mailbox, self._inbox)
        self._ownership = Ownership(
            self._id, self._record.incarnation, previous_shutdown=self._record.previous_shutdown
        )
        self._open_rooms()
        self._report_due_s = self._reported_s = now_s()

    def _open_rooms(self) -> None:
        settings = self._settings
        self._outbound = OutboundMessages(settings, self._log)
        self._group: GroupOffsets | None = None
        if settings.consumer.group_offsets:
            self._group = GroupOffsets(
                settings.kafka, settings.lake.group, on_failure=self._group_failed
            )
        self._world = World(settings, Writer(self._id, self._record.incarnation), self._at_point)
        self._looking = Worker("looking", self._inbox)
        self._carrying = Worker("carrying", self._inbox)
        self._upkeep = Worker("upkeep", self._inbox)
        self._cycle = Cycle(
            settings,
            self._world,
            self._looking,
            self._carrying,
            ownership=lambda: self._ownership,
            feed=self._feed,
            on_commit=self._committed,
            log=self._log,
        )
        self._cycle.start_spark()
        self._sweep()
        period_s = settings.lake.compact_period
        self._upkeep_due_s = now_s() + period_s if period_s else math.inf

    def _sweep(self) -> None:
        """After a life that was cut short: its files that no commit names are in nobody's way."""
        known = self._record.previous_shutdown
        if known in {PreviousShutdown.UNCONTROLLED, PreviousShutdown.UNKNOWN}:
            Worker("sweeping", self._inbox).ask(
                self._world.remove_orphans,
                self._orphans_removed,
                self._not_removed,
            )

    def _require_mailbox(self) -> None:
        found = Administration(self._settings.kafka).topics(
            {self._commands.topic, self._queries.topic}
        )
        for one in (self._commands, self._queries):
            if one.topic not in found or found[one.topic].partitions <= one.partition:
                raise SettingsError(
                    f"Consumer {self._id} has no mailbox: {one.topic} has no partition {self._id}.",
                    remedy=f"Run `penstock topics create --consumers {self._id}`.",
                )

    # --- one turn of the loop ---------------------------------------------------------------

    def _once(self) -> None:
        due_s = min(self._report_due_s, self._upkeep_due_s, self._cycle.due_s(), self._end_due_s())
        letters: list[Letter] = []
        for item in self._inbox.take(due_s - now_s()):
            if isinstance(item, Letter):
                letters.append(item)
            elif isinstance(item, WorkerAnswer):
                item.then(item.result) if item.error is None else item.failed(item.error)
            elif isinstance(item, Signalled):
                self._signalled(item)
            elif isinstance(item, MailboxTrouble):
                self._log.warning("mailbox", error=item.explanation)
        self._read_letters(letters)
        if now_s() >= self._report_due_s:
            self._report()
        if now_s() >= self._upkeep_due_s:
            self._keep_up()
        self._mind_the_grace()
        if not self._has_ended:
            self._cycle.turn()
        self._health.beat()

    def _read_letters(self, letters: list[Letter]) -> None:
        """Stops, then starts, then queries: a query sees what was ordered before it."""
        commands: list[StartConsumingCommand | StopConsumingCommand] = []
        queries: list[StateQuery] = []
        for letter in letters:
            role = self._settings.topics.names.role_of(letter.topic)
            read = decode(letter.value, letter.headers, topic_role=role, mailbox=self._id)
            if isinstance(read, StartConsumingCommand | StopConsumingCommand):
                commands.append(read)
            elif isinstance(read, StateQuery):
                queries.append(read)
            else:
                why = read.code if isinstance(read, Refusal) else f"unexpected {read.event_type}"
                self._log.warning(
                    "letter_refused", topic=letter.topic, offset=letter.offset, why=str(why)
                )
        for command in stops_first(commands):
            self._feed(CommandRead(command))
        for query in queries:
            self._feed(QueryRead(query))

    def _feed(self, given: Input) -> None:
        self._ownership, effects = step(self._ownership, given)
        for effect in effects:
            self._do(effect)

    def _do(self, effect: Effect) -> None:
        if isinstance(effect, Say):
            self._outbound.say(effect.message)
            if isinstance(effect.message, StopConsumingEvent) and self._group is not None:
                for row in effect.message.partitions:
                    if row.reason is StopReason.LEDGER_REFUSED:
                        self._group.forget(row.topic_partition)
        elif isinstance(effect, ReadLedger):
            self._cycle.standings.want(effect.partition, effect.epoch)
        elif isinstance(effect, EndControlled):
            self._has_ended = True
        else:
            raise TypeError(f"an effect that nobody carries out: {effect}")

    def _report(self) -> None:
        now = now_s()
        self._report_due_s = now + self._settings.consumer.report_period
        is_stuck = self._outbound.are_stuck
        self._health.lacks("kafka", "the broker takes no reports" if is_stuck else None)
        if is_stuck:
            return
        seconds, self._reported_s = now - self._reported_s, now
        owned = self._ownership.owned
        progress = self._cycle.progress
        behind = progress.behind({one: held.next_offset for one, held in owned.items()})
        epochs = {one: held.epoch for one, held in owned.items()}
        self._feed(
            ReportDue(
                measured=progress.measured(epochs, seconds),
                capacity_log_bytes_per_s=self._cycle.estimate.log_bytes_per_s,
                behind_records=behind[0] if behind else None,
                behind_log_bytes=behind[1] if behind else None,
                deployment_version=self._deployment_version,
                cycle=progress.cycle(),
                failed=tuple(progress.failed[one] for one in sorted(progress.failed)),
            )
        )
        if self._group is not None:
            self._group.write({})
        mailbox = dict(self._mailbox.positions)
        if mailbox != self._saved_mailbox:
            self._save(RUNNING, mailbox)
            self._saved_mailbox = mailbox

    # --- beside the loop --------------------------------------------------------------------

    def _committed(self, offsets: Mapping[TopicPartition, int]) -> None:
        if self._group is not None:
            self._group.write(offsets)

    def _group_failed(self, explanation: str) -> None:
        self._log.warning("group_offsets", error=explanation)

    def _orphans_removed(self, removed: int) -> None:
        self._log.info("orphans_removed", files=removed)

    def _not_removed(self, error: Exception) -> None:
        if not isinstance(error, PenstockError):
            raise error
        self._log.warning("orphans_kept", error=str(error))

    def _keep_up(self) -> None:
        """Look after the tables we write, beside the batches; the next time counts from its end."""
        self._upkeep_due_s = math.inf
        topics = {one.topic for one in self._ownership.owned}
        tables = sorted({self._settings.lake.table_of(topic).table for topic in topics})
        self._upkeep.ask(
            lambda: self._world.keep_up(tables) if tables else [], self._kept_up, self._not_kept_up
        )

    def _kept_up(self, reports: list[UpkeepReport]) -> None:
        self._upkeep_due_s = now_s() + self._settings.lake.compact_period
        for one in reports:
            self._log.info(
                "table_kept_up", table=one.table, files=one.files_after, before=one.files_before
            )

    def _not_kept_up(self, error: Exception) -> None:
        if not isinstance(error, PenstockError):
            raise error
        self._upkeep_due_s = now_s() + self._settings.lake.compact_period
        self._log.warning("table_not_kept_up", error=str(error))

    def _save(self, state: str, mailbox: dict[TopicPartition, int]) -> None:
        """A place that takes no writes is a warning: the next start is then a careful one."""
        if not self._directory.write(
            shutdown_record_content(self._record, state=state, mailbox=mailbox)
        ):
            self._log.warning("state_not_kept", why=self._directory.unusable)

    # --- the end ----------------------------------------------------------------------------

    def _signalled(self, signalled: Signalled) -> None:
        if self._deadline_s is None:
            grace_s = self._settings.consumer.grace
            self._deadline_s = now_s() + grace_s
            self._drop_at_s = now_s() + BATCH_SHARE_OF_GRACE * grace_s
            name = signal.Signals(signalled.number).name
            self._log.info("ending", signal=name, batch_runs=self._cycle.is_carrying)
            self._feed(ShutdownAsked())
        else:
            self._drop_at_s = now_s()  # asked twice: the batch is not waited for

    def _end_due_s(self) -> float:
        due = [one for one in (self._drop_at_s, self._deadline_s) if one is not None]
        return min(due, default=float("inf"))

    def _mind_the_grace(self) -> None:
        now = now_s()
        if self._drop_at_s is not None and now >= self._drop_at_s:
            self._drop_at_s = None
            if self._cycle.is_carrying:
                self._log.warning("batch_dropped", why="it would not end within the grace period")
                Worker("interrupting", self._inbox).ask(
                    self._world.interrupt, lambda _: None, self._not_interrupted
                )
        if self._deadline_s is not None and now >= self._deadline_s and not self._has_ended:
            raise GraceExceededError(
                f"The batch did not end within the grace period of consumer {self._id}.",
                remedy="Raise consumer.grace, or lower consumer.batch_time.",
            )

    def _not_interrupted(self, error: Exception) -> None:
        self._log.warning("not_interrupted", error=str(error))

    def _end(self) -> None:
        """All is carried and said: make sure it is heard, and write "controlled"."""
        left_s = max(0.5, (self._deadline_s or now_s()) - now_s())
        self._outbound.flush(min(LAST_WORDS_S, left_s))
        if self._group is not None:
            self._group.finish(min(LAST_WORDS_S, left_s))
        self._save(CONTROLLED, dict(self._mailbox.positions))
        released = threading.Event()
        Worker("ending", self._inbox).ask(
            lambda: self._world.end_spark(then=released.set), lambda _: None, lambda _: None
        )
        released.wait(min(LAST_WORDS_S, left_s))
        self._log.info("consumer_ended", state=CONTROLLED)
