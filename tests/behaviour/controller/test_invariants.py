"""The invariants see what they are there to see: each is broken on purpose, once."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from kit.controller.story import TWO_CONSUMERS, after
from penstock.controller.core.decisions import HISTORY_MAX
from penstock.controller.core.effects import DeleteConsumer, Effect, Send
from penstock.controller.core.invariants import InvariantError, check_step, check_whole
from penstock.controller.core.state import (
    ConsumerRecord,
    ConsumerStatus,
    HoldingStatus,
    State,
)
from penstock.errors import PenstockError
from penstock.messages import (
    PartitionToStart,
    PartitionToStop,
    StartConsumingCommand,
    StopConsumingCommand,
)
from penstock.model import ConsumerId, Epoch, TopicPartition

P0, P2 = TopicPartition("orders", 0), TopicPartition("orders", 2)
ONE, TWO = ConsumerId(1), ConsumerId(2)
HEAD: dict[str, Any] = {
    "consumer_id": 1,
    "incarnation": 1,
    "controller_epoch": 1,
    "plan_number": 2,
}


def good() -> State:
    state = after(*TWO_CONSUMERS).state
    assert state is not None
    return state


def with_holding(state: State, **changes: Any) -> State:
    holding = replace(state.holdings[P0], **changes)
    return replace(state, holdings={**state.holdings, P0: holding})


def broken_by(before: State, now: State, effects: Collection[Effect] = (), *touched: Any) -> str:
    with pytest.raises(InvariantError) as caught:
        check_step(before, now, effects, touched, ())
    assert isinstance(caught.value, PenstockError)
    assert caught.value.remedy
    return caught.value.name


def test_a_right_step_passes() -> None:
    """The checks are silent when all is well."""
    check_step(good(), good(), (), (P0,), ())
    check_whole(good())


@pytest.mark.parametrize(
    "changes",
    [{"controller_epoch": 2}, {"plan_number": 0}, {"epochs_used": 0}, {"now_ms": -1}],
)
def test_s5_numbers_only_rise(changes: dict[str, Any]) -> None:
    """Epoch, plan number, epochs given out and time never fall."""
    assert broken_by(good(), replace(good(), **changes)) == "S5"


def test_s5_an_epoch_that_was_not_given_out() -> None:
    """Nobody holds anything under a number that was never used, nor under an older one."""
    state = good()
    assert broken_by(state, with_holding(state, epoch=Epoch(1, 99)), (), P0) == "S5"
    assert broken_by(state, with_holding(state, epoch=Epoch(1, 0)), (), P0) == "S5"


def test_s4_started_anew_before_the_stop() -> None:
    """A new epoch takes the place of an old one only when that was released."""
    state = good()
    later = with_holding(replace(state, epochs_used=9), epoch=Epoch(1, 9))
    assert broken_by(state, later, (), P0) == "S4"
    check_step(state, later, (), (P0,), (P0,))


def test_s4_commands_follow_the_records() -> None:
    """A start or stop goes out only for what the records say is starting or stopping."""
    row: dict[str, Any] = {"topic": "orders", "partition": 0, "epoch": "1.1"}
    start = Send(StartConsumingCommand(**HEAD, partitions=(PartitionToStart(**row),)))
    stop = Send(StopConsumingCommand(**HEAD, partitions=(PartitionToStop(**row),)))
    state = good()
    assert broken_by(state, state, (start,)) == "S4", "it is owned already"
    assert broken_by(state, state, (stop,)) == "S4", "it is owned and not being stopped"
    stopping = with_holding(state, status=HoldingStatus.STOPPING)
    check_step(state, stopping, (stop,), (P0,), ())


def test_s6_a_plan_covers_exactly_what_exists() -> None:
    """No partition is left out, none is made up, and every consumer is known."""
    state = good()
    assert state.plan is not None
    less = {p: c for p, c in state.plan.target.items() if p != P0}
    new = replace(state.plan, number=3, target=less)
    assert broken_by(state, replace(state, plan=new, plan_number=3)) == "S6"
    strange = replace(state.plan, number=3, target=dict.fromkeys(state.plan.target, ConsumerId(9)))
    assert broken_by(state, replace(state, plan=strange, plan_number=3)) == "S6"
    more = {**state.plan.target, TopicPartition("new", 0): ONE}
    assert broken_by(state, replace(state, plan=replace(state.plan, target=more))) == "S6"
    wide = replace(state.plan, open=frozenset({TopicPartition("new", 0)}))
    assert broken_by(state, replace(state, plan=wide)) == "S6"
    check_step(state, replace(state, plan=None), (), (), ())


def test_s7_the_maximum_is_a_maximum() -> None:
    """Nobody is wanted beyond it."""
    state = good()
    settings = replace(state.settings, policy=replace(state.settings.policy, consumers_max=2))
    third = {**state.consumers, ConsumerId(3): ConsumerRecord(ConsumerStatus.WANTED, 0)}
    assert broken_by(state, replace(state, settings=settings, consumers=third)) == "S7"


def test_s8_nobody_who_holds_something_is_deleted() -> None:
    """And nobody is here and departing at once."""
    state = good()
    assert broken_by(state, state, (DeleteConsumer(ONE),)) == "S8"
    both = replace(state, consumers={**state.consumers}, departing={ONE: 0})
    assert broken_by(state, both) == "S8"


def test_s9_durable_first() -> None:
    """What depends on the state is done after it is saved."""
    state = good()
    later = replace(state, plan_number=3)
    assert broken_by(state, later, (DeleteConsumer(ConsumerId(9)),)) == "S9"
    leaving = replace(state, departing={ConsumerId(9): 0})
    assert broken_by(state, leaving, (DeleteConsumer(ConsumerId(9)),)) == "S9"


def test_s11_everything_is_bounded() -> None:
    """The history and the commands have limits."""
    state = good()
    long = state.history * HISTORY_MAX
    assert broken_by(state, replace(state, history=long)) == "S11"
    row = PartitionToStop(topic="t", partition=0, epoch="1.1")
    command = StopConsumingCommand.model_construct(**HEAD, partitions=(row,) * 1_001)
    assert broken_by(state, state, (Send(command),)) == "S11"


def test_the_records_agree_with_one_another() -> None:
    """Indexes, incarnations and the tracker are checked as a whole."""
    state = good()
    for wrong, name in (
        (replace(state, held_by={}), "S3"),
        (replace(state, in_flight=frozenset({P0})), "S11"),
        (with_holding(state, incarnation=7), "S3"),
        (replace(state, holdings={p: h for p, h in state.holdings.items() if p != P2}), "S3"),
    ):
        with pytest.raises(InvariantError) as caught:
            check_whole(wrong)
        assert caught.value.name == name
    assert state.plan is not None
    moved = replace(state.plan, target=dict.fromkeys(state.plan.target, TWO))
    with pytest.raises(InvariantError) as caught:
        check_whole(replace(state, plan=moved))
    assert caught.value.name == "S6"
