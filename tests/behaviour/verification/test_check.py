"""The check finds every kind of fault, and accepts gaps between offsets."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from penstock.errors import NotPermittedError
from penstock.kafka_io.administration import ClusterView, TopicLookup, TopicView
from penstock.kafka_io.failures import NoLeaderError
from penstock.kafka_io.offset_lookup import LogPosition, OffsetLookup
from penstock.model import TopicPartition
from penstock.settings import Settings
from penstock.settings.sections import KafkaSettings
from penstock.verification import PartitionVerdict, VerificationResult, check
from penstock.verification.check import compare
from penstock.verification.delta_log import BrokenLogError, read_table
from penstock.verification.lake_records import Lake, NotVerifiableError, records_of_topic
from penstock.verification.records import Records, checksum, checksums_of


def _records(*numbers: int, content: str = "value") -> Records:
    pairs = ((None, f"{content} {number}".encode()) for number in numbers)
    return Records(np.array(numbers, dtype=np.int64), checksums_of(pairs, len(numbers)))


def _compared(kafka: Records, lake: Records, dead: Records, **bounds: int) -> dict[str, Any]:
    whole: dict[str, Any] = {"log_start": 0, "log_end": 5, "ledger": 5, **bounds}
    return compare(kafka, lake, dead, **whole)


@pytest.mark.parametrize(
    ("kafka", "lake", "dead", "faults"),
    [
        ((0, 1, 4), (0, 1, 4), (), {}),
        ((0, 1, 4), (0, 4), (1,), {}),
        ((0, 1, 4), (0, 4), (), {"lost": 1, "first_lost": 1}),
        ((0, 1, 4), (0, 1, 1, 4), (), {"duplicated": 1}),
        ((0, 1, 4), (0, 1, 4), (1,), {"duplicated": 1}),
        ((0, 1, 4), (0, 1, 4, 5), (), {"out_of_place": 1}),
        ((0, 1, 4), (0, 1, 2, 4), (), {"out_of_place": 1}),
        ((0, 1, 4), (0, 1, 4), (7,), {}),
    ],
    ids=[
        "gaps are no fault",
        "a dead letter counts",
        "lost",
        "twice in the table",
        "in the table and a letter",
        "above the ledger",
        "unknown to Kafka",
        "letters run ahead",
    ],
)
def test_each_fault_is_named(
    kafka: tuple[int, ...], lake: tuple[int, ...], dead: tuple[int, ...], faults: dict[str, int]
) -> None:
    """Lost, duplicated and misplaced rows are counted separately; the rest is exact."""
    found = _compared(_records(*kafka), _records(*lake), _records(*dead))
    names = ("lost", "duplicated", "out_of_place", "first_lost")
    seen = {name: found[name] for name in names if found[name] not in (0, None)}
    assert seen == faults


@pytest.mark.parametrize(
    ("rows", "lake", "dead", "faults"),
    [
        ("at_most_one", (0, 4), (), {"left_out": 1}),
        ("at_most_one", (0, 0, 4), (), {"left_out": 1, "duplicated": 1}),
        ("at_least_one", (0, 0, 1, 4, 4), (), {}),
        ("at_least_one", (0, 0, 4), (), {"lost": 1, "first_lost": 1}),
        ("at_least_one", (0, 0, 1, 4), (1,), {"duplicated": 1}),
        ("any", (0, 0), (4,), {"left_out": 1}),
        ("any", (0, 2), (), {"left_out": 2, "out_of_place": 1}),
        ("any", (0, 5), (), {"left_out": 2, "out_of_place": 1}),
        ("one", (0, 0, 4), (), {"duplicated": 1, "lost": 1, "first_lost": 1}),
    ],
)
def test_what_a_transformation_may_do_is_no_fault(
    rows: str, lake: tuple[int, ...], dead: tuple[int, ...], faults: dict[str, int]
) -> None:
    """A filter leaves out, an explode gives several; all else is checked as before."""
    there, rows_there = _records(0, 1, 4), _records(*lake)
    found = compare(there, rows_there, _records(*dead), log_start=0, log_end=5, ledger=5, rows=rows)
    names = ("lost", "duplicated", "out_of_place", "first_lost", "left_out", "changed")
    seen = {name: found[name] for name in names if found[name] not in (0, None)}
    assert seen == faults
    assert found["lake"] == sum(offset < 5 for offset in lake)


def test_what_retention_removed_is_unknown_and_no_fault() -> None:
    """Rows below the log's start count as unknown, and the result is exact."""
    found = _compared(_records(3, 4), _records(0, 1, 3, 4), _records(), log_start=3)
    assert (found["unknown"], found["lost"], found["out_of_place"]) == (2, 0, 0)


