"""Consumers of one group share Python workers on a Connect server, and nothing else."""

import subprocess
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from kit.consumer.consumers import wait_for
from kit.processes import children_of
from penstock.pipeline.connect_server import ConnectServer
from penstock.pipeline.pass_through_session import PassThroughSession, shared_session_id
from penstock.pipeline.session import open_connect_session
from penstock.pipeline.warm_up import warm_up_command
from penstock.settings.sections import SparkSettings
from penstock.spark_worker.work import WrittenPart

pytestmark = pytest.mark.spark


def _answering(sign: str = "") -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A task that says which process it ran in.

    With the name of a file as its sign it makes this file, and answers when it is removed.
    """

    def run(numbers: Iterator[Any]) -> Iterator[Any]:
        import os  # noqa: PLC0415 -- in the worker
        import time  # noqa: PLC0415 -- in the worker
        from pathlib import Path  # noqa: PLC0415 -- in the worker

        for batch in numbers:
            if sign:
                Path(sign).touch()
            until_s = time.monotonic() + 240
            while sign and Path(sign).exists() and time.monotonic() < until_s:
                time.sleep(0.05)
            yield pa.RecordBatch.from_pydict(
                {
                    "topic": pa.array(["t"] * batch.num_rows, pa.string()),
                    "path": pa.array([str(os.getppid())] * batch.num_rows, pa.string()),
                    "records": pa.array([1] * batch.num_rows, pa.int64()),
                    "decoded_bytes": pa.array([0] * batch.num_rows, pa.int64()),
                    "partition": pa.nulls(batch.num_rows, pa.int64()),
                    "reason": pa.nulls(batch.num_rows, pa.string()),
                }
            )

    return run


def _paths(session: PassThroughSession, tasks: int) -> set[str]:
    answers = session.run(_answering(), tasks)
    return {one.path for one in answers if isinstance(one, WrittenPart)}


@pytest.fixture
def two(spark_server: ConnectServer) -> Iterator[tuple[PassThroughSession, PassThroughSession]]:
    """Two consumers of a group of this test's own."""
    settings, group = SparkSettings(master=spark_server.master), f"group-{uuid.uuid4()}"
    made = PassThroughSession(settings, group, None), PassThroughSession(settings, group, None)
    yield made
    for one in made:
        one.close()


def test_two_consumers_have_the_same_workers(
    two: tuple[PassThroughSession, PassThroughSession],
) -> None:
    """The parent of the workers is one process, also after one of the two has hung up."""
    first, second = two
    parents = _paths(first, 2)
    parents |= _paths(second, 2)
    first.close()
    parents |= _paths(second, 2)
    parents |= _paths(first, 2)
    assert len(parents) == 1


def test_a_server_is_warmed_up_for_the_group(
    two: tuple[PassThroughSession, PassThroughSession], spark_server: ConnectServer
) -> None:
    """The workers are there before the first consumer comes, and they are those that it uses."""
    assert spark_server.process is not None
    server = spark_server.process.pid
    before = children_of(server, "pyspark.daemon")
    command = warm_up_command(spark_server.master, two[0]._group, 2)
    subprocess.run(command, check=True, timeout=300)
    (new,) = children_of(server, "pyspark.daemon") - before
    assert _paths(two[0], 2) == {str(new)}


def test_an_expired_session_is_followed_by_the_next(
    two: tuple[PassThroughSession, PassThroughSession], spark_server: ConnectServer
) -> None:
    """The server has forgotten it: both go on in one and the same new session."""
    first, second = two
    first.run(_answering(), 1)
    expired = open_connect_session(
        SparkSettings(master=spark_server.master), session_id=shared_session_id(first._group, 0)
    )
    expired.stop()  # as the server itself does after some minutes without a word
    parents = _paths(first, 2) | _paths(second, 2)
    assert len(parents) == 1
    assert first._number == second._number == 1


def test_options_for_the_start_of_a_server_do_not_keep_a_session_from_opening(
    spark_server: ConnectServer,
) -> None:
    """The session has the options that it can have; the memory is the server's affair."""
    options = {"spark.driver.memory": "2g", "spark.sql.shuffle.partitions": "3"}
    settings = SparkSettings(master=spark_server.master, options=options)
    session = open_connect_session(settings)
    assert session.conf.get("spark.sql.shuffle.partitions") == "3"
    assert session.conf.get("spark.driver.memory") != "2g"
    session.stop()


def test_an_interruption_ends_only_ones_own(
    two: tuple[PassThroughSession, PassThroughSession], tmp_path: Path
) -> None:
    """While both run, one is interrupted: it fails, the other gives its answer."""
    outcomes: dict[str, Any] = {}

    def run(name: str, session: PassThroughSession) -> None:
        try:
            outcomes[name] = session.run(_answering(str(tmp_path / name)), 1)
        except PySparkException as error:
            outcomes[name] = str(error)

    names = ("cut", "kept")
    threads = [
        threading.Thread(target=run, args=(name, session))
        for name, session in zip(names, two, strict=True)
    ]
    for thread in threads:
        thread.start()
    wait_for("both to be in their tasks", lambda: all((tmp_path / one).exists() for one in names))
    two[0].interrupt()
    threads[0].join(180)
    assert "OPERATION_CANCELED" in outcomes["cut"]
    assert "kept" not in outcomes
    for name in names:
        (tmp_path / name).unlink()
    threads[1].join(180)
    assert [one.records for one in outcomes["kept"]] == [1]
