"""Consumers of two strengths are packed by what each carries, whatever happens to the group."""

import pytest

from penstock.laboratory.protocol_simulation.run_scenario import run
from penstock.laboratory.protocol_simulation.scenario import scenario, with_unequal_consumers

# Each seed takes seconds, and much longer on a machine that others use too.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SEEDS = 24
SEEDS_PER_TEST = 4


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_PER_TEST))
def test_the_weak_get_less_and_the_strong_are_used(first: int) -> None:
    """Nobody has too much for long, and the group has the size that its consumers need (L6, L9).

    Numbers or nodes are weak, and the load rises and falls. The controller knows neither.
    """
    for seed in range(first, first + SEEDS_PER_TEST):
        outcome = run(with_unequal_consumers(scenario(seed)))
        assert outcome.verdict != "red", f"seed {seed}: {outcome.explanation}"
