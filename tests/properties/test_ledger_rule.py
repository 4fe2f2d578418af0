"""The ledger's rule in every order: compare-and-set fences, "the highest end wins" does not."""

from collections import Counter
from itertools import pairwise

from penstock.laboratory.protocol_simulation.ledger import Ledger
from penstock.model import ConsumerId, Epoch, OffsetRange, TopicPartition

PARTITION = TopicPartition("orders", 0)
PLACE = ("id", 0)
OFFSETS = 4


def duplicates(*, checks_start: bool) -> int:
    """Count duplicates over all interleavings of two writers and four offsets."""
    found = 0
    # A state is the commits, and for each writer its planned range or None.
    start: tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int] | None, ...]] = (
        (),
        (None, None),
    )
    todo, seen = [start], {start}
    while todo:
        commits, held = todo.pop()
        for writer in range(2):
            for following in _moves(commits, held, writer, checks_start):
                if following not in seen:
                    seen.add(following)
                    todo.append(following)
                    found += _has_duplicates(following[0])
    return found


def _moves(
    commits: tuple[tuple[int, int], ...],
    held: tuple[tuple[int, int] | None, ...],
    writer: int,
    checks_start: bool,
) -> list[tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int] | None, ...]]]:
    ledger = Ledger(checks_start=checks_start)
    if commits:
        ledger.next_offset[PLACE] = commits[-1][1]
    mine = held[writer]
    if mine is None:
        begin = ledger.read(PLACE)
        ranges = [(begin, end) for end in range(begin + 1, OFFSETS + 1)]
        return [(commits, _with(held, writer, taken)) for taken in ranges]
    taken = {PLACE: OffsetRange(PARTITION, *mine)}
    late = ledger.commit(taken, {PARTITION: Epoch(1, writer)}, ConsumerId(writer + 1), 1)
    return [(commits if late else (*commits, mine), _with(held, writer, None))]


def _with(
    held: tuple[tuple[int, int] | None, ...], writer: int, taken: tuple[int, int] | None
) -> tuple[tuple[int, int] | None, ...]:
    return tuple(taken if number == writer else other for number, other in enumerate(held))


def _has_duplicates(commits: tuple[tuple[int, int], ...]) -> bool:
    records = Counter(offset for start, end in commits for offset in range(start, end))
    return any(times > 1 for times in records.values())


def test_compare_and_set_never_doubles_a_record() -> None:
    """Of two writers at the same offset exactly one commits."""
    assert duplicates(checks_start=True) == 0


def test_highest_end_wins_doubles_records() -> None:
    """A longer range of a zombie repeats records that are already committed."""
    assert duplicates(checks_start=False) > 0


def test_a_refused_commit_changes_nothing() -> None:
    """A commit of several partitions is accepted completely or not at all."""
    ledger = Ledger()
    other, there = TopicPartition("orders", 1), ("id", 1)
    epochs = {PARTITION: Epoch(1, 1), other: Epoch(1, 2)}
    both = {PLACE: OffsetRange(PARTITION, 0, 5), there: OffsetRange(other, 0, 5)}
    assert ledger.commit(both, epochs, ConsumerId(1), 1) == ()
    later = {PLACE: OffsetRange(PARTITION, 5, 9), there: OffsetRange(other, 4, 9)}
    assert ledger.commit(later, epochs, ConsumerId(1), 1) == (there,)
    assert ledger.read(PLACE) == 5
    assert all(a.key != b.key or b.start == a.end for a, b in pairwise(ledger.commits))
