"""The live group's targets, measured on real parts: `python benchmarks/live_group.py [PART...]`.

PART is any of `spare`, `new`, `moves`, `constant`, `controller`, `consumer`, `broker`, `spark`; all
of them without one, about twenty minutes. Exit code 1 when a bound is broken. Best on a quiet
machine.

    spare       from a step in load to every partition within capacity again, with a warm spare
    new         the same without a spare: a new consumer has to start
    moves       how long nobody reads a partition that moves; that the others never pause
    constant    five minutes of constant load: nothing moves
    controller  killed with -9 at ten consumers: how soon a successor is in control
    consumer    killed with -9: how soon its partitions are read again
    broker      killed with -9 and away for half a minute: how soon records flow again
    spark       the same of the Spark server
"""

import argparse
import dataclasses
import json
import random
import signal
import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Self

import typer
from live_group_stage import CAPACITY_BYTES_PER_S, Stage, now_ms, within_capacity_s

from penstock.cli.service import ask
from penstock.laboratory.demo.observation import ConsumptionChange, hand_overs
from penstock.messages import Resume
from penstock.pipeline.connect_server import HOST, is_listening
from penstock.processes import send_signal

PARTITIONS = 24
# Each step takes one consumer more, at 85 % of the capacity each.
STAIRS = (0.7, 1.5, 2.3, 3.1, 3.9)
SWAPS, SWAP_EVERY_S = 16, 12.0
CONSUMERS = 10
ROUNDS = 5
# How long a killed server stays away, so that every wait has grown as long as it can.
AWAY_S, OUTAGES = 30.0, 3


@dataclasses.dataclass(frozen=True)
class Measured:
    """`bound` None: for information."""

    name: str
    value: float
    bound: float | None = None
    unit: str = "s"

    @property
    def is_met(self) -> bool:
        return self.bound is None or self.value <= self.bound

    def __str__(self) -> str:
        said = "" if self.bound is None else f"at most {self.bound:g}"
        verdict = "" if self.bound is None else ("ok" if self.is_met else "MISSED")
        return f"{self.name:62} {self.value:8.2f} {self.unit:3} {said:13} {verdict}"


def staircase(spares: int, bound_s: float) -> list[Measured]:
    """Four steps up, each more than the group carries."""
    name = "with the spare" if spares else "with a new consumer"
    seconds = []
    with Stage(PARTITIONS, {"controller.spare_consumers": str(spares)}) as stage:
        stage.set_all(STAIRS[0] * CAPACITY_BYTES_PER_S / PARTITIONS)
        stage.calm(workers=1, spares=spares)
        stage.rest(15)  # until the measured speed is the true one
        for workers, share in enumerate(STAIRS[1:], start=2):
            stepped_ms = stage.set_all(share * CAPACITY_BYTES_PER_S / PARTITIONS)
            stage.calm(workers_min=workers, spares=spares)
            stage.rest(12)
            rows = stage.status()["partitions"]
            speeds = {name: float(row["write_speed_bytes_per_s"]) for name, row in rows.items()}
            took_s = within_capacity_s(stage.said(), stepped_ms, speeds, CAPACITY_BYTES_PER_S)
            seconds.append(float("inf") if took_s is None else took_s)
            typer.echo(f"  step to {share:g} consumers' worth: {seconds[-1]:.1f} s", err=True)
    return [
        Measured(f"step to within capacity {name}, median", statistics.median(seconds)),
        Measured(f"step to within capacity {name}, longest", max(seconds), bound_s),
    ]


