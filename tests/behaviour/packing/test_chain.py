"""CHAIN: its targets in a short form, and each of its steps on a small case."""

import pytest

from kit.packing.packing_cases import named, numbers, problem
from kit.packing.published_streams import mean_scores, replayed
from penstock.laboratory.studies.packing.published import CBS_OF_MWF_MAX, R_OF_BFD_MAX, R_OF_MWF_MAX
from penstock.model import Assignment, ConsumerId
from penstock.packing import PUBLISHED, PackingProblem
from penstock.packing.chain import ChainPacking

SEEDS = (31,)
NAMES = ("CHAIN@0", "CHAIN@0.2", "CHAIN", *(algorithm.name for algorithm in PUBLISHED))


@pytest.mark.slow
@pytest.mark.parametrize("delta", [10, 25])
def test_targets_of_the_default_knob(delta: int) -> None:
    """CBS is at most 0.45 of MWF's, and R at most the target share at this delta."""
    found = mean_scores(NAMES, delta, SEEDS)
    assert found["CHAIN"][0] <= CBS_OF_MWF_MAX * found["MWF"][0]
    assert found["CHAIN"][1] <= R_OF_MWF_MAX[delta] * found["MWF"][1]


@pytest.mark.slow
@pytest.mark.parametrize("delta", [10, 25])
def test_targets_of_the_fewest_consumers(delta: int) -> None:
    """Never more consumers than BFD, and R at most the target share of BFD's."""
    found = mean_scores(NAMES, delta, SEEDS)
    fewest, bfd = replayed("CHAIN@0", delta, SEEDS[0]), replayed("BFD", delta, SEEDS[0])
    assert all(ours <= theirs for ours, theirs in zip(fewest.consumers, bfd.consumers, strict=True))
    assert found["CHAIN@0"][1] <= R_OF_BFD_MAX[delta] * found["BFD"][1]


@pytest.mark.slow
@pytest.mark.parametrize("delta", [10, 25])
def test_front_dominates_all_published(delta: int) -> None:
    """For each published algorithm some knob of CHAIN is at least as good in both scores."""
    found = mean_scores(NAMES, delta, SEEDS)
    for name in NAMES[3:]:
        cbs, r = found[name]
        assert any(found[ours][0] <= cbs and found[ours][1] <= r for ours in NAMES[:3]), name


@pytest.mark.parametrize("name", ["CHAIN@0", "CHAIN", "CHAIN@1"])
def test_nothing_moves_at_delta_0(name: str) -> None:
    """While no speed changes, no partition moves."""
    assert replayed(name, 0, 31, 21).moved_partitions == 0


def test_what_is_over_gives_up_its_cheapest() -> None:
    """Of 60, 30 and 20 on a capacity of 100, the 20 moves."""
    packing = ChainPacking(0.5).pack(problem([60, 30, 20, 50], [1, 1, 1, 2]))
    assert numbers(packing) == {1: {0, 1}, 2: {2, 3}}


def test_two_small_ones_may_be_cheaper_than_one_big() -> None:
    """With 70, 12, 11 and 27, which is 20 too much, 12 and 11 move instead of 27."""
    packing = ChainPacking(0.5).pack(problem([70, 12, 11, 27, 40], [1, 1, 1, 1, 2]))
    assert numbers(packing)[1] == {0, 3}


def test_an_ejection_chain_frees_capacity() -> None:
    """30 fits nowhere, so it takes the place of 20, which fits beside 75."""
    packing = ChainPacking(0.5).pack(problem([30, 20, 70, 75], [0, 2, 2, 3]))
    assert numbers(packing) == {2: {0, 2}, 3: {1, 3}}


@pytest.mark.parametrize(("knob", "consumers"), [(0.0, 2), (0.4, 2), (0.9, 3), (1.0, 3)])
def test_the_knob_sets_what_a_consumer_is_worth(knob: float, consumers: int) -> None:
    """A consumer is emptied if the knob makes it worth moving half a capacity."""
    packing = ChainPacking(knob).pack(problem([60, 40, 50, 50], [1, 2, 3, 2]))
    assert len(packing.assignment) == consumers


def test_look_ahead_chooses_by_expected_free_capacity() -> None:
    """Consumer 3 has more free capacity now, but its load rises, so 2 gets the new partition."""
    question = problem([60, 50, 20], [2, 3, 0])
    rising = {named(0): 60.0, named(1): 95.0, named(2): 20.0}
    ahead = PackingProblem(
        question.load_bytes_per_s, question.current, 100, forecast_bytes_per_s=rising
    )
    assert numbers(ChainPacking(0.5).pack(question)) == {2: {0}, 3: {1, 2}}
    assert numbers(ChainPacking(0.5).pack(ahead)) == {2: {0, 2}, 3: {1}}


def test_look_ahead_never_opens_an_unneeded_consumer() -> None:
    """If only the rising consumer has free capacity, it is used; no consumer is opened."""
    question = PackingProblem(
        {named(0): 90, named(1): 50, named(2): 20},
        Assignment({ConsumerId(1): [named(0)], ConsumerId(2): [named(1)]}),
        100,
        forecast_bytes_per_s={named(1): 95.0},
    )
    assert numbers(ChainPacking(0.5).pack(question)) == {1: {0}, 2: {1, 2}}


def test_one_consumer_takes_all_where_none_is_large_enough() -> None:
    """With one consumer allowed and none large enough, one takes everything, flagged."""
    packing = ChainPacking(0).pack(problem([41, 60], special={1: 30, 2: 30}, consumers_max=1))
    assert len(packing.assignment) == 1
    assert packing.overloaded


def test_the_most_allowed_takes_its_own_back_first() -> None:
    """With one consumer allowed, a second round keeps the result of the first."""
    packing = ChainPacking(0).pack(problem([1, 101], special={3: 101}, consumers_max=1))
    assert numbers(packing) == {1: {0, 1}}


def test_a_large_partition_goes_to_the_consumer_made_for_it() -> None:
    """Only consumer 2 can carry 101; it is opened for it and also takes the rest."""
    packing = ChainPacking(0).pack(problem([0, 0, 101], [0, 0, 1], special={2: 101}))
    assert numbers(packing) == {2: {0, 1, 2}}


def test_an_oversize_partition_stays_alone() -> None:
    """The consumer of an oversize partition is never emptied."""
    packing = ChainPacking(0).pack(problem([37, 64, 64, 101]))
    assert numbers(packing) == {1: {3}, 2: {1}, 3: {2}, 4: {0}}
    assert packing.oversize == (named(3),)


@pytest.mark.parametrize("knob", [-0.1, 1.1, float("nan")])
def test_a_knob_outside_its_range_is_refused(knob: float) -> None:
    """A knob outside 0 to 1 is an error."""
    with pytest.raises(ValueError, match="from 0 to 1"):
        ChainPacking(knob)
