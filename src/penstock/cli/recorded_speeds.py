"""`penstock recommend --record FILE`: the speeds of a watch, as `simulate` reads them.

Each measurement is in the file at once, as one line. A partition that appears later gets a column,
with 0 for the time before: then the file is written again beside the old one and takes its place.
So whatever ends the watch, the file has all that was measured until then.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from penstock.cli.console import say
from penstock.errors import UsageError
from penstock.model import TopicPartition


class RecordedSpeeds:
    def __init__(self, file: Path) -> None:
        """The file is made with the first measurement: until then a former one stays."""
        if file.exists() and not file.is_file():
            raise UsageError(f"--record: {file} is no file that can be written again.")
        self.file = file
        # A link stays a link.
        self._place = file.resolve()
        self._names: list[TopicPartition] = []
        self._opened: BinaryIO | None = None

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()

    def add(self, speeds: Mapping[TopicPartition, float]) -> None:
        """One measurement. UsageError when it cannot be written; the lines before it stay."""
        new = sorted(speeds.keys() - set(self._names))
        try:
            if self._opened is None or new:
                self._opened = self._with_columns(new)
            row = [repr(float(speeds.get(name, 0.0))) for name in self._names]
            _write_line(self._opened, ",".join(row))
        except OSError as error:
            raise UsageError(f"--record: cannot write {self.file}: {error.strerror}.") from error

    def _with_columns(self, new: list[TopicPartition]) -> BinaryIO:
        """The file with these columns as well."""
        names = [*self._names, *new]
        beside = self._place.with_name(f".{self._place.name}.new")
        # Without a buffer: a line is one write, so that nobody reads half of it.
        opened = beside.open("wb", buffering=0)
        try:
            _write_line(opened, ",".join(str(name) for name in names))
            if self._opened is not None:
                before = ",0.0" * len(new)
                with self._place.open(encoding="ascii") as lines:
                    next(lines)
                    for line in lines:
                        _write_line(opened, f"{line.rstrip()}{before}")
            beside.replace(self._place)
        except OSError:
            opened.close()
            beside.unlink(missing_ok=True)
            raise
        if self._opened is not None:
            self._opened.close()
        self._names = names
        return opened


class Record:
    """The record, if one is wanted: a watch of a day does not end because a disk is full."""

    def __init__(self, file: Path | None) -> None:
        self._speeds = None if file is None else RecordedSpeeds(file)
        self._is_begun = False
        self.fault: UsageError | None = None

    def __enter__(self) -> None:
        return

    def __exit__(self, *_: object) -> None:
        if self._speeds is not None:
            self._speeds.close()

    def add(self, speeds: Mapping[TopicPartition, float]) -> None:
        """A first measurement that cannot be written ends the watch, a later one the record."""
        if self._speeds is None or self.fault is not None:
            return
        try:
            self._speeds.add(speeds)
        except UsageError as error:
            if not self._is_begun:
                raise
            self.fault = error
            say(f"{error} The watch goes on without a record.")
        self._is_begun = True


def _write_line(opened: BinaryIO, line: str) -> None:
    whole = f"{line}\n".encode("ascii")
    length = opened.tell()
    try:
        written = 0
        while written < len(whole):
            written += opened.write(whole[written:])
    except OSError:
        os.ftruncate(opened.fileno(), length)
        raise
