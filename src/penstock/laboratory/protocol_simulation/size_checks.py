"""Checks what a simulated group costs: how many consumers it has, starts and ends.

The need is worked out from what is really written and waiting, not from the controller's plans.
"""

import math
from typing import TYPE_CHECKING

from penstock.controller.core.load import usual_capacity
from penstock.controller.core.step_draft import StepDraft
from penstock.laboratory.protocol_simulation.checkers import ViolationError
from penstock.laboratory.protocol_simulation.drain_bound import throughput
from penstock.laboratory.protocol_simulation.scenario import FaultKind
from penstock.model import Assignment
from penstock.packing import PackingProblem
from penstock.packing.lower_bound import consumers_at_least

if TYPE_CHECKING:
    from penstock.laboratory.protocol_simulation.simulated_group import SimulatedGroup

# A packing with few moves needs more than the fewest consumers; one may be about to be emptied.
ABOVE_NEED = 1.3
# A fault that takes a consumer away may cost it and its replacement.
CONSUMERS_PER_FAULT = 2
# Of the backlog that the controller tolerates: its reports are a little older than the truth.
CLEARLY_BEHIND = 0.5


def wrong_size(group: "SimulatedGroup") -> ViolationError | None:
    return too_large(group) or too_small(group)


def too_small(group: "SimulatedGroup") -> ViolationError | None:
    """A group at rest has no fewer consumers than carry its load, filled to the brim (L6).

    Not one that shares a limit that is passed: more consumers would not help it.
    """
    if is_beyond_shared_limit(group):
        return None
    strongest = max(_capacity(group), throughput(group).one_bytes_per_s)
    speeds = {partition: log.records_per_s for partition, log in group.logs.items()}
    fewest = consumers_at_least(PackingProblem(speeds, Assignment(), strongest))
    least, working = min(fewest, group.settings.consumers_max), _working(group)
    if working >= least:
        return None
    return ViolationError("L6", f"only {working} consumers work, {least} are needed at least")


def too_large(group: "SimulatedGroup") -> ViolationError | None:
    """A group at rest has the consumers that its load needs, and few more (L6, L8).

    A group that is behind may have its share for catching up. One that shares a limit, and more is
    written than that, may not: consumers that slow each other down are no need. It may stay as
    large as growth was seen to help, and no larger than with the share for catching up: one plan
    may pass the limit in one step.
    """
    needed, working = consumers_needed(group), _working(group)
    shares_limit = is_beyond_shared_limit(group)
    may_catch_up = _is_behind(group, working) and not shares_limit
    most = most_for(group, needed, may_catch_up=may_catch_up)
    if shares_limit:
        in_one_step = most_for(group, needed, may_catch_up=True)
        most = max(most, min(in_one_step, _size_that_helped(group)))
    if working <= most:
        return None
    return ViolationError(
        "L8" if shares_limit else "L6",
        f"{working} consumers work, {needed} are needed, {most} allowed",
    )


def _size_that_helped(group: "SimulatedGroup") -> int:
    return 0 if group.leader is None else group.leader.state.capacity_size


def consumers_needed(group: "SimulatedGroup") -> int:
    """The fewest consumers that can carry what is written now."""
    filled_to = _capacity(group) * group.settings.policy.target_utilisation
    speeds = {partition: log.records_per_s for partition, log in group.logs.items()}
    return consumers_at_least(PackingProblem(speeds, Assignment(), filled_to))


def _capacity(group: "SimulatedGroup") -> float:
    """What one consumer counts for: the settings' figure, or more if consumers have shown it.

    Less only where consumers learn and share a limit: then it is what each carries in the smallest
    group that reaches the limit. In a larger one they only slow each other down.
    """
    capacity, leader = group.capacity_bytes_per_s, group.leader
    if leader is not None:
        capacity = max(capacity, usual_capacity(StepDraft(leader.state, leader.state.now_ms)))
    limit = group.scenario.carried_by_all * group.capacity_bytes_per_s
    if limit and group.scenario.capacity_is_measured:
        smallest = math.ceil(limit / (capacity * group.settings.policy.target_utilisation))
        return min(capacity, limit / smallest)
    return capacity


def most_for(group: "SimulatedGroup", needed: int, *, may_catch_up: bool) -> int:
    share = 1 + group.settings.catch_up_share if may_catch_up else 1.0
    return math.ceil(needed * share * ABOVE_NEED) + 1


