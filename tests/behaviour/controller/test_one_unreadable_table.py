"""One table cannot be read: its partition waits, and neither its consumer nor the others do.

A start is acknowledged when its ledger is read. Until then the consumer reports what it waits for.
"""

import dataclasses

import pytest

from kit.controller.imagined_group import MB, ImaginedGroup, Log, constant, partitions
from kit.controller.story import TWO_CONSUMERS, Storyteller, after
from kit.controller.story_state import state_of
from penstock.controller.core import inputs
from penstock.controller.core.effects import WaitUntil
from penstock.controller.core.invariants import InvariantError, check_whole
from penstock.controller.core.snapshot import snapshot
from penstock.controller.core.state import HoldingStatus, Phase
from penstock.controller.core.state_machine import Machine
from penstock.messages import ConsumerReport, StartConsumingEvent, Wait, WaitsFor
from penstock.model import ConsumerId, TopicPartition

BAD = TopicPartition("bad", 0)
NEW = TopicPartition("new", 0)
TWO_WAITS = "consumer 2 reports orders-2@1.3, waits_for=lake"
# A new topic, whose table cannot be read, is given to consumer 2.
BEGUN = (
    "settings patience=60s acknowledge=4s command_resend=60s speeds_stale=600s",
    *TWO_CONSUMERS,
    "speeds orders-0=40 orders-1=40 orders-2=40 bad-0=1",
    "tick +500",
    "packed 1: orders-0 orders-1; 2: orders-2 bad-0",
)


def waits(teller: Storyteller, seconds: int, carried: int = 100) -> list[str]:
    """Both consumers report every second: the first one carries, the second waits for the lake."""
    lines = []
    for _ in range(seconds):
        teller.tell(f"consumer 1 reports orders-0@1.1 orders-1@1.2, carried={carried}")
        lines += teller.tell(TWO_WAITS)
        lines += teller.tell("the controller hears itself for 1000 ms")
        lines += teller.tell("tick +0")
        check_whole(state_of(teller))
    return lines


def conditions(teller: Storyteller) -> list[str]:
    found = snapshot(state_of(teller), 0, is_degraded=False)["conditions"]
    return [f"{one['condition']}: {one['reason']}" for one in found]


def told(lines: list[str], code: str) -> list[str]:
    return [line.strip() for line in lines if line.startswith(f"  {code}")]


class OneBadTable(ImaginedGroup):
    """Its consumers never read the ledger of one partition, and say so."""

    def give(self, given: inputs.Input) -> None:
        if isinstance(given, inputs.ConsumerMessageRead):
            message = given.message
            if isinstance(message, ConsumerReport) and BAD in self.workers[message.sender].owned:
                rows = tuple(row for row in message.owned if row.topic_partition != BAD)
                wait = Wait(what=WaitsFor.LAKE, since_ms_ago=1_000)
                update = {"waits_for": wait, "owned": rows}
                changed = message.model_copy(update=update)
                given = inputs.ConsumerMessageRead(given.now_ms, changed)
        super().give(given)

    def _take(self, given: inputs.Input) -> None:
        if isinstance(given, inputs.ConsumerMessageRead):
            message = given.message
            if isinstance(message, StartConsumingEvent):
                rows = tuple(row for row in message.partitions if row.topic_partition != BAD)
                if not rows:
                    return
                changed = message.model_copy(update={"partitions": rows})
                given = inputs.ConsumerMessageRead(given.now_ms, changed)
        super()._take(given)


@pytest.mark.slow
def test_its_consumer_is_never_fenced_and_new_topics_are_read() -> None:
    """For an hour: a healthy consumer was fenced every quarter of an hour, again and again."""
    group = OneBadTable(partitions(6, 0.5 * MB)).run(60)
    created = group.counts["created"]
    group.logs[BAD] = Log(constant(100.0))
    group.run(60)
    group.logs[NEW] = Log(constant(100.0))
    group.run(30)
    assert group.state.holdings[NEW].status is HoldingStatus.OWNED
    group.run(3_600)
    assert (group.counts["consumer_fenced"], group.counts["created"]) == (0, created)
    assert group.counts["moves"] == 0


