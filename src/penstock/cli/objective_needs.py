"""What a load needs with an objective, and with a tighter and a looser one. Pure.

Each objective has an imaginary group of its own, which is led while the load is watched and learns
as a running group does: every ten minutes it goes on with what follows from the rises and the peaks
that it has seen. So a calm load is not charged for a spare that the group would end.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.cli.imaginary_group import ImaginaryGroup, take
from penstock.cli.known_capacities import KnownCapacities, known_capacities
from penstock.cli.recommendation import ObjectiveNeed
from penstock.cli.watched import OverTime, Watched
from penstock.controller.core.capacity import speeds_by_topic
from penstock.controller.core.objective_changes import FOLLOW_EVERY_MS, learned
from penstock.controller.core.settings import ControllerSettings, controller_settings
from penstock.model import TopicPartition
from penstock.packing import algorithm_named
from penstock.packing.objective import Measured, compared_freshness_s, reaction_s
from penstock.packing.peaks import Peaks, note
from penstock.packing.rises import Rises, look
from penstock.settings import Settings, changed_settings
from penstock.settings.objective import objective_of, with_objective
from penstock.settings.units import format_duration


@dataclass(slots=True)
class ObjectiveGroup:
    """The imaginary group of one objective, and what it has learned of the load."""

    settings: Settings
    group: ImaginaryGroup
    consumers: OverTime = field(default_factory=OverTime)
    rises: Rises = field(default_factory=Rises)
    peaks: Peaks = field(default_factory=Peaks)
    # How much the load of each topic counts, as the topics are written now.
    weights: Mapping[str, float] = field(default_factory=dict)
    followed_ms: int | None = None

    @property
    def measured(self) -> Measured:
        return learned(objective_of(self.settings), self.rises, self.peaks, self.weights)

    @property
    def chosen(self) -> ControllerSettings:
        """With what follows from all that is known until now."""
        return controller_settings(with_objective(self.settings, self.measured)[0])

    def learn(self, speeds: Mapping[TopicPartition, float], now_ms: int) -> None:
        """After the group was given a measurement."""
        group, objective = self.group, objective_of(self.settings)
        self.consumers.add(len(group.assignment))
        by_topic = speeds_by_topic(speeds, speeds)
        usual = group.known.weighed(by_topic)
        self.rises = look(
            self.rises,
            speeds,
            group.speeds,
            group.assignment,
            usual.usual_bytes_per_s,
            now_ms,
            round(reaction_s(objective) * 1_000),
            usual.weights,
        )
        self.peaks = note(self.peaks, by_topic, now_ms)
        self.weights = usual.weights
        if self.followed_ms is None:
            self.followed_ms = now_ms
        elif now_ms - self.followed_ms >= FOLLOW_EVERY_MS:
            self.followed_ms = now_ms
            group.policy = self.chosen.policy

    def need(self) -> ObjectiveNeed:
        chosen = self.chosen
        return ObjectiveNeed(
            freshness_s=self.settings.objective.freshness,
            target_utilisation=chosen.policy.target_utilisation,
            spare_consumers=chosen.spare_consumers,
            consumers_mean=self.consumers.mean,
            consumers_highest=int(self.consumers.highest),
            consumers_over_time=self.consumers.drawn(),
            rise=self.measured.rise,
        )


class ObjectiveGroups:
    """The group of the objective itself, which is the one that is told about, and the others."""

    def __init__(self, settings: Settings, known: KnownCapacities | None = None) -> None:
        known = known or known_capacities(controller_settings(settings))
        self._own, *self._others = [
            _group_of(settings, freshness_s, known)
            for freshness_s in compared_freshness_s(settings.objective.freshness)
        ]

    @property
    def chosen(self) -> ControllerSettings:
        """The settings, and what follows from the objective and from what was learned."""
        return self._own.chosen

    def take(
        self, watched: Watched, speeds: Mapping[TopicPartition, float], now_ms: int
    ) -> tuple[str, bool]:
        """One measurement: what the group does with it."""
        told = take(watched, self._own.group, speeds, now_ms)
        self._own.learn(speeds, now_ms)
        for one in self._others:
            one.group.measured(speeds, now_ms)
            one.learn(speeds, now_ms)
        return told

    def needs(self) -> tuple[ObjectiveNeed, ...]:
        """Of the objective, then of a tighter and a looser one."""
        return tuple(one.need() for one in (self._own, *self._others))


def _group_of(settings: Settings, freshness_s: float, known: KnownCapacities) -> ObjectiveGroup:
    changed = settings
    if freshness_s != settings.objective.freshness:
        changes = {"objective.freshness": format_duration(freshness_s)}
        changed = changed_settings(settings, changes)
    chosen = controller_settings(with_objective(changed)[0])
    group = ImaginaryGroup(chosen.policy, algorithm_named(chosen.algorithm), known)
    return ObjectiveGroup(changed, group)
