"""Ids and times of commits, read from a lake that another program wrote."""

from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, Transaction, write_deltalake

from penstock.laboratory.campaign.lake_reading import NO_ID, commit_times, ids_in_lake
from penstock.laboratory.load import RecordForm, RecordMaker, lane_of
from penstock.model import TopicPartition

PLACE = TopicPartition("made-1", 2)


def written(folder: Path, values: list[bytes], **entries: int) -> None:
    ledger = [Transaction(name.replace("__", "/"), offset) for name, offset in entries.items()]
    write_deltalake(
        folder / "made-1",
        pa.table({"value": pa.array(values, pa.binary())}),
        mode="append",
        commit_properties=CommitProperties(app_transactions=ledger),
    )


def test_ids_are_read_from_the_values_with_their_repeats(tmp_path: Path) -> None:
    """A record twice in the table is twice in the count; a value without an id is seen too."""
    maker = RecordMaker(RecordForm(200), "p7", seed=1)
    values = [maker.record(PLACE, number, 1_700_000_000_000)[1] for number in (0, 1, 1, 12)]
    written(tmp_path, values[:2])
    written(tmp_path, [*values[2:], b"something else"])
    found = ids_in_lake(str(tmp_path), ["made-1", "no-such-table"])
    assert {lane: sorted(numbers.tolist()) for lane, numbers in found.items()} == {
        lane_of("p7", PLACE): [0, 1, 1, 12],
        NO_ID: [0],
    }


def test_only_offsets_of_the_ledger_are_commits(tmp_path: Path) -> None:
    """A compaction and the epochs beside the offsets are none."""
    written(tmp_path, [b"x"], group__topic__2=5, group__topic__2__epoch=7)
    written(tmp_path, [b"x"], group__compaction__1=1)
    written(tmp_path, [b"x"], group__topic__2=9)
    found = commit_times(str(tmp_path), ["made-1", "no-such-table"])
    assert [(one.topic_id, one.partition, one.offset) for one in found] == [
        ("topic", "made-1-2", 5),
        ("topic", "made-1-2", 9),
    ]
    assert 0 < found[0].at_ms <= found[1].at_ms
