"""The plan that would be made now, from the question in a snapshot. It changes nothing.

`penstock plan` and the page show it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.controller.core.objective_cost import (
    ObjectiveCost,
    PricedObjective,
    objective_costs,
    priced_of,
)
from penstock.errors import PenstockError
from penstock.model import Assignment, ConsumerId, ConsumerListDiff, TopicPartition
from penstock.packing import Packing, PackingProblem, algorithm_named
from penstock.packing.lower_bound import consumers_at_least


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a repack would change: `future - current`."""

    problem: PackingProblem
    packing: Packing
    diff: ConsumerListDiff
    consumers_now: int
    consumers_at_least: int
    # By topic: how much a partition's load counts. People see it without.
    weights: Mapping[str, float] = field(default_factory=dict)
    # Of the objective, then of a tighter and a looser one; empty where none is known.
    costs: tuple[ObjectiveCost, ...] = ()

    def load_of(self, partition: TopicPartition) -> float:
        """The partition's load in real bytes a second."""
        load = self.problem.load_bytes_per_s.get(partition, 0.0)
        return load / self.weights.get(partition.topic, 1.0)

    def capacity_of(self, consumer: ConsumerId, held: Iterable[TopicPartition]) -> float:
        """What the consumer can take of these partitions, in real bytes a second."""
        capacity = self.problem.capacity_of(consumer)
        if not self.weights:
            return capacity
        partitions = tuple(held)
        weighted = sum(self.problem.load_bytes_per_s.get(p, 0.0) for p in partitions)
        real = sum(self.load_of(partition) for partition in partitions)
        return capacity * real / weighted if weighted else capacity

    def moves(self) -> list[dict[str, Any]]:
        """Every start of `future - current`, with the consumer that stops before it."""
        stopped_by = {p: consumer for consumer, held in self.diff.stop.items() for p in held}
        starts = {p: consumer for consumer, held in self.diff.start.items() for p in held}
        return [
            {
                "partition": str(partition),
                "from": stopped_by.get(partition),
                "to": starts[partition],
                "load_bytes_per_s": self.load_of(partition),
            }
            for partition in sorted(starts)
        ]

    def data(self) -> dict[str, Any]:
        return {
            "consumers_now": self.consumers_now,
            "consumers_then": len(self.packing.assignment),
            "consumers_at_least": self.consumers_at_least,
            "create": [int(one) for one in self.diff.create],
            "empty": [int(one) for one in self.diff.remove],
            "moves": self.moves(),
            "oversize": [str(one) for one in self.packing.oversize],
            "overloaded": [int(one) for one in self.packing.overloaded],
            "objective": [asdict(one) for one in self.costs],
        }


def dry_run(
    algorithm: str,
    problem: PackingProblem,
    weights: Mapping[str, float] | None = None,
    priced: PricedObjective | None = None,
) -> DryRun:
    """With `priced` it also says what the objective costs."""
    packing = _packed(algorithm, problem)
    return DryRun(
        problem=problem,
        packing=packing,
        diff=packing.assignment - _without_idle(problem.current),
        consumers_now=sum(1 for held in problem.current.values() if held),
        consumers_at_least=consumers_at_least(problem),
        weights=weights or {},
        costs=objective_costs(algorithm, problem, packing, priced) if priced else (),
    )


def _packed(name: str, problem: PackingProblem) -> Packing:
    try:
        return algorithm_named(name).pack(problem)
    except Exception as error:
        raise PenstockError(
            f"The packer {name} failed: {type(error).__name__}: {error}.",
            remedy="The group stays as it is meanwhile. Please report this with the output of "
            "`penstock status -o json`; another packing.algorithm may do.",
        ) from error


def priced_of_question(asked: dict[str, Any]) -> PricedObjective | None:
    """None where a controller of an earlier release has asked."""
    return priced_of(asked["objective"]) if "objective" in asked else None


def problem_of_question(asked: dict[str, Any]) -> PackingProblem:
    """The question as the controller would ask it, with backlogs and learned capacities.

    PenstockError where it lacks something, or holds what no packer can be asked.
    """
    if not asked["load_bytes_per_s"]:
        raise PenstockError(
            "The controller has no write speeds yet.", remedy="Check that the monitor runs."
        )
    try:
        return _problem(asked)
    except (LookupError, ValueError) as error:
        raise PenstockError(
            f"No plan can be made of what the controller says: {error}.",
            remedy="Is it of another release? `penstock status` shows what it says all the same.",
        ) from error


def _problem(asked: dict[str, Any]) -> PackingProblem:
    weights = weights_of_question(asked)
    return PackingProblem(
        load_bytes_per_s=_by_partition(asked["load_bytes_per_s"], weights),
        current=Assignment(
            {
                ConsumerId(int(consumer)): [TopicPartition.parse(name) for name in held]
                for consumer, held in asked["current"].items()
            }
        ),
        capacity_bytes_per_s=asked["capacity_bytes_per_s"],
        capacity_bytes_per_s_by_consumer={
            ConsumerId(int(consumer)): capacity
            for consumer, capacity in asked["capacity_bytes_per_s_by_consumer"].items()
        },
        partitions_per_consumer_max=asked["partitions_per_consumer_max"],
        consumers_max=asked["consumers_max"],
        forecast_bytes_per_s=_by_partition(asked["forecast_bytes_per_s"], weights),
    )


def weights_of_question(asked: dict[str, Any]) -> dict[str, float]:
    """How much the load of each topic counts; a controller of an older release does not say it."""
    return {str(topic): float(weight) for topic, weight in asked.get("weights", {}).items()}


def _by_partition(
    figures: dict[str, float], weights: Mapping[str, float]
) -> dict[TopicPartition, float]:
    found = {TopicPartition.parse(name): float(figure) for name, figure in figures.items()}
    return {p: figure * weights.get(p.topic, 1.0) for p, figure in found.items()}


def _without_idle(current: Assignment) -> Assignment:
    """Idle consumers are spares: a repack creates or empties only those that read something."""
    return Assignment({consumer: held for consumer, held in current.items() if held})
