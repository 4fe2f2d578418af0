"""Two threads that read Kafka and put inputs into the loop's inbox.

Consumers' messages are on the consumer topic; those of a former release are in partition 0 of the
controller topic, beside the controllers' own.

While no broker answers, the threads log it once and keep trying. Malformed and foreign messages and
those of a newer version are logged and skipped; an unreadable request of an operator is answered.
"""

import math
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from penstock.controller.core.inputs import (
    ConsumerMessageRead,
    HeartbeatReturned,
    Input,
    LogExtent,
    MessageRefused,
    Requested,
    SpeedsMeasured,
)
from penstock.controller.process.returned_heartbeats import ReturnedHeartbeats
from penstock.errors import PenstockError
from penstock.kafka_io.followed_topics import AT_THE_END, FollowedTopics
from penstock.kafka_io.measurement_topic import MeasurementReader
from penstock.kafka_io.partition_reader import KafkaRecord
from penstock.messages import (
    ConsumerReport,
    ControllerHeartbeat,
    FromConsumer,
    PartAssembler,
    Refusal,
    RefusalCode,
    ServiceAnswer,
    ServiceRequest,
    StateQueryResponse,
    WholeMeasurement,
    decode,
    joined,
)
from penstock.model import TopicPartition
from penstock.settings import Settings

# How long to wait before reading again while no broker answers.
AWAY_PAUSE_S = 1.0
# How long one read waits: also how long the threads take to notice that they should end.
READ_WAIT_S = 0.5
# No settings: a flood of forged messages must not become one of questions.
CLAIMS_ASKED_EVERY_S = 1.0
MAILBOXES_ASKED_EVERY_S = 1.0

Inbox = queue.Queue[Callable[[int], Input] | Exception]


