"""Finds out why a range could not be carried, from Kafka's state and from Spark's message.

Spark's message names a class and a stack. A consumer needs to know whether the records are gone,
the topic was made again, the transformation failed, or the lake is full.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from pyspark.errors import PySparkException

from penstock.errors import PenstockError
from penstock.kafka_io.failures import TopicMissingError
from penstock.kafka_io.offset_lookup import LogPosition
from penstock.model import TopicPartition
from penstock.pipeline.batch import PlannedRange
from penstock.pipeline.failures import (
    KafkaNotReadError,
    LakeRefusedError,
    LogTruncatedError,
    OffsetOutOfRangeError,
    ReadNotPermittedError,
    RecordUnreadableError,
    SparkFailedError,
    SparkMemoryError,
    TopicGoneError,
    TopicMadeAgainError,
    TopicWithoutIdError,
    TransformationFailedError,
    UnforeseenError,
    WorkerDiedError,
    lake_refusal,
)
from penstock.pipeline.record_source import RecordSource


def _errors_of_spark() -> tuple[type[Exception], ...]:
    """The bridge to Java comes with a whole Spark; a thin consumer has no JVM to lose."""
    try:
        from py4j.protocol import Py4JError  # noqa: PLC0415 -- where it is installed
    except ModuleNotFoundError:
        return (PySparkException,)
    return (PySparkException, Py4JError)


SPARK_ERRORS = _errors_of_spark()
_LAKE_REFUSES = re.compile(
    r"No space left on device|Disk quota exceeded|Read-only file system|Permission denied|"
    r"Mkdirs failed|AccessDenied|File too large|Unable to create|Could not create|"
    r"software\.amazon\.awssdk|hadoop\.fs\.s3a",
)
_STORE_REFUSES = re.compile(r"ObjectStoreError: ")
_SPARK_IS_GONE = re.compile(
    r"StatusCode\.UNAVAILABLE|Connection refused|Answer from Java side is empty|"
    r"SparkContext was shut down|has been stopped|SESSION_CLOSED|SESSION_NOT_FOUND|"
    r"OPERATION_CANCELED|SPARK_JOB_CANCELLED|ExecutorLostFailure|"
    r"Failed to get broadcast|"
    # By a server that is ending, and by a client whose session has ended.
    r"stopped SparkContext|Application error processing RPC|NO_ACTIVE_SESSION",
)
_OUT_OF_MEMORY = re.compile(r"OutOfMemoryError")
_WORKER_DIED = re.compile(
    r"Python worker exited unexpectedly|reading the port number from pyspark\.daemon"
)
_WORKERS_LACK = re.compile(
    r"ModuleNotFoundError|ImportError|PACKAGE_NOT_INSTALLED|PYTHON_VERSION_MISMATCH|"
    r"Cannot run program"
)
_KAFKA_IS_GONE = re.compile(
    r"KafkaSilentError|TimeoutException|DisconnectException|UNKNOWN_TOPIC_OR_PARTITION|"
    r"UnknownTopicOrPartition"
)
# Of a Spark that lives; the first that fits counts.
_FAILURES_OF_A_JOB: tuple[tuple[re.Pattern[str], type[SparkFailedError], str], ...] = (
    (_OUT_OF_MEMORY, SparkMemoryError, "Spark ran out of memory"),
    (_KAFKA_IS_GONE, KafkaNotReadError, "Spark did not reach Kafka"),
    (_WORKER_DIED, WorkerDiedError, "A worker of Spark died"),
)
_NOT_PERMITTED = re.compile(r"TopicAuthorizationException|Topic authorization failed")
# Kafka has the record. By Spark's workers and by its connector.
_UNREADABLE = re.compile(
    r"UnreadableRecordError|CorruptRecordException|RecordTooLargeException|"
    r"Received exception when fetching the next record|"
    r"Kafka record timestamps must be in milliseconds"
)
# A line of a stack trace: the name of a class in it is no reason.
_FRAME = re.compile(r"^\s+at .*\n?", re.MULTILINE)
_CAUSE = re.compile(r"^(?:Caused by: |pyspark\.errors\S*: )?(\S.*)$", re.MULTILINE)
# What a transformation's own Python raised, and where. The reason comes last.
_TRACEBACK = re.compile(r"Traceback \(most recent call last\):\n((?:[ \t].*\n)+)(\S.*)")
_PLACE = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
_LIBRARY = re.compile(r"/site-packages/|/lib/python")
QUOTED_CHARACTERS = 500


def topic_without_id(planned: PlannedRange) -> TopicWithoutIdError:
    return TopicWithoutIdError(
        f"The broker gives {planned.partition.topic} no topic id: if the topic were made again, "
        "its records could not be told from the old ones.",
        remedy="Use brokers from Kafka 2.8 on, with inter.broker.protocol.version 2.8 or later.",
    )


def topics_made_again(
    kafka: RecordSource, planned: Sequence[PlannedRange]
) -> dict[TopicPartition, PenstockError]:
    """The ranges whose topic is gone, has another id than planned, or cannot be asked about."""
    found = kafka.look_up_topics({one.partition.topic for one in planned})
    wrong: dict[TopicPartition, PenstockError] = {}
    for one in sorted(planned):
        seen = found.topics.get(one.partition.topic)
        failure = found.failures.get(one.partition.topic)
        if failure is not None and not isinstance(failure, TopicMissingError):
            wrong[one.partition] = failure
        elif seen is None:
            wrong[one.partition] = TopicGoneError(f"Kafka has no topic {one.partition.topic} now.")
        elif seen.topic_id != one.topic_id:
            wrong[one.partition] = TopicMadeAgainError(
                f"The topic {one.partition.topic} of {one.range} (id {one.topic_id}) was made "
                f"again (id {seen.topic_id})."
            )
    return wrong


def ranges_not_there(
    kafka: RecordSource, planned: Sequence[PlannedRange]
) -> dict[TopicPartition, PenstockError]:
    """The ranges of which Kafka no longer has every record, or cannot say so, with the reason."""
    wrong = topics_made_again(kafka, planned)
    left = [one for one in sorted(planned) if one.partition not in wrong]
    starts = kafka.look_up_offsets([one.partition for one in left], LogPosition.START)
    ends = kafka.look_up_offsets([one.partition for one in left], LogPosition.END)
    failures = {**starts.failures, **ends.failures}
    for one in left:
        if one.partition in failures:
            wrong[one.partition] = failures[one.partition]
            continue
        start, end = starts.offsets[one.partition], ends.offsets[one.partition]
        if start > one.range.start:
            wrong[one.partition] = OffsetOutOfRangeError(
                f"{one.range}: retention has removed the records before offset {start}.",
                remedy="Lengthen the topic's retention, or set lake.on_offset_out_of_range.",
            )
        elif end < one.range.end:
            wrong[one.partition] = LogTruncatedError(
                f"{one.range}: the log now ends at {end}; the broker lost records it once had."
            )
    return wrong


def as_penstock_error(
    error: BaseException, table: str, *, has_transformation: bool = True
) -> PenstockError:
    """What a failure means, given that Kafka has every record of the ranges."""
    if isinstance(error, PenstockError):
        return error
    text = _FRAME.sub("", str(error))
    if _STORE_REFUSES.search(text):
        # Of Spark's workers, which write to an object store themselves.
        return lake_refusal(OSError(text))(
            f"Spark's workers could not write the files of table {table}: "
            f"{_quoted(text, _STORE_REFUSES)}",
            remedy="Check that the workers reach the object store, and the keys in their "
            "environment.",
        )
    if _LAKE_REFUSES.search(text):
        return LakeRefusedError(
            f"Spark could not write the files of table {table}: {_quoted(text, _LAKE_REFUSES)}",
            remedy="Check that the lake has free space and may be written.",
        )
    if _SPARK_IS_GONE.search(text) or isinstance(error, (ConnectionError, EOFError)):
        return SparkFailedError(
            f"Spark failed or cannot be reached: {_quoted(text, _SPARK_IS_GONE)}"
        )
    for pattern, kind, what in _FAILURES_OF_A_JOB:
        if pattern.search(text):
            return kind(f"{what}: {_quoted(text, pattern)}")
    return _failure_of_records(error, text, table, has_transformation=has_transformation)


def _failure_of_records(
    error: BaseException, text: str, table: str, *, has_transformation: bool
) -> PenstockError:
    """What a failure means, given that Kafka, Spark and the lake are there."""
    if _NOT_PERMITTED.search(text):
        return ReadNotPermittedError(
            # Reports quote only the beginning.
            f"The right READ is missing on a topic of {table}: {_quoted(text, _NOT_PERMITTED)}",
            remedy="Give it to the consumers' principal (docs/security.md).",
        )
    if _UNREADABLE.search(text):
        return RecordUnreadableError(
            f"A record for table {table} cannot be read: {_quoted(text, _UNREADABLE)}"
        )
    if not has_transformation or not isinstance(error, SPARK_ERRORS):
        return UnforeseenError(
            f"The batch of table {table} failed with {type(error).__name__}: "
            + " ".join(text.split())[:QUOTED_CHARACTERS],
            remedy="Its partitions are tried again. Please report this.",
        )
    return TransformationFailedError(
        f"The records could not be made into rows of table {table}: {_reason(text)}"
    )


def _reason(text: str) -> str:
    """Why a transformation failed. Of a traceback its last line, and the user's line it is about.

    The traceback itself is longer than what reports quote, so that the reason would be cut off.
    """
    raised = _TRACEBACK.findall(text)
    if not raised:
        return _quoted(text, _CAUSE)
    frames, reason = raised[-1]
    places = [(Path(file), line, name) for file, line, name in _PLACE.findall(frames)]
    own = [one for one in places if not _LIBRARY.search(str(one[0]))]
    where = [f" ({file.name}, line {line}, in {name})" for file, line, name in (own or places)[-1:]]
    return "".join([" ".join(reason.split())[:QUOTED_CHARACTERS], *where])


def what_workers_lack(error: BaseException) -> str:
    """Why Spark's Python workers cannot run our code; empty if the failure has another reason."""
    text = str(error)
    return _quoted(text, _WORKERS_LACK) if _WORKERS_LACK.search(text) else ""


def connector_cannot_read(error: BaseException) -> bool:
    """Whether Spark's connector met a record that it cannot read: the workers may."""
    return bool(_UNREADABLE.search(str(error)))


def _quoted(text: str, near: re.Pattern[str]) -> str:
    """The line with the reason, cut to a readable length."""
    match = near.search(text)
    begin = 0 if match is None else text.rfind("\n", 0, match.start()) + 1
    line = text[begin:].strip().split("\n\tat ")[0]
    return " ".join(line.split())[:QUOTED_CHARACTERS]
