"""The demo's script, and the summary of what was observed."""

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.laboratory.demo.observation import (
    ConsumptionChange,
    HandOver,
    Moment,
    demo_figures,
    hand_overs,
)
from penstock.laboratory.demo.picture import draw, write_page
from penstock.laboratory.demo.story import SHORT, WHOLE, DemoIncident, Story


@pytest.mark.parametrize("story", [WHOLE, SHORT], ids=["whole", "short"])
def test_everything_happens_within_the_time(story: Story) -> None:
    """The load rises, the disruptions happen while it runs, and it falls before the end."""
    disruption = (
        story.kill_consumer_at_s,
        story.kill_controller_after_s,
        story.add_partitions_at_s,
    )
    assert all(0 < at_s < story.phases[-1][0] for at_s in disruption)
    totals = [sum(speeds.values()) for _, speeds in story.phases]
    assert totals[0] < max(totals) > totals[-1]
    assert story.duration_s > story.phases[-1][0] + 2 * story.scale_down_period_s


def test_the_whole_demo_has_three_topics_with_24_partitions() -> None:
    """There are 24 partitions, and added ones follow the load of their topic."""
    targets = WHOLE.targets()
    assert len(targets) == 24
    assert len({one.partition.topic for one in targets}) == 3
    added = WHOLE.added_targets(since_s=66.0)
    assert [one.partition.partition for one in added] == [8, 9, 10, 11]
    assert added[0].shape.speed_bytes_per_s(0.0) == targets[0].shape.speed_bytes_per_s(66.0)
    assert added[0].shape.speed_bytes_per_s(10.0) == targets[0].shape.speed_bytes_per_s(76.0)


def test_a_hand_over_is_from_a_stop_to_the_start_elsewhere() -> None:
    """A start at the same consumer and a first start are not hand-overs."""
    changes = [
        ConsumptionChange(1000, 1, "t-0", is_start=True),
        ConsumptionChange(5000, 1, "t-0", is_start=False),
        ConsumptionChange(5400, 2, "t-0", is_start=True),
        ConsumptionChange(6000, 2, "t-1", is_start=False),
        ConsumptionChange(6100, 2, "t-1", is_start=True),
    ]
    found = hand_overs(changes)
    assert found == [HandOver("t-0", 1, 2, 0.4)]
    assert demo_figures([], found)["hand_over_p99_s"] == 0.4


def test_the_page_needs_nothing_else_and_names_every_hand_over(tmp_path: Path) -> None:
    """The page is one file with the picture and every hand-over."""
    calm = Moment(0.0, "Sentinel", 2e5, {1: 2e5}, 2, 1, 0)
    moments = [calm, replace(calm, at_s=10.0, load_by_consumer={1: 1e5, 2: 1e5})]
    draw(moments, [DemoIncident(5.0, "consumer 1 killed")], 4e5, tmp_path / "a.png")
    write_page(tmp_path / "a.png", {"lost": "0"}, [HandOver("t<0", 1, 2, 0.4)], tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "data:image/png;base64," in page
    assert "t&lt;0" in page
    assert "0.40 s" in page
    assert not any(outside in page for outside in ('src="http', "href=", "<link", "<script"))
