"""Run a transformation on the records of a test, on a real Spark, as production would. Public.

    from penstock.testing import run_transformation

    def test_orders_are_decoded():
        result = run_transformation("shop.orders:decode", [b'{"id": "a"}', b"broken", None])
        assert [row["id"] for row in result.rows] == ["a"]
        assert [letter.offset for letter in result.dead_letters] == [1, 2]

The pipeline's own code finds the function, runs it, and writes rows and dead letters to Delta
tables in a temporary folder; only Kafka is replaced. Needs the extra `spark` and Java 17, no broker
and no jars of the connector. docs/transformations.md goes through it.
"""

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from penstock.errors import SettingsError
from penstock.extras import missing_extra
from penstock.model import TopicPartition
from penstock.settings.sections import SparkSettings, TableSettings
from penstock.transformations import Transformation

try:
    from penstock.pipeline.failures import TransformationFailedError
    from penstock.pipeline.given_records import GivenRecord, TrialRun
    from penstock.pipeline.sample import first_failing
    from penstock.pipeline.session import start_session
    from penstock.pipeline.transformation import load_transformation
except ImportError as error:
    missing = missing_extra(error)
    raise (missing or error) from error

__all__ = [
    "DeadLetter",
    "Record",
    "TransformationFailedError",
    "TransformationResult",
    "run_transformation",
]