def test_no_plan_waits_for_it_longer_than_for_an_acknowledgement() -> None:
    """The plan is done without it; history and status say why it is not read."""
    teller = after(*BEGUN)
    assert told(waits(teller, 4), "plan_done") == []
    assert conditions(teller) == []
    lines = waits(teller, 1)
    (line,) = told(lines, "partition_failed")
    why = "nothing else waits for that: consumer 2 waits for the lake"
    assert line == f"partition_failed: bad-0 not started within 4 s; {why}"
    assert len(told(lines, "plan_done")) == 1
    assert state_of(teller).phase is Phase.SENTINEL
    assert conditions(teller) == [
        "stopped: bad-0: not started yet: consumer 2 waits for the lake",
    ]
    assert told(waits(teller, 50), "partition_failed") == [], "it is told once"
    assert state_of(teller).holdings[BAD].consumer == ConsumerId(2), "it may still get the start"


def test_a_lake_that_is_away_for_all_holds_the_plan_up() -> None:
    """No move would help, and a growth is not judged by what is carried meanwhile."""
    teller = after(*BEGUN)
    lines = waits(teller, 3) + waits(teller, 20, carried=0)
    assert (told(lines, "partition_failed"), told(lines, "plan_done")) == ([], [])
    assert told(waits(teller, 4), "partition_failed") == [], "it has its time anew"
    assert len(told(waits(teller, 1), "partition_failed")) == 1


def test_it_is_read_as_soon_as_its_table_can_be() -> None:
    """Its consumer tries by itself, and acknowledges then: nothing is planned for it."""
    teller = after(*BEGUN)
    waits(teller, 10)
    lines = teller.tell("consumer 2 started bad-0@1.4")
    assert told(lines, "plan_made") == []
    holding = state_of(teller).holdings[BAD]
    assert (holding.status, holding.is_overdue) == (HoldingStatus.OWNED, False)
    assert conditions(teller) == []
    check_whole(state_of(teller))


def test_the_next_plan_does_not_wait_for_it_either() -> None:
    """A new topic is read, and that plan is done, while the table still cannot be read."""
    teller = after(*BEGUN)
    waits(teller, 5)
    teller.tell("speeds orders-0=40 orders-1=40 orders-2=40 bad-0=1 new-0=1")
    teller.tell("tick +500")
    lines = teller.tell("packed 1: orders-0 orders-1 new-0; 2: orders-2 bad-0")
    assert "  > start at 1: new-0@1.5 (plan 4)" in lines
    assert len(told(teller.tell("consumer 1 started new-0@1.5"), "plan_done")) == 1


def test_a_plan_that_moves_it_stops_it_first() -> None:
    """Its consumer may have got the start, so the next one waits for the acknowledged stop."""
    teller = after(*BEGUN)
    waits(teller, 5)
    teller.tell("speeds orders-0=40 orders-1=40 orders-2=40 bad-0=1 new-0=1")
    teller.tell("tick +500")
    lines = teller.tell("packed 1: orders-0 orders-1 bad-0; 2: orders-2 new-0")
    assert "  > stop at 2: bad-0@1.4 (plan 4)" in lines
    assert not state_of(teller).holdings[BAD].is_overdue
    assert "  > start at 1: bad-0@1.6 (plan 4)" in teller.tell("consumer 2 stopped bad-0@1.4")


def test_a_plan_that_moves_it_later_still_does() -> None:
    """It becomes overdue while its next consumer is not up yet, and stays open in the plan."""
    teller = after(*BEGUN)
    waits(teller, 2)
    teller.tell("speeds orders-0=40 orders-1=40 orders-2=140 bad-0=1")
    waits(teller, 1)
    teller.tell("tick +3000")
    teller.tell("packed 1: orders-0 orders-1; 2: orders-2; 3: bad-0")
    lines = waits(teller, 2)
    assert state_of(teller).holdings[BAD].is_overdue
    assert (told(lines, "plan_done"), len(told(lines, "partition_failed"))) == ([], 1)
    assert "  > stop at 2: bad-0@1.4 (plan 4)" in teller.tell("consumer 3 reports")


def test_after_patience_it_is_stopped_and_started_anew() -> None:
    """Perhaps another consumer can read its table. The one that cannot is not fenced."""
    teller = after(*BEGUN)
    lines = waits(teller, 60)
    (line,) = told(lines, "partition_given_up")
    assert "bad-0 not started within 1 min: stopped, and then started anew: consumer 2" in line
    assert "  > stop at 2: bad-0@1.4 (plan 3)" in lines
    assert state_of(teller).holdings[BAD].status is HoldingStatus.STOPPING
    teller.tell("consumer 2 stopped bad-0@1.4")
    teller.tell("tick +500")
    assert "  > start at 1: bad-0@1.5 (plan 4)" in teller.tell(
        "packed 1: orders-0 orders-1 bad-0; 2: orders-2"
    )
    assert told(lines, "consumer_fenced") == []


