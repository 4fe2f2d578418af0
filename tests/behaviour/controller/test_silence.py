"""Who is given up, in heartbeat time; and who is waited for."""

import pytest

from kit.controller.story import TWO_CONSUMERS, Storyteller, after
from kit.controller.story_state import state_of
from penstock.controller.core import inputs
from penstock.controller.core.effects import SendHeartbeat
from penstock.controller.core.snapshot import snapshot
from penstock.controller.core.state import ConsumerStatus
from penstock.controller.core.state_machine import Machine
from penstock.model import ConsumerId

ONE_REPORTS = "consumer 1 reports orders-0@1.1 orders-1@1.2"
TWO_REPORTS = "consumer 2 reports orders-2@1.3"
FOUR_CONSUMERS = (
    "a controller starts with epoch 1",
    "deployed:",
    "deployed:",
    "speeds orders-0=80 orders-1=80 orders-2=80 orders-3=80",
    "tick +500",
    "packed 1: orders-0; 2: orders-1; 3: orders-2; 4: orders-3",
    "consumer 1 reports",
    "consumer 2 reports",
    "consumer 3 reports",
    "consumer 4 reports",
    "consumer 1 started orders-0@1.1",
    "consumer 2 started orders-1@1.2",
    "consumer 3 started orders-2@1.3",
    "consumer 4 started orders-3@1.4",
)


def fenced(lines: list[str]) -> list[str]:
    return [line.strip() for line in lines if line.startswith("  consumer_fenced")]


def heartbeat_time_ms(teller: Storyteller) -> int:
    return state_of(teller).heartbeats.heartbeat_time_ms


# Heartbeats


def heartbeats(teller: Storyteller, ms: int) -> list[int]:
    """The numbers of the heartbeats that a tick sends."""
    state, effects = Machine().step(state_of(teller), inputs.Tick(teller.now_ms + ms))
    sent = [e.message for e in effects if isinstance(e, SendHeartbeat)]
    assert all(one.controller_epoch == state.controller_epoch for one in sent)
    return [one.heartbeat_number for one in sent]


def test_the_next_heartbeat_waits_for_the_last_one() -> None:
    """One is sent each period, after the last one came back; a lost one is followed by another."""
    teller = after("a controller starts with epoch 1")
    assert heartbeats(teller, 100) == [1], "already while it synchronises"
    teller.tell("tick +100")
    assert heartbeats(teller, 1_000) == [], "the first is not back yet"
    assert heartbeats(teller, 4_999) == []
    assert heartbeats(teller, 5_000) == [2], "the first is lost"
    teller.tell("the heartbeat comes back")
    assert heartbeats(teller, 999) == []
    assert heartbeats(teller, 1_000) == [2]


def test_a_controller_that_stepped_down_sends_no_heartbeat() -> None:
    """It judges nobody any more."""
    teller = after("a controller starts with epoch 1", "the broker fences us")
    assert heartbeats(teller, 10_000) == []


@pytest.mark.parametrize("deployed", [(), ("deployed:", "deployed:")])
@pytest.mark.parametrize(("epoch", "number"), [(1, 0), (2, 2), (1, 3)])
def test_only_a_heartbeat_that_was_sent_counts(
    epoch: int, number: int, deployed: tuple[str, ...]
) -> None:
    """Not one of another controller, not one that nobody sent, and none twice, in any state."""
    teller = after("a controller starts with epoch 1", *deployed, "tick +100", "tick +5000")
    teller.give(inputs.HeartbeatReturned(teller.now_ms, epoch, number))
    assert heartbeat_time_ms(teller) == 0
    assert state_of(teller).counts["other_heartbeat"] == 1
    teller.tell("the heartbeat comes back")
    teller.tell("the heartbeat comes back")
    assert heartbeat_time_ms(teller) == 1_000


def test_heartbeats_that_take_longer_than_the_next_one_waits_count_too() -> None:
    """Each returns when its successor is on its way: time passes, slowly, and the dead are seen."""
    teller = after("a controller starts with epoch 1", "deployed:", "deployed:", "tick +100")
    for number in range(1, 5):
        teller.tell("tick +5000")
        teller.give(inputs.HeartbeatReturned(teller.now_ms, 1, number))
        assert heartbeat_time_ms(teller) == 1_000 * number


