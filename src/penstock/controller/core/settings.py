"""Everything the controller's decisions depend on that a person may choose.

Times are in milliseconds on the monotonic clock of the process. The defaults are for consumers that
report every second and batches of a few seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.messages import ChangeSettings


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    # What a consumer carries until it has shown what it can do, in log bytes.
    capacity_bytes_per_s: float = 10_000_000.0
    # Whether the capacity that consumers report replaces the figure above.
    capacity_is_learned: bool = False
    target_utilisation: float = 0.85
    # The time in which a backlog should be gone; it adds to the load that is planned for.
    catch_up_ms: int = 120_000
    # A group that would be further behind than this with one consumer fewer is not made smaller.
    behind_tolerated_ms: int = 5_000
    partitions_per_consumer_max: int | None = None

    consumers_min: int = 0
    consumers_max: int = 100
    spare_consumers: int = 1
    # How fast the group may grow: a lying monitor cannot start a thousand consumers.
    creations_per_window_max: int = 20
    creation_window_ms: int = 60_000
    creation_backoff_ms: int = 10_000

    algorithm: str = ""
    algorithm_knob: float | None = None
    topics_include: tuple[str, ...] = ()
    topics_exclude: tuple[str, ...] = ()

    tick_busy_ms: int = 100
    tick_idle_ms: int = 500
    query_resend_ms: int = 1_000
    synchronise_ms_max: int = 8_000
    resend_ms: int = 1_000
    acknowledge_ms_max: int = 20_000
    silence_ms_max: int = 8_000
    creation_ms_max: int = 90_000
    packing_ms_max: int = 30_000
    list_period_ms: int = 30_000
    delete_resend_ms: int = 5_000

    # Two plans are at least this far apart, unless a partition has no reader.
    plan_interval_ms: int = 3_000
    scale_down_period_ms: int = 60_000
    # The fewest consumers that a plan must save when nothing forces it.
    consumers_saved_min: int = 1
    # How long a consumer must be over its capacity before that is a reason.
    over_capacity_ms: int = 0
    # How far to follow the trend of the speeds when choosing where a partition goes; 0 is not.
    look_ahead_ms: int = 0
    supersede_after_ms: int = 2_000
    # A plan that changed nothing is not asked for again before this.
    fruitless_backoff_ms: int = 15_000
    speeds_stale_after_ms: int = 10_000
    # A partition is gone when so many measurements in a row do not name it.
    vanish_after_measurements: int = 3
    # A partition that its reader had to give up is tried again after this.
    retry_failed_ms: int = 60_000
    idle_grace_ms: int = 30_000

    def __post_init__(self) -> None:
        if self.consumers_min > self.consumers_max:
            raise ValueError(
                f"consumers_min {self.consumers_min} is above consumers_max {self.consumers_max}"
            )
        if not 0 < self.target_utilisation <= 1:
            raise ValueError(
                f"target_utilisation is above 0 and at most 1, not {self.target_utilisation}"
            )

    def with_overrides(self, overrides: Mapping[str, Any]) -> "ControllerSettings":
        """With some of it replaced. ValueError when the result makes no sense."""
        return replace(self, **overrides)


def overrides_of(request: ChangeSettings) -> dict[str, Any]:
    """What a request asks to change: the fields that are not absent."""
    return {
        name: value
        for name in sorted(ChangeSettings.model_fields)
        if name not in {"request_id", "requested_by"}
        and (value := getattr(request, name)) is not None
    }
