"""Finds out where partitions stand: their entry in the ledger, and what an offset of them weighs.

Asked for when a partition is to be started, and again when a batch ended without saying whether it
was committed. What Kafka or the lake does not tell now is asked again, later and later.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.consumer.core.inputs import BatchBegan, BatchEnded, Input, LedgerRead, PartitionFailed
from penstock.consumer.core.ownership import Ownership
from penstock.consumer.core.partition_progress import ProgressTable, retry_wait_s
from penstock.consumer.process.external_systems import LedgerEntry, World
from penstock.consumer.process.threads import Worker, now_s
from penstock.errors import PenstockError
from penstock.messages import StopReason
from penstock.model import Epoch, TopicPartition

WEIGH_PERIOD_S = 30.0
WEIGH_AGAIN_S = 2.0
MISSING_PARTITION_MAX_S = 15.0


@dataclass(slots=True)
class _Wanted:
    """A ledger entry that is to be read before its partition can be."""

    epoch: Epoch
    since_s: float
    not_before_s: float = 0.0
    failures: int = 0


class LedgerLookup:
    def __init__(
        self,
        progress: ProgressTable,
        world: World,
        looking: Worker,
        *,
        ownership: Callable[[], Ownership],
        feed: Callable[[Input], None],
        on_news: Callable[[], None],
        log: Any,
    ) -> None:
        self._progress = progress
        self._world = world
        self._looking = looking
        self._ownership = ownership
        self._feed = feed
        self._on_news = on_news
        self._log = log
        self._wanted: dict[TopicPartition, _Wanted] = {}
        self._is_reading = False
        self._is_weighing = False
        self._next_weigh_s = 0.0

    def want(self, partition: TopicPartition, epoch: Epoch) -> None:
        """The ownership wants to know where a partition stands."""
        self._wanted[partition] = _Wanted(epoch, since_s=now_s())

    def due_s(self) -> float:
        due = [self._next_weigh_s] if self._progress.rows and not self._is_weighing else []
        if not self._is_reading:
            due += [one.not_before_s for one in self._wanted.values()]
            due += [row.not_before_s for row in self._progress.rows.values() if row.is_unsettled]
        return min(due, default=math.inf)

    def turn(self) -> None:
        owned = self._ownership().owned
        self._progress.keep_only(owned)
        self._wanted = {one: want for one, want in self._wanted.items() if one in owned}
        self._ask_ledger(now_s())
        self._ask_weights(now_s())

    def stop(
        self, partition: TopicPartition, reason: StopReason, offset: int | None, detail: str
    ) -> None:
        """Give a partition up that cannot be read on; the others go on."""
        self._log.error("partition_stopped", partition=str(partition), reason=reason, error=detail)
        self._progress.note_failure(partition, reason, offset, detail)
        self._feed(PartitionFailed(partition, reason, detail))

    def _ask_ledger(self, now: float) -> None:
        if self._is_reading:
            return
        asked = {one for one, want in self._wanted.items() if want.not_before_s <= now}
        asked |= {
            one
            for one, row in self._progress.rows.items()
            if row.is_unsettled and row.not_before_s <= now
        }
        if asked:
            self._is_reading = True
            self._looking.ask(
                lambda: self._world.read_ledger(asked),
                lambda found: self._ledger_read(asked, found),
                lambda error: self._ledger_not_read(asked, error),
            )

    def _ledger_read(
        self, asked: set[TopicPartition], found: Mapping[TopicPartition, LedgerEntry]
    ) -> None:
        self._is_reading = False
        for partition in sorted(asked & set(self._ownership().owned)):
            entry = found.get(partition)
            wanted = self._wanted.get(partition)
            if entry is None:
                self._not_in_kafka(partition)
            elif wanted is not None:
                del self._wanted[partition]
                self._progress.add(partition, entry.topic_id, entry.ledger)
                self._feed(LedgerRead(partition, wanted.epoch, entry.next_offset, entry.last_epoch))
            elif partition in self._progress.rows:
                self._settle(partition, entry)
        self._next_weigh_s = min(self._next_weigh_s, now_s())
        self._on_news()

    def _settle(self, partition: TopicPartition, entry: LedgerEntry) -> None:
        """A batch of unknown outcome: the ledger says whether it counted."""
        self._progress.settle(partition, entry.ledger)
        if entry.ledger is not None and partition in self._ownership().readable:
            epoch = self._ownership().owned[partition].epoch
            is_lost = entry.last_epoch is not None and entry.last_epoch > epoch
            self._feed(BatchBegan((partition,)))
            self._feed(
                BatchEnded(refused=(partition,), partitions=(partition,))
                if is_lost
                else BatchEnded(committed={partition: entry.ledger}, partitions=(partition,))
            )

    def _not_in_kafka(self, partition: TopicPartition) -> None:
        """A new partition may not be known everywhere yet; one that stays away is gone."""
        wanted = self._wanted.get(partition)
        if wanted is not None and now_s() - wanted.since_s < MISSING_PARTITION_MAX_S:
            self._again(wanted)
            return
        self._wanted.pop(partition, None)
        self.stop(partition, StopReason.TOPIC_MADE_AGAIN, None, "the topic or partition is gone")

    def _again(self, wanted: _Wanted) -> None:
        wanted.failures += 1
        wanted.not_before_s = now_s() + retry_wait_s(wanted.failures)

    def _ledger_not_read(self, asked: set[TopicPartition], error: Exception) -> None:
        self._is_reading = False
        if not isinstance(error, PenstockError):
            raise error
        self._log.warning("ledger_not_read", partitions=len(asked), error=str(error))
        for partition in sorted(asked):
            if partition in self._wanted:
                self._again(self._wanted[partition])
            elif partition in self._progress.rows:
                self._progress.put_off(partition, now_s(), is_unsettled=True)

    def _ask_weights(self, now: float) -> None:
        if not self._progress.rows or self._is_weighing or now < self._next_weigh_s:
            return
        self._is_weighing = True
        asked = sorted(self._progress.rows)
        self._looking.ask(lambda: self._world.weigh(asked), self._weighed, self._not_weighed)

    def _weighed(self, weights: Mapping[TopicPartition, float]) -> None:
        self._is_weighing = False
        for partition, weight in weights.items():
            if partition in self._progress.rows:
                self._progress.rows[partition].log_bytes_per_offset = weight
        unknown = any(row.log_bytes_per_offset is None for row in self._progress.rows.values())
        self._next_weigh_s = now_s() + (WEIGH_AGAIN_S if unknown else WEIGH_PERIOD_S)

    def _not_weighed(self, error: Exception) -> None:
        if not isinstance(error, PenstockError):
            raise error
        self._is_weighing = False
        self._next_weigh_s = now_s() + WEIGH_PERIOD_S
        self._log.warning("log_sizes_unknown", error=str(error), instead="decoded bytes")
