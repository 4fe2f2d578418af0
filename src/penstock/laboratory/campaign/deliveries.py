"""What the producers of a campaign were told about each record, and the comparison with the lake.

Every record has an id: the name of its lane (one producer's records for one partition) and a number
that counts up from 0. The ids are read from the values in the lake, so this count uses neither the
offsets of Kafka nor the ledger.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]


class Outcome(IntEnum):
    """What the producer knows of a record. One that is unknown may be in Kafka or not."""

    UNKNOWN = 0
    COMMITTED = 1
    ABORTED = 2


class DeliveryLog:
    """One byte for each record. Each lane is written by one thread."""

    def __init__(self) -> None:
        self.lanes: dict[str, bytearray] = {}

    def note(self, lane: str, number: int, outcome: Outcome) -> None:
        outcomes = self.lanes.setdefault(lane, bytearray())
        if number >= len(outcomes):
            outcomes.extend(bytes(number + 1 - len(outcomes)))
        outcomes[number] = outcome

    def note_range(self, lane: str, start: int, end: int, outcome: Outcome) -> None:
        if end > start:
            self.note(lane, end - 1, outcome)
            self.lanes[lane][start:end] = bytes([outcome]) * (end - start)

    def count(self, outcome: Outcome) -> int:
        return sum(outcomes.count(outcome) for outcomes in list(self.lanes.values()))


@dataclass(frozen=True, slots=True)
class DeliveryCheck:
    """`lost` were told committed and are not in the lake; `doubled` are there more than once.

    `aborted_in_lake` were aborted and are there all the same. `foreign` have an id that no producer
    of this campaign gave. Records of deleted topics are `excused` from being there.
    """

    committed: int
    aborted: int
    unknown: int
    excused: int
    lost: int
    doubled: int
    aborted_in_lake: int
    foreign: int
    first_lost: str | None = None

    @property
    def is_exact(self) -> bool:
        return not (self.lost or self.doubled or self.aborted_in_lake or self.foreign)


def check_deliveries(
    told: Mapping[str, bytes | bytearray],
    in_lake: Mapping[str, Numbers],
    deleted_lanes: Collection[str] = (),
) -> DeliveryCheck:
    totals = dict.fromkeys(
        (
            "committed",
            "aborted",
            "unknown",
            "excused",
            "lost",
            "doubled",
            "aborted_in_lake",
            "foreign",
        ),
        0,
    )
    first_lost = None
    for lane, outcomes in sorted(told.items()):
        numbers = in_lake.get(lane, np.empty(0, dtype=np.int64))
        copies = np.bincount(numbers, minlength=len(outcomes))
        # Of the last records a producer may have heard nothing.
        told_now = np.zeros(copies.size, dtype=np.uint8)
        told_now[: len(outcomes)] = np.frombuffer(bytes(outcomes), dtype=np.uint8)
        missing = np.flatnonzero((told_now == Outcome.COMMITTED) & (copies == 0))
        if lane in deleted_lanes:
            totals["excused"] += missing.size
        else:
            totals["lost"] += missing.size
            if missing.size and first_lost is None:
                first_lost = f"{lane}-{missing[0]}"
        totals["committed"] += int((told_now == Outcome.COMMITTED).sum())
        totals["aborted"] += int((told_now == Outcome.ABORTED).sum())
        totals["unknown"] += int((told_now == Outcome.UNKNOWN).sum())
        totals["doubled"] += int(np.maximum(copies - 1, 0).sum())
        totals["aborted_in_lake"] += int(((told_now == Outcome.ABORTED) & (copies > 0)).sum())
    totals["foreign"] = sum(
        int(numbers.size) for lane, numbers in in_lake.items() if lane not in told
    )
    return DeliveryCheck(**totals, first_lost=first_lost)
