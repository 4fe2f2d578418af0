"""Checks that consumers of different strengths are packed by what each of them carries (L9).

A weak consumer cannot be told from a strong one before it has shown what it carries, so it may have
too much for a while. What it carries is worked out from the scenario, not from what the controller
believes.
"""

from statistics import fmean
from typing import TYPE_CHECKING

from penstock.laboratory.protocol_simulation.checkers import ViolationError
from penstock.laboratory.protocol_simulation.drain_bound import throughput
from penstock.model import ConsumerId

if TYPE_CHECKING:
    from penstock.laboratory.protocol_simulation.simulated_consumer import SimulatedConsumer
    from penstock.laboratory.protocol_simulation.simulated_group import SimulatedGroup

# A figure that differs by less from what was learned before changes nothing.
LEARNED_TO = 1.1
# Long enough to fall behind, to show it in full batches, and to be relieved by a plan.
OVERFILLED_MS_MAX = 30_000


def carried_by(group: "SimulatedGroup", process: "SimulatedConsumer") -> float:
    """What this consumer really carries, in bytes a second."""
    return throughput(group, group.strength_of(process)).one_bytes_per_s


def written_to(group: "SimulatedGroup", process: "SimulatedConsumer") -> float:
    """What is written to the partitions that it has."""
    owned = (group.logs.get(partition) for partition in process.ownership.owned)
    return sum(log.records_per_s for log in owned if log is not None)


def at_work(group: "SimulatedGroup") -> list["SimulatedConsumer"]:
    return [process for process in group.deployment.alive() if process.ownership.owned]


def overfilled(group: "SimulatedGroup") -> dict[ConsumerId, str]:
    """The consumers that have more than they can carry, and that another plan could help."""
    found = {}
    for process in at_work(group):
        written, carried = written_to(group, process), carried_by(group, process)
        if written > LEARNED_TO * carried and len(process.ownership.owned) > 1:
            found[process.consumer] = f"{written:.0f} B/s are written, {carried:.0f} B/s carried"
    return found


def needed_of_these(group: "SimulatedGroup") -> int:
    """The fewest of the consumers at work, the strongest first, that can carry what is written.

    Partitions that are faster than any consumer have one each.
    """
    filled_to = group.settings.policy.target_utilisation
    left = carriable(group)
    needed = sum(1 for log in group.logs.values() if log.records_per_s > _strongest(group))
    for carried in sorted((carried_by(group, one) for one in at_work(group)), reverse=True):
        if left > 0:
            needed += 1
            left -= carried * filled_to
    return max(1, needed)


def carriable(group: "SimulatedGroup") -> float:
    """What is written, without partitions that are faster than any consumer."""
    speeds = (log.records_per_s for log in group.logs.values())
    return sum(speed for speed in speeds if speed <= _strongest(group))


def _strongest(group: "SimulatedGroup") -> float:
    return throughput(group).one_bytes_per_s


def strong_have_less(group: "SimulatedGroup") -> ViolationError | None:
    """Whether the weak consumers at work have as much as the strong ones, on average."""
    by_strength: dict[bool, list[float]] = {True: [], False: []}
    for process in at_work(group):
        by_strength[group.strength_of(process) < 1].append(written_to(group, process))
    weak, strong = by_strength[True], by_strength[False]
    if not weak or not strong or fmean(weak) < fmean(strong):
        return None
    told = f"weak ones have {fmean(weak):.0f} B/s each, strong ones {fmean(strong):.0f} B/s"
    return ViolationError("L9", told)


class Overfilled:
    """Follows for how long consumers have more than they can carry."""

    def __init__(self, group: "SimulatedGroup") -> None:
        self.group = group
        self._since_ms: dict[ConsumerId, int] = {}

    def check(self) -> None:
        now_ms, told = self.group.clock.now_ms, overfilled(self.group)
        self._since_ms = {c: self._since_ms.get(c, now_ms) for c in told}
        for consumer, since_ms in self._since_ms.items():
            if now_ms - since_ms > OVERFILLED_MS_MAX:
                seconds = OVERFILLED_MS_MAX // 1_000
                text = f"consumer {consumer} has had too much for {seconds} s: {told[consumer]}"
                raise ViolationError("L9", text)
