"""Keeps a consumer's tables in shape with child processes, and knows which of them need it.

A child joins files (`keep_tables`), for a bounded processor time. A table that has no new version
since the last look, and no folder that has become quiet, is left out, so that tables without
records cost one look at their log; when nothing is left, no child is started. In an object store
that look is one request for each table.

Nothing here is in a batch's way: the child has a lock on nothing, this process only waits for it
in a thread of its own, and `close` ends it at once. What it was writing is an orphan then, which a
later sweep removes.

The search for what earlier incarnations of the consumer left behind is made by such a child, too:
it reads the list of files, which a consumer has no memory for.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.pipeline.failures import LakeRefusedError
from penstock.pipeline.log_entries import entry_path
from penstock.pipeline.storage import TableStorage
from penstock.pipeline.upkeep import UpkeepReport
from penstock.settings.sections import LakeSettings

PROGRAM = "penstock.pipeline.keep_tables"
# A table without new versions is swept this many times as rarely.
QUIET_SWEEPS = 24
# A child ends after this, and after the file that it makes then. Its start takes half a second.
PROCESSOR_S_MAX = 10.0
CHILD_TIMEOUT_S = 3600.0
_QUOTED_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class TablesKept:
    """What one run did, and what it cost. `failure` says which tables failed, and why."""

    reports: Sequence[UpkeepReport] = ()
    processor_s: float = 0.0
    has_more: bool = False
    failure: LakeRefusedError | None = None


@dataclass(frozen=True, slots=True)
class _Known:
    """A table after the last run: there is nothing to do before a new version, or this time."""

    version: int
    due_unix_ms: int | None


class _Looks:
    """Which tables have new entries. Each is asked for once.

    One after another: the threads that ask an object store side by side are for batches. When
    the lake does not answer, all others count as changed: a child finds out why, and says so.
    """

    def __init__(self, lake: LakeSettings) -> None:
        self._lake = lake
        self._found: dict[tuple[str, int], bool] = {}
        self._is_silent = False

    def has_entry_after(self, name: str, version: int) -> bool:
        if (name, version) not in self._found:
            self._found[name, version] = self._is_silent or self._look(name, version)
        return self._found[name, version]

    def _look(self, name: str, version: int) -> bool:
        try:
            return TableStorage(self._lake, name).mark_of(entry_path(version + 1)) is not None
        except OSError:
            self._is_silent = True
            return True


class TableKeeper:
    """One thread at a time may call `keep`, another `remove_orphans`, and any `close`."""

    def __init__(self, lake: LakeSettings, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._lake = lake
        self._clock = clock
        self._known: dict[str, _Known] = {}
        # When each table was swept, and its version after that.
        self._swept: dict[str, tuple[float, int | None]] = {}
        # Tables that the last run did not reach: they come first.
        self._unseen: list[str] = []
        # There is one child at a time: each may need the memory of the largest table.
        self._one_child = threading.Lock()
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._is_closed = False

    def keep(self, tables: Sequence[str]) -> TablesKept:
        """Keep those of the tables that need it."""
        sweeps, due = self._due(tables)
        due.sort(key=lambda name: (name not in self._unseen, name))
        if not due:
            return TablesKept()
        request = {
            "lake": self._lake.model_dump(mode="json"),
            "tables": due,
            "sweeps": sweeps,
            "processor_s_max": PROCESSOR_S_MAX,
        }
        with self._one_child:
            began_s = time.monotonic()
            answers, failed = self._run_child(request)
            # A child that fails does not say how long it worked.
            longest_s = time.monotonic() - began_s
        if self._is_closed:
            return TablesKept()
        return self._taken(answers, failed, sweeps, longest_s)

    def remove_orphans(self, consumer_id: int) -> int:
        """Remove what earlier incarnations of a consumer left behind, in all tables; how much."""
        request = {"lake": self._lake.model_dump(mode="json"), "orphans_of": consumer_id}
        with self._one_child:
            answers, failed = self._run_child(request)
        if self._is_closed:
            return 0
        if failed is not None:
            raise LakeRefusedError(f"{failed.rstrip('.')}.", remedy="It is tried again later.")
        (answer,) = answers
        if "error" in answer:
            raise LakeRefusedError(answer["error"], remedy=answer["remedy"])
        return int(answer["orphans"])

    def close(self) -> None:
        """End the child, if one runs. No other is started."""
        with self._lock:
            self._is_closed = True
            if self._child is not None:
                self._child.kill()

    def _due(self, tables: Sequence[str]) -> tuple[list[str], list[str]]:
        """The tables that are to be swept, and all that need anything."""
        looks = _Looks(self._lake)
        sweeps = [name for name in tables if self._is_sweep_due(name, looks)]
        return sweeps, [name for name in tables if name in sweeps or self._needs_it(name, looks)]

    def _is_sweep_due(self, name: str, looks: "_Looks") -> bool:
        if name not in self._swept:
            return True
        at_s, version = self._swept[name]
        periods = (self._clock() - at_s) / self._lake.sweep_period
        if not 1 <= periods < QUIET_SWEEPS:
            return periods >= 1
        return version is None or looks.has_entry_after(name, version)

    def _needs_it(self, name: str, looks: "_Looks") -> bool:
        known = self._known.get(name)
        if known is None or (known.due_unix_ms or 2**63) <= time.time_ns() // 1_000_000:
            return True
        return looks.has_entry_after(name, known.version)

    def _taken(
        self,
        answers: Sequence[Mapping[str, Any]],
        failed: str | None,
        sweeps: Sequence[str],
        longest_s: float,
    ) -> TablesKept:
        reports: list[UpkeepReport] = []
        problems = [] if failed is None else [failed]
        processor_s = longest_s
        self._unseen = []
        for one in answers:
            if "report" in one:
                report = UpkeepReport(**one["report"])
                reports.append(report)
                if report.table in sweeps:
                    self._swept[report.table] = (self._clock(), one["version"])
                self._known.pop(report.table, None)
                if not report.has_more and not report.joins_refused:
                    self._known[report.table] = _Known(one["version"], one["due_ms"])
            elif "failed" in one:
                problems.append(
                    f"The table {one['failed']} could not be maintained: {one['error']}"
                )
                # It is swept a period later all the same, as other tables are.
                self._swept[one["failed"]] = (self._clock(), None)
            elif "unseen" in one:
                self._unseen.append(one["unseen"])
            processor_s = one.get("processor_s", processor_s)
        has_more = bool(self._unseen) or any(one.has_more for one in reports)
        return TablesKept(reports, processor_s, has_more, _failure(problems))

    def _run_child(self, request: Mapping[str, Any]) -> tuple[list[dict[str, Any]], str | None]:
        """Its answers, and why it failed; None if it did not."""
        guard = [sys.executable, "-m", "penstock.processes.die_with_parent", str(os.getpid())]
        with self._lock:
            if self._is_closed:
                return [], None
            child = self._child = subprocess.Popen(
                [*guard, sys.executable, "-P", "-m", PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # A session of its own: Ctrl-C reaches only this process, which then ends it.
                start_new_session=True,
            )
        try:
            said, warned = child.communicate(json.dumps(request).encode(), timeout=CHILD_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            child.kill()
            said, warned = child.communicate()
        finally:
            with self._lock:
                self._child = None
        # What follows the last end of line was cut off when the child was ended.
        answers = [json.loads(line) for line in said.split(b"\n")[:-1]]
        if child.returncode == 0:
            return answers, None
        return answers, f"The upkeep of tables {_end_of(child.returncode, warned)}"


def _end_of(code: int, warned: bytes) -> str:
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    lines = warned.decode(errors="replace").strip().splitlines()
    return f"ended with code {code}: {lines[-1][:_QUOTED_CHARACTERS] if lines else ''}"


def _failure(problems: Sequence[str]) -> LakeRefusedError | None:
    if not problems:
        return None
    return LakeRefusedError(
        " ".join(f"{one.rstrip('.')}." for one in problems),
        remedy="Check that the lake has free space and may be written, and that its files are "
        "whole. `penstock lake compact` does the same by hand.",
    )
