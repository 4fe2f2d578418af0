"""The whole protocol on a virtual clock: two thousand seeds, and every seed that once failed."""

import os
import subprocess
import sys
from dataclasses import replace
from functools import cache

import pytest

from penstock.laboratory.protocol_simulation.lossy_topic import DeliveryFaults
from penstock.laboratory.protocol_simulation.run_scenario import SeedResult, run
from penstock.laboratory.protocol_simulation.scenario import FaultKind, scenario
from penstock.laboratory.protocol_simulation.shrink import shrink

# Twenty-five seeds take ten seconds, and minutes on a machine that others use too.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SEEDS = 2_000
SEEDS_PER_TEST = 25
# A void run proves nothing, so another seed replaces it.
RESERVE = 1_000_000

# docs/development/invariants.md describes what each of these found.
ONCE_FAILED = (
    *(2, 5, 74, 80, 91, 112, 124, 131, 144, 151, 161, 194, 216, 240, 439, 478, 491, 621, 758),
    *(318, 1188, 1219, 1705, 1762, 1834, 1853, 1937, 1939),
)


# A seed that more than one test asks for is run once in a process: its outcome is always the same.
@cache
def outcome_of(seed: int) -> SeedResult:
    return run(scenario(seed))


def green(seed: int) -> SeedResult:
    outcome = outcome_of(seed)
    while outcome.verdict == "void":
        seed += RESERVE
        outcome = outcome_of(seed)
    again = f"python -m penstock.laboratory.protocol_simulation --seed {seed}"
    assert outcome.is_green, f"seed {seed}: {outcome.explanation}\nreplay it: {again}"
    return outcome


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_PER_TEST))
def test_safe_under_faults_and_converged_after(first: int) -> None:
    """Safety holds after every event; after the faults the group converges and drains."""
    for seed in range(first, first + SEEDS_PER_TEST):
        green(seed)


@pytest.mark.parametrize("seed", ONCE_FAILED)
def test_a_seed_that_once_failed_stays_green(seed: int) -> None:
    """A bug that was found does not come back."""
    green(seed)


def test_every_kind_of_fault_really_happens() -> None:
    """Every kind of fault finds a victim in some seed."""
    seen: set[str] = set()
    for seed in range(60):
        seen |= outcome_of(seed).faults.keys()
    assert {kind.value for kind in FaultKind} <= seen
    assert {"lost", "doubled", "delayed"} <= seen


def test_too_few_faults_are_void() -> None:
    """A run with too few faults is void."""
    outcome = run(replace(scenario(1), faults=(), delivery_faults=DeliveryFaults()))
    assert outcome.verdict == "void"
    assert not outcome.is_green


def test_the_same_seed_gives_the_same_trace_everywhere() -> None:
    """The order of hashes does not matter (S12)."""
    script = (
        "from penstock.laboratory.protocol_simulation.run_scenario import run\n"
        "from penstock.laboratory.protocol_simulation.scenario import scenario\n"
        "print([run(scenario(seed)).trace for seed in (3, 22)])"
    )
    traces = set()
    for hash_seed in ("1", "5"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, check=True
        )
        traces.add(done.stdout)
    assert len(traces) == 1
    assert traces != {b"\n"}


def test_a_failing_scenario_is_shrunk_to_what_matters() -> None:
    """Shrinking keeps only the faults that cause the failure."""
    whole = scenario(3)
    guilty = whole.faults[1]

    small = shrink(whole, lambda candidate: guilty in candidate.faults)
    assert small.faults == (guilty,)
    assert small.delivery_faults.lost == 0
