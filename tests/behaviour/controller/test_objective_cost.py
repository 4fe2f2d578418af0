"""What an objective costs in consumers, and what another would."""

from dataclasses import replace

from penstock.controller.core.dry_run import dry_run, priced_of_question
from penstock.controller.core.objective_cost import (
    SPARES,
    UTILISATION,
    PricedObjective,
    costs_text,
    objective_costs,
    priced_of,
)
from penstock.model import Assignment, ConsumerId, TopicPartition
from penstock.packing import PackingProblem, algorithm_named
from penstock.packing.objective import Measured, Objective
from penstock.settings import Settings, changed_settings

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


def test_only_objectives_that_the_settings_take_are_priced() -> None:
    """Of a second there is no tighter one, and of a day no looser one."""
    for own_s, priced_s in ((1.0, [1, 2]), (1.5, [1.5, 1, 3]), (86_400.0, [86_400, 43_200])):
        priced = replace(PRICED, objective=Objective(own_s))
        costs = dry_run("CHAIN", PROBLEM, priced=priced).costs
        assert [one.freshness_s for one in costs] == priced_s
        for one in costs:
            changed_settings(Settings(), {"objective.freshness": f"{one.freshness_s}s"})
        assert costs_text(costs, 0.99).count("ithin") == len(priced_s)


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


def test_one_set_option_does_not_hold_the_other() -> None:
    """Spares that are set stay; the head room follows all the same."""
    only = replace(PRICED, are_set=frozenset({SPARES}), spare_consumers=3)
    costs = dry_run("CHAIN", PROBLEM, priced=only).costs
    assert {one.spare_consumers for one in costs} == {3}
    assert len({one.target_utilisation for one in costs}) > 1


def test_stronger_consumers_count_in_the_price_and_idle_ones_do_not() -> None:
    """A consumer that carries all is one, until a tighter objective fills it less."""
    strong, idle = ConsumerId(1), ConsumerId(9)
    held = Assignment({strong: list(LOAD), idle: []})
    own_capacity = {strong: 600.0, idle: 85.0}
    problem = PackingProblem(LOAD, held, 85.0, capacity_bytes_per_s_by_consumer=own_capacity)
    packing = algorithm_named("CHAIN").pack(problem)
    own, tighter, _ = objective_costs("CHAIN", problem, packing, PRICED)
    assert own.consumers == 1
    assert tighter.consumers > 1
