"""What a watch says about the group that a load needs: figures, settings, and why. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from penstock.cli.catch_up import CatchUp, catch_up
from penstock.controller.core.settings import ControllerSettings
from penstock.model import TopicPartition
from penstock.model.sentences import counted, duration_text, speed_text
from penstock.settings.units import format_speed

SHORT_WATCH_S = 600
# How much higher than what was seen the load may be.
LOAD_RESERVE = 0.5
POINTS_DRAWN = 240
FASTEST_SHOWN = 12
_BUSIEST_LOOKED_AT = 60
_CAPACITY_AS_SET = "what one consumer carries, in bytes of log a second, as you have set it."
_CAPACITY_BY_DEFAULT = (
    "what one consumer carries, in bytes of log a second. This default is low on purpose; with "
    "your own figure the group is probably smaller. docs/sizing.md says how to measure it."
)


@dataclass(slots=True)
class Watched:
    """What was seen: speeds, and what the imaginary group did with them."""

    seconds: float = 0.0
    samples: list[dict[TopicPartition, float]] = field(default_factory=list)
    # When each was taken.
    times_ms: list[int] = field(default_factory=list)
    consumers: list[int] = field(default_factory=list)
    at_least: list[int] = field(default_factory=list)
    changes: int = 0
    moves: int = 0
    # The newest measurement, row by row.
    rows: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class HotPartition:
    """A partition that one consumer cannot carry."""

    partition: str
    highest_bytes_per_s: float


@dataclass(frozen=True, slots=True)
class ObjectiveNeed:
    """What the load needs with an objective; `rise` is None after a short watch."""

    freshness_s: float
    target_utilisation: float
    spare_consumers: int
    consumers_mean: float
    consumers_highest: int
    consumers_over_time: tuple[float, ...]
    rise: float | None

    def text(self) -> str:
        mean = f"{self.consumers_mean:.3g}"
        return (
            f"{mean} consumer{'' if mean == '1' else 's'} on average, {self.consumers_highest} at "
            f"most, and {counted(self.spare_consumers, 'spare')}"
        )


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The end of a watch. Speeds are bytes of log a second, after compression."""

    watched_s: float
    measurements: int
    partitions: int
    written_mean_bytes_per_s: float
    written_highest_bytes_per_s: float
    capacity_bytes_per_s: float
    capacity_is_default: bool
    consumers_at_the_end: int
    consumers_mean: float
    consumers_highest: int
    consumers_at_least: int
    # The mean share of their capacity that the consumers use.
    capacity_used: float
    # What a group of fixed size needs all the time, to carry the highest load as well.
    consumers_of_a_fixed_group: int
    changes: int
    moves: int
    hot_partitions: tuple[HotPartition, ...]
    # What a plain Kafka consumer group needs all the time: partitions are dealt out by number.
    consumers_of_a_plain_group: int
    # Even parts of the watch, the highest of each.
    written_over_time_bytes_per_s: tuple[float, ...]
    consumers_over_time: tuple[float, ...]
    # The fastest partitions, with the highest speed of each.
    fastest_bytes_per_s: dict[str, float]
    # Of the objective, of half of it and of twice as much.
    objective_needs: tuple[ObjectiveNeed, ...]
    settings: dict[str, Any]
    # Why, by the name of the setting.
    reasons: dict[str, str]
    # What waits in the logs, and how long the consumers at the end would need for it.
    waiting: CatchUp

    def text(self, chosen: ControllerSettings) -> str:
        """For a person; every figure with its meaning."""
        lines = [*self._needed_lines(chosen), *self._set_lines(chosen)]
        return "\n".join(lines)

    def _needed_lines(self, chosen: ControllerSettings) -> list[str]:
        mean, highest = (
            speed_text(self.written_mean_bytes_per_s),
            speed_text(self.written_highest_bytes_per_s),
        )
        partitions = counted(self.partitions, "partition")
        seen = f"{mean} written on average, {highest} at most"
        capacity = speed_text(self.capacity_bytes_per_s)
        source = "the default, which nobody measured" if self.capacity_is_default else "as set"
        now = counted(self.consumers_at_the_end, "consumer")
        needed = (
            f"{now} now, {self.consumers_mean:.3g} on average, {self.consumers_highest} at most"
        )
        fixed, filled = self.consumers_of_a_fixed_group, chosen.policy.target_utilisation
        lines = [
            (
                f"Watched {partitions} for {duration_text(round(self.watched_s))}: {seen}, "
                "counted in bytes of the broker's log (after compression)."
            ),
            f"One consumer carries {capacity} (packing.capacity, {source}).",
            f"Needed: {needed}. No packing could do with fewer than {self.consumers_at_least}.",
            (
                f"Of their capacity {self.capacity_used:.0%} is used on average. Up to "
                f"{filled:.0%} is filled (packing.target_utilisation); the rest is room to rise."
            ),
            self.waiting.text(),
            f"A group of fixed size would need {fixed} all the time.",
            (
                "A plain Kafka consumer group, which deals partitions out by number, would need "
                f"{self.consumers_of_a_plain_group} all the time to be as fresh."
            ),
            self._changes_line(),
            *self._objective_lines(),
            kept_besides(chosen),
        ]
        if self.watched_s < SHORT_WATCH_S:
            lines.append(
                "This was a short look: watch a busy hour (--for 1h) before you rely on it."
            )
        lines += [
            f"Hot: {hot.partition} alone is written at {speed_text(hot.highest_bytes_per_s)}, more "
            "than one consumer carries. More partitions, or a key that spreads the records, help; "
            "more consumers do not."
            for hot in self.hot_partitions
        ]
        return lines

    def _objective_lines(self) -> list[str]:
        if not self.objective_needs:
            return []
        own, tighter, looser = self.objective_needs
        return [
            (
                f"To be fresh within {duration_text(own.freshness_s)} (objective.freshness): "
                f"{own.text()}."
            ),
            (
                f"Within {duration_text(tighter.freshness_s)}: {tighter.text()}. Within "
                f"{duration_text(looser.freshness_s)}: {looser.text()}."
            ),
        ]

    def _changes_line(self) -> str:
        if not self.changes:
            return "The group would not change in this time."
        changes, moves = counted(self.changes, "time"), counted(self.moves, "partition")
        return (
            f"The group would change {changes} and move {moves} in this time. If that is too "
            "often, raise packing.knob (0 is fewest consumers, 1 is fewest moves)."
        )

    def _set_lines(self, chosen: ControllerSettings) -> list[str]:
        to_set = dict(self.settings)
        most, now = "controller.consumers_max", chosen.consumers_max
        if now >= self.settings[most]:
            del to_set[most]
        lines = [f"Set {name} to {value}: {self.reasons[name]}" for name, value in to_set.items()]
        if most in to_set:
            lines.append(f"{most} is {now} now, which is too few: raise it.")
        else:
            lines.append(
                f"{most} is {now} now, which is enough; {self.settings[most]} would limit what the "
                f"group may cost: {self.reasons[most]}"
            )
        if self.capacity_is_default:
            capacity = format_speed(self.capacity_bytes_per_s)
            lines.append(f"Leave packing.capacity at {capacity} for now: {_CAPACITY_BY_DEFAULT}")
        start = "".join(f" --set {name}={value}" for name, value in to_set.items())
        return [*lines, f"To start with: penstock up{start}"]


