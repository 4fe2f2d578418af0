"""What Spark's error messages mean."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from pyspark.errors import PySparkException

from penstock.errors import NotPermittedError, PenstockError
from penstock.kafka_io.administration import TopicLookup, TopicView
from penstock.kafka_io.failures import NoLeaderError, TopicMissingError
from penstock.kafka_io.offset_lookup import LogPosition, OffsetLookup
from penstock.model import OffsetRange, TopicPartition
from penstock.pipeline.batch import PlannedRange
from penstock.pipeline.diagnosis import as_penstock_error, ranges_not_there, what_workers_lack
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
    TransformationFailedError,
    UnforeseenError,
    WorkerDiedError,
)
from penstock.pipeline.record_source import RecordContent


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("OSError: [Errno 28] No space left on device", LakeRefusedError),
        ("PermissionError: [Errno 13] Permission denied: '/lake'", LakeRefusedError),
        ("...KafkaSilentError: Kafka did not give orders-0 up to 7", KafkaNotReadError),
        ("SparkContext was shut down", SparkFailedError),
        (
            "(java.lang.IllegalStateException) Cannot call methods on a stopped SparkContext.",
            SparkFailedError,
        ),
        ('StatusCode.UNKNOWN details = "Application error processing RPC"', SparkFailedError),
        ("[NO_ACTIVE_SESSION] No active Spark session found.", SparkFailedError),
        ("java.lang.OutOfMemoryError: Java heap space", SparkMemoryError),
        ("Python worker exited unexpectedly (crashed)", WorkerDiedError),
        (
            "EOFException occurred while reading the port number from pyspark.daemon's stdout",
            WorkerDiedError,
        ),
        ("...UnreadableRecordError: orders-0 cannot be read: bad message", RecordUnreadableError),
        ("KafkaException: Received exception when fetching the next record", RecordUnreadableError),
        (
            "org.apache.kafka.common.errors.TopicAuthorizationException: not authorized: [orders]",
            ReadNotPermittedError,
        ),
        ("UnreadableRecordError: o-0: Broker: Topic authorization failed", ReadNotPermittedError),
        ("ZeroDivisionError: division by zero", TransformationFailedError),
    ],
)
def test_failures_are_told_apart(said: str, kind: type[Exception]) -> None:
    """What passes is tried again; what is the function's fault stops its partition."""
    found = as_penstock_error(
        PySparkException(f"An exception was thrown:\n  {said}\n\tat x"), "orders"
    )
    assert type(found) is kind
    assert said.rpartition(": ")[2] in str(found)


def test_the_name_of_a_class_in_the_stack_is_no_reason() -> None:
    """Amazon's SDK has a stage for time-outs in every stack, whatever went wrong."""
    stack = "\n\tat a.TimeoutExceptionHandlingStage.execute(T.java:79)\n\tat b.c(D.java:1)"
    said = f"ZeroDivisionError: by zero{stack}\nCaused by: x{stack}"
    found = as_penstock_error(PySparkException(said), "orders")
    assert type(found) is TransformationFailedError
    assert "by zero" in str(found)
    assert "Stage" not in str(found)


DEEP = "".join(
    f'  File "/venv/lib/python3.11/site-packages/deep/{number}.py", line {number}, in step\n'
    for number in range(40)
)


@pytest.mark.parametrize(
    ("frames", "where"),
    [
        (
            f'{DEEP}  File "/shop/mine.py", line 14, in fail\n    raise x\n',
            "mine.py, line 14, in fail",
        ),
        (f'  File "/shop/mine.py", line 9, in decode\n{DEEP}', "mine.py, line 9, in decode"),
        (DEEP, "39.py, line 39, in step"),
    ],
)
def test_what_python_raised_is_told_with_its_own_line(frames: str, where: str) -> None:
    """The reason is at the end of a traceback, which is longer than what is quoted."""
    said = (
        "[PYTHON_EXCEPTION] An exception was thrown from the Python worker: "
        f"Traceback (most recent call last):\n{frames}ValueError: no  good\n SQLSTATE: 38000\n"
        "\tat org.apache.spark.api.python.BasePythonRunner"
    )
    error = as_penstock_error(PySparkException(said), "orders", has_transformation=True)
    assert isinstance(error, TransformationFailedError)
    assert error.message == (
        f"The records could not be made into rows of table orders: ValueError: no good ({where})"
    )


