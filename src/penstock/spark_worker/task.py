"""What a task does in a worker: read its share of the ranges, and write it or hand it to Spark."""

from collections.abc import Callable, Iterator
from typing import Any

from penstock.spark_worker.assigned_reader import AssignedReader, UnreadableRecordError
from penstock.spark_worker.parquet_files import ParquetFiles, answer_rows, record_rows
from penstock.spark_worker.work import PassThroughWork, ReadWork, UnreadablePartition

Task = Callable[[Iterator[Any]], Iterator[Any]]


def task_of(work: PassThroughWork) -> Task:
    """Write files; the function for `mapInArrow` over the task numbers."""

    def run(numbers: Iterator[Any]) -> Iterator[Any]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield run_task(work, number)

    return run


def reading_task_of(work: ReadWork) -> Task:
    """Hand the records to Spark; the function for `mapInArrow` over the task numbers."""

    def run(numbers: Iterator[Any]) -> Iterator[Any]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                ranges = work.tasks[number]
                reader = AssignedReader(work.kafka, work.reader_name, ranges, work.silence_s_max)
                for runs in reader.chunks():
                    for topic, messages in runs:
                        yield record_rows(topic, messages)
                for (topic, partition), reason in sorted(reader.unreadable.items()):
                    raise UnreadableRecordError(f"{topic}-{partition} cannot be read: {reason}")

    return run


def nothing(numbers: Iterator[Any]) -> Iterator[Any]:
    """A task without work. Running it starts the workers and shows that they have this code."""
    for _ in numbers:
        pass
    return iter(())


def run_task(work: PassThroughWork, number: int) -> Any:
    """Carry one share into files; on any failure the files are removed."""
    ranges = work.tasks[number]
    topics = {one.topic for one in ranges}
    tables = {topic: table for topic, table in work.tables.items() if topic in topics}
    files = ParquetFiles(tables, work.compression, work.storage_options)
    reader = AssignedReader(work.kafka, work.reader_name, ranges, work.silence_s_max)
    try:
        for runs in reader.chunks():
            files.add(runs)
        unreadable = [
            UnreadablePartition(*where, reason)
            for where, reason in sorted({**files.unreadable, **reader.unreadable}.items())
        ]
        return answer_rows(files.close(without={one.topic for one in unreadable}), unreadable)
    except BaseException:
        files.abandon()
        raise
