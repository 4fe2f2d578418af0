"""What a consumer counts of its batches, its commits and its upkeep."""

import pytest

from penstock.consumer.process.batch_results import batch_ended
from penstock.consumer.process.metrics import (
    SEEN_WITHIN_S,
    SEEN_WITHIN_S_OWNED,
    ConsumerMetrics,
)
from penstock.metrics import Kind, Metric, Process
from penstock.metrics import of_consumer as of
from penstock.model import TopicPartition
from penstock.pipeline import (
    BatchResult,
    LakeRefusedError,
    SchemaChangedError,
    StaleWriterError,
    Timings,
)
from penstock.pipeline.upkeep import UpkeepReport
from penstock.settings.sections import LakeSettings, TableSettings
from penstock.telemetry import MetricStore

A, B, C, D = (TopicPartition("orders", number) for number in range(4))


@pytest.fixture
def store() -> MetricStore:
    return MetricStore("g", Process.CONSUMER)


@pytest.fixture
def metrics(store: MetricStore) -> ConsumerMetrics:
    return ConsumerMetrics(LakeSettings(group="g"), 3, store)


def values(store: MetricStore, metric: Metric) -> dict[tuple[str, ...], float]:
    """Of a histogram: how many were observed. The consumer's label is left out."""
    found = store.collect()
    if metric.kind is Kind.HISTOGRAM:
        timed = found.histograms.get(metric, {})
        return {labels[1:]: sum(one.in_bucket) for labels, one in timed.items()}
    return {one.labels[1:]: one.value for one in found.samples if one.metric is metric}


def test_a_batch_that_carries_all(store: MetricStore, metrics: ConsumerMetrics) -> None:
    """Its stages are timed, those that it has; what it carried is counted."""
    result = BatchResult(
        carried={A: 5},
        records=5,
        decoded_bytes=500,
        dead_letters=2,
        files=1,
        file_bytes=300,
        commit_round_s=0.05,
        timings=Timings(write_s=0.4, commit_s=0.02),
    )
    metrics.batch_ended(result, batch_ended(result, 0), 0.5)
    assert values(store, of.BATCHES) == {("carried",): 1}
    assert values(store, of.STAGE_SECONDS) == {("write",): 1, ("commit",): 1}
    assert values(store, of.BATCH_SECONDS) == {(): 1}
    assert values(store, of.RECORDS) == {(): 5}
    assert values(store, of.BYTES) == {(): 500}
    assert values(store, of.FILES) == {(): 1}
    assert values(store, of.FILE_BYTES) == {(): 300}
    assert values(store, of.COMMIT_ROUND) == {(): 0.05}
    assert values(store, of.DEAD_LETTERS) == {(): 2}
    assert values(store, of.RETRIES) == {(): 0}


def test_failures_are_counted_by_what_becomes_of_them(
    store: MetricStore, metrics: ConsumerMetrics
) -> None:
    """What passes is tried again, what another has carried is refused, what lasts has a reason."""
    result = BatchResult(
        carried={A: 5},
        failures={
            B: LakeRefusedError("x"),
            C: StaleWriterError("x"),
            D: SchemaChangedError("x"),
        },
    )
    metrics.batch_ended(result, batch_ended(result, 0), 0.5)
    nothing = BatchResult(failures={B: LakeRefusedError("x")})
    metrics.batch_ended(nothing, batch_ended(nothing, 0), 0.5)
    assert values(store, of.BATCHES) == {("partly",): 1, ("failed",): 1}
    assert values(store, of.RETRIES) == {(): 2}
    assert values(store, of.REFUSED) == {(): 1}
    assert values(store, of.FAILED) == {("schema_changed",): 1}


def test_a_session_that_is_asked_for_again_was_lost(
    store: MetricStore, metrics: ConsumerMetrics
) -> None:
    """The first one was not; one that never came up is not lost twice."""
    metrics.spark_is_asked_for()
    metrics.spark_started()
    assert values(store, of.SESSIONS_LOST) == {(): 0}
    metrics.spark_is_asked_for()
    metrics.spark_is_asked_for()
    metrics.spark_started()
    assert values(store, of.SESSIONS_STARTED) == {(): 2}
    assert values(store, of.SESSIONS_LOST) == {(): 1}


def test_commits_and_upkeep_are_told_by_table(store: MetricStore, metrics: ConsumerMetrics) -> None:
    """Version and log of each table, its files, and the work of compaction."""
    metrics.committed("orders", 17, 7)
    metrics.conflicted("orders")
    metrics.tables_kept([UpkeepReport("orders", 10, 3, 900, 1, 4, joins_refused=2)], 1.5)
    metrics.tables_kept([UpkeepReport("other", 5, 5, 0, 0, 0, left_alone="why")], 0.5)
    metrics.tables_not_kept()
    metrics.orphans_removed(6)
    metrics.owned = (A, B, C, D)
    of_orders = ("orders",)
    assert values(store, of.COMMITS) == {of_orders: 1}
    assert values(store, of.CONFLICTS) == {of_orders: 1}
    assert values(store, of.TABLE_VERSION) == {of_orders: 17}
    assert values(store, of.TABLE_LOG_ENTRIES) == {of_orders: 7}
    assert values(store, of.TABLE_FILES) == {of_orders: 3, ("other",): 5}
    assert values(store, of.FILES_JOINED)[of_orders] == 7
    assert values(store, of.BYTES_REWRITTEN)[of_orders] == 900
    assert values(store, of.JOINS_REFUSED)[of_orders] == 2
    assert values(store, of.FILES_VACUUMED)[of_orders] == 4
    assert values(store, of.ORPHANS_REMOVED) == {(): 7}
    assert values(store, of.UPKEEPS) == {("done",): 1, ("left_alone",): 1, ("failed",): 1}
    assert values(store, of.UPKEEP_SECONDS) == {(): 2.0}
    assert values(store, of.OWNED) == {(): 4}


def test_a_table_that_was_given_up_is_told_no_more(store: MetricStore) -> None:
    """Its last figures would be the worst of the group for ever, and keep an alert on."""
    now_s = [1_000.0]
    lake = LakeSettings(group="g", tables={"orders": TableSettings(table="sales")})
    metrics = ConsumerMetrics(lake, 3, store, clock=lambda: now_s[0])

    def told() -> set[Metric]:
        tables = (of.TABLE_VERSION, of.TABLE_LOG_ENTRIES, of.TABLE_FILES)
        return {metric for metric in tables if ("sales",) in values(store, metric)}

    metrics.owned = (A, B)
    metrics.committed("sales", 17, 1_001)
    metrics.tables_kept([UpkeepReport("sales", 100_001, 100_001, 0, 0, 0)], 0.5)
    now_s[0] += SEEN_WITHIN_S + 1
    assert told() == {of.TABLE_VERSION, of.TABLE_LOG_ENTRIES, of.TABLE_FILES}
    metrics.owned = (B,)  # partition 0 has gone: another consumer keeps the table up
    assert told() == {of.TABLE_VERSION, of.TABLE_LOG_ENTRIES}
    metrics.owned = ()
    assert told() == set()
    metrics.owned = (A, B)
    now_s[0] += SEEN_WITHIN_S_OWNED
    assert told() == {of.TABLE_FILES}  # others have committed since, or nobody has
    metrics.owned = ()
    metrics.committed("sales", 18, 2)  # for another consumer
    assert told() == {of.TABLE_VERSION, of.TABLE_LOG_ENTRIES}
