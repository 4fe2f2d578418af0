"""What a watch says about objectives, and the page that it writes."""

import re
from dataclasses import asdict
from datetime import UTC, datetime
from html.parser import HTMLParser
from itertools import pairwise
from random import Random

import pytest

from penstock.cli.known_capacities import known_capacities
from penstock.cli.objective_needs import ObjectiveGroups
from penstock.cli.plain_group import plain_group
from penstock.cli.plan import priced_of_settings
from penstock.cli.recommendation import ObjectiveNeed, Recommendation, recommendation
from penstock.cli.report_html import report_html
from penstock.cli.svg_charts import Line, axis_marks, bar_chart, line_chart
from penstock.cli.watched import BUSIEST_KEPT, POINTS_DRAWN, POINTS_KEPT_MAX, Watched, drawn
from penstock.controller.core.objective_cost import UTILISATION
from penstock.controller.core.settings import controller_settings
from penstock.model import TopicPartition
from penstock.settings import Settings, changed_settings

SETTINGS = changed_settings(
    Settings(), {"packing.capacity": "100kB/s", "packing.over_capacity_for": "0s"}
)
PARTITIONS = [TopicPartition("t", n) for n in range(6)]
AT = datetime(2026, 11, 17, 8, 30, tzinfo=UTC)


def watched(
    seconds: int, settings: Settings = SETTINGS, *, hot: bool = False
) -> tuple[Watched, ObjectiveGroups]:
    """Six partitions of 30 kB/s that double for a while; one may be faster than a consumer."""
    groups, seen = ObjectiveGroups(settings), Watched()
    for second in range(seconds):
        speed = 60e3 if seconds / 2 < second < seconds * 0.8 else 30e3
        sample = {TopicPartition("orders", n): speed for n in range(6)}
        if hot:
            sample[TopicPartition("hot", 0)] = 150e3
        groups.take(seen, sample, 1_000 * second)
        seen.seconds = second + 1.0
    return seen, groups


def found(led: tuple[Watched, ObjectiveGroups]) -> Recommendation:
    seen, groups = led
    return recommendation(seen, groups.chosen, ledger={}, needs=groups.needs())


def needs_of(led: tuple[Watched, ObjectiveGroups]) -> tuple[ObjectiveNeed, ...]:
    return led[1].needs()


def test_an_objective_says_what_it_needs() -> None:
    """Half of it is never cheaper, twice of it never dearer; a short watch knows no rises."""
    seen = watched(120)
    own, tighter, looser = needs_of(seen)
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
    assert all(one.rise is not None for one in needs_of(seen))
    held = changed_settings(SETTINGS, {UTILISATION: 0.7})
    filled = {one.target_utilisation for one in needs_of(watched(900, held))}
    assert filled == {0.7}
    assert priced_of_settings(held).are_set == {UTILISATION}


def test_no_objective_is_tighter_than_a_second() -> None:
    """The settings allow no less, so only a looser one is told; no objective is told twice."""
    tight = changed_settings(SETTINGS, {"objective.freshness": "1s"})
    seen = watched(10, tight)
    assert [one.freshness_s for one in needs_of(seen)] == [1, 2]
    text = found(seen).text(controller_settings(tight))
    assert text.count("ithin 1 s") == 1
    assert "Within 2 s: " in text


def test_a_plain_group_deals_partitions_out_by_number() -> None:
    """Two fast partitions fall to one consumer unless there are enough of them."""
    names = [TopicPartition("t", n) for n in range(4)]
    uneven = dict(zip(names, (90.0, 5.0, 90.0, 5.0), strict=True))
    assert plain_group([uneven], 100.0, 2) == 3
    assert plain_group([dict.fromkeys(names, 50.0)], 100.0, 2) == 2
    assert plain_group([{names[0]: 500.0}], 100.0, 1) == 1


def test_more_consumers_of_a_plain_group_may_be_worse() -> None:
    """Two consumers carry what three do not, so every number is tried, from the fewest."""
    speeds = dict(zip(PARTITIONS, (0.6, 0.1, 0.1, 0.6, 0.1, 0.1), strict=True))
    assert plain_group([speeds], 1.0, 1) == 2
    assert plain_group([speeds], 1.0, 3) == 4
    # A sum of tenths is a little off.
    assert plain_group([dict.fromkeys(PARTITIONS, 0.1), speeds], 0.6, 1) == 6
    assert plain_group([dict.fromkeys(PARTITIONS[:3], 0.1)], 0.3, 1) == 1
    assert plain_group([{}], 1.0, 0) == 1


