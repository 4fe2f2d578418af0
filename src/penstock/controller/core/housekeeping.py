"""What is due on every tick in every state but synchronisation: re-sending, giving up, tidying.

Commands are sent again until they are acknowledged or their bound is reached; then the consumer
that does not answer is fenced (H5). Nothing here waits for ever.
"""

from penstock.controller.core.decisions import Code
from penstock.controller.core.inputs import SpeedsMeasured, Tick
from penstock.controller.core.load import available, remembered_speeds
from penstock.controller.core.membership import (
    create_what_is_wanted,
    delete_again,
    fence,
    fence_the_silent,
    remove,
)
from penstock.controller.core.state import ConsumerStatus, HoldingStatus, Plan, by_name
from penstock.controller.core.step_draft import Turn
from penstock.messages import Direction
from penstock.model import ConsumerId, TopicPartition
from penstock.packing.trend import observe

RESENT_PER_TICK_MIN = 25


def tidy(turn: Turn, tick: Tick) -> None:
    _end_pauses(turn, tick)
    fence_the_silent(turn)
    press_for_acknowledgement(turn)
    delete_again(turn)
    _try_parked_again(turn)
    create_what_is_wanted(turn)
    if turn.now_ms - max(turn.state.listed_ms, turn.state.asked_ms) >= (
        turn.state.settings.list_period_ms
    ):
        turn.ask_for_list()


def _end_pauses(turn: Turn, tick: Tick) -> None:
    left = tuple(
        pause
        for pause in turn.state.pauses
        if pause.until_unix_ms is None or tick.unix_ms < pause.until_unix_ms
    )
    if len(left) != len(turn.state.pauses):
        turn.change(pauses=left)
        turn.save()


def press_for_acknowledgement(turn: Turn) -> None:
    settings = turn.state.settings
    # Spread over the ticks of a second, so that no step gets long: the rest is due at the next.
    left = max(RESENT_PER_TICK_MIN, len(turn.holdings) // 20)
    for partition in sorted(turn.in_flight, key=by_name):
        holding = turn.holdings.get(partition)
        if holding is None:  # its reader was fenced a moment ago
            continue
        if turn.now_ms - holding.since_ms > settings.acknowledge_ms_max:
            verb = "start" if holding.status is HoldingStatus.STARTING else "stop"
            fence(turn, holding.consumer, f"did not {verb} {partition} in time")
        elif left and turn.now_ms - holding.sent_ms >= settings.resend_ms:
            left -= 1
            turn.resend(partition)
            turn.count("commands_resent")


def _try_parked_again(turn: Turn) -> None:
    for partition in sorted(turn.parked):
        if turn.now_ms >= turn.parked[partition].until_ms:
            turn.parked.drop(partition)
            turn.reopen(partition)


def measure(turn: Turn, given: SpeedsMeasured) -> None:
    """Take a measurement; partitions appear and vanish by it."""
    before = turn.state.partitions
    speeds = remembered_speeds(
        turn.state.speeds,
        given.bytes_per_s,
        turn.now_ms - given.age_ms,
        turn.state.settings.vanish_after_measurements,
        given.topic_ids,
    )
    after = speeds.bytes_per_s
    trend = turn.state.trend
    if turn.state.settings.look_ahead_ms:
        trend = observe(trend, after, speeds.measured_ms / 1_000)
    turn.change(speeds=speeds, trend=trend)
    if before.keys() == after.keys() and turn.holdings.now.keys() <= after.keys():
        return
    appeared = len(after.keys() - before.keys())
    if appeared:
        turn.decide(Code.PARTITION_APPEARED, f"{appeared} partitions appeared")
    vanished = sorted(before.keys() - after.keys(), key=by_name)
    if vanished:
        turn.decide(Code.PARTITION_VANISHED, f"{len(vanished)} partitions vanished")
        forget(turn, vanished)
    if before:
        # Held, and not named by the monitor since this controller began.
        vanished += [p for p in turn.holdings.now if p not in after and p not in before]
    for partition in vanished:
        holding = turn.holdings.get(partition)
        if holding is not None and holding.status is not HoldingStatus.STOPPING:
            turn.stop(partition)


def forget(turn: Turn, partitions: list[TopicPartition]) -> None:
    """Take partitions that are gone out of the plan."""
    for partition in partitions:
        turn.close(partition)
        turn.parked.drop(partition)
    plan = turn.state.plan
    if plan is not None:
        gone = set(partitions)
        target = {p: c for p, c in plan.target.items() if p not in gone}
        turn.change(
            plan=Plan(
                plan.number,
                plan.code,
                plan.words,
                target,
                frozenset(turn.open) - gone,
                plan.made_ms,
                plan.is_urgent,
            )
        )
    turn.save()


def workers(turn: Turn) -> set[ConsumerId]:
    """Consumers that hold something, or are to."""
    plan = turn.state.plan
    holders = {consumer for consumer in turn.consumers if turn.held_by(consumer)}
    return holders if plan is None else holders | set(plan.target.values())


def idle(turn: Turn) -> list[ConsumerId]:
    """Who has nothing to do; those that are up come first, then the lowest number."""
    busy = workers(turn)
    resting = [consumer for consumer in available(turn) if consumer not in busy]
    return sorted(resting, key=lambda consumer: (not turn.is_ready(consumer), consumer))


def idle_wanted(turn: Turn) -> int:
    """How many idle consumers to keep: spares, and what the minimum asks for."""
    settings = turn.state.settings
    busy = len([c for c in workers(turn) if c in turn.consumers])
    wanted = max(settings.spare_consumers, settings.consumers_min - busy)
    return max(0, min(wanted, settings.consumers_max - busy))


def remove_the_idle(turn: Turn) -> None:
    """Remove who leaves and holds nothing; and the idle, down to the spares that are wanted."""
    for consumer in sorted(turn.consumers):
        record = turn.consumers[consumer]
        if record.status is ConsumerStatus.LEAVING and not turn.held_by(consumer):
            remove(turn, consumer, "it owns nothing any more")
    roll_out = turn.state.roll_out
    needed = None if roll_out is None else roll_out.replacement
    if not turn.state.is_paused(Direction.DOWN):
        surplus = [c for c in idle(turn) if c != needed][idle_wanted(turn) :]
        for consumer in reversed(surplus):
            remove(turn, consumer, "it owns nothing, and there are spares enough")