class InboundReaders:
    """Starts and ends the two threads."""

    def __init__(
        self,
        settings: Settings,
        inbox: Inbox,
        log: Any,
        *,
        controller_epoch: int,
        service_since: int,
        on_unreadable_request: Callable[[KafkaRecord, Refusal], None],
    ) -> None:
        self._settings = settings
        self._inbox = inbox
        self._log = log
        self._stop = threading.Event()
        self._responses: PartAssembler[StateQueryResponse] = PartAssembler()
        self._reports: PartAssembler[ConsumerReport] = PartAssembler()
        self._on_unreadable_request = on_unreadable_request
        names = settings.topics.names
        self._own = TopicPartition(names.controller, 0)
        self._consumers = TopicPartition(names.consumer, 0)
        self._service = TopicPartition(names.service, 0)
        # Opened here and not in the thread: a missing topic must stop the controller at once.
        self._topics = FollowedTopics(
            settings.kafka,
            {
                self._own: AT_THE_END,
                self._consumers: AT_THE_END,
                self._service: service_since,
            },
        )
        self._returned = ReturnedHeartbeats(controller_epoch)
        # How far the log of the claims is known to reach, and when that was last asked.
        self._claims_end = self._topics.starts[self._own]
        self._claims_asked_s = -math.inf
        # The same for the partitions of the controller topic, of which each consumer has one.
        self._mailboxes = 0
        self._mailboxes_asked_s = -math.inf
        # Saved from the start, so that the next controller reads requests sent while none leads.
        self.service_next_offset = self._topics.starts[self._service]
        self._threads = [
            threading.Thread(target=self._guarded, args=(self._read_messages,), daemon=True),
            threading.Thread(target=self._guarded, args=(self._read_speeds,), daemon=True),
        ]

    def listen(self) -> None:
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=5)
        self._topics.close()

    def _guarded(self, work: Callable[[], None]) -> None:
        """Try again after an outage; pass any other error to the loop, which ends with it."""
        is_away = False
        while not self._stop.is_set():
            try:
                work()
            except PenstockError as error:
                if not is_away:
                    self._log.warning("kafka_unreachable", error=str(error))
                is_away = True
                self._stop.wait(AWAY_PAUSE_S)
            except Exception as error:  # noqa: BLE001 -- handed to the loop, which ends with it
                self._inbox.put(error)
                return
            else:
                is_away = False

    def _read_messages(self) -> None:
        record = self._topics.read(READ_WAIT_S)
        if record is None:
            return
        is_service = record.partition == self._service
        if is_service:
            self.service_next_offset = record.offset + 1
        if record.partition == self._own:
            self._claims_end = max(self._claims_end, record.offset)
        role = self._settings.topics.names.role_of(record.topic)
        group = self._settings.lake.group
        found = decode(record.value, record.headers, group=group, topic_role=role, mailbox=0)
        if isinstance(found, Refusal):
            self._refused(found, role)
            # Two groups on one prefix would answer each other's answers for ever.
            if is_service and found.event_type != ServiceAnswer.__name__:
                self._on_unreadable_request(record, found)
        elif isinstance(found, ServiceRequest):
            self._inbox.put(lambda now_ms: Requested(now_ms, found))
        elif isinstance(found, ControllerHeartbeat):
            self._take_heartbeat(found, is_own=record.partition == self._own)
        elif isinstance(found, FromConsumer):
            self._take_message(found)

    def _take_message(self, message: FromConsumer) -> None:
        if not self._has_mailbox(message.consumer_id):
            # An answer to it would fail, with all that is sent in the same transaction.
            explanation = (
                f"a message names consumer {message.consumer_id}, which has no mailbox: refused"
            )
            self._inbox.put(lambda now_ms: MessageRefused(now_ms, explanation))
            return
        whole = self._whole(message)
        if whole is not None:
            reached, unix_ms = self._claims_reach(whole.controller_epoch), _unix_ms()
            self._inbox.put(lambda now_ms: ConsumerMessageRead(now_ms, whole, reached, unix_ms))

    def _take_heartbeat(self, heartbeat: ControllerHeartbeat, *, is_own: bool) -> None:
        if self._returned.is_complete(heartbeat, is_in_controllers_log=is_own):
            epoch, number = heartbeat.controller_epoch, heartbeat.heartbeat_number
            reached = self._claims_end
            self._inbox.put(lambda now_ms: HeartbeatReturned(now_ms, epoch, number, reached))

    def _claims_reach(self, named_epoch: int) -> int:
        """How far the log of the claims reaches: an epoch is one more than its claim's offset.

        Asked only when an epoch is named that nothing we have read can have.
        """
        now_s = time.monotonic()
        if named_epoch > self._claims_end and now_s - self._claims_asked_s >= CLAIMS_ASKED_EVERY_S:
            self._claims_asked_s = now_s
            self._claims_end = max(self._claims_end, self._topics.end_of(self._own))
        return self._claims_end

    def _has_mailbox(self, number: int) -> bool:
        """Whether there is one for a consumer of this number: it is made before its consumer.

        Asked only when a number is named that none of the known ones has.
        """
        now_s = time.monotonic()
        is_due = now_s - self._mailboxes_asked_s >= MAILBOXES_ASKED_EVERY_S
        if number >= self._mailboxes and is_due:
            self._mailboxes_asked_s = now_s
            # There are never fewer: a broker that answers with less has not heard of them yet.
            self._mailboxes = max(self._mailboxes, self._topics.partitions_of(self._own.topic))
        return number < self._mailboxes

    def _refused(self, refusal: Refusal, role: str) -> None:
        """What is another group's is in the history too: two groups share the topics."""
        if refusal.code is not RefusalCode.OTHER_GROUP:
            self._log.warning("message_refused", code=str(refusal.code), detail=refusal.detail)
            return
        explanation = (
            f"a message of another group was refused: {refusal.event_type or 'unknown'} on the "
            f"{role} topic, {refusal.detail}"
        )
        self._inbox.put(lambda now_ms: MessageRefused(now_ms, explanation))

    def _whole(self, message: FromConsumer) -> FromConsumer | None:
        if isinstance(message, StateQueryResponse):
            responses = self._responses.add(message)
            return None if responses is None else joined(responses, "owned")
        if isinstance(message, ConsumerReport):
            reports = self._reports.add(message)
            return None if reports is None else joined(reports, "owned")
        return message

    def _read_speeds(self) -> None:
        settings = self._settings
        reader = MeasurementReader(
            settings.kafka,
            settings.topics,
            group=settings.lake.group,
            on_refusal=lambda refusal: self._refused(refusal, "monitor"),
        )
        last: tuple[int, int] | None = None
        try:
            while not self._stop.is_set():
                newest = reader.newest(wait_s=READ_WAIT_S)
                if newest is None:
                    continue
                key = (newest.monitor_incarnation, newest.sequence)
                if key != last:
                    last = key
                    self._inbox.put(_measured(newest))
        finally:
            reader.close()


def _unix_ms() -> int:
    return time.time_ns() // 1_000_000


def _measured(newest: WholeMeasurement) -> Callable[[int], Input]:
    rows = newest.partitions
    speeds = {TopicPartition(row.topic, row.partition): row.write_speed_bytes_per_s for row in rows}
    topic_ids = {row.topic: row.topic_id for row in rows if row.topic_id is not None}
    logs = {
        TopicPartition(row.topic, row.partition): LogExtent(
            row.start_offset, row.end_offset, row.mean_log_bytes_per_record
        )
        for row in rows
        if row.end_offset is not None
    }

    def at(now_ms: int) -> SpeedsMeasured:
        age_ms = int(newest.age_s(time.monotonic()) * 1000)
        return SpeedsMeasured(now_ms, speeds, age_ms, topic_ids, logs)

    return at
