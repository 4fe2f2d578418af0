"""The border of a failure: a record, a partition, a table. Real Delta tables, no Spark."""

import itertools
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from kit.lake.faulty_pipeline import (
    ORDERS,
    OTHERS,
    RECORDS,
    WRITTEN_AT,
    Carried,
    Panic,
    fails_at,
)
from penstock.model import TopicPartition
from penstock.pipeline import (
    Pipeline,
    RecordUnreadableError,
    SparkMemoryError,
    StaleWriterError,
    UnforeseenError,
    carry,
    narrowing,
    run_batch,
)
from penstock.pipeline.dead_letters import LETTERS_SCHEMA
from penstock.pipeline.lake_commit import LakeTable, LedgerMove
from penstock.pipeline.ways import Way

OLD_LETTERS = json.dumps(
    {
        "type": "struct",
        "fields": json.loads(LETTERS_SCHEMA)["fields"][:7],
    }
)


def test_a_table_of_dead_letters_of_an_older_release_goes_on(tmp_path: Path) -> None:
    """It gets the columns for time and headers; the letters it has are kept without them."""
    old = Carried(tmp_path, fails_at(ORDERS[1], 4, kind=OverflowError))
    letters = old.pipeline.table("g_dead_letters")
    letters.open_for(OLD_LETTERS, ())
    names = [one.name for one in DeltaTable(letters.storage.uri).schema().fields]
    assert "timestamp" not in names
    one_record_is_set_aside(tmp_path, OverflowError)


def one_record_is_set_aside(root: Path, kind: type[BaseException]) -> None:
    """The law that planted bugs break: one bad record costs no other record its place."""
    carried = Carried(root, fails_at(ORDERS[1], 4, kind=kind))
    result = carried.carry(*ORDERS, OTHERS)
    assert not result.failures
    assert result.carried == dict.fromkeys([*ORDERS, OTHERS], RECORDS)
    assert carried.offsets(ORDERS[1]) == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    for place in (ORDERS[0], ORDERS[2], OTHERS):
        assert carried.offsets(place) == list(range(RECORDS))
    (letter,) = carried.letters()
    reason = letter.pop("reason")
    assert "nobody foresaw this" in reason
    assert letter == {
        "topic": "orders",
        "partition": 1,
        "offset": 4,
        "topic_id": "id",
        "key": b"k",
        "value": b"4",
        "timestamp": WRITTEN_AT,
        "headers": [{"key": "trace", "value": b"7"}],
    }
    assert (result.records, result.dead_letters) == (40, 1)


@pytest.mark.parametrize("kind", [OverflowError, Panic, SystemExit])
def test_a_record_that_no_way_carries_is_a_dead_letter(
    tmp_path: Path, kind: type[BaseException]
) -> None:
    """It is found by halving; its partition and all others are carried to the end."""
    one_record_is_set_aside(tmp_path, kind)


@pytest.mark.parametrize(
    ("of", "name", "wrong"),
    [
        (run_batch, "ENDS_THE_PROCESS", (Panic,)),
        (carry, "_FOUND_BY_HALVING", ()),
        (carry, "OF_ONE_RECORD", ()),
        (narrowing, "OF_ONE_RECORD", ()),
        (Pipeline, "_keep_as_dead_letter", lambda *_: None),
    ],
    ids=[
        "a panic is not caught",
        "tables are not halved",
        "a bad record is put off for ever",
        "ranges are not halved",
        "a bad record is skipped",
    ],
)
def test_planted_bugs_about_borders_are_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: Any, name: str, wrong: Any
) -> None:
    """Each bug widens the border of a failure or loses the record, and the law fails."""
    monkeypatch.setattr(of, name, wrong)
    with pytest.raises((AssertionError, Panic)):
        one_record_is_set_aside(tmp_path, Panic)


def test_what_fails_for_every_record_sets_none_aside(tmp_path: Path) -> None:
    """The fault is the table's or the machine's: its partition is put off, the others go on."""
    carried = Carried(tmp_path, fails_at(ORDERS[1], *range(RECORDS)))
    result = carried.carry(*ORDERS)
    assert set(result.failures) == {ORDERS[1]}
    assert isinstance(result.failures[ORDERS[1]], UnforeseenError)
    assert set(result.carried) == {ORDERS[0], ORDERS[2]}
    assert carried.letters() == []
    assert carried.pipeline.next_offsets({ORDERS[1]: "id"}) == {ORDERS[1]: None}