def test_a_check_of_nothing_is_not_a_pass() -> None:
    """A check without partitions fails, and so does a single fault."""
    good = PartitionVerdict("t", 0, 5, 5, 5, 0, 0, 0, 0, 0)
    bad = PartitionVerdict("t", 1, 5, 5, 4, 0, 1, 0, 0, 0)
    assert not VerificationResult(()).is_exact
    assert VerificationResult((good,)).is_exact
    assert not VerificationResult((good, bad)).is_exact
    unchecked = VerificationResult((good,), unchecked={"t-1": "no leader"})
    assert not unchecked.is_exact
    assert unchecked.as_data()["unchecked"] == {"t-1": "no leader"}


def _table(root: Path, commits: int) -> DeltaTable:
    for number in range(commits):
        rows = pa.table(
            {"topic": ["t"], "partition": pa.array([0], pa.int32()), "offset": [number]}
        )
        properties = CommitProperties(app_transactions=[Transaction("g/id/0", number + 1)])
        write_deltalake(root / "t", rows, mode="append", commit_properties=properties)
    return DeltaTable(root / "t")


class OneLeaderMissing:
    """Kafka with topic t of two partitions, one of them without a leader, and a topic refused."""

    def __init__(self, _: KafkaSettings) -> None:
        pass

    def cluster(self) -> ClusterView:
        return ClusterView((1,), {"t": 2, "shut": 1})

    def look_up_topics(self, _: Iterable[str]) -> TopicLookup:
        view = TopicView("t", "id", 2, 1, is_internal=False)
        return TopicLookup({"t": view}, {"shut": NotPermittedError("no right")})

    def look_up_offsets(
        self, _: Iterable[TopicPartition], position: LogPosition, *, waits_for_leaders: bool
    ) -> OffsetLookup:
        assert waits_for_leaders
        at = 0 if position is LogPosition.START else 1
        failures = {TopicPartition("t", 1): NoLeaderError("no leader")}
        return OffsetLookup({TopicPartition("t", 0): at}, failures)

    def topic_settings(self, _: Iterable[str]) -> dict[str, dict[str, str]]:
        return {"t": {"cleanup.policy": "delete"}}


