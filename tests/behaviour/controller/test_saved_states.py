"""What a controller remembers in its file and in Kafka, and which of the two counts."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kit.controller.story import CATALOGUE, TWO_CONSUMERS, after
from penstock.controller.core.state import GrowthLimit, State
from penstock.controller.core.state_machine import Machine
from penstock.controller.process import saved_states
from penstock.controller.process.saved_states import Remembered, SavedStates, newer
from penstock.deployment import DeploymentTemplate
from penstock.kafka_io.leading_producer import Outgoing
from penstock.model import ConsumerId
from penstock.state_directory import StateDirectory
from penstock.state_directory.state_file import encode_state
from penstock.telemetry import get_logger

TEMPLATE = DeploymentTemplate(version=3, image="penstock:3")


@pytest.fixture
def directory(tmp_path: Path) -> StateDirectory:
    return StateDirectory(tmp_path / "state", f"{CATALOGUE.lake.group}/controller")


def states_of(directory: StateDirectory, now_ms: int = 5_000, unix_ms: int = 90_000) -> SavedStates:
    return SavedStates(
        CATALOGUE,
        directory,
        get_logger(component="test"),
        now_ms=lambda: now_ms,
        unix_ms=lambda: unix_ms,
    )


def a_state(*lines: str) -> State:
    state = after(*TWO_CONSUMERS, *lines).state
    assert state is not None
    return state


def in_kafka(
    record: Outgoing | None, monkeypatch: pytest.MonkeyPatch, directory: StateDirectory
) -> Remembered:
    """What a controller reads whose group has this record."""
    value = None if record is None else record.value
    monkeypatch.setattr(saved_states, "newest_in_a_transaction", lambda *_, **__: value)
    return states_of(directory).in_kafka()


def test_the_record_has_what_no_consumer_can_tell(
    directory: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings, pauses, template, history, next request; nothing that grows with the group."""
    state = a_state(
        "request p: pause direction=down reason=sale", "request s: settings consumers_max=9"
    )
    assert state.holdings
    with directory:
        record = states_of(directory).save(state, TEMPLATE, 17)
        read = in_kafka(record, monkeypatch, directory)
    assert read.state is not None
    for name in (
        "overrides",
        "pauses",
        "requests",
        "history",
        "deployment_version",
        "incarnation_floor",
    ):
        assert getattr(read.state, name) == getattr(state, name), name
    assert (read.template, read.service_next_offset) == (TEMPLATE, 17)
    assert not read.state.holdings
    assert not read.state.consumers


def test_only_a_change_makes_a_new_record(directory: StateDirectory) -> None:
    """A count that changed is not worth one; a pause, a template and a request are."""
    state = a_state()
    with directory:
        states = states_of(directory)
        assert states.save(state, TEMPLATE, 1) is not None
        assert (
            states.save(replace(state, counts={"steps": 99}, queries_sent=5), TEMPLATE, 1) is None
        )
        paused = a_state("request p: pause")
        assert states.save(paused, TEMPLATE, 1) is not None
        assert states.save(paused, replace(TEMPLATE, version=4), 1) is not None
        assert states.save(paused, replace(TEMPLATE, version=4), 2) is not None


