"""What a watch says about the group that a load needs: figures, settings, and why. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from penstock.cli.catch_up import CatchUp, catch_up
from penstock.cli.known_capacities import KnownCapacities, known_capacities
from penstock.cli.plain_group import plain_group
from penstock.cli.watched import Watched
from penstock.controller.core.capacity import Source
from penstock.controller.core.capacity_text import capacity_text
from penstock.controller.core.settings import ControllerSettings
from penstock.model import TopicPartition
from penstock.model.sentences import counted, duration_text, speed_text
from penstock.settings.units import format_speed

SHORT_WATCH_S = 600
# How much higher than what was seen the load may be.
LOAD_RESERVE = 0.5
FASTEST_SHOWN = 12
_MOST = "controller.consumers_max"
_CAPACITY_AS_SET = "what one consumer carries, in bytes of log a second, as you have set it."
_RESTS_ON_IT = (
    "What is assumed decides all these figures: of small or compressed records, or with a slow "
    "transformation, one may carry a tenth of it, and of plain ones ten times as much. "
    "`penstock try --calibrate` finds it out, and --calibrated TOPIC=SPEED gives it to this "
    "command."
)
_CAPACITY_STAYS_OPEN = (
    "Leave packing.capacity at auto: the group measures what its consumers carry of each topic and "
    "plans with that, so it may need fewer consumers or more."
)


@dataclass(frozen=True, slots=True)
class HotPartition:
    """A partition that one consumer cannot carry, if it carries no more than this."""

    partition: str
    highest_bytes_per_s: float
    capacity_bytes_per_s: float
    capacity_is_assumed: bool

    def text(self) -> str:
        written, carried = (
            speed_text(self.highest_bytes_per_s),
            speed_text(self.capacity_bytes_per_s),
        )
        if self.capacity_is_assumed:
            return (
                f"Hot: {self.partition} alone is written at {written}. That may be more than one "
                f"consumer carries, if one carries {carried} (assumed). Then more partitions, or a "
                "key that spreads the records, would help; more consumers would not."
            )
        return (
            f"Hot: {self.partition} alone is written at {written}, more than one consumer carries "
            f"({carried}). More partitions, or a key that spreads the records, help; more "
            "consumers do not."
        )


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
    # Whether it is, of any topic that is written.
    capacity_is_assumed: bool
    # With its source, of each topic as well; as in `penstock status -o json`.
    capacity: dict[str, Any]
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
    # What one consumer carries of the topic of each.
    fastest_capacity_bytes_per_s: dict[str, float]
    # Of the objective, then of a tighter and a looser one.
    objective_needs: tuple[ObjectiveNeed, ...]
    # What to start with, where it must be another than now.
    settings: dict[str, Any]
    # Why, by the name of the setting.
    reasons: dict[str, str]
    # The `controller.consumers_max` that is enough; None while the capacity is assumed.
    consumers_max_enough: int | None
    consumers_max_reason: str
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
            self.capacity_line(),
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
        return [*lines, *(hot.text() for hot in self.hot_partitions)]

    def capacity_line(self) -> str:
        """What one consumer carries, and how that is known."""
        carried, topics = speed_text(self.capacity_bytes_per_s), self.capacity["topics"]
        if self.capacity["source"] == Source.SET:
            return f"One consumer carries {carried} (packing.capacity, as set)."
        if all(row["source"] == Source.ASSUMED for row in topics.values()):
            return (
                f"One consumer carries {carried} (packing.capacity, assumed, until a group "
                f"measures it). {_RESTS_ON_IT}"
            )
        known = capacity_text({"capacity": self.capacity})
        line = f"{known[0].upper()}{known[1:]}."
        return f"{line} {_RESTS_ON_IT}" if self.capacity_is_assumed else line

    def _objective_lines(self) -> list[str]:
        if not self.objective_needs:
            return []
        own, *others = self.objective_needs
        return [
            (
                f"To be fresh within {duration_text(own.freshness_s)} (objective.freshness): "
                f"{own.text()}."
            ),
            " ".join(f"Within {duration_text(one.freshness_s)}: {one.text()}." for one in others),
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
        to_set, now = self.settings, chosen.consumers_max
        lines = [f"Set {name} to {value}: {self.reasons[name]}" for name, value in to_set.items()]
        if self.consumers_max_enough is None:
            lines.append(
                f"{_MOST} is {now} now. How many are enough is not known while the capacity is "
                "assumed, so no other number is recommended."
            )
        elif _MOST in to_set:
            lines.append(f"{_MOST} is {now} now, which is too few: raise it.")
        else:
            lines.append(
                f"{_MOST} is {now} now, which is enough; {self.consumers_max_enough} would limit "
                f"what the group may cost: {self.consumers_max_reason}"
            )
        if self.capacity_is_assumed:
            lines.append(_CAPACITY_STAYS_OPEN)
        start = "".join(f" --set {name}={value}" for name, value in to_set.items())
        return [*lines, f"To start with: penstock up{start}"]


def recommendation(
    watched: Watched,
    chosen: ControllerSettings,
    *,
    ledger: Mapping[TopicPartition, int | None],
    needs: tuple[ObjectiveNeed, ...] = (),
    known: KnownCapacities | None = None,
) -> Recommendation:
    """What the watch says; `ledger` is how far the lake is."""
    known = known or known_capacities(chosen)
    highest, usual = watched.highest, known.weighed(watched.written_by_topic)
    is_assumed = known.source(watched.written_by_topic) is Source.ASSUMED
    most = int(watched.consumers.highest)
    more = ceil(LOAD_RESERVE * most)
    enough = None if is_assumed else most + more + chosen.spare_consumers
    reason = (
        f"the most consumers at a time: {most} that were needed at most, {more} for a load that is "
        f"{LOAD_RESERVE:.0%} higher, and {chosen.spare_consumers} for spares."
    )
    settings, reasons = _to_set(chosen, enough, reason)
    fastest = sorted(highest, key=lambda p: (-highest[p], p))[:FASTEST_SHOWN]
    return Recommendation(
        watched_s=round(watched.seconds, 1),
        measurements=watched.measurements,
        partitions=len(highest),
        written_mean_bytes_per_s=watched.written.mean,
        written_highest_bytes_per_s=watched.written.highest,
        capacity_bytes_per_s=usual.usual_bytes_per_s,
        capacity_is_assumed=is_assumed,
        capacity=known.rows(watched.written_by_topic),
        consumers_at_the_end=int(watched.consumers.newest),
        consumers_mean=watched.consumers.mean,
        consumers_highest=most,
        consumers_at_least=watched.consumers_at_least,
        capacity_used=watched.load.total / max(1.0, watched.consumers.total),
        consumers_of_a_fixed_group=most,
        changes=watched.changes,
        moves=watched.moves,
        hot_partitions=tuple(
            HotPartition(
                str(partition),
                speed,
                usual.of(partition.topic),
                known.source_of(partition.topic) is Source.ASSUMED,
            )
            for partition, speed in sorted(highest.items())
            if speed > usual.of(partition.topic)
        ),
        consumers_of_a_plain_group=plain_group(
            [
                {p: speed / usual.of(p.topic) for p, speed in sample.items()}
                for sample in watched.busiest
            ],
            1.0,
            most,
        ),
        written_over_time_bytes_per_s=watched.written.drawn(),
        consumers_over_time=watched.consumers.drawn(),
        fastest_bytes_per_s={str(p): highest[p] for p in fastest},
        fastest_capacity_bytes_per_s={str(p): usual.of(p.topic) for p in fastest},
        objective_needs=needs,
        settings=settings,
        reasons=reasons,
        consumers_max_enough=enough,
        consumers_max_reason=reason,
        waiting=catch_up(
            watched.rows,
            ledger,
            consumers=int(watched.consumers.newest),
            capacity_bytes_per_s=usual.usual_bytes_per_s,
        ),
    )


def _to_set(
    chosen: ControllerSettings, enough: int | None, reason: str
) -> tuple[dict[str, Any], dict[str, str]]:
    """What to start with, and why; what is well as it is need not be set."""
    settings: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    if not chosen.capacity_is_measured:
        settings["packing.capacity"] = format_speed(chosen.policy.capacity_bytes_per_s)
        reasons["packing.capacity"] = _CAPACITY_AS_SET
    if enough is not None and chosen.consumers_max < enough:
        settings[_MOST], reasons[_MOST] = enough, reason
    return settings, reasons


def kept_besides(chosen: ControllerSettings) -> str:
    """The packing does not count consumers that have nothing to read."""
    spares = counted(chosen.spare_consumers, "spare")
    return (
        f"Beside those the group keeps {spares} (controller.spare_consumers), and at "
        f"least {counted(chosen.consumers_min, 'consumer')} in all (controller.consumers_min)."
    )
