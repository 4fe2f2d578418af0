"""Corners of watching, of requests and of housekeeping that no story tells."""

import pytest

from kit.controller.story import SECOND_FALLS_SILENT, TWO_CONSUMERS, after
from kit.controller.story_state import state_of
from penstock.controller.core import inputs
from penstock.controller.core.effects import Send
from penstock.controller.core.state_machine import Machine
from penstock.controller.core.step_draft import StepDraft
from penstock.model import ConsumerId, TopicPartition

# Sentinel


def test_a_vanished_partition_is_stopped_wherever_it_is() -> None:
    """Also one that this run of the controller never saw measured."""
    teller = after(
        "settings vanish_after_measurements=1",
        "a controller starts with epoch 2",
        "deployed: 1",
        "consumer 1 answers t-0@1.1 gone-0@1.2",
        "deployed: 1",
        "speeds t-0=1",
    )
    assert "  > stop at 1: gone-0@1.2 (plan 1)" in teller.tell("speeds t-0=1")
    assert teller.tell("speeds t-0=1") == []
    assert "  > stop at 1: t-0@1.1 (plan 1)" in teller.tell("speeds u-0=1")


def test_a_partition_that_is_missing_once_is_held() -> None:
    """One measurement without it proves nothing; three in a row do."""
    teller = after(*TWO_CONSUMERS, "speeds orders-0=40 orders-1=40")
    assert len(state_of(teller).write_speeds) == 3
    teller.tell("speeds orders-0=40 orders-1=40")
    lines = teller.tell("speeds orders-0=40 orders-1=40")
    assert "  partition_vanished: 1 partition vanished" in lines


def test_a_topic_loses_no_partition_while_it_is_the_same_one() -> None:
    """A measurement that names one of three is wrong about the others; a new topic has fewer."""
    teller = after(*TWO_CONSUMERS)

    def measured(number: int, topic_id: str) -> list[str]:
        speeds: dict[TopicPartition, float | None] = {
            TopicPartition("orders", n): 40.0 for n in range(number)
        }
        given = inputs.SpeedsMeasured(teller.now_ms, speeds, topic_ids={"orders": topic_id})
        return teller.give(given)

    measured(3, "one")
    for _ in range(10):
        assert measured(1, "one") == []
    assert len(state_of(teller).write_speeds) == 3
    lines = [line for _ in range(3) for line in measured(1, "another")]
    assert "  partition_vanished: 2 partitions vanished" in lines


def test_a_stopped_partition_of_a_topic_made_again_is_tried_at_once() -> None:
    """What was wrong with the old topic says nothing about the new one; others stay stopped."""
    teller = after(*TWO_CONSUMERS)

    def measured(**topic_ids: str) -> list[str]:
        names = ("orders-0", "orders-1", "orders-2")
        speeds: dict[TopicPartition, float | None] = {TopicPartition.parse(n): 40.0 for n in names}
        known = {p: speed for p, speed in speeds.items() if p.topic in topic_ids}
        return teller.give(inputs.SpeedsMeasured(teller.now_ms, known, topic_ids=topic_ids))

    parked = TopicPartition("orders", 1)
    measured(orders="old")
    teller.tell("consumer 1 stopped orders-1@1.2, log_truncated")
    assert measured(orders="old") == []
    assert measured() == [], "it is missing for a moment"
    assert parked in state_of(teller).parked
    assert "  partition_appeared: the topic orders was made again" in measured(orders="new")
    assert parked not in state_of(teller).parked
    teller.tell("consumer 2 stopped orders-2@1.3, log_truncated")
    measured(orders="new", others="another")
    assert TopicPartition("orders", 2) in state_of(teller).parked


def test_speeds_that_are_no_speeds_are_unknown() -> None:
    """The last known one is kept; one never known counts with the mean of its topic."""
    teller = after(*TWO_CONSUMERS)
    poison = {
        TopicPartition("orders", 0): float("nan"),
        TopicPartition("orders", 1): -1.0,
        TopicPartition("orders", 2): float("inf"),
        TopicPartition("orders", 3): None,
        TopicPartition("orders", 4): 20.0,
    }
    teller.give(inputs.SpeedsMeasured(teller.now_ms, poison))
    speeds = {str(p): s for p, s in state_of(teller).write_speeds.items()}
    assert speeds == {
        "orders-0": 40.0,
        "orders-1": 40.0,
        "orders-2": 40.0,
        "orders-3": 20.0,
        "orders-4": 20.0,
    }


