"""Growth that does not help is noticed, taken back, and tried again only after a while."""

from dataclasses import replace
from typing import Any

import pytest

from kit.controller.imagined_group import MB, ImaginedGroup, constant, partitions
from kit.controller.story import TWO_CONSUMERS, Storyteller, after
from penstock.controller.core.carried_samples import CarriedSample
from penstock.controller.core.growth import judge, most_consumers
from penstock.controller.core.load import group_load, usual_capacity
from penstock.controller.core.state import GrowthTrial
from penstock.controller.core.step_draft import StepDraft
from penstock.model import ConsumerId


def sharing(shared_bytes_per_s: float, **options: Any) -> ImaginedGroup:
    """A group whose consumers share one limit, with a load of 8 MB/s."""
    return ImaginedGroup(
        partitions(80, 0.1 * MB),
        shared_bytes_per_s=shared_bytes_per_s,
        packing__capacity="auto",
        calibrated={"t": 2 * MB},
        **options,
    )


def test_growth_that_does_not_help_is_taken_back() -> None:
    """Consumers that share 6 MB/s carry no more when there are more: it was 80 of them."""
    group = sharing(6 * MB).run(420)
    assert group.working == 5
    assert group.most_deployed <= 2 * 5 + 1
    (said,) = group.said("growth_did_not_help")
    assert said.startswith("10 consumers carry 6.")
    assert "MB/s in all, and 5 carried 6.4 MB/s: back to 5, and no more before 600 s" in said


@pytest.mark.slow
def test_it_is_tried_again_after_a_while() -> None:
    """Not before: then it may help, and when it does not, it is taken back again."""
    group = sharing(6 * MB, controller__growth_retry="300s").run(400)
    assert group.working == 5
    assert len(group.said("growth_did_not_help")) == 1
    group.run(400)
    assert len(group.said("growth_did_not_help")) == 2
    assert group.working == 5


@pytest.mark.slow
def test_growth_that_helps_stays() -> None:
    """Each consumer carries 1 MB/s of its own: eight of them and more carry the load."""
    group = ImaginedGroup(
        partitions(80, 0.1 * MB),
        carries_bytes_per_s=1 * MB,
        packing__capacity="auto",
        calibrated={"t": 2 * MB},
    ).run(600)
    assert group.said("growth_did_not_help") == []
    assert group.working >= 8
    assert group.behind_bytes < 8 * MB


def test_a_load_that_changes_a_lot_is_tried_again_at_once() -> None:
    """The comparison was made with another load."""
    speed: list[float] = [0.1 * MB]
    logs = {f"t-{n}": (lambda _: speed[0]) for n in range(80)}
    group = ImaginedGroup(
        logs, shared_bytes_per_s=6 * MB, packing__capacity="auto", calibrated={"t": 2 * MB}
    ).run(200)
    assert most_consumers(StepDraft(group.state, group.now_ms)) == 5
    speed[0] = 0.115 * MB
    group.run(5)
    assert most_consumers(StepDraft(group.state, group.now_ms)) == 5, "15 % is not a lot"
    speed[0] = 0.13 * MB
    group.run(5)
    assert most_consumers(StepDraft(group.state, group.now_ms)) == 100


@pytest.mark.slow
def test_what_is_measured_under_contention_is_not_learned() -> None:
    """Ten consumers measured 0.6 MB/s each; the five that stay are still known for 1.2 MB/s."""
    group = sharing(6 * MB).run(200)
    draft = StepDraft(group.state, group.now_ms)
    assert usual_capacity(draft) == pytest.approx(1.2 * MB)
    known = [r.capacity_by_topic.get("t") for r in group.state.consumers.values()]
    assert min(one for one in known if one) == pytest.approx(1.2 * MB)


def is_on_trial(group: ImaginedGroup) -> bool:
    return group.state.growth_trial is not None


def learned(teller: Storyteller, consumer: int) -> float | None:
    assert teller.state is not None
    return teller.state.consumers[ConsumerId(consumer)].capacity_by_topic.get("orders")


def test_on_trial_only_more_is_learned() -> None:
    """A lower figure, and the first one of a new consumer, tell of contention."""
    teller = after("settings capacity=auto calibrated.orders=100", *TWO_CONSUMERS)
    assert teller.state is not None
    one = "consumer 1 reports orders-0@1.1 orders-1@1.2, capacity_log_bytes_per_s="
    teller.tell(one + "70.0")
    assert learned(teller, 1) == 70.0
    teller.state = replace(teller.state, growth_trial=GrowthTrial(1, 2, 50.0, 120.0))
    teller.tell(one + "35.0")
    teller.tell("consumer 2 reports orders-2@1.3, capacity_log_bytes_per_s=35.0")
    assert (learned(teller, 1), learned(teller, 2)) == (70.0, None)
    teller.tell(one + "90.0")
    assert learned(teller, 1) == 90.0


