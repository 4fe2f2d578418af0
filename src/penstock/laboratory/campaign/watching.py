"""Watches the group during a campaign: its size, its need, and what the controller decides.

Consumers are counted as processes that run, whatever the controller believes. Its decisions come
from the history in its status file.
"""

import json
import re
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from penstock.laboratory.campaign.deliveries import DeliveryLog, Outcome
from penstock.laboratory.campaign.figures import ConsumerDecision, Sample
from penstock.laboratory.campaign.injection import living_consumers
from penstock.laboratory.demo.observation import moment
from penstock.local_group import LocalGroup
from penstock.processes import ProcessIdentity

LOOK_EVERY_S = 0.5
# A new controller dates the history anew, by two clocks that it reads in whole milliseconds and of
# which one may be corrected. No number has the same decision twice within so short a time.
SAME_S = 0.05
_CONSUMER = re.compile(r"consumer (\d+)\b")


@dataclass(slots=True)
class Watched:
    samples: list[Sample] = field(default_factory=list)
    decisions: list[ConsumerDecision] = field(default_factory=list)
    # Every process that was seen as a consumer, with the time at which it was seen first.
    first_seen_s: dict[ProcessIdentity, float] = field(default_factory=dict)


def new_decisions(
    known: Iterable[ConsumerDecision],
    history: Iterable[dict[str, Any]],
    status_now_ms: int,
    began_ms: int,
) -> list[ConsumerDecision]:
    """The decisions about consumers in the history that were not known yet. Pure.

    `began_ms` and `status_now_ms` are of the machine's monotonic clock, so a decision has about the
    same time in every status, also in that of the next controller.
    """
    seen: dict[tuple[str, int, str], list[float]] = {}
    for one in known:
        seen.setdefault((one.code, one.consumer, one.explanation), []).append(one.at_s)
    found = []
    for entry in history:
        named = _CONSUMER.match(entry["explanation"])
        if named is not None:
            at_s = (status_now_ms - entry["age_ms"] - began_ms) / 1000
            one = ConsumerDecision(at_s, entry["code"], int(named[1]), entry["explanation"])
            before_s = seen.get((one.code, one.consumer, one.explanation), [])
            if not any(abs(at_s - former_s) <= SAME_S for former_s in before_s):
                found.append(one)
    return found


def read_status(group: LocalGroup) -> dict[str, Any] | None:
    """The controller's newest status; None while there is none."""
    try:
        content = (group.directory / "status.json").read_text(encoding="utf-8")
        status: dict[str, Any] = json.loads(content)
    except (OSError, ValueError):
        return None
    return status


class Watch:
    """A thread that looks twice a second."""

    def __init__(self, group: LocalGroup, log: DeliveryLog, now_s: Callable[[], float]) -> None:
        self.watched = Watched()
        self._group = group
        self._log = log
        self._now_s = now_s
        self._began_ms = time.monotonic_ns() // 1_000_000 - round(1000 * now_s())
        self._stop = threading.Event()
        self._seen_unix_ms = 0
        self._needed: int | None = None
        self._thread = threading.Thread(target=self._run, name="watch")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(LOOK_EVERY_S):
            self._look()

    def _look(self) -> None:
        at_s = self._now_s()
        living = living_consumers(self._group)
        for process in living.values():
            self.watched.first_seen_s.setdefault(process, at_s)
        self._read_status()
        told = self._log.count(Outcome.COMMITTED)
        self.watched.samples.append(Sample(at_s, len(living), self._needed, told))

    def _read_status(self) -> None:
        status = read_status(self._group)
        if status is None or status["at_unix_ms"] == self._seen_unix_ms:
            return
        self._seen_unix_ms = status["at_unix_ms"]
        self.watched.decisions += new_decisions(
            self.watched.decisions, status["history"], status["now_ms"], self._began_ms
        )
        if status["phase"] != "Synchronize" and status["measurement_age_ms"] is not None:
            capacity = status["capacity_bytes_per_s"] * status["target_utilisation"]
            self._needed = moment(self._now_s(), status, capacity).consumers_needed
