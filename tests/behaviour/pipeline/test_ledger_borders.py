"""A table whose log is broken concerns its own partitions alone; real Delta tables, no Spark."""

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.model import Epoch, TopicPartition
from penstock.pipeline import LakeRefusedError, Pipeline
from penstock.pipeline.batch import Claim
from penstock.pipeline.lake_commit import LakeTable, LedgerMove
from penstock.pipeline.upkeep import keep_up, remove_orphans_of
from penstock.settings import Settings
from penstock.settings.sections import LakeSettings

SCHEMA = (
    '{"type":"struct","fields":[{"name":"offset","type":"long","nullable":true,"metadata":{}}]}'
)
GOOD, BAD, NEW = (TopicPartition(name, 0) for name in ("good", "bad", "new"))
IDS = {GOOD: "id-good", BAD: "id-bad", NEW: "id-new"}


class _Panic(BaseException):
    """What native code raises when it panics: no Exception."""


def _settings(root: Path) -> Settings:
    return Settings(lake=LakeSettings(root=str(root), group="g"))


def _tables(root: Path) -> Pipeline:
    """Two tables with one commit of one partition each."""
    lake = _settings(root).lake
    for place in (GOOD, BAD):
        table = LakeTable(lake, place.topic)
        table.open_for(SCHEMA, ())
        claim = Claim("c", Epoch(1, 4))
        move = LedgerMove(place, f"g/{IDS[place]}/0", None, 7, claim, leader_epoch=2)
        table.commit([move], [], batch="b")
        (root / place.topic / "data" / "g").mkdir(parents=True)
    return Pipeline(_settings(root), None)


def _newest(root: Path) -> Path:
    return max((root / "bad" / "_delta_log").glob("*.json"))


def _cut(root: Path) -> None:
    newest = _newest(root)
    newest.write_text(newest.read_text(encoding="utf-8")[:50], encoding="utf-8")


def _no_text(root: Path) -> None:
    _newest(root).write_bytes(b"\xff\xfe\x00")


def _gap(root: Path) -> None:
    (root / "bad" / "_delta_log" / f"{0:020d}.json").unlink()


def _checkpoint(root: Path) -> None:
    log = root / "bad" / "_delta_log"
    (log / f"{1:020d}.checkpoint.parquet").write_bytes(b"PAR1 nonsense")
    (log / "_last_checkpoint").write_text('{"version":1,"size":3}', encoding="utf-8")


@pytest.mark.parametrize("harm", [_cut, _no_text, _gap, _checkpoint])
def test_a_broken_log_fails_its_own_partitions(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    """The other table's offsets and epochs are read, and the failure names the broken table."""
    pipeline = _tables(tmp_path)
    harm(tmp_path)
    view = pipeline.read_ledger(IDS, "c")
    assert set(view.failures) == {BAD}
    assert isinstance(view.failures[BAD], LakeRefusedError)
    assert str(tmp_path / "bad") in str(view.failures[BAD])
    assert "\n" not in str(view.failures[BAD]), "no stack of native code"
    assert view.next_offsets == {GOOD: 7, NEW: None}
    assert view.last_epochs == {GOOD: Epoch(1, 4)}
    assert view.leader_epochs == {GOOD: 2}


@pytest.mark.parametrize("kind", [ValueError, _Panic, SystemExit])
def test_what_nobody_foresaw_fails_its_own_partitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    """Also what is no Exception; the table is opened anew by the next look."""
    pipeline = _tables(tmp_path)
    right = LakeTable.leader_epochs

    def raises(self: LakeTable, names: list[str]) -> dict[str, int]:
        if self.name == "bad":
            raise kind("nobody foresaw this")
        return right(self, names)

    monkeypatch.setattr(LakeTable, "leader_epochs", raises)
    broken = pipeline.table("bad")
    view = pipeline.read_ledger(IDS, "c")
    assert set(view.failures) == {BAD}
    assert "table bad" in str(view.failures[BAD])
    assert "nobody foresaw this" in str(view.failures[BAD])
    assert set(view.next_offsets) == {GOOD, NEW}
    monkeypatch.undo()
    assert pipeline.table("bad") is not broken
    assert not pipeline.read_ledger(IDS, "c").failures


def test_without_an_authority_no_epoch_counts(tmp_path: Path) -> None:
    """Offsets and leader epochs are read all the same."""
    view = _tables(tmp_path).read_ledger(IDS, None)
    assert (view.last_epochs, view.leader_epochs) == ({}, {GOOD: 2, BAD: 2})


def test_upkeep_goes_on_behind_a_broken_table(tmp_path: Path) -> None:
    """The other tables are maintained and searched, and then the broken one is named."""
    _tables(tmp_path)
    _cut(tmp_path)
    lake = _settings(tmp_path).lake
    reports = keep_up(lake)
    assert next(reports).table == "good"
    with pytest.raises(LakeRefusedError, match="The table bad could not be maintained"):
        next(reports)
    orphan = tmp_path / "good/data/g/1-1/5.id-good.0.new/topic-x/part-0.parquet"
    broken = tmp_path / "bad/data/g/1-1/5.id-bad.0.new/topic-x/part-0.parquet"
    for path in (orphan, broken):
        path.parent.mkdir(parents=True)
        path.touch()
    with pytest.raises(LakeRefusedError, match="bad"):
        remove_orphans_of(lake, 1)
    assert not orphan.exists()
    assert broken.exists()
