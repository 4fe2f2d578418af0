"""Runs the study's load on a real broker with a real monitor, and records both.

The monitor is a `penstock monitor` process, and its messages are read from its topic, as a
controller reads them. The producer's acknowledgements are recorded ten times a second. Both run on
one machine, so they share the wall clock.
"""

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

from penstock.errors import PenstockError
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.measurement_topic import MeasurementReader
from penstock.laboratory.broker import EmbeddedKafka
from penstock.laboratory.load import LoadGenerator, LoadResult, Target, parse_shape
from penstock.laboratory.studies.monitor.scenarios import Lane, MonitorRun
from penstock.laboratory.studies.monitor.stored_bytes import stored_bytes
from penstock.laboratory.studies.monitor.trace import Published, Trace
from penstock.messages import PartitionSpeed, WholeMeasurement
from penstock.model import TopicPartition
from penstock.processes import start_child, stop_all
from penstock.settings.sections import TopicsSettings
from penstock.topics import control_topics

_NOTE_EVERY_S = 0.1
_FIRST_MEASUREMENT_S = 30.0
_STOP_S = 10.0


@dataclass(slots=True)
class _Notes:
    """What both sides reported during a run; filled by threads, read after they end."""

    acknowledged: dict[TopicPartition, list[tuple[float, int]]] = field(default_factory=dict)
    measurements: list[WholeMeasurement] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Recording:
    traces: tuple[Trace, ...]
    loads: Mapping[str, LoadResult]


def record(
    runs: tuple[MonitorRun, ...],
    *,
    seed: int,
    monitor_options: tuple[str, ...],
    say: Callable[[str], None],
) -> Recording:
    """Start a broker and a monitor, record every run, and stop everything."""
    topics = TopicsSettings()
    with EmbeddedKafka(on_progress=say) as kafka:
        administration = Administration(kafka.settings)
        for topic in control_topics(topics):
            administration.create_topic(
                topic.name, partitions=topic.partitions, settings=topic.settings
            )
        for run in runs:
            for lane in run.lanes:
                administration.create_topic(lane.name, partitions=lane.partitions)
        log_file = Path(kafka.directory) / "monitor.log"
        command = [sys.executable, "-m", "penstock", "monitor"]
        command += ["--bootstrap-server", kafka.bootstrap_servers]
        for option in monitor_options:
            command += ["--set", option]
        monitor = start_child(command, log_file=log_file)
        try:
            _await_first(kafka, topics, log_file)
            traces: list[Trace] = []
            loads = {}
            for number, run in enumerate(runs, start=1):
                say(f"run {number} of {len(runs)}: {run.name}, {run.seconds:.0f} s")
                found, loads[run.name] = _record_run(kafka, topics, run, seed)
                traces += found
                say(f"  reached {loads[run.name].bytes_per_s / 1e6:.2f} MB/s")
        finally:
            stop_all([monitor], grace_s=_STOP_S)
    return Recording(tuple(traces), loads)


def _await_first(kafka: EmbeddedKafka, topics: TopicsSettings, log_file: Path) -> None:
    reader = MeasurementReader(kafka.settings, topics)
    try:
        if reader.newest(wait_s=_FIRST_MEASUREMENT_S) is None:
            text = log_file.read_text(encoding="utf-8", errors="replace")
            raise PenstockError(f"The monitor published nothing. Its log:\n{text[-2000:]}")
    finally:
        reader.close()


def _record_run(
    kafka: EmbeddedKafka, topics: TopicsSettings, run: MonitorRun, seed: int
) -> tuple[list[Trace], LoadResult]:
    targets = [
        Target(
            TopicPartition(lane.name, number),
            parse_shape(lane.shape, seed=f"{seed}/{lane.name}/{number}"),
        )
        for lane in run.lanes
        for number in range(lane.partitions)
    ]
    generator = LoadGenerator(
        kafka.settings,
        targets,
        run_id=run.name,
        form=run.form,
        seed=seed,
        compression=run.compression,
    )
    notes, stop = _Notes(), Event()
    reader = MeasurementReader(kafka.settings, topics)
    listeners = [
        Thread(target=_note_acknowledged, args=(generator, notes, stop)),
        Thread(target=_note_measurements, args=(reader, notes, stop)),
    ]
    begun_at_s = time.time()
    for listener in listeners:
        listener.start()
    try:
        result = generator.run(run.seconds)
    finally:
        stop.set()
        for listener in listeners:
            listener.join()
        reader.close()
    return [
        _trace(kafka, run, lane, number, begun_at_s, notes)
        for lane in run.lanes
        for number in range(lane.partitions)
    ], result


def _note_acknowledged(generator: LoadGenerator, notes: _Notes, stop: Event) -> None:
    while not stop.wait(_NOTE_EVERY_S):
        now_s = time.time()
        for partition, (records, _) in generator.acknowledged().items():
            notes.acknowledged.setdefault(partition, []).append((now_s, records))


def _note_measurements(reader: MeasurementReader, notes: _Notes, stop: Event) -> None:
    seen = None
    while not stop.is_set():
        newest = reader.newest(wait_s=0.5)
        if newest is not None and newest.sequence != seen:
            seen = newest.sequence
            notes.measurements.append(newest)


def _trace(
    kafka: EmbeddedKafka, run: MonitorRun, lane: Lane, number: int, begun_at_s: float, notes: _Notes
) -> Trace:
    partition = TopicPartition(lane.name, number)
    node = min(kafka.nodes)
    directory = Path(kafka.directory) / f"node-{node}" / "log" / str(partition)
    published = [
        _published(measurement, row, begun_at_s)
        for measurement in notes.measurements
        for row in measurement.partitions
        if row.topic == lane.name and row.partition == number
    ]
    return Trace(
        run=run.name,
        lane=lane.name,
        partition=number,
        step_at_s=lane.step_at_s,
        seconds=run.seconds,
        acknowledged=tuple(
            (at_s - begun_at_s, records) for at_s, records in notes.acknowledged[partition]
        ),
        stored=stored_bytes(directory),
        published=tuple(published),
    )


def _published(measurement: WholeMeasurement, row: PartitionSpeed, begun_at_s: float) -> Published:
    at_s = measurement.published_at_unix_ms / 1000 - begun_at_s
    return Published(
        at_s=at_s,
        sampled_at_s=at_s - measurement.age_ms / 1000,
        raw_bytes_per_s=row.write_speed_raw_bytes_per_s,
        bytes_per_s=row.write_speed_bytes_per_s,
    )
