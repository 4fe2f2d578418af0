"""Settings with what follows from the objective, where nobody has set it.

Which options somebody has set is what pydantic keeps as the fields that are set, so a value that is
put in here stays open for the next time: when more was measured, or the objective has changed.
"""

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from penstock.packing.objective import DerivedOption, Measured, Objective, derived_options
from penstock.settings.sections import Settings
from penstock.settings.sections.base import Section

ORIGIN = "objective"
# What the lake's age is measured with, and the batches of a tight objective, take seconds: an alert
# below this would tell of the measurement.
ALERT_S_MIN = 10.0

Part = TypeVar("Part", bound=Section)


def objective_of(settings: Settings) -> Objective:
    return Objective(settings.objective.freshness, settings.objective.share)


def with_objective(
    settings: Settings, measured: Measured | None = None
) -> tuple[Settings, dict[str, str]]:
    """The settings, and why each derived option is as it is, by its name."""
    derived = (*derived_options(objective_of(settings), measured), *_for_alerts(settings))
    found = [one for one in derived if not is_set(settings, one.option)]
    by_section: dict[str, dict[str, Any]] = {}
    for one in found:
        section, _, name = one.option.partition(".")
        by_section.setdefault(section, {})[name] = one.value
    _keep_batches_in_order(settings, by_section)
    placed = {name: _placed(getattr(settings, name), values) for name, values in by_section.items()}
    return _placed(settings, placed), {one.option: f"{ORIGIN}: {one.reason}" for one in found}


def _for_alerts(settings: Settings) -> tuple[DerivedOption, ...]:
    """Alerts hold to an objective that somebody has set; else they keep their own wide default."""
    if not is_set(settings, "objective.freshness"):
        return ()
    fresh_s = settings.objective.freshness
    reason = "somebody is told when the objective that is set is not kept"
    if fresh_s < ALERT_S_MIN:
        reason = f"the age of the lake is not known better than to {ALERT_S_MIN:g} s or so"
    name = "telemetry.freshness_objective"
    return (DerivedOption(name, max(ALERT_S_MIN, fresh_s), reason),)


def is_set(settings: Settings, option: str) -> bool:
    """Whether somebody has set this option: it does not follow the objective."""
    section, _, name = option.partition(".")
    return name in getattr(settings, section).model_fields_set


def _keep_batches_in_order(settings: Settings, by_section: dict[str, dict[str, Any]]) -> None:
    """A batch behind a backlog is never shorter than another, whichever of them is set."""
    own, values = settings.consumer, by_section.get("consumer", {})
    if "batch_time" in values and "backlog_batch_time" not in values:
        values["batch_time"] = min(values["batch_time"], own.backlog_batch_time)
    elif "backlog_batch_time" in values and "batch_time" not in values:
        values["backlog_batch_time"] = max(values["backlog_batch_time"], own.batch_time)


def _placed(section: Part, values: Mapping[str, Any]) -> Part:
    """With these values, which count as not set."""
    whole = {**dict(section), **values}
    are_set = set(section.model_fields_set)
    return cast("Part", type(section).model_construct(_fields_set=are_set, **whole))
