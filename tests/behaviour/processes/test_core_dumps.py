"""No crash of the program or of what it starts writes the memory to disk."""

import resource
import subprocess
import sys

# Allows core dumps as far as this machine does, and starts the program with another command.
WITHIN_THE_PROGRAM = """
import resource, subprocess, sys
most = resource.getrlimit(resource.RLIMIT_CORE)[1]
resource.setrlimit(resource.RLIMIT_CORE, (most, most))
from penstock.cli import main
main.app = lambda: subprocess.run(["sh", "-c", "ulimit -S -c; ulimit -H -c"], check=True)
main.main()
"""


def test_the_program_and_its_children_leave_no_core_dumps() -> None:
    """The limit of each is zero; who looks for a cause may raise it as far as before."""
    command = [sys.executable, "-c", WITHIN_THE_PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    soft, hard = done.stdout.split()
    assert soft == "0"
    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
    assert (hard == "0") == (most == 0)
