"""What the core can ask of Kafka, Spark and the lake. Every call here may block."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from penstock.consumer.core.effects import RangeToCarry
from penstock.consumer.core.inputs import LedgerEntry
from penstock.errors import PenstockError
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.log_sizes import LogSizeReader
from penstock.kafka_io.offset_lookup import LogPosition, OffsetLookup
from penstock.model import Epoch, TopicPartition
from penstock.pipeline import BatchResult, Claim, Pipeline, PlannedRange, Writer, start_session
from penstock.pipeline.upkeep import UpkeepReport, keep_up, remove_orphans_of
from penstock.settings import Settings


class ExternalSystems:
    """The looking thread reads Kafka and the ledger, the carrying thread runs batches."""

    def __init__(self, settings: Settings, writer: Writer, at_point: Callable[[str], None]) -> None:
        self._settings = settings
        self._writer = writer
        self._at_point = at_point
        self._kafka = Administration(settings.kafka)
        self._sizes: LogSizeReader | None = None
        self._session: Any = None
        self._authority: str | None = None
        # The ledger can be read before Spark is up.
        self._pipeline = Pipeline(settings, None, at_point=at_point)

    def start_spark(self, *, after_s: float) -> None:
        """Wait, then begin a session; also when the last one is lost.

        No batch can run meanwhile, so the carrying thread may wait.
        """
        time.sleep(after_s)
        self._session = start_session(
            self._settings.spark, name=f"penstock-consumer-{self._writer.consumer_id}"
        )
        self._pipeline = Pipeline(self._settings, self._session, at_point=self._at_point)

    def carry(self, ranges: Sequence[RangeToCarry]) -> BatchResult:
        planned = [
            PlannedRange(one.range, one.topic_id, one.ledger_offset, self._claim(one.epoch))
            for one in ranges
        ]
        return self._pipeline.carry(planned, writer=self._writer)

    def interrupt(self) -> None:
        """Make the running batch fail; it is then dropped whole."""
        if self._session is not None:
            self._pipeline.interrupt()

    def end_spark(self, *, then: Callable[[], None]) -> None:
        """Close the session, so that a shared server frees what it holds for us."""
        try:
            if self._session is not None:
                self._pipeline.close()
                self._session.stop()
        finally:
            then()

    def remove_orphans(self) -> int:
        """Remove this consumer's files that no commit names and none can name; how many."""
        return remove_orphans_of(self._settings.lake, self._writer.consumer_id)

    def keep_tables(self, topics: Iterable[str]) -> list[UpkeepReport]:
        """Join small files and remove what is no longer needed."""
        lake = self._settings.lake
        return list(keep_up(lake, sorted({lake.table_of(topic).table for topic in topics})))

    def read_ends(self, partitions: Iterable[TopicPartition]) -> OffsetLookup:
        """How far each partition's committed records reach, and why others cannot be looked up."""
        return self._kafka.look_up_offsets(partitions, LogPosition.STABLE_END)

    def read_ledger(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, LedgerEntry]:
        """Where each partition goes on. A partition that Kafka does not have is left out."""
        wanted = sorted(partitions)
        self._at_point("reading-ledger")
        orders = self._settings.topics.names.controller
        topics = self._kafka.topics({orders, *(one.topic for one in wanted)})
        self._authority = topics[orders].topic_id if orders in topics else None
        ids = {one: topics[one.topic].topic_id for one in wanted if one.topic in topics}
        ledger = self._pipeline.next_offsets(ids)
        epochs: Mapping[TopicPartition, Epoch] = {}
        if self._authority is not None:
            epochs = self._pipeline.last_epochs(ids, self._authority)
        new = [one for one in ids if ledger[one] is None]
        starts = self._kafka.start_offsets(new)
        found: dict[TopicPartition, LedgerEntry] = {}
        for one, topic_id in ids.items():
            offset = ledger[one] if ledger[one] is not None else starts.get(one)
            if offset is not None:
                found[one] = LedgerEntry(topic_id, ledger[one], offset, epochs.get(one))
        return found

    def _claim(self, epoch: Epoch) -> Claim | None:
        """Under which authority a commit is made; known once a ledger has been read."""
        return None if self._authority is None else Claim(self._authority, epoch)

    def read_start_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._kafka.start_offsets(partitions)

    def read_log_sizes(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, float]:
        """Log bytes of one offset; a partition with an empty log is left out."""
        wanted = sorted(partitions)
        if self._sizes is None:
            self._sizes = LogSizeReader(self._settings.kafka)
        try:
            sizes = self._sizes.read_bytes({one.topic for one in wanted})
        except PenstockError:
            self._sizes = None  # a connection that failed is not used again
            raise
        starts, ends = self._kafka.start_offsets(wanted), self._kafka.end_offsets(wanted)
        return {
            one: sizes[one] / (ends[one] - starts[one])
            for one in wanted
            if one in sizes and one in starts and ends.get(one, 0) > starts[one]
        }
