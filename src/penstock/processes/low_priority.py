"""Puts a child process behind the batches of the consumer that started it."""

import contextlib
import os
from pathlib import Path

NICENESS = 10
MOST_WILLING = 1000
AUTOGROUP = Path("/proc/self/autogroup")


def come_after_batches() -> None:
    """It gets the processor after others, and is ended first when memory is short.

    Linux shares the processor among sessions before it looks at the niceness of processes. So a
    process with a session of its own lowers that, too.
    """
    os.nice(NICENESS)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(f"{MOST_WILLING}", encoding="ascii")
    if os.getsid(0) == os.getpid():
        with contextlib.suppress(OSError):
            AUTOGROUP.write_text(f"{NICENESS}", encoding="ascii")
