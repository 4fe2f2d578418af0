"""Next fit: only the consumer opened last is considered; what does not fit opens the next one.

As published, it starts with the lowest consumer open, regardless of the first partition's owner.
"""

from penstock.packing.any_fit import AnyFit
from penstock.packing.whole_numbers import IntegerProblem


class LastOpened:
    """The rule: the consumer opened last, or none."""

    __slots__ = ("_consumer", "_free")

    def __init__(self) -> None:
        self._consumer = 0
        self._free = -1

    def changed(self, consumer: int, before: int | None, after: int | None) -> None:
        if before is None:
            self._consumer = consumer
        self._free = -1 if after is None else after  # no other consumer is ever filled

    def choose(self, size: int) -> int | None:
        return self._consumer if size <= self._free else None


def _rule(_: IntegerProblem) -> LastOpened:
    return LastOpened()


NEXT_FIT = AnyFit(
    "NF",
    "To compare with: the simplest packing; moves nearly everything.",
    _rule,
    starts_with_one_open=True,
)
NEXT_FIT_DECREASING = AnyFit(
    "NFD",
    "To compare with: as NF, fastest partitions first.",
    _rule,
    decreasing=True,
    starts_with_one_open=True,
)
