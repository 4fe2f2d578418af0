"""A recorded run of a made-up group, as `penstock page --export` puts it into a file."""

from typing import Any

from kit.page.made_up_group import MadeUpGroup
from kit.page.record import GROUP, as_read, made_up_tables
from penstock.controller.core.dry_run import dry_run, problem_of_question
from penstock.page.core.answers import Answers, HistoryQuery, TimelineQuery
from penstock.page.core.watch import Watch

PLAN_EVERY_S = 10


def made_up_run(seconds: int, every_s: int) -> dict[str, Any]:
    """One frame for each `every_s` seconds."""
    made_up, watch, frames = MadeUpGroup(), Watch(), []
    for second in range(seconds):
        snapshot = as_read(made_up.step())
        if second % PLAN_EVERY_S == 0:
            plan = dry_run("CHAIN", problem_of_question(snapshot["question"]))
            watch.take_plan(plan, snapshot["at_unix_ms"])
        watch.add(snapshot)
        if second % every_s == 0 and watch.view is not None:
            ask = Answers(watch, watch.view, GROUP)
            answers = {
                "/v1/status": ask.status(),
                "/v1/consumers?with=partitions": ask.consumers(with_partitions=True),
            }
            frames.append({"at_unix_ms": snapshot["at_unix_ms"], "answers": answers})
    if watch.view is None:
        raise AssertionError("it was given snapshots")
    ask = Answers(watch, watch.view, GROUP)
    return {
        "format": "penstock-run",
        "version": 1,
        "title": "A made-up group",
        "made_unix_ms": watch.view.at_unix_ms,
        "answers": {
            "/v1/timeline": ask.timeline(TimelineQuery()),
            "/v1/history": ask.history(HistoryQuery(limit=1_000)),
            "/v1/topics": ask.topics(),
            "/v1/plan": ask.plan(with_partitions=True),
            "/v1/tables": made_up_tables().answer(),
        },
        "frames": frames,
        "incidents": [],
        "results": {"records produced": "1,000,000", "lost": "0", "double": "0"},
    }
