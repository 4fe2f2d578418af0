"""The scores of the monitor study, on generated traces with known results."""

import struct
from pathlib import Path

import numpy as np
import pytest

from penstock.laboratory.studies.monitor.filters_compared import compare
from penstock.laboratory.studies.monitor.scenarios import runs
from penstock.laboratory.studies.monitor.scores import follow_score, plateau_score
from penstock.laboratory.studies.monitor.stored_bytes import StoredBytes, stored_bytes
from penstock.laboratory.studies.monitor.tables import lane_scores, write_csv
from penstock.laboratory.studies.monitor.trace import (
    Curve,
    Published,
    Trace,
    filtered_curve,
    published_curve,
)
from penstock.monitor.core.filters import PlainWindow, StepAdapting

BEFORE, AFTER, STEP_AT_S, SECONDS = 100.0, 300.0, 20.0, 60.0


def produced(at_s: float) -> float:
    """Records produced by then; each counts as one byte here."""
    return BEFORE * min(at_s, STEP_AT_S) + AFTER * max(0.0, at_s - STEP_AT_S)


def trace(
    *, late_s: float = 0.0, factor: float = 1.0, step_at_s: float | None = STEP_AT_S
) -> Trace:
    """A trace of a monitor that is this much too late and too high."""
    times = np.arange(0, SECONDS + 0.01, 0.1).tolist()
    published = []
    for at_s in range(2, int(SECONDS) + 1):
        then_s = max(1.0, at_s - late_s)
        speed = factor * (produced(then_s) - produced(then_s - 1))
        published.append(Published(float(at_s), float(at_s), speed, speed))
    return Trace(
        run="made-up",
        lane="step",
        partition=0,
        step_at_s=step_at_s,
        seconds=SECONDS,
        acknowledged=tuple((at_s, round(produced(at_s))) for at_s in times),
        stored=StoredBytes((10**6,), (10**6,)),
        published=tuple(published),
    )


def test_a_perfect_monitor_scores_perfectly() -> None:
    """A perfect monitor has no error, no spread, and settles at the first new reading."""
    one = trace()
    score = plateau_score(one, published_curve(one))
    assert score.settling_s == pytest.approx(1.0)
    assert score.plateau_error == pytest.approx(0.0, abs=1e-6)
    assert score.spread == pytest.approx(0.0, abs=1e-6)
    assert not score.is_disturbed


def test_lateness_and_bias_are_seen() -> None:
    """A delay of four seconds and an error of three percent are measured as such."""
    one = trace(late_s=4.0, factor=1.03)
    score = plateau_score(one, published_curve(one))
    assert score.settling_s == pytest.approx(5.0)
    assert score.plateau_error == pytest.approx(0.03, abs=1e-3)


def test_settling_means_to_stay() -> None:
    """Leaving the tolerance resets the settling time; leaving it at the end means never."""
    one = trace()
    curve = published_curve(one)
    left_again = list(curve.bytes_per_s)
    left_again[30] = 2 * AFTER
    later = plateau_score(one, Curve(curve.at_s, tuple(left_again)))
    assert later.settling_s == pytest.approx(curve.at_s[31] - STEP_AT_S)
    left_again[-2] = 2 * AFTER
    assert plateau_score(one, Curve(curve.at_s, tuple(left_again))).settling_s is None


def test_a_disturbed_producer_is_marked() -> None:
    """A producer that stalls on the plateau is marked as disturbed."""
    one = trace()
    stalled = tuple((at_s, min(n, 9000) if at_s < 50 else n) for at_s, n in one.acknowledged)
    disturbed = Trace(one.run, one.lane, 0, STEP_AT_S, SECONDS, stalled, one.stored, one.published)
    assert plateau_score(disturbed, published_curve(disturbed)).is_disturbed
    (score,) = lane_scores([disturbed])
    assert score.meets_targets is None


def test_delay_is_found() -> None:
    """A delay of three seconds is found, plus half a second of averaging."""
    one = trace(late_s=3.0, step_at_s=None)
    assert follow_score(one, published_curve(one)).delay_s == pytest.approx(3.5, abs=0.3)


def test_filters_are_compared_on_the_same_intervals() -> None:
    """The 30 s window is as late as published; the step-adapting filter is not."""
    one = trace()
    plain = plateau_score(one, filtered_curve(one, PlainWindow(), window_s=30.0))
    adapting = StepAdapting(3.0, tolerance=0.03, noise=4.0)
    ours = plateau_score(one, filtered_curve(one, adapting, window_s=30.0))
    assert plain.settling_s is not None
    assert plain.settling_s > 25
    assert ours.settling_s is not None
    assert ours.settling_s <= 4
    names = [score.name for score in compare([one])]
    assert len(names) == len(set(names))


def test_bytes_are_read_from_segments(tmp_path: Path) -> None:
    """Bytes are summed over the batches of two segments, and interpolated within a batch."""

    def batch(base: int, records: int, size: int) -> bytes:
        header = struct.pack(">qiibIhi", base, size - 12, 0, 2, 0, 0, records - 1)
        return header + b"x" * (size - len(header))

    (tmp_path / "00000000000000000000.log").write_bytes(batch(0, 10, 1000) + batch(10, 5, 200))
    (tmp_path / "00000000000000000015.log").write_bytes(batch(15, 5, 600) + b"\0" * 40)
    stored = stored_bytes(tmp_path)
    assert stored == StoredBytes((10, 15, 20), (1000, 1200, 1800))
    found = stored.up_to(np.array([0.0, 5.0, 10.0, 15.0, 20.0, 99.0])).tolist()
    assert found == [0, 500, 1000, 1200, 1800, 1800]


def test_every_kind_of_load_is_in_the_study() -> None:
    """The study has step, ramp, sine, random, burst, many partitions and compressed loads."""
    names = " ".join(lane.name for run in runs(quick=False) for lane in run.lanes)
    for kind in ("constant", "step", "ramp", "sine", "random", "burst", "many", "compressed"):
        assert kind in names
    assert {run.compression for run in runs(quick=False)} == {"none", "zstd"}


def test_readings_are_written_down(tmp_path: Path) -> None:
    """The CSV has one line per reading, with the producer's speed."""
    write_csv([trace()], tmp_path / "readings.csv")
    lines = (tmp_path / "readings.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "run,lane,partition,at_s,produced,raw,published"
    assert lines[-1] == "made-up,step,0,60.00,300,300,300"