def test_heartbeats_that_come_back_together_count_as_few() -> None:
    """They waited in the producer for the broker: consumers are not back yet."""
    teller = after("a controller starts with epoch 1", "deployed:", "deployed:", "tick +100")
    teller.tell("the heartbeat comes back")
    for _ in range(6):
        teller.tell("tick +5000")
    sent = state_of(teller).heartbeats.heartbeats_sent
    assert sent == 7
    for number in range(2, sent + 1):
        teller.give(inputs.HeartbeatReturned(teller.now_ms, 1, number))
    assert heartbeat_time_ms(teller) == 3_000, "the first of them, and the awaited one"
    assert not state_of(teller).heartbeats.is_awaited


def test_after_an_outage_everybody_has_the_whole_time_to_come_back() -> None:
    """How long a consumer was quiet before the outage is not added to how long it needs after."""
    teller = after(*TWO_CONSUMERS, "the controller hears itself for 2000 ms", "tick +30000")
    alone = "consumer 1 reports orders-0@1.1 orders-1@1.2"
    lines = teller.tell(alone) + teller.tell("the controller hears itself for 7000 ms")
    assert not any("consumer_fenced" in line for line in lines)
    lines = teller.tell(alone) + teller.tell("the controller hears itself for 2000 ms")
    assert any("consumer 2" in line and "fenced" in line for line in lines)


def test_a_heartbeat_of_another_controller_does_not_let_time_pass() -> None:
    """It says nothing about what this controller has read."""
    empty = ("deployed:", "deployed:")
    teller = after("a controller starts with epoch 2", *empty, "tick +100", "tick +5000")
    for epoch in (1, 3):
        teller.give(inputs.HeartbeatReturned(teller.now_ms, epoch, 2))
        assert heartbeat_time_ms(teller) == 0


# Silence


def test_silence_is_counted_in_heartbeats_that_came_back() -> None:
    """Eight of them without a word; time that passes without them counts for nothing."""
    teller = after(*TWO_CONSUMERS, "3600000 ms pass", "the controller hears itself for 4000 ms")
    teller.tell(ONE_REPORTS)
    assert fenced(teller.tell("the controller hears itself for 3000 ms")) == []
    teller.tell(ONE_REPORTS)
    (line,) = fenced(teller.tell("the controller hears itself for 1000 ms"))
    assert "consumer 2 sent no message for 8 s while the controller could read" in line


def test_any_message_ends_a_silence() -> None:
    """An acknowledgement is a word as good as a report."""
    teller = after(*TWO_CONSUMERS, "the controller hears itself for 7000 ms", ONE_REPORTS)
    teller.tell("consumer 2 stopped orders-2@1.3, ledger_refused")
    assert fenced(teller.tell("the controller hears itself for 1000 ms")) == []


def test_consumers_that_fall_silent_one_after_another_are_held() -> None:
    """The first of them is not given up while the others are on their way into silence."""
    teller = after(*FOUR_CONSUMERS)
    for number in (2, 3, 4):
        teller.tell("consumer 1 reports orders-0@1.1")
        teller.tell(f"consumer {number} reports orders-{number - 1}@1.{number}")
        assert fenced(teller.tell("the controller hears itself for 1000 ms")) == []
    lines = teller.tell("the controller hears itself for 4000 ms")
    teller.tell("consumer 1 reports orders-0@1.1")
    lines += teller.tell("the controller hears itself for 2000 ms")
    assert sum("held_by_silence: 3 of 4 consumers" in line for line in lines) == 1
    assert fenced(lines) == []
    seen = snapshot(state_of(teller), 0, is_degraded=False)
    assert seen["held_by_silence"] == {"consumers": [2, 3, 4], "for_ms": 1_000}


def test_a_hold_ends_with_the_silence() -> None:
    """Nobody was given up, and the status says nothing of it any more."""
    teller = after(*FOUR_CONSUMERS, "the controller hears itself for 8000 ms")
    assert state_of(teller).shared_silence is not None
    for number in (1, 2, 3):
        teller.tell(f"consumer {number} reports orders-{number - 1}@1.{number}")
    (line,) = fenced(teller.tell("the controller hears itself for 1000 ms"))
    assert "consumer 4" in line, "one is few enough"
    assert snapshot(state_of(teller), 0, is_degraded=False)["held_by_silence"] is None