def recommendation(
    watched: Watched,
    chosen: ControllerSettings,
    *,
    capacity_is_default: bool,
    ledger: Mapping[TopicPartition, int | None],
    needs: tuple[ObjectiveNeed, ...] = (),
) -> Recommendation:
    """What the watch says; `ledger` is how far the lake is."""
    policy = chosen.policy
    written = [sum(sample.values()) for sample in watched.samples]
    highest: dict[TopicPartition, float] = {}
    for sample in watched.samples:
        for partition, speed in sample.items():
            highest[partition] = max(speed, highest.get(partition, 0.0))
    capacity = policy.capacity_bytes_per_s
    used = sum(written) / (capacity * max(1, sum(watched.consumers)))
    most = max(watched.consumers)
    more = ceil(LOAD_RESERVE * most)
    return Recommendation(
        watched_s=round(watched.seconds, 1),
        measurements=len(watched.samples),
        partitions=len(highest),
        written_mean_bytes_per_s=sum(written) / len(written),
        written_highest_bytes_per_s=max(written),
        capacity_bytes_per_s=capacity,
        capacity_is_default=capacity_is_default,
        consumers_at_the_end=watched.consumers[-1],
        consumers_mean=sum(watched.consumers) / len(watched.consumers),
        consumers_highest=most,
        consumers_at_least=max(watched.at_least),
        capacity_used=used,
        consumers_of_a_fixed_group=most,
        changes=watched.changes,
        moves=watched.moves,
        hot_partitions=tuple(
            HotPartition(str(partition), speed)
            for partition, speed in sorted(highest.items())
            if speed > capacity
        ),
        consumers_of_a_plain_group=plain_group(watched.samples, capacity, most),
        written_over_time_bytes_per_s=drawn(written),
        consumers_over_time=drawn(watched.consumers),
        fastest_bytes_per_s={
            str(p): highest[p]
            for p in sorted(highest, key=lambda p: (-highest[p], p))[:FASTEST_SHOWN]
        },
        objective_needs=needs,
        settings={
            **({} if capacity_is_default else {"packing.capacity": format_speed(capacity)}),
            "controller.consumers_max": most + more + chosen.spare_consumers,
        },
        reasons={
            **({} if capacity_is_default else {"packing.capacity": _CAPACITY_AS_SET}),
            "controller.consumers_max": f"the most consumers at a time: {most} that were needed "
            f"at most, {more} for a load that is {LOAD_RESERVE:.0%} higher, and "
            f"{chosen.spare_consumers} for spares.",
        },
        waiting=catch_up(
            watched.rows,
            ledger,
            consumers=watched.consumers[-1],
            capacity_bytes_per_s=capacity,
        ),
    )


