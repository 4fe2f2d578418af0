"""Keeps the logs of tables short: a checkpoint after every so many commits, and clean-up.

A checkpoint names every file of its table, so it is made by a child process, whose memory goes with
it. Nothing waits for it: a commit only leaves a note. There is one child at a time, and after each
one a pause that is longer than it took, so that it has at most a tenth of a core.

The consumer whose commit has a version that the interval divides makes the checkpoint, so the
consumers of one table do not all make it. If it fails, or the consumer ends, the next such version
has its turn.
"""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from penstock.pipeline.checkpoint_files import hinted_rows, hinted_version
from penstock.pipeline.storage import TableStorage
from penstock.settings.sections import LakeSettings
from penstock.telemetry import get_logger

PROGRAM = Path(__file__).with_name("make_checkpoint.py")
# Of the time that a checkpoint takes, how much longer the pause after it is.
PAUSE_FACTOR = 9
CHILD_TIMEOUT_S = 1800.0
_END_GRACE_S = 5.0


class CheckpointMaker:
    """Makes the checkpoints of one consumer."""

    def __init__(self, lake: LakeSettings) -> None:
        self._lake = lake
        self._log = get_logger(component="pipeline")
        self._changed = threading.Condition()
        self._due: dict[str, int] = {}
        self._failing: set[str] = set()
        self._is_closed = False
        self._thread: threading.Thread | None = None
        self._child: subprocess.Popen[bytes] | None = None

    def committed(self, table: str, version: int) -> None:
        """Note that a table has a new version. Never waits."""
        if version == 0 or version % self._lake.checkpoint_commits:
            return
        with self._changed:
            if self._is_closed:
                return
            self._due[table] = version
            if self._thread is None:
                # No child outlives the thread that started it, so the thread stays.
                self._thread = threading.Thread(
                    target=self._run, name="penstock-checkpoints", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()

    def close(self) -> None:
        """End the child, if one runs: a checkpoint is there as a whole or not at all."""
        with self._changed:
            self._is_closed = True
            self._due.clear()
            thread, child = self._thread, self._child
            self._changed.notify_all()
        if child is not None:
            child.terminate()
        if thread is not None:
            thread.join(_END_GRACE_S)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._due or self._is_closed)
                if self._is_closed:
                    return
                table = next(iter(self._due))
                version = self._due.pop(table)
            began = time.monotonic()
            self._make(table, version)
            pause_s = PAUSE_FACTOR * (time.monotonic() - began)
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed, pause_s)

    def _make(self, table: str, version: int) -> None:
        """Failures are logged when they begin and when they end."""
        try:
            storage = TableStorage(self._lake, table)
            if (hinted_version(storage) or 0) >= version:
                return  # another consumer was quicker
            failure = self._run_child(storage)
        except OSError as error:
            failure = str(error)
        if self._is_closed:
            return
        if failure is None:
            if table in self._failing:
                self._log.info("checkpoints_made_again", table=table)
            self._failing.discard(table)
        elif table not in self._failing:
            self._failing.add(table)
            self._log.warning("checkpoint_failed", table=table, error=failure)

    def _run_child(self, storage: TableStorage) -> str | None:
        """Why it failed; None if it did not."""
        guard = [sys.executable, "-m", "penstock.processes.die_with_parent", str(os.getpid())]
        request = {
            "uri": storage.uri,
            "options": storage.options,
            "is_local": storage.is_local,
            "rows": hinted_rows(storage) or 0,
        }
        with self._changed:
            if self._is_closed:
                return None
            # `-P`: the folder of the program has modules of ours that are not meant to be found.
            self._child = subprocess.Popen(
                [*guard, sys.executable, "-P", str(PROGRAM)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                # A session of its own: Ctrl-C reaches only this process, which then ends it.
                start_new_session=True,
            )
        child = self._child
        try:
            _, said = child.communicate(json.dumps(request).encode(), timeout=CHILD_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            return f"it took more than {CHILD_TIMEOUT_S:.0f} s"
        finally:
            with self._changed:
                self._child = None
        if child.returncode == 0:
            return None
        lines = said.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"exit code {child.returncode}"
