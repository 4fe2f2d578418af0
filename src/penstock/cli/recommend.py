"""`penstock recommend`: watches your load, then says what group it needs. It touches nothing.

It only reads write speeds from the brokers, and leads an imaginary group by the controller's own
settings, trigger, trend and packing. No topic is created, no message sent, no consumer started.
"""

import csv
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Event
from typing import Annotated, Any

import typer

from penstock.cli.console import OUTPUT_OPTION, OutputFormat, print_data, say
from penstock.cli.group_status import ledger_offsets
from penstock.cli.options import BootstrapServer, Overrides, SettingsFile, effective_settings
from penstock.cli.recommendation import Watched, recommendation
from penstock.cli.speeds import duration_of
from penstock.controller.core.settings import ControllerSettings, controller_settings
from penstock.errors import PenstockError, UsageError
from penstock.kafka_io.broker_questions import BrokerQuestions
from penstock.model import Assignment, TopicPartition
from penstock.model.sentences import counted, duration_text, speed_text
from penstock.monitor.core.measurement import measured_rows
from penstock.monitor.included_topics import require_included
from penstock.monitor.process import SpeedMeasuring
from penstock.packing import PackingAlgorithm, PackingProblem, algorithm_named
from penstock.packing.lower_bound import consumers_at_least
from penstock.packing.same_size import same_size_or_larger
from penstock.packing.scores import moves_between
from penstock.packing.speed_memory import SpeedMemory, remember
from penstock.packing.trend import Trend, forecast, observe
from penstock.packing.trigger import (
    Reason,
    TriggerMemory,
    TriggerPolicy,
    after_repack,
    decide,
    load_of_assignment,
    problem_for,
)
from penstock.packing.worthwhile import is_worthwhile
from penstock.settings import Settings
from penstock.settings.units import format_duration

# How often a calm group is reported.
REPORT_EVERY_MS = 10_000


@dataclass(slots=True)
class ImaginaryGroup:
    """The group that the recommendation leads: what the controller would remember."""

    policy: TriggerPolicy
    algorithm: PackingAlgorithm
    assignment: Assignment = field(default_factory=Assignment)
    memory: TriggerMemory = field(default_factory=TriggerMemory)
    trend: Trend = field(default_factory=Trend)
    speeds: SpeedMemory = field(default_factory=SpeedMemory)

    def at_least(self, speeds: Mapping[TopicPartition, float]) -> int:
        """The fewest consumers that could carry these speeds, however they are packed."""
        group = load_of_assignment(self.policy, speeds, self.assignment, self.speeds)
        return consumers_at_least(problem_for(self.policy, group, Reason.OVER_CAPACITY, None))

    def measured(self, speeds: Mapping[TopicPartition, float], now_ms: int) -> tuple[str, bool]:
        """What the controller would do now, and whether that changes the assignment."""
        policy = self.policy
        self.speeds = remember(
            self.speeds, speeds, now_ms, policy.over_capacity_ms, policy.scale_down_period_ms
        )
        self.trend = observe(self.trend, self.speeds.established, now_ms)
        group = load_of_assignment(policy, speeds, self.assignment, self.speeds)
        self.memory, decision = decide(policy, self.memory, group, now_ms)
        if not decision.repack:
            total = speed_text(sum(speeds.values()))
            partitions = counted(len(speeds), "partition")
            consumers = counted(len(self.assignment), "consumer")
            return f"{total} in {partitions} on {consumers}; {decision.explanation}.", False
        ahead = forecast(self.trend, policy.look_ahead_ms) if policy.look_ahead_ms else None
        problem = problem_for(policy, group, decision.reason, ahead)
        packing = self.algorithm.pack(problem)
        before = self.assignment
        after = same_size_or_larger(policy, group, decision.reason, packing.assignment)
        changed = before != after and is_worthwhile(policy, group, decision.reason, after)
        self.memory = after_repack(self.memory, decision.reason, now_ms, changed=changed)
        if not changed:
            return f"{decision.explanation}; no better assignment was found.", False
        self.assignment = after
        lines = [_change(decision.explanation, problem, before, after)]
        lines += [f"  {p} alone is more than one consumer carries." for p in packing.oversize]
        return "\n".join(lines), True