def is_beyond_shared_limit(group: "SimulatedGroup") -> bool:
    """Whether more is written than all consumers together can carry, however many they are."""
    limit = group.scenario.carried_by_all * group.capacity_bytes_per_s
    return bool(limit) and sum(log.records_per_s for log in group.logs.values()) > limit


def _working(group: "SimulatedGroup") -> int:
    return sum(1 for process in group.deployment.alive() if process.ownership.owned)


def _is_behind(group: "SimulatedGroup", working: int) -> bool:
    """Whether more is waiting than a group with one consumer fewer could soon carry.

    What waits in a partition that is faster than a consumer does not count: no plan can help it.
    """
    can_carry, capacity = throughput(group), group.capacity_bytes_per_s
    strongest = max(capacity, can_carry.one_bytes_per_s)
    waiting = sum(
        group.end_offset(partition) - group.ledger.read(key)
        for partition, log in group.logs.items()
        if log.records_per_s <= strongest and (key := group.ledger_key(partition)) is not None
    )
    weakest = min(capacity, can_carry.one_bytes_per_s)
    if group.scenario.carried_by_all:
        weakest = min(weakest, can_carry.all_bytes_per_s / max(1, working))
    tolerated_s = group.settings.behind_tolerated_ms / 1_000
    return waiting > CLEARLY_BEHIND * tolerated_s * weakest * (working - 1)


class CostOfLastingLoad:
    """Follows what a group does under a load that lasts while nothing fails (L6, L7).

    It has no more consumers at any time than its largest need, and the share for catching up when
    it is behind. It starts those that are missing, ends those that are too many, and a few more.
    """

    def __init__(self, group: "SimulatedGroup", needed: int, *, falls_behind: bool) -> None:
        self.group = group
        self.needed = needed
        self.most = most_for(group, needed, may_catch_up=falls_behind)
        self._deployed_before = self._largest = len(group.deployment.deployed)
        self._created_before = group.deployment.created
        self._ended_before = group.deployment.ended

    def check_size(self) -> None:
        working, most = _working(self.group), max(self.most, self._deployed_before)
        self._largest = max(self._largest, len(self.group.deployment.deployed))
        if working > most:
            told = f"{working} consumers work, at most {self.needed} are needed, {most} allowed"
            raise ViolationError("L6", told)

    def check_cost(self) -> None:
        deployment = self.group.deployment
        started = deployment.created - self._created_before
        ended = deployment.ended - self._ended_before
        missing = max(0, self.most - self._deployed_before)
        surplus = max(0, self._largest - consumers_needed(self.group))
        for what, number, expected in (("started", started, missing), ("ended", ended, surplus)):
            if number > (most := expected + CONSUMERS_PER_FAULT):
                told = f"under a lasting load {number} consumers were {what}, at most {most} may be"
                raise ViolationError("L7", told)


# What takes consumers away from the group, or lets them not come up.
_TAKES_CONSUMERS = frozenset(
    {
        FaultKind.BATCH_HANGS,
        FaultKind.CONSUMER_CRASH,
        FaultKind.CONSUMER_PAUSE,
        FaultKind.CONSUMER_SHUTDOWN,
        FaultKind.CONTROLLER_PAUSE,
        FaultKind.CREATION_FAILS,
        FaultKind.FOREIGN_CONSUMER,
        FaultKind.NEVER_COMES_UP,
        FaultKind.NODE_UNREACHABLE,
        FaultKind.SLOW_STARTS,
        FaultKind.SPARK_AWAY,
    }
)
# An update replaces every consumer. A controller whose list hides consumers makes them again.
_TAKES_THE_GROUP = frozenset({FaultKind.DEPLOYMENTS_UPDATED, FaultKind.LIST_IS_STALE})


def cost_of(kind: FaultKind, consumers_max: int) -> int:
    """The most consumers that are started because of a fault, and as many ended.

    One that takes no consumer away may still change the load, or the controller's view of it.
    """
    if kind in _TAKES_THE_GROUP:
        return consumers_max
    return CONSUMERS_PER_FAULT if kind in _TAKES_CONSUMERS else 1


def check_cost(group: "SimulatedGroup") -> None:
    """A bounded number of consumers is started and ended for each fault (L7)."""
    deployment, scenario = group.deployment, group.scenario
    most = scenario.consumers_max + sum(
        cost_of(fault.kind, scenario.consumers_max) for fault in scenario.faults
    )
    for what, number in (("started", deployment.created), ("ended", deployment.ended)):
        if number > most:
            raise ViolationError("L7", f"{number} consumers were {what}, at most {most} may be")
