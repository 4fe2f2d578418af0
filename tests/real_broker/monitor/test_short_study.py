"""A short form of the study on a real broker: the recording, the scores and the files."""

from pathlib import Path

import pytest

from penstock.laboratory.studies.monitor.pictures import draw_all
from penstock.laboratory.studies.monitor.record import record
from penstock.laboratory.studies.monitor.scenarios import Lane, MonitorRun
from penstock.laboratory.studies.monitor.scores import PlateauScore
from penstock.laboratory.studies.monitor.tables import lane_scores, write_csv

pytestmark = [pytest.mark.broker, pytest.mark.slow]


# On a busy machine the producer may hold no speed, and the monitor may look too seldom: then there
# is no plateau to compare with.
TRIES = 5
HELD_WITHIN = 0.1
READINGS_MIN = 6


def is_void(plateau: PlateauScore | None) -> bool:
    return (
        plateau is None or plateau.produced_spread >= HELD_WITHIN or plateau.readings < READINGS_MIN
    )


@pytest.mark.timeout(360)
def test_producer_and_monitor_agree(broker_jars: None, tmp_path: Path) -> None:
    """Twenty seconds with a step: the monitor's plateau is the producer's, compressed or not."""
    lanes = (
        Lane("constant", "200kB/s", step_at_s=0.0),
        Lane("step", "step:100kB/s,300kB/s,8s", step_at_s=8.0, partitions=2),
    )
    runs = (MonitorRun("short", 20.0, lanes, compression="zstd"),)
    said: list[str] = []
    for _ in range(TRIES):
        recording = record(runs, seed=1, monitor_options=(), say=said.append)
        assert [trace.lane for trace in recording.traces] == ["constant", "step", "step"]
        plateaus = [one.plateau for one in lane_scores(recording.traces)]
        if not any(is_void(one) for one in plateaus):
            break
    for plateau in plateaus:
        assert plateau is not None
        assert not is_void(plateau), f"no speed was held, or too little read: {plateau}"
        assert abs(plateau.plateau_error) < 0.1
    write_csv(recording.traces, tmp_path / "readings.csv")
    assert len((tmp_path / "readings.csv").read_text(encoding="utf-8").splitlines()) > 10
    for picture in draw_all(recording.traces, tmp_path):
        assert picture.stat().st_size > 10_000
    assert any("run 1 of 1" in text for text in said)
