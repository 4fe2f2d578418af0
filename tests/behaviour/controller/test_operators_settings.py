"""One chain from the operator's settings to the core, the trigger and the simulations."""

from dataclasses import fields
from typing import Any

import pytest

from kit.controller.story import TWO_CONSUMERS, after
from penstock.controller.core.decisions import Code
from penstock.controller.core.settings import (
    ControllerSettings,
    controller_settings,
    overrides_of,
    valid_overrides,
    with_overrides,
)
from penstock.controller.core.snapshot import snapshot
from penstock.controller.core.state import State
from penstock.controller.core.state_machine import Machine
from penstock.errors import SettingsError
from penstock.messages import ChangeSettings
from penstock.model import ConsumerId
from penstock.packing.daily_ranges import daily_range
from penstock.packing.objective import Objective
from penstock.packing.trigger import TriggerPolicy
from penstock.settings import Settings, changed_settings, load_settings

CHOSEN = {
    "packing.capacity": "7MB/s",
    "packing.target_utilisation": "0.75",
    "packing.scale_down_period": "90s",
    "packing.consumers_saved_min": "2",
    "packing.over_capacity_for": "4s",
    "packing.relief_min": "0.2",
    "packing.no_gain_wait": "16s",
    "packing.look_ahead": "30s",
    "packing.partitions_per_consumer_max": "9",
    "packing.algorithm": "chain",
    "packing.knob": "0.2",
    "packing.no_scale_down": ["mon 08:00-09:00"],
    "packing.freeze": ["10:00-11:00"],
    "objective.freshness": "20s",
    "objective.share": "0.95",
    "controller.consumers_min": "2",
    "controller.consumers_max": "5",
    "controller.spare_consumers": "3",
    "controller.catch_up": "61s",
    "controller.catch_up_share": "0.3",
    "controller.behind_tolerated": "6s",
    "controller.growth_settle": "67s",
    "controller.growth_gain_min": "0.15",
    "controller.growth_retry": "68s",
    "controller.growth_load_change": "0.4",
    "controller.creations_per_minute_max": "11",
    "controller.creation_timeout": "62s",
    "controller.creation_slack": "5",
    "controller.restarts_max": "4",
    "controller.creation_retry": "7s",
    "controller.number_retry": "69s",
    "controller.idle_grace": "63s",
    "controller.delete_resend": "8s",
    "controller.list_period": "64s",
    "controller.list_retry": "3s",
    "controller.plan_interval": "9s",
    "controller.packing_timeout": "65s",
    "controller.overtake_after": "12s",
    "controller.heartbeat_period": "1100ms",
    "controller.silence": "13s",
    "controller.silent_share_max": "0.4",
    "controller.give_up_period": "18s",
    "controller.give_up_at_once": "6",
    "controller.patience": "19s",
    "controller.command_resend": "1500ms",
    "controller.acknowledge": "14s",
    "controller.synchronise": "15s",
    "controller.failed_partition_retry": "66s",
    "controller.speeds_stale": "17s",
    "controller.vanish_after_measurements": "4",
}
REACHED = ControllerSettings(
    policy=TriggerPolicy(
        capacity_bytes_per_s=7e6,
        target_utilisation=0.75,
        scale_down_period_ms=90_000,
        consumers_saved_min=2,
        relief_min=0.2,
        over_capacity_ms=4_000,
        plan_interval_ms=9_000,
        no_gain_wait_ms=16_000,
        look_ahead_ms=30_000,
        partitions_per_consumer_max=9,
        consumers_max=5,
    ),
    objective=Objective(20.0, 0.95),
    no_scale_down=(daily_range("mon 08:00-09:00"),),
    freeze=(daily_range("10:00-11:00"),),
    algorithm="CHAIN@0.2",
    capacity_is_measured=False,
    catch_up_ms=61_000,
    catch_up_share=0.3,
    behind_tolerated_ms=6_000,
    growth_settle_ms=67_000,
    growth_gain_min=0.15,
    growth_retry_ms=68_000,
    growth_load_change=0.4,
    consumers_min=2,
    spare_consumers=3,
    creations_per_minute_max=11,
    creation_timeout_ms=62_000,
    restarts_max=4,
    creation_slack=5.0,
    creation_retry_ms=7_000,
    number_retry_ms=69_000,
    idle_grace_ms=63_000,
    delete_resend_ms=8_000,
    list_period_ms=64_000,
    list_retry_ms=3_000,
    packing_timeout_ms=65_000,
    overtake_after_ms=12_000,
    heartbeat_period_ms=1_100,
    silence_ms=13_000,
    silent_share_max=0.4,
    give_up_period_ms=18_000,
    give_up_at_once=6,
    patience_ms=19_000,
    command_resend_ms=1_500,
    acknowledge_ms=14_000,
    synchronise_ms=15_000,
    failed_partition_retry_ms=66_000,
    speeds_stale_ms=17_000,
    vanish_after_measurements=4,
)


