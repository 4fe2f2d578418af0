"""Examples of the messages between consumers, and the largest ones."""

from typing import Any

from penstock.messages import Message
from penstock.messages.commits import (
    BATCHES_PER_ANSWER_MAX,
    OFFERED_FILES_MAX,
    OFFERED_PARTITIONS_MAX,
    PARTITION_VALUES_MAX,
    PATH_LENGTH_MAX,
    STATISTICS_LENGTH_MAX,
    CommitAnswer,
    CommitterPresence,
    OfferedBatch,
    OfferedFile,
    OfferedRange,
    PartitionValue,
)

TOPIC_ID = "AbCdEfGhIjKlMnOpQrStUv"
_ROW: dict[str, Any] = {"topic": "x" * 249, "partition": 2**31 - 1}
_LONG = 10**15 - 1
_EPOCH: dict[str, Any] = {"epoch": f"{_LONG}.{_LONG}"}
_OFFSET = 2**63 - 1
_TEXT = "\U0001f600" * 100
_BETWEEN: dict[str, Any] = {
    "table": "x" * 249,
    "consumer_id": 2**31 - 1,
    "incarnation": _LONG,
}
_WRITER_BATCH = f"{2**31 - 1}-{_LONG}/{'x' * 200}"

COMMIT_EXAMPLES: tuple[Message, ...] = (
    OfferedBatch(
        table="orders",
        consumer_id=2,
        incarnation=1_700_000_000_000,
        batch=f"7.{TOPIC_ID}.0.5",
        table_mark="0123456789abcdef" * 2,
        ranges=(
            OfferedRange(
                topic="orders",
                partition=0,
                topic_id=TOPIC_ID,
                ledger_offset=5,
                start=5,
                end=9,
                authority=TOPIC_ID,
                epoch="7.3",
                leader_epoch=2,
            ),
            OfferedRange(topic="orders", partition=1, topic_id=TOPIC_ID, start=0, end=4),
        ),
        files=(
            OfferedFile(
                path="date=2026-01-31/part-0.parquet",
                size_bytes=1_000,
                modified_at_ms=1_700_000_000_000,
                records=8,
                partition_values=(PartitionValue(column="date", value="2026-01-31"),),
                statistics='{"numRecords":8}',
            ),
        ),
        signature="0123456789abcdef" * 4,
    ),
    CommitterPresence(table="orders", consumer_id=1, incarnation=5, commit_ms=120),
    CommitAnswer(
        table="orders",
        consumer_id=1,
        incarnation=5,
        version=17,
        committed=("2-1700000000000/7.x.0.5",),
        refused=("3-1700000000000/8.x.0.new",),
    ),
)

LARGEST_COMMITS: tuple[Message, ...] = (
    OfferedBatch(
        **_BETWEEN,
        batch="x" * 200,
        table_mark="f" * 32,
        ranges=(
            OfferedRange(
                **_ROW,
                **_EPOCH,
                topic_id=TOPIC_ID,
                ledger_offset=_OFFSET - 1,
                start=_OFFSET,
                end=_OFFSET,
                authority=TOPIC_ID,
                leader_epoch=_LONG,
            ),
        )
        * OFFERED_PARTITIONS_MAX,
        files=(
            OfferedFile(
                path="\U0001f600" * PATH_LENGTH_MAX,
                size_bytes=_LONG,
                modified_at_ms=_LONG,
                records=_LONG,
                partition_values=(PartitionValue(column=_TEXT, value=_TEXT),)
                * PARTITION_VALUES_MAX,
                statistics="\U0001f600" * STATISTICS_LENGTH_MAX,
            ),
        )
        * OFFERED_FILES_MAX,
        signature="f" * 64,
    ),
    CommitAnswer(
        **_BETWEEN,
        version=_LONG,
        committed=(_WRITER_BATCH,) * BATCHES_PER_ANSWER_MAX,
        refused=(_WRITER_BATCH,) * BATCHES_PER_ANSWER_MAX,
    ),
)
