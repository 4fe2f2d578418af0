"""The commands that use Kafka, on a real broker."""

import csv
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Where

from kit.processes import processes_naming
from kit.program import penstock
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.log_sizes import LogSizeReader
from penstock.laboratory.broker import EmbeddedKafka
from penstock.model import TopicPartition
from penstock.settings.sections import KafkaSettings

pytestmark = pytest.mark.broker


@pytest.fixture
def at(kafka: EmbeddedKafka) -> tuple[str, str]:
    return ("--bootstrap-server", kafka.bootstrap_servers)


def test_broker_start_status_stop(tmp_path: Path, broker_jars: None) -> None:
    """The address on stdout, found again by name, gone after stop; twice is no error."""
    data = tmp_path / "data"
    started = penstock("broker", "start", "--name", "started", "--data-dir", str(data))
    try:
        assert started.returncode == 0, started.stderr
        address = started.stdout.strip()
        again = penstock("broker", "start", "--name", "started")
        assert again.returncode == 2
        assert f"is already running at {address}" in again.stderr
        status = json.loads(penstock("broker", "status", "-o", "json").stdout)
        mine = next(one for one in status if one["name"] == "started")
        assert (mine["address"], mine["state"]) == (address, "ready")
        assert penstock("topics", "create", "--bootstrap-server", address).returncode == 0
    finally:
        stopped = penstock("broker", "stop", "--name", "started")
    assert stopped.returncode == 0
    assert processes_naming(str(data)) == []
    assert data.exists()
    assert penstock("broker", "stop", "--name", "started").returncode == 0
    status = json.loads(penstock("broker", "status", "-o", "json").stdout)
    assert all(one["name"] != "started" for one in status)


def test_a_broker_in_the_foreground_is_one_and_ends_with_sigterm(
    tmp_path: Path, broker_jars: None
) -> None:
    """One process, reached at the address it prints; after SIGTERM it ends with exit code 0."""
    data = tmp_path / "data"
    command = ("broker", "start", "--foreground", "--name", "stays", "--data-dir", str(data))
    with subprocess.Popen(
        [sys.executable, "-m", "penstock", *command], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        administration = Administration(KafkaSettings(bootstrap_servers=address))
        assert len(administration.cluster().broker_ids) == 1
        found = [one for one in processes_naming(str(data)) if one != process.pid]
        assert len(found) == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=120) == 0
    assert processes_naming(str(data)) == []


def test_broker_start_fails_with_exit_code_one(tmp_path: Path, broker_jars: None) -> None:
    """One message, nothing running, nothing noted."""
    (tmp_path / "file").touch()
    done = penstock("broker", "start", "--name", "sad", "--data-dir", str(tmp_path / "file/x"))
    assert done.returncode == 1
    assert "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr


def test_topics_are_made_checked_and_grown(at: tuple[str, str]) -> None:
    """Missing, created, ok; more consumers: too few, grown, ok. Repeating changes nothing."""
    mine = (*at, "--set", "topics.prefix=grow", "--set", "topics.consumers_ahead=2")
    missing = penstock("topics", "check", *mine, "-o", "json")
    assert missing.returncode == 1
    assert {one["state"] for one in json.loads(missing.stdout)} == {"missing"}
    created = penstock("topics", "create", *mine)
    assert created.returncode == 0, created.stderr
    assert created.stderr.count("created") == 7
    again = penstock("topics", "create", *mine)
    assert again.returncode == 0
    assert "created" not in again.stderr
    small = penstock("topics", "check", *mine, "--consumers", "5", "-o", "json")
    assert small.returncode == 1
    states = {one["topic"]: one["state"] for one in json.loads(small.stdout)}
    assert states["grow-controller"] == states["grow-query"] == "too-few-partitions"
    assert penstock("topics", "create", *mine, "--consumers", "5").returncode == 0
    assert penstock("topics", "check", *mine, "--consumers", "5").returncode == 0


def test_the_monitor_topic_never_expires_by_age(at: tuple[str, str], kafka: EmbeddedKafka) -> None:
    """The broker reports retention.ms=-1 and a limit on bytes."""
    assert penstock("topics", "create", *at, "--set", "topics.prefix=kept").returncode == 0
    settings = Administration(kafka.settings).topic_settings(["kept-monitor"])["kept-monitor"]
    assert settings["retention.ms"] == "-1"
    assert int(settings["retention.bytes"]) == 64 * 2**20


