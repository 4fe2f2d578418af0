"""Makes a failing scenario smaller while it still fails: fewer faults, reliable delivery.

It is deterministic, so the smallest scenario can be kept as a test.
"""

from collections.abc import Callable
from dataclasses import replace

from penstock.laboratory.protocol_simulation.lossy_topic import DeliveryFaults
from penstock.laboratory.protocol_simulation.scenario import Scenario

Fails = Callable[[Scenario], bool]


def shrink(scenario: Scenario, fails: Fails, runs_max: int = 200) -> Scenario:
    """The smallest scenario found that still fails, after at most `runs_max` runs."""
    runs = 0

    def still_fails(candidate: Scenario) -> bool:
        nonlocal runs
        runs += 1
        return runs <= runs_max and fails(candidate)

    without_faults = replace(scenario, delivery_faults=DeliveryFaults())
    smallest = without_faults if still_fails(without_faults) else scenario
    chunk = max(1, len(smallest.faults) // 2)
    while chunk:
        start = 0
        while start < len(smallest.faults):
            faults = smallest.faults[:start] + smallest.faults[start + chunk :]
            candidate = replace(smallest, faults=faults)
            if still_fails(candidate):
                smallest = candidate
            else:
                start += chunk
        chunk //= 2
    return smallest
