"""The border of a failure: a record, a partition, a table. Real Delta tables, no Spark."""

import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from deltalake import DeltaTable, Schema, write_deltalake

from penstock.kafka_io.administration import TopicLookup, TopicView
from penstock.kafka_io.offset_lookup import LogPosition, OffsetLookup
from penstock.model import OffsetRange, TopicPartition
from penstock.pipeline import (
    BatchResult,
    LakeRefusedError,
    Pipeline,
    PlannedRange,
    RecordUnreadableError,
    SchemaChangedError,
    SparkMemoryError,
    StaleWriterError,
    UnforeseenError,
    Writer,
    carry,
    narrowing,
    run_batch,
)
from penstock.pipeline.batch import Timings
from penstock.pipeline.lake_commit import LakeTable, LedgerMove
from penstock.pipeline.run_batch import TableBatch, Written
from penstock.pipeline.ways import Way
from penstock.pipeline.written_files import written_files
from penstock.settings import Settings
from penstock.settings.sections import LakeSettings, SparkSettings

COLUMNS = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())])
RECORDS = 10
# What goes wrong while a record is made into files; None when nothing does.
Wrong = Callable[[TopicPartition, int, Way], BaseException | None]


class _Panic(BaseException):
    """What native code raises when it panics: no Exception."""


class _Source:
    """Every partition has ten records."""

    def look_up_topics(self, names: Iterable[str]) -> TopicLookup:
        return TopicLookup({n: TopicView(n, "id", 3, 1, is_internal=False) for n in names}, {})

    def look_up_offsets(
        self, partitions: Iterable[TopicPartition], position: LogPosition
    ) -> OffsetLookup:
        at = 0 if position is LogPosition.START else RECORDS
        return OffsetLookup(dict.fromkeys(partitions, at))

    def read(self, planned: Sequence[PlannedRange], *, in_workers: bool = False) -> Any:
        raise NotImplementedError

    def content(self, one: OffsetRange) -> tuple[bytes | None, bytes | None]:
        return b"k", b"%d" % one.start


class _Files:
    """Writes the offsets of the ranges into Parquet, or fails."""

    def __init__(self, wrong: Wrong, way: Way, there: Collection[int]) -> None:
        self._wrong = wrong
        self._way = way
        self._there = there

    def prepare(self, table: TableBatch) -> Timings:
        table.table.open_for(Schema.from_arrow(COLUMNS).to_json(), ())
        return Timings()

    def write(self, tables: Sequence[TableBatch]) -> list[Written]:
        return [self._write(table) for table in tables]

    def _write(self, table: TableBatch) -> Written:
        rows = []
        for one in table.planned:
            for offset in range(one.range.start, one.range.end):
                if offset not in self._there:
                    continue
                wrong = self._wrong(one.partition, offset, self._way)
                if wrong is not None:
                    raise wrong
                rows.append((one.partition.topic, one.partition.partition, offset))
        folder = f"{table.folder}/topic-id"
        columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
        with table.table.storage.create_file(f"{folder}/part-0.parquet") as stream:
            pa.parquet.write_table(pa.table(columns, schema=COLUMNS), stream)
        files = written_files(table.table.storage, table.folder)
        return Written(files, len(rows), len(rows))


class Carried:
    """A pipeline over the given fault, and what is in its lake."""

    def __init__(
        self,
        root: Path,
        wrong: Wrong,
        there: Collection[int] = range(RECORDS),
        workers_retry: str = "10m",
        **options: Any,
    ) -> None:
        """Offsets that are not `there` have no record: transaction markers, compaction."""
        self.settings = Settings(
            lake=LakeSettings(root=str(root), group="g"),
            spark=SparkSettings.model_validate({"workers_retry": workers_retry}),
        )
        self.pipeline = Pipeline(self.settings, None, source=_Source(), **options)
        self.ways: list[Way] = []
        self.pipeline._writer = self._writer  # type: ignore[method-assign] # stands for Spark
        self._wrong = wrong
        self._there = there

    def _writer(self, way: Way) -> Any:
        self.ways.append(way)
        return _Files(self._wrong, way, self._there)

    def carry(self, *places: TopicPartition, to: int = RECORDS, most: int = RECORDS) -> BatchResult:
        """From the ledger up to an offset, and only so many offsets of each partition."""
        ledger = self.pipeline.next_offsets(dict.fromkeys(places, "id"))
        starts = {one: ledger[one] or 0 for one in places}
        planned = [
            PlannedRange(
                OffsetRange(one, starts[one], min(to, starts[one] + most)), "id", ledger[one]
            )
            for one in places
        ]
        return self.pipeline.carry(planned, writer=Writer(1, 1))

    def rows(self, table: str) -> list[dict[str, Any]]:
        path = Path(self.settings.lake.root) / table
        found = DeltaTable(path).to_pyarrow_table().to_pylist() if path.exists() else []
        return sorted(found, key=lambda row: (row["topic"], row["partition"], row["offset"]))

    def offsets(self, place: TopicPartition) -> list[int]:
        rows = self.rows(place.topic)
        return [row["offset"] for row in rows if row["partition"] == place.partition]

    def letters(self) -> list[dict[str, Any]]:
        return self.rows("g_dead_letters")


ORDERS = [TopicPartition("orders", number) for number in range(3)]
OTHERS = TopicPartition("others", 0)


def fails_at(
    place: TopicPartition, *offsets: int, kind: type[BaseException] = OverflowError
) -> Wrong:
    def wrong(partition: TopicPartition, offset: int, _: Way) -> BaseException | None:
        is_bad = partition == place and offset in offsets
        return kind("nobody foresaw this") if is_bad else None

    return wrong


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
    }
    assert (result.records, result.dead_letters) == (40, 1)


@pytest.mark.parametrize("kind", [OverflowError, _Panic, SystemExit])
def test_a_record_that_no_way_carries_is_a_dead_letter(
    tmp_path: Path, kind: type[BaseException]
) -> None:
    """It is found by halving; its partition and all others are carried to the end."""
    one_record_is_set_aside(tmp_path, kind)


@pytest.mark.parametrize(
    ("of", "name", "wrong"),
    [
        (run_batch, "ENDS_THE_PROCESS", (_Panic,)),
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
    with pytest.raises((AssertionError, _Panic)):
        one_record_is_set_aside(tmp_path, _Panic)


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


def _dead_letters_unreadable(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    right = LakeTable.next_offsets

    def raises(self: LakeTable, names: Iterable[str]) -> dict[str, int | None]:
        if self.name == "g_dead_letters":
            raise error
        return right(self, names)

    monkeypatch.setattr(LakeTable, "next_offsets", raises)


@pytest.mark.parametrize(
    "error", [_Panic("native"), ValueError("odd"), SystemExit(1), LakeRefusedError("away")]
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
