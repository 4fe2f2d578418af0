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
Rule: TypeAlias = Callable[[int | None, Range], bool]


@dataclass(frozen=True)
class TwoWriters:
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


def _steps(state: TwoWriters, rule: Rule) -> Iterator[TwoWriters]:
    for writer in (0, 1):
        held = state.held[writer]
        others = list(state.held)
        if held is None:
            start = state.ledger or 0
            for end in range(start + 1, LAST + 1):
                others[writer] = (state.ledger, start, end)
                yield replace(state, held=(others[0], others[1]))
            continue
        others[writer] = None
        after = replace(state, held=(others[0], others[1]))
        yield after  # the writer dies before its commit
        if rule(state.ledger, held):
            _, start, end = held
            copies = tuple(n + (start <= at < end) for at, n in enumerate(state.copies))
            yield replace(after, ledger=end, copies=copies)


def _reachable(rule: Rule) -> set[TwoWriters]:
    seen, ahead = {TwoWriters()}, [TwoWriters()]
    while ahead:
        for state in _steps(ahead.pop(), rule):
            if state not in seen and max(state.copies) <= 2:
                seen.add(state)
                ahead.append(state)
    return seen


def _is_exact(state: TwoWriters) -> bool:
    """Every record below the ledger is stored once, and none above it."""
    ledger = state.ledger or 0
    return state.copies == tuple(int(at < ledger) for at in range(LAST))


def test_compare_and_set_is_exact_in_every_order() -> None:
    """No interleaving of two writers loses or repeats a record under the pipeline's rule."""
    states = _reachable(compare_and_set)
    assert len(states) == 185
    assert all(_is_exact(state) for state in states)
    assert any(state.ledger == LAST for state in states)


def test_highest_end_wins_repeats_records() -> None:
    """Under "the highest end wins" a zombie with a longer range repeats records."""
    states = _reachable(highest_end_wins)
    assert any(max(state.copies) == 2 for state in states)
