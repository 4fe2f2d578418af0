"""Everything the controller's decisions depend on that a person may choose.

`controller_settings` is the only builder: the controller, `recommend` and `simulate` all use
it, and every default comes from the settings catalogue. Durations are seconds in the catalogue and
milliseconds from here on, like the controller's clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.errors import SettingsError
from penstock.messages import ChangeSettings
from penstock.packing.daily_ranges import DailyRange, daily_range
from penstock.packing.objective import Measured, Objective
from penstock.packing.trigger import TriggerPolicy
from penstock.settings.change import changed_settings
from penstock.settings.objective import is_set, objective_of, with_objective
from penstock.settings.sections import Settings
from penstock.settings.sections.controller import CONSUMERS_MAX_ELSE


@dataclass(frozen=True, slots=True)
class LiveChange:
    """The request that changed a setting of the running controller."""

    request_id: str
    requested_by: str
    at_ms: int
    # What the operator's settings had at that time; None when an earlier release saved it.
    instead_of: Any = None
    # Whether somebody had set that; None when an earlier release saved it.
    was_set: bool | None = None


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """The options of `controller` and `packing` as the core uses them; docs/options.md has each."""

    policy: TriggerPolicy
    objective: Objective
    # Times of the day in which the group does not shrink, or does not change at all.
    no_scale_down: tuple[DailyRange, ...]
    freeze: tuple[DailyRange, ...]
    # An algorithm's name, with its knob: `CHAIN@0.3`.
    algorithm: str
    # Whether `packing.capacity` is `auto`; the policy's capacity is then only what is assumed.
    capacity_is_measured: bool
    catch_up_ms: int
    catch_up_share: float
    behind_tolerated_ms: int
    growth_settle_ms: int
    growth_gain_min: float
    growth_retry_ms: int
    growth_load_change: float

    consumers_min: int
    spare_consumers: int
    creations_per_minute_max: int
    creation_timeout_ms: int
    restarts_max: int
    creation_slack: float
    creation_retry_ms: int
    number_retry_ms: int
    idle_grace_ms: int
    delete_resend_ms: int
    list_period_ms: int
    list_retry_ms: int

    packing_timeout_ms: int
    overtake_after_ms: int
    heartbeat_period_ms: int
    silence_ms: int
    silent_share_max: float
    give_up_period_ms: int
    give_up_at_once: int
    patience_ms: int
    command_resend_ms: int
    acknowledge_ms: int
    synchronise_ms: int
    failed_partition_retry_ms: int
    speeds_stale_ms: int
    vanish_after_measurements: int

    @property
    def consumers_max(self) -> int:
        return self.policy.consumers_max


def controller_settings(settings: Settings) -> ControllerSettings:
    """The operator's settings, as the core and the trigger use them."""
    own, packing = settings.controller, settings.packing
    return ControllerSettings(
        policy=TriggerPolicy(
            capacity_bytes_per_s=packing.first_capacity_bytes_per_s,
            target_utilisation=packing.target_utilisation,
            scale_down_period_ms=_ms(packing.scale_down_period),
            consumers_saved_min=packing.consumers_saved_min,
            relief_min=packing.relief_min,
            over_capacity_ms=_ms(packing.over_capacity_for),
            plan_interval_ms=_ms(own.plan_interval),
            no_gain_wait_ms=_ms(packing.no_gain_wait),
            look_ahead_ms=_ms(packing.look_ahead),
            partitions_per_consumer_max=packing.partitions_per_consumer_max or None,
            consumers_max=own.consumers_max or CONSUMERS_MAX_ELSE,
        ),
        objective=objective_of(settings),
        no_scale_down=tuple(daily_range(text) for text in packing.no_scale_down),
        freeze=tuple(daily_range(text) for text in packing.freeze),
        algorithm=packing.chosen_algorithm().name,
        capacity_is_measured=packing.is_capacity_measured,
        catch_up_ms=_ms(own.catch_up),
        catch_up_share=own.catch_up_share,
        behind_tolerated_ms=_ms(own.behind_tolerated),
        growth_settle_ms=_ms(own.growth_settle),
        growth_gain_min=own.growth_gain_min,
        growth_retry_ms=_ms(own.growth_retry),
        growth_load_change=own.growth_load_change,
        consumers_min=own.consumers_min,
        spare_consumers=own.spare_consumers,
        creations_per_minute_max=own.creations_per_minute_max,
        creation_timeout_ms=_ms(own.creation_timeout),
        restarts_max=own.restarts_max,
        creation_slack=own.creation_slack,
        creation_retry_ms=_ms(own.creation_retry),
        number_retry_ms=_ms(own.number_retry),
        idle_grace_ms=_ms(own.idle_grace),
        delete_resend_ms=_ms(own.delete_resend),
        list_period_ms=_ms(own.list_period),
        list_retry_ms=_ms(own.list_retry),
        packing_timeout_ms=_ms(own.packing_timeout),
        overtake_after_ms=_ms(own.overtake_after),
        heartbeat_period_ms=_ms(own.heartbeat_period),
        silence_ms=_ms(own.silence),
        silent_share_max=own.silent_share_max,
        give_up_period_ms=_ms(own.give_up_period),
        give_up_at_once=own.give_up_at_once,
        patience_ms=_ms(own.patience),
        command_resend_ms=_ms(own.command_resend),
        acknowledge_ms=_ms(own.acknowledge),
        synchronise_ms=_ms(own.synchronise),
        failed_partition_retry_ms=_ms(own.failed_partition_retry),
        speeds_stale_ms=_ms(own.speeds_stale),
        vanish_after_measurements=own.vanish_after_measurements,
    )


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


