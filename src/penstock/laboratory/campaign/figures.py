"""Figures of a campaign, from times in seconds since its begin. Pure.

A commit is a time at which the lake's ledger went on. An outage is a stretch in which the broker or
the Spark server was down.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import TypeAlias

from penstock.laboratory.campaign.faults import SERVERS, SHARED, Harm, Injected

Outage: TypeAlias = tuple[float, float]
# A consumer that a fault hit is not called unharmed before this long after it was over.
RECOVERY_S = 30.0

# The load is constant, but less is measured while an outage keeps the producers from writing.
NEED_COUNTS_FOR_S = 120.0

CREATED = "consumer_created"
FENCED = "consumer_fenced"
REMOVED = "consumer_removed"


@dataclass(frozen=True, slots=True)
class SecondsWithCommit:
    """How many of the seconds had a commit."""

    seconds: int
    with_commit: int

    @property
    def share(self) -> float:
        return self.with_commit / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class Stall:
    """A stretch without a commit; `seconds` may leave outages out."""

    since_s: float
    until_s: float
    seconds: float


@dataclass(frozen=True, slots=True)
class PartitionStall:
    """The longest stretch between two commits of one partition, less the outages in it."""

    partition: str
    stall: Stall


@dataclass(frozen=True, slots=True)
class Sample:
    """The group at one time. `needed` is None while the controller knows no speeds."""

    at_s: float
    consumers: int
    needed: int | None
    told_committed: int


@dataclass(frozen=True, slots=True)
class Surplus:
    """How much larger than needed the group was, at the most and for how long."""

    most_per_needed: float
    since_s: float
    seconds: float


@dataclass(frozen=True, slots=True)
class ConsumerDecision:
    """What the controller decided about one consumer."""

    at_s: float
    code: str
    consumer: int
    explanation: str


def outages_of(injected: Iterable[Injected]) -> list[Outage]:
    """When the broker or the Spark server was down, as stretches that do not overlap."""
    found = sorted((one.at_s, one.back_s) for one in injected if one.fault.part in SERVERS)
    joined: list[Outage] = []
    for since_s, until_s in found:
        if joined and since_s <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], until_s))
        else:
            joined.append((since_s, until_s))
    return joined


def with_recoveries(
    outages: Sequence[Outage], commits_s: Iterable[float], length_s: float
) -> list[Outage]:
    """Each outage until the first commit after it, whose time `flows_again_s` tells.

    Where the next outage begins before that commit, nothing tells of the time between the two.
    """
    times = sorted(commits_s)
    ends = [next((at_s for at_s in times if at_s >= until_s), length_s) for _, until_s in outages]
    following = [*(since_s for since_s, _ in outages[1:]), math.inf]
    return [
        (since_s, end_s if end_s < next_s else until_s)
        for (since_s, until_s), end_s, next_s in zip(outages, ends, following, strict=True)
    ]


def seconds_with_commit(
    commits_s: Iterable[float], length_s: float, outages: Sequence[Outage] = ()
) -> SecondsWithCommit:
    """Of the whole seconds of the campaign, without those that an outage touches."""
    counted = {
        second
        for second in range(int(length_s))
        if not any(since_s < second + 1 and until_s > second for since_s, until_s in outages)
    }
    return SecondsWithCommit(len(counted), len(counted & {int(at_s // 1) for at_s in commits_s}))


def longest_stall(
    commits_s: Iterable[float], length_s: float, outages: Sequence[Outage] = ()
) -> Stall:
    """The longest stretch without a commit, less the outages in it."""
    times = [0.0, *sorted(at_s for at_s in commits_s if 0 < at_s < length_s), length_s]
    stalls = [
        Stall(since_s, until_s, until_s - since_s - _overlap_s(since_s, until_s, outages))
        for since_s, until_s in pairwise(times)
    ]
    return max(stalls, key=lambda one: one.seconds)


def deletions_s(injected: Iterable[Injected]) -> dict[str, list[float]]:
    """When each topic was deleted."""
    found: dict[str, list[float]] = {}
    for one in injected:
        if one.fault.harm is Harm.DELETE:
            found.setdefault(one.fault.topic, []).append(one.at_s)
    return found


def longest_partition_stall(
    commits: Iterable[tuple[float, str]],
    length_s: float,
    outages: Sequence[Outage] = (),
    deleted_at_s: Mapping[str, Collection[float]] = MappingProxyType({}),
) -> PartitionStall | None:
    """All partitions are written to the end, so each should go on to the end.

    A stretch in which the topic was deleted is no stall, whether it was made again or not.
    """
    by_partition: dict[str, list[float]] = {}
    for at_s, partition in commits:
        by_partition.setdefault(partition, []).append(at_s)
    for times in by_partition.values():
        times.append(max(length_s, *times))
    stalls = [
        PartitionStall(
            partition,
            Stall(since_s, until_s, until_s - since_s - _overlap_s(since_s, until_s, outages)),
        )
        for partition, times in sorted(by_partition.items())
        for since_s, until_s in pairwise(max(0.0, at_s) for at_s in sorted(times))
        if not any(
            since_s <= at_s <= until_s
            for at_s in deleted_at_s.get(partition.rpartition("-")[0], ())
        )
    ]
    return max(stalls, key=lambda one: one.stall.seconds, default=None)


def flows_again_s(
    commits_s: Iterable[float], injected: Iterable[Injected], length_s: float
) -> dict[str, float]:
    """From the return of each part that all depend on to the next commit: the longest of each.

    Where several were away, or one went down again before that commit, the last return counts:
    nothing could flow before it.
    """
    times = sorted(commits_s)
    found: dict[str, float] = {}
    down = sorted((one for one in injected if one.fault.part in SHARED), key=lambda one: one.back_s)
    for one in down:
        next_s = next((at_s for at_s in times if at_s >= one.back_s), length_s)
        if any(other.at_s < next_s and other.back_s > one.back_s for other in down):
            continue
        part = one.fault.part.value
        found[part] = max(found.get(part, 0.0), next_s - one.back_s)
    return found


def _overlap_s(since_s: float, until_s: float, outages: Iterable[Outage]) -> float:
    return sum(max(0.0, min(until_s, end_s) - max(since_s, begin_s)) for begin_s, end_s in outages)


def given_up(decisions: Iterable[ConsumerDecision]) -> list[ConsumerDecision]:
    """Consumers that were fenced: told to end because they seemed broken."""
    return [one for one in decisions if one.code == FENCED]


def given_up_unharmed(
    decisions: Sequence[ConsumerDecision], injected: Iterable[Injected]
) -> list[ConsumerDecision]:
    """Those that were fenced although no fault had hit them."""
    hits = [one for one in injected if one.consumer is not None]
    return [
        one
        for one in given_up(decisions)
        if not any(_explains(hit, one, decisions) for hit in hits)
    ]


def _explains(
    hit: Injected, fenced: ConsumerDecision, decisions: Iterable[ConsumerDecision]
) -> bool:
    """Whether the fault hit this consumer, not a later one of its number, not long before."""
    if hit.consumer != fenced.consumer:
        return False
    if not hit.at_s <= fenced.at_s <= hit.over_s + RECOVERY_S:
        return False
    # The number may have been given to a new consumer since then, which nothing hit.
    return not any(
        one.code == CREATED and one.consumer == hit.consumer and hit.at_s < one.at_s < fenced.at_s
        for one in decisions
    )


def drain_s(commits_s: Iterable[float], over_s: float) -> float:
    """From the end of the last fault to the last commit."""
    return max([0.0, *(at_s - over_s for at_s in commits_s)])


def surplus(samples: Sequence[Sample], spares: int) -> Surplus:
    """By the highest need of the last two minutes. Spare consumers do not make a stretch longer."""
    needs = _lasting_needs(samples)
    most = max((one.consumers / need for one, need in zip(samples, needs, strict=True)), default=0)
    since_s, longest_s, began_s = 0.0, 0.0, None
    for one, need in zip(samples, needs, strict=True):
        if one.consumers <= need + spares:
            began_s = None
            continue
        began_s = one.at_s if began_s is None else began_s
        if one.at_s - began_s > longest_s:
            since_s, longest_s = began_s, one.at_s - began_s
    return Surplus(most, since_s, longest_s)


def _lasting_needs(samples: Sequence[Sample]) -> list[int]:
    """The highest need of the last two minutes, for each sample; one consumer is always needed."""
    found = []
    first = 0
    for at, one in enumerate(samples):
        while samples[first].at_s < one.at_s - NEED_COUNTS_FOR_S:
            first += 1
        found.append(max(1, *(sample.needed or 0 for sample in samples[first : at + 1])))
    return found
