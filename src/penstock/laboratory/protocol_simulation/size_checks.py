"""Checks what a simulated group costs: how many consumers it has, starts and ends.

The need is worked out from what is really written, not from the controller's plans.
"""

import math
from typing import TYPE_CHECKING

from penstock.controller.core.load import group_load, usual_capacity
from penstock.controller.core.step_draft import StepDraft
from penstock.laboratory.protocol_simulation.checkers import ViolationError
from penstock.model import Assignment
from penstock.packing import PackingProblem
from penstock.packing.lower_bound import consumers_at_least

if TYPE_CHECKING:
    from penstock.laboratory.protocol_simulation.simulated_group import SimulatedGroup

# A packing with few moves needs more than the fewest consumers; one may be about to be emptied.
ABOVE_NEED = 1.3
# Each fault may cost a consumer and its replacement.
CONSUMERS_PER_FAULT = 2


def too_large(group: "SimulatedGroup") -> ViolationError | None:
    """A group at rest has the consumers that its load needs, and few more (L6, L8).

    A group that is behind may have its share for catching up, and one that shares a limit no more
    than that: consumers that slow each other down are no need.
    """
    leader = group.leader
    if leader is None:
        return None
    draft = StepDraft(leader.state, leader.state.now_ms)
    load, settings = group_load(draft), leader.state.settings
    capacity = max(usual_capacity(draft), group.capacity_bytes_per_s)
    problem = PackingProblem(
        {partition: log.records_per_s for partition, log in group.logs.items()},
        Assignment(),
        capacity * settings.policy.target_utilisation,
    )
    working = sum(1 for process in group.deployment.alive() if process.ownership.owned)
    needed = consumers_at_least(problem)
    share = 1 + settings.catch_up_share if load.is_behind else 1.0
    most = math.ceil(needed * share * ABOVE_NEED) + 1
    if working <= most:
        return None
    name = "L8" if group.scenario.carried_by_all and load.is_behind else "L6"
    return ViolationError(name, f"{working} consumers work, {needed} are needed, {most} allowed")


def check_cost(group: "SimulatedGroup") -> None:
    """A bounded number of consumers is started and ended for each fault (L7)."""
    deployment, faults = group.deployment, len(group.scenario.faults)
    most = group.scenario.consumers_max + CONSUMERS_PER_FAULT * (faults + 1)
    for what, number in (("started", deployment.created), ("ended", deployment.ended)):
        if number > most:
            raise ViolationError("L7", f"{number} consumers were {what}, at most {most} may be")
