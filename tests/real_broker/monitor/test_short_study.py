"""A short form of the study on a real broker: the recording, the scores and the files."""

from pathlib import Path

import pytest

from penstock.laboratory.studies.monitor.pictures import draw_all
from penstock.laboratory.studies.monitor.record import record
from penstock.laboratory.studies.monitor.scenarios import Lane, MonitorRun
from penstock.laboratory.studies.monitor.tables import lane_scores, write_csv

pytestmark = [pytest.mark.broker, pytest.mark.slow]


@pytest.mark.timeout(180)
def test_producer_and_monitor_agree(broker_jars: None, tmp_path: Path) -> None:
    """Twenty seconds with a step: the monitor's plateau is the producer's, compressed or not."""
    lanes = (
        Lane("constant", "200kB/s", step_at_s=0.0),
        Lane("step", "step:100kB/s,300kB/s,8s", step_at_s=8.0, partitions=2),
    )
    runs = (MonitorRun("short", 20.0, lanes, compression="zstd"),)
    said: list[str] = []
    recording = record(runs, seed=1, monitor_options=(), say=said.append)
    assert [trace.lane for trace in recording.traces] == ["constant", "step", "step"]
    for score in lane_scores(recording.traces):
        assert score.plateau is not None
        assert score.plateau.readings > 5, "too little was read: the test is void"
        assert abs(score.plateau.plateau_error) < 0.1
    write_csv(recording.traces, tmp_path / "readings.csv")
    assert len((tmp_path / "readings.csv").read_text(encoding="utf-8").splitlines()) > 10
    for picture in draw_all(recording.traces, tmp_path):
        assert picture.stat().st_size > 10_000
    assert any("run 1 of 1" in text for text in said)
