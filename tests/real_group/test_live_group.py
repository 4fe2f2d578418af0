"""The live group with real broker, Spark and processes, parts of which are killed.

Every test has its own topics and ends with a converged group and an exact lake.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kit.group.live_group import LiveGroup, busiest, working
from kit.program import penstock
from penstock.processes import ProcessIdentity, is_alive, stop

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.live,
    pytest.mark.timeout(300),
]


def test_the_group_grows_and_shrinks_with_its_load(live: LiveGroup) -> None:
    """The group grows with the load, shrinks after it, and the lake is exact."""
    live.administration.create_topic("breathing", partitions=6)
    live.converged({"breathing": 6})
    with live.loading("breathing=120kB/s", seconds=25):
        grown = live.until(lambda status: working(status) >= 2, "two consumers at work")
        assert grown["history"]
    live.until(lambda status: working(status) <= 1, "one consumer at work")
    live.exact("breathing", 6)


def test_a_killed_consumer_loses_nothing(live: LiveGroup) -> None:
    """After a consumer is killed during a batch, its partitions are read again."""
    live.administration.create_topic("killed", partitions=4)
    status = live.converged({"killed": 4})
    with live.loading("killed=60kB/s", seconds=12):
        time.sleep(3)  # until the load runs
        victim = live.consumer_process(busiest(status))
        live.send(victim, signal.SIGKILL)
    assert not is_alive(victim)
    live.exact("killed", 4)


def test_a_killed_controller_is_back_in_control(live: LiveGroup) -> None:
    """A killed controller's successor has a higher epoch and moves nothing."""
    live.administration.create_topic("led", partitions=4)
    before = live.converged({"led": 4})
    owners = {name: one["consumer"] for name, one in before["partitions"].items()}
    with live.loading("led=20kB/s", seconds=10):
        live.send(live.group.process_of("controller"), signal.SIGKILL)
        after = live.until(
            lambda status: (
                status["controller_epoch"] > before["controller_epoch"]
                and status["phase"] == "Sentinel"
            ),
            "a successor in control",
        )
        assert {name: one["consumer"] for name, one in after["partitions"].items()} == owners
    live.exact("led", 4)


def test_a_hung_consumer_is_replaced_and_harmless_when_it_wakes(live: LiveGroup) -> None:
    """A consumer paused during a batch is replaced, and its late commit is refused."""
    live.administration.create_topic("hung", partitions=4)
    status = live.converged({"hung": 4})
    zombie = status["partitions"]["hung-0"]["consumer"]
    process = live.consumer_process(zombie)
    with live.loading("hung=60kB/s", seconds=20):
        time.sleep(3)  # until the load runs
        live.send(process, signal.SIGSTOP)
        live.until(
            lambda status: (
                status["partitions"]["hung-0"]["consumer"] not in {zombie, None}
                and status["partitions"]["hung-0"]["status"] == "owned"
            ),
            "another consumer reads hung-0",
        )
        if is_alive(process):
            os.kill(process.pid, signal.SIGCONT)
    live.exact("hung", 4)


def test_a_dead_spark_server_is_started_again(live: LiveGroup) -> None:
    """A killed Spark server restarts on its old port, and the consumers go on."""
    live.administration.create_topic("sparkless", partitions=4)
    live.converged({"sparkless": 4})
    server = live.group.spark_server
    assert server is not None
    assert server.process is not None
    with live.loading("sparkless=40kB/s", seconds=15):
        time.sleep(3)  # until the load runs
        live.send(server.process, signal.SIGKILL)
        printed: list[str] = []
        while not any("Spark server died and was started again" in line for line in printed):
            printed = live.group.repair()
            time.sleep(0.1)
    live.exact("sparkless", 4)


def test_a_dead_monitor_is_no_reason_to_shrink(live: LiveGroup) -> None:
    """Without measurements for ten scale-down periods the group keeps its size."""
    live.administration.create_topic("silent", partitions=6)
    live.converged({"silent": 6})
    with live.loading("silent=100kB/s", seconds=80):
        live.until(lambda status: working(status) >= 2, "two consumers at work")
        before = live.converged()
        monitor = live.group.process_of("monitor")
        live.send(monitor, signal.SIGSTOP)
        deadline_s = time.monotonic() + 60
        while time.monotonic() < deadline_s:
            status = live.status()
            assert not status or working(status) >= working(before)
            time.sleep(0.5)
        live.send(monitor, signal.SIGCONT)
    live.exact("silent", 6)


