"""Keeps the controller's metrics: what each step decided and took, and the newest state.

Everything that can be computed from a state is computed when somebody asks. Only what happens
between two questions is counted at each step; that costs a comparison of a few names while nothing
happens.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from penstock.controller.core.decisions import Code, Decision, told_since
from penstock.controller.core.figures import Asked, fence_reason, group_samples
from penstock.controller.core.freshness import Freshness, known_offsets
from penstock.controller.core.state import HoldingStatus, State
from penstock.metrics import Process, Sample
from penstock.metrics import of_controller as of
from penstock.model import TopicPartition
from penstock.settings import Settings
from penstock.telemetry import MetricStore

# Taking in the ends of all logs may have this share of a core.
_SHARE_OF_A_CORE = 1 / 100
# What takes less than this may come with every measurement.
_SMALL_S = 0.005
_ENDS = {
    Code.CONSUMER_REMOVED: "removed",
    Code.CONSUMER_FENCED: "fenced",
    Code.CONSUMER_ENDED: "ended",
    Code.CONSUMER_RESTARTED: "restarted",
}


@dataclass(frozen=True, slots=True)
class _Now:
    state: State
    is_degraded: bool


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class ControllerMetrics:
    """The loop calls `begun` and `stepped`; a scrape reads from another thread."""

    def __init__(
        self,
        settings: Settings,
        store: MetricStore | None,
        *,
        now_ms: Callable[[], int] = _monotonic_ms,
    ) -> None:
        self._now_ms = now_ms
        self._store = store or MetricStore(settings.lake.group, Process.CONTROLLER)
        self._objective_s = settings.telemetry.freshness_objective
        self._freshness = Freshness(round(self._objective_s * 1_000))
        self._now: _Now | None = None
        self._measured_again_s = 0.0
        # Partitions on their way to another consumer, and when their stop was asked for.
        self._moving_since_ms: dict[TopicPartition, int] = {}
        for code in Code:
            self._store.count(of.DECISIONS, code.value, by=0)
        for how in _ENDS.values():
            self._store.count(of.ENDS, how, by=0)
        for metric in (of.MOVES, of.STARTS):
            self._store.count(metric, by=0)
        self._store.ask(self._samples)

    def begun(self, state: State) -> None:
        self._now = _Now(state, is_degraded=False)

    def stepped(self, before: State, after: State, took_s: float, *, is_degraded: bool) -> None:
        """After each step: count what happened in it."""
        self._now = _Now(after, is_degraded)
        self._store.observe(of.STEP_SECONDS, took_s)
        for decision in told_since(before.history, after.history):
            self._decided(decision)
        plan, former = after.plan, before.plan
        if plan is not None and (former is None or former.number != plan.number):
            self._store.count(of.PLANS, plan.code.value)
        if before.in_flight is not after.in_flight:
            self._follow_moves(before, after)
        if before.speeds is not after.speeds:
            self._measure(after)

    def freshness(self) -> dict[str, float | None]:
        """How old the newest state of a log is that the lake has whole, for the oldest of them.

        While that is unknown, what is certain of it is known.
        """
        now_ms = self._now_ms()
        found = {
            "freshness_s": self._freshness.oldest_ms(now_ms),
            "freshness_at_least_s": self._freshness.oldest_at_least_ms(now_ms),
        }
        return {name: None if ms is None else ms / 1_000 for name, ms in found.items()}

    def _decided(self, decision: Decision) -> None:
        code = decision.code
        self._store.count(of.DECISIONS, code.value)
        if code is Code.PLAN_MADE and decision.moves:
            self._store.count(of.MOVES, by=decision.moves)
        elif code is Code.CONSUMER_CREATED:
            self._store.count(of.STARTS)
        elif code in _ENDS:
            self._store.count(of.ENDS, _ENDS[code])
        if code is Code.CONSUMER_FENCED:
            self._store.count(of.FENCES, fence_reason(decision))

    def _follow_moves(self, before: State, after: State) -> None:
        for partition in after.in_flight - before.in_flight:
            if after.holdings[partition].status is HoldingStatus.STOPPING:
                self._moving_since_ms[partition] = after.now_ms
        for partition in before.in_flight - after.in_flight:
            holding = after.holdings.get(partition)
            if partition in after.parked:
                self._moving_since_ms.pop(partition, None)
            elif holding is not None and holding.status is HoldingStatus.OWNED:
                since_ms = self._moving_since_ms.pop(partition, None)
                if since_ms is not None:
                    seconds = (after.now_ms - since_ms) / 1_000
                    self._store.observe(of.HANDOVER_SECONDS, seconds)

    def _measure(self, state: State) -> None:
        """In a large group not at every measurement: it is a pass over all partitions."""
        began_s = time.thread_time()
        if state.speeds is None or time.monotonic() < self._measured_again_s:
            return
        offsets = known_offsets(state)
        self._freshness.measured(state.speeds.measured_ms, state.speeds.logs, offsets)
        took_s = time.thread_time() - began_s
        if took_s > _SMALL_S:
            self._measured_again_s = time.monotonic() + took_s / _SHARE_OF_A_CORE

    def _samples(self) -> Iterator[Sample]:
        now = self._now
        if now is None:
            yield Sample(of.LEADING, (), 0)
            return
        asked = Asked(
            now_ms=self._now_ms(),
            is_degraded=now.is_degraded,
            objective_s=self._objective_s,
            with_partitions=self._store.tells_partitions(len(now.state.write_speeds)),
            with_lag_names=self._store.with_lag_names,
        )
        yield from group_samples(now.state, self._freshness, asked)