def drawn(values: Sequence[float]) -> tuple[float, ...]:
    """At most `POINTS_DRAWN` values: the highest of each even part."""
    number = min(len(values), POINTS_DRAWN)
    ends = [len(values) * (place + 1) // number for place in range(number)]
    return tuple(
        max(values[begin:end]) for begin, end in zip([0, *ends], ends, strict=False) if end > begin
    )


def plain_group(
    samples: Sequence[Mapping[TopicPartition, float]], capacity: float, at_least: int
) -> int:
    """The fewest consumers whose partitions, dealt out by number, never exceed the capacity.

    A partition that no consumer can carry counts as much as one consumer carries. The busiest
    measurements decide.
    """
    busiest = sorted(samples, key=lambda sample: -sum(sample.values()))[:_BUSIEST_LOOKED_AT]
    names = sorted({partition for sample in busiest for partition in sample})
    rows = [[min(sample.get(p, 0.0), capacity) for p in names] for sample in busiest]
    low, high = max(1, at_least), max(1, at_least, len(names))
    while low < high:
        middle = (low + high) // 2
        if all(sum(row[n::middle]) <= capacity for row in rows for n in range(middle)):
            high = middle
        else:
            low = middle + 1
    return high


def kept_besides(chosen: ControllerSettings) -> str:
    """The packing does not count consumers that have nothing to read."""
    spares = counted(chosen.spare_consumers, "spare")
    return (
        f"Beside those the group keeps {spares} (controller.spare_consumers), and at "
        f"least {counted(chosen.consumers_min, 'consumer')} in all (controller.consumers_min)."
    )
