"""The embedded broker is a real Kafka: it starts, fails clearly, leaves nothing running."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kit.processes import processes_naming
from penstock.jars import JarSet
from penstock.jars.cache import JarCorruptError, set_directory
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.producer import RecordProducer
from penstock.laboratory.broker import BrokerPlan, BrokerStartError, EmbeddedKafka
from penstock.model import TopicPartition

pytestmark = pytest.mark.broker


def test_two_run_side_by_side(kafka: EmbeddedKafka) -> None:
    """Each on its own ports with its own topics; stopping one leaves the other."""
    with EmbeddedKafka() as other:
        assert other.bootstrap_servers != kafka.bootstrap_servers
        Administration(other.settings).create_topic("only-here", partitions=1)
        assert "only-here" not in Administration(kafka.settings).cluster().partition_counts
        directory = other.directory
        assert directory.exists()
    assert not directory.exists()
    assert processes_naming(str(directory)) == []
    assert Administration(kafka.settings).cluster().broker_ids == (1,)


def test_data_stays_in_a_given_directory(tmp_path: Path, broker_jars: None) -> None:
    """Stopped and started again on the same data, the records are still there."""
    partition = TopicPartition("kept", 0)
    for expected in (1, 2):
        with EmbeddedKafka(data_directory=tmp_path) as running:
            administration = Administration(running.settings)
            administration.create_topic("kept", partitions=1)
            producer = RecordProducer(running.settings)
            producer.send("kept", 0, b"record")
            assert producer.flush(60) == 0
            assert administration.end_offsets([partition]) == {partition: expected}


def test_three_brokers_survive_the_loss_of_one(broker_jars: None) -> None:
    """A real cluster: replicated, and served by the rest when one is killed; it comes back."""
    with EmbeddedKafka(BrokerPlan(brokers=3, heap_mib=256)) as cluster:
        administration = Administration(cluster.settings)
        administration.create_topic("replicated", partitions=3)
        end_s = time.monotonic() + 90
        while "replicated" not in (seen := administration.topics(["replicated"])):
            assert time.monotonic() < end_s, "the topic stayed unknown"
            time.sleep(0.1)  # a broker that did not make it learns of it a moment later
        assert seen["replicated"].replication_factor == 3
        producer = RecordProducer(cluster.settings)
        cluster.kill(2)
        for number in range(30):
            producer.send("replicated", number % 3, b"%d" % number)
        assert producer.flush(60) == 0
        assert len([node for node in cluster.nodes.values() if node.is_alive]) == 2
        looks = []
        cluster.restart(2, lambda: looks.append(len(looks)))
        assert looks, "nothing was done while it was waited for"
        ends = administration.end_offsets(TopicPartition("replicated", n) for n in range(3))
        assert sum(ends.values()) == 30


def test_a_killed_parent_leaves_no_broker(tmp_path: Path, broker_jars: None) -> None:
    """The process that started it dies with -9, and the broker with it."""
    script = (
        "import time\nfrom pathlib import Path\n"
        "from penstock.laboratory.broker import EmbeddedKafka\n"
        f"kafka = EmbeddedKafka(data_directory=Path({str(tmp_path)!r})).start()\n"
        "print('up', flush=True)\ntime.sleep(120)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"up\n"
    assert len(processes_naming(str(tmp_path))) >= 1
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 120
    while processes_naming(str(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.1)  # a clean shutdown takes its moment
    assert processes_naming(str(tmp_path)) == []


def test_a_taken_port_is_named(broker_jars: None) -> None:
    """The error names the port before anything is started."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(BrokerStartError, match=f"Port {port} on 127.0.0.1 cannot be used"):
            EmbeddedKafka(port=port).start()


def test_a_chosen_port_is_used(broker_jars: None) -> None:
    """The broker listens on the port that was asked for."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with EmbeddedKafka(port=port) as running:
        assert running.bootstrap_servers == f"127.0.0.1:{port}"


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path, broker_jars: None) -> None:
    """A file stands in the way (root may write everywhere, so rights prove nothing here)."""
    (tmp_path / "file").touch()
    with pytest.raises(BrokerStartError, match="cannot be written"):
        EmbeddedKafka(data_directory=tmp_path / "file" / "data").start()


def test_a_broker_killed_while_starting_is_quoted(tmp_path: Path, broker_jars: None) -> None:
    """The error quotes its log, and nothing is left running."""
    stop = threading.Event()

    def kill_while_starting() -> None:
        while not stop.is_set():
            for pid in processes_naming(str(tmp_path)):
                command = Path(f"/proc/{pid}/cmdline").read_bytes()
                if b"kafka.Kafka" in command and b"die_with_parent" not in command:
                    time.sleep(0.7)  # far enough in to have written something
                    os.kill(pid, signal.SIGKILL)
                    return
            time.sleep(0.02)

    thread = threading.Thread(target=kill_while_starting)
    thread.start()
    try:
        with pytest.raises(BrokerStartError, match="died while starting"):
            EmbeddedKafka(data_directory=tmp_path).start()
    finally:
        stop.set()
        thread.join()
    assert processes_naming(str(tmp_path)) == []


def test_a_wrong_broker_property_is_quoted(tmp_path: Path, broker_jars: None) -> None:
    """The error quotes what Kafka says about the property."""
    plan = BrokerPlan(properties={"log.retention.bytes": "many"})
    with pytest.raises(BrokerStartError, match=r"(?s)log\.retention\.bytes"):
        EmbeddedKafka(plan, data_directory=tmp_path).start()
    assert processes_naming(str(tmp_path)) == []


def test_a_corrupted_jar_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broker_jars: None
) -> None:
    """A copy of the cache with one changed byte starts no broker."""
    original = set_directory(JarSet.BROKER)
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    copy = set_directory(JarSet.BROKER)
    copy.mkdir(parents=True)
    for jar in original.iterdir():
        (copy / jar.name).symlink_to(jar)
    victim = next(path for path in copy.iterdir() if path.name.startswith("kafka_2.13"))
    content = bytearray(victim.read_bytes())
    content[1000] ^= 1
    victim.unlink()
    victim.write_bytes(content)
    with pytest.raises(JarCorruptError, match="it is not used"):
        EmbeddedKafka().start()


@pytest.mark.parametrize("brokers", [0, 10])
def test_clusters_of_no_sensible_size_are_refused(brokers: int) -> None:
    """A cluster has one to nine brokers."""
    with pytest.raises(ValueError, match="1 to 9 brokers"):
        BrokerPlan(brokers=brokers)