def moves() -> list[Measured]:
    """Every few seconds other partitions are the busy ones, so that some have to move."""
    high, low, usual = 90_000.0, 6_000.0, 27_000.0
    chance = random.Random(1)
    with Stage(PARTITIONS) as stage:
        stage.set_all(usual)
        stage.calm(workers_min=3, spares=1)
        stage.rest(20)
        calm_until_ms = now_ms()
        for _ in range(SWAPS):
            busy = chance.sample(stage.dials, PARTITIONS // 4)
            for dial in stage.dials:
                dial.set_speed(high if any(dial is one for one in busy) else low)
            stage.rest(SWAP_EVERY_S)
        stage.set_all(usual)
        stage.calm()
        said = [one for one in stage.said() if one.at_ms >= calm_until_ms]
        commits = stage.commits()
    moved = hand_overs(said)
    seconds = sorted(one.seconds for one in moved)
    if len(seconds) < 2:
        raise AssertionError("nothing moved: there is nothing to measure")
    typer.echo(f"  {len(seconds)} hand-overs: {[round(one, 2) for one in seconds]}", err=True)
    still, during = gaps_of_the_unmoved(commits, said, calm_until_ms)
    return [
        Measured("moved partitions", len(seconds), unit=""),
        Measured("nobody reads a moved partition, median", statistics.median(seconds), 1.0),
        Measured("nobody reads a moved partition, 99 %", quantile(seconds, 0.99), 2.5),
        Measured("stopped and started where they were", pauses(said), 0, ""),
        Measured("between commits around a move, median", statistics.median(around(commits, said))),
        Measured("between commits of a partition, calm, 99 %", quantile(still, 0.99)),
        Measured("the same, of the unmoved while others move, 99 %", quantile(during, 0.99)),
    ]


def quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def pauses(said: Sequence[ConsumptionChange]) -> int:
    """Stops after which the same consumer started the partition again: a pause for nothing."""
    stopped: dict[str, int] = {}
    count = 0
    for one in said:
        if not one.is_start:
            stopped[one.partition] = one.consumer
        elif stopped.pop(one.partition, None) == one.consumer:
            count += 1
    return count


def around(commits: dict[str, list[int]], said: Sequence[ConsumptionChange]) -> list[float]:
    """From the last commit before a stop (or of it) to the first one after the start elsewhere."""
    found = []
    for one in said:
        times = commits.get(one.partition, [])
        before = [at for at in times if at <= one.at_ms]
        after = [at for at in times if at > one.at_ms]
        if not one.is_start and before and after:
            found.append((after[0] - before[-1]) / 1000)
    return found


def gaps_of_the_unmoved(
    commits: dict[str, list[int]], said: Sequence[ConsumptionChange], calm_until_ms: int
) -> tuple[list[float], list[float]]:
    """Seconds between commits before anything moved; and while others moved, of those that stay."""
    stops: dict[str, list[int]] = {}
    for one in said:
        stops.setdefault(one.partition, []).append(one.at_ms)
    moving = sorted(one.at_ms for one in said)
    still, during = [], []
    for partition, times in commits.items():
        for since, until in pairwise(times):
            gap_s = (until - since) / 1000
            if calm_until_ms - 15_000 < since and until < calm_until_ms:
                still.append(gap_s)
            elif any(since < at < until for at in moving) and not any(
                since - 1000 < at < until + 1000 for at in stops.get(partition, ())
            ):
                during.append(gap_s)
    return still, during


def constant(seconds: float) -> list[Measured]:
    """The same load all the time, at nearly all that three consumers are packed to."""
    with Stage(PARTITIONS) as stage:
        stage.set_all(2.4 * CAPACITY_BYTES_PER_S / PARTITIONS)
        stage.calm(spares=1)
        stage.rest(30)  # the first plans were made while the measured speed still rose
        since_ms, plan = now_ms(), stage.calm()["plan_number"]
        stage.rest(seconds)
        after = stage.calm()
        said = [one for one in stage.said() if one.at_ms >= since_ms]
    return [
        Measured(f"moves in {seconds:.0f} s of constant load", len(said), 0, ""),
        Measured("plans made in that time", after["plan_number"] - plan, 0, ""),
    ]


def controller() -> list[Measured]:
    """Ten consumers with two partitions each; the controller dies and is started again."""
    # Little load and few batches: ten consumers at full work are more than two cores carry.
    options = {
        "packing.partitions_per_consumer_max": "2",
        # By default no more than the machine's cores can carry.
        "controller.consumers_max": str(CONSUMERS),
        "controller.spare_consumers": "0",
        "consumer.batch_period": "4s",
    }
    sentinel, answered, stalls = [], [], []
    with Stage(2 * CONSUMERS, options) as stage:
        stage.set_all(2_000.0)
        stage.calm(workers=CONSUMERS)
        stage.rest(15)
        for _ in range(ROUNDS):
            epoch = stage.calm(workers=CONSUMERS)["controller_epoch"]
            killed_s, killed_ms = time.monotonic(), now_ms()
            if not send_signal(stage.group.process_of("controller"), signal.SIGKILL):
                raise AssertionError("the controller was dead before it was killed")
            asked = Asked(stage)
            after = stage.until(
                lambda status, epoch=epoch: (
                    status["controller_epoch"] > epoch and status["phase"] == "Sentinel"
                ),
                "a successor in Sentinel",
            )
            # The status is written once a second; it says since when the state lasts.
            since_ms = after["at_unix_ms"] - after["phase_for_ms"]
            sentinel.append((since_ms - killed_ms) / 1000)
            answered.append(asked.wait() - killed_s)
            typer.echo(f"  Sentinel {sentinel[-1]:.1f} s, obeys {answered[-1]:.1f} s", err=True)
            stage.rest(10)  # whoever dies again too soon is started again with a pause
            stalls.append(longest_stall_s(stage.commits(), killed_ms))
    return [
        Measured("restarted controller in Sentinel, longest", max(sentinel), 5.0),
        Measured("restarted controller does what it is asked, longest", max(answered), 5.0),
        Measured("no partition reaches the lake meanwhile, longest", max(stalls), 5.0),
    ]


def longest_stall_s(commits: dict[str, list[int]], since_ms: int) -> float:
    """The longest time without a commit of any partition, from then on."""
    times = sorted(at for some in commits.values() for at in some)
    return max((b - a) / 1000 for a, b in pairwise(times) if b > since_ms)


class Asked:
    """A request sent at once, while nobody leads: whoever leads next answers it."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._done_s = 0.0
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        ask(self._stage.group.settings, Resume(request_id=f"bench-{now_ms()}"), "60s")
        self._done_s = time.monotonic()

    def wait(self) -> float:
        while self._thread.is_alive():
            self._stage.rest(0.05)
        self._thread.join()
        return self._done_s or float("inf")


def consumer() -> list[Measured]:
    """The busiest of three consumers is killed under load, again and again."""
    started, committed = [], []
    with Stage(PARTITIONS) as stage:
        stage.set_all(2.0 * CAPACITY_BYTES_PER_S / PARTITIONS)
        stage.calm(workers=3, spares=1)
        stage.rest(10)
        for _ in range(ROUNDS):
            status = stage.calm(spares=1)
            victim = max(status["consumers"], key=lambda one: len(one["partitions"]))
            killed_ms = now_ms()
            process = stage.group.deployment.process_of(victim["consumer"])
            if not send_signal(process, signal.SIGKILL):
                raise AssertionError("the consumer was dead before it was killed")
            stage.rest(15)
            stage.calm()
            said = [one for one in stage.said() if one.at_ms > killed_ms and one.is_start]
            firsts = [
                min((one.at_ms for one in said if one.partition == name), default=2**60)
                for name in victim["partitions"]
            ]
            started.append((max(firsts) - killed_ms) / 1000)
            commits = stage.commits()
            landed = [
                min((at for at in commits[name] if at > first), default=2**60)
                for name, first in zip(victim["partitions"], firsts, strict=True)
            ]
            committed.append((max(landed) - killed_ms) / 1000)
            typer.echo(
                f"  {len(firsts)} partitions read again after {started[-1]:.1f} s, "
                f"in the lake after {committed[-1]:.1f} s",
                err=True,
            )
    return [
        Measured("a dead consumer's partitions are read again, longest", max(started), 15.0),
        Measured("and have reached the lake again, longest", max(committed)),
    ]


def outage(server: str, bound_s: float) -> list[Measured]:
    """A server is killed under load, stays away, and is started again on its old port."""
    first, every, fenced = [], [], 0
    with Stage(PARTITIONS) as stage:
        stage.set_all(1.5 * CAPACITY_BYTES_PER_S / PARTITIONS)
        stage.calm(workers_min=2, spares=1)
        stage.rest(15)
        for _ in range(OUTAGES):
            stage.calm(spares=1)
            killed_ms = now_ms()
            port = stage.kill(server)
            time.sleep(AWAY_S)  # nobody starts it again meanwhile
            with Listening(port) as listening:
                stage.until(lambda _, seen=listening: seen.since_ms is not None, f"the {server}")
            back_ms = listening.since_ms or 0
            stage.rest(40)
            commits = stage.commits()
            again = [
                min((at for at in times if at > back_ms), default=2**60)
                for times in commits.values()
            ]
            first.append((min(again) - back_ms) / 1000)
            every.append((max(again) - back_ms) / 1000)
            fenced += stage.decided("consumer_fenced", killed_ms)
            typer.echo(
                f"  back after {(back_ms - killed_ms) / 1000:.1f} s; then the first commit after "
                f"{first[-1]:.1f} s, every partition after {every[-1]:.1f} s",
                err=True,
            )
    return [
        Measured(f"records flow again after the {server} is back, longest", max(first), bound_s),
        Measured("every partition has reached the lake again, longest", max(every)),
        Measured("healthy consumers told to end", fenced, 0, ""),
    ]


class Listening:
    """Since when a port takes connections, seen from a thread of its own."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.since_ms: int | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while self.since_ms is None and not self._is_over.wait(0.02):
            if is_listening(HOST, self._port):
                self.since_ms = now_ms()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", nargs="*")
    parser.add_argument("--seconds", type=float, default=300.0, help="of constant load")
    arguments = parser.parse_args()
    parts: dict[str, Callable[[], list[Measured]]] = {
        "spare": lambda: staircase(1, 15.0),
        "new": lambda: staircase(0, 25.0),
        "moves": moves,
        "constant": lambda: constant(arguments.seconds),
        "controller": controller,
        "consumer": consumer,
        "broker": lambda: outage("broker", 5.0),
        "spark": lambda: outage("Spark server", 15.0),
    }
    unknown = sorted(set(arguments.part) - set(parts))
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)}; there are {', '.join(parts)}")
    found: list[Measured] = []
    for name in arguments.part or parts:
        typer.echo(f"{name} ...", err=True)
        measured = parts[name]()
        for one in measured:
            typer.echo(str(one))
        found += measured
    typer.echo(json.dumps([dataclasses.asdict(one) for one in found]))
    return 0 if all(one.is_met for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
