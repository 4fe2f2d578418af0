"""`penstock speeds`: how fast every partition is written, live like `top`, or once."""

import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Protocol

import typer
from rich.live import Live
from rich.table import Table

from penstock.cli.console import OUTPUT_OPTION, OutputFormat, data_console, print_data, say
from penstock.cli.options import BootstrapServer, Overrides, SettingsFile, effective_settings
from penstock.errors import PenstockError, SettingsError, UnreachableError, UsageError
from penstock.kafka_io.broker_questions import BrokerQuestions
from penstock.kafka_io.measurement_topic import MeasurementReader
from penstock.messages import PartitionSpeed
from penstock.model import TopicPartition
from penstock.model.sentences import counted, duration_text
from penstock.monitor.core.measurement import measured_rows
from penstock.monitor.included_topics import require_included
from penstock.monitor.process import SpeedMeasuring, stop_on_signals
from penstock.settings import Settings
from penstock.settings.units import parse_duration

# When the newest measurement is older than this many periods, no monitor is running.
_FRESH_PERIODS = 5
_SPARK = "▁▂▃▄▅▆▇█"
_SPARK_LENGTH = 16
_ROWS_BESIDE_TABLE = 6


class SortBy(StrEnum):
    """The columns one can sort by."""

    SPEED = "speed"
    RECORDS = "records"
    OFFSET = "offset"
    NAME = "name"


class From(StrEnum):
    """Who measures the speeds that are shown."""

    AUTO = "auto"
    MONITOR = "monitor"
    BROKERS = "brokers"


@dataclass(frozen=True, slots=True)
class Reading:
    """The speeds of all partitions at one moment."""

    measured_by: str
    age_s: float
    partitions: Sequence[PartitionSpeed]


class _Source(Protocol):
    def __call__(self) -> Reading: ...


