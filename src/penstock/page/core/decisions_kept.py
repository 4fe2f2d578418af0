"""Every decision that the page has seen, also those that the controller's snapshot has dropped.

Each gets a number, by which a stream of events can be resumed. A decision that comes again keeps
its number and its place, with a higher count.
"""

import re
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from penstock.controller.core.decisions import Code
from penstock.controller.core.told_status import plain_text
from penstock.page.core.view import Json

KEPT_MAX = 5_000
# Ages are counted by one clock and times by another: the same decision may differ by this much.
SAME_WITHIN_MS = 3_000
FAULTS = frozenset(
    {
        Code.CONSUMER_LOST,
        Code.CONSUMER_FENCED,
        Code.CONSUMER_ENDED,
        Code.CONSUMER_RESTARTED,
        Code.CONSUMER_INCIDENT,
        Code.CREATION_FAILED,
        Code.LISTING_FAILED,
        Code.PACKING_FAILED,
        Code.PARTITION_FAILED,
        Code.PARTITION_GIVEN_UP,
        Code.STRAY_READER,
        Code.MESSAGE_REFUSED,
        Code.OUT_OF_STEP,
        Code.ROLLED_BACK,
        Code.HELD_BY_SILENCE,
    }
)
_STARTS = frozenset({Code.CONSUMER_CREATED, Code.CONSUMER_ADOPTED})
_ENDS = frozenset({Code.CONSUMER_REMOVED})
_MOVES = frozenset({Code.PLAN_MADE})


def kind_of(code: str) -> str:
    """What kind of mark a decision is on a time line."""
    for kind, codes in (
        ("fault", FAULTS),
        ("start", _STARTS),
        ("end", _ENDS),
        ("move", _MOVES),
    ):
        if code in codes:
            return kind
    return "note"


@dataclass(frozen=True, slots=True)
class KeptDecision:
    number: int
    at_unix_ms: int
    first_unix_ms: int
    code: str
    sentence: str
    plan: int
    moves: int
    moved_bytes_per_s: float
    times: int

    def answer(self) -> Json:
        return {
            "id": self.number,
            "at_unix_ms": self.at_unix_ms,
            "first_unix_ms": self.first_unix_ms,
            "times": self.times,
            "kind": kind_of(self.code),
            "code": self.code,
            "sentence": self.sentence,
            "plan": self.plan,
            "moves": self.moves,
            "moved_bytes_per_s": self.moved_bytes_per_s,
        }


class DecisionsKept:
    def __init__(self, kept_max: int = KEPT_MAX) -> None:
        self._kept_max = kept_max
        self._by_number: OrderedDict[int, KeptDecision] = OrderedDict()
        self._by_code: dict[str, deque[int]] = {}
        self._numbers = 0
        self._seen: tuple[Any, ...] = ()

    def __iter__(self) -> Iterator[KeptDecision]:
        return iter(self._by_number.values())

    @property
    def newest_number(self) -> int:
        return self._numbers

    def add(self, history: list[Json], now_unix_ms: int) -> list[KeptDecision]:
        """The decisions of a snapshot whose ages are counted to now; those that are new."""
        seen = tuple((one["code"], one["explanation"], one["times"]) for one in history)
        if seen == self._seen:
            return []
        found = [new for one in history if (new := self._add(one, now_unix_ms)) is not None]
        self._seen = seen
        return found

    def _add(self, one: Json, now_unix_ms: int) -> KeptDecision | None:
        first_unix_ms = now_unix_ms - one["first_age_ms"]
        sentence = plain_text(one["code"], one["explanation"])
        known = self._known(one, sentence, first_unix_ms)
        if known is not None:
            if one["times"] > known.times:
                self._by_number[known.number] = replace(
                    known,
                    at_unix_ms=now_unix_ms - one["age_ms"],
                    times=one["times"],
                    sentence=sentence,
                )
            return None
        self._numbers += 1
        new = KeptDecision(
            number=self._numbers,
            at_unix_ms=now_unix_ms - one["age_ms"],
            first_unix_ms=first_unix_ms,
            code=one["code"],
            sentence=sentence,
            plan=one["plan"],
            moves=one["moves"],
            moved_bytes_per_s=one["moved_bytes_per_s"],
            times=one["times"],
        )
        self._by_number[new.number] = new
        self._by_code.setdefault(new.code, deque()).append(new.number)
        while len(self._by_number) > self._kept_max:
            _, oldest = self._by_number.popitem(last=False)
            self._by_code[oldest.code].remove(oldest.number)
        return new

    def _known(self, one: Json, sentence: str, first_unix_ms: int) -> KeptDecision | None:
        for number in reversed(self._by_code.get(one["code"], ())):
            known = self._by_number[number]
            if abs(known.first_unix_ms - first_unix_ms) > SAME_WITHIN_MS:
                continue
            if known.sentence == sentence or one["times"] > 1:
                return known
        return None

    def since_number(self, number: int) -> list[KeptDecision]:
        return [one for one in self if one.number > number]

    def found(
        self, *, codes: frozenset[str] = frozenset(), since_unix_ms: int = 0, pattern: str = ""
    ) -> list[KeptDecision]:
        """Newest first; one that came again counts by its last time."""
        named = re.compile(pattern)
        newest = sorted(self, key=lambda one: (one.at_unix_ms, one.number), reverse=True)
        return [
            one
            for one in newest
            if (not codes or one.code in codes)
            and one.at_unix_ms >= since_unix_ms
            and named.search(one.sentence)
        ]


def counts_by_code(decisions: Iterable[KeptDecision]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for one in decisions:
        counts[one.code] = counts.get(one.code, 0) + one.times
    return dict(sorted(counts.items()))


def naming_partition(topic: str, partition: int) -> str:
    """A pattern for sentences that name this partition, and no other like `my-orders-3`."""
    return rf"(?<![\w.-]){re.escape(topic)}-{partition}(?![\w-])"


def naming_consumer(consumer: int) -> str:
    """A pattern for `consumer 3` and `consumers 1, 3`."""
    return rf"consumers? (?:\d+(?:, | and ))*{consumer}(?!\d|[.,]\d)"
