"""The Spark session in which Python workers run pass-through batches.

Spark starts a set of Python workers for every session, about 300 MB, and a Connect server never
ends their parent process. So the consumers of a group on one server share one session: its id is
made from the group's name, and no consumer releases it. An expired session id cannot be used
again; every process derives the next one from the next number. A tag marks the jobs of one
consumer, so that it can interrupt only its own.

A consumer with a JVM of its own uses its one session for everything.
"""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.types import LongType, StringType, StructField, StructType

from penstock.pipeline.session import disconnect, open_connect_session
from penstock.settings.sections import SparkSettings
from penstock.spark_worker.work import UnreadablePartition, WrittenPart

IDS_TRIED_MAX = 1000
_EXPIRED = "SESSION_CLOSED"
_ANSWER_SCHEMA = StructType(
    [
        StructField("topic", StringType()),
        StructField("path", StringType()),
        StructField("records", LongType()),
        StructField("decoded_bytes", LongType()),
        StructField("partition", LongType()),
        StructField("reason", StringType()),
    ]
)
Task = Callable[[Iterator[Any]], Iterator[Any]]
Answer = WrittenPart | UnreadablePartition


def shared_session_id(group: str, number: int) -> str:
    """Return a session id that every consumer of the group computes alike."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"penstock/{group}/{number}"))


class PassThroughSession:
    def __init__(self, spark: SparkSettings, group: str, own: Any) -> None:
        self._spark = spark
        self._group = group
        self._own = own
        self._is_shared = spark.uses_connect_server
        self._shared: Any = None
        self._number = 0
        self._tag = f"penstock-{uuid.uuid4()}"

    def run(self, task: Task, tasks: int) -> list[Answer]:
        """Run the task once for every number below `tasks`; returns their answers."""
        if not self._is_shared:
            return _answers(self._own, task, tasks)
        for _ in range(IDS_TRIED_MAX):
            try:
                return self._run_shared(task, tasks)
            except PySparkException as error:
                self.close()  # the next batch starts with a new connection
                if _EXPIRED not in str(error):
                    raise
                self._number += 1
        raise RuntimeError(f"{IDS_TRIED_MAX} sessions of group {self._group} have expired")

    def interrupt(self) -> None:
        """End this consumer's jobs, and no other's."""
        shared = self._shared
        if shared is not None:
            shared.interruptTag(self._tag)

    def close(self) -> None:
        """Disconnect; the session stays for the others."""
        shared, self._shared = self._shared, None
        if shared is not None:
            disconnect(shared)

    def _run_shared(self, task: Task, tasks: int) -> list[Answer]:
        if self._shared is None:
            session_id = shared_session_id(self._group, self._number)
            self._shared = open_connect_session(self._spark, session_id=session_id)
        shared = self._shared
        shared.addTag(self._tag)  # for this thread
        try:
            return _answers(shared, task, tasks)
        finally:
            shared.removeTag(self._tag)


def _answers(session: Any, task: Task, tasks: int) -> list[Answer]:
    numbers = session.range(0, tasks, 1, tasks)
    return [
        WrittenPart(row["topic"], row["path"], row["records"], row["decoded_bytes"])
        if row["reason"] is None
        else UnreadablePartition(row["topic"], row["partition"], row["reason"])
        for row in numbers.mapInArrow(task, _ANSWER_SCHEMA).collect()
    ]
