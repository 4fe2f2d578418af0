"""Runs a controller that kills itself in a chosen state: `crashing_controller.py PHASE MOMENT`.

Everything else is real: broker, deployment and directory. MOMENT is `before` (the step into the
state is decided, but nothing is saved or sent yet) or `after` (all its effects are done). States
last for milliseconds, too short for a signal from outside.
"""

import os
import signal
import sys
from typing import Any

from penstock.cli import controller as command
from penstock.cli.main import main
from penstock.controller.core.state_machine import Machine
from penstock.controller.process import ControllerProcess


def crashing_machine(phase: str, moment: str) -> type[Machine]:
    def crash_if(state: Any, then: str) -> None:
        if state.phase.value == phase and moment == then:
            os.kill(os.getpid(), signal.SIGKILL)

    class CrashingMachine(Machine):
        def begin(self, **given: Any) -> Any:
            begun = super().begin(**given)
            crash_if(begun[0], "before")
            return begun

        def step(self, state: Any, given: Any) -> Any:
            crash_if(state, "after")
            stepped = super().step(state, given)
            crash_if(stepped[0], "before")
            return stepped

    return CrashingMachine


if __name__ == "__main__":
    machine = crashing_machine(sys.argv[1], sys.argv[2])()

    def process(settings: Any, deployment: Any) -> ControllerProcess:
        return ControllerProcess(settings, deployment, machine=machine)

    vars(command)["ControllerProcess"] = process  # the real process with a crashing machine
    sys.argv = [sys.argv[0], *sys.argv[3:]]
    main()
