"""Make a failing scenario smaller while it still fails: fewer faults, no lost messages.

What is left is what matters. It is deterministic, so the smallest one can be kept as a test.
"""

from collections.abc import Callable
from dataclasses import replace

from penstock.laboratory.protocol_simulation.lossy_topic import MessageFaults
from penstock.laboratory.protocol_simulation.scenario import Scenario

Fails = Callable[[Scenario], bool]


def shrink(scenario: Scenario, fails: Fails, runs_max: int = 200) -> Scenario:
    """A scenario that still fails and from which nothing can be left out, or out of runs."""
    runs = 0

    def still_fails(candidate: Scenario) -> bool:
        nonlocal runs
        runs += 1
        return runs <= runs_max and fails(candidate)

    calm = replace(scenario, message_faults=MessageFaults())
    smallest = calm if still_fails(calm) else scenario
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
