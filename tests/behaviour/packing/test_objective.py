"""What follows from an objective."""

from dataclasses import replace
from itertools import pairwise

import pytest

from penstock.packing.objective import (
    CALM_RISE_MAX,
    UTILISATION_MAX,
    UTILISATION_MIN,
    DerivedOption,
    Measured,
    Objective,
    derived_options,
    reaction_s,
)


def derived(freshness_s: float, measured: Measured | None = None) -> dict[str, DerivedOption]:
    found = derived_options(Objective(freshness_s), measured)
    return {one.option: one for one in found}


def values(freshness_s: float, measured: Measured | None = None) -> dict[str, float]:
    return {name: one.value for name, one in derived(freshness_s, measured).items()}


def test_a_tighter_objective_is_never_slower_and_never_fuller() -> None:
    """Batches, waits and windows shrink with it; what keeps room grows."""
    objectives = (1.0, 2.0, 5.0, 10.0, 30.0, 120.0, 3600.0)
    found = [values(one, Measured(10.0, 0.1)) for one in objectives]
    for tight, loose in pairwise(found):
        for name in ("consumer.batch_time", "consumer.batch_period", "consumer.idle_wait"):
            assert tight[name] <= loose[name], name
        assert tight["packing.target_utilisation"] <= loose["packing.target_utilisation"]
        assert tight["packing.scale_down_period"] >= loose["packing.scale_down_period"]
        assert tight["controller.spare_consumers"] >= loose["controller.spare_consumers"]
        assert tight["controller.catch_up"] <= loose["controller.catch_up"]


def test_two_batches_fit_into_the_objective() -> None:
    """A record waits for the batch before its own, and for its own."""
    for freshness_s in (1.0, 2.0, 10.0, 120.0, 86_400.0):
        assert 2 * values(freshness_s)["consumer.batch_time"] < freshness_s


def test_head_room_follows_the_rises() -> None:
    """The further loads rise before a plan helps, the less a consumer is filled, within bounds."""
    filled = [
        values(5.0, Measured(rise=rise))["packing.target_utilisation"]
        for rise in (0.0, 0.2, 0.8, 3.0, 30.0)
    ]
    assert filled == sorted(filled, reverse=True)
    assert filled[0] == UTILISATION_MAX
    assert filled[-1] == UTILISATION_MIN


def test_what_is_not_measured_is_not_trusted() -> None:
    """Without rises no group is filled as far as a calm one."""
    for freshness_s in (2.0, 10.0, 120.0):
        unknown = values(freshness_s)["packing.target_utilisation"]
        assert unknown < values(freshness_s, Measured(rise=0.0))["packing.target_utilisation"]


def test_a_peak_is_kept_for_a_short_time_where_records_may_wait() -> None:
    """Once it is known how far loads rise; before, and for a tight objective, for long."""
    name = "packing.scale_down_period"
    assert values(10.0)[name] == 300
    assert values(10.0, Measured(rise=0.1))[name] == 60
    assert values(5.0, Measured(rise=0.1))[name] == values(5.0)[name] == 300
    assert values(3_600.0)[name] == 60


def test_a_peak_of_a_calm_load_is_kept_for_a_short_time() -> None:
    """With a tight objective too: what is above the peak is within the head room."""
    name = "packing.scale_down_period"
    assert values(5.0, Measured(rise=0.04, rare_rise=0.04))[name] == 60
    assert values(5.0, Measured(rise=0.04, rare_rise=0.1))[name] == 300


def test_a_peak_that_comes_again_is_kept_until_the_next_one() -> None:
    """And a minute more, for every objective and every load; never for less than without it."""
    name = "packing.scale_down_period"
    for measured in (Measured(rise=0.1), Measured(rise=0.0, rare_rise=0.0)):
        job = replace(measured, peak_returns_s=300.0)
        for freshness_s in (2.0, 5.0, 10.0, 30.0, 120.0):
            assert values(freshness_s, job)[name] == 360
    assert values(10.0, Measured(rise=0.1, peak_returns_s=0.5))[name] == 60.5
    assert values(5.0, Measured(rise=0.1, peak_returns_s=240.0))[name] == 300
    found = derived(10.0, Measured(rise=0.1, peak_returns_s=300.0))[name]
    assert found.reason.startswith("the peak comes again within 5 min, so it is kept until then")
    found = derived(5.0, Measured(rise=0.1, peak_returns_s=240.0))[name]
    assert found.reason.startswith("growing again makes records late")


def test_slow_starts_need_a_spare() -> None:
    """An objective that can wait for two starts needs none; quick starts prove nothing."""
    assert values(30.0, Measured(start_s=40.0))["controller.spare_consumers"] == 1
    assert values(30.0, Measured(start_s=10.0))["controller.spare_consumers"] == 0
    assert values(10.0, Measured(start_s=0.5))["controller.spare_consumers"] == 1
    reason = derived(30.0, Measured(start_s=40.0))["controller.spare_consumers"].reason
    assert reason == "a consumer starts in 40 s (measured), which the objective cannot wait for"


def test_a_calm_load_needs_no_spare() -> None:
    """Unless starts take minutes: one that is needed all the same would be late for so long."""
    name = "controller.spare_consumers"
    assert pytest.approx(0.05) == CALM_RISE_MAX
    calm = CALM_RISE_MAX
    assert values(5.0, Measured(rise=0.0, rare_rise=calm))[name] == 0
    assert values(5.0, Measured(start_s=60.0, rise=0.0, rare_rise=calm))[name] == 0
    assert values(5.0, Measured(start_s=61.0, rise=0.0, rare_rise=calm))[name] == 1
    assert values(5.0, Measured(rise=0.0, rare_rise=calm + 0.01))[name] == 1
    assert values(5.0, Measured(rise=0.0))[name] == 1
    assert values(20.0)[name] == 0  # just two starts
    reason = derived(5.0, Measured(rise=0.0, rare_rise=0.04))[name].reason
    assert reason.startswith("the load is calm: it rises by 4% of a consumer's capacity at most")


def test_half_of_the_share_that_may_be_late_is_for_rises() -> None:
    """A rise makes records late until a plan helps, and until the backlog is gone."""
    assert Objective(10.0, 0.99).rises_covered == pytest.approx(0.995)
    assert Objective(120.0, 0.99).rises_covered == pytest.approx(0.995)


def test_a_tight_objective_has_room_for_rarer_rises() -> None:
    """Until consumers have started, one rise makes late what is written in several objectives."""
    assert Objective(5.0, 0.99).rises_covered == pytest.approx(1 - 0.01 / (18 / 5))
    assert Objective(2.0, 0.99).rises_covered == pytest.approx(1 - 0.01 / (17.6 / 2))


def test_every_value_has_a_reason() -> None:
    """In a sentence with its figures."""
    for one in derived(10.0, Measured(10.0, 0.1)).values():
        assert len(one.reason.split()) > 4, one.option
    reason = derived(10.0, Measured(rise=0.1))["packing.target_utilisation"].reason
    assert "rises by 10% of its capacity in the 10 s until a plan helps" in reason
    assert reaction_s(Objective(10.0)) == pytest.approx(10.0)
