"""What `penstock recommend` knows of what one consumer carries, and what follows from that."""

from typing import Any

import pytest

from penstock.cli.imaginary_group import ImaginaryGroup, take
from penstock.cli.known_capacities import KnownCapacities, known_capacities
from penstock.cli.recommendation import Recommendation, recommendation
from penstock.cli.watched import Watched
from penstock.controller.core.settings import ControllerSettings, controller_settings
from penstock.model import TopicPartition
from penstock.packing import DEFAULT
from penstock.settings import Settings, changed_settings

FIXED = changed_settings(Settings(), {"packing.capacity": "100kB/s"})


def imaginary(chosen: ControllerSettings, known: KnownCapacities) -> ImaginaryGroup:
    return ImaginaryGroup(chosen.policy, DEFAULT, known)


def test_a_status_says_what_one_consumer_carries() -> None:
    """What a group has measured wins over what is given; what is set wins over both."""
    status = {
        "capacity": {
            "bytes_per_s": 1e6,
            "source": "assumed",
            "topics": {
                "dear": topic_row("measured", 760e3),
                "tried": topic_row("calibrated", 3e6),
                "new": topic_row("assumed", None),
                "fixed": topic_row("set", 5e6),
            },
        }
    }
    auto = controller_settings(Settings())
    known = known_capacities(auto, status, {"dear": 9e6, "tried": 4e6, "given": 2e6})
    written = dict.fromkeys(("dear", "tried", "fixed", "given", "new"), 1.0)
    assert {topic: row["source"] for topic, row in known.rows(written)["topics"].items()} == {
        "dear": "measured",
        "tried": "calibrated",
        "fixed": "measured",
        "given": "calibrated",
        "new": "assumed",
    }
    usual = known.weighed(written)
    assert [usual.of(topic) for topic in written] == pytest.approx([760e3, 4e6, 5e6, 2e6, 2e6])
    assert known.rows(written)["source"] == "assumed"
    assert known.rows({"dear": 1.0, "new": 0.0})["source"] == "measured"
    assert known.rows({"dear": 1.0, "tried": 1.0})["source"] == "calibrated"
    fixed = known_capacities(controller_settings(FIXED), status, {"given": 2e6})
    assert (fixed.by_topic, fixed.source(written)) == ({}, "set")
    assert known_capacities(auto, {}).by_topic == {}  # of a controller of an older release


def test_a_status_of_another_release_is_used_as_far_as_it_is_understood() -> None:
    """A word that is not known here counts as the least certain, and no figure as none."""
    rows = {"new": topic_row("guessed", 3e6), "none": topic_row("measured", 0.0)}
    rows["short"] = {"bytes_per_s": 1e6, "source": "measured"}
    known = known_capacities(controller_settings(Settings()), {"capacity": {"topics": rows}})
    written = dict.fromkeys(rows, 1.0)
    assert known.rows(written)["topics"]["new"]["source"] == "assumed"
    assert known.weighed(written).of("new") == pytest.approx(3e6)
    assert known.by_topic.keys() == {"new"}


def topic_row(source: str, figure: float | None) -> dict[str, Any]:
    names = ("measured_bytes_per_s", "lowest_bytes_per_s", "highest_bytes_per_s")
    return {"bytes_per_s": figure or 1e6, "source": source, **dict.fromkeys(names, figure)}


# A topic of small records, of which one consumer carries a thirteenth of what is assumed.
DEAR = {TopicPartition("dear", n): 600e3 for n in range(6)}
CHEAP = {TopicPartition("cheap", n): 4e6 for n in range(2)}


def test_a_dear_topic_needs_more_consumers() -> None:
    """It is weighed as the controller does, and its partitions are judged by its own figure."""
    chosen = controller_settings(Settings())
    known = known_capacities(chosen, None, {"dear": 760e3, "cheap": 40e6})
    assumed, weighed = (
        watch_of(chosen, one, {**DEAR, **CHEAP, TopicPartition("dear", 9): 800e3})
        for one in (known_capacities(chosen), known)
    )
    assert assumed.consumers_highest == 2
    assert (weighed.consumers_highest, weighed.consumers_at_least) == (8, 8)
    assert (assumed.capacity_is_assumed, weighed.capacity_is_assumed) == (True, False)
    assert [one.partition for one in weighed.hot_partitions] == ["dear-9"]
    used = (6 * 600e3 + 800e3) / 760e3 + 8e6 / 40e6
    assert weighed.capacity_used == pytest.approx(used / 8)
    assert weighed.consumers_of_a_plain_group >= 8
    assert weighed.consumers_max_enough == 8 + 4 + 1
    text = weighed.text(chosen)
    assert "of dear 760 kB/s (calibrated before the start)" in text
    assert "assumed" not in text
    partly = known_capacities(chosen, None, {"dear": 760e3})
    found = watch_of(chosen, partly, {**DEAR, **CHEAP})
    assert found.capacity_is_assumed
    assert "of cheap 10 MB/s (assumed: nothing is measured yet)" in found.text(chosen)


def watch_of(
    chosen: ControllerSettings, known: KnownCapacities, sample: dict[TopicPartition, float]
) -> Recommendation:
    group, seen = imaginary(chosen, known), Watched()
    for second in range(9):
        take(seen, group, sample, 1_000 * second)
        seen.seconds = second + 1.0
    return recommendation(seen, chosen, ledger={}, known=known)


def test_what_is_told_meanwhile_is_in_real_bytes() -> None:
    """Weights are for the packer; a person reads what is written."""
    chosen = controller_settings(Settings())
    known = known_capacities(chosen, None, {"dear": 760e3, "cheap": 40e6})
    group = imaginary(chosen, known)
    group.measured({**DEAR, **CHEAP}, 0)
    text, is_change = group.measured({**DEAR, **CHEAP}, 1_000)
    assert not is_change
    assert text.startswith("11.6 MB/s in 8 partitions on ")


def test_a_partition_that_may_be_too_much_is_called_so() -> None:
    """And one that only fills a consumer is not called too much."""
    chosen = controller_settings(Settings())
    partition = TopicPartition("t", 0)
    for speed, expected in (
        (12e6, "t-0 alone may be more than one consumer carries, if one carries 10 MB/s."),
        (9e6, "t-0 alone fills one consumer."),
    ):
        text, _ = imaginary(chosen, known_capacities(chosen)).measured({partition: speed}, 0)
        assert text.splitlines()[1].strip() == expected
