"""`penstock recommend`: watches your load, then says what group it needs. It touches nothing.

It only reads write speeds from the brokers, and leads an imaginary group by the controller's own
settings, trigger, trend and packing. No topic is created, no message sent, no consumer started.
"""

import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Annotated, Any

import typer

from penstock.cli.console import OUTPUT_OPTION, OutputFormat, print_data, say
from penstock.cli.group_status import NoStatusError, ledger_offsets, read_status
from penstock.cli.known_capacities import KnownCapacities, known_capacities
from penstock.cli.objective_needs import ObjectiveGroups
from penstock.cli.options import (
    BootstrapServer,
    Calibrated,
    Overrides,
    SettingsFile,
    calibrated_topics,
    effective_settings,
)
from penstock.cli.recommendation import recommendation
from penstock.cli.recorded_speeds import Record
from penstock.cli.report_html import report_html
from penstock.cli.speeds import duration_of
from penstock.cli.told_progress import ToldProgress
from penstock.cli.watched import Watched
from penstock.controller.core.settings import ControllerSettings, controller_settings
from penstock.errors import PenstockError, UsageError
from penstock.kafka_io.broker_questions import BrokerQuestions
from penstock.model import TopicPartition
from penstock.model.sentences import age_text, counted, duration_text
from penstock.monitor.core.measurement import measured_rows
from penstock.monitor.included_topics import require_included
from penstock.monitor.process import SpeedMeasuring
from penstock.settings import Settings
from penstock.settings.units import format_duration

# How often a calm group is reported.
REPORT_EVERY_MS = 10_000
# What takes longer is told.
TOLD_AFTER_S = 2.0


