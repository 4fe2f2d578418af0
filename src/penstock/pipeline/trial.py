"""Tries what a group needs before it starts: the transformations on real records, and the lake.

    for finding in try_out(settings, open_session): ...        # before a start or a roll-out
    try_topic(settings, session, "orders", folder, count=10)   # what one topic would become

The pipeline itself carries the records, with all its decisions, but into another lake: a temporary
folder, or a corner of the real one (`CORNER`) that is removed again. The real tables are only
looked at. Nothing is written to Kafka, and no offset is kept.
"""

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from deltalake.exceptions import DeltaError
from pyspark.errors import PySparkException

from penstock.errors import PenstockError, SettingsError
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.failures import TopicMissingError
from penstock.model import TopicPartition
from penstock.model.sentences import counted
from penstock.pipeline.batch import PlannedRange, Writer
from penstock.pipeline.carry import Pipeline
from penstock.pipeline.failures import (
    LakeRefusedError,
    TransformationFailedError,
    TransformationMissingError,
)
from penstock.pipeline.far_times import far_columns, far_times_error
from penstock.pipeline.given_records import schema_of_rows, stored_rows, type_names
from penstock.pipeline.lake_commit import LakeTable, LedgerMove
from penstock.pipeline.record_source import KafkaSource
from penstock.pipeline.sample import Sample, first_failing, sample_of
from penstock.pipeline.storage import TableStorage
from penstock.pipeline.transformation import load_transformation
from penstock.pipeline.written_files import written_files
from penstock.settings import Settings
from penstock.settings.sections import LakeSettings

# A folder in the lake's root. Readers leave out what begins with an underscore, and it holds no
# table of its own, so no tool takes it for one.
CORNER = "_penstock_trial"
# A trial ends long before.
SWEPT_AFTER_S = 3600
# Few: enough to see whether the function works at all, and read within a second or two.
RECORDS_TRIED = 5
# How many topics are named where one is not there.
_NAMED_MAX = 5
_WRITER = Writer(1, 1)
_ONE_ROW = pa.table({"trial": pa.array([1], pa.int64())})
_ONE_COLUMN = (
    '{"type": "struct", "fields": '
    '[{"name": "trial", "type": "long", "nullable": true, "metadata": {}}]}'
)


@dataclass(frozen=True, slots=True)
class TableChange:
    """What would become of the topic's table."""

    table: str
    exists: bool
    # All of them where the table does not exist yet.
    columns_added: tuple[str, ...] = ()
    refusal: PenstockError | None = None


@dataclass(frozen=True, slots=True)
class TopicTrial:
    """What the records of one topic would become."""

    topic: str
    records: int
    partitions: int
    schema: Mapping[str, str]
    # None for records as they are in Kafka, of which no row is made.
    change: TableChange | None
    rows: Sequence[Mapping[str, Any]] = ()
    dead_letters: Sequence[Mapping[str, Any]] = ()
    # Partitions that would stop, and why.
    failures: Mapping[TopicPartition, PenstockError] = field(default_factory=dict)

    @property
    def refuses_everything(self) -> bool:
        """Whether no record would become a row, although there are some."""
        is_all_dead = bool(self.dead_letters) and not self.rows
        is_all_failed = bool(self.failures) and len(self.failures) == self.partitions
        return is_all_dead or is_all_failed


@dataclass(frozen=True, slots=True)
class Finding:
    """What was tried and how it went; `error` says what to mend.

    `is_doubtful`: it works but is probably a mistake, as where all records would be dead letters.
    `stops_some`: so it is because some partitions would stop. Those may not be carried now either.
    """

    name: str
    explanation: str
    error: PenstockError | None = None
    is_doubtful: bool = False
    stops_some: bool = False


def try_topic(
    settings: Settings,
    session: Any,
    topic: str,
    folder: Path,
    *,
    count: int,
    is_oldest: bool = False,
    on_progress: Callable[[str], None] = lambda _: None,
) -> TopicTrial:
    """Carry a few records of the topic into a lake of their own below `folder`.

    Raises for a topic that is not there, and for a function that cannot be imported or fails
    without any record.
    """
    on_progress(f"looking for records of {topic}")
    source = KafkaSource(settings, session)
    table = settings.lake.table_of(topic)
    sample = sample_of(settings.kafka, source, topic, count=count, is_oldest=is_oldest)
    schema = schema_of_rows(session, table)
    change = _change(settings.lake, topic, schema)
    lake = _lake_at(settings.lake, str(folder / "lake"))
    carry = _carry(settings, session, lake)
    on_progress(f"carrying {counted(sample.records, 'record')} into a temporary folder")
    failures = dict(carry(sample.planned))
    for place, failure in failures.items():
        if isinstance(failure, TransformationFailedError):
            on_progress(f"looking for the record on which the transformation fails in {place}")
            failures[place] = _named(settings, session, folder, sample, place, failure)
    return TopicTrial(
        topic=topic,
        records=sample.records,
        partitions=len(sample.planned),
        schema=type_names(schema),
        change=change,
        rows=stored_rows(lake, table.table),
        dead_letters=stored_rows(lake, lake.dead_letter_table),
        failures=failures,
    )


