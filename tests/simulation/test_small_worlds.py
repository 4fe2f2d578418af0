"""Two consumers, three partitions, one controller: every order, with up to three faults.

The numbers of states are pinned. Fewer means that something is no longer explored, and needs an
explanation in the commit that changes it.
"""

import pytest

from penstock.simulation.exhaustive import Explored, explore


@pytest.mark.parametrize(
    ("faults", "has_all_orders", "has_batches", "expected"),
    [
        (0, True, True, Explored(states=358, endings=1)),
        (1, True, True, Explored(states=16_545, endings=17)),
        (2, True, False, Explored(states=6_862, endings=187)),
        (2, False, True, Explored(states=4_528, endings=173)),
        (3, False, False, Explored(states=25_854, endings=1_532)),
    ],
)
@pytest.mark.timeout(600)
def test_nothing_goes_wrong_in_any_order(
    faults: int, has_all_orders: bool, has_batches: bool, expected: Explored
) -> None:
    """Safety holds in every state, and every path ends converged."""
    found = explore(faults, has_all_orders=has_all_orders, has_batches=has_batches)
    print(f"{faults} faults: {found.states} states, {found.endings} endings")  # noqa: T201 -- asked for
    assert found == expected
