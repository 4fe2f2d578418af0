"""What follows from an objective."""

from itertools import pairwise

import pytest

from penstock.packing.objective import (
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
    assert values(10.0, Measured(rise=0.1))[name] == 90
    assert values(5.0, Measured(rise=0.1))[name] == values(5.0)[name] == 300
    assert values(3_600.0)[name] == 90


def test_slow_starts_need_a_spare() -> None:
    """An objective that can wait for two starts needs none; quick starts prove nothing."""
    assert values(30.0, Measured(start_s=40.0))["controller.spare_consumers"] == 1
    assert values(30.0, Measured(start_s=10.0))["controller.spare_consumers"] == 0
    assert values(10.0, Measured(start_s=0.5))["controller.spare_consumers"] == 1
    reason = derived(30.0, Measured(start_s=40.0))["controller.spare_consumers"].reason
    assert reason == "a consumer starts in 40 s (measured), which the objective cannot wait for"


def test_every_value_has_a_reason() -> None:
    """In a sentence with its figures."""
    for one in derived(10.0, Measured(10.0, 0.1)).values():
        assert len(one.reason.split()) > 4, one.option
    reason = derived(10.0, Measured(rise=0.1))["packing.target_utilisation"].reason
    assert "rises by 10% of its capacity in the 10 s until a plan helps" in reason
    assert reaction_s(Objective(10.0)) == pytest.approx(10.0)
