"""The live group, with parts killed while partitions move and in every state of its controller.

Broker, Spark, processes and signals are real. After each test the group has converged, the lake is
exact and no process is left.
"""

import signal

import pytest

from kit.group.live_group import LiveGroup, until_dead, working
from penstock.laboratory.broker import EmbeddedKafka
from penstock.messages import StartConsumingCommand, StopConsumingCommand

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.live,
    pytest.mark.timeout(300),
]
# More than the capacity of one consumer, so that partitions have to move.
OVERLOAD = "80kB/s"
PARTITIONS = 6


def on_one_consumer(live: LiveGroup, *topics: str) -> None:
    """Create the topics and wait until one consumer has all partitions."""
    for topic in topics:
        live.administration.create_topic(topic, partitions=PARTITIONS)
    live.converged(dict.fromkeys(topics, PARTITIONS))
    live.until(lambda status: working(status) <= 1, "one consumer at work")


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("phase", ["Synchronize", "Sentinel", "Reassign", "Group Management"])
def test_a_controller_killed_in_any_state_is_succeeded(
    live: LiveGroup, phase: str, moment: str
) -> None:
    """A controller killed before or after it saves a state is replaced by one that goes on."""
    topic = f"{phase}-{moment}".replace(" ", "-").lower()
    on_one_consumer(live, topic)
    epoch = live.converged()["controller_epoch"]
    deadly = live.replace_by_crashing_controller(phase, moment)
    with live.loading(f"{topic}={OVERLOAD}", seconds=20):
        until_dead(deadly)
        live.until(
            lambda status: (
                status["controller_epoch"] > epoch
                and status["phase"] == "Sentinel"
                and working(status) >= 2
            ),
            "a successor has brought the group to its size",
        )
    live.exact(topic, PARTITIONS)


@pytest.mark.parametrize("side", ["giver", "taker"])
def test_a_consumer_killed_in_mid_hand_over_loses_nothing(live: LiveGroup, side: str) -> None:
    """A consumer killed during a hand-over loses nothing, and its partitions are reassigned."""
    topic = f"handed-{side}"
    on_one_consumer(live, topic)
    with live.commands() as commands, live.loading(f"{topic}={OVERLOAD}", seconds=20):
        victim = commands.first(StopConsumingCommand, topic)
        if side == "taker":
            victim = commands.first(StartConsumingCommand, topic)
        process = live.consumer_process(victim)
        live.send(process, signal.SIGKILL)
        until_dead(process)
    live.exact(topic, PARTITIONS)


def test_a_broker_restarted_during_a_move_loses_nothing(live: LiveGroup) -> None:
    """After a broker is killed and restarted during a move, the move goes on."""
    on_one_consumer(live, "outage")
    broker = live.group.broker
    assert isinstance(broker, EmbeddedKafka)
    with live.commands() as commands, live.loading(f"outage={OVERLOAD}", seconds=25):
        commands.first(StopConsumingCommand, "outage")
        for node in list(broker.nodes):
            broker.kill(node)
            broker.restart(node)
        live.until(lambda status: working(status) >= 2, "two consumers at work")
    live.exact("outage", PARTITIONS)


def test_partitions_added_during_a_move_are_read_from_their_start(live: LiveGroup) -> None:
    """Partitions added during a move are read from their start."""
    on_one_consumer(live, "added")
    with live.commands() as commands, live.loading(f"added={OVERLOAD}", seconds=20):
        commands.first(StopConsumingCommand, "added")
        live.administration.grow_topic("added", PARTITIONS + 3)
        live.load(f"added:{PARTITIONS}-{PARTITIONS + 2}=50kB/s", seconds=3)
    live.exact("added", PARTITIONS + 3)


def test_a_topic_deleted_during_a_move_does_not_hold_the_others(live: LiveGroup) -> None:
    """A topic deleted during a move leaves the plan, and the other moves go on."""
    on_one_consumer(live, "doomed", "staying")
    live.load("doomed=40kB/s", seconds=2)
    with live.commands() as commands, live.loading(f"staying={OVERLOAD}", seconds=20):
        commands.first(StopConsumingCommand)
        live.administration.delete_topic("doomed")
        live.until(
            lambda status: not any(name.startswith("doomed") for name in status["partitions"]),
            "the deleted topic is forgotten",
        )
    live.exact("staying", PARTITIONS)