def recommend(
    watch_for: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="How long to watch, for instance 10m.")
    ] = "2m",
    record: Annotated[
        Path | None,
        typer.Option(metavar="FILE.csv", help="Also write the speeds; `simulate` reads them."),
    ] = None,
    settings: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Watch the write speeds for a while, then say how many consumers they need, and why.

    A safe first step: nothing is created, sent or started. It leads an imaginary group by the
    controller's own rules, so it also says how often such a group would move partitions. Progress
    goes to stderr, the recommendation to stdout. Ctrl-C ends it early, with what was seen.

    Examples:
    `penstock recommend --for 10m --record speeds.csv`

    `penstock simulate --stream speeds.csv --interval 1s --trigger --algorithm all`

    """
    loaded = effective_settings(settings, overrides, bootstrap_server)
    watch_s = duration_of("--for", watch_for)
    if watch_s <= 0:
        raise UsageError("--for must be longer than 0s.")
    if record is not None and not record.absolute().parent.is_dir():
        raise UsageError(f"--record: there is no directory {record.absolute().parent}.")
    stop = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    chosen = controller_settings(loaded.settings)
    require_included(loaded.settings)
    watched = _watch(loaded.settings, chosen, watch_s, stop)
    if not watched.samples:
        raise PenstockError(
            f"No speed is known after {duration_text(round(watched.seconds))}.",
            remedy="Watch longer (--for 1m), or run `penstock doctor`; `monitor.include` says "
            "which topics count.",
        )
    if record is not None:
        write_stream(record, watched.samples)
        period = format_duration(loaded.settings.monitor.period)
        say(f"Wrote {record}: `penstock simulate --stream {record} --interval {period} --trigger`.")
    is_default = ("packing", "capacity") not in loaded.origin
    ledger = _ledger(loaded.settings, watched.rows)
    found = recommendation(watched, chosen, capacity_is_default=is_default, ledger=ledger)
    if output is OutputFormat.TABLE:
        typer.echo(found.text(chosen))
    else:
        print_data(asdict(found), output)


def _watch(settings: Settings, chosen: ControllerSettings, watch_s: float, stop: Event) -> Watched:
    group = ImaginaryGroup(chosen.policy, algorithm_named(chosen.algorithm))
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
            now_ms = time.monotonic_ns() // 1_000_000
            text, is_change = take(watched, group, speeds, now_ms)
            if is_change or reported_ms is None or now_ms - reported_ms >= REPORT_EVERY_MS:
                reported_ms = now_ms
                left_s = max(0.0, watch_s - watched.seconds)
                say(f"{text} {duration_text(round(left_s))} left.")
    return watched


def take(
    watched: Watched, group: ImaginaryGroup, speeds: Mapping[TopicPartition, float], now_ms: int
) -> tuple[str, bool]:
    """One measurement: what the imaginary group does with it, and what is remembered of that."""
    before = group.assignment
    text, is_change = group.measured(speeds, now_ms)
    watched.samples.append(dict(speeds))
    watched.consumers.append(len(group.assignment))
    watched.at_least.append(group.at_least(speeds))
    if is_change and before:
        watched.changes += 1
        watched.moves += moves_between(before, group.assignment, speeds).partitions
    return text, is_change


def write_stream(file: Path, samples: Sequence[Mapping[TopicPartition, float]]) -> None:
    """The speeds as `simulate` reads them; 0 before a partition was there."""
    names = sorted({partition for sample in samples for partition in sample})
    try:
        with file.open("w", encoding="utf-8", newline="") as opened:
            rows = csv.writer(opened)
            rows.writerow([str(name) for name in names])
            rows.writerows([sample.get(name, 0.0) for name in names] for sample in samples)
    except OSError as error:
        raise UsageError(f"--record: cannot write {file}: {error.strerror}.") from error


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


def _change(why: str, problem: PackingProblem, before: Assignment, after: Assignment) -> str:
    least = consumers_at_least(problem)
    moved = moves_between(before, after, problem.load_bytes_per_s)
    return (
        f"{why[0].upper()}{why[1:]}. Would use {counted(len(after), 'consumer')} (at least {least} "
        f"needed), moving {counted(moved.partitions, 'partition')} "
        f"({speed_text(moved.load_bytes_per_s)})."
    )