def test_a_topic_that_cannot_serve_is_reported(at: tuple[str, str], kafka: EmbeddedKafka) -> None:
    """It exists, compacted: create says what to change, exits 1, and does not touch it."""
    Administration(kafka.settings).create_topic(
        "bad-controller", partitions=40, settings={"cleanup.policy": "compact"}
    )
    done = penstock("topics", "create", *at, "--set", "topics.prefix=bad")
    assert done.returncode == 1
    assert "bad-controller has cleanup.policy=compact: set it to delete" in done.stderr


def test_doctor_finds_everything_well(at: tuple[str, str]) -> None:
    """With topics made every line is ok and the exit code 0."""
    mine = (*at, "--set", "topics.prefix=well")
    before = penstock("doctor", *mine, "-o", "json")
    assert "penstock topics create" in str(json.loads(before.stdout))
    penstock("topics", "create", *mine)
    penstock("jars", "fetch")
    after = penstock("doctor", *mine, "-o", "json")
    assert after.returncode == 0, after.stdout
    names = [one["check"] for one in json.loads(after.stdout)]
    jars = ["broker jars", "spark jars"]
    well = ["extras", "java", *jars, "lake", "ports", "encryption", "broker"]
    well += ["included", "topics", "prefix", "rights"]
    assert names == well