def recommend(
    watch_for: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="How long to watch, for instance 10m.")
    ] = "2m",
    record: Annotated[
        Path | None,
        typer.Option(metavar="FILE.csv", help="Also write the speeds; `simulate` reads them."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.html",
            help="Also write the recommendation as one page with pictures, for any browser.",
        ),
    ] = None,
    calibrated: Calibrated = None,
    settings: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Watch the write speeds for a while, then say how many consumers they need, and why.

    A safe first step: nothing is created, sent or started. It leads an imaginary group by the
    controller's own rules, so it also says how often such a group would move partitions. Progress
    goes to stderr, the recommendation to stdout. Ctrl-C ends it early, with what was seen.

    What one consumer carries decides all figures. Where a group of these settings has run, it is
    what that has measured; else what `--calibrated` says; else it is assumed, and the
    recommendation says so.

    Examples:
    `penstock recommend --for 10m --record speeds.csv`

    `penstock recommend --for 1h --report needed.html --set objective.freshness=30s`

    `penstock recommend --calibrated orders=20MB/s --calibrated clicks=800kB/s`

    `penstock simulate --stream speeds.csv --interval 1s --trigger --algorithm all`

    """
    loaded = effective_settings(settings, overrides, bootstrap_server)
    watch_s = _checked_arguments(watch_for, {"--record": record, "--report": report})
    given, recorded = calibrated_topics(calibrated), Record(record)
    stop = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    chosen = controller_settings(loaded.settings)
    require_included(loaded.settings)
    known = _known_to_carry(loaded.settings, chosen, given)
    groups = ObjectiveGroups(loaded.settings, known)
    with recorded:
        watched = _watch(loaded.settings, groups, watch_s, recorded, stop)
    if not watched.measurements:
        raise PenstockError(
            f"No speed is known after {duration_text(round(watched.seconds))}.",
            remedy="Watch longer (--for 1m), or run `penstock doctor`; `monitor.include` says "
            "which topics count.",
        )
    _tell_unseen(given, watched)
    if record is not None and recorded.fault is None:
        period = format_duration(loaded.settings.monitor.period)
        say(f"Wrote {record}: `penstock simulate --stream {record} --interval {period} --trigger`.")
    with ToldProgress(first_after_s=TOLD_AFTER_S) as tell:
        tell.if_long("reading what the lake has")
        ledger = _ledger(loaded.settings, watched.rows)
        tell.if_long("counting the consumers of a plain group")
        chosen = groups.chosen
        found = recommendation(watched, chosen, ledger=ledger, needs=groups.needs(), known=known)
    if report is not None:
        _write(report, report_html(found, chosen, datetime.now(UTC)))
        say(f"Wrote {report}.")
    if output is OutputFormat.TABLE:
        typer.echo(found.text(chosen))
    else:
        print_data(asdict(found), output)
    if recorded.fault is not None:
        raise recorded.fault


def _tell_unseen(given: Mapping[str, float], watched: Watched) -> None:
    for topic in sorted(given.keys() - watched.written_by_topic.keys()):
        say(f"--calibrated {topic}: no such topic was seen.")


def _checked_arguments(watch_for: str, files: Mapping[str, Path | None]) -> float:
    """How long to watch."""
    watch_s = duration_of("--for", watch_for)
    if watch_s <= 0:
        raise UsageError("--for must be longer than 0s.")
    for flag, file in files.items():
        if file is not None and not file.absolute().parent.is_dir():
            raise UsageError(f"{flag}: there is no directory {file.absolute().parent}.")
    return watch_s


def _watch(
    settings: Settings, groups: ObjectiveGroups, watch_s: float, recorded: Record, stop: Event
) -> Watched:
    watched = Watched()
    how_long = duration_text(watch_s)
    say(f"Watching for {how_long}: nothing is created, sent or started. Ctrl-C ends it early.")
    began_s = time.monotonic()
    reported_ms: int | None = None
    with closing(BrokerQuestions(settings.kafka)) as questions:
        measuring = SpeedMeasuring(settings, questions, tells_partitions=False)
        while watched.seconds < watch_s and not stop.wait(settings.monitor.period):
            watched.seconds = time.monotonic() - began_s
            watched.rows = _rows(measuring) or watched.rows
            speeds = _known(watched.rows)
            if not speeds:
                continue
            recorded.add(speeds)
            now_ms = time.monotonic_ns() // 1_000_000
            text, is_change = groups.take(watched, speeds, now_ms)
            if is_change or reported_ms is None or now_ms - reported_ms >= REPORT_EVERY_MS:
                reported_ms = now_ms
                left_s = max(0.0, watch_s - watched.seconds)
                say(f"{text} {duration_text(round(left_s))} left.")
    return watched


def _known_to_carry(
    settings: Settings, chosen: ControllerSettings, calibrated: dict[str, float]
) -> KnownCapacities:
    """What one consumer carries: as it is set, as this group has measured it, as it is given."""
    if not chosen.capacity_is_measured:
        if calibrated:
            say("--calibrated has no effect: packing.capacity is set, and wins.")
        return known_capacities(chosen)
    status: dict[str, Any] | None = None
    with ToldProgress(first_after_s=TOLD_AFTER_S) as tell:
        tell.if_long("asking whether a group runs")
        try:
            status = read_status(settings)
        except NoStatusError:
            pass  # nothing runs yet: that is why people ask
        except PenstockError as error:
            say(f"Whether a group has measured what one consumer carries is not known: {error}")
    known = known_capacities(chosen, status, calibrated)
    if status is not None and (measured := known_capacities(chosen, status).by_topic):
        topics, age = counted(len(measured), "topic"), age_text(status["age_s"])
        say(f"Group {settings.lake.group} said {age} ago what one consumer carries of {topics}.")
    return known


def _write(file: Path, page: str) -> None:
    try:
        file.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--report: cannot write {file}: {error.strerror}.") from error


def _rows(measuring: SpeedMeasuring) -> list[dict[str, Any]]:
    found = measuring.run_round()
    return [] if found is None else measured_rows(found)  # None: no broker has answered yet


def _ledger(
    settings: Settings, rows: Sequence[Mapping[str, Any]]
) -> dict[TopicPartition, int | None]:
    """How far the lake is, where this machine can read it; else the whole logs wait."""
    ids = {row["topic"]: row["topic_id"] for row in rows if row["topic_id"]}
    partitions = [TopicPartition(row["topic"], row["partition"]) for row in rows]
    try:
        return ledger_offsets(settings.lake, partitions, ids)
    except PenstockError as error:
        say(f"What the lake has is not known here, so all records count as waiting: {error}")
        return {}


def _known(rows: Sequence[Mapping[str, Any]]) -> dict[TopicPartition, float]:
    """Partitions whose speed is not known yet are left out: no recommendation rests on a guess."""
    return {
        TopicPartition(row["topic"], row["partition"]): row["write_speed_bytes_per_s"]
        for row in rows
        if row["write_speed_bytes_per_s"] is not None
    }
