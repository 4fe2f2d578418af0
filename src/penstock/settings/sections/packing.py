"""Which consumer reads what, and when Penstock repacks."""

from pydantic import field_validator, model_validator

from penstock.packing import DEFAULT, PackingAlgorithm, algorithm_named
from penstock.packing.chain import KNOB_DEFAULT
from penstock.packing.daily_ranges import daily_range
from penstock.packing.problem import CAPACITY_BYTES_PER_S_MIN
from penstock.settings.sections.base import Section, option
from penstock.settings.time_zone import time_zone
from penstock.settings.units import AUTO, Duration, SpeedOrAuto

# What one consumer is taken to carry of a topic of which nothing was measured or calibrated: below
# what one with two cores carries of plain records, and above what half a core carries of compressed
# ones. A group that is too small for a moment finds out in seconds, because its batches are full;
# one that is too large in minutes.
ASSUMED_CAPACITY_BYTES_PER_S = 10e6


class PackingSettings(Section):
    """How partitions are packed onto consumers, and when Penstock repacks."""

    algorithm: str = option(
        "CHAIN", "The packing algorithm; docs/sizing.md says when to use which."
    )
    knob: float = option(
        KNOB_DEFAULT, "CHAIN's balance: 0 is fewest consumers, 1 is fewest moves.", ge=0, le=1
    )
    capacity: SpeedOrAuto = option(
        AUTO,
        "What one consumer can carry, in bytes of the broker's log; exceeding it triggers a "
        "repack. `auto` measures it, for each topic; a speed always wins over what is measured.",
    )
    target_utilisation: float = option(
        0.85,
        "The share of its capacity to which a consumer is filled when partitions are packed. "
        "Follows `objective` unless set.",
        ge=0.01,
        le=1,
    )
    scale_down_period: Duration = option(
        300.0,
        "How often to look whether fewer consumers would do, and how far back the highest speed of "
        "each partition counts for it. Follows `objective` unless set.",
    )
    consumers_saved_min: int = option(
        1, "The fewest consumers a repack must save when nothing else asks for it.", ge=1
    )
    over_capacity_for: Duration = option(
        2.0,
        "How long a consumer must be over its capacity before that triggers a repack, and how long "
        "a speed must last, for two measurements at least, before it is planned for. Follows "
        "`objective` unless set.",
    )
    relief_min: float = option(
        0.05,
        "The least share by which a repack must lower the highest load when consumers stay over "
        "their capacity.",
        ge=0,
        lt=1,
    )
    no_gain_wait: Duration = option(
        15.0, "How long to wait before repacking again after a repack that could not help."
    )
    look_ahead: Duration = option(
        60.0,
        "How far to follow the trend of the speeds when choosing a consumer; 0s ignores the trend.",
    )
    no_scale_down: list[str] = option(
        [],
        "Times of the day in which the group does not shrink, such as `08:00-09:00` or "
        "`mon-fri 08:00-09:00`.",
    )
    freeze: list[str] = option(
        [],
        "Times of the day in which nothing is moved, created or removed, such as a release; only "
        "partitions without a reader get one.",
    )
    time_zone: str = option(
        "UTC",
        "The time zone of `no_scale_down` and `freeze`, such as `Europe/Berlin`.",
    )
    partitions_per_consumer_max: int = option(
        0, "The most partitions one consumer may read; 0 is no maximum.", ge=0
    )

    @field_validator("capacity")
    @classmethod
    def _is_a_capacity(cls, value: float | str) -> float | str:
        if not isinstance(value, str) and value < CAPACITY_BYTES_PER_S_MIN:
            raise ValueError(
                f"Input should be greater than or equal to {CAPACITY_BYTES_PER_S_MIN:g}"
            )
        return value

    @field_validator("algorithm")
    @classmethod
    def _is_known(cls, value: str) -> str:
        algorithm_named(value)
        # The knob in a name stays, even at its default: a separate knob would be without effect.
        return value.strip().upper()

    @field_validator("no_scale_down", "freeze", mode="before")
    @classmethod
    def _are_lists(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value

    @field_validator("no_scale_down", "freeze")
    @classmethod
    def _are_times_of_the_day(cls, value: list[str]) -> list[str]:
        return [daily_range(text).text for text in value]

    @field_validator("time_zone")
    @classmethod
    def _is_a_time_zone(cls, value: str) -> str:
        time_zone(value)
        return value

    @model_validator(mode="after")
    def _knob_has_an_effect(self) -> "PackingSettings":
        if self.knob != KNOB_DEFAULT and not self.uses_knob():
            raise ValueError(
                f"knob {self.knob:g} has no effect with algorithm {self.algorithm}; "
                f"set algorithm {DEFAULT.name}, or knob {KNOB_DEFAULT:g}"
            )
        return self

    @property
    def is_capacity_measured(self) -> bool:
        return self.capacity == AUTO

    @property
    def first_capacity_bytes_per_s(self) -> float:
        """What is set, else what is assumed until something is known."""
        return ASSUMED_CAPACITY_BYTES_PER_S if self.capacity == AUTO else float(self.capacity)

    def uses_knob(self) -> bool:
        """Whether `knob` has an effect: the algorithm has one, and its name does not set it."""
        return self.algorithm == DEFAULT.name

    def chosen_algorithm(self) -> PackingAlgorithm:
        return algorithm_named(self.algorithm, self.knob)
