"""setup/lowest_priority.sh, behind which long tests run beside those with real parts."""

import signal
import subprocess
import time
from pathlib import Path

import pytest

from kit.generated_files import ROOT

SCRIPT = str(ROOT / "setup" / "lowest_priority.sh")


def test_the_command_gets_what_others_leave_and_its_exit_code_is_kept() -> None:
    """Both by process and by session, where Linux shares the processor by session."""
    done = subprocess.run(
        [SCRIPT, "bash", "-c", "nice; cat /proc/self/autogroup 2> /dev/null; exit 3"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    niceness, *session = done.stdout.splitlines()
    assert niceness == "19"
    assert all(line.endswith("nice 19") for line in session), session


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_what_it_started_ends_with_it(how: signal.Signals) -> None:
    """Also a grandchild: the whole session is ended."""
    command = [SCRIPT, "bash", "-c", "sleep 60 & echo $!; wait"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        grandchild = int(running.stdout.readline())
        running.send_signal(how)
        assert running.wait(timeout=30) != 0
        deadline_s = time.monotonic() + 30
        while is_there(grandchild):
            assert time.monotonic() < deadline_s
            time.sleep(0.05)  # nothing tells when a process of another session is gone


def is_there(process: int) -> bool:
    """Whether it runs; a zombie does not."""
    try:
        status = Path(f"/proc/{process}/stat").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