@pytest.mark.parametrize("seed", range(20))
def test_a_plain_group_is_the_first_number_that_holds(seed: int) -> None:
    """As counted one by one."""
    chance = Random(seed)
    samples = [{p: chance.random() for p in PARTITIONS} for _ in range(3)]
    rows = [[sample[p] for p in PARTITIONS] for sample in samples]
    expected = next(
        number
        for number in range(1, len(PARTITIONS) + 1)
        if all(sum(row[n::number]) <= 1.0 for row in rows for n in range(number))
    )
    assert plain_group(samples, 1.0, 1) == expected


def test_a_calm_load_is_not_charged_for_a_spare() -> None:
    """The group learns that nothing rises, and ends it; one whose load jumps keeps it."""
    for speeds_kb_per_s, spares in (((30.0,), 0), ((30.0, 30.0, 90.0), 1)):
        groups, seen = ObjectiveGroups(SETTINGS), Watched()
        for second in range(0, 3_600, 5):
            speed = 1e3 * speeds_kb_per_s[second // 700 % len(speeds_kb_per_s)]
            groups.take(seen, {TopicPartition("t", n): speed for n in range(6)}, 1_000 * second)
        seen.seconds = 3_600
        assert groups.needs()[0].spare_consumers == spares
        one = recommendation(seen, groups.chosen, ledger={}, needs=groups.needs())
        assert one.consumers_max_enough is not None
        assert one.consumers_max_reason.endswith(f"and {spares} for spares.")


def test_an_hour_is_remembered_in_as_little_as_a_few_minutes() -> None:
    """Nothing is kept for each measurement: only the busiest, and what is drawn."""
    names = [TopicPartition("t", n) for n in range(200)]
    seen, known = Watched(), known_capacities(controller_settings(SETTINGS))
    for second in range(3_600):
        seen.note(dict.fromkeys(names, 1e3 + (second * 7_919) % 3_600), known)
        seen.consumers.add(second)
    assert len(seen.busiest) == BUSIEST_KEPT
    highest = [one[names[0]] for one in seen.busiest]
    assert highest == [1e3 + 3_599 - place for place in range(BUSIEST_KEPT)]
    for course in (seen.written, seen.consumers, seen.load):
        assert len(course.parts) <= POINTS_KEPT_MAX
    assert (len(seen.highest), seen.measurements) == (200, 3_600)
    assert seen.consumers.mean == pytest.approx(1_799.5)
    points = seen.consumers.drawn()
    assert len(points) == POINTS_DRAWN
    assert points[-1] == 3_599
    assert points == tuple(sorted(points))
    assert max(b - a for a, b in pairwise(points)) <= 18


def test_an_assumption_is_stated_at_the_top_of_the_page() -> None:
    """No figure that rests on the assumption is told as if it were known."""
    auto = changed_settings(Settings(), {"packing.over_capacity_for": "0s"})
    chosen = controller_settings(auto)
    for speed, sentence in (
        (12e6, "big-0 may be more than one consumer carries, if one carries 10 MB/s"),
        (2e6, "If one consumer carries what is assumed (10 MB/s), it carries each of them."),
    ):
        groups, seen = ObjectiveGroups(auto), Watched()
        groups.take(seen, {TopicPartition("big", 0): speed}, 0)
        one = recommendation(seen, chosen, ledger={}, needs=groups.needs())
        page = report_html(one, chosen, AT)
        outline(page)
        facts = page[page.index('class="facts"') : page.index("<h2>")]
        assert "10 MB/s</b>is assumed to be what one consumer carries" in facts
        assert sentence in page
        assert "No consumer can carry" not in page
        assert "One consumer carries each" not in page
        table = page[page.index("Settings to start with") : page.index("All of it in words")]
        assert "controller.consumers_max" not in table
        assert "controller.consumers_max" not in asdict(one)["settings"]
        assert asdict(one)["consumers_max_enough"] is None


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
    drawing = bar_chart(
        {"<orders>-0": 3.0, "x" * 40: 1.0, "dear": 1.0},
        {"<orders>-0": 2.0, "x" * 40: 2.0, "dear": 0.5},
        "fast",
        str,
    )
    outline(drawing)
    assert "&lt;orders&gt;-0" in drawing
    assert f"{'x' * 23}..." in drawing
    assert (drawing.count('class="hot"'), drawing.count('class="bar"')) == (2, 1)
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
    bare = recommendation(watched(10)[0], controller_settings(SETTINGS), ledger={})
    assert "What freshness costs" not in report_html(bare, controller_settings(SETTINGS), AT)
