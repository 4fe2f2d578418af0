"""A lake in an object store: a real S3 server, written by Spark and by its workers."""

import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.consumer.consumers import (
    WAIT_S,
    add_records,
    assert_exact,
    group_of,
    make_topic,
    wait_for,
)
from kit.lake.faulty_store import Fault, faulty_store, puts_an_entry, puts_data
from kit.lake.lake import Carrier, new_topic_name, produce
from kit.lake.s3_server import BUCKET, S3Server, s3_for_tests
from penstock.jars import JarSet, fetch
from penstock.laboratory.broker import EmbeddedKafka
from penstock.pipeline import StaleWriterError, Writer, start_session
from penstock.pipeline.connect_server import ConnectServer
from penstock.pipeline.failures import LakeAwayError
from penstock.pipeline.upkeep import keep_up
from penstock.settings import Settings
from penstock.settings.sections import SparkSettings
from penstock.verification import carried_so_far, verify

pytestmark = [pytest.mark.broker, pytest.mark.spark]
MakeCarrier = Callable[..., Carrier]
# As Spark's Python workers name files; Spark itself names them otherwise.
BY_WORKERS = re.compile(r"part-[0-9a-f]{32}\.parquet")


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_for_tests(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="module")
def spark(s3: S3Server, spark_jars: None) -> Iterator[SparkSettings]:
    fetch(JarSet.S3)
    with ConnectServer(SparkSettings(object_store="s3")) as server:
        yield SparkSettings(master=server.master, options=s3.spark_options)


@pytest.fixture(scope="module")
def session(spark: SparkSettings) -> Iterator[Any]:
    found = start_session(spark)
    yield found
    found.stop()


def settings_of(kafka: EmbeddedKafka, spark: SparkSettings, s3: S3Server, **lake: Any) -> Settings:
    place = {"root": f"s3://{BUCKET}/{new_topic_name('lake')}"}
    return Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": kafka.bootstrap_servers},
            "topics": {"prefix": new_topic_name("control"), "consumers_ahead": 1},
            "spark": spark.model_dump(),
            "lake": {**place, "storage_options": s3.storage_options, **lake},
        }
    )


@pytest.fixture
def make_carrier(
    kafka: EmbeddedKafka, s3: S3Server, spark: SparkSettings, session: Any
) -> MakeCarrier:
    """Carriers of one lake of this test's own."""
    made: list[Settings] = []

    def make(consumer_id: int = 1, **lake: Any) -> Carrier:
        if not made:
            made.append(settings_of(kafka, spark, s3, **lake))
        return Carrier(made[0], session, Writer(consumer_id, 1))

    return make


def topic_of(carrier: Carrier, values: list[bytes], partitions: int = 2) -> str:
    topic = new_topic_name("s3")
    carrier.kafka.create_topic(topic, partitions=partitions)
    produce(carrier.settings.kafka, topic, dict.fromkeys(range(partitions), values))
    return topic


def test_records_land_in_the_bucket(make_carrier: MakeCarrier, s3: S3Server) -> None:
    """As they are and through a transformation, divided by date, the undecodable set apart."""
    name = new_topic_name("s3-decoded")
    table = {"transformation": "kit.consumer.transformations:decode", "partition_by": ["date"]}
    carrier = make_carrier(tables={name: table})
    raw = topic_of(carrier, [b"value"] * 50)
    carrier.kafka.create_topic(name, partitions=1)
    produce(carrier.settings.kafka, name, {0: [b'{"id": "a"}', b"not JSON", b'{"id": "b"}']})
    result = carrier.carry([*carrier.plan(raw), *carrier.plan(name)])
    assert not result.failures, result.failures
    assert result.records == 103
    verdict = carrier.verify(raw, name)
    assert verdict.is_exact
    assert sum(one.lake for one in verdict.partitions) == 102
    assert sum(one.dead_letters for one in verdict.partitions) == 1
    # They lie where the server keeps its objects, and nowhere else.
    lake = s3.folder / carrier.settings.lake.root.rpartition("/")[2]
    written = [one.name for one in (lake / raw / "data").rglob("*.parquet")]
    assert written
    assert all(BY_WORKERS.fullmatch(one) for one in written), "the connector wrote them"
    assert list((lake / name / "data").rglob("date=*/*.parquet"))


