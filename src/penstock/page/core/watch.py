"""All that the page knows: the newest snapshot, and what the ones before it told.

`add` takes each new snapshot; every answer is a function of what was added. The plan that would be
made now is computed elsewhere, because it takes long in a large group, and given in.
"""

from array import array
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass

from penstock.controller.core.dry_run import DryRun
from penstock.controller.core.told_status import carried_over_ms
from penstock.page.core.decisions_kept import DecisionsKept, KeptDecision
from penstock.page.core.status_shape import require_shape
from penstock.page.core.stories import Stories
from penstock.page.core.summary import summary
from penstock.page.core.timeline import (
    FIELDS,
    PAIRS_MAX,
    Keyed,
    Sample,
    Timeline,
    known,
    largest,
)
from penstock.page.core.view import Json, View

_NOTHING = Keyed((), array("f"))
_UNKNOWN = float("nan")


@dataclass(frozen=True, slots=True)
class _Counted:
    """What was carried in all, and by each consumer, at one moment."""

    at_unix_ms: int
    carried_bytes: dict[int | None, float]


class Watch:
    def __init__(self) -> None:
        self.view: View | None = None
        self.plan: DryRun | None = None
        self.plan_at_unix_ms: int | None = None
        self.timeline = Timeline()
        self.stories = Stories()
        self.decisions = DecisionsKept()
        self._counted: deque[_Counted] = deque()
        self._former: Sample | None = None

    def add(self, snapshot: Json) -> list[KeptDecision]:
        """A snapshot as `read_status` gives it. Returns the decisions that are new.

        StatusNotUnderstoodError for one that is something else; then nothing of it is kept.
        """
        require_shape(snapshot)
        now_unix_ms = round(snapshot["at_unix_ms"] + snapshot["age_s"] * 1000)
        is_news = self.view is None or self.view.at_unix_ms != snapshot["at_unix_ms"]
        if not is_news and self.view is not None:
            self.view = View(snapshot, self.view.carried)
            return []
        self._count(snapshot)
        view = View(snapshot, self._carried())
        self.stories.add(view)
        self.timeline.add(self._sample(view))
        new = self.decisions.add(snapshot["history"], now_unix_ms)
        self.view = view
        return new

    @property
    def view_at_unix_ms(self) -> int | None:
        return None if self.view is None else self.view.at_unix_ms

    def grow_old(self, now_unix_ms: int, why: str) -> None:
        """There is no news: what is known gets older, and `why` says what is wrong."""
        if self.view is None:
            return
        age_s = max(0.0, (now_unix_ms - self.view.at_unix_ms) / 1000)
        aged = {**self.view.snapshot, "age_s": age_s, "is_stale": True, "silence": why}
        self.view = View(aged, self.view.carried)

    def take_plan(self, plan: DryRun | None, at_unix_ms: int) -> None:
        self.plan, self.plan_at_unix_ms = plan, at_unix_ms

    @property
    def fewest(self) -> int | None:
        return None if self.plan is None else self.plan.consumers_at_least

    @property
    def needed(self) -> int | None:
        return None if self.plan is None else len(self.plan.packing.assignment)

    def summary(self) -> Json | None:
        if self.view is None:
            return None
        return summary(self.view, fewest=self.fewest, needed=self.needed)

    def newest_sample(self) -> Json | None:
        """The newest point of the time line, for those who keep one themselves."""
        sample = self.timeline.newest
        if sample is None:
            return None
        return {
            "at_unix_ms": sample.at_unix_ms,
            **{name: known(sample.figures[place]) for place, name in enumerate(FIELDS)},
            "by_topic": _rows("topic", sample.by_topic),
            "by_consumer": _rows("consumer", sample.by_consumer),
        }

    def _count(self, snapshot: Json) -> None:
        if "carried_bytes" not in snapshot:
            return
        carried: dict[int | None, float] = {None: snapshot["carried_bytes"]}
        for one in snapshot["consumers"]:
            if one.get("carried_bytes") is not None:
                carried[one["consumer"]] = one["carried_bytes"]
        at_ms = snapshot["at_unix_ms"]
        if self._counted and (
            at_ms <= self._counted[-1].at_unix_ms
            or carried[None] < self._counted[-1].carried_bytes[None]
        ):
            self._counted.clear()  # another controller, which counts from 0
        self._counted.append(_Counted(at_ms, carried))
        while at_ms - self._counted[0].at_unix_ms > carried_over_ms(snapshot):
            self._counted.popleft()

    def _carried(self) -> dict[int | None, float]:
        """Bytes per second; a consumer that is new or began again is not in it yet."""
        if len(self._counted) < 2:
            return {}
        first, last = self._counted[0], self._counted[-1]
        seconds = (last.at_unix_ms - first.at_unix_ms) / 1000
        return {
            consumer: (total - first.carried_bytes[consumer]) / seconds
            for consumer, total in last.carried_bytes.items()
            if total >= first.carried_bytes.get(consumer, float("inf"))
        }

    def _sample(self, view: View) -> Sample:
        snapshot, former = view.snapshot, self._former
        by_topic: dict[Hashable, float] = {}
        by_both: dict[Hashable, float] = {}
        for name, one in view.partitions.items():
            topic, speed = name.rpartition("-")[0], one["write_speed_bytes_per_s"] or 0.0
            by_topic[topic] = by_topic.get(topic, 0.0) + speed
            # More pairs than are kept are not counted.
            if one["consumer"] is not None and len(by_both) <= PAIRS_MAX:
                pair = (topic, one["consumer"])
                by_both[pair] = by_both.get(pair, 0.0) + speed
        by_consumer: dict[Hashable, float] = {
            one["consumer"]: one["load_bytes_per_s"] for one in snapshot["consumers"]
        }
        running = sum(one["status"] in ("ready", "leaving") for one in snapshot["consumers"])
        figures = (
            snapshot["written_bytes_per_s"],
            view.carried.get(None),
            snapshot["behind_records"],
            snapshot["behind_bytes"],
            snapshot["behind_s"],
            running,
            self.needed,
            self.fewest,
            len(view.moves),
            # Absent in the status of an older controller.
            snapshot.get("freshness_s"),
            snapshot.get("freshness_at_least_s"),
        )
        self._former = Sample(
            view.at_unix_ms,
            array("d", (_UNKNOWN if one is None else one for one in figures)),
            largest(by_topic, None if former is None else former.by_topic),
            largest(by_consumer, None if former is None else former.by_consumer),
            _pairs(by_both, former),
        )
        return self._former


def _pairs(by_both: dict[Hashable, float], former: Sample | None) -> Keyed:
    if len(by_both) > PAIRS_MAX:
        return _NOTHING
    keys = tuple(by_both)
    if former is not None and former.by_both.keys == keys:
        keys = former.by_both.keys
    return Keyed(keys, array("f", by_both.values()))


def _rows(noun: str, keyed: Keyed) -> list[Json]:
    return [{noun: key, "bytes_per_s": round(figure, 3)} for key, figure in keyed.items()]
