"""A committer for many writers, as far as `many_writers.py` needs it for a fair comparison.

Writers hand the files and ledger moves of a batch to one process, which makes one Delta commit for
all that wait. The compare-and-set for every partition stands in the log: a batch that the ledger
refuses is refused alone, and the others are committed. A writer that gets no answer in time
commits by itself. Nothing in Penstock uses this: see decision 0140.
"""

import json
import os
import selectors
import signal
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from penstock.model import TopicPartition
from penstock.pipeline.lake_commit import LakeTable, LedgerMove, StaleLedgerError
from penstock.pipeline.written_files import WrittenFile

# A writer waits so long for the committer, then it commits alone.
ANSWER_S_MAX = 2.0


@dataclass(frozen=True, slots=True)
class Handed:
    """A batch that waits for its commit, and who wants to know."""

    connection: socket.socket
    moves: list[LedgerMove]
    files: list[WrittenFile]


def serve(place: Path, tables: Mapping[str, LakeTable]) -> None:
    """Commit what writers hand over, until this process is ended by SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(place))
    listening.listen(256)
    waiting = selectors.DefaultSelector()
    waiting.register(listening, selectors.EVENT_READ)
    while True:
        handed: dict[str, list[Handed]] = {}
        for key, _ in waiting.select():
            if key.fileobj is listening:
                connection, _ = listening.accept()
                waiting.register(connection, selectors.EVENT_READ, connection.makefile("rb"))
                continue
            line = key.data.readline()
            if not line:
                waiting.unregister(key.fileobj)
                continue
            name, batch = _read(key.fileobj, json.loads(line))
            handed.setdefault(name, []).append(batch)
        for name, batches in handed.items():
            _commit(tables[name], batches)


def _read(connection: Any, said: Mapping[str, Any]) -> tuple[str, Handed]:
    moves = [
        LedgerMove(TopicPartition(*one["partition"]), one["id"], one["expected"], one["next"])
        for one in said["moves"]
    ]
    return said["table"], Handed(connection, moves, [WrittenFile(**one) for one in said["files"]])


def _commit(table: LakeTable, batches: list[Handed]) -> None:
    """One commit for all of them; those that the ledger refuses are told so, and left out."""
    while batches:
        moves = [move for one in batches for move in one.moves]
        files = [file for one in batches for file in one.files]
        try:
            table.commit(moves, files, batch=files[0].path)
        except StaleLedgerError as error:
            stale = [one for one in batches if error.stored.keys() & _partitions(one)]
            for one in stale:
                one.connection.sendall(b"stale\n")
            batches = [one for one in batches if one not in stale]
            continue
        for one in batches:
            one.connection.sendall(b"committed\n")
        return


def _partitions(batch: Handed) -> set[TopicPartition]:
    return {move.partition for move in batch.moves}


class HandsOver:
    """A writer's side."""

    def __init__(self, place: Path, table: LakeTable) -> None:
        self._table = table
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(ANSWER_S_MAX)
        self._socket.connect(str(place))
        self._answers = self._socket.makefile("rb")

    def commit(self, moves: list[LedgerMove], files: list[WrittenFile]) -> None:
        said = {
            "table": self._table.name,
            "moves": [
                {
                    "partition": [one.partition.topic, one.partition.partition],
                    "id": one.application_id,
                    "expected": one.expected,
                    "next": one.next_offset,
                }
                for one in moves
            ],
            "files": [asdict(one) for one in files],
        }
        self._socket.sendall(json.dumps(said).encode() + b"\n")
        try:
            answer = self._answers.readline()
        except TimeoutError:
            # If the committer has done it all the same, the ledger refuses this one.
            self._table.commit(moves, files, batch=files[0].path)
            return
        if answer != b"committed\n":
            raise StaleLedgerError(self._table.name, {one.partition: None for one in moves})