def test_what_kafka_does_not_let_us_read_is_named_and_the_rest_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A partition without a leader and a refused topic leave a result that is not exact."""
    entries = [Transaction(f"penstock/id/{number}", 1) for number in (0, 1)]
    rows = pa.table({"topic": ["t"], "partition": pa.array([0], pa.int32()), "offset": [0]})
    properties = CommitProperties(app_transactions=entries)
    write_deltalake(tmp_path / "t", rows, commit_properties=properties)
    monkeypatch.setattr(check, "Administration", OneLeaderMissing)
    monkeypatch.setattr(check._Check, "_kafka_records", lambda *_: _records(0))
    settings = Settings.model_validate({"lake": {"root": str(tmp_path), "group": "penstock"}})
    result = check.verify(settings, offsets_only=True)
    assert [(one.partition, one.is_exact) for one in result.partitions] == [(0, True)]
    assert result.unchecked == {"t-1": "no leader", "shut": "no right"}
    assert not result.is_exact
    assert result.earlier_topic_ids == {}, "the refused topic could have any id"


def test_the_log_is_read_like_another_reader_reads_it(tmp_path: Path) -> None:
    """Commits, checkpoints and removed files give the same result as deltalake."""
    table = _table(tmp_path, 6)
    lake = Lake.at(str(tmp_path))
    for step in (lambda: None, table.create_checkpoint, table.optimize.compact):
        step()
        table.update_incremental()
        state = lake.table("t")
        assert state is not None
        assert state.version == table.version()
        assert state.transactions == {"g/id/0": 6}
        assert {f"{tmp_path}/t/{path}" for path in state.files} == set(table.file_uris())
        found = records_of_topic(lake, "t", state, "t", "id", with_content=True)
        assert sorted(found[0].offsets) == list(range(6))


def test_a_hole_in_the_log_is_no_answer(tmp_path: Path) -> None:
    """A missing commit is an error."""
    _table(tmp_path, 4)
    (tmp_path / "t" / "_delta_log" / f"{2:020d}.json").unlink()
    with pytest.raises(BrokenLogError):
        read_table(pyarrow.fs.LocalFileSystem(), str(tmp_path / "t"))


def test_rows_without_partition_and_offset_are_an_error(tmp_path: Path) -> None:
    """A table without partition and offset columns is an error."""
    write_deltalake(tmp_path / "t", pa.table({"x": [1]}))
    lake = Lake.at(str(tmp_path))
    state = lake.table("t")
    assert state is not None
    with pytest.raises(NotVerifiableError, match="partition"):
        records_of_topic(lake, "t", state, "t", "id", with_content=False)


def test_a_log_that_ends_below_the_ledger_is_no_exact_copy() -> None:
    """Offsets that Kafka has lost at its end are counted, and are not called out of place."""
    found = _compared(_records(0, 1), _records(0, 1, 2, 3, 4), _records(), log_end=2)
    assert (found["truncated"], found["lost"], found["out_of_place"]) == (3, 0, 0)
    assert not PartitionVerdict("t", 0, 5, **found).is_exact


def test_other_content_under_the_same_offset_is_seen() -> None:
    """A log that was truncated and grew again has the offsets, but not the records."""
    found = _compared(_records(0, 1, 2), _records(0, 1, 2, content="other"), _records())
    assert found["changed"] == 3
    assert not PartitionVerdict("t", 0, 5, **found).is_exact
    only_offsets = Records(_records(0, 1, 2).offsets)
    assert _compared(_records(0, 1, 2), only_offsets, _records())["changed"] is None


def test_a_checksum_tells_missing_empty_and_shifted_apart() -> None:
    """No two of these records have the same content."""
    contents = [(None, None), (b"", None), (None, b""), (b"a", b"b"), (b"ab", b""), (b"", b"ab")]
    assert len({checksum(*one) for one in contents}) == len(contents)


def test_rows_behind_a_deletion_vector_are_not_called_exact(tmp_path: Path) -> None:
    """A table whose rows were deleted without rewriting files cannot be verified."""
    _table(tmp_path, 2)
    log = tmp_path / "t" / "_delta_log"
    actions = [json.loads(line) for line in (log / f"{1:020d}.json").read_text().splitlines()]
    added = next(one["add"] for one in actions if "add" in one)
    vector = {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
    entry = [{"add": {**added, "deletionVector": vector}}, {"remove": {"path": added["path"]}}]
    (log / f"{2:020d}.json").write_text("".join(f"{json.dumps(one)}\n" for one in entry))
    lake = Lake.at(str(tmp_path))
    state = lake.table("t")
    assert state is not None
    assert len(state.files) == 2
    with pytest.raises(NotVerifiableError, match="deletion vectors"):
        records_of_topic(lake, "t", state, "t", "id", with_content=True)


def test_keys_and_values_are_compared_where_the_table_has_both(tmp_path: Path) -> None:
    """A raw table gives checksums; a table without the value gives offsets only."""
    rows = {"topic": ["t"], "partition": pa.array([0], pa.int32()), "offset": [7]}
    content = {"key": pa.array([None], pa.binary()), "value": pa.array([b"v"], pa.binary())}
    write_deltalake(tmp_path / "raw", pa.table({**rows, **content}))
    write_deltalake(tmp_path / "typed", pa.table(rows))
    lake = Lake.at(str(tmp_path))
    for table, known in (("raw", [checksum(None, b"v")]), ("typed", None)):
        state = lake.table(table)
        assert state is not None
        found = records_of_topic(lake, table, state, "t", "id", with_content=True)[0].checksums
        assert (None if found is None else found.tolist()) == known


@pytest.mark.parametrize("tool", ["compact", "delete"])
def test_a_file_that_another_tool_rewrote_is_read_alike(tmp_path: Path, tool: str) -> None:
    """Deltalake stores texts and bytes as views when it rewrites a file; they count the same."""
    for start in (0, 1):
        rows = {
            "topic": ["other", "t", "other"],
            "partition": pa.array([0] * 3, pa.int32()),
            "offset": [start, start, start + 7],
            "key": pa.array([None] * 3, pa.binary()),
            "value": pa.array([b"v"] * 3, pa.binary()),
        }
        write_deltalake(tmp_path / "raw", pa.table(rows), mode="append")
    table = DeltaTable(tmp_path / "raw")
    table.optimize.compact() if tool == "compact" else table.delete('"offset" >= 7')
    lake = Lake.at(str(tmp_path))
    state = lake.table("raw")
    assert state is not None
    found = records_of_topic(lake, "raw", state, "t", "id", with_content=True)[0]
    assert sorted(found.offsets.tolist()) == [0, 1]
    assert found.checksums is not None
    assert found.checksums.tolist() == [checksum(None, b"v")] * 2
