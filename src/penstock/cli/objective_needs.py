"""What a load that was watched needs with an objective, and with a tighter and a looser one. Pure.

The same measurements are led through an imaginary group once more for each objective, with what
follows from it and from how far the loads rose.
"""

from penstock.cli.imaginary_group import ImaginaryGroup
from penstock.cli.recommendation import ObjectiveNeed, Watched, drawn
from penstock.controller.core.settings import ControllerSettings, controller_settings
from penstock.packing import algorithm_named
from penstock.packing.objective import Measured, reaction_s
from penstock.packing.rises import Rises, look
from penstock.settings import Settings, changed_settings
from penstock.settings.objective import objective_of, with_objective
from penstock.settings.units import format_duration

# The objective itself comes first.
_FACTORS = (1.0, 0.5, 2.0)
_FRESHNESS_S_MIN = 1.0


def objective_needs(watched: Watched, settings: Settings) -> tuple[ObjectiveNeed, ...]:
    """Of the objective, of half of it and of twice as much."""
    measured = Measured(rise=_rise(watched, settings))
    own_s = settings.objective.freshness
    return tuple(
        _need(watched, settings, max(_FRESHNESS_S_MIN, own_s * factor), measured)
        for factor in _FACTORS
    )


def _need(
    watched: Watched, settings: Settings, freshness_s: float, measured: Measured
) -> ObjectiveNeed:
    changed = changed_settings(settings, {"objective.freshness": format_duration(freshness_s)})
    chosen = controller_settings(with_objective(changed, measured)[0])
    counts = _consumers(watched, chosen)
    return ObjectiveNeed(
        freshness_s=freshness_s,
        target_utilisation=chosen.policy.target_utilisation,
        spare_consumers=chosen.spare_consumers,
        consumers_mean=sum(counts) / len(counts),
        consumers_highest=max(counts),
        consumers_over_time=drawn(counts),
        rise=measured.rise,
    )


def _consumers(watched: Watched, chosen: ControllerSettings) -> list[int]:
    """How many have partitions after each measurement."""
    group = ImaginaryGroup(chosen.policy, algorithm_named(chosen.algorithm))
    found = []
    for sample, at_ms in zip(watched.samples, watched.times_ms, strict=True):
        group.measured(sample, at_ms)
        found.append(len(group.assignment))
    return found


def _rise(watched: Watched, settings: Settings) -> float | None:
    """How far loads rise before a plan helps; None after a short watch."""
    chosen, objective = controller_settings(settings), objective_of(settings)
    group = ImaginaryGroup(chosen.policy, algorithm_named(chosen.algorithm))
    rises = Rises()
    for sample, at_ms in zip(watched.samples, watched.times_ms, strict=True):
        group.measured(sample, at_ms)
        rises = look(
            rises,
            sample,
            group.speeds,
            group.assignment,
            chosen.policy.capacity_bytes_per_s,
            at_ms,
            round(reaction_s(objective) * 1_000),
        )
    return rises.not_exceeded(objective.rises_covered)
