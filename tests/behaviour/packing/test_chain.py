"""Our own algorithm: its targets in short, and each of its steps by hand."""

import pytest

from kit.packing.packing_cases import named, numbers, problem
from kit.packing.published_streams import mean_scores, replayed
from penstock.laboratory.studies.packing.published import CBS_OF_MWF_MAX, R_OF_BFD_MAX, R_OF_MWF_MAX
from penstock.model import Assignment, ConsumerId
from penstock.packing import PUBLISHED, PackingProblem
from penstock.packing.chain import ChainPacking

SEEDS = (31,)
NAMES = ("CHAIN@0", "CHAIN@0.2", "CHAIN", *(algorithm.name for algorithm in PUBLISHED))


@pytest.mark.campaign
@pytest.mark.parametrize("delta", [10, 25])
def test_targets_of_the_default_knob(delta: int) -> None:
    """Against MWF: CBS at most 0.45 of its, R at most the share asked for at this delta."""
    found = mean_scores(NAMES, delta, SEEDS)
    assert found["CHAIN"][0] <= CBS_OF_MWF_MAX * found["MWF"][0]
    assert found["CHAIN"][1] <= R_OF_MWF_MAX[delta] * found["MWF"][1]


@pytest.mark.campaign
@pytest.mark.parametrize("delta", [10, 25])
def test_targets_of_the_fewest_consumers(delta: int) -> None:
    """Against BFD: never more consumers, on any measurement, and R at most the share asked for."""
    found = mean_scores(NAMES, delta, SEEDS)
    fewest, bfd = replayed("CHAIN@0", delta, SEEDS[0]), replayed("BFD", delta, SEEDS[0])
    assert all(ours <= theirs for ours, theirs in zip(fewest.consumers, bfd.consumers, strict=True))
    assert found["CHAIN@0"][1] <= R_OF_BFD_MAX[delta] * found["BFD"][1]


@pytest.mark.campaign
@pytest.mark.parametrize("delta", [10, 25])
def test_front_dominates_all_published(delta: int) -> None:
    """For each of the twelve, a point of our front is at least as good in both scores."""
    found = mean_scores(NAMES, delta, SEEDS)
    for name in NAMES[3:]:
        cbs, r = found[name]
        assert any(found[ours][0] <= cbs and found[ours][1] <= r for ours in NAMES[:3]), name


@pytest.mark.parametrize("name", ["CHAIN@0", "CHAIN", "CHAIN@1"])
def test_nothing_moves_at_delta_0(name: str) -> None:
    """While no speed changes, no partition moves."""
    assert replayed(name, 0, 31, 21).moved_partitions == 0


def test_what_is_over_gives_up_its_cheapest() -> None:
    """Of 60, 30 and 20 over 100, the 20 goes; the others stay."""
    packing = ChainPacking(0.5).pack(problem([60, 30, 20, 50], [1, 1, 1, 2]))
    assert numbers(packing) == {1: {0, 1}, 2: {2, 3}}


def test_two_small_ones_may_be_cheaper_than_one_big() -> None:
    """Over by 20, with 70, 12, 11 and 27 held: 12 and 11 go, not 27."""
    packing = ChainPacking(0.5).pack(problem([70, 12, 11, 27, 40], [1, 1, 1, 1, 2]))
    assert numbers(packing)[1] == {0, 3}


def test_an_ejection_chain_makes_room_where_there_is_none() -> None:
    """30 fits nowhere; it takes the place of 20, which fits beside 75."""
    packing = ChainPacking(0.5).pack(problem([30, 20, 70, 75], [0, 2, 2, 3]))
    assert numbers(packing) == {2: {0, 2}, 3: {1, 3}}


@pytest.mark.parametrize(("knob", "consumers"), [(0.0, 2), (0.4, 2), (0.9, 3), (1.0, 3)])
def test_the_knob_says_what_a_consumer_is_worth(knob: float, consumers: int) -> None:
    """Emptying a consumer moves half a capacity: done where a consumer is worth that much."""
    packing = ChainPacking(knob).pack(problem([60, 40, 50, 50], [1, 2, 3, 2]))
    assert len(packing.assignment) == consumers


def test_look_ahead_chooses_the_consumer_that_will_still_have_room() -> None:
    """Consumer 3 has more room now, but its partition is rising: the new one goes to 2."""
    question = problem([60, 50, 20], [2, 3, 0])
    rising = {named(0): 60.0, named(1): 95.0, named(2): 20.0}
    ahead = PackingProblem(
        question.load_bytes_per_s, question.current, 100, forecast_bytes_per_s=rising
    )
    assert numbers(ChainPacking(0.5).pack(question)) == {2: {0}, 3: {1, 2}}
    assert numbers(ChainPacking(0.5).pack(ahead)) == {2: {0, 2}, 3: {1}}


def test_look_ahead_never_leaves_capacity_unheld() -> None:
    """Where only the rising consumer has room, it is used rather than a new one opened."""
    question = PackingProblem(
        {named(0): 90, named(1): 50, named(2): 20},
        Assignment({ConsumerId(1): [named(0)], ConsumerId(2): [named(1)]}),
        100,
        forecast_bytes_per_s={named(1): 95.0},
    )
    assert numbers(ChainPacking(0.5).pack(question)) == {1: {0}, 2: {1, 2}}


def test_one_consumer_takes_all_where_none_is_large_enough() -> None:
    """Allowed one consumer, and both small ones too small: one of them takes it all, flagged."""
    packing = ChainPacking(0).pack(problem([41, 60], special={1: 30, 2: 30}, consumers_max=1))
    assert len(packing.assignment) == 1
    assert packing.overloaded


def test_the_most_allowed_takes_its_own_back_first() -> None:
    """With one consumer allowed, what is packed twice goes back where the first round put it."""
    packing = ChainPacking(0).pack(problem([1, 101], special={3: 101}, consumers_max=1))
    assert numbers(packing) == {1: {0, 1}}


def test_a_large_partition_goes_to_the_consumer_made_for_it() -> None:
    """101 is too much for any but consumer 2, which is opened for it and fills up with the rest."""
    packing = ChainPacking(0).pack(problem([0, 0, 101], [0, 0, 1], special={2: 101}))
    assert numbers(packing) == {2: {0, 1, 2}}


def test_an_oversize_partition_stays_alone() -> None:
    """Its consumer has no room to give and is not emptied, though a bound says fewer might do."""
    packing = ChainPacking(0).pack(problem([37, 64, 64, 101]))
    assert numbers(packing) == {1: {3}, 2: {1}, 3: {2}, 4: {0}}
    assert packing.oversize == (named(3),)


@pytest.mark.parametrize("knob", [-0.1, 1.1, float("nan")])
def test_a_knob_outside_its_range_is_refused(knob: float) -> None:
    """One clear error."""
    with pytest.raises(ValueError, match="from 0 to 1"):
        ChainPacking(knob)