@pytest.mark.parametrize("there", [range(0, RECORDS, 2), (4, 9), (0, 4)])
def test_the_nearest_record_shows_what_is_at_fault(tmp_path: Path, there: Collection[int]) -> None:
    """Also where transaction markers or compaction left no record next to the bad one."""
    carried = Carried(tmp_path, fails_at(OTHERS, 4), there)
    result = carried.carry(OTHERS)
    assert (result.carried, result.failures) == ({OTHERS: RECORDS}, {})
    assert [one["offset"] for one in carried.letters()] == [4]
    assert carried.offsets(OTHERS) == [one for one in there if one != 4]


def test_the_only_record_of_a_partition_is_tried_some_times(tmp_path: Path) -> None:
    """Nothing shows whether it is at fault: it is put off at first, and then a dead letter."""
    carried = Carried(tmp_path, fails_at(OTHERS, 4), [4])
    for _ in range(narrowing.ALONE_TRIED_MAX - 1):
        assert set(carried.carry(OTHERS).failures) == {OTHERS}
        assert carried.letters() == []
    assert carried.carry(OTHERS).carried == {OTHERS: RECORDS}
    assert [one["offset"] for one in carried.letters()] == [4]
    assert carried.pipeline._ways.failed_alone == {}


def test_tries_of_another_record_that_is_alone_do_not_count(tmp_path: Path) -> None:
    """Retention may remove one and leave the next."""
    carried = Carried(tmp_path, fails_at(OTHERS, 4), [4])
    carried.pipeline._ways.failed_alone[OTHERS] = (3, narrowing.ALONE_TRIED_MAX - 1)
    assert set(carried.carry(OTHERS).failures) == {OTHERS}
    assert carried.pipeline._ways.failed_alone == {OTHERS: (4, 1)}


def test_a_record_that_spark_has_no_memory_for_is_a_dead_letter(tmp_path: Path) -> None:
    """A longer range is left to smaller batches; a single record is judged by its neighbours."""

    def wrong(place: TopicPartition, offset: int, _: Way) -> BaseException | None:
        full = RuntimeError("java.lang.OutOfMemoryError: Java heap space")
        return full if place == OTHERS and offset == 1 else None

    carried = Carried(tmp_path, wrong)
    failures = carried.carry(OTHERS, ORDERS[0]).failures
    assert {type(one) for one in failures.values()} == {SparkMemoryError}
    assert carried.carry(OTHERS, ORDERS[0], most=1).carried == {OTHERS: 1, ORDERS[0]: 1}
    assert carried.carry(OTHERS, ORDERS[0], most=1).carried == {OTHERS: 2, ORDERS[0]: 2}
    assert carried.carry(OTHERS, ORDERS[0]).carried == {OTHERS: RECORDS, ORDERS[0]: RECORDS}
    assert [one["offset"] for one in carried.letters()] == [1]
    assert carried.offsets(ORDERS[0]) == list(range(RECORDS))


def test_a_single_record_is_tried_by_both_ways(tmp_path: Path) -> None:
    """What only one of them cannot carry is no dead letter."""

    def wrong(_: TopicPartition, offset: int, way: Way) -> BaseException | None:
        return OverflowError("not this way") if way is Way.PASS_THROUGH and offset == 4 else None

    carried = Carried(tmp_path, wrong)
    assert carried.carry(OTHERS).carried == {OTHERS: RECORDS}
    assert carried.letters() == []
    assert carried.ways == [Way.PASS_THROUGH, Way.CONNECTOR]


def test_what_kills_a_worker_of_spark_takes_the_other_way(tmp_path: Path) -> None:
    """A library crashed on a record: Spark is not lost, and the records need not wait."""

    def wrong(_: TopicPartition, offset: int, way: Way) -> BaseException | None:
        died = RuntimeError("SparkException: Python worker exited unexpectedly (crashed)")
        return died if way is Way.PASS_THROUGH and offset == 4 else None

    carried = Carried(tmp_path, wrong)
    assert carried.carry(OTHERS, ORDERS[0]).carried == {OTHERS: RECORDS, ORDERS[0]: RECORDS}
    assert carried.letters() == []


