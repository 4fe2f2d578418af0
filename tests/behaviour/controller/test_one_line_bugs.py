"""Single conditions and figures of the controller's core that nothing else depends on visibly."""

from kit.controller.imagined_group import MB, ImaginedGroup, Log, constant, partitions
from kit.controller.story import SECOND_FALLS_SILENT, TWO_CONSUMERS, after
from kit.controller.story_state import state_of
from penstock.controller.core import inputs
from penstock.controller.core.load import group_load, usual_capacity
from penstock.controller.core.state import ConsumerStatus
from penstock.controller.core.step_draft import StepDraft
from penstock.messages import Direction, Pause
from penstock.model import ConsumerId, TopicPartition


def test_a_group_is_behind_beyond_what_is_tolerated() -> None:
    """One consumer carries 100 B/s: more than five seconds of that, and the group is behind."""
    for behind_bytes, is_behind in ((500, False), (501, True)):
        report = f"consumer 2 reports orders-2@1.3, behind_log_bytes={behind_bytes}"
        teller = after(*TWO_CONSUMERS, report)
        assert group_load(StepDraft(state_of(teller), teller.now_ms)).is_behind == is_behind


def test_a_number_is_used_again_only_by_a_later_incarnation() -> None:
    """The fenced process of consumer 2 still runs and reports: it is not the new consumer 2."""
    teller = after(
        *TWO_CONSUMERS,
        *SECOND_FALLS_SILENT,
        "consumer 2 is deleted",
        "tick +500",
        "packed 1: orders-0 orders-1; 9: orders-2",
    )
    assert state_of(teller).consumers[ConsumerId(2)].status is ConsumerStatus.CREATING
    teller.tell("consumer 2 reports orders-2@1.3")
    assert state_of(teller).consumers[ConsumerId(2)].status is ConsumerStatus.CREATING
    teller.tell("consumer 2 starts again")
    teller.tell("consumer 2 reports")
    assert state_of(teller).consumers[ConsumerId(2)].status is ConsumerStatus.READY


def test_an_answer_of_an_older_plan_is_not_taken() -> None:
    """It was given before the query's plan was obeyed: what it owns may have changed since."""
    teller = after("a controller starts with epoch 2", "deployed: 1", "consumer 1 answers t-0@1.1")
    taken = state_of(teller).answers[ConsumerId(1)]
    again = after("a controller starts with epoch 2", "deployed: 1")
    older = taken.model_copy(update={"plan_number": state_of(again).plan_number - 1})
    again.reads(older)
    assert ConsumerId(1) not in state_of(again).answers
    again.reads(taken)
    assert ConsumerId(1) in state_of(again).answers


def test_an_old_measurement_moves_nothing() -> None:
    """Ten seconds are its bound: an overload that was measured before is no reason."""
    partitions = [TopicPartition("orders", number) for number in range(3)]
    speeds: dict[TopicPartition, float | None] = dict.fromkeys(partitions, 90.0)
    for age_ms, is_packed in ((9_000, True), (10_600, False)):
        teller = after(*TWO_CONSUMERS, "3000 ms pass")
        teller.give(inputs.SpeedsMeasured(teller.now_ms, speeds, age_ms=age_ms))
        assert any("pack" in line for line in teller.tell("tick +500")) == is_packed


def test_the_usual_capacity_is_the_median() -> None:
    """One consumer on a strong machine says nothing about those to come."""
    teller = after(
        "settings capacity=auto calibrated.orders=100",
        *TWO_CONSUMERS,
        "deployed: 1 2 3",
        "consumer 3 reports nothing, alone=orders:500",
        "consumer 2 reports orders-2@1.3, capacity_log_bytes_per_s=90.0",
        "consumer 1 reports orders-0@1.1 orders-1@1.2, capacity_log_bytes_per_s=70.0",
    )
    assert usual_capacity(StepDraft(state_of(teller), teller.now_ms)) == 90.0


def test_spares_keep_to_the_maximum() -> None:
    """Three are wanted, and there is room for one."""
    teller = after("settings consumers_max=3 spare_consumers=3", *TWO_CONSUMERS, "tick +500")
    assert len(state_of(teller).consumers) == 3
    teller.tell("consumer 3 reports")
    teller.tell("tick +500")
    assert len(state_of(teller).consumers) == 3


def test_a_move_that_relieves_nobody_is_not_made() -> None:
    """Consumer 1 has too much, and the packer would only give it to consumer 2."""
    teller = after(
        *TWO_CONSUMERS, "3000 ms pass", "speeds orders-0=60 orders-1=80 orders-2=70", "tick +500"
    )
    lines = teller.tell("packed 1: orders-0; 2: orders-1 orders-2")
    assert not any("stop" in line for line in lines)
    assert (
        "the best packing found leaves the most loaded consumer at 150% of its capacity" in lines[0]
    )


def test_a_repair_while_growth_is_paused_uses_those_there_are() -> None:
    """Partitions without a reader get one at once, and no consumer is created for them."""
    group = ImaginedGroup(partitions(4, 0.5 * MB), controller__spare_consumers=0).run(30)
    deployed = group.deployed
    group.give(inputs.Requested(group.now_ms, Pause(request_id="p", direction=Direction.UP)))
    group.logs[TopicPartition("new", 0)] = Log(constant(1.5 * MB))
    group.run(30)
    assert len(group.state.holdings) == 5
    assert group.deployed == deployed
