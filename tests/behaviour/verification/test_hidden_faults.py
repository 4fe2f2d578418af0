"""Losses, doubles and changes that hide from a plain count; real Delta tables, no Kafka."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.transaction import AddAction

from penstock.errors import UnreachableError
from penstock.kafka_io.administration import ClusterView, TopicLookup, TopicView
from penstock.kafka_io.leader_epochs import EPOCH_UNKNOWN, EpochEndReader
from penstock.kafka_io.offset_lookup import LogPosition, OffsetLookup
from penstock.model import TopicPartition
from penstock.settings import Settings
from penstock.settings.sections import KafkaSettings
from penstock.verification import VerificationResult, check
from penstock.verification.lake_records import NotVerifiableError
from penstock.verification.records import Records, checksums_of

RECORDS = 5


class Kafka:
    """Topics a and b, with two partitions of five records each."""

    def __init__(self, _: KafkaSettings) -> None:
        pass

    def cluster(self) -> ClusterView:
        return ClusterView((1,), {"a": 2, "b": 2})

    def look_up_topics(self, names: Iterable[str]) -> TopicLookup:
        views = {name: TopicView(name, f"id-{name}", 2, 1, is_internal=False) for name in names}
        return TopicLookup(views, {})

    def look_up_offsets(
        self, places: Iterable[TopicPartition], position: LogPosition, *, waits_for_leaders: bool
    ) -> OffsetLookup:
        assert waits_for_leaders
        at = 0 if position is LogPosition.START else RECORDS
        return OffsetLookup(dict.fromkeys(places, at))

    def topic_settings(self, names: Iterable[str]) -> dict[str, dict[str, str]]:
        return {name: {"cleanup.policy": "delete"} for name in names}


def _kafka_records(_: Any, place: TopicPartition, start: int, end: int) -> Records:
    offsets = np.arange(start, max(start, end), dtype=np.int64)
    pairs = ((None, f"{place.topic} {offset}".encode()) for offset in offsets)
    return Records(offsets, checksums_of(pairs, len(offsets)))


@pytest.fixture(autouse=True)
def _kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "Administration", Kafka)
    monkeypatch.setattr(check._Check, "_kafka_records", _kafka_records)


def _rows(topic: str, offsets: Iterable[int | None], partition: int = 0, **more: Any) -> pa.Table:
    listed = list(offsets)
    columns = {
        "topic": [topic] * len(listed),
        "partition": pa.array([partition] * len(listed), pa.int32()),
        "offset": pa.array(listed, pa.int64()),
        "key": pa.array([None] * len(listed), pa.binary()),
        "value": pa.array([f"{topic} {one}".encode() for one in listed], pa.binary()),
    }
    return pa.table({**columns, **more})


def _commit(
    root: Path, table: str, path: str, rows: pa.Table, ledger: Mapping[str, int] | None = None
) -> None:
    """Add one file at a path of our own, with these ledger entries."""
    folder = root / table
    if not (folder / "_delta_log").exists():
        DeltaTable.create(folder, schema=rows.schema)
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    pa.parquet.write_table(rows, file)
    opened = DeltaTable(folder)
    opened.create_write_transaction(
        [AddAction(path, file.stat().st_size, {}, 1, True, "{}")],
        "append",
        opened.schema(),
        commit_properties=CommitProperties(
            app_transactions=[Transaction(name, to) for name, to in (ledger or {}).items()]
        ),
    )


def _verify(root: Path, topics: Iterable[str] = ("a",), **options: Any) -> VerificationResult:
    lake = {"root": str(root), "group": "g", "dead_letters": "letters", **options.pop("lake", {})}
    return check.verify(Settings.model_validate({"lake": lake}), topics, **options)


A_DONE = {"g/id-a/0": RECORDS}


def test_a_whole_table_is_exact(tmp_path: Path) -> None:
    """The tables of this file without their faults are exact, so that each fault is what shows."""
    _commit(tmp_path, "a", "data/g/1-1/1.id-a.0.new/topic-id-a/p", _rows("a", range(5)), A_DONE)
    assert _verify(tmp_path).is_exact


def test_rows_of_another_topic_do_not_stand_in_for_lost_ones(tmp_path: Path) -> None:
    """Two topics share a table without a column `topic`: a lost one is not called exact."""
    shared = {"tables": {"a": {"table": "both"}, "b": {"table": "both"}}}
    rows = _rows("b", range(5)).select(["partition", "offset"])
    ledger = {**A_DONE, "g/id-b/0": RECORDS}
    _commit(tmp_path, "both", "data/g/1-1/1.id-a.0.new/mixed-0/p", rows, ledger)
    result = _verify(tmp_path, ["a", "b"], lake=shared)
    assert not result.is_exact
    assert set(result.unchecked) == {"a", "b"}


def test_a_column_in_the_path_tells_topics_apart(tmp_path: Path) -> None:
    """A table that is partitioned by the topic has it in no file, and is checked all the same."""
    shared = {"tables": {name: {"table": "both", "partition_by": ["topic"]} for name in "ab"}}
    rows = pa.concat_tables([_rows("a", range(4)), _rows("b", range(5))])
    entries = [Transaction("g/id-a/0", RECORDS), Transaction("g/id-b/0", RECORDS)]
    write_deltalake(
        tmp_path / "both",
        rows,
        partition_by=["topic"],
        commit_properties=CommitProperties(app_transactions=entries),
    )
    lost = {one.topic: one.lost for one in _verify(tmp_path, ["a", "b"], lake=shared).partitions}
    assert lost == {"a": 1, "b": 0}


def test_rows_of_a_partition_without_a_ledger_entry_are_out_of_place(tmp_path: Path) -> None:
    """Nobody committed them: also when the whole ledger of the topic is gone."""
    path = "data/g/1-1/1.id-a.0.new/topic-id-a/p"
    _commit(tmp_path, "a", path, _rows("a", range(5)), A_DONE)
    _commit(tmp_path, "a", f"{path}2", _rows("a", range(3), partition=1))
    _commit(tmp_path, "b", "data/g/1-1/1.id-b.0.new/topic-id-b/p", _rows("b", range(5)))
    result = _verify(tmp_path, ["a", "b"])
    assert not result.is_exact
    places = {(one.topic, one.partition): one.out_of_place for one in result.partitions}
    assert places == {("a", 0): 0, ("a", 1): 3, ("b", 0): 5}


def test_partitions_that_another_group_carries_are_its_own(tmp_path: Path) -> None:
    """Two groups share a table and divide its partitions."""
    path = "1-1/1.id-a.0.new/topic-id-a/p"
    _commit(tmp_path, "a", f"data/g/{path}", _rows("a", range(5)), A_DONE)
    others = _rows("a", range(5), partition=1)
    _commit(tmp_path, "a", f"data/h/{path}", others, {"h/id-a/1": RECORDS})
    assert _verify(tmp_path).is_exact


def test_one_file_without_content_does_not_hide_a_change_in_another(tmp_path: Path) -> None:
    """What can be compared is compared."""
    path = "data/g/1-1/1.id-a.0.new/topic-id-a/p"
    changed = pa.array([b"a 0", b"other", b"a 2"], pa.binary())
    _commit(tmp_path, "a", path, _rows("a", range(3), value=changed), A_DONE)
    _commit(tmp_path, "a", f"{path}2", _rows("a", range(3, 5)).drop_columns(["key", "value"]))
    (verdict,) = _verify(tmp_path).partitions
    assert (verdict.lost, verdict.changed) == (0, 1)


def _letters(topic: str, offset: int, value: bytes | None) -> pa.Table:
    more = {"reason": ["x"], "topic_id": [f"id-{topic}"], "value": pa.array([value], pa.binary())}
    return _rows(topic, [offset], **more)


@pytest.mark.parametrize(
    ("group", "value", "faults"),
    [
        ("g", b"a 4", (0, 0)),
        ("g", None, (0, 0)),
        ("g", b"other", (0, 1)),
        ("h", b"a 4", (1, 0)),
    ],
    ids=["whole", "without content", "another content", "of another group"],
)
def test_a_dead_letter_stands_for_its_own_record_only(
    tmp_path: Path, group: str, value: bytes | None, faults: tuple[int, int]
) -> None:
    """Its content counts, and another group's dead letter does not replace a lost record."""
    _commit(tmp_path, "a", "data/g/1-1/1.id-a.0.new/topic-id-a/p", _rows("a", range(4)), A_DONE)
    path = f"data/{group}/1-1/1.id-a.0.new/p"
    _commit(tmp_path, "letters", path, _letters("a", 4, value))
    (verdict,) = _verify(tmp_path).partitions
    assert (verdict.lost, verdict.changed) == faults


