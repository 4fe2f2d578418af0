"""A whole live group for tests: real broker, real Spark, real processes; and ways to look at it."""

import json
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.kafka_io.administration import Administration
from penstock.load import LoadGenerator, LoadResult, parse_target
from penstock.local_group import LocalGroup
from penstock.model import ConsumerId
from penstock.processes import ProcessIdentity, send_signal
from penstock.settings import load_settings
from penstock.verification import Verdict, carried_so_far, verify

LOOK_EVERY_S = 0.2
CONVERGE_S = 90.0


def made_group(folder: Path, **changes: str) -> LocalGroup:
    """Small consumers and quick timers; `changes` are options with `__` for the dot."""
    flags = {
        "controller.directory": str(folder / "group"),
        "lake.root": str(folder / "lake"),
        "packing.capacity": "300kB/s",
        "packing.scale_down_period": "6s",
        "controller.consumers_max": "4",
        "controller.silence": "6s",
        "consumer.batch_period": "500ms",
        **{name.replace("__", "."): value for name, value in changes.items()},
    }
    given = [text for name, value in flags.items() for text in ("--set", f"{name}={value}")]
    settings = load_settings(flags=flags, environment={}).settings
    return LocalGroup(settings, given, embedded_broker=True, embedded_spark=True)


@dataclass(slots=True)
class LiveGroup:
    """The group under test, with what was produced to it so far."""

    group: LocalGroup
    produced: dict[str, int] = field(default_factory=dict)

    @property
    def administration(self) -> Administration:
        return Administration(self.group.settings.kafka)

    def status(self) -> dict[str, Any]:
        """The newest snapshot; empty while there is none."""
        self.group.tend()
        try:
            content = (self.group.directory / "status.json").read_text(encoding="utf-8")
            found: dict[str, Any] = json.loads(content)
        except (OSError, ValueError):
            return {}
        is_fresh = time.time() - found["at_unix_ms"] / 1000 < 3
        return found if is_fresh else {}

    def until(
        self, condition: Callable[[dict[str, Any]], bool], what: str, within_s: float = CONVERGE_S
    ) -> dict[str, Any]:
        """Wait for the group to be as wanted; fails with what the controller last said."""
        deadline_s = time.monotonic() + within_s
        status: dict[str, Any] = {}
        while time.monotonic() < deadline_s:
            status = self.status()
            if status and condition(status):
                return status
            time.sleep(LOOK_EVERY_S)
        told = "\n".join(str(one) for one in status.get("history", [])[-15:])
        log = self.group.log_of("controller").read_text(encoding="utf-8")[-3000:]
        raise AssertionError(f"not within {within_s} s: {what}\n{told}\n{log}")

    def converged(self, topics: dict[str, int] | None = None) -> dict[str, Any]:
        """Every partition owned by somebody ready, nothing moving."""
        wanted = {f"{topic}-{n}" for topic, count in (topics or {}).items() for n in range(count)}

        def is_calm(status: dict[str, Any]) -> bool:
            owned = {n for n, one in status["partitions"].items() if one["status"] == "owned"}
            all_owned = owned == set(status["partitions"]) and wanted <= owned
            return status["phase"] == "Sentinel" and not status["moves"] and all_owned

        return self.until(is_calm, "converged")

    def load(self, *targets: str, seconds: float) -> LoadResult:
        """Produce, and remember how much."""
        counts = dict(self.administration.cluster().partition_counts)
        chosen = [one for text in targets for one in parse_target(text, counts, seed=1)]
        result = LoadGenerator(
            self.group.settings.kafka, chosen, run_id=f"live-{time.monotonic_ns()}"
        ).run(seconds)
        assert result.records_failed == 0, result.first_failure
        for name, records in result.records_by_partition.items():
            self.produced[name] = self.produced.get(name, 0) + records
        return result

    def drained(self, *topics: str) -> Verdict:
        """Everything produced to the topics is in the ledger; then the verdict of the check."""
        deadline_s = time.monotonic() + CONVERGE_S
        while time.monotonic() < deadline_s:
            so_far = carried_so_far(self.group.settings, topics)
            ledger = {str(partition): end for partition, end in so_far.items()}
            mine = {n: c for n, c in self.produced.items() if n.rpartition("-")[0] in topics}
            if mine and all(ledger.get(name, 0) >= count for name, count in mine.items()):
                return verify(self.group.settings, list(topics), on_progress=lambda _: None)
            self.group.tend()
            time.sleep(0.5)
        raise AssertionError(f"not drained: {self.produced} against {ledger}")

    def consumer_process(self, consumer: int) -> ProcessIdentity:
        return self.group.deployment.process_of(ConsumerId(consumer))

    def hurt(self, process: ProcessIdentity, number: signal.Signals) -> None:
        assert send_signal(process, number)


def busiest(status: dict[str, Any]) -> int:
    found: int = max(status["consumers"], key=lambda one: len(one["partitions"]))["consumer"]
    return found


def working(status: dict[str, Any]) -> int:
    """How many consumers hold partitions."""
    return sum(1 for one in status["consumers"] if one["partitions"])
