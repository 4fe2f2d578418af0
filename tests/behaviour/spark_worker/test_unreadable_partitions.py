"""What a worker does with a record that it cannot read: only its partition is left out."""

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError

from penstock.spark_worker import assigned_reader
from penstock.spark_worker.assigned_reader import AssignedReader
from penstock.spark_worker.parquet_files import ParquetFiles, answer_rows
from penstock.spark_worker.work import (
    RangeToRead,
    TableToWrite,
    UnreadablePartition,
    WrittenPart,
)

COLUMNS = ["partition", "offset", "headers"]


class Message:
    """A message of the client library, as far as a worker asks it."""

    def __init__(self, partition: int, offset: int | None, wrong: Any = None) -> None:
        self._partition = partition
        self._offset = offset
        self._wrong = wrong
        self.times_asked = 0

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int | None:
        return self._offset

    def key(self) -> bytes | None:
        return None

    def timestamp(self) -> tuple[int, int]:
        return 1, 0

    def headers(self) -> list[tuple[str, bytes]] | None:
        self.times_asked += 1
        if self._wrong is not None:
            raise self._wrong
        return [("name", b"x")]

    def error(self) -> Any:
        return self._wrong if isinstance(self._wrong, KafkaError) else None

    def __len__(self) -> int:
        return 1


def _no_text() -> UnicodeDecodeError:
    return UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")


def test_every_partition_with_a_bad_header_name_is_found(tmp_path: Path) -> None:
    """Each bad record is asked once, for the library ends the process if it is asked again."""
    tables = {name: TableToWrite(f"{tmp_path}/{name}", COLUMNS) for name in ("t", "u")}
    files = ParquetFiles(tables, "zstd")
    bad = [Message(1, 4, _no_text()), Message(3, 0, SystemError("null"))]
    first = [Message(0, 7), Message(1, 3), bad[0], Message(1, 5), Message(2, 9), bad[1]]
    files.add([("t", first), ("u", [Message(0, 0), Message(0, 1)])])
    files.add([("t", [Message(1, 6, _no_text())]), ("t", [Message(0, 8)])])
    assert set(files.unreadable) == {("t", 1), ("t", 3)}
    assert "offset 4 has a header name" in files.unreadable["t", 1]
    assert [one.times_asked for one in bad] == [1, 1]
    (part,) = files.close(without={"t"})
    assert (part.topic, part.records) == ("u", 2)
    assert list((tmp_path / "t").iterdir()) == []
    assert [str(path) for path in (tmp_path / "u").iterdir()] == [part.path]


def test_an_answer_names_files_and_partitions() -> None:
    """Rows of files have no reason; without either there is no row."""
    part, failed = WrittenPart("u", "/p", 2, 5), UnreadablePartition("t", 1, "not UTF-8")
    rows = answer_rows([part], [failed]).to_pylist()
    assert [(row["topic"], row["path"], row["reason"]) for row in rows] == [
        ("u", "/p", None),
        ("t", None, "not UTF-8"),
    ]
    assert answer_rows([], []).num_rows == 0


class Client:
    """Gives the messages of a test at once."""

    def __init__(self, messages: list[Message]) -> None:
        self._messages = messages

    def assign(self, _: Any) -> None:
        pass

    def incremental_unassign(self, _: Any) -> None:
        pass

    def unassign(self) -> None:
        pass

    def consume(self, count: int, timeout: float) -> list[Message]:
        del timeout
        given, self._messages = self._messages[:count], self._messages[count:]
        return given


@pytest.mark.parametrize("code", [KafkaError._BAD_MSG, KafkaError.TOPIC_AUTHORIZATION_FAILED])
@pytest.mark.parametrize("offset", [1, None, 2], ids=["in", "any", "behind"])
def test_a_record_that_is_not_given_ends_its_own_partition(
    monkeypatch: pytest.MonkeyPatch, offset: int | None, code: int
) -> None:
    """Wherever the error claims to lie: a range that ended by mistake would lose records."""
    wrong = KafkaError(code)
    messages = [Message(0, 0), Message(0, offset, wrong), Message(1, 0), Message(1, 1)]
    monkeypatch.setattr(assigned_reader, "_consumer", lambda *_: Client(messages))
    ranges = [RangeToRead("t", number, 0, 2) for number in (0, 1)]
    reader = AssignedReader({}, "r", ranges, silence_s_max=5)
    read = [one.partition() for chunk in reader.chunks() for _, run in chunk for one in run]
    assert sorted(read) == [0, 1, 1]
    assert set(reader.unreadable) == {("t", 0)}