def test_writers_race_for_one_partition(make_carrier: MakeCarrier) -> None:
    """Of writers at the same offset one wins each round; the server decides which."""
    carriers = [make_carrier(number) for number in (1, 2, 3)]
    topic = topic_of(carriers[0], [b"value"] * 30)
    meet = threading.Barrier(len(carriers))
    wins: list[int] = []

    def run(carrier: Carrier) -> None:
        for _ in range(3):
            planned = carrier.plan(topic, at_most=8)
            meet.wait(300)
            result = carrier.carry(planned)
            wins.append(len(result.carried))
            assert all(isinstance(one, StaleWriterError) for one in result.failures.values())
            meet.wait(300)

    threads = [threading.Thread(target=run, args=(carrier,)) for carrier in carriers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(wins) == 3 * 2, "each round each of the two partitions has one winner"
    carriers[0].carry_all(topic)
    verdict = carriers[0].verify(topic)
    assert verdict.is_exact
    assert sum(one.lake for one in verdict.partitions) == 60


def test_a_store_that_fails_in_the_middle(
    kafka: EmbeddedKafka, s3: S3Server, spark: SparkSettings, session: Any
) -> None:
    """Silent under a file or an entry, an answer lost, slow: nothing is lost or there twice."""
    with faulty_store(s3) as between:
        limits = {"timeout": "1s", "connect_timeout": "1s", **between.behind.storage_options}
        settings = settings_of(kafka, spark, s3, storage_options=limits)
        carrier = Carrier(settings, session)
        topic = topic_of(carrier, [b"value"] * 30)
        assert carrier.carry(carrier.plan(topic, at_most=5)).records == 10
        between.seen.clear()
        for chosen in (puts_data, puts_an_entry):
            planned = carrier.plan(topic, at_most=5)
            between.harm(Fault.SILENCE, chosen)
            failed = carrier.carry(planned)
            between.until_met()
            between.heal()
            assert set(map(type, failed.failures.values())) == {LakeAwayError}, failed.failures
            assert len(failed.failures) == 2
        between.harm(Fault.LOST_ANSWER, puts_an_entry, times=1)
        assert carrier.carry(carrier.plan(topic, at_most=5)).records == 10
        between.until_met()
        between.harm(Fault.SLOW, wait_s=0.05)
        assert carrier.carry(carrier.plan(topic, at_most=5)).records == 10
        between.heal()
        large = topic_of(carrier, [os.urandom(900_000) for _ in range(12)], partitions=1)
        assert carrier.carry_all(large).records == 12
        carrier.carry_all(topic)
        # In parts where it is large; where it stays, and by no other way.
        assert any(method == "POST" and "uploads" in path for method, path in between.seen)
        assert not any("_temporary" in path for _, path in between.seen)
    read_directly = settings.model_copy(
        update={"lake": settings.lake.model_copy(update={"storage_options": s3.storage_options})}
    )
    verdict = verify(read_directly, [topic, large])
    assert verdict.is_exact
    assert sum(one.lake for one in verdict.partitions) == 72


def test_upkeep_joins_files_and_loses_nothing(make_carrier: MakeCarrier, s3: S3Server) -> None:
    """Small files become one; replaced files and orphans are gone from the bucket."""
    carrier = make_carrier(removed_file_retention="0s")
    topic = topic_of(carrier, [b"value"] * 30)
    for _ in range(3):
        carrier.carry(carrier.plan(topic, at_most=10))
    (report,) = keep_up(carrier.settings.lake)
    assert report.bytes_rewritten > 0
    assert carrier.verify(topic).is_exact
    lake = s3.folder / carrier.settings.lake.root.rpartition("/")[2]
    data = [one for one in (lake / topic).rglob("*.parquet") if "_delta_log" not in one.parts]
    assert len(data) == 1


def test_a_killed_consumer_goes_on_from_the_bucket(
    kafka: EmbeddedKafka, s3: S3Server, spark: SparkSettings, tmp_path: Path
) -> None:
    """With files written and not committed, by kill -9: the next incarnation is exact."""
    with group_of(settings_of(kafka, spark, s3), tmp_path) as group:
        topic, places = make_topic(group, "s3-killed", 3, 40)
        child = group.start(1, at="before-commit", count=2)
        first = group.incarnation(1)
        group.command_start(1, places)
        wait_for("the first batch", lambda: _carried(group.settings, topic) == 120)
        add_records(group, topic, 3, 60)
        assert child.process.wait(WAIT_S) == -signal.SIGKILL
        again = group.start(1)
        group.wait_new_incarnation(1, first)
        group.command_start(1, places)
        wait_for("the rest", lambda: _carried(group.settings, topic) == 300)
        assert again.end() == 0
        assert_exact(group, topic)


def _carried(settings: Settings, topic: str) -> int:
    return sum(carried_so_far(settings, [topic]).values())
