"""How many consumers a plain Kafka consumer group needs for a load. Pure.

Such a group deals partitions out by number, whatever is written to each. So more consumers are not
always better: two may share two fast partitions evenly that fall to one of three.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from penstock.model import TopicPartition

# A sum that is over the capacity by less than this share of it is only not exact.
_NOT_EXACT = 1e-9


def plain_group(
    samples: Sequence[Mapping[TopicPartition, float]], capacity: float, at_least: int
) -> int:
    """The fewest consumers whose partitions, dealt out by number, never exceed the capacity.

    A partition that no consumer can carry counts as much as one consumer carries.
    """
    names = sorted({partition for sample in samples for partition in sample})
    rows = [np.array([min(one.get(p, 0.0), capacity) for p in names]) for one in samples]
    most = max(1, at_least, len(names))
    for number in range(max(1, at_least), most):
        over = next((n for n, row in enumerate(rows) if _highest(row, number) > capacity), None)
        if over is None:
            return number
        # What is too much for so many is mostly too much for one more, so it is tried first.
        rows.insert(0, rows.pop(over))
    return most


def _highest(row: npt.NDArray[np.float64], number: int) -> float:
    """The load of the consumer with the most, of so many."""
    padded = np.zeros(-(-len(row) // number) * number)
    padded[: len(row)] = row
    return float(padded.reshape(-1, number).sum(axis=0).max(initial=0.0)) * (1 - _NOT_EXACT)