def test_a_consumer_that_stops_explaining_is_fenced_as_before() -> None:
    """It reports, says nothing of a wait, and does not start what it was told to."""
    teller = after(*BEGUN)
    assert told(waits(teller, 10), "consumer_fenced") == []
    teller.tell("consumer 2 reports orders-2@1.3")
    assert conditions(teller) == ["stopped: bad-0: not started yet: consumer 2 does not say why"]
    lines = []
    for _ in range(5):
        teller.tell("consumer 1 reports orders-0@1.1 orders-1@1.2")
        teller.tell("consumer 2 reports orders-2@1.3")
        lines += teller.tell("the controller hears itself for 1000 ms")
    (line,) = told(lines, "consumer_fenced")
    assert "consumer 2 did not start bad-0 within 4 s" in line


def next_tick_ms(teller: Storyteller) -> int:
    _, effects = Machine().step(state_of(teller), inputs.Tick(teller.now_ms))
    (wanted,) = [effect.at_ms for effect in effects if isinstance(effect, WaitUntil)]
    return wanted - teller.now_ms


def test_a_group_that_waits_only_for_it_is_calm() -> None:
    """The controller does not look ten times a second for as long as a table is broken."""
    teller = after(*BEGUN)
    waits(teller, 2)
    assert next_tick_ms(teller) == 100
    waits(teller, 5)
    assert next_tick_ms(teller) == 500


def test_a_start_at_another_consumer_is_no_excuse() -> None:
    """The check of the whole state allows it only where the plan wants the partition."""
    teller = after(*BEGUN)
    waits(teller, 5)
    state = state_of(teller)
    assert state.plan is not None
    target = {**state.plan.target, BAD: ConsumerId(1)}
    with pytest.raises(InvariantError, match="bad-0 is not where it belongs"):
        check_whole(dataclasses.replace(state, plan=dataclasses.replace(state.plan, target=target)))


# A controller that starts anew


def synchronised() -> tuple[Storyteller, list[str]]:
    teller = after(*BEGUN, "a controller starts with epoch 2 with its state file", "deployed: 1 2")
    lines = teller.tell("consumer 1 answers orders-0@1.1 orders-1@1.2")
    lines += teller.tell("consumer 2 answers orders-2@1.3 and starts bad-0@1.4")
    lines += teller.tell("deployed: 1 2")
    teller.tell("speeds orders-0=40 orders-1=40 orders-2=40 bad-0=1")
    return teller, lines


def test_a_new_controller_learns_that_it_only_starts() -> None:
    """Synchronisation ends with the answers; only the one start is not acknowledged."""
    teller, lines = synchronised()
    assert len(told(lines, "synchronised")) == 1
    found = {str(p): one.status.value for p, one in state_of(teller).holdings.items()}
    owned = dict.fromkeys(("orders-0", "orders-1", "orders-2"), "owned")
    assert found == {**owned, "bad-0": "starting"}


def test_a_report_without_it_does_not_free_it_after_a_restart() -> None:
    """Consumer 2 was told to start it and may still do so. So no other consumer may get it."""
    teller, _ = synchronised()
    lines = waits(teller, 30)
    assert state_of(teller).holdings[BAD].consumer == ConsumerId(2)
    assert (told(lines, "plan_made"), told(lines, "consumer_fenced")) == ([], [])
    assert conditions(teller) == [
        "stopped: bad-0: not started yet: consumer 2 waits for the lake",
    ]
    teller.tell("consumer 2 started bad-0@1.4")
    assert state_of(teller).holdings[BAD].status is HoldingStatus.OWNED


def test_a_table_of_many_partitions_is_told_in_one_line() -> None:
    """A line for each of them would push everything else out of the history."""
    names = [f"t-{n}" for n in range(300)]
    teller = after(
        "settings acknowledge=4s capacity=1MB/s",
        "a controller starts with epoch 1",
        "deployed:",
        "deployed:",
        "speeds " + " ".join(f"{name}=1" for name in names),
        "tick +500",
        "packed 1: " + " ".join(names),
        "consumer 1 reports",
    )
    lines = []
    for _ in range(6):
        teller.tell("consumer 1 reports, waits_for=lake carried=1")
        lines += teller.tell("the controller hears itself for 1000 ms")
    (line,) = told(lines, "partition_failed")
    assert "t-0, t-1" in line
    assert "and 295 more not started" in line


def test_its_start_is_sent_again_by_a_new_controller() -> None:
    """Under the epoch that it has."""
    teller, _ = synchronised()
    lines = waits(teller, 1) + teller.tell("tick +60000")
    assert any("start at 2: bad-0@1.4" in line for line in lines)