def test_a_backlog_adds_to_the_load_and_holds_the_group_together() -> None:
    """There is capacity to catch up, and nobody is removed while the group is behind."""
    lines = (
        "settings catch_up=10s catch_up_share=1 behind_tolerated=1s",
        *TWO_CONSUMERS,
        "speeds orders-0=30 orders-1=30 orders-2=30",
        "tick +500",
        "60000 ms pass",
        "consumer 1 reports orders-0@1.1 orders-1@1.2",
        "speeds orders-0=30 orders-1=30 orders-2=30",
    )
    for behind_bytes, is_packed in ((300, False), (150, False), (90, True)):
        report = f"consumer 2 reports orders-2@1.3, behind_log_bytes={behind_bytes}"
        told = after(*lines, report).tell("tick +500")
        assert any("pack" in line for line in told) == is_packed, (
            "one alone carries 100 in a second"
        )
    far_behind = after(*lines, "consumer 1 reports orders-0@1.1 orders-1@1.2, behind_log_bytes=900")
    far_behind.tell("consumer 2 reports orders-2@1.3")
    pack = far_behind.tell("tick +500")[0]
    assert "orders-0=75 orders-1=75 orders-2=30" in pack


def test_the_packer_is_told_where_the_speeds_are_heading() -> None:
    """+1/s, then +1.1/s, smoothed: +0.298/s, or 8.95 in half a minute. Told only if asked."""
    lines = (
        *TWO_CONSUMERS,
        "10000 ms pass",
        "speeds orders-0=50 orders-1=40 orders-2=40",
        "10000 ms pass",
        "consumer 1 reports orders-0@1.1 orders-1@1.2",
        "consumer 2 reports orders-2@1.3",
        "speeds orders-0=61 orders-1=40 orders-2=40",
    )
    for settings, expected in (
        ("settings look_ahead=30s silence=60s", {0: 69.95, 1: 40.0, 2: 40.0}),
        ("settings silence=60s", {}),
    ):
        teller = after(settings, *lines)
        _, effects = Machine().step(state_of(teller), inputs.Tick(teller.now_ms + 500))
        (problem,) = [e.problem for e in effects if hasattr(e, "problem")]
        ahead = {p.partition: x for p, x in problem.forecast_bytes_per_s.items()}
        assert ahead == pytest.approx(expected, abs=0.05)


def test_a_plan_must_save_enough_consumers() -> None:
    """With a minimum gain of two, one consumer fewer is not even worth the question."""
    teller = after(
        "settings consumers_saved_min=2",
        *TWO_CONSUMERS,
        "60000 ms pass",
        "consumer 1 reports orders-0@1.1 orders-1@1.2",
        "consumer 2 reports orders-2@1.3",
        "speeds orders-0=10 orders-1=10 orders-2=10",
    )
    assert not any("pack" in line for line in teller.tell("tick +500"))


def test_capacity_is_learned_from_reports() -> None:
    """What a consumer has shown replaces the figure of the settings, for those who come too."""
    teller = after(
        "settings capacity=auto calibrated.orders=100",
        *TWO_CONSUMERS,
        "3000 ms pass",
        "consumer 1 reports orders-0@1.1 orders-1@1.2, capacity_log_bytes_per_s=70.0",
        "speeds orders-0=40 orders-1=40 orders-2=40",
    )
    state, effects = Machine().step(state_of(teller), inputs.Tick(teller.now_ms + 500))
    (problem,) = [e.problem for e in effects if hasattr(e, "problem")]
    assert problem.capacity_of(ConsumerId(1)) == 70.0
    assert problem.capacity_of(ConsumerId(2)) == problem.capacity_of(ConsumerId(9)) == 70.0
    assert state.packing_explanation == "consumer 1 is over capacity: 80 of 70 B/s"


def test_idle_consumers_go_after_a_while() -> None:
    """Not at the first glance: a burst may follow."""
    teller = after(*TWO_CONSUMERS, "deployed: 1 2 9", "consumer 9 reports", "tick +500")
    for _ in range(4):
        teller.tell("7000 ms pass")
        teller.tell("consumer 1 reports orders-0@1.1 orders-1@1.2")
        teller.tell("consumer 2 reports orders-2@1.3")
        teller.tell("consumer 9 reports")
        lines = teller.tell("tick +500")
    assert "  > delete consumer 9" in lines


def test_no_spare_is_started_while_creation_fails_or_before_anything_is_known() -> None:
    """Spares are a comfort: they wait."""
    teller = after(
        "settings spare_consumers=1", "a controller starts with epoch 1", "deployed:", "deployed:"
    )
    assert teller.tell("tick +500") == []
    failing = after("settings spare_consumers=1", *TWO_CONSUMERS, "tick +500")
    failing.tell("consumer 3 cannot be created: no quota")
    assert failing.tell("tick +500") == []


