"""Figures over time, in bounded memory."""

from array import array
from collections.abc import Hashable
from typing import Any

import pytest

from kit.page.made_up_group import MadeUpGroup
from kit.page.record import as_read
from penstock.page.core.answers import Answers, TimelineQuery
from penstock.page.core.timeline import FIELDS, PARTS_MAX, Keyed, Sample, Timeline, largest
from penstock.page.core.watch import Watch

NOTHING = Keyed((), array("f"))


def sample(at_s: int, figure: float, **by_topic: float) -> Sample:
    both = {(topic, 1): figure for topic, figure in by_topic.items()}
    return Sample(
        at_s * 1000,
        array("d", [figure, *([float("nan")] * (len(FIELDS) - 1))]),
        Keyed(tuple(by_topic), array("f", by_topic.values())),
        Keyed((1,), array("f", [figure])),
        Keyed(tuple(both), array("f", both.values())),
    )


def test_each_point_is_the_mean_of_its_step() -> None:
    """Unknown is null, and so is a step without a sample."""
    timeline = Timeline()
    for at_s, figure in ((0, 1.0), (1, 3.0), (2, 5.0), (3, 7.0), (6, 9.0)):
        timeline.add(sample(at_s, figure, orders=figure))
    found = timeline.answer(0, 7_000, 4)
    assert found["step_ms"] == 2_000
    assert found["at_unix_ms"] == [0, 2_000, 4_000, 6_000]
    assert found["written_bytes_per_s"] == [2.0, 6.0, None, 9.0]
    assert found["carried_bytes_per_s"] == [None] * 4
    assert found["by_topic"] == [{"topic": "orders", "bytes_per_s": [2.0, 6.0, None, 9.0]}]


def test_of_one_topic_alone() -> None:
    """Its consumers, with what they carry of it."""
    timeline = Timeline()
    timeline.add(sample(1, 10.0, orders=4.0, clicks=6.0))
    found = timeline.answer(1_000, 1_000, 10, topic="clicks")
    assert found["by_consumer"] == [{"consumer": 1, "bytes_per_s": [6.0]}]


def test_what_is_old_is_kept_coarser() -> None:
    """The last seconds one by one; before them the means of longer steps; then nothing."""
    timeline = Timeline([(1_000, 5), (10_000, 3)])
    for at_s in range(100):
        timeline.add(sample(at_s, float(at_s)))
    fine = timeline.answer(96_000, 99_000, 10)
    assert (fine["step_ms"], fine["written_bytes_per_s"]) == (1_000, [96.0, 97.0, 98.0, 99.0])
    coarse = timeline.answer(60_000, 99_000, 10)
    assert coarse["step_ms"] == 10_000
    assert coarse["written_bytes_per_s"] == [64.5, 74.5, 84.5, 94.5]
    assert timeline.answer(0, 99_000, 10)["written_bytes_per_s"][:6] == [None] * 6
    assert timeline.begin_unix_ms == 60_000


def test_the_same_moment_counts_once() -> None:
    """A new controller's clock may be behind that of the former one."""
    timeline = Timeline()
    for at_s in (5, 5, 4, 6):
        timeline.add(sample(at_s, float(at_s)))
    assert timeline.answer(4_000, 6_000, 10)["written_bytes_per_s"] == [None, 5.0, 6.0]
    assert timeline.newest is not None
    assert timeline.newest.at_unix_ms == 6_000


def test_an_empty_time_line() -> None:
    """Has a begin that is unknown, and no points that are known."""
    timeline = Timeline()
    assert timeline.begin_unix_ms is None
    assert timeline.answer(0, 20_000, 2)["written_bytes_per_s"] == [None, None, None]


def test_the_small_ones_are_one_sum() -> None:
    """Many topics or consumers cost no more memory than the largest of them."""
    figures: dict[Hashable, float] = {
        f"t{number}": float(number) for number in range(PARTS_MAX + 3)
    }
    kept = largest(figures)
    assert len(kept.keys) == PARTS_MAX + 1
    assert dict(kept.items())[None] == 0 + 1 + 2
    again = largest(figures, kept)
    assert again.keys is kept.keys
    timeline = Timeline()
    timeline.add(Sample(0, array("d", [0.0] * len(FIELDS)), kept, NOTHING, NOTHING))
    rows = timeline.answer(0, 0, 10)["by_topic"]
    assert rows[-1] == {"topic": None, "bytes_per_s": [pytest.approx(3.0)]}


def test_freshness_has_a_time_line() -> None:
    """And what is certain of it while it is not known; an older controller says neither."""
    group, watch = MadeUpGroup(consumers=3, partitions=8), Watch()
    told: tuple[dict[str, Any], ...] = (
        {"freshness_s": 4.0, "freshness_at_least_s": 4.0},
        {"freshness_s": None, "freshness_at_least_s": 312.0},
        {},
    )
    for figures in told:
        snapshot = as_read(group.step())
        del snapshot["freshness_s"]
        watch.add(snapshot | figures)
    view = watch.view
    assert view is not None
    line = Answers(watch, view, "g").timeline(TimelineQuery(points=10))["timeline"]
    assert line["freshness_s"] == [4.0, None, None]
    assert line["freshness_at_least_s"] == [4.0, 312.0, None]
