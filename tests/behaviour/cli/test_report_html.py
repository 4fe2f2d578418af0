"""What a watch says about objectives, and the page that it writes."""

import re
from dataclasses import asdict
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest

from penstock.cli.imaginary_group import ImaginaryGroup, take
from penstock.cli.objective_needs import objective_needs
from penstock.cli.plan import priced_of_settings
from penstock.cli.recommendation import (
    POINTS_DRAWN,
    Recommendation,
    Watched,
    drawn,
    plain_group,
    recommendation,
)
from penstock.cli.report_html import report_html
from penstock.cli.svg_charts import Line, axis_marks, bar_chart, line_chart
from penstock.controller.core.objective_cost import UTILISATION
from penstock.controller.core.settings import controller_settings
from penstock.model import TopicPartition
from penstock.packing import algorithm_named
from penstock.settings import Settings, changed_settings

SETTINGS = changed_settings(
    Settings(), {"packing.capacity": "100kB/s", "packing.over_capacity_for": "0s"}
)
AT = datetime(2026, 11, 17, 8, 30, tzinfo=UTC)


def watched(seconds: int, settings: Settings = SETTINGS, *, hot: bool = False) -> Watched:
    """Six partitions of 30 kB/s that double for a while; one may be faster than a consumer."""
    chosen = controller_settings(settings)
    group = ImaginaryGroup(chosen.policy, algorithm_named(chosen.algorithm))
    seen = Watched()
    for second in range(seconds):
        speed = 60e3 if seconds / 2 < second < seconds * 0.8 else 30e3
        sample = {TopicPartition("orders", n): speed for n in range(6)}
        if hot:
            sample[TopicPartition("hot", 0)] = 150e3
        take(seen, group, sample, 1_000 * second)
        seen.seconds = second + 1.0
    return seen


def found(seen: Watched, settings: Settings = SETTINGS) -> Recommendation:
    return recommendation(
        seen,
        controller_settings(settings),
        capacity_is_default=False,
        ledger={},
        needs=objective_needs(seen, settings),
    )


def test_an_objective_says_what_it_needs() -> None:
    """Half of it is never cheaper, twice of it never dearer; a short watch knows no rises."""
    seen = watched(120)
    own, tighter, looser = objective_needs(seen, SETTINGS)
    assert (own.freshness_s, tighter.freshness_s, looser.freshness_s) == (10, 5, 20)
    assert tighter.consumers_mean >= own.consumers_mean >= looser.consumers_mean
    assert own.rise is None
    assert len(own.consumers_over_time) == 120
    text = found(seen).text(controller_settings(SETTINGS))
    assert "To be fresh within 10 s (objective.freshness): " in text
    assert "Within 5 s: " in text


def test_a_long_watch_knows_how_far_loads_rise() -> None:
    """And what is set does not change with the objective."""
    seen = watched(900)
    assert all(one.rise is not None for one in objective_needs(seen, SETTINGS))
    held = changed_settings(SETTINGS, {UTILISATION: 0.7})
    filled = {one.target_utilisation for one in objective_needs(seen, held)}
    assert filled == {0.7}
    assert priced_of_settings(held).are_set == {UTILISATION}


def test_no_objective_is_tighter_than_a_second() -> None:
    """The settings allow no less."""
    tight = changed_settings(SETTINGS, {"objective.freshness": "1s"})
    assert [one.freshness_s for one in objective_needs(watched(10), tight)] == [1, 1, 2]


def test_a_plain_group_deals_partitions_out_by_number() -> None:
    """Two fast partitions fall to one consumer unless there are enough of them."""
    names = [TopicPartition("t", n) for n in range(4)]
    uneven = dict(zip(names, (90.0, 5.0, 90.0, 5.0), strict=True))
    assert plain_group([uneven], 100.0, 2) == 3
    assert plain_group([dict.fromkeys(names, 50.0)], 100.0, 2) == 2
    assert plain_group([{names[0]: 500.0}], 100.0, 1) == 1


def test_what_is_drawn_keeps_the_peaks() -> None:
    """At most so many points, the highest of each part."""
    values = [0.0] * 5_000
    values[1_234] = 9.0
    found_points = drawn(values)
    assert len(found_points) == POINTS_DRAWN
    assert max(found_points) == 9.0
    assert drawn([1.0, 3.0, 2.0]) == (1.0, 3.0, 2.0)


@pytest.mark.parametrize(
    ("highest", "marks"),
    [(0.0, [0.0, 1.0]), (6.0, [0, 1, 2, 3, 4, 5, 6]), (11.0, [0, 2, 4, 6, 8, 10, 12])],
)
def test_axes_have_round_numbers(highest: float, marks: list[float]) -> None:
    """From 0 to at least the highest."""
    assert axis_marks(highest) == marks


class Outline(HTMLParser):
    """Which elements a page has, and whether each is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not dict(attrs).get("style")
        self.seen.append(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not dict(attrs).get("style")
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def outline(page: str) -> Outline:
    reader = Outline()
    reader.feed(page)
    assert reader.open == []
    return reader


def test_the_page_is_whole_and_needs_nothing() -> None:
    """No script, no other file; every figure that the text has."""
    one = found(watched(120, hot=True))
    page = report_html(one, controller_settings(SETTINGS), AT)
    seen = outline(page).seen
    assert seen.count("svg") == 3
    assert "script" not in seen
    assert not re.search(r"(src|href)=", page)
    assert "prefers-color-scheme:dark" in page
    assert "style-src 'sha256-" in page.replace("&#x27;", "'")
    assert "No consumer can carry hot-0." in page
    assert "This watch was too short to see how far the load rises" in page
    assert "2026-11-17 at 08:30 UTC" in page
    assert str(one.consumers_of_a_plain_group) in page
    assert all(name in page for name in one.settings)


def test_names_in_pictures_are_escaped_and_short() -> None:
    """And what is over the limit has a colour of its own."""
    drawing = bar_chart({"<orders>-0": 3.0, "x" * 40: 1.0}, 2.0, str)
    outline(drawing)
    assert "&lt;orders&gt;-0" in drawing
    assert f"{'x' * 23}..." in drawing
    assert (drawing.count('class="hot"'), drawing.count('class="bar"')) == (1, 1)
    outline(line_chart([Line("a", "one point", (5.0,))], 60, "consumers", str))


def test_the_page_of_a_calm_load() -> None:
    """No hot partition, rises are known, and the figures are those of the JSON."""
    one = found(watched(900))
    page = report_html(one, controller_settings(SETTINGS), AT)
    outline(page)
    assert "One consumer carries each of them (100 kB/s)." in page
    assert "too short" not in page
    data = asdict(one)
    assert data["objective_needs"][0]["freshness_s"] == 10
    assert len(data["written_over_time_bytes_per_s"]) == POINTS_DRAWN
    bare = recommendation(
        watched(10), controller_settings(SETTINGS), capacity_is_default=True, ledger={}
    )
    assert "What freshness costs" not in report_html(bare, controller_settings(SETTINGS), AT)