_MODULE_NUMBERS = count(1)
_WHEN = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Record:
    """One Kafka record. Text is encoded as UTF-8; without an offset it follows the one before it.

    `timestamp` without a zone is UTC. `headers` are pairs of a name and bytes.
    """

    value: bytes | str | None
    key: bytes | str | None = None
    topic: str = "test"
    partition: int = 0
    offset: int | None = None
    timestamp: datetime = _WHEN
    headers: Sequence[tuple[str, bytes | None]] | None = None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that the transformation marked undecodable, as its table has it."""

    topic: str
    partition: int
    offset: int
    reason: str
    key: bytes | None
    value: bytes | None
    timestamp: datetime | None = None
    headers: Sequence[tuple[str, bytes | None]] | None = None


@dataclass(frozen=True, slots=True)
class TransformationResult:
    """What would be in the lake.

    `rows` are the table's, as the lake gives them back to Python, in the order of their offsets
    where `topic`, `partition` and `offset` were kept. `schema` has each column's type in Spark's
    words, such as `{"id": "string", "amount": "double"}`.
    """

    rows: list[dict[str, Any]]
    schema: dict[str, str]
    dead_letters: list[DeadLetter]


def _as_given(value: Any) -> Any:
    """Headers as a record has them: pairs, where the table has structs."""
    if isinstance(value, list):
        return tuple((header["key"], header["value"]) for header in value)
    return value


def run_transformation(
    transformation: Transformation | str,
    records: Iterable[Record | bytes | str | None],
    *,
    columns: Sequence[str] = (),
    partition_by: Sequence[str] = (),
    session: Any = None,
) -> TransformationResult:
    """Run the function, or the one named `package.module:function`, on the records.

    A plain value stands for `Record(value)`. `columns` and `partition_by` are as in the settings
    of a table. `session` is a Spark session on this machine; without one, a local Spark is started
    once and kept until the process ends.

    Raises SettingsError for a name, `columns` or `partition_by` that no settings file could have.
    Raises TransformationFailedError where production would stop a partition: the function raised,
    gave no DataFrame, or gave rows that no table takes. The message names the record, if it is one.
    """
    given = _as_kafka_has_them(records)
    spark = session if session is not None else _local_session()
    with (
        _importable(transformation) as name,
        tempfile.TemporaryDirectory(prefix="penstock-testing-") as folder,
    ):
        table = _table(name, columns, partition_by)

        def trial(place: str) -> TrialRun:
            return TrialRun(spark, table, given, Path(folder) / place)

        run = trial("lake")
        schema = run.schema()  # first: what fails without any record is no record's fault
        failures = run.carry(_ranges(given))
        for place, failure in failures.items():
            if not isinstance(failure, TransformationFailedError):
                raise failure
            raise _named(failure, name, _first_failing(trial, place, given)) from failure
        letters = [
            DeadLetter(**{field: _as_given(row[field]) for field in DeadLetter.__slots__})
            for row in run.dead_letters()
        ]
        return TransformationResult(run.rows(), schema, letters)


def _table(name: str, columns: Sequence[str], partition_by: Sequence[str]) -> TableSettings:
    try:
        return TableSettings(
            table="rows",
            transformation=name,
            columns=list(columns),
            partition_by=list(partition_by),
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = f"{first['loc'][0]}: " if first["loc"] else ""
        reason = first["msg"].removeprefix("Value error, ")
        raise SettingsError(f"The settings of a table cannot be so: {where}{reason}.") from None


def _as_kafka_has_them(records: Iterable[Record | bytes | str | None]) -> list[GivenRecord]:
    if isinstance(records, str | bytes):
        raise TypeError("`records` is a list of records, not one value")
    given: list[GivenRecord] = []
    next_offsets: dict[TopicPartition, int] = {}
    for one in records:
        record = one if isinstance(one, Record) else Record(one)
        place = TopicPartition(record.topic, record.partition)
        least = next_offsets.get(place, 0)
        offset = least if record.offset is None else record.offset
        if offset < 0:
            raise ValueError(f"{place}: an offset is 0 or more, got {offset}")
        if offset < least:
            raise ValueError(f"{place}: offset {offset} comes after offset {least - 1}")
        next_offsets[place] = offset + 1
        when = record.timestamp
        given.append(
            GivenRecord(
                partition=place,
                offset=offset,
                key=_encoded(record.key),
                value=_encoded(record.value),
                timestamp=when if when.tzinfo else when.replace(tzinfo=UTC),
                headers=None if record.headers is None else tuple(record.headers),
            )
        )
    return given


def _encoded(value: bytes | str | None) -> bytes | None:
    if not isinstance(value, bytes | str | None):
        raise TypeError(
            f"a key or value is bytes, text or None, got {type(value).__name__}: {value!r}"
        )
    return value.encode() if isinstance(value, str) else value


def _ranges(given: Sequence[GivenRecord]) -> dict[TopicPartition, tuple[int, int]]:
    ranges: dict[TopicPartition, tuple[int, int]] = {}
    for one in given:
        start, _ = ranges.get(one.partition, (one.offset, 0))
        ranges[one.partition] = (start, one.offset + 1)
    return ranges


def _first_failing(
    trial: Callable[[str], TrialRun], place: TopicPartition, given: Sequence[GivenRecord]
) -> GivenRecord | None:
    """Production stops the partition; a test also wants the record."""
    records = {one.offset: one for one in given if one.partition == place}
    run = trial("halving")
    # A function that looks at several records at once may fail on none of them alone.
    offset = first_failing(list(records), lambda start, end: bool(run.carry({place: (start, end)})))
    return None if offset is None else records[offset]


def _named(
    failure: TransformationFailedError, name: str, record: GivenRecord | None
) -> TransformationFailedError:
    if record is None:
        return failure
    return TransformationFailedError(
        f"The transformation {name} fails on {record.partition} at offset {record.offset} "
        f"(value {record.value!r}). {failure.message}",
        remedy="In production the partition stops there. Set `_undecodable` for such records to "
        "send them to the dead letters.",
    )


@contextmanager
def _importable(transformation: Transformation | str) -> Iterator[str]:
    """The name under which the pipeline finds the function.

    One that a module has goes by that name; one made inside a test gets a module for a while.
    """
    load_transformation.cache_clear()  # a test may have replaced the function
    if isinstance(transformation, str):
        yield transformation
        return
    module, name = getattr(transformation, "__module__", ""), _name_of(transformation)
    if getattr(sys.modules.get(module), name, None) is transformation:
        yield f"{module}:{name}"
        return
    made = ModuleType(f"function_under_test_{next(_MODULE_NUMBERS)}")
    setattr(made, name, transformation)
    sys.modules[made.__name__] = made
    try:
        yield f"{made.__name__}:{name}"
    finally:
        del sys.modules[made.__name__]
        load_transformation.cache_clear()


def _name_of(transformation: Transformation) -> str:
    name = str(getattr(transformation, "__name__", ""))
    return name if name.isidentifier() else "function"


def _local_session() -> Any:
    """Spark's Python workers find the modules that the test finds, wherever its path was set."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    try:
        # What fails is raised with the record; Spark would log its stack several times as well.
        spark = SparkSettings(master="local[2]", options={"spark.log.level": "FATAL"})
        return start_session(spark, name="penstock-testing", reads_kafka=False)
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
