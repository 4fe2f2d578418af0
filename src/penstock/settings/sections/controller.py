"""How the controller leads the group: bounds, patience, and where it remembers."""

from typing import Literal

from penstock.packing.trigger import TriggerPolicy
from penstock.settings.sections.base import Section, option
from penstock.settings.units import Duration


class ControllerSection(Section):
    """How the controller leads the group: bounds, patience, and where it remembers."""

    directory: str = option(
        "group",
        "Where the controller keeps its state and the local consumers have their folders.",
    )
    deployment: Literal["local", "kubernetes"] = option(
        "local",
        "What runs the consumers: processes of this machine, or Deployments of a Kubernetes "
        "cluster (see `kubernetes`).",
    )
    consumers_min: int = option(1, "The fewest consumers that are kept.", ge=0, le=100_000)
    consumers_max: int = option(100, "The most consumers that are made.", ge=1, le=100_000)
    spare_consumers: int = option(
        1, "Consumers kept warm without partitions, so that growth need not wait for a start.", ge=0
    )
    capacity_is_learned: bool = option(
        False, "Whether what consumers measure under a backlog replaces `packing.capacity`."
    )
    catch_up: Duration = option(
        120.0, "The time in which a backlog should be gone; it adds to the load planned for.", gt=0
    )
    behind_tolerated: Duration = option(
        5.0,
        "A group that would be further behind than this with one consumer fewer is left as it is.",
    )
    creations_per_minute_max: int = option(
        20, "How many consumers may be made in a minute: a lying monitor cannot start more.", ge=1
    )
    plan_interval: Duration = option(
        TriggerPolicy.REPACK_INTERVAL_S,
        "Two plans are at least this far apart, unless a partition has no reader.",
    )
    silence: Duration = option(
        8.0, "A consumer that says nothing for so long is fenced and replaced.", gt=0
    )
    acknowledge: Duration = option(
        20.0,
        "How long a stop or start may stay unacknowledged before its consumer is fenced.",
        gt=0,
    )
    synchronise: Duration = option(
        8.0, "How long a restarted controller waits for every consumer's answer.", gt=0
    )
    speeds_stale: Duration = option(
        10.0, "Older measurements than this are no reason to act.", gt=0
    )
    consumer_grace: Duration = option(
        40.0, "How long a consumer that is removed may take to end in order.", gt=0
    )
