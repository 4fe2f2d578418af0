"""Whether the peak of a group comes again, and after how long."""

from penstock.packing.peaks import RETURNS_MS_MAX, Peaks, note


def seen(*loads: float, every_ms: int = 30_000) -> Peaks:
    peaks = Peaks()
    for number, load in enumerate(loads):
        peaks = note(peaks, {"t": load}, number * every_ms)
    return peaks


def job(runs: int, apart: int) -> tuple[float, ...]:
    """Peaks of half a minute, with so many quiet half minutes between them."""
    return (*((100.0, *(40.0,) * apart) * runs), 100.0)


def test_a_job_of_every_few_minutes_comes_again() -> None:
    """After the longest break between two peaks, and a piece more: peaks are in the middle."""
    assert seen(*job(3, apart=5)).return_after_s() == 180
    uneven = (*job(2, apart=3), *(40.0,) * 7, *job(2, apart=2))
    assert seen(*uneven).return_after_s() == 240


def test_what_came_twice_may_be_chance() -> None:
    """Three returns are enough, nothing and two are not."""
    assert Peaks().return_after_s() is None
    assert seen(*(100.0,) * 40).return_after_s() is None
    assert seen(*job(2, apart=5)).return_after_s() is None
    assert seen(*job(2, apart=5), 40.0).return_after_s() is None
    assert seen(0.0, 0.0).return_after_s() is None


def test_the_time_before_the_first_peak_does_not_count() -> None:
    """A job that began lately is a job."""
    assert seen(*(40.0,) * 30, *job(3, apart=5)).return_after_s() == 180


def test_a_peak_that_stays_away_is_not_waited_for() -> None:
    """A job that has ended, and one that is too seldom."""
    longest = RETURNS_MS_MAX // 30_000 - 1
    assert seen(*job(3, apart=longest)).return_after_s() == RETURNS_MS_MAX / 1_000
    assert seen(*job(3, apart=longest + 1)).return_after_s() is None
    assert seen(*job(3, apart=5), *(40.0,) * longest).return_after_s() is not None
    assert seen(*job(3, apart=5), *(40.0,) * (longest + 1)).return_after_s() is None


def test_peaks_of_different_heights_are_no_job() -> None:
    """Nobody knows which comes next; a tenth of difference is none."""
    different = [100.0, 40.0, 85.0, 40.0, 60.0, 40.0, 85.0, 40.0, 88.0, 40.0, 80.0, 40.0]
    assert seen(*different).return_after_s() is None
    assert seen(*(max(90.0, one) if one > 40 else one for one in different), 95.0).return_after_s()


def test_a_load_that_wavers_has_no_peaks() -> None:
    """Between two peaks it falls by a quarter at least, at some time."""
    assert seen(*(100.0, 80.0, 76.0) * 6, 100.0).return_after_s() is None
    assert seen(*(100.0, 80.0, 74.0) * 6, 100.0).return_after_s() == 90


def test_the_highest_of_each_half_minute_is_kept_for_an_hour() -> None:
    """A second without the peak does not hide it, and what is older is forgotten."""
    assert seen(1.0, 9.0, 2.0, every_ms=10_000) == Peaks(0, ({"t": 9.0},))
    assert seen(1.0, 9.0, 2.0, 3.0, every_ms=10_000) == Peaks(30_000, ({"t": 9.0}, {"t": 3.0}))
    many = seen(*(float(number) for number in range(200)))
    assert [one["t"] for one in many.highest_bytes_per_s] == [*range(80, 200)]


def test_a_time_without_measurements_is_as_the_last_one_was() -> None:
    """So an outage of the monitor is no break; a clock that is set back changes nothing."""
    first = note(Peaks(), {"t": 5.0}, 0)
    after = note(first, {"t": 7.0}, 95_000)
    assert after.began_ms == 90_000
    assert [one["t"] for one in after.highest_bytes_per_s] == [5.0, 5.0, 5.0, 7.0]
    assert note(first, {"t": 4.0}, -5_000) is first
    assert len(note(first, {"t": 7.0}, 10**12).highest_bytes_per_s) == 120


def test_a_small_topic_that_is_dear_makes_a_peak() -> None:
    """Its job is a twentieth of the bytes, and most of the load."""
    peaks = Peaks()
    for number in range(24):
        is_run = number % 6 == 0
        peaks = note(peaks, {"plain": 100.0}, number * 30_000)
        if is_run:
            peaks = note(peaks, {"plain": 100.0, "slow": 5.0}, number * 30_000)
    assert peaks.return_after_s() is None
    assert peaks.return_after_s({"slow": 20.0}) == 180