@pytest.mark.parametrize(("end", "truncated"), [(5, 0), (3, 2), (EPOCH_UNKNOWN, 5)])
def test_a_log_that_lost_records_and_grew_again_is_seen_by_its_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: int, truncated: int
) -> None:
    """Also when only offsets are compared, which are all there again."""

    def look_up(_: Any, epochs: Mapping[TopicPartition, int]) -> OffsetLookup:
        assert epochs == {TopicPartition("a", 0): 6}
        return OffsetLookup({TopicPartition("a", 0): end})

    monkeypatch.setattr(EpochEndReader, "look_up", look_up)
    ledger = {**A_DONE, "leader-epoch/g/id-a/0": 7}
    _commit(tmp_path, "a", "data/g/1-1/1.id-a.0.new/topic-id-a/p", _rows("a", range(5)), ledger)
    (verdict,) = _verify(tmp_path, offsets_only=True).partitions
    assert (verdict.truncated, verdict.is_exact) == (truncated, not truncated)


def test_a_leader_epoch_that_cannot_be_asked_for_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log may have lost records and have grown again: it is not called exact."""
    place, away = TopicPartition("a", 0), UnreachableError("No broker answers.")
    monkeypatch.setattr(EpochEndReader, "look_up", lambda *_: OffsetLookup(failures={place: away}))
    ledger = {**A_DONE, "leader-epoch/g/id-a/0": 7}
    _commit(tmp_path, "a", "data/g/1-1/1.id-a.0.new/topic-id-a/p", _rows("a", range(5)), ledger)
    found = _verify(tmp_path, offsets_only=True)
    assert found.unchecked == {"a-0": "No broker answers."}
    assert not found.is_exact


@pytest.mark.parametrize("column", ["partition", "offset"])
def test_rows_without_a_place_are_no_rows_of_kafka(tmp_path: Path, column: str) -> None:
    """They were called unknown, as if retention had removed their records."""
    kind = pa.int32() if column == "partition" else pa.int64()
    odd = _rows("a", [7])
    odd = odd.set_column(odd.column_names.index(column), column, pa.nulls(1, kind))
    rows = pa.concat_tables([_rows("a", range(5)), odd])
    _commit(tmp_path, "a", "data/g/1-1/1.id-a.0.new/topic-id-a/p", rows, A_DONE)
    with pytest.raises(NotVerifiableError, match="without a partition or an offset"):
        _verify(tmp_path)
