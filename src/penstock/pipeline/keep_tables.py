"""Keeps tables in shape; the program of a child process (see table_keeper.py).

Its memory grows with the list of files, and goes with it. It has a low priority, one thread, and a
bounded time: when that is used, it ends after the file that it makes, and the next child goes on.

The request is one JSON object on stdin. The answer is one JSON object a line on stdout: one for
each table, and a last one for the run. A request with `orphans_of` is another one: to remove what
earlier incarnations of that consumer left behind, in all tables; its answer is one line.
"""

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from penstock.errors import PenstockError
from penstock.pipeline.compaction import ProcessorClock
from penstock.pipeline.failures import LakeRefusedError
from penstock.pipeline.join_plan import next_finish_ms
from penstock.pipeline.lake_commit import LakeTable
from penstock.pipeline.upkeep import (
    UpkeepWork,
    is_written_by,
    join_rules,
    keep_up_table,
    remove_orphans_of,
)
from penstock.processes.low_priority import come_after_batches
from penstock.settings.sections import LakeSettings


def main() -> None:
    request = json.load(sys.stdin)
    come_after_batches()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    lake = LakeSettings.model_validate(request["lake"])
    if "orphans_of" in request:
        _say(_removed(lake, request["orphans_of"]))
    else:
        _keep(lake, request)


def _keep(lake: LakeSettings, request: Mapping[str, Any]) -> None:
    longest_s = float(request["processor_s_max"])

    def may_go_on() -> bool:
        return time.process_time() < longest_s

    clock = ProcessorClock(started_s=0.0)
    for name in request["tables"]:
        if not may_go_on():
            _say({"unseen": name})
            continue
        work = UpkeepWork(
            finishes_all=False,
            joins_foreign=False,
            sweeps=name in request["sweeps"],
            may_go_on=may_go_on,
            clock=clock,
        )
        _say(_kept(lake, name, work))
    _say({"processor_s": time.process_time()})


def _removed(lake: LakeSettings, consumer_id: int) -> dict[str, Any]:
    """How many orphans there were, or which tables could not be searched."""
    try:
        return {"orphans": remove_orphans_of(lake, consumer_id)}
    except LakeRefusedError as error:
        return {"error": error.message, "remedy": error.remedy}


def _kept(lake: LakeSettings, name: str, work: UpkeepWork) -> dict[str, Any]:
    """What was done to a table. Whatever goes wrong with one does not hold up the others."""
    try:
        table = LakeTable(lake, name)
        if not table.exists() or not is_written_by(lake, name):
            return {"absent": name}
        report = keep_up_table(lake, table, work)
        rules = join_rules(lake, table, finishes_all=False)
        survey = table.survey(rules)
        due_ms = next_finish_ms(survey.folders, rules)
        return {"report": asdict(report), "version": survey.version, "due_ms": due_ms}
    except PenstockError as error:
        return {"failed": name, "error": error.message}
    except Exception as error:  # noqa: BLE001 -- stores and native code raise what they like
        # The lines after the first are a stack of native code.
        first_line = next(iter(str(error).splitlines()), "")
        return {"failed": name, "error": f"{type(error).__name__}: {first_line}"}


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(f"{json.dumps(answer)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