def try_out(
    settings: Settings,
    open_session: Callable[[], Any] | None,
    on_progress: Callable[[str], None] = lambda _: None,
) -> Iterator[Finding]:
    """The lake, then each transformation. Spark is started only for a transformation.

    Without `open_session`, or where the lake takes nothing, transformations are only imported.
    """
    on_progress(f"trying the lake {settings.lake.root}")
    lake = _tried("lake", lambda: _lake(settings.lake))
    yield lake
    topics = []
    for topic, table in sorted(settings.lake.tables.items()):
        if table.transformation:
            missing = _missing(table.transformation)
            if missing is None:
                topics.append(topic)
            else:
                yield Finding(_name_of(topic), missing.message, missing)
    if lake.error is not None:
        for topic in topics:
            name = settings.lake.table_of(topic).transformation
            yield Finding(_name_of(topic), f"{name} is there; not tried without the lake")
        return
    if not topics or open_session is None:
        return
    on_progress("starting Spark")
    try:
        session = open_session()
    except PenstockError as error:
        yield Finding("spark", error.message, error)
        return
    try:
        for topic in topics:
            on_progress(f"trying the {_name_of(topic)} on a few records")
            try:
                yield _transformation(settings, session, topic)
            except PenstockError as error:
                yield Finding(_name_of(topic), error.message, error)
    finally:
        session.stop()


def require_topic(settings: Settings, topic: str) -> None:
    """Raise for what needs no Spark: a topic that is not there, a function that is not."""
    administration = Administration(settings.kafka)
    if topic not in administration.topics([topic]):
        there = administration.cluster().partition_counts
        names = [name for name in there if not name.startswith("__")]
        near = get_close_matches(topic, names, n=3, cutoff=0.5) or sorted(names)[:_NAMED_MAX]
        raise TopicMissingError(
            f"Kafka has no topic {topic}.",
            remedy=f"There are {', '.join(near)}." if near else "This user sees no topic there.",
        )
    transformation = settings.lake.table_of(topic).transformation
    if transformation and (missing := _missing(transformation)) is not None:
        raise missing


def _name_of(topic: str) -> str:
    return f"transformation of {topic}"


def _tried(name: str, attempt: Callable[[], str]) -> Finding:
    try:
        return Finding(name, attempt())
    except PenstockError as error:
        return Finding(name, error.message, error)


def _missing(transformation: str) -> TransformationMissingError | None:
    """Why it cannot be imported. What Spark raises in an import may pass with a session."""
    try:
        load_transformation(transformation)
    except TransformationMissingError as error:
        return None if isinstance(error.__cause__, PySparkException) else error
    return None


def _lake(lake: LakeSettings) -> str:
    try_lake(lake)
    return f"{lake.root} takes files and commits, and gives them back"


def _transformation(settings: Settings, session: Any, topic: str) -> Finding:
    """How the newest records fare; raises if the topic would stop as a whole."""
    name = _name_of(topic)
    table = settings.lake.table_of(topic)
    change = _change(settings.lake, topic, schema_of_rows(session, table))
    if change.refusal is not None:
        raise change.refusal
    source = KafkaSource(settings, session)
    try:
        sample = sample_of(settings.kafka, source, topic, count=RECORDS_TRIED)
    except TopicMissingError:
        return Finding(name, f"{table.transformation} is there; the topic is not in Kafka yet")
    if not sample.records:
        return Finding(name, f"{table.transformation} is there; the topic has no records yet")
    with corner(settings.lake) as lake:
        failures = _carry(settings, session, lake)(sample.planned)
        dead = stored_rows(lake, lake.dead_letter_table)
        far = far_columns(stored_rows(lake, table.table))
    if far:
        raise far_times_error(table.transformation, far)
    if failures and len(failures) == len(sample.planned):
        raise next(iter(failures.values()))
    tried = f"{table.transformation} was tried on {counted(sample.records, 'record')}"
    if failures:
        place, failure = next(iter(failures.items()))
        which = f"{counted(len(failures), 'partition')} would stop, as {place}: {failure}"
        return Finding(name, f"{tried}; {which}", is_doubtful=True, stops_some=True)
    if len(dead) == sample.records:
        why = f"all would be dead letters, the first because: {dead[0]['reason']}"
        return Finding(name, f"{tried}; {why}", is_doubtful=True)
    letters = f", {counted(len(dead), 'dead letter')}" if dead else ""
    carried = counted(sample.records - len(dead), "record")
    return Finding(name, f"{tried}: {carried} carried{letters}")


