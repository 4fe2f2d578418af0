"""Two consumers read one partition: one can commit, the other is refused and reports it."""

import signal
from typing import Any

import pytest

from kit.consumer.consumers import Group, add_records, assert_exact, make_topic, wait_for, wait_rows
from penstock.messages import StopReason

pytestmark = [pytest.mark.broker, pytest.mark.spark]


@pytest.mark.parametrize(
    ("held", "taken_over"),
    [
        pytest.param("longer", {"batch_bytes": "64KiB"}, id="the zombie's range is longer"),
        pytest.param("equal", {}, id="the ranges are equal"),
        pytest.param("shorter", {}, id="the zombie's range is shorter"),
    ],
)
def test_a_zombies_commit_is_refused(group: Group, held: str, taken_over: dict[str, Any]) -> None:
    """Paused before its commit and fenced meanwhile, it wakes, is refused and reports it."""
    topic, places = make_topic(group, "zombie", 1, 300, size=900)
    zombie = group.start(1, at="before-commit", action="pause")
    group.command_start(1, places)
    wait_for("the zombie to be paused", zombie.is_paused)
    if held == "shorter":
        add_records(group, topic, 1, 100, size=900)
    heir = group.start(2, **taken_over)
    group.command_start(2, places)
    if held == "longer":
        wait_for("the heir's first commit", lambda: heir.events("batch_carried"))
        assert heir.events("batch_carried")[0]["records"] < 300
        heir.send(signal.SIGSTOP)
    else:
        wait_rows(group, topic, 400 if held == "shorter" else 300)
    zombie.send(signal.SIGCONT)
    lost = wait_for("the zombie to give up", lambda: group.stopped(1).get(places[0]))
    assert lost.reason is StopReason.LEDGER_REFUSED
    assert group.answer(1, group.ask(1)).owned == ()
    heir.send(signal.SIGCONT)
    wait_rows(group, topic, 400 if held == "shorter" else 300)
    assert zombie.end() == 0
    assert heir.end() == 0
    assert_exact(group, topic)


def test_two_consumers_told_to_own_the_same_partitions(group: Group) -> None:
    """Both carry; of two commits from one offset one counts; nothing is lost or doubled."""
    topic, places = make_topic(group, "twice", 4, 50)
    children = [group.start(number) for number in (1, 2)]
    for number in (1, 2):
        group.command_start(number, places)
    wait_rows(group, topic, 200)
    for _ in range(3):
        add_records(group, topic, 4, 50)
    wait_rows(group, topic, 800)
    stopped = {**group.stopped(1), **group.stopped(2)}
    assert {row.reason for row in stopped.values()} <= {StopReason.LEDGER_REFUSED}
    assert [child.end() for child in children] == [0, 0]
    assert_exact(group, topic)


def test_a_start_paused_before_the_ledger_leaves_the_partition_to_its_new_owner(
    group: Group,
) -> None:
    """Paused between its start and the ledger, it wakes, finds a higher epoch and gives up."""
    topic, places = make_topic(group, "sleeper", 2, 100)
    sleeper = group.start(1, at="reading-ledger", action="pause")
    group.command_start(1, places)
    wait_for("the sleeper to be paused", sleeper.is_paused)
    heir = group.start(2)
    group.command_start(2, places)
    wait_rows(group, topic, 200)
    sleeper.send(signal.SIGCONT)
    lost = wait_for(
        "the sleeper to give up", lambda: len(group.stopped(1)) == 2 and group.stopped(1)
    )
    assert {row.reason for row in lost.values()} == {StopReason.LEDGER_REFUSED}
    assert group.started(1) == {}
    add_records(group, topic, 2, 50)
    wait_rows(group, topic, 300)
    assert group.stopped(2) == {}
    assert [sleeper.end(), heir.end()] == [0, 0]
    assert_exact(group, topic)
