"""A consumer that starts before its broker waits for it, and can be ended meanwhile."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.consumer.process import ConsumerProcess, loop
from penstock.errors import SettingsError, UnreachableError
from penstock.kafka_io.mailbox import Mailbox
from penstock.settings import Settings, changed_settings
from penstock.telemetry import Health

NOBODY = "127.0.0.1:1"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "KAFKA_PAUSE_S", 0.01)


def consumer(folder: Path, health: Health) -> ConsumerProcess:
    settings = changed_settings(Settings(), {"consumer.state_root": str(folder)})
    return ConsumerProcess(settings, 1, health=health)


def test_it_asks_until_a_broker_answers(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile its health says what is missing, and that it is alive."""
    health, asked, lacking = Health(), [], []
    process = consumer(tmp_path, health)
    there = object.__new__(Mailbox)

    def opened() -> Mailbox:
        asked.append(time.monotonic())
        lacking.append(health.lacking.get("kafka"))
        if len(asked) < 4:
            raise UnreachableError("No Kafka broker answers.")
        return there

    monkeypatch.setattr(process, "_opened_mailbox", opened)
    assert process._mailbox_once_kafka_answers() is there
    assert lacking == [None, *["No Kafka broker answers."] * 3]
    assert "kafka" not in health.lacking


def test_what_does_not_pass_ends_it(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its partition of the control topics nothing is waited for."""
    process = consumer(tmp_path, Health())

    def refused() -> Mailbox:
        raise SettingsError("Consumer 1 has no mailbox.")

    monkeypatch.setattr(process, "_opened_mailbox", refused)
    with pytest.raises(SettingsError, match="no mailbox"):
        process._mailbox_once_kafka_answers()


def test_a_real_process_waits_and_ends_at_once_when_asked(tmp_path: Path) -> None:
    """It goes on asking although nobody listens; SIGTERM ends it while it asks, with 0."""
    log = tmp_path / "log"
    options = {
        "kafka.bootstrap_servers": NOBODY,
        "kafka.answer_timeout": "1s",
        "consumer.state_root": str(tmp_path / "state"),
    }
    given = [text for name, value in options.items() for text in ("--set", f"{name}={value}")]
    with log.open("wb") as out:
        child = subprocess.Popen(
            [sys.executable, "-m", "penstock", "consumer", "--id", "1", *given],
            stdout=out,
            stderr=out,
        )
    try:
        deadline_s = time.monotonic() + 60
        while log.read_text(encoding="utf-8").count("kafka_away") < 3:
            assert child.poll() is None, log.read_text(encoding="utf-8")
            assert time.monotonic() < deadline_s
            time.sleep(0.1)  # another process writes the log
        child.send_signal(signal.SIGTERM)
        assert child.wait(10) == 0
    finally:
        child.kill()
        child.wait()
    stored = (tmp_path / "state" / "consumer-1" / "state").read_text(encoding="utf-8")
    assert json.loads(stored.splitlines()[1])["state"] == "running"