def test_held_consumers_are_given_up_a_few_at_a_time() -> None:
    """As many as the setting says, each time the period has passed, and never all."""
    teller = after("settings give_up_period=4s give_up_at_once=2", *FOUR_CONSUMERS)
    given_up = [fenced(teller.tell("the controller hears itself for 1000 ms")) for _ in range(16)]
    assert [len(lines) for lines in given_up] == [0] * 11 + [2] + [0] * 3 + [1]


def test_a_group_that_is_only_quiet_is_not_held() -> None:
    """There is nobody to give up, so there is nothing to say."""
    teller = after(*FOUR_CONSUMERS, "the controller hears itself for 7000 ms")
    assert state_of(teller).shared_silence is None


def test_quiet_consumers_keep_a_hold_without_anybody_to_give_up() -> None:
    """Those that were late have spoken; the rest are quiet, and the shared silence goes on."""
    teller = after("settings give_up_period=1s", *FOUR_CONSUMERS)
    teller.tell("the controller hears itself for 3000 ms")
    teller.tell("consumer 3 reports orders-2@1.3")
    teller.tell("consumer 4 reports orders-3@1.4")
    teller.tell("the controller hears itself for 5000 ms")
    assert state_of(teller).shared_silence is not None
    teller.tell("consumer 1 reports orders-0@1.1")
    teller.tell("consumer 2 reports orders-1@1.2")
    assert fenced(teller.tell("the controller hears itself for 1000 ms")) == []
    shared = state_of(teller).shared_silence
    assert shared is not None
    assert shared.consumers == (3, 4)


def test_a_held_group_is_not_rebuilt() -> None:
    """What the consumers share is at fault: more or fewer of them would not help."""
    teller = after("settings speeds_stale=100s", *FOUR_CONSUMERS)
    teller.tell("the controller hears itself for 8000 ms")
    teller.tell("request r: settings consumers_max=2")
    assert not any("pack" in line for line in teller.tell("tick +500"))
    assert state_of(teller).counts["held_by_silence"] >= 1


# New consumers


def creating(*settings: str) -> Storyteller:
    return after(
        "settings creation_timeout=5s patience=20s",
        *settings,
        *TWO_CONSUMERS[:6],
        "consumer 1 reports",
        "consumer 1 started orders-0@1.1 orders-1@1.2",
    )


