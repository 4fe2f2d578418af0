"""Where the tables of `many_writers.py` are: a new folder, or an object store."""

import argparse
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from penstock.pipeline.log_commit import StoredEntry, WaitingEntry
from penstock.pipeline.storage import TableStorage
from penstock.settings.sections import LakeSettings

# Writers are forked: what they use is loaded once, and no thread may run before that.
FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True, slots=True)
class Place:
    """Where the tables are, and how much slower they answer than they do by themselves."""

    root: str
    options: dict[str, str]
    put_s: float
    read_s: float
    warm_up_s: float

    @property
    def lake(self) -> LakeSettings:
        return LakeSettings(root=self.root, group="g", storage_options=self.options)

    def slow_down(self) -> None:
        for entry in (WaitingEntry, StoredEntry):
            _delay(entry, "put_at", self.put_s)
        for name in ("read_marked", "mark_of"):
            _delay(TableStorage, name, self.read_s)


def _delay(owner: type, name: str, seconds: float) -> None:
    right: Callable[..., Any] = getattr(owner, name)

    def slow(*given: Any, **named: Any) -> Any:
        time.sleep(seconds)
        return right(*given, **named)

    if seconds:
        setattr(owner, name, slow)


@contextmanager
def place_of(given: argparse.Namespace) -> Iterator[Place]:
    """As the arguments say. What was made for it is gone afterwards."""
    root, options = given.root or "", dict(one.split("=", 1) for one in given.option)
    is_remote = "://" in root
    folder = Path(tempfile.mkdtemp(prefix="many-writers-", dir=None if is_remote else given.root))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        if given.s3:
            root, options = stack.enter_context(_s3_server(folder))
        elif not is_remote:
            root = str(folder)
        slower = (given.put_ms / 1000, given.read_ms / 1000)
        yield Place(root, options, *slower, given.warm_up)


@contextmanager
def _s3_server(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The tests' server, from a process of its own: this one must have no thread."""
    mine, its = FORK.Pipe(duplex=False)
    child = FORK.Process(target=_serve_s3, args=(folder, its))
    child.start()
    its.close()  # so that a server that does not start is noticed
    try:
        root, options, keys = mine.recv()
        os.environ.update(keys)
        yield root, options
    finally:
        child.terminate()
        child.join()


def _serve_s3(folder: Path, said: Connection) -> None:
    """Say where it is; until this process is ended."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from kit.lake.s3_server import BUCKET, KEY, SECRET, running_s3_server  # noqa: PLC0415 -- above

    keys = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    with running_s3_server(folder / "s3") as server:
        said.send((f"s3://{BUCKET}/lake", server.storage_options, keys))
        signal.pause()
