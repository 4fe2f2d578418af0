"""Writers of one table that commit together over a real broker, killed at every point."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable

from kit.lake.joint_writers import (
    COMMITTER,
    OTHER,
    SCHEMA,
    WRITERS,
    carry,
    entry_of,
    settings_for,
)
from kit.lake.lake import new_topic_name
from kit.lake.s3_server import BUCKET, s3_for_tests
from penstock.committer import CommitsTogether
from penstock.committer.core import duty
from penstock.committer.offers import offer_of
from penstock.kafka_io.commit_topic import CommitTopicWriter
from penstock.kafka_io.control_topics import make_control_topics
from penstock.laboratory.broker import EmbeddedKafka
from penstock.model import TopicPartition
from penstock.pipeline.batch import Writer
from penstock.pipeline.joint_table import BatchToCommit, JointTable, table_mark
from penstock.pipeline.ledger_moves import LedgerMove
from penstock.pipeline.log_entries import BATCHES_KEY
from penstock.settings import Settings

pytestmark = pytest.mark.broker
TESTS = Path(__file__).parents[1]
SECONDS = 9.0
SECONDS_ON_S3 = 15.0


def _settings(kafka: EmbeddedKafka, root: Path) -> Settings:
    settings = settings_for(str(root), kafka.bootstrap_servers, new_topic_name("committer"))
    make_control_topics(settings)
    return settings


def _started(settings: Settings, who: str, death: str, seconds: float) -> "subprocess.Popen[str]":
    program = [sys.executable, "-m", "kit.lake.joint_writers", settings.lake.root]
    given = [settings.kafka.bootstrap_servers, settings.topics.prefix, who, death, str(seconds)]
    options = json.dumps(settings.lake.storage_options)
    return subprocess.Popen(
        [*program, *given, options], text=True, stdout=subprocess.PIPE, env=os.environ, cwd=TESTS
    )


def _check(root: Path) -> list[int]:
    return _check_table(DeltaTable(root / "orders"), root / "orders")


def _check_table(table: DeltaTable, folder: Path) -> list[int]:
    """Every row once, as the ledger says; of each commit for several, how many batches it has."""
    found: dict[int, list[int]] = {}
    for row in table.to_pyarrow_table().to_pylist():
        found.setdefault(row["partition"], []).append(row["offset"])
    assert set(found) == set(range(1, WRITERS + 1))
    for partition, offsets in found.items():
        ledger = table.transaction_version(entry_of(partition))
        assert sorted(offsets) == list(range(ledger or 0)), partition
    lines = [
        json.loads(file.read_text(encoding="utf-8").splitlines()[0])
        for file in sorted((folder / "_delta_log").glob("*.json"))
    ]
    infos = [one["commitInfo"] for one in lines if "commitInfo" in one]
    return [len(one[BATCHES_KEY]) for one in infos if BATCHES_KEY in one]


@pytest.mark.parametrize(
    "death",
    [
        "nobody",
        f"{OTHER}:batch-offered",
        f"{OTHER}:batch-answered",
        f"{COMMITTER}:batches-gathered",
        f"{COMMITTER}:batches-committed",
        f"{COMMITTER}:batches-answered",
    ],
)
def test_every_row_is_there_once_whoever_dies(
    kafka: EmbeddedKafka, tmp_path: Path, death: str
) -> None:
    """A writer with its batch on the way, or the one that commits, around its commit."""
    running = _started(_settings(kafka, tmp_path), "one", death, SECONDS)
    said, _ = running.communicate(timeout=400)
    assert said.splitlines()[-1].split() == ["0" if death == "nobody" else "1", "0"]
    together = _check(tmp_path)
    assert max(together) >= 2, "nobody has committed for another"


@pytest.mark.parametrize("point", ["batches-gathered", "batches-committed"])
def test_every_row_is_there_once_on_s3_when_the_one_that_commits_dies(
    kafka: EmbeddedKafka, tmp_path: Path, point: str
) -> None:
    """Around its commit, which is one conditional request there; another reader counts the rows."""
    with s3_for_tests(tmp_path / "s3") as s3:
        root, prefix = f"s3://{BUCKET}/joint", new_topic_name("committer")
        options = s3.storage_options
        settings = settings_for(root, kafka.bootstrap_servers, prefix, options)
        make_control_topics(settings)
        running = _started(settings, "one", f"{COMMITTER}:{point}", SECONDS_ON_S3)
        said, _ = running.communicate(timeout=400)
        assert said.splitlines()[-1].split() == ["1", "0"]
        table = DeltaTable(f"{root}/orders", storage_options=options)
        together = _check_table(table, s3.folder / "joint" / "orders")
    assert max(together) >= 2, "nobody has committed for another"


def test_two_that_commit_for_all_lose_nothing(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    """Both read every offer; one of them has the version, and the other finds nothing to do."""
    running = _started(_settings(kafka, tmp_path), "two", "nobody", SECONDS)
    said, _ = running.communicate(timeout=400)
    assert said.splitlines()[-1].split() == ["0", "0"]
    assert max(_check(tmp_path)) >= 2


def test_a_broker_that_is_away_delays_batches_and_loses_none(
    broker_jars: None, tmp_path: Path
) -> None:
    """Whoever waits for an answer then commits by itself, and together again afterwards."""
    with EmbeddedKafka() as own:
        running = _started(_settings(own, tmp_path), "one", "nobody", 16.0)
        time.sleep(7.0)
        node = next(iter(own.nodes))
        own.pause(node)
        time.sleep(4.0)
        own.resume(node)
        said, _ = running.communicate(timeout=400)
    assert said.splitlines()[-1].split() == ["0", "0"]
    assert max(_check(tmp_path)) >= 2


def test_without_the_topic_everybody_commits_for_itself(
    kafka: EmbeddedKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster of an earlier release has no such topic: nothing waits for it for long."""
    monkeypatch.setattr(duty, "WRITERS_ALONE_MAX", 1)
    settings = settings_for(str(tmp_path), kafka.bootstrap_servers, new_topic_name("none"))
    writers = [Writer(number, 1) for number in (1, 2)]
    together = [CommitsTogether(settings, one) for one in writers]
    tables = [JointTable(settings.lake, "orders") for _ in writers]
    tables[0].open_for(SCHEMA, ())

    def work(which: int) -> None:
        for number in range(8):
            assert carry(tables[which], writers[which], number, together[which])

    threads = [threading.Thread(target=work, args=(which,)) for which in (0, 1)]
    began_s = time.monotonic()
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    took_s = time.monotonic() - began_s
    for each in together:
        each.close()
    table = DeltaTable(tmp_path / "orders")
    assert [table.transaction_version(entry_of(one)) for one in (1, 2)] == [24, 24]
    assert took_s < 30, "each waits once for an answer, not for every batch"


