"""`penstock monitor` and `penstock speeds` as a user runs them, on a real broker."""

import json
import time
from pathlib import Path

import pytest

from kit.in_a_loop import in_a_loop
from kit.kafka.measuring import ROUNDS_SHARE_MIN, WINDOWS_MAX, Writer, fits, writing
from kit.kafka.monitor_process import (
    MonitorProcess,
    make_topics,
    reading,
    running_monitor,
)
from kit.program import penstock
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.producer import RecordProducer
from penstock.laboratory.broker import EmbeddedKafka
from penstock.messages import Refusal, WholeMeasurement
from penstock.model.broker_logs import LogName

pytestmark = pytest.mark.broker


PERIOD_S = 0.5
# A measurement that lay there before is older than this by far; one that was just published is not,
# on a machine that gives a process its turn within half a minute.
FRESH_S = 30.0


def collected(
    kafka: EmbeddedKafka, prefix: str, count: int, writer: Writer | None = None
) -> list[WholeMeasurement]:
    """The next `count` measurements; the writer looks at each what it has written."""
    found: list[WholeMeasurement] = []
    with reading(kafka, prefix) as reader:
        last = reader.newest()
        end_s = time.monotonic() + 240
        while len(found) < count and time.monotonic() < end_s:
            newest = reader.newest(wait_s=3.0)
            if newest is not None and newest is not last:
                assert newest.age_s(time.monotonic()) < FRESH_S
                found.append(newest)
                last = newest
                if writer is not None:
                    writer.look()
    assert len(found) == count
    return found


def until_right(
    kafka: EmbeddedKafka, prefix: str, writer: Writer, name: LogName
) -> list[WholeMeasurement]:
    """Measurements of which the last is right.

    A wrong one counts where the writer was even and the monitor had most of its rounds.
    """
    for _ in range(WINDOWS_MAX):
        writer.mark()
        found = collected(kafka, prefix, 8, writer)
        last = found[-1]
        produced = writer.payload_bytes_per_s(name)
        measured = last.partitions[0].write_speed_bytes_per_s
        if fits(measured, produced, within=0.15):
            return found
        took_s = (last.published_at_unix_ms - found[0].published_at_unix_ms) / 1000
        rounds = last.sequence - found[0].sequence
        has_rounds = rounds >= ROUNDS_SHARE_MIN * took_s / PERIOD_S
        assert not (has_rounds and writer.was_even()), (measured, produced)
    raise AssertionError(f"void {WINDOWS_MAX} times: {measured}, {produced}")


