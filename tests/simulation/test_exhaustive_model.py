"""Two consumers, three partitions, one controller: every order of events, with up to three faults.

The numbers of states are pinned. A lower number means that something is no longer explored, and the
commit that changes it must explain why.
"""

import pytest

from penstock.laboratory.exhaustive_model.search import Explored, explore

pytestmark = pytest.mark.slow

GROUPS = [
    (0, 2, Explored(states=594, endings=1)),
    (1, 2, Explored(states=26_108, endings=18)),
    (2, 1, Explored(states=165_100, endings=220)),
    (3, 0, Explored(states=108_389, endings=2_012)),
]


@pytest.mark.parametrize(("faults", "records", "expected"), GROUPS)
@pytest.mark.timeout(2400)  # in `make test` it gets what other tests leave of the processor
def test_nothing_goes_wrong_in_any_order(faults: int, records: int, expected: Explored) -> None:
    """Safety holds in every state, and every path ends converged with every record carried."""

    def show(states: int) -> None:
        if states % 100_000 == 0:
            print(f"{states} states", flush=True)  # noqa: T201 -- minutes pass otherwise in silence

    found = explore(faults, records=records, after_each=show)
    print(f"{faults} faults: {found.states} states, {found.endings} endings")  # noqa: T201 -- asked for
    assert found == expected
