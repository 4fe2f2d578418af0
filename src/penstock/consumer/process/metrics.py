"""Keeps a consumer's metrics: what its batches, its commits and its upkeep did."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from penstock.consumer.core.inputs import BatchEnded
from penstock.consumer.core.settings import table_keepers
from penstock.consumer.core.table_upkeep import tables_to_keep
from penstock.messages import StopReason
from penstock.metrics import Metric, Process, Sample
from penstock.metrics import of_consumer as of
from penstock.model import TopicPartition
from penstock.pipeline import BatchResult
from penstock.pipeline.upkeep import UpkeepReport
from penstock.settings.sections import LakeSettings
from penstock.telemetry import MetricStore

# What was seen of a table is told so long after the consumer has given it up. One that commits for
# others has none of their partitions.
SEEN_WITHIN_S = 300.0
# And of a table that it still has: others commit to it as well, and know more after this.
SEEN_WITHIN_S_OWNED = 3_600.0
# A figure of each table, and when it was seen.
_Seen = dict[str, tuple[float, int]]


class ConsumerMetrics:
    """Several threads call it. It is also the pipeline's `CommitWatch`."""

    def __init__(
        self,
        lake: LakeSettings,
        consumer_id: int,
        store: MetricStore | None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store or MetricStore(lake.group, Process.CONSUMER)
        self._me = str(consumer_id)
        self._lake = lake
        self._keepers = table_keepers(lake)
        self._clock = clock
        self._has_session = False
        # The present value. It is replaced as a whole and never changed in place.
        self.owned: Collection[TopicPartition] = ()
        self._seen: Mapping[Metric, _Seen] = {
            one: {} for one in (of.TABLE_VERSION, of.TABLE_LOG_ENTRIES, of.TABLE_FILES)
        }
        for metric in (
            of.RETRIES,
            of.RECORDS,
            of.BYTES,
            of.FILES,
            of.FILE_BYTES,
            of.REFUSED,
            of.DEAD_LETTERS,
            of.SESSIONS_STARTED,
            of.SESSIONS_LOST,
            of.ORPHANS_REMOVED,
            of.UPKEEP_SECONDS,
        ):
            self._store.count(metric, self._me, by=0)
        self._store.ask(self._samples)

    def _samples(self) -> Iterator[Sample]:
        owned, now_s = self.owned, self._clock()
        yield Sample(of.OWNED, (self._me,), len(owned))
        written = {self._lake.table_of(topic).table for topic in {one.topic for one in owned}}
        kept = tables_to_keep(owned, self._keepers)
        for metric, seen in self._seen.items():
            for table, (at_s, figure) in list(seen.items()):
                age_s = now_s - at_s
                if metric is of.TABLE_FILES:  # only its keeper counts them: nobody knows more
                    is_told = table in kept or age_s <= SEEN_WITHIN_S
                else:
                    is_told = age_s <= (SEEN_WITHIN_S_OWNED if table in written else SEEN_WITHIN_S)
                if is_told:
                    yield Sample(metric, (self._me, table), figure)

    def _see(self, metric: Metric, table: str, figure: int) -> None:
        self._seen[metric][table] = (self._clock(), figure)

    def batch_ended(self, result: BatchResult, given: BatchEnded, seconds: float) -> None:
        """`given` is the same result as the core sees it: with its failures classified."""
        count, me = self._store.count, self._me
        failed, carried = bool(given.failures), bool(given.committed)
        outcome = "failed" if failed and not carried else "partly" if failed else "carried"
        count(of.BATCHES, me, outcome)
        self._store.observe(of.BATCH_SECONDS, seconds, me)
        times = given.times
        for stage, stage_s in (
            ("read", times.read_s),
            ("transform", times.transform_s),
            ("write", times.write_s),
            ("commit", times.commit_s),
        ):
            if stage_s:
                self._store.observe(of.STAGE_SECONDS, stage_s, me, stage)
        count(of.RECORDS, me, by=result.records)
        count(of.BYTES, me, by=result.decoded_bytes)
        count(of.FILES, me, by=result.files)
        count(of.FILE_BYTES, me, by=result.file_bytes)
        count(of.DEAD_LETTERS, me, by=result.dead_letters)
        if carried:
            self._store.set(of.COMMIT_ROUND, result.commit_round_s, me)
        for failure in given.failures.values():
            if failure.reason is None:
                count(of.RETRIES, me)
            elif failure.reason is StopReason.LEDGER_REFUSED:
                count(of.REFUSED, me)
            else:
                count(of.FAILED, me, failure.reason.value)

    def committed(self, table: str, version: int, log_entries: int) -> None:
        self._store.count(of.COMMITS, self._me, table)
        self._store.count(of.CONFLICTS, self._me, table, by=0)
        self._see(of.TABLE_VERSION, table, version)
        self._see(of.TABLE_LOG_ENTRIES, table, log_entries)

    def conflicted(self, table: str) -> None:
        self._store.count(of.CONFLICTS, self._me, table)

    def spark_is_asked_for(self) -> None:
        """A session that was there and is asked for again was lost."""
        if self._has_session:
            self._has_session = False
            self._store.count(of.SESSIONS_LOST, self._me)

    def spark_started(self) -> None:
        self._has_session = True
        self._store.count(of.SESSIONS_STARTED, self._me)

    def tables_kept(self, reports: Iterable[UpkeepReport], processor_s: float) -> None:
        count, me = self._store.count, self._me
        count(of.UPKEEP_SECONDS, me, by=processor_s)
        for one in reports:
            count(of.UPKEEPS, me, "left_alone" if one.left_alone else "done")
            self._see(of.TABLE_FILES, one.table, one.files_after)
            joined = max(0, one.files_before - one.files_after)
            count(of.FILES_JOINED, me, one.table, by=joined)
            count(of.BYTES_REWRITTEN, me, one.table, by=one.bytes_rewritten)
            count(of.JOINS_REFUSED, me, one.table, by=one.joins_refused)
            count(of.FILES_VACUUMED, me, one.table, by=one.files_vacuumed)
            count(of.ORPHANS_REMOVED, me, by=one.orphans_removed)

    def tables_not_kept(self) -> None:
        self._store.count(of.UPKEEPS, self._me, "failed")

    def orphans_removed(self, files: int) -> None:
        self._store.count(of.ORPHANS_REMOVED, self._me, by=files)
