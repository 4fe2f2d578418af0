"""A deployment whose consumers carry nothing is taken back, whatever else happens to the group."""

from dataclasses import replace

import pytest

from penstock.laboratory.protocol_simulation.run_scenario import run
from penstock.laboratory.protocol_simulation.scenario import FaultKind, Scenario, scenario

pytestmark = pytest.mark.slow

SEEDS = 60
# Without its state a controller does not know of a roll-out; this is what the record in Kafka is
# for, which is not simulated. Another update, or a topic that fails anyway, hides the bad one.
_HIDES_IT = {
    FaultKind.STATE_FILE_LOST,
    FaultKind.STATE_FILE_OLD,
    FaultKind.DEPLOYMENTS_UPDATED,
    FaultKind.TRANSFORMATION_FAILS,
}


def with_bad_update(seed: int) -> Scenario:
    drawn = scenario(seed)
    faults = tuple(fault for fault in drawn.faults if fault.kind not in _HIDES_IT)
    return replace(drawn, faults=faults, bad_update_ms=drawn.faults_until_ms - 3_000)


@pytest.mark.parametrize("first", range(0, SEEDS, 10))
def test_a_bad_deployment_is_rolled_back_and_everything_is_carried(first: int) -> None:
    """The group converges and drains: no consumer of the bad version is left."""
    rolled_back = 0
    for seed in range(first, first + 10):
        outcome = run(with_bad_update(seed))
        assert outcome.verdict != "red", f"seed {seed}: {outcome.explanation}"
        rolled_back += outcome.roll_backs
    assert rolled_back
