"""A group grows by a consumer that carries less than the others: it is packed by that at once.

What all consumers share slows all of them down, so a lower figure in a group that has just grown is
taken for contention. A weak consumer measures less than the others do at the same time.
"""

import pytest

from behaviour.controller.test_grown_groups import GrowingGroup
from kit.controller.imagined_group import MB
from penstock.model import ConsumerId


def group_with(weak: dict[int, float], load: int) -> GrowingGroup:
    """After a growth with its load; consumers carry 2 MB/s but for the weak ones."""
    group = GrowingGroup()
    group.own_bytes_per_s = {ConsumerId(number): own * MB for number, own in weak.items()}
    return group.grown_to(load).run(120)  # type: ignore[return-value]  # `run` gives the same group


def overfilled(group: GrowingGroup) -> dict[int, float]:
    return {
        int(consumer): load
        for consumer, load in group.loads().items()
        if load > 1.1 * group.own_bytes_per_s.get(consumer, 2 * MB)
    }


def assert_it_fits(group: GrowingGroup) -> None:
    assert overfilled(group) == {}
    assert group.said("growth_did_not_help") == []
    assert group.behind_bytes < 20 * MB
    assert group.usual_bytes_per_s == pytest.approx(2 * MB)


def test_a_weak_newcomer_gets_what_it_can_carry() -> None:
    """It alone is behind, so what it measures is no contention."""
    assert_it_fits(group_with({4: 0.5}, 8))


def test_a_growth_by_a_weak_newcomer_helps() -> None:
    """The others carry more than before, because it is seen for what it is."""
    assert_it_fits(group_with({4: 0.5}, 7))


@pytest.mark.slow
@pytest.mark.parametrize("load", [5, 8])
def test_two_weak_newcomers(load: int) -> None:
    """Each is seen beside those that carry more."""
    assert_it_fits(group_with({3: 0.7, 5: 0.7}, load))
