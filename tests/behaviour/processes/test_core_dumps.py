"""No crash of the program or of what it starts writes the memory to disk."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

from kit.canaries import CANARIES, found_below

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


def test_what_an_aborted_process_leaves_has_no_secret(tmp_path: Path) -> None:
    """Neither its log nor a file of its folders; its secrets were in use, and core dumps allowed.

    A system that hands dumps to a program of its own gets none either: the limit is zero.
    """
    (tmp_path / "temporary").mkdir()
    log = tmp_path / "page.log"
    command = [sys.executable, "-m", "penstock", "page", "--set", "page.address=127.0.0.1:0"]
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["sh", "-c", 'ulimit -S -c "$(ulimit -H -c)"; exec "$@"', "sh", *command],
            cwd=tmp_path,
            env={**os.environ, **CANARIES, "TMPDIR": str(tmp_path / "temporary")},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    deadline_s = time.monotonic() + 60
    while "The page is at" not in (said := log.read_text(encoding="utf-8")):
        assert process.poll() is None, said
        assert time.monotonic() < deadline_s, said
        time.sleep(0.05)
    limits = Path(f"/proc/{process.pid}/limits").read_text(encoding="utf-8")
    (core,) = [line.split() for line in limits.splitlines() if "core file size" in line]
    assert core[4] == "0", f"{core}; the most is {most}"
    process.send_signal(signal.SIGABRT)
    assert process.wait(20) == -signal.SIGABRT
    assert found_below(tmp_path, CANARIES.values()) == []
    assert [one.name for one in tmp_path.rglob("*core*")] == []