def test_the_newer_of_file_and_record_counts(
    directory: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another machine led since then, or Kafka was away when the file was written."""
    state = a_state()
    with directory:
        states = states_of(directory)
        first = states.save(state, TEMPLATE, 1)
        states.save(state, TEMPLATE, 2)
        filed = states_of(directory).in_file()
        older = in_kafka(first, monkeypatch, directory)
        elsewhere = states.save(
            replace(state, controller_epoch=state.controller_epoch + 1), TEMPLATE, 3
        )
        led_elsewhere = in_kafka(elsewhere, monkeypatch, directory)
    assert newer(filed, older) is filed
    assert newer(filed, led_elsewhere) is led_elsewhere
    assert newer(Remembered(), older) is older


def test_of_the_same_save_the_file_counts(
    directory: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only it says which consumers there were and what they held."""
    with directory:
        record = states_of(directory).save(a_state(), TEMPLATE, 1)
        filed = states_of(directory).in_file()
        assert newer(filed, in_kafka(record, monkeypatch, directory)) is filed
    assert filed.state is not None
    assert filed.state.holdings


@pytest.mark.parametrize("value", [b"", b"nonsense", b"penstock-state 1 x sha256:0\n{}"])
def test_a_broken_record_is_ignored(
    value: bytes, directory: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever stands on the topic, the controller starts and synchronises."""
    with directory:
        record = Outgoing("state", 0, value, ())
        assert in_kafka(record, monkeypatch, directory) == Remembered()


def test_a_record_with_a_right_checksum_and_wrong_content_is_ignored(
    directory: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody who may write to the topic can add a checksum."""
    owner = f"{CATALOGUE.lake.group}/controller"
    with directory:
        contents: tuple[dict[str, Any], ...] = (
            {"state": {"phase": "x"}},
            {},
            {"state": []},
            {"state": {}, "template": 3},
        )
        for content in contents:
            value = encode_state(owner, content)
            record = Outgoing("state", 0, value, ())
            assert in_kafka(record, monkeypatch, directory) == Remembered()


def test_the_history_is_dated_by_the_clock_of_the_machine_that_reads_it(
    directory: StateDirectory,
) -> None:
    """Each machine counts from its own start; how long ago a decision was stays true."""
    state = a_state("request p: pause")
    with directory:
        states_of(directory, now_ms=5_000, unix_ms=90_000).save(state, TEMPLATE, 1)
        read = states_of(directory, now_ms=700, unix_ms=92_000).in_file().state
    assert read is not None
    for before, after_it in zip(state.history, read.history, strict=True):
        assert 700 - after_it.at_ms == 5_000 - before.at_ms + 2_000


def test_a_restart_keeps_what_was_learned(directory: StateDirectory) -> None:
    """A growth that did not help, numbers to leave alone, and how long starts take."""
    state = replace(
        a_state(),
        growth_limit=GrowthLimit(3, 9_000, 40.0),
        capacity_size=3,
        confirmed_bytes_per_s=70.0,
        starts_took_ms=(2_000, 7_000),
        avoided_numbers={ConsumerId(2): 8_000},
    )
    with directory:
        states_of(directory).save(state, TEMPLATE, 1)
        read = states_of(directory, now_ms=700, unix_ms=92_000).in_file().state
    assert read is not None
    begun, _ = Machine().begin(
        controller_epoch=read.controller_epoch + 1, settings=CATALOGUE, now_ms=700, saved=read
    )
    # By the other clock: saved at 5,000, read two seconds later at 700.
    assert begun.growth_limit == GrowthLimit(3, 9_000 - 6_300, 40.0)
    assert begun.avoided_numbers == {ConsumerId(2): 8_000 - 6_300}
    assert (begun.capacity_size, begun.confirmed_bytes_per_s) == (3, 70.0)
    assert begun.starts_took_ms == (2_000, 7_000)


def test_a_clock_that_was_put_back_makes_nothing_last_longer(directory: StateDirectory) -> None:
    """A limit on growth ends as if no time had passed."""
    state = replace(a_state(), growth_limit=GrowthLimit(3, 9_000, 40.0))
    with directory:
        states_of(directory, now_ms=5_000, unix_ms=90_000_000).save(state, TEMPLATE, 1)
        read = states_of(directory, now_ms=700, unix_ms=3_000_000).in_file().state
    assert read is not None
    assert read.growth_limit == GrowthLimit(3, 700 + 4_000, 40.0)


def test_a_wrong_date_of_a_save_makes_it_ignored(directory: StateDirectory) -> None:
    """It is a field like any other."""
    with directory:
        states = states_of(directory)
        states.save(a_state(), TEMPLATE, 1)
        content = directory.read()
        assert isinstance(content, dict)
        directory.write({**content, "saved_at": {"now_ms": "x", "unix_ms": None}})
        assert states.in_file() == Remembered()
