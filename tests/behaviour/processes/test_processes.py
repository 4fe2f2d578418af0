"""Processes are identified by number and start time, end with their parent, and can be stopped."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.errors import UsageError
from penstock.processes import (
    ProcessIdentity,
    RunningServer,
    ServerRegistry,
    identity_of,
    is_alive,
    send_signal,
    start_child,
    start_detached,
    stop,
)

SLEEPER = [sys.executable, "-c", "import time; time.sleep(60)"]
STUBBORN = [
    sys.executable,
    "-c",
    (
        "import signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('deaf', flush=True)\n"
        "time.sleep(60)"
    ),
]


def eventually(condition: Callable[[], bool], within_s: float = 10.0) -> bool:
    deadline = time.monotonic() + within_s
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)  # polling another process is the only way to see it change
    return condition()


def test_a_reused_number_is_another_process(tmp_path: Path) -> None:
    """A process with the same number and another start time gets no signal."""
    process = start_child(SLEEPER, log_file=tmp_path / "log")
    stranger = ProcessIdentity(process.pid, process.started_at_ticks - 1)
    assert not is_alive(stranger)
    assert not send_signal(stranger, signal.SIGKILL)
    assert is_alive(process)
    stop(process, grace_s=5)
    assert not is_alive(process)
    assert not send_signal(process, signal.SIGTERM)


def test_a_zombie_is_dead() -> None:
    """A process that ended but was not reaped counts as dead."""
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    assert eventually(lambda: identity_of(process.pid) is None)
    process.wait()


def test_no_such_process() -> None:
    """An unused number has no identity."""
    assert identity_of(2**22 + 1) is None


def test_a_process_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    """A process that ignores SIGTERM is killed after the grace period."""
    log = tmp_path / "log"
    process = start_child(STUBBORN, log_file=log)
    assert eventually(lambda: log.read_text(encoding="utf-8") == "deaf\n")
    stop(process, grace_s=0.3)
    assert not is_alive(process)


def test_a_paused_process_is_continued_to_end(tmp_path: Path) -> None:
    """A paused process is continued so that it handles SIGTERM."""
    process = start_child(SLEEPER, log_file=tmp_path / "log")
    send_signal(process, signal.SIGSTOP)
    begun = time.monotonic()
    stop(process, grace_s=20)
    assert not is_alive(process)
    assert time.monotonic() - begun < 15


@pytest.mark.parametrize(("start", "survives"), [("start_child", False), ("start_detached", True)])
def test_children_end_with_a_killed_parent(tmp_path: Path, start: str, survives: bool) -> None:
    """Children end with a killed parent; detached processes stay."""
    noted = tmp_path / "pid"
    script = (
        "import sys, time\nfrom pathlib import Path\nfrom penstock.processes import " + start + "\n"
        f"child = {start}([sys.executable, '-c', 'import time; time.sleep(60)'],"
        f" log_file=Path({str(tmp_path / 'log')!r}))\n"
        f"Path({str(noted)!r}).write_text(str(child.pid))\ntime.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script])
    assert eventually(lambda: noted.exists() and bool(noted.read_text(encoding="utf-8")))
    child = identity_of(int(noted.read_text(encoding="utf-8")))
    assert child is not None
    # The child itself sets the signal before it becomes the program.
    command = Path(f"/proc/{child.pid}/cmdline")
    assert eventually(lambda: b"die_with_parent" not in command.read_bytes())
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    if survives:
        time.sleep(0.3)  # long enough for a wrong death
        assert is_alive(child)
        stop(child, grace_s=5)
    assert eventually(lambda: not is_alive(child))


def test_output_and_environment_reach_the_child(tmp_path: Path) -> None:
    """Stdout and stderr go to the log file; the environment is exactly the given one."""
    log = tmp_path / "log"
    script = "import os, sys; print(os.environ['ONLY']); print('x', file=sys.stderr)"
    child = start_detached(
        [sys.executable, "-c", script], log_file=log, environment={"ONLY": "this"}
    )
    assert eventually(lambda: not is_alive(child))
    assert sorted(log.read_text(encoding="utf-8").split()) == ["this", "x"]


def server(name: str, process: ProcessIdentity, data: Path) -> RunningServer:
    return RunningServer(name, "127.0.0.1:1", (process,), ("log",), str(data), is_temporary=True)


def test_a_server_is_found_again_and_stopped(tmp_path: Path) -> None:
    """A registered server is found by name, and stopping it removes its temporary data."""
    registry = ServerRegistry(tmp_path / "run")
    data = tmp_path / "data"
    data.mkdir()
    process = start_detached(SLEEPER, log_file=tmp_path / "log")
    registry.remember(server("one", process, data))
    found = ServerRegistry(tmp_path / "run").find("one")
    assert found == server("one", process, data)
    assert found is not None
    assert found.living == 1
    registry.stop(found, grace_s=5)
    assert found.living == 0
    assert not data.exists()
    assert registry.all() == []
    assert registry.find("one") is None


@pytest.mark.parametrize("name", ["", "../etc", "a b", "A", "x" * 50, "; rm -rf"])
def test_names_that_could_be_paths_are_refused(tmp_path: Path, name: str) -> None:
    """A name that could be a path is refused."""
    with pytest.raises(UsageError, match="is not a name"):
        ServerRegistry(tmp_path).find(name)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"processes": [{"pid": 1}]}'])
def test_a_broken_note_is_named(tmp_path: Path, content: str) -> None:
    """A damaged registry file is an error that names the file."""
    (tmp_path / "one.json").write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=r"one\.json is not a file that Penstock wrote"):
        ServerRegistry(tmp_path).find("one")
