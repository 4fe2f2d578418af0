"""Children of a consumer get the processor after its batches, and are ended first."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.pipeline import checkpoints, table_keeper
from penstock.processes.low_priority import AUTOGROUP
from penstock.settings.sections import LakeSettings

# Runs a program to its end, whatever that is, and prints what the kernel knows of its process.
_WATCHED = """
import os, runpy, sys
from pathlib import Path
try:
    runpy.{run}({program!r}, run_name="__main__")
except SystemExit:
    pass
sys.stdout.write("ended first: " + Path("/proc/self/oom_score_adj").read_text())
sys.stdout.write("niceness: " + str(os.nice(0)) + "\\n")
if Path("/proc/self/autogroup").exists():
    sys.stdout.write(Path("/proc/self/autogroup").read_text())
"""


@pytest.mark.parametrize(
    ("run", "program", "request_of"),
    [
        (
            "run_path",
            str(checkpoints.PROGRAM),
            lambda root: {"uri": f"{root}/none", "options": {}, "is_local": True, "rows": 0},
        ),
        (
            "run_module",
            table_keeper.PROGRAM,
            lambda root: {
                "lake": LakeSettings(root=str(root)).model_dump(mode="json"),
                "tables": [],
                "sweeps": [],
                "processor_s_max": 1.0,
            },
        ),
    ],
    ids=["checkpoints", "upkeep"],
)
@pytest.mark.parametrize("has_session", [True, False])
def test_a_child_comes_after_batches(
    tmp_path: Path, run: str, program: str, request_of: Any, *, has_session: bool
) -> None:
    """Both read the list of files, and can be done again; a session that is not theirs stays."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", _WATCHED.format(run=run, program=program)],
        input=json.dumps(request_of(tmp_path)),
        capture_output=True,
        text=True,
        check=True,
        start_new_session=has_session,
    )
    said = [line for line in done.stdout.splitlines() if not line.startswith("{")]
    assert said[:2] == ["ended first: 1000", f"niceness: {min(19, os.nice(0) + 10)}"]
    if has_session and AUTOGROUP.exists():
        assert said[2].split()[-1] == "10"
    elif AUTOGROUP.exists():
        # Empty for processes whose session began before Linux shares by session.
        assert said[2:] == AUTOGROUP.read_text(encoding="ascii").splitlines()