def speeds(
    topic: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="Show only these topics (regular expression)."),
    ] = None,
    sort: Annotated[SortBy, typer.Option(help="Largest first; names ascending.")] = SortBy.SPEED,
    top: Annotated[
        int | None, typer.Option(min=1, help="Show only this many. Default: what fits.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Show one reading, then end.")] = False,
    measured_by: Annotated[
        From, typer.Option("--from", help="Read from a running monitor, or ask the brokers.")
    ] = From.AUTO,
    over: Annotated[str, typer.Option(help="Without a monitor: how long to measure.")] = "3s",
    settings: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Show how fast every partition is written, in bytes of log (after compression).

    A live table at a terminal; one reading with `--once`, with `-o json` or in a pipe. It reads
    what a running monitor publishes; without one it asks the brokers. `?` is unknown, not zero.

    Examples:
    `penstock speeds --sort records`

    `penstock speeds --topic 'orders.*' -o json`

    """
    loaded = effective_settings(settings, overrides, bootstrap_server).settings
    if topic:
        _check_patterns(topic)
        monitor = loaded.monitor.model_copy(update={"include": topic})
        loaded = loaded.model_copy(update={"monitor": monitor})
    over_s = duration_of("--over", over)
    console = data_console()
    live = output is OutputFormat.TABLE and console.is_terminal and not once
    require_included(loaded, named_by="--topic" if topic else "monitor.include")
    with _source(loaded, measured_by, over_s, live=live) as read:
        if live:
            _watch(read, topic, sort, top, loaded.monitor.period)
        else:
            reading = _chosen(read(), topic, sort, top)
            print_data(_as_data(reading), output, _table(reading, {}))


def duration_of(option: str, text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}.") from error


def measured_speeds(settings: Settings, over_s: float) -> dict[TopicPartition, float]:
    """The speeds that are known after measuring for so long here."""
    with closing(BrokerQuestions(settings.kafka)) as questions:
        measuring = SpeedMeasuring(settings, questions, tells_partitions=False)
        reading = _measured(measuring, settings.monitor.period, over_s)
    return {
        TopicPartition(row.topic, row.partition): row.write_speed_bytes_per_s
        for row in reading.partitions
        if row.write_speed_bytes_per_s is not None
    }


def _check_patterns(patterns: list[str]) -> None:
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise UsageError(f"--topic {pattern!r}: {error}.") from error


@contextmanager
def _source(
    settings: Settings, measured_by: From, over_s: float, *, live: bool
) -> Iterator[_Source]:
    """The running monitor if there is one, else this process."""
    if measured_by is not From.BROKERS:
        with closing(MeasurementReader(settings.kafka, settings.topics)) as reader:
            fresh_s = _FRESH_PERIODS * settings.monitor.period
            newest = _newest(reader, required=measured_by is From.MONITOR)
            if newest is not None and (newest.age_s <= fresh_s or measured_by is From.MONITOR):
                yield lambda: _newest(reader, required=True) or newest
                return
        if measured_by is From.MONITOR:
            raise PenstockError(
                "No monitor has published a measurement.", remedy="Start `penstock monitor`."
            )
        say("No monitor is running: measuring here.")
    with closing(BrokerQuestions(settings.kafka)) as questions:
        measuring = SpeedMeasuring(settings, questions, tells_partitions=False)
        yield lambda: _measured(measuring, settings.monitor.period, 0.0 if live else over_s)


def _newest(reader: MeasurementReader, *, required: bool) -> Reading | None:
    try:
        found = reader.newest()
    except (SettingsError, UnreachableError):
        raise  # this process would not be answered either
    except PenstockError:
        if required:
            raise
        return None  # without its topic there is no monitor
    if found is None:
        return None
    age_s = found.age_s(time.monotonic())
    return Reading("monitor", age_s, found.partitions)


def _measured(measuring: SpeedMeasuring, period_s: float, over_s: float) -> Reading:
    """Measure for `over_s`, or for one more round."""
    end_s = time.monotonic() + over_s
    found = measuring.run_round()
    while (left_s := end_s - time.monotonic()) > 0:
        say(f"measuring, {duration_text(round(left_s))} left")
        time.sleep(min(period_s, left_s))  # until the next round is due
        found = measuring.run_round() or found
    if found is None:
        raise UnreachableError(
            "No broker reported its partitions.", remedy="Run `penstock doctor`."
        )
    rows = [PartitionSpeed.model_validate(row) for row in measured_rows(found)]
    return Reading("speeds", found.newest_sample_age_s, rows)


def _chosen(reading: Reading, topics: list[str] | None, sort: SortBy, top: int | None) -> Reading:
    patterns = [re.compile(pattern) for pattern in topics or []]
    shown = [
        row
        for row in reading.partitions
        if not patterns or any(pattern.fullmatch(row.topic) for pattern in patterns)
    ]
    shown.sort(key=_sort_key(sort))
    return Reading(reading.measured_by, reading.age_s, shown[:top])


def _sort_key(sort: SortBy) -> Callable[[PartitionSpeed], tuple[float, str, int]]:
    def value(row: PartitionSpeed) -> float | None:
        return {
            SortBy.SPEED: row.write_speed_bytes_per_s,
            SortBy.RECORDS: row.records_per_s,
            SortBy.OFFSET: row.end_offset,
            SortBy.NAME: 0.0,
        }[sort]

    def key(row: PartitionSpeed) -> tuple[float, str, int]:
        found = value(row)
        return (1.0 if found is None else -float(found), row.topic, row.partition)

    return key


def _watch(
    read: _Source, topics: list[str] | None, sort: SortBy, top: int | None, period_s: float
) -> None:
    stop = stop_on_signals()
    history: dict[tuple[str, int], deque[float]] = {}
    console = data_console()
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while not stop.is_set():
            rows_max = max(1, console.size.height - _ROWS_BESIDE_TABLE)
            everything = read()
            for row in everything.partitions:
                speed = row.write_speed_raw_bytes_per_s
                past = history.setdefault((row.topic, row.partition), deque(maxlen=_SPARK_LENGTH))
                past.append(0.0 if speed is None else speed)
            reading = _chosen(everything, topics, sort, min(top or rows_max, rows_max))
            live.update(_table(reading, history, total=len(everything.partitions)), refresh=True)
            stop.wait(period_s)


def _table(
    reading: Reading, history: dict[tuple[str, int], deque[float]], *, total: int | None = None
) -> Table:
    known = [row.write_speed_bytes_per_s for row in reading.partitions]
    summed = sum(speed for speed in known if speed is not None)
    table = Table(box=None, header_style="bold", title_justify="left")
    shown = counted(len(known) if total is None else total, "partition")
    if total is not None:
        shown = f"{len(known)} of {shown}"
    table.title = (
        f"{shown}, {_speed(summed)} in those shown, "
        f"measured by {reading.measured_by} {duration_text(reading.age_s)} ago"
    )
    for name in ("TOPIC", "PARTITION", "BYTES/S", "", "RECORDS/S", "END-OFFSET", "SOURCE"):
        table.add_column(name, justify="left" if name in {"TOPIC", "", "SOURCE"} else "right")
    for row in reading.partitions:
        past = history.get((row.topic, row.partition), ())
        table.add_row(
            row.topic,
            str(row.partition),
            _speed(row.write_speed_bytes_per_s),
            sparkline(tuple(past)),
            "?" if row.records_per_s is None else f"{row.records_per_s:,.0f}",
            "?" if row.end_offset is None else str(row.end_offset),
            row.source or "?",
        )
    return table


def sparkline(values: Sequence[float]) -> str:
    """Each value as a bar, scaled to the largest."""
    most = max(values, default=0.0)
    if most <= 0:
        return _SPARK[0] * len(values)
    steps = len(_SPARK) - 1
    return "".join(_SPARK[round(value / most * steps)] for value in values)


def _speed(bytes_per_s: float | None) -> str:
    if bytes_per_s is None:
        return "?"
    for unit, size in (("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)):
        if bytes_per_s >= size:
            return f"{bytes_per_s / size:.2f} {unit}"
    return f"{bytes_per_s:.0f} B/s"


def _as_data(reading: Reading) -> dict[str, Any]:
    return {
        "measured_by": reading.measured_by,
        "age_s": round(reading.age_s, 3),
        "partitions": [
            row.model_dump(mode="json", exclude_none=True) for row in reading.partitions
        ],
    }
