"""Who is asked to wait for another controller, and who is not; the broker's part is played."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from penstock.controller.process import prefix_holder
from penstock.controller.process.prefix_holder import (
    Holder,
    PrefixTakenError,
    holder_of,
    prefix_state,
    require_free_prefix,
)
from penstock.controller.process.standby import Standby
from penstock.kafka_io.failures import TopicMissingError
from penstock.kafka_io.partition_reader import KafkaRecord
from penstock.messages import ControllerHeartbeat, LeadershipClaim, Message, encode
from penstock.model import TopicPartition
from penstock.settings import Settings, changed_settings
from penstock.telemetry import Health, get_logger

SETTINGS = Settings()
OWN = Holder.of_this_process(SETTINGS)
ELSEWHERE = replace(
    OWN,
    host="other-host",
    place="other-host:/g",
    folder="/g",
    processes_of="another machine",
    command="penstock controller --settings /g/current.yaml --ends-with 7:8",
)
Stage = Callable[[bytes | None], list[Holder]]


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Puts a record on the topic; every holder that is listened to leads, and is noted."""

    def put(value: bytes | None) -> list[Holder]:
        asked: list[Holder] = []

        def leads(_: Settings, holder: Holder, __: object) -> bool:
            asked.append(holder)
            return True

        monkeypatch.setattr(prefix_holder, "newest_in_a_transaction", lambda *_: value)
        monkeypatch.setattr(prefix_holder, "_leads", leads)
        return asked

    return put


def test_a_holder_elsewhere_is_named(stage: Stage) -> None:
    """Host, process, folder, since when, and what to do."""
    asked = stage(ELSEWHERE.record(SETTINGS).value)
    with pytest.raises(PrefixTakenError) as refused:
        require_free_prefix(SETTINGS)
    assert asked == [ELSEWHERE]
    for part in ("group penstock", f"process {OWN.pid} on other-host", "folder /g", "since 20"):
        assert part in refused.value.message
    assert "--ends-with" not in refused.value.message, "nobody typed that command"
    assert refused.value.exit_code == 8
    assert "topics.prefix=NAME" in refused.value.remedy


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"no JSON",
        b'{"host": "of another release"}',
        ELSEWHERE.ended().record(SETTINGS).value,
        replace(ELSEWHERE, place=OWN.place).record(SETTINGS).value,
        replace(OWN, place="here:/other", started_at_ticks=1).record(SETTINGS).value,
    ],
    ids=["nobody", "damaged", "other release", "has ended", "same place", "known to be dead"],
)
def test_nobody_waits_for_who_does_not_lead(stage: Stage, value: bytes | None) -> None:
    """It leads at once, as before."""
    asked = stage(value)
    require_free_prefix(SETTINGS)
    assert asked == []


def test_another_group_on_the_same_topics_is_asked_to_wait(stage: Stage) -> None:
    """Also in the same folder: their controllers would take each other's consumers."""
    stage(replace(OWN, group="other").record(SETTINGS).value)
    with pytest.raises(PrefixTakenError, match="group other"):
        require_free_prefix(SETTINGS)


def test_a_replacement_on_kubernetes_is_the_same_place() -> None:
    """Whatever its host is called: the Deployment replaces its own pods."""
    changes = {
        "controller.deployment": "kubernetes",
        "kubernetes.namespace": "shop",
        "kubernetes.owner": "penstock-controller",
    }
    settings = changed_settings(SETTINGS, changes)
    place = Holder.of_this_process(settings).place
    assert place == "kubernetes:shop/penstock-controller"
    alone = changed_settings(settings, {"kubernetes.owner": ""})
    assert Holder.of_this_process(alone).place == OWN.place


def test_without_the_topic_nobody_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster that never saw Penstock, or a group of an older release."""

    def missing(*_: object) -> bytes | None:
        raise TopicMissingError("no such topic")

    monkeypatch.setattr(prefix_holder, "newest_in_a_transaction", missing)
    assert holder_of(SETTINGS) is None


OTHERS = replace(ELSEWHERE, group="other")


def test_the_refusal_names_the_other_group(stage: Stage) -> None:
    """The prefix is taken: its first words say by whom."""
    stage(OTHERS.record(SETTINGS).value)
    with pytest.raises(PrefixTakenError) as refused:
        require_free_prefix(SETTINGS)
    begin = "Another group, other, has the control topics data-engineering-* ("
    assert refused.value.message.startswith(begin)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "no controller has used the topics data-engineering-* yet"),
        (ELSEWHERE.record(SETTINGS).value, "data-engineering-* is this group's (penstock)"),
        (
            OTHERS.ended().record(SETTINGS).value,
            "data-engineering-* was last used by group other, which leads no more",
        ),
    ],
    ids=["nobody", "this group", "a group that ended"],
)
def test_the_doctor_says_whose_the_prefix_is(stage: Stage, value: bytes | None, said: str) -> None:
    """While this group leads elsewhere nothing is wrong, and nobody listens for heartbeats."""
    asked = stage(value)
    assert prefix_state(SETTINGS) == said
    assert asked == []


def test_the_doctor_says_that_another_group_leads(stage: Stage) -> None:
    """It is an error of the settings: one of the two needs another prefix."""
    asked = stage(OTHERS.record(SETTINGS).value)
    with pytest.raises(PrefixTakenError, match="Another group, other, has the control topics"):
        prefix_state(SETTINGS)
    assert asked == [OTHERS]


class PlayedReader:
    """Gives one record, as the standby's reader would."""

    def __init__(self, headers: tuple[tuple[str, bytes], ...], value: bytes) -> None:
        place = TopicPartition("data-engineering-controller", 0)
        self.record = KafkaRecord(place, 5, 0, None, value, headers)

    def read(self, _: float) -> list[KafkaRecord]:
        return [self.record]


@pytest.mark.parametrize(
    "sign",
    [
        ControllerHeartbeat(controller_epoch=1, heartbeat_number=1),
        LeadershipClaim(claimed_by="the other one that stood by"),
    ],
)
@pytest.mark.parametrize(
    ("group", "is_refused"), [("other", True), ("penstock", False), ("", False)]
)
def test_a_standby_waits_only_for_its_own_group(
    group: str, is_refused: bool, sign: Message
) -> None:
    """A sign of another group says that the prefix is taken; one without a group is older.

    Who claims to lead counts like a heartbeat, so that of two that stand by only one leads.
    """
    beat = encode(sign, group=group)
    standby = Standby(SETTINGS, Health(), get_logger(), is_ending=lambda: False)
    reader: Any = PlayedReader(beat.headers, beat.value)
    if is_refused:
        with pytest.raises(PrefixTakenError, match="Another group, other"):
            standby._hears_a_heartbeat(reader)
    else:
        assert standby._hears_a_heartbeat(reader)
