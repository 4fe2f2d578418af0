"""A run, moment by moment, for the file that is kept of it.

The number of frames is bounded: when there are too many, every second one is dropped and the step
doubles. In a large group a frame has the consumers without their partitions.
"""

from dataclasses import dataclass, field

from penstock.page.core.answers import Answers, HistoryQuery, TimelineQuery
from penstock.page.core.listing import PartitionQuery
from penstock.page.core.tables import TablesRead
from penstock.page.core.view import Json, split_name
from penstock.page.core.watch import Watch

FRAMES_MAX = 300
# With more partitions than this, the stories of the partitions are left out too.
PARTITIONS_MAX = 500
POINTS = 600
_HISTORY_MAX = 5_000


@dataclass(slots=True)
class Frames:
    frames_max: int = FRAMES_MAX
    kept: list[Json] = field(default_factory=list)
    _every: int = 1
    _seen: int = 0

    def add(self, watch: Watch, group: str) -> None:
        """The group as it is now."""
        if watch.view is None:
            return
        self._seen += 1
        if (self._seen - 1) % self._every:
            return
        ask = Answers(watch, watch.view, group)
        is_small = len(watch.view.partitions) <= PARTITIONS_MAX
        self.kept.append(
            {
                "at_unix_ms": watch.view.at_unix_ms,
                "answers": {
                    "/v1/status": ask.status(),
                    "/v1/consumers?with=partitions": ask.consumers(with_partitions=is_small),
                },
            }
        )
        if len(self.kept) > self.frames_max:
            self.kept = self.kept[::2]
            self._every *= 2


@dataclass(frozen=True, slots=True)
class RunStory:
    """What is told about a run beside its figures."""

    title: str
    incidents: tuple[Json, ...] = ()
    results: dict[str, str] = field(default_factory=dict)
    # No group ran: times are counted from the begin, and what no simulation knows is left out.
    is_simulated: bool = False


def whole_run(
    watch: Watch,
    group: str,
    frames: Frames,
    story: RunStory,
    tables: TablesRead | None,
    points: int = POINTS,
) -> Json:
    """Everything that the page would answer, as the file has it.

    `points` is how many points its time line has: fewer than there were moments, or it has gaps.
    """
    answers: dict[str, Json | None] = {}
    if watch.view is not None:
        view = watch.view
        ask = Answers(watch, view, group)
        begin_ms = watch.timeline.begin_unix_ms
        answers = {
            "/v1/timeline": ask.timeline(TimelineQuery(from_unix_ms=begin_ms, points=points)),
            "/v1/history": ask.history(HistoryQuery(limit=_HISTORY_MAX)),
            "/v1/partitions": ask.partitions(PartitionQuery(limit=len(view.partitions))),
            "/v1/topics": ask.topics(),
            "/v1/plan": ask.plan(with_partitions=True),
            "/v1/tables": None if tables is None else tables.answer(),
            **{f"/v1/consumers/{one}": ask.consumer(one) for one in watch.stories.consumers()},
        }
        if len(view.partitions) <= PARTITIONS_MAX:
            for name in view.partitions:
                topic, number = split_name(name)
                answers[f"/v1/partitions/{topic}/{number}"] = ask.partition(topic, number)
    return {
        "format": "penstock-run",
        "version": 1,
        "title": story.title,
        "is_simulated": story.is_simulated,
        "made_unix_ms": None if watch.view is None else watch.view.at_unix_ms,
        "answers": {path: answer for path, answer in answers.items() if answer is not None},
        "frames": frames.kept,
        "incidents": list(story.incidents),
        "results": story.results,
    }
