"""A controller that ends itself with -9 in a chosen state: `deadly_controller.py PHASE MOMENT ...`.

Everything else is the real one: real broker, real deployment, its own directory. MOMENT is `before`
(the step that led into the state is decided, and nothing of it saved or sent yet) or `after` (all
of it done). States last for milliseconds: no signal from outside would find them.
"""

import os
import signal
import sys
from typing import Any

from penstock.cli import controller as command
from penstock.cli.main import main
from penstock.controller.core.state_machine import Machine
from penstock.controller.process import ControllerProcess


def deadly(phase: str, moment: str) -> type[Machine]:
    def die_if(state: Any, then: str) -> None:
        if state.phase.value == phase and moment == then:
            os.kill(os.getpid(), signal.SIGKILL)

    class Deadly(Machine):
        def begin(self, **given: Any) -> Any:
            begun = super().begin(**given)
            die_if(begun[0], "before")
            return begun

        def step(self, state: Any, given: Any) -> Any:
            die_if(state, "after")
            stepped = super().step(state, given)
            die_if(stepped[0], "before")
            return stepped

    return Deadly


if __name__ == "__main__":
    machine = deadly(sys.argv[1], sys.argv[2])()

    def process(settings: Any, deployment: Any) -> ControllerProcess:
        return ControllerProcess(settings, deployment, machine=machine)

    vars(command)["ControllerProcess"] = process  # the same, but mortal
    sys.argv = [sys.argv[0], *sys.argv[3:]]
    main()
