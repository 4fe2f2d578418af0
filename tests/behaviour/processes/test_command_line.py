"""How another process is shown to a person, and how a child has ended."""

import sys
import time
from pathlib import Path

from penstock.processes import exit_code_of, start_child
from penstock.processes.child import ENDED_AT_ONCE
from penstock.processes.command_line import command_line
from penstock.processes.identity import ProcessIdentity


def test_a_command_is_shown_as_it_was_typed() -> None:
    """The module's path is no part of it, and no control character reaches a terminal."""
    typed = ["/lib/penstock/__main__.py", "up", "--set", "a=b c\x1b"]
    assert command_line(typed) == "penstock up --set 'a=b c?'"
    assert command_line(["/usr/bin/pytest"]) == "pytest"
    assert command_line([]) == "''"


def test_how_a_child_has_ended(tmp_path: Path) -> None:
    """Known once, for a child of this process; unknown for any other."""
    code = "import sys, time; time.sleep(0.5); sys.exit(8)"
    child = start_child([sys.executable, "-c", code], log_file=tmp_path / "log")
    assert exit_code_of(child) is None
    deadline_s = time.monotonic() + 20
    while (found := exit_code_of(child)) is None:
        assert time.monotonic() < deadline_s
        time.sleep(0.05)  # a process that ends announces nothing here
    assert found == 8
    assert exit_code_of(child) is None
    assert exit_code_of(ProcessIdentity(1, ENDED_AT_ONCE)) is None
