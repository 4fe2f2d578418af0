"""The status of a group as records: cut, joined, and which of two counts."""

import json
import zlib

import pytest

from penstock.messages import status_records
from penstock.messages.status_records import (
    REPLACED_WITHIN_MS,
    StatusAssembler,
    StatusPart,
    WholeStatus,
    status_parts,
)


def parts(text: str, *, epoch: int = 1, number: int = 1, group: str = "g") -> list[StatusPart]:
    return list(status_parts(group, epoch, number, text))


def content(figure: object) -> str:
    return json.dumps({"status": {"figure": figure}})


def given(
    assembler: StatusAssembler, records: list[StatusPart], written_unix_ms: int = 0
) -> list[bool]:
    return [assembler.add(one.value, one.headers, written_unix_ms) for one in records]


def seen(assembler: StatusAssembler) -> object:
    assert assembler.newest is not None
    return assembler.newest.unpacked()["status"]["figure"]


def test_a_status_in_parts_is_whole_with_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts may come in any order; until all are there, there is nothing new."""
    monkeypatch.setattr(status_records, "PART_BYTES_MAX", 20)
    text = content("a long text of many different words, which does not compress into 20 bytes")
    records = parts(text)
    assert len(records) > 2
    assert len({one.key for one in records}) == len(records)
    assembler = StatusAssembler("g")
    assert given(assembler, records[::-1]) == [False] * (len(records) - 1) + [True]
    assert seen(assembler) == json.loads(text)["status"]["figure"]


def test_parts_of_two_are_never_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer status in the middle of an older one begins anew."""
    monkeypatch.setattr(status_records, "PART_BYTES_MAX", 20)
    first, second = parts(content("x y z " * 9)), parts(content("k l m " * 9), number=2)
    assembler = StatusAssembler("g")
    assert given(assembler, [*first[:-1], *second[1:]]) == [False] * (2 * len(first) - 2)
    assert assembler.newest is None


def test_the_key_is_the_same_in_every_status() -> None:
    """So that compaction keeps only the newest."""
    assert parts(content(1))[0].key == parts(content(2), epoch=9, number=4)[0].key


def test_a_replaced_controller_does_not_count() -> None:
    """It may write once more: the newer one's status stays."""
    assembler = StatusAssembler("g")
    given(assembler, parts(content("new"), epoch=8))
    assert given(assembler, parts(content("old"), epoch=7, number=900), 5_000) == [False]
    assert seen(assembler) == "new"
    assert given(assembler, parts(content("newer"), epoch=8, number=2), 6_000) == [True]
    assert seen(assembler) == "newer"


def test_topics_that_were_made_anew_begin_with_low_epochs() -> None:
    """A lower epoch counts when the higher one has been silent for long."""
    assembler = StatusAssembler("g")
    given(assembler, parts(content("before"), epoch=8_000))
    assert given(assembler, parts(content("after")), REPLACED_WITHIN_MS + 1) == [True]
    assert seen(assembler) == "after"


def test_other_records_are_skipped() -> None:
    """Another group's, one without a value, and figures that are none."""
    assembler = StatusAssembler("g")
    (part,) = parts(content(1))
    (other,) = parts(content(1), group="h")
    strange = dict(part.headers) | {"parts": b"0"}
    unread = dict(part.headers) | {"number": b"many"}
    assert not assembler.add(None, part.headers, 0)
    assert not assembler.add(other.value, other.headers, 0)
    assert not assembler.add(part.value, (), 0)
    assert not assembler.add(part.value, tuple(strange.items()), 0)
    assert not assembler.add(part.value, tuple(unread.items()), 0)
    assert assembler.newest is None


@pytest.mark.parametrize(
    "packed",
    [b"", b"nonsense", zlib.compress(b"[]"), zlib.compress(b"{}"), zlib.compress(b"{} ")[:-2]],
)
def test_what_is_no_status_is_refused(packed: bytes) -> None:
    """Whoever may write to the topic can write anything: it is a ValueError, never another one."""
    with pytest.raises(ValueError, match="it"):
        WholeStatus(1, 1, 0, packed).unpacked()


def test_a_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small record must not fill the memory of who reads it."""
    monkeypatch.setattr(status_records, "STATUS_BYTES_MAX", 1_000)
    with pytest.raises(ValueError, match="too large"):
        WholeStatus(1, 1, 0, zlib.compress(b" " * 1_000_000)).unpacked()


def test_a_status_that_would_need_too_many_records_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The controller goes on without it, and says so."""
    monkeypatch.setattr(status_records, "PART_BYTES_MAX", 1)
    text = "".join(chr(33 + number * 7 % 90) for number in range(200))
    with pytest.raises(ValueError, match="parts of 1 bytes"):
        list(status_parts("penstock", 1, 1, text))


def test_a_later_controller_counts_unless_it_was_overtaken_for_long() -> None:
    """Whichever of the two is asked."""
    later = WholeStatus(5, 1, 10_000, b"")
    former = WholeStatus(4, 9, 10_001, b"")
    assert later.counts_more_than(former)
    assert not former.counts_more_than(later)
    anew = WholeStatus(4, 9, 10_000 + REPLACED_WITHIN_MS + 1, b"")
    assert anew.counts_more_than(later)
    assert not later.counts_more_than(anew)