# The option that each field of an earlier release's `ChangeSettings` changes. Those fields carry
# their unit in their name, options in their value.
_OPTIONS = {
    "capacity_bytes_per_s": "packing.capacity",
    "target_utilisation": "packing.target_utilisation",
    "algorithm": "packing.algorithm",
    "algorithm_knob": "packing.knob",
    "consumers_min": "controller.consumers_min",
    "consumers_max": "controller.consumers_max",
    "spare_consumers": "controller.spare_consumers",
    "catch_up_ms": "controller.catch_up",
}
_CHANGEABLE = frozenset(_OPTIONS.values())


def overrides_of(request: ChangeSettings) -> dict[str, Any]:
    """What a request asks to change, by option, with values as in a settings file."""
    fields = {name: value for name in _OPTIONS if (value := getattr(request, name)) is not None}
    return by_option(fields) | dict(request.changes)


def by_option(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """With the names and values of a settings file; earlier releases saved the requests' fields."""
    return {
        _OPTIONS.get(name, name): _as_in_a_file(name, value) for name, value in overrides.items()
    }


def _as_in_a_file(name: str, value: Any) -> Any:
    if name.endswith("_bytes_per_s"):
        return f"{value!r}B/s"
    return f"{value!r}ms" if name.endswith("_ms") else value


def shown_value(settings: Settings, option: str) -> Any:
    """The value of an option as people write it, for messages and comparisons."""
    section, _, name = option.partition(".")
    return getattr(settings, section).model_dump(mode="json")[name]


def with_overrides(
    settings: Settings, overrides: Mapping[str, Any], measured: Measured | None = None
) -> Settings:
    """The operator's settings as requests have changed them since.

    What nobody has set follows the objective, and what was `measured`. SettingsError when the
    settings file could not have such a value.
    """
    changes = by_option(overrides)
    for name in changes:
        if name not in _CHANGEABLE:
            raise SettingsError(f"unknown setting {name}.")
    return with_objective(changed_settings(settings, changes), measured)[0]


def overtaken_changes(
    settings: Settings, overrides: Mapping[str, Any], origins: Mapping[str, LiveChange]
) -> dict[str, str]:
    """The changes by requests that the operator's settings have overtaken, and why.

    The later one wins: a request over the settings that were there, and settings that were edited
    since (a file, a variable or a flag) over the request.
    """
    found = {}
    for option in overrides:
        origin = origins.get(option)
        if origin is None or origin.instead_of is None:
            continue  # an earlier release did not save it: it goes on until it is dropped
        if not (origin.was_set or is_set(settings, option)):
            continue  # a default is nobody's word: a release may have changed it
        now = shown_value(settings, option)
        if now != origin.instead_of:
            found[option] = (
                f"the settings were changed from {origin.instead_of} to {now} since request "
                f"{origin.request_id}, so {now} counts"
            )
    return found


def valid_overrides(
    settings: Settings, overrides: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The saved overrides that still make sense, and why each of the others does not.

    An older release may have saved what this one refuses. One may depend on another (a minimum
    above the file's maximum on a raised maximum), so what fails is tried again after the rest.
    By name, so that of an algorithm and a knob without effect the algorithm stays.
    """
    kept: dict[str, Any] = {}
    dropped: dict[str, str] = {}
    for name, value in [*sorted(overrides.items()), *sorted(overrides.items())]:
        try:
            with_overrides(settings, {**kept, name: value})
        except SettingsError as error:
            dropped[name] = error.message.rstrip(".")
        else:
            kept[name] = value
            dropped.pop(name, None)
    return kept, dropped