def test_every_option_reaches_the_core() -> None:
    """Each in milliseconds, bytes per second or as it is; none is mixed up with another."""
    chosen = load_settings(flags=CHOSEN, environment={}).settings
    assert controller_settings(chosen) == REACHED
    assert controller_settings(changed_settings(Settings(), CHOSEN)) == REACHED


def test_the_catalogue_has_the_only_defaults() -> None:
    """A settings object of the core or the trigger cannot be made without naming every figure."""
    with pytest.raises(TypeError, match="missing"):
        ControllerSettings()  # type: ignore[call-arg]  # the missing figures are the test
    with pytest.raises(TypeError, match="missing"):
        TriggerPolicy()  # type: ignore[call-arg]  # the missing figures are the test
    defaults = controller_settings(Settings())
    differing = [
        f.name for f in fields(REACHED) if getattr(defaults, f.name) != getattr(REACHED, f.name)
    ]
    assert differing == [f.name for f in fields(REACHED)]


def test_no_maximum_is_none() -> None:
    """0 partitions per consumer means that there is no maximum."""
    assert controller_settings(Settings()).policy.partitions_per_consumer_max is None


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"algorithm": "nosuch"}, "packing.algorithm: no packing algorithm 'nosuch'"),
        ({"algorithm_knob": 7.0}, "packing.knob: Input should be less than or equal to 1"),
        (
            {"algorithm": "mwf", "algorithm_knob": 0.9},
            "packing: knob 0.9 has no effect with algorithm MWF; set algorithm CHAIN, or knob 0.5",
        ),
        (
            {"algorithm": "CHAIN@0.5", "algorithm_knob": 0.9},
            "packing: knob 0.9 has no effect with algorithm CHAIN@0.5",
        ),
        ({"consumers_min": 101}, "controller: consumers_min 101 is above consumers_max 100"),
        ({"consumers_max": -1}, "controller.consumers_max: Input should be greater than"),
        ({"target_utilisation": 0}, "packing.target_utilisation: Input should be greater than"),
        ({"target_utilisation": 1e-300}, "packing.target_utilisation: Input should be greater"),
        ({"capacity_bytes_per_s": 5e-324}, "packing.capacity: Input should be greater than or"),
        ({"topics_include": ["a"]}, "unknown setting topics_include"),
    ],
)
def test_what_the_file_could_not_have_is_refused(asked: dict[str, Any], why: str) -> None:
    """A changed setting is checked by the same catalogue, with the same message."""
    with pytest.raises(SettingsError, match=why):
        with_overrides(Settings(), asked)


def test_no_accepted_capacity_rounds_to_none() -> None:
    """The status, which asks the packing's question, can be written with the smallest figures."""
    teller = after(*TWO_CONSUMERS)
    asked = "capacity_bytes_per_s=1 target_utilisation=0.01"
    assert "  > answer a: done" in teller.tell(f"request a: settings {asked}")
    assert isinstance(teller.state, State)
    assert snapshot(teller.state, 0, is_degraded=False)["question"] is not None
    assert "  > answer b: refused" in teller.tell("request b: settings capacity_bytes_per_s=1e-320")


def test_a_reported_capacity_that_no_settings_file_could_have_is_ignored() -> None:
    """It would round to no capacity; the one before, or that of the settings, stays."""
    teller = after("settings capacity=auto target_utilisation=0.01", *TWO_CONSUMERS)
    owned = "orders-0@1.1 orders-1@1.2"
    teller.tell(f"consumer 1 reports {owned}, capacity_log_bytes_per_s=5e-324")
    assert isinstance(teller.state, State)
    assert teller.state.consumers[ConsumerId(1)].capacity_by_topic == {}
    assert snapshot(teller.state, 0, is_degraded=False)["question"] is not None
    teller.tell(f"consumer 1 reports {owned}, capacity_log_bytes_per_s=70")
    assert teller.state.consumers[ConsumerId(1)].capacity_by_topic == {"orders": 70}


