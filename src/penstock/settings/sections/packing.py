"""Which consumer reads what, and when that is thought over."""

from pydantic import field_validator

from penstock.packing import PackingAlgorithm, algorithm_named
from penstock.packing.chain import KNOB_DEFAULT
from penstock.packing.trigger import TriggerPolicy
from penstock.settings.sections.base import Section, option
from penstock.settings.units import Duration, Speed


class PackingSettings(Section):
    """How partitions are packed onto consumers, and when that is thought over."""

    algorithm: str = option(
        "CHAIN", "The packing algorithm; docs/sizing.md says when to use which."
    )
    knob: float = option(
        KNOB_DEFAULT, "CHAIN's balance: 0 is fewest consumers, 1 is fewest moves.", ge=0, le=1
    )
    capacity: Speed = option(
        2e6, "What one consumer can carry: above it, it raises the alarm.", gt=0
    )
    hysteresis: float = option(
        TriggerPolicy.HYSTERESIS,
        "The share of the capacity left free when partitions are packed.",
        ge=0,
        lt=1,
    )
    scale_down_period: Duration = option(
        TriggerPolicy.SCALE_DOWN_PERIOD_S, "How often to look whether fewer consumers would do."
    )
    consumers_saved_min: int = option(
        1, "The fewest consumers a repacking must save when nothing forces it.", ge=1
    )
    over_capacity_for: Duration = option(
        0.0, "How long a consumer must be over its capacity before it raises the alarm."
    )
    look_ahead: Duration = option(
        60.0, "How far to follow the speeds' trend when choosing where a partition goes; 0s is not."
    )
    partitions_per_consumer_max: int = option(
        0, "The most partitions one consumer may read; 0 is no maximum.", ge=0
    )
    consumers_max: int = option(
        0,
        "The most consumers; when it binds, the least overloaded packing is used. 0 is no maximum.",
        ge=0,
    )

    @field_validator("algorithm")
    @classmethod
    def _is_known(cls, value: str) -> str:
        return algorithm_named(value).name

    def chosen_algorithm(self) -> PackingAlgorithm:
        return algorithm_named(self.algorithm, self.knob)

    def trigger_policy(self, *, plan_interval_s: float) -> TriggerPolicy:
        return TriggerPolicy(
            capacity_bytes_per_s=self.capacity,
            hysteresis=self.hysteresis,
            scale_down_period_s=self.scale_down_period,
            consumers_saved_min=self.consumers_saved_min,
            over_capacity_s=self.over_capacity_for,
            repack_interval_s=plan_interval_s,
            partitions_per_consumer_max=self.partitions_per_consumer_max or None,
            consumers_max=self.consumers_max or None,
        )