# Requests


def test_pauses_are_bounded_and_one_sided() -> None:
    """Resuming one side keeps the other; a pause too many is refused."""
    teller = after(*TWO_CONSUMERS, "request a: pause", "request b: pause direction=down")
    teller.tell("request c: resume direction=down")
    assert [p.direction.value for p in state_of(teller).pauses] == ["up"]
    teller.tell("request d: pause direction=down")
    teller.tell("request e: resume direction=up")
    assert [p.direction.value for p in state_of(teller).pauses] == ["down"]
    again = teller.tell("request f: resume direction=up")
    assert "  request_answered: request f: done, nothing was paused" in again
    for number in range(25):
        lines = teller.tell(f"request p{number}: pause")
    assert "  > answer p24: refused" in lines


def test_two_roll_outs_do_not_mix() -> None:
    """The second one is refused until the first is done."""
    teller = after(*TWO_CONSUMERS, "request u1: update")
    assert "  > answer u2: refused" in teller.tell("request u2: update")


def test_a_roll_out_at_the_maximum_spreads_the_load() -> None:
    """No replacement may be created: the others take over, and a new one follows."""
    teller = after(
        "settings consumers_max=2", *TWO_CONSUMERS, "request u1: update", "the new deployment works"
    )
    assert "  > stop at 1: orders-0@1.1 orders-1@1.2 (plan 3)" in teller.tell("tick +500")
    teller.tell("consumer 1 stopped orders-0@1.1 orders-1@1.2")
    teller.tell("consumer 2 started orders-0@1.4 orders-1@1.5")
    assert "  > answer u1: in_progress" in teller.tell("tick +500")


def test_a_roll_out_of_a_lone_consumer_waits_for_a_higher_maximum() -> None:
    """Nobody else could read its partitions: they are not stopped."""
    teller = after(
        "settings consumers_max=1",
        "a controller starts with epoch 1",
        "deployed:",
        "deployed:",
        "speeds a-0=10",
        "tick +500",
        "packed 1: a-0",
        "consumer 1 reports",
        "consumer 1 started a-0@1.1",
        "request u1: update",
        "the new deployment works",
    )
    assert not any("stop" in line for line in teller.tell("tick +500"))


def test_a_roll_out_ends_when_all_are_new() -> None:
    """Idle consumers of the old version simply go; then it is done."""
    teller = after(*TWO_CONSUMERS, "deployed: 1 2 9", "consumer 9 reports", "request u1: update")
    teller.tell("the new deployment works")
    extra = "deployment_version=1 behind_records=0"
    teller.tell(f"consumer 1 reports orders-0@1.1 orders-1@1.2, {extra}")
    teller.tell(f"consumer 2 reports orders-2@1.3, {extra}")
    teller.tell("consumer 9 reports nothing, deployment_version=0")
    assert "  > delete consumer 9" in teller.tell("tick +500")
    lines = teller.tell("tick +500")
    assert "  > answer u1: done" in lines
    assert state_of(teller).roll_out is None


def test_a_pause_ends_by_itself() -> None:
    """Its end is on the wall clock."""
    teller = after(*TWO_CONSUMERS, "request p: pause until_unix_ms=1500")
    teller.tell("tick +500")
    assert state_of(teller).pauses
    assert "  > save" in teller.tell("tick +600")
    assert not state_of(teller).pauses


def test_commands_are_pressed_for_in_their_own_time() -> None:
    """Young ones wait, older ones are sent again, and the oldest fences its consumer at once."""
    teller = after(
        "settings acknowledge=3s",
        *TWO_CONSUMERS[:8],
        "consumer 1 started orders-0@1.1",
        "consumer 2 started orders-2@1.3",
        "speeds orders-0=90 orders-1=40 orders-2=40",
    )
    assert not any("start" in line for line in teller.tell("tick +500"))
    assert "  > start at 1: orders-1@1.2 (plan 2)" in teller.tell("tick +600")
    teller.tell("consumer 1 reports orders-0@1.1")
    assert teller.tell("the heartbeat comes back") == []
    teller.tell("the controller hears itself for 1000 ms")
    teller.tell("tick +1000")
    lines = teller.tell("the heartbeat comes back")
    assert not any(line.startswith("  > start at 1") for line in lines)
    assert any("consumer 1 did not start orders-1 within 3 s" in line for line in lines)


