"""When to ask for a new plan. One method per reason, in the order of urgency.

The machine takes the policy as a parameter and knows only `verdict`, so that another one is a few
lines. This one needs the group's view and the settings and remembers nothing.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from penstock.controller.decisions import Code, some
from penstock.controller.state import State
from penstock.model import ConsumerId, TopicPartition


@dataclass(frozen=True, slots=True)
class GroupView:
    """What the policy may look at. Only consumers that are available appear."""

    now_ms: int
    owner: Mapping[TopicPartition, ConsumerId]
    load_bytes_per_s: Mapping[TopicPartition, float]
    load_by_consumer: Mapping[ConsumerId, float]
    partitions_by_consumer: Mapping[ConsumerId, int]
    capacity_by_consumer: Mapping[ConsumerId, float]
    unread: tuple[TopicPartition, ...]
    is_fresh: bool
    is_behind: bool

    @property
    def workers(self) -> tuple[ConsumerId, ...]:
        return tuple(sorted(self.load_by_consumer))


@dataclass(frozen=True, slots=True)
class Verdict:
    code: Code
    words: str
    is_urgent: bool


class Policy(Protocol):
    def verdict(self, group: GroupView, state: State) -> Verdict | None:
        """Why a plan is needed now, or None when the group is well as it is."""


@dataclass(frozen=True, slots=True)
class PlainPolicy:
    """Unread partitions at once; overload soon; fewer consumers on a slow timer."""

    def verdict(self, group: GroupView, state: State) -> Verdict | None:
        return self._unread(group) or self._over_capacity(group, state) or self._fewer(group, state)

    def _unread(self, group: GroupView) -> Verdict | None:
        if not group.unread:
            return None
        names = some([str(partition) for partition in sorted(group.unread)])
        return Verdict(Code.UNREAD_PARTITION, f"nobody reads {names}", is_urgent=True)

    def _over_capacity(self, group: GroupView, state: State) -> Verdict | None:
        """Above its whole capacity: the plan aims lower, and the gap keeps the group calm."""
        if not group.is_fresh or _is_too_soon(group, state):
            return None
        over = [
            str(consumer)
            for consumer in group.workers
            if group.load_by_consumer[consumer] > group.capacity_by_consumer[consumer]
            and group.partitions_by_consumer[consumer] > 1
        ]
        if not over:
            return None
        return Verdict(
            Code.OVER_CAPACITY, f"more is written than consumers {some(over)} carry", is_urgent=True
        )

    def _fewer(self, group: GroupView, state: State) -> Verdict | None:
        period_ms = state.settings.scale_down_period_ms
        last = state.last_scale_down_ms
        if last is None or group.now_ms - last < period_ms or _is_too_soon(group, state):
            return None
        if not group.is_fresh or group.is_behind or len(group.workers) < 2:
            return None
        carried = max(group.capacity_by_consumer.values()) * state.settings.target_utilisation
        least = math.ceil(sum(group.load_by_consumer.values()) / carried)
        if least >= len(group.workers):
            return None
        words = f"{max(least, 1)} consumers may do instead of {len(group.workers)}"
        return Verdict(Code.FEWER_WOULD_DO, words, is_urgent=False)


def _is_too_soon(group: GroupView, state: State) -> bool:
    last = state.last_plan_ms
    return group.now_ms < state.fruitless_until_ms or (
        last is not None and group.now_ms - last < state.settings.plan_interval_ms
    )
