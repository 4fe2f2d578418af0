"""The operator's settings, in the machine's words."""

import pytest

from penstock.controller.core.policy import trigger_policy
from penstock.controller.process.loop import controller_settings
from penstock.model import Assignment, TopicPartition
from penstock.packing import PackingProblem
from penstock.settings import load_settings


@pytest.mark.parametrize(
    ("flags", "consumers_max", "partitions_max"),
    [
        ({}, 100, None),
        ({"controller.consumers_max": "7"}, 7, None),
        ({"packing.consumers_max": "5", "packing.partitions_per_consumer_max": "9"}, 5, 9),
    ],
)
def test_no_maximum_means_none(
    flags: dict[str, str], consumers_max: int, partitions_max: int | None
) -> None:
    """What the settings call 0 is no bound to the packer, and the packer accepts all of it."""
    settings = controller_settings(load_settings(flags=flags, environment={}).settings)
    assert settings.consumers_max == consumers_max
    assert settings.partitions_per_consumer_max == partitions_max
    PackingProblem(
        {TopicPartition("orders", 0): 1.0},
        Assignment(),
        settings.capacity_bytes_per_s,
        partitions_per_consumer_max=settings.partitions_per_consumer_max,
        consumers_max=settings.consumers_max,
    )


def test_capacity_and_hysteresis_become_a_target() -> None:
    """Packed to 85 % by default; the alarm is at the whole."""
    settings = controller_settings(
        load_settings(flags={"packing.capacity": "3MB/s"}, environment={}).settings
    )
    assert settings.capacity_bytes_per_s == 3e6
    assert settings.target_utilisation == pytest.approx(0.85)


def test_the_live_trigger_is_the_simulated_one() -> None:
    """Every option of the trigger reaches the machine, and both ask the same policy."""
    flags = {
        "packing.capacity": "3MB/s",
        "packing.hysteresis": "0.25",
        "packing.scale_down_period": "90s",
        "packing.consumers_saved_min": "2",
        "packing.over_capacity_for": "4s",
        "packing.look_ahead": "30s",
        "packing.partitions_per_consumer_max": "9",
        "packing.consumers_max": "5",
        "controller.plan_interval": "7s",
    }
    for given in ({"packing.consumers_max": "100"}, flags):
        settings = load_settings(flags=given, environment={}).settings
        simulated = settings.packing.trigger_policy(
            plan_interval_s=settings.controller.plan_interval
        )
        assert trigger_policy(controller_settings(settings)) == simulated
    assert controller_settings(settings).look_ahead_ms == 30_000
