"""The pass-through way: Spark's Python workers carry records from Kafka into files, in one job.

Records without a transformation need no DataFrame. Spark's workers read the ranges with librdkafka
and write Parquet with Arrow (`spark_worker`), for all tables of the batch at once; each topic's
files go into its own table's batch folder. The files are those that the tasks report, not those
that lie in the folders: no commit names what a failed attempt of a task left there, and it is
removed as an orphan.

Workers write to the lake themselves, each file where it stays. So the lake must be on a file system
that they see, or in an object store for which their environment has the credentials.
"""

from collections.abc import Sequence

import pyarrow as pa
from deltalake import Schema

from penstock.kafka_io.client_properties import librdkafka_properties
from penstock.model import TopicPartition
from penstock.pipeline.batch import Timings
from penstock.pipeline.failures import PartitionsUnreadableError
from penstock.pipeline.pass_through_session import Answer, PassThroughSession
from penstock.pipeline.pass_through_tables import columns_of
from penstock.pipeline.read_range import reader_name, shares_of
from penstock.pipeline.run_batch import TableBatch, Written
from penstock.pipeline.written_files import WrittenFile, describe_file
from penstock.settings import Settings
from penstock.settings.sections import TableSettings
from penstock.spark_worker.record_columns import TABLE_COLUMNS
from penstock.spark_worker.task import task_of
from penstock.spark_worker.work import (
    PassThroughWork,
    TableToWrite,
    UnreadablePartition,
    WrittenPart,
)


class PassThroughWriter:
    def __init__(
        self, settings: Settings, session: PassThroughSession, *, is_calm: bool = False
    ) -> None:
        """`is_calm`: one task for each table, which writes one file (one a day in it)."""
        self._is_calm = is_calm
        self._settings = settings
        self._session = session

    def prepare(self, table: TableBatch) -> Timings:
        settings = self._table_settings(table)
        columns = pa.schema([(name, TABLE_COLUMNS[name]) for name in columns_of(settings)])
        table.table.open_for(Schema.from_arrow(columns).to_json(), settings.partition_by)
        return Timings()

    def write(self, tables: Sequence[TableBatch]) -> list[Written]:
        by_topic: dict[str, list[Answer]] = {}
        for answer in self._run(tables):
            by_topic.setdefault(answer.topic, []).append(answer)
        return [_written(table, by_topic.get(_topic(table), ())) for table in tables]

    def _run(self, tables: Sequence[TableBatch]) -> list[Answer]:
        """One Spark job for all tables; the answers of its tasks."""
        settings = self._settings
        planned = [one for table in tables for one in table.planned]
        tasks = shares_of(planned, settings.spark.tasks, keeps_topics_whole=self._is_calm)
        if not tasks:
            return []
        work = PassThroughWork(
            kafka=librdkafka_properties(settings.kafka),
            reader_name=reader_name(planned),
            tasks=tasks,
            tables={_topic(table): self._table_to_write(table) for table in tables},
            compression=settings.lake.compression,
            silence_s_max=settings.kafka.answer_timeout,
            storage_options=tables[0].table.storage.options,
        )
        return self._session.run(task_of(work), len(tasks))

    def _table_to_write(self, table: TableBatch) -> TableToWrite:
        settings = self._table_settings(table)
        return TableToWrite(
            folder=f"{table.table.storage.uri}/{table.folder_for(table.planned)}",
            columns=columns_of(settings),
            is_dated=bool(settings.partition_by),
        )

    def _table_settings(self, table: TableBatch) -> TableSettings:
        return self._settings.lake.table_of(_topic(table))


def _topic(table: TableBatch) -> str:
    return table.planned[0].partition.topic


def _written(table: TableBatch, answers: Sequence[Answer]) -> Written:
    unreadable = {
        TopicPartition(one.topic, one.partition): one.reason
        for one in answers
        if isinstance(one, UnreadablePartition)
    }
    if unreadable:
        return Written(failure=PartitionsUnreadableError(unreadable))
    parts = [one for one in answers if isinstance(one, WrittenPart)]
    storage = table.table.storage
    names = [one.path.removeprefix(f"{storage.uri}/") for one in parts if one.records]

    def described(name: str) -> WrittenFile:
        return describe_file(storage, storage.file_at(name), table.folder)

    files = storage.for_each(described, sorted(names))
    records = sum(one.records for one in parts)
    return Written(files, records, records, sum(one.decoded_bytes for one in parts))
