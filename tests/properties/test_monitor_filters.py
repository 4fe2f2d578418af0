"""Properties of the speed filters on any intervals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from penstock.monitor.core.filters import Exponential, PlainWindow, SpeedFilter, StepAdapting, Table

# A busy machine must not fail the tests.
unhurried = settings(deadline=None)
FILTERS: list[SpeedFilter] = [
    PlainWindow(),
    Exponential(3.0),
    StepAdapting(2.0, tolerance=0.02, noise=4.0),
]
every_filter = pytest.mark.parametrize("speed_filter", FILTERS, ids=lambda one: type(one).__name__)
SHAPES = st.tuples(st.integers(1, 30), st.integers(1, 4))


@st.composite
def tables(draw: st.DrawFn) -> tuple[Table, Table]:
    """Durations and amounts; a duration of 0 means that the interval is unknown."""
    shape = draw(SHAPES)
    durations = draw(
        hnp.arrays(np.float64, shape, elements=st.just(0.0) | st.floats(0.015625, 5.0, width=32))
    )
    amounts = draw(hnp.arrays(np.float64, shape, elements=st.floats(0, 2**30, width=32)))
    return durations, np.where(durations > 0, amounts, 0.0)


@every_filter
@unhurried
@given(given_tables=tables())
def test_speeds_are_finite_and_in_range(
    speed_filter: SpeedFilter, given_tables: tuple[Table, Table]
) -> None:
    """A speed lies between the slowest and the fastest interval, or is unknown without any."""
    durations, amounts = given_tables
    speeds = speed_filter.speeds(durations, amounts)
    for column, speed in enumerate(speeds):
        known = durations[:, column] > 0
        if not known.any():
            assert np.isnan(speed)
            continue
        each = amounts[known, column] / durations[known, column]
        assert np.isfinite(speed)
        assert each.min() * (1 - 1e-9) - 1e-6 <= speed <= each.max() * (1 + 1e-9) + 1e-6


@every_filter
@unhurried
@given(
    durations=hnp.arrays(np.float64, SHAPES, elements=st.floats(0.01, 5.0)),
    speed=st.floats(0, 1e9),
)
def test_constant_in_gives_constant_out(
    speed_filter: SpeedFilter, durations: Table, speed: float
) -> None:
    """A constant speed stays constant, however uneven the intervals."""
    found = speed_filter.speeds(durations, durations * speed)
    assert found == pytest.approx(np.full(durations.shape[1], speed), rel=1e-9, abs=1e-6)


@every_filter
@unhurried
@given(given_tables=tables(), gap_at=st.integers(0, 29))
def test_unknown_intervals_have_no_effect(
    speed_filter: SpeedFilter, given_tables: tuple[Table, Table], gap_at: int
) -> None:
    """A round without an answer changes no speed of a longer window."""
    durations, amounts = given_tables
    nothing = np.zeros((1, durations.shape[1]))
    place = min(gap_at, len(durations))
    more_durations = np.concatenate([durations[:place], nothing, durations[place:]])
    more_amounts = np.concatenate([amounts[:place], nothing, amounts[place:]])
    before = speed_filter.speeds(durations, amounts)
    after = speed_filter.speeds(more_durations, more_amounts)
    assert (np.isnan(before) == np.isnan(after)).all()
    if isinstance(speed_filter, StepAdapting):
        return  # a gap hides the noise around it, so the averaged range may differ
    known = ~np.isnan(before)
    assert after[known] == pytest.approx(before[known], rel=1e-9, abs=1e-6)


@every_filter
@unhurried
@given(given_tables=tables(), chance=st.randoms(use_true_random=False))
def test_partitions_do_not_touch_each_other(
    speed_filter: SpeedFilter, given_tables: tuple[Table, Table], chance: np.random.Generator
) -> None:
    """A partition's speed does not depend on other partitions or their order."""
    durations, amounts = given_tables
    order = list(range(durations.shape[1]))
    chance.shuffle(order)
    together = speed_filter.speeds(durations, amounts)
    shuffled = speed_filter.speeds(durations[:, order], amounts[:, order])
    alone = [speed_filter.speeds(durations[:, [one]], amounts[:, [one]])[0] for one in order]
    assert shuffled == pytest.approx(together[order], rel=1e-9, nan_ok=True)
    assert shuffled == pytest.approx(np.array(alone), rel=1e-9, nan_ok=True)


@unhurried
@given(
    before=st.floats(0, 1e8),
    after=st.floats(1e3, 1e8),
    rounds_after=st.integers(3, 29),
    fell_at=st.floats(0, 1),
)
def test_a_step_is_followed_after_three_rounds(
    before: float, after: float, rounds_after: int, fell_at: float
) -> None:
    """Three intervals after a step of any height the old speed has no effect."""
    mixed = before * fell_at + after * (1 - fell_at)
    speeds = np.array([before] * 30 + [mixed] + [after] * rounds_after)[-30:, None]
    filtered = StepAdapting(2.0, tolerance=0.02, noise=4.0).speeds(np.ones_like(speeds), speeds)
    assert filtered[0] == pytest.approx(after, rel=0.021)


def test_noise_alone_is_no_step() -> None:
    """Noise of three percent does not count as a step."""
    chance = np.random.default_rng(7)
    amounts = 1e6 * (1 + 0.03 * chance.standard_normal((30, 2000)))
    speeds = StepAdapting(2.0, tolerance=0.02, noise=4.0).speeds(np.ones_like(amounts), amounts)
    plain = PlainWindow().speeds(np.ones_like(amounts), amounts)
    assert np.std(speeds) < 1.6 * np.std(plain)


def test_the_plain_window_is_late_and_the_adapting_one_is_not() -> None:
    """Five rounds after a doubling the plain window has followed a sixth of it, ours all."""
    amounts = np.array([1e6] * 25 + [2e6] * 5)[:, None]
    durations = np.ones_like(amounts)
    assert PlainWindow().speeds(durations, amounts)[0] == pytest.approx(1e6 * 35 / 30)
    adapting = StepAdapting(2.0, tolerance=0.02, noise=4.0).speeds(durations, amounts)
    assert adapting[0] == pytest.approx(2e6)
