"""Two real controllers on a real broker: who leads, and what the next one knows without a file."""

import json
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kit.controller.real_controllers import BUSY_S, TAKEOVER_AFTER_S, Controllers, until
from kit.lake.lake import new_topic_name
from penstock.cli.service import ask
from penstock.controller.core.saved_state import state_as_json
from penstock.controller.core.settings import controller_settings
from penstock.controller.core.state import Phase, State
from penstock.controller.process.prefix_holder import Holder
from penstock.kafka_io.control_topics import make_control_topics
from penstock.kafka_io.producer import RecordProducer
from penstock.laboratory.broker import EmbeddedKafka
from penstock.messages import ChangeSettings, Direction, Pause, ServiceOutcome, UpdateDeployments
from penstock.state_directory.state_file import encode_state

FORGED_EPOCH = 999_999_999
pytestmark = [pytest.mark.broker, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def paused_kafka(broker_jars: None) -> Iterator[EmbeddedKafka]:
    """Not the shared broker: this one is paused."""
    with EmbeddedKafka() as kafka:
        yield kafka


@pytest.fixture
def group(paused_kafka: EmbeddedKafka, tmp_path: Path) -> Iterator[Controllers]:
    """Control topics of its own: what is on them is counted."""
    found = Controllers(paused_kafka, tmp_path, new_topic_name("standby"))
    make_control_topics(found.settings)
    yield found
    for node in paused_kafka.nodes:  # also after a test that failed while it was paused
        paused_kafka.resume(node)


def forge_state(group: Controllers) -> None:
    """What somebody can who may write to the state topic, and under no transactional id."""
    settings = group.settings
    owner, topic = settings.lake.group, settings.topics.names.state
    state = State(Phase.SENTINEL, FORGED_EPOCH, 1, settings, controller_settings(settings))
    content = {
        "state": state_as_json(state),
        "template": {"version": 7, "environment": {"APP_REGION": "forged"}},
        "service_next_offset": 0,
    }
    holder = Holder.of_this_process(settings)
    leads = replace(holder, group="other", place="elsewhere", processes_of="", epoch=FORGED_EPOCH)
    producer = RecordProducer(settings.kafka)
    value = encode_state(f"{owner}/controller", content)
    producer.send(topic, 0, value, key=owner.encode())
    forged = leads.record(settings)
    producer.send(topic, 0, forged.value, key=forged.key, headers=forged.headers)
    assert producer.flush(60) == 0


def test_the_next_controller_knows_what_was_asked_of_the_last_one(group: Controllers) -> None:
    """Killed, and its directory lost: settings, a pause, the template and the history stay.

    What was written since, and not in a transaction, neither counts nor keeps anybody waiting.
    """
    requests = (
        ChangeSettings(request_id="s1", consumers_max=2),
        Pause(request_id="p1", direction=Direction.DOWN, reason="sale"),
        UpdateDeployments(request_id="u1", environment={"APP_REGION": "north"}),
    )
    with group.controller("first") as first:
        until(lambda: first.status.get("phase") == "Sentinel", "the first controller leads")
        for request in requests:
            assert ask(group.settings, request, "90s").outcome is ServiceOutcome.DONE
        history = [one["explanation"] for one in first.status["history"]]
        first.process.kill()
        first.process.wait()
    forge_state(group)
    with group.controller("second") as second:
        until(lambda: second.status, "the second controller leads")
        (leading,) = second.events("leading")
        assert leading["remembered_in"] == "kafka"
        assert leading["epoch"] < FORGED_EPOCH
        (told,) = second.events("state_ignored")
        assert "was not written in a transaction" in told["why"]
        assert not second.events("listens_whether_another_leads")
        status = second.status
        assert status["settings"]["consumers_max"] == 2
        assert [one["reason"] for one in status["pauses"]] == ["sale"]
        known = [one["explanation"] for one in status["history"]]
        assert known[: len(history)] == history
        assert all(0 <= one["age_ms"] < 3_600_000 for one in status["history"])
        saved = (second.directory / "controller" / "state").read_bytes().partition(b"\n")[2]
        template = json.loads(saved)["template"]
        assert template["environment"] == {"APP_REGION": "north"}
        assert template["version"] == json.loads(saved)["state"]["deployment_version"] == 1


def test_a_standby_leads_when_the_leading_controller_is_gone(group: Controllers) -> None:
    """Not while heartbeats come, nor while the broker is away; then within seconds."""
    with group.controller("first") as first, group.controller("second", "--standby") as second:
        until(lambda: first.events("leading"), "the first controller leads")
        until(lambda: second.events("standing_by"), "the second one waits")
        time.sleep(TAKEOVER_AFTER_S + 2)  # as long as a wrong guess would take
        assert not second.events("leading")
        for node in group.kafka.nodes:
            group.kafka.pause(node)
        time.sleep(TAKEOVER_AFTER_S + 2)  # a broker that is away says nothing about the leader
        for node in group.kafka.nodes:
            group.kafka.resume(node)
        time.sleep(TAKEOVER_AFTER_S + 2)
        assert not second.events("leading")
        assert first.process.poll() is None
        first.process.kill()
        took_s = until(lambda: second.events("leading"), "the second one leads")
        assert took_s >= TAKEOVER_AFTER_S / 2, "it did not wait for silence: the test is void"
        (silent,) = second.events("leader_silent")
        assert silent["leader_epoch"] == first.events("leading")[0]["epoch"]
        assert second.events("leading")[0]["epoch"] > silent["leader_epoch"]


def test_a_leader_that_ends_in_order_is_followed_at_once(group: Controllers) -> None:
    """A rolling update does not wait for silence; who comes beside it is refused."""
    with group.controller("first") as first, group.controller("second", "--standby") as second:
        until(lambda: first.status, "the first controller leads")
        until(lambda: second.events("standing_by"), "the second one waits")
        first.process.send_signal(signal.SIGTERM)
        assert first.process.wait(BUSY_S) == 0
        until(lambda: second.events("leading"), "the second one leads")
        assert second.events("leader_ended")
        assert not second.events("leader_silent")
        with group.controller("third") as third:
            assert third.process.wait(BUSY_S) == 1  # raised: the command turns it into 8
            refusal = third.log.read_text(encoding="utf-8")
            for part in ("PrefixTakenError", f"process {second.process.pid} on", "second, since"):
                assert part in refusal
            assert second.process.poll() is None
            assert not third.events("leading")


def test_a_holder_that_stands_still_is_followed_and_fenced(group: Controllers) -> None:
    """Silent for long enough, it does not block another place; who wakes up then ends."""
    with group.controller("first") as first:
        until(lambda: first.status, "the first controller leads")
        first.process.send_signal(signal.SIGSTOP)
        with group.controller("second") as second:
            took_s = until(lambda: second.events("leading"), "the second one leads")
            assert took_s >= TAKEOVER_AFTER_S / 2, "it did not wait for silence: the test is void"
            first.process.send_signal(signal.SIGCONT)
            assert first.process.wait(BUSY_S) == 1  # raised: the command turns it into 8
            assert "newer controller" in first.log.read_text(encoding="utf-8")
            assert second.process.poll() is None


def test_who_comes_back_leads_at_once(group: Controllers) -> None:
    """Killed and started again in its folder, or ended in order: nobody waits for silence."""
    with group.controller("first") as first:
        until(lambda: first.status, "the first controller leads")
    with group.controller("first") as again:
        until(lambda: again.events("leading"), "it leads again")
        until(lambda: again.status["controller_epoch"], "its status is written")
        again.process.send_signal(signal.SIGTERM)
        assert again.process.wait(BUSY_S) == 0
        assert not again.events("listens_whether_another_leads")
    with group.controller("elsewhere") as elsewhere:
        until(lambda: elsewhere.events("leading"), "it leads")
        assert not elsewhere.events("listens_whether_another_leads")