def test_load_reaches_its_speed_with_unique_ids(
    at: tuple[str, str], kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    """What was acknowledged is in the log, every id once, and the report adds up."""
    report = tmp_path / "speeds.csv"
    done = penstock(
        "load", "loaded:0-1=200kB/s", "loaded:3=step:50kB/s,100kB/s,1s", *at,
        *("--create", "4", "--duration", "3s", "--report", str(report), "--keys", "7"),
        *("--run-id", "r1", "-o", "json"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    partitions = [TopicPartition("loaded", n) for n in range(4)]
    ends = Administration(kafka.settings).end_offsets(partitions)
    assert [ends[one] for one in partitions] == [
        result["records_by_partition"].get(str(one), 0) for one in partitions
    ]
    assert ends[partitions[2]] == 0
    assert ends[partitions[0]] == pytest.approx(600, abs=2)
    assert ends[partitions[3]] == pytest.approx(250, abs=2)
    with report.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    last = {row["partition"]: int(row["records_total"]) for row in rows}
    assert last == {"0": ends[partitions[0]], "1": ends[partitions[1]], "3": ends[partitions[3]]}
    ids = _ids(kafka, "loaded", sum(ends.values()))
    assert len(set(ids)) == len(ids) == sum(ends.values())


def _ids(kafka: EmbeddedKafka, topic: str, count: int) -> list[str]:
    """Every record's id, read by a client that knows nothing of ours."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "ids"})
    consumer.assign([Where(topic, number, 0) for number in range(4)])
    ids: list[str] = []
    while len(ids) < count:
        messages = consumer.consume(1000, timeout=60)
        assert messages, f"only {len(ids)} of {count} records could be read"
        for message in messages:
            content = json.loads(message.value())
            assert len(message.value()) + len(message.key()) == 1000
            ids.append(content["id"])
    consumer.close()
    return ids


def test_load_replays_a_file(at: tuple[str, str], kafka: EmbeddedKafka, tmp_path: Path) -> None:
    """Columns are partitions, rows are moments."""
    speeds = tmp_path / "speeds.csv"
    speeds.write_text("replayed-0,replayed-1\n100000,0\n0,300000\n", encoding="utf-8")
    done = penstock(
        "load", "--replay", str(speeds), "--every", "1s", "--duration", "2s", *at, "--create", "1"
    )
    assert done.returncode == 0, done.stderr
    ends = Administration(kafka.settings).end_offsets(TopicPartition("replayed", n) for n in (0, 1))
    assert ends[TopicPartition("replayed", 0)] == pytest.approx(100, abs=3)
    assert ends[TopicPartition("replayed", 1)] == pytest.approx(300, abs=5)


@pytest.mark.parametrize(
    ("arguments", "explanation"),
    [
        (["missing=1MB/s"], "There is no topic 'missing'"),
        ([], "Give either targets"),
        (["twice=1MB/s", "twice:0=1MB/s", "--create", "1"], "twice-0 is named twice"),
    ],
)
def test_load_refuses_what_makes_no_sense(
    at: tuple[str, str], arguments: list[str], explanation: str
) -> None:
    """Exit code 2 and what is wrong."""
    done = penstock("load", *arguments, *at)
    assert done.returncode == 2
    assert explanation in done.stderr


def test_log_sizes_are_those_of_the_leader(kafka: EmbeddedKafka, at: tuple[str, str]) -> None:
    """Bytes on disk: at least what was sent, and a little for the record's frame."""
    done = penstock("load", "sized=100kB/s", *at, "--create", "2", "--duration", "2s", "-o", "json")
    sent = json.loads(done.stdout)["bytes_acknowledged"]
    with LogSizeReader(kafka.settings) as sizes:
        read = sizes.read_bytes(["sized"])
        assert sizes.read_bytes([]) == {}
    assert sorted(read) == [TopicPartition("sized", 0), TopicPartition("sized", 1)]
    assert sent < sum(read.values()) < sent * 1.15


def test_a_topic_that_begins_like_the_control_topics_is_shown(
    at: tuple[str, str], kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    """Only the control topics themselves are left out of the lag table."""
    mine = (*at, "--set", "topics.prefix=lagging", "--set", f"lake.root={tmp_path}")
    assert penstock("topics", "create", *mine).returncode == 0
    administration = Administration(kafka.settings)
    administration.create_topic("lagging-orders", partitions=1)
    deadline_s = time.monotonic() + 90
    while "lagging-orders" not in administration.cluster().partition_counts:
        assert time.monotonic() < deadline_s
        time.sleep(0.1)  # a topic that was just made is not known at once
    shown = penstock("lake", "ledger", *mine, "-o", "json")
    assert shown.returncode == 0, shown.stderr
    topics = {row["topic"] for row in json.loads(shown.stdout)}
    assert {name for name in topics if name.startswith("lagging-")} == {"lagging-orders"}, (
        shown.stdout + shown.stderr
    )


def test_recommend_ends_with_a_recommendation_and_simulate_reads_its_record(
    at: tuple[str, str], tmp_path: Path
) -> None:
    """Before anything touches the cluster: watched, recommended, recorded, planned, simulated."""
    mine = (*at, "--set", "monitor.include=[watched]", "--set", "packing.capacity=60kB/s")
    load = [sys.executable, "-m", "penstock", "load", "watched=20kB/s", "--create", "4"]
    with subprocess.Popen(
        [*load, "--duration", "5m", *at], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as writer:
        try:
            wait_for_topic(at, "watched")
            file = tmp_path / "speeds.csv"
            watch = ("recommend", "--for", "12s", "--record", str(file), *mine)
            done = penstock(*watch, "-o", "json", cwd=tmp_path)
            assert done.returncode == 0, done.stderr
            found = json.loads(done.stdout)
            assert found["partitions"] == 4
            assert found["consumers_at_the_end"] == 2
            assert "s left." in done.stderr, "progress goes to stderr"
            simulated = penstock("simulate", "--stream", str(file), "--trigger", "-o", "json")
            assert simulated.returncode == 0, simulated.stderr
            planned = penstock("plan", "--over", "12s", *mine, "-o", "json", cwd=tmp_path)
            assert planned.returncode == 7, planned.stderr
            assert "this is the plan of a new group" in planned.stderr
            assert json.loads(planned.stdout)["consumers_then"] == 2
            assert len(json.loads(planned.stdout)["moves"]) == 4
        finally:
            writer.kill()
    text = penstock("recommend", "--for", "5s", *mine, cwd=tmp_path)
    assert "To start with: penstock up --set packing.capacity=60kB/s" in text.stdout, text.stderr
    assert not (tmp_path / "group").exists()


def wait_for_topic(at: tuple[str, str], name: str) -> None:
    deadline_s = time.monotonic() + 180
    while name not in Administration(KafkaSettings(bootstrap_servers=at[1])).topics([name]):
        assert time.monotonic() < deadline_s
        time.sleep(0.5)  # until `load` has made it
