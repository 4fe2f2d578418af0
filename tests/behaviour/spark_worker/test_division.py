"""How a batch is cut into tasks."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from penstock.spark_worker.work import OFFSETS_WORTH_CUTTING, RangeToRead, divided

ranges = st.lists(
    st.builds(
        lambda topic, partition, start, size: RangeToRead(
            f"topic-{topic}", partition, start, start + size
        ),
        st.integers(0, 9),
        st.integers(0, 5),
        st.integers(0, 1000),
        st.integers(1, 50_000),
    ),
    max_size=30,
    unique_by=lambda one: (one.topic, one.partition),
)


def offsets(shares: Sequence[Sequence[RangeToRead]]) -> list[tuple[str, int, int, int]]:
    """Every range again, its pieces put together."""
    whole: dict[tuple[str, int], list[RangeToRead]] = {}
    for one in (one for share in shares for one in share):
        whole.setdefault((one.topic, one.partition), []).append(one)
    found = []
    for (topic, partition), pieces in whole.items():
        pieces.sort(key=lambda one: one.start)
        for before, after in pairwise(pieces):
            assert before.end == after.start
        found.append((topic, partition, pieces[0].start, pieces[-1].end))
    return sorted(found)


@given(ranges, st.integers(1, 8))
def test_every_offset_is_dealt_out_once(given: list[RangeToRead], tasks: int) -> None:
    """Nothing is lost, nothing is doubled, and no task is empty."""
    shares = divided(given, tasks)
    assert offsets(shares) == sorted(
        (one.topic, one.partition, one.start, one.end) for one in given
    )
    assert len(shares) <= tasks
    assert all(shares)


def test_shares_are_nearly_equal() -> None:
    """Twenty-four partitions of one topic on two tasks: twelve each."""
    given = [RangeToRead("one", number, 0, 100) for number in range(24)]
    assert [sum(map(len, share)) for share in divided(given, 2)] == [1200, 1200]


def test_in_calm_a_topic_is_one_file() -> None:
    """Whole topics go to one task, also when there are as many tasks, and a long range is whole."""
    given = [RangeToRead(f"t{topic}", one, 0, 100) for topic in range(3) for one in range(8)]
    first, second = divided(given, 2, keeps_topics_whole=True)
    assert not {one.topic for one in first} & {one.topic for one in second}
    large = RangeToRead("one", 0, 0, OFFSETS_WORTH_CUTTING)
    assert divided([large], 2, keeps_topics_whole=True) == [[large]]


def test_many_topics_are_dealt_out_whole() -> None:
    """Each topic in a share is a file: with 24 topics on two tasks no topic is in both."""
    given = [RangeToRead(f"t{topic:02}", one, 0, 10) for topic in range(24) for one in range(10)]
    first, second = ({one.topic for one in share} for share in divided(given, 2))
    assert len(first) == len(second) == 12
    assert not first & second


def test_one_large_partition_is_cut() -> None:
    """A single partition with a backlog keeps both cores busy; a small one is left whole."""
    large = RangeToRead("one", 0, 5, 5 + OFFSETS_WORTH_CUTTING)
    halves = divided([large], 2)
    assert [[(one.start, one.end) for one in share] for share in halves] == [
        [(5, 10_005)],
        [(10_005, 20_005)],
    ]
    small = RangeToRead("one", 0, 0, OFFSETS_WORTH_CUTTING - 1)
    assert divided([small], 2) == [[small]]