def test_a_second_controller_is_refused_or_fences_the_first(
    live: LiveGroup, tmp_path: Path
) -> None:
    """Refused while the first one leads; once that stands still it is fenced. Nothing is lost."""
    live.administration.create_topic("rivals", partitions=3)
    live.converged({"rivals": 3})
    first = live.group.process_of("controller")
    rival = subprocess.Popen(
        [sys.executable, "-m", "penstock", "controller", *live.group._flags],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PENSTOCK_CONTROLLER__DIRECTORY": str(tmp_path / "rival")},
    )
    try:
        # With the same directory, which is locked, the second one ends with an error.
        _, printed = rival.communicate(timeout=60)
    finally:
        rival.kill()
    assert rival.returncode == 1
    assert "is held by another process" in printed
    assert is_alive(first)
    flags = [text for text in live.group._flags if not text.startswith("controller.directory")]
    given = [text for text in flags if text != "--set"]
    elsewhere = f"controller.directory={tmp_path / 'rival'}"
    pairs = [part for text in given for part in ("--set", text)]
    command = [sys.executable, "-m", "penstock", "controller", *pairs, "--set", elsewhere]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 8
    assert f"process {first.pid} on" in refused.stderr
    assert is_alive(first)
    live.send(first, signal.SIGSTOP)
    rival = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        deadline_s = time.monotonic() + 60
        status_file = tmp_path / "rival" / "status.json"
        while not status_file.exists() and time.monotonic() < deadline_s:
            time.sleep(0.2)
        assert status_file.exists(), "the rival does not lead"
        live.send(first, signal.SIGCONT)
        deadline_s = time.monotonic() + 60
        while is_alive(first) and time.monotonic() < deadline_s:
            time.sleep(0.2)
        assert not is_alive(first)
        log = live.group.log_of("controller").read_text(encoding="utf-8")
        assert "leads" in log
    finally:
        rival.kill()
        rival.communicate()
        for note in (tmp_path / "rival").glob("consumer-*/deployment.json"):
            process = json.loads(note.read_text(encoding="utf-8"))["process"]
            stop(ProcessIdentity(**process), grace_s=20)  # consumers outlive their controller
    live.load("rivals=30kB/s", seconds=3)
    live.exact("rivals", 3)


def test_requests_are_answered_obeyed_and_refused(live: LiveGroup) -> None:
    """Pause, resume and changed settings take effect, and a wrong request is refused."""
    live.converged()
    at = ["--bootstrap-server", live.group.settings.kafka.bootstrap_servers]
    paused = penstock("pause", "--direction", "down", "--reason", "test", *at)
    assert paused.returncode == 0, paused.stderr
    live.until(lambda status: bool(status["pauses"]), "paused")
    assert penstock("resume", *at).returncode == 0
    live.until(lambda status: not status["pauses"], "resumed")
    short = penstock("pause", "--until", "4s", "--reason", "short", "-o", "json", *at)
    assert json.loads(short.stdout)["outcome"] == "done", short.stderr
    held = live.until(lambda status: bool(status["pauses"]), "paused for a while")
    assert held["pauses"][0]["reason"] == "short"
    assert held["pauses"][0]["until_unix_ms"] > time.time() * 1000 - 4000
    live.until(lambda status: not status["pauses"], "ended by itself", within_s=10)
    changed = penstock("service", "send", "change-settings", '{"consumers_max": 5}', *at)
    assert changed.returncode == 0, changed.stderr
    live.until(lambda status: status["settings"]["consumers_max"] == 5, "settings changed")
    assert (
        penstock("service", "send", "change-settings", '{"consumers_max": 4}', *at).returncode == 0
    )
    for wrong in ('{"algorithm": "nosuch"}', '{"algorithm_knob": 7}', '{"consumers_min": 99}'):
        refused = penstock("service", "send", "change-settings", wrong, *at)
        assert (refused.returncode, "refused" in refused.stderr) == (1, True), refused.stderr
    assert penstock("service", "send", "change-settings", '{"nonsense": 1}', *at).returncode == 2
    assert penstock("service", "send", "no-such", "{}", *at).returncode == 2


def test_a_request_without_a_controller_is_answered_by_the_next(live: LiveGroup) -> None:
    """A request sent while no controller runs is answered by the next one."""
    live.converged()
    stop(live.group.process_of("controller"), grace_s=20)
    request = subprocess.Popen(
        [sys.executable, "-m", "penstock", "resume", "--wait", "60s", "--bootstrap-server",
         live.group.settings.kafka.bootstrap_servers],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    time.sleep(4)  # until it is sent; no controller reads it
    live.converged()
    _, printed = request.communicate(timeout=70)
    assert request.returncode == 0, printed


def test_a_roll_out_replaces_every_consumer_without_a_loss(live: LiveGroup) -> None:
    """A roll-out under load replaces every consumer, one after another, without a loss."""
    live.administration.create_topic("rolled", partitions=4)
    before = live.converged({"rolled": 4})
    versions = [one["deployment_version"] for one in before["consumers"]]
    at = ["--bootstrap-server", live.group.settings.kafka.bootstrap_servers]
    with live.loading("rolled=40kB/s", seconds=30):
        done = penstock(
            "service", "send", "update-deployments", '{"environment": {"APP_COLOUR": "blue"}}', *at,
            timeout_s=200,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    after = live.converged({"rolled": 4})
    assert min(one["deployment_version"] for one in after["consumers"]) > max(versions)
    live.exact("rolled", 4)


def test_status_plan_and_history_print(live: LiveGroup) -> None:
    """status, plan and history print tables and JSON, and a stable group has no changes."""
    live.converged()
    where = ["--set", f"controller.directory={live.group.directory}"]
    shown = penstock("status", *where)
    assert shown.returncode == 0, shown.stderr
    assert "The controller watches" in shown.stdout
    assert penstock("status", *where, "-o", "json").returncode == 0
    assert "synchronised" in penstock("history", *where).stdout or "first_start" in shown.stdout
    assert json.loads(penstock("history", *where, "-o", "json").stdout)[-1]["explanation"]
    planned = penstock("plan", *where, "-o", "json")
    assert planned.returncode == (7 if json.loads(planned.stdout)["moves"] else 0), planned.stderr
    missing = penstock("status", "--set", "controller.directory=nowhere")
    assert missing.returncode == 1
    assert "penstock up" in missing.stderr
