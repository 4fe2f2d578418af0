"""The record of a watch is whole at each moment."""

import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.cli.recorded_speeds import Record, RecordedSpeeds
from penstock.errors import UsageError
from penstock.laboratory.packing_replay.stream import read_stream
from penstock.model import TopicPartition

ENDLESS = """
import sys
from pathlib import Path
from penstock.cli.recorded_speeds import RecordedSpeeds
from penstock.model import TopicPartition

recorded = RecordedSpeeds(Path(sys.argv[1]))
for number in range(1_000_000):
    recorded.add({TopicPartition("t", n): 0.1 * n for n in range(100 + number // 50)})
    if number == 200:
        print("recorded 200", flush=True)
"""


def speeds(*values: float) -> dict[TopicPartition, float]:
    return {TopicPartition("t", n): value for n, value in enumerate(values)}


@contextmanager
def no_file_larger_than(limit_bytes: int) -> Iterator[None]:
    """As on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_the_file_is_whole_after_each_measurement(tmp_path: Path) -> None:
    """Also when partitions appear and vanish; nothing else stays in the folder."""
    file = tmp_path / "speeds.csv"
    file.write_text("of yesterday")
    recorded = RecordedSpeeds(file)
    assert file.read_text() == "of yesterday"
    measured = [speeds(1.5), speeds(2.5), speeds(2.5, 7), speeds(3.5), speeds(1, 2, 3)]
    for number, sample in enumerate(measured, start=1):
        recorded.add(sample)
        stream = read_stream(file)
        assert len(stream) == number
        assert [stream.speeds(n).get(TopicPartition("t", 0)) for n in range(number)] == [
            one[TopicPartition("t", 0)] for one in measured[:number]
        ]
    assert stream.rows[0] == (1.5, 0.0, 0.0)
    assert stream.rows[-1] == (1.0, 2.0, 3.0)
    recorded.close()
    assert [one.name for one in tmp_path.iterdir()] == ["speeds.csv"]


def test_a_killed_watch_leaves_what_was_measured(tmp_path: Path) -> None:
    """A process that records is killed without a warning."""
    file = tmp_path / "speeds.csv"
    command = [sys.executable, "-c", ENDLESS, str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "recorded 200\n"
        process.kill()
    assert len(read_stream(file)) > 200


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    """It names the option, before anything is watched where that can be seen."""
    with pytest.raises(UsageError, match=r"--record: .* is no file that can be written"):
        RecordedSpeeds(tmp_path)
    gone = RecordedSpeeds(tmp_path / "gone" / "speeds.csv")
    with pytest.raises(UsageError, match="--record: cannot write"):
        gone.add(speeds(1))
    with Record(None) as nothing:
        assert nothing is None


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """What it leads to is written."""
    (tmp_path / "real").mkdir()
    link = tmp_path / "link.csv"
    link.symlink_to(tmp_path / "real" / "speeds.csv")
    recorded = RecordedSpeeds(link)
    recorded.add(speeds(1))
    recorded.close()
    assert link.is_symlink()
    assert len(read_stream(tmp_path / "real" / "speeds.csv")) == 1


def test_a_full_disk_ends_the_record_and_not_the_watch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was recorded stays whole; a first line that cannot be written ends the watch."""
    file = tmp_path / "speeds.csv"
    recorded = Record(file)

    with recorded:
        recorded.add(speeds(1))
        with no_file_larger_than(12):
            # Half of this line fits; then a column cannot be added.
            recorded.add(speeds(2.123456789))
            recorded.add(speeds(3))
    assert recorded.fault is not None
    assert "cannot write" in recorded.fault.message
    assert capsys.readouterr().err.count("goes on without a record") == 1
    assert read_stream(file).rows == ((1.0,),)
    with no_file_larger_than(3), pytest.raises(UsageError, match="cannot write"):
        Record(tmp_path / "other.csv").add(speeds(1))
    assert [one.name for one in tmp_path.iterdir()] == ["speeds.csv"]