def test_a_batch_that_is_not_signed_is_not_committed(
    kafka: EmbeddedKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who may write to the topic, and cannot read the lake, moves no ledger."""
    monkeypatch.setattr(duty, "WRITERS_ALONE_MAX", 0)
    settings = _settings(kafka, tmp_path)
    table = JointTable(settings.lake, "orders")
    table.open_for(SCHEMA, ())
    serving = CommitsTogether(settings, Writer(1, 1))
    assert carry(table, Writer(1, 1), 1, serving)
    state = table._state()
    assert state is not None
    lost: list[Exception] = []
    said = CommitTopicWriter(settings.kafka, settings.topics, "g", lost.append)
    for number, key in ((7, b"0" * 64), (8, table.commit_key())):
        move = LedgerMove(TopicPartition("orders", number), entry_of(number), None, 5)
        ranges = {move.application_id: (0, 5)}
        batch = BatchToCommit(f"data/g/{number}-1/1.x", table_mark(state), (move,), (), ranges)
        offer = offer_of("orders", batch, "g", Writer(number, 1), key)
        assert offer is not None
        said.send(offer)
    said.flush(60)
    deadline_s = time.monotonic() + 90
    while table.next_offsets([entry_of(8)]) != {entry_of(8): 5}:
        assert time.monotonic() < deadline_s, "the signed one is not there"
        time.sleep(0.1)
    serving.close()
    assert table.next_offsets([entry_of(7)]) == {entry_of(7): None}
    assert not lost