def test_a_request_changes_options_in_their_own_units() -> None:
    """Bytes per second, milliseconds, a name in any case, and counts."""
    request = ChangeSettings(
        request_id="r",
        capacity_bytes_per_s=1.5e6,
        target_utilisation=0.5,
        algorithm="chain",
        algorithm_knob=0.1,
        consumers_min=2,
        consumers_max=200,
        spare_consumers=4,
        catch_up_ms=1_500,
    )
    changed = with_overrides(Settings(), overrides_of(request))
    packing, own = changed.packing, changed.controller
    assert (packing.capacity, packing.target_utilisation, packing.knob) == (1.5e6, 0.5, 0.1)
    assert packing.algorithm == "CHAIN"
    assert (own.consumers_min, own.consumers_max, own.spare_consumers) == (2, 200, 4)
    assert own.catch_up == 1.5
    assert own.silence == Settings().controller.silence


@pytest.mark.parametrize(
    ("first", "second", "outcome"),
    [
        ("algorithm=CHAIN@0.3", "algorithm_knob=0.9", "refused"),
        ("algorithm=CHAIN@0.3", "algorithm_knob=0.5", "refused"),
        ("algorithm=CHAIN@0.3", "algorithm=CHAIN algorithm_knob=0.9", "done"),
        ("algorithm_knob=0.9", "algorithm=CHAIN@0.3", "refused"),
        ("algorithm_knob=0.9", "algorithm=CHAIN@0.3 algorithm_knob=0.5", "refused"),
        ("algorithm_knob=0.9", "algorithm=mwf", "refused"),
        ("algorithm_knob=0.9", "algorithm=mwf algorithm_knob=0.5", "done"),
        ("algorithm=mwf", "algorithm_knob=0.5", "refused"),
    ],
)
def test_a_knob_without_effect_is_refused(first: str, second: str, outcome: str) -> None:
    """A request for a knob is done only if the algorithm changes with it."""
    teller = after(*TWO_CONSUMERS)
    assert "  > answer a: done" in teller.tell(f"request a: settings {first}")
    assert isinstance(teller.state, State)
    before = teller.state.settings.algorithm
    assert f"  > answer b: {outcome}" in teller.tell(f"request b: settings {second}")
    assert (teller.state.settings.algorithm != before) is (outcome == "done")


def test_a_saved_knob_without_effect_is_dropped_and_the_algorithm_stays() -> None:
    """An older release accepted both in either order; the group keeps its algorithm."""
    overrides = {"algorithm_knob": 0.9, "algorithm": "mwf"}
    kept, dropped = valid_overrides(Settings(), overrides)
    assert kept == {"algorithm": "mwf"}
    assert set(dropped) == {"algorithm_knob"}


def test_an_unknown_option_cannot_be_changed() -> None:
    """A typing mistake in a simulation or a test does not pass as a change."""
    with pytest.raises(SettingsError, match=r"unknown setting packing\.consumers_max"):
        changed_settings(Settings(), {"packing.consumers_max": 3})


def test_saved_overrides_that_no_longer_make_sense_are_dropped() -> None:
    """An older release accepted them; the controller starts without them, and says so."""
    state = after(*TWO_CONSUMERS).state
    assert isinstance(state, State)
    overrides = {
        "consumers_min": 150,
        "algorithm": "nosuch",
        "algorithm_knob": 7.0,
        "topics_include": ["orders"],
        "consumers_max": 200,
        "spare_consumers": 2,
    }
    kept, dropped = valid_overrides(Settings(), overrides)
    assert kept == {"consumers_max": 200, "spare_consumers": 2, "consumers_min": 150}
    assert set(dropped) == {"algorithm", "algorithm_knob", "topics_include"}
    saved = Machine().begin(controller_epoch=1, settings=Settings(), now_ms=0)[0]
    saved = State(saved.phase, 1, 1, saved.chosen, saved.settings, overrides=overrides)
    begun, _ = Machine().begin(controller_epoch=2, settings=Settings(), now_ms=0, saved=saved)
    assert begun.overrides == kept
    assert begun.settings.consumers_max == 200
    said = [d.explanation for d in begun.history if d.code is Code.SETTING_DROPPED]
    assert said[1].startswith("algorithm_knob from an earlier request is no longer valid: ")
    assert len(said) == 3


def test_a_maximum_that_is_below_the_minimum_is_a_settings_error() -> None:
    """In the file as well, and with its name."""
    flags = {"controller.consumers_min": "3", "controller.consumers_max": "2"}
    with pytest.raises(SettingsError, match="controller: consumers_min 3 is above consumers_max 2"):
        load_settings(flags=flags, environment={})
