"""A status that somebody else wrote is refused as a whole, before anything of it is kept."""

import copy
from typing import Any

import pytest

from kit.controller.imagined_group import MB, ImaginedGroup
from kit.page.made_up_group import MOVE_AT_S, MadeUpGroup
from kit.page.record import as_read
from penstock.controller.core.snapshot import snapshot
from penstock.page.core.answers import Answers
from penstock.page.core.status_shape import (
    FIGURE_MAX,
    StatusNotUnderstoodError,
    require_shape,
)
from penstock.page.core.watch import Watch
from penstock.page.process.routes import json_bytes


@pytest.fixture(scope="module")
def told() -> list[dict[str, Any]]:
    """Two statuses in a row, of a group in which partitions move."""
    group = MadeUpGroup(consumers=3, partitions=8, topics=2)
    return [as_read(group.step()) for _ in range(MOVE_AT_S + 3)][-2:]


def changed(status: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """`...` removes the field."""
    status = copy.deepcopy(status)
    *above, last = path.split("/")
    part: Any = status
    for step in above:
        part = part[int(step) if isinstance(part, list) else step]
    if value is ...:
        del part[last]
    else:
        part[int(last) if isinstance(part, list) else last] = value
    return status


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        ("history", ..., "status.history"),
        ("history/0", "x", "status.history"),
        ("history/0/times", "x", "history[0].times"),
        ("history/0/explanation", None, "history[0].explanation"),
        ("at_unix_ms", 1.5, "status.at_unix_ms"),
        ("at_unix_ms", FIGURE_MAX + 1, "status.at_unix_ms"),
        ("age_s", True, "status.age_s"),
        ("behind_records", 10.0**300, "status.behind_records"),
        ("partitions", [], "status.partitions"),
        ("partitions/", {}, "status.partitions"),
        ("partitions/orders-0", "x", "status.partitions"),
        ("partitions/orders-x", {}, "status.partitions"),
        ("partitions/orders-99999999999", {}, "status.partitions"),
        ("partitions/orders-0/status", ..., "orders-0.status"),
        ("partitions/orders-0/next_offset", "7", "orders-0.next_offset"),
        ("consumers/0/consumer", "1", "consumers[0].consumer"),
        ("consumers/0/partitions", [3], "consumers[0].partitions"),
        ("consumers/0/capacity_bytes_per_s", 1e-300, "consumers[0].capacity_bytes_per_s"),
        ("moves", [{"partition": {}}], "moves[0].partition"),
        ("settings/algorithm", 1, "settings.algorithm"),
        ("question/current", {"x": []}, "question.current"),
        ("question/weights", {"orders": 0}, "question.weights"),
        ("question/objective", [], "question.objective"),
        ("question/objective/freshness_s", 0, "question.objective.freshness_s"),
        ("reason", {"code": "x"}, "reason.explanation"),
        ("held_by_silence", {"consumers": 3}, "held_by_silence.consumers"),
        ("backlog", {"trend": "small", "left_s": "x"}, "backlog.left_s"),
        ("capacity/topics", {"orders": "x"}, "capacity.topics[0]"),
    ],
)
def test_what_cannot_be_shown_is_refused_and_named(
    told: list[dict[str, Any]], path: str, value: object, named: str
) -> None:
    """By the first field that is missing or something else; what was known before stays."""
    before, after = told
    watch = Watch()
    watch.add(before)
    assert watch.view is not None
    shown = Answers(watch, watch.view, "g").status()
    with pytest.raises(StatusNotUnderstoodError) as refused:
        watch.add(changed(after, path, value))
    assert named in refused.value.message
    assert "release" in refused.value.remedy
    assert Answers(watch, watch.view, "g").status() == shown
    watch.add(after)
    assert watch.view.at_unix_ms == after["at_unix_ms"]


def test_what_older_controllers_leave_out_may_be_missing(told: list[dict[str, Any]]) -> None:
    """Their statuses are shown, too."""
    status = told[-1]
    for name in ("capacity", "freshness_s", "backlog", "reason", "question/objective"):
        if name.partition("/")[0] in status:
            status = changed(status, name, ...)
    require_shape(status)


def test_a_backlog_that_goes_somewhere_has_a_size(told: list[dict[str, Any]]) -> None:
    """A simulation knows neither; a trend alone cannot be said in words."""
    unknown = changed(told[-1], "behind_records", None)
    require_shape(unknown)
    with pytest.raises(StatusNotUnderstoodError, match=r"status\.behind_records"):
        require_shape({**unknown, "backlog": {"trend": "growing", "left_s": None}})


def test_half_of_a_surrogate_pair_is_shown_as_a_question_mark(
    told: list[dict[str, Any]],
) -> None:
    """JSON has such text, and UTF-8 has not: the answer is made all the same."""
    watch = Watch()
    watch.add(changed(told[-1], "phase", "\ud800"))
    assert watch.view is not None
    assert b'"phase":"?"' in json_bytes(Answers(watch, watch.view, "g").status())


def test_a_source_of_another_release_is_shown_as_it_is(told: list[dict[str, Any]]) -> None:
    """A word that this release does not know hides no figure."""
    watch = Watch()
    watch.add(changed(told[-1], "capacity/source", "guessed"))
    summary = watch.summary()
    assert summary is not None
    assert "(guessed" in summary["capacity"]["sentence"]


@pytest.mark.parametrize("slow_bytes_per_s", [1.0, 10.0, 1_000.0])
def test_topics_that_cost_very_differently_are_shown(slow_bytes_per_s: float) -> None:
    """A transformation that asks a slow service for each record, beside a topic without one."""
    logs = {f"{topic}-{n}": (lambda _: 1_000.0) for topic in ("slow", "fast") for n in range(3)}
    group = ImaginedGroup(
        logs, packing__capacity="auto", calibrated={"slow": slow_bytes_per_s, "fast": 100 * MB}
    )
    watch = Watch()
    for _ in range(20):
        group.run(0.5)
        watch.add(as_read(snapshot(group.state, group.now_ms, is_degraded=False)))
    assert watch.view is not None
    assert watch.view.at_unix_ms == group.now_ms
    assert json_bytes(Answers(watch, watch.view, "g").status())
