"""Harm done to processes: a stand-in for the group, with real processes and signals."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.laboratory.broker import EmbeddedKafka
from penstock.laboratory.campaign.faults import Fault, Harm, Part
from penstock.laboratory.campaign.injection import Injection, spark_workers
from penstock.laboratory.campaign.producers import Style
from penstock.laboratory.load import RecordForm
from penstock.processes import ProcessIdentity, identity_of, is_alive, stop

STYLE = Style(1.0, RecordForm())
_SLEEP = "import time; time.sleep(60)"


def started(code: str = _SLEEP) -> ProcessIdentity:
    process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    found = identity_of(process.pid)
    assert found is not None
    # The stand-in is ended by `stop`, which also removes it from the table of processes.
    process.returncode = 0
    return found


def state_of(process: ProcessIdentity) -> str:
    stat = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8")
    return stat.rpartition(")")[2].split()[0]


def until(condition: Any) -> None:
    deadline_s = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


class Group:
    """What the injection asks of a group, with a process for each part."""

    def __init__(self) -> None:
        self.parts = {
            name: started() for name in ("controller", "monitor", "spark", "broker", "1", "2")
        }
        self.spark_server = SimpleNamespace(process=self.parts["spark"])
        self.is_spark_starting = False
        self.broker = EmbeddedKafka()
        self.broker.nodes = {1: cast("Any", SimpleNamespace(process=self.parts["broker"]))}
        self.deployment = self

    def process_of(self, name: Any) -> ProcessIdentity:
        return self.parts[str(name)]

    def list_consumers(self) -> list[int]:
        return [1, 2]

    def restart_broker(self) -> None:
        self.parts["new broker"] = started()
        self.broker.nodes = {1: cast("Any", SimpleNamespace(process=self.parts["new broker"]))}


@pytest.fixture
def group() -> Iterator[Group]:
    made = Group()
    yield made
    for process in made.parts.values():
        stop(process, grace_s=0)


@pytest.fixture
def injection(group: Group) -> Injection:
    made = Injection(cast("Any", group), cast("Any", None), STYLE, {}, time.monotonic)
    made.note_servers()
    return made


@pytest.mark.parametrize(("pick", "hit"), [(0.0, 1), (0.49, 1), (0.51, 2), (0.999, 2)])
def test_the_drawn_share_picks_one_of_the_living_consumers(
    group: Group, injection: Injection, pick: float, hit: int
) -> None:
    """The consumer is killed, the other lives, and the fault knows whom it hit."""
    done = injection.do(Fault(0, Part.CONSUMER, Harm.KILL, pick=pick))
    until(lambda: not is_alive(group.parts[str(hit)]))
    assert is_alive(group.parts[str(3 - hit)])
    assert (done.consumer, done.over_s, done.back_s) == (hit, done.at_s, done.at_s)


def test_a_paused_part_runs_again_after_its_pause(group: Group, injection: Injection) -> None:
    """It stands still meanwhile, and the fault lasts as long."""
    monitor = group.parts["monitor"]
    found = []
    thread = threading.Thread(
        target=lambda: found.append(injection.do(Fault(0, Part.MONITOR, Harm.PAUSE, for_s=1.0)))
    )
    thread.start()
    until(lambda: state_of(monitor) == "T")
    thread.join()
    until(lambda: state_of(monitor) != "T")
    assert found[0].over_s - found[0].at_s >= 1.0


def test_a_spark_server_that_still_starts_does_not_answer_yet(
    group: Group, injection: Injection
) -> None:
    """Its new process is not harmed, and the outage lasts, until the group says that it is up."""
    stop(group.parts["spark"], grace_s=0)
    group.parts["new spark"] = started()
    group.spark_server.process = group.parts["new spark"]
    group.is_spark_starting = True
    injection.note_servers()
    assert injection._answering[Part.SPARK_SERVER] == group.parts["spark"]
    group.is_spark_starting = False
    injection.note_servers()
    assert injection._answering[Part.SPARK_SERVER] == group.parts["new spark"]


def test_a_killed_server_is_back_when_the_next_one_answers(
    group: Group, injection: Injection
) -> None:
    """An outage lasts until the repair has seen another process, and no fault hits a dead one."""
    done = injection.do(Fault(0, Part.BROKER, Harm.KILL))
    found = []
    thread = threading.Thread(target=lambda: found.append(injection.when_back(done)))
    thread.start()
    until(lambda: not is_alive(group.parts["broker"]))
    injection.note_servers()
    assert thread.is_alive()
    group.restart_broker()
    assert injection._candidates(Part.BROKER) == []
    injection.note_servers()
    thread.join(20)
    assert found[0].back_s > done.at_s
    assert injection._candidates(Part.BROKER) == [(group.parts["new broker"], None)]


def test_a_fault_waits_for_something_to_harm(group: Group, injection: Injection) -> None:
    """A part that is dead is harmed as soon as it runs again."""
    stop(group.parts["controller"], grace_s=0)
    found = []
    thread = threading.Thread(
        target=lambda: found.append(injection.do(Fault(0, Part.CONTROLLER, Harm.TERMINATE)))
    )
    thread.start()
    time.sleep(0.3)  # it looks several times meanwhile
    assert thread.is_alive()
    group.parts["controller"] = started()
    thread.join(20)
    until(lambda: not is_alive(group.parts["controller"]))
    assert found[0].fault.harm is Harm.TERMINATE


def test_spark_workers_are_the_last_generation_below_the_server() -> None:
    """Neither the server nor the daemon that starts the workers is one, nor any other program."""
    nested = (
        "import os, time  # pyspark\n"
        "if os.fork() == 0: os.execlp('sleep', 'sleep', '60')\n"
        "if os.fork() == 0:\n"
        "    for _ in range(2):\n"
        "        if os.fork() == 0: break\n"
        "time.sleep(60)\n"
    )
    server = started(nested)
    try:
        until(lambda: len(spark_workers(server)) == 2)
        workers = spark_workers(server)
        assert server not in workers
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        stop(server, grace_s=0)


def test_signals_are_the_ones_their_names_say() -> None:
    """-9 cannot be caught, TERM can."""
    code = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    group = Group()
    try:
        for harm, number in ((Harm.KILL, -signal.SIGKILL), (Harm.TERMINATE, 0)):
            process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
            assert process.stdout is not None
            with process.stdout as printed:
                assert printed.readline() == b"ready\n"
            found = identity_of(process.pid)
            assert found is not None
            group.parts["monitor"], before = found, group.parts["monitor"]
            injection = Injection(cast("Any", group), cast("Any", None), STYLE, {}, time.monotonic)
            injection.do(Fault(0, Part.MONITOR, harm))
            assert process.wait(20) == number
            group.parts["monitor"] = before
    finally:
        for one in group.parts.values():
            stop(one, grace_s=0)
