"""What the core can ask of Kafka, Spark and the lake. Every call here may block.

What asks with kafka-python is imported at its first question: the library takes an eighth of a
second of a core to import, and a spare asks nothing.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.committer import CommitsTogether
from penstock.consumer.core.effects import RangeToCarry
from penstock.consumer.core.inputs import LedgerEntry
from penstock.errors import PenstockError
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.failures import TopicMissingError
from penstock.kafka_io.offset_lookup import LogPosition, OffsetLookup
from penstock.model import Epoch, TopicPartition
from penstock.pipeline import BatchResult, Claim, Pipeline, PlannedRange, Writer, start_session
from penstock.pipeline.commit_watch import UNWATCHED, CommitWatch
from penstock.pipeline.session import disconnect
from penstock.pipeline.table_keeper import TableKeeper, TablesKept
from penstock.settings import Settings

if TYPE_CHECKING:
    from penstock.kafka_io.leader_epochs import EpochEndReader
    from penstock.kafka_io.log_sizes import LogSizeReader

# How soon a topic that was made again is noticed while its ends do not show it.
_TOPIC_IDS_PERIOD_S = 5.0


@dataclass(frozen=True, slots=True)
class LogEnds:
    """`topic_ids` has the topics that were described with this look; None for one that is gone."""

    ends: OffsetLookup
    topic_ids: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LedgerReading:
    """A partition that Kafka does not have is in neither."""

    entries: Mapping[TopicPartition, LedgerEntry]
    failures: Mapping[TopicPartition, PenstockError]


class ExternalSystems:
    """The looking thread reads Kafka and the ledger, the carrying thread runs batches."""

    def __init__(
        self,
        settings: Settings,
        writer: Writer,
        at_point: Callable[[str], None],
        watch: CommitWatch = UNWATCHED,
    ) -> None:
        self._settings = settings
        self._watch = watch
        self._writer = writer
        self._at_point = at_point
        self._kafka = Administration(settings.kafka)
        self._epoch_ends: EpochEndReader | None = None
        self._topics_due_s = 0.0
        self._sizes: LogSizeReader | None = None
        self._session: Any = None
        self._authority: str | None = None
        self._keeper = TableKeeper(settings.lake)
        self._together: CommitsTogether | None = None
        if settings.lake.commits_together:
            self._together = CommitsTogether(settings, writer, at_point=at_point, watch=watch)
        # The ledger can be read before Spark is up.
        self._pipeline = self._new_pipeline()

    def start_spark(self, *, after_s: float) -> None:
        """Wait, then begin a session; also when the last one is lost.

        No batch can run meanwhile, so the carrying thread may wait.
        """
        # The core has said how long; a loop that waits would only wake for this.
        time.sleep(after_s)
        if self._session is not None:
            # Left open, the lost session would stay the one that Spark's client asks.
            self._pipeline.close()
            disconnect(self._session)
        self._session = start_session(
            self._settings.spark, name=f"penstock-consumer-{self._writer.consumer_id}"
        )
        self._pipeline = self._new_pipeline()

    def _new_pipeline(self) -> Pipeline:
        return Pipeline(
            self._settings,
            self._session,
            at_point=self._at_point,
            watch=self._watch,
            hand_over=self._together,
        )

    def carry(self, ranges: Sequence[RangeToCarry], *, is_calm: bool = False) -> BatchResult:
        planned = [
            PlannedRange(
                one.range,
                one.topic_id,
                one.ledger_offset,
                self._claim(one.epoch),
                one.leader_epoch,
            )
            for one in ranges
        ]
        return self._pipeline.carry(planned, writer=self._writer, is_calm=is_calm)

    def interrupt(self) -> None:
        """Make the running batch fail; it is then dropped whole."""
        if self._together is not None:
            self._together.give_up()
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
        """Remove this consumer's files that no commit names and none can name; how many.

        In a child process: it reads the list of files.
        """
        return self._keeper.remove_orphans(self._writer.consumer_id)

    def keep_tables(self, tables: Sequence[str]) -> TablesKept:
        """Join small files and remove what is no longer needed, in a child process."""
        return self._keeper.keep(tables)

    def end_upkeep(self) -> None:
        """End the child process, whatever it does. Never waits."""
        self._keeper.close()

    def end_commits_for_others(self) -> None:
        """Tell the other writers, so that they wait for no answer."""
        if self._together is not None:
            self._together.close()

    def read_ends(self, partitions: Sequence[TopicPartition]) -> LogEnds:
        """How far each partition's committed records reach, and why others cannot be looked up.

        Every few seconds also which topics they are: one that was made again may have as many
        records as the old one, so that its ends say nothing.
        """
        ends = self._kafka.look_up_offsets(partitions, LogPosition.STABLE_END)
        now_s = time.monotonic()
        if now_s < self._topics_due_s:
            return LogEnds(ends)
        self._topics_due_s = now_s + _TOPIC_IDS_PERIOD_S
        found = self._kafka.look_up_topics({one.topic for one in partitions})
        ids: dict[str, str | None] = {name: view.topic_id for name, view in found.topics.items()}
        for name, error in found.failures.items():
            if isinstance(error, TopicMissingError):
                ids[name] = None
        return LogEnds(ends, ids)

    def read_ledger(self, partitions: Iterable[TopicPartition]) -> LedgerReading:
        """Where each partition goes on. A partition that Kafka does not have is left out."""
        wanted = sorted(partitions)
        self._at_point("reading-ledger")
        ids, failures = self._topic_ids(wanted)
        view = self._pipeline.read_ledger(ids, self._authority)
        failures |= view.failures
        ledger = view.next_offsets
        new = [one for one, offset in ledger.items() if offset is None]
        starts = self._kafka.look_up_offsets(new, LogPosition.START)
        epoch_ends = self._look_up_epoch_ends(view.leader_epochs)
        for lookup in (starts, epoch_ends):
            failures |= {
                one: error
                for one, error in lookup.failures.items()
                if not isinstance(error, TopicMissingError)
            }
        entries: dict[TopicPartition, LedgerEntry] = {}
        for one, known in ledger.items():
            offset = known if known is not None else starts.offsets.get(one)
            if offset is not None and one not in failures:
                entries[one] = LedgerEntry(
                    ids[one],
                    known,
                    offset,
                    view.last_epochs.get(one),
                    view.leader_epochs.get(one),
                    epoch_ends.offsets.get(one),
                )
        return LedgerReading(entries, failures)

    def _look_up_epoch_ends(self, epochs: Mapping[TopicPartition, int]) -> OffsetLookup:
        if not epochs:
            return OffsetLookup()
        if self._epoch_ends is None:
            from penstock.kafka_io.leader_epochs import EpochEndReader  # noqa: PLC0415 -- see above

            self._epoch_ends = EpochEndReader(self._settings.kafka)
        return self._epoch_ends.look_up(epochs)

    def _topic_ids(
        self, partitions: Sequence[TopicPartition]
    ) -> tuple[dict[TopicPartition, str], dict[TopicPartition, PenstockError]]:
        """The topic ids of those partitions whose topics exist, and why others are not known.

        The controller topic must be known: its id says whose epochs count.
        """
        orders = self._settings.topics.names.controller
        found = self._kafka.look_up_topics({orders, *(one.topic for one in partitions)})
        failures = {
            name: error
            for name, error in found.failures.items()
            if not isinstance(error, TopicMissingError)
        }
        if orders in failures:
            raise failures[orders]
        self._authority = found.topics[orders].topic_id if orders in found.topics else None
        ids = {p: found.topics[p.topic].topic_id for p in partitions if p.topic in found.topics}
        return ids, {p: failures[p.topic] for p in partitions if p.topic in failures}

    def _claim(self, epoch: Epoch) -> Claim | None:
        """Under which authority a commit is made; known once a ledger has been read."""
        return None if self._authority is None else Claim(self._authority, epoch)

    def read_start_offsets(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, int]:
        """Without those that cannot be looked up now: their next batch asks again."""
        return self._kafka.look_up_offsets(partitions, LogPosition.START).offsets

    def read_log_sizes(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, float]:
        """Log bytes of one offset; without an empty log, and one that cannot be looked up."""
        wanted = sorted(partitions)
        if self._sizes is None:
            from penstock.kafka_io.log_sizes import LogSizeReader  # noqa: PLC0415 -- see above

            self._sizes = LogSizeReader(self._settings.kafka)
        try:
            sizes = self._sizes.read_bytes({one.topic for one in wanted})
        except PenstockError:
            self._sizes.close()
            self._sizes = None  # a connection that failed is not used again
            raise
        # Nobody waits for an election here: the one looking thread would hold up all partitions.
        starts = self._kafka.look_up_offsets(wanted, LogPosition.START).offsets
        ends = self._kafka.look_up_offsets(wanted, LogPosition.END).offsets
        return {
            one: sizes[one] / (ends[one] - starts[one])
            for one in wanted
            if one in sizes and one in starts and ends.get(one, 0) > starts[one]
        }
