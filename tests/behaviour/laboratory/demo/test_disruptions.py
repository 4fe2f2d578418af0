"""Disruptions of the demo that are due before the group is ready for them."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from penstock.kafka_io.administration import Administration
from penstock.laboratory.demo.kill_during_a_move import KillDuringMove
from penstock.laboratory.demo.run import Demo
from penstock.laboratory.demo.story import SHORT
from penstock.local_group import LocalGroup
from penstock.processes import identity_of
from penstock.settings import Settings

SHOULD_RUN = "import time; time.sleep(600)"


def kill_consumer(folder: Path, pid: int) -> Any:
    """The first disruption, in a group of which only the status and one process are there."""
    deployment = SimpleNamespace(process_of=lambda _: identity_of(pid))
    group = cast("LocalGroup", SimpleNamespace(directory=folder, deployment=deployment))
    demo = Demo(Settings(), flags=[], story=SHORT, say=print, show=lambda *_: None)
    unused = cast("Administration", None), cast("KillDuringMove", None)
    return demo._disruptions(group, unused[0], [], unused[1])[0].do


def test_a_consumer_is_killed_as_soon_as_one_reads_something(tmp_path: Path) -> None:
    """On a busy machine none is there when it is due: the demo waits, where it ended before."""
    with subprocess.Popen([sys.executable, "-c", SHOULD_RUN]) as victim:
        try:
            kill = kill_consumer(tmp_path, victim.pid)
            assert kill(14.0) is None
            for consumers in ([], [{"consumer": 1, "partitions": []}]):
                (tmp_path / "status.json").write_text(json.dumps({"consumers": consumers}))
                assert kill(14.0) is None
            assert victim.poll() is None
            consumers = [{"consumer": 1, "partitions": ["orders-0"]}]
            (tmp_path / "status.json").write_text(json.dumps({"consumers": consumers}))
            what, detail = kill(15.0)
            assert what == "consumer 1 killed with -9"
            assert detail == "nobody reads its 1 partition now"
            assert victim.wait(60) == -signal.SIGKILL
        finally:
            victim.kill()
