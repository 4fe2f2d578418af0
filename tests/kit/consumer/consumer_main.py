"""Runs `penstock consumer` with a switch that only tests have: what to do at a point of a batch.

    python consumer_main.py POINT ACTION COUNT settings-and-options...

ACTION is `kill` (-9), `pause` (SIGSTOP) or `hang`, the COUNT-th time POINT is reached. With ACTION
`panic`, POINT is a topic: describing a file of it panics, as native code does. The program itself
has no such switch. With TEST_WRITERS_ALONE_MAX in the environment, one consumer commits for all
where a table has more writers than that.
"""

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from kit.consumer.transformations import Panic
from penstock.committer.core import duty
from penstock.consumer.process import ConsumerProcess, GraceExceededError
from penstock.pipeline import written_files
from penstock.pipeline.file_statistics import file_stats
from penstock.settings import load_settings
from penstock.telemetry import configure_logs

ACTIONS = {"kill": signal.SIGKILL, "pause": signal.SIGSTOP}


def main() -> None:
    point, action, count, number, settings_file = sys.argv[1:6]
    left = int(count)

    def at_point(name: str) -> None:
        nonlocal left
        if name == point:
            left -= 1
            if left == 0 and action == "hang":
                sys.stderr.write("hanging\n")
                threading.Event().wait()
            elif left == 0:
                # To this thread: sent to the process, another thread might take it, and this one
                # would go on for a while.
                signal.pthread_kill(threading.get_ident(), ACTIONS[action])

    def panicking(footer: Any) -> str:
        stats = file_stats(footer)
        if point in stats:
            raise Panic("index out of bounds")
        return stats

    if "TEST_WRITERS_ALONE_MAX" in os.environ:
        duty.WRITERS_ALONE_MAX = int(os.environ["TEST_WRITERS_ALONE_MAX"])
    if action == "panic":
        setattr(written_files, "file_stats", panicking)  # noqa: B010 -- a test's own
    settings = load_settings(Path(settings_file)).settings
    configure_logs(settings.log.level, settings.log.format)
    try:
        ConsumerProcess(settings, int(number), at_point=at_point).run()
    except GraceExceededError:
        os._exit(1)  # as the command does


if __name__ == "__main__":
    main()
