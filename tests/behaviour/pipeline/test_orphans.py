"""Which files can go: by the ledger, never by age."""

from pathlib import Path

from penstock.model import OffsetRange, TopicPartition
from penstock.pipeline.batch import PlannedRange, Writer, batch_folder
from penstock.pipeline.orphans import Provenance, orphans_among

PLACE = TopicPartition("orders", 3)


def _path(writer: Writer, ledger_offset: int | None, name: str = "part-0.parquet") -> str:
    start = ledger_offset or 0
    planned = PlannedRange(OffsetRange(PLACE, start, start + 5), "top_ic-ID", ledger_offset)
    return str(Path(batch_folder("g", writer, 7, planned)) / "topic-top_ic-ID" / name)


def test_a_path_tells_where_it_came_from() -> None:
    """Group, writer and the ledger entry of a batch can be read back from its files' paths."""
    assert Provenance.of(_path(Writer(4, 2), 12)) == Provenance(
        "g", Writer(4, 2), "g/top_ic-ID/3", 12
    )
    new = Provenance.of(_path(Writer(4, 2), None))
    assert new is not None
    assert new.expected is None


def test_foreign_files_are_never_touched() -> None:
    """A path no writer of ours makes is no orphan."""
    foreign = [
        "part-0.parquet",
        "data/x.parquet",
        "data/g/w/1.a.b.c/f.parquet",
        "a/b/c/d/e.parquet",
    ]
    assert orphans_among(foreign, known=frozenset(), ledger={}) == []


def test_a_paused_writer_keeps_its_files_and_a_beaten_one_loses_them() -> None:
    """While the ledger says what a batch was planned from it may commit; afterwards never."""
    path = _path(Writer(1, 1), 12)
    assert orphans_among([path], known=frozenset(), ledger={"g/top_ic-ID/3": 12}) == []
    assert orphans_among([path], known=frozenset(), ledger={"g/top_ic-ID/3": 20}) == [path]


def test_a_first_batch_is_over_once_the_ledger_has_an_entry() -> None:
    """A batch for a partition that the ledger had never seen follows the same rule."""
    path = _path(Writer(1, 1), None)
    assert orphans_among([path], known=frozenset(), ledger={"g/top_ic-ID/3": None}) == []
    assert orphans_among([path], known=frozenset(), ledger={"g/top_ic-ID/3": 5}) == [path]


def test_files_the_log_knows_stay() -> None:
    """Named files, and those compaction replaced, are the vacuum's business."""
    path = _path(Writer(1, 1), 12)
    assert orphans_among([path], known=frozenset({path}), ledger={"g/top_ic-ID/3": 20}) == []
