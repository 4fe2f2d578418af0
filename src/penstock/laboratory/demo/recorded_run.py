"""Keeps what the page would have shown during the demo, and writes it as one HTML file.

The file needs no server: it shows the run when nothing is left running.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.controller.core.dry_run import dry_run, problem_of_question
from penstock.errors import PenstockError
from penstock.laboratory.demo.story import DemoIncident
from penstock.page.core.frames import Frames, RunStory, whole_run
from penstock.page.core.tables import TablesRead
from penstock.page.core.watch import Watch
from penstock.page.process.lake_tables import read_tables
from penstock.page.process.run_file import write_run
from penstock.settings.sections import LakeSettings

PLAN_EVERY = 5
TITLE = "The demo of Penstock"


@dataclass(slots=True)
class RecordedRun:
    group: str = ""
    watch: Watch = field(default_factory=Watch)
    frames: Frames = field(default_factory=Frames)
    tables: TablesRead | None = None
    # When the load began: incidents are counted from it.
    begun_unix_s: float = 0.0
    _seen: int = 0

    def begin(self) -> None:
        self.begun_unix_s = time.time()

    def add(self, status: dict[str, Any]) -> None:
        """A status as the controller has just written it."""
        fresh = {"age_s": 0.0, "is_stale": False, "silence": None, "source": "file"}
        if self._seen % PLAN_EVERY == 0:
            self._plan(status)
        self._seen += 1
        self.watch.add(status | fresh)
        self.frames.add(self.watch, self.group)

    def _plan(self, status: dict[str, Any]) -> None:
        try:
            plan = dry_run(status["settings"]["algorithm"], problem_of_question(status["question"]))
        except PenstockError:
            return  # no speeds are known yet
        self.watch.take_plan(plan, status["at_unix_ms"])

    def look_at_tables(self, lake: LakeSettings) -> None:
        """While the lake is there: the demo removes it."""
        self.tables = read_tables(lake)

    def write(
        self,
        file: Path,
        incidents: Sequence[DemoIncident],
        results: dict[str, str],
    ) -> None:
        told = tuple(
            {
                "at_unix_ms": round((self.begun_unix_s + one.at_s) * 1000),
                "sentence": one.explanation,
            }
            for one in incidents
        )
        story = RunStory(TITLE, told, results)
        write_run(file, whole_run(self.watch, self.group, self.frames, story, self.tables))