def test_a_traceback_without_places_is_told_by_its_reason() -> None:
    """Nothing is made up about where it was."""
    said = "Traceback (most recent call last):\n  somewhere\nValueError: no good\n"
    error = as_penstock_error(PySparkException(said), "orders", has_transformation=True)
    assert error.message.endswith("table orders: ValueError: no good")


@pytest.mark.parametrize("error", [OverflowError("too far"), BaseException("panicked")])
def test_what_does_not_come_from_spark_is_not_the_functions_fault(error: BaseException) -> None:
    """It is put off with its own message, and no partition is stopped for good."""
    found = as_penstock_error(error, "orders")
    assert isinstance(found, UnforeseenError)
    assert not found.is_lasting
    assert str(error) in str(found)


def test_without_a_transformation_none_failed() -> None:
    """What Spark says of a table that has no function is not called the function's fault."""
    error = PySparkException("ArithmeticException: long overflow")
    found = as_penstock_error(error, "orders", has_transformation=False)
    assert isinstance(found, UnforeseenError)
    assert "long overflow" in str(found)


def test_an_object_store_that_does_not_answer_is_the_lakes_trouble() -> None:
    """It passes, and is tried again: the function is not to blame."""
    said = (
        "software.amazon.awssdk.core.exception.SdkClientException: Unable to execute HTTP request"
    )
    found = as_penstock_error(
        RuntimeError(f"(java.net.UnknownHostException) {said}\n\tat x"), "orders"
    )
    assert type(found) is LakeRefusedError


@pytest.mark.parametrize(
    "said",
    [
        "ModuleNotFoundError: No module named 'penstock'",
        "[PYTHON_VERSION_MISMATCH] Python in worker has different version",
        "[PACKAGE_NOT_INSTALLED] PyArrow >= 18.0.0 must be installed",
        'java.io.IOException: Cannot run program "python3"',
    ],
)
def test_workers_that_cannot_run_our_code(said: str) -> None:
    """Then the connector carries, and the log says why."""
    assert said in what_workers_lack(RuntimeError(f"Job aborted\n{said}\n\tat y"))


def test_any_other_failure_is_not_the_workers_lack() -> None:
    """A full disk or a silent broker says nothing about what the workers have."""
    assert what_workers_lack(OSError(28, "No space left on device")) == ""


class Source:
    """Topics of one partition, by what is wrong with them."""

    def look_up_topics(self, names: Iterable[str]) -> TopicLookup:
        failures: dict[str, PenstockError] = {
            "shut": NotPermittedError("no right"),
            "gone": TopicMissingError("gone"),
        }
        ids = {name: "new" if name == "again" else "id" for name in names if name not in failures}
        topics = {name: TopicView(name, ids[name], 1, 1, is_internal=False) for name in ids}
        return TopicLookup(topics, failures)

    def look_up_offsets(
        self, partitions: Iterable[TopicPartition], position: LogPosition
    ) -> OffsetLookup:
        is_start = position is LogPosition.START
        offsets, failures = {}, {}
        for one in partitions:
            if one.topic == "headless":
                failures[one] = NoLeaderError("no leader")
            elif is_start:
                offsets[one] = 3 if one.topic == "old" else 0
            else:
                offsets[one] = 4 if one.topic == "cut" else 9
        return OffsetLookup(offsets, failures)

    def read(self, planned: Sequence[PlannedRange], *, in_workers: bool = False) -> Any:
        raise NotImplementedError

    def content(self, one: OffsetRange) -> RecordContent:
        raise NotImplementedError


def test_what_is_wrong_with_one_partition_is_not_the_others_fault() -> None:
    """A topic without the right and a partition without a leader are put off alone."""
    names = ("again", "cut", "fine", "gone", "headless", "old", "shut")
    planned = [PlannedRange(OffsetRange(TopicPartition(name, 0), 0, 5), "id") for name in names]
    wrong = ranges_not_there(Source(), planned)
    assert {one.topic: type(error) for one, error in wrong.items()} == {
        "again": TopicMadeAgainError,
        "cut": LogTruncatedError,
        "gone": TopicGoneError,
        "headless": NoLeaderError,
        "old": OffsetOutOfRangeError,
        "shut": NotPermittedError,
    }
