"""Dead letters that an earlier owner kept: they are looked for before a partition goes on."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from deltalake import DeltaTable, write_deltalake

from kit.lake.faulty_pipeline import (
    ORDERS,
    OTHERS,
    RECORDS,
    Carried,
    Panic,
    Wrong,
    fails_at,
)
from penstock.pipeline import (
    LakeRefusedError,
    SchemaChangedError,
)
from penstock.pipeline.lake_commit import LakeTable
from penstock.pipeline.ways import Way


def _dead_letters_unreadable(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    right = LakeTable.next_offsets

    def raises(self: LakeTable, names: Iterable[str]) -> dict[str, int | None]:
        if self.name == "g_dead_letters":
            raise error
        return right(self, names)

    monkeypatch.setattr(LakeTable, "next_offsets", raises)


@pytest.mark.parametrize(
    "error", [Panic("native"), ValueError("odd"), SystemExit(1), LakeRefusedError("away")]
)
def test_unreadable_dead_letters_put_off_the_partitions_that_need_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """Of a partition whose letters were looked for before, none can have come since."""
    carried = Carried(tmp_path, lambda *_: None)
    assert carried.carry(OTHERS, to=5).carried == {OTHERS: 5}
    with monkeypatch.context() as patched:
        _dead_letters_unreadable(patched, error)
        letters = carried.pipeline.table("g_dead_letters")
        result = carried.carry(OTHERS, ORDERS[0])
    assert result.carried == {OTHERS: RECORDS}
    (failure,) = result.failures.values()
    assert set(result.failures) == {ORDERS[0]}
    assert isinstance(failure, LakeRefusedError)
    assert not failure.is_lasting
    assert carried.pipeline.table("g_dead_letters") is not letters, "it is opened anew"
    assert carried.carry(ORDERS[0]).carried == {ORDERS[0]: RECORDS}


def test_a_kept_letter_does_not_land_in_its_table_while_letters_are_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new owner whose records all pass must not carry one that an earlier owner has kept."""

    def die(point: str) -> None:
        if point == "dead-letters-committed":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Carried(tmp_path, fails_at(OTHERS, 4), at_point=die).carry(OTHERS)
    carried = Carried(tmp_path, lambda *_: None)
    _dead_letters_unreadable(monkeypatch, LakeRefusedError("away"))
    assert set(carried.carry(OTHERS).failures) == {OTHERS}
    assert carried.offsets(OTHERS) == [0, 1, 2, 3]


@pytest.mark.parametrize("wrong", [lambda *_: None, fails_at(OTHERS, 6)], ids=["fine", "in parts"])
def test_a_range_with_kept_letters_never_passes_through(tmp_path: Path, wrong: Wrong) -> None:
    """Only the way through a DataFrame leaves them out; also when workers are retried at once."""

    def die(point: str) -> None:
        if point == "dead-letters-committed":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Carried(tmp_path, fails_at(OTHERS, 4), at_point=die).carry(OTHERS)
    carried = Carried(tmp_path, wrong, workers_retry="1ms")
    assert carried.carry(OTHERS).carried == {OTHERS: RECORDS}
    assert set(carried.ways) == {Way.CONNECTOR}


def test_a_table_that_was_replaced_is_opened_anew_by_the_next_batch(tmp_path: Path) -> None:
    """The batch that was under way is refused; the next one looks at the table as it is now."""

    def replace(point: str) -> None:
        rows = pa.table({"topic": ["x"], "partition": pa.array([0], pa.int32())})
        if point == "files-written" and len(carried.rows("others")) == 5:
            write_deltalake(tmp_path / "others", rows, mode="overwrite", schema_mode="overwrite")

    carried = Carried(tmp_path, lambda *_: None, at_point=replace)
    assert carried.carry(OTHERS, to=5).carried == {OTHERS: 5}
    (failure,) = carried.carry(OTHERS).failures.values()
    assert isinstance(failure, SchemaChangedError)
    assert "offset" in str(failure)
    assert carried.carry(OTHERS).carried == {OTHERS: RECORDS}
    rows = DeltaTable(tmp_path / "others").to_pyarrow_table()
    assert set(rows["offset"].to_pylist()) == {None, 5, 6, 7, 8, 9}
