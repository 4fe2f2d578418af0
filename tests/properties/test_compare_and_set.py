"""Every interleaving of two writers: which commit rule duplicates records, and which never does.

There is one partition with four offsets. A writer plans a range from the ledger, may pause for any
time, and then tries to commit. The rule accepts or refuses the commit.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from penstock.model import TopicPartition
from penstock.pipeline.lake_commit import LedgerMove

LAST = 4
Range: TypeAlias = tuple[int | None, int, int]
Law: TypeAlias = Callable[[int | None, Range], bool]


@dataclass(frozen=True)
class World:
    ledger: int | None = None
    copies: tuple[int, ...] = (0,) * LAST
    held: tuple[Range | None, Range | None] = (None, None)


def compare_and_set(stored: int | None, held: Range) -> bool:
    """The pipeline's rule."""
    expected, _, end = held
    return LedgerMove(TopicPartition("t", 0), "g/t/0", expected, end).is_allowed(stored)


def highest_end_wins(stored: int | None, held: Range) -> bool:
    """The rule of Delta's idempotent writes: refuse only if the stored version is as high."""
    return stored is None or held[2] > stored


def _steps(world: World, law: Law) -> Iterator[World]:
    for writer in (0, 1):
        held = world.held[writer]
        others = list(world.held)
        if held is None:
            start = world.ledger or 0
            for end in range(start + 1, LAST + 1):
                others[writer] = (world.ledger, start, end)
                yield replace(world, held=(others[0], others[1]))
            continue
        others[writer] = None
        after = replace(world, held=(others[0], others[1]))
        yield after  # the writer dies before its commit
        if law(world.ledger, held):
            _, start, end = held
            copies = tuple(n + (start <= at < end) for at, n in enumerate(world.copies))
            yield replace(after, ledger=end, copies=copies)


def _reachable(law: Law) -> set[World]:
    seen, ahead = {World()}, [World()]
    while ahead:
        for world in _steps(ahead.pop(), law):
            if world not in seen and max(world.copies) <= 2:
                seen.add(world)
                ahead.append(world)
    return seen


def _is_exact(world: World) -> bool:
    """Every record below the ledger is stored once, and none above it."""
    ledger = world.ledger or 0
    return world.copies == tuple(int(at < ledger) for at in range(LAST))


def test_compare_and_set_is_exact_in_every_order() -> None:
    """No interleaving of two writers loses or repeats a record under the pipeline's rule."""
    worlds = _reachable(compare_and_set)
    assert len(worlds) == 185
    assert all(_is_exact(world) for world in worlds)
    assert any(world.ledger == LAST for world in worlds)


def test_highest_end_wins_repeats_records() -> None:
    """Under "the highest end wins" a zombie with a longer range repeats records."""
    worlds = _reachable(highest_end_wins)
    assert any(max(world.copies) == 2 for world in worlds)
