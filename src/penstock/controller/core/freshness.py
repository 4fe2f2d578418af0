"""How old the newest state of each log is that the lake has whole.

At every measurement the end of each log is known, and the ledger's next offset is known from the
reports. When that offset reaches an end that was measured at some time, everything that was in the
log at that time is in the lake. So the ends that the lake has not reached yet are remembered, each
with its time: few for a partition that keeps up, and fewer and fewer the older they are.

Nothing here depends on the timestamps of records, which are the producers' word.
"""

from collections.abc import Mapping
from itertools import pairwise

from penstock.controller.core.inputs import LogExtent
from penstock.controller.core.state import State
from penstock.model import TopicPartition

# With more than these, old ones are forgotten, until the gaps between them are about this part of
# their age: an old backlog needs no second of precision.
MARKS_MAX = 64
GAP_PART_OF_AGE = 8
Mark = tuple[int, int]  # when, and where the log ended


class Freshness:
    """Written by the controller's loop, read by whoever scrapes."""

    def __init__(self, objective_ms: int) -> None:
        self._objective_ms = objective_ms
        # Up to when the lake is known to have all.
        self._whole_ms: dict[TopicPartition, int] = {}
        # Ends that it has not reached, oldest first.
        self._awaited: dict[TopicPartition, list[Mark]] = {}

    def measured(
        self,
        at_ms: int,
        logs: Mapping[TopicPartition, LogExtent],
        next_offsets: Mapping[TopicPartition, int],
    ) -> None:
        """Take in one measurement, and what the lake has by now."""
        whole, awaited = self._whole_ms, self._awaited
        for partition, extent in logs.items():
            offset = next_offsets.get(partition, 0)
            if offset >= extent.end_offset:
                whole[partition] = at_ms
                awaited.pop(partition, None)
                continue
            marks = awaited.get(partition)
            if marks is None:
                awaited[partition] = [(at_ms, extent.end_offset)]
                continue
            reached = 0
            while reached < len(marks) and marks[reached][1] <= offset:
                reached += 1
            if reached:
                whole[partition] = marks[reached - 1][0]
            awaited[partition] = _shortened([*marks[reached:], (at_ms, extent.end_offset)])
        for gone in whole.keys() - logs.keys():
            del whole[gone]
        for gone in awaited.keys() - logs.keys():
            del awaited[gone]

    def age_ms(self, partition: TopicPartition, now_ms: int) -> int | None:
        """None while it is unknown, and not even known to be more than the objective."""
        whole_ms = self._whole_ms.get(partition)
        if whole_ms is not None:
            return max(0, now_ms - whole_ms)
        marks = self._awaited.get(partition)
        at_least_ms = now_ms - marks[0][0] if marks else 0
        return at_least_ms if at_least_ms > self._objective_ms else None

    def is_unknown(self, partition: TopicPartition, now_ms: int) -> bool:
        """Whether records wait in it, and not even a least age is told."""
        return partition in self._awaited and self.age_ms(partition, now_ms) is None

    def oldest_ms(self, now_ms: int) -> int | None:
        """Of the partition that is furthest behind.

        None while it is unknown of any in which records wait: that one may be the oldest by far.
        """
        if self._awaited.keys() - self._whole_ms.keys():
            return None
        return max(
            (max(0, now_ms - whole_ms) for whole_ms in self._whole_ms.values()), default=None
        )

    def oldest_at_least_ms(self, now_ms: int) -> int | None:
        """What is certain of `oldest_ms`, also while that is unknown."""
        certain = {partition: marks[0][0] for partition, marks in self._awaited.items()}
        since_ms = min((certain | self._whole_ms).values(), default=None)
        return None if since_ms is None else max(0, now_ms - since_ms)


def _shortened(marks: list[Mark]) -> list[Mark]:
    """The first stays, as what is certain; forgetting others makes an age too old, never young."""
    if len(marks) <= MARKS_MAX:
        return marks
    newest_ms, kept = marks[-1][0], [marks[0]]
    for one, after in pairwise(marks[1:]):
        if (after[0] - kept[-1][0]) * GAP_PART_OF_AGE > newest_ms - one[0]:
            kept.append(one)
    return [*kept, marks[-1]]


def known_offsets(state: State) -> dict[TopicPartition, int]:
    """The ledger's next offset of each partition, by the newest that was said about it."""
    offsets = dict(state.ledger_offsets)
    logs = {} if state.speeds is None else state.speeds.logs
    for partition, offset in state.ledger_offsets.items():
        extent = logs.get(partition)
        if extent is not None and offset > extent.end_offset and partition not in state.holdings:
            del offsets[partition]  # of a log that was made again, or has lost records
    for consumer, record in state.consumers.items():
        held = state.held_by.get(consumer, frozenset())
        offsets |= {p: offset for p, offset in record.next_offsets.items() if p in held}
    return offsets
