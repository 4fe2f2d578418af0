"""A group learns its consumers' capacity from a backlog and works the backlog off.

It is a separate group: its consumers are slow, because their batches are small and use Spark's
connector, and carry far less than what is assumed before something is measured.
"""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from kit.group.live_group import LiveGroup, made_group, working
from kit.processes import processes_naming
from penstock.jars import USUAL_SETS, fetch
from penstock.settings.sections.packing import ASSUMED_CAPACITY_BYTES_PER_S

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.live,
    pytest.mark.timeout(300),
]
CATCH_UP_S = 45.0
# The time from a backlog to new consumers with their partitions.
GROWTH_S = 25.0


@pytest.fixture(scope="module")
def learning(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveGroup]:
    for jar_set in USUAL_SETS:
        fetch(jar_set)
    folder = tmp_path_factory.mktemp("learning")
    group = made_group(
        folder,
        packing__capacity="auto",
        consumer__batch_bytes="256KiB",
        spark__pass_through="false",  # noqa: S106 - a setting, no password
        controller__catch_up=f"{CATCH_UP_S:.0f}s",
    )
    with group:
        yield LiveGroup(group)
    assert processes_naming(str(folder)) == []


def carried(status: dict[str, Any]) -> float:
    """The total capacity of the working consumers."""
    at_work = [one for one in status["consumers"] if one["partitions"]]
    return float(sum(one["capacity_bytes_per_s"] for one in at_work))


def test_a_backlog_gives_the_capacity_and_is_worked_off(learning: LiveGroup) -> None:
    """The group grows by the learned capacity, is not scaled down while behind, and catches up."""
    learning.administration.create_topic("outage", partitions=8)
    before = learning.converged({"outage": 8})
    assert working(before) == 1
    learning.load("outage=250kB/s", seconds=8)
    begun_s = time.monotonic()
    learned = learning.until(
        lambda status: any(one["measured_capacity_bytes_per_s"] for one in status["consumers"]),
        "a consumer has learned what it carries",
    )
    assert learned["capacity"]["topics"]["outage"]["source"] == "measured"
    assert learned["capacity_bytes_per_s"] < ASSUMED_CAPACITY_BYTES_PER_S / 2
    grown = learning.until(
        lambda status: working(status) >= 2 and status["phase"] == "Sentinel",
        "more consumers at work",
        within_s=GROWTH_S,
    )
    assert any("over_capacity" in one["explanation"] for one in grown["history"])
    status = grown
    while status["behind_bytes"] > 0:
        assert time.monotonic() - begun_s < CATCH_UP_S + GROWTH_S, status
        newer = learning.status() or status
        # The load is over, so the backlog was at least this large when the controller decided.
        if newer["behind_bytes"] > 5 * carried(status):
            assert working(newer) >= working(status), "made smaller while behind"
        status = newer
        time.sleep(0.3)
    learning.until(lambda status: working(status) <= 1, "one consumer at work again")
    learning.exact("outage", 8)
