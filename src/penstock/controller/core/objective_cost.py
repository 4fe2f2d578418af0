"""What an objective costs in consumers, and what a tighter or a looser one would. Pure.

The same packer answers for each: another objective fills consumers to another share of their
capacity, and keeps other spares. What a person has set does not change with the objective.
"""

from dataclasses import dataclass, replace
from typing import Any

from penstock.model.sentences import counted, duration_text
from penstock.packing import Packing, PackingProblem, algorithm_named
from penstock.packing.objective import (
    Measured,
    Objective,
    compared_freshness_s,
    derived_options,
)

UTILISATION = "packing.target_utilisation"
SPARES = "controller.spare_consumers"


@dataclass(frozen=True, slots=True)
class PricedObjective:
    """The objective of a group, and how the group is packed with it."""

    objective: Objective
    measured: Measured
    target_utilisation: float
    spare_consumers: int
    # Options that a person has set.
    are_set: frozenset[str] = frozenset()

    def data(self) -> dict[str, Any]:
        return {
            "freshness_s": self.objective.freshness_s,
            "share": self.objective.share,
            "start_s": self.measured.start_s,
            "rise": self.measured.rise,
            "rare_rise": self.measured.rare_rise,
            "target_utilisation": self.target_utilisation,
            "spare_consumers": self.spare_consumers,
            "are_set": sorted(self.are_set),
        }


def priced_of(data: dict[str, Any]) -> PricedObjective:
    """What `data` has written."""
    return PricedObjective(
        Objective(data["freshness_s"], data["share"]),
        Measured(data["start_s"], data["rise"], data.get("rare_rise")),
        data["target_utilisation"],
        data["spare_consumers"],
        frozenset(data["are_set"]),
    )


@dataclass(frozen=True, slots=True)
class ObjectiveCost:
    """What a group with this objective needs now."""

    freshness_s: float
    target_utilisation: float
    # With partitions, and warm without.
    consumers: int
    spare_consumers: int

    def text(self) -> str:
        """`5 consumers and 1 spare`."""
        spares = counted(self.spare_consumers, "spare")
        return f"{counted(self.consumers, 'consumer')} and {spares}"


def objective_costs(
    algorithm: str, problem: PackingProblem, packing: Packing, priced: PricedObjective
) -> tuple[ObjectiveCost, ...]:
    """Of the objective, then of a tighter and a looser one; `packing` is the objective's own."""
    costs = []
    for freshness_s in compared_freshness_s(priced.objective.freshness_s):
        filled, spares = _follows(priced, replace(priced.objective, freshness_s=freshness_s))
        if filled == priced.target_utilisation:
            found = packing
        else:
            scaled = _filled(problem, filled / priced.target_utilisation)
            found = algorithm_named(algorithm).pack(scaled)
        working = sum(1 for held in found.assignment.values() if held)
        costs.append(ObjectiveCost(freshness_s, filled, working, spares))
    return tuple(costs)


def costs_text(costs: tuple[ObjectiveCost, ...], share: float) -> str:
    """One sentence for people."""
    own, *others = costs
    text = (
        f"{100 * share:.4g}% of the records within {duration_text(own.freshness_s)} "
        f"(objective.freshness): {own.text()}."
    )
    compared = [f"Within {duration_text(one.freshness_s)}: {one.text()}." for one in others]
    return " ".join([text, *compared])


def _follows(priced: PricedObjective, objective: Objective) -> tuple[float, int]:
    if objective == priced.objective:
        return priced.target_utilisation, priced.spare_consumers
    values = {one.option: one.value for one in derived_options(objective, priced.measured)}
    filled = priced.target_utilisation if UTILISATION in priced.are_set else values[UTILISATION]
    spares = priced.spare_consumers if SPARES in priced.are_set else int(values[SPARES])
    return filled, spares


def _filled(problem: PackingProblem, factor: float) -> PackingProblem:
    by_consumer = problem.capacity_bytes_per_s_by_consumer
    return replace(
        problem,
        capacity_bytes_per_s=problem.capacity_bytes_per_s * factor,
        capacity_bytes_per_s_by_consumer={c: x * factor for c, x in by_consumer.items()},
    )