def test_a_worker_that_dies_once_is_no_reason_for_the_other_way(tmp_path: Path) -> None:
    """Something from outside killed it: the same way carries the same records a moment later."""
    deaths = iter(["the first"])

    def wrong(_: TopicPartition, offset: int, __: Way) -> BaseException | None:
        died = RuntimeError("SparkException: Python worker exited unexpectedly (crashed)")
        return died if offset == 4 and next(deaths, None) else None

    carried = Carried(tmp_path, wrong)
    assert carried.carry(OTHERS, ORDERS[0]).carried == {OTHERS: RECORDS, ORDERS[0]: RECORDS}
    assert set(carried.ways) == {Way.PASS_THROUGH}


def test_records_that_kafkas_clients_cannot_read_are_kept_without_content(tmp_path: Path) -> None:
    """The clients themselves say so: no neighbour is needed to believe them."""

    def wrong(_: TopicPartition, offset: int, __: Way) -> BaseException | None:
        return RecordUnreadableError("damaged") if offset < 9 else None

    carried = Carried(tmp_path, wrong)
    result = carried.carry(OTHERS)
    assert (result.carried, result.dead_letters) == ({OTHERS: RECORDS}, 9)
    assert carried.offsets(OTHERS) == [9]
    assert [(one["offset"], one["key"], one["value"]) for one in carried.letters()] == [
        (offset, None, None) for offset in range(9)
    ]


def test_the_search_leaves_the_rest_to_the_next_batch(tmp_path: Path) -> None:
    """Other partitions wait meanwhile, so it is bounded in time and goes on where it was."""
    seconds = itertools.count(0, 6)

    def wrong(_: TopicPartition, offset: int, __: Way) -> BaseException | None:
        return RecordUnreadableError("damaged") if offset < 5 else None

    carried = Carried(tmp_path, wrong, clock=lambda: float(next(seconds)))
    ends: list[int] = []
    while not ends or ends[-1] < RECORDS:
        result = carried.carry(OTHERS)
        assert not result.failures
        ends.append(result.carried[OTHERS])
        carried.ways.clear()
    assert ends == sorted(set(ends))
    assert len(ends) > 2
    assert [one["offset"] for one in carried.letters()] == list(range(5))
    assert carried.offsets(OTHERS) == list(range(5, RECORDS))


def test_a_crash_between_the_two_commits_keeps_one_dead_letter(tmp_path: Path) -> None:
    """The dead letter is committed, its table is not: the next batch finds it there."""
    wrong = fails_at(OTHERS, 4)

    def die(point: str) -> None:
        if point == "dead-letters-committed":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Carried(tmp_path, wrong, at_point=die).carry(OTHERS)
    carried = Carried(tmp_path, wrong)
    assert [one["offset"] for one in carried.letters()] == [4]
    assert carried.offsets(OTHERS) == [0, 1, 2, 3]
    assert carried.carry(OTHERS).carried == {OTHERS: RECORDS}
    assert [one["offset"] for one in carried.letters()] == [4]
    assert carried.offsets(OTHERS) == [0, 1, 2, 3, 5, 6, 7, 8, 9]


def test_a_writer_that_lost_its_partition_keeps_no_dead_letter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer moved the ledger during the search: nothing is kept, nothing is committed."""
    carried = Carried(tmp_path, fails_at(OTHERS, 4))
    right = carried.pipeline._keep_as_dead_letter

    def overtaken(*given: Any) -> None:
        other = LakeTable(carried.settings.lake, "others")
        other.commit([LedgerMove(OTHERS, "g/id/0", 4, 5)], [], batch="other")
        right(*given)

    monkeypatch.setattr(carried.pipeline, "_keep_as_dead_letter", overtaken)
    result = carried.carry(OTHERS)
    assert isinstance(result.failures[OTHERS], StaleWriterError)
    assert carried.letters() == []