def test_a_group_that_keeps_up_has_grown_enough() -> None:
    """It grew because of its settings, not because it was behind: nothing is compared."""
    speed: list[float] = [0.1 * MB]
    logs = {f"t-{n}": (lambda _: speed[0]) for n in range(16)}
    group = ImaginedGroup(logs, carries_bytes_per_s=50 * MB).run(120)
    assert not is_on_trial(group)
    speed[0] = 0.15 * MB
    assert is_on_trial(group.run(10))
    assert not is_on_trial(group.run(20))
    assert group.working == 2
    assert group.said("growth_did_not_help") == []


@pytest.mark.slow
def test_a_group_that_keeps_up_does_not_grow_by_what_it_measures_together() -> None:
    """8.2 MB/s in all are enough for 8 MB/s, however little each of many consumers measures."""
    group = sharing(8.2 * MB, waiting_bytes=60 * MB).run(900)
    assert group.working <= 8
    assert group.most_deployed <= 2 * 5 + 1


def test_growth_of_a_group_that_is_not_behind_is_not_compared() -> None:
    """It is over capacity by its settings only: the trial ends without a verdict."""
    teller = after(*TWO_CONSUMERS, "speeds orders-0=90 orders-1=90 orders-2=40")
    assert teller.state is not None
    trial = GrowthTrial(1, 2, 500.0, 220.0, settled_since_ms=teller.now_ms - 70_000)
    draft = StepDraft(replace(teller.state, growth_trial=trial), teller.now_ms)
    judge(draft, group_load(draft), is_settled=True)
    assert draft.state.growth_trial is None
    assert draft.state.growth_limit is None
    assert draft.decisions == []


def test_a_group_that_falls_behind_slowly_does_not_keep_up() -> None:
    """It carries less than is written and is not behind yet: that is not enough (seed 1705)."""
    teller = after(*TWO_CONSUMERS, "speeds orders-0=30 orders-1=30 orders-2=40")
    assert teller.state is not None
    now_ms = teller.now_ms

    def left_after(seconds: int, *, carried_bytes_per_s: int) -> GrowthTrial | None:
        trial = GrowthTrial(1, 2, 500.0, 100.0, settled_since_ms=now_ms - seconds * 1_000)
        samples = tuple(
            CarriedSample(now_ms - ago * 1_000, -ago * carried_bytes_per_s, 2) for ago in (16, 8, 0)
        )
        assert teller.state is not None
        state = replace(teller.state, growth_trial=trial, carried_samples=samples)
        draft = StepDraft(state, now_ms)
        judge(draft, group_load(draft), is_settled=True)
        assert draft.decisions == []
        return draft.state.growth_trial

    assert left_after(16, carried_bytes_per_s=95) is None
    assert left_after(16, carried_bytes_per_s=80) is not None
    assert left_after(70, carried_bytes_per_s=80) is None


def test_growth_that_was_held_up_has_its_time_anew() -> None:
    """After a long outage nothing is known of what it carried: that is no verdict (seed 1939)."""
    teller = after(*TWO_CONSUMERS, "speeds orders-0=90 orders-1=90 orders-2=40")
    assert teller.state is not None
    trial = GrowthTrial(1, 2, 500.0, 220.0, settled_since_ms=teller.now_ms - 500_000)
    draft = StepDraft(replace(teller.state, growth_trial=trial), teller.now_ms)
    judge(draft, group_load(draft), is_settled=True)
    assert draft.state.growth_trial == replace(trial, settled_since_ms=teller.now_ms)
    assert draft.decisions == []


def test_an_outage_is_not_blamed_on_growth() -> None:
    """Nothing is carried while the lake is away: the group keeps the size that its load needs."""
    group = ImaginedGroup(
        partitions(12, 0.5 * MB), carries_bytes_per_s=2.2 * MB, controller__spare_consumers=0
    ).run(200)
    for log in group.logs.values():
        log.bytes_per_s = constant(0.9 * MB)
    group.run(8)
    group.carries_bytes_per_s = 0.0
    group.run(120)
    grown = group.working
    group.carries_bytes_per_s = 2.2 * MB
    group.run(120)
    assert not group.said("growth_did_not_help")
    assert group.working == grown >= 6
    assert group.behind_bytes < 10 * MB
