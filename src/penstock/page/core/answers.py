"""The answers of the API, each a function of what the page knows and of the question.

Every answer has `error` and `message`, as Burrow's have, and one named part with the data. What is
unknown is null, never 0.
"""

from dataclasses import dataclass

from penstock.model.sentences import counted
from penstock.page.core.decisions_kept import (
    KeptDecision,
    counts_by_code,
    naming_consumer,
    naming_partition,
)
from penstock.page.core.listing import PartitionQuery, listed
from penstock.page.core.timeline import POINTS_DEFAULT
from penstock.page.core.view import Json, View
from penstock.page.core.watch import Watch

HISTORY_DEFAULT = 100
HISTORY_MAX = 1_000
MARKS_MAX = 500
STORY_DECISIONS_MAX = 100
CONSUMERS_MAX = 5_000
TIMELINE_DEFAULT_MS = 900_000


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    codes: frozenset[str] = frozenset()
    since_unix_ms: int = 0
    limit: int = HISTORY_DEFAULT


@dataclass(frozen=True, slots=True)
class TimelineQuery:
    from_unix_ms: int | None = None
    to_unix_ms: int | None = None
    points: int = POINTS_DEFAULT
    topic: str | None = None


def failure(code: str, message: str) -> Json:
    return {"error": True, "message": message, "code": code}


def _answer(message: str, view: View, group: str, **parts: object) -> Json:
    snapshot = view.snapshot
    return {
        "error": False,
        "message": message,
        "snapshot": {
            "group": group,
            "at_unix_ms": view.at_unix_ms,
            "age_s": round(snapshot["age_s"], 3),
            "is_stale": snapshot["is_stale"],
            "silence": snapshot.get("silence"),
            "source": snapshot.get("source"),
        },
        **parts,
    }


@dataclass(frozen=True, slots=True)
class Answers:
    """What can be asked of a watch that has a snapshot; `group` is the group's name."""

    watch: Watch
    view: View
    group: str

    def status(self) -> Json:
        return self._of("status", status=self.watch.summary())

    def topics(self) -> Json:
        return self._of("topics", topics=self.view.topics())

    def consumers(self, *, with_partitions: bool) -> Json:
        numbers = self.view.consumer_ids()[:CONSUMERS_MAX]
        rows = [self.view.consumer(one, with_partitions=with_partitions) for one in numbers]
        without = list(self.view.without_consumer()) if with_partitions else []
        return self._of(counted(len(rows), "consumer"), consumers=rows, without_consumer=without)

    def consumer(self, number: int) -> Json | None:
        """None when there has never been such a consumer."""
        story = self.watch.stories.of_consumer(number)
        row = self.view.consumer(number, with_partitions=True)
        if row is None and story is None:
            return None
        return self._of(
            f"consumer {number}",
            consumer=row,
            story=story,
            history=self._naming(naming_consumer(number)),
        )

    def partitions(self, query: PartitionQuery) -> Json:
        found = listed(self.view, query)
        return self._of(counted(found["total"], "partition"), **found)

    def partition(self, topic: str, number: int) -> Json | None:
        name = f"{topic}-{number}"
        if name not in self.view.partitions:
            return None
        return self._of(
            f"partition {number} of {topic}",
            partition=self.view.partition(name),
            story=self.watch.stories.of_partition(name),
            history=self._naming(naming_partition(topic, number)),
        )

    def plan(self, *, with_partitions: bool) -> Json | None:
        """None when there is no plan: no speeds are known yet."""
        found = self.watch.plan
        if found is None:
            return None
        data = found.data()
        current, then = found.problem.current, found.packing.assignment
        rows = []
        for one in sorted({*current, *then}):
            sides = {"now": sorted(current.get(one, ())), "then": sorted(then.get(one, ()))}
            row: Json = {
                "consumer": int(one),
                "capacity_bytes_per_s": found.capacity_of(one, sides["then"] or sides["now"]),
            }
            for side, held in sides.items():
                row[side] = {
                    "partitions": len(held),
                    "load_bytes_per_s": sum(found.load_of(p) for p in held),
                }
                if with_partitions:
                    row[side]["segments"] = [
                        {
                            "topic": p.topic,
                            "partition": p.partition,
                            "load_bytes_per_s": found.load_of(p),
                        }
                        for p in held
                    ]
            rows.append(row)
        moved = sum(one["load_bytes_per_s"] for one in data["moves"])
        made = {"made_unix_ms": self.watch.plan_at_unix_ms, "moved_bytes_per_s": moved}
        return self._of(
            f"{counted(len(data['moves']), 'partition')} would move",
            plan={**made, **data, "consumers": rows},
        )

    def history(self, query: HistoryQuery) -> Json:
        found = self.watch.decisions.found(codes=query.codes, since_unix_ms=query.since_unix_ms)
        return self._of(
            counted(len(found), "decision"),
            total=len(found),
            codes=counts_by_code(self.watch.decisions),
            history=[one.answer() for one in found[: query.limit]],
        )

    def timeline(self, query: TimelineQuery) -> Json:
        to_ms = self.view.at_unix_ms if query.to_unix_ms is None else query.to_unix_ms
        begin_ms = self.watch.timeline.begin_unix_ms
        from_ms = query.from_unix_ms
        if from_ms is None:
            from_ms = max(to_ms - TIMELINE_DEFAULT_MS, to_ms if begin_ms is None else begin_ms)
        from_ms = min(from_ms, to_ms)
        data = self.watch.timeline.answer(from_ms, to_ms, query.points, query.topic)
        marks = [
            one
            for one in self.watch.decisions.found(since_unix_ms=from_ms)
            if one.at_unix_ms <= to_ms
        ]
        data["begin_unix_ms"] = begin_ms
        data["marks"] = [_mark(one) for one in reversed(marks[:MARKS_MAX])]
        return self._of("timeline", timeline=data)

    def _naming(self, pattern: str) -> list[Json]:
        found = self.watch.decisions.found(pattern=pattern)
        return [one.answer() for one in found[:STORY_DECISIONS_MAX]]

    def _of(self, message: str, **parts: object) -> Json:
        return _answer(message, self.view, self.group, **parts)


def _mark(one: KeptDecision) -> Json:
    answer = one.answer()
    return {name: answer[name] for name in ("id", "at_unix_ms", "kind", "code", "sentence")}
