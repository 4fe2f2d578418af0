"""Which of the batches that wait go into the next commit, and when it is made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from penstock.committer.core.waiting import ANSWER_S_MAX

# From the beginning of one commit to the next: every commit is an entry that all writers read. In
# an object store each of them makes a request for it.
COMMIT_PERIOD_S, STORE_COMMIT_PERIOD_S = 0.1, 0.25
# One slow commit must not keep batches waiting for as long again.
REST_S_MAX = 0.5
# One entry names no more than this. What is left over goes into the next one.
BATCHES_MAX, FILES_MAX = 200, 2_000
# A reader holds some entries at once.
DESCRIBED_BYTES_MAX = 8_000_000
# More than so many wait only if commits fail: then the oldest are dropped, and their writers
# commit for themselves.
WAITING_MAX, WAITING_BYTES_MAX = 1_000, 64_000_000


class Offered(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def files(self) -> Sequence[object]: ...

    @property
    def described_bytes(self) -> int:
        """About how much an entry says of it."""


Batch = TypeVar("Batch", bound=Offered)


def commit_period_s(*, is_in_store: bool, last_commit_s: float) -> float:
    """From the beginning of one commit to the next, where the last one took so long.

    In an object store nothing is committed for as long as that again, or half a second, so that
    time is left for those that read what was committed.
    """
    if not is_in_store:
        return COMMIT_PERIOD_S
    return max(STORE_COMMIT_PERIOD_S, last_commit_s + min(last_commit_s, REST_S_MAX))


@dataclass(frozen=True, slots=True)
class _Noted:
    """When a batch came, and how much is said of it."""

    at_s: float
    described_bytes: int


@dataclass(frozen=True, slots=True)
class Waiting(Generic[Batch]):
    """The batches of one table that wait for a commit, in the order in which they came."""

    batches: tuple[Batch, ...] = ()
    last_commit_s: float | None = None
    # When the first of them came.
    since_s: float = 0.0
    # By the name of a batch.
    noted: Mapping[str, _Noted] = field(default_factory=dict)

    def with_offer(self, batch: Batch, now_s: float) -> "Waiting[Batch]":
        """One that waits already is the same."""
        if batch.name in self.noted:
            return self
        since_s = self.since_s if self.batches else now_s
        noted = {**self.noted, batch.name: _Noted(now_s, batch.described_bytes)}
        batches = (*self.batches, batch)[-WAITING_MAX:]
        size_bytes = sum(noted[one.name].described_bytes for one in batches)
        dropped = 0
        while size_bytes > WAITING_BYTES_MAX:
            size_bytes -= noted[batches[dropped].name].described_bytes
            dropped += 1
        return self._with(batches[dropped:], self.last_commit_s, since_s, noted)

    def is_due(self, now_s: float, period_s: float = COMMIT_PERIOD_S) -> bool:
        if not self.batches:
            return False
        return self.last_commit_s is None or now_s - self.last_commit_s >= period_s

    def without_late(self, now_s: float) -> tuple[tuple[Batch, ...], "Waiting[Batch]"]:
        """Those whose writers wait no longer, and the others."""
        late = tuple(
            one for one in self.batches if now_s - self.noted[one.name].at_s > ANSWER_S_MAX
        )
        if not late:
            return (), self
        names = {one.name for one in late}
        left = tuple(one for one in self.batches if one.name not in names)
        return late, self._with(left, self.last_commit_s, self.since_s, self.noted)

    def taken(self, now_s: float) -> tuple[tuple[Batch, ...], "Waiting[Batch]"]:
        """What goes into a commit that begins now, and what waits for the next one."""
        count, files, size_bytes = 0, 0, 0
        for one in self.batches[:BATCHES_MAX]:
            files += len(one.files)
            size_bytes += self.noted[one.name].described_bytes
            if count and (files > FILES_MAX or size_bytes > DESCRIBED_BYTES_MAX):
                break
            count += 1
        left = self._with(self.batches[count:], now_s, now_s, self.noted)
        return self.batches[:count], left

    def _with(
        self,
        batches: tuple[Batch, ...],
        last_commit_s: float | None,
        since_s: float,
        noted: Mapping[str, _Noted],
    ) -> "Waiting[Batch]":
        """Nothing else is remembered of batches that wait no more."""
        its = {one.name: noted[one.name] for one in batches}
        return Waiting(batches, last_commit_s, since_s, its)