def require_folder(lake: LakeSettings) -> None:
    """Raise at once for a root that can never be a folder: a file is in its way."""
    if not TableStorage(lake, "").is_local:
        return
    root = Path(lake.root).absolute()
    there = next((one for one in (root, *root.parents) if one.exists()), root)
    if there.exists() and not there.is_dir():
        raise SettingsError(
            f"The lake {root} cannot be written: {there} is a file, not a folder.",
            remedy="Name a folder in lake.root; it is made where it does not exist.",
        )


def try_lake(lake: LakeSettings) -> None:
    """Write a file, commit it, read it back and delete it; raises with what the lake refused."""
    require_folder(lake)
    try:
        with corner(lake) as place:
            _write_and_read(place)
    except (DeltaError, OSError, pa.ArrowException, LakeRefusedError) as error:
        message = error.message if isinstance(error, PenstockError) else str(error)
        raise LakeRefusedError(
            f"The lake {lake.root} cannot be written: {' '.join(message.split())}",
            remedy="Check lake.root: that it may be written by this user and has free space; in an "
            "object store also lake.storage_options and the credentials.",
        ) from error


def _write_and_read(place: LakeSettings) -> None:
    table, application_id = LakeTable(place, "rows"), "trial"
    table.open_for(_ONE_COLUMN, ())
    with table.storage.create_file("data/part-0.parquet") as stream:
        pyarrow.parquet.write_table(_ONE_ROW, stream)
    move = LedgerMove(TopicPartition("trial", 0), application_id, None, 1)
    table.commit([move], written_files(table.storage, "data"), batch="data")
    again = LakeTable(place, "rows").next_offsets([application_id])
    if again != {application_id: 1} or stored_rows(place, "rows") != _ONE_ROW.to_pylist():
        raise LakeRefusedError("it does not give back what was committed to it.")


def _sweep(root: TableStorage) -> None:
    """Remove what trials left that were killed: their names begin with when they began."""
    oldest_s = time.time_ns() // 1_000_000_000 - SWEPT_AFTER_S
    with suppress(OSError):  # the trial itself tells what is wrong with the lake
        for name in root.folder_names(CORNER):
            began_s, _, token = name.partition("-")
            if token and began_s.isdigit() and int(began_s) < oldest_s:
                root.delete_folder(f"{CORNER}/{name}")


@contextmanager
def corner(lake: LakeSettings) -> Iterator[LakeSettings]:
    """A lake inside the lake, of which nothing is left; each has a name of its own."""
    root = TableStorage(lake, "")
    was_there = not root.is_local or Path(root.uri).is_dir()
    _sweep(root)
    name = f"{time.time_ns() // 1_000_000_000}-{secrets.token_hex(8)}"
    place = _lake_at(lake, f"{lake.root.rstrip('/')}/{CORNER}/{name}")
    storage = TableStorage(place, "")
    try:
        yield place
    finally:
        storage.delete_folder("")
        if storage.is_local:
            folder = Path(storage.uri).parent
            with suppress(OSError):  # another trial is in the corner, or it was never made
                folder.rmdir()
                if not was_there:
                    folder.parent.rmdir()


def _lake_at(lake: LakeSettings, root: str) -> LakeSettings:
    return lake.model_copy(update={"root": root})


def _carry(
    settings: Settings, session: Any, lake: LakeSettings
) -> Callable[[Sequence[PlannedRange]], Mapping[TopicPartition, PenstockError]]:
    """The pipeline of a consumer, but for the place of its lake; answers with the failures."""
    changed = settings.model_copy(update={"lake": lake})

    def carry(planned: Sequence[PlannedRange]) -> Mapping[TopicPartition, PenstockError]:
        pipeline = Pipeline(changed, session)
        try:
            return pipeline.carry(planned, writer=_WRITER).failures
        finally:
            pipeline.close()

    return carry


def _change(lake: LakeSettings, topic: str, schema: Any) -> TableChange:
    table = lake.table_of(topic)
    try:
        missing = LakeTable(lake, table.table).columns_to_add(schema.json(), table.partition_by)
    except PenstockError as refusal:
        return TableChange(table.table, exists=True, refusal=refusal)
    if missing is None:
        return TableChange(table.table, exists=False, columns_added=tuple(schema.names))
    return TableChange(table.table, exists=True, columns_added=tuple(missing))


def _named(
    settings: Settings,
    session: Any,
    folder: Path,
    sample: Sample,
    place: TopicPartition,
    failure: TransformationFailedError,
) -> TransformationFailedError:
    """The failure with the record that makes the function fail, if it is one alone."""
    lakes = (str(folder / f"halving-{number}") for number in range(10**6))

    def fails(start: int, end: int) -> bool:
        carry = _carry(settings, session, _lake_at(settings.lake, next(lakes)))
        return bool(carry([sample.part_of(place, start, end)]))

    offset = first_failing(sample.offsets[place], fails)
    if offset is None:
        return failure
    name = settings.lake.table_of(place.topic).transformation
    return TransformationFailedError(
        f"The transformation {name} fails on {place} at offset {offset}. {failure.message}",
        remedy="The partition would stop there. Set `_undecodable` for such records to send them "
        "to the dead letters.",
    )
