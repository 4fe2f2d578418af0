"""A group does not flap: bursts, absurd measurements, and plans whose reason is gone."""

from typing import Any

import pytest

from kit.controller.imagined_group import MB, ImaginedGroup, partitions
from kit.controller.story import TWO_CONSUMERS, after


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chosen", "spares_deleted"), [({"controller__spare_consumers": 1}, 0), ({}, 1)]
)
def test_a_job_that_bursts_does_not_make_the_group_flap(
    chosen: dict[str, Any], spares_deleted: int
) -> None:
    """10 s of each minute at ten times the speed: it grows once, and nobody is deleted.

    But for the spare, once, where nobody has set how many to keep: such a load is calm.
    """
    logs = {f"t-{n}": (lambda s: 0.8 * MB if 15 <= s % 60 < 25 else 0.08 * MB) for n in range(16)}
    group = ImaginedGroup(logs, **chosen).run(120)
    moved, created, working = group.counts["moves"], group.counts["created"], group.working
    group.run(2_400)
    assert group.counts["deleted"] == spares_deleted
    assert group.working == working
    assert group.counts["moves"] - moved <= 16
    assert group.counts["created"] == created


def test_a_lower_load_that_lasts_makes_the_group_smaller() -> None:
    """The highest speeds of a period count, and no longer than that."""
    speed: list[float] = [0.8 * MB]
    logs = {f"t-{n}": (lambda _: speed[0]) for n in range(16)}
    group = ImaginedGroup(logs, packing__scale_down_period="60s").run(60)
    assert group.working == 8
    speed[0] = 0.08 * MB
    assert group.run(50).working == 8
    assert group.run(80).working == 1


def test_one_absurd_measurement_creates_nothing() -> None:
    """1e18 B/s for one second, in every partition."""
    group = ImaginedGroup(partitions(30, 0.1 * MB)).run(120)
    before = dict(group.counts)
    group.measured = lambda speeds: dict.fromkeys(speeds, 1e18)
    group.run(1)
    group.measured = dict
    group.run(180)
    assert group.counts == before


def test_one_absurd_measurement_of_a_slow_monitor_creates_nothing() -> None:
    """It is the newest one for ten seconds, and still only one."""
    group = ImaginedGroup(partitions(30, 0.1 * MB), controller__speeds_stale="60s").run(60)
    before = dict(group.counts)
    group.measured = lambda speeds: dict.fromkeys(speeds, 1e18)
    group.run(1)
    group.measured = lambda _: None
    group.run(10)
    group.measured = dict
    group.run(60)
    assert group.counts == before


def test_empty_measurements_stop_nothing() -> None:
    """A monitor that names no partition is blind: not three, nor thirty such measurements count."""
    group = ImaginedGroup(partitions(30, 0.1 * MB)).run(60)
    before = dict(group.counts)
    group.measured = lambda _: {}
    group.run(30)
    assert group.counts == before
    assert group.working == 2
    assert group.state.counts["empty_measurement"] == 30


def test_a_plan_whose_reason_is_gone_is_dropped() -> None:
    """An overload of four seconds, and consumers that take a minute: nobody moves for it."""
    high: list[float] = [0.1 * MB]
    logs = {f"t-{n}": (lambda _: high[0]) for n in range(30)}
    group = ImaginedGroup(
        logs,
        carries_bytes_per_s=50 * MB,
        start_ms=60_000,
        controller__spare_consumers=0,
        controller__creation_timeout="300s",
    ).run(120)
    high[0] = 0.5 * MB
    group.run(4)
    assert group.state.phase.value == "Group Management"
    high[0] = 0.1 * MB
    group.run(5)
    assert group.state.phase.value == "Sentinel"
    assert len(group.said("plan_dropped")) == 1
    group.run(120)
    assert group.counts["stops"] == 0
    assert group.deployed == 2


def test_a_plan_that_has_begun_to_move_is_carried_out() -> None:
    """Its reason may be gone: what was stopped must be started somewhere."""
    teller = after(
        *TWO_CONSUMERS,
        "3000 ms pass",
        "speeds orders-0=40 orders-1=90 orders-2=40",
        "tick +500",
        "packed 1: orders-1; 2: orders-0 orders-2",
        "speeds orders-0=40 orders-1=40 orders-2=40",
    )
    assert not any("plan_dropped" in line for line in teller.tell("tick +500"))


@pytest.mark.slow
def test_at_the_maximum_and_overloaded_nothing_moves() -> None:
    """Speeds that differ a little from second to second give no real gain."""
    logs: Any = {
        f"t-{n}": (lambda s, n=n: 0.1 * MB * (1 + 0.2 * ((s + 7 * n) % 5) / 5)) for n in range(90)
    }
    group = ImaginedGroup(
        logs,
        carries_bytes_per_s=1 * MB,
        packing__capacity="1MB/s",
        controller__consumers_max=5,
        packing__no_gain_wait="3s",
    ).run(60)
    moved = group.counts["moves"]
    group.run(600)
    assert group.counts["moves"] == moved
    assert group.working == 5


def test_a_packing_that_changes_nothing_makes_no_plan() -> None:
    """The maximum is lowered, and the packer finds no smaller group."""
    teller = after(*TWO_CONSUMERS, "request r: settings consumers_max=1", "3000 ms pass")
    teller.tell("speeds orders-0=40 orders-1=40 orders-2=40")
    teller.tell("tick +500")
    (line, *_) = teller.tell("packed 1: orders-0 orders-1; 2: orders-2")
    assert line.startswith("  nothing_to_gain: 2 consumers have partitions, the maximum is 1, but")
