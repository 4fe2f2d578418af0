"""What an objective costs in consumers, and what another would."""

from dataclasses import replace

from penstock.controller.core.dry_run import dry_run, priced_of_question
from penstock.controller.core.objective_cost import (
    SPARES,
    UTILISATION,
    PricedObjective,
    costs_text,
    priced_of,
)
from penstock.model import Assignment, TopicPartition
from penstock.packing import PackingProblem
from penstock.packing.objective import Measured, Objective

LOAD = {TopicPartition("t", n): 10.0 for n in range(60)}
PRICED = PricedObjective(Objective(10.0), Measured(10.0, 0.7), 0.85, 1)
PROBLEM = PackingProblem(LOAD, Assignment(), 85.0)


def test_a_tighter_objective_costs_more() -> None:
    """The same packer answers; the objective's own figure is the plan's."""
    found = dry_run("CHAIN", PROBLEM, priced=PRICED)
    own, tighter, looser = found.costs
    assert own.consumers == len(found.packing.assignment) == 8
    assert (own.freshness_s, tighter.freshness_s, looser.freshness_s) == (10, 5, 20)
    assert tighter.consumers > own.consumers > looser.consumers
    assert tighter.target_utilisation < 0.85 < looser.target_utilisation
    assert found.data()["objective"][0]["consumers"] == 8
    assert costs_text(found.costs, 0.99).startswith(
        "99% of the records within 10 s (objective.freshness): 8 consumers and 1 spare. Within 5 s"
    )


def test_what_is_set_does_not_change_with_the_objective() -> None:
    """Neither the head room nor the spares."""
    held = replace(PRICED, are_set=frozenset({UTILISATION, SPARES}), spare_consumers=3)
    costs = dry_run("CHAIN", PROBLEM, priced=held).costs
    assert {(one.consumers, one.spare_consumers) for one in costs} == {(8, 3)}


def test_it_travels_with_the_question() -> None:
    """A controller of an earlier release has none."""
    assert priced_of(PRICED.data()) == PRICED
    assert priced_of_question({}) is None
    assert dry_run("CHAIN", PROBLEM).costs == ()
