"""Parsers of what lies in the lake, where any tool may write: log entries, hints, checkpoints."""

import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pyarrow.fs

from kit.fuzz.parser import Form, Parser
from kit.lake.log_histories import NAMES, checkpoint, make_table, move
from penstock.pipeline.checkpoint_files import CheckpointPlace, read_checkpoint
from penstock.pipeline.failures import PipelineError
from penstock.pipeline.file_survey import survey_log
from penstock.pipeline.join_plan import JoinRules
from penstock.pipeline.log_entries import LogNotUnderstoodError, parse_entry
from penstock.pipeline.log_replay import replay
from penstock.pipeline.replaced_files import EntriesGoneError, SeenFiles
from penstock.pipeline.storage import TableStorage
from penstock.pipeline.stream_checkpoint import write_checkpoint
from penstock.pipeline.table_reading import TableReading
from penstock.settings.sections import LakeSettings
from penstock.verification.delta_log import BrokenLogError, read_table

_ENTRY = "_delta_log/00000000000000000002.json"
_CHECKPOINT = "_delta_log/00000000000000000003.checkpoint.parquet"
_HINT = "_delta_log/_last_checkpoint"
_RULES = JoinRules(file_size=2**27, now_ms=2**41, quiet_ms=1)


@cache
def _table() -> Path:
    """A table of five versions with a checkpoint at 3; made once, and copied for each input."""
    place = Path(tempfile.mkdtemp(prefix="penstock-fuzz-")) / "orders"
    make_table(place)
    for number in range(1, 4):
        move(place, {NAMES[number % 3]: number})
    checkpoint(place)
    move(place, {NAMES[0]: 9})
    return place


def _file(name: str) -> bytes:
    return (_table() / name).read_bytes()


class _TableWith:
    """A copy of the table with other bytes in one of its files."""

    def __init__(self, name: str, data: bytes, *, without: tuple[str, ...] = ()) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.place = Path(self._folder.name) / "orders"
        shutil.copytree(_table() / "_delta_log", self.place / "_delta_log")
        (self.place / name).write_bytes(data)
        for other in without:
            (self.place / other).unlink()

    def __enter__(self) -> Path:
        return self.place

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()


def _looked_at(place: Path) -> None:
    """Everything that a consumer asks of a table before it writes, twice."""
    reading = TableReading(LakeSettings(root=str(place.parent)), place.name)
    for _ in range(2):
        if not reading.exists():
            continue
        reading.next_offsets(NAMES)
        reading.last_epochs(NAMES, "authority")
        reading.leader_epochs(NAMES)
        reading.writer_features()
        reading.arrow_schema()
        reading.target_file_size()


def _entry(data: bytes) -> None:
    parse_entry(data)


def _entry_in_table(data: bytes) -> None:
    with _TableWith(_ENTRY, data, without=(_CHECKPOINT, _HINT)) as place:
        _looked_at(place)


def _hint(data: bytes) -> None:
    with _TableWith(_HINT, data) as place:
        _looked_at(place)


def _checkpoint(data: bytes) -> None:
    with _TableWith(_CHECKPOINT, data) as place:
        storage = TableStorage(LakeSettings(root=str(place.parent)), place.name)
        read_checkpoint(storage, CheckpointPlace(3))


def _replayed(name: str, *, without: tuple[str, ...] = ()) -> Callable[[bytes], None]:
    def parse(data: bytes) -> None:
        with _TableWith(name, data, without=without) as place:
            storage = TableStorage(LakeSettings(root=str(place.parent)), place.name)
            found = replay(storage)
            write_checkpoint(found, 1)
            survey_log(found, _RULES)

    return parse


def _touched(data: bytes) -> None:
    with _TableWith(_ENTRY, data) as place:
        storage = TableStorage(LakeSettings(root=str(place.parent)), place.name)
        SeenFiles(1, "any", ["a.parquet"])._read_up_to(storage, 2)


def _verified(name: str, *, without: tuple[str, ...] = ()) -> Callable[[bytes], None]:
    def parse(data: bytes) -> None:
        with _TableWith(name, data, without=without) as place:
            found = read_table(pyarrow.fs.LocalFileSystem(), str(place))
            assert found is None or found.has_deletion_vectors in {True, False}

    return parse


_ADDED_FEATURES = (
    b'{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["x"],'
    b'"writerFeatures":["x"]}}\n{"metaData":{"id":"i","schemaString":"{\\"type\\":\\"struct\\",'
    b'\\"fields\\":[]}","partitionColumns":["day"],"configuration":{"delta.targetFileSize":"5"}}}\n'
    b'{"txn":{"appId":"g/a/0","version":3}}\n{"remove":{"path":"a.parquet"}}\n'
    b'{"commitInfo":{"penstockBatch":"b"}}\n'
)
LAKE_PARSERS = (
    Parser(
        "log-entry",
        _entry,
        (_file(_ENTRY), _file("_delta_log/00000000000000000000.json"), _ADDED_FEATURES),
        Form.JSON_LINES,
        ("pipeline/log_entries.py",),
        (LogNotUnderstoodError,),
    ),
    Parser(
        "table-with-an-entry",
        _entry_in_table,
        (_file(_ENTRY), _file("_delta_log/00000000000000000000.json"), _ADDED_FEATURES),
        Form.JSON_LINES,
        ("pipeline/log_entries.py", "pipeline/ledger_entries.py"),
        (PipelineError,),
        is_native=True,
    ),
    Parser(
        "checkpoint-hint",
        _hint,
        (_file(_HINT), b'{"version": 3, "size": 5, "parts": 2}'),
        Form.JSON_LINES,
        ("pipeline/checkpoint_files.py",),
        (PipelineError,),
        is_native=True,
    ),
    Parser(
        "checkpoint",
        _checkpoint,
        (_file(_CHECKPOINT),),
        Form.BYTES,
        ("pipeline/checkpoint_files.py",),
        (LogNotUnderstoodError,),
        is_native=True,
    ),
    Parser(
        "replayed-entry",
        _replayed(_ENTRY, without=(_CHECKPOINT, _HINT)),
        (_file(_ENTRY), _ADDED_FEATURES),
        Form.JSON_LINES,
        ("pipeline/log_replay.py", "pipeline/file_survey.py"),
        (LogNotUnderstoodError,),
    ),
    Parser(
        "replayed-checkpoint",
        _replayed(_CHECKPOINT),
        (_file(_CHECKPOINT),),
        Form.BYTES,
        ("pipeline/log_replay.py", "pipeline/file_survey.py"),
        (LogNotUnderstoodError,),
        is_native=True,
    ),
    Parser(
        "entry-since-files-were-seen",
        _touched,
        (_file(_ENTRY), _ADDED_FEATURES),
        Form.JSON_LINES,
        ("pipeline/replaced_files.py",),
        (EntriesGoneError,),
    ),
    Parser(
        "verified-entry",
        _verified(_ENTRY, without=(_CHECKPOINT, _HINT)),
        (_file(_ENTRY), _ADDED_FEATURES),
        Form.JSON_LINES,
        ("verification/delta_log.py",),
        (BrokenLogError,),
    ),
    Parser(
        "verified-checkpoint",
        _verified(_CHECKPOINT),
        (_file(_CHECKPOINT),),
        Form.BYTES,
        ("verification/delta_log.py",),
        (BrokenLogError,),
        is_native=True,
    ),
)