def test_killed_and_restarted(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    """From its first message on, a restarted monitor publishes right speeds or none."""
    make_topics(kafka, "killed")
    Administration(kafka.settings).create_topic("killed-data", partitions=2)
    options = ("monitor.include=[killed-data]", f"monitor.period={PERIOD_S}s")
    log_file, name = tmp_path / "monitor.log", ("killed-data", 0)
    with writing(kafka, name) as writer:
        with running_monitor(kafka, "killed", log_file, *options) as first:
            before = collected(kafka, "killed", 8, writer)
            first.kill()
        time.sleep(1.0)
        written_bytes = writer.payload_bytes(name)
        with running_monitor(kafka, "killed", log_file, *options) as second:
            after = collected(kafka, "killed", 8, writer)
            slowest, fastest = writer.speeds_between_looks(name)
            right = until_right(kafka, "killed", writer, name)
            assert second.terminate() == 0
    incarnations = [one.monitor_incarnation for one in (*before, *after)]
    assert incarnations == sorted(incarnations)
    assert len(set(incarnations)) == 2
    for measurement in (*before, *after):
        busy, idle = measurement.partitions
        assert idle.write_speed_bytes_per_s in {None, 0.0}
        filtered, raw = busy.write_speed_bytes_per_s, busy.write_speed_raw_bytes_per_s
        # What was written before the start would be megabytes in the first interval, which is
        # shorter than a second. A producer of a busy machine stands still, or comes in a burst.
        assert filtered is None or slowest == 0 or filtered > 0
        assert filtered is None or filtered < max(600_000, 2 * fastest)
        assert raw is None or raw < max(1_500_000, written_bytes)
    assert right[-1].partitions[0].source == "log_dirs"
    assert right[-1].partitions[0].topic_id is not None
    events = [json.loads(line)["event"] for line in log_file.read_text().splitlines()]
    assert events.count("monitor_started") == 2
    assert events[-1] == "monitor_stopped"


def test_a_second_monitor_steps_aside(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    """It publishes nothing while the first one does, and the first one is heard after its end."""
    make_topics(kafka, "twice")
    Administration(kafka.settings).create_topic("twice-data", partitions=1)
    options = ("monitor.include=[twice-data]", "monitor.period=500ms")
    with running_monitor(kafka, "twice", tmp_path / "first.log", *options) as first:
        (before, *_) = collected(kafka, "twice", 3)
        with running_monitor(kafka, "twice", tmp_path / "second.log", *options) as second:
            until_event(second, "steps_aside")
            together = collected(kafka, "twice", 4)
            assert second.terminate() == 0
        after = collected(kafka, "twice", 4)
        heard = {one.monitor_incarnation for one in (*together, *after)}
        assert heard == {before.monitor_incarnation}
        with running_monitor(kafka, "twice", tmp_path / "third.log", *options) as third:
            until_event(third, "steps_aside")
            first.kill()
            until_event(third, "takes_over")
            (last, *_) = collected(kafka, "twice", 2)
            assert last.monitor_incarnation > before.monitor_incarnation


def until_event(monitor: MonitorProcess, name: str) -> None:
    deadline_s = time.monotonic() + 240
    while f'"{name}"' not in monitor.log:
        assert time.monotonic() < deadline_s, monitor.log
        time.sleep(0.1)  # the log of another process announces nothing


def test_speeds_with_and_without_a_monitor(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    """One reading as JSON: from the running monitor, and measured on the spot without one."""
    make_topics(kafka, "shown")
    Administration(kafka.settings).create_topic("shown-data", partitions=1)
    arguments = ["speeds", "--bootstrap-server", kafka.bootstrap_servers, "--topic", "shown-data"]
    arguments += ["--set", "topics.prefix=shown", "-o", "json"]
    with (
        writing(kafka, ("shown-data", 0)) as writer,
        in_a_loop(writer.look, lambda: PERIOD_S),
    ):
        assert "measuring" in shown(writer, arguments, "speeds")
        with running_monitor(kafka, "shown", tmp_path / "monitor.log"):
            collected(kafka, "shown", 4)
            shown(writer, arguments, "monitor")


def shown(writer: Writer, arguments: list[str], measured_by: str) -> str:
    """Asked until the speed is right, or is wrong although the writer was even; what it says."""
    for _ in range(WINDOWS_MAX):
        writer.mark()
        answer = penstock(*arguments)
        produced = writer.payload_bytes_per_s(("shown-data", 0))
        assert answer.returncode == 0, answer.stderr
        data = json.loads(answer.stdout)
        assert data["measured_by"] == measured_by
        (row,) = data["partitions"]
        assert row["end_offset"] > 0
        if fits(row["write_speed_bytes_per_s"], produced, within=0.4):
            return answer.stderr
        assert not writer.was_even(), (row, produced)
    raise AssertionError(f"void {WINDOWS_MAX} times: {row}, {produced}")


def test_speeds_without_control_topics(kafka: EmbeddedKafka) -> None:
    """On a cluster that never saw Penstock a table comes out, sorted as asked."""
    administration = Administration(kafka.settings)
    administration.create_topic("bare-b", partitions=1)
    administration.create_topic("bare-a", partitions=2)
    arguments = ("--bootstrap-server", kafka.bootstrap_servers, "--set", "topics.prefix=nowhere")
    answer = penstock("speeds", *arguments, "--topic", "bare-.", "--sort", "name", "--over", "1s")
    assert answer.returncode == 0, answer.stderr
    explanation = [line.split() for line in answer.stdout.splitlines()]
    rows = [line[:2] for line in explanation if line and line[0].startswith("bare")]
    assert rows == [["bare-a", "0"], ["bare-a", "1"], ["bare-b", "0"]]
    refused = penstock("speeds", *arguments, "--from", "monitor")
    assert refused.returncode == 1
    assert "penstock topics create" in refused.stderr


def test_foreign_messages_are_passed_over(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    """Rubbish on the topic is counted; the newest whole measurement is still found."""
    make_topics(kafka, "foreign")
    with running_monitor(kafka, "foreign", tmp_path / "monitor.log"):
        collected(kafka, "foreign", 2)
    producer = RecordProducer(kafka.settings)
    for value in (b"", b"not json", b"{}", b"\xff" * 100, b"[" * 5000):
        for _ in range(10):
            producer.send("foreign-monitor", 0, value)
    assert producer.flush(60) == 0
    refused: list[Refusal] = []
    with reading(kafka, "foreign") as reader:
        reader._on_refusal = refused.append
        newest = reader.newest()
    assert newest is not None
    assert newest.sequence >= 2
    assert len(refused) >= 50


def test_a_missing_topic_is_an_error(kafka: EmbeddedKafka) -> None:
    """Without its topic the monitor ends at once and says what to run."""
    arguments = ("--bootstrap-server", kafka.bootstrap_servers, "--set", "topics.prefix=missing")
    answer = penstock("monitor", *arguments)
    assert answer.returncode == 1
    assert "missing-monitor does not exist" in answer.stderr
    assert "penstock topics create" in answer.stderr


def test_no_broker_is_an_error() -> None:
    """No broker at all when it starts: exit code 4."""
    options = ("--bootstrap-server", "127.0.0.1:1", "--set", "kafka.answer_timeout=2s")
    for command in ("monitor", "speeds"):
        answer = penstock(command, *options)
        assert answer.returncode == 4, answer.stderr
        assert "No Kafka broker answers" in answer.stderr
