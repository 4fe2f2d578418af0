"""One task: read its share of the batch, write it, say what was written."""

from collections.abc import Callable, Iterator
from typing import Any

from penstock.spark_worker.assigned_reader import AssignedReader
from penstock.spark_worker.parquet_files import ParquetFiles, part_rows
from penstock.spark_worker.work import PassThroughWork


def task_of(work: PassThroughWork) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """For `mapInArrow` over the numbers of the tasks."""

    def run(numbers: Iterator[Any]) -> Iterator[Any]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield carried(work, number)

    return run


def nothing(numbers: Iterator[Any]) -> Iterator[Any]:
    """A task without work: whoever runs it has what a task with work needs."""
    for _ in numbers:
        pass
    return iter(())


def carried(work: PassThroughWork, number: int) -> Any:
    ranges = work.tasks[number]
    topics = {one.topic for one in ranges}
    tables = {topic: table for topic, table in work.tables.items() if topic in topics}
    files = ParquetFiles(tables, work.compression)
    reader = AssignedReader(work.kafka, work.readers_name, ranges, work.silence_s_max)
    try:
        for runs in reader.chunks():
            files.add(runs)
        return part_rows(files.close())
    except BaseException:
        files.abandon()
        raise
