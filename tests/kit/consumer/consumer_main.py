"""Runs `penstock consumer` with a switch that only tests have: what to do at a point of a batch.

    python consumer_main.py POINT ACTION COUNT settings-and-options...

ACTION is `kill` (-9), `pause` (SIGSTOP) or `hang`, the COUNT-th time POINT is reached. The program
itself has no such switch.
"""

import os
import signal
import sys
import threading
from pathlib import Path

from penstock.consumer.process import ConsumerProcess, GraceExceededError
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
                os.kill(os.getpid(), ACTIONS[action])

    settings = load_settings(Path(settings_file)).settings
    configure_logs(settings.log.level, settings.log.format)
    try:
        ConsumerProcess(settings, int(number), at_point=at_point).run()
    except GraceExceededError:
        os._exit(1)  # as the command does


if __name__ == "__main__":
    main()
