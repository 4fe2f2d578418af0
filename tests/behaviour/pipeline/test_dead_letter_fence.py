"""The fence in the dead letters' ledger, on real Delta tables, without Spark."""

from pathlib import Path

import pytest

from penstock.model import Epoch, OffsetRange, TopicPartition
from penstock.pipeline.batch import Claim, PlannedRange
from penstock.pipeline.dead_letters import (
    dead_letter_moves,
    ledger_of_dead_letters,
    put_up_fence,
)
from penstock.pipeline.lake_commit import LakeTable, StaleLedgerError
from penstock.settings.sections import LakeSettings

PLACE = TopicPartition("orders", 0)


def _letters(root: Path) -> LakeTable:
    return LakeTable(LakeSettings(root=str(root)), "dead_letters", has_fences=True)


def _planned(number: int | None, start: int = 5) -> list[PlannedRange]:
    claim = None if number is None else Claim("c1", Epoch(1, number))
    return [PlannedRange(OffsetRange(PLACE, start, start + 5), "id", start, claim)]


def _commit(table: LakeTable, planned: list[PlannedRange], batch: str) -> None:
    ledger = ledger_of_dead_letters(table, "g", planned)
    table.commit(dead_letter_moves("g", planned, ledger), [], batch=batch)


def test_letters_of_an_older_claim_are_refused_behind_the_fence(tmp_path: Path) -> None:
    """Also when the older one has committed before and its offset has not moved since."""
    zombie, next_owner = _letters(tmp_path), _letters(tmp_path)
    put_up_fence(zombie, "g", _planned(1), "z")
    _commit(zombie, _planned(1), "z1")
    later = _planned(1, start=10)
    ledger = ledger_of_dead_letters(zombie, "g", later)
    put_up_fence(next_owner, "g", _planned(2, start=10), "h")
    assert next_owner.next_offsets(["g/id/0"]) == {"g/id/0": 10}
    with pytest.raises(StaleLedgerError):
        zombie.commit(dead_letter_moves("g", later, ledger), [], batch="z2")
    _commit(next_owner, _planned(2, start=10), "h1")
    assert next_owner.next_offsets(["g/id/0"]) == {"g/id/0": 15}


def test_whoever_comes_late_puts_up_no_fence(tmp_path: Path) -> None:
    """Behind a newer owner's fence an older claim learns that it has lost."""
    put_up_fence(_letters(tmp_path), "g", _planned(2), "h")
    with pytest.raises(StaleLedgerError):
        put_up_fence(_letters(tmp_path), "g", _planned(1), "z")


def test_a_fence_is_put_up_once_a_claim(tmp_path: Path) -> None:
    """The second batch under the same claim does not touch the letters' log."""
    table = _letters(tmp_path)
    log = tmp_path / "dead_letters" / "_delta_log"
    put_up_fence(table, "g", _planned(1), "a")
    versions = len(list(log.glob("*.json")))
    put_up_fence(table, "g", _planned(1, start=10), "b")
    assert len(list(log.glob("*.json"))) == versions
    put_up_fence(table, "g", _planned(2, start=10), "c")
    assert len(list(log.glob("*.json"))) == versions + 1


def test_without_a_claim_there_is_no_fence(tmp_path: Path) -> None:
    """A pipeline that is driven by hand has no epochs, and makes no table for nothing."""
    table = _letters(tmp_path)
    put_up_fence(table, "g", _planned(None), "a")
    assert not table.exists()