def test_a_consumer_with_two_late_commands_is_fenced_once() -> None:
    """And what was about to be sent to it again is not sent."""
    teller = after("settings acknowledge=3s vanish_after_measurements=1", *TWO_CONSUMERS)
    teller.tell("speeds orders-2=40")
    teller.tell("the controller hears itself for 2000 ms")
    teller.tell("consumer 1 reports orders-0@1.1 orders-1@1.2")
    teller.tell("consumer 2 reports orders-2@1.3")
    lines = teller.tell("the controller hears itself for 1000 ms")
    assert sum("consumer_fenced" in line for line in lines) == 1


def test_a_start_that_the_same_step_stops_is_not_sent() -> None:
    """Only the stop goes out."""
    teller = after(*TWO_CONSUMERS, "consumer 1 stopped orders-1@1.2, ledger_refused")
    draft = StepDraft(state_of(teller), teller.now_ms)
    draft.start(TopicPartition("orders", 1), ConsumerId(1))
    draft.stop(TopicPartition("orders", 1))
    _, effects = draft.finish(teller.now_ms)
    sent = [effect.message.event_type for effect in effects if isinstance(effect, Send)]
    assert sent == ["StopConsumingCommand"]


def test_a_start_is_not_sent_to_whom_the_same_step_fences() -> None:
    """One partition is on its way, another one is overdue: the consumer is given up."""
    teller = after(
        "settings acknowledge=3s",
        *TWO_CONSUMERS,
        "consumer 1 stopped orders-1@1.2, ledger_refused",
        "tick +500",
        "packed 1: orders-0 orders-1; 2: orders-2",
        "consumer 1 reports orders-0@1.1",
        "the controller hears itself for 2000 ms",
        "consumer 1 stopped orders-0@1.1, ledger_refused",
        "consumer 1 reports",
        "consumer 2 reports orders-2@1.3",
        "tick +1000",
    )
    lines = teller.tell("the heartbeat comes back")
    assert any("consumer 1 did not start orders-1 within 3 s" in line for line in lines)
    assert not any(line.startswith("  > start at 1") for line in lines)


def test_a_spare_that_was_only_wanted_goes_without_a_trace() -> None:
    """It was never created, so there is nothing to delete."""
    teller = after(
        "settings spare_consumers=1 creations_per_minute_max=2", *TWO_CONSUMERS, "tick +500"
    )
    assert len(state_of(teller).consumers) == 3
    teller.tell("request s: settings spare_consumers=0")
    for _ in range(5):
        teller.tell("7000 ms pass")
        teller.tell("consumer 1 reports orders-0@1.1 orders-1@1.2")
        teller.tell("consumer 2 reports orders-2@1.3")
        lines = teller.tell("tick +500")
        if len(state_of(teller).consumers) == 2:
            break
    assert not any("delete consumer 3" in line for line in lines)


def test_a_departing_consumer_that_is_still_listed_stays_departing() -> None:
    """Its number is not used until it is gone."""
    teller = after(*TWO_CONSUMERS, *SECOND_FALLS_SILENT, "deployed: 1 2")
    assert list(state_of(teller).departing) == [2]


def test_a_roll_out_uses_a_spare_of_the_new_version() -> None:
    """A warm one takes over at once."""
    teller = after(*TWO_CONSUMERS, "request u1: update", "the new deployment works")
    teller.tell("deployed: 1 2 9/1")
    teller.tell("consumer 9 reports")
    lines = teller.tell("tick +500")
    assert "  > stop at 1: orders-0@1.1 orders-1@1.2 (plan 3)" in lines


def test_synchronisation_waits_its_time() -> None:
    """Nothing is asked again too soon, and a second answer does not end it twice."""
    teller = after("a controller starts with epoch 1", "deployed: 1")
    assert teller.tell("tick +100") == []
    teller.tell("consumer 1 answers nothing")
    assert teller.tell("consumer 1 answers nothing") == []
    assert teller.tell("tick +100") == []


def test_what_is_held_and_gone_has_no_part_in_the_load() -> None:
    """What an existing partition is behind counts, and nothing of one that is gone."""
    teller = after(
        "settings catch_up=10s catch_up_share=1 vanish_after_measurements=1",
        *TWO_CONSUMERS,
        "speeds orders-0=40 orders-2=40",
        "consumer 1 reports orders-0@1.1 orders-1@1.2, behind_log_bytes=900",
        "consumer 2 stopped orders-2@1.3, ledger_refused",
    )
    assert "orders-0=85 orders-2=40" in teller.tell("tick +500")[0]