def go_on(teller: Storyteller, ms: int) -> list[str]:
    lines: list[str] = []
    for _ in range(ms // 1_000):
        teller.tell(ONE_REPORTS)
        lines += teller.tell("the controller hears itself for 1000 ms")
    return lines


def test_a_late_start_is_judged_by_a_list_that_is_newer_than_its_bound() -> None:
    """Until then it is asked for; the bound begins again when the process can come up."""
    teller = creating()
    lines = go_on(teller, 5_000)
    assert lines.count("  > list deployments") == 1
    teller.tell("deployed: 1 2*")
    lines = go_on(teller, 4_000)
    teller.tell("deployed: 1 2")
    lines += go_on(teller, 5_000)
    assert lines.count("  > list deployments") == 1
    assert fenced(lines) == [], "it may have come up just now"
    teller.tell("deployed: 1 2")
    (line,) = fenced(go_on(teller, 1_000))
    assert "consumer 2 did not come up within 5 s" in line
    assert state_of(teller).creation_blocked_until_ms > teller.now_ms


def test_a_late_start_that_is_not_even_listed_is_given_up() -> None:
    """Nothing of it is there to be waited for."""
    teller = creating()
    go_on(teller, 5_000)
    teller.tell("deployed: 1")
    assert len(fenced(go_on(teller, 1_000))) == 1


def test_a_start_is_waited_for_no_longer_than_patience() -> None:
    """Also when the deployment says for ever that it starts, or no list comes."""
    for listed in (True, False):
        teller = creating()
        lines = go_on(teller, 5_000)
        for _ in range(14):
            if listed:
                teller.tell("deployed: 1 2*")
            lines += go_on(teller, 1_000)
        assert fenced(lines) == []
        (line,) = fenced(go_on(teller, 1_000))
        assert "consumer 2 did not come up within 20 s" in line


def test_bounds_follow_what_starts_really_took() -> None:
    """A consumer may take several times as long as the slowest of the latest starts.

    What the deployment calls starting, like the wait for a node, is no part of it.
    """
    teller = creating("settings creation_slack=7")
    go_on(teller, 5_000)
    teller.tell("deployed: 1 2*")
    go_on(teller, 4_000)
    teller.tell("consumer 2 reports")
    assert max(state_of(teller).starts_took_ms) == 4_000
    teller.tell("speeds orders-0=40 orders-1=40 orders-2=40 orders-3=90")
    teller.tell("consumer 2 started orders-2@1.3")
    teller.tell("tick +3000")
    teller.tell("packed 1: orders-0 orders-1; 2: orders-2; 3: orders-3")
    lines, reports = list[str](), TWO_REPORTS
    for _ in range(27):
        teller.tell(reports)
        lines += go_on(teller, 1_000)
        if "  > start at 2: orders-3@1.4 (plan 3)" in lines:  # it reads meanwhile
            reports = f"{TWO_REPORTS} orders-3@1.4"
        teller.tell("deployed: 1 2 3")
    assert fenced(lines) == [], "seven times four seconds are not over"
    teller.tell(reports)
    (line,) = fenced(go_on(teller, 2_000))
    assert "consumer 3 did not come up within 28 s" in line


def test_a_consumer_that_reports_before_it_was_created_tells_nothing_about_starts() -> None:
    """The limit on growth still holds it back; a process with its number was there already."""
    teller = after("settings creations_per_minute_max=1", *TWO_CONSUMERS[:6])
    teller.tell("consumer 2 reports")
    assert state_of(teller).consumers[ConsumerId(2)].status is ConsumerStatus.READY
    assert state_of(teller).starts_took_ms == ()
    teller.tell("the controller hears itself for 2000 ms")
    teller.tell("consumer 1 reports")
    assert state_of(teller).starts_took_ms == (2_000,)


# Acknowledgements


MOVING = (
    "settings acknowledge=3s patience=10s",
    *TWO_CONSUMERS,
    "3000 ms pass",
    "speeds orders-0=40 orders-1=80 orders-2=20",
    "tick +500",
    "packed 1: orders-0; 2: orders-1 orders-2",
)


def test_who_says_why_is_waited_for_and_no_longer_than_patience() -> None:
    """A stop that is not acknowledged is explained by every report, until patience is over."""
    teller = after(*MOVING)
    lines: list[str] = []
    for what in ("waits_for=lake", "works_on=batch", "waits_for=spark") * 3:
        teller.tell(f"{ONE_REPORTS}, {what}")
        teller.tell(TWO_REPORTS)
        lines += teller.tell("the controller hears itself for 1000 ms")
    assert fenced(lines) == []
    (line,) = fenced(teller.tell("the controller hears itself for 1000 ms"))
    assert "consumer 1 did not stop orders-1 within 10 s" in line


def test_an_explanation_holds_for_as_long_as_an_acknowledgement_may_take() -> None:
    """Then a consumer that says nothing more about it is given up."""
    teller = after(*MOVING, f"{ONE_REPORTS}, waits_for=kafka works_on=batch")
    seen = snapshot(state_of(teller), 0, is_degraded=False)["consumers"][0]
    assert seen["occupation"] == "waits for Kafka and works on a batch"
    lines: list[str] = []
    for _ in range(2):
        teller.tell(TWO_REPORTS)
        lines += teller.tell("the controller hears itself for 1000 ms")
        teller.tell(ONE_REPORTS)
    assert fenced(lines) == []
    assert len(fenced(teller.tell("the controller hears itself for 1000 ms"))) == 1


# Confirmed ends


def test_an_end_of_who_never_reported_is_only_recorded() -> None:
    """It may come up yet: one that keeps ending is given up in its time, not waited for anew."""
    teller = creating()
    go_on(teller, 3_000)
    lines = teller.tell("the process of consumer 2 is gone")
    assert not any("consumer_ended" in line for line in lines)
    assert not any(
        "consumer_ended" in line for line in teller.tell("the process of consumer 9 is gone")
    )
    go_on(teller, 2_000)
    teller.tell("deployed: 1 2")
    assert len(fenced(go_on(teller, 1_000))) == 1
