"""The frequency study: how often to repack, and how much capacity to keep free.

The owner's notes ask how often the algorithm should run. Every policy is replayed through the
controller's trigger on five kinds of load, and scored by consumer-hours, moves per hour and seconds
over capacity.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import fsum
from time import process_time

from penstock.controller.core.settings import controller_settings
from penstock.laboratory.packing_replay.generate import Kind, Recipe, generate
from penstock.laboratory.packing_replay.replay import ThroughTrigger, lower_bounds, replay
from penstock.laboratory.packing_replay.stream import Stream
from penstock.packing import algorithm_named
from penstock.packing.scores import consumer_hours, per_hour
from penstock.settings import Settings

CAPACITY = 100
INTERVAL_S = 5.0
MOVE_S = 5.0
"""How long a move stops a partition; 4.5 to 5.8 s is published."""

# Each kind with its noise or step in percent of a consumer; the wave is a day within one hour.
LOADS = {
    "calm": (Kind.STEADY, 2),
    "drifting": (Kind.WALK, 1),
    "bursty": (Kind.BURST, 2),
    "daily wave": (Kind.WAVE, 2),
    "hot partition": (Kind.HOT, 2),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One policy: how often the trigger decides, its hysteresis and its scale-down period."""

    period_s: float
    hysteresis: float
    scale_down_period_s: float
    algorithm: str = "CHAIN"
    look_ahead_s: float = 0.0

    @property
    def explanation(self) -> str:
        return f"{self.period_s:g} s, {100 * self.hysteresis:g} %, {self.scale_down_period_s:g} s"


@dataclass(frozen=True, slots=True)
class FrequencyStudyPlan:
    periods_s: tuple[float, ...] = (5, 15, 60)
    hystereses: tuple[float, ...] = (0, 0.05, 0.1, 0.15, 0.2, 0.3)
    scale_down_periods_s: tuple[float, ...] = (60, 300, 900)
    seeds: tuple[int, ...] = (11, 12, 13, 14, 15)
    measurements: int = 721
    partitions: int = 60
    knobs: tuple[float, ...] = (0, 0.3, 0.5, 0.7, 1)
    look_aheads_s: tuple[float, ...] = (30, 60, 120)

    def settings(self) -> list[Setting]:
        return [
            Setting(period_s, hysteresis, scale_down_s)
            for period_s in self.periods_s
            for hysteresis in self.hystereses
            for scale_down_s in self.scale_down_periods_s
        ]

    def runs_of(self, settings: Iterable[Setting]) -> list["FrequencyRun"]:
        return [
            FrequencyRun(setting, load, seed, self.measurements, self.partitions)
            for setting in settings
            for load in LOADS
            for seed in self.seeds
        ]

    def variants(self, chosen: Setting) -> list[Setting]:
        """The chosen setting with other knobs, other look-aheads, and the published MWF."""
        return [
            *(replace(chosen, algorithm=f"CHAIN@{knob:g}") for knob in self.knobs),
            *(replace(chosen, look_ahead_s=look_s) for look_s in self.look_aheads_s),
            replace(chosen, algorithm="MWF"),
            replace(chosen, algorithm="BFD"),
        ]


@dataclass(frozen=True, slots=True)
class FrequencyRun:
    setting: Setting
    load: str
    seed: int
    measurements: int
    partitions: int


@dataclass(frozen=True, slots=True)
class FrequencyRunResult:
    """Numbers per hour; `bound_hours` is the lower bound of consumer-hours of any packing."""

    run: FrequencyRun
    consumer_hours: float
    bound_hours: float
    moves: float
    over_capacity_s: float
    repacks: float

    def cost(self, late_weight: float) -> float:
        """Consumer-seconds used plus weighted partition-seconds late, per consumer-second needed.

        A move makes one partition late for MOVE_S; a second over capacity makes all partitions of
        that consumer late, counted as the average number per consumer.
        """
        shared = self.run.partitions / self.consumer_hours
        late_s = self.moves * MOVE_S + self.over_capacity_s * shared
        return (self.consumer_hours * 3600 + late_weight * late_s) / (self.bound_hours * 3600)


def carry_out(run: FrequencyRun) -> FrequencyRunResult:
    stream, bound_hours = _load(run.load, run.seed, run.measurements, run.partitions)
    setting = run.setting
    # What the study does not vary is as the catalogue has it, but for the bound: loads differ.
    policy = replace(
        controller_settings(Settings()).policy,
        capacity_bytes_per_s=CAPACITY,
        target_utilisation=round(1 - setting.hysteresis, 12),
        scale_down_period_ms=round(setting.scale_down_period_s * 1_000),
        look_ahead_ms=round(setting.look_ahead_s * 1_000),
        consumers_max=run.partitions,
    )
    mode = ThroughTrigger(policy, INTERVAL_S, setting.period_s)
    steps = list(replay(algorithm_named(setting.algorithm), stream, mode, process_time))
    count = len(steps)
    hours = count * INTERVAL_S / 3600
    over_capacity_s = INTERVAL_S * sum(step.over_capacity for step in steps)
    return FrequencyRunResult(
        run,
        consumer_hours([step.consumers for step in steps], INTERVAL_S) / hours,
        bound_hours,
        per_hour(sum(step.moved_partitions for step in steps), count, INTERVAL_S),
        over_capacity_s / hours,
        per_hour(sum(1 for step in steps if step.took_s is not None), count, INTERVAL_S),
    )


@cache
def _load(load: str, seed: int, measurements: int, partitions: int) -> tuple[Stream, float]:
    """The stream and the mean lower bound of its consumers; the same for every setting."""
    kind, delta = LOADS[load]
    stream = generate(Recipe(kind, partitions, delta, measurements, seed), CAPACITY)
    return stream, fsum(lower_bounds(stream, CAPACITY)) / measurements


def mean_cost(
    outcomes: Sequence[FrequencyRunResult], setting: Setting, late_weight: float
) -> float:
    """The mean over all loads and seeds, with equal weight."""
    costs = [one.cost(late_weight) for one in outcomes if one.run.setting == setting]
    return fsum(costs) / len(costs)


def best(outcomes: Sequence[FrequencyRunResult], late_weight: float) -> Setting:
    """The cheapest setting; of equal ones, the one that acts least often."""
    settings = sorted(
        {one.run.setting for one in outcomes},
        key=lambda s: (-s.scale_down_period_s, s.hysteresis, s.period_s),
    )
    return min(settings, key=lambda setting: mean_cost(outcomes, setting, late_weight))
