"""setup/lowest_priority.sh, behind which long tests run beside those with real parts."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from kit.generated_files import ROOT

SCRIPT = str(ROOT / "setup" / "lowest_priority.sh")


# A place where /proc can only be read, as in many containers: the command follows.
READ_ONLY = (
    *("unshare", "--map-root-user", "--mount", "bash", "-c"),
    'mount --bind /proc /proc && mount -o remount,bind,ro /proc && exec "$@"',
    "read-only",
)


@pytest.fixture(params=["writable", "read-only"])
def place(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """What stands before the script: nothing, or what makes /proc read-only for it."""
    if request.param == "writable":
        return ()
    tried = subprocess.run([*READ_ONLY, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"/proc cannot be made read-only here: {tried.stderr.strip()}")
    return READ_ONLY


def test_the_command_gets_what_others_leave_and_its_exit_code_is_kept(
    place: tuple[str, ...],
) -> None:
    """Both by process and by session, where Linux shares the processor by session.

    A session that keeps the usual priority would get as much as all others together: where its
    priority cannot be set there is none.
    """
    said = "nice; [ -w /proc/self/autogroup ]; echo $?; cut -d' ' -f6 /proc/$$/stat; "
    done = subprocess.run(
        [*place, SCRIPT, "bash", "-c", f"{said} cat /proc/self/autogroup 2> /dev/null; exit 3"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    niceness, is_read_only, session, *shared = done.stdout.splitlines()
    assert niceness == "19"
    if is_read_only == "0":
        assert int(session) != os.getsid(0)
        assert all(line.endswith("nice 19") for line in shared), shared
    else:
        assert int(session) == os.getsid(0)
    assert done.stderr == ""


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_what_it_started_ends_with_it(place: tuple[str, ...], how: signal.Signals) -> None:
    """Also a grandchild: all that it has started is ended."""
    command = [*place, SCRIPT, "bash", "-c", "sleep 600 & echo $!; wait"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        grandchild = int(running.stdout.readline())
        running.send_signal(how)
        assert running.wait(timeout=120) != 0
        deadline_s = time.monotonic() + 120
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
